"""Ranks: the processes that work together."""
import ctypes
import weakref
from typing import Any, Optional

from . import _binding
from ._library import check, lib, log


def _close(handle: ctypes.c_void_p) -> None:
    lib.tutti_ranks_close(ctypes.byref(handle))


class Ranks:
    """The ranks of an mpi4py communicator, of the job that mpirun started, or this process alone; opened
    once, used by any number of models and trainings.

        from mpi4py import MPI
        with tutti.Ranks(MPI.COMM_WORLD) as ranks:
            model = tutti.Model("lenet", ranks=ranks)

    Collective, and so is close(): every rank makes both. mpi4py asks MPI for the level of threads that
    this needs, MPI_THREAD_MULTIPLE, by itself; with a lower one give no_thread=True.
    """

    def __init__(self, comm: Optional[Any] = None, threads: int = 0, no_thread: bool = False,
                 stall_warn: float = 60, stall_abort: float = 600):
        options = lib.tutti_ranks_defaults()
        options.threads, options.no_thread = threads, no_thread
        options.stall_warn, options.stall_abort = stall_warn, stall_abort
        options.log = log()
        if comm is not None:
            from mpi4py import MPI  # whoever has a communicator has it
            options.mpi_comm = MPI._addressof(comm)
            options.mpi_comm_bytes = MPI._sizeof(comm)
        self._handle = ctypes.c_void_p()
        check(lib.tutti_ranks_open(ctypes.byref(self._handle), ctypes.byref(options)))
        self._end = weakref.finalize(self, _close, self._handle)

    @property
    def handle(self) -> ctypes.c_void_p:
        if not self._handle:
            raise ValueError("these ranks are closed")
        return self._handle

    @property
    def rank(self) -> int:
        """This one's number, from 0."""
        return lib.tutti_ranks_rank(self.handle)

    @property
    def size(self) -> int:
        return lib.tutti_ranks_size(self.handle)

    @property
    def threads(self) -> int:
        """That this rank computes with."""
        return lib.tutti_ranks_threads(self.handle)

    def close(self) -> None:
        self._end()

    def __enter__(self) -> "Ranks":
        return self

    def __exit__(self, *_what: Any) -> None:
        self.close()
