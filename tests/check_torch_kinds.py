#!/usr/bin/env python3
"""One step of random nets, and of nets of the shapes below, with tutti and with PyTorch in double
precision: the loss must agree to 1e-6, every gradient to 2e-5 of the largest of its layer; where
that is next to nothing because others are subtracted to get it, as before a normalisation, to four
times what PyTorch is off in single precision.

    check_torch_kinds.py TUTTI [SEED...]    the shapes and seeds 1 to 120, or only these seeds

tutti takes one step of SGD at a rate of 1 without momentum and decay, so that the gradient is the
difference of two checkpoints. The random nets are those of tests/test_random, which has every kind
of layer and option; batchnorm takes all samples together, as in PyTorch, and noise is off.
"""
import pathlib, subprocess, sys, tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import check_torch
import numpy as np
import torch
import torch_net

BATCH, LOSS, GRADIENT, OWN = 13, 1e-6, 2e-5, 4
LOSSES = ("softmax", "pixelsoftmax", "mse", "l1", "huber", "bce")  # others: check_torch_losses.py

# What makes images larger or smaller, or normalises, in shapes that do not fit blocks and windows.
LINES = {
    "3 1 1": ["layernorm", "layernorm whole", "groupnorm 3", "upsample scale=3x2 mode=bilinear", "deconv 2 kernel=2"],
    "17 5 7": ["layernorm eps=1e-6", "layernorm whole eps=1e-3 silu", "groupnorm 17", "groupnorm 1 eps=0.1",
               "upsample scale=2", "upsample scale=1x3 mode=bilinear",
               "upsample size=11x3 mode=bilinear align-corners", "upsample size=2x9",
               "deconv 33 kernel=3 stride=2 pad=1 output-pad=1 relu",
               "deconv 17 kernel=2x3 stride=2x1 groups=17 nobias",
               "deconv 34 kernel=3 dilation=2 groups=17 silu",
               "deconv 5 kernel=4 stride=3 pad=1x2 output-pad=2x0",
               "conv 9 kernel=3x2 pad=2x0 pad-end=0x3 stride=2", "maxpool kernel=3 stride=2 ceil",
               "avgpool kernel=3 stride=2 pad=1 ceil", "avgpool kernel=2 stride=3 ceil exclude-pad",
               "avgpool size=3x4"],
    "48 9 8": ["layernorm gelu", "layernorm whole relu", "groupnorm 12 relu", "groupnorm 3",
               "upsample scale=2 mode=bilinear align-corners",
               "deconv 32 kernel=2 stride=2", "deconv 16 kernel=3 pad=1",
               "deconv 48 kernel=5x3 pad=2x1 groups=3", "conv 48 kernel=7 pad=3 groups=48",
               "conv 21 kernel=1 linear gelu", "conv 70 kernel=1 linear nobias"],
}


def texts(tutti, seeds):
    """The names of nets, and their texts."""
    if not seeds:
        for shape, lines in LINES.items():
            for line in lines:
                yield f"{shape}: {line}", (f"input {shape}\nbelow conv {shape.split()[0]} kernel=1\n"
                                           f"it {line}\nout fc 5\nloss softmax\n")
    program = pathlib.Path(tutti).parent / "tests/test_random"
    for seed in seeds or range(1, 121):
        done = subprocess.run([program, "--print", "--seed", str(seed), "--count", "1"],
                              capture_output=True, text=True, check=True)
        # one loss; and PyTorch has no padding that differs at the end, which ceil would look at
        odd = any("pad-end" in line and "ceil" in line for line in done.stdout.splitlines())
        losses = [line.split()[1] for line in done.stdout.splitlines() if line.split()[1] in LOSSES]
        if losses == ["softmax"] and not odd:
            yield f"seed {seed}", done.stdout


def step(tutti, net, spec, run):
    """The loss, and parameters before and after."""
    return check_torch.train_tutti(
        tutti, net, spec, run, BATCH, 1, 1,
        ["--optimizer", "sgd,momentum=0", "--bn-group", "all"], decay=0)


def weight_of(text):
    """Of the net's one loss."""
    return float(text.partition(" softmax weight=")[2].split()[0]) if " softmax weight=" in text else 1.0


def gradients(net, weights, samples, labels, weight):
    net.load_state_dict(check_torch.tensors(weights), strict=True)
    samples.requires_grad_()  # PyTorch 2.13 crashes where GroupNorm need not give one to its input
    loss = weight * torch.nn.functional.cross_entropy(net(samples), torch.tensor(labels))
    loss.backward()
    return loss.item(), {name: p.grad * net.scales[name.rsplit(".", 1)[0]]
                         for name, p in net.named_parameters() if p.requires_grad}


def differences(before, after, theirs, single):
    """Of each gradient, against the largest of its layer, what storing weights costs and what
    PyTorch's own single precision does."""
    before, after = check_torch.tensors(before), check_torch.tensors(after)
    largest = {}
    for name, gradient in theirs.items():
        layer = name.rsplit(".", 1)[0]
        largest[layer] = max(largest.get(layer, 0), gradient.abs().max().item())
    for name, gradient in theirs.items():
        ours = before[name].double() - after[name].double()
        stored = 2**-24 * max(before[name].abs().max().item(), after[name].abs().max().item())
        own = (single[name].double() - gradient).abs().max().item()
        error = (ours - gradient).abs().max().item() - 2 * stored - OWN * own
        size = largest[name.rsplit(".", 1)[0]]
        if size < 1e-12:  # below a norm of single values: zero, which others are subtracted to get
            size = 1
        yield max(error, 0) / size, name


def check(tutti, name, text):
    with tempfile.TemporaryDirectory() as scratch:
        directory = pathlib.Path(scratch)
        path = directory / "random.net"
        path.write_text(text)
        net, shape, classes = torch_net.build(str(path), dropout=False)
        spec, (samples, labels) = check_torch.frame_set(directory, np.random.default_rng(1), BATCH,
                                                        (*shape, 1, 1)[:3], classes)
        ours, before, after = step(tutti, str(path), spec, directory / "run")
        loss, theirs = gradients(net.double(), before, samples.double(), labels, weight_of(text))
        net.zero_grad()
        _, single = gradients(net.float(), before, samples.detach(), labels, weight_of(text))
    off = abs(ours[0] - loss) / abs(loss)
    worst, which = max(differences(before, after, theirs, single))
    good = off <= LOSS and worst <= GRADIENT
    print(f"{name:60} loss off by {off:.1e}, gradients by {worst:.1e} ({which}): "
          f"{'ok' if good else 'FAILED'}", flush=True)
    if not good:
        print(text)
    return good


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    results = [check(sys.argv[1], *each) for each in texts(sys.argv[1], sys.argv[2:])]
    sys.exit(0 if all(results) else 1)
