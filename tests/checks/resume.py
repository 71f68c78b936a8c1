#!/usr/bin/env python3
"""resume.py TUTTI: what a run has written is taken for what it is. A run that goes on is the same
run: its options are the checkpoint's, what may change is said, all else is refused. Damaged weights
are refused."""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

TUTTI = str(pathlib.Path(sys.argv[1]).resolve())
NETS = pathlib.Path(__file__).resolve().parent.parent / "nets"
LINEAR = [str(NETS / "linear.net"), "--data", "synthetic,train=64,test=40"]
FAILURES = []
FILES = ("model.safetensors", "optimizer.safetensors", "state.json", "SHA256SUMS")
ENV = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
# No option is what it would be if it were forgotten.
ODD = ["--batch-size", 16, "--grains", 4, "--seed", 3, "--steps", 8, "--lr", 0.1, "--lr-schedule",
       "fixed", "--warmup", "2steps", "--optimizer", "sgd,momentum=0.5", "--nesterov",
       "--weight-decay", 0.01, "--decay-all", "off", "--clip", 0.7, "--init", "xavier", "--shuffle",
       "off", "--augment", "off", "--dropout", "off", "--skip-bad", "--eval-every", "3steps",
       "--checkpoint-every", "4steps", "--keep", 0, "--label-smoothing", 0.1,
       "--ema", 0.9, "--class-weights", "auto"]


def run(*words, **options):
    return subprocess.run([TUTTI, *map(str, words)], capture_output=True, text=True, timeout=120,
                          **options)


def expect(what, is_true, done=None):
    if not is_true:
        FAILURES.append(what)
        print("FAIL", what, *(("exit", done.returncode, done.stdout[-2000:], done.stderr[-2000:])
                              if done else ()))


def train(*words):
    done = run("train", *words, "--quiet")
    expect(f"train {' '.join(map(str, words))}", done.returncode == 0, done)
    return done


def flip(path, place):
    """One bit, 'place' bytes from the end."""
    content = bytearray(path.read_bytes())
    content[-place] ^= 1
    path.write_bytes(content)


def begun(folder, name):
    """A run that was left at step 4 of 8, and another that was not."""
    whole, left = folder / "whole", folder / name
    if not whole.exists():
        train(*LINEAR, *ODD, "--run", whole)
    left.mkdir()
    shutil.copytree(whole / "step_00000004", left / "step_00000004")
    return whole, left


def check_same_run(folder):
    """What is not said again is not forgotten, and the same words again are fine."""
    for name, words in ("silent", []), ("again", ODD), ("some", ODD[:4] + ["--init", "xavier"]):
        whole, left = begun(folder, name)
        done = train(*LINEAR, *words, "--run", left, "--resume", "auto")
        expect(f"{name}: nothing is said to change", "->" not in done.stderr, done)
        for file in FILES:
            expect(f"{name}: {file} is that of the run that was not left",
                   (whole / "latest" / file).read_bytes() == (left / "latest" / file).read_bytes())


def check_changes(folder):
    for number, (words, said) in enumerate((
            (["--lr", 0.01], "lr 0.1 -> 0.01"),
            (["--lr-schedule", "cosine", "--keep", 2], "lr-schedule fixed -> cosine, keep 0 -> 2"),
            (["--steps", 9], "steps 8 -> 9"), (["--epochs", 3], "steps 8 -> 12"),
            (["--eval-every", "never", "--checkpoint-every", "1epoch"],
             "checkpoint-every 4steps -> 1epoch, eval-every 3steps -> never"))):
        _, left = begun(folder, f"changed{number}")
        done = train(*LINEAR, *words, "--run", left, "--resume", "auto")
        expect(f"{words} is said to change", f"resumed at step 4; {said}\n" in done.stderr, done)
        options = json.loads((left / "latest" / "state.json").read_text())["options"]
        expect(f"{words} is kept", all(options[part.split()[0]] == part.split()[-1]
                                       for part in said.split(", ")))


def check_refusals(folder):
    """Each ends with 2 and names the option; nothing is written."""
    _, left = begun(folder, "left")
    other = [LINEAR[0], "--data", "synthetic,train=65,test=40"]
    channels = [str(NETS / "nobias.net"), *LINEAR[1:]]
    before = sorted(left.rglob("*"))
    for words, said in (
            (["--batch-size", 32], "--batch-size 16, not 32"), (["--grains", 8], "--grains 4, not 8"),
            (["--seed", 0], "--seed 3, not 0"), (["--warmup", "0steps"], "--warmup 2steps, not 0steps"),
            (["--optimizer", "adam"], "--optimizer sgd,momentum=0.5"),
            (["--momentum", 0.9], "momentum=0.9"), (["--no-nesterov"], "nesterov=no"),
            (["--weight-decay", 0], "--weight-decay 0.01, not 0"),
            (["--decay-all", "on"], "--decay-all off, not on"), (["--clip", 0], "--clip 0.7, not 0"),
            (["--ema", 0], "--ema 0.9, not 0"),
            (["--label-smoothing", 0], "--label-smoothing 0.1, not 0"),
            (["--class-weights", "none"], "other class weights than --class-weights"),
            (["--init", "he"], "--init xavier, not he"), (["--shuffle", "on"], "--shuffle off, not on"),
            (["--augment", "on"], "--augment off, not on"),
            (["--dropout", "on"], "--dropout off, not on"),
            (["--no-skip-bad"], "--skip-bad on, not off"),
            (other, "other data than --data"), (channels, "another net")):
        done = run("train", *([] if words[0] in (other[0], channels[0]) else LINEAR), *words, "--run",
                   left, "--resume", "auto")
        expect(f"{words} is refused", done.returncode == 2 and said in done.stderr
               and done.stderr.count("\n") == 1, done)
    expect("nothing is written", sorted(left.rglob("*")) == before)


def png(path, colour):
    """A picture of 8x8 pixels of about one colour."""
    rows = b"".join(b"\0" + bytes(min(255, c + 7 * (x ^ y)) for x in range(8) for c in colour)
                    for y in range(8))
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)),
              (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks))


COLOURS = {"bag": (200, 20, 20), "cardboard": (20, 200, 20), "glass": (20, 20, 200)}


def pictures(folder, names):
    """Class by class the same pictures, to train and to test on."""
    for name, colour in names.items():
        for part in ("train", "test"):
            for i in range(4):
                png(folder / part / name / f"{i}.png", [min(255, c + 9 * i) for c in colour])
    return f"images:{folder}"


def check_about(folder):
    """A file of weights tells its net, its classes and how samples are made."""
    net = folder / "small.net"
    net.write_text("# Of three colours.\ninput 3 8 8\nout fc 3\nloss softmax\n")
    data = pictures(folder / "all", COLOURS) + ",mean=0.3/0.4/0.5,std=0.2/0.3/0.4,resize=10"
    train(net, "--data", data, "--run", folder / "run", "--steps", 30, "--lr", 0.05, "-b", 12,
          "--eval-every", "never")
    file = folder / "all" / "test" / "glass" / "0.png"
    shutil.copy(file, folder / "glass.png")
    named = run("predict", net, "--data", data, "--weights", folder / "run", file)
    expect("glass is glass", named.returncode == 0 and ": glass " in named.stdout, named)
    tested = run("test", net, "--data", data, "--weights", folder / "run")
    expect("all are right", "12 samples: top-1 100.00 %" in tested.stdout, tested)
    words = ["test", "--data", data, "--weights", folder / "run"]
    expect("test knows the net", run(*words).stdout == tested.stdout, run(*words))

    two = {name: COLOURS[name] for name in ("cardboard", "glass")}
    done = run("test", "--data", pictures(folder / "two", two) + ",resize=10", "--weights",
               folder / "run")
    expect("classes at other places are matched by name",
           "8 samples: top-1 100.00 %" in done.stdout, done)
    done = run("predict", "--data", f"images:{folder}/two,resize=10", "--weights", folder / "run",
               file)
    expect("names are the model's", done.stdout == named.stdout, done)
    for other, said in (
            (pictures(folder / "typo", dict(two, glas=COLOURS["glass"])) + ",resize=10",
             "a class 'glas' that --weights"),
            (f"images:{folder}/all,mean=0.3/0.4/0.6,std=0.2/0.3/0.4,resize=10",
             "not what the weights were trained with")):
        done = run("test", "--data", other, "--weights", folder / "run")
        expect(f"{other} is refused", done.returncode == 2 and said in done.stderr, done)
    tanh = folder / "tanh.net"
    tanh.write_text(net.read_text().replace("fc 3", "fc 3 tanh"))
    done = run("test", tanh, "--data", data, "--weights", folder / "run")
    expect("another net is refused", done.returncode == 2 and "another net" in done.stderr, done)

    shutil.copytree(folder / "run" / "latest", folder / "left" / "step_00000030")
    done = run("train", "--resume", folder / "left", "--run", folder / "left", "--steps", 33)
    expect("a run knows its net and data", done.returncode == 0, done)
    shutil.copy(folder / "run" / "latest" / "model.safetensors", folder / "lone.safetensors")
    for name in ("all", "two", "typo", "run"):
        shutil.rmtree(folder / name)
    net.unlink()
    done = run("predict", "--weights", "lone.safetensors", "glass.png", cwd=folder)
    expect("a file that was copied away knows all of it", done.returncode == 0
           and done.stdout.replace("glass.png:", f"{file}:") == named.stdout, done)


def check_strangers(folder):
    """Weights of others still need a net and a data set, and say so."""
    train(*LINEAR, "--steps", 1, "--run", folder / "run", "--eval-every", "never")
    content = (folder / "run" / "latest" / "model.safetensors").read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8:8 + length])
    header["__metadata__"] = {"format": "pt"}
    bare = json.dumps(header).encode()
    weights = folder / "foreign.safetensors"
    weights.write_bytes(len(bare).to_bytes(8, "little") + bare + content[8 + length:])
    for key, text in (("classes", "[]"), ("classes", "[1]"), ("mean", "[0,0]"), ("std", "x"),
                      ("net_text", "input 4"), ("picture", "{}")):
        ours = json.loads(content[8:8 + length])
        ours["__metadata__"][key] = text
        told = json.dumps(ours).encode()
        weights.write_bytes(len(told).to_bytes(8, "little") + told + content[8 + length:])
        done = run("test", *LINEAR[1:], "--weights", weights)
        expect(f"{key} {text} is refused", done.returncode in (1, 6)
               and done.stderr.startswith("tutti test: "), done)
    weights.write_bytes(len(bare).to_bytes(8, "little") + bare + content[8 + length:])
    done = run("test", *LINEAR[1:], "--weights", weights)
    expect("a net is needed", done.returncode == 2 and "NET is missing" in done.stderr, done)
    expect("a net is enough", run("test", *LINEAR, "--weights", weights).returncode == 0)
    png(folder / "x.png", COLOURS["bag"])
    done = run("predict", "--weights", folder / "run", folder / "x.png")
    expect("numbers are no pictures", done.returncode == 2 and "on pictures" in done.stderr, done)
    done = run("predict", LINEAR[0], "--weights", weights, folder / "x.png")
    expect("data are needed", done.returncode == 2 and "--data is missing" in done.stderr, done)


def check_ranks(folder):
    """Ranks whose options differ say which, instead of waiting for each other."""
    if "[X] MPI: Open MPI" not in run("--check-build").stdout:
        return
    for option, one, two in (("augment", "on", "off"), ("eval-every", "1epoch", "never"),
                             ("overlap", "on", "off")):
        words = [TUTTI, "train", *LINEAR, "--steps", "4", "--run", str(folder / "run"), "--threads",
                 "1", "--comm-core", "none", "--stall-abort", "30", f"--{option}"]
        done = subprocess.run(["mpirun", "--oversubscribe", "-n", "1", *words, one, ":", "-n", "1",
                               *words, two], env=ENV, capture_output=True, text=True, timeout=120)
        expect(f"--{option} {one} and {two}", done.returncode == 5
               and f"--{option}" in done.stderr, done)


def check_sums(folder):
    """Weights with a flipped bit are refused wherever they are named, by their own name."""
    train(*LINEAR, "--steps", 4, "--run", folder / "run")
    weights = folder / "run" / "best" / "model.safetensors"
    copy = folder / "copy.safetensors"
    uses = (["test", *LINEAR, "--weights"],
            ["train", *LINEAR, "--steps", 1, "--eval-every", "never", "--weights"])
    places = [folder / "run", folder / "run" / "best", weights]
    for use in uses:
        for place in places:
            done = run(*use, place)
            expect(f"{use[0]} --weights {place}", done.returncode == 0, done)
    flip(weights, 5)
    (folder / "link").symlink_to(weights)
    for use in uses:
        for place in (*places, folder / "link"):
            done = run(*use, place)
            expect(f"{use[0]} --weights {place}, damaged", done.returncode == 6
                   and "model.safetensors' is not the file that was written" in done.stderr, done)
    shutil.copy(weights, copy)
    expect("weights without sums", run(*uses[0], copy).returncode == 0)


with tempfile.TemporaryDirectory() as name:
    for check in (check_same_run, check_changes, check_refusals, check_about,
                  check_strangers, check_ranks, check_sums):
        home = pathlib.Path(name) / check.__name__
        home.mkdir()
        check(home)
sys.exit(1 if FAILURES else 0)
