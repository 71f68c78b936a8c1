#!/usr/bin/env python3
"""headers.py SOURCE: every public header compiles alone as C11 and as C++17."""
import pathlib
import subprocess
import sys

FLAGS = ["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
LANGUAGES = [["gcc", "-x", "c", "-std=c11"], ["g++", "-x", "c++", "-std=c++17"],
             ["clang", "-x", "c", "-std=c11"], ["clang++", "-x", "c++", "-std=c++17"]]


def main():
    include = pathlib.Path(sys.argv[1], "include")
    headers = sorted(p.relative_to(include) for p in include.rglob("*.h"))
    failed = 0 if headers else 1
    for header in headers:
        for language in LANGUAGES:
            done = subprocess.run([*language, *FLAGS, f"-I{include}", "-"], text=True,
                                  input=f"#include <{header}>\n", capture_output=True)
            failed += done.returncode != 0
            if done.returncode:
                print(f"{header} as {' '.join(language)}:\n{done.stderr}")
    print(f"{len(headers)} headers, {failed} failures")
    sys.exit(1 if failed else 0)


main()
