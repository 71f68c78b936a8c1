#!/usr/bin/env python3
"""rooms.py SOURCE BUILD: the rooms call only downwards, in their includes and in their symbols, and
nobody but the table of kinds names a kind of layer."""
import pathlib
import re
import subprocess
import sys

# room: the rooms it may know
BELOW = {
    "base": [],
    "kernel": ["base"],
    "nn": ["base", "kernel"],
    "comm": ["base", "kernel"],
    "plan": ["base", "kernel", "nn"],  # of kernel only what nn's headers show
    "data": ["base"],
    "format": ["base"],
    "step": ["base", "kernel", "nn", "comm", "format"],
    "checkpoint": ["base", "kernel", "nn", "comm", "format", "step"],
    "machine": ["base", "kernel", "nn", "comm", "plan", "format", "step"],
    "watch": ["base", "kernel", "nn", "plan", "format", "checkpoint"],
    "forecast": ["base", "kernel", "nn", "plan", "format", "watch"],
    "interchange": ["base", "kernel", "nn", "format", "checkpoint"],
    "train": ["base", "kernel", "nn", "comm", "plan", "data", "format", "step", "checkpoint",
              "machine", "watch"],
}
# what the simulator may know: a step, not a run
SIM = ["base", "kernel", "nn", "comm", "plan", "format", "step"]
# header of the outside world: the only rooms that may include it
OUTSIDE = {"mpi.h": ["comm"], "hwloc.h": ["base"], "omp.h": ["base"], "microhttpd.h": ["watch"],
           "immintrin.h": ["kernel"]}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def wrong_include(room, bracket, header):
    """Why a file of the room may not include the header, or None."""
    if header in OUTSIDE and room not in OUTSIDE[header]:
        return f"only {', '.join(OUTSIDE[header])} may"
    first = header.split("/")[0]
    if bracket == '"' and first in BELOW and first != room and first not in BELOW[room]:
        return f"{room} stands below or beside {first}"
    return None


def check_includes(source):
    for path in sorted((source / "src").rglob("*.[ch]")):
        room = path.relative_to(source / "src").parts[0]
        if room not in BELOW:
            yield f"{path.relative_to(source)}: there is no room '{room}'"
            continue
        for bracket, header in INCLUDE.findall(path.read_text()):
            why = wrong_include(room, bracket, header)
            if why:
                yield f"{path.relative_to(source)} includes {header}: {why}"
    for path in sorted((source / "sim").glob("*.[ch]")):
        for bracket, header in INCLUDE.findall(path.read_text()):
            room = header.split("/")[0]
            if bracket == '"' and room in BELOW and room not in SIM:
                yield f"sim/{path.name} includes {header}: it plays a step, it knows no {room}"
    for path in sorted((source / "cli").glob("*.[ch]")):
        for bracket, header in INCLUDE.findall(path.read_text()):
            if bracket == '"' and "/" in header:
                yield f"cli/{path.name} includes {header}: it may know include/tutti only"


def symbols_of(objects):
    """For every object: the global symbols it defines, and those it needs."""
    found = {path: (set(), set()) for path in objects}
    lines = subprocess.run(["nm", "-P", "-g", "-A", *objects], capture_output=True, text=True, check=True)
    for line in lines.stdout.splitlines():
        path, name, kind = line.split()[:3]
        found[pathlib.Path(path.removesuffix(":"))][kind in "Uw"].add(name)
    return [(path, *sets) for path, sets in found.items()]


def check_symbols(build):
    """src/libtutti.so.p/ROOM_file.c.o and src/kernel/libkernel_ISA.a.p/file.c.o"""
    room_of, users = {}, []
    objects = sorted(build.glob("src/libtutti.so.*.p/*.o")) + sorted(build.glob("src/kernel/*/*.o"))
    if len(objects) < 10:
        yield f"no objects in {build}"
    for path, defines, needs in symbols_of(objects):
        name = path.name.removeprefix("meson-generated_.._")
        room = "kernel" if path.parent.parent.name == "kernel" else name.split("_")[0]
        room_of.update((name, room) for name in defines)
        users.append((path.name, room, needs))
    for name, room, needs in users:
        if not name.startswith(("nn_kinds_", "meson-generated_.._nn_kinds_table")):
            for symbol in sorted(s for s in needs if s.startswith("tutti_kind_")):
                yield f"{name} names {symbol}: what others must know of a kind is in its record"
        for symbol in sorted(needs):
            other = room_of.get(symbol, room)
            if other != room and other not in BELOW.get(room, []):
                yield f"{name} calls {symbol} of {other}: {room} stands below or beside it"


def main():
    source, build = map(pathlib.Path, sys.argv[1:3])
    complaints = [*check_includes(source), *check_symbols(build)]
    print("\n".join(complaints))
    sys.exit(1 if complaints else 0)


main()
