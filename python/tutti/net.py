"""Nets, described layer by layer."""
import ctypes
import os
import weakref
from typing import List, NamedTuple, Optional, Tuple, Union

from . import _binding
from ._library import check, lib, written


class Layer(NamedTuple):
    """One layer as numbers, of one sample; shapes are channels, height, width."""
    name: str
    kind: str
    activation: str
    precision: str  # of what it multiplies by weights: "fp32" or "bf16"; else ""
    input: Tuple[int, int, int]
    output: Tuple[int, int, int]
    parameters: int
    trained: int
    macs: int
    train_flops: int


def _shape(shape: _binding.tutti_shape) -> Tuple[int, int, int]:
    return shape.c, shape.h, shape.w


def _layer(info: _binding.tutti_layer_info) -> Layer:
    return Layer(info.name.decode(), (info.kind or b"").decode(), (info.activation or b"").decode(),
                 (info.precision or b"").decode(), _shape(getattr(info, "in")), _shape(info.out), info.parameters, info.trained,
                 info.macs, info.train_flops)


def nets() -> List[str]:
    """The names of the nets that come with the library."""
    names: List[str] = []
    while True:
        name = lib.tutti_net_known(len(names))
        if name is None:
            return names
        names.append(name.decode())


class Net:
    """A net by its name, by the path of its text, or by the text itself, which has lines.
    'precision' is that of a run: "bf16", "fp32", or what the net suggests.

        >>> tutti.Net("lenet").input
        (1, 28, 28)
    """

    def __init__(self, net: Union[str, "os.PathLike[str]"], precision: Optional[str] = None):
        name = os.fspath(net)
        self._handle = ctypes.c_void_p()
        at = ctypes.byref(self._handle)
        check(lib.tutti_net_parse(at, name.encode(), b"net") if "\n" in name
              else lib.tutti_net_load(at, name.encode()))
        self._end = weakref.finalize(self, lib.tutti_net_destroy, at)
        check(lib.tutti_net_set_precision(self._handle, precision.encode() if precision else None))

    @property
    def name(self) -> str:
        return lib.tutti_net_name(self._handle).decode()

    @property
    def input(self) -> Tuple[int, int, int]:
        return _shape(lib.tutti_net_input(self._handle))

    @property
    def classes(self) -> int:
        """Outputs."""
        return lib.tutti_net_classes(self._handle)

    @property
    def layers(self) -> List[Layer]:
        return [_layer(lib.tutti_net_layer_info(self._handle, i))
                for i in range(lib.tutti_net_layer_count(self._handle))]

    @property
    def total(self) -> Layer:
        """The sums over the layers."""
        return _layer(lib.tutti_net_total(self._handle))

    def memory(self, batch: int, micro_batch: int = 0, threads: int = 0, ema: float = -1) -> int:
        """The bytes one node needs to train with a minibatch of so many samples; below 0 'ema' is
        what the net suggests."""
        found = _binding.tutti_memory()
        check(lib.tutti_net_memory(self._handle, batch, micro_batch, threads, ema,
                                   ctypes.byref(found)))
        return found.peak

    def __str__(self) -> str:
        return written(lambda stream: lib.tutti_net_print(self._handle, stream))

    def __repr__(self) -> str:
        return f"<tutti.Net {self.name}: {self.input} to {self.classes}>"
