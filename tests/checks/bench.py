#!/usr/bin/env python3
"""bench.py BUILD: every benchmark runs, honours the options it offers and prints JSON with the
figures it promises. What the figures are does not matter here."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

BENCH = pathlib.Path(sys.argv[1]) / "bench"
FAILURES = []
LAUNCH = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", "2"]
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def run(name, *words, ranks=1):
    return subprocess.run([*(LAUNCH if ranks > 1 else []), BENCH / name, *map(str, words)],
                          capture_output=True, text=True, timeout=300, env=ENVIRONMENT)


def expect(what, is_true, done):
    if not is_true:
        FAILURES.append(what)
        print("FAIL", what, "exit", done.returncode, done.stdout[:2000], done.stderr[:2000])


def figures(what, done):
    expect(what + " runs", done.returncode == 0, done)
    return json.loads(done.stdout) if done.returncode == 0 else {}


def check_help():
    for name in ("data", "layers", "ops", "step"):
        done = run(name, "anything", "--help")
        expect(f"{name} explains itself", done.returncode == 0
               and done.stdout.startswith(f"usage: {name}"), done)


def check_layers():
    for precision in ("fp32", "bf16"):
        done = run("layers", "lenet", "-b", 2, "--seconds", 0, "--rounds", 1, "--json", "--precision",
                   precision)
        rows = figures("layers", done).get("rows", [])
        passes = {r["pass"] for r in rows if r["gflops"] > 0 and 0 < r["percent"]}
        expect(f"layers times three passes in {precision}",
               passes == {"forward", "backward-data", "backward-weights"}, done)


def check_ops():
    done = run("ops", "--mib", 1, "--seconds", 0.01, "--only", "relu", "--json")
    rows = figures("ops", done).get("rows", [])
    expect("ops has relu and nothing else", len(rows) > 0 and
           all("relu" in r["pass"].lower() for r in rows), done)


def check_step(folder, ranks):
    path, steps = folder / f"{ranks}.json", 2
    done = run("step", "lenet", "-b", 8, "-t", 1, "--micro-batch", 4 // ranks, "--grains", 8,
               "--steps", steps, "--json", "--trace", path,
               ranks=ranks)
    found = figures(f"step on {ranks} rank(s)", done)
    expect("step times steps", found.get("samples_per_s", 0) > 0 and found["ranks"] == ranks, done)
    expect("step takes passes", found.get("passes") == 2, done)
    events = json.loads(path.read_text())["traceEvents"] if path.exists() else []
    computed = {e["pid"] for e in events if e.get("cat") == "forward"}
    expect("step's trace shows every rank", computed == set(range(ranks)), done)


FAKE = """#!/bin/sh
echo "$@" > {asked}
echo ready An opponent
while read -r wish; do echo 0.5; done
echo '{{"max_rss_bytes": 7}}'
"""


def check_opponent(folder):
    """It is started as its script wants, steps when it is told, and may be missing."""
    fake, asked = folder / "python", folder / "asked"
    fake.write_text(FAKE.format(asked=asked))
    fake.chmod(0o755)
    words = ["step", "lenet", "-b", 8, "-t", 1, "--steps", 2, "--json", "--against", "tensorflow",
             "--precision", "bf16"]
    ENVIRONMENT["TUTTI_PYTHON"] = str(fake)
    done = run(*words)
    found = figures("step against another", done)
    expect("the other's steps count", found.get("against") == "An opponent"
           and found["against_samples_per_s"] == 16 and found["against_max_rss_bytes"] == 7
           and abs(found["ratio"] * found["against_samples_per_s"] / found["samples_per_s"] - 1) < 1e-9,
           done)
    script, net, *rest = asked.read_text().split()
    expect("the other hears what is asked for", script.endswith("/tensorflow_step.py")
           and rest == "8 1 --serve --processes 1 --precision bf16".split(), done)
    run(*words, "--against-precision", "fp32")
    rest = asked.read_text().split()[2:]
    expect("the other has its own precision", rest[-1] == "fp32", done)
    ENVIRONMENT["TUTTI_PYTHON"] = str(folder / "nothing")
    done = run(*words)
    expect("a missing opponent is named", done.returncode and "TensorFlow in" in done.stderr
           and "tools/setup opponents" in done.stderr, done)


def check_data():
    done = run("data", "synthetic", "8x8x3", "--seconds", 0.05)
    expect("data counts samples", done.returncode == 0 and done.stdout.count("samples/s") == 2, done)
    done = run("data", "synthetic", "8x8")
    expect("data says what a shape is", done.returncode == 2 and "HxWxC" in done.stderr, done)


def check_comm():
    size = 65536
    done = run("comm", "--json", "--only", "sizes", "--min", size, "--max", size, "--seconds", 0.05,
               ranks=2)
    rows = figures("comm", done).get("rows", [])
    expect("comm times an exchange", [r["bytes"] for r in rows] == [size] and rows[0]["ours_s"] > 0,
           done)


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_help()
        check_layers()
        check_ops()
        check_data()
        check_step(pathlib.Path(folder), 1)
        check_opponent(pathlib.Path(folder))
        if (BENCH / "comm").exists():
            check_step(pathlib.Path(folder), 2)
            check_comm()
    sys.exit(1 if FAILURES else 0)


main()
