#!/usr/bin/env python3
"""program.py TUTTI MANUAL: what the program says, where, and with which exit code; that its manual
page, MANUAL, knows every verb and option."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

TUTTI, MANUAL = sys.argv[1], sys.argv[2]
NETS = pathlib.Path(__file__).resolve().parent.parent / "nets"
FAILURES = []


def run(*words, **environment):
    return subprocess.run([TUTTI, *words], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **environment})


def expect(what, is_true, done=None):
    if not is_true:
        FAILURES.append(what)
        print("FAIL", what, *(("exit", done.returncode, done.stdout[:2000], done.stderr[:2000])
                              if done else ()))


def verbs():
    return re.findall(r"^  ([a-z][a-z-]*) {2,}", run("--help").stdout, re.M)


def options(verb):
    """The first name of every option that --help shows."""
    return re.findall(r"^  (?:-\w, )?--([a-z0-9-]+)", run(verb, "--help").stdout, re.M)


def check_frame():
    for words in (["--help"], ["-h"], ["help"], ["--version"], ["--check-build"]):
        done = run(*words)
        expect(f"{words} on stdout", done.returncode == 0 and done.stdout and not done.stderr, done)
    for words in ([], ["frobnicate"], ["help", "frobnicate"], ["--frobnicate"]):
        done = run(*words)
        expect(f"{words} on stderr", done.returncode == 2 and done.stderr and not done.stdout, done)
    done = run("docter")
    expect("doctor is suggested", "did you mean 'doctor'?" in done.stderr, done)
    if "train" in verbs():
        done = run("tarin")
        expect("train is suggested",
               done.returncode == 2 and "did you mean 'train'?" in done.stderr, done)
    with open("/dev/full", "w") as full:
        code = subprocess.run([TUTTI, "--help"], stdout=full, stderr=subprocess.PIPE).returncode
        expect("a full disk is noticed", code == 1)


def check_shape():
    """Help that fits a terminal, in groups where it is long; words that others use are understood."""
    for verb in verbs():
        text = run(verb, "--help").stdout
        wide = [line for line in text.split("\n") if len(line) >= 100]
        expect(f"{verb} --help is below 100 columns: {wide}", not wide)
    groups = re.findall(r"^([a-z ]+):$", run("train", "--help").stdout, re.M)
    expect(f"train --help has groups: {groups}",
           groups[:6] == ["most used", "what", "data", "learning", "machine", "files"])
    for theirs, ours in (("learning-rate", "lr"), ("dataset", "data"), ("num_workers", "data-threads"),
                         ("early_stopping", "patience"), ("output", "run")):
        done = run("train", "lenet", f"--{theirs}", "1")
        expect(f"--{theirs} is understood", f"did you mean '--{ours}'?" in done.stderr, done)


def check_lists():
    done = run("train", "resnet-50")
    expect("a wrong net shows all there are", done.returncode == 2
           and all(net in done.stderr for net in run("--list", "nets").stdout.split())
           and "TUTTI_MODELS)" in done.stderr, done)
    for what, some in ("nets", "vgg-a"), ("platforms", "cori-phase1"), ("data", "images"):
        done = run("--list", what)
        expect(f"--list {what}", done.returncode == 0 and some in done.stdout.split("\n"), done)
    done = run("--list")
    expect("--list of nothing", done.returncode == 2 and "what?" in done.stderr, done)


def complete(*words):
    """What bash would offer for the last word."""
    script = NETS.parent.parent / "doc/tutti.bash"
    program = ('compopt() { :; }; source "$1"; shift; COMP_WORDS=("$@"); '
               'COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _tutti "$1"; echo "${COMPREPLY[*]}"')
    done = subprocess.run(["bash", "-c", program, "bash", script, TUTTI, *words], text=True,
                          capture_output=True, check=True)
    return done.stdout.split()


def check_completion():
    for words, wanted in ((["tr"], ["train"]), (["info", "vg"], ["vgg-a"]),
                          (["train", "lenet", "--lr-s"], ["--lr-schedule"]),
                          (["plan", "lenet", "--platform", "cor"], ["cori-phase1"]),
                          (["train", "lenet", "--data", "im"], ["images:"]),
                          (["train", "lenet", "--overlap", "of"], ["off"])):
        offered = complete(*words)
        expect(f"completion of {words}: {offered}", set(wanted) <= set(offered) and len(offered) < 9)


def check_parts():
    """--check-build knows whether there is a simulator."""
    has = "--nodes" in run("simulate", "--help").stdout and \
        run("simulate", "lenet", "--nodes", "1", "-b", "16").returncode == 0
    done = run("--check-build")
    expect("--check-build and SimGrid", f"[{'X' if has else ' '}] SimGrid" in done.stdout, done)


def check_lint():
    try:
        done = subprocess.run(["mandoc", "-Tlint", MANUAL], capture_output=True, text=True)
    except OSError:
        print("not looked at: the manual page's form, for want of mandoc")
        return
    expect("mandoc has nothing to say", not done.stdout, done)


def check_threads():
    words = ["train", "lenet", "--data", "synthetic", "--steps", "1", "--eval-every", "never"]
    for more, environment in (["--threads", "1"], {}), ([], {"OMP_NUM_THREADS": "1"}):
        done = run(*words, *more, **environment)
        expect(f"one thread for {more} {environment}", "1 rank, 1 thread," in done.stdout, done)


def check_unset():
    """Values that mean 'not given' inside are not taken for it when somebody writes them."""
    words = ["train", str(NETS / "linear.net"), "--data", "synthetic", "--eval-every", "never"]
    for option, value in (("lr", "-0.1"), ("lr", "-1"), ("steps", "0"), ("epochs", "0"),
                          ("batch-size", "0"), ("weight-decay", "-1"), ("momentum", "-1"),
                          ("clip", "-1"), ("grains", "0"), ("threads", "0"),
                          ("data-threads", "0")):
        done = run(*words, f"--{option}", value)
        expect(f"--{option} {value} is refused",
               done.returncode == 2 and f"--{option}: {value} is not between" in done.stderr, done)
    for text in ("abc", "0", "-2", "2x"):
        for verb in (words, ["doctor", "--no-measure"]):
            done = run(*verb, OMP_NUM_THREADS=text)
            expect(f"OMP_NUM_THREADS={text} is refused by {verb[0]}",
                   done.returncode == 2 and f"OMP_NUM_THREADS={text} is not" in done.stderr, done)
    done = run("doctor", "--no-measure", OMP_NUM_THREADS="1,2")
    expect("OMP_NUM_THREADS=1,2 is fine", done.returncode == 0, done)


def check_plot():
    """Curves are SVG, and those of a cluster that slows a net down go below 1x."""
    words = ["plan", "vgg-a", "--nodes", "1..8", "-b", "16", "--platform", "workstations-1g",
             "--plan", "data", "--plot"]
    with tempfile.TemporaryDirectory() as folder:
        done = run(*words, f"{folder}/x.png")
        expect("--plot x.png is refused", done.returncode == 2 and "ends in .svg" in done.stderr
               and not os.listdir(folder), done)
        done = run(*words, f"{folder}/x.svg", "--json")
        rows = json.loads(done.stdout)["rows"]
        points = re.findall(r"<circle cx='([0-9.]+)' cy='([0-9.]+)' r='4'",
                            pathlib.Path(f"{folder}/x.svg").read_text())
    slow = [y for row, (_, y) in zip(rows, points) if row["speedup"] < 1]
    expect("a speedup below 1x is drawn below 1x",  # and all once more as efficiencies
           slow and len(points) == 2 * len(rows) and min(map(float, slow)) > float(points[0][1]), done)


def check_rhythm():
    """Evaluations come at the interval asked for, and one comes with the last step."""
    start = time.monotonic()
    done = run("train", str(NETS / "channels33.net"), "--data", "synthetic,test=8", "--steps",
               "3000", "--threads", "1", "--eval-every", "0.05s")
    most = (time.monotonic() - start) / 0.05 + 1
    count = done.stdout.count(": test top-1")
    expect(f"1 to {most:.0f} evaluations, not {count}", 1 <= count <= most, done)


def check_no_tests():
    """A set without test samples is refused before the first step, not at the first evaluation."""
    words = ["train", str(NETS / "channels33.net"), "--data", "synthetic,test=0", "--steps", "2"]
    done = run(*words)
    expect("no samples to test on", done.returncode == 1 and "step 1/" not in done.stdout
           and "--eval-every never" in done.stderr, done)
    done = run(*words, "--eval-every", "never")
    expect("no samples to test on, none needed", done.returncode == 0, done)


def check_places():
    """Where something is written at the end is looked at before the work begins."""
    train = ["train", str(NETS / "channels33.net"), "--data", "synthetic", "--steps", "2"]
    for words, place in ((train, "--trace"), (["plan", "lenet"], "--save"),
                         (["plan", "lenet"], "--plot"), (["simulate", "lenet"], "--trace"),
                         (["simulate", "lenet"], "--plot"), (["calibrate", "lenet"], "--output")):
        done = run(*words, place, "no/where.svg")
        expect(f"{words[0]} {place} no/where.svg", done.returncode == 1 and not done.stdout
               and "'no/where.svg': No such file or directory" in done.stderr, done)


def check_verbs():
    manual = open(MANUAL).read().replace("\\-", "-")
    for verb in verbs():
        done = run(verb, "--help")
        expect(f"{verb} --help", done.returncode == 0 and f"usage: tutti {verb}" in done.stdout,
               done)
        expect(f"help {verb}", run("help", verb).stdout == done.stdout)
        done = run(verb, "--frobnicate")
        expect(f"{verb} --frobnicate", done.returncode == 2 and not done.stdout, done)
        expect(f"the manual describes {verb}", re.search(rf"^\.SS tutti {verb}\b", manual, re.M))
        for option in options(verb):
            expect(f"the manual describes --{option} of {verb}", f"--{option}" in manual)
            expect(f"--{option} of {verb} is completed", f"--{option}" in complete(verb, f"--{option}"))


def check_pages():
    """What people train and ask with stands in RUNS.md or DATA.md, all else somewhere in doc/."""
    folder = NETS.parents[1] / "doc"
    pages = {path.name: path.read_text() for path in folder.glob("*.md")}
    for verb in verbs():
        near = ["RUNS.md", "DATA.md"] if verb in ("train", "test", "predict") else pages
        for option in options(verb):
            names = rf"--(no-)?{option}(?![\w-])"
            expect(f"--{option} of {verb} stands in {', '.join(near) if len(near) < 3 else 'doc/'}",
                   option == "help" or any(re.search(names, pages[name]) for name in near))


def check_groups():
    """Where options are grouped, all of them are."""
    for verb in verbs():
        _, more, rest = run(verb, "--help").stdout.partition("\nmore:\n")
        expect(f"{verb} --help has no options beside its groups",
               not more or set(re.findall(r"^  (?:-\w, )?--([a-z0-9-]+)", rest, re.M)) <= {"help"})


def check_plan():
    """The layers whose weight gradients come last: VGG-A's first ones on a fast network, none
    where every layer is split."""
    words = ["plan", "vgg-a", "--nodes", "8", "-b", "64", "--platform", "endeavor-fdr"]
    layers = json.loads(run(*words, "--json").stdout)["layers"]
    late = [layer["name"] for layer in layers if layer["late"]]
    expect("the first layers are late", late and late == [l["name"] for l in layers[:len(late)]])
    done = run(*words)
    expect("the order is told",
           late and f"weight gradients of {late[0]} to {late[-1]} last" in done.stdout, done)
    done = run("plan", "cd-dnn", "--nodes", "16", "-b", "1024", "--platform", "endeavor-fdr")
    expect("the usual order is not", done.returncode == 0 and "order:" not in done.stdout, done)


def check_doctor():
    done = run("doctor", "--quick", "--json")
    report = json.loads(done.stdout)
    expect("the keys of doctor --json",
           {"cpu", "cores", "isa", "caches", "fma_gflops", "memory_gbps", "mpi", "findings"}
           <= set(report), done)
    expect("rates", report["fma_gflops"]["1"] > 0 and report["fma_gflops"]["all"] > 0
           and all(report["memory_gbps"][k] > 0 for k in ("read", "write", "copy")), done)
    done = run("doctor", "--quick", TUTTI_ISA="scalar")
    expect("scalar kernels", done.returncode == 0 and "kernels   scalar" in done.stdout, done)
    done = run("doctor", TUTTI_ISA="avx9")
    expect("an unknown ISA", done.returncode == 2 and "is not one of scalar" in done.stderr, done)
    many = report["cores"] * 3
    done = run("doctor", "--no-measure", OMP_NUM_THREADS=str(many))
    expect("too many threads", f"{many} threads are asked for" in done.stdout
           or "SMT siblings" in done.stdout, done)
    if report["cores"] > 1:
        one = min(os.sched_getaffinity(0))
        done = subprocess.run(["taskset", "-c", str(one), TUTTI, "doctor", "--no-measure"],
                              capture_output=True, text=True)
        expect("a small cpuset", "this process may use only 1 of" in done.stdout, done)


def check_doctor_of_ranks():
    """Two ranks: told apart when each has a core, named when they share one."""
    if "[X] MPI: Open MPI" not in run("--check-build").stdout:
        return
    allowed = sorted(os.sched_getaffinity(0))
    launch = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", "2"]
    doctor = [TUTTI, "doctor", "--no-measure"]
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1",
                   "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run([*launch, *doctor, "--json"], capture_output=True, text=True,
                          env=environment)
    report = json.loads(done.stdout)
    expect("two ranks", report["ranks"] == 2 and report["ranks_on_host"] == 2, done)
    if len(allowed) > 1:
        expect("two ranks on two cores", "same core" not in done.stdout, done)
    done = subprocess.run([*launch, "taskset", "-c", str(allowed[0]), *doctor],
                          capture_output=True, text=True, env=environment)
    expect("two ranks on one core", "ranks 0 and 1 are bound to the same core" in done.stdout, done)


for check in (check_frame, check_shape, check_lists, check_completion, check_parts, check_lint,
              check_threads, check_unset, check_plot,
              check_rhythm, check_no_tests, check_places, check_verbs, check_pages, check_groups, check_plan,
              check_doctor, check_doctor_of_ranks):
    check()
sys.exit(1 if FAILURES else 0)
