#!/usr/bin/env python3
"""check.py TUTTI PRELOAD [--seconds S] [--seed N] [--only KIND [--trial N]]: what a run survives.

Trials of several kinds disturb a small run in random ways, each kind for its share of the time.
After each the run goes on to the bits of one that nothing disturbed, or says in a sentence, with
the exit code of tutti(1), why not; nothing is waited for without end. A trial that fails says how
to try it alone."""
import argparse
import collections
import os
import subprocess
import sys
import time
import traceback

import calls
import damage
import full
import kills
import writers
from lab import Lab, die

# what is tried, its share of the time, and how many trials there are at least in ten minutes
KINDS = {
    "kills": (kills.trial, 0.2, 10),
    "calls": (calls.trial, 0.2, 10),
    "full": (full.trial, 0.07, 10),
    "writers": (writers.trial, 0.08, 10),
    "damage": (damage.trial, 0.45, 1000),
}


class Kind:
    def __init__(self, name):
        self.name = name
        self.trial, self.share, self.least = KINDS[name]
        self.spent, self.tried, self.failed = 0, 0, 0
        self.outcomes = collections.Counter()

    def run(self, lab, seed, index):
        start = time.monotonic()
        try:
            self.outcomes[self.trial(lab, die(seed, self.name, index))] += 1
        except (AssertionError, OSError, ValueError, subprocess.SubprocessError) as problem:
            self.failed += 1
            if not isinstance(problem, AssertionError):
                traceback.print_exc(file=sys.stdout)
            print(f"{problem}\nagain: --seed {seed} --only {self.name} --trial {index}\n",
                  flush=True)
        self.tried += 1
        self.spent += time.monotonic() - start

    def lacks(self, seconds):
        return self.tried < self.least * seconds / 600

    def report(self):
        """One line, as cmocka has it, so that it is counted."""
        what = ", ".join(f"{count} {name}" for name, count in sorted(self.outcomes.items()))
        print(f"{self.name}: {self.tried} trials in {self.spent:.0f} s: {what}")
        print(f"[  FAILED  ] {self.name}" if self.failed else f"[       OK ] {self.name}",
              flush=True)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tutti")
    parser.add_argument("preload")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", default=str(time.time_ns()))
    parser.add_argument("--only", choices=KINDS)
    parser.add_argument("--trial", type=int)
    return parser.parse_args()


def main():
    given = arguments()
    kinds = [Kind(name) for name in ([given.only] if given.only else KINDS)]
    print(f"seed {given.seed}", flush=True)
    lab = Lab(os.path.abspath(given.tutti), given.preload)
    try:
        lab.train_whole()
        if not full.is_possible(lab) and given.only != "full":
            print("full: skipped: only root can mount a small disk")
            kinds = [kind for kind in kinds if kind.name != "full"]
        end = time.monotonic() + given.seconds
        if given.trial is not None:
            kinds[0].run(lab, given.seed, given.trial)
        while given.trial is None:
            due = [k for k in kinds if time.monotonic() < end or k.lacks(given.seconds)]
            if not due:
                break
            kind = min(due, key=lambda k: k.spent / k.share)
            kind.run(lab, given.seed, kind.tried)
    finally:
        lab.close()
    for kind in kinds:
        kind.report()
    return 1 if any(kind.failed for kind in kinds) else 0


if __name__ == "__main__":
    sys.exit(main())
