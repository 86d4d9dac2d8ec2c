"""The machine code of kernels without any count of it: of a recorded launch, and of a cubin.

The vendor's reader disassembles the program of a launch. A cubin that a compiler left on disk is
given to it as the program of a launch without metrics.
"""

import re
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import Struct

from profkit.core.compute_capability import ComputeCapability
from profkit.core.errors import BadInput
from profkit.core.regular_file import read_limited
from profkit.machine_code.flow import Flow
from profkit.machine_code.operation import parse
from profkit.report.action import Action, Opened
from profkit.report.catalog import catalog
from profkit.report.framing import Kind
from profkit.report.messages import new

_INSTRUCTION = 16  # bytes from CC 7.0 on
_LONGEST = 20_000  # instructions, chosen: reading them takes a second
_LARGEST = 64 << 20  # bytes of a cubin, as of those that profkit compiles
_START = 1 << 46
"""An address as GPUs give them. From one below a cubin's size the vendor's reader answers with the
code of another of its kernels."""
_SCOPES = re.compile("_ZL?(?:N[rVK]*)?")  # before them: internal linkage; a nested name
_LENGTH = re.compile("(?:S[tabsiod])?L?([1-9][0-9]{0,4})")  # of a name, behind a standard scope
_EXTENT = {"x": 1, "y": 1, "z": 1}
_SECTIONS, _SECTION_SIZE, _SECTION_COUNT = 0x28, 0x3A, 0x3C  # of a 64-bit ELF header (System V ABI)
_SYMBOL_BITS = 24  # of a code section's information; above them are registers
_FEWEST_REGISTERS = 16  # of a thread, as a launch has them: code that takes 11 is launched with 16
_TEXT, _INFORMATION = ".text.", ".nv.info"
_SIZED, _REGISTER_COUNT = 4, 0x2F  # the form of an attribute with a size; EIATTR_REGCOUNT


class CubinKernel(Struct, frozen=True):
    """A kernel of a cubin: the number of its symbol, and the registers of a thread of a launch."""

    symbol: int
    registers: int


@dataclass(frozen=True)
class Cubin:
    """A file of machine code, and its kernels by mangled name."""

    path: Path
    data: bytes = field(repr=False)
    kernels: Mapping[str, CubinKernel]


def launch_code(action: Action) -> Flow | None:
    """The code of a recorded launch's kernel, without functions that it calls; None where it was
    not recorded, or is too long."""
    start = action.code_start(catalog().kernel_start)
    return None if start is None else _flow(action.sass_by_pc, start)


def cubin_code(cubin: Cubin, kernel: str, cc: ComputeCapability) -> Flow | None:
    """The code of a kernel of a cubin, by its mangled name; None where it can't be read."""
    name = kernel.encode()
    symbol = cubin.kernels[kernel].symbol
    source = new(
        "SourceData",
        reference=1,
        binary=cubin.data,
        cuda_sm_version=cc[0] << 16 | cc[1],
        relocation_data={
            "functions": [{"symbol_name": name, "address": _START, "symbol_index": symbol}]
        },
    )
    launch = new(
        "ProfileResult",
        **dict.fromkeys(("thread_id", "api_call_id", "program_handle", "kernel_id"), 1),
        **dict.fromkeys(("kernel_mangled_name", "kernel_function_name"), name),
        kernel_demangled_name=name,
        work_dimensions=0,
        **dict.fromkeys(("global_work_offset", "grid_size", "block_size"), _EXTENT),
        source={"reference": 1},
    )
    program, call = ([each.SerializeToString()] for each in (source, launch))
    try:
        opened = Opened(cubin.path, Kind.kernel, program, call, ())
        return _flow(opened.handles[0].sass_by_pc, _START)
    except (BadInput, RuntimeError, ValueError):
        return None


def function_name(mangled: str) -> str:
    """The name of a function without scopes, template arguments and parameters, from its mangled
    name (Itanium C++ ABI, "Names"); a name that is not mangled itself."""
    start = _SCOPES.match(mangled)
    if start is None:
        return mangled
    place, name = start.end(), ""
    while length := _LENGTH.match(mangled, place):
        place = length.end() + int(length[1])
        name = mangled[length.end() : place]
    return name


def read_cubin(path: Path) -> Cubin | None:
    """A cubin; None where the file is none."""
    try:
        data = read_limited(path, _LARGEST)
        kernels = dict(_kernels(data))
    except (BadInput, OSError, OverflowError, struct.error, LookupError, ValueError):
        return None
    return Cubin(path, data, kernels) if kernels else None


def _kernels(data: bytes) -> Iterator[tuple[str, CubinKernel]]:
    """The kernels of a cubin and the registers of a thread.

    A kernel's code is the section `.text.NAME`, whose information is the number of its symbol. Its
    registers are in the highest byte of that, or, where that is 0 (compute capability 9.0), in an
    attribute of the symbol in `.nv.info` (as `cuobjdump --dump-elf` shows).
    """
    if not data.startswith(b"\x7fELF\x02"):
        return
    (table,) = struct.unpack_from("<Q", data, _SECTIONS)
    size, count, names_index = struct.unpack_from("<3H", data, _SECTION_SIZE)
    rows = [struct.unpack_from("<IIQQQQIIQQ", data, table + size * row) for row in range(count)]
    names = rows[names_index][4]
    symbols: dict[str, int] = {}
    registers: dict[int, int] = {}
    for name_offset, _, _, _, offset, length, _, info, *_ in rows:
        begin = names + name_offset
        name = data[begin : data.index(b"\0", begin)].decode("utf-8", "replace")
        if name == _INFORMATION:
            registers = dict(_register_counts(data[offset : offset + length]))
        elif name.startswith(_TEXT):
            symbols[name.removeprefix(_TEXT)] = info
    for name, information in symbols.items():
        count, symbol = divmod(information, 1 << _SYMBOL_BITS)
        yield name, CubinKernel(symbol, max(count or registers.get(symbol, 0), _FEWEST_REGISTERS))


def _register_counts(attributes: bytes) -> Iterator[tuple[int, int]]:
    """Symbols and the registers of their threads, from the attributes of a cubin."""
    place = 0
    while place + 4 <= len(attributes):
        form, attribute, size = struct.unpack_from("<BBH", attributes, place)
        place += 4
        if form == _SIZED:
            if attribute == _REGISTER_COUNT:
                yield struct.unpack_from("<II", attributes, place)
            place += size


def _flow(text_at: Callable[[int], str], start: int) -> Flow | None:
    addresses, operations = [], []
    for address in range(start, start + _INSTRUCTION * (_LONGEST + 1), _INSTRUCTION):
        text = " ".join(text_at(address).split())
        if not text.strip("? "):
            break
        addresses.append(address)
        operations.append(parse(text))
    return Flow(addresses, operations) if 0 < len(operations) <= _LONGEST else None
