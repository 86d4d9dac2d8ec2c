"""Runs the project's `.cu` kernels on NumPy arrays, on the CPU, to test them without a GPU.

    out = np.zeros(1000, np.float32)
    emulate("scale.cu", "scale", grid=4, block=256, arguments=[x, out, 1000, 2.0])

g++ compiles the file; a block's threads are fibers that switch where they wait for each other.
A Fault, with the kernel's line where it is known, is raised for

- an access outside of an array or of dynamic shared memory, before or behind it; a write to an
  array whose `flags.writeable` is false; an index outside of an array in the source
- a misaligned access, also by vector types and by instructions that need 16 bytes
- a barrier or warp instruction that not all of its threads come to, and any other deadlock
- threads of a block at different `__syncthreads()`; a shuffle by a lane that is not in its mask
- a failed `assert`, `__trap()`, an integer division by zero, a run of more than `seconds`
- arguments that do not fit the kernel's parameters, launches over the hardware's limits
- a result that depends on the order in which threads and blocks run: a barrier is missing

Shared memory that nobody wrote holds 0xFF bytes, which are NaN in every floating type; so do the
targets of asynchronous copies until the wait for them, and the bytes around global arrays.

What it can't see: races that none of the tried orders shows, or that need the weak order of
memory (fences do nothing, and a missing `volatile` is not noticed); accesses through a pointer from
one static `__shared__` array into the next; what a shape or register limit forbids; bank conflicts
and everything else about time. Blocks run one after the other: a kernel whose blocks wait for each
other does not end, and there are no clusters. Sums and fast functions round as the CPU's do.

A function whose body is inline PTX is replaced by the emulator's of the same name (include/ptx.h,
include/hopper.h) if the instruction it stands for is there by name; that its operands are in
the right places is for a GPU to show.
"""

from __future__ import annotations

import _ctypes
import ctypes
import hashlib
import math
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from profkit.capture.cuda_source import _headers
from profkit.core.errors import EnvironmentProblem
from tests.emulator.errors import Fault, NotEmulated
from tests.emulator.source import INCLUDE, Defines, translate

__all__ = ["Fault", "NotEmulated", "TensorMap", "emulate", "missing"]

_OPTIONS = [
    "-O2",
    "-std=c++17",
    "-g1",
    "-w",
    "-Wno-psabi",
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-gnu-unique",
    "-fno-strict-aliasing",
    "-fwrapv",
    "-fno-math-errno",
    "-ftrivial-auto-var-init=pattern",
    "-fsanitize=alignment,bounds",
    "-fno-sanitize-recover=all",
    "-fmax-errors=20",
    "-U_FORTIFY_SOURCE",
]
_OLDEST_COMPILER = 12
_ORDERS = {"forward": 0, "reverse": 1}
_SHUFFLED = 2
_ROOM = 128  # for an argument by value
_LIMITS = {"grid": (2**31 - 1, 65535, 65535), "block": (1024, 1024, 64)}
_MACHINE = Path(__file__).parent / "runtime"
_TENSOR_MARK = 0x7E4503A97E4503A9
_INT32 = range(-(2**31), 2**31)


@dataclass(frozen=True)
class TensorMap:
    """A tensor map for TMA, passed by value: boxes of a C-contiguous array, both outermost first.

    `swizzle` is 0, 32, 64 or 128 (bytes). What cuTensorMapEncodeTiled refuses raises Fault.
    """

    array: np.ndarray
    box: tuple[int, ...]
    swizzle: int = 128

    def __post_init__(self) -> None:
        inner = self.box[-1] * self.array.itemsize
        strides = self.array.strides[:-1]
        if len(self.box) != self.array.ndim or not 1 <= self.array.ndim <= 5:
            raise Fault(
                f"a tensor map of rank {self.array.ndim} with a box of rank {len(self.box)}"
            )
        if any(stride % 16 for stride in strides):
            raise Fault(f"a tensor map's strides are multiples of 16 bytes, not {strides}")
        if not all(1 <= size <= 256 for size in self.box) or inner % 16:
            raise Fault(f"a tensor map's box {self.box}: 1 to 256 each, the last times 16 bytes")
        if self.swizzle and inner > self.swizzle:
            raise Fault(f"a box of {inner} bytes a row, swizzled by {self.swizzle}")

    def _bytes(self, array: int) -> bytes:
        """As include/hopper.h reads it; `array` is the array's place among the launch's."""
        rank = self.array.ndim
        pad = (0,) * (5 - rank)
        return struct.pack(
            "=Q4i10I5Q24x",
            _TENSOR_MARK,
            *(array, rank, self.array.itemsize, self.swizzle),
            *(*self.array.shape[::-1], *pad),
            *(*self.box[::-1], *pad),
            *(*self.array.strides[::-1], *pad),
        )


class _Array(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("bytes", ctypes.c_size_t),
        ("argument", ctypes.c_int),
        ("writable", ctypes.c_int),
        ("placed", ctypes.c_void_p),
    )


class _Launch(ctypes.Structure):
    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_size_t),
        ("order", ctypes.c_int),
        ("seed", ctypes.c_uint),
        ("seconds", ctypes.c_double),
        ("arrays", ctypes.POINTER(_Array)),
        ("array_count", ctypes.c_int),
        ("arguments", ctypes.POINTER(ctypes.c_void_p)),
        ("blocks", ctypes.POINTER(ctypes.c_uint)),
        ("block_count", ctypes.c_size_t),
        ("used_atomics", ctypes.c_int),
        ("fault_offset", ctypes.c_size_t),
        ("message", ctypes.c_char * 8192),
    )


def missing() -> str | None:
    """What the emulator needs and does not find; None where it can run."""
    if shutil.which("g++") is None:
        return "g++ is not here"
    if int(_told_by_compiler("-dumpversion").split(".")[0]) < _OLDEST_COMPILER:
        return f"g++ is older than {_OLDEST_COMPILER}"
    try:
        _headers()
    except EnvironmentProblem as problem:
        return str(problem)
    return None


def emulate(
    path: Path | str,
    name: str,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    arguments: Sequence[Any],
    *,
    defines: Mapping[str, str | int] | None = None,
    shared_bytes: int = 0,
    blocks: Sequence[int] | None = None,
    orders: Sequence[str | int] = ("forward", "reverse"),
    exact: bool | None = None,
    seconds: float = 60.0,
) -> None:
    """Run the kernel `name` of a `.cu` file; arrays among the arguments are written in place.

    An argument is a C-contiguous NumPy array or None (pointers), a bool, an int (32 bits), a float
    (32 bits) or a NumPy or ctypes scalar of the parameter's own type; bfloat16 arrays come as
    uint16. `blocks` are the numbers, x first, of those blocks of the grid that are to run.

    The launch is run once for each of `orders`, in which a block's threads and a grid's blocks take
    their turns: "forward", "reverse", or an int as the seed of a random order. Results must be the
    same bit for bit, unless `exact` is false; None: unless the kernel uses atomics.

    Raises Fault, NotEmulated for inline PTX without a stand-in.
    """
    path = Path(path)
    arguments = [_without_ctypes(argument) for argument in arguments]
    library = _library(path, name, tuple(sorted((defines or {}).items())))
    grid3, block3 = _extent("grid", grid), _extent("block", block)
    if math.prod(block3) > 1024:
        raise Fault(f"a block of {math.prod(block3)} threads; 1024 are allowed")
    arrays = _arrays(arguments)
    results: list[list[np.ndarray]] = []
    atomics = False
    for order in orders:
        launch = _Launch(grid3, block3, shared_bytes, seconds=seconds)
        launch.order = _SHUFFLED if isinstance(order, int) else _ORDERS[order]
        launch.seed = order if isinstance(order, int) else 0
        copies = {
            address: array.copy() if array.flags.writeable else array
            for address, array in arrays.items()
        }
        if blocks is not None:
            launch.blocks, launch.block_count = (ctypes.c_uint * len(blocks))(*blocks), len(blocks)
        with _loaded(library) as code:
            _check(code.emulator_signature().decode().split(), arguments)
            _run(code, launch, arguments, arrays, copies)
            if launch.message:
                raise Fault(f"{path.name}: {_told(launch, library)} (order: {order})")
        atomics = atomics or bool(launch.used_atomics)
        results.append(list(copies.values()))
    if exact or (exact is None and not atomics):
        for order, result in zip(orders, results, strict=True):
            _compare(path, arguments, results[0], result, f"{orders[0]} and {order}")
    for array, left in zip(arrays.values(), results[0], strict=True):
        if array.flags.writeable:
            array[...] = left


def _run(
    code: ctypes.CDLL,
    launch: _Launch,
    arguments: Sequence[Any],
    arrays: Mapping[int, np.ndarray],
    copies: Mapping[int, np.ndarray],
) -> None:
    """One launch; its results are in `copies`, what is wrong is in `launch.message`."""
    described = (_Array * len(arrays))()
    places = {}
    for entry, (address, array) in zip(described, arrays.items(), strict=True):
        entry.data, entry.bytes = copies[address].ctypes.data, array.nbytes
        entry.argument = _number_of(address, arguments)
        entry.writable = array.flags.writeable
        places[address] = ctypes.addressof(entry) + _Array.placed.offset
    scalars = np.zeros(_ROOM * (len(arguments) + 1), np.uint8)
    pointers = []
    at = -scalars.ctypes.data % _ROOM
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            pointers.append(places[argument.ctypes.data])
            continue
        raw = _raw(argument, list(arrays))
        scalars[at : at + len(raw)] = np.frombuffer(raw, np.uint8)
        pointers.append(scalars.ctypes.data + at)
        at += _ROOM
    launch.arrays, launch.array_count = described, len(described)
    launch.arguments = (ctypes.c_void_p * len(pointers))(*pointers)
    code.emulator_run(ctypes.byref(launch))


def _without_ctypes(argument: Any) -> Any:
    if not hasattr(argument, "_b_base_"):
        return argument
    return np.dtype(type(argument)).type(argument.value)


def _array_of(argument: Any) -> np.ndarray | None:
    array = argument.array if isinstance(argument, TensorMap) else argument
    return array if isinstance(array, np.ndarray) else None


def _number_of(address: int, arguments: Sequence[Any]) -> int:
    """Which argument is the first that is, or is about, the array at an address."""
    arrays = [_array_of(argument) for argument in arguments]
    return next(i for i, a in enumerate(arrays) if a is not None and a.ctypes.data == address)


def _arrays(arguments: Sequence[Any]) -> dict[int, np.ndarray]:
    """The arrays by address: one passed twice is one."""
    arrays: dict[int, np.ndarray] = {}
    for array in map(_array_of, arguments):
        if array is None:
            continue
        if not array.flags.c_contiguous:
            raise Fault("an array that is not C-contiguous")
        if arrays.setdefault(array.ctypes.data, array).nbytes != array.nbytes:
            raise Fault("two arrays of different sizes from the same address")
    return arrays


def _raw(argument: Any, addresses: Sequence[int]) -> bytes:
    """The bytes of an argument by value."""
    if isinstance(argument, TensorMap):
        return argument._bytes(addresses.index(argument.array.ctypes.data))
    if argument is None:
        return bytes(8)
    if isinstance(argument, np.generic):
        return argument.tobytes()
    if isinstance(argument, int) and argument not in _INT32:
        raise Fault(f"{argument} does not fit into an int: pass numpy.int64")
    kinds: dict[type, type] = {bool: np.bool_, int: np.int32, float: np.float32}
    return bytes(kinds[type(argument)](argument).tobytes())


def _check(parameters: Sequence[str], arguments: Sequence[Any]) -> None:
    """Whether the arguments are what the kernel's parameters ask for."""
    if len(parameters) != len(arguments):
        raise Fault(f"{len(arguments)} arguments for {len(parameters)} parameters")
    for number, (parameter, argument) in enumerate(zip(parameters, arguments, strict=True)):
        kinds = _kinds(argument, parameter)
        if parameter not in kinds:
            raise Fault(f"argument {number} is {' or '.join(kinds)}, the parameter {parameter}")


def _kinds(argument: Any, parameter: str) -> tuple[str, ...]:
    """Which parameters an argument fits: a kind and the bytes, behind a star for a pointer to it.

    An array of bytes fits every pointer, and every array a pointer to bytes or to a structure.
    """
    if argument is None:
        return (parameter if parameter.startswith("*") else "*",)
    if isinstance(argument, TensorMap):
        return ("V128",)
    if isinstance(argument, np.generic):
        return (_kind(argument.dtype),)
    if isinstance(argument, bool | int | float):
        return {bool: ("b1",), int: ("i4", "u4"), float: ("f4",)}[type(argument)]
    if not isinstance(argument, np.ndarray):
        raise Fault(f"a kernel can't take {argument!r}")
    kind = _kind(argument.dtype)
    other = {"i": "u", "u": "i"}.get(kind[0], kind[0]) + kind[1:]
    if kind == "u1" and parameter.startswith("*"):
        return (parameter,)
    return (f"*{kind}", f"*{other}", "*", "*i1", "*u1")


def _kind(dtype: np.dtype) -> str:
    return f"{dtype.kind}{dtype.itemsize}"


def _compare(
    path: Path,
    arguments: Sequence[Any],
    first: Sequence[np.ndarray],
    other: Sequence[np.ndarray],
    orders: str,
) -> None:
    """Raise Fault where two orders of running gave different bytes."""
    for one, two, address in zip(first, other, _arrays(arguments), strict=True):
        if one is two:
            continue
        differs = one.reshape(-1).view(np.uint8) != two.reshape(-1).view(np.uint8)
        places = np.unique(np.flatnonzero(differs) // one.itemsize)
        if len(places):
            number = _number_of(address, arguments)
            at = tuple(int(i) for i in np.unravel_index(places[0], one.shape))
            raise Fault(
                f"{path.name}: argument {number} depends on the order in which threads run "
                f"({orders}): {len(places)} of {one.size} elements, the first at {at}"
            )


def _extent(what: str, extent: int | Sequence[int]) -> Any:
    sizes = (extent,) if isinstance(extent, int) else tuple(extent)
    sizes += (1,) * (3 - len(sizes))
    for size, limit in zip(sizes, _LIMITS[what], strict=True):
        if not 1 <= size <= limit:
            raise Fault(f"a {what} of {sizes}; {_LIMITS[what]} is the limit")
    return (ctypes.c_uint * 3)(*sizes)


@contextmanager
def _loaded(library: Path) -> Iterator[ctypes.CDLL]:
    """The library with its variables as they are at a program's start."""
    code = ctypes.CDLL(str(library))
    code.emulator_signature.restype = ctypes.c_char_p
    try:
        yield code
    finally:
        _ctypes.dlclose(code._handle)


def _told(launch: _Launch, library: Path) -> str:
    """The run's message, with the line of an instruction that a signal came from."""
    message: str = launch.message.decode(errors="replace")
    if not launch.fault_offset or shutil.which("addr2line") is None:
        return message
    command = ["addr2line", "-i", "-e", str(library), hex(launch.fault_offset)]
    lines = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split("\n")
    own = [line for line in lines if not line.startswith((str(INCLUDE), "??"))]
    numbers = [line.rsplit(":", 1)[-1].split()[0] for line in own if ":" in line]
    return f"line {numbers[0]}, {message}" if numbers else message


def _library(path: Path, name: str, defines: Defines) -> Path:
    """The compiled kernel, of the cache if it is there."""
    source = translate(path.read_text(encoding="utf-8"), path.name, name, defines)
    library = _folder() / f"{_digest(source, *_options())}.so"
    if not library.exists():
        options = [f"-I{_compiled_headers()}", *_options()]
        _build(source, options, library, ["-shared", str(_machine())], path.name)
    return library


def _options() -> list[str]:
    return [*_OPTIONS, f"-I{INCLUDE}", f"-I{_headers()}"]


@cache
def _compiled_headers() -> Path:
    """A folder with device.h compiled, three quarters of what g++ does for a small kernel."""
    folder = _folder() / _digest("device.h", *_options())
    built = folder / "device.h.gch"
    if not built.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as beside:
            whole = Path(beside) / built.name
            header = str(INCLUDE / "device.h")
            subprocess.run(
                ["g++", *_options(), "-x", "c++-header", header, "-o", str(whole)], check=True
            )
            whole.replace(built)
    return folder


@cache
def _machine() -> Path:
    """The emulated machine as an object file, which every kernel is linked with."""
    source = "".join(f'#include "{file}"\n' for file in sorted(_MACHINE.glob("*.cpp")))
    built = _folder() / f"{_digest(source, *_options())}.o"
    if not built.exists():
        _build(source, _options(), built, ["-r", "-nostdlib"], "the emulator")
    return built


def _digest(*parts: str) -> str:
    """Of a source and its options, the emulator's own text and the compiler."""
    files = [*INCLUDE.rglob("*"), *_MACHINE.glob("*")]
    texts = [file.read_text(encoding="utf-8") for file in sorted(files) if file.is_file()]
    return hashlib.sha256(
        "\0".join([*parts, *texts, _told_by_compiler("--version")]).encode()
    ).hexdigest()


def _build(
    source: str, options: Sequence[str], built: Path, link: Sequence[str], name: str
) -> None:
    """Compile and link; a file is put in its place when it is whole."""
    built.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=built.parent) as folder:
        unit, whole = Path(folder) / "unit.o", Path(folder) / built.name
        compiled = subprocess.run(
            ["g++", *options, "-x", "c++", "-c", "-", "-o", str(unit)],
            input=source,
            capture_output=True,
            text=True,
            check=False,
        )
        if compiled.returncode:
            raise Fault(f"{name} does not compile:\n{compiled.stderr}")
        subprocess.run(["g++", str(unit), *link, "-o", str(whole)], check=True)
        whole.replace(built)


@cache
def _told_by_compiler(option: str) -> str:
    command = ["g++", option]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "profkit" / "emulator"
