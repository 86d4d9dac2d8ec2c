"""Compiles a `.cu` file through NVRTC and launches its kernel on torch's tensors and stream."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from msgspec import Struct

from profkit.core.atomic_file import replacement
from profkit.core.errors import BadInput, EnvironmentProblem, TargetFailed, UsageError
from profkit.core.regular_file import read_limited
from profkit.core.text_files import read_text

_NEEDED_HEADERS = ("cuda_fp16.h", "cuda_bf16.h", "vector_types.h")
_ERROR = re.compile(
    r"^(?P<file>.+?)\((?P<line>\d+)\): (?P<error>(?:\w+ )?error: .+)$", re.MULTILINE
)
_INT32 = range(-(2**31), 2**31)
# Bytes of dynamic shared memory per block without an opt-in: CUDA C++ Programming Guide.
_SHARED_BY_DEFAULT = 48 * 1024
_LARGEST_CODE = 256 << 20  # bytes of a cubin; cuDNN's largest have tens of MB


class Build(Struct, frozen=True):
    """How kernels are compiled: their source edited, and with what options of the compiler.

    `registers` is the most that a thread may have, 0 for no limit; `carveout` the percentage of L1
    that is preferred as shared memory, -1 for the driver's choice.
    """

    edit: Callable[[str], str] = str
    fast_math: bool = False
    registers: int = 0
    ptxas: tuple[str, ...] = ()
    carveout: int = -1


_AS_IT_IS = Build()
_BUILD: ContextVar[Build] = ContextVar("build", default=_AS_IT_IS)


class Source(Struct, frozen=True):
    """What a kernel is compiled from."""

    text: str
    path: str
    name: str
    arch: str
    macros: tuple[tuple[str, str], ...]

    def compiled(self, build: Build = _AS_IT_IS) -> CudaKernel:
        """The kernel; raises as `compile_kernel` does."""
        return _compiled(self, build)


_SOURCES: ContextVar[dict[Source, None] | None] = ContextVar("sources", default=None)


@contextmanager
def built(build: Build) -> Iterator[Collection[Source]]:
    """Kernels compiled meanwhile are compiled so; gives what of, as they are."""
    sources: dict[Source, None] = {}
    tokens = _BUILD.set(build), _SOURCES.set(sources)
    try:
        yield sources.keys()
    finally:
        _BUILD.reset(tokens[0])
        _SOURCES.reset(tokens[1])


class CudaKernel(Struct, frozen=True, dict=True):
    """A compiled kernel: its name, the architecture it is for, its machine code, and `carveout` as
    of its build."""

    name: str
    arch: str
    cubin: bytes
    carveout: int = -1

    def launch(
        self, grid: Sequence[int], block: Sequence[int], *arguments: Any, shared_bytes: int = 0
    ) -> None:
        """Queue the kernel on torch's current stream.

        `grid` in blocks, `block` in threads, up to three dimensions each; `shared_bytes` of dynamic
        shared memory per block. A CUDA tensor is passed as its address, a bool as bool, an int as
        int (32 bits), a float as float; ctypes and NumPy scalars as what they are, an object with
        `as_argument()` as the value of ctypes that this gives. CUDA does not check their count and
        types.

        Raises UsageError for an invalid argument, EnvironmentProblem where the device has less
        shared memory per block or refuses the launch.
        """
        import torch
        from cuda.bindings import driver
        from cuda.core import Device

        values = [_argument(argument) for argument in arguments]
        addresses = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        device = Device(torch.cuda.current_device())
        device.set_current()
        if shared_bytes > _SHARED_BY_DEFAULT:
            attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            (status,) = driver.cuKernelSetAttribute(
                attribute, shared_bytes, self._loaded.handle, device.device_id
            )
            self._check(status, f"{shared_bytes} bytes of shared memory per block refused")
        if self.carveout >= 0:
            preferred = (
                driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
            )
            (status,) = driver.cuKernelSetAttribute(
                preferred, self.carveout, self._loaded.handle, device.device_id
            )
            self._check(status, f"a carve-out of {self.carveout}% refused")
        (status,) = driver.cuLaunchKernel(
            driver.CUfunction(int(self._loaded.handle)),
            *(*grid, 1, 1)[:3],
            *(*block, 1, 1)[:3],
            shared_bytes,
            torch.cuda.current_stream().cuda_stream,
            ctypes.addressof(addresses),
            0,
        )
        self._check(status, "can't be launched")

    def _check(self, status: Any, problem: str) -> None:
        if status:
            raise EnvironmentProblem(f"{self.name}: {problem} ({status.name})")

    @cached_property
    def _loaded(self) -> Any:
        from cuda.core import ObjectCode

        return ObjectCode.from_cubin(self.cubin, name=self.name).get_kernel(self.name)


def compile_kernel(
    path: Path | str,
    name: str,
    *,
    arch: str | None = None,
    defines: Mapping[str, str | int] | None = None,
) -> CudaKernel:
    """Compile the kernel `name`, which must be `extern "C"`, out of a `.cu` file.

    `arch` is as `sm_90`, by default the current device's; `defines` are macros. The file may
    include CUDA's headers and no others. The code is kept on disk by path, text, options and
    compiler version, and in memory, so that a second call neither compiles nor loads.

    Raises BadInput for a file that can't be read, TargetFailed with the compiler's errors and the
    lines they are about, EnvironmentProblem where NVRTC, its headers or the device are missing.
    """
    path = Path(path).absolute()
    try:
        state = path.stat()
        text = _text(path, state.st_mtime_ns, state.st_size)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error
    macros = tuple(sorted((key, str(value)) for key, value in (defines or {}).items()))
    source = Source(text, str(path), name, arch or _device_arch(), macros)
    if (sources := _SOURCES.get()) is not None:
        sources[source] = None
    return source.compiled(_BUILD.get())


@cache
def _text(path: Path, _changed: int, _size: int) -> str:
    """A file's text as of its last change: reading it again would cost each launch tens of µs."""
    return read_text(path)


def compiler_version() -> str:
    """NVRTC's version, as `13.0`; raises EnvironmentProblem where it can't be loaded."""
    try:
        from cuda.bindings import nvrtc

        _, major, minor = nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError, SystemError) as error:
        raise _no_compiler(error) from error
    return f"{major}.{minor}"


@cache
def _compiled(source: Source, build: Build) -> CudaKernel:
    version, include, text = compiler_version(), _headers(), build.edit(source.text)
    options = ["no cache", build.fast_math, build.registers, build.ptxas]
    inputs = [text, source.path, source.arch, source.macros, version, include, *options]
    key = hashlib.sha256(json.dumps(inputs).encode()).hexdigest()
    cubin = _saved(key)
    if cubin is None:
        cubin = _compile(text, source, include, build)
        with suppress(OSError, RuntimeError):  # a folder that can't be written costs only time
            file = _file(key)
            file.parent.mkdir(parents=True, exist_ok=True)
            with replacement(file) as temporary:
                temporary.write_bytes(cubin)
    return CudaKernel(source.name, source.arch, cubin, build.carveout)


def _compile(text: str, source: Source, include: str, build: Build) -> bytes:
    """Machine code with a line table; it names the source's whole path, where ncu looks for it."""
    try:
        from cuda.core import Program, ProgramOptions
    except (ImportError, RuntimeError) as error:
        raise _no_compiler(error) from error
    options = ProgramOptions(
        name=source.path,
        arch=source.arch,
        lineinfo=True,
        std="c++17",
        define_macro=list(source.macros) or None,
        include_path=[include],
        no_source_include=True,
        use_fast_math=build.fast_math or None,
        max_register_count=build.registers or None,
        ptxas_options=list(build.ptxas) or None,
        no_cache=True,  # NVRTC's own, where there is a driver, is blind to options of arithmetic
    )
    try:
        return bytes(Program(text, "c++", options).compile("cubin").code)
    except Exception as error:
        if "NVRTC_ERROR" not in str(error):
            raise
        raise TargetFailed(_errors(str(error), text, source.path, source.arch)) from error


def _errors(error: str, text: str, path: str, arch: str) -> str:
    """NVRTC's errors, each with the line of source it is about."""
    lines = text.splitlines()
    errors = []
    for file, line, message in _ERROR.findall(error):
        number = int(line)
        errors.append(f"  {_short(file)}({number}): {message}")
        if file == path and 0 < number <= len(lines):
            errors.append(f"    {number} | {lines[number - 1].strip()}")
    if not errors:
        log = error.partition("compilation log:")[2] or error
        errors = [f"  {line}" for line in log.strip(" \n\0").splitlines()]
    return "\n".join([f"{_short(path)} does not compile for {arch}:", *errors])


def _short(path: str) -> str:
    """A source's name for people: from its `kernels` folder on."""
    parts = Path(path).parts
    return "/".join(parts[parts.index("kernels") :]) if "kernels" in parts else parts[-1]


def _device_arch() -> str:
    """The device's architecture; on Hopper with the instructions that only it has."""
    try:
        import torch
    except ImportError:
        torch = None
    if torch is None or not torch.cuda.is_available():
        raise EnvironmentProblem(
            "no CUDA device to compile for", 'pass arch="sm_90a" to compile_kernel'
        )
    major, minor = torch.cuda.get_device_capability()
    return f"sm_{major}{minor}a" if major == 9 else f"sm_{major}{minor}"


@cache
def _headers() -> str:
    """The folder of CUDA's headers: of the Python packages, or of a toolkit."""
    toolkits = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    folders = [str(Path(toolkit, "include")) for toolkit in toolkits if toolkit]
    with suppress(ImportError, RuntimeError):
        from cuda.pathfinder import find_nvidia_header_directory

        folders.insert(0, find_nvidia_header_directory("cudart"))
    for folder in folders:
        if folder and all(Path(folder, header).is_file() for header in _NEEDED_HEADERS):
            return folder
    raise EnvironmentProblem(
        f"CUDA headers not found ({', '.join(_NEEDED_HEADERS)})",
        "pip install nvidia-cuda-runtime, or set CUDA_HOME",
    )


def _no_compiler(error: BaseException) -> EnvironmentProblem:
    return EnvironmentProblem(
        f"NVRTC can't be used ({str(error).splitlines()[0] if str(error) else error!r})",
        "pip install '.[nvrtc]' in profkit's checkout",
    )


def _argument(value: Any) -> Any:
    """An argument as a value of ctypes."""
    if isinstance(value, bool):
        return ctypes.c_bool(value)
    if isinstance(value, int):
        if value not in _INT32:
            raise UsageError(f"{value} does not fit into a 32-bit int", "pass ctypes.c_int64")
        return ctypes.c_int32(value)
    if isinstance(value, float):
        return ctypes.c_float(value)
    if hasattr(value, "data_ptr"):
        if not value.is_cuda:
            raise UsageError(f"a kernel can't take a tensor on {value.device}")
        return ctypes.c_void_p(value.data_ptr())
    if hasattr(value, "as_argument"):
        return value.as_argument()
    if hasattr(value, "tobytes"):
        return ctypes.create_string_buffer(value.tobytes(), value.nbytes)
    return value


def kernel_cache(environment: Mapping[str, str]) -> Path:
    """The folder of compiled kernels, of a program with these environment variables."""
    base = environment.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "profkit" / "kernels"


def _file(key: str) -> Path:
    return kernel_cache(os.environ) / f"{key}.cubin"


def _saved(key: str) -> bytes | None:
    """The code saved under a key; None without a valid one."""
    try:
        data = read_limited(_file(key), _LARGEST_CODE)
    except (OSError, RuntimeError, BadInput):
        return None
    with suppress(OSError):  # the latest are those that a program used
        os.utime(_file(key))
    return data if data.startswith(b"\x7fELF") else None
