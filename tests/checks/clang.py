#!/usr/bin/env python3
"""clang.py SOURCE BUILD: the second compiler builds everything without a warning, and the unit
tests that take no longer than seconds pass there, too. Keeps its build folder, so that a second run compiles nothing."""
import os
import pathlib
import subprocess
import sys


def main():
    source, build = sys.argv[1], pathlib.Path(sys.argv[2], "clang")
    if not (build / "build.ninja").exists():
        subprocess.run(["meson", "setup", str(build), source, "-Ddefault_library=static"],
                       env={**os.environ, "CC": "clang"}, check=True)
    built = subprocess.run(["ninja", "-C", str(build)], capture_output=True, text=True)
    print(built.stdout[-5000:], built.stderr)
    if built.returncode:
        sys.exit(built.returncode)
    sys.exit(subprocess.call(["meson", "test", "-C", str(build), "--no-rebuild", "--suite", "unit",
                              "--no-suite", "long", "--print-errorlogs", "--timeout-multiplier", "3"]))


main()
