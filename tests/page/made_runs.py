"""Runs that nobody trained: directories with the files that tutti watch reads, of any length."""
import base64
import hashlib
import json
import math
import pathlib
import random
import zlib


def sealed(fields):
    """A line as the program writes it, with its sum."""
    body = json.dumps(fields, separators=(",", ":"))[:-1].encode()
    return body + b',"crc":"%08x"}\n' % zlib.crc32(body)


def train_row(step, batch=64, odd=False):
    loss = 2.3 * math.exp(-step / 4000) + 0.2 + 0.05 * math.sin(step / 7)
    return sealed({"step": step, "epoch": step / 1000, "phase": "train",
                   "loss": None if odd else round(loss, 6), "top1": round(1 - loss / 3, 6), "lr": 0.02,
                   "time": {"seconds": 0.01, "samples_per_s": batch / 0.01}})


def rank_row(step, steps, ranks, slow=None):
    compute = [8000 + 40 * (r % 7) + (2500 if slow == r else 0) for r in range(ranks)]
    longest = max(compute)
    return sealed({"step": step, "phase": "ranks", "steps": steps, "step_us": longest + 400,
                   "compute_us": compute, "exposed_us": [longest - c + 300 for c in compute],
                   "waiting_us": [2] * ranks, "data_us": [80] * ranks,
                   "memory_mib": [100 + r for r in range(ranks)]})


LAYERS = [("conv1", "conv", [-1], [32, 28, 28], 832), ("pool1", "maxpool", [0], [32, 14, 14], 0),
          ("conv2", "conv", [1], [64, 14, 14], 51264), ("fc3", "fc", [2], [10, 1, 1], 125450),
          ("loss", "softmax", [3], [10, 1, 1], 0)]


def begun(steps, ranks, name="made"):
    return {"event": "begun", "at": 1.7e9, "text": "a fresh run", "version": "0", "name": name,
            "steps": steps, "batch": 64, "samples": 64000, "ranks": ranks, "peak": 1e12, "flops": 1e8,
            "facts": {"net": name + ", 1 parameter", "data": "made up"},
            "hosts": [f"node{r}" for r in range(ranks)],
            "layers": [{"name": n, "kind": k, "from": f, "out": o, "parameters": p, "groups": ranks,
                        "split": "data", "predicted": {"forward": 1e-3, "weights": 1e-3, "data": 1e-3,
                                                       "comm": 1e-3, "exposed": 0, "bytes": 4.0 * p}}
                       for n, k, f, o, p in LAYERS]}


def event(step, **fields):
    return sealed({"step": step, "phase": "event", **fields})


PICTURES = pathlib.Path(__file__).resolve().parents[1] / "fuzz/seeds/picture"


def worst():
    jpeg = [base64.b64encode((PICTURES / f"{name}.jpg").read_bytes()).decode() for name in ("baseline", "grey")]
    return [{"id": i, "file": f"dog/photo-{i:04}.jpg", "loss": 9.5 / (i + 1), "truth": "dog",
             "answer": "cat" if i < 9 else "dog", "sure": 0.99 - i / 20, "of_truth": i / 20, "jpeg": jpeg[i % 2]}
            for i in range(12)]


def make(path, steps=1000, of=None, ranks=4, slow=None, ended=True, seed=0, figures=None):
    """A run of 'of' steps that has done 'steps' of them; with different seeds, different weights. Evaluations
    have these figures, or an accuracy that grows."""
    path = pathlib.Path(path)
    path.mkdir(parents=True)
    with open(path / "metrics.jsonl", "wb") as f:
        f.writelines(train_row(s) for s in range(1, steps + 1))
        for s in range(steps // 4, steps + 1, max(1, steps // 4)):
            f.write(sealed({"step": s, "epoch": s / 1000, "phase": "test", "loss": 0.5,
                            **(figures or {"top1": s / steps, "top5": 1.0}), "samples": 100, "time": {"seconds": 0.1}}))
        for name, *_ in LAYERS:
            f.write(sealed({"step": steps, "phase": "layer", "layer": name, "time": {
                "forward_s": 1e-3, "backward_weights_s": 1e-3, "backward_data_s": 1e-3,
                "comm_s": 1e-4, "exposed_s": 5e-4, "bytes": 1000}}))
    width = max(1, steps // 1000)
    with open(path / "ranks.jsonl", "wb") as f:
        f.writelines(rank_row(s, width, ranks, slow) for s in range(width, steps + 1, width))
    with open(path / "events.jsonl", "wb") as f:
        f.write(event(0, **begun(of or steps, ranks)))
        f.write(event(steps // 2, event="checkpoint", at=1.7e9 + 4, text="written"))
        f.write(event(steps // 2, event="warning", at=1.7e9 + 5, text="warning: something"))
        if ended:
            f.write(event(steps, event="confusion", at=1.7e9 + 9, split="test", outputs=3,
                          classes=["cat", "dog", "cow"], counts=[8, 1, 1, 0, 9, 1, 2, 0, 8]))
            f.write(event(steps, event="worst", split="test", samples=worst()))
            f.write(event(steps, event="ended", at=1.7e9 + 10, text="done", status="OK", code=0))
    for step, salt in ((0, 0), (steps // 2, 0), (steps, seed)):
        folder = path / f"step_{step:08d}"
        folder.mkdir()
        digest = hashlib.sha256(b"%d %d" % (step, salt)).hexdigest()
        (folder / "SHA256SUMS").write_text(f"{digest}  model.safetensors\n")
    return path


HOSTILE = "</script><script>document.title='hacked'</script><img src=x onerror=alert(1)>\"'&\u2028"


def make_hostile(path, rows=20000):
    """Names that want to be more than names, lines that are none, numbers that are no numbers."""
    path = pathlib.Path(path)
    path.mkdir(parents=True)
    dice = random.Random(1)
    said = begun(1 << 60, 4, HOSTILE)
    said["facts"] = {HOSTILE: HOSTILE, "n": 5}
    said["hosts"] = [HOSTILE, 5, None]
    for i, layer in enumerate(said["layers"]):
        layer.update(name=HOSTILE + str(i), kind=HOSTILE, out=[1e300, -1, "x"], split=HOSTILE)
    said["layers"] += [5, None, {"from": [99999, -7, "x"], "parameters": 1e308}, {}]
    with open(path / "metrics.jsonl", "wb") as f:
        for step in range(1, rows + 1):
            row = train_row(step, odd=step % 100 == 0)
            if step % 50 == 0:
                at = dice.randrange(len(row))
                row = row[:at] + bytes([dice.randrange(256)]) + row[at + 1:]
            f.write(row)
        f.write(sealed({"step": 1 << 62, "phase": "train", "loss": 1e308}))
        f.write(sealed({"step": 5, "phase": "layer", "layer": HOSTILE, "time": {"forward_s": 1e300}}))
        f.write(b"\x00\xff" * 100000)
    with open(path / "ranks.jsonl", "wb") as f:
        f.write(rank_row(10, 10, 3))
        f.write(sealed({"step": 1, "phase": "ranks", "compute_us": [1e308, None, "x", -5]}))
        f.write(sealed({"step": 2, "phase": "ranks", "steps": -1, "compute_us": HOSTILE}))
    with open(path / "events.jsonl", "wb") as f:
        f.write(event(0, **said))
        f.write(event(5, event=HOSTILE, at=1e300, text=HOSTILE))
        f.write(event(6, event="confusion", classes=[HOSTILE] * 3, outputs=3, counts=["x"] * 9, split=HOSTILE))
        f.write(event(6, event="worst", split=HOSTILE, samples=[
            5, None, {"jpeg": HOSTILE}, {"jpeg": "AAAA\" onerror=alert(1)"}, {"jpeg": ["x"]}, {"jpeg": ""}]))
        f.write(event(7, event="ended", at=None, text=HOSTILE, code=3))
        f.write(b"}{" * 1000 + b"\n")
    return path
