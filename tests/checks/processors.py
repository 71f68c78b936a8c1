#!/usr/bin/env python3
"""processors.py TUTTI: the same program on x86 processors that have less: QEMU ends it at the first
instruction that the processor does not know."""
import json
import os
import platform
import re
import shutil
import subprocess
import sys

# processor: how far above plain C its kernels are among those of the build
PROCESSORS = {"Haswell": 1, "Nehalem": 0, "core2duo": 0, "qemu64": 0}


def doctor(tutti, processor, **environment):
    return subprocess.run(["qemu-x86_64", "-cpu", processor, tutti, "doctor", "--quick", "--json"],
                          capture_output=True, text=True, timeout=120,
                          env={**os.environ, **environment})


def rows_of(tutti):
    done = subprocess.run([tutti, "--check-build"], capture_output=True, text=True, check=True)
    return re.findall(r"kernels for (\w+)", done.stdout)


def main():
    tutti, failed = sys.argv[1], 0
    if platform.machine() != "x86_64":
        print("not an x86 program")
        sys.exit(77)
    if not shutil.which("qemu-x86_64"):
        print("no qemu-x86_64: tools/setup installs it")
        sys.exit(77)
    rows = rows_of(tutti)
    for processor, row in PROCESSORS.items():
        done = doctor(tutti, processor, TUTTI_ISA="")
        report = json.loads(done.stdout) if done.returncode == 0 else {}
        works = report.get("isa") == rows[row] and report["fma_gflops"]["all"] > 0
        failed += not works
        print(f"{processor}: {report.get('isa')}, exit {done.returncode}"
              + ("" if works else f", but {rows[row]} was expected\n{done.stderr}"))
    refused = doctor(tutti, "Nehalem", TUTTI_ISA=rows[1])
    if refused.returncode != 2 or "which this machine lacks; it has scalar" not in refused.stderr:
        print(f"Nehalem with TUTTI_ISA={rows[1]}: exit {refused.returncode}, {refused.stderr}")
        failed += 1
    sys.exit(1 if failed else 0)


main()
