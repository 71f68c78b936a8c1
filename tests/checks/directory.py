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
SELDOM = ["--checkpoint-every", "1000steps"]
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


def train(run, *words, net=NET, launcher=(), **options):
    command = [str(net) if word == NET else word for word in TRAIN]
    return subprocess.run([*launcher, *command, "--run", str(run), *map(str, words)], text=True,
                          capture_output=True, timeout=120, env=ENV, **options)


def wait_until(is_so, what):
    for _ in range(1200):
        if is_so():
            return
        time.sleep(0.05)
    raise SystemExit(f"{what}: not within a minute")


def latest_step(run):
    latest = run / "latest"
    return int(os.readlink(latest)[-8:]) if latest.is_symlink() else -1


@contextlib.contextmanager
def training(run, *words, launcher=()):
    """A training under way, past its first checkpoint; ended at last."""
    with subprocess.Popen([*launcher, *TRAIN, *ENDLESS, "--run", str(run), *words], env=ENV,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: latest_step(run) > 0, "the first checkpoint")
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
            expect("ranks in use", done.returncode == 7
                   and done.stderr.count("is in use by process") == 1, done)


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


@contextlib.contextmanager
def small_disk(folder):
    """A file system of 1 MiB, and a function that makes it larger."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], check=True)
    try:
        yield lambda: subprocess.run(["mount", "-o", "remount,size=64m", folder], check=True)
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def same_as_undisturbed(run, steps, scratch):
    whole = scratch / "undisturbed"
    train(whole, "--steps", steps, *SELDOM)
    name = f"step_{steps:08}"
    return contents(run / name) == contents(whole / name) and \
        [row["step"] for row in metrics.rows(run) if row["phase"] == "train"] == \
        list(range(1, steps + 1))


def check_full_disk(scratch):
    """Rows fill the disk. That does not end a training; what could not be written is written when
    there is room, and if there never is, the end says so."""
    if os.geteuid() != 0:
        print("a full disk: not tried, it takes root")
        return
    steps = 8000
    with small_disk(scratch / "disk") as enlarge:
        run = scratch / "disk" / "run"
        with open(scratch / "said", "w+") as said:
            process = subprocess.Popen([*TRAIN, "--run", str(run), "--steps", str(steps), *SELDOM,
                                        "-q"], stderr=said)
            wait_until(lambda: "rows wait in memory" in (scratch / "said").read_text(),
                       "a full disk")
            enlarge()
            code = process.wait()
            text = (scratch / "said").read_text()
        expect(f"a full disk ends nothing: {code} {text}", code == 0
               and text.count("rows wait in memory") == 1
               and text.count("the checkpoint is tried again") <= 1)
        expect("nothing was lost", same_as_undisturbed(run, steps, scratch))
    with small_disk(scratch / "full") as enlarge:
        run = scratch / "full" / "run"
        done = train(run, "--steps", steps, *SELDOM)
        expect("full to the end", done.returncode == 8
               and done.stderr.count("the checkpoint is tried again") == 1 and "step_" in os.readlink(run / "latest")
               and "No space left on device" in done.stderr.splitlines()[-1], done)
        enlarge()
        done = train(run, "--steps", steps, *SELDOM, "--resume", "auto")
        expect("with room it goes on", done.returncode == 0, done)
        expect("the same bits", contents(run / f"step_{steps:08}") ==
               contents(scratch / "undisturbed" / f"step_{steps:08}"))


def check_words(scratch):
    """How a run ends, in words: done, stopped, already done."""
    run = scratch / "run"
    done = train(run, "--steps", 6)
    expect("done", "\ndone: 6 steps" in done.stdout, done)
    done = train(run, "--steps", 6, "--resume", "auto")
    expect("already done", done.returncode == 0 and "already done: 6 steps" in done.stdout
           and "--epochs" in done.stdout and "\ndone:" not in done.stdout, done)
    for name, code in ("TERM", 143), ("USR1", 75):
        with subprocess.Popen([*TRAIN, *ENDLESS, "--run", str(scratch / name)], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            wait_until(lambda: latest_step(scratch / name) > 0, "a checkpoint")
            process.send_signal(getattr(signal, "SIG" + name))
            shown, said = process.communicate()
        step = os.readlink(scratch / name / "latest")
        expect(f"SIG{name} stops: {process.returncode} {shown[-300:]} {said}",
               process.returncode == code and "\ndone:" not in shown
               and f"\nstopped at step {int(step[5:])} of 1000000: " in shown
               and f"stopped at step {int(step[5:])}, checkpoint {scratch / name / step};" in said)


def check_one_voice(scratch):
    """What several ranks have to say is said once, and all end with the same code."""
    if not HAS_MPI:
        return
    launcher = ["mpirun", "-n", "4"]
    train(scratch / "run", "--steps", 2)
    for words, code, sentence in ((["--steps", 4], 2, "holds another run"),
                                  (["--resume", "auto", "--grains", 1], 2, "--grains 4, not 1"),
                                  (["--overwrite", "--data", "idx:/nowhere"], 1, "/nowhere")):
        done = train(scratch / "run", *words, launcher=launcher)
        expect(f"four ranks: {words}", done.returncode == code
               and done.stderr.count(sentence) == 1, done)
    other = scratch / "other.net"
    other.write_text(pathlib.Path(NET).read_text().replace("fc2", "last"))
    done = train(scratch / "fine", "--steps", 2, "--weights", scratch / "run", net=other,
                 launcher=launcher)
    expect("four ranks miss a tensor", done.returncode == 0
           and done.stderr.count("start fresh: last") == 1, done)


def check_orphan(scratch):
    """A rank whose launcher is killed ends with a checkpoint; a shell's child goes on."""
    if not HAS_MPI:
        return
    for ranks in (1, 2):
        run = scratch / f"ranks{ranks}"
        with training(run, launcher=["mpirun", "-n", str(ranks)]) as mpirun:
            mpirun.kill()
        wait_until(lambda: train(run, "--steps", 1).returncode == 2, f"{ranks} orphans")
        done = train(run, "--resume", "auto", "--steps", int(os.readlink(run / "latest")[5:]) + 1)
        expect(f"{ranks} orphans: it goes on", done.returncode == 0, done)
    run = scratch / "alone"
    shell = f"{' '.join(TRAIN)} --steps 1000000 --run {run} >/dev/null 2>&1 & echo $!"
    pid = int(subprocess.run(["setsid", "bash", "-c", shell], capture_output=True, text=True,
                             env=dict(ENV, OMPI_COMM_WORLD_SIZE="1")).stdout)
    wait_until(lambda: latest_step(run) > 0, "a checkpoint")
    reached = os.readlink(run / "latest")
    wait_until(lambda: os.readlink(run / "latest") != reached, "a later checkpoint")
    os.kill(pid, signal.SIGTERM)
    wait_until(lambda: not (run / "lock").exists(), "its end")


def check_output(scratch):
    """A training needs no one who looks on."""
    words = " ".join([*TRAIN, "--steps", "40"])
    for i, (after, what) in enumerate(((" | head -1", "head"), (" 0<&- 1>&- 2>&-", "descriptors"),
                                       (" 1>&-", "output"), (" > /dev/full", "a full log"))):
        run = scratch / str(i)
        done = subprocess.run(["bash", "-c", f"set -o pipefail; {words} --run {run}{after}"],
                              capture_output=True, text=True)
        expect(f"{what}: the run goes on", done.returncode == 0
               and (run / "step_00000040").exists(), done)
        expect(f"{what}: it is said once", done.stderr.count("training goes on without it") ==
               (what in ("head", "a full log")), done)
        done = subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=run / "latest",
                              capture_output=True, text=True)
        expect(f"{what}: the checkpoint is whole", done.returncode == 0, done)
        expect(f"{what}: so are the rows", len(list(metrics.rows(run))) >= 40)


CHECKS = [check_other_run, check_overwrite, check_in_use, check_at_once, check_full_disk,
          check_words, check_one_voice, check_orphan, check_output]
for check in CHECKS:
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        check(pathlib.Path(folder).resolve())
    print(f"{check.__name__}: {time.monotonic() - start:.1f} s")
sys.exit(1 if FAILURES else 0)
