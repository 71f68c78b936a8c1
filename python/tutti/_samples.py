"""Arrays of samples as the library takes them: floats or bytes, without a copy where they are so."""
import ctypes
from typing import Any, Callable, List, Optional, Sequence, Tuple

import numpy as np

from . import _binding
from ._library import lib

SPLITS = {"train": 0, "test": 1, "val": 2}
READ = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, ctypes.c_void_p,
                        ctypes.c_void_p)
OK, DATA = _binding.ENUMS["TUTTI_OK"], _binding.ENUMS["TUTTI_DATA"]


def as_samples(x: Any, dtype: Optional[np.dtype] = None) -> np.ndarray:
    """Bytes stay bytes, everything else becomes float32; contiguous."""
    x = np.asarray(x)
    if dtype is None:
        dtype = np.dtype(np.uint8 if x.dtype == np.uint8 else np.float32)
    return np.ascontiguousarray(x, dtype)


def as_labels(y: Any, count: int) -> np.ndarray:
    y = np.asarray(y)
    if y.shape != (count,):
        raise ValueError(f"{count} samples want {count} labels, not an array of shape {y.shape}")
    if y.dtype.kind not in "iub":
        raise TypeError(f"labels are whole numbers, not {y.dtype}")
    return np.ascontiguousarray(y, np.int32)


def shape_of(item: Sequence[int], layout: str) -> _binding.tutti_shape:
    """Of one sample: a vector, rows and columns, or channels as the layout says."""
    if len(item) == 1:
        return _binding.tutti_shape(item[0], 1, 1)
    if len(item) == 2:
        return _binding.tutti_shape(1, *item)
    if len(item) != 3:
        raise ValueError(f"a sample has one to three dimensions, not {len(item)}")
    return _binding.tutti_shape(*item) if layout == "chw" else _binding.tutti_shape(item[2], *item[:2])


def pointer(array: Optional[np.ndarray]) -> Optional[int]:
    return None if array is None else array.ctypes.data


class Samples:
    """A tutti_own_data and all that it points to."""

    def __init__(self, dtype: np.dtype, item: Optional[Sequence[int]], layout: str,
                 classes: Optional[Sequence[str]], mean: Any, std: Any):
        if layout not in ("chw", "hwc"):
            raise ValueError(f"layout is 'chw' or 'hwc', not {layout!r}")
        self.own = own = _binding.tutti_own_data()
        self.keep: List[Any] = []
        self.failure: Optional[BaseException] = None
        own.number = _binding.ENUMS["TUTTI_BYTE" if dtype == np.uint8 else "TUTTI_FLOAT"]
        own.layout = _binding.ENUMS["TUTTI_" + layout.upper()]
        if item is not None:
            own.shape = shape_of(item, layout)
        if classes:
            names = (ctypes.c_char_p * len(classes))(*(str(n).encode() for n in classes))
            self.keep.append(names)
            own.classes, own.class_names = len(classes), ctypes.cast(names, ctypes.c_void_p)
        if mean is not None or std is not None:
            self._normalise(0.0 if mean is None else mean, 1.0 if std is None else std)

    def _normalise(self, mean: Any, std: Any) -> None:
        m, s = np.broadcast_arrays(np.atleast_1d(np.asarray(mean, np.float32)),
                                   np.atleast_1d(np.asarray(std, np.float32)))
        m, s = np.ascontiguousarray(m), np.ascontiguousarray(s)
        self.keep += [m, s]
        self.own.mean, self.own.std, self.own.means = pointer(m), pointer(s), m.size

    def hold_arrays(self, splits: List[Tuple[int, np.ndarray, np.ndarray]]) -> None:
        """Arrays that the library reads by itself, without Python."""
        arrays = _binding.tutti_arrays()
        for split, x, y in splits:
            arrays.samples[split], arrays.labels[split] = pointer(x), pointer(y)
            arrays.bytes = x[0].nbytes if len(x) else 0
            self.own.count[split] = len(x)
        self.keep += [arrays, splits]
        self.own.read = ctypes.cast(lib.tutti_arrays_read, ctypes.c_void_p)
        self.own.user = ctypes.cast(ctypes.pointer(arrays), ctypes.c_void_p)

    def hold_sequences(self, splits: List[Tuple[int, Any]], dtype: np.dtype, nbytes: int) -> None:
        """Anything with a length whose items are (sample, label); asked by several threads."""
        of = dict(splits)

        def read(_user: Any, split: int, index: int, sample: int, label: int) -> int:
            try:
                x, y = of[split][index]
                x = as_samples(x, dtype)
                if x.nbytes != nbytes:
                    raise ValueError(f"sample {index} has shape {x.shape}, unlike the first")
                ctypes.memmove(sample, x.ctypes.data, nbytes)
                ctypes.c_int32.from_address(label).value = int(y)
                return OK
            except BaseException as why:  # pylint: disable=broad-except
                self.failure = self.failure or why
                return lib.tutti_own_data_fail(DATA, f"sample {index}: {why}".encode())

        function = READ(read)
        self.keep.append(function)
        for split, items in splits:
            self.own.count[split] = len(items)
        self.own.read = ctypes.cast(function, ctypes.c_void_p)


def describe(data: Any, test: Any, val: Any, layout: str, classes: Optional[Sequence[str]],
             mean: Any, std: Any) -> Samples:
    """Of pairs of arrays, or of sequences of (sample, label)."""
    given = [(SPLITS[name], d) for name, d in (("train", data), ("test", test), ("val", val))
             if d is not None]
    if all(isinstance(d, tuple) and len(d) == 2 for _, d in given):
        first = as_samples(given[0][1][0])
        splits = []
        for split, (x, y) in given:
            x = as_samples(x, first.dtype)
            if x.shape[1:] != first.shape[1:]:
                raise ValueError(f"samples of shape {x.shape[1:]} and {first.shape[1:]}")
            splits.append((split, x, as_labels(y, len(x))))
        samples = Samples(first.dtype, first.shape[1:], layout, classes, mean, std)
        samples.hold_arrays(splits)
        return samples
    for _, items in given:
        if not (hasattr(items, "__len__") and hasattr(items, "__getitem__")) or \
                isinstance(items, (tuple, np.ndarray)):
            raise TypeError("data is a name (\"images:DIR\"), a pair of arrays (x, y), or a sequence of "
                            "pairs (sample, label)")
    item = as_samples(given[0][1][0][0])
    samples = Samples(item.dtype, item.shape, layout, classes, mean, std)
    samples.hold_sequences(given, item.dtype, item.nbytes)
    return samples
