#!/usr/bin/env python3
"""numerics.py BUILD PAGE: the errors that doc/NUMERICS.md shows are what bench/errors prints, to the
digit: kernels of every instruction set have the same bits."""
import pathlib
import subprocess
import sys

BUILD, PAGE = map(pathlib.Path, sys.argv[1:])
done = subprocess.run([BUILD / "bench/errors"], capture_output=True, text=True, timeout=300)
if done.returncode or done.stdout.count("\n") < 10:
    sys.exit(f"bench/errors: exit {done.returncode}: {done.stderr}")
shown = PAGE.read_text().splitlines()
wrong = [line for line in done.stdout.splitlines() if line not in shown]
for line in wrong:
    print(f"{PAGE.name} does not have: {line}")
sys.exit(bool(wrong))
