#!/usr/bin/env python3
"""calibrate.py TUTTI: what tutti calibrate measures is found again by plan and train, on one rank
and on two; a run says how its prediction fared."""
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

TUTTI = sys.argv[1]
FAILURES = []
LAUNCH = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", "2"]
TRAIN = ["train", "lenet", "--data", "synthetic", "--threads", "1", "--eval-every", "never"]


def run(cache, *words, ranks=1):
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "OMPI_ALLOW_RUN_AS_ROOT": "1",
                   "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return subprocess.run([*(LAUNCH if ranks > 1 else []), TUTTI, *words], capture_output=True,
                          text=True, timeout=300, env=environment)


def expect(what, is_true, done=None):
    if not is_true:
        FAILURES.append(what)
        print("FAIL", what, *(("exit", done.returncode, done.stdout[:3000], done.stderr[:2000])
                              if done else ()))


def check_before(cache):
    done = run(cache, "plan", "lenet", "--platform", "here")
    expect("without a measurement 'here' says what to run",
           done.returncode == 2 and "tutti calibrate" in done.stderr, done)
    done = run(cache, *TRAIN, "--steps", "2")
    expect("one rank needs no measurement", done.returncode == 0 and "predicted" not in done.stdout,
           done)


def check_ranks(cache, ranks):
    here = cache / "tutti" / f"here-{ranks}x1.platform"
    done = run(cache, "calibrate", "lenet", "--threads", "1", "--seconds", "1", ranks=ranks)
    expect(f"calibrate on {ranks}", done.returncode == 0 and here.exists(), done)
    text = here.read_text()
    expect("the newest is 'here'", (cache / "tutti" / "here.platform").read_text() == text)
    expect("layers", "layer conv 1x28x28 32x28x28 5x5/1 1 " in text and "\nupdate " in text)
    expect("exchanges", ("\nexchange 2 4096 " in text) == (ranks == 2)
           and ("\nlink " in text) == (ranks == 2))
    expect("common memory", "\ncommon " not in text or ranks == 2)
    for platform in ("here", str(here)):
        done = run(cache, "plan", "lenet", "--platform", platform, "--nodes", str(ranks), "--json")
        expect(f"plan on {platform}", done.returncode == 0
               and 0 < json.loads(done.stdout)["step_s"] < 10, done)
    return text


def check_account(cache, folder, ranks):
    out = folder / f"run{ranks}"
    done = run(cache, *TRAIN, "--steps", "8", "--run", str(out), ranks=ranks)
    expect(f"{ranks} ranks are predicted", f"on here-{ranks}x1" in done.stdout
           and "a step: predicted" in done.stdout, done)
    account = json.loads((out / "plan.json").read_text())
    expect("the step's account", account["steps"] == 7 and account["nodes"] == ranks
           and account["predicted_step_s"] > 0 and account["measured_step_s"] > 0, done)
    error = 100 * (account["predicted_step_s"] / account["measured_step_s"] - 1)
    expect("its error", abs(account["error_percent"] - error) < 0.1)
    expect("the layers' accounts", [layer["name"] for layer in account["layers"]][0] == "conv1"
           and all(layer["measured_s"] >= 0 for layer in account["layers"]))


def check_common_memory(cache):
    """Which plan is cheapest is the measurement's choice, and a split layer sends messages."""
    measured = (cache / "tutti" / "here-2x1.platform").read_text()
    done = run(cache, *TRAIN, "--steps", "2", "--plan", "data", ranks=2)
    expect("ranks that share memory were measured there", done.returncode == 0
           and ("parameters in common memory" in done.stdout) == ("\ncommon " in measured), done)


def check_other_machine(cache, text):
    """A measurement of another processor is not used."""
    here = cache / "tutti" / "here-1x1.platform"
    head, body = text.replace('machine "', 'machine "Another ').split("\n", 1)
    digits = hashlib.sha256(body.encode()).hexdigest()[:16]
    here.write_text(f"{head.split('sum=')[0]}sum={digits}\n{body}")
    done = run(cache, *TRAIN, "--steps", "3")
    expect("another machine's measurement is refused", done.returncode == 0
           and "was measured on 'Another" in done.stderr and "predicted" not in done.stdout, done)
    for length in (0, len(text) // 2, len(text) - 2):
        here.write_text(text[:length])
        done = run(cache, *TRAIN, "--steps", "3")
        complaints = [line for line in done.stderr.splitlines() if str(here) in line]
        expect(f"a measurement cut to {length} bytes is left aside, in one line",
               done.returncode == 0 and "predicted" not in done.stdout and len(complaints) == 1
               and "'tutti calibrate'" in complaints[0], done)


with tempfile.TemporaryDirectory() as name:
    scratch = pathlib.Path(name)
    check_before(scratch)
    alone = check_ranks(scratch, 1)
    check_account(scratch, scratch, 1)
    if "[X] MPI: Open MPI" in run(scratch, "--check-build").stdout:
        done = run(scratch, *TRAIN, "--steps", "2", ranks=2)
        expect("two ranks that were not measured say so", "tutti calibrate' measures" in done.stdout,
               done)
        check_ranks(scratch, 2)
        check_account(scratch, scratch, 2)
        check_common_memory(scratch)
    check_other_machine(scratch, alone)
sys.exit(1 if FAILURES else 0)
