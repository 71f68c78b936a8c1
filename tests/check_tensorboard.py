#!/usr/bin/env python3
"""check_tensorboard.py TUTTI: what --tensorboard writes, read by TensorBoard's own reader, is what
metrics.jsonl has; also after a run went on, twice, with steps that were lost between."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from tensorboard.backend.event_processing import event_accumulator

TUTTI = sys.argv[1]


def train(run, steps):
    subprocess.run([TUTTI, "train", "lenet", "--data", "synthetic,train=256,test=64", "-q",
                    "--batch-size=16", "--threads=1", "--eval-every=5", "--checkpoint-every=5",
                    f"--steps={steps}", "--run", run, "--resume=auto", "--tensorboard"], check=True)


def lose_steps(run, step):
    """As if the run had been killed after its checkpoint of that step."""
    for folder in pathlib.Path(run).glob("step_*"):
        if int(folder.name[5:]) > step:
            shutil.rmtree(folder)
    latest = pathlib.Path(run, "latest")
    latest.unlink()
    latest.symlink_to(f"step_{step:08d}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        run = os.path.join(folder, "run")
        train(run, 12)
        lose_steps(run, 5)
        train(run, 17)
        train(run, 21)
        reader = event_accumulator.EventAccumulator(run, size_guidance={"scalars": 0})
        reader.Reload()
        tags = reader.Tags()["scalars"]
        rows = [json.loads(line) for line in open(f"{run}/metrics.jsonl")]
        for phase in ("train", "test"):
            for tag, key in (("loss", "loss"), ("accuracy", "top1")):
                wanted = [(r["step"], r[key]) for r in rows if r["phase"] == phase]
                found = [(e.step, e.value) for e in reader.Scalars(f"{phase}/{tag}")]
                steps = [s for s, _ in wanted] == [s for s, _ in found]
                close = steps and all(abs(a - b) <= 1e-6 * abs(a) for (_, a), (_, b)
                                      in zip(wanted, found))
                print(f"{phase}/{tag}: {len(found)} values, {'equal' if close else 'NOT EQUAL'}")
                if not close:
                    sys.exit(f"{wanted}\n{found}")
        print("curves:", ", ".join(sorted(tags)))


main()
