#!/usr/bin/env python3
"""tensorboard.py TUTTI: what --tensorboard writes is what metrics.jsonl has, record by record, also when
a run was killed and went on; read by a reader of this check's own."""
import glob
import json
import math
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time

TUTTI = sys.argv[1]
CURVES = {"loss": "loss", "accuracy": "top1", "top5": "top5", "lr": "lr",
          "gradient_norm": "gradient_norm", "samples_per_s": "samples_per_s"}
failures = []


def expect(what, good, seen=""):
    print(f"[{'       OK ' if good else '  FAILED  '}] {what}", flush=True)
    if not good:
        failures.append(what)
        print(seen)


def masked_crc(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    crc ^= 0xffffffff
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


def records(path):
    data = open(path, "rb").read()
    at = 0
    while at < len(data):
        length, = struct.unpack_from("<Q", data, at)
        crc, = struct.unpack_from("<I", data, at + 8)
        assert crc == masked_crc(data[at:at + 8]), "the length's sum"
        body = data[at + 12:at + 12 + length]
        crc, = struct.unpack_from("<I", data, at + 12 + length)
        assert crc == masked_crc(body), "the record's sum"
        yield body
        at += 16 + length


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if not byte & 0x80:
            return value, at


def fields(data):
    """Field number and value of a protobuf message, in their order."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 1:
            value, at = struct.unpack_from("<d", data, at)[0], at + 8
        elif key & 7 == 5:
            value, at = struct.unpack_from("<f", data, at)[0], at + 4
        else:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
        yield key >> 3, value


def curves(run):
    """{(tag, step): value} as TensorBoard understands the files: a later START forgets."""
    found, versions, starts = {}, 0, []
    for path in sorted(glob.glob(f"{run}/events.out.tfevents.*")):
        for body in records(path):
            event = dict(fields(body))
            step = event.get(2, 0)
            versions += event.get(3) == b"brain.Event:2"
            assert abs(event[1] - time.time()) < 600, "the time"
            if 7 in event and dict(fields(event[7])) == {1: 1}:
                starts.append(step)
                found = {k: v for k, v in found.items() if k[1] < step}
            if 5 in event:
                value = dict(fields(dict(fields(event[5]))[1]))
                key = (value[1].decode(), step)
                assert key not in found, f"{key} twice"
                found[key] = value[2]
    return found, versions, starts


def compare(what, run, files, starts):
    found, versions, seen = curves(run)
    rows = [json.loads(line) for line in open(f"{run}/metrics.jsonl")]
    wanted = {}
    for row in rows:
        values = {**row, **row.get("time", {})}
        for name, key in CURVES.items():
            if isinstance(values.get(key), float | int) and row["phase"] in ("train", "test", "val"):
                wanted[f"{row['phase']}/{name}", row["step"]] = values[key]
    expect(f"{what}: every value of the metrics, once", wanted.keys() == found.keys(),
           sorted(wanted.keys() ^ found.keys())[:10])
    expect(f"{what}: and equal to a float's precision",
           all(math.isclose(found[k], v, rel_tol=1e-6) for k, v in wanted.items() if k in found))
    expect(f"{what}: {files} files, goes on at {starts}", versions == files and seen == starts,
           (versions, seen))


def train(run, *more, **how):
    return subprocess.run([TUTTI, "train", "lenet", "--data", "synthetic,train=256,test=64",
                           "--batch-size=16", "--threads=1", "--clip=1", "--checkpoint-every=5",
                           "--run", run, "--tensorboard", "-q", *more], capture_output=True,
                          text=True, **how)


def main():
    with tempfile.TemporaryDirectory() as folder:
        run = os.path.join(folder, "a")
        done = train(run, "--steps=12", "--eval-every=6")
        expect("a run with --tensorboard", done.returncode == 0, done.stderr)
        compare("fresh", run, 1, [])
        done = train(run, "--steps=20", "--resume=auto")
        expect("goes on", done.returncode == 0, done.stderr)
        compare("resumed", run, 2, [13])
        killed = subprocess.Popen([TUTTI, "train", "lenet", "--data", "synthetic", "--threads=1",
                                   "--clip=1", "--checkpoint-every=10", "--eval-every=never",
                                   "--steps=100000", "--run", run + "k", "--tensorboard", "-q"])
        while killed.poll() is None and not os.path.exists(run + "k/step_00000020"):
            time.sleep(0.02)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        latest = int(os.readlink(run + "k/latest").removeprefix("step_"))
        done = subprocess.run([TUTTI, "train", "--run", run + "k", "--resume=auto", "--threads=1",
                               f"--steps={latest + 15}", "--tensorboard", "-q"],
                              capture_output=True, text=True)
        expect("goes on after a kill", done.returncode == 0, done.stderr)
        compare("killed", run + "k", 2, [latest + 1])
        done = subprocess.run([TUTTI, "train", "lenet", "--data", "synthetic", "--tensorboard"],
                              capture_output=True, text=True)
        expect("without --run there is nowhere to write", done.returncode == 2 and
               "--run" in done.stderr, done.stderr)
    sys.exit(1 if failures else 0)


main()
