#!/usr/bin/env python3
"""scaling.py TUTTI plan|quick|all: holds the figures of doc/SCALING.md to what tutti plan and
tutti simulate say, to the digit, and the pictures beside it: neither measures anything, so they say
the same everywhere. 'plan' has predictions only, 'quick' also simulations of some seconds, 'all'
takes most of an hour.

A row's first cell names the net, the nodes, the minibatch and the platform, or leaves out what the
page's commands say of the same run."""
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
from typing import NamedTuple

if len(sys.argv) != 3 or sys.argv[2] not in ("plan", "quick", "all"):
    sys.exit(__doc__)
TUTTI, WHICH = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = "doc/SCALING.md"
LINES = (ROOT / PAGE).read_text().splitlines()
PLATFORMS = {"Cori": "cori-phase1", "AWS": "aws-c4", "FDR": "endeavor-fdr"}  # others in backticks
QUICK_NODES, SLOW_OPTIONS = 16, ("--plan data", "--steps", " off")
failures = 0


class Run(NamedTuple):
    net: str
    nodes: str
    batch: str
    platform: str

    def command(self, verb, *options):
        plain = f"tutti {verb} {self.net} --nodes {self.nodes} -b {self.batch}"
        return " ".join((plain, "--platform", self.platform, *filter(None, options)))


class Figure(NamedTuple):
    """What the page says at a line, and the command that says it, too."""
    line: int
    said: str
    command: str


# ---- the page ----

def commands():
    """The page's indented commands, each with its line; one that goes on behind a \\ is one."""
    text = "\n".join(LINES)
    for found in re.finditer(r"^    (tutti (?:plan|simulate) (?:.*\\\n)*.*)", text, re.M):
        yield text.count("\n", 0, found.start()) + 1, " ".join(
            found[1].replace("\\\n", " ").split())


def table(*header):
    """The rows of the table that begins with these cells: the line and the cells of each."""
    cells = [[c.strip() for c in line.strip("| ").split("|")] for line in LINES]
    starts = [i for i, row in enumerate(cells) if tuple(row[:len(header)]) == header]
    if len(starts) != 1:
        sys.exit(f"{PAGE} has {len(starts)} tables | {' | '.join(header)} |")
    for i in range(starts[0] + 2, len(LINES)):
        if not LINES[i].startswith("|"):
            return
        yield i + 1, cells[i]


def find(pattern, text, line):
    found = re.search(pattern, text)
    return found or sys.exit(f"{PAGE}:{line}: no {pattern} in {text}")


def platform_of(text, line):
    named = [PLATFORMS[word] for word in PLATFORMS if word in text]
    return named[0] if named else find(r"`([\w-]+)`", text, line)[1]


def run_of(line, text, known=(), nodes=None):
    """The run that a cell names; its minibatch may be that of a run that is known."""
    nodes = nodes or find(r"(\d+) nodes", text, line)[1]
    batch = re.search(r", (?:minibatch )?(\d+)(?:,|$)", text)
    named = Run(text.split(",")[0].lower(), nodes, batch and batch[1], platform_of(text, line))
    same = [named] if batch else [r for r in known if r._replace(batch=None) == named]
    return same[0] if same else sys.exit(f"{PAGE}:{line}: nothing says the minibatch of {text}")


def pair(line, cell):
    """60.1x and 60.5x of '60.1x (60.5x)'."""
    return find(r"^([\d.]+x) \(([\d.]+x)\)$", cell, line).groups()


# ---- its tables ----

def paper(known):
    listed = {command for _, command in commands()}
    for line, (text, _, simulated, predicted, _) in table("run", "the paper", "simulated"):
        run = run_of(line, text)
        known.append(run)
        if run.command("simulate") not in listed:
            sys.exit(f"{PAGE}:{line}: {run.command('simulate')} is not among the commands above")
        yield Figure(line, simulated, run.command("simulate"))
        yield Figure(line, predicted, run.command("plan"))


def parts(known):
    for line, (text, *cells) in table("run", "all", "plan data", "overlap off", "priority off"):
        run = run_of(line, text, known)
        for cell, options in zip(cells, ("", "--plan data", "--overlap off", "--priority off")):
            simulated, predicted = pair(line, cell)
            yield Figure(line, simulated, run.command("simulate", options))
            yield Figure(line, predicted, run.command("plan", options))


def large_planned(known):
    header = ("net, minibatch", "Cori", "64-core nodes, 100 Gbit/s (`ethernet-100g`)")
    for line, (text, *cells) in table(*header):
        for cell, platform in zip(cells, header[1:]):
            run = run_of(line, f"{text}, {platform}", nodes="1024")
            known.append(run)
            auto, data = pair(line, cell)
            yield Figure(line, auto, run.command("plan"))
            yield Figure(line, data, run.command("plan", "--plan data"))


def large_simulated(known):
    for line, (text, simulated, predicted, *_) in table("net, platform", "simulated"):
        run = run_of(line, text, known, "1024")
        yield Figure(line, simulated, run.command("simulate"))
        yield Figure(line, predicted, run.command("plan"))


def jitter(known):
    """--steps stands in the text, for most runs and for those of a number of nodes."""
    pattern = r"`(--jitter \S+) (--steps \d+)`; on (\d+) nodes `(--steps \d+)`"
    shaken, steps, nodes, more = find(pattern, " ".join(LINES), 1).groups()
    for line, (text, _, now, without) in table("net, platform", "before", "now"):
        run = run_of(line, text, known)
        options = more if run.nodes == nodes else steps
        yield Figure(line, now.split(",")[0], run.command("simulate", shaken, options))
        yield Figure(line, without, run.command("simulate", options))


def figures():
    known = []
    return [figure for part in (paper, parts, large_planned, large_simulated, jitter)
            for figure in part(known)]


# ---- checking ----

def is_wanted(command):
    nodes = int(re.search(r"--nodes \S*?(\d+) ", command)[1])
    is_quick = nodes <= QUICK_NODES and not any(slow in command for slow in SLOW_OPTIONS)
    is_simulation = command.startswith("tutti simulate")
    return not is_simulation or WHICH == "all" or (WHICH == "quick" and is_quick)


def run(command, *more):
    done = subprocess.run([TUTTI, *shlex.split(command)[1:], *more], text=True, cwd=ROOT,
                          capture_output=True)
    return done.stdout if done.returncode == 0 else sys.exit(f"{command}: {done.stderr}")


def speedup(command):
    said = json.loads(run(command, "--json"))
    return said.get("rows", [said])[0]["speedup"]


def check(where, good, seen, command):
    global failures
    failures += not good
    name = re.sub(r"\W+", "_", command)
    print(f"[{'       OK ' if good else '  FAILED  '}] {name}", flush=True)
    if not good:
        print(f"{where}, but {seen}; again: {TUTTI.parent}/{command}", flush=True)


def check_figures():
    """Rounded as the page rounds; each command runs once."""
    wanted = {}
    for figure in figures():
        wanted.setdefault(figure.command, []).append(figure)
    for command in wanted:
        if not is_wanted(command):
            continue
        value = speedup(command)
        for line, said, _ in wanted[command]:
            now = f"{value:.{len(said.partition('.')[2].rstrip('x'))}f}x"
            check(f"{PAGE}:{line} says {said}", said == now, f"it is {now}", command)


def check_pictures():
    shown = {f"doc/{name}" for name in re.findall(r"!\[.*?\]\((.*?)\)", "\n".join(LINES))}
    drawn = {command.partition(" --plot ")[2] for _, command in commands()} - {""}
    if shown != drawn:
        sys.exit(f"{PAGE} shows {sorted(shown)}, its commands draw {sorted(drawn)}")
    with tempfile.TemporaryDirectory() as folder:
        now = pathlib.Path(folder, "now.svg")
        for line, command in commands():
            before, _, picture = command.partition(" --plot ")
            if not picture or not is_wanted(command):
                continue
            run(before, "--plot", now)
            check(f"{PAGE}:{line} shows {picture}", (ROOT / picture).read_text() == now.read_text(),
                  "now it is another", command)


check_figures()
check_pictures()
sys.exit(1 if failures else 0)
