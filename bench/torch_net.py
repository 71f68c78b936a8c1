"""The nets of models/*.net as PyTorch modules: an independent reader of the same text.

build("vgg-a") -> (module, shape of a sample, classes). Parameters have the names of our
checkpoints: conv1.weight, conv1.bias, ... groups(module, lr) are what an optimizer is to train.
"""
import torch
import torch.nn as nn

from net_text import inputs_of, named, pair

ACTIVATIONS = {"relu": nn.ReLU, "relu6": nn.ReLU6, "silu": nn.SiLU, "gelu": nn.GELU,
               "hardswish": nn.Hardswish, "hardsigmoid": nn.Hardsigmoid,
               "leakyrelu": nn.LeakyReLU, "sigmoid": nn.Sigmoid, "tanh": nn.Tanh}


class Scale(nn.Module):
    """One trained factor for each channel."""
    def __init__(self, channels):
        super().__init__()
        self.layer_scale = nn.Parameter(torch.ones(channels, 1, 1))

    def forward(self, x):
        return x * self.layer_scale


class Transposed(nn.ConvTranspose2d):
    """Padding that differs at the end is cut off there."""
    ends = None

    def forward(self, x):
        y = super().forward(x)
        return nn.functional.pad(y, [-end for end in self.ends]) if self.ends else y


class PixelNorm(nn.LayerNorm):
    """Layer normalisation over channels, which come before rows and columns."""
    def forward(self, x):
        return super().forward(x.movedim(1, -1)).movedim(-1, 1)


class Window(nn.Module):
    """Pooling of what was padded, where the padding differs at the end."""
    def __init__(self, pads, value, inner):
        super().__init__()
        self.pads, self.value, self.inner = pads, value, inner

    def forward(self, x):
        return self.inner(nn.functional.pad(x, self.pads, value=self.value))


def pads_of(pairs):
    """Symmetric padding, and what is left for nn.functional.pad; None: nothing."""
    top, left = pair(pairs, "pad", [0])
    bottom, right = pair(pairs, "pad-end", [top, left])
    return (top, left), None if (top, left) == (bottom, right) else (left, right, top, bottom)


def pool_of(kind, words, pairs, x):
    maximum = kind == "maxpool"
    if "global" in words or "size" in pairs:
        size = pair(pairs, "size", [1])
        return (nn.AdaptiveMaxPool2d if maximum else nn.AdaptiveAvgPool2d)(size)
    pad, ends = pads_of(pairs)
    kernel = pair(pairs, "kernel", None)
    stride = pair(pairs, "stride", list(kernel))
    options = dict(padding=(0, 0) if ends else pad, ceil_mode="ceil" in words)
    if not maximum:
        options["count_include_pad"] = "exclude-pad" not in words
    pool = (nn.MaxPool2d if maximum else nn.AvgPool2d)(kernel, stride, **options)
    return Window(ends, -torch.inf if maximum else 0, pool) if ends else pool


def module_of(kind, words, pairs, x, dropout):
    """The module of a layer, given an example of its input."""
    if kind == "conv" and "linear" in words:
        return PixelFeatures(x.shape[1], int(words[0]), bias="nobias" not in words)
    if kind == "conv":
        return nn.Conv2d(x.shape[1], int(words[0]), pair(pairs, "kernel", None),
                         pair(pairs, "stride", [1]), pads_of(pairs)[0],
                         pair(pairs, "dilation", [1]), int(pairs.get("groups", 1)),
                         bias="nobias" not in words)
    if kind == "deconv":
        pad, ends = pads_of(pairs)
        module = Transposed(x.shape[1], int(words[0]), pair(pairs, "kernel", None),
                            pair(pairs, "stride", [1]), (0, 0) if ends else pad,
                            pair(pairs, "output-pad", [0]), int(pairs.get("groups", 1)),
                            "nobias" not in words, pair(pairs, "dilation", [1]))
        module.ends = ends
        return module
    if kind == "fc":
        return Features(x[0].numel(), int(words[0]), bias="nobias" not in words)
    if kind in ("maxpool", "avgpool"):
        return pool_of(kind, words, pairs, x)
    if kind == "batchnorm":  # group=all is what PyTorch does
        return nn.BatchNorm2d(x.shape[1], float(pairs.get("eps", 1e-5)),
                              float(pairs.get("momentum", 0.1)))
    if kind == "lrn":
        return nn.LocalResponseNorm(int(words[0]), *(float(pairs.get(key, usual)) for key, usual in
                                                     (("alpha", 1e-4), ("beta", 0.75), ("k", 1))))
    if kind == "layernorm" and "whole" in words:
        return nn.LayerNorm(list(x.shape[1:]), float(pairs.get("eps", 1e-5)))
    if kind == "layernorm":
        return PixelNorm(x.shape[1], float(pairs.get("eps", 1e-5)))
    if kind == "groupnorm":
        return nn.GroupNorm(int(words[0]), x.shape[1], float(pairs.get("eps", 1e-5)))
    if kind == "dropout":
        return nn.Dropout(float(words[0]) if dropout else 0.0)
    if kind == "stochasticdepth" and not dropout:
        return nn.Identity()
    if kind == "layerscale":
        return Scale(x.shape[1])
    if kind == "upsample":
        mode, corners = pairs.get("mode", "nearest"), "align-corners" in words
        options = {"align_corners": corners} if mode == "bilinear" else {}
        if "scale" in pairs:
            return nn.Upsample(scale_factor=pair(pairs, "scale", None), mode=mode, **options)
        return nn.Upsample(pair(pairs, "size", None), mode=mode, **options)
    if kind == "leakyrelu":
        return nn.LeakyReLU(float(pairs.get("slope", 0.01)))
    if kind in ACTIVATIONS:
        return ACTIVATIONS[kind]()
    raise SystemExit(f"torch_net.py: cannot build a layer of kind '{kind}'")


# a vector is an image of one pixel, here, too
class PixelFeatures(nn.Linear):
    """The same linear layer on every pixel."""
    def forward(self, x):
        return super().forward(x.movedim(1, -1)).movedim(-1, 1)


class Features(nn.Linear):
    """A fully connected layer of a flattened image."""
    def forward(self, x):
        return super().forward(x.flatten(1))[:, :, None, None]


# kinds without a module: what they make of their inputs
JOINS = {"add": sum, "concat": lambda inputs: torch.cat(inputs, 1), "mul": lambda inputs: inputs[0] * inputs[1]}


class Net(nn.Module):
    """Layers in the order of the text; each knows the names of its inputs."""
    def __init__(self):
        super().__init__()
        self.steps = []  # name, names of inputs, what to do with them
        self.layers = {}  # modules by name
        self.scales = {}  # by layer: of the learning rate

    def train(self, mode=True):
        """What is frozen keeps its running statistics, and uses them."""
        super().train(mode)
        for layer in self.layers.values():
            if any(not p.requires_grad for p in layer.parameters()):
                layer.eval()
        return self

    def add(self, name, inputs, does):
        if isinstance(does, nn.Module):
            parent, *path = self, *name.split(".")  # PyTorch allows no dots in names
            for part in path[:-1]:
                if not hasattr(parent, part):
                    parent.add_module(part, nn.Module())
                parent = getattr(parent, part)
            parent.add_module(path[-1], does)
            self.layers[name] = does
            self.steps.append((name, inputs, lambda values: does(values[0])))
        else:
            self.steps.append((name, inputs, does))

    def last(self, x):
        """What the last layer gives, an image."""
        values = {"input": x[..., None, None] if x.dim() == 2 else x}
        for name, inputs, does in self.steps:
            values[name] = does([values[i] for i in inputs])
        return values[self.steps[-1][0]]

    def forward(self, x):
        return self.last(x).flatten(1)


def add_layer(net, layer, kind, words, pairs, inputs, x, dropout):
    """Adds a layer whose first input is like x; returns the name of what it gives."""
    _, ends = pads_of(pairs) if kind == "conv" else (None, None)
    if kind in JOINS:
        net.add(layer, inputs, JOINS[kind])
    elif kind == "slice":
        first, end = int(pairs.get("first", 0)), int(pairs.get("end", x.shape[1]))
        net.add(layer, inputs, lambda values: values[0][:, first:end])
    elif kind == "shuffle":  # nn.ChannelShuffle has no derivative
        groups = int(words[0])
        net.add(layer, inputs,
                lambda v: v[0].unflatten(1, (groups, -1)).transpose(1, 2).flatten(1, 2))
    else:
        module = module_of(kind, words, pairs, x, dropout)
        if ends:
            module.padding = (0, 0)
            net.add(f"{layer}_padded", inputs, lambda v: nn.functional.pad(v[0], ends))
            inputs = [f"{layer}_padded"]
        net.add(layer, inputs, module)
    if kind not in ACTIVATIONS:
        for word in words:
            if word in ACTIVATIONS:
                module = nn.ReLU(inplace=True) if word == "relu" else ACTIVATIONS[word]()
                net.add(f"{layer}_{word}", [layer], module)
                return f"{layer}_{word}"
    return layer


def tune(net, layer, words, pairs):
    net.scales[layer] = float(pairs.get("lr", 1))
    if "frozen" in words:
        net.layers[layer].requires_grad_(False)


def groups(net, lr):
    """The parameters that are trained, with their rates."""
    return [{"params": [p], "lr": lr * net.scales[name.rsplit(".", 1)[0]]}
            for name, p in net.named_parameters() if p.requires_grad]


def build(name, dropout=True):
    shape, layers = named(name)
    net, names, given = Net(), ["input"], {"input": "input"}
    shapes = {"input": torch.zeros(2, *shape, *[1] * (3 - len(shape)))}
    for layer, kind, words, pairs in layers:
        if kind == "softmax":  # nn.CrossEntropyLoss has it
            continue
        inputs = [given[i] for i in inputs_of(kind, words, pairs, names)]
        x = shapes[inputs[0]]
        given[layer] = add_layer(net, layer, kind, words, pairs, inputs, x, dropout)
        names.append(layer)
        tune(net, layer, words, pairs)
        with torch.no_grad():
            shapes[given[layer]] = net.eval().last(torch.zeros(2, *shape))
    return net.train(), shape, shapes[given[names[-1]]].shape[1]
