#!/usr/bin/env python3
"""models.py FOLDER: writes the models of onnx that are tests and the fuzzer's seeds, by hand, without
ONNX's own package; with onnxruntime at hand also expected.json, what they give for samples(). They have
the idioms of exporters: shapes computed by nodes, functions in pieces, groups between reshapes."""
import array
import json
import math
import pathlib
import struct
import sys

INT64, FLOAT = 7, 1


# ---- the wire format ----

def varint(value):
    value &= (1 << 64) - 1
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    """A whole number, a float, or bytes, text and messages."""
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


# ---- messages ----

def tensor(name, dims, values, listed=False):
    """Of floats, or of whole numbers where they are ints."""
    whole = all(isinstance(v, int) for v in values)
    out = b"".join(field(1, d) for d in dims) + field(2, INT64 if whole else FLOAT) + field(8, name)
    if listed and whole:
        return out + field(7, b"".join(map(varint, values)))
    code = "q" if whole else "f"
    return out + field(4 if listed else 9, array.array(code, values).tobytes())


def external(name, dims, location, offset=0):
    entries = {"location": location, "offset": str(offset)}
    return b"".join(field(1, d) for d in dims) + field(2, FLOAT) + field(8, name) + field(14, 1) + \
        b"".join(field(13, field(1, k) + field(2, v)) for k, v in entries.items())


def attribute(name, value):
    if isinstance(value, float):
        return field(1, name) + field(2, value) + field(20, 1)
    if isinstance(value, int):
        return field(1, name) + field(3, value) + field(20, 2)
    if isinstance(value, str):
        return field(1, name) + field(4, value) + field(20, 3)
    if isinstance(value, bytes):
        return field(1, name) + field(5, value) + field(20, 4)
    return field(1, name) + b"".join(field(8, v) for v in value) + field(20, 7)


def node(op, inputs, outputs, name="", **attributes):
    return b"".join(field(1, i) for i in inputs.split(" ")) + \
        b"".join(field(2, o) for o in outputs.split(" ")) + field(3, name) + field(4, op) + \
        b"".join(field(5, attribute(k, v)) for k, v in attributes.items())


def port(name, dims):
    shape = b"".join(field(1, field(2, d) if isinstance(d, str) else field(1, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, FLOAT) + field(2, shape)))


def model(nodes, constants, shape, classes, opset=17, more=b""):
    graph = b"".join(field(1, n) for n in nodes) + field(2, "test") + \
        b"".join(field(5, c) for c in constants) + field(11, port("x", ["n", *shape])) + \
        field(12, port("y", ["n", classes]))
    return field(1, 8) + field(2, "by hand") + field(7, graph) + field(8, field(2, opset)) + more


# ---- numbers ----

def numbers(count, seed, scale=0.5):
    """Between -scale and scale, the same everywhere."""
    out, state = [], seed * 2654435761 % (1 << 32)
    for _ in range(count):
        state = (state * 1664525 + 1013904223) % (1 << 32)
        out.append((state / (1 << 31) - 1) * scale)
    return out


def weights(name, dims, seed):
    return tensor(name, dims, numbers(math.prod(dims), seed))


def positive(name, dims, seed):
    return tensor(name, dims, [1 + v for v in numbers(math.prod(dims), seed)])


def samples(shape, count=3):
    return array.array("f", numbers(count * math.prod(shape), 99, 1.0))


# ---- the models ----

def plain():
    """A convolution with batch normalisation; a flatten by shapes that nodes compute."""
    nodes = [
        node("Conv", "x conv.weight conv.bias", "a", "/conv/Conv", kernel_shape=[3, 3],
             pads=[1, 1, 1, 1]),
        node("BatchNormalization", "a bn.weight bn.bias bn.running_mean bn.running_var", "b",
             "/bn/BatchNormalization", epsilon=1e-3),
        node("Relu", "b", "c"), node("MaxPool", "c", "d", kernel_shape=[2, 2], strides=[2, 2]),
        node("Shape", "d", "shape"),
        node("Constant", "", "zero", value=tensor("", [], [0])),
        node("Gather", "shape zero", "samples", axis=0),
        node("Constant", "", "axes", value=tensor("", [1], [0], listed=True)),
        node("Unsqueeze", "samples axes", "samples1"),
        node("Constant", "", "rest", value=tensor("", [1], [-1])),
        node("Concat", "samples1 rest", "wanted", axis=0), node("Reshape", "d wanted", "e"),
        node("Gemm", "e fc.weight fc.bias", "logits", "/fc/Gemm", transB=1),
        node("Softmax", "logits", "y", axis=1),
    ]
    constants = [
        weights("conv.weight", [4, 2, 3, 3], 1), weights("conv.bias", [4], 2),
        positive("bn.weight", [4], 3), weights("bn.bias", [4], 4), weights("bn.running_mean", [4], 5),
        positive("bn.running_var", [4], 6), weights("fc.weight", [3, 64], 7),
        tensor("fc.bias", [3], numbers(3, 8), listed=True),
    ]
    more = field(14, field(1, "classes") + field(2, '["bag","boot","cap"]'))
    return model(nodes, constants, [2, 8, 8], 3, more=more), [2, 8, 8]


def idioms():
    """GELU and hard swish in pieces, a channel shuffle, squeeze and excitation, group normalisation as
    exporters write it, Split, a mean by ReduceMean."""
    nodes = [
        node("Pad", "x pads", "padded"),
        node("Conv", "padded w1", "a", strides=[2, 2], auto_pad="VALID"),
        node("Div", "a root2", "b"), node("Erf", "b", "c"), node("Add", "c one", "d"),
        node("Mul", "a d", "e"), node("Mul", "e half", "gelu"),
        node("Reshape", "gelu apart", "f"), node("Transpose", "f", "g", perm=[0, 2, 1, 3, 4]),
        node("Reshape", "g whole", "shuffled"), node("Split", "shuffled", "left right", axis=1),
        node("GlobalAveragePool", "left", "h"), node("Conv", "h w2 b2", "i"),
        node("Sigmoid", "i", "j"), node("Mul", "left j", "excited"),
        node("Reshape", "right groups", "k"),
        node("InstanceNormalization", "k ones zeros", "l", epsilon=1e-4),
        node("Shape", "right", "rightshape"), node("Reshape", "l rightshape", "m"),
        node("Mul", "m gn.weight", "o"), node("Add", "o gn.bias", "normal"),
        node("Add", "normal three", "p"), node("Clip", "p low high", "q"),
        node("Mul", "normal q", "r"), node("Div", "r six", "hardswish"),
        node("Concat", "excited hardswish", "both", axis=1),
        node("ReduceMean", "both", "mean", axes=[2, 3], keepdims=0),
        node("MatMul", "mean w3", "s"), node("Add", "s b3", "y"),
    ]
    constants = [
        tensor("pads", [8], [0, 0, 1, 1, 0, 0, 1, 1]), weights("w1", [8, 3, 3, 3], 11),
        tensor("root2", [], [math.sqrt(2)]), tensor("one", [], [1.0]), tensor("half", [], [0.5]),
        tensor("apart", [5], [0, 2, 4, 4, 4]), tensor("whole", [4], [0, 8, 4, 4]),
        weights("w2", [4, 4, 1, 1], 12), weights("b2", [4], 13),
        tensor("groups", [3], [0, 2, -1]), tensor("ones", [2], [1.0, 1.0]),
        tensor("zeros", [2], [0.0, 0.0]), weights("gn.weight", [4, 1, 1], 14),
        weights("gn.bias", [4, 1, 1], 15), tensor("three", [], [3.0]), tensor("low", [], [0.0]),
        tensor("high", [], [6.0]), tensor("six", [], [6.0]), weights("w3", [8, 3], 16),
        weights("b3", [3], 17),
    ]
    return model(nodes, constants, [3, 8, 8], 3), [3, 8, 8]


def vector():
    """A vector, MatMul and Add, layer normalisation, slopes and limits, LogSoftmax; opset 12."""
    nodes = [
        node("MatMul", "x w1", "a"), node("Add", "b1 a", "b"), node("LeakyRelu", "b", "c", alpha=0.2),
        node("LayerNormalization", "c ln.weight ln.bias", "d", axis=-1),
        node("Clip", "d low high", "e"), node("Dropout", "e", "f"), node("Identity", "f", "g"),
        node("Gemm", "g w2", "h", alpha=0.5), node("LogSoftmax", "h", "y", axis=1),
    ]
    constants = [weights("w1", [6, 5], 21), weights("b1", [5], 22), positive("ln.weight", [5], 23),
                 weights("ln.bias", [5], 24), tensor("low", [], [-0.75]), tensor("high", [], [1.25]),
                 weights("w2", [5, 3], 25)]
    return model(nodes, constants, [6], 3), [6]


def sample():
    """Layer normalisation of all values of a sample, of an image and flattened; opset 17."""
    nodes = [
        node("Conv", "x w1 b1", "a", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("LayerNormalization", "a ln.weight ln.bias", "b", axis=1, epsilon=1e-3),
        node("Relu", "b", "c"), node("Flatten", "c", "d", axis=1),
        node("LayerNormalization", "d flat.weight flat.bias", "e", axis=-1),
        node("Gemm", "e w2", "y", transB=1),
    ]
    constants = [weights("w1", [5, 3, 3, 3], 31), weights("b1", [5], 32),
                 positive("ln.weight", [5, 4, 6], 33), weights("ln.bias", [5, 4, 6], 34),
                 positive("flat.weight", [120], 35), weights("flat.bias", [120], 36),
                 weights("w2", [3, 120], 37)]
    return model(nodes, constants, [3, 4, 6], 3), [3, 4, 6]


MODELS = {"plain": plain, "idioms": idioms, "vector": vector, "sample": sample}


def record(folder):
    import numpy
    import onnxruntime
    expected = {}
    for name, make in MODELS.items():
        data, shape = make()
        session = onnxruntime.InferenceSession(data)
        x = numpy.array(samples(shape), numpy.float32).reshape(-1, *shape)
        expected[name] = [[round(float(v), 7) for v in row] for row in session.run(None, {"x": x})[0]]
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    for name, make in MODELS.items():
        (pathlib.Path(sys.argv[1]) / f"{name}.onnx").write_bytes(make()[0])
    if len(sys.argv) > 2:
        record(pathlib.Path(sys.argv[2]))
