#!/usr/bin/env python3
"""Writes nets as a C table: embed.py OUT.c a.net b.net ..."""
import pathlib
import sys


def c_string(text):
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return "\n".join(f'     "{line}\\n"' for line in quoted.splitlines())


out, nets = sys.argv[1], sorted(pathlib.Path(p) for p in sys.argv[2:])
with open(out, "w") as f:
    f.write('#include "nn/zoo.h"\n\n#include <stddef.h>\n\nconst tutti_zoo_net tutti_zoo[] = {\n')
    for net in nets:
        f.write(f'    {{"{net.stem}",\n{c_string(net.read_text())}}},\n')
    f.write("    {NULL, NULL},\n};\n")
