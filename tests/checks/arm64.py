#!/usr/bin/env python3
"""arm64.py BUILD: base, the plain C kernels and nn compile for arm64 without a warning: the commands
of this build, but by Debian's cross compiler. make check-arm64 also runs the tests there."""
import concurrent.futures
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

COMPILER = "aarch64-linux-gnu-gcc"
ROOMS = ("/base_", "/kernel_", "/nn_", "libkernel_scalar.a.p/")
# -O1: nobody runs it. Libraries' headers are taken from this machine, after all of the compiler's
# own; what they say about 64 bits and the order of bytes holds there, too.
HEADERS = ["/usr/include", *map(str, pathlib.Path("/usr/include").glob("*-linux-gnu"))]
FLAGS = ["-O1", "-fdiagnostics-color=never", "-o", os.devnull,
         *(f"-idirafter{path}" for path in HEADERS)]


def translated(words):
    """The same command for the other compiler: without what names outputs or places of libraries."""
    kept, words = [], iter(words)
    for word in words:
        if word in ("-o", "-MQ", "-MF"):
            next(words)
        elif word.startswith(("-f", "-W", "-D", "-std", "-c")) or word.endswith(".c") or (
                word.startswith("-I") and not word.startswith("-I/usr")):
            kept.append(word)
    return [COMPILER, *kept, *FLAGS]


def complaint(entry):
    done = subprocess.run(translated(shlex.split(entry["command"])), cwd=entry["directory"],
                          capture_output=True, text=True)
    return done.stderr if done.returncode else ""


def main():
    build = pathlib.Path(sys.argv[1])
    if not shutil.which(COMPILER):
        print(f"no {COMPILER}: tools/setup installs it")
        sys.exit(77)
    entries = [entry for entry in json.loads((build / "compile_commands.json").read_text())
               if any(room in entry["output"] for room in ROOMS)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = [text for text in pool.map(complaint, entries) if text]
    print("".join(complaints) + f"{len(entries)} files")
    sys.exit(1 if complaints or len(entries) < 50 else 0)


main()
