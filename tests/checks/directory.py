#!/usr/bin/env python3
"""directory.py TUTTI: a run's directory belongs to one run and to one process at a time, and what
is in it can be believed."""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import metrics

TUTTI = sys.argv[1]
NET = str(ROOT / "tests/nets/channels33.net")
TRAIN = [TUTTI, "train", NET, "--data", "synthetic,train=256,test=8", "-t", "1", "--eval-every",
         "never", "--checkpoint-every", "20steps"]
ENDLESS = ["--steps", "1000000"]
ENV = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
           OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_hwloc_base_binding_policy="none")
HAS_MPI = "[X] MPI: Open MPI" in subprocess.run([TUTTI, "--check-build"], capture_output=True,
                                               text=True).stdout
FAILURES = []


def expect(what, is_true, done=None):
    if not is_true:
        FAILURES.append(what)
        print("FAIL", what, *(("exit", done.returncode, done.stdout[-2000:], done.stderr[-2000:])
                              if done else ()))


def train(run, *words, launcher=(), **options):
    return subprocess.run([*launcher, *TRAIN, "--run", str(run), *map(str, words)], text=True,
                          capture_output=True, timeout=120, env=ENV, **options)


def wait_until(is_so, what):
    for _ in range(1200):
        if is_so():
            return
        time.sleep(0.05)
    raise SystemExit(f"{what}: not within a minute")


@contextlib.contextmanager
def training(run, *words, launcher=()):
    """A training under way, past its first checkpoint; ended at last."""
    with subprocess.Popen([*launcher, *TRAIN, *ENDLESS, "--run", str(run), *words], env=ENV,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: (run / "step_00000020").exists(), "the first checkpoint")
            yield process
        finally:
            process.terminate()


def contents(run):
    return {str(p.relative_to(run)): p.read_bytes() for p in run.rglob("*")
            if p.is_file() and not p.is_symlink()}


def check_other_run(scratch):
    """A directory that holds a run is not written into by another one."""
    run = scratch / "run"
    done = train(run, "--steps", 4)
    expect("a fresh run", done.returncode == 0 and not (run / "lock").exists(), done)
    before = contents(run)
    for words in (["--steps", 4, "--seed", 1], ["--steps", 4, "--weights", run],
                  ["--steps", 8, "--resume", scratch / "elsewhere"]):
        if "--resume" in words:
            shutil.copytree(run, scratch / "elsewhere", symlinks=True)
        done = train(run, *words)
        expect(f"{words} is refused", done.returncode == 2 and "holds another run" in done.stderr
               and all(way in done.stderr for way in ("--resume auto", "another --run",
                                                      "--overwrite", f"{run}.old'")), done)
        expect(f"{words} changes nothing", contents(run) == before)
    done = train(run, "--steps", 6, "--resume", run / "step_00000004")
    expect("going on is not refused", done.returncode == 0, done)


def check_overwrite(scratch):
    """--overwrite moves the old run away, and only when all else is well."""
    run = scratch / "run"
    for seed, old in enumerate((None, "run.old", "run.old.2")):
        before = contents(run) if old else {}
        done = train(run, "--steps", 2, "--overwrite", "--seed", seed, "--data", "nonsense")
        expect("wrong options move nothing", done.returncode != 0 and not
               (old and (scratch / old).exists()) and contents(run) == before, done)
        done = train(run, "--steps", 2, "--overwrite", "--seed", seed)
        expect("--overwrite", done.returncode == 0, done)
        expect("the old run is kept", not old or contents(scratch / old) == before)
        expect("the new one is another", contents(run) != before)
    for words in (["--resume", "auto"], ["--resume", run]):
        done = train(run, "--steps", 3, "--overwrite", *words)
        expect(f"--overwrite {words}", done.returncode == 2 and "--overwrite" in done.stderr, done)
    foreign = scratch / "foreign"
    foreign.mkdir()
    (foreign / "notes.txt").write_text("mine")
    done = train(foreign, "--steps", 2, "--overwrite")
    expect("foreign files stay", done.returncode == 0 and (foreign / "notes.txt").exists()
           and not (scratch / "foreign.old").exists(), done)


def check_in_use(scratch):
    """A second process is told who has the run; the lock ends with its owner."""
    run = scratch / "run"
    with training(run) as first:
        for words in (["--steps", 4], ["--resume", "auto"], ["--overwrite"]):
            done = train(run, *words)
            expect(f"in use: {words}", done.returncode == 7 and done.stderr.count("\n") == 1
                   and f"process {first.pid} on host {os.uname().nodename}" in done.stderr, done)
        done = subprocess.run([TUTTI, "test", NET, "--data", "synthetic,train=256,test=8",
                               "--weights", str(run)], capture_output=True, text=True)
        expect("reading needs no lock", done.returncode == 0, done)
        first.kill()
        first.wait()
        expect("a killed owner leaves its lock behind", (run / "lock").exists())
        steps = max(row["step"] for row in metrics.rows(run)) + 10
        done = train(run, "--resume", "auto", "--steps", steps)
        expect("the lock of a killed owner is free", done.returncode == 0, done)
    if HAS_MPI:
        with training(scratch / "ranks", launcher=["mpirun", "-n", "2"]):
            done = train(scratch / "ranks", "--steps", 4, launcher=["mpirun", "-n", "2"])
            expect("ranks in use", "is in use by process" in done.stderr, done)


def check_at_once(scratch):
    """Of many that start at the same moment one trains."""
    for i in range(3):
        command = [*TRAIN, "--run", str(scratch / f"run{i}"), "--steps", "400"]
        with contextlib.ExitStack() as stack:
            all_of_them = [stack.enter_context(subprocess.Popen(
                command + ["--seed", str(seed)], stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL)) for seed in range(4)]
            codes = sorted(process.wait() for process in all_of_them)
        expect(f"one of {codes} trains, the others are refused",
               codes.count(0) == 1 and set(codes[1:]) <= {2, 7})


CHECKS = [check_other_run, check_overwrite, check_in_use, check_at_once]
for check in CHECKS:
    with tempfile.TemporaryDirectory() as folder:
        check(pathlib.Path(folder).resolve())
sys.exit(1 if FAILURES else 0)
