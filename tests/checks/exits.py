#!/usr/bin/env python3
"""exits.py TUTTI MANUAL INCLUDE PRELOAD: the exit codes of tutti(1). Its table has those that
TUTTI_STATUS_MAP and TUTTI_RUN_STATE_MAP have, and no other; each is provoked here; every option answers a wrong word with
2."""
import os
import pathlib
import re
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "faults"))
from calls import environment
from lab import DATA, NET, Lab
from runs import report

TUTTI, MANUAL, INCLUDE, PRELOAD = sys.argv[1:5]
SHORT = ["train", NET, "--data", DATA, "--threads", 1, "--comm-core", "none", "--quiet",
         "--eval-every", "never"]
LONG = [*SHORT, "--steps", 1 << 30]

# Options whose value is any name or path, so that no word is wrong.
ANY_WORD = {"run", "save", "html", "token", "trace", "output", "plot", "weights", "rename", "resume",
            "classes", "onnx"}


def needs(lab):
    """What else a verb needs before it looks at its options."""
    run = lab.folder / "trained"
    lab.expect(lab.start([*SHORT, "--run", run, "--steps", 1]), {0})
    return {"train": [NET, "--data", DATA, "--steps", 1],
            "test": [NET, "--data", DATA, "--weights", run],
            "predict": [NET, "x.png", "--data", DATA, "--weights", run],
            "plan": ["lenet"], "simulate": ["lenet", "--nodes", 2], "info": [], "doctor": [],
            "calibrate": [NET], "status": [run], "report": [run],
            "watch": [run, "--port", 1], "import": ["x.onnx", "--output", "x"],
            "export": [run]}


def rank(job, number=0):
    """The process of a rank, once it trains."""
    end = time.monotonic() + 60
    while len(job.ranks()) <= number and time.monotonic() < end:
        time.sleep(0.01)
    return job.ranks()[number]


def wait_for(path):
    end = time.monotonic() + 60
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.01)


def begun(lab, run, *more, ranks=1):
    """A long run that has a checkpoint."""
    job = lab.start([*LONG, "--run", run, *more], ranks)
    wait_for(run / "latest")
    return job


# ---- one of each ----

def success(lab):
    return lab.start(["info", "lenet"])


def missing_data(lab):
    return lab.start([*SHORT, "--data", "cifar10:/nowhere", "--steps", 1])


def wrong_option(lab):
    return lab.start([*SHORT, "--steps", "many"])


def another_run(lab):
    run = lab.fresh()
    lab.expect(lab.start([*SHORT, "--run", run, "--steps", 2]), {0})
    return lab.start([*SHORT, "--run", run, "--steps", 2, "--seed", 9])


def misfit(lab):
    run = lab.fresh()
    lab.expect(lab.start([*SHORT, "--run", run, "--steps", 2]), {0})
    return lab.start([*SHORT, "--run", run, "--steps", 4, "--seed", 9, "--resume", "auto"])


def divergence(lab):
    return lab.start([*SHORT, "--lr", 1e6, "--steps", 40])


def stall(lab):
    job = begun(lab, lab.fresh(), "--stall-warn", 1, "--stall-abort", 2, ranks=2)
    os.kill(rank(job, 1), signal.SIGSTOP)
    return job


def disagreement(lab):
    other = [TUTTI, *SHORT, "--steps", 1, "--seed", 2]
    return lab.start([*SHORT, "--steps", 1, "--seed", 1, ":", "-n", 1, *other], launched=True)


def damage(lab, ranks=1):
    run = lab.fresh()
    lab.expect(lab.start([*SHORT, "--run", run, "--steps", 2]), {0})
    with open(run / "latest" / "model.safetensors", "ab") as file:
        file.write(b"!")
    return lab.start(["test", NET, "--data", DATA, "--weights", run], ranks)


def in_use(lab, ranks=1):
    run = lab.fresh()
    begun(lab, run)
    return lab.start([*SHORT, "--run", run, "--resume", "auto"], ranks)


def full_disk(lab, ranks=1, **which):
    run = lab.fresh()
    return lab.start([*SHORT, "--run", run, "--steps", 30, "--checkpoint-every", "5steps"], ranks,
                     environment(lab, run, how="ENOSPC", at=100, many=0, **which))


def full_disk_of_three(lab):
    return full_disk(lab, 3, rank=0)


def damage_found_by_three(lab):
    return damage(lab, 3)


def in_use_for_three(lab):
    return in_use(lab, 3)


def stopped(number):
    def stop(lab):
        job = begun(lab, lab.fresh())
        os.kill(rank(job), number)
        return job
    return stop


def status_of_one_that_runs(lab):
    run = lab.fresh()
    begun(lab, run)
    return lab.start(["status", run])


def status_of_one_that_is_stuck(lab):
    """Its process lives, and its files look old."""
    run = lab.fresh()
    os.kill(rank(begun(lab, run)), signal.SIGSTOP)
    time.sleep(0.5)
    for path in run.glob("*.jsonl"):
        os.utime(path, (1e9, 1e9))
    return lab.start(["status", run])


def status_of_one_that_was_killed(lab):
    run = lab.fresh()
    job = begun(lab, run)
    os.kill(rank(job), signal.SIGKILL)
    job.wait(60)
    return lab.start(["status", run])


PROVOKED = (
    (0, success), (1, missing_data), (2, wrong_option), (2, another_run), (2, misfit),
    (3, divergence), (4, stall), (5, disagreement), (6, damage), (7, in_use), (8, full_disk),
    (6, damage_found_by_three), (7, in_use_for_three), (8, full_disk_of_three),
    (10, status_of_one_that_runs), (11, status_of_one_that_is_stuck),
    (12, status_of_one_that_was_killed),
    (75, stopped(signal.SIGUSR1)), (130, stopped(signal.SIGINT)), (143, stopped(signal.SIGTERM)),
    (137, stopped(signal.SIGKILL)),
)


# ---- the table and the options ----

def check_table():
    manual = pathlib.Path(MANUAL).read_text().partition(".SH EXIT STATUS")[2].partition(".SH ")[0]
    listed = [int(code) for code in re.findall(r"^\.B (\d+)$", manual, re.M)]
    headers = [(pathlib.Path(INCLUDE) / name).read_text() for name in ("status.h", "watch.h")]
    known = {int(code) for text in headers for code in re.findall(r"^    X\(.*?(\d+)\)", text, re.M)}
    assert listed == sorted(known), f"the manual has {listed}, the program {sorted(known)}"
    assert ".BI 128+ n" in manual, "the manual has nothing on signals"
    tried = {code for code, _ in PROVOKED if code < 128}
    assert tried == known, f"{sorted(known - tried)} are not provoked here"


def valued(lab, verb):
    """The options of a verb that take a value."""
    job = lab.start([verb, "--help"])
    lab.expect(job, {0})
    return re.findall(r"^  (?:-\w, )?--([a-z-]+) [A-Za-z]", job.output(), re.M)


def check_options(lab, verb, words):
    for option in valued(lab, verb):
        if option in ANY_WORD:
            continue
        job = lab.start([verb, *words, f"--{option}", "frobnicate"])
        lab.expect(job, {2})
        assert "frobnicate" in job.output(), f"{job} does not name it:\n{job.output()}"


def check_code(lab, code, provoke):
    lab.expect(provoke(lab), {code}, silent={code} if code > 75 or code in (10, 11, 12) else ())
    lab.end_all()


def cases(lab):
    yield "the table of exit codes", check_table
    for verb, words in needs(lab).items():
        yield f"wrong words for {verb}", lambda v=verb, w=words: check_options(lab, v, w)
    for code, provoke in PROVOKED:
        name = provoke.__name__.replace("_", " ")
        yield f"{code} {name}", lambda code=code, provoke=provoke: check_code(lab, code, provoke)


def main():
    lab = Lab(os.path.abspath(TUTTI), PRELOAD)
    try:
        passed = [report(case, run) for case, run in cases(lab)]
    finally:
        lab.close()
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
