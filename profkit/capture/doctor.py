"""Whether this machine can profile: one check a fact, each with what it costs and what to do."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from profkit.capture.gpu import GpuState, NoDriver, states
from profkit.capture.tools import Tool, find
from profkit.runs.run import free_room

OK, WARNING, FAILS, NOT_NEEDED = "ok", "warning", "fails", "n/a"
_ROOM_WANTED = 2 << 30
_DRIVER_PARAMETERS = Path("/proc/driver/nvidia/params")
_CAP_SYS_ADMIN = 21


@dataclass(frozen=True)
class Check:
    """One fact: its status, what was found, what a bad one costs, and the remedy to type."""

    name: str
    status: str
    found: str
    costs: str = ""
    remedy: str = ""
    needed: bool = True


@dataclass(frozen=True)
class Diagnosis:
    """All checks, and whether a GPU can be profiled here; None where that can't be told."""

    checks: tuple[Check, ...]
    has_gpu: bool | None

    @property
    def can_profile(self) -> bool | None:
        if any(check.status == FAILS and check.needed for check in self.checks):
            return False
        return self.has_gpu


def diagnose(out: Path) -> Diagnosis:
    """Look at everything that profiling needs; `out` is where runs would go."""
    ncu, nsys = find("ncu"), find("nsys")
    gpus, absent = _gpus()
    has_gpu = any(not gpu.problem for gpu in gpus) if gpus or _can_ask() else None
    there = bool(gpus) or (has_gpu is None and bool(_devices()))
    checks = [
        *_gpus_checked(gpus, absent),
        _ncu(ncu, there),
        _reader(ncu),
        _nsys(nsys, there),
        _permission(there),
        _dcgm(),
        _python(),
        _torch(),
        _disk(out),
    ]
    return Diagnosis(tuple(checks), has_gpu)


def _can_ask() -> bool:
    """Whether the package that asks the driver is there."""
    return find_spec("pynvml") is not None


def _devices() -> list[str]:
    """The GPUs that the system has device files for."""
    return sorted(str(path) for path in Path("/dev").glob("nvidia[0-9]*"))


def _gpus() -> tuple[list[GpuState], str]:
    try:
        return states(), ""
    except NoDriver as error:
        return [], str(error)


def _gpus_checked(gpus: Sequence[GpuState], absent: str) -> Iterable[Check]:
    if not gpus:
        yield _no_gpu(absent) if _can_ask() else _unknown_gpu()
    for gpu in gpus:
        yield from [_lost(gpu)] if gpu.problem else _answering(gpu)


def _answering(gpu: GpuState) -> Iterable[Check]:
    yield Check(f"GPU {gpu.index}", OK, f"{gpu.name}, driver {gpu.driver}")
    yield from gpu_checks(gpu)


def _lost(gpu: GpuState) -> Check:
    return Check(
        f"GPU {gpu.index}",
        FAILS,
        gpu.problem,
        "it can't be profiled; other GPUs can",
        "see `dmesg` for Xid errors; reset it, or reboot",
        needed=False,
    )


def _no_gpu(absent: str) -> Check:
    return Check(
        "GPU",
        FAILS,
        absent or "none",
        "nothing can be recorded; reading reports works",
        "run on a machine with an NVIDIA GPU and its driver",
    )


def _unknown_gpu() -> Check:
    devices = _devices()
    seen = f"there is {', '.join(devices)}" if devices else "no /dev/nvidia0, so hardly"
    return Check(
        "GPU",
        WARNING,
        f"can't tell: nvidia-ml-py is not installed ({seen})",
        "the GPU's state goes unchecked",
        "pip install nvidia-ml-py",
    )


def gpu_checks(gpu: GpuState) -> Iterable[Check]:
    """The settings and the load of a GPU; what the driver does not tell is left out."""
    where = f"GPU {gpu.index}"
    yield from (
        check
        for check in (
            _mig(where, gpu),
            _persistence(where, gpu),
            _power_cap(where, gpu),
            _clock(where, gpu),
            _throttling(where, gpu),
            _processes(where, gpu),
        )
        if check
    )


def _mig(where: str, gpu: GpuState) -> Check | None:
    name = f"{where} MIG"
    if not gpu.mig:
        return None if gpu.mig is None else Check(name, OK, "off")
    return Check(
        name,
        WARNING,
        "on",
        "counters of shared units may be unavailable or those of neighbours",
        "profile on a GPU without MIG",
    )


def _persistence(where: str, gpu: GpuState) -> Check | None:
    name = f"{where} persistence"
    if gpu.persistence is not False:
        return None if gpu.persistence is None else Check(name, OK, "on")
    return Check(
        name,
        WARNING,
        "off",
        "the first launch waits for the driver to load",
        f"sudo nvidia-smi -i {gpu.index} -pm 1",
    )


def _power_cap(where: str, gpu: GpuState) -> Check | None:
    limit, usual = gpu.power_limit, gpu.power_limit_default
    if not limit or not usual:
        return None
    name = f"{where} power cap"
    if limit >= usual * 0.99:
        return Check(name, OK, f"{limit:.0f} W, as shipped")
    return Check(
        name,
        WARNING,
        f"{limit:.0f} W of {usual:.0f} W",
        "clocks fall under load",
        f"sudo nvidia-smi -i {gpu.index} -pl {usual:.0f}",
    )


def _clock(where: str, gpu: GpuState) -> Check | None:
    if not gpu.sm_clock or not gpu.sm_clock_max:
        return None
    now, most = gpu.sm_clock / 1e9, gpu.sm_clock_max / 1e9
    return Check(f"{where} clock", OK, f"SM {now:.2f} of {most:.2f} GHz now")


def _throttling(where: str, gpu: GpuState) -> Check:
    name = f"{where} throttling"
    if not gpu.throttled_by:
        return Check(name, OK, "none")
    return Check(
        name,
        WARNING,
        ", ".join(gpu.throttled_by),
        "times are not those of the chip at its clocks",
        "let it cool, or raise the power cap",
    )


def _processes(where: str, gpu: GpuState) -> Check:
    name = f"{where} processes"
    others = [process for process in gpu.processes if process != os.getpid()]
    if not others:
        return Check(name, OK, "no others")
    return Check(
        name,
        WARNING,
        ", ".join(map(str, others)),
        "they share clocks, caches and memory with what is measured",
        "end them, or choose another GPU with --gpu",
    )


def _ncu(tool: Tool | None, has_gpu: bool) -> Check:
    if tool is None:
        return Check(
            "ncu",
            FAILS if has_gpu else NOT_NEEDED,
            "not found",
            "no profile",
            "install Nsight Compute, or name it in PROFKIT_NCU",
        )
    return Check("ncu", OK, f"{tool.version_text}, {tool.path}")


def _reader(ncu: Tool | None) -> Check:
    try:
        version = metadata.version("ncu-report")
    except metadata.PackageNotFoundError:
        return Check(
            "ncu-report", FAILS, "not installed", "no report can be read", "pip install ncu-report"
        )
    reader = tuple(map(int, re.findall(r"\d+", version)[:2]))
    if ncu and ncu.version[:2] > reader:
        return Check(
            "ncu-report",
            WARNING,
            f"{version}, older than ncu {ncu.version_text}",
            "what the newer ncu records may not be read",
            "pip install -U ncu-report",
            needed=False,
        )
    return Check("ncu-report", OK, version)


def _nsys(tool: Tool | None, has_gpu: bool) -> Check:
    if tool is None:
        return Check(
            "nsys",
            WARNING if has_gpu else NOT_NEEDED,
            "not found",
            "no timeline in the run",
            "install Nsight Systems, or name it in PROFKIT_NSYS",
            needed=False,
        )
    return Check("nsys", OK, f"{tool.version_text}, {tool.path}", needed=False)


def _permission(has_gpu: bool) -> Check:
    if not has_gpu:
        return Check("counters", NOT_NEEDED, "no GPU")
    if _has_sys_admin():
        return Check("counters", OK, "readable by this user")
    try:
        parameters = _DRIVER_PARAMETERS.read_text(encoding="utf-8")
    except OSError:
        return Check("counters", WARNING, "can't tell", "ncu may be refused", "try, as root if so")
    if re.search(r"RmProfilingAdminOnly:\s*0", parameters):
        return Check("counters", OK, "readable by all users")
    return Check(
        "counters",
        FAILS,
        "for administrators only (RmProfilingAdminOnly)",
        "ncu ends with ERR_NVGPUCTRPERM",
        "run as root, or start the container with --cap-add=SYS_ADMIN, or load the driver with "
        "NVreg_RestrictProfilingToAdminUsers=0",
    )


def _has_sys_admin() -> bool:
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    match = re.search(r"^CapEff:\s*([0-9a-f]+)", status, re.MULTILINE)
    return bool(match and int(match[1], 16) >> _CAP_SYS_ADMIN & 1)


def _dcgm() -> Check:
    for entry in Path("/proc").iterdir():
        try:
            said = (entry / "comm").read_bytes() if entry.name.isdigit() else b""
        except OSError:
            continue
        name = said.decode("ascii", "replace").strip()
        if name.startswith(("nv-hostengine", "dcgm-exporter")):
            return Check(
                "DCGM",
                WARNING,
                f"{name} is running",
                "it may hold the counters",
                "dcgmi profile --pause, and --resume afterwards",
                needed=False,
            )
    return Check("DCGM", OK, "not running", needed=False)


def _python() -> Check:
    return Check("python", OK, platform.python_version())


def _torch() -> Check:
    try:
        return Check("torch", OK, metadata.version("torch"), needed=False)
    except metadata.PackageNotFoundError:
        return Check(
            "torch",
            WARNING,
            "not installed",
            "targets that use it can't run; other programs can",
            "pip install torch",
            needed=False,
        )


def _disk(out: Path) -> Check:
    folder, free = free_room(out)
    found = f"{free / 2**30:.1f} GiB free"
    if free >= _ROOM_WANTED:
        return Check("disk", OK, found)
    return Check(
        "disk", FAILS, f"{found} in {folder}", "a report may not fit", "make room, or use --out"
    )
