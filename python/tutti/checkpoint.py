"""Checkpoints and weights as arrays, without the library: the files are safetensors."""
import json
import os
import pathlib
from typing import Any, Dict, Mapping, NamedTuple, Union

import numpy as np

_TYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "I64": np.int64, "I32": np.int32,
          "I16": np.int16, "I8": np.int8, "U8": np.uint8, "BOOL": np.bool_}
_MOST_HEADER = 100 << 20


class Checkpoint(NamedTuple):
    """Parameters by name, read-only views of the file; what the file says of itself (net, net_text,
    classes, mean, std ...); and where the run stood, {} for a file alone."""
    parameters: Mapping[str, np.ndarray]
    about: Dict[str, str]
    state: Dict[str, Any]
    path: pathlib.Path


def _file_of(where: pathlib.Path) -> pathlib.Path:
    """As --weights means it: a file, that of a checkpoint, or a run's best."""
    if where.is_file():
        return where
    for name in ("", "best", "latest"):
        for file in ("ema.safetensors", "model.safetensors"):
            if (where / name / file).is_file():
                return where / name / file
    raise FileNotFoundError(f"'{where}' is neither a safetensors file nor a checkpoint or a run")


def _views(path: pathlib.Path) -> Any:
    size = path.stat().st_size
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, _MOST_HEADER):
            raise ValueError(f"'{path}' is not a safetensors file")
        header = json.loads(file.read(length))
    about = header.pop("__metadata__", {})
    bytes_ = np.memmap(path, np.uint8, "r", 8 + length) if size > 8 + length else np.empty(0, np.uint8)
    tensors = {}
    for name, t in header.items():
        if t["dtype"] not in _TYPES:
            raise ValueError(f"'{path}': {name} has type {t['dtype']}, which NumPy does not know")
        begin, end = t["data_offsets"]
        if not 0 <= begin <= end <= len(bytes_):
            raise ValueError(f"'{path}' is cut off: {name} is not all there")
        tensors[name] = bytes_[begin:end].view(_TYPES[t["dtype"]]).reshape(t["shape"])
    return tensors, about


def load_checkpoint(where: Union[str, "os.PathLike[str]"]) -> Checkpoint:
    """Reads what 'tutti train' or Model.save wrote: a run (its best checkpoint, else the latest), a
    checkpoint, or any safetensors file."""
    path = _file_of(pathlib.Path(where))
    parameters, about = _views(path)
    state = path.parent / "state.json"
    return Checkpoint(parameters, about, json.loads(state.read_text()) if state.is_file() else {}, path)
