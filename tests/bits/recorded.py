#!/usr/bin/env python3
"""recorded.py TUTTI [--full] [--filter TEXT] [--record]: the bits of nets of the zoo, as recorded.

recorded.txt has the checksums (SHA-256) of what each net's model and optimizer hold after a few
steps: the bytes of the tensors, after the files' headers. Every instruction set, number of ranks
and plan must come to them. --record writes the file anew with this machine's best kernels on one
rank: for a change that is meant to change bits, and says so. Such a change also raises
TUTTI_ARITHMETIC, which weights carry and recorded.txt has beside the sums: runs of two versions of
the arithmetic are not taken for the same."""
import concurrent.futures
import hashlib
import json
import pathlib
import shutil
import sys
import tempfile

import runs

HERE = pathlib.Path(__file__).parent
RECORD = HERE / "recorded.txt"
TUTTI = sys.argv[1]
FULL = "--full" in sys.argv
FILTER = sys.argv[sys.argv.index("--filter") + 1] if "--filter" in sys.argv else ""
FILES = ("model.safetensors", "optimizer.safetensors")
SPREADS = [(1, "data"), (3, "data"), (3, "model")]  # ranks, plan
# net, and options of the run: batch size, steps, and how make check spreads it, with the best kernels
NETS = {
    "lenet": (8, 20, SPREADS),
    "cifar-vgg": (8, 20, SPREADS[2:]),
    "cd-dnn": (16, 20, SPREADS[2:]),
    "alexnet": (4, 2, SPREADS[1:2]),
    "overfeat-fast": (4, 2, SPREADS[:1]),
    "vgg-a": (4, 2, SPREADS[:1]),
    # as all were in version 1 of the arithmetic
    "cifar-vgg --conv winograd-2x2": (8, 20, SPREADS[:1]),
    "alexnet --conv winograd-2x2": (4, 2, []),
    "overfeat-fast --conv winograd-2x2": (4, 2, []),
    "vgg-a --conv winograd-2x2": (4, 2, []),
}

# Their recipes were completed after their bits had been recorded: what they are recorded with, instead
# of what they suggest; and without dropout.
BEFORE = {"vgg-a": [], "overfeat-fast": ["--momentum", "0.9", "--weight-decay", "0.0005"]}
ZOO = HERE.parent.parent / "models"


def home():
    """Where runs of a gigabyte are short: memory, if there is enough."""
    memory = pathlib.Path("/dev/shm")
    return memory if memory.is_dir() and shutil.disk_usage(memory).free > 8 << 30 else None


def sum_of(path):
    """Of the tensors' bytes: a safetensors file begins with the length of its header."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        file.seek(int.from_bytes(file.read(8), "little"), 1)
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def arithmetic(path):
    """The version that a model's file tells."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return header["__metadata__"]["arithmetic"]


def text_of(folder, net):
    if net not in BEFORE:
        return net
    lines = (ZOO / f"{net}.net").read_text().splitlines(keepends=True)
    text = folder / f"{net}.net"
    text.write_text("".join(line for line in lines if line.split()[1:2] != ["dropout"]))
    return str(text)


def sums(folder, net, ranks, plan, env):
    batch, steps, _ = NETS[net]
    name, *words = net.split()
    run = runs.train(TUTTI, folder / "run", ranks, text_of(folder, name), *words, "--data",
                     "synthetic", "--batch-size",
                     str(batch), "--steps", str(steps), "--grains", "4", "--threads",
                     "2" if ranks == 1 else "1", "--plan", plan, "--eval-every", "never",
                     "--lr", "0.01", "--lr-schedule", "fixed", "--warmup", "0steps",
                     *BEFORE.get(name, []),
                     env=env, timeout=3600)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        found = list(pool.map(sum_of, (run / "latest" / name for name in FILES)))
    version = arithmetic(run / "latest" / FILES[0])
    shutil.rmtree(run)
    return version, {f"{net}/{name}": value for name, value in zip(FILES, found)}


def recorded():
    lines = (line.split(maxsplit=1) for line in RECORD.read_text().splitlines())
    return {name: value for value, name in lines}


def record(folder):
    old, new = recorded(), {}
    for net in NETS:
        version, found = sums(folder, net, 1, "data", None)
        new |= {"arithmetic": version} | found
        print(*(f"{value}  {name}\n" for name, value in found.items()), sep="", end="", flush=True)
    moved = [name for name in old if name in new and old[name] != new[name]]
    if moved and "arithmetic" not in moved:
        print(f"bits of {', '.join(moved)} move: raise TUTTI_ARITHMETIC (src/step/stepper.h) first")
        return 1
    RECORD.write_text("".join(f"{value}  {name}\n" for name, value in new.items()))
    return 0


def cases():
    """(net, instruction set, ranks, plan); of make check the small net with every set."""
    best = runs.rows(TUTTI)[-1]
    for net, (_, _, some) in NETS.items():
        for isa in runs.rows(TUTTI, here=False):
            small = SPREADS[:1] if net == "lenet" else []
            for ranks, plan in SPREADS if FULL else some if isa == best else small:
                yield net, isa, ranks, plan


def check(folder, net, isa, ranks, plan):
    want = recorded()
    version, found = sums(folder, net, ranks, plan, {"TUTTI_ISA": isa})
    for name, value in {"arithmetic": version, **found}.items():
        assert value == want[name], f"{name}: {value} is not the recorded {want[name]}"


def check_all(folder):
    ran = failed = 0
    for net, isa, ranks, plan in cases():
        case = f"{net}, {isa}, {ranks} ranks, {plan}"
        if FILTER not in case:
            continue
        ran += 1
        if isa not in runs.rows(TUTTI):
            print(f"skipped, no {isa} on this machine: {case}", flush=True)
            continue
        failed += not runs.report(case, lambda: check(folder, net, isa, ranks, plan))
    if not ran:
        print(f"no case has '{FILTER}' in its name" + ("" if FULL else "; --full has more"))
    return 1 if failed or not ran else 0


def main():
    with tempfile.TemporaryDirectory(dir=home()) as name:
        folder = pathlib.Path(name)
        return record(folder) if "--record" in sys.argv else check_all(folder)


if __name__ == "__main__":
    sys.exit(main())
