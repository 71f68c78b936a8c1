"""Runs of tutti train for the checks of equal bits, and how their cases are counted."""
import functools
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from metrics import rows as rows_of

FILES = ("model.safetensors", "optimizer.safetensors", "state.json", "SHA256SUMS")
ENV = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
           OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_mpi_yield_when_idle="1",
           OMPI_MCA_hwloc_base_binding_policy="none")


@functools.cache
def launcher_of(tutti):
    """Of the MPI that the program was built with."""
    done = subprocess.run([tutti, "--check-build"], capture_output=True, text=True, check=True)
    return "mpiexec.mpich" if "MPI: MPICH" in done.stdout else "mpirun"


def command(tutti, run, ranks, *options):
    launcher = [launcher_of(tutti), "-n", str(ranks)] if ranks > 1 else []
    return [*launcher, tutti, "train", *options, "--run", str(run), "--quiet", "--comm-core", "none"]


def train(tutti, run, ranks, *options, env=None, timeout=600):
    done = subprocess.run(command(tutti, run, ranks, *options), env=dict(ENV, **(env or {})),
                          capture_output=True, text=True, timeout=timeout)
    if done.returncode:
        raise AssertionError(f"exit {done.returncode}: {done.stderr.strip()[-2000:]}")
    return run


@functools.cache
def rows(tutti, here=True):
    """The instruction sets that have kernels: those this machine can run, or all that were built."""
    done = subprocess.run([tutti, "--check-build"], capture_output=True, text=True, check=True)
    return re.findall(r"kernels for (\w+)" + ("$" if here else ""), done.stdout, re.M)


def losses(run):
    return [{k: v for k, v in row.items() if k != "time"} for row in rows_of(run)
            if row["phase"] in ("train", "test")]


def same(a, b, metrics=True):
    """The same bytes in the last checkpoint, the same losses at every step."""
    for name in (*FILES, *(["ema.safetensors"] if (a / "latest/ema.safetensors").exists() else [])):
        if (a / "latest" / name).read_bytes() != (b / "latest" / name).read_bytes():
            raise AssertionError(f"{a}/latest/{name} and {b}/latest/{name} differ")
    if metrics and losses(a) != losses(b):
        raise AssertionError(f"the metrics of {a} and {b} differ")


def report(case, run):
    """Runs a case and prints one line as cmocka does, so that it is counted. Did it pass?"""
    try:
        run()
        print(f"[       OK ] {case}", flush=True)
        return True
    except (AssertionError, subprocess.SubprocessError, OSError) as problem:
        print(f"{problem}\n[  FAILED  ] {case.replace(' ', '_').replace(',', '')}", flush=True)
        return False
