"""What all trials share: the run that nothing disturbs, and how another is compared with it."""
import csv
import json
import os
import pathlib
import random
import re
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "bits"))
from runs import ENV, FILES

from jobs import Job

STEPS, EVERY, EVALUATE = 60, 6, 20
DATA = "synthetic,train=96,test=40"
OPTIONS = ["--data", DATA, "--grains", "8", "--steps", STEPS,
           "--checkpoint-every", f"{EVERY}steps", "--eval-every", f"{EVALUATE}steps",
           "--ema", 0.9, "--threads", 1, "--comm-core", "none", "--quiet"]
FILES = (*FILES, "ema.safetensors")
WEIGHTS = ("model.safetensors", "optimizer.safetensors", "ema.safetensors")
NET = HERE / "tiny.net"
RANKS = (1, 1, 2, 3)
SENTENCE = re.compile(r"^tutti[ :]", re.M)
LIMIT = 90  # seconds; trials take one or two


class Lab:
    def __init__(self, tutti, preload):
        self.tutti, self.preload = tutti, pathlib.Path(preload).resolve()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tutti-faults-")).resolve()
        self.cache = self.folder / "cache"
        self.seconds, self.calls = {}, {}
        self.jobs = []
        self.whole = self.folder / "whole"

    def train_whole(self):
        """The run that nothing disturbs, and how long it takes on each number of ranks."""
        for ranks in sorted(set(RANKS)):
            run = self.whole if ranks == 1 else self.fresh()
            job = self.train(run, ranks)
            begin = os.times().elapsed
            self.expect(job, {0})
            self.seconds[ranks] = os.times().elapsed - begin

    def end_all(self):
        for job in self.jobs:
            job.end()
        self.jobs = []

    def close(self):
        self.end_all()
        shutil.rmtree(self.folder)

    def fresh(self, name="run"):
        """A place for a run; what the last trial left there is gone."""
        path = self.folder / name
        for old in (path, path.with_name(path.name + ".old")):
            shutil.rmtree(old, ignore_errors=True)
        return path

    def start(self, words, ranks=1, env=None, launched=False):
        launcher = ["mpirun", "-n", ranks] if ranks > 1 or launched else []
        self.jobs.append(Job([*launcher, self.tutti, *words],
                             {**ENV, "XDG_CACHE_HOME": str(self.cache), **(env or {})}))
        return self.jobs[-1]

    def train(self, run, ranks=1, *more, env=None, launched=False):
        return self.start(["train", NET, *OPTIONS, "--run", run, *more], ranks, env, launched)

    def resume(self, run, ranks=1, *more, **how):
        return self.train(run, ranks, "--resume", "auto", *more, **how)

    def expect(self, job, codes, silent=()):
        """Waits; the exit code must be one of these, and a failure, unless it is of those that were
        made from outside, has its sentence."""
        code = job.wait(LIMIT)
        self.jobs.remove(job)
        output = job.output()
        if code not in {*codes, *silent}:
            raise AssertionError(f"exit {code}, not {sorted({*codes, *silent})}: {job}\n"
                                 f"{output[-2000:]}")
        if code and code not in silent and not SENTENCE.search(output):
            raise AssertionError(f"exit {code} without a sentence: {job}\n{output[-2000:]}")
        return code

    def must_equal_whole(self, run, metrics=True, best=True):
        """The last checkpoint, the best one and the metrics are those of the undisturbed run. After
        a full disk the best is one of those that had room."""
        for link in ("latest", "best") if best else ("latest",):
            mine, other = os.readlink(run / link), os.readlink(self.whole / link)
            if mine != other:
                raise AssertionError(f"{run}/{link} is {mine}, not {other}")
        if not (run / "best" / "state.json").exists():
            raise AssertionError(f"{run}/best is no checkpoint")
        for name in FILES if best else WEIGHTS:
            if (run / "latest" / name).read_bytes() != (self.whole / "latest" / name).read_bytes():
                raise AssertionError(f"{run}/latest/{name} is not that of the undisturbed run")
        for read, name in ((rows, "metrics.jsonl"), (records, "metrics.csv")) if metrics else ():
            if read(run / name) != read(self.whole / name):
                raise AssertionError(f"{run}/{name} is not that of the undisturbed run")

    def must_resume(self, dice, run, **how):
        """Going on, on any number of ranks, leads where the undisturbed run went."""
        self.expect(self.resume(run, dice.choice(RANKS)), {0})
        self.must_equal_whole(run, **how)


def rows(path):
    """The rows of steps and evaluations, without times and what depends on them."""
    try:
        found = [json.loads(line) for line in open(path)]
    except ValueError as problem:
        raise AssertionError(f"{path}: {problem}") from None
    return [{k: v for k, v in row.items() if k not in ("time", "sum", "crc")} for row in found
            if row.get("phase") in ("train", "val", "test")]


TIMES = ("seconds", "samples_per_s", "data_wait_s", "comm_exposed_s")


def records(path):
    with open(path, newline="") as file:
        return [{k: v for k, v in row.items() if k not in TIMES} for row in csv.DictReader(file)]


def die(seed, kind, index):
    return random.Random(f"{seed} {kind} {index}")
