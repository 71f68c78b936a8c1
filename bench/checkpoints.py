#!/usr/bin/env python3
"""checkpoints.py TUTTI [--rounds N] [NET STEPS EVERY]...: what a checkpoint costs training.

Each round trains a net three times: without checkpoints but for the first and the last, with one
every EVERY steps, and with those and --checkpoint-sync. The best time of each counts, since what
else the machine does only ever adds to it. The cost of one checkpoint is the difference, divided
by their number: in milliseconds, in steps, and in percent of the time between two."""
import argparse
import pathlib
import subprocess
import sys
import tempfile
import time

USUAL = ["lenet", "400", "40", "cifar-vgg", "40", "10"]


def train(tutti, folder, net, steps, every, *more):
    run = pathlib.Path(folder) / "run"
    began = time.monotonic()
    subprocess.run([tutti, "train", net, "--data", "synthetic", "--steps", steps, "--run", run,
                    "--checkpoint-every", f"{every}steps", "--eval-every", "never", "--quiet",
                    "--overwrite", *more],
                   check=True, stderr=subprocess.DEVNULL)
    return time.monotonic() - began


def measure(tutti, net, steps, every, rounds):
    ways = {"none": (steps, ()), "behind": (every, ()), "sync": (every, ("--checkpoint-sync",))}
    best = dict.fromkeys(["start", *ways], float("inf"))
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            best["start"] = min(best["start"], train(tutti, folder, net, "1", "1"))
            for way, (span, more) in ways.items():
                best[way] = min(best[way], train(tutti, folder, net, str(steps), span, *more))
    step = (best["none"] - best["start"]) / (steps - 1)
    count = (steps - 1) // every
    for way in ("behind", "sync"):
        cost = (best[way] - best["none"]) / count
        print(f"{net:12} {1e3 * step:8.2f} ms a step, every {every:4} steps, {way:6}: "
              f"{1e3 * cost:8.2f} ms a checkpoint, {cost / step:6.2f} steps, "
              f"{100 * cost / (every * step):6.2f} % of the time between two", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("tutti")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("nets", nargs="*", default=USUAL, metavar="NET STEPS EVERY")
    given = parser.parse_intermixed_args()
    if len(given.nets) % 3:
        parser.error("NET STEPS EVERY: three words for each net")
    for net, steps, every in zip(*[iter(given.nets)] * 3):
        measure(given.tutti, net, int(steps), int(every), given.rounds)


if __name__ == "__main__":
    sys.exit(main())
