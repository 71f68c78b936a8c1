#!/usr/bin/env python3
"""install.py BUILD SOURCE MPI-FLAGS...: what 'meson install' leaves behind is enough to run the program
and to build others against the library: the examples, by pkg-config and by CMake, shared and static.
They run, and give the same on any number of ranks."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BUILD, SOURCE = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
MPI_FLAGS = sys.argv[3:]
WANTED = ["bin/tutti", "include/tutti/tutti.h", "share/man/man1/tutti.1",
          "share/bash-completion/completions/tutti"]
LAUNCHER = ["mpirun", "--oversubscribe"]
CMAKE = """cmake_minimum_required(VERSION 3.13)
project(examples C)
find_package(tutti 0.1 REQUIRED)
set(CMAKE_C_STANDARD 11)
foreach(kind tutti static)
  foreach(name own_loop primitives)
    add_executable(${name}_${kind} ${EXAMPLES}/${name}.c)
    target_link_libraries(${name}_${kind} tutti::${kind} m)
  endforeach()
endforeach()
"""
failures = []


def expect(what, good, seen=""):
    print(f"[{'       OK ' if good else '  FAILED  '}] {what}", flush=True)
    if not good:
        failures.append(what)
        print(seen)


def run(*command, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **more)
    if done.returncode:
        sys.exit(f"install: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


class Installed:
    """A fresh installation in a folder, and the ways to build against it."""

    def __init__(self, folder):
        run("meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", folder / "root")
        self.folder = folder
        self.prefix = next((folder / "root").rglob("bin/tutti")).parent.parent
        self.libs = next(self.prefix.rglob("tutti.pc")).parent.parent
        self.environment = {
            **os.environ, "PKG_CONFIG_PATH": str(self.libs / "pkgconfig"),
            "LD_LIBRARY_PATH": str(self.libs), "TMPDIR": str(folder), "OMP_NUM_THREADS": "1",
            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        pc = self.libs / "pkgconfig/tutti.pc"  # as if it had been installed where it lies
        pc.write_text(re.sub("^prefix=.*", f"prefix={self.prefix}", pc.read_text(), flags=re.M))

    def compile(self, name, static=False, more=()):
        out = self.folder / f"{name}{'_static' if static else ''}"
        kind = ["--variable=static_libs"] if static else ["--libs"]
        flags = run("pkg-config", "--cflags", "tutti", env=self.environment).split()
        flags += run("pkg-config", *kind, "tutti", env=self.environment).split()
        run("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-o", out,
            SOURCE / "examples" / f"{name}.c", *flags, *more, "-lm")
        return out

    def says(self, program, *arguments, ranks=0):
        launcher = [*LAUNCHER, "-n", ranks] if ranks else []
        return run(*launcher, program, *arguments, env=self.environment)


def check_whole_library(at):
    """Whatever a program calls, static_libs has what it takes to link it."""
    symbols = run("nm", "-D", "--defined-only", "-P", next(at.libs.glob("libtutti.so"))).split("\n")
    names = [line.split()[0] for line in symbols if line.startswith("tutti_")]
    source = at.folder / "all.c"
    source.write_text("".join(f"extern char {name}[];\n" for name in names)
                      + "int main(void)\n{\n    static char *const all[] = {" + ", ".join(names)
                      + "};\n    return !all[sizeof all / sizeof *all - 1];\n}\n")
    libs = run("pkg-config", "--variable=static_libs", "tutti", env=at.environment).split()
    done = subprocess.run(["cc", "-w", "-o", at.folder / "all", source, *libs], capture_output=True,
                          text=True)
    expect(f"all {len(names)} functions are linked, static", len(names) > 50 and not done.returncode,
           done.stderr[-2000:])


def packages_of(field, control):
    """The Debian packages that a field of debian/control names."""
    text = re.search(rf"^{field}: ((?:.*\n(?: .*\n)*))", control, re.M)[1]
    return {word.split()[0] for word in text.replace("\n", " ").split(",")}


def check_debian():
    """Debian's packages are built with what tools/setup installs to build."""
    setup = (SOURCE / "tools/setup").read_text()
    wanted = set(re.findall(r"^(\S+-dev) +build ", setup, re.M))
    source, *binaries = (SOURCE / "packaging/debian/control").read_text().split("\n\n")
    library = next(b for b in binaries if b.startswith("Package: libtutti-dev\n"))
    lacks = wanted - packages_of("Build-Depends", source + "\n")
    expect("the Debian package is built with all libraries", wanted and not lacks, lacks)
    lacks = wanted - packages_of("Depends", library) - {"libsimgrid-dev"}  # tutti-sim's alone
    expect("and whoever builds against it has them", not lacks, lacks)


def has_launcher():
    return bool(MPI_FLAGS) and shutil.which("mpirun") is not None


def check_examples(at):
    loop = at.compile("own_loop")
    said = at.says(loop, at.folder / "run")
    expect("own_loop learns what bars are", "step 150" in said and "pictures" in said, said)
    tested = run(at.prefix / "bin/tutti", "info", "--help", env=at.environment)
    expect("the installed program runs", "info" in tested, tested)
    expect("own_loop, static, says the same", at.says(at.compile("own_loop", True)) == said)
    parts = at.compile("primitives")
    alone = at.says(parts)
    expect("primitives finds its weights", "weights[500]" in alone, alone)
    expect("primitives, static, says the same",
           at.says(at.compile("primitives", True)) == alone)
    if not has_launcher():
        return said, alone
    for ranks in (2, 3):
        expect(f"primitives says the same on {ranks} ranks", at.says(parts, ranks=ranks) == alone)
    mpi = at.compile("own_loop_mpi", more=MPI_FLAGS)
    one = at.says(mpi, ranks=1)
    for ranks in (2, 4, 5):
        expect(f"own_loop_mpi says the same on half of {ranks} ranks",
               at.says(mpi, ranks=ranks) == one, one)
    return said, alone


def check_cmake(at, said, alone):
    if not shutil.which("cmake"):
        expect("cmake is there (tools/setup)", False)
        return
    project, build = at.folder / "project", at.folder / "cmake"
    project.mkdir()
    (project / "CMakeLists.txt").write_text(CMAKE)
    run("cmake", "-S", project, "-B", build, f"-DCMAKE_PREFIX_PATH={at.prefix}",
        f"-DEXAMPLES={(SOURCE / 'examples').resolve()}", env=at.environment)
    run("cmake", "--build", build, env=at.environment)
    for kind in ("tutti", "static"):
        expect(f"by CMake, tutti::{kind}: the same",
               at.says(build / f"own_loop_{kind}") == said and
               at.says(build / f"primitives_{kind}") == alone)


def main():
    with tempfile.TemporaryDirectory() as temporary:
        at = Installed(pathlib.Path(temporary))
        missing = [w for w in WANTED if not (at.prefix / w).exists()]
        missing += [w for w in ("libtutti.so", "libtutti.a") if not list(at.prefix.rglob(w))]
        expect("all files are there", not missing, missing)
        check_whole_library(at)
        check_debian()
        check_cmake(at, *check_examples(at))
    sys.exit(1 if failures else 0)


main()
