#!/usr/bin/env python3
"""random_nets.py TUTTI TEST_RANDOM [--seed N] [--seconds S | --count N]: random nets through the
program, on 2 to 4 ranks with random plans, threads, instruction sets and ways to exchange.

TEST_RANDOM --print makes the nets (tests/random_net.h). Seeds N, N+1, ... are tried; each net is
trained on one rank and thread, then differently, and must end with the same bytes and losses. What
fails is shown with its net and the commands."""
import argparse
import pathlib
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

import runs

WAYS = 3  # to train a net again


class Net:
    def __init__(self, maker, seed):
        self.text = subprocess.run([maker, "--print", "--seed", str(seed)], capture_output=True,
                                   text=True, check=True).stdout
        words = [line.split() for line in self.text.splitlines()]
        self.splits = {w[2]: int(w[3]) for w in words if w[:2] == ["#", "split"]}

    def plan(self, ranks, dice):
        """A plan's text: for each fc layer any number of groups that it allows."""
        lines = ["tutti plan 1\n"]
        for name, features in self.splits.items():
            groups = dice.choice([g for g in range(1, ranks + 1)
                                  if ranks % g == 0 and ranks // g <= -(-features // 64)])
            lines.append(f"{name} hybrid groups={groups}\n" if 1 < groups < ranks else
                         f"{name} {'model' if groups == 1 else 'data'}\n")
        return "".join(lines)


def common_options(dice):
    """What decides the bits."""
    batch = dice.choice((5, 8, 13))
    options = ["--data", "synthetic,test=50", "--batch-size", str(batch), "--grains", "4",
               "--steps", "4", "--lr", "0.01", "--momentum", dice.choice(("0", "0.9")),
               "--weight-decay", dice.choice(("0", "0.001")), "--seed", str(dice.randrange(1000)),
               "--eval-every", dice.choice(("never", "2steps"))]
    if dice.random() < 0.2:
        options += ["--clip", "0.5"]
    if dice.random() < 0.4:
        options += ["--precision", "bf16"]
    return options + dice.choice(([], ["--nesterov"]) if "0.9" in options else ([],))


def way(tutti, folder, net, dice):
    """(ranks, options, environment): what must not matter."""
    ranks = dice.choice((2, 3, 4))
    plan = dice.choice(("data", "file", "file", "model", "auto"))
    if plan == "file":
        path = folder / "plan"
        path.write_text(net.plan(ranks, dice))
        plan = str(path)
    options = ["--plan", plan, "--threads", str(dice.choice((1, 1, 2)))]
    if dice.random() < 0.5:
        options += ["--micro-batch", str(dice.choice((2, 4, 5)))]
    if dice.random() < 0.2:
        options += ["--overlap", "off"]
    if dice.random() < 0.3:
        algorithms = ("direct", "bruck") if ranks == 3 else ("direct", "bruck", "halving")
        options += ["--part-reduce", dice.choice(algorithms)]
    isa = dice.choice(runs.rows(tutti))
    return ranks, options, {"TUTTI_ISA": isa, "OMP_WAIT_POLICY": "passive"}


def train_as_advised(tutti, run, ranks, options, env):
    """What is refused names the smallest micro-batch that works."""
    try:
        return runs.train(tutti, run, ranks, *options, env=env)
    except AssertionError as refusal:
        advice = re.search(r"(?s)exit 2: .*--micro-batch \d+: .*?--micro-batch (\d+)", str(refusal))
        if not advice:
            raise
        options[options.index("--micro-batch") + 1] = advice[1]
        return runs.train(tutti, run, ranks, *options, env=env)


def compare(tutti, folder, net, dice):
    """Trains the net, then again; on failure the commands are in the exception."""
    path = folder / "random.net"
    path.write_text(net.text)
    common = [str(path), *common_options(dice)]
    commands = [runs.command(tutti, "one", 1, *common, "--threads", "1")]
    try:
        one = runs.train(tutti, folder / "one", 1, *common, "--threads", "1")
        for _ in range(WAYS):
            ranks, options, env = way(tutti, folder, net, dice)
            commands[1:] = [["env", *(f"{k}={v}" for k, v in env.items()),
                             *runs.command(tutti, "other", ranks, *common, *options)]]
            other = train_as_advised(tutti, folder / "other", ranks, [*common, *options], env)
            runs.same(one, other)
            shutil.rmtree(other)
    except (AssertionError, subprocess.SubprocessError) as problem:
        plan = folder / "plan"
        shown = f"plan:\n{plan.read_text()}" if plan.exists() else ""
        lines = "\n".join(shlex.join(c) for c in commands).replace(f"{folder}/", "")
        raise AssertionError(f"{problem}\n{net.text}{shown}{lines}") from problem


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tutti")
    parser.add_argument("maker")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=25)
    parser.add_argument("--count", type=int, default=0)
    o = parser.parse_args()
    begin, seed, tried = time.monotonic(), o.seed, 0

    def run():
        nonlocal seed, tried
        while tried < o.count if o.count else not tried or time.monotonic() - begin < o.seconds:
            net = Net(o.maker, seed)
            print(f"seed {seed}", flush=True)
            with tempfile.TemporaryDirectory() as name:
                compare(o.tutti, pathlib.Path(name), net, random.Random(seed))
            tried += 1
            seed += 1

    passed = runs.report("random nets through the program", run)
    if not passed:
        print(f"again: {shlex.join([sys.argv[0], o.tutti, o.maker])} --seed {seed} --count 1")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
