#!/usr/bin/env python3
"""style.py SOURCE: clang-format, the length of lines, functions and files, no two structs of one
name, and that every public header is installed. Tables (between clang-format off and on) may be
wider, kernel bodies longer."""
import pathlib
import re
import statistics
import subprocess
import sys

LONGEST_LINE, LONGEST_FUNCTION, LONGEST_FILE = 100, 60, 500
MEDIAN_FUNCTION = 12
TEXTS = (".c", ".h", ".py", ".build", ".md")


def tracked(source):
    names = subprocess.run(["git", "ls-files"], cwd=source, capture_output=True, text=True)
    if names.returncode:  # not a clone: a tarball has no build folders in it
        return [p for d in ("src", "include", "cli", "tests", "bench", "sim")
                for p in (source / d).rglob("*") if p.is_file()]
    return [source / n for n in names.stdout.split("\n") if n and (source / n).is_file()]


def functions(lines):
    """First line and length of every function: its braces are in the first column."""
    start = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
        elif line == "}" and start:
            yield start, number - start - 1
            start = None


def check_file(path, name):
    lines = path.read_text().split("\n")
    is_body = name.endswith("_tmpl.c")
    if path.suffix in (".c", ".h") and len(lines) - 1 > LONGEST_FILE and not is_body:
        yield f"{name}: {len(lines) - 1} lines, more than {LONGEST_FILE}"
    is_table = False
    for number, line in enumerate(lines, 1):
        is_table = "clang-format off" in line or is_table and "clang-format on" not in line
        if len(line) > LONGEST_LINE and path.suffix in (".c", ".h") and not is_table:
            yield f"{name}:{number}: {len(line)} columns, more than {LONGEST_LINE}"
        if line != line.rstrip():
            yield f"{name}:{number}: blanks at the end of the line"
    if path.suffix == ".c" and not is_body:
        for number, length in functions(lines):
            if length > LONGEST_FUNCTION:
                yield f"{name}:{number}: a function of {length} lines"


def check_median(paths):
    lengths = [length for p in paths for _, length in functions(p.read_text().split("\n"))]
    if lengths and statistics.median(lengths) >= MEDIAN_FUNCTION:
        yield f"the median function has {statistics.median(lengths)} lines"


def check_structs(source, paths):
    """A name that two structs have means two things to a reader."""
    first = {}
    for path in paths:
        for name in re.findall(r"^(?:typedef )?struct (tutti_\w+) \{", path.read_text(), re.M):
            if name in first:
                yield f"{path.relative_to(source)}: another struct {name} is in {first[name]}"
            first[name] = path.relative_to(source)


def check_format(source, paths):
    done = subprocess.run(["clang-format", "--dry-run", "-Werror", *map(str, paths)], cwd=source,
                          capture_output=True, text=True)
    if done.returncode:
        places = [line for line in done.stderr.split("\n") if "error:" in line]
        yield "\n".join(places[:10] + ["clang-format: run 'make fmt'"])


def check_installed(source):
    listed = (source / "include" / "meson.build").read_text()
    for path in sorted((source / "include" / "tutti").glob("*.h")):
        if path.name not in listed:
            yield f"include/tutti/{path.name} is not installed: see include/meson.build"


def main():
    source = pathlib.Path(sys.argv[1]).resolve()
    paths = [p for p in tracked(source) if p.suffix in TEXTS]
    code = [p for p in paths if p.suffix in (".c", ".h")]
    complaints = [c for p in paths for c in check_file(p, str(p.relative_to(source)))]
    own = [p for p in code if p.relative_to(source).parts[0] in ("src", "include", "cli", "sim")]
    complaints += [*check_median(own)]
    complaints += check_structs(source, [p for p in own if p.suffix == ".h"])
    complaints += [*check_format(source, code), *check_installed(source)]
    if len(code) < 20:
        complaints.append("hardly any source files: is this check looking at them?")
    print("\n".join(complaints))
    sys.exit(1 if complaints else 0)


main()
