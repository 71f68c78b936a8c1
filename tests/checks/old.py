#!/usr/bin/env python3
"""old.py TUTTI FOLDER: checkpoints of earlier versions, kept in FOLDER, still serve as weights: they
test as they did when they were written, and a run that starts from them starts from their bits.

format1 was written by

    tutti train tiny.net --data synthetic,train=64,test=40 --steps 6 --seed 3 --eval-every 6steps"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from read_safetensors import read

TUTTI, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
DATA = ["--data", "synthetic,train=64,test=40"]


def tutti(*words):
    done = subprocess.run([TUTTI, *map(str, words)], capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise AssertionError(f"{' '.join(map(str, words))}: exit {done.returncode}: {done.stderr}")
    return done.stdout


def tested(run):
    """What tutti test must say: what the run's metrics say of its last step."""
    rows = [json.loads(line) for line in open(run / "metrics.jsonl")]
    row = [row for row in rows if row["phase"] == "test"][-1]
    return (f"{row['samples']} samples: top-1 {100 * row['top1']:.2f} %, "
            f"top-5 {100 * row['top5']:.2f} %, loss {row['loss']:.6g}")


def check_test(run, net):
    for weights in (run, run / "latest", run / "latest" / "model.safetensors"):
        said = tutti("test", net, *DATA, "--weights", weights).splitlines()[-1]
        assert said == tested(run), f"--weights {weights}: '{said}', not '{tested(run)}'"


def check_train(run, net):
    with tempfile.TemporaryDirectory() as scratch:
        tutti("train", net, *DATA, "--weights", run, "--steps", 1, "--run", scratch, "--keep", 0,
              "--eval-every", "never", "--quiet")
        start = read(pathlib.Path(scratch) / "step_00000000" / "model.safetensors")
        end = read(pathlib.Path(scratch) / "step_00000001" / "model.safetensors")
    kept = read(run / "latest" / "model.safetensors")
    assert start == kept, "a run that starts from an old checkpoint starts with other weights"
    assert end != kept, "a step changes nothing"


def check_resume(run, net):
    """Going on is refused with a sentence that says what to do, and nothing is touched."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = pathlib.Path(scratch) / "run"
        shutil.copytree(run, copy, symlinks=True)
        before = {p: p.read_bytes() for p in copy.rglob("*") if p.is_file()}
        words = ["train", net, *DATA, "--run", copy, "--resume", "auto", "--steps", 8]
        done = subprocess.run([TUTTI, *map(str, words)], capture_output=True, text=True, timeout=120)
        after = {p: p.read_bytes() for p in copy.rglob("*") if p.is_file()}
    assert done.returncode == 6, f"--resume: exit {done.returncode}: {done.stderr}"
    for word in ("earlier version (format 1)", "--weights instead of --resume"):
        assert word in done.stderr, f"--resume says nothing of '{word}': {done.stderr}"
    assert after == before, "a run that could not go on was changed"


for check in (check_test, check_train, check_resume):
    check(FOLDER / "format1", FOLDER / "format1" / "tiny.net")
