#!/usr/bin/env python3
"""headers.py SOURCE MPI-FLAGS...: every public header compiles alone as C11 and as C++17; mpi.h, which
needs an MPI, with its flags. And Python knows what they declare."""
import pathlib
import re
import subprocess
import sys

FLAGS = ["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
LANGUAGES = [["gcc", "-x", "c", "-std=c11"], ["g++", "-x", "c++", "-std=c++17"],
             ["clang", "-x", "c", "-std=c11"], ["clang++", "-x", "c++", "-std=c++17"]]


def main():
    include = pathlib.Path(sys.argv[1], "include")
    headers = sorted(p.relative_to(include) for p in include.rglob("*.h"))
    mpi = ["-isystem" + re.sub("^-I|^-isystem", "", f) for f in sys.argv[2:]
           if f.startswith(("-I", "-isystem"))]
    if not sys.argv[2:]:
        headers = [h for h in headers if h.name != "mpi.h"]
    failed = 0 if headers else 1
    for header in headers:
        more = mpi if header.name == "mpi.h" else []
        for language in LANGUAGES:
            done = subprocess.run([*language, *FLAGS, f"-I{include}", *more, "-"], text=True,
                                  input=f"#include <{header}>\n", capture_output=True)
            failed += done.returncode != 0
            if done.returncode:
                print(f"{header} as {' '.join(language)}:\n{done.stderr}")
    binding = subprocess.run([include.parent / "tools/python-binding", "--check"])
    failed += binding.returncode != 0
    print(f"{len(headers)} headers, {failed} failures")
    sys.exit(1 if failed else 0)


main()
