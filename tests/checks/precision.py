#!/usr/bin/env python3
"""precision.py TUTTI: in which precision layers multiply is a choice by name, which a run keeps.

The net's text, its default and --precision say the same thing; a run goes on as it was, and its
weights are tested as they were trained."""
import json
import pathlib
import subprocess
import sys
import tempfile

TUTTI = sys.argv[1]
NET = """input 64
{}
fc1 fc 64 relu{}
fc2 fc 64 relu{}
fc3 fc 48 relu{}
fc4 fc 5{}
loss softmax
"""
COMMON = ["--data", "synthetic,train=256,test=64", "--batch-size", "128", "--lr", "0.05", "--seed", "3",
          "--eval-every", "never", "--quiet", "--keep", "0", "--threads", "1"]


def tutti(*words, code=0):
    done = subprocess.run([TUTTI, *map(str, words)], capture_output=True, text=True, timeout=120)
    if done.returncode != code:
        raise AssertionError(f"{' '.join(map(str, words))}: exit {done.returncode}: {done.stderr}")
    return done.stderr + done.stdout


def header(path):
    data = path.read_bytes()
    return json.loads(data[8:8 + int.from_bytes(data[:8], "little")])["__metadata__"]


def bits(run):
    """Of the tensors: a safetensors file begins with the length of its header."""
    data = (run / "latest" / "model.safetensors").read_bytes()
    return data[8 + int.from_bytes(data[:8], "little"):]


def net_with(folder, default="", lines=("", "", "", "")):
    path = folder / f"net{len(list(folder.glob('*.net')))}.net"
    path.write_text(NET.format(default, *lines))
    return path


def train(folder, net, steps, *options):
    run = folder / f"run{len(list(folder.glob('run*')))}"
    tutti("train", net, *COMMON, "--steps", steps, "--run", run, *options)
    return run


def kept(run):
    return json.loads((run / "latest" / "state.json").read_text())


def check_ways(folder):
    """Whoever says it, the bits are the same."""
    plain = net_with(folder)
    by_option = train(folder, plain, 2, "--precision", "bf16")
    by_default = train(folder, net_with(folder, "default precision bf16"), 2)
    inner = net_with(folder, "", ("", " precision=bf16", " precision=bf16", ""))
    by_lines = train(folder, inner, 2)
    assert bits(by_option) == bits(by_default) == bits(by_lines), "three ways, other bits"
    usual = train(folder, plain, 2, "--grains", 8)
    assert bits(usual) == bits(train(folder, net_with(folder, "default precision bf16"), 2, "--grains",
                                     8, "--precision", "fp32")), "--precision fp32 is not the usual"
    assert [kept(run)["options"]["precision"] for run in (by_option, by_default, by_lines, usual)] == [
        "bf16", "bf16", "fp32", "fp32"]
    assert kept(by_option)["grains"] == 8 and kept(train(folder, plain, 1))["grains"] == 32


def check_resume(folder):
    net = net_with(folder)
    whole = train(folder, net, 4, "--precision", "bf16")
    run = train(folder, net, 2, "--precision", "bf16")
    said = tutti("train", net, *COMMON, "--run", run, "--resume", "auto", "--steps", 4, "--precision",
                 "fp32", code=2)
    assert "was trained with --precision bf16, not fp32: leave the option out" in said, said
    tutti("train", net, *COMMON, "--run", run, "--resume", "auto", "--steps", 4)
    assert bits(run) == bits(whole), "a run does not go on with its precision"
    plain = train(folder, net, 2)
    said = tutti("train", net, *COMMON, "--run", plain, "--resume", "auto", "--steps", 4, "--precision",
                 "bf16", code=2)
    assert "was trained with --precision fp32, not bf16" in said, said


def loss(run, *options):
    said = tutti("test", "--data", COMMON[1], "--weights", run, "--json", "--threads", 1, *options)
    return json.loads(said[said.index("{"):])["loss"]


def check_answers(folder):
    """As the weights were trained, unless told."""
    run = train(folder, net_with(folder), 2, "--precision", "bf16")
    assert header(run / "latest" / "model.safetensors")["precision"] == "bf16"
    assert loss(run) == loss(run, "--precision", "bf16")
    said = tutti("test", "--data", COMMON[1], "--weights", run, "--precision", "fp8", code=2)
    assert "--precision is fp32 or bf16, not 'fp8'" in said, said


def check_words(folder):
    net = net_with(folder)
    said = tutti("info", net, "--precision", "bf16", "--json")
    layers = {layer["name"]: layer["precision"] for layer in json.loads(said)["layers"]}
    assert layers == {"fc1": "fp32", "fc2": "bf16", "fc3": "bf16", "fc4": "fp32", "loss": ""}, layers
    said = tutti("info", net, "--precision", "bf16")
    assert said.count("bf16\n") == 2 and "Layers with bf16 round what they multiply" in said, said
    said = tutti("train", net, *COMMON, "--steps", 1, "--precision", "bf32", code=2)
    assert "--precision is fp32 or bf16, not 'bf32'" in said, said
    shown = [word for word in COMMON if word != "--quiet"]
    said = tutti("train", net, *shown, "--steps", 1, "--precision", "bf16")
    assert "parameters; 2 of 4 layers round to bf16" in said, said


for check in (check_ways, check_resume, check_answers, check_words):
    with tempfile.TemporaryDirectory() as name:
        check(pathlib.Path(name))
