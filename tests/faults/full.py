"""A disk that is full: the run goes on and says at its end what it could not keep; with more room
it can be resumed. A small tmpfs, which only root can make."""
import contextlib
import os
import subprocess
import time

from lab import RANKS


def mount(*words):
    return subprocess.run(["mount", *map(str, words)], capture_output=True, text=True)


def is_possible(lab):
    """Whether such a disk can be made here."""
    if os.geteuid():
        return False
    with disk(lab, 64) as path:
        return path is not None


@contextlib.contextmanager
def disk(lab, kilobytes):
    path = lab.fresh("disk")
    path.mkdir()
    done = mount("-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", path)
    try:
        yield None if done.returncode else path
    finally:
        if not done.returncode:
            subprocess.run(["umount", "-l", path], check=True)


def size_of(run):
    return sum(4 + p.lstat().st_size // 1024 for p in run.rglob("*"))


def trial(lab, dice):
    """Full for ever, or only for a while."""
    ranks = dice.choice(RANKS)
    with disk(lab, dice.randint(8, size_of(lab.whole))) as path:
        run = path / "run"
        job = lab.train(run, ranks)
        for_a_while = dice.random() < 0.4
        if for_a_while:
            time.sleep(dice.uniform(0, lab.seconds[ranks]))
            mount("-o", "remount,size=64m", path)
        code = lab.expect(job, {0, 8})
        mount("-o", "remount,size=64m", path)
        if code == 0:
            lab.must_equal_whole(run, best=False)
        lab.must_resume(dice, run, best=False)
    return ("full for a while" if for_a_while else "full") + (f", exit {code}" if code else "")
