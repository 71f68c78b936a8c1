#!/usr/bin/env python3
"""weights.py TUTTI: weights under other people's names begin a run with their bits, or are refused
with a sentence that says what to do. Each file is written here, and compared with what the run's
first checkpoint holds."""
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from read_safetensors import read

TUTTI = pathlib.Path(sys.argv[1]).resolve()
NET = """input 3 8 8
conv1 conv 4 kernel=3 pad=1 relu
conv2 conv 4 kernel=3 pad=1 relu
conv3 conv 4 kernel=3 pad=1 relu
out fc 5
loss softmax
"""
SHAPES = {"conv1": (4, 3, 3, 3), "conv2": (4, 4, 3, 3), "conv3": (4, 4, 3, 3), "out": (5, 256)}
failures = 0


def numbers(count, seed):
    draw = random.Random(seed)
    return struct.pack(f"<{count}f", *(draw.uniform(-0.1, 0.1) for _ in range(count)))


def size(shape):
    return shape[0] * size(shape[1:]) if shape else 1


def tensors(shapes=SHAPES):
    """The net's parameters: name, shape, bytes."""
    for seed, (layer, shape) in enumerate(shapes.items()):
        yield f"{layer}.weight", shape, numbers(size(shape), seed)
        yield f"{layer}.bias", shape[:1], numbers(shape[0], -seed - 1)


def write(path, named):
    header, data = {}, b""
    for name, shape, values in named:
        span = [len(data), len(data) + len(values)]
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": span}
        data += values
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def renamed(modules, prefix=""):
    """The same tensors; modules: what others call a layer."""
    for name, shape, values in tensors():
        layer, _, what = name.rpartition(".")
        yield f"{prefix}{modules.get(layer, layer)}.{what}", shape, values


def train(folder, weights, *more):
    (folder / "mine.net").write_text(NET)
    words = [TUTTI, "train", "mine.net", "--data", "synthetic,train=16,test=4", "--batch-size", 4,
             "--steps", 1, "--eval-every", "never", "--run", "run", "--overwrite", "--weights",
             weights, *more]
    done = subprocess.run(list(map(str, words)), cwd=folder, capture_output=True, text=True,
                          timeout=120)
    return done.returncode, done.stdout + done.stderr


def taken(folder, named, *more):
    write(folder / "theirs.safetensors", named)
    code, said = train(folder, "theirs.safetensors", *more)
    assert code == 0, f"exit {code}: {said}"
    first = read(folder / "run" / "step_00000000" / "model.safetensors")
    return said, first


def same(first, layers=SHAPES):
    for name, _, values in tensors():
        if name.rpartition(".")[0] in layers:
            assert first[name][1].tobytes() == values, f"{name} begins with other numbers"


def refused(folder, weights, words, *more):
    code, said = train(folder, weights, *more)
    assert code == 1, f"exit {code}, not 1: {said}"
    for word in words:
        assert word in said, f"nothing of '{word}': {said}"


# ---- what is tried ----

def own_names(folder):
    said, first = taken(folder, tensors())
    same(first)
    assert "fresh" not in said, said


def a_common_prefix(folder):
    _, first = taken(folder, renamed({}, "module."))
    same(first)


NUMBERED = {"conv1": "features.0", "conv2": "features.3", "conv3": "features.10",
            "out": "classifier.1"}


def shapes_and_order(folder):
    said, first = taken(folder, renamed(NUMBERED))
    same(first)
    for word in NUMBERED.values():
        assert word in said, f"the mapping of {word} is not printed: {said}"


def order_of_the_file_does_not_matter(folder):
    _, first = taken(folder, reversed(list(renamed(NUMBERED))))
    same(first)


def doubt(folder):
    write(folder / "theirs.safetensors", renamed({"conv1": "stem", "conv2": "left",
                                                  "conv3": "right", "out": "head"}))
    refused(folder, "theirs.safetensors", ("left", "right", "look alike", "--rename"))


def names_given(folder):
    (folder / "names").write_text("stem conv1\nbody.* conv*\nhead out\n")
    _, first = taken(folder, renamed({"conv1": "stem", "conv2": "body.2", "conv3": "body.3",
                                      "out": "head"}), "--rename", "names")
    same(first)


def wrong_names_given(folder):
    write(folder / "theirs.safetensors", renamed(NUMBERED))
    for text, where, word in (("features.9 conv1\n", "names:1", "features.9"),
                              ("\nfeatures.0\n", "names:2", "THEIRS OURS"),
                              ("features.0 conv*\n", "names:1", "'*'"),
                              ("features.3 conv2\nfeatures.10 conv2\n", "names:2", "both become")):
        (folder / "names").write_text(text)
        code, said = train(folder, "theirs.safetensors", "--rename", "names")
        assert code and where in said and word in said, f"{text!r}: exit {code}: {said}"


def another_head(folder):
    shapes = {**SHAPES, "out": (7, 256)}
    said, first = taken(folder, tensors(shapes))
    same(first, ("conv1", "conv2", "conv3"))
    lines = [line for line in said.splitlines() if "fresh" in line]
    assert len(lines) == 1 and "out" in lines[0] and "7x256" in lines[0], said


def pickles(folder):
    for name, start in (("theirs.pth", b"PK\3\4"), ("theirs.pt", b"\x80\2."), ("theirs", b"PK\3\4")):
        (folder / name).write_bytes(start + bytes(100))
        refused(folder, name, ("torch.load", "save_file"))


for check in (own_names, a_common_prefix, shapes_and_order, order_of_the_file_does_not_matter, doubt,
              names_given, wrong_names_given, another_head, pickles):
    with tempfile.TemporaryDirectory() as scratch:
        try:
            check(pathlib.Path(scratch))
            print(f"[       OK ] {check.__name__}")
        except AssertionError as error:
            failures += 1
            print(f"{error}\n[  FAILED  ] {check.__name__}")
sys.exit(1 if failures else 0)
