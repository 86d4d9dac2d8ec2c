"""ncu attached to this process: its injection library is loaded here before CUDA starts.

Since 2026.2.1 ncu can record a part of a process that it did not start: the library that it would
inject is loaded by the process itself, `nvInjBeginProfiling` and `nvInjEndProfiling` enclose the
part, and `ncu --mode attach --process-id` collects (ncu's release notes and extras/Api/
nvComputeInj.h). The library has to see CUDA start: later it is too late. It intercepts CUDA's calls
from then on, so it is loaded only where that was asked for: by `PROFKIT_ATTACH=1` when profkit is
imported, by a decoration with `ncu=True`, or by `%load_ext profkit`.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from profkit.capture import driver
from profkit.capture.tools import Tool, find
from profkit.core.errors import EnvironmentProblem

VARIABLE = "PROFKIT_ATTACH"
_FIRST = (2026, 2, 1)
_LIBRARY = "libcuda-injection.so"
_BEGIN, _END = "nvInjBeginProfiling", "nvInjEndProfiling"
_PATIENCE = 60.0  # s, chosen: ncu prints its path within two
_STATES = {1: "unknown error", 2: "invalid parameters", 3: "CUDA started before the library"}
_TOO_LATE = (
    "this process used CUDA before ncu's injection library was loaded: set PROFKIT_ATTACH=1, or "
    "decorate with ncu=True before the first CUDA call"
)


class CannotAttach(EnvironmentProblem):
    """ncu can't be attached to this process; the message says why."""


class _Parameters(ctypes.Structure):
    """NvInjProfilingParams of nvComputeInj.h: the size of the structure, and a private pointer."""

    _fields_ = (("size", ctypes.c_size_t), ("private", ctypes.c_void_p))


class Injection:
    """The loaded library."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    @contextmanager
    def profiling(self) -> Iterator[None]:
        """What ncu records: the CUDA work of the block. Raises CannotAttach."""
        self._ask(_BEGIN)
        try:
            yield
        finally:
            self._ask(_END)

    def _ask(self, function: str) -> None:
        parameters = _Parameters(ctypes.sizeof(_Parameters), None)
        status = int(getattr(self._library, function)(ctypes.byref(parameters)))
        if status:
            words = _STATES.get(status, f"status {status}")
            raise CannotAttach(f"ncu's injection library refuses to profile ({words})")


def prepare_attachment() -> None:
    """Load the library, if that can be; `injection` says why not."""
    _prepared()


def injection() -> Injection:
    """The library, loaded in time; raises CannotAttach with the reason."""
    if not _prepared.cache_info().currsize and driver.started():
        raise CannotAttach(_TOO_LATE)
    prepared = _prepared()
    if isinstance(prepared, CannotAttach):  # raised itself, it would hold every caller's arrays
        raise CannotAttach(prepared.message, prepared.remedy)
    return prepared


@cache
def _prepared() -> Injection | CannotAttach:
    """Once for the process: what came of it stays."""
    try:
        if os.environ.get(VARIABLE) == "0":
            raise CannotAttach(f"{VARIABLE} is 0")
        tool = find("ncu")
        if tool is None:
            raise CannotAttach("ncu was not found")
        if tool.version < _FIRST:
            newer = ".".join(map(str, _FIRST))
            raise CannotAttach(f"ncu {tool.version_text} can't attach here, {newer} and newer can")
        if driver.started():
            raise CannotAttach(_TOO_LATE)
        return Injection(_loaded(_folder(tool)))
    except CannotAttach as error:
        return error


def _folder(tool: Tool) -> Path:
    """The folder of the library, as ncu prints it."""
    try:
        done = subprocess.run(
            [tool.path, "--list-injection-path-64"],
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise CannotAttach(f"ncu does not say where its injection library is ({error})") from None
    lines = done.stdout.splitlines()
    return Path(lines[0].strip() if lines else "")


def _loaded(folder: Path) -> ctypes.CDLL:
    library = folder / _LIBRARY
    if not library.is_file():
        raise CannotAttach(f"{library}: no such injection library")
    # what ncu sets for the programs that it starts; read when the library and NVTX are loaded
    os.environ["NVTX_INJECTION64_PATH"] = str(library)
    os.environ["NV_COMPUTE_PROFILER_PERFWORKS_DIR"] = str(folder)
    os.environ["NV_COMPUTE_PROFILER_IN_PROCESS"] = "1"
    try:
        loaded = ctypes.CDLL(str(library))
    except OSError as error:
        raise CannotAttach(f"{library}: can't be loaded ({error})") from None
    if not (hasattr(loaded, _BEGIN) and hasattr(loaded, _END)):
        raise CannotAttach(f"{library} lacks {_BEGIN}")
    return loaded
