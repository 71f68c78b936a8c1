#!/usr/bin/env python3
"""resume.py TUTTI: what a run has written is taken for what it is: damaged weights are refused."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

TUTTI = sys.argv[1]
NETS = pathlib.Path(__file__).resolve().parent.parent / "nets"
LINEAR = [str(NETS / "linear.net"), "--data", "synthetic,train=64,test=40"]
FAILURES = []


def run(*words, **options):
    return subprocess.run([TUTTI, *map(str, words)], capture_output=True, text=True, timeout=120,
                          **options)


def expect(what, is_true, done=None):
    if not is_true:
        FAILURES.append(what)
        print("FAIL", what, *(("exit", done.returncode, done.stdout[-2000:], done.stderr[-2000:])
                              if done else ()))


def train(*words):
    done = run("train", *words, "--quiet")
    expect(f"train {' '.join(map(str, words))}", done.returncode == 0, done)
    return done


def flip(path, place):
    """One bit, 'place' bytes from the end."""
    content = bytearray(path.read_bytes())
    content[-place] ^= 1
    path.write_bytes(content)


def check_sums(folder):
    """Weights with a flipped bit are refused wherever they are named, by their own name."""
    train(*LINEAR, "--steps", 4, "--run", folder / "run")
    weights = folder / "run" / "best" / "model.safetensors"
    copy = folder / "copy.safetensors"
    uses = (["test", *LINEAR, "--weights"],
            ["train", *LINEAR, "--steps", 1, "--eval-every", "never", "--weights"])
    places = [folder / "run", folder / "run" / "best", weights]
    for use in uses:
        for place in places:
            done = run(*use, place)
            expect(f"{use[0]} --weights {place}", done.returncode == 0, done)
    flip(weights, 5)
    (folder / "link").symlink_to(weights)
    for use in uses:
        for place in (*places, folder / "link"):
            done = run(*use, place)
            expect(f"{use[0]} --weights {place}, damaged", done.returncode == 6
                   and "model.safetensors' is not the file that was written" in done.stderr, done)
    shutil.copy(weights, copy)
    expect("weights without sums", run(*uses[0], copy).returncode == 0)


with tempfile.TemporaryDirectory() as name:
    for check in (check_sums,):
        home = pathlib.Path(name) / check.__name__
        home.mkdir()
        check(home)
sys.exit(1 if FAILURES else 0)
