"""What PyTorch computes, as layers of a net: a builder that collects layers and tensors, and a function
for each of PyTorch's that computes something. torch_to_net.py walks a module and calls them; its
head explains values and views."""
import operator

import torch
import torch.nn as nn
import torch.nn.functional as F

SAMPLES = 2
LONGEST_NAME = 63
FUSING = {"conv", "deconv", "fc", "add", "mul", "concat", "batchnorm"}  # kinds that may end in an activation


class Unknown(Exception):
    """What cannot be brought over, in a sentence."""


class Layer:
    def __init__(self, name, kind, inputs, words, shape):
        self.name, self.kind, self.inputs, self.words, self.shape = name, kind, inputs, words, shape
        self.activation = None


class Value:
    """What a node of the graph gives. 'zeros' stand around it, for the window that reads it: left,
    right, above, below."""

    def __init__(self, layer, view, zeros=(0, 0, 0, 0)):
        self.layer, self.inner, self.zeros = layer, view, zeros

    @property
    def view(self):
        if any(self.zeros):
            raise Unknown("zeros around an image are known before convolutions only")
        return self.inner

    @property
    def shape(self):
        return self.view.shape

    def rearranged(self, view):
        return Value(self.layer, view)


def numbered(shape):
    """The view of a whole output."""
    count = SAMPLES
    for size in shape:
        count *= size
    return torch.arange(count).reshape(SAMPLES, *shape)


def is_whole(value):
    return torch.equal(value.view.flatten(), numbered(value.layer.shape).flatten())


def pair(size):
    return tuple(size) if isinstance(size, (tuple, list)) else (size, size)


def sized(word, size, otherwise=None):
    """ "kernel=3", "kernel=1x3", or nothing where it is what the text means anyway. """
    height, width = pair(size)
    if otherwise is not None and (height, width) == pair(otherwise):
        return []
    return [f"{word}={height}" if height == width else f"{word}={height}x{width}"]


class Builder:
    def __init__(self, module, shape):
        self.module, self.layers, self.tensors, self.names = module, [], {}, set()
        self.taken = {}  # parameter: the layer that has it
        self.made = {}  # (layer, words) of slices and shuffles: once is enough
        self.input = Layer("input", "input", [], [], tuple(shape))
        self.words = set(ACTIVATIONS.values())

    # ---- layers ----

    def name(self, wanted):
        """A name of the net's language, like 'wanted', that no layer has."""
        clean = "".join(c if c.isalnum() or c in "_-." else "_" for c in wanted) or "layer"
        if not clean[0].isalpha():
            clean = "m" + clean
        name, number = clean, 1
        while name in self.names or name in self.words or name == "input":
            number += 1
            name = f"{clean}_{number}"
        if len(name) > LONGEST_NAME:
            raise Unknown(f"the name {name} has more than {LONGEST_NAME} characters")
        self.names.add(name)
        return name

    def add(self, wanted, kind, inputs, words, shape):
        layer = Layer(self.name(wanted), kind, [v.layer for v in inputs], words, tuple(shape))
        self.layers.append(layer)
        return layer

    def tensor(self, layer, suffix, values):
        """A parameter, or a running statistic, of the layer; it must be nobody else's."""
        if isinstance(values, nn.Parameter):
            if values in self.taken:
                raise Unknown(f"weights are used twice: {layer.name}.{suffix} is "
                              f"{self.taken[values]}")
            self.taken[values] = f"{layer.name}.{suffix}"
        self.tensors[f"{layer.name}.{suffix}"] = values.detach()

    def apply(self, wanted, kind, inputs, words, shape):
        """A layer whose output is seen in its own order, as 'shape'."""
        image = shape if len(shape) == 3 else (shape[0], 1, 1)
        layer = self.add(wanted, kind, inputs, words, image)
        return Value(layer, numbered(shape))

    def inplace(self, wanted, kind, value, words=()):
        """Element by element: whatever the view is, it stays."""
        layer = self.add(wanted, kind, [value], list(words), value.layer.shape)
        return Value(layer, value.view)

    # ---- views ----

    def derived(self, value, kind, word, shape):
        key = (value.layer, kind, word)
        if key not in self.made:
            self.made[key] = self.add(f"{value.layer.name}_{kind}", kind, [value], [word], shape)
        return Value(self.made[key], numbered(shape))

    def whole(self, value):
        """The value as all of a layer's output in its order; layers are added to make it so."""
        if is_whole(value):
            return value
        _, height, width = value.layer.shape
        size = height * width
        if value.view[0].numel() % size:
            raise Unknown("a part of an image")
        rows = value.view.reshape(SAMPLES, -1, size)
        channels = rows[0, :, 0] // size
        count = value.layer.shape[0]
        expected = channels[None, :, None] * size + torch.arange(size)
        expected = expected + torch.arange(SAMPLES)[:, None, None] * count * size
        if not torch.equal(rows, expected):
            raise Unknown("elements in an order that no layer makes")
        return self.selected(value, channels.tolist()).rearranged(
            numbered((len(channels), height, width)).reshape(value.shape))

    def selected(self, value, channels):
        count, height, width = value.layer.shape
        for groups in [g for g in range(1, count) if count % g == 0]:
            order = [i % groups * (count // groups) + i // groups for i in range(count)]
            first = order.index(channels[0])
            if order[first:first + len(channels)] != channels:
                continue
            source = value
            if groups > 1:
                source = self.derived(value, "shuffle", str(groups), value.layer.shape)
            if len(channels) == count:
                return source
            words = f"first={first} end={first + len(channels)}"
            return self.derived(source, "slice", words, (len(channels), height, width))
        raise Unknown("channels in an order that no layer makes")

    def image(self, value):
        """[n, c, h, w], and all of it."""
        value = self.whole(value)
        if tuple(value.shape[1:]) != value.layer.shape:
            raise Unknown(f"an input of {list(value.shape[1:])} that is no image")
        return value

    def pixels(self, value):
        """Of [n, h, w, c] the image [n, c, h, w], and all of it; None where it is something else."""
        if value.view.dim() != 4:
            return None
        try:
            value = self.whole(value.rearranged(value.view.permute(0, 3, 1, 2)))
        except Unknown:
            return None
        return value if tuple(value.shape[1:]) == value.layer.shape else None


def channels_last(value):
    return value.rearranged(value.view.permute(0, 2, 3, 1))


# ---- what computes: each gets the builder, a name, and what PyTorch's function gets -------------

ACTIVATIONS = {
    F.relu: "relu", F.relu6: "relu6", F.silu: "silu", F.gelu: "gelu", F.hardswish: "hardswish",
    F.hardsigmoid: "hardsigmoid", F.leaky_relu: "leakyrelu", F.sigmoid: "sigmoid", F.tanh: "tanh",
}


def activation(function):
    def apply(b, name, x, *args, **options):
        options.pop("inplace", None)
        args = [a for a in args if not isinstance(a, bool)]  # inplace
        words = []
        if function is F.leaky_relu:
            slope = args[0] if args else options.pop("negative_slope", 0.01)
            words, args = ([] if slope == 0.01 else [f"slope={slope!r}"]), []
        if args or options.get("approximate", "none") != "none":
            raise Unknown("options of it that Tutti does not have")
        return b.inplace(name, ACTIVATIONS[function], x, words)
    return apply


def conv2d(b, name, x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    kernel = tuple(weight.shape[2:])
    if padding == "same":
        total = [d * (k - 1) for d, k in zip(pair(dilation), kernel)]
        pads = [t // 2 for t in total], [t - t // 2 for t in total]
    else:
        pads = [pair(0 if padding == "valid" else padding)] * 2
    x, pads, words = padded(b, x, *pads)
    shape = F.conv2d(F.pad(x.view[:1].float() * 0, pads), weight.detach(), None, stride, 0, dilation,
                     groups).shape[1:]
    words = [str(weight.shape[0]), *sized("kernel", kernel), *sized("stride", stride, 1), *words,
             *sized("dilation", dilation, 1)]
    words += [f"groups={groups}"] if groups != 1 else []
    return weighted(b, name, "conv", x, words, shape, weight, bias)


def padded(b, x, begin, end):
    """The image without the zeros around it, all of its padding (left, right, above, below), and that
    as words; begin and end are the window's own: above and left, below and right."""
    zeros = x.zeros
    x = b.image(x.rearranged(x.inner))
    left, right, above, below = (z + own for z, own in zip(
        zeros, (begin[1], end[1], begin[0], end[0])))
    if min(left, right, above, below) < 0:
        raise Unknown("a part of an image")
    words = sized("pad", (above, left), 0) + sized("pad-end", (below, right), (above, left))
    return x, (left, right, above, below), words


def pad(b, name, x, pads, mode="constant", value=None):
    pads = tuple(pads) if isinstance(pads, (tuple, list)) else (pads,) * 4
    if mode != "constant" or value not in (None, 0):
        raise Unknown("padding with something else than zeros")
    if len(pads) > 4 and any(pads[4:]) or x.inner.dim() != 4 and any(pads):
        raise Unknown("padding of something else than an image")
    pads = pads + (0,) * (4 - len(pads))
    return Value(x.layer, x.inner, tuple(z + more for z, more in zip(x.zeros, pads)))


def conv_transpose2d(b, name, x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1,
                     dilation=1):
    x = b.image(x)
    shape = F.conv_transpose2d(x.view[:1].float() * 0, weight.detach(), None, stride, padding,
                               output_padding, groups, dilation).shape[1:]
    words = [str(shape[0]), *sized("kernel", weight.shape[2:]), *sized("stride", stride, 1),
             *sized("pad", padding, 0), *sized("output-pad", output_padding, 0),
             *sized("dilation", dilation, 1)]
    words += [f"groups={groups}"] if groups != 1 else []
    return weighted(b, name, "deconv", x, words, shape, weight, bias)


def interpolate(b, name, x, size=None, scale_factor=None, mode="nearest", align_corners=None,
                recompute_scale_factor=None, antialias=False):
    x = b.image(x)
    if mode not in ("nearest", "bilinear") or antialias:
        raise Unknown(f"interpolation by '{mode}'{' with antialias' if antialias else ''}")
    shape = F.interpolate(x.view[:1].float(), size, scale_factor, mode, align_corners).shape[1:]
    scale = pair(1 if scale_factor is None else scale_factor)
    if any(s != int(s) for s in scale):
        raise Unknown(f"images {scale[0]} x {scale[1]} times as large")
    words = sized("size", shape[1:]) if scale_factor is None else sized("scale", [int(s) for s in scale])
    words += [f"mode={mode}"] + (["align-corners"] if align_corners else [])
    return b.apply(name, "upsample", [x], words, shape)


def weighted(b, name, kind, x, words, shape, weight, bias):
    y = b.apply(name, kind, [x], words + ([] if bias is not None else ["nobias"]), shape)
    b.tensor(y.layer, "weight", weight)
    if bias is not None:
        b.tensor(y.layer, "bias", bias)
    return y


def linear(b, name, x, weight, bias=None):
    features = weight.shape[0]
    image = b.pixels(x)
    if image:  # a linear layer on every pixel is a convolution of one pixel
        y = weighted(b, name, "conv", image, [str(features), "kernel=1", "linear"],
                     (features, *image.layer.shape[1:]), weight, bias)
        return channels_last(y)
    x = b.whole(x)
    if x.view.dim() != 2:
        raise Unknown(f"a linear layer on {list(x.shape[1:])}")
    return weighted(b, name, "fc", x, [str(features)], (features,), weight, bias)


def batch_norm(b, name, x, mean, variance, weight=None, bias=None, training=True, momentum=0.1,
               eps=1e-5, tracked=None):
    if weight is None or bias is None or mean is None or momentum is None:
        raise Unknown("batch normalisation without weight, bias, running statistics or momentum")
    x = b.whole(x)
    words = ["group=all"] + ([f"eps={eps!r}"] if eps != 1e-5 else [])
    words += [f"momentum={momentum!r}"] if momentum != 0.1 else []
    y = b.inplace(name, "batchnorm", x, words)
    tracked = torch.zeros((), dtype=torch.int64) if tracked is None else tracked
    for suffix, values in (("weight", weight), ("bias", bias), ("running_mean", mean),
                           ("running_var", variance), ("num_batches_tracked", tracked)):
        b.tensor(y.layer, suffix, values)
    return y


def layer_norm(b, name, x, normalized_shape, weight=None, bias=None, eps=1e-5):
    image = b.pixels(x) if len(normalized_shape) == 1 else None
    x = image or b.whole(x)
    vector = x.view.dim() == 2 and x.layer.shape[1:] == (1, 1)
    channels = (image or vector) and list(normalized_shape) == [x.layer.shape[0]]
    all_values = not image and tuple(normalized_shape) == tuple(x.shape[1:])
    if weight is None or bias is None or not (channels or all_values):
        raise Unknown("layer normalisation of something else than all channels or all values, with "
                      "weight and bias")
    words = ([] if channels else ["whole"]) + ([f"eps={eps!r}"] if eps != 1e-5 else [])
    y = b.inplace(name, "layernorm", x, words)
    for suffix, values in (("weight", weight), ("bias", bias)):
        b.tensor(y.layer, suffix, values)
        if not channels:
            b.tensors[f"{y.layer.name}.{suffix}"] = values.detach().reshape(y.layer.shape)
    return channels_last(y) if image else y


def group_norm(b, name, x, num_groups, weight=None, bias=None, eps=1e-5):
    if weight is None or bias is None:
        raise Unknown("group normalisation without weight and bias")
    words = [str(num_groups)] + ([f"eps={eps!r}"] if eps != 1e-5 else [])
    y = b.inplace(name, "groupnorm", b.image(x), words)
    b.tensor(y.layer, "weight", weight)
    b.tensor(y.layer, "bias", bias)
    return y


def pooled(kind, function):
    def apply(b, name, x, kernel_size, stride=None, padding=0, *args, **options):
        x = b.image(x)
        shape = function(x.view[:1].float(), kernel_size, stride or None, padding, *args,
                         **options).shape[1:]
        if kind == "maxpool":
            names = ("dilation", "ceil_mode", "return_indices")
        else:
            names = ("ceil_mode", "count_include_pad", "divisor_override")
        said = {**dict(zip(names, args)), **options}
        if (pair(said.get("dilation", 1)) != (1, 1) or said.get("return_indices")
                or said.get("divisor_override")):
            raise Unknown("pooling with dilation, indices or a divisor")
        words = [*sized("kernel", kernel_size), *sized("stride", stride or kernel_size, kernel_size),
                 *sized("pad", padding, 0)]
        words += ["ceil"] if said.get("ceil_mode") else []
        words += ["exclude-pad"] if kind == "avgpool" and not said.get("count_include_pad", True) \
            else []
        return b.apply(name, kind, [x], words, shape)
    return apply


def adaptive(kind):
    def apply(b, name, x, output_size):
        x = b.image(x)
        size = tuple(s or now for s, now in zip(pair(output_size), x.layer.shape[1:]))
        if size == (1, 1):
            return b.apply(name, kind, [x], ["global"], (x.layer.shape[0], 1, 1))
        if size == x.layer.shape[1:]:
            return x
        if kind == "maxpool":
            raise Unknown("maxima over windows that give a size")
        return b.apply(name, kind, [x], sized("size", size), (x.layer.shape[0], *size))
    return apply


def mean(b, name, x, dim=None, keepdim=False, **options):
    if x.view.dim() == 3:  # pixels in one row
        x = b.whole(x)
        if dim not in (2, -1, (2,), (-1,), [2], [-1]) or x.shape[1] != x.layer.shape[0] or keepdim:
            raise Unknown("a mean over something else than all pixels")
        x, dim = x.rearranged(x.view.reshape(SAMPLES, *x.layer.shape)), (2, 3)
    x = b.image(x)
    dims = sorted(d % 4 for d in ([dim] if isinstance(dim, int) else dim or ()))
    if dims != [2, 3]:
        raise Unknown("a mean over something else than all pixels")
    y = b.apply(name, "avgpool", [x], ["global"], (x.layer.shape[0], 1, 1))
    return y if keepdim else y.rearranged(y.view.flatten(1))


def aligned(b, values):
    """Values that are seen alike, each as it is or put in order."""
    first = values[0]
    if all(torch.equal(v.view, first.view) and v.layer.shape == first.layer.shape for v in values):
        return values
    return [b.whole(v) for v in values]


def add(b, name, x, y, *, alpha=1):
    if not isinstance(x, Value) or not isinstance(y, Value) or alpha != 1:
        raise Unknown("a sum with something that is no layer's output")
    x, y = aligned(b, [x, y])
    if x.shape != y.shape:
        raise Unknown(f"a sum of {list(x.shape[1:])} and {list(y.shape[1:])}")
    layer = b.add(name, "add", [x, y], [], x.layer.shape)
    return Value(layer, x.view)


def layer_scale(b, name, x, factors):
    x = b.image(x)
    if factors.numel() != x.layer.shape[0] or factors.shape[-2:] != (1, 1):
        raise Unknown("a product with a parameter that is no factor for each channel")
    y = b.inplace(name, "layerscale", x, [])
    b.tensor(y.layer, "layer_scale", factors)
    b.tensors[f"{y.layer.name}.layer_scale"] = factors.detach().reshape(-1, 1, 1)
    return y


def mul(b, name, x, y):
    for one, other in ((x, y), (y, x)):
        if isinstance(one, Value) and isinstance(other, nn.Parameter):
            return layer_scale(b, name, one, other)
    if not isinstance(x, Value) or not isinstance(y, Value):
        raise Unknown("a product with something that is no layer's output")
    x, y = (b.image(v) if v.view.dim() == 4 else b.whole(v) for v in (x, y))
    shape = max(x.layer.shape, y.layer.shape)
    if x.layer.shape[0] != y.layer.shape[0] or x.view.dim() != y.view.dim():
        raise Unknown(f"a product of {list(x.shape[1:])} and {list(y.shape[1:])}")
    return b.apply(name, "mul", [x, y], [], shape[:x.view.dim() - 1])


def concat(b, name, values, dim=0, axis=None):
    dim = dim if axis is None else axis
    values = [b.whole(v) for v in values]
    if dim % values[0].view.dim() != 1 or any(
            v.layer.shape[1:] != values[0].layer.shape[1:] for v in values):
        raise Unknown("values joined in another dimension than channels")
    if len(values) == 1:
        return values[0]
    channels = sum(v.layer.shape[0] for v in values)
    shape = (channels, *values[0].layer.shape[1:])
    return b.apply(name, "concat", values, [], shape[:values[0].view.dim() - 1])


def dropout(b, name, x, p=0.5, training=True, inplace=False):
    return b.inplace(name, "dropout", x, [repr(float(p))]) if p and training else x


def stochastic_depth(b, name, x, p, mode, training=True):
    if mode != "row":
        raise Unknown("stochastic depth of a whole minibatch")
    return b.inplace(name, "stochasticdepth", x, [repr(float(p))]) if p and training else x


def local_response_norm(b, name, x, size, alpha=1e-4, beta=0.75, k=1.0):
    return b.inplace(name, "lrn", b.image(x), [str(size), f"alpha={alpha!r}", f"beta={beta!r}",
                                               f"k={k!r}"])


def channel_shuffle(b, name, x, groups):
    return x.rearranged(x.view.unflatten(1, (groups, -1)).transpose(1, 2).flatten(1, 2))


FUNCTIONS = {
    **{f: activation(f) for f in ACTIVATIONS},
    torch.relu: activation(F.relu), torch.sigmoid: activation(F.sigmoid),
    torch.tanh: activation(F.tanh), torch.relu_: activation(F.relu),
    F.conv2d: conv2d, torch.conv2d: conv2d, F.linear: linear, F.batch_norm: batch_norm,
    F.layer_norm: layer_norm, F.group_norm: group_norm,
    F.max_pool2d: pooled("maxpool", F.max_pool2d), F.avg_pool2d: pooled("avgpool", F.avg_pool2d),
    F.adaptive_avg_pool2d: adaptive("avgpool"), F.adaptive_max_pool2d: adaptive("maxpool"),
    torch.mean: mean, operator.add: add, operator.iadd: add, torch.add: add,
    operator.mul: mul, operator.imul: mul, torch.mul: mul, torch.cat: concat, torch.concat: concat,
    F.dropout: dropout, F.local_response_norm: local_response_norm,
    F.channel_shuffle: channel_shuffle, F.pad: pad, F.interpolate: interpolate,
    F.conv_transpose2d: conv_transpose2d, torch.conv_transpose2d: conv_transpose2d,
}
METHODS = {
    "relu": activation(F.relu), "relu_": activation(F.relu), "sigmoid": activation(F.sigmoid),
    "tanh": activation(F.tanh), "mean": mean, "add": add, "add_": add, "mul": mul, "mul_": mul,
}
CHANGING = {operator.iadd, operator.imul, torch.relu_, "relu_", "add_", "mul_"}  # their first value

# done to the view, by PyTorch itself
REARRANGING = {torch.flatten, torch.reshape, torch.permute, torch.transpose, torch.squeeze,
               torch.unsqueeze, torch.chunk, torch.split, operator.getitem}
REARRANGING_METHODS = {"view", "reshape", "flatten", "permute", "transpose", "contiguous", "squeeze",
                       "unsqueeze", "chunk", "split", "unflatten", "clone", "size", "dim"}

# Modules as functions: which, and with what.
MODULES = {
    nn.Conv2d: lambda m: (conv2d, dict(weight=m.weight, bias=m.bias, stride=m.stride,
                                       padding=m.padding, dilation=m.dilation, groups=m.groups)),
    nn.ConvTranspose2d: lambda m: (conv_transpose2d, dict(
        weight=m.weight, bias=m.bias, stride=m.stride, padding=m.padding,
        output_padding=m.output_padding, groups=m.groups, dilation=m.dilation)),
    nn.Upsample: lambda m: (interpolate, dict(size=m.size, scale_factor=m.scale_factor, mode=m.mode,
                                              align_corners=m.align_corners)),
    nn.ZeroPad2d: lambda m: (pad, dict(pads=m.padding)),
    nn.Linear: lambda m: (linear, dict(weight=m.weight, bias=m.bias)),
    nn.BatchNorm2d: lambda m: (batch_norm, dict(
        mean=m.running_mean, variance=m.running_var, weight=m.weight, bias=m.bias,
        momentum=m.momentum, eps=m.eps, tracked=m.num_batches_tracked)),
    nn.LayerNorm: lambda m: (layer_norm, dict(normalized_shape=m.normalized_shape,
                                              weight=m.weight, bias=m.bias, eps=m.eps)),
    nn.GroupNorm: lambda m: (group_norm, dict(num_groups=m.num_groups, weight=m.weight,
                                              bias=m.bias, eps=m.eps)),
    nn.ReLU: lambda m: (activation(F.relu), {}), nn.ReLU6: lambda m: (activation(F.relu6), {}),
    nn.SiLU: lambda m: (activation(F.silu), {}),
    nn.GELU: lambda m: (activation(F.gelu), dict(approximate=m.approximate)),
    nn.Hardswish: lambda m: (activation(F.hardswish), {}),
    nn.Hardsigmoid: lambda m: (activation(F.hardsigmoid), {}),
    nn.LeakyReLU: lambda m: (activation(F.leaky_relu), dict(negative_slope=m.negative_slope)),
    nn.Sigmoid: lambda m: (activation(F.sigmoid), {}), nn.Tanh: lambda m: (activation(F.tanh), {}),
    nn.MaxPool2d: lambda m: (FUNCTIONS[F.max_pool2d], dict(
        kernel_size=m.kernel_size, stride=m.stride, padding=m.padding, dilation=m.dilation,
        ceil_mode=m.ceil_mode, return_indices=m.return_indices)),
    nn.AvgPool2d: lambda m: (FUNCTIONS[F.avg_pool2d], dict(
        kernel_size=m.kernel_size, stride=m.stride, padding=m.padding, ceil_mode=m.ceil_mode,
        count_include_pad=m.count_include_pad, divisor_override=m.divisor_override)),
    nn.AdaptiveAvgPool2d: lambda m: (adaptive("avgpool"), dict(output_size=m.output_size)),
    nn.AdaptiveMaxPool2d: lambda m: (adaptive("maxpool"), dict(output_size=m.output_size)),
    nn.Dropout: lambda m: (dropout, dict(p=m.p)),
    nn.Identity: lambda m: (lambda b, name, x: x, {}),
    nn.Flatten: lambda m: (lambda b, name, x: x.rearranged(
        x.view.flatten(m.start_dim, m.end_dim)), {}),
    nn.Unflatten: lambda m: (lambda b, name, x: x.rearranged(
        x.view.unflatten(m.dim, m.unflattened_size)), {}),
    nn.LocalResponseNorm: lambda m: (local_response_norm, dict(size=m.size, alpha=m.alpha,
                                                               beta=m.beta, k=m.k)),
    nn.ChannelShuffle: lambda m: (channel_shuffle, dict(groups=m.groups)),
}
MODULES[nn.BatchNorm1d] = MODULES[nn.BatchNorm2d]
MODULES[nn.UpsamplingNearest2d] = MODULES[nn.UpsamplingBilinear2d] = MODULES[nn.Upsample]
