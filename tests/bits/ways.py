#!/usr/bin/env python3
"""ways.py TUTTI: ways of training have the same bits on any number of ranks, also where a run was
left in the middle and goes on; and each of them makes a difference."""
import pathlib
import shutil
import sys
import tempfile

import runs
from runs import same

TUTTI = sys.argv[1]
HERE = pathlib.Path(__file__).parent
NETS = HERE.parent / "nets"
SMALL = [str(HERE / "small.net"), "--data", "synthetic", "--grains", "8", "--steps", "8"]
BASE = ["--eval-every", "2steps", "--checkpoint-every", "3steps", "--keep", "0", "--threads", "1"]

# name: the options, and how to do without what they are about; runs are resumed at step 3
CASES = {
    "one cycle": ([*SMALL, "--lr-schedule", "onecycle:0.4:10"], ["--lr-schedule", "fixed"]),
    "smoothed labels": ([*SMALL, "--label-smoothing", "0.1"], ["--label-smoothing", "0"]),
    "weights of classes": ([*SMALL, "--label-smoothing", "0.1", "--class-weights", "FILE"],
                           ["--class-weights", "none"]),
    "inverse frequencies": ([SMALL[0], "--data", "synthetic,train=300", *SMALL[3:], "--class-weights",
                             "auto", "--clip", "1"], ["--class-weights", "none"]),
    "average": ([*SMALL, "--ema", "0.8"], ["--eval-weights", "model"]),
    "average of statistics": ([str(NETS / "batchnorm.net"), *SMALL[1:], "--ema", "0.8", "--clip", "1"],
                              ["--eval-weights", "model"]),
    "mixed samples": ([SMALL[0], "--data", "synthetic,train=90,mixup=0.4", *SMALL[3:], "--class-weights",
                       "FILE", "--label-smoothing", "0.1"], ["--augment", "off"]),
    "patience": ([*SMALL, "--lr", "0", "--patience", "2"], ["--patience", "0"]),
}


def train(run, ranks, *options):
    return runs.train(TUTTI, run, ranks, *options, *BASE)


def last(run):
    return (run / "latest").resolve().name


def check(folder, options, without):
    (folder / "weights").write_text("".join(f"{0.1 + 0.03 * i}\n" for i in range(130)))
    options = [str(folder / "weights") if word == "FILE" else word for word in options]
    one = train(folder / "one", 1, *options)
    for ranks in 2, 3:
        yield f"{ranks} ranks", lambda ranks=ranks: same(
            one, train(folder / f"ranks{ranks}", ranks, *options))

    def resumed():
        run = folder / "resumed"
        run.mkdir()
        shutil.copytree(one / "step_00000003", run / "step_00000003")
        same(one, train(run, 4, *options, "--resume", "auto"), metrics=False)
    yield "resumed on 4 ranks", resumed

    def differs():
        other = train(folder / "without", 1, *options, *without)
        weights = [(run / "latest/model.safetensors").read_bytes() for run in (one, other)]
        assert (weights[0] != weights[1] or last(one) != last(other) or
                runs.losses(one) != runs.losses(other)), "it makes no difference"
    yield "it makes a difference", differs


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        for case, (options, without) in CASES.items():
            folder = pathlib.Path(name) / case.replace(" ", "-")
            folder.mkdir()
            for what, run in check(folder, options, without):
                failed += not runs.report(f"{case}: {what}", run)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
