"""The n-th call on a file of the run fails, or is the last before the power is cut."""
from lab import RANKS

GONE = 86  # preload.c
FULL = ("ENOSPC", "EDQUOT")
ERRORS = ("EIO", *FULL)
ENDS = ("exit", "cut")


def environment(lab, run, **more):
    return {"LD_PRELOAD": str(lab.preload), "FAULTS_UNDER": str(run),
            **{f"FAULTS_{name.upper()}": str(value) for name, value in more.items()}}


def counted(lab, ranks, rank):
    """How many calls this rank of an undisturbed run makes."""
    if (ranks, rank) not in lab.calls:
        run, log = lab.fresh(), lab.folder / "calls.log"
        log.unlink(missing_ok=True)
        lab.expect(lab.train(run, ranks, env=environment(
            lab, run, log=log, **({"rank": rank} if ranks > 1 else {}))), {0})
        lab.calls[ranks, rank] = len(log.read_text().splitlines()) if log.exists() else 0
        if not lab.calls[ranks, rank]:
            raise AssertionError(f"rank {rank} of {ranks} does nothing to the disk")
    return lab.calls[ranks, rank]


def disturb(lab, dice, run, ranks, rank, most):
    """One start, one fault: its kind and the exit code."""
    how = dice.choice(ERRORS + ENDS)
    fault = {"how": how, "at": dice.randint(1, most), "many": dice.choice((1, 1, 3, 0)),
             "log": lab.folder / "calls.log"}
    if ranks > 1:
        fault["rank"] = rank
    sync = dice.choice(([], ["--checkpoint-sync"]))
    job = lab.resume(run, ranks, *sync, env=environment(lab, run, **fault))
    return how, lab.expect(job, {0, 1, 6, 8}, silent={GONE} if how in ENDS else ())


def trial(lab, dice):
    ranks = dice.choice(RANKS)
    rank = dice.choice((0, dice.randrange(ranks)))
    most = counted(lab, ranks, rank)
    (lab.folder / "calls.log").unlink(missing_ok=True)
    run = lab.fresh()
    faults = [disturb(lab, dice, run, ranks, rank, most) for _ in range(dice.randint(1, 2))]
    lab.must_resume(dice, run, best=not any(how in FULL for how, _ in faults))
    names = {0: "gone on", GONE: "cut off"}
    return ", ".join(sorted({names.get(code, f"exit {code}") for _, code in faults}))
