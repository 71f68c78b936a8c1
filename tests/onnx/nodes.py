#!/usr/bin/env python3
"""nodes.py TUTTI NET_OUTPUTS [NAME ...]: ONNX's own node tests of the operators that 'tutti import'
knows. Each test is a graph of one node; its inputs but the first become constants, a flatten and a fully
connected layer, the identity, follow, so that it ends in one value for each class, and the net made of
it must give the softmax of the test's outputs. What the program refuses is listed with its sentence;
doc/ONNX.md has the kinds of it. Tests of training mode are of another thing than evaluation."""
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TUTTI, PROGRAM = sys.argv[1:3]
CLOSE = 1e-5
LEAST = 100  # tests that pass: else this looks at something else
MOST = 4096  # values of a sample, for the identity

# operators whose tests are tried: test_NAME...
TRIED = ("averagepool basic_conv batchnorm clip concat conv conv_with convtranspose dropout elu erf flatten "
         "gelu gemm globalaveragepool globalmaxpool group_normalization hardsigmoid hardswish identity "
         "instancenorm layer_normalization leakyrelu logsoftmax lrn matmul maxpool mul pad reduce_mean relu "
         "reshape sigmoid slice softmax split squeeze swish tanh transpose unsqueeze add")


def cases():
    folder = pathlib.Path(onnx.__file__).parent / "backend/test/data/node"
    for path in sorted(folder.glob("test_*")):
        name = path.name.removeprefix("test_")
        if any(re.match(rf"{word}(_|$)", name) for word in TRIED.split()) and \
                "expanded" not in name and "training" not in name:
            yield name, path


def load(path, number, kind):
    data = path / f"test_data_set_0/{kind}_{number}.pb"
    tensor = TensorProto()
    tensor.ParseFromString(data.read_bytes())
    return numpy_helper.to_array(tensor)


def prepared(path):
    """The model, the samples and the outputs wanted; None where it is no net by its kind."""
    model = onnx.load(path / "model.onnx")
    graph = model.graph
    if not graph.input or not graph.output[0].type.HasField("tensor_type"):
        raise ValueError("no tensor")
    names = [i.name for i in graph.input]
    values = [load(path, i, "input") for i in range(len(names))]
    wanted = load(path, 0, "output")
    if values[0].dtype != np.float32 or wanted.dtype != np.float32 or wanted.ndim < 1:
        raise ValueError("not of floats")
    for name, value in zip(names[1:], values[1:]):
        graph.initializer.append(numpy_helper.from_array(value, name))
    for other in list(graph.input)[1:]:
        graph.input.remove(other)
    if values[0].ndim == 1 and wanted.shape == values[0].shape:  # one sample
        values[0], wanted = values[0][None], wanted[None]
        graph.input[0].CopyFrom(helper.make_tensor_value_info(names[0], TensorProto.FLOAT,
                                                              values[0].shape))
    if values[0].ndim not in (0, 2, 4):  # comes as a vector, and is seen in its own dimensions
        first = graph.input[0]
        shape = np.array(values[0].shape, np.int64)
        graph.initializer.append(numpy_helper.from_array(shape, "test_shape"))
        graph.node.insert(0, helper.make_node("Reshape", ["test_in", "test_shape"], [first.name]))
        graph.input.remove(first)
        graph.input.append(helper.make_tensor_value_info(
            "test_in", TensorProto.FLOAT, [int(shape[0]), int(shape[1:].prod())]))
    out = graph.output[0].name
    count = wanted.size // wanted.shape[0] if wanted.shape[0] else 0
    if not 2 <= count <= MOST:
        raise ValueError(f"{count} values of a sample")
    graph.node.append(helper.make_node("Flatten", [out], ["test_flat"], axis=1))
    graph.node.append(helper.make_node("Gemm", ["test_flat", "test_eye"], ["test_y"], transB=1))
    graph.initializer.append(numpy_helper.from_array(np.eye(count, dtype=np.float32), "test_eye"))
    del graph.output[:]
    graph.output.append(helper.make_tensor_value_info("test_y", TensorProto.FLOAT, None))
    return model, values[0], wanted.reshape(wanted.shape[0], -1).astype(np.float64)


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def outcome(path, place):
    model, x, wanted = prepared(path)
    onnx.save(model, place / "m.onnx")
    done = subprocess.run([TUTTI, "import", place / "m.onnx", "--output", place / "m"],
                          capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip().splitlines()[-1].split("): ", 1)[-1]
    (place / "x").write_bytes(x.astype(np.float32).tobytes())
    subprocess.run([PROGRAM, place / "m.net", place / "m.safetensors", place / "x", place / "p"],
                   check=True, capture_output=True)
    ours = np.fromfile(place / "p", np.float32).reshape(len(wanted), -1)
    error = np.abs(ours - softmax(wanted)).max()
    rounded = np.abs(wanted - wanted.round(4)).max() < 1e-6  # some tests have four digits
    return "" if error <= (5e-5 if rounded else CLOSE) else f"WRONG by {error:.1e}"


def tried(path):
    with tempfile.TemporaryDirectory() as scratch:
        try:
            return outcome(path, pathlib.Path(scratch))
        except ValueError as error:
            return f"no net: {error}"
        except subprocess.CalledProcessError as error:
            return f"WRONG: {error}"


if __name__ == "__main__":
    results = {name: tried(path) for name, path in cases()
               if len(sys.argv) < 4 or name in sys.argv[3:]}
    wrong = [name for name, said in results.items() if said.startswith("WRONG")]
    for name, said in results.items():
        print(f"{name:60} {said or 'ok'}")
    passed = sum(not said for said in results.values())
    print(f"{passed} of {len(results)} node tests pass, {len(results) - passed - len(wrong)} are no nets "
          f"of Tutti, {len(wrong)} give something else")
    sys.exit(1 if wrong or passed < (LEAST if len(sys.argv) < 4 else 0) else 0)
