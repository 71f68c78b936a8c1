"""The texts of models/*.net, without blocks: an independent reader for the opponents."""
import pathlib

MODELS = pathlib.Path(__file__).resolve().parent.parent / "models"


def read(path):
    """The input's shape and a list of (name, kind, words, key=value pairs)."""
    shape, layers = None, []
    for line in open(path):
        words = line.split("#")[0].split()
        if not words or words[0] in ("default", "tutti"):
            continue
        if words[0] == "input":
            shape = tuple(int(n) for n in words[1:])
            continue
        pairs = dict(w.split("=") for w in words[2:] if "=" in w)
        layers.append((words[0], words[1], [w for w in words[2:] if "=" not in w], pairs))
    return shape, layers


def named(name):
    """The text of a net of the zoo, or of a file."""
    return read(name if name.endswith(".net") else MODELS / f"{name}.net")


def pair(pairs, key, otherwise):
    """(height, width) of a number or HEIGHTxWIDTH."""
    sizes = [int(n) for n in pairs[key].split("x")] if key in pairs else otherwise
    return tuple(sizes * 2) if len(sizes) == 1 else tuple(sizes)


def inputs_of(kind, words, pairs, names):
    """The names of a layer's inputs, of those that are known."""
    if kind in ("add", "concat", "mul"):
        return [w for w in words if w in names]
    return [pairs.get("from", names[-1])]
