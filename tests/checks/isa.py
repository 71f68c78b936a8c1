#!/usr/bin/env python3
"""isa.py BUILD: only the kernel bodies of a row carry that row's instructions. Flags are read in
compile_commands.json, instructions in the objects themselves."""
import json
import pathlib
import re
import shlex
import subprocess
import sys

ISA_FLAG = re.compile(r"^-m(arch|tune|cpu|avx|fma|sse|bmi|prefer-vector)")
WIDE = re.compile(r"%[yz]mm\d|\tv[a-z]+\d*[ps][sd] ")
BODY = re.compile(r"libkernel_(avx2|avx512)\.a\.p")


def wrong_flags(build):
    commands = json.loads((build / "compile_commands.json").read_text())
    for command in commands:
        flags = [w for w in shlex.split(command["command"]) if ISA_FLAG.match(w)]
        is_body = BODY.search(command["output"]) and command["file"].endswith("_tmpl.c")
        if flags and not is_body:
            yield f"{command['file']} is compiled with {' '.join(flags)}"
    if not any(BODY.search(c["output"]) for c in commands):
        yield "no kernel body among the commands: is this check looking at them?"


def disassembly(path):
    return subprocess.run(["objdump", "-d", "--no-show-raw-insn", str(path)], capture_output=True,
                          text=True, check=True).stdout


def wrong_instructions(build):
    bodies = 0
    for path in sorted(build.rglob("*.o")):
        if "clang" in path.relative_to(build).parts[0]:
            continue  # a build of its own, checked by itself
        wide = WIDE.search(disassembly(path))
        row = BODY.search(str(path))
        bodies += bool(row and wide)
        if wide and not row:
            yield f"{path.relative_to(build)} has {wide.group().strip()}"
    if bodies < 2:
        yield "no wide instruction even in the kernel bodies: is this check looking at them?"
    for path in build.rglob("libkernel_avx2.a.p/*.o"):
        if re.search(r"%zmm|%k[1-7]", disassembly(path)):
            yield f"{path.relative_to(build)} uses AVX-512"


def main():
    build = pathlib.Path(sys.argv[1])
    complaints = [*wrong_flags(build), *wrong_instructions(build)]
    print("\n".join(complaints))
    sys.exit(1 if complaints else 0)


main()
