#!/usr/bin/env python3
"""datasets.py TUTTI: what train and test say about data that is not as one would like it."""
import json
import pathlib
import resource
import struct
import subprocess
import sys
import tempfile
import zlib

TUTTI = sys.argv[1]
NET = "input 3 8 8\ndefault batch-size 4\nfc1 fc {} init=gaussian std=0.01\nloss softmax\n"
FAILURES = []


def expect(what, is_true, done=None):
    if not is_true:
        FAILURES.append(what)
        print("FAIL", what, *(("exit", done.returncode, done.stdout[:3000], done.stderr[:3000])
                              if done else ()))


def run(*words, memory=None):
    """The program, with so many bytes of address space at most."""
    def limit():
        if memory:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    return subprocess.run([TUTTI, *map(str, words), "--threads", "1"], capture_output=True,
                          text=True, timeout=120, preexec_fn=limit)


def png(shade):
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data
                + struct.pack(">I", zlib.crc32(kind + data)))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">2I5B", 8, 8, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress((b"\0" + bytes([shade]) * 8) * 8)) + chunk(b"IEND", b""))


def make_pictures(folder, each):
    """Two classes, told apart by their shade."""
    for name, shade in ("dark", 40), ("light", 200):
        (folder / name).mkdir(parents=True)
        for i in range(each):
            (folder / name / f"{i}.png").write_bytes(png(shade + i))


def write_net(folder, classes):
    path = folder / f"{classes}.net"
    path.write_text(NET.format(classes))
    return path


def check_damage(folder):
    make_pictures(folder / "set", 6)
    net = write_net(folder, 2)
    for name in "dark", "light":
        (folder / "set" / name / "bad.png").write_bytes(b"no picture")
    lists = {"good": [f"{n}/{i}.png" for n in ("dark", "light") for i in range(6)],
             "bad": ["dark/bad.png", "light/bad.png"]}
    for name, paths in lists.items():
        (folder / "set" / name).write_text("\n".join(paths))
    words = ["train", net, "--data", f"images:{folder}/set,train=good,test=bad,resize=8", "--steps",
             "6", "--run", folder / "run"]
    done = run(*words)
    expect("a damaged picture ends training, --skip-bad is named",
           done.returncode == 1 and "dark/bad.png" in done.stderr and "--skip-bad" in done.stderr,
           done)
    words[-1] = folder / "run2"
    done = run(*words, "--skip-bad")
    expect("no accuracy is not the best",
           done.returncode == 0 and "every sample to test on is damaged" in done.stderr
           and "best so far" not in done.stdout and "nan" not in done.stdout
           and not (folder / "run2/best").is_symlink(), done)


def check_outputs(folder):
    make_pictures(folder / "set", 10)
    words = ["--data", f"images:{folder}/set,resize=8", "--steps", "2"]
    done = run("train", write_net(folder, 7), *words)
    expect("spare outputs are mentioned", done.returncode == 0
           and "7 has 7 outputs for 2 classes" in done.stderr
           and "give layer fc1 2 outputs" in done.stderr, done)
    done = run("train", write_net(folder, 2), *words)
    expect("as many outputs as classes", done.returncode == 0 and not done.stderr, done)


def check_no_tests(folder):
    make_pictures(folder / "set", 10)
    words = ["train", write_net(folder, 2), "--steps", "2", "--run", folder / "run", "--data",
             f"images:{folder}/set,resize=8,holdout=0"]
    done = run(*words)
    expect("nothing to test on is said at the start", done.returncode == 1
           and "holdout=" in done.stderr and not (folder / "run").exists(), done)
    done = run(*words, "--eval-every", "never")
    expect("nothing to test on, none needed", done.returncode == 0, done)


def evaluations(folder):
    rows = [json.loads(line) for line in open(folder / "metrics.jsonl")]
    return [(row["phase"], row["top1"]) for row in rows if row["phase"] in ("val", "test")]


def check_validation(folder):
    """With val= it decides, and the test set is looked at once; without it the run says what does."""
    make_pictures(folder / "set", 20)
    words = ["train", write_net(folder, 2), "--steps", "12", "--eval-every", "3steps", "--run"]
    done = run(*words, folder / "a", "--data", f"images:{folder}/set,resize=8,val=25")
    found = evaluations(folder / "a")
    state = json.loads((folder / "a/latest/state.json").read_text())["metrics"]
    expect("val decides, test comes once, at the end", done.returncode == 0
           and [phase for phase, _ in found] == ["val"] * 4 + ["test"]
           and state["best_top1"] == max(top1 for phase, top1 in found if phase == "val"), done)
    expect("what decides is said", "chosen on 9 validation samples; 4 test samples" in done.stdout
           and "chosen on the validation set; test top-1" in done.stdout, done)
    done = run(*words, folder / "b", "--data", f"images:{folder}/set,resize=8")
    expect("without val= the test set decides, and that is said", done.returncode == 0
           and [phase for phase, _ in evaluations(folder / "b")] == ["test"] * 4
           and "chosen on the test set, which flatters it" in done.stdout
           and "chosen on the test set\n" in done.stdout, done)
    done = run(*words, folder / "c", "--data", f"images:{folder}/set,resize=8,holdout=0,val=25")
    expect("val is enough", done.returncode == 0 and "none to test on" in done.stdout
           and [phase for phase, _ in evaluations(folder / "c")] == ["val"] * 4, done)
    done = run("test", words[1], "--weights", folder / "a/best", "--data",
               f"images:{folder}/set,resize=8,val=25")
    expect("tutti test takes the test set", "\n4 samples: top-1" in done.stdout, done)


def check_many_classes(folder):
    """ImageNet's 21,841 classes: their table of confusions would take 3.8 GB."""
    net = write_net(folder, 21841)
    words = [net, "--data", "synthetic,train=8,test=8"]
    done = run("train", *words, "--steps", "1", "--run", folder / "run")
    expect("21,841 classes are trained", done.returncode == 0, done)
    done = run("test", *words, "--weights", folder / "run", memory=3 << 30)
    expect("21,841 classes are tested", done.returncode == 0
           and "no table of confusions: 21841 classes" in done.stdout
           and "8 samples: top-1" in done.stdout, done)


for check in check_damage, check_outputs, check_no_tests, check_validation, check_many_classes:
    with tempfile.TemporaryDirectory() as name:
        check(pathlib.Path(name))
sys.exit(bool(FAILURES))
