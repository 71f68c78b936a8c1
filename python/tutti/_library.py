"""The library: finding it, its functions with their types, its failures as exceptions."""
import ctypes
import ctypes.util
import logging
import os
import pathlib
import shutil
from typing import Any, Callable, Dict, Iterator, List

from . import _binding

VERSION = "0.1.0"  # of the library that this package belongs to
_log = logging.getLogger("tutti")


class Error(Exception):
    """What the library could not do: its sentence, and its status as a word ("SHAPE")."""

    def __init__(self, sentence: str, status: str):
        super().__init__(sentence)
        self.status = status


def _candidates() -> Iterator[str]:
    told = os.environ.get("TUTTI_LIBRARY")
    if told:
        yield told
        return
    source = pathlib.Path(__file__).resolve().parents[2]
    if (source / "meson.build").is_file():  # a clone
        yield str(source / "build" / "src" / "libtutti.so")
    program = shutil.which("tutti")
    if program:
        prefix = pathlib.Path(program).resolve().parent.parent
        yield from map(str, sorted(prefix.glob("lib*/**/libtutti.so*")))
    yield ctypes.util.find_library("tutti") or "libtutti.so.0"
    yield "libtutti.so"


def _open() -> ctypes.CDLL:
    tried = []
    for name in _candidates():
        try:
            return ctypes.CDLL(name)
        except OSError as why:
            tried.append(f"{name} ({why})")
    raise ImportError("libtutti.so was not found: install Tutti, or set TUTTI_LIBRARY to its path. "
                      "Tried: " + "; ".join(tried))


def _declare(library: ctypes.CDLL) -> ctypes.CDLL:
    for name, (gives, takes) in _binding.FUNCTIONS.items():
        function = getattr(library, name, None)
        if function is None:
            raise ImportError(f"{library._name} has no {name}: this is another version of it than "
                              f"this package belongs to ({VERSION})")
        function.restype, function.argtypes = gives, takes
    found = library.tutti_version().decode()
    if found != VERSION:
        raise ImportError(f"{library._name} is version {found}, this package belongs to {VERSION}")
    return library


lib = _declare(_open())
libc = ctypes.CDLL(None)
libc.open_memstream.restype = ctypes.c_void_p
libc.fclose.argtypes = libc.fflush.argtypes = [ctypes.c_void_p]
libc.free.argtypes = [ctypes.c_void_p]


def version() -> str:
    """The library's: "0.1.0"."""
    return lib.tutti_version().decode()


def check(status: int) -> None:
    """Raises what the library says, unless it says TUTTI_OK."""
    if status:
        raise Error(lib.tutti_message().decode(errors="replace"),
                    lib.tutti_status_name(status).decode())


# ---- its log: Python's logger "tutti" ----

SINK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)
_LEVELS = [logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG]


@SINK
def _sink(_user: Any, level: int, line: bytes) -> None:
    _log.log(_LEVELS[level], "%s", line.decode(errors="replace"))


def log() -> _binding.tutti_log:
    return _binding.tutti_log(ctypes.cast(_sink, ctypes.c_void_p), None, 2, -1)


# ---- options by name ----

def set_options(options: ctypes.Structure, given: Dict[str, Any], keep: List[Any]) -> None:
    """Sets fields of 'options' by name; texts are kept alive in 'keep'."""
    known = {name: kind for name, kind in options._fields_}
    for name, value in given.items():
        if name not in known:
            raise TypeError(f"there is no option '{name}'; there are: {', '.join(sorted(known))}")
        if value is None:
            continue
        if isinstance(value, os.PathLike):
            value = os.fspath(value)
        if isinstance(value, str):
            value = value.encode()
            keep.append(value)
        try:
            setattr(options, name, value)
        except (TypeError, ctypes.ArgumentError):
            raise TypeError(f"option '{name}' cannot be {value!r}") from None


def written(write: Callable[[ctypes.c_void_p], int]) -> str:
    """The text that 'write' puts into the C stream it is given; it returns a status."""
    text, size = ctypes.c_void_p(), ctypes.c_size_t()
    stream = ctypes.c_void_p(libc.open_memstream(ctypes.byref(text), ctypes.byref(size)))
    try:
        status = write(stream)
        failure = None
        if status:
            failure = Error(lib.tutti_message().decode(errors="replace"),
                            lib.tutti_status_name(status).decode())
    finally:
        libc.fclose(stream)
    result = ctypes.string_at(text, size.value).decode(errors="replace")
    libc.free(text)
    if failure:
        raise failure
    return result


def standard_output() -> ctypes.c_void_p:
    return ctypes.c_void_p.in_dll(libc, "stdout")
