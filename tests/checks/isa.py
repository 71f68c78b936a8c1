#!/usr/bin/env python3
"""isa.py SOURCE BUILD: what depends on the processor stays in its place. Only kernel bodies are
compiled with flags for an instruction set, only objects with the flag have its instructions, and
only kernel/isa and base/cpu know which architecture it is."""
import json
import pathlib
import re
import shlex
import subprocess
import sys

ISA_FLAG = re.compile(r"^-m(arch|tune|cpu|avx|fma|sse|bmi|prefer-vector)")
BODY = re.compile(r"libkernel_\w+\.a\.p/\w+_tmpl\.c\.o$")
# what stands in a disassembly: the flag without which it must not
NEEDED_FLAG = {r"%zmm|%k[1-7]": "-mavx512f", r"%ymm": "-mavx2", r"\tv[a-z]+\d*[ps][sd] ": "-mavx2",
               r"\tvdpbf16ps|\tvcvtne2?ps2bf16": "-mavx512bf16"}
# words of one architecture, and where they may stand
WORDS = re.compile(r"__x86_64__|__SSE|__AVX|__aarch64__|__ARM|ia32|immintrin|arm_neon|\b_mm\d*_|"
                   r'"[+=]?[vxw]"\(')
PLACES = ("src/kernel/isa/", "src/base/cpu.")
# a row's choices are lists in its own header, not guesses from the number of its lanes
GUESS = re.compile(r"^\s*#\s*(?:el)?if.*\b(?:VLEN|NREG)\b|\bVLEN (?:==|>) ?\d", re.M)


def commands(build):
    """Object: the flags it is compiled with."""
    entries = json.loads((build / "compile_commands.json").read_text())
    return {entry["output"]: shlex.split(entry["command"]) for entry in entries}


def wrong_flags(flags_of):
    for output, flags in flags_of.items():
        wrong = [f for f in flags if ISA_FLAG.match(f)]
        if wrong and not BODY.search(output):
            yield f"{output} is compiled with {' '.join(wrong)}"
    if not any(BODY.search(output) for output in flags_of):
        yield "no kernel body among the commands: is this check looking at them?"


def disassembly(path):
    return subprocess.run(["objdump", "-d", "--no-show-raw-insn", str(path)], capture_output=True,
                          text=True, check=True).stdout


def wrong_instructions(build, flags_of):
    seen = set()
    for output, flags in sorted(flags_of.items()):
        if not (build / output).exists():
            continue
        text = disassembly(build / output)
        for pattern, flag in NEEDED_FLAG.items():
            found = re.search(pattern, text)
            if found and flag in flags:
                seen.add(flag)
            elif found:
                yield f"{output}, compiled without {flag}, has {found.group().strip()}"
    for flag in {f for flags in flags_of.values() for f in flags} & set(NEEDED_FLAG.values()):
        if flag not in seen:
            yield f"no object shows what {flag} is for: is this check looking at them?"


def wrong_words(source):
    for path in sorted((source / "src").rglob("*.[ch]")):
        name, text = str(path.relative_to(source)), path.read_text()
        for word in [] if name.startswith(PLACES) else WORDS.findall(text):
            yield f"{name} says {word}: only {' and '.join(PLACES)} may"
        for guess in [] if name.startswith("src/kernel/isa/") else GUESS.findall(text):
            yield f"{name} says {guess.strip()}: a row's choices stand in its kernel/isa/*_tiles.h"


def main():
    source, build = map(pathlib.Path, sys.argv[1:])
    flags_of = commands(build)
    complaints = [*wrong_flags(flags_of), *wrong_instructions(build, flags_of),
                  *wrong_words(source)]
    print("\n".join(complaints))
    sys.exit(1 if complaints else 0)


main()
