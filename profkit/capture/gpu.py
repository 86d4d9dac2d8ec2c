"""The state of a GPU by NVML: read and recorded, never changed."""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from msgspec import Struct

from profkit.core.errors import EnvironmentProblem
from profkit.core.fingerprint import Device
from profkit.core.typed_file import Amount, Model, Number
from profkit.runs.manifest import DriverGpu

VISIBLE = "CUDA_VISIBLE_DEVICES"
_ORDER = "CUDA_DEVICE_ORDER"
_MIG = "MIG-"
_HIDDEN = ("", "-1")
_THROTTLE = {
    0x0000000000000004: "software power cap",
    0x0000000000000008: "hardware slowdown",
    0x0000000000000020: "software thermal slowdown",
    0x0000000000000040: "hardware thermal slowdown",
    0x0000000000000080: "hardware power brake",
}


class GpuState(DriverGpu, frozen=True, kw_only=True):
    """A GPU now; None: not reported by the driver.

    `processes` are the other processes on it. `problem` is the driver's error where it can't reach
    the GPU, "" where it can.
    """

    index: int
    name: str
    uuid: str
    driver: str
    throttled_by: tuple[str, ...]
    processes: tuple[int, ...]
    problem: str = ""
    compute_capability: tuple[int, int] | None = None


class Moment(Model, frozen=True):
    """NVML readings of a GPU under load: SM clock in Hz, power in W, temperature in degrees C; null
    is unknown."""

    sm_clock: Amount | None = None
    power: Amount | None = None
    temperature: Number | None = None
    throttled_by: tuple[str, ...] = ()


class NoDriver(Exception):
    """NVML is not available: no nvidia-ml-py, or no driver; the message has the reason."""


def states() -> list[GpuState]:
    """Every GPU of this machine; raises NoDriver."""
    with connection() as nvml:
        try:
            driver, count = nvml.nvmlSystemGetDriverVersion(), nvml.nvmlDeviceGetCount()
        except nvml.NVMLError as error:
            raise NoDriver(f"the NVIDIA driver does not answer ({error})") from None
        return [_state(nvml, index, driver) for index in range(count)]


class Selection(Struct, frozen=True):
    """The GPU for a program: of `index` in the driver's order, else the first that is `visible`
    (CUDA_VISIBLE_DEVICES, None where it is not set), whose numbers are taken in that order too.

    `gpu` is None where all are hidden, and for the `problem` that there is no driver.
    """

    index: int | None
    visible: str | None
    gpu: GpuState | None = None
    problem: str = ""

    @property
    def variables(self) -> dict[str, str]:
        """The variables that make a program see this GPU, or part of one, and no other."""
        gpu, first = self.gpu, _first(self.visible)
        if self.index is None and first.startswith(_MIG):
            return {VISIBLE: first}
        if gpu and gpu.uuid:
            return {VISIBLE: gpu.uuid}
        number = self.index if gpu is None else gpu.index
        return {} if number is None else {VISIBLE: str(number), _ORDER: "PCI_BUS_ID"}

    @property
    def lock(self) -> str:
        """The name of the GPU's lock."""
        if self.gpu and self.gpu.uuid:
            return self.gpu.uuid
        return (_first(self.visible) if self.index is None else str(self.index)) or "none"


def select(index: int | None, environment: Mapping[str, str] = os.environ) -> Selection:
    """The GPU for a program; raises EnvironmentProblem for one that does not exist or can't be
    reached."""
    visible = environment.get(VISIBLE)
    first = _first(visible)
    try:
        gpus = states()
    except NoDriver as error:
        return Selection(index, visible, problem=str(error))
    count = f"there are {len(gpus)}"
    if index is not None and index >= len(gpus):
        raise EnvironmentProblem(f"no GPU {index}", count)
    if index is None and first in _HIDDEN:
        return Selection(index, visible)
    gpu = gpus[index] if index is not None else _named(first, gpus)
    if gpu is None:
        message = f"{first!r} (CUDA_VISIBLE_DEVICES) is not a GPU of this machine"
        raise EnvironmentProblem(message, count)
    if gpu.problem:
        message = f"GPU {gpu.index} can't be reached ({gpu.problem})"
        raise EnvironmentProblem(message, "select another with --gpu")
    return Selection(index, visible, gpu)


def _first(visible: str | None) -> str:
    return "0" if visible is None else visible.split(",")[0].strip()


def _named(first: str, gpus: Sequence[GpuState]) -> GpuState | None:
    uuid = _parent(first) if first.startswith(_MIG) else first
    for gpu in gpus:
        if uuid == str(gpu.index) or (uuid.startswith("GPU-") and gpu.uuid.startswith(uuid)):
            return gpu
    return None


def _parent(mig: str) -> str:
    """The UUID of the GPU that a MIG instance is part of; "" where the driver knows none."""
    if mig.startswith("MIG-GPU-"):
        return mig.removeprefix(_MIG).partition("/")[0]
    with connection() as nvml:
        try:
            handle = nvml.nvmlDeviceGetHandleByUUID(mig)
            whole = nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle)
            return str(nvml.nvmlDeviceGetUUID(whole))
        except nvml.NVMLError:
            return ""


class Watch:
    """Repeated NVML readings of one GPU, each some milliseconds; raises NoDriver at the start."""

    def __init__(self, uuid: str) -> None:
        self._stack = ExitStack()
        self._nvml = self._stack.enter_context(connection())
        try:
            self._handle = self._nvml.nvmlDeviceGetHandleByUUID(uuid)
        except self._nvml.NVMLError as error:
            self.close()
            raise NoDriver(f"unknown to the driver: {uuid} ({error})") from None

    def now(self) -> Moment:
        """A reading; the clock first, since it drops soonest after the work."""
        return Moment(**_readings(self._nvml, self._handle, Moment.__struct_fields__))

    def close(self) -> None:
        """Let go of the driver."""
        self._stack.close()


@contextmanager
def connection() -> Iterator[Any]:
    """An NVML session; raises NoDriver."""
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


def _watts(milliwatts: int) -> float:
    return milliwatts / 1000


def _throttled_by(reasons: int) -> tuple[str, ...]:
    return tuple(name for bit, name in _THROTTLE.items() if reasons & bit)


_ASKED: Mapping[str, tuple[str, str, Callable[[Any], Any]]] = {
    "name": ("Name", "", str),
    "uuid": ("UUID", "", str),
    "sm_clock": ("ClockInfo", "NVML_CLOCK_SM", lambda clock: clock * 1e6),
    "memory_clock": ("ClockInfo", "NVML_CLOCK_MEM", lambda clock: clock * 1e6),
    "power": ("PowerUsage", "", _watts),
    "temperature": ("Temperature", "NVML_TEMPERATURE_GPU", int),
    "throttled_by": ("CurrentClocksThrottleReasons", "", _throttled_by),
    "processes": ("ComputeRunningProcesses", "", lambda rows: tuple(row.pid for row in rows)),
    "memory_used": ("MemoryInfo", "", lambda memory: memory.used),
    "memory_total": ("MemoryInfo", "", lambda memory: memory.total),
    "compute_capability": ("CudaComputeCapability", "", tuple),
    "power_limit_default": ("PowerManagementDefaultLimit", "", _watts),
    "sm_clock_max": ("MaxClockInfo", "NVML_CLOCK_SM", lambda clock: clock * 10**6),
    "memory_clock_max": ("MaxClockInfo", "NVML_CLOCK_MEM", lambda clock: clock * 10**6),
    "sm_clock_application": ("ApplicationsClock", "NVML_CLOCK_SM", lambda clock: clock * 10**6),
    "power_limit": ("EnforcedPowerLimit", "", _watts),
    "ecc": ("EccMode", "", lambda modes: bool(modes[0])),
    "mig": ("MigMode", "", lambda modes: bool(modes[0])),
    "persistence": ("PersistenceMode", "", bool),
}
"""What NVML is asked of a GPU, the clock first: the end of a function's name, its argument, and
what the answer is in Hz, W, degrees C or bytes."""
_ABSENT: Mapping[str, object] = {
    "name": "unknown GPU", "uuid": "", "throttled_by": (), "processes": (),
}  # fmt: skip
SETTINGS = (
    "sm_clock_max", "memory_clock_max", "sm_clock_application", "power_limit", "ecc", "mig",
    "persistence",
)  # fmt: skip


def _readings(nvml: Any, handle: Any, names: Collection[str]) -> dict[str, Any]:
    """NVML's answers about a GPU; None, or `_ABSENT`, where it gives none."""
    readings: dict[str, Any] = {}
    for name, (question, argument, convert) in _ASKED.items():
        if name in names:
            words = [handle, *([getattr(nvml, argument)] if argument else [])]
            value = None if handle is None else answer(nvml, f"nvmlDeviceGet{question}", *words)
            readings[name] = _ABSENT.get(name) if value is None else convert(value)
    return readings


def settings(nvml: Any, handle: Any) -> Device:
    """The settings of a GPU, clocks in Hz and power in W; None where the driver reports none."""
    return Device(**_readings(nvml, handle, SETTINGS))


def _state(nvml: Any, index: int, driver: str) -> GpuState:
    try:
        handle, problem = nvml.nvmlDeviceGetHandleByIndex(index), ""
    except nvml.NVMLError as error:
        handle, problem = None, str(error)
    readings = _readings(nvml, handle, GpuState.__struct_fields__)
    return GpuState(index=index, driver=driver, problem=problem, **readings)


def answer(nvml: Any, question: str, *arguments: Any) -> Any:
    """NVML's answer, None where this GPU, driver or binding has none."""
    try:
        return getattr(nvml, question)(*arguments)
    except (nvml.NVMLError, AttributeError):
        return None
