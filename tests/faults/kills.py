"""Signals to ranks and launchers at any moment, once or several times, then a resume."""
import os
import re
import signal
import time

from lab import RANKS

LAUNCHER = 1  # the exit code of an mpirun that was asked to end
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)


def send(job, dice, number):
    """To the launcher or one of the ranks, of those that are there. Was it the launcher?"""
    ranks = job.ranks()
    victim = dice.choice([job.process.pid, *ranks])
    try:
        os.kill(victim, number)
    except ProcessLookupError:
        pass
    return victim == job.process.pid and victim not in ranks


def check_promise(job, run):
    """A run that says up to which step it is kept is kept up to there."""
    said = re.search(r"checkpoint \S*step_(\d+); go on", job.output())
    if said and os.readlink(run / "latest") != f"step_{said[1]}":
        raise AssertionError(f"{job}: '{said[0]}', but latest is {os.readlink(run / 'latest')}")


def disturb(lab, dice, run):
    """One start, one signal. The exit code is the signal's, or that of success, if it was late; a
    launcher that is asked to end has its own."""
    ranks = dice.choice(RANKS)
    number = dice.choice(SIGNALS)
    sync = dice.choice(([], ["--checkpoint-sync"]))
    job = lab.resume(run, ranks, *sync, launched=dice.random() < 0.3)
    time.sleep(dice.uniform(0, 1.1 * lab.seconds[ranks]))
    ends = {0, 128 + number, 128 + signal.SIGKILL}
    code = lab.expect(job, (), silent=ends | ({LAUNCHER} if send(job, dice, number) else set()))
    check_promise(job, run)
    return code


def trial(lab, dice):
    run = lab.fresh()
    codes = [disturb(lab, dice, run) for _ in range(dice.randint(1, 3))]
    lab.must_resume(dice, run)
    return "killed" if any(codes) else "too late"
