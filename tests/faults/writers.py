"""Two in one directory: one trains, the other says who is there."""
import os
import signal
import time

from lab import LIMIT, RANKS

IN_USE, OTHER_RUN = 7, 2


def both(lab, dice):
    """Two alike: the one that comes later finds the other at work, or its finished run."""
    run, ranks = lab.fresh(), (dice.choice(RANKS), dice.choice(RANKS))
    resumes = dice.random() < 0.5
    start = lab.resume if resumes else lab.train
    first = start(run, ranks[0])
    time.sleep(dice.uniform(0, 1.2 * lab.seconds[ranks[0]]) * dice.choice((0, 0.1, 1)))
    second = start(run, ranks[1])
    codes = [lab.expect(job, {0, IN_USE, OTHER_RUN}) for job in (first, second)]
    if 0 not in codes or (not resumes and codes == [0, 0]):
        raise AssertionError(f"two writers end with {codes}: {first} and {second}")
    lab.must_equal_whole(run)
    return f"exits {min(codes)} and {max(codes)}"


def another(lab, dice):
    """A run of another seed comes while the first is at work, or after it."""
    run, ranks = lab.fresh(), dice.choice(RANKS)
    first = lab.train(run, ranks)
    while first.process.poll() is None and not (run / "latest").is_symlink():
        time.sleep(0.005)
    time.sleep(dice.uniform(0, lab.seconds[ranks]))
    code = lab.expect(lab.train(run, dice.choice(RANKS), "--seed", 9), {IN_USE, OTHER_RUN})
    lab.expect(first, {0})
    lab.must_equal_whole(run)
    return f"another run: exit {code}"


def orphan(lab, dice):
    """The launcher is killed and the run started again at once, while its ranks may be there."""
    run, ranks = lab.fresh(), dice.choice(RANKS)
    first = lab.train(run, ranks, launched=True)
    time.sleep(dice.uniform(0, lab.seconds[ranks]))
    os.kill(first.process.pid, signal.SIGKILL)
    end, code = time.monotonic() + LIMIT, IN_USE
    while code == IN_USE and time.monotonic() < end:
        code = lab.expect(lab.resume(run, dice.choice(RANKS)), {0, IN_USE})
    if code:
        raise AssertionError(f"{run} is in use {LIMIT} s after its launcher was killed")
    lab.expect(first, (), silent={0, 137})
    lab.must_equal_whole(run)
    return "orphans"


def trial(lab, dice):
    return dice.choice((both, another, orphan))(lab, dice)
