"""Damage to any file of a run, and to the texts that tutti writes: whoever reads it says so, or it
does not matter."""
import os
import shutil

from calls import GONE, counted, environment
from lab import DATA, NET, rows

DAMAGED, FAILED = 6, 1

# Files whose damage nobody needs to mention, and why it misleads nobody.
HARMLESS = {
    "metrics.csv": "metrics.jsonl as a table, without sums: resuming makes it anew from there",
    "metrics.damaged": "rows that were damaged before: nobody reads them",
    "ranks.jsonl": "who was slow, for the page: its rows are sealed, and damaged ones left out there",
    "events.jsonl": "what happened, for the page and tutti status: likewise",
    "report.html": "the page: made anew at the end of the run",
    "lock": "who was there, for a sentence: the lock itself is the kernel's",
}
UNFINISHED = ".tmp"  # a checkpoint that was cut off: nobody looks at it, the next one removes it


# ---- how bytes change ----

def flip(dice, data):
    at = dice.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1:]


def cut(dice, data):
    return data[:dice.randrange(len(data))]


def zero(dice, data):
    at = dice.randrange(len(data))
    count = min(dice.choice((1, 8, 64, 512)), len(data) - at)
    return data[:at] + bytes(count) + data[at + count:]


def insert(dice, data):
    at = dice.randrange(len(data) + 1)
    return data[:at] + bytes([dice.randrange(256)]) + data[at:]


def drop(dice, data):
    at = dice.randrange(len(data))
    return data[:at] + data[at + 1:]


def replace(dice, data):
    at = dice.randrange(len(data))
    return data[:at] + bytes([dice.randrange(256)]) + data[at + 1:]


KINDS = (flip, cut, zero, insert, drop, replace)


def damage(dice, path):
    """Changes the file in one place."""
    data = path.read_bytes()
    while (other := dice.choice(KINDS)(dice, data)) == data:
        pass
    path.write_bytes(other)


def compare(lab, job, whole, path="", source=""):
    """What is read must be what was written."""
    lab.expect(whole, {0})
    if job.output().replace(str(path), str(source)) != whole.output():
        raise AssertionError(f"{job} takes it for something else")
    return "the same"


# ---- who reads a file of a run ----

def resume(lab, run, path):
    return lab.train(run, 1, "--resume", path.parent)


def fine_tune(lab, run, path):
    return lab.train(lab.fresh("other"), 1, "--weights", path.parent)


def test(lab, run, path):
    return lab.start(["test", NET, "--data", DATA, "--weights", path.parent])


def fine_tune_file(lab, run, path):
    return lab.train(lab.fresh("other"), 1, "--weights", path)


def test_file(lab, run, path):
    return lab.start(["test", NET, "--data", DATA, "--weights", path])


def predict(lab, run, path):
    return lab.start(["predict", path, "--weights", path.parent])


CHECKPOINT = {
    "model.safetensors": (resume, fine_tune_file, test_file),
    "ema.safetensors": (resume, fine_tune, test, predict),
    "optimizer.safetensors": (resume,),
    "state.json": (resume,),
    "SHA256SUMS": (resume, test),
}


def try_checkpoint(lab, dice, run, path):
    """Every reader names the file and ends. Of the sums a test needs only the model's: when others
    are damaged, it says what it always said."""
    reader = dice.choice(CHECKPOINT[path.name])
    job = reader(lab, run, path)
    needs_one = path.name == "SHA256SUMS" and reader == test
    if lab.expect(job, {DAMAGED, 0} if needs_one else {DAMAGED}) == 0:
        return compare(lab, job, reader(lab, run, half_way(lab) / path.relative_to(run)))
    if path.name not in job.output():
        raise AssertionError(f"{path.name} is not named: {job}\n{job.output()[-2000:]}")
    return "refused"


def try_metrics(lab, dice, run, path):
    """A run goes on without the rows that are damaged, and says so."""
    job = lab.resume(run, 1)
    lab.expect(job, {0})
    lab.must_equal_whole(run, metrics=False)
    kept, wanted = rows(path), rows(lab.whole / path.name)
    if kept != [row for row in wanted if row in kept]:
        raise AssertionError(f"{path} has rows that were never written")
    if kept == wanted:
        return "mended"  # it was in rows that come again
    if path.name not in job.output():
        raise AssertionError(f"{len(wanted) - len(kept)} rows are gone without a word: {job}")
    return "mentioned"


def try_harmless(lab, dice, run, path):
    """A run goes on as if nothing had happened, and the file is whole again."""
    lab.must_resume(dice, run)
    return "harmless"


def half_way(lab):
    """A run that was cut off in the middle: checkpoints, and metrics beyond the last of them."""
    run = lab.folder / "half"
    if not run.exists():
        lab.expect(lab.train(run, 1, env=environment(
            lab, run, how="exit", at=counted(lab, 1, 0) * 3 // 5)), (), silent={GONE})
    return run


def files_of(run):
    return sorted(p for p in run.rglob("*") if p.is_file() and p.stat().st_size
                  and not any(q.is_symlink() for q in (p, p.parent)))


def of_a_run(lab, dice):
    half = half_way(lab)
    run = lab.fresh()
    shutil.copytree(half, run, symlinks=True)
    path = dice.choice(files_of(run))
    damage(dice, path)
    if path.name in HARMLESS or path.suffix == UNFINISHED or path.parent.name.endswith(UNFINISHED):
        return try_harmless(lab, dice, run, path)
    if path.name in CHECKPOINT:
        return try_checkpoint(lab, dice, run, path)
    if path.name == "metrics.jsonl":
        return try_metrics(lab, dice, run, path)
    raise AssertionError(f"{path.relative_to(run)}: who reads it, and what if it is damaged?")


# ---- links ----

def of_a_link(lab, dice):
    """A resume sets a link right, or offers a checkpoint; who follows it finds what it found
    before, or says so."""
    half = half_way(lab)
    run = lab.fresh()
    shutil.copytree(half, run, symlinks=True)
    path = run / dice.choice(("latest", "best"))
    target = os.readlink(path).encode()
    while b"/" in (other := dice.choice(KINDS)(dice, target)) or b"\0" in other or not other:
        pass
    path.unlink()
    os.symlink(other, path)
    if dice.random() < 0.5:
        if lab.expect(lab.resume(run), {0, DAMAGED}):
            return "refused"
        lab.must_equal_whole(run)
        return "mended"
    job = lab.start(["test", NET, "--data", DATA, "--weights", run])
    if lab.expect(job, {0, FAILED, DAMAGED}):
        return "refused"
    return compare(lab, job, lab.start(["test", NET, "--data", DATA, "--weights", half]))


# ---- texts ----

def written(lab):
    """A plan and a platform as tutti writes them, and the words that read them."""
    plan, platform = lab.folder / "written.plan", lab.folder / "written.platform"
    words = ["plan", "vgg-a", "--nodes", 1, "--batch-size", 16]
    if not plan.exists():
        lab.expect(lab.start([*words, "--nodes", 8, "--platform", "endeavor-fdr", "--save", plan]),
                   {0})
        lab.expect(lab.start(["calibrate", NET, "--seconds", 1, "--output", platform]), {0})
    return ((plan, [*words, "--nodes", 8, "--platform", "endeavor-fdr", "--plan"]),
            (platform, [*words, "--platform"]))


def of_a_text(lab, dice):
    """Who reads it says so; or only its first line was changed, to one that means the same."""
    source, words = dice.choice(written(lab))
    path = lab.folder / ("damaged" + source.suffix)
    shutil.copy(source, path)
    damage(dice, path)
    job = lab.start([*words, path])
    if lab.expect(job, {0, FAILED}) == FAILED:
        return "refused"
    return compare(lab, job, lab.start([*words, source]), path, source)


def trial(lab, dice):
    return dice.choice((of_a_run,) * 9 + (of_a_link,) + (of_a_text,) * 3)(lab, dice)
