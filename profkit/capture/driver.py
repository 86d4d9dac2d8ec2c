"""The CUDA driver of this process, asked without a framework: whether it runs, and on which GPU.

Nothing here starts CUDA: what is not loaded and initialized already is left so.
"""

import ctypes
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

from profkit.core.errors import EnvironmentProblem
from profkit.core.fingerprint import Device

_LIBRARY = "libcuda.so.1"
_MAPS = Path("/proc/self/maps")
# CUDA_SUCCESS, CUDA_ERROR_NOT_INITIALIZED and CUDA_ERROR_INVALID_CONTEXT of cuda.h
_DONE, _NOT_STARTED, _NO_CONTEXT = 0, 3, 201
# CUdevice_attribute of cuda.h
_MULTIPROCESSORS, _MAJOR, _MINOR = 16, 75, 76
_NAME_SIZE = 256  # bytes; the longest name of a product has about 40


def started() -> bool:
    """Whether this process has initialized CUDA: the driver answers then, and not before."""
    driver = _loaded()
    if driver is None:
        return False
    count = ctypes.c_int()
    return bool(driver.cuDeviceGetCount(ctypes.byref(count)) == _DONE)


def in_use() -> bool:
    """Whether this process may have work on a GPU: this thread has a context, or one of CUDA's
    runtime lives."""
    if not started():
        return False
    driver, context, count = _loaded(), ctypes.c_void_p(), ctypes.c_int()
    flags, active = ctypes.c_uint(), ctypes.c_int()
    if driver.cuCtxGetCurrent(ctypes.byref(context)) == _DONE and context.value:
        return True
    driver.cuDeviceGetCount(ctypes.byref(count))
    for number in range(count.value):
        driver.cuDevicePrimaryCtxGetState(number, ctypes.byref(flags), ctypes.byref(active))
        if active.value:
            return True
    return False


def device(of: int | None = None) -> Device | None:
    """A GPU by CUDA's count, else that of the current context, else the first: name, UUID, compute
    capability, multiprocessors, memory in bytes; None where CUDA has not been initialized."""
    if not started():
        return None
    driver = _loaded()
    number = ctypes.c_int(of or 0)
    if of is None and driver.cuCtxGetDevice(ctypes.byref(number)) != _DONE:
        number.value = 0
    name, uuid = ctypes.create_string_buffer(_NAME_SIZE), (ctypes.c_ubyte * 16)()
    memory = ctypes.c_size_t()
    driver.cuDeviceGetName(name, _NAME_SIZE, number)
    driver.cuDeviceGetUuid(ctypes.byref(uuid), number)
    driver.cuDeviceTotalMem_v2(ctypes.byref(memory), number)

    def attribute(code: int) -> int:
        value = ctypes.c_int()
        driver.cuDeviceGetAttribute(ctypes.byref(value), code, number)
        return value.value

    return Device(
        name=name.value.decode(),
        uuid=f"GPU-{UUID(bytes=bytes(uuid))}",
        compute_capability=f"{attribute(_MAJOR)}.{attribute(_MINOR)}",
        multiprocessors=attribute(_MULTIPROCESSORS),
        memory_bytes=memory.value,
    )


def synchronize() -> None:
    """Wait until the GPU has finished what the current context was given, on all of its streams.

    A thread without a context has given nothing.

    Raises EnvironmentProblem with the driver's status where work of the context has failed.
    """
    driver = _loaded()
    status = driver.cuCtxSynchronize() if driver else _DONE
    if status not in {_DONE, _NOT_STARTED, _NO_CONTEXT}:
        raise EnvironmentProblem(
            f"the GPU can't be waited for (CUDA driver error {status})", "run the call alone"
        )


def start_profiler() -> None:
    """Begin the region that a profiler with `--profile-from-start off` records."""
    if driver := _loaded():
        driver.cuProfilerStart()


def stop_profiler() -> None:
    """End that region."""
    if driver := _loaded():
        driver.cuProfilerStop()


def _loaded() -> Any:
    """The driver's library where this process has it already; else None. The list of what it has
    is long, and it is not asked for again."""
    if _library.cache_info().currsize:
        return _library()
    with suppress(OSError):
        if _LIBRARY.removesuffix(".1") in _MAPS.read_text(encoding="utf-8", errors="replace"):
            return _library()
    return None


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(_LIBRARY)
