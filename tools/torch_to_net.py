"""A PyTorch module as a net's text and tensors: what tools/from-torch does.

The module is traced by torch.fx, and its graph is walked once. A value in it is a layer of the net
and a *view*: a tensor of whole numbers that says for every element PyTorch sees, of two samples,
which element of the layer's output (sample, channel, row, column) it is. What only rearranges
(view, permute, flatten, chunk, ...) is done to that tensor, by PyTorch itself, and costs no layer;
what computes looks at it: is it the whole output in its order, some of its channels (slice), its
channels in another order (shuffle), or with channels last? Anything else is named and refused.
"""
import json
import operator

import torch
import torch.fx

from torch_layers import (ACTIVATIONS, CHANGING, FUNCTIONS, FUSING, METHODS, MODULES, REARRANGING,
                          REARRANGING_METHODS, Builder, Unknown, Value, numbered, stochastic_depth)


class Walk:
    def __init__(self, module, shape):
        self.module, self.builder, self.values = module, Builder(module, shape), {}

    def known(self, argument):
        return torch.fx.node.map_arg(argument, lambda n: self.values[n])

    def run(self, graph):
        for node in graph.nodes:
            try:
                result = getattr(self, node.op)(node)
            except Unknown as error:
                raise Unknown(f"{self.place(node)}: {error}") from None
            if node.op == "output":
                return result
            self.values[node] = result
        raise Unknown("the module gives nothing back")

    def place(self, node):
        target = node.target if isinstance(node.target, str) else \
            getattr(node.target, "__name__", str(node.target))
        stack = list((node.meta.get("nn_module_stack") or {}).values())
        within = f" in module '{stack[-1][0]}'" if stack and isinstance(stack[-1], tuple) else ""
        if node.op == "call_module":
            return f"module '{target}' ({type(self.module.get_submodule(target)).__name__})"
        return f"operation '{target}'{within}"

    def placeholder(self, node):
        if any(isinstance(v, Value) for v in self.values.values()):
            raise Unknown("a second input")
        layer = self.builder.input
        view = numbered(layer.shape)
        return Value(layer, view if layer.shape[1:] != (1, 1) else view.flatten(1))

    def get_attr(self, node):
        owner, _, name = node.target.rpartition(".")
        return getattr(self.module.get_submodule(owner), name)

    def call_module(self, node):
        module = self.module.get_submodule(node.target)
        if type(module) not in MODULES:
            raise Unknown("there is nothing like it")
        if getattr(module, "padding_mode", "zeros") != "zeros":
            raise Unknown(f"padding with '{module.padding_mode}'")
        function, options = MODULES[type(module)](module)
        result = function(self.builder, node.target, *self.known(node.args), **options)
        if getattr(module, "inplace", False):
            self.values[node.args[0]] = result
        return result

    def call(self, node, table, rearranging, done):
        """A function or method: one that computes, one that rearranges, or Python's own."""
        args, options = self.known(node.args), self.known(node.kwargs)
        values = [v for v in torch.utils._pytree.tree_leaves([args, options])
                  if isinstance(v, Value)]
        if not values:
            return done(*args, **options)
        if node.target in rearranging and isinstance(args[0], Value):
            return self.rearrange(args[0], lambda view: done(view, *args[1:], **options))
        function = table.get(node.target)
        if getattr(node.target, "__name__", "") == "stochastic_depth":
            function = stochastic_depth
        if function is None:
            raise Unknown("there is nothing like it")
        result = function(self.builder, self.wanted(node), *args, **options)
        if node.target in CHANGING or options.get("inplace"):
            self.values[node.args[0]] = result
        return result

    def wanted(self, node):
        """The name of what has weights is theirs; of others the graph's."""
        weights = [a for a in [*node.args, *node.kwargs.values()]
                   if isinstance(a, torch.fx.Node) and a.op == "get_attr"]
        return weights[0].target.rpartition(".")[0] or weights[0].target if weights else node.name

    def rearrange(self, value, done):
        result = done(value.view)
        if isinstance(result, torch.Tensor):
            return value.rearranged(result)
        if isinstance(result, (tuple, list)) and any(isinstance(r, torch.Tensor) for r in result):
            return type(result)(value.rearranged(r) for r in result)
        return result

    def call_function(self, node):
        if node.target is getattr:
            return getattr(self.known(node.args[0]).view, node.args[1])
        if node.target is operator.getitem and not isinstance(self.known(node.args[0]), Value):
            return operator.getitem(*self.known(node.args))
        if getattr(node.target, "__name__", "") == "_assert":
            return None
        return self.call(node, FUNCTIONS, REARRANGING, node.target)

    def call_method(self, node):
        return self.call(node, METHODS, REARRANGING_METHODS,
                         lambda first, *args, **options: getattr(first, node.target)(
                             *args, **options))

    def output(self, node):
        result = self.known(node.args[0])
        if not isinstance(result, Value):
            raise Unknown("the module gives several outputs")
        result = self.builder.whole(result)
        if result.view.dim() != 2:
            raise Unknown(f"the module gives {list(result.shape[1:])}, not one value per class")
        return result


def fuse(layers):
    """Activations at the end of the layer they belong to, where nobody else reads that one."""
    readers = {}
    for layer in layers:
        for source in layer.inputs:
            readers[source] = readers.get(source, 0) + 1
    gone = {}
    for layer in layers:
        layer.inputs = [gone.get(source, source) for source in layer.inputs]
        below = layer.inputs[0] if layer.inputs else None
        if (layer.kind in ACTIVATIONS.values() and not layer.words and below.kind in FUSING
                and not below.activation and readers[below] == 1):
            below.activation, gone[layer] = layer.kind, below
            readers[below] = readers.get(layer, 0)
    return [layer for layer in layers if layer not in gone]


def text_of(shape, layers, about):
    lines = ["tutti net 1", *(f"# {line}" for line in about),
             "input " + " ".join(map(str, shape if shape[1:] != (1, 1) else shape[:1])), ""]
    width = max(len(layer.name) for layer in layers)
    above = "input"
    for layer in layers:
        words = [f"{layer.name:{width}}", layer.kind]
        if layer.kind in ("add", "mul", "concat"):
            words += [source.name for source in layer.inputs]
        words += layer.words + ([layer.activation] if layer.activation else [])
        if layer.kind not in ("add", "mul", "concat") and layer.inputs[0].name != above:
            words.append(f"from={layer.inputs[0].name}")
        lines.append(" ".join(words))
        above = layer.name
    return "\n".join(lines + [f"{'loss':{width}} softmax", ""])


def convert(module, shape, about=()):
    """The module, for samples of that shape (c, h, w), as a net's text and its named tensors."""
    try:
        graph = torch.fx.Tracer().trace(module.train())
    except Unknown:
        raise
    except Exception as error:
        raise Unknown(f"torch.fx cannot trace the module: {error}") from error
    walk = Walk(module, shape)
    walk.run(graph)
    if "loss" in walk.builder.names:
        raise Unknown("a module is called 'loss': give it another name")
    return text_of(shape, fuse(walk.builder.layers), about), walk.builder.tensors


def write_safetensors(path, tensors):
    """One tensor after another, so that large ones are held once."""
    types = {torch.int64: ("I64", 8), torch.float32: ("F32", 4)}
    kind_of = lambda t: torch.int64 if t.dtype == torch.int64 else torch.float32
    header, at = {}, 0
    for name, tensor in tensors.items():
        word, size = types[kind_of(tensor)]
        header[name] = {"dtype": word, "shape": list(tensor.shape),
                        "data_offsets": [at, at + tensor.numel() * size]}
        at += tensor.numel() * size
    text = json.dumps(header).encode()
    text += b" " * (-(8 + len(text)) % 64)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in tensors.values():
            file.write(tensor.to(kind_of(tensor)).contiguous().cpu().numpy().data)
