#!/usr/bin/env python3
"""memory.py TUTTI: micro-batches take less memory, as foretold; by themselves where it would not do;
and what runs out of memory names one that fits."""
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

TUTTI = sys.argv[1]
MIB = 1 << 20
LIMIT = 640 * MIB  # of addresses: the program and its libraries take about 200
# Six layers that keep two values for each of 16 x 64 x 64: 3 MiB a sample, next to no parameters.
NET = ("input 1 64 64\n" + "".join(f"c{i} conv 16 kernel=1 silu\n" for i in range(6))
       + "p avgpool size=1x1\nf fc 4\nloss softmax\n")
FAILURES = []


def expect(what, is_true, done=None):
    if not is_true:
        FAILURES.append(what)
        print("FAIL", what, *((done.returncode, done.stdout[-2000:], done.stderr[-2000:])
                              if done else ()))


def train(*words, limit=None):
    """The finished process; 'peak' is the most memory it had, in bytes."""
    def prepare():
        if limit:
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(
            [TUTTI, "train", *map(str, words), "--threads", "1", "--data-threads", "1",
             "--data", "synthetic,test=8"], stdout=out, stderr=err, preexec_fn=prepare)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        for file in out, err:
            file.seek(0)
        done = subprocess.CompletedProcess(process.args, process.returncode, out.read(), err.read())
    done.peak = usage.ru_maxrss << 10
    return done


def foretold(net, batch, micro_batch, *more):
    words = [*more, "--batch-size", str(batch), "--micro-batch", str(micro_batch), "--threads", "1"]
    done = subprocess.run([TUTTI, "info", net, "--json", *words], capture_output=True, text=True,
                          check=True)
    return json.loads(done.stdout)["memory"]


def check_less(net):
    """32 samples at once, and 4."""
    whole, less = (train(net, "--batch-size", 32, "--steps", 2, "--micro-batch", n)
                   for n in (32, 4))
    for done in whole, less:
        expect("a run without a limit", done.returncode == 0, done)
    expect("the header says how many passes", "in 8 passes of up to 4" in less.stdout, less)
    expect("one pass is not mentioned", "passes" not in whole.stdout, whole)
    said, says = foretold(net, 32, 32), foretold(net, 32, 4)
    expect("tutti info knows the passes", (said["passes"], says["passes"]) == (1, 8))
    kept = foretold(net, 32, 4, "--ema", "0.9")
    expect("an average is as large as the momentum, and so is its copy",
           says["average"] == 0 and kept["average"] == kept["momentum"] == says["momentum"] and
           kept["peak"] - says["peak"] == kept["average"] + kept["snapshot"] - says["snapshot"] and
           kept["snapshot"] > says["snapshot"])
    saved, promised = whole.peak - less.peak, said["peak"] - says["peak"]
    print(f"peak {whole.peak / MIB:.0f} and {less.peak / MIB:.0f} MiB, foretold "
          f"{said['peak'] / MIB:.0f} and {says['peak'] / MIB:.0f} MiB")
    expect("most of what 28 samples take is saved", promised > 60 * MIB)
    expect("what is promised is saved", abs(saved - promised) < 0.2 * promised)


def check_limit(net, folder):
    options = [net, "--batch-size", 256, "--steps", 1]
    by_itself = train(*options, "--run", folder / "auto", limit=LIMIT)
    expect("takes less by itself", by_itself.returncode == 0 and
           re.search(r"passes of up to \d+ \(all at once would take", by_itself.stdout), by_itself)
    asked = train(*options, "--micro-batch", 256, limit=LIMIT)
    advice = re.search(r"cannot allocate .*; --micro-batch (\d+) would take", asked.stderr)
    expect("out of memory names what would fit", asked.returncode == 1 and advice, asked)
    if not advice:
        return
    advised = train(*options, "--micro-batch", advice[1], "--run", folder / "advised", limit=LIMIT)
    expect("the advice works", advised.returncode == 0, advised)
    small = train(*options, "--micro-batch", 4, "--run", folder / "small")
    expect("the smallest works", small.returncode == 0, small)
    models = [(folder / name / "latest" / "model.safetensors").read_bytes()
              for name in ("auto", "advised", "small")]
    expect("the same bits", models[0] == models[1] == models[2])


def check_hopeless(net):
    done = train(net, "--batch-size", 256, "--steps", 1, limit=230 * MIB)
    if done.returncode == 1:  # where the program itself takes less it may do
        expect("says that nothing fits", "use a smaller --batch-size" in done.stderr, done)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        net = folder / "wide.net"
        net.write_text(NET)
        check_less(net)
        check_limit(net, folder)
        check_hopeless(net)
    print(f"{len(FAILURES)} failures")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
