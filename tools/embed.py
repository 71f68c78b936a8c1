#!/usr/bin/env python3
"""Writes texts as a C table of names and contents: embed.py OUT.c HEADER 'TYPE NAME' a.net b.net ..."""
import pathlib
import sys


def c_string(text):
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return "\n".join(f'     "{line}\\n"' for line in quoted.splitlines())


out, header, table, *paths = sys.argv[1:]
with open(out, "w") as f:
    f.write(f'#include "{header}"\n\n#include <stddef.h>\n\nconst {table}[] = {{\n')
    for path in sorted(map(pathlib.Path, paths), key=lambda path: path.stem):
        f.write(f'    {{"{path.stem}",\n{c_string(path.read_text())}}},\n')
    f.write("    {NULL, NULL},\n};\n")
