#!/usr/bin/env python3
"""check_onnx.py TUTTI NET_OUTPUTS [NAME ...]: torchvision's models through ONNX, as both of PyTorch's
exporters write them. Each is imported, its outputs and the parameters after a step of SGD compared with
PyTorch's in double precision, exported, and run by ONNX Runtime.

  train     the old exporter, training mode: batch normalisation stays
  old       the old exporter: batch normalisation folded into convolutions, shapes computed by nodes
  dynamo    today's: the same, with weights in a second file

Losses: nets that end in each of them are exported, and ONNX Runtime gives for each target what they do.

Where batch normalisation was folded the step is compared with that of the module so folded. Errors
are as in check_torchvision.py, and so are their bounds and draws."""
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests")]
import torchvision_models  # noqa: E402  (before torchvision itself)
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
import torch.fx.experimental.optimization  # noqa: E402
import check_torchvision  # noqa: E402
from check_torchvision import (DRAWS, OUTPUTS, OWN, PARAMETERS, Case, Reference,  # noqa: E402
                               difference, error_of, step_of)
from read_safetensors import read  # noqa: E402

warnings.filterwarnings("ignore")
NAMES = ["resnet18", "vgg11", "mobilenet_v2", "mobilenet_v3_small", "squeezenet1_1", "densenet121",
         "shufflenet_v2_x0_5", "efficientnet_b0", "convnext_tiny"]
WAYS = ["train", "old", "dynamo"]
check_torchvision.SIZES["vgg11"] = 224  # the old exporter has no pooling to 7x7 of smaller images
EXPORTED = 1e-5  # probabilities of ONNX Runtime against ours


def write_onnx(module, samples, how, path):
    if how == "dynamo":
        torch.onnx.export(module.eval(), (samples,), path, dynamo=True, external_data=True,
                          dynamic_shapes=({0: torch.export.Dim("n")},), verbose=False)
    elif how == "old":
        torch.onnx.export(module.eval(), samples, path, dynamo=False, input_names=["x"],
                          output_names=["y"], dynamic_axes={"x": {0: "n"}, "y": {0: "n"}})
    else:
        torch.onnx.export(module.train(), samples, path, dynamo=False, do_constant_folding=False,
                          training=torch.onnx.TrainingMode.TRAINING, input_names=["x"],
                          dynamic_axes={"x": {0: "n"}})


def folded(module):
    """The module with batch normalisation folded into convolutions, where it follows one."""
    return torch.fx.experimental.optimization.fuse(module.eval()).requires_grad_(True)


def paired(ours, theirs):
    """Our parameters under the names of theirs. Those whose names the exporter did not keep are found
    by their values, which no two of them share."""
    names = {}
    for name, values in theirs.items():
        same = [n for n, v in ours.items() if v.numel() == values.numel()
                and torch.allclose(v.reshape(values.shape), values, rtol=1e-4, atol=1e-6)]
        if name in same or not same:
            same = [name]
        names[name] = same[0]
    return names


def runtime(path, samples):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: samples.numpy()})[0]


def export_error(tutti, scratch, samples):
    """Of the net, exported, in ONNX Runtime; imported again it must be the same text."""
    path = scratch / "again.onnx"
    subprocess.run([tutti, "export", scratch / "net.net", "--weights", scratch / "net.safetensors",
                    "--onnx", path], check=True, stdout=subprocess.DEVNULL)
    onnx.checker.check_model(str(path), full_check=True)
    subprocess.run([tutti, "import", path, "--output", scratch / "again"], check=True,
                   stdout=subprocess.DEVNULL)
    ours = np.fromfile(scratch / "p", np.float32).reshape(len(samples), -1)
    return float(np.abs(runtime(path, samples) - ours).max())


def compare(tutti, program, name, how, number, scratch):
    case = Case(name, number)
    file, net, weights = scratch / "model.onnx", scratch / "net.net", scratch / "net.safetensors"
    write_onnx(case.module, case.samples, how, file)  # in training mode running statistics move
    subprocess.run([tutti, "import", file, "--output", scratch / "net"], check=True,
                   capture_output=True)
    if how != "train":
        case.module = folded(case.module)
    before = weights_of(weights)
    names = paired(before, {k: v for k, v in case.module.state_dict().items()
                            if v.is_floating_point()})
    reference = Reference(case, scratch)
    outputs = error_of(program, net, weights, case.samples, reference.outputs)
    exported = export_error(tutti, scratch, case.samples)
    found = step_of(tutti, net, weights, case, reference.lr)
    missing = [theirs for theirs, ours in names.items() if ours not in found]
    if missing:
        raise ValueError(f"nothing is like {missing[0]}")
    errors = difference({theirs: found[ours] for theirs, ours in names.items()},
                        {theirs: reference.parameters[theirs] for theirs in names})
    return outputs, exported, *errors, reference.own


def weights_of(path):
    return {name: torch.from_numpy(np.frombuffer(values, values.typecode).copy()).reshape(shape)
            for name, (shape, values) in read(path).items()}


def check(tutti, program, name, how):
    for number in range(DRAWS):
        with tempfile.TemporaryDirectory() as scratch:
            outputs, exported, parameters, tensor, own = compare(tutti, program, name, how, number,
                                                                 pathlib.Path(scratch))
        good = outputs <= OUTPUTS and exported <= EXPORTED and \
            parameters <= max(PARAMETERS, OWN * own)
        print(f"{name:20} {how:7} outputs {outputs:.1e}, exported {exported:.1e}, parameters "
              f"{parameters:.1e} ({tensor}), PyTorch's own {own:.1e}: {'ok' if good else 'FAILED'}",
              flush=True)
        if good or outputs > OUTPUTS or exported > EXPORTED:
            return good
    return False


# ---- losses ----

LOSSES = {
    "mse": "fc1 fc 4\nloss mse", "l1": "conv1 conv 3 kernel=3\nloss l1",
    "huber": "fc1 fc 4\nloss huber", "bce": "conv1 conv 3 kernel=3\npool avgpool global\nloss bce",
    "softmax": "conv1 conv 3 kernel=3\npool avgpool global\nloss softmax",
    "pixelsoftmax": "conv1 conv 5 kernel=3 pad=1 relu\nup deconv 3 kernel=2 stride=2\nloss pixelsoftmax",
    "several": "conv1 conv 5 kernel=3\naux fc 2\nnear mse target=2\nother fc 3 from=conv1\nloss softmax",
}


def outputs_of(tutti, program, text, scratch, samples):
    net = scratch / "net.net"
    net.write_text(f"tutti net 1\ninput 2 6 6\n{text}\n")
    subprocess.run([tutti, "train", net, "--data", "synthetic", "--batch-size", "4", "--steps", "1", "--run",
                    scratch / "run"], check=True, capture_output=True)
    subprocess.run([tutti, "export", scratch / "run", "--onnx", scratch / "net.onnx"], check=True,
                   stdout=subprocess.DEVNULL)
    onnx.checker.check_model(str(scratch / "net.onnx"), full_check=True)
    weights = scratch / "run/best/model.safetensors"
    samples.numpy().tofile(scratch / "x")
    subprocess.run([program, net, weights, scratch / "x", scratch / "p"], check=True)
    return np.fromfile(scratch / "p", np.float32)


def check_loss(tutti, program, name):
    samples = torch.randn(3, 2, 6, 6, generator=torch.Generator().manual_seed(1))
    with tempfile.TemporaryDirectory() as place:
        scratch = pathlib.Path(place)
        ours = outputs_of(tutti, program, LOSSES[name], scratch, samples)
        session = onnxruntime.InferenceSession(str(scratch / "net.onnx"),
                                               providers=["CPUExecutionProvider"])
        theirs = session.run(None, {"input": samples.numpy()})
        names = [output.name for output in session.get_outputs()]
    wanted = {"several": ["probabilities", "values2"]}.get(
        name, ["values" if name in ("mse", "l1", "huber") else "probabilities"])
    error = float(np.abs(theirs[0].reshape(-1) - ours).max())
    good = names == wanted and error <= EXPORTED
    print(f"{name:20} loss    {', '.join(names)}: {error:.1e}: {'ok' if good else 'FAILED'}", flush=True)
    return good


def tried(tutti, program, name, how):
    try:
        return check(tutti, program, name, how)
    except (ValueError, RuntimeError, subprocess.CalledProcessError) as error:
        print(f"{name:20} {how:7} {error}: FAILED", flush=True)
        return False


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    wanted = [word.split(":") if ":" in word else (word, None) for word in sys.argv[3:] or NAMES]
    results = [tried(*sys.argv[1:3], name, how) for name, only in wanted
               for how in ([only] if only else WAYS)]
    print(f"{sum(results)} of {len(results)} models went through ONNX and back")
    results += [check_loss(*sys.argv[1:3], name) for name in LOSSES if len(sys.argv) == 3]
    sys.exit(0 if all(results) else 1)
