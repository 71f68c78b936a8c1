#!/usr/bin/env python3
"""algorithms.py TUTTI: how convolutions are computed is a choice by name, which a run keeps.

Each algorithm has bits of its own, whether the net's text names it or --conv does. A checkpoint of
version 1 of the arithmetic, which knew no names, goes on as it was: with --conv winograd-2x2."""
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

TUTTI = sys.argv[1]
NET = """input 3 7 6
conv1 conv 32 kernel=3 pad=1 relu
conv2 conv 33 kernel=3 pad=1{} relu
fc3 fc 5
loss softmax
"""
COMMON = ["--data", "synthetic,train=24,test=8", "--batch-size", "8", "--lr", "0.01", "--seed", "3",
          "--eval-every", "never", "--quiet", "--keep", "0", "--threads", "1"]
NAMES = ("direct", "winograd-2x2", "winograd-4x4")


def tutti(*words, code=0):
    done = subprocess.run([TUTTI, *map(str, words)], capture_output=True, text=True, timeout=120)
    if done.returncode != code:
        raise AssertionError(f"{' '.join(map(str, words))}: exit {done.returncode}: {done.stderr}")
    return done.stderr


def bits(run):
    """Of the tensors: a safetensors file begins with the length of its header."""
    data = (run / "latest" / "model.safetensors").read_bytes()
    return data[8 + int.from_bytes(data[:8], "little"):]


def net_with(folder, algorithm):
    path = folder / f"{algorithm or 'auto'}.net"
    path.write_text(NET.format(f" algorithm={algorithm}" if algorithm else ""))
    return path


def train(folder, net, steps, *options):
    run = folder / f"run{len(list(folder.glob('run*')))}"
    tutti("train", net, *COMMON, "--steps", steps, "--run", run, *options)
    return run


def check_names(folder):
    """An algorithm's bits are the same however it is named, and no other's."""
    auto = net_with(folder, "")
    by_option = [bits(train(folder, auto, 2, "--conv", name)) for name in NAMES]
    by_text = [bits(train(folder, net_with(folder, name), 2)) for name in NAMES]
    assert by_option == by_text, "--conv and algorithm= have other bits"
    assert len(set(by_option)) == len(NAMES), "two algorithms have the same bits"
    assert bits(train(folder, auto, 2)) in by_option[1:], "the usual one is none of Winograd's"


def check_words(folder):
    net = net_with(folder, "")
    said = tutti("train", net, *COMMON, "--conv", "fft", code=2)
    assert "--conv is direct, winograd-2x2, winograd-4x4 or auto, not 'fft'" in said, said
    wide = folder / "wide.net"
    wide.write_text(NET.format(" algorithm=winograd-4x4 stride=2"))
    said = tutti("info", wide, code=1)
    assert "conv2: algorithm=winograd-4x4 is for 3x3 kernels at stride 1" in said, said


def make_old(run):
    """What version 1 of the arithmetic wrote."""
    place = (run / "latest").resolve()
    state = json.loads((place / "state.json").read_text())
    assert state["options"].pop("conv") == "winograd-2x2"
    state["options"]["arithmetic"] = "1"
    (place / "state.json").write_text(json.dumps(state))
    sums = [line.split() for line in (place / "SHA256SUMS").read_text().splitlines()]
    (place / "SHA256SUMS").write_text("".join(
        f"{hashlib.sha256((place / name).read_bytes()).hexdigest()}  {name}\n" for _, name in sums))


def check_resume(folder):
    net = net_with(folder, "")
    whole = train(folder, net, 4, "--conv", "winograd-2x2")
    run = train(folder, net, 2, "--conv", "winograd-2x2")
    make_old(run)
    copy = folder / "copy"
    shutil.copytree(run, copy, symlinks=True)
    said = tutti("train", net, *COMMON, "--run", copy, "--resume", "auto", "--steps", 4, "--conv",
                 "winograd-4x4", code=2)
    assert "was trained with --conv winograd-2x2, not winograd-4x4" in said, said
    tutti("train", net, *COMMON, "--run", run, "--resume", "auto", "--steps", 4)
    assert bits(run) == bits(whole), "a run of version 1 does not go on with its bits"
    kept = json.loads((run / "latest" / "state.json").read_text())["options"]
    assert kept["conv"] == "winograd-2x2", kept["conv"]


for check in (check_names, check_words, check_resume):
    with tempfile.TemporaryDirectory() as name:
        check(pathlib.Path(name))
