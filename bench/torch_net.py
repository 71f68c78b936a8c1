"""The nets of models/*.net as PyTorch modules: an independent reader of the same text.

build("vgg-a") -> (module, shape of a sample, classes). Parameters have the names of our
checkpoints: conv1.weight, conv1.bias, ...
"""
import pathlib

import torch
import torch.nn as nn

MODELS = pathlib.Path(__file__).resolve().parent.parent / "models"
ACTIVATIONS = {"relu": lambda: nn.ReLU(inplace=True), "relu6": nn.ReLU6, "silu": nn.SiLU, "gelu": nn.GELU,
               "hardswish": nn.Hardswish, "hardsigmoid": nn.Hardsigmoid,
               "leakyrelu": nn.LeakyReLU,
               "sigmoid": nn.Sigmoid, "tanh": nn.Tanh}


def read(path):
    """The input's shape and a list of (name, kind, words, key=value pairs)."""
    shape, layers = None, []
    for line in open(path):
        words = line.split("#")[0].split()
        if not words or words[0] == "default":
            continue
        if words[0] == "input":
            shape = tuple(int(n) for n in words[1:])
            continue
        pairs = dict(w.split("=") for w in words[2:] if "=" in w)
        layers.append((words[0], words[1], [w for w in words[2:] if "=" not in w], pairs))
    return shape, layers


def window(pairs):
    return dict(kernel_size=int(pairs["kernel"]), stride=int(pairs.get("stride", 1)),
                padding=int(pairs.get("pad", 0)))


def module_of(kind, words, pairs, x, dropout):
    """The module of a layer, given an example of its input."""
    if kind == "conv":
        return nn.Conv2d(x.shape[1], int(words[0]), bias="nobias" not in words, **window(pairs))
    if kind == "fc":
        return nn.Linear(x[0].numel(), int(words[0]))
    if kind == "batchnorm":  # group=all is what PyTorch does
        norm = nn.BatchNorm1d if x.dim() == 2 else nn.BatchNorm2d
        return norm(x.shape[1], float(pairs.get("eps", 1e-5)), float(pairs.get("momentum", 0.1)))
    if kind == "maxpool":
        return nn.MaxPool2d(**window(pairs))
    if kind == "avgpool":
        return nn.AvgPool2d(**window(pairs))
    if kind == "dropout":
        return nn.Dropout(float(words[0]) if dropout else 0.0)
    if kind in ACTIVATIONS:
        return ACTIVATIONS[kind]()
    raise SystemExit(f"torch_net.py: cannot build a layer of kind '{kind}'")


def build(name, dropout=True):
    shape, layers = read(name if name.endswith(".net") else MODELS / f"{name}.net")
    net, x = nn.Sequential(), torch.zeros(1, *shape)
    for layer, kind, words, pairs in layers:
        if kind == "softmax":  # nn.CrossEntropyLoss has it
            continue
        if kind == "fc" and x.dim() > 2:
            net.add_module(f"{layer}_flatten", nn.Flatten())
        net.add_module(layer, module_of(kind, words, pairs, x, dropout))
        for word in words:
            if kind in ("conv", "fc", "batchnorm") and word in ACTIVATIONS:
                net.add_module(f"{layer}_{word}", ACTIVATIONS[word]())
        with torch.no_grad():
            x = net.eval()(torch.zeros(1, *shape))
    return net.train(), shape, x.shape[1]
