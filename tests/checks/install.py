#!/usr/bin/env python3
"""install.py BUILD: what 'meson install' leaves behind is enough to run the program and to build
another one against the library, by pkg-config alone."""
import os
import pathlib
import subprocess
import sys
import tempfile

PROGRAM = """#include <stdio.h>
#include <tutti/tutti.h>
int main(void) { puts(tutti_version()); return tutti_status_exit_code(TUTTI_OK); }
"""
WANTED = ["bin/tutti", "include/tutti/tutti.h", "share/man/man1/tutti.1",
          "share/bash-completion/completions/tutti"]


def run(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, check=True, **more).stdout


def build_against(root, libs, folder):
    """Compiles PROGRAM with the flags that pkg-config gives; returns what it prints."""
    pc = next(root.rglob("tutti.pc")).parent
    environment = {**os.environ, "PKG_CONFIG_PATH": str(pc)}
    prefix = ["pkg-config", f"--define-variable=prefix={root}", "tutti"]
    flags = run(*prefix, "--cflags", *libs, env=environment).split()
    source, program = folder / "p.c", folder / "p"
    source.write_text(PROGRAM)
    run("cc", "-Wall", "-Werror", "-o", str(program), str(source), *flags, "-fopenmp")
    return run(str(program), env={**environment, "LD_LIBRARY_PATH": str(pc.parent)}).strip()


def main():
    build = sys.argv[1]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        run("meson", "install", "-C", build, "--no-rebuild", "--destdir", str(folder / "root"))
        prefix = next((folder / "root").rglob("bin/tutti")).parent.parent
        missing = [w for w in WANTED if not (prefix / w).exists()]
        missing += [w for w in ("libtutti.so", "libtutti.a") if not list(prefix.rglob(w))]
        version = run(str(prefix / "bin/tutti"), "--version").split()[1]
        built = build_against(prefix, ["--libs"], folder)
    print("missing:", missing, "program:", version, "built against it:", built)
    sys.exit(1 if missing or built != version else 0)


main()
