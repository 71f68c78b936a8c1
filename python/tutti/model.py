"""A net that is trained a step at a time."""
import ctypes
import weakref
from collections.abc import MutableMapping
from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Sequence

import numpy as np

from . import _binding
from ._library import check, lib, log, set_options
from ._samples import SPLITS, Samples, as_labels, as_samples, describe, pointer
from .ranks import Ranks

FIND = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(_binding.tutti_loss_call))
_FLOAT, _INT = ctypes.POINTER(ctypes.c_float), ctypes.POINTER(ctypes.c_int32)


class Step(NamedTuple):
    """What all ranks know alike about a step; top1 is the part of the minibatch that is right."""
    step: int
    loss: float
    top1: float
    gradient_norm: float
    lr: float


class Score(NamedTuple):
    """Of an evaluation."""
    samples: int
    loss: float
    top1: float
    top5: float


class Parameters(MutableMapping):
    """A model's parameters by PyTorch's names, in its layout. Reading gives an array of one's own: the
    library keeps them in blocks, and on several ranks in pieces. Writing is model.parameters[name] = x.
    Both are collective."""

    def __init__(self, model: "Model"):
        self._model = model
        handle = model.handle
        found = [lib.tutti_session_parameter(handle, i)
                 for i in range(lib.tutti_session_parameter_count(handle))]
        self._at = {p.name.decode(): i for i, p in enumerate(found)}
        self._shapes = [tuple(p.dims[:p.dim_count]) for p in found]
        self.trained = {p.name.decode() for p in found if p.is_trained}

    def __getitem__(self, name: str) -> np.ndarray:
        at = self._at[name]
        out = np.empty(self._shapes[at], np.float32)
        check(lib.tutti_session_read(self._model.handle, at, out.ctypes.data))
        return out

    def __setitem__(self, name: str, value: Any) -> None:
        at = self._at[name]
        value = np.ascontiguousarray(value, np.float32)
        if value.shape != self._shapes[at]:
            raise ValueError(f"{name} has shape {self._shapes[at]}, not {value.shape}")
        check(lib.tutti_session_write(self._model.handle, at, value.ctypes.data))

    def __delitem__(self, name: str) -> None:
        raise TypeError("a net keeps its parameters")

    def __iter__(self) -> Iterator[str]:
        return iter(self._at)

    def __len__(self) -> int:
        return len(self._at)


def _destroy(handle: ctypes.c_void_p) -> None:
    lib.tutti_session_destroy(ctypes.byref(handle))


class Model:
    """A session: the net, its optimizer, and a step at a time.

        model = tutti.Model("lenet", batch_size=64, lr=0.05, optimizer="sgd,momentum=0.9")
        for x, y in batches:                      # x: (64, 1, 28, 28), y: (64,)
            news = model.step(x[model.share], y[model.share])
        probabilities = model.forward(x)
        model.save()                              # into run=

    Samples are arrays of dtype, "float32" or "uint8" (0 to 255 count from 0 to 1), with the given
    layout; what the net gets is (value - mean) / std. Arrays that are so already and contiguous are not
    copied. On several ranks each gives its part of a minibatch: x[model.share].

    loss: a function of one's own instead of the net's, loss(outputs, first) -> (losses, gradients):
    arrays of the samples' losses and of their derivatives by the outputs (count, classes); first is the
    place of the first sample in the minibatch.

    All other options are those of 'tutti train', with _ for -. Nearly all methods are collective."""

    def __init__(self, net: Optional[str] = None, data: Any = None, *, test: Any = None,
                 dtype: Any = "float32", layout: str = "chw", mean: Any = None, std: Any = None,
                 classes: Optional[Sequence[str]] = None, loss: Optional[Callable[..., Any]] = None,
                 ranks: Optional[Ranks] = None, comm: Optional[Any] = None, **options: Any):
        self._keep: List[Any] = []
        self._failure: Optional[BaseException] = None
        self._dtype = np.dtype(dtype)
        if self._dtype not in (np.float32, np.uint8):
            raise TypeError(f"samples are float32 or uint8, not {self._dtype}")
        o = lib.tutti_train_defaults()
        if data is None or isinstance(data, str):
            samples = Samples(self._dtype, None, layout, classes, mean, std)
            options["data"] = data
        else:
            samples = describe(data, test, None, layout, classes, mean, std)
        set_options(o, {"net": net, **options}, self._keep)
        if not isinstance(data, str):
            o.own_data = ctypes.cast(ctypes.pointer(samples.own), ctypes.c_void_p)
        if loss is not None:
            o.own_loss = self._own_loss(loss)
        self.ranks = ranks or (Ranks(comm) if comm is not None else None)
        self._owns_ranks = ranks is None
        if self.ranks:
            o.ranks = self.ranks.handle
        o.log = log()
        self._keep += [samples, o]
        self._handle = ctypes.c_void_p()
        check(lib.tutti_session_create(ctypes.byref(self._handle), ctypes.byref(o)))
        self._end = weakref.finalize(self, _destroy, self._handle)
        first, count = ctypes.c_int(), ctypes.c_int()
        lib.tutti_session_share(self._handle, ctypes.byref(first), ctypes.byref(count))
        #: the slice of each minibatch that is this rank's
        self.share = slice(first.value, first.value + count.value)
        shape = lib.tutti_net_input(self._net)
        self._values = shape.c * shape.h * shape.w
        self.parameters = Parameters(self)

    def _own_loss(self, loss: Callable[..., Any]) -> ctypes.c_void_p:
        def find(_user: Any, at: Any) -> None:
            call = at.contents
            size = (call.count, call.stride)
            values = np.ctypeslib.as_array(ctypes.cast(call.values, _FLOAT), size)
            try:
                losses, gradients = loss(values[:, :call.outputs], call.first)
            except BaseException as why:  # pylint: disable=broad-except
                self._failure = self._failure or why
                losses, gradients = np.nan, 0
            if call.losses:
                np.ctypeslib.as_array(ctypes.cast(call.losses, _FLOAT), (call.count,))[:] = losses
            if call.gradients:
                to = np.ctypeslib.as_array(ctypes.cast(call.gradients, _FLOAT), size)
                to[:, :call.outputs] = gradients

        function = FIND(find)
        own = _binding.tutti_own_loss(ctypes.cast(function, ctypes.c_void_p), None)
        self._keep += [function, own]
        return ctypes.cast(ctypes.pointer(own), ctypes.c_void_p)

    def _check(self, status: int) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        check(status)

    def _samples(self, x: Any) -> np.ndarray:
        x = as_samples(x, self._dtype)
        count = len(x) if x.ndim else 0
        if x.size != count * self._values:
            c = lib.tutti_net_input(self._net)
            raise ValueError(f"a sample of this net is {c.c}x{c.h}x{c.w}, not {x.shape[1:]}")
        return x

    @property
    def handle(self) -> ctypes.c_void_p:
        if not self._handle:
            raise ValueError("this model is closed")
        return self._handle

    @property
    def _net(self) -> int:
        return lib.tutti_session_net(self.handle)

    @property
    def steps(self) -> int:
        """Done, also by a run that this one goes on with."""
        return lib.tutti_session_steps(self.handle)

    @property
    def rank(self) -> int:
        return lib.tutti_session_rank(self.handle)

    @property
    def classes(self) -> int:
        """Outputs."""
        return lib.tutti_net_classes(self._net)

    def step(self, x: Any = None, y: Any = None, lr: Optional[float] = None) -> Step:
        """Forward, backward and update, with this rank's part of a minibatch; without x with the next of
        the data set. lr: by default the rate of the options."""
        news = _binding.tutti_step_news()
        rate, at = -1.0 if lr is None else lr, ctypes.byref(news)
        if x is None:
            self._check(lib.tutti_session_step_data(self.handle, rate, at))
        else:
            x = self._samples(x)
            if len(x) != self.share.stop - self.share.start:
                raise ValueError(f"this rank's part of a minibatch is {self.share.stop - self.share.start}"
                                 f" samples, not {len(x)}: x[model.share], or another batch_size")
            y = None if y is None else as_labels(y, len(x))
            self._check(lib.tutti_session_step(self.handle, x.ctypes.data, pointer(y), rate, at))
        return Step(*(getattr(news, f) for f in Step._fields))

    def forward(self, x: Any) -> np.ndarray:
        """What the trained net answers, (count, classes): probabilities, with a loss of one's own its
        outputs. Any number of samples, each rank its own."""
        x = self._samples(x)
        out = np.empty((len(x), self.classes), np.float32)
        self._check(lib.tutti_session_forward(self.handle, x.ctypes.data, None, len(x),
                                              out.ctypes.data, None))
        return out

    def losses(self, x: Any, y: Any) -> np.ndarray:
        """The loss of each sample."""
        x = self._samples(x)
        y, out = as_labels(y, len(x)), np.empty(len(x), np.float32)
        self._check(lib.tutti_session_forward(self.handle, x.ctypes.data, y.ctypes.data, len(x), None,
                                              out.ctypes.data))
        return out

    def evaluate(self, split: str = "test") -> Score:
        """On all samples of a split of the data set."""
        score = _binding.tutti_session_score()
        self._check(lib.tutti_session_evaluate(self.handle, SPLITS[split], ctypes.byref(score)))
        return Score(*(getattr(score, f) for f in Score._fields))

    def save(self) -> None:
        """A checkpoint in the directory run=, for resume=, tutti test and tutti predict."""
        self._check(lib.tutti_session_save(self.handle))

    def close(self) -> None:
        """Collective."""
        self._end()
        if self._owns_ranks and self.ranks:
            self.ranks.close()

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *_what: Any) -> None:
        self.close()
