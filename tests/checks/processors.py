#!/usr/bin/env python3
"""processors.py TUTTI: the same program on processors that have less: QEMU ends it at the first
instruction that the processor does not know."""
import json
import os
import shutil
import subprocess
import sys

# processor: the kernels it must be given
PROCESSORS = {"Haswell": "avx2", "Nehalem": "scalar", "core2duo": "scalar", "qemu64": "scalar"}


def doctor(tutti, processor, **environment):
    return subprocess.run(["qemu-x86_64", "-cpu", processor, tutti, "doctor", "--quick", "--json"],
                          capture_output=True, text=True, timeout=120,
                          env={**os.environ, **environment})


def main():
    tutti, failed = sys.argv[1], 0
    if not shutil.which("qemu-x86_64"):
        print("no qemu-x86_64: tools/setup installs it")
        sys.exit(77)
    for processor, isa in PROCESSORS.items():
        done = doctor(tutti, processor, TUTTI_ISA="")
        report = json.loads(done.stdout) if done.returncode == 0 else {}
        works = report.get("isa") == isa and report["fma_gflops"]["all"] > 0
        failed += not works
        print(f"{processor}: {report.get('isa')}, exit {done.returncode}"
              + ("" if works else f", but {isa} was expected\n{done.stderr}"))
    refused = doctor(tutti, "Nehalem", TUTTI_ISA="avx2")
    if refused.returncode != 2 or "'avx2' is not one of scalar" not in refused.stderr:
        print(f"Nehalem with TUTTI_ISA=avx2: exit {refused.returncode}, {refused.stderr}")
        failed += 1
    sys.exit(1 if failed else 0)


main()
