#!/usr/bin/env python3
"""Trains the same net on the same samples with tutti and with PyTorch and compares.

    check_torch.py TUTTI [NET...]       every net of CASES unless some of them are named

For each net: random samples are written in a format that tutti reads; tutti trains on them in
order, without dropout and augmentation; PyTorch starts from tutti's checkpoint of step 0, takes
the same samples, and does as many steps of the same optimizer with weight decay. The losses of all
steps must agree to 1e-4 of their size, the weights at the end to 1e-3 of the largest in their
layer, running statistics of batchnorm among them, and minibatches must have been counted alike.
With frozen layers tutti starts from PyTorch's weights, and statistics that are not the first ones.
Of kinds.net and batchnorm.net, which PyTorch trains in double precision, both to 2e-5.
"""
import json, pathlib, struct, subprocess, sys, tempfile, zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests"), str(ROOT / "tools")]

import metrics
import numpy as np
import torch
import torch_net
from read_safetensors import read

LOSS, WEIGHTS = 1e-4, 1e-3
DOUBLE = {"kinds": (2e-5, 2e-5), "batchnorm": (2e-5, 2e-5)}  # the bounds of nets that PyTorch trains in double precision
MOMENTUM, DECAY = 0.9, 0.5  # a decay that would be missed
MEAN, STD = 0.5, 1.0  # of pixels

# ---- Samples: each function writes a data set and gives its --data and (samples, labels). -------


def draw(random, count, shape, classes):
    """Pictures, a soft pattern for each class under noise, and their labels. Without noise several
    values in a pooling window would be the largest up to the last bit, and that bit would decide
    where the gradient goes. The rates below are small for the same reason."""
    channels, height, width = shape
    labels = random.integers(0, classes, count)
    labels[0], labels[-1] = 0, classes - 1  # lists of pictures may count from 1: these do not
    y, x = np.mgrid[0:height, 0:width] / (height + width)
    waves = random.standard_normal((classes, channels, 3)) * 6
    patterns = np.sin(waves[..., :1, None] * y + waves[..., 1:2, None] * x + waves[..., 2:, None])
    noise = random.standard_normal((count, *shape), dtype=np.float32)
    return (128 + 30 * patterns[labels] + 60 * noise).clip(0, 255).astype(np.uint8), labels


def pixels(raw):
    return torch.tensor((raw / np.float32(255) - MEAN) / STD, dtype=torch.float32)


def idx_set(directory, random, count, shape, classes):
    raw, labels = draw(random, count, shape, classes)
    for part in ("train", "t10k"):
        (directory / f"{part}-images-idx3-ubyte").write_bytes(
            struct.pack(">4B3I", 0, 0, 8, 3, count, 28, 28) + raw.tobytes())
        (directory / f"{part}-labels-idx1-ubyte").write_bytes(
            struct.pack(">4BI", 0, 0, 8, 1, count) + labels.astype(np.uint8).tobytes())
    return f"idx:{directory},mean={MEAN},std={STD}", (pixels(raw), labels)


def cifar_set(directory, random, count, shape, classes):
    raw, labels = draw(random, count, shape, classes)
    records = np.concatenate([labels.astype(np.uint8)[:, None], raw.reshape(count, -1)], axis=1)
    for i, part in enumerate(np.array_split(records, 5)):
        (directory / f"data_batch_{i + 1}.bin").write_bytes(part.tobytes())
    (directory / "test_batch.bin").write_bytes(records[:1].tobytes())
    means, stds = "/".join([str(MEAN)] * 3), "/".join([str(STD)] * 3)
    return f"cifar10:{directory},mean={means},std={stds}", (pixels(raw), labels)


def png(rgb):
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data +
                struct.pack(">I", zlib.crc32(kind + data)))
    height, width, _ = rgb.shape
    rows = b"".join(b"\0" + row.tobytes() for row in rgb)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b""))


def image_set(directory, random, count, shape, classes):
    raw, labels = draw(random, count, shape, classes)
    (directory / "all").mkdir()
    lines = []
    for i in range(count):
        (directory / f"all/{i:05}.png").write_bytes(png(raw[i].transpose(1, 2, 0)))
        lines.append(f"all/{i:05}.png {labels[i]}\n")
    (directory / "list").write_text("".join(lines))
    means, stds = "/".join([str(MEAN)] * 3), "/".join([str(STD)] * 3)
    spec = (f"images:{directory},train={directory}/list,test={directory}/list,"
            f"resize={shape[1]},mean={means},std={stds}")
    return spec, (pixels(raw), labels)


def frame_set(directory, random, count, shape, classes):
    """A frame is a vector, or an image of any number of channels, whose index varies fastest."""
    numbers = int(np.prod(shape))
    raw = random.standard_normal((count, numbers), dtype=np.float32)
    labels = random.integers(0, classes, count)
    (directory / "feats.ark").write_bytes(
        b"all \0BFM \4" + struct.pack("<i", count) + b"\4" + struct.pack("<i", numbers) +
        raw.tobytes())
    (directory / "labels").write_text("all " + " ".join(map(str, labels)) + "\n")
    scaled = (raw - raw.mean(axis=0, dtype=np.float64)) / raw.std(axis=0, dtype=np.float64)
    spec = f"kaldi:{directory}/feats.ark,{directory}/labels,context=0,holdout=0"
    scaled = scaled.reshape(count, *shape[1:], shape[0])
    return spec, (torch.tensor(np.moveaxis(scaled, -1, 1), dtype=torch.float32), labels)


# how tutti says it, and what makes it in PyTorch
OPTIMIZERS = {
    "sgd": (["--optimizer", f"sgd,momentum={MOMENTUM}"],
            lambda p, lr: torch.optim.SGD(p, lr, MOMENTUM, weight_decay=DECAY)),
    "nesterov": (["--momentum", MOMENTUM, "--nesterov"],
                 lambda p, lr: torch.optim.SGD(p, lr, MOMENTUM, weight_decay=DECAY, nesterov=True)),
    "adam": (["--optimizer", "adam,beta1=0.8"],
             lambda p, lr: torch.optim.Adam(p, lr, (0.8, 0.999), weight_decay=DECAY)),
    "adamw": (["--optimizer", "adamw,beta2=0.99"],
              lambda p, lr: torch.optim.AdamW(p, lr, (0.9, 0.99), weight_decay=DECAY)),
    # behind ReLUs some gradients are zero but for their rounding: they must not be divided by it
    "adamw-eps": (["--optimizer", "adamw,eps=1e-4"],
                  lambda p, lr: torch.optim.AdamW(p, lr, eps=1e-4, weight_decay=DECAY)),
}

# net: the samples' kind, batch, steps, learning rate, optimizer
CASES = {
    "lenet": (idx_set, 32, 20, 1e-3, "sgd"),
    "lenet:nesterov": (idx_set, 32, 20, 1e-3, "nesterov"),
    "lenet:adamw": (idx_set, 32, 20, 1e-5, "adamw-eps"),
    "linear:adam": (frame_set, 32, 100, 1e-3, "adam"),
    "linear:adamw": (frame_set, 32, 100, 1e-3, "adamw"),
    "linear:eps": (frame_set, 32, 100, 1e-3, "adamw-eps"),
    "cifar-vgg": (cifar_set, 16, 20, 2e-4, "sgd"),
    "cd-dnn": (frame_set, 32, 20, 1e-3, "sgd"),
    "vgg-a": (image_set, 8, 3, 2e-4, "sgd"),
    "channels17": (frame_set, 32, 20, 1e-3, "sgd"),
    "channels32": (frame_set, 32, 20, 1e-3, "sgd"),
    "kinds": (frame_set, 32, 20, 1e-3, "sgd"),
    "channels33": (frame_set, 32, 20, 1e-3, "sgd"),
    "batchnorm": (frame_set, 36, 50, 1e-3, "sgd"),
    "frozen": (frame_set, 36, 50, 1e-3, "sgd"),
    "frozen:adamw": (frame_set, 36, 50, 1e-4, "adamw-eps"),
}

# ---- The two sides -----------------------------------------------------------------------------


def save(path, weights):
    """A safetensors file."""
    header, blocks, at = {}, [], 0
    for name, t in weights.items():
        blocks.append(t.contiguous().numpy().tobytes())
        header[name] = {"dtype": "F32" if t.is_floating_point() else "I64",
                        "shape": list(t.shape), "data_offsets": [at, at + len(blocks[-1])]}
        at += len(blocks[-1])
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blocks))


def lived(net):
    """The net's weights, with running statistics as if it had been trained."""
    random = torch.Generator().manual_seed(1)
    return {name: t + 0.5 * torch.rand(t.shape, generator=random) if "running" in name else t
            for name, t in net.state_dict().items()}


def train_tutti(tutti, net, spec, run, batch, steps, lr, optimizer, decay=DECAY):
    """The losses of all steps, and the weights before the first and after the last."""
    command = [tutti, "train", net, "--data", spec, "--run", run, "--batch-size", batch, "--steps",
               steps, "--lr", lr, "--lr-schedule", "fixed", "--warmup", "0steps", *optimizer,
               "--weight-decay", decay, "--shuffle", "off", "--augment", "off", "--dropout", "off",
               "--clip", 0, "--eval-every", "never", "--keep", 0, "--quiet"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stderr}")
    losses = [row["loss"] for row in metrics.rows(run) if row.get("phase") == "train"]
    weights = [read(run / f"step_{step:08}/model.safetensors") for step in (0, steps)]
    return losses, *weights


def tensors(weights):
    return {name: torch.from_numpy(np.frombuffer(values, values.typecode).copy()).reshape(shape)
            for name, (shape, values) in weights.items()}


def train_torch(net, weights, samples, labels, batch, steps, lr, optimizer):
    net.load_state_dict(tensors(weights), strict=True)
    optimizer = optimizer(torch_net.groups(net, lr))
    losses = []
    for step in range(steps):
        which = slice(step * batch, (step + 1) * batch)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(samples[which]), torch.tensor(labels[which]))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, net.state_dict()


def compare(ours, theirs, ours_end, theirs_end):
    """The largest difference of a loss, and of a weight or bias, against the largest of its layer
    (biases begin at zero: after some steps they are as small as the error of a gradient)."""
    loss = max(abs(a - b) / abs(b) for a, b in zip(ours, theirs))
    largest = {}
    counts = [name for name, t in theirs_end.items() if not t.is_floating_point()]
    for name in counts:
        if ours_end[name] != theirs_end[name]:
            raise SystemExit(f"{name} is {ours_end[name]}, PyTorch has {theirs_end[name]}")
    theirs_end = {name: t for name, t in theirs_end.items() if name not in counts}
    for name, t in theirs_end.items():
        layer = name.rsplit(".", 1)[0]
        largest[layer] = max(largest.get(layer, 0), t.abs().max().item())
    weight = max(((ours_end[name] - t).abs().max().item() / largest[name.rsplit(".", 1)[0]], name)
                 for name, t in theirs_end.items())
    return loss, weight


def check(tutti, name):
    make, batch, steps, lr, optimizer = CASES[name]
    small = ROOT / "tests/nets" / f"{name.split(':')[0]}.net"
    text = str(small) if small.exists() else name.split(":")[0]
    options, factory = OPTIMIZERS[optimizer]
    net, shape, classes = torch_net.build(text, dropout=False)
    most_loss, most_weight = DOUBLE.get(name, (LOSS, WEIGHTS))
    with tempfile.TemporaryDirectory() as scratch:
        data = pathlib.Path(scratch) / "data"
        data.mkdir()
        spec, (samples, labels) = make(data, np.random.default_rng(1), batch * steps, shape, classes)
        run, weights = pathlib.Path(scratch) / "run", pathlib.Path(scratch) / "lived.safetensors"
        if name.startswith("frozen"):
            save(weights, lived(net))
            options = [*options, "--weights", weights]
        ours, start, end = train_tutti(tutti, text, spec, run, batch, steps, lr, options)
        if len(ours) != steps:
            raise SystemExit(f"{name}: metrics.jsonl has {len(ours)} losses of {steps} steps")
        if name in DOUBLE:
            net, samples = net.double(), samples.double()
        theirs, theirs_end = train_torch(net, start, samples, labels, batch, steps, lr,
                                         lambda parameters: factory(parameters, lr))
    loss, (weight, tensor) = compare(ours, theirs, tensors(end), theirs_end)
    good = loss <= most_loss and weight <= most_weight
    print(f"{name:14} {steps:3} steps of {batch:2}: loss {theirs[0]:.4f} -> {theirs[-1]:.4f}, "
          f"differs by {loss:.1e} (<= {most_loss:.0e}); weights by {weight:.1e} (<= {most_weight:.0e}, "
          f"{tensor}): {'ok' if good else 'FAILED'}", flush=True)
    return good


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    results = [check(sys.argv[1], name) for name in sys.argv[2:] or CASES]
    sys.exit(0 if all(results) else 1)
