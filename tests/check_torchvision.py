#!/usr/bin/env python3
"""check_torchvision.py TUTTI NET_OUTPUTS [NET...]: torchvision's nets without attention, all 68,
brought over by tools/from-torch with random weights and random running statistics, compute what they
compute in PyTorch.

Of each, on a few small images:
  outputs     an evaluation's log-probabilities against those in double precision, relative to the
              largest output of a sample (outputs count from their mean): at most 1e-5
  parameters  all of them, and running statistics, after one step of SGD, whose rate makes the
              largest change as large as the weights it changes; against double precision, relative to
              the largest of each tensor. At most four times what PyTorch's own single precision is
              off, or 1e-5. A ReLU's input that is zero up to rounding may fall on the other side
              of it: up to three draws of weights are tried.
Dropout and stochastic depth are off. The zoo's net (models/) must give the same outputs with
torchvision's own state dict. Needs torchvision: tools/venv makes an environment for it.
"""
import copy
import pathlib
import re
import subprocess
import sys
import tempfile
import zlib

import numpy as np
import torch
import torch.nn.functional as F

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests")]
import torch_to_net  # noqa: E402
import torchvision_models  # noqa: E402
from read_safetensors import read  # noqa: E402

OUTPUTS, PARAMETERS, OWN, DRAWS = 1e-5, 1e-5, 4, 3
SAMPLES = 4
SIZES = {"inception_v3": 96}  # the smallest images it takes are of 75
HUGE = 300_000_000  # parameters: beyond them double precision takes too much memory

# torchvision's name: the zoo's
ZOO = {
    "convnext_tiny": "convnext-tiny", "densenet121": "densenet121",
    "efficientnet_b0": "efficientnet-b0", "googlenet": "googlenet", "mobilenet_v2": "mobilenet-v2",
    "mobilenet_v3_small": "mobilenet-v3-small", "regnet_y_400mf": "regnet-y-400mf",
    "resnet18": "resnet18", "resnet34": "resnet34", "resnet50": "resnet50",
    "resnext50_32x4d": "resnext50", "shufflenet_v2_x1_0": "shufflenet-v2",
    "squeezenet1_1": "squeezenet", "vgg11_bn": "vgg11-bn",
}


def randomise(module):
    """Running statistics, and what starts as ones, zeros or next to nothing. With biases above zero
    few channels are zero everywhere, which batch normalisation would divide by their rounding."""
    for name, p in module.named_parameters():
        if name.endswith("layer_scale"):
            p.data.uniform_(0.5, 1.5)
        elif p.dim() == 1:
            p.data += torch.empty_like(p).uniform_(-0.1, 0.1)
    for part in module.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            part.bias.data.uniform_(0, 1)
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.5, 1.5)
            part.num_batches_tracked.fill_(7)


def calm(module, samples):
    """Scales the last weights so that no output is so far below another that its probability is
    zero."""
    last = [part for part in module.modules() if isinstance(part, (torch.nn.Linear, torch.nn.Conv2d))
            and part.weight.shape[0] == 1000][-1]
    with torch.no_grad():
        factor = 8 / centred(module.eval()(samples)).abs().max()
        last.weight *= factor
        last.bias *= factor


def still(module):
    for part in module.modules():
        if type(part).__name__ in ("Dropout", "StochasticDepth"):
            part.p = 0.0
    return module


def centred(logits):
    return logits - logits.mean(1, keepdim=True)


def error_of(program, net, weights, samples, wanted):
    """How far the outputs are from those wanted."""
    scratch = net.parent
    (scratch / "x").write_bytes(samples.numpy().tobytes())
    subprocess.run([program, net, weights, scratch / "x", scratch / "p"], check=True)
    values = np.fromfile(scratch / "p", np.float32).reshape(len(samples), -1)
    ours = torch.from_numpy(values).double().log()
    errors = (ours - wanted.log_softmax(1)).abs().amax(1) / centred(wanted).abs().amax(1)
    return errors.max().item()


def zoo_error(tutti, program, name, scratch, module, samples, wanted):
    """The same of the zoo's net, for such samples and with torchvision's own state dict."""
    if name not in ZOO:
        return 0.0
    text = subprocess.run([tutti, "info", ZOO[name], "--unrolled"], check=True, capture_output=True,
                          text=True).stdout
    size = " ".join(map(str, samples.shape[1:]))
    (scratch / "zoo.net").write_text(re.sub(r"(?m)^input .*", f"input {size}", text))
    torch_to_net.write_safetensors(scratch / "zoo.safetensors", module.state_dict())
    return error_of(program, scratch / "zoo.net", scratch / "zoo.safetensors", samples, wanted)


def train_tutti(tutti, scratch, samples, labels, lr):
    net, run = scratch / "net", scratch / "run"
    np.save(scratch / "X.npy", samples.numpy())
    np.save(scratch / "Y.npy", labels.numpy())
    data = f"npy:{scratch}/X.npy,{scratch}/Y.npy,mean=0,std=1,holdout=0,layout=chw"
    subprocess.run([str(word) for word in (
        tutti, "train", f"{net}.net", "--weights", f"{net}.safetensors", "--data", data, "--run", run,
        "--batch-size", len(samples), "--steps", 1, "--lr", repr(lr), "--lr-schedule", "fixed",
        "--warmup", "0steps", "--optimizer", "sgd,momentum=0", "--weight-decay", 0, "--shuffle",
        "off", "--augment", "off", "--dropout", "off", "--clip", 0, "--eval-every", "never",
        "--quiet")], check=True, stdout=subprocess.DEVNULL)
    weights = read(run / "step_00000001/model.safetensors")
    return {name: torch.from_numpy(np.frombuffer(values, values.typecode).copy()).reshape(shape)
            for name, (shape, values) in weights.items()}


def gradients(module, samples, labels):
    loss = F.cross_entropy(module.train()(samples), labels)
    module.zero_grad()
    loss.backward()


def stepped(module, lr):
    with torch.no_grad():
        for p in module.parameters():
            p -= lr * p.grad
    return module.state_dict()


def rate(module):
    """At which the tensor that changes most changes by its largest value."""
    most = max((p.grad.abs().max() / p.abs().max()).item() for p in module.parameters()
               if p.grad.abs().max() > 0)
    return float(np.float32(1 / most))


def difference(ours, theirs):
    worst = (0.0, "")
    for name, t in theirs.items():
        a = ours[name].reshape(t.shape)
        if not t.is_floating_point():
            worst = worst if a.item() == t.item() else (np.inf, name)
            continue
        error = (a.double() - t.double()).abs().max().item() / max(t.abs().max().item(), 1e-30)
        worst = max(worst, (error, name))
    return worst


def draw(name, number):
    """A module with random weights, samples and labels."""
    torch.manual_seed(zlib.crc32(name.encode()) + number)
    module = torchvision_models.make(name)
    randomise(module)
    size = SIZES.get(name, 64)
    labels = torch.randint(0, 1000, (SAMPLES,))
    labels[-1] = 999  # else the program counts fewer classes
    samples = torch.randn(SAMPLES, 3, size, size)
    calm(module, samples)
    return module, samples, labels


def compare(tutti, program, name, number, scratch):
    """The errors of outputs, of the zoo's outputs, of parameters, and of PyTorch's parameters."""
    module, samples, labels = draw(name, number)
    text, tensors = torch_to_net.convert(module, samples.shape[1:])
    (scratch / "net.net").write_text(text)
    torch_to_net.write_safetensors(scratch / "net.safetensors", tensors)
    exact = sum(p.numel() for p in module.parameters()) < HUGE
    judge = copy.deepcopy(still(module)).double() if exact else still(module)
    inputs = samples.double() if exact else samples
    with torch.no_grad():
        wanted = judge.eval()(inputs).double()
    outputs = error_of(program, scratch / "net.net", scratch / "net.safetensors", samples, wanted)
    zoo = zoo_error(tutti, program, name, scratch, module, samples, wanted)
    gradients(judge, inputs, labels)
    lr = rate(judge)
    theirs, own = stepped(judge, lr), 0.0
    if exact:
        gradients(module, samples, labels)
        own, _ = difference(stepped(module, lr), theirs)
    ours = train_tutti(tutti, scratch, samples, labels, lr)
    return outputs, zoo, *difference(ours, theirs), own


def check(tutti, program, name):
    for number in range(DRAWS):
        with tempfile.TemporaryDirectory() as scratch:
            outputs, zoo, parameters, tensor, own = compare(tutti, program, name, number,
                                                            pathlib.Path(scratch))
        good = max(outputs, zoo) <= OUTPUTS and parameters <= max(PARAMETERS, OWN * own)
        print(f"{name:20} outputs {outputs:.1e}"
              f"{f', of models/{ZOO[name]}.net {zoo:.1e}' if name in ZOO else ''}, parameters "
              f"{parameters:.1e} ({tensor}), PyTorch's own {own:.1e}: "
              f"{'ok' if good else 'FAILED'}", flush=True)
        if good or max(outputs, zoo) > OUTPUTS:
            return good
    return False


def tried(tutti, program, name):
    try:
        return check(tutti, program, name)
    except (torch_to_net.Unknown, subprocess.CalledProcessError) as error:
        print(f"{name:20} {error}: FAILED", flush=True)
        return False


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    results = [tried(*sys.argv[1:3], name) for name in sys.argv[3:] or torchvision_models.names()]
    print(f"{sum(results)} of {len(results)} nets of torchvision compute the same")
    sys.exit(0 if all(results) else 1)
