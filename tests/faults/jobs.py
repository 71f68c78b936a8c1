"""Processes under watch: none is waited for without end, none outlives its job."""
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import uuid

MARK = "TUTTI_FAULTS_JOB"
CRASHES = ("broken promise", "Segmentation fault", "Sanitizer", "stack smashing", "double free",
           "invalid pointer", "Aborted", "Bus error", "Floating point exception")


class Hung(AssertionError):
    pass


def read(pid, name):
    try:
        return pathlib.Path("/proc", str(pid), name).read_bytes().decode(errors="replace")
    except OSError:
        return ""


def described(pid):
    """What a process that should be gone is, and where its threads wait."""
    threads = sorted(pathlib.Path("/proc", str(pid), "task").glob("*"))
    waits = [read(pid, f"task/{t.name}/wchan") or "running" for t in threads]
    state = next((line.split()[1] for line in read(pid, "status").splitlines()
                  if line.startswith("State:")), "gone")
    return f"{pid} {state} {read(pid, 'cmdline').replace(chr(0), ' ')[:300]} in {', '.join(waits)}"


def ended(members, limit):
    """Waits until none of the processes that the function lists is left."""
    end = time.monotonic() + limit
    while (left := members()) and time.monotonic() < end:
        time.sleep(0.01)
    return not left


class Job:
    """A command and all its descendants, known by a mark in their environment: a launcher's ranks
    have process groups of their own, and orphans another parent."""

    def __init__(self, command, env):
        self.command = [str(word) for word in command]
        self.mark = f"{MARK}={uuid.uuid4().hex}"
        self.said = tempfile.TemporaryFile()  # a pipe would be held open by an orphan
        self.process = subprocess.Popen(
            self.command, env={**env, MARK: self.mark.partition("=")[2]}, stdin=subprocess.DEVNULL,
            stdout=self.said, stderr=subprocess.STDOUT, start_new_session=True)

    def members(self):
        pids = (int(p.name) for p in pathlib.Path("/proc").iterdir() if p.name.isdigit())
        return [pid for pid in pids if f"{self.mark}\0" in read(pid, "environ")]

    def ranks(self):
        """The processes of tutti itself, by rank."""
        found = {}
        for pid in self.members():
            words = read(pid, "cmdline").split("\0")
            if len(words) > 1 and words[0].endswith("tutti"):
                place = read(pid, "environ").partition("OMPI_COMM_WORLD_RANK=")[2]
                found[int(place.partition("\0")[0] or 0)] = pid
        return [found[rank] for rank in sorted(found)]

    def output(self):
        self.said.seek(0)
        return self.said.read().decode(errors="replace")

    def told_by_ranks(self):
        """The output but for what mpirun says of itself: Open MPI 4.1 may fall over when it is
        interrupted while ranks start, after they have ended."""
        own = f":{self.process.pid}] " if self.command[0].endswith("mpirun") else None
        lines = self.output().splitlines(keepends=True)
        return "".join(line for line in lines if not own or own not in line)

    def wait(self, limit=60):
        """The exit code, 128 + n for a signal; whoever is still there after 'limit' seconds has
        hung."""
        try:
            code = self.process.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            self.complain(f"no end after {limit} s")
        if not ended(self.members, limit):
            self.complain(f"processes are left {limit} s after the end")
        told = self.told_by_ranks()
        for word in CRASHES:
            if word in told:
                raise AssertionError(f"'{word}' from {self}:\n{told[-2000:]}")
        return code if code >= 0 else 128 - code

    def complain(self, what):
        lines = "\n".join(map(described, self.members()))
        self.end()
        raise Hung(f"{what}: {self}\n{lines}\n{self.output()[-2000:]}")

    def end(self):
        for pid in self.members():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()

    def __str__(self):
        return " ".join(self.command)
