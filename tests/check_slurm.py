#!/usr/bin/env python3
"""check_slurm.py TUTTI: a job of examples/train.sbatch on a real Slurm of two nodes (tools/slurm-hosts) is
told by SIGUSR1 that its time is up, is requeued, resumes, and ends with the bytes of a run that nothing
disturbed. Exits with 77 and a sentence where such a cluster cannot be made."""
import filecmp
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILES = ("model.safetensors", "optimizer.safetensors")
NET = ["lenet", "--data", "synthetic"]
STEPS = 60
OPTIONS = ["--batch-size", "64", "--steps", str(STEPS), "--eval-every", "never", "--threads", "1",
           "--checkpoint-every", "10steps", "--quiet"]


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def state(job):
    """(state, how often it was started again) as Slurm has it."""
    text = output("scontrol", "show", "job", job)
    return re.search(r"JobState=(\w+)", text)[1], int(re.search(r"Restarts=(\d+)", text)[1])


def wait_until(what, is_true, seconds=180):
    end = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > end:
            sys.exit(f"FAIL after {seconds} s: {what}")
        time.sleep(0.2)
    print(f"[       OK ] {what}", flush=True)


def submit(tutti, folder):
    environment = {**os.environ, "TUTTI": tutti, "NET": NET[0], "DATA": NET[2],
                   "RUN": str(folder / "job"), "OPTIONS": " ".join(OPTIONS)}
    done = subprocess.run(["sbatch", "--parsable", "--nodes=2", f"--output={folder}/log",
                           ROOT / "examples/train.sbatch"], env=environment, check=True,
                          capture_output=True, text=True)
    return done.stdout.strip()


def on_the_login_node(tutti, folder):
    """A job that is stopped once and goes on; afterwards its files are those of 'alone'."""
    folder = pathlib.Path(folder)
    wait_until("both nodes are idle", lambda: "2 idle" in output("sinfo", "-ho", "%D %t"))
    job = submit(tutti, folder)
    wait_until("the job has written a checkpoint", lambda: (folder / "job/latest").exists())
    subprocess.run(["scancel", "--signal=USR1", job], check=True)
    wait_until("it was requeued", lambda: state(job)[1] == 1)
    wait_until("it is done", lambda: state(job)[0] in ("COMPLETED", "FAILED", "CANCELLED"), 600)
    if state(job)[0] != "COMPLETED" or not (folder / f"job/step_{STEPS:08}").exists():
        logs = [folder / "log", *pathlib.Path(os.environ["SLURM_HOSTS"], "log").glob("node*")]
        sys.exit("\n".join(["FAIL the job ended otherwise", *(p.read_text() for p in logs)]))


def main():
    if sys.argv[1] == "--login":
        on_the_login_node(*sys.argv[2:])
        return
    tutti = os.path.realpath(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="tutti-slurm-", dir="/tmp") as temporary:
        folder = pathlib.Path(temporary)
        code = subprocess.call([ROOT / "tools/slurm-hosts", "2", sys.executable, __file__, "--login",
                                tutti, temporary])
        if code:
            sys.exit(code)
        subprocess.run([tutti, "train", *NET, *OPTIONS, "--run", str(folder / "alone")], check=True)
        same = [filecmp.cmp(folder / "alone/latest" / f, folder / "job/latest" / f, shallow=False)
                for f in FILES]
        print("[       OK ]" if all(same) else "[  FAILED  ]", "the bytes of an undisturbed run")
        sys.exit(0 if all(same) else 1)


main()
