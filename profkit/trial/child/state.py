"""What code reads, and whether it has changed: a worker process, or a trace, keeps it as it was."""

from __future__ import annotations

import dis
import functools
import os
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

_MOST_LOOKS, _PARTS = 10_000, 100  # at parts of roots, at an object's; chosen: 10 ms
_SAMPLE = 4096  # elements of an array that are looked at, chosen
_MANY = (dict, list, tuple, set, deque)
_LIBRARY, _HERE = (os.path.dirname(file) + os.sep for file in (os.__file__, __file__))
# Chosen: seconds, and of the time after these, in which is looked at what code reads.
_LOOKING, _SHARE = 0.02, 0.01
_CALLED = ("__getitem__", "__getitems__", "__call__", "forward")  # by datasets and transforms

State = list[tuple[str, Any]]


def state(*roots: Any, is_own: bool = False) -> State:
    """What changes with objects that are changed, as far as a look shows, by name: the numbers and
    words in them, the nearest first, and where the rest lies. Functions have what they read from
    outside. `is_own` leaves out what is in the objects of installed classes, but for datasets."""
    waiting, seen = deque(("", root) for root in roots), set[int]()
    found: State = []
    with suppress(Exception):  # of tensors without an address
        while waiting and len(found) < _MOST_LOOKS:
            name, value = waiting.popleft()
            if value is None or isinstance(value, (int, float, str)):
                found.append((name, value))
            elif hasattr(value, "aval"):  # JAX's, which don't change
                found.append((name, id(value)))
            elif hasattr(value, "data_ptr"):
                found.append((name, (value.data_ptr(), value._version)))
            elif hasattr(value, "tobytes") and hasattr(value, "flat"):
                step = max(1, value.size // _SAMPLE)
                found.append((name, value.flat[::step].tobytes()))
            elif id(value) not in seen:
                seen.add(id(value))
                found.append((name, (id(value), len(value) if isinstance(value, _MANY) else 0)))
                parts = _parts(value, is_own)
                waiting += islice(((part or name, each) for part, each in parts), _PARTS)
    return found


def difference(before: State, after: State) -> str:
    """The name of the first part that has changed, "" without."""
    pairs = zip(before, after)
    changed = (old[0] or new[0] for old, new in pairs if old != new)
    is_same = len(before) == len(after)
    return next(changed, "") or ("" if is_same and before == after else "a value")


class Watch:
    """Looks at what code reads, again and again, which costs a small part of the time."""

    def __init__(self) -> None:
        self.spent, self.start = 0.0, time.perf_counter()

    def difference(self, before: State, *roots: Any, is_due: bool = False) -> str:
        """The name of the first part that has changed, "" without, or where it is not looked at."""
        now = time.perf_counter()
        if self.spent > _LOOKING + _SHARE * (now - self.start) and not is_due:
            return ""
        changed = difference(before, state(*roots))
        self.spent += time.perf_counter() - now
        return changed


def is_own(code: Any) -> bool:
    """Whether a function, class or module is the program's."""
    if isinstance(code, FunctionType):
        return not _is_library(code.__code__.co_filename)
    module = code if isinstance(code, ModuleType) else sys.modules.get(code.__module__)
    file = getattr(module, "__file__", None)
    is_main = getattr(module, "__name__", "") == "__main__"
    return is_main or (file is not None and not _is_library(file))


def _is_library(file: str) -> bool:
    return is_installed(file) or file.startswith((_LIBRARY, "<frozen", _HERE))


@functools.lru_cache(maxsize=None)
def is_installed(file: str) -> bool:
    """Whether a file is one of an installed package."""
    folders = filter(_has_packages, map(os.path.abspath, sys.path))
    return any(file.startswith(folder + os.sep) for folder in folders)


@functools.lru_cache(maxsize=None)
def _has_packages(folder: str) -> bool:
    """Whether a folder is one that packages are installed in."""
    try:
        return any(name.endswith(".dist-info") for name in os.listdir(folder))
    except OSError:
        return False


def _parts(value: Any, only_own: bool) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield from ((key if isinstance(key, str) else "", each) for key, each in value.items())
    elif isinstance(value, _MANY):
        yield from (("", each) for each in value)
    elif isinstance(value, FunctionType):
        yield from _read(value)
    elif isinstance(value, MethodType):
        yield from (("", value.__self__), ("", value.__func__))
    elif isinstance(value, functools.partial):
        yield from (("", value.func), ("", value.args), ("", value.keywords))
    elif not isinstance(value, (ModuleType, type)):
        yield from _of_object(value, only_own)


def _of_object(value: Any, only_own: bool) -> Iterator[tuple[str, Any]]:
    kind = type(value)
    if only_own and not is_own(kind) and not kind.__module__.startswith("torch.utils.data"):
        return
    if kind.__module__.startswith(__package__):  # a hook
        yield "", getattr(value, "__wrapped__", None)
        return
    yield from getattr(value, "__dict__", {}).items()
    for base in kind.__mro__[:-1]:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if not name.startswith("__") and hasattr(value, name):
                yield name, getattr(value, name)
    for name in _CALLED if is_own(kind) else ():
        function = getattr(kind, name, None)
        if isinstance(function, FunctionType):
            yield from _read(function, kind)


def _read(function: FunctionType, kind: type | None = None) -> Iterator[tuple[str, Any]]:
    """What a function has from outside: variables of outer functions, and, of the program's own,
    globals, with what it names of modules and classes, and methods of its class."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or ())
    read = [(name, cell.cell_contents) for name, cell in cells if cell != CellType()]
    globals_, attributes = _names(function.__code__) if is_own(function) else ((), ())
    read += [(n, function.__globals__[n]) for n in globals_ if n in function.__globals__]
    yield from read
    holders = [value for _, value in read if isinstance(value, (ModuleType, type))]
    for holder in filter(is_own, [*holders, *([kind] if kind else [])]):
        yield from ((name, vars(holder)[name]) for name in attributes if name in vars(holder))


@functools.lru_cache(maxsize=None)
def _names(code: CodeType) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The globals that a code reads, and the functions in it, and its names of attributes."""
    steps = list(dis.get_instructions(code))
    globals_ = [step.argval for step in steps if step.opname == "LOAD_GLOBAL"]
    attributes = [step.argval for step in steps if step.opname in {"LOAD_ATTR", "LOAD_METHOD"}]
    for part in code.co_consts:
        if isinstance(part, CodeType):
            inner = _names(part)
            globals_ += inner[0]
            attributes += inner[1]
    return tuple(dict.fromkeys(globals_)), tuple(dict.fromkeys(attributes))
