#!/usr/bin/env python3
"""One step of every loss with tutti and with PyTorch in double precision: the loss must agree to
1e-6, every gradient to 2e-5 of the largest of its layer.

    check_torch_losses.py TUTTI [WORD]      all, or those with the word in their name

Outputs are of vectors and of images, of channels that fill blocks of 16 and that do not; pixels are
ignored, classes weighted, labels smoothed; several losses have one target, or each its own.
"""
import pathlib, sys, tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import check_torch
import numpy as np
import torch
from torch.nn import functional as F

BATCH, LOSS, GRADIENT = 13, 1e-6, 2e-5

VALUES = {
    "mse": F.mse_loss,
    "l1": F.l1_loss,
    "huber": F.huber_loss,
    "huber delta=0.3": lambda x, t: F.huber_loss(x, t, delta=0.3),
    "huber delta=0.3 smooth": lambda x, t: F.smooth_l1_loss(x, t, beta=0.3),
    "mse weight=2.5": lambda x, t: 2.5 * F.mse_loss(x, t),
    "bce": F.binary_cross_entropy_with_logits,
}


def values(random, shape):
    return random.standard_normal((BATCH, *shape)).astype(np.float32)


def shares(random, shape):
    return random.choice([0, 1, 1, 0, 0.25], (BATCH, *shape)).astype(np.float32)


def pixels(random, shape):
    classes = random.integers(0, shape[0], (BATCH, *shape[1:]))
    classes[random.random(classes.shape) < 0.2] = 255
    return classes.astype(np.uint8)


def pixel_loss(weights=None, smoothing=0.0):
    return lambda x, t: F.cross_entropy(x, t.long(), weight=weights, ignore_index=255,
                                        label_smoothing=smoothing)


def cases(random, folder):
    """Name, shape of samples, heads (name, kernel, features), loss lines, targets, the loss of outputs
    and targets in PyTorch, more options."""
    for features in (1, 3, 17, 48):
        for shape in ((5, 1, 1), (2, 7, 5)):
            out = (features, *shape[1:])
            for line, loss in VALUES.items():
                target = (shares if line == "bce" else values)(random, out)
                yield (f"{line} {out}", shape, {"a": features}, {"a": line}, [target],
                       lambda o, t, loss=loss: loss(o["a"], t[0]), [])
    for features in (2, 5, 17, 48):
        out = (features, 7, 5)
        weights = random.uniform(0.2, 3, features).astype(np.float32)
        path = folder / f"weights{features}"
        path.write_text("".join(f"{w:.9g}\n" for w in weights))
        double = torch.tensor(weights).double()
        for ways, (options, loss) in enumerate((([], pixel_loss()),
                              (["--label-smoothing", "0.1"], pixel_loss(smoothing=0.1)),
                              (["--class-weights", path], pixel_loss(double)),
                              (["--class-weights", path, "--label-smoothing", "0.2"],
                               pixel_loss(double, 0.2)))):
            yield (f"pixelsoftmax {out} {ways}", (3, 7, 5), {"a": features},
                   {"a": "pixelsoftmax"}, [pixels(random, out)],
                   lambda o, t, loss=loss: loss(o["a"], t[0]), options)
    aux = {"a": "pixelsoftmax weight=0.4", "b": "pixelsoftmax"}
    yield ("auxiliary pixels", (3, 7, 5), {"a": 4, "b": 4}, aux, [pixels(random, (4, 7, 5))],
           lambda o, t: 0.4 * pixel_loss()(o["a"], t[0]) + pixel_loss()(o["b"], t[0]), [])
    mixed = {"a": "l1 weight=0.4", "b": "mse"}
    yield ("two losses of one target", (5, 1, 1), {"a": 3, "b": 3}, mixed,
           [values(random, (3, 1, 1))],
           lambda o, t: 0.4 * F.l1_loss(o["a"], t[0]) + F.mse_loss(o["b"], t[0]), [])
    labels = random.integers(0, 4, BATCH)
    labels[:4] = range(4)
    four = {"c": "softmax", "p": "pixelsoftmax target=2 weight=0.5", "v": "huber target=3 weight=3",
            "s": "bce target=4"}
    yield ("four targets", (3, 1, 1), {"c": 4, "p": 5, "v": 2, "s": 6}, four,
           [labels, pixels(random, (5, 1, 1)), values(random, (2, 1, 1)), shares(random, (6, 1, 1))],
           lambda o, t: (F.cross_entropy(o["c"].flatten(1), t[0].long().flatten())
                         + 0.5 * pixel_loss()(o["p"], t[1]) + 3 * F.huber_loss(o["v"], t[2])
                         + F.binary_cross_entropy_with_logits(o["s"], t[3])), [])


def text_of(shape, heads, losses):
    lines = [f"input {shape[0]} {shape[1]} {shape[2]}", "below conv 6 kernel=1"]
    for name, features in heads.items():
        kernel = 1 if shape[1] == 1 else 3
        lines += [f"{name} conv {features} kernel={kernel} pad={kernel // 2} from=below",
                  f"{name}loss {losses[name]}"]
    return "\n".join(lines) + "\n"


def outputs(tensors, samples, heads):
    below = F.conv2d(samples, tensors["below.weight"], tensors["below.bias"])
    return {name: F.conv2d(below, tensors[f"{name}.weight"], tensors[f"{name}.bias"],
                           padding=tensors[f"{name}.weight"].shape[-1] // 2) for name in heads}


def check(tutti, folder, case, random):
    name, shape, heads, losses, targets, loss_of, options = case
    path = folder / "net.net"
    path.write_text(text_of(shape, heads, losses))
    samples = random.standard_normal((BATCH, *shape)).astype(np.float32)
    places = [folder / f"{i}.npy" for i in range(1 + len(targets))]
    for place, array in zip(places, [samples, *targets]):
        np.save(place, array)
    spec = f"npy:{','.join(map(str, places))},layout=chw,mean=0,std=1,holdout=0"
    run = folder / name.replace(" ", "_").replace("/", "_")
    ours, before, after = check_torch.train_tutti(
        tutti, str(path), spec, run, BATCH, 1, 1,
        ["--optimizer", "sgd,momentum=0", *map(str, options)], decay=0)
    before, after = check_torch.tensors(before), check_torch.tensors(after)
    double = {key: value.double().requires_grad_() for key, value in before.items()}
    want = [torch.tensor(t).double() for t in targets]
    loss = loss_of(outputs(double, torch.tensor(samples).double(), heads), want)
    loss.backward()
    off, worst = abs(ours[0] - loss.item()) / abs(loss.item()), 0
    for key, value in double.items():
        layer = key.rsplit(".", 1)[0]
        largest = max(v.grad.abs().max().item() for k, v in double.items() if k.startswith(layer + "."))
        stored = 2**-23 * max(before[key].abs().max().item(), after[key].abs().max().item())
        error = (before[key].double() - after[key].double() - value.grad).abs().max().item()
        worst = max(worst, max(error - stored, 0) / largest)
    good = off <= LOSS and worst <= GRADIENT
    print(f"{name:40} loss off by {off:.1e}, gradients by {worst:.1e}: {'ok' if good else 'FAILED'}",
          flush=True)
    return good


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        raise SystemExit(__doc__)
    random = np.random.default_rng(7)
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        results = [check(sys.argv[1], folder, case, random) for case in cases(random, folder)
                   if sys.argv[2:] in ([], [word for word in sys.argv[2:] if word in case[0]])]
    sys.exit(0 if all(results) else 1)
