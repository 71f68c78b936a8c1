"""A whole training in one call."""
import ctypes
import math
from typing import Any, Callable, List, NamedTuple, Optional, Sequence

from . import _binding
from ._library import check, lib, log, set_options, standard_output
from ._samples import Samples, describe
from .ranks import Ranks

WATCH = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.POINTER(_binding.tutti_train_news))
_SIGINT = 130


class News(NamedTuple):
    """A step, or with phase "test" or "val" an evaluation; NaN: not known."""
    step: int
    steps: int
    epoch: float
    phase: str
    loss: float
    top1: float
    top5: float
    lr: float
    gradient_norm: float
    seconds: float
    samples_per_s: float


class Result(NamedTuple):
    """How a training ended; top1 and top5 are of the last evaluation."""
    steps: int
    loss: float
    top1: float
    top5: float
    seconds: float
    samples_per_s: float
    history: List[News]


class _Watcher:
    """Hears of steps in the library's thread, which is the caller's."""

    def __init__(self, watch: Optional[Callable[[News], Any]]):
        self.history: List[News] = []
        self.failure: Optional[BaseException] = None
        self._watch = watch
        self.function = WATCH(self._hear)

    def _hear(self, _user: Any, at: Any) -> bool:
        try:
            n = at.contents
            news = News(*(v.decode() if isinstance(v, bytes) else v
                          for v in (getattr(n, f) for f in News._fields)))
            self.history.append(news)
            return self._watch is None or self._watch(news) is not False
        except BaseException as why:  # pylint: disable=broad-except
            self.failure = why
            return False


def train(net: Optional[str] = None, data: Any = None, *, test: Any = None, val: Any = None,
          watch: Optional[Callable[[News], Any]] = None, layout: str = "chw",
          classes: Optional[Sequence[str]] = None, mean: Any = None, std: Any = None,
          ranks: Optional[Ranks] = None, comm: Optional[Any] = None, show: bool = False,
          **options: Any) -> Result:
    """Trains a net; the same bits as 'tutti train' with the same options and samples.

    net: a name, a path, or the text of a net. data: a data set by name ("images:DIR"), a pair of arrays
    (x, y), or a sequence of pairs (sample, label), which several threads ask at once. test and val are
    likewise; of data without tests a tenth is held out. Arrays of uint8 count from 0 to 1, and with one
    or three channels they are pictures; mean and std, where not given, are measured.

    watch is called with News about every step and evaluation; if it returns False the training ends.
    An exception in it ends the training and is raised here. comm: an mpi4py communicator.

    All other options are those of 'tutti train', with _ for -: epochs, steps, batch_size, lr,
    optimizer, lr_schedule, run, resume, weights, seed, threads ... (tutti train --help).
    """
    keep: List[Any] = []
    o = lib.tutti_train_defaults()
    samples: Optional[Samples] = None
    if data is not None and not isinstance(data, str):
        samples = describe(data, test, val, layout, classes, mean, std)
        o.own_data = ctypes.cast(ctypes.pointer(samples.own), ctypes.c_void_p)
    elif test is not None or val is not None:
        raise TypeError("test and val are for arrays; a named data set has its own")
    else:
        options["data"] = data
    set_options(o, {"net": net, **options}, keep)
    watcher = _Watcher(watch)
    o.watch = ctypes.cast(watcher.function, ctypes.c_void_p)
    o.log = log()
    if show:
        o.show = standard_output()
    own = Ranks(comm) if comm is not None and ranks is None else None
    if ranks or own:
        o.ranks = (ranks or own).handle
    try:
        return _run(o, watcher, samples)
    finally:
        if own:
            own.close()


def _run(o: _binding.tutti_train_options, watcher: _Watcher, samples: Optional[Samples]) -> Result:
    r = _binding.tutti_train_result()
    status = lib.tutti_train(ctypes.byref(o), ctypes.byref(r))
    for failure in (watcher.failure, samples.failure if samples else None):
        if failure is not None:
            raise failure
    if status == _binding.ENUMS["TUTTI_INTERRUPTED"] and r.exit_code == _SIGINT:
        raise KeyboardInterrupt(lib.tutti_message().decode())
    check(status)
    return Result(r.steps, r.loss, r.top1, r.top5, r.seconds, r.samples_per_s, watcher.history)
