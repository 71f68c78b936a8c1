#!/usr/bin/env python3
"""segmentation.py TUTTI: nets whose outputs are no classes of samples. Shapes on noise, a class for
each pixel, are learned by a small U-Net, tested and drawn; a plane through points comes to the
solution of least squares; both with the same bits on several ranks, in pieces and resumed."""
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/bits"), str(ROOT / "examples")]
import runs
import shapes

TUTTI = str(pathlib.Path(sys.argv[1]).resolve())
SIDE, CLASSES, RANKS = 32, 3, (3,)
FAILURES = []
NET = f"""input 3 {SIDE} {SIDE}
enc1 conv 8 kernel=3 pad=1 nobias
bn1  batchnorm group=8 relu
down maxpool kernel=2
enc2 conv 16 kernel=3 pad=1 nobias
bn2  batchnorm group=8 relu
aux  conv {CLASSES} kernel=1
aux2 upsample scale=2
auxl pixelsoftmax weight=0.3
up   deconv 8 kernel=2 stride=2 from=bn2
cat  concat bn1 up
dec  conv 8 kernel=3 pad=1 nobias
bn3  batchnorm group=8 relu
head conv {CLASSES} kernel=1
loss pixelsoftmax
"""


def expect(what, is_true, done=None):
    if not is_true:
        FAILURES.append(what)
        print("FAIL", what, *(("exit", done.returncode, done.stdout[-2000:], done.stderr[-2000:])
                              if done else ()))


def run(*words):
    return subprocess.run([TUTTI, *map(str, words)], capture_output=True, text=True, timeout=120,
                          env=runs.ENV)


def same_on_ranks(folder, first, words, extra=()):
    if "[X] MPI" not in run("--check-build").stdout:
        return
    for ranks in RANKS:
        runs.same(first, runs.train(TUTTI, folder / f"{first.name}-{ranks}", ranks, *words))
    for number, options in enumerate(extra):
        runs.same(first, runs.train(TUTTI, folder / f"{first.name}-with-{number}", 1, *words, *options))


def last_row(folder, phase):
    return [row for row in runs.rows_of(folder) if row["phase"] == phase and "loss" in row][-1]


# ---- pixels ----

def classes_of(path):
    """The pixels of a palette PNG of 8 bits without filters."""
    data, at, packed, width = path.read_bytes(), 8, b"", 0
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", data[at + 8:at + 18])
            assert depth == 8 and colour == 3
        packed += data[at + 8:at + 8 + size] if kind == b"IDAT" else b""
        at += 12 + size
    rows = zlib.decompress(packed)
    lines = [rows[y * (width + 1):(y + 1) * (width + 1)] for y in range(height)]
    assert all(line[0] == 0 for line in lines)
    return b"".join(line[1:] for line in lines)


def check_shapes(folder):
    shapes.make(folder / "shapes", 90, SIDE, 7)
    net, one = folder / "small.net", folder / "one"
    net.write_text(NET)
    data = f"images:{folder}/shapes/pictures,masks={folder}/shapes/masks,pad=2"
    words = [str(net), "--data", data, "-b", "16", "--grains", "8", "--epochs", "6", "--optimizer", "adam",
             "--lr", "0.01", "--weight-decay", "0"]
    runs.train(TUTTI, one, 1, *words)
    same_on_ranks(folder, one, words, [("--threads", "2"), ("--micro-batch", "8")])
    half = folder / "half"
    runs.train(TUTTI, half, 1, *words, "--steps", "13")
    runs.train(TUTTI, half, 1, *words, "--resume", "auto", "--epochs", "6")
    for name in runs.FILES[:1]:
        expect("a resumed run has the same weights", (half / "latest" / name).read_bytes()
               == (one / "latest" / name).read_bytes())
    row = last_row(one, "test")
    expect(f"it learns shapes: mean IoU {row['mean_iou']}", row["mean_iou"] > 0.5)
    expect("steps have a share of right pixels", 0 < last_row(one, "train")["pixel_accuracy"] <= 1)
    state = json.loads((one / "latest/state.json").read_text())
    expect("the state has the best IoU", "best_mean_iou" in json.dumps(state))
    weighed = folder / "weighed"
    runs.train(TUTTI, weighed, 1, *words, "--class-weights", "auto", "--label-smoothing", "0.1",
               "--steps", "6")
    if "[X] MPI" in run("--check-build").stdout:
        runs.same(weighed, runs.train(TUTTI, folder / "weighed-3", 3, *words, "--class-weights", "auto",
                                      "--label-smoothing", "0.1", "--steps", "6"))
    check_answers(folder, one, data)


def check_answers(folder, one, data):
    done = run("test", "--data", data, "--weights", one, "--json")
    found = json.loads(done.stdout)
    expect("the test of the best is the best", abs(found["mean_iou"] - max(
        row["mean_iou"] for row in runs.rows_of(one) if row["phase"] == "test")) < 1e-6, done)
    expect("a class has its IoU", len(found["classes"]) == CLASSES
           and abs(sum(c["iou"] for c in found["classes"]) / CLASSES - found["mean_iou"]) < 1e-6, done)
    expect("there are no confusions of samples", "confusion" not in found, done)
    masks, picture = folder / "drawn", folder / "shapes/pictures/000.png"
    done = run("predict", "--weights", one, picture, "--output", masks, "--json")
    line = json.loads(done.stdout)
    drawn = classes_of(masks / "000.png")
    expect("a mask is drawn", line["mask"] == str(masks / "000.png") and len(drawn) == SIDE * SIDE, done)
    for c in line["classes"]:
        expect("its shares are those of its pixels",
               abs(drawn.count(int(c["name"])) / SIDE**2 - c["share"]) < 1e-6, done)
    truth = classes_of(folder / "shapes/masks/000.png")
    right = sum(a == b for a, b in zip(drawn, truth) if b != 255)
    expect(f"most of its pixels are right: {right}", right > 0.8 * SIDE**2)
    done = run("predict", "--weights", one, "--data", data, "--output", folder / "p.npy")
    expect("an array of masks", done.returncode == 0 and b"'|u1'" in (folder / "p.npy").read_bytes()[:128]
           and f"({90 // 10}, {SIDE}, {SIDE})".encode() in (folder / "p.npy").read_bytes()[:128], done)


# ---- values ----

def write_array(path, rows, kind="<f4", letter="f"):
    head = (f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({len(rows)}, {len(rows[0])}), }}"
            .ljust(117) + "\n").encode()
    path.write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head
                     + b"".join(struct.pack(f"<{len(row)}{letter}", *row) for row in rows))


def solve(a, b):
    """Gauss's way, for a few unknowns."""
    n = len(b)
    rows = [[*a[i], b[i]] for i in range(n)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda k: abs(rows[k][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for k in range(n):
            if k != i:
                factor = rows[k][i] / rows[i][i]
                rows[k] = [x - factor * y for x, y in zip(rows[k], rows[i])]
    return [rows[i][n] / rows[i][i] for i in range(n)]


def check_two_targets(folder):
    """A class and a value of the points: what is said of each class agrees with the hits."""
    source = random.Random(6)
    xs = [[source.gauss(0, 1) for _ in range(3)] for _ in range(120)]
    write_array(folder / "tx.npy", xs)
    write_array(folder / "ty.npy", [[x[0] + x[1]] for x in xs])
    write_array(folder / "tc.npy", [[max(range(3), key=x.__getitem__)] for x in xs], "|u1", "B")
    net, two = folder / "two.net", folder / "two"
    net.write_text("input 3\nf fc 8 relu\nv fc 1\nvl mse target=2\nc fc 3 from=f\nloss softmax\n")
    data = f"npy:{folder}/tx.npy,{folder}/tc.npy,{folder}/ty.npy,mean=0,std=1,holdout=50"
    runs.train(TUTTI, two, 1, str(net), "--data", data, "-b", "20", "--epochs", "3")
    done = run("test", "--data", data, "--weights", two, "--json")
    found = json.loads(done.stdout)
    seen = [sum(row) for row in found["confusion"]]
    expect(f"each class has its samples: {seen}", all(seen) and sum(seen) == found["samples"], done)
    right = sum(found["confusion"][c][c] for c in range(3)) / found["samples"]
    names = folder / "names.txt"
    names.write_text("x\ny\nz\n")
    runs.train(TUTTI, two, 1, str(net), "--data", f"{data},names={names}", "-b", "20", "--epochs", "1",
               "--overwrite")
    done = run("test", "--data", data, "--weights", two)
    expect("data without names are of the same classes", done.returncode == 0, done)
    names.write_text("x\nz\ny\n")
    done = run("test", "--data", f"{data},names={names}", "--weights", two)
    expect("names in another order are refused", done.returncode != 0 and "calls output 1 'z'" in
           done.stderr, done)
    expect(f"hits are on the diagonal: {right}", abs(right - found["top1"]) < 1e-6, done)


def check_plane(folder):
    source = random.Random(5)
    single = lambda x: struct.unpack("<f", struct.pack("<f", x))[0]
    xs = [[single(source.gauss(0, 1)) for _ in range(3)] for _ in range(240)]
    ys = [[single(2 * x[0] - x[1] + 0.5 * x[2] + 3 + source.gauss(0, 0.3))] for x in xs]
    write_array(folder / "x.npy", xs), write_array(folder / "y.npy", ys)
    net, plane = folder / "plane.net", folder / "plane"
    net.write_text("input 3\nout fc 1\nloss mse\n")
    data = f"npy:{folder}/x.npy,{folder}/y.npy,mean=0,std=1,test={folder}/x.npy,test-labels={folder}/y.npy"
    words = [str(net), "--data", data, "-b", "240", "--grains", "8", "--steps", "150", "--lr", "0.3",
             "--optimizer", "sgd,momentum=0.5", "--eval-every", "150steps"]
    runs.train(TUTTI, plane, 1, *words)
    same_on_ranks(folder, plane, words)
    rows = [[*x, 1] for x in xs]
    normal = [[sum(r[i] * r[k] for r in rows) for k in range(4)] for i in range(4)]
    best = solve(normal, [sum(r[i] * y[0] for r, y in zip(rows, ys)) for i in range(4)])
    least = sum((sum(b * v for b, v in zip(best, r)) - y[0])**2 for r, y in zip(rows, ys)) / len(ys)
    row = last_row(plane, "test")
    expect(f"least squares: {row['loss']} of {least}", abs(row["loss"] / least - 1) < 1e-5)
    expect("RMSE is its root", abs(row["rmse"]**2 / least - 1) < 1e-5)
    mean = sum(y[0] for y in ys) / len(ys)
    share = 1 - least * len(ys) / sum((y[0] - mean)**2 for y in ys)
    expect(f"R2: {row['r2']} of {share}", abs(row["r2"] - share) < 1e-5)
    done = run("predict", "--weights", plane, "--data", f"npy:{folder}/x.npy", "--json")
    first = json.loads(done.stdout.splitlines()[0])
    want = sum(b * v for b, v in zip(best, rows[0]))
    expect("a value is predicted", abs(first["values"][0] - want) < 1e-3, done)
    check_two_targets(folder)
    for options, part in ((("--label-smoothing", "0.1"), "--label-smoothing is for softmax"),
                          (("--class-weights", "auto"), "--class-weights is for softmax")):
        done = run("train", *words, *options)
        expect(f"{options[0]} is refused", done.returncode == 2 and part in done.stderr, done)
    done = run("train", net, "--data", "fashion-mnist")
    expect("data of classes are refused", done.returncode != 0 and "the net's loss wants values" in
           done.stderr, done)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        check_shapes(pathlib.Path(scratch))
        check_plane(pathlib.Path(scratch))
    sys.exit(f"{len(FAILURES)} failed" if FAILURES else 0)
