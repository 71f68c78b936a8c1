#!/usr/bin/env python3
"""photos.py TUTTI SEEDS: someone's own photos, as they come. In class folders, with three damaged
ones, an empty folder, a PNG with alpha and a JPEG in CMYK among them (SEEDS has those), they are
trained on, tested and asked about; on two ranks with the same bits. Then the same net is asked about
arrays."""
import base64
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bits"))
import runs

TUTTI, SEEDS = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2])
COLOURS = {"fig": (150, 40, 160), "kiwi": (90, 190, 60), "plum": (40, 60, 170)}
EACH, SIDE = 22, 20
FAILURES = []


def expect(what, is_true, done=None):
    if not is_true:
        FAILURES.append(what)
        print("FAIL", what, *(("exit", done.returncode, done.stdout[-2000:], done.stderr[-2000:])
                              if done else ()))


def run(*words):
    return subprocess.run([TUTTI, *map(str, words)], capture_output=True, text=True, timeout=120,
                          env=runs.ENV)


def png(path, colour, number, alpha=False):
    """A colour with stripes that depend on the number."""
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data
                + struct.pack(">I", zlib.crc32(kind + data)))

    def pixel(x, y):
        shade = (x * (number + 3) + y * 7) % 60 - 30
        return bytes([*(max(0, min(255, c + shade)) for c in colour), *([x * 12] if alpha else [])])

    rows = b"".join(b"\0" + b"".join(pixel(x, y) for x in range(SIDE)) for y in range(SIDE))
    head = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 6 if alpha else 2, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows))
                     + chunk(b"IEND", b""))


def make_photos(folder):
    for name, colour in COLOURS.items():
        (folder / name).mkdir(parents=True)
        for i in range(EACH):
            png(folder / name / f"{i:02}.png", colour, i)
    (folder / "empty").mkdir()
    png(folder / "fig" / "alpha.png", COLOURS["fig"], 5, alpha=True)
    shutil.copy(SEEDS / "cmyk.jpg", folder / "kiwi" / "cmyk.jpg")
    whole = (folder / "plum" / "00.png").read_bytes()
    (folder / "plum" / "09-cut.png").write_bytes(  # the tenth, which is held out for testing
        whole[:len(whole) // 2])
    (folder / "plum" / "nothing.jpg").write_bytes(b"")
    (folder / "kiwi" / "text.jpg").write_text("not a photo\n")
    return f"images:{folder}"


def worst_of(folder):
    """The last ones that a run wrote down."""
    events = map(json.loads, (folder / "events.jsonl").read_text().splitlines())
    return [e for e in events if e["event"] == "worst"][-1]["samples"]


def check_training(folder, data):
    net = folder / "fruit.net"
    net.write_text("input 3 16 16\nc1 conv 8 kernel=3 pad=1 relu\np1 avgpool kernel=4 stride=4\n"
                   "out fc 3\nloss softmax\n")
    words = [str(net), "--data", data, "--epochs", "8", "-b", "12", "--lr", "0.02"]
    done = run("train", *words, "--run", folder / "stops", "--quiet")
    expect("damage stops a run and is named", done.returncode == 1 and "--skip-bad" in done.stderr
           and any(name in done.stderr for name in ("cut.png", "nothing.jpg", "text.jpg")), done)
    one, two = folder / "one", folder / "two"
    done = run("train", *words, "--skip-bad", "--run", one, "--comm-core", "none")
    told = done.stdout + done.stderr
    expect("it trains without the damaged ones", done.returncode == 0, done)
    expect("the empty folder is named", "left out 1 folder without JPEG or PNG files: empty" in told,
           done)
    for name in ("cut.png", "nothing.jpg", "text.jpg"):
        expect(f"{name} is named once", told.count(name) == 1, done)
    if "[X] MPI" in run("--check-build").stdout:
        runs.train(TUTTI, two, 2, *words, "--skip-bad")
        runs.same(one, two)
        expect("two ranks find the same worst samples", worst_of(one) == worst_of(two))
    worst = worst_of(one)
    expect("the worst are shown, the worst first", len(worst) > 3 and all(
        base64.b64decode(w["jpeg"]).startswith(b"\xff\xd8\xff") and (folder / "photos" / w["file"]).exists()
        and w["truth"] == w["file"].split("/")[0] for w in worst)
        and [w["loss"] for w in worst] == sorted((w["loss"] for w in worst), reverse=True), worst)
    expect("they are on the page", worst[0]["jpeg"] in (one / "report.html").read_text())
    return one


def check_variety(folder, data):
    """All that varies samples, drawn for each of them whoever reads it."""
    varied = f"{data},random-resized-crop=on,color-jitter=0.4/0.4/0.4/0.1,cutout=6,mixup=0.3"
    words = [str(folder / "fruit.net"), "--steps", "12", "-b", "12", "--grains", "4", "--skip-bad",
             "--threads", "1", "--data"]
    one, plain = (runs.train(TUTTI, folder / name, 1, *words, spec)
                  for name, spec in (("varied", varied), ("plain", data)))
    expect("variety makes a difference", runs.losses(one) != runs.losses(plain))
    if "[X] MPI" in run("--check-build").stdout:
        for ranks in 2, 3:
            runs.same(one, runs.train(TUTTI, folder / f"varied{ranks}", ranks, *words, varied))


def check_test(data, weights):
    done = run("test", "--data", data, "--weights", weights)
    expect("damage stops a test and is named", done.returncode == 1 and "cut.png" in done.stderr
           and "--skip-bad" in done.stderr, done)
    done = run("test", "--data", data, "--weights", weights, "--skip-bad")
    expect("a table of confusions and the figures of classes", done.returncode == 0
           and "truth" in done.stdout and "precision" in done.stdout, done)
    done = run("test", "--data", data, "--weights", weights, "--skip-bad", "--json")
    found = json.loads(done.stdout)
    expect("three classes", [c["name"] for c in found["classes"]] == sorted(COLOURS), done)
    expect("every sample is in the confusions", sum(map(sum, found["confusion"])) == found["samples"]
           == sum(c["support"] for c in found["classes"]), done)
    for i, c in enumerate(found["classes"]):
        table = found["confusion"]
        right, answered = table[i][i], sum(row[i] for row in table)
        expect(f"the figures of {c['name']}", c["support"] == sum(table[i])
               and abs(c["recall"] - right / c["support"]) < 1e-8
               and abs(c["precision"] - (right / answered if answered else 0)) < 1e-8
               and abs(c["f1"] - 2 * right / (answered + c["support"])) < 1e-8, done)
    expect("it has learned", found["top1"] > 0.6, done)


def check_predictions(folder, weights):
    photos = folder / "photos"
    done = run("predict", "--weights", weights, f"{photos}/", photos / "fig" / "00.png", "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    bad = [line["file"] for line in lines if "error" in line]
    expect("all files, in order, below the folder", [line["file"] for line in lines] ==
           sorted(map(str, photos.rglob("*.*"))) + [str(photos / "fig" / "00.png")], done)
    expect("three are damaged, and the exit code says so", len(bad) == 3 and done.returncode == 1
           and "3 of those asked about could not be read" in done.stderr, done)
    good = [line for line in lines if "classes" in line]
    for line in good:
        p = [c["probability"] for c in line["classes"]]
        expect("probabilities, largest first", abs(sum(p) - 1) < 1e-5 and p == sorted(p)[::-1], done)
    right = sum(line["classes"][0]["name"] == pathlib.Path(line["file"]).parent.name for line in good)
    expect("most are right", right > 0.8 * len(good), done)
    alone = run("predict", "--weights", weights, photos / "fig" / "00.png", "--json", "--top", 1)
    expect("a batch changes nothing", json.loads(alone.stdout)["classes"] == lines[-1]["classes"][:1]
           and alone.returncode == 0, alone)
    done = run("predict", "--weights", weights, photos / "empty", folder / "gone.png",
               photos / "fig" / "00.png")
    expect("an empty folder and a file that is not there do not stop it", done.returncode == 1
           and done.stdout.count("\n") == 1 and "'" + str(photos / "empty") + "' has no JPEG"
           in done.stderr and "gone.png" in done.stderr, done)
    done = run("predict", "--weights", weights, photos, "--output", folder / "P.npy")
    expect("files give no array", done.returncode == 2 and not (folder / "P.npy").exists(), done)


def npy(path, kind, shape, numbers):
    head = str({"descr": kind, "fortran_order": False, "shape": shape}).encode()
    path.write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + numbers)


def read_npy(path):
    content = path.read_bytes()
    length = struct.unpack("<H", content[8:10])[0]
    head = eval(content[10:10 + length])  # the header's dictionary
    return head, struct.unpack(f"<{(len(content) - 10 - length) // 4}f", content[10 + length:])


def check_arrays(folder):
    """An array is trained on; its probabilities are those of the lines, damage is a row of NaN."""
    count, net = 50, folder / "numbers.net"
    net.write_text("input 5\nout fc 3\nloss softmax\n")
    values = [(i % 3 == k % 3) * 2.0 + (i * 7 + k) % 5 * 0.1 for i in range(count) for k in range(5)]
    npy(folder / "X.npy", "<f4", (count, 5), struct.pack(f"<{5 * count}f", *values))
    npy(folder / "Y.npy", "<i8", (count,), struct.pack(f"<{count}q", *(i % 3 for i in range(count))))
    done = run("train", net, "--data", f"npy:{folder}/X.npy,{folder}/Y.npy", "--run", folder / "a",
               "--epochs", 40, "-b", 15, "--lr", 0.3, "--quiet")
    expect("arrays are trained on", done.returncode == 0, done)
    ask = ["predict", "--weights", folder / "a", "--data", f"npy:{folder}/X.npy"]
    done = run(*ask, "--output", folder / "P.npy", "-b", 16)
    expect("an array is written", done.returncode == 0, done)
    head, p = read_npy(folder / "P.npy")
    expect("a row for each sample", head == {"descr": "<f4", "fortran_order": False,
                                             "shape": (count, 3)}, done)
    lines = [json.loads(line) for line in run(*ask, "--json", "--top", 3).stdout.splitlines()]
    expect("the lines say the same", len(lines) == count and all(
        abs(c["probability"] - p[3 * i + int(c["name"])]) < 1e-7
        for i, line in enumerate(lines) for c in line["classes"]), done)
    expect("it has learned", sum(int(line["classes"][0]["name"]) == i % 3
                                 for i, line in enumerate(lines)) > 0.9 * count)
    values[5 * 7 + 2] = float("nan")
    npy(folder / "X.npy", "<f4", (count, 5), struct.pack(f"<{5 * count}f", *values))
    done = run(*ask, "--output", folder / "N.npy")
    _, other = read_npy(folder / "N.npy")
    expect("damage is a row of NaN", done.returncode == 1 and all(x != x for x in other[21:24])
           and other[:21] == p[:21] and other[24:] == p[24:] and "sample 7" in done.stderr, done)
    done = run(*ask, "--output", folder / "P.csv")
    expect("an output of no kind", done.returncode == 2 and ".npy" in done.stderr, done)
    done = run(*ask, "--output", folder / "P.ark")
    expect("arrays make no archive", done.returncode == 2 and "kaldi" in done.stderr, done)


def ark(path, utterances):
    content = b""
    for key, rows in utterances.items():
        content += (f"{key} ".encode() + b"\0BFM \4" + struct.pack("<i", len(rows)) + b"\4"
                    + struct.pack("<i", len(rows[0])))
        content += b"".join(struct.pack(f"<{len(row)}f", *row) for row in rows)
    path.write_bytes(content)


def check_archives(folder):
    """Frames give posteriors, utterance by utterance."""
    frames = {f"utt{u}": [[float((f + u + k) % 3) for k in range(4)] for f in range(3 + u)]
              for u in range(12)}
    ark(folder / "feats.ark", frames)
    (folder / "labels.txt").write_text("".join(
        f"{key} {' '.join(str(int(row[0])) for row in rows)}\n" for key, rows in frames.items()))
    (folder / "frames.net").write_text("input 12\nout fc 3\nloss softmax\n")
    done = run("train", folder / "frames.net", "--data",
               f"kaldi:{folder}/feats.ark,{folder}/labels.txt", "--run", folder / "k", "--epochs", 30,
               "-b", 20, "--lr", 0.2, "--quiet")
    expect("frames are trained on", done.returncode == 0, done)
    done = run("predict", "--weights", folder / "k", "--data", f"kaldi:{folder}/feats.ark",
               "--output", folder / "P.ark")
    expect("posteriors are written", done.returncode == 0, done)
    content, at, right, total = (folder / "P.ark").read_bytes(), 0, 0, 0
    for key, rows in frames.items():
        head = f"{key} ".encode() + b"\0BFM \4" + struct.pack("<i", len(rows)) + b"\4\3\0\0\0"
        expect(f"the head of {key}", content[at:at + len(head)] == head)
        at += len(head)
        for row in rows:
            p = struct.unpack("<3f", content[at:at + 12])
            expect("posteriors add up to 1", abs(sum(p) - 1) < 1e-5)
            right, total, at = right + (p[int(row[0])] == max(p)), total + 1, at + 12
    expect("nothing follows, and it has learned", at == len(content) and right > 0.9 * total)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        data = make_photos(folder / "photos")
        weights = check_training(folder, data)
        check_variety(folder, data)
        check_test(data, weights)
        check_predictions(folder, weights)
        check_arrays(folder)
        check_archives(folder)
    print(len(FAILURES), "failures")
    sys.exit(1 if FAILURES else 0)


main()
