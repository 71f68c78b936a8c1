#!/usr/bin/env python3
"""check.py TUTTI NET_OUTPUTS SOURCE: models of ONNX are imported and give what ONNX Runtime gave for
them; exported and imported again they are the same nets with the same bits; hostile and damaged files
get a sentence and leave nothing behind; doc/ONNX.md has the program's own table of operators."""
import array
import json
import math
import pathlib
import subprocess
import sys
import tempfile

from models import (MODELS, external, field, model, node, numbers, port, samples,  # noqa: E402
                    tensor, weights)

TUTTI, PROGRAM, SOURCE = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
CLOSE = 1e-5


def tutti(*words):
    done = subprocess.run([TUTTI, *map(str, words)], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


def outputs(place, name, shape):
    (place / "x").write_bytes(samples(shape).tobytes())
    subprocess.run([PROGRAM, place / f"{name}.net", place / f"{name}.safetensors", place / "x",
                    place / "p"], check=True)
    values = array.array("f")
    values.frombytes((place / "p").read_bytes())
    return values


def probabilities(row):
    """Of what a model gives: probabilities, their logarithms, or neither yet."""
    if abs(sum(row) - 1) < 1e-4 and min(row) >= 0:
        return row
    total = sum(math.exp(v) for v in row)
    return [math.exp(v) / total for v in row]


def body(path):
    return [line for line in path.read_text().splitlines() if not line.startswith("#")]


def check_model(place, name, expected):
    data, shape = MODELS[name]()
    seed = SOURCE / "tests/fuzz/seeds/onnx" / f"{name}.onnx"
    assert seed.read_bytes() == data, "the seed is not what tests/onnx/models.py makes"
    code, said = tutti("import", seed, "--output", place / name)
    assert code == 0, said
    ours = outputs(place, name, shape)
    theirs = [v for row in expected[name] for v in probabilities(row)]
    worst = max(abs(a - b) for a, b in zip(ours, theirs, strict=True))
    assert worst <= CLOSE, f"outputs differ by {worst}"
    again = place / f"{name}.again.onnx"
    code, said = tutti("export", place / f"{name}.net", "--weights", place / f"{name}.safetensors",
                       "--onnx", again)
    assert code == 0, said
    code, said = tutti("import", again, "--output", place / f"{name}.again")
    assert code == 0, said
    assert outputs(place, f"{name}.again", shape) == ours, "exported, it gives other bits"


# ---- what is refused ----

def one(*nodes, constants=(), shape=(2, 4, 4)):
    return model(nodes, constants, list(shape), 3)


def deep():
    graph = field(1, node("Relu", "x", "y"))
    for _ in range(3000):
        graph = field(1, node("Relu", "x", "y") + field(5, field(1, "body") + field(6, graph)))
    return field(1, 8) + field(7, graph + field(11, port("x", ["n", 3])) +
                               field(12, port("y", ["n", 3]))) + field(8, field(2, 17))


def huge(dims):
    return field(1, dims[0]) + field(1, dims[1]) + field(2, 1) + field(8, "w") + field(9, b"1234")


GEMM = node("Gemm", "x w", "y", "last")
REFUSED = {
    "empty": (b"", 6, "it has no graph"),
    "text": (b"tutti net 1\ninput 3\n", 6, "is no ONNX model, or it is damaged"),
    "cut": (MODELS["plain"]()[0][:-50], 6, "ends in the middle"),
    "operator": (one(node("Conv", "x w", "a", "first"), node("Frobnicate", "a", "y", "second"),
                     constants=[weights("w", [3, 2, 1, 1], 1)]), 1,
                 "node 1 'second' (Frobnicate, which makes 'y'): Tutti has nothing like it"),
    "function": (one(node("Elu", "x", "y", "odd")), 1, "(Elu, "),
    "attention": (one(node("MatMul", "x x", "y"), shape=(3,)), 1, "as in attention"),
    "circle": (one(node("Relu", "b", "a", "one"), node("Relu", "a", "b", "two")), 6,
               "reads 'b', which nothing before it makes"),
    "twice": (one(node("Relu", "x", "a"), node("Tanh", "x", "a")), 6, "two things are called 'a'"),
    "constants": (one(GEMM, constants=[weights("w", [3, 3], 1), weights("w", [3, 3], 2)],
                      shape=(3,)), 6, "two constants are called 'w'"),
    "sizes": (one(GEMM, constants=[huge((1 << 62, 4))], shape=(3,)), 6, "impossible shape"),
    "overflow": (one(GEMM, constants=[huge((1 << 31, 1 << 33))], shape=(3,)), 6, "impossible shape"),
    "short": (one(GEMM, constants=[huge((3, 3))], shape=(3,)), 6, "not as many values"),
    "reshape": (one(node("Reshape", "x w", "y"), constants=[tensor("w", [2], [1 << 62, -1])]), 1,
                "mixes samples"),
    "made": (one(node("ConstantOfShape", "w", "c"), node("Add", "x c", "y"),
                 constants=[tensor("w", [2], [1 << 62, 1 << 62])]), 1, "huge"),
    "computed": (one(*[node("ConstantOfShape", "w", f"c{i}") for i in range(3)], node("Relu", "x", "y"),
                     constants=[tensor("w", [2], [1 << 13, 1 << 12])]), 1, "node 2 (ConstantOfShape, "),
    "rows": (one(node("Concat", " ".join(["w"] + ["e"] * 10000), "c", axis=1), node("Relu", "x", "y"),
                 constants=[tensor("w", [1 << 16, 1], [0] * (1 << 16)), tensor("e", [1 << 16, 0], [])]),
             1, "too many constants"),
    "parts": (one(node("Split", "x", " ".join(f"a{i}" for i in range(200000)), axis=1,
                       split=[1] * 200000), shape=(200000, 1, 1)), 1, "200000 parts"),
    "less": (one(node("Split", "x", "a b", axis=1, split=[1, 2]), shape=(4, 1, 1)), 1,
             "not all of its input"),
    "factors": (one(node("Resize", "x  s", "y", mode="nearest", nearest_mode="floor",
                         coordinate_transformation_mode="asymmetric"),
                    constants=[tensor("s", [4], [1.0, 1.0, 1.55, 1.55])], shape=(3, 10, 10)), 1,
                "its factors are not those of whole sizes"),
    "outside": (one(GEMM, constants=[external("w", [3, 3], "../../etc/passwd")], shape=(3,)), 6,
                "only files beside the model are read"),
    "absolute": (one(GEMM, constants=[external("w", [3, 3], "/etc/passwd")], shape=(3,)), 6,
                 "only files beside the model are read"),
    "absent": (one(GEMM, constants=[external("w", [3, 3], "none.data")], shape=(3,)), 1,
               "both files belong together"),
    "behind": (one(GEMM, constants=[external("w", [3, 3], "behind.onnx", 1 << 61)], shape=(3,)), 6,
               "is too short"),
    "nodes": (one(*[node("Relu", "x", "a")] * 1000000), 1, "more than 131072 nodes"),
    "layers": (one(*[n for i in range(5000) for n in (
        node("Relu", f"v{i}" if i else "x", f"u{i}"), node("Tanh", f"u{i}", f"v{i + 1}"))]), 1,
        "at most 4096 layers"),
    "deep": (deep(), 1, "nothing to train"),
    "letters": (one(node("Relu", "x", "a\1")), 6, "bytes that are no letters"),
    "dimensions": (model([GEMM], [], ["n"] * 7, 3), 1, "has 8 dimensions"),
    "old": (model([GEMM], [weights("w", [3, 3], 1)], [3], 3, opset=6), 1, "opset 6"),
    "image": (one(node("Conv", "x w", "a"), node("Flatten", "a", "y"),
                  constants=[weights("w", [3, 2, 1, 1], 1)]), 1, "one value for each class"),
    "groups": (one(node("Conv", "x w", "y", group=(1 << 62) + 1), shape=(4, 4, 4),
                   constants=[weights("w", [4, 4, 1, 1], 1)]), 1, "do not fit an input of 4 channels"),
    "large": (one(*[node("ConvTranspose", f"{a} w", b, strides=[1 << 16] * 2)
                    for a, b in ("xa", "ay")], shape=(16, 4096, 4096),
                  constants=[weights("w", [16, 16, 1, 1], 1)]), 1, "values is too large"),
    **{f"no input: {op}": (one(node(op, "", "c"), node("Relu", "x", "y")), 1, "input is missing")
       for op in ("Transpose", "Slice", "Concat", "Gather", "Expand", "Cast", "Size", "ReduceSum", "Relu",
                  "Identity", "Shape", "Reshape")},
    "range": (one(node("Range", "zero end zero", "r"), node("Relu", "x", "y"), constants=[
        tensor("zero", [], [0.0]), tensor("end", [], [9.0])]), 1, "a range without an end"),
    "step": (one(node("Gemm", "x w", "a"), node("Clip", "a zero little", "b"), node("Gemm", "b w2", "y"),
                 constants=[weights("w", [3, 3], 1), weights("w2", [3, 3], 2),
                            tensor("zero", [], [0.0]), tensor("little", [], [1e-4])], shape=(3,)), 1,
             "no layer of Tutti is this function"),
    "policy": (one(node("Resize", "x   s", "y", mode="nearest", nearest_mode="floor",
                        coordinate_transformation_mode="asymmetric",
                        keep_aspect_ratio_policy="not_larger"),
                   constants=[tensor("s", [4], [1, 2, 8, 12])]), 1, "this is another way"),
    "point": (one(node("Resize", "x   s", "y", mode="linear",
                       coordinate_transformation_mode="pytorch_half_pixel"),
                  constants=[tensor("s", [4], [1, 2, 1, 1])]), 1, "this is another way"),
}


def check_refused(place, name):
    data, wanted, sentence = REFUSED[name]
    (place / f"{name}.onnx").write_bytes(data)
    code, said = tutti("import", place / f"{name}.onnx", "--output", place / "refused")
    assert code == wanted and sentence in said, f"exit code {code}, and it says: {said}"
    assert not list(place.glob("refused*")), "it left files"


# ---- what is computed ----

def softmax(row):
    most = max(row)
    powers = [math.exp(v - most) for v in row]
    return [p / sum(powers) for p in powers]


def product(rows, row):
    return [sum(a * b for a, b in zip(r, row)) for r in rows]


def close(ours, theirs):
    worst = max(abs(a - b) for a, b in zip(ours, theirs, strict=True))
    assert worst <= CLOSE, f"outputs differ by {worst}"


def check_clip(place, low, high):
    """Ramps of any width, steep ones between two points where functions are compared, too."""
    values = [2 * max(-low, high) * v for v in numbers(9, 1)]
    data = one(node("MatMul", "x w", "a"), node("Clip", "a low high", "b"), node("MatMul", "b one", "y"),
               constants=[tensor("w", [3, 3], values), tensor("low", [], [low]),
                          tensor("high", [], [high]),
                          tensor("one", [3, 3], [40.0, 0.0, 0.0, 0.0, 40.0, 0.0, 0.0, 0.0, 40.0])],
               shape=(3,))
    (place / "clip.onnx").write_bytes(data)
    code, said = tutti("import", place / "clip.onnx", "--output", place / "clip")
    assert code == 0, said
    rows, x = [values[k::3] for k in range(3)], samples([3])
    wanted = [product(rows, x[i:i + 3]) for i in range(0, len(x), 3)]
    close(outputs(place, "clip", [3]),
          [v for row in wanted for v in softmax([40 * min(high, max(low, a)) for a in row])])


def check_pixels(place):
    """Classes of pixels, in and out and in again."""
    w = numbers(6, 5, 3.0)
    data = model([node("Conv", "x conv.weight", "a"), node("Softmax", "a", "y", axis=1)],
                 [tensor("conv.weight", [3, 2, 1, 1], w)], [2, 4, 5], 3)
    (place / "pixels.onnx").write_bytes(data)
    for source, made in (("pixels", "pixels"), ("pixels.again", "pixels2")):
        code, said = tutti("import", place / f"{source}.onnx", "--output", place / made)
        assert code == 0, said
        code, said = tutti("export", place / f"{made}.net", "--weights", place / f"{made}.safetensors",
                           "--onnx", place / "pixels.again.onnx")
        assert code == 0, said
    assert body(place / "pixels.net") == body(place / "pixels2.net")
    assert body(place / "pixels.net")[-1].split() == ["loss", "pixelsoftmax"]
    x, wanted = samples([2, 20]), []
    for i in range(0, len(x), 40):
        pixels = [softmax(product([w[0:2], w[2:4], w[4:6]], [x[i + p], x[i + 20 + p]]))
                  for p in range(20)]
        wanted += [pixel[c] for c in range(3) for pixel in pixels]
    close(outputs(place, "pixels2", [2, 4, 5]), wanted)


def check_options(place):
    seed = SOURCE / "tests/fuzz/seeds/onnx/plain.onnx"
    (place / "names").write_text("a\nb\n")
    for words in (["import", seed], ["import", "--output", place / "o"],
                  ["import", seed, "--output", place / "o", "--input", "3x3"],
                  ["import", seed, "--output", place / "o", "--input", "1x8x8"],
                  ["import", seed, "--output", place / "o", "--mean", "0.5"],
                  ["import", seed, "--output", place / "o", "--mean", "1,2,3", "--std", "1"],
                  ["import", seed, "--output", place / "o", "--classes", place / "names"]):
        code, said = tutti(*words)
        assert code == 2, f"{words}: {code} {said}"
    (place / "names").write_text("one\ntwo\nthree")
    code, said = tutti("import", seed, "--output", place / "o", "--classes", place / "names",
                       "--mean", "0.5", "--std", "0.2,0.3")
    assert code == 0, said
    code, said = tutti("export", place / "o.safetensors", "--onnx", place / "told.onnx")
    told = (place / "told.onnx").read_bytes()
    assert code == 0 and b'["one","two","three"]' in told and b"[0.2,0.3]" in told, said


def check_table():
    code, said = tutti("import", "--operators")
    assert code == 0 and said in (SOURCE / "doc/ONNX.md").read_text(), \
        "doc/ONNX.md has not what 'tutti import --operators' prints"


def cases(place):
    expected = json.loads((SOURCE / "tests/onnx/expected.json").read_text())
    for name in MODELS:
        yield f"model {name}", lambda name=name: check_model(place, name, expected)
    for name in REFUSED:
        yield f"refused: {name}", lambda name=name: check_refused(place, name)
    for low, high in ((0.0, 6.0), (-1.0, 1.0), (0.0, 0.3), (0.01, 0.1), (2.9, 3.8), (-7.0, -5.5)):
        yield f"clip {low} {high}", lambda low=low, high=high: check_clip(place, low, high)
    yield "pixels", lambda: check_pixels(place)
    yield "options", lambda: check_options(place)
    yield "the table of operators", check_table


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        for name, run in cases(pathlib.Path(scratch)):
            try:
                run()
                print(f"ok {name}")
            except (AssertionError, subprocess.SubprocessError) as error:
                failed += 1
                print(f"FAILED {name}: {error}")
    return 1 if failed else 0


sys.exit(main())
