"""The state of a GPU as its driver tells it (NVML): read and recorded, never changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

_THROTTLE = {
    0x0000000000000004: "software power cap",
    0x0000000000000008: "hardware slowdown",
    0x0000000000000020: "software thermal slowdown",
    0x0000000000000040: "hardware thermal slowdown",
    0x0000000000000080: "hardware power brake",
}


@dataclass(frozen=True)
class GpuState:
    """A GPU now. Clocks in Hz, power in W, temperature in degrees C, memory in bytes.

    None stands for what the driver does not tell. `processes` are the other processes on it.
    """

    index: int
    name: str
    uuid: str
    driver: str
    mig: bool | None
    persistence: bool | None
    ecc: bool | None
    sm_clock: float | None
    sm_clock_max: float | None
    memory_clock: float | None
    power: float | None
    power_limit: float | None
    power_limit_default: float | None
    temperature: float | None
    memory_used: int | None
    memory_total: int | None
    throttled_by: tuple[str, ...]
    processes: tuple[int, ...]


class NoDriver(Exception):
    """NVML can't be asked: no nvidia-ml-py, or no driver; says which."""


def states() -> list[GpuState]:
    """Every GPU of this machine; raises NoDriver."""
    with _nvml() as nvml:
        driver = nvml.nvmlSystemGetDriverVersion()
        return [_state(nvml, index, driver) for index in range(nvml.nvmlDeviceGetCount())]


@contextmanager
def _nvml() -> Iterator[Any]:
    try:
        import pynvml
    except ImportError:
        raise NoDriver("the Python package nvidia-ml-py is not installed") from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise NoDriver(f"no NVIDIA driver answers ({error})") from None
    try:
        yield pynvml
    finally:
        pynvml.nvmlShutdown()


def _state(nvml: Any, index: int, driver: str) -> GpuState:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)

    def ask(name: str, *arguments: Any) -> Any:
        try:
            return getattr(nvml, name)(handle, *arguments)
        except (nvml.NVMLError, AttributeError):
            return None

    def scaled(value: float | None, factor: float) -> float | None:
        return None if value is None else value * factor

    mig, persistence = ask("nvmlDeviceGetMigMode"), ask("nvmlDeviceGetPersistenceMode")
    ecc, memory = ask("nvmlDeviceGetEccMode"), ask("nvmlDeviceGetMemoryInfo")
    reasons = ask("nvmlDeviceGetCurrentClocksThrottleReasons") or 0
    processes = ask("nvmlDeviceGetComputeRunningProcesses") or []
    return GpuState(
        index=index,
        name=ask("nvmlDeviceGetName") or "unknown GPU",
        uuid=ask("nvmlDeviceGetUUID") or "",
        driver=driver,
        mig=bool(mig[0]) if mig else None,
        persistence=None if persistence is None else bool(persistence),
        ecc=bool(ecc[0]) if ecc else None,
        sm_clock=scaled(ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM), 1e6),
        sm_clock_max=scaled(ask("nvmlDeviceGetMaxClockInfo", nvml.NVML_CLOCK_SM), 1e6),
        memory_clock=scaled(ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM), 1e6),
        power=scaled(ask("nvmlDeviceGetPowerUsage"), 1e-3),
        power_limit=scaled(ask("nvmlDeviceGetEnforcedPowerLimit"), 1e-3),
        power_limit_default=scaled(ask("nvmlDeviceGetPowerManagementDefaultLimit"), 1e-3),
        temperature=ask("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU),
        memory_used=memory.used if memory else None,
        memory_total=memory.total if memory else None,
        throttled_by=tuple(name for bit, name in _THROTTLE.items() if reasons & bit),
        processes=tuple(process.pid for process in processes),
    )
