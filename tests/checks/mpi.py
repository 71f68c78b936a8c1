#!/usr/bin/env python3
"""mpi.py SOURCE: that an MPI is found where people have it, or said to be missing: src/comm/mpi is
configured as a project of its own, with made up MPIs in otherwise empty surroundings."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(sys.argv[1])
TAKEN = ["src/comm/mpi/meson.build", "tools/mpi-flags", "meson_options.txt"]
PROGRAMS = ["cc", "ld", "as", "ar", "sh", "cat", "env", "python3", "pkg-config", "meson", "ninja"]
PROJECT = """project('found', 'c')
cc = meson.get_compiler('c')
subdir('src/comm/mpi')
"""
HEADER = "#define %s 1\n#define %s \"1\"\nint MPI_Init(int *argc, char ***argv);\n"
SIGNS = {"openmpi": ("OPEN_MPI", "X"), "mpich": ("MPICH", "X"), "intel": ("MPICH", "I_MPI_VERSION")}
# As each family's wrapper answers -show, {0} being its folder.
SHOWN = {
    "openmpi": 'gcc -I{0}/include -pthread -L{0}/lib -Wl,-rpath -Wl,{0}/lib -lmpi',
    "mpich": 'gcc -Wl,-z,relro -O2 -g -I{0}/include -L{0}/lib -lmpi -Wl,-rpath,{0}/lib',
    "intel": 'gcc -I"{0}/include" -L"{0}/lib" -Xlinker --enable-new-dtags -Xlinker -rpath '
             '-Xlinker "{0}/lib" -lmpi -ldl -lrt -lpthread',
}
failures = []


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)


def make_mpi(folder, family, wrapper):
    """Header, library, wrapper, as an installation has them; the blank in its name is on purpose."""
    for sub in ("include", "lib/pkgconfig"):
        (folder / sub).mkdir(parents=True)
    (folder / "include/mpi.h").write_text(HEADER % SIGNS[family])
    source = folder / "lib/mpi.c"
    source.write_text("int MPI_Init(int *c, char ***v) { return !c + !v; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "lib/libmpi.so", source], check=True)
    flags = SHOWN[family].format(folder)
    if wrapper:
        script(folder / "bin" / wrapper, f"""if [ "$1" = -show ]; then
cat <<'END'
{flags}
END
else exec cc "$@" {flags.removeprefix("gcc ")}; fi
""")
    else:
        (folder / "lib/pkgconfig/impi.pc").write_text(
            f"Name: MPI\nDescription: MPI\nVersion: 1\nCflags: -I{folder}/include\n"
            f"Libs: -L{folder}/lib -lmpi\n")
    return folder


def make_surroundings(scratch):
    for name in PROGRAMS:
        script(scratch / "path" / name, f'exec {shutil.which(name)} "$@"\n')
    for name in TAKEN:
        (scratch / "project" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SOURCE / name, scratch / "project" / name)
    (scratch / "project/meson.build").write_text(PROJECT)


def configure(scratch, *options, paths=(), **environment):
    clean = {k: v for k, v in os.environ.items() if k not in ("CC", "MPICC", "I_MPI_ROOT")}
    path = ":".join([*(str(p / "bin") for p in paths), str(scratch / "path")])
    shutil.rmtree(scratch / "build", ignore_errors=True)
    return subprocess.run(
        ["meson", "setup", *options, scratch / "build", scratch / "project"], text=True,
        capture_output=True, env={**clean, "PATH": path, "PKG_CONFIG_LIBDIR": str(scratch),
                                  "CCACHE_DISABLE": "1", **environment})


def expect(what, done, words, fails=False):
    good = (done.returncode != 0) == fails and words in " ".join(done.stdout.split())
    print(f"[{'       OK ' if good else '  FAILED  '}] {what}", flush=True)
    if not good:
        failures.append(what)
        print(done.stdout[-1500:], done.stderr)


def check(scratch):
    for family in SHOWN:
        mpi = make_mpi(scratch / family, family, "mpicc")
        expect(f"{family}'s mpicc in the path", configure(scratch, paths=[mpi]),
               f"MPI: {family}, by {mpi}/bin/mpicc")
    openmpi, mpich = scratch / "openmpi", scratch / "mpich"
    intel = make_mpi(scratch / "one api", "intel", "mpiicx")
    packaged = make_mpi(scratch / "packaged", "intel", None)
    expect("no MPI is said loudly", configure(scratch), "WARNING: NO MPI FOUND: this program will run")
    expect("none as asked for", configure(scratch, "-Dmpi=none", paths=[openmpi]),
           "none, as asked for")
    expect("Intel's own wrapper", configure(scratch, paths=[intel]), "MPI: intel, by " + str(intel))
    expect("Intel's by pkg-config", configure(scratch, PKG_CONFIG_LIBDIR=f"{packaged}/lib/pkgconfig"),
           "MPI: intel, by pkg-config impi")
    expect("CC=mpicc", configure(scratch, CC=f"{mpich}/bin/mpicc"), "MPI: mpich, by the compiler itself")
    expect("MPICC before the path", configure(scratch, paths=[openmpi], MPICC=f"{mpich}/bin/mpicc"),
           "MPI: mpich, by " + str(mpich))
    expect("a wrong MPICC", configure(scratch, paths=[openmpi], MPICC="cc"),
           "ERROR: Problem encountered: no program can be built with the MPI", fails=True)
    expect("another family", configure(scratch, "-Dmpi=mpich", paths=[openmpi]),
           "asked for (-Dmpi=mpich)", fails=True)


def main():
    with tempfile.TemporaryDirectory() as temporary:
        scratch = pathlib.Path(temporary)
        make_surroundings(scratch)
        check(scratch)
    sys.exit(1 if failures else 0)


main()
