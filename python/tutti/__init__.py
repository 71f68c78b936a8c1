"""Tutti: synchronous SGD on clusters of CPUs, the same bits for any number of nodes.

    import tutti
    result = tutti.train("lenet", (pictures, labels), epochs=3, watch=print)

    with tutti.Model("lenet", batch_size=64, lr=0.05) as model:
        for x, y in batches:
            print(model.step(x, y).loss)
        print(model.forward(x).argmax(axis=1))

This package only hands over: everything is done by the library libtutti.so, found by $TUTTI_LIBRARY,
beside the program tutti, or where the system looks for libraries. doc/PYTHON.md has more.
"""
from ._library import Error, version
from .checkpoint import Checkpoint, load_checkpoint
from .model import Model, Score, Step
from .net import Layer, Net, nets
from .planning import plan, platforms, simulate
from .ranks import Ranks
from .training import News, Result, train

__version__ = version()
__all__ = ["Checkpoint", "Error", "Layer", "Model", "Net", "News", "Ranks", "Result", "Score", "Step",
           "load_checkpoint", "nets", "plan", "platforms", "simulate", "train", "version"]
