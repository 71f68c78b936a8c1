#!/usr/bin/env python3
"""symbols.py BUILD INCLUDE: the shared library shows only tutti_ symbols, and only those of the public
headers; the static one defines no other global."""
import pathlib
import subprocess
import sys


def defined(*command):
    out = subprocess.run(["nm", "-P", "-g", "--defined-only", *command], capture_output=True,
                         text=True, check=True).stdout
    return [line.split()[0] for line in out.splitlines() if len(line.split()) >= 3]


def main():
    build = pathlib.Path(sys.argv[1])
    shared, = [p for p in build.glob("src/libtutti.so.*") if p.is_file() and not p.is_symlink()]
    static = build / "src" / "libtutti.a"
    shown, inside = defined("-D", str(shared)), defined(str(static))
    complaints = [f"{shared.name} exports {s}" for s in shown if not s.startswith("tutti_")]
    complaints += [f"{static.name} defines {s}" for s in inside if not s.startswith("tutti_")]
    headers = "\n".join(p.read_text() for p in pathlib.Path(sys.argv[2]).rglob("*.h"))
    complaints += [f"{shared.name} exports {s}, which no public header declares"
                   for s in shown if s not in headers]
    if "tutti_version" not in shown or len(inside) < 50:
        complaints.append("the libraries lack what they must have: is this check looking at them?")
    print("\n".join(complaints) or f"{len(shown)} public, {len(inside)} in all")
    sys.exit(1 if complaints else 0)


main()
