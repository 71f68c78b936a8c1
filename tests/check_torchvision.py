#!/usr/bin/env python3
"""check_torchvision.py TUTTI NET_OUTPUTS [--keep FILE] [NET...]: torchvision's nets without attention,
all 68, brought over by tools/from-torch with random weights and random running statistics, compute
what they compute in PyTorch. Of each, on a few small images:

  outputs     an evaluation's log-probabilities against those in double precision, relative to the
              largest output of a sample (outputs count from their mean): at most 1e-5
  parameters  all of them, and running statistics, after one step of SGD, whose rate makes the
              largest change as large as the weights it changes; against double precision, relative to
              the largest of each tensor

The bound for parameters. A step in single precision is off by the rounding of some hundred layers
there and back, times what the net makes of it: batch normalisation of a few small images divides by
small deviations, so that even a perfect program is off by 1e-7 in one net and by 1e-5 in another. No
number fits all; but PyTorch's own single precision measures it, for the same weights and samples. Both
err at random, by sums of as many terms in other orders: one chain errs by the root of its length, a
sum in blocks by less, Winograd's tiles by up to twice a chain. So neither should be far ahead: four
times PyTorch's error is allowed. Where a net makes little of rounding (VGG's without
normalisation), that of the longest chain shows, which PyTorch adds in blocks: the root of VGG's 25088
terms in units of 2^-24, 9.4e-6, is allowed, too.

That comparison is blind where a function has a kink: a ReLU's input of 1e-8 may well be -1e-8
elsewhere, both rightly, and a gradient then goes another way, which no rounding bounds. Of the
millions of inputs of a deep net some always are that close to zero. So before the comparison biases
are shifted a little, each by what keeps all inputs of its channel farthest from the kinks behind it
(Settling): a thousand times the rounding. A maximum of two values that are equal but for rounding is
such a kink, too: where a pooling window has one, the weights of its channel are moved until none has.
Up to DRAWS draws of weights and samples are tried, and their number is shown. doc/TORCHVISION.md has
what was found.

Dropout and stochastic depth are off. The nets of the zoo (models/) must do the same with torchvision's
own state dict, and what they leave must go back into torchvision's module (strict=True); GoogLeNet's
with its auxiliary classifiers. With --keep nets that did well are written to FILE, and skipped next
time. Needs torchvision: tools/venv makes an environment for it.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import zlib

import numpy as np
import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests")]
import torch_to_net  # noqa: E402
import torchvision_models  # noqa: E402
from read_safetensors import read  # noqa: E402

torch.set_num_threads(1)  # threads wait by spinning, at each group of a convolution in double
OUTPUTS, PARAMETERS, OWN, DRAWS = 1e-5, 25088**0.5 / 2**24, 4, 6
TIE = 1e-4  # an error of PyTorch's beyond this is a tie, no rounding: that draw says nothing
SAMPLES = 4
SIZES = {"inception_v3": 96}  # the smallest images it takes are of 75

# torchvision's name: the zoo's
ZOO = {
    "convnext_tiny": "convnext-tiny", "densenet121": "densenet121",
    "efficientnet_b0": "efficientnet-b0", "googlenet": "googlenet", "mobilenet_v2": "mobilenet-v2",
    "mobilenet_v3_small": "mobilenet-v3-small", "regnet_y_400mf": "regnet-y-400mf",
    "resnet18": "resnet18", "resnet34": "resnet34", "resnet50": "resnet50",
    "resnext50_32x4d": "resnext50", "shufflenet_v2_x1_0": "shufflenet-v2",
    "squeezenet1_1": "squeezenet", "vgg11_bn": "vgg11-bn",
}


# ---- random nets ---------------------------------------------------------------------------------


class Settling(TorchFunctionMode):
    """While a module runs: moves the bias before each kinked function by up to REACH deviations, and
    the weights before a pool where its two largest values are less than APART deviations apart."""

    REACH, TRIES, APART, ROUNDS = 0.25, 255, 1e-5, 20
    KINKS = {F.relu: [0], torch.relu: [0], F.relu6: [0, 6], F.hardtanh: [0, 6],
             F.hardswish: [-3, 3], F.hardsigmoid: [-3, 3]}
    BIASED = {F.batch_norm: 4, F.conv2d: 2, torch.conv2d: 2, F.linear: 2}  # where the bias stands
    CONVOLUTIONS = (F.conv2d, torch.conv2d)
    bias = None  # the one before

    def __init__(self, shifts):
        super().__init__()
        self.shifts, self.ties = shifts, 0  # of each bias by how much; channels with a tie

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        place = self.BIASED.get(function)
        if place is not None:
            given = args[place] if len(args) > place else kwargs.get("bias")
            if given is not None:
                self.bias = given
        if function in self.KINKS:
            moved = self.shifts.get(self.bias, torch.zeros_like(self.bias))
            view = [-1, *[1] * (args[0].dim() - 2)]
            shift = self.shift(args[0] - moved.view(view), self.KINKS[function])
            self.shifts[self.bias] = shift
            self.bias.data += shift - moved
            args[0].data += (shift - moved).view(view)
        if getattr(function, "__name__", "") == "max_pool2d":
            self.part(*args[:4], **kwargs)
        result = function(*args, **kwargs)
        if function in self.CONVOLUTIONS:
            result.made_by = [args[1] if len(args) > 1 else kwargs["weight"]]
        elif isinstance(result, torch.Tensor):  # those of what it reads
            parts = args[0] if isinstance(args[0], (list, tuple)) else args[:1]
            result.made_by = [w for part in parts for w in getattr(part, "made_by", [])]
        return result

    def part(self, inputs, kernel_size, stride=None, padding=0, **_):
        kernel, step, pad = (size if isinstance(size, int) else size[0]
                             for size in (kernel_size, stride or kernel_size, padding))
        n, channels = inputs.shape[:2]
        planes = F.pad(inputs.flatten(0, 1)[:, None], (pad, pad + step) * 2)  # also with ceil
        windows = F.unfold(planes, kernel, stride=step).view(n, channels, kernel * kernel, -1)
        largest = windows.amax(2, keepdim=True)
        apart = largest - windows  # 0: the largest, which may be there twice, by an earlier pool
        near = (apart > 0) & (apart < self.APART * inputs.std()) & (windows > 0)
        tied = near.any(3).any(2).any(0)
        self.ties += int(tied.sum())
        for weight, own in zip(inputs.made_by, tied.split([len(w) for w in inputs.made_by])):
            weight.data[own] += torch.randn_like(weight)[own] * weight.std() / 10

    @classmethod
    def settle(cls, module, samples):
        shifts = {}
        for _ in range(cls.ROUNDS):
            with cls(shifts) as settling:
                module(samples)
            if not settling.ties:
                break

    def shift(self, inputs, kinks):
        """Of each channel, that which leaves the widest margin."""
        values = inputs.transpose(0, 1).flatten(1).sort(1).values.contiguous()
        shifts = torch.linspace(-1, 1, self.TRIES) * self.REACH * inputs.std()
        margin = torch.full((len(values), self.TRIES), torch.inf)
        for kink in kinks:
            at = (kink - shifts).expand(len(values), -1).contiguous()
            after = torch.searchsorted(values, at)
            for near in (after - 1, after):
                near = values.gather(1, near.clamp(0, values.shape[1] - 1))
                margin = margin.minimum((near - at).abs())
        return shifts[margin.argmax(1)]


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


def randomise_running(module):
    for part in module.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.5, 1.5)
            part.num_batches_tracked.fill_(7)


def still(module):
    for part in module.modules():
        if type(part).__name__ in ("Dropout", "StochasticDepth"):
            part.p = 0.0


def calm(module, samples):
    """Scales the last weights so that no output is so far below another that its probability is
    zero."""
    last = [part for part in module.modules() if isinstance(part, (torch.nn.Linear, torch.nn.Conv2d))
            and part.weight.shape[0] == 1000][-1]
    factor = 8 / centred(module.eval()(samples)).abs().max()
    last.weight *= factor
    last.bias *= factor


class Case:
    """A module with random weights, as text and tensors, and what it is tried on."""

    def __init__(self, name, number, auxiliary=False):
        torch.manual_seed(zlib.crc32(name.encode()) + number)
        size = SIZES.get(name, 64)
        self.module = torchvision_models.make(name, auxiliary)
        self.samples = torch.randn(SAMPLES, 3, size, size)
        self.labels = torch.randint(0, 1000, (SAMPLES,))
        self.labels[-1] = 999  # else the program counts fewer classes
        if not auxiliary:  # with dropout in the text, and tensors that change with the module
            self.text, self.tensors = torch_to_net.convert(self.module, self.samples.shape[1:])
        still(self.module)
        randomise(self.module)
        with torch.no_grad():
            Settling.settle(self.module.train(), self.samples)
        randomise_running(self.module)
        with torch.no_grad():
            calm(self.module, self.samples)


# ---- what PyTorch computes -----------------------------------------------------------------------


def centred(logits):
    return logits - logits.mean(1, keepdim=True)


def loss_of(outputs, labels):
    """That of GoogLeNet's paper, where there are auxiliary outputs."""
    if isinstance(outputs, torch.Tensor):
        return F.cross_entropy(outputs, labels)
    return F.cross_entropy(outputs.logits, labels) + sum(
        0.3 * F.cross_entropy(o, labels) for o in (outputs.aux_logits1, outputs.aux_logits2))


def rate(module):
    """At which the tensor that changes most changes by its largest value."""
    most = max((p.grad.abs().max() / p.abs().max()).item() for p in module.parameters()
               if p.grad.abs().max() > 0)
    return float(np.float32(1 / most))


def step(module, samples, labels):
    """A step of SGD, and its rate."""
    loss_of(module.train()(samples), labels).backward()
    lr = rate(module)
    for p in module.parameters():
        p.data -= lr * p.grad
        p.grad = None
    return lr


def step_in_place(module, samples, labels, lr):
    """The same, without holding more than one gradient."""

    def update(p):
        p.data -= lr * p.grad
        p.grad = None

    hooks = [p.register_post_accumulate_grad_hook(update) for p in module.parameters()]
    loss_of(module.train()(samples), labels).backward()
    for hook in hooks:
        hook.remove()


class Reference:
    """Outputs and a step in double precision; and how far PyTorch's single precision is off. Beside one
    copy in double at most two in single are held: the largest nets have 645 M parameters."""

    def __init__(self, case, scratch):
        module = case.module
        torch.save(module.state_dict(), scratch / "before")
        self.lr = step(module, case.samples, case.labels)
        torch.save(module.state_dict(), scratch / "single")
        module.load_state_dict(torch.load(scratch / "before", mmap=True))
        module.double()
        with torch.no_grad():
            self.outputs = module.eval()(case.samples.double())
        step_in_place(module, case.samples.double(), case.labels, self.lr)
        module.float()
        self.parameters = {name: t.clone() for name, t in module.state_dict().items()}
        self.own, _ = difference(torch.load(scratch / "single", mmap=True), self.parameters)


def difference(ours, theirs):
    """The largest of all tensors, and where."""
    worst = (0.0, "")
    for name, t in theirs.items():
        a = ours[name].reshape(t.shape)
        if not t.is_floating_point():
            worst = worst if a.item() == t.item() else (np.inf, name)
            continue
        error = (a - t).abs().max().item() / max(t.abs().max().item(), 1e-30)
        worst = max(worst, (error if error == error else np.inf, name))
    return worst


# ---- what Tutti computes -------------------------------------------------------------------------


def error_of(program, net, weights, samples, wanted):
    """How far the outputs are from those wanted."""
    scratch = net.parent
    (scratch / "x").write_bytes(samples.numpy().tobytes())
    subprocess.run([program, net, weights, scratch / "x", scratch / "p"], check=True)
    values = np.fromfile(scratch / "p", np.float32).reshape(len(samples), -1)
    ours = torch.from_numpy(values).double().log()
    errors = (ours - wanted.log_softmax(1)).abs().amax(1) / centred(wanted).abs().amax(1)
    return errors.max().item()


def step_of(tutti, net, weights, case, lr):
    """The parameters after one step."""
    scratch, run = net.parent, net.parent / "run"
    np.save(scratch / "X.npy", case.samples.numpy())
    np.save(scratch / "Y.npy", case.labels.numpy())
    data = f"npy:{scratch}/X.npy,{scratch}/Y.npy,mean=0,std=1,holdout=0,layout=chw"
    subprocess.run([str(word) for word in (
        tutti, "train", net, "--weights", weights, "--data", data, "--run", run, "--overwrite",
        "--batch-size", SAMPLES, "--steps", 1, "--lr", repr(lr), "--lr-schedule", "fixed",
        "--warmup", "0steps", "--optimizer", "sgd,momentum=0", "--weight-decay", 0,
        "--label-smoothing", 0, "--ema", 0, "--shuffle", "off", "--augment", "off", "--dropout",
        "off", "--clip", 0, "--eval-every", "never", "--checkpoint-sync", "--quiet")],
        check=True, capture_output=True)
    found = read(run / "step_00000001/model.safetensors")
    return {name: torch.from_numpy(np.frombuffer(values, values.typecode)).reshape(shape)
            for name, (shape, values) in found.items()}


class Errors:
    """Of one net, as text or from the zoo."""

    def __init__(self, programs, net, weights, case, reference):
        tutti, program = programs
        self.outputs = error_of(program, net, weights, case.samples, reference.outputs)
        self.found = step_of(tutti, net, weights, case, reference.lr)
        self.parameters, self.tensor = difference(self.found, reference.parameters)
        self.own = reference.own

    def good(self):
        rounding = OWN * self.own if self.own <= TIE else 0
        return self.outputs <= OUTPUTS and self.parameters <= max(PARAMETERS, rounding)

    def __str__(self):
        return (f"outputs {self.outputs:.1e}, parameters {self.parameters:.1e} ({self.tensor}), "
                f"PyTorch's own {self.own:.1e}")


def brought_over(programs, case, reference, scratch):
    (scratch / "net.net").write_text(case.text)
    return Errors(programs, scratch / "net.net", scratch / "net.safetensors", case, reference)


def of_the_zoo(programs, name, case, reference, scratch):
    """With torchvision's own state dict, there and back."""
    text = subprocess.run([programs[0], "info", ZOO[name], "--unrolled"], check=True,
                          capture_output=True, text=True).stdout
    size = " ".join(map(str, case.samples.shape[1:]))
    (scratch / "zoo.net").write_text(re.sub(r"(?m)^input .*", f"input {size}", text))
    errors = Errors(programs, scratch / "zoo.net", scratch / "zoo.safetensors", case, reference)
    case.module.load_state_dict(errors.found, strict=True)
    return errors


# ---- one net -------------------------------------------------------------------------------------


def tried(programs, name, number, scratch):
    """[(what, errors)] of one draw."""
    case = Case(name, number)
    torch_to_net.write_safetensors(scratch / "net.safetensors", case.tensors)
    if name in ZOO:
        torch_to_net.write_safetensors(scratch / "zoo.safetensors", case.module.state_dict())
    case.tensors = None
    reference = Reference(case, scratch)
    if name not in ZOO:
        case.module = None
    all_errors = [("", brought_over(programs, case, reference, scratch))]
    if name in torchvision_models.AUXILIARY and name in ZOO:
        case = Case(name, number, auxiliary=True)
        torch_to_net.write_safetensors(scratch / "zoo.safetensors", case.module.state_dict())
        reference = Reference(case, scratch)
    if name in ZOO:
        all_errors.append((f"models/{ZOO[name]}.net ", of_the_zoo(programs, name, case, reference,
                                                                   scratch)))
    return all_errors


def check(programs, name):
    """A line about the net, of the first draw that did well; None: none did."""
    for number in range(DRAWS):
        with tempfile.TemporaryDirectory() as scratch:
            errors = tried(programs, name, number, pathlib.Path(scratch))
        good = all(e.good() for _, e in errors)
        line = f"{name:20} " + "; ".join(what + str(e) for what, e in errors)
        print(f"{line}: {f'ok, draw {number + 1}' if good else 'FAILED'}", flush=True)
        if good:
            return f"{line}, draw {number + 1}"
    return None


def checked(programs, name):
    try:
        return check(programs, name)
    except (torch_to_net.Unknown, subprocess.CalledProcessError, RuntimeError) as error:
        said = getattr(error, "stderr", None) or b""
        print(f"{name:20} {error} {said.decode()}: FAILED", flush=True)
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs=2, metavar="PROGRAM")
    parser.add_argument("--keep", type=pathlib.Path, metavar="FILE")
    parser.add_argument("nets", nargs="*", metavar="NET")
    options = parser.parse_intermixed_args()
    names = options.nets or torchvision_models.names()
    known = options.keep.read_text().splitlines() if options.keep and options.keep.exists() else []
    done = {line.split()[0] for line in known} & set(names)
    for name in names:
        if name in done or not (line := checked(options.programs, name)):
            continue
        done.add(name)
        if options.keep:
            with options.keep.open("a") as file:
                file.write(line + "\n")
    print(f"{len(done)} of {len(names)} nets of torchvision compute the same")
    return 0 if len(done) == len(names) else 1


if __name__ == "__main__":
    sys.exit(main())
