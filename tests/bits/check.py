#!/usr/bin/env python3
"""check.py TUTTI [--full] [--filter TEXT]: the same bits for any number of ranks and threads, any
plan, any instruction set and after any resume.

Every case trains the same net again, differently, and compares the bytes of its last checkpoint
and the losses in metrics.jsonl with those of one rank and one thread. A case prints one line as
cmocka does, so that it is counted."""
import json
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))

import runs
from read_safetensors import read
from runs import ENV, same

HERE = pathlib.Path(__file__).parent
TUTTI = sys.argv[1]
FULL = "--full" in sys.argv
FILTER = sys.argv[sys.argv.index("--filter") + 1] if "--filter" in sys.argv else ""
NETS = HERE.parent / "nets"
SMALL = [str(HERE / "small.net"), "--data", "synthetic", "--grains", "8"]


def command(run, ranks, *options):
    return runs.command(TUTTI, run, ranks, *options)


def train(run, ranks, *options, env=None):
    return runs.train(TUTTI, run, ranks, *options, env=env)


def plan_file(folder, text):
    path = folder / ("plan_" + text.replace(" ", "_").replace("\n", "-").replace("=", ""))
    path.write_text(f"tutti plan 1\n{text}\n")
    return str(path)


def divisors(n):
    return [g for g in range(2, n) if n % g == 0]


def cases(folder):
    """(name, ranks, options, environment) of runs that must equal the first."""
    yield "2 threads", 1, ["--threads", "2"], {}
    for isa in runs.rows(TUTTI):
        yield f"{isa} kernels", 1, ["--threads", "1"], {"TUTTI_ISA": isa}
    for n in (2, 3, 4, 5, 7, 8):
        yield f"{n} ranks, data", n, ["--threads", "1", "--plan", "data"], {}
    for n in (2, 3, 4):
        yield f"{n} ranks, model", n, ["--threads", "1", "--plan", "model"], {}
    yield "2 ranks x 2 threads, auto", 2, ["--threads", "2", "--plan", "auto"], {}
    yield "4 ranks, auto", 4, ["--threads", "1", "--plan", "auto"], {}
    mixed = plan_file(folder, "fc4 hybrid groups=2\nfc5 model\nfc6 hybrid groups=2")
    yield "4 ranks, mixed plan", 4, ["--threads", "1", "--plan", mixed], {}
    six = plan_file(folder, "fc4 hybrid groups=3\nfc5 hybrid groups=2")
    yield "6 ranks, mixed plan", 6, ["--threads", "1", "--plan", six], {}
    for n in (1, 2, 3, 5):
        yield f"{n} ranks, micro-batch", n, ["--threads", "1", "--micro-batch", "4"], {}
    for n, plan in ((2, "model"), (4, mixed)):
        yield (f"{n} ranks, {'model' if n == 2 else 'mixed plan'}, micro-batch", n,
               ["--threads", "1", "--plan", plan, "--micro-batch", "4"], {})
    yield "3 ranks, no overlap", 3, ["--threads", "1", "--overlap", "off"], {}
    for reduce in ("direct", "halving"):
        yield f"4 ranks, {reduce}", 4, ["--threads", "1", "--part-reduce", reduce], {}
    doubling = ["--part-reduce", "halving", "--part-broadcast", "doubling"]
    yield "4 ranks, doubling", 4, ["--threads", "1", *doubling], {}
    yield "3 ranks, bruck", 3, ["--threads", "1", "--part-broadcast", "bruck"], {}
    if not FULL:
        return
    for n in (4, 6, 8):
        for g in divisors(n):
            plan = plan_file(folder, f"fc4 hybrid groups={g}\nfc5 hybrid groups={g}")
            for threads in ("1", "2"):
                yield f"{n} ranks x {threads}, G={g}", n, ["--threads", threads, "--plan", plan], {}
    for n in (2, 3, 5, 7, 8):
        for isa in runs.rows(TUTTI):
            yield f"{n} ranks, {isa}", n, ["--threads", "1"], {"TUTTI_ISA": isa}


def check_matrix(folder, options, label=""):
    reference = train(folder / "reference", 1, *options, "--threads", "1")
    for name, ranks, extra, env in cases(folder):
        def run(name=name, ranks=ranks, extra=extra, env=env):
            other = train(folder / "other", ranks, *options, *extra, env=env)
            same(reference, other)
            shutil.rmtree(other)
        yield label + name, run


def check_resume(folder):
    options = [*SMALL, "--steps", "12", "--eval-every", "never", "--checkpoint-every", "5steps"]
    whole = train(folder / "whole", 1, *options, "--threads", "1")

    def other_ranks():
        run = folder / "resumed"
        train(run, 4, *options, "--threads", "1")
        for step in ("step_00000010", "step_00000012"):
            shutil.rmtree(run / step)
        (run / "latest").unlink()
        (run / "latest").symlink_to("step_00000005")
        train(run, 3, *options, "--threads", "1", "--resume", "auto")
        same(whole, run)

    def killed():
        run = folder / "killed"
        long = [*SMALL, "--steps", "4000", "--eval-every", "never", "--checkpoint-every", "20steps",
                "--threads", "1"]
        process = subprocess.Popen(command(run, 3, *long), env=ENV, stderr=subprocess.PIPE)
        wait_for(run / "step_00000020")
        subprocess.run(["pkill", "-9", "-n", "-f", f"tutti train.*{run}"], check=True)
        process.wait(timeout=60)
        assert process.returncode != 0, "a killed rank must not look like success"
        reached = max(int(p.name[5:]) for p in run.glob("step_*") if not p.name.endswith(".tmp"))
        steps = ["--steps", str(reached + 7)]
        keep = [o for o in long if o not in ("4000", "--steps")]
        train(run, 2, *keep, *steps, "--resume", "auto")
        fresh = train(folder / "undisturbed", 1, *keep, *steps)
        same(fresh, run)

    def interrupted():
        run = folder / "interrupted"
        long = [*SMALL, "--steps", "100000", "--eval-every", "never", "--threads", "1"]
        process = subprocess.Popen(command(run, 1, *long), env=ENV, stderr=subprocess.PIPE)
        wait_for(run / "metrics.jsonl", 2000)
        process.send_signal(signal.SIGUSR1)
        assert process.wait(timeout=60) == 75, f"exit {process.returncode}, not 75"
        assert (run / "latest" / "state.json").exists()

    yield "4 ranks, resumed on 3", other_ranks
    yield "a rank killed, resumed on 2", killed
    yield "SIGUSR1 checkpoints and exits 75", interrupted


def wait_for(path, size=0):
    for _ in range(600):
        if path.exists() and path.stat().st_size >= size:
            return
        time.sleep(0.1)
    raise AssertionError(f"{path} did not appear")


def check_channels(folder):
    """Images of more than a block of channels."""
    for channels in (17, 32, 33):
        options = [str(NETS / f"channels{channels}.net"), "--data", "synthetic", "--steps", "4",
                   "--threads", "1", "--eval-every", "2steps"]
        for ranks in (1, 2, 3):
            def run(ranks=ranks, options=options):
                same(train(folder / "one", 1, *options, "--overwrite"),
                     train(folder / "many", ranks, *options, "--overwrite"))
            yield f"{channels} channels, {ranks} rank{'s' * (ranks > 1)}", run


def check_clipping(folder):
    options = [*SMALL, "--steps", "5", "--clip", "0.5", "--nesterov", "--eval-every", "never"]
    one = train(folder / "clip1", 1, *options, "--threads", "1")
    for ranks, plan in ((3, "data"), (2, "model"), (4, "auto")):
        def run(ranks=ranks, plan=plan):
            same(one, train(folder / f"clip{ranks}", ranks, *options, "--threads", "1",
                            "--plan", plan))
        yield f"clipping, {ranks} ranks, {plan}", run
    nobias = [str(NETS / "nobias.net"), "--data", "synthetic", "--steps", "5", "--threads", "1",
              "--eval-every", "never"]
    bare = train(folder / "nobias1", 1, *nobias)
    groups = plan_file(folder, "fc1 hybrid groups=2\nfc2 hybrid groups=2")
    for ranks, name, plan in ((2, "data", "data"), (2, "model", "model"), (3, "model", "model"),
                              (4, "2 groups", groups)):
        def run(ranks=ranks, name=name, plan=plan):
            same(bare, train(folder / f"nobias{ranks}-{name}", ranks, *nobias, "--plan", plan))
        yield f"clipping without biases, {ranks} ranks, {name}", run

    def switched_off():
        rows = runs.losses(train(folder / "unclipped", 1, *nobias, "--clip", "0"))
        assert not any("gradient_norm" in row for row in rows), "--clip 0 still clips"
        assert rows != runs.losses(bare), "clipping changes nothing"
    yield "clipping switched off", switched_off

    def often_saved():
        often = train(folder / "often", 1, *nobias, "--checkpoint-every", "1step")
        same_losses = runs.losses(often) == runs.losses(bare)
        assert same_losses, "a norm is written beside another step's loss"
    yield "clipping, norms of their steps", often_saved


def check_optimizers(folder):
    """What an optimizer keeps is the same wherever it is kept, and comes back from any checkpoint."""
    for name in ("adam,beta2=0.99", "adamw", "sgd,momentum=0"):
        options = [*SMALL, "--steps", "9", "--optimizer", name, "--weight-decay", "0.01",
                   "--decay-all", "off", "--eval-every", "never", "--checkpoint-every", "4steps",
                   "--keep", "0", "--threads", "1"]
        one = train(folder / f"{name}1", 1, *options)
        for ranks, plan in ((2, "data"), (3, "model"), (4, "auto")):
            def run(ranks=ranks, plan=plan, options=options, one=one):
                same(one, train(folder / f"{name}{ranks}", ranks, *options, "--plan", plan))
            yield f"{name}, {ranks} ranks, {plan}", run

        def resumed(options=options, one=one):
            run = folder / f"{name}-resumed"
            run.mkdir()
            shutil.copytree(one / "step_00000004", run / "step_00000004")
            same(one, train(run, 3, *options, "--plan", "model", "--resume", "auto"), metrics=False)
        yield f"{name}, resumed on 3 ranks", resumed


def check_batchnorm(folder):
    """Statistics groups inside ranks and across them, running statistics, other checkpoints."""
    net = [str(NETS / "batchnorm.net"), "--data", "synthetic", "--grains", "8", "--steps", "6",
           "--checkpoint-every", "3steps", "--eval-every", "3steps", "--threads", "1"]
    fc4 = plan_file(folder, "fc4 model")
    for group, cases in (
            ("all", ((2, []), (3, []), (5, ["--clip", "0.5"]), (8, ["--part-reduce", "direct"]))),
            ("6", ((4, []), (7, ["--part-broadcast", "bruck"]), (2, ["--plan", fc4]))),
            ("9", ((4, ["--overlap", "off"]), (3, []), (1, ["--micro-batch", "9"]),
                   (2, ["--micro-batch", "9"])))):
        options = [*net, "--bn-group", group]
        clipped = {}
        for ranks, extra in cases:
            def run(ranks=ranks, extra=extra, options=options, group=group, clipped=clipped):
                clip = extra if extra[:1] == ["--clip"] else []
                key = " ".join(clip)
                if key not in clipped:
                    clipped[key] = train(folder / f"bn{group}{key}", 1, *options, *clip)
                same(clipped[key], train(folder / "bn-other", ranks, *options, *extra,
                                         "--overwrite"))
            yield f"batchnorm, groups of {group}, {ranks} ranks {extra[:1]}", run

    def resumed():
        options = [*net, "--bn-group", "10"]
        one = train(folder / "bn-whole", 1, *options)
        run = folder / "bn-resumed"
        run.mkdir()
        shutil.copytree(one / "step_00000003", run / "step_00000003")
        same(one, train(run, 3, *options, "--resume", "auto"), metrics=False)
    yield "batchnorm, groups of 10, resumed on 3 ranks", resumed


def check_frozen(folder):
    """Frozen layers and rates of their own, said by the net and by options; what is frozen stays."""
    net = [str(NETS / "frozen.net"), "--data", "synthetic", "--grains", "8", "--steps", "6",
           "--checkpoint-every", "3steps", "--eval-every", "3steps", "--threads", "1"]
    fc4 = plan_file(folder, "fc4 hybrid groups=2\nfc5 hybrid groups=2")
    for label, more in (("", []), (", clipped", ["--clip", "0.5"]),
                        (", options", ["--freeze", "bn3", "--freeze", "fc5,conv2", "--lr-scale",
                                       "fc6=0.3", "--optimizer", "adamw"])):
        one = train(folder / f"frozen{label}", 1, *net, *more)
        once = [] if more else [(5, ["--overlap", "off"]), (3, ["--part-reduce", "direct"])]
        for ranks, extra in ((2, ["--plan", "model"]), (3, []), (4, ["--plan", fc4]), *once):
            def run(ranks=ranks, extra=extra, more=more, one=one):
                same(one, train(folder / "frozen-other", ranks, *net, *more, *extra, "--overwrite"))
            yield f"frozen{label}, {ranks} ranks {' '.join(extra[:1])}", run

    def stays():
        first, last = (read(folder / "frozen" / step / "model.safetensors")
                       for step in ("step_00000000", "latest"))
        frozen = ("conv1", "bn1", "bn2", "conv3", "fc4")
        for name, (_, values) in last.items():
            same_values = values == first[name][1]
            assert same_values == (name.split(".")[0] in frozen), f"{name} moved: {not same_values}"
        states = {n.split(".")[0] for n in read(folder / "frozen" / "latest/optimizer.safetensors")}
        assert states == {"conv2", "bn3", "fc5", "fc6"}, f"the optimizer keeps {states}"
    yield "frozen layers stay, and need no optimizer", stays

    def resumed():
        one, run = folder / "frozen, options", folder / "frozen-resumed"
        run.mkdir()
        shutil.copytree(one / "step_00000003", run / "step_00000003")
        same(one, train(run, 3, *net, "--resume", "auto"), metrics=False)
    yield "frozen, resumed on 3 ranks", resumed


def check_bf16(folder):
    """Layers that round, wherever and by whatever they are computed."""
    net = [str(NETS / "bf16.net"), "--data", "synthetic", "--grains", "8", "--steps", "4",
           "--checkpoint-every", "2steps", "--eval-every", "2steps"]
    one = train(folder / "bf16", 1, *net, "--threads", "1")
    groups = plan_file(folder, "fc6 hybrid groups=2\nfc8 model\nfc9 hybrid groups=2")
    cases = [(1, isa, ["--threads", "2"]) for isa in runs.rows(TUTTI)]
    cases += [(n, "", ["--threads", "1", "--plan", "data"]) for n in (2, 3, 4, 5, 7, 8)]
    cases += [(2, "", ["--threads", "2", "--plan", "model"]), (3, "", ["--threads", "1", "--plan", "model"]),
              (4, "", ["--threads", "1", "--plan", groups]), (1, "", ["--micro-batch", "5"]),
              (3, runs.rows(TUTTI)[0], ["--threads", "1", "--micro-batch", "10"]),
              (2, "", ["--threads", "1", "--plan", "model", "--micro-batch", "5"])]
    for ranks, isa, extra in cases:
        def run(ranks=ranks, isa=isa, extra=extra):
            same(one, train(folder / "bf16-other", ranks, *net, *extra, "--overwrite",
                            env={"TUTTI_ISA": isa} if isa else {}))
        yield f"bf16, {ranks} ranks {isa} {' '.join(extra).replace(str(folder), '')}", run

    def resumed():
        run = folder / "bf16-resumed"
        run.mkdir()
        shutil.copytree(one / "step_00000002", run / "step_00000002")
        same(one, train(run, 3, *net, "--threads", "1", "--plan", "model", "--resume", "auto"), metrics=False)
    yield "bf16, resumed on 3 ranks", resumed


def steps_of(run):
    """The bytes of every file of every checkpoint."""
    return {path.relative_to(run): path.read_bytes() for path in sorted(run.glob("step_*/*"))}


def check_checkpoints(folder):
    """Written behind the computing or before it goes on, by any number of ranks: the same bytes."""
    options = [*SMALL, "--steps", "9", "--optimizer", "adam", "--eval-every", "4steps",
               "--checkpoint-every", "2steps", "--keep", "0", "--threads", "1"]
    one = []

    def compare(ranks, more):
        run = train(folder / f"written{ranks}{''.join(more)}", ranks, *options, *more)
        one.append(steps_of(run))
        assert len(one[0]) == 6 * len(runs.FILES), f"{len(one[0])} files, not those of steps 0 to 9"
        assert one[0] == one[-1], f"the checkpoints of {run} differ"
        left = [path.name for path in run.iterdir() if ".tmp" in path.name]
        assert not left, f"left behind: {left}"
    for ranks in (1, 2, 3):
        for more in ([], ["--checkpoint-sync"]):
            yield (f"checkpoints {'before' if more else 'while'} training goes on, {ranks} "
                   f"rank{'s' * (ranks > 1)}", lambda ranks=ranks, more=more: compare(ranks, more))


def check_complaints(folder):
    def complains(name, ranks, options, code, words):
        done = subprocess.run(command(folder / "bad", ranks, *options), env=ENV,
                              capture_output=True, text=True, timeout=120)
        text = done.stderr + done.stdout
        assert done.returncode == code, f"exit {done.returncode}, not {code}: {text[-400:]}"
        assert words in text, f"'{words}' is not in: {text[-600:]}"
    base = [SMALL[0], "--steps", "1", "--threads", "1"]
    syn = ["--data", "synthetic"]
    bad_plan = plan_file(folder, "fc9 model")
    many = plan_file(folder, "fc7 model")
    yield "more ranks than grains", lambda: complains(
        "grains", 3, [*base, *syn, "--grains", "2"], 2, "or --grains 4")
    yield "a plan for another net", lambda: complains(
        "plan", 2, [*base, *syn, "--plan", bad_plan], 1, "has no layer 'fc9'")
    yield "too few features for the plan", lambda: complains(
        "many", 4, [*base, *syn, "--plan", many], 1, "take at least 2 groups")
    for ranks, plan in (1, "data"), (3, "data"), (4, "model"):
        yield f"a loss that is not a number, {ranks} ranks, {plan}", lambda ranks=ranks, plan=plan: (
            complains("diverged", ranks, [SMALL[0], *syn, "--steps", "30", "--lr", "1e6", "--threads",
                      "1", "--plan", plan], 3, "the loss is not a finite number"),
            shutil.rmtree(folder / "bad"))
    one = [str(NETS / "batchnorm.net"), "--steps", "1", "--threads", "1", *syn]
    yield "a statistics group of one value", lambda: complains(
        "group", 2, [*one, "--bn-group", "7"], 2, "bn4: a statistics group of a minibatch of 36")
    yield "a wrong word for a group", lambda: complains(
        "group", 1, [*one, "--bn-group", "some"], 2, "--bn-group some is neither a number")
    yield "missing data", lambda: complains(
        "data", 2, [*base, "--data", "cifar10:" + str(folder / "nowhere")], 1, "nowhere")


def check_trace(folder):
    """What a trace says must be possible: each layer once a step, nothing twice at a time."""
    def run():
        path, steps = folder / "trace.json", 4
        train(folder / "traced", 3, *SMALL, "--steps", str(steps), "--threads", "1", "--plan",
              "model", "--eval-every", "never", "--trace", str(path))
        events = json.loads(path.read_text())["traceEvents"]
        spans = sorted((e for e in events if e["ph"] == "X"), key=lambda e: e["ts"])
        for rank in range(3):
            lane = [e for e in spans if e["pid"] == rank and e["tid"] == 0]
            for a, b in zip(lane, lane[1:]):
                assert a["ts"] + a["dur"] <= b["ts"] + 0.01, f"{a} and {b} overlap"
            for name in ("forward conv1", "backward-weights conv1", "backward-data conv2"):
                count = sum(e["name"] == name for e in lane)
                assert count == steps, f"rank {rank}: '{name}' {count} times in {steps} steps"
            count = sum(e["name"] == "exchange conv1" for e in spans
                        if e["pid"] == rank and e["tid"] == 1)
            assert count == steps, f"rank {rank}: conv1 exchanged {count} times in {steps} steps"
    yield "a trace of 3 ranks", run


def full_cases(folder, split):
    """(name, ranks, options): every rank count with every plan; split: layers wide enough."""
    for n in (2, 3, 4, 5, 7, 8):
        for plan in ("data", "model", "auto"):
            yield f"{n} ranks, {plan}", n, ["--plan", plan]
        for g in divisors(n):
            plan = plan_file(folder, "\n".join(f"{layer} hybrid groups={g}" for layer in split))
            yield f"{n} ranks, G={g}", n, ["--plan", plan]
    for reduce in ("direct", "halving"):
        yield f"4 ranks, {reduce}", 4, ["--part-reduce", reduce]
    for broadcast in ("direct", "bruck"):
        yield f"4 ranks, {broadcast}", 4, ["--part-broadcast", broadcast]
    yield "4 ranks, doubling", 4, ["--part-reduce", "halving", "--part-broadcast", "doubling"]


def full_nets(folder):
    lenet = ["lenet", "--data", "fashion-mnist", "--batch-size", "64", "--steps", "300"]
    vgg = ["vgg-a", "--data", "synthetic", "--batch-size", "16", "--grains", "8", "--steps", "3",
           "--eval-every", "never", "--keep", "1"]
    cifar = ["cifar-vgg", "--data", "synthetic", "--batch-size", "64", "--steps", "200",
             "--eval-every", "never"]
    for options, split in (lenet, ["fc3"]), (cifar, ["fc5"]), (vgg, ["fc6", "fc7"]):
        home = folder / options[0]
        home.mkdir()
        reference = train(home / "reference", 1, *options, "--threads", "2")
        for name, ranks, extra in full_cases(home, split):
            def run(ranks=ranks, extra=extra, options=options, reference=reference):
                other = reference.parent / "other"
                same(reference, train(other, ranks, *options, "--threads", "1", *extra))
                shutil.rmtree(other)
            yield f"{options[0]}: {name}", run


def main():
    failed = ran = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        groups = [check_matrix(folder, [*SMALL, "--steps", "6", "--eval-every", "3steps"]),
                  check_channels(folder), check_clipping(folder), check_optimizers(folder),
                  check_batchnorm(folder), check_frozen(folder), check_bf16(folder),
                  check_resume(folder), check_checkpoints(folder),
                  check_complaints(folder), check_trace(folder)]
        if FULL:
            groups.append(full_nets(folder))
        for group in groups:
            for case, run in group:
                if FILTER not in case:
                    continue
                ran += 1
                failed += not runs.report(case, run)
    if not ran:
        print(f"no case has '{FILTER}' in its name" + ("" if FULL else "; --full has more"))
    return 1 if failed or not ran else 0


if __name__ == "__main__":
    sys.exit(main())
