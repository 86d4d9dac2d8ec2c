"""What code reads, and whether it has changed: a worker process, or a trace, keeps it as it was."""

from __future__ import annotations

import dis
import functools
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from io import IOBase
from itertools import islice
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

_MOST_LOOKS, _PARTS = 4000, 100  # at parts of roots, at an object's; chosen: 20 ms
_SAMPLE = 4096  # elements of an array that are looked at, chosen
_NONE = object()
_CACHED = type(functools.lru_cache(len))
_MANY = (dict, list, tuple, set, deque)
_LIBRARY, _HERE = (os.path.dirname(file) + os.sep for file in (os.__file__, __file__))
_SHARE = 0.01  # of the time until the next look that one takes, chosen
_OF_MODULES_PARTS = {"_parameters", "_buffers", "_modules"}
_OF_MODULES = ("__call__", "forward")
_CALLED = ("__getitem__", "__getitems__", "__iter__", "__next__", *_OF_MODULES)  # by loaders

_OF_ENVIRONMENT = {"environ", "getenv"}
# By which code reads attributes that it does not name.
_DYNAMIC = {"getattr", "vars", "__dict__", "asdict"}

State = list[tuple[str, Any]]


def state(*roots: Any, is_own: bool = False) -> State:
    """What changes with objects that are changed, as far as a look shows, by name: the numbers and
    words in them, the nearest first, and where the rest lies. Functions have what they read from
    outside, and objects of the program's classes what functions name. `is_own` leaves out what is
    in the objects of installed classes, but for datasets."""
    names, count = {*_CALLED}, 0
    found: State = []
    while count < len(names):
        count, found = len(names), []
        _walk(found, roots, names, is_own)
    return found


def _walk(found: State, roots: Any, names: set[str], only_own: bool) -> None:
    """One walk, which adds to the attributes that code names."""
    waiting, seen = deque(("", root) for root in roots), set[int]()
    while waiting and len(found) < _MOST_LOOKS:
        name, value = waiting.popleft()
        with suppress(Exception):  # of tensors without an address, and properties
            if (known := _number(value)) is not _NONE:
                found.append((name, known))
            elif id(value) not in seen:
                seen.add(id(value))
                found.append((name, (id(value), _contents(value))))
                parts = _parts(value, names, only_own)
                waiting += islice(((part or name, each) for part, each in parts), _PARTS)


def _contents(value: Any) -> int:
    """What changes with a container whose parts are not looked at one by one: of one of numbers and
    words its hash, of others their size."""
    if not isinstance(value, _MANY):
        return 0
    with suppress(TypeError):
        if len(value) > _PARTS:
            values = value.values() if isinstance(value, dict) else ()
            return hash((tuple(value), tuple(values)))
    return len(value)


def _number(value: Any) -> Any:
    """What of a value without parts changes with it; an iterator changes whenever it is read."""
    kind = type(value)
    if value is None or isinstance(value, (int, float, str)):
        return value
    if hasattr(kind, "aval") or hasattr(kind, "block_until_ready"):
        return id(value)  # JAX's, which don't change
    if hasattr(kind, "data_ptr"):
        return value.data_ptr(), value._version
    if hasattr(kind, "tobytes") and hasattr(kind, "flat"):
        return value.flat[:: max(1, value.size // _SAMPLE)].tobytes()
    if hasattr(kind, "bit_generator"):
        return str(value.bit_generator.state)
    if hasattr(kind, "getstate"):
        return value.getstate()
    if isinstance(value, IOBase):
        return id(value), value.tell() if not value.closed and value.seekable() else 0
    if isinstance(value, Iterator) and not hasattr(kind, "execute"):  # no cursor of a database
        return object()
    is_constant = isinstance(value, Mapping) and not isinstance(value, dict) and not is_own(kind)
    is_log = kind.__module__ in {"logging", "logging.handlers"}  # which has what all others have
    return id(value) if is_constant or is_log else _NONE


def difference(before: State, after: State) -> str:
    """The name of the first part that has changed, "" without."""
    changed = (old[0] or new[0] for old, new in zip(before, after) if old != new)
    is_same = len(before) == len(after)
    return next(filter(None, changed), "") or ("" if is_same and before == after else "a value")


def random_numbers() -> str:
    """The states of the host's random numbers, as far as their libraries are imported."""
    random, numpy, torch = map(sys.modules.get, ("random", "numpy", "torch"))
    own = random and random.getstate(), numpy and numpy.random.get_state()
    return str((*own, torch and torch.get_rng_state().tolist()))


class Watch:
    """Looks at what code reads, again and again: each costs a small part of the time until the next
    one, so that of a short time that is measured none takes much."""

    def __init__(self) -> None:
        self.due = 0.0

    def difference(self, before: State, look: Callable[[], State], *, is_due: bool = False) -> str:
        """The name of the first part that has changed, "" without, or where it is not looked at."""
        now = time.perf_counter()
        if now < self.due and not is_due:
            return ""
        changed = difference(before, look())
        ended = time.perf_counter()
        self.due = ended + (ended - now) / _SHARE
        return changed


def is_own(code: Any) -> bool:
    """Whether a function, class or module is the program's."""
    if isinstance(code, FunctionType):
        return not _is_library(code.__code__.co_filename)
    module = code if isinstance(code, ModuleType) else sys.modules.get(code.__module__)
    file = getattr(module, "__file__", None)
    is_main = getattr(module, "__name__", "") == "__main__"
    return is_main or (file is not None and not _is_library(file))


def is_of_program(frame: Any) -> bool:
    """Whether a frame is of the program's own code, or of Python's library that it called."""
    while (file := frame.f_code.co_filename).startswith((_LIBRARY, "<frozen")):
        if is_installed(file) or file.startswith("<frozen importlib") or frame.f_back is None:
            return False
        frame = frame.f_back
    return not _is_library(file)


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


def _parts(value: Any, names: set[str], only_own: bool) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from ((key if isinstance(key, str) else "", each) for key, each in value.items())
    elif isinstance(value, _MANY):
        step = -(-len(value) // _PARTS) or 1
        yield from (("", each) for each in islice(value, 0, None, step))
    elif isinstance(value, FunctionType) and not str(value.__module__).startswith(__package__):
        yield from _read(value, names)
        yield from value.__dict__.items()
        yield from (("", each) for each in (value.__defaults__, value.__kwdefaults__) if each)
    elif isinstance(value, MethodType):
        yield from (("", value.__func__), ("", value.__self__))
    elif isinstance(value, functools.partial):
        yield from (("", value.func), ("", value.args), ("", value.keywords))
    elif isinstance(value, _CACHED):
        yield "", value.__wrapped__
    elif not isinstance(value, (ModuleType, type)):
        yield from _of_object(value, names, only_own)


def _of_object(value: Any, names: set[str], only_own: bool) -> Iterator[tuple[str, Any]]:
    kind = type(value)
    is_program = is_own(kind) or kind.__module__ in ("types", "argparse")
    if only_own and not is_program and not kind.__module__.startswith("torch.utils.data"):
        held = getattr(value, "__dict__", {}).items()  # metrics, say; the rest may be caches
        yield from ((name, each) for name, each in held if hasattr(type(each), "data_ptr"))
        return
    if kind.__module__.startswith(__package__):  # a hook
        yield "", getattr(value, "__wrapped__", None)
        return
    is_all = not is_program or names & _DYNAMIC
    for name in sorted(names) if is_program else ():
        function = getattr(kind, name, None)
        function = getattr(function, "fget", function)
        if isinstance(function, FunctionType) and (name not in _OF_MODULES or is_own(function)):
            yield from _read(function, names, kind)
    slots = (name for base in kind.__mro__[:-1] for name in _slots(base) if hasattr(value, name))
    for name in (*getattr(value, "__dict__", ()), *slots):
        if (is_all or name in names) and not (only_own and name in _OF_MODULES_PARTS):
            yield name, getattr(value, name)


def _slots(base: type) -> tuple[str, ...]:
    slots = base.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _read(
    function: FunctionType, names: set[str], kind: type | None = None
) -> Iterator[tuple[str, Any]]:
    """What a function has from outside: variables of outer functions, and, of the program's own,
    globals, with what it names of modules and classes; adds to the attributes that are named."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or ())
    read = [(name, cell.cell_contents) for name, cell in cells if cell != CellType()]
    globals_, attributes = _names(function.__code__)
    if not _OF_ENVIRONMENT.isdisjoint((*globals_, *attributes)):
        own = {name: text for name, text in os.environ.items() if not name.startswith("PROFKIT_")}
        read.append(("the environment", str(own)))
    if kind or is_own(function):
        names.update(attributes, _DYNAMIC.intersection(globals_))
    if is_own(function):
        read += [(n, function.__globals__[n]) for n in globals_ if n in function.__globals__]
    yield from read
    holders = [value for _, value in read if isinstance(value, (ModuleType, type))]
    bases = [base for each in (*holders, kind) for base in getattr(each, "__mro__", (each,))]
    for holder in filter(is_own, filter(None, bases)):
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
