#!/usr/bin/env python3
"""check_opponents.py TUTTI [NET...]: the nets that bench/step races are the same in PyTorch and TensorFlow: with the
same weights and samples they give the same outputs and gradients by weights. Needs what tools/setup
opponents installs. TUTTI writes the nets without blocks."""
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf
import torch

import tensorflow_net
import torch_net

NETS = ["lenet", "cifar-vgg", "alexnet", "overfeat-fast", "vgg-a", "cd-dnn", "resnet9", "resnet18",
        "resnet50", "mobilenet-v2"]
# both are within some roundings of what is meant, or one of them is another net; a step's gradient
# turns over where an input of a ReLU is zero up to rounding, so this is of all weights together
OUTPUTS, GRADIENTS = 1e-4, 2e-2


def unrolled(tutti, net, folder):
    """The text without blocks and without dropout, which is random."""
    done = subprocess.run([tutti, "info", net, "--unrolled"], check=True, text=True,
                          capture_output=True)
    path = pathlib.Path(folder, f"{net}.net")
    path.write_text("\n".join(" ".join([*words[:2], "0"]) if words[1:2] == ["dropout"] else line
                              for line in done.stdout.split("\n") for words in [line.split()]))
    return str(path)


def to_torch(weights, shape, before):
    """TensorFlow's weights in PyTorch's order; 'before' is the image that a matrix reads."""
    if weights.ndim == 4 and weights.shape[3] == 1 and shape[0] == weights.shape[2]:
        return weights.transpose(2, 3, 0, 1)  # depthwise
    if weights.ndim == 4:
        return weights.transpose(3, 2, 0, 1)
    if weights.ndim == 2 and before:
        c, h, w = before
        return weights.reshape(h, w, c, -1).transpose(3, 2, 0, 1).reshape(shape)
    return weights.T if weights.ndim == 2 else weights


def images_before(net, x):
    """By the name of its weights: the image that a matrix reads, where it is one."""
    found, hooks = {}, []
    for name, layer in net.named_modules():
        if isinstance(layer, torch_net.Features):
            hooks.append(layer.register_forward_hook(
                lambda _, inputs, __, name=name: found.update({f"{name}.weight": inputs[0].shape[1:]})))
    net(x)
    for hook in hooks:
        hook.remove()
    return found


def distance(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


def compare(path, samples=4):
    ours, shape, classes = tensorflow_net.build(path, tf.float32)
    theirs, _, _ = torch_net.build(path, dropout=False)
    numbers = np.random.default_rng(7)
    x = numbers.standard_normal([samples, *shape], np.float32)
    labels = numbers.integers(0, classes, samples)
    seen = torch.from_numpy(x.transpose(0, 3, 1, 2).copy() if len(shape) == 3 else x)
    before = images_before(theirs, seen)
    named = list(theirs.named_parameters())
    assert len(named) == len(ours.trained), path
    with torch.no_grad():
        for (name, p), w in zip(named, ours.trained):
            p.copy_(torch.from_numpy(to_torch(w.numpy(), p.shape, before.get(name)).copy()))
    scores = theirs(seen)
    torch.nn.functional.cross_entropy(scores, torch.from_numpy(labels)).backward()
    with tf.GradientTape() as tape:
        y = tf.reshape(ours(tf.constant(x)), [samples, -1])
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, y))
    gradients = tape.gradient(loss, ours.trained)
    flat = [np.concatenate(list(parts)) for parts in
            ((to_torch(g.numpy(), p.shape, before.get(name)).ravel()
              for (name, p), g in zip(named, gradients)), (p.grad.numpy().ravel() for _, p in named))]
    return distance(y.numpy(), scores.detach().numpy()), distance(*flat)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for net in sys.argv[2:] or NETS:
            outputs, gradients = compare(unrolled(sys.argv[1], net, folder))
            is_same = outputs < OUTPUTS and gradients < GRADIENTS
            failures += not is_same
            print(f"{'ok  ' if is_same else 'FAIL'} {net:14} outputs {outputs:.1e}, "
                  f"gradients {gradients:.1e}", flush=True)
    sys.exit(1 if failures else 0)


main()
