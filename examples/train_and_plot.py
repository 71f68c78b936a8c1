#!/usr/bin/env python3
"""Trains a net on arrays, plots its curve and asks it about new samples: bars that lie, stand or lean."""
import numpy as np
import tutti
from matplotlib import pyplot

NET = """
input 1 12 12
conv1 conv 8 kernel=3 pad=1 relu
pool1 maxpool kernel=2
fc2   fc 3
loss  softmax
"""


def make(count, chance):
    """Pictures and what is on them."""
    y, x = np.indices((12, 12))
    labels, at = chance.integers(0, 3, count), chance.integers(0, 12, count)
    bars = [[y == a, x == a, (x + y) % 12 == a][k] for k, a in zip(labels, at)]
    noise = chance.random((count, 1, 12, 12))
    return (np.array(bars)[:, None] + noise).astype(np.float32), labels


result = tutti.train(NET, make(3000, np.random.default_rng(1)), epochs=2, batch_size=32, lr=0.05,
                     classes=["lies", "stands", "leans"], run="bars", overwrite=True)
print(f"{result.steps} steps, {100 * result.top1:.1f} % of the held out pictures are told right")

steps = [news for news in result.history if news.phase == "train"]
pyplot.plot([news.step for news in steps], [news.loss for news in steps])
pyplot.savefig("bars.svg")

pictures, truth = make(100, np.random.default_rng(2))
with tutti.Model(NET, batch_size=32, weights="bars") as model:
    answers = model.forward(pictures).argmax(axis=1)
print(f"{(answers == truth).sum()} of 100 new ones")
