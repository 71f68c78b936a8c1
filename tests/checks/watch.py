#!/usr/bin/env python3
"""watch.py TUTTI HAS_SERVER: the page of a run as a file and from a server, the line of tutti status;
without a browser (make check-page has one)."""
import contextlib
import fcntl
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "page"))
import made_runs

TUTTI, HAS_SERVER = sys.argv[1], sys.argv[2] == "yes"
FAILURES = []
LIMIT = 300_000  # bytes of a page without its data


def expect(what, is_true, *more):
    if not is_true:
        FAILURES.append(what)
        print("FAIL", what, *more)


def run(*words):
    return subprocess.run([TUTTI, *map(str, words)], capture_output=True, text=True, timeout=120)


def data_of(page):
    """What a browser would take for the page's data."""
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.S)
    return json.loads(found.group(1)), len(page.encode()) - len(found.group(1).encode())


# ---- files ----

def check_report(scratch):
    made = made_runs.make(scratch / "made", ranks=4, slow=2)
    done = run("report", made)
    page = (made / "report.html").read_text()
    data, rest = data_of(page)
    one = data["runs"][0]
    expect("a page is written", done.returncode == 0 and str(made) in done.stdout, done)
    expect(f"the page alone has {rest} bytes", rest < LIMIT)
    expect("all steps are in it", one["train"]["step"] == list(range(1, 1001)))
    expect("the slow rank is named", one["ranks"]["verdict"]["rank"] == 2
           and one["ranks"]["verdict"]["kind"] == "chronic", one["ranks"].get("verdict"))
    expect("three checkpoints", [c[0] for c in one["checkpoints"]] == [0, 500, 1000])
    for word in ("http://", "https://", "//cdn"):
        outside = [m for m in re.findall(r'(?:src|href|url)\s*[=(]\s*["\']?' + word + r"\S*", page)]
        expect(f"nothing is fetched from {word}", not outside, outside)


def check_bounded(scratch):
    """However many steps there were."""
    made = made_runs.make(scratch / "long", steps=60000, ranks=64)
    done = run("report", made, "--output", scratch / "long.html")
    data, _ = data_of((scratch / "long.html").read_text())
    size = (scratch / "long.html").stat().st_size
    expect("a long run has a page", done.returncode == 0, done)
    expect("2,048 points at most", 1000 < len(data["runs"][0]["train"]["step"]) <= 2048)
    expect(f"{size} bytes of page", size < 2_500_000)


def check_hostile(scratch):
    made = made_runs.make_hostile(scratch / "hostile")
    done = run("report", made, "--output", scratch / "hostile.html")
    page = (scratch / "hostile.html").read_text()
    expect("a hostile run has a page", done.returncode == 0, done)
    data, _ = data_of(page)
    expect("names stay names", made_runs.HOSTILE in json.dumps(data, ensure_ascii=False).replace('\\"', '"'))
    expect("the element of the data is not left", "<img" not in page and "hacked'</script>" not in page)
    expect("damage is counted", data["runs"][0]["damaged"] > 300, data["runs"][0]["damaged"])
    done = run("status", made, "--json")
    expect("its status is JSON", done.returncode == 12 and json.loads(done.stdout)["state"] == "failed", done)


def check_status(scratch):
    made = made_runs.make(scratch / "status", steps=100, of=400, ended=False)
    expect("gone without a word", run("status", made).returncode == 12)
    with open(made / "lock", "w") as lock:
        lock.write("host x\n")
        lock.flush()
        fcntl.lockf(lock, fcntl.LOCK_EX)
        done = run("status", made, "--json")
        said = json.loads(done.stdout)
        expect("running", done.returncode == 10 and said["state"] == "running", done)
        expect("the time left", abs(said["eta_s"] - 3) < 0.1, done.stdout)
        for path in made.glob("*.jsonl"):
            os.utime(path, (1e9, 1e9))
        expect("stalled", run("status", made).returncode == 11)
    for where, code in (scratch / "nowhere", 1), (scratch, 1):
        done = run("status", where)
        expect(f"status of {where}", done.returncode == code and "tutti status: " in done.stderr, done)


# ---- the server ----

@contextlib.contextmanager
def serving(*words):
    with subprocess.Popen([TUTTI, "watch", "--port", "0", *map(str, words)], text=True,
                          stdout=subprocess.PIPE) as process:
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.send_signal(signal.SIGINT)
            expect("Ctrl-C ends it", process.wait(20) == 0)


def get(address, **headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read().decode()


def raw(address, text):
    host, port = re.match(r"http://([\d.]+):(\d+)", address).groups()
    with socket.create_connection((host, int(port)), 20) as connection:
        connection.sendall(text.encode())
        return connection.makefile("rb").read().decode(errors="replace")


def check_server(scratch):
    made = made_runs.make(scratch / "served", steps=50, of=400, ended=False)
    with serving(made) as (_, address):
        status, page = get(address)
        expect("the page", status == 200 and data_of(page)[0]["live"] == 1, status)
        status, text = get(address + "data.json")
        generation = json.loads(text)["generation"]
        expect("nothing new", get(f"{address}data.json?since={generation}")[0] == 204)
        with open(made / "metrics.jsonl", "ab") as f:
            f.write(made_runs.train_row(51))
        time.sleep(1.1)
        status, text = get(f"{address}data.json?since={generation}")
        expect("news", status == 200 and json.loads(text)["runs"][0]["done"] == 51, status)
        status, text = get(address + "metrics")
        expect("Prometheus", f'tutti_step{{run="{made}"}} 51' in text, text)
        for path in ("../../etc/passwd", "metrics.jsonl", "%2e%2e/%2e%2e/etc/passwd", "data.json/", "/"):
            expect(f"no {path}", get(address + path)[0] == 404)
        expect("another name for this machine", get(address, Host="evil.example")[0] == 403)
        post = raw(address, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc")
        expect("it only reads", " 405 " in post.split("\r\n")[0], post[:200])


def check_token(scratch):
    made = made_runs.make(scratch / "secret", steps=20)
    with serving(made, "--bind", "0.0.0.0") as (_, address):
        address = address.replace("0.0.0.0", "127.0.0.1")
        base, token = address.split("?token=")
        expect("with the token", get(address)[0] == 200)
        for wrong in ("", "?token=", "?token=" + token[:-1], "?token=" + token + "0", "?token=x"):
            for path in ("", "data.json", "metrics", "nothing"):
                expect(f"{path}{wrong} is refused", get(base + path + wrong)[0] == 403)


def check_slow_clients(scratch):
    """A thousand that say half of what they want, and one that says all of it."""
    made = made_runs.make(scratch / "slow", steps=20)
    with serving(made) as (_, address):
        port = int(re.search(r":(\d+)/", address).group(1))
        with contextlib.ExitStack() as stack:
            count = 0
            with contextlib.suppress(OSError):  # our own limit of open files may be less
                for count in range(1000):
                    slow = stack.enter_context(socket.create_connection(("127.0.0.1", port), 20))
                    slow.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
            begin = time.monotonic()
            status, _ = get(address)
            expect(f"an answer beside {count} slow clients", status == 200 and count > 500, status)
            expect("and soon", time.monotonic() - begin < 10, time.monotonic() - begin)


def check_refusals(scratch):
    made = made_runs.make(scratch / "refused", steps=20)
    for words, code in ((["--bind", "nowhere"], 2), (["--bind", "203.0.113.7"], 1)):
        done = run("watch", made, "--port", "0", *words)
        expect(f"{words}", done.returncode == code and "tutti watch: " in done.stderr, done)


def main():
    checks = [check_report, check_bounded, check_hostile, check_status]
    if HAS_SERVER:
        checks += [check_server, check_token, check_slow_clients, check_refusals]
    else:
        done = run("watch", ".")
        expect("a build without a server says so", "libmicrohttpd" in done.stderr, done)
    with tempfile.TemporaryDirectory(prefix="tutti-watch-") as scratch:
        for check in checks:
            check(pathlib.Path(scratch))
    sys.exit(1 if FAILURES else 0)


main()
