#!/usr/bin/env python3
"""check_arm64.py TUTTI ARM64 ROOT: a training on arm64, played by QEMU in ROOT, leaves the same bytes
as one here, with each of this machine's kernels."""
import pathlib
import re
import subprocess
import sys
import tempfile

NET = str(pathlib.Path(__file__).parent / "bits" / "small.net")
OPTIONS = ["--data", "synthetic", "--grains", "8", "--steps", "3", "--eval-every", "2steps",
           "--threads", "1", "--quiet"]
FILES = ("model.safetensors", "optimizer.safetensors", "state.json", "SHA256SUMS")


def train(run, *program, **environment):
    subprocess.run(["env", *(f"{k}={v}" for k, v in environment.items()), *program, "train", NET,
                    *OPTIONS, "--run", str(run)], check=True)
    return [(run / "latest" / name).read_bytes() for name in FILES]


def main():
    tutti, arm64, root = sys.argv[1:]
    build = subprocess.run([tutti, "--check-build"], capture_output=True, text=True, check=True)
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        there = train(folder / "arm64", "qemu-aarch64", "-L", root, arm64)
        for isa in re.findall(r"kernels for (\w+)$", build.stdout, re.M):
            differ = [f for f, a, b in zip(FILES, there, train(folder / isa, tutti, TUTTI_ISA=isa))
                      if a != b]
            failed += bool(differ)
            print(f"arm64 and {isa}:", "differ in " + ", ".join(differ) if differ else "same bytes")
    sys.exit(1 if failed else 0)


main()
