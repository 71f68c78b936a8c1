#!/usr/bin/python3
"""Ways of training in tutti and in PyTorch, compared as check_torch.py does.

    check_torch_ways.py TUTTI [CASE...]

Smoothed labels, weights of classes and the one-cycle schedule are PyTorch's own, an average of the
weights is its AveragedModel with the buffers, which begins with the first weights; minibatches are
counted, not averaged. The learning rates of all steps are compared, too.

Batch normalisation at a rate of 1e-2 is compared on a net without ReLUs. With them (batchnorm.net) the
two agree to 1e-7 until, in step 7, one of 16 thousand inputs of a ReLU is 1.2e-7 below zero for one of
them and above for the other: its gradient is there or not, and after 80 steps the losses are 1e-2
apart, as those of PyTorch in single and in double precision are 4e-3 apart.
"""
import pathlib, subprocess, sys, tempfile

import check_torch  # puts the folders it needs into the path
from check_torch import LOSS, WEIGHTS, compare, frame_set, tensors

import metrics
import numpy as np
import torch
import torch_net
from read_safetensors import read

BATCH, STEPS, LR = 32, 80, 1e-2
RATE = 1e-7  # a learning rate is stored as a float

CASES = {  # net, options of tutti, and of PyTorch
    "smoothing": ("linear", ["--label-smoothing", 0.1], dict(smoothing=0.1)),
    "weights": ("linear", ["--class-weights", "FILE"], dict(weights="file")),
    "auto": ("linear", ["--class-weights", "auto"], dict(weights="auto")),
    "both": ("linear", ["--class-weights", "FILE", "--label-smoothing", 0.2],
             dict(weights="file", smoothing=0.2)),
    "onecycle": ("linear", ["--lr-schedule", "onecycle"], dict(cycle={})),
    "onecycle:own": ("linear", ["--lr-schedule", "onecycle:0.4:10:100"],
                     dict(cycle=dict(pct_start=0.4, div_factor=10, final_div_factor=100))),
    "ema": ("linear", ["--ema", 0.9], dict(ema=0.9)),
    "ema:statistics": ("batchnorm-tanh", ["--ema", 0.9], dict(ema=0.9)),
    "all": ("batchnorm", ["--class-weights", "auto", "--label-smoothing", 0.1, "--lr-schedule",
                          "onecycle", "--ema", 0.9],
            dict(weights="auto", smoothing=0.1, cycle={}, ema=0.9)),
}


def class_weights(kind, labels, classes):
    if kind == "auto":  # scikit-learn's "balanced"
        counts = np.bincount(labels, minlength=classes)
        return len(labels) / (np.count_nonzero(counts) * counts)
    return np.linspace(0.25, 3, classes)


def train_tutti(tutti, text, spec, run, options):
    """The losses and rates of all steps, and the folders of the first and the last."""
    command = [tutti, "train", text, "--data", spec, "--run", run, "--batch-size", BATCH, "--steps",
               STEPS, "--lr", LR, "--optimizer", "sgd,momentum=0.9", "--weight-decay", 0.01,
               "--shuffle", "off", "--augment", "off", "--clip", 0, "--bn-group", "all",
               "--eval-every", "never", "--quiet", *options]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stderr}")
    rows = [row for row in metrics.rows(run) if row.get("phase") == "train"]
    return ([row["loss"] for row in rows], [row["lr"] for row in rows],
            run / "step_00000000", run / f"step_{STEPS:08}")


def train_torch(net, start, samples, labels, weights=None, smoothing=0.0, cycle=None,
                ema=0.0):
    net.load_state_dict(tensors(read(start / "model.safetensors")), strict=True)
    weight = None if weights is None else torch.tensor(weights, dtype=torch.float32)
    criterion = torch.nn.CrossEntropyLoss(weight=weight, label_smoothing=smoothing)
    optimizer = torch.optim.SGD(net.parameters(), LR, 0.9, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, LR, total_steps=STEPS, cycle_momentum=False, **cycle) if cycle is not None else None
    average = torch.optim.swa_utils.AveragedModel(
        net, avg_fn=lambda a, p, _: ema * a + (1 - ema) * p, use_buffers=True)
    average.update_parameters(net)  # the first one copies
    losses, rates = [], []
    for step in range(STEPS):
        which = slice(step * BATCH, (step + 1) * BATCH)
        optimizer.zero_grad()
        loss = criterion(net(samples[which]), torch.tensor(labels[which]))
        loss.backward()
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        average.update_parameters(net)
        if schedule and step < STEPS - 1:
            schedule.step()
        losses.append(loss.item())
    counts = {name: t for name, t in net.state_dict().items() if not t.is_floating_point()}
    return losses, rates, dict(average.module.state_dict(), **counts)


def check(tutti, name):
    net_name, options, recipe = CASES[name]
    text = str(check_torch.ROOT / "tests/nets" / f"{net_name}.net")
    net, shape, classes = torch_net.build(text, dropout=False)
    recipe = dict(recipe)
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        data = scratch / "data"
        data.mkdir()
        spec, (samples, labels) = frame_set(data, np.random.default_rng(1), BATCH * STEPS, shape,
                                            classes)
        if "weights" in recipe:
            recipe["weights"] = class_weights(recipe["weights"], labels, classes)
            (data / "weights").write_text("".join(f"{w:.9g}\n" for w in recipe["weights"]))
        options = [data / "weights" if word == "FILE" else word for word in options]
        ours, our_rates, start, end = train_tutti(tutti, text, spec, scratch / "run", options)
        theirs, rates, average = train_torch(net, start, samples, labels, **recipe)
        loss, (weight, tensor) = compare(ours, theirs, tensors(read(end / "model.safetensors")),
                                         net.state_dict())
        if "ema" in recipe:
            _, (mean, _) = compare(ours, theirs, tensors(read(end / "ema.safetensors")), average)
            weight = max(weight, mean)
    rate = max(abs(a - b) / b for a, b in zip(our_rates, rates))
    good = loss <= LOSS and weight <= WEIGHTS and rate <= RATE
    print(f"{name:13} {STEPS} steps of {BATCH}: loss {theirs[0]:.4f} -> {theirs[-1]:.4f}, differs by "
          f"{loss:.1e} (<= {LOSS:.0e}); weights by {weight:.1e} (<= {WEIGHTS:.0e}, {tensor}); rates by "
          f"{rate:.1e}: {'ok' if good else 'FAILED'}", flush=True)
    return good


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    results = [check(sys.argv[1], name) for name in sys.argv[2:] or CASES]
    sys.exit(0 if all(results) else 1)
