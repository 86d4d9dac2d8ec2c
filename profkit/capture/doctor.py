"""Whether this machine can profile: one check a fact, each with what it costs and what to do."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from profkit.capture.gpu import GpuState, NoDriver, states
from profkit.capture.tools import Tool, find, installed_version
from profkit.core.yaml_files import shipped_yaml
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
        _tool("ncu", ncu, there),
        _reader(ncu),
        _tool("nsys", nsys, there),
        _permission(there),
        _dcgm(),
        Check("python", OK, platform.python_version()),
        _torch(),
        _disk(out),
    ]
    return Diagnosis(tuple(checks), has_gpu)


@cache
def _advice() -> Mapping[str, Mapping[str, Any]]:
    told: Mapping[str, Mapping[str, Any]] = shipped_yaml("profkit.capture", "doctor.yaml")
    return told


def _bad(name: str, topic: str, found: str, gpu: GpuState | None = None) -> Check:
    """A check that did not turn out well, by the topic of the advice about it."""
    advice = {"status": WARNING, **_advice()[topic]}
    return Check(name, found=found, **advice | {"remedy": advice["remedy"].format(gpu=gpu)})


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
    if not gpus and _can_ask():
        yield _bad("GPU", "absent", absent or "none")
    elif not gpus:
        devices = ", ".join(_devices())
        seen = f"there is {devices}" if devices else "no /dev/nvidia0, so hardly"
        yield _bad("GPU", "unknown", f"can't tell: nvidia-ml-py is not installed ({seen})")
    for gpu in gpus:
        if gpu.problem:
            yield _bad(f"GPU {gpu.index}", "lost", gpu.problem)
        else:
            yield Check(f"GPU {gpu.index}", OK, f"{gpu.name}, driver {gpu.driver}")
            yield from gpu_checks(gpu)


def gpu_checks(gpu: GpuState) -> Iterable[Check]:
    """The settings and the load of a GPU; what the driver does not tell is left out."""
    for topic, found, is_good in _settings(gpu):
        name = f"GPU {gpu.index} {topic}"
        yield Check(name, OK, found) if is_good else _bad(name, topic, found, gpu)


def _settings(gpu: GpuState) -> Iterator[tuple[str, str, bool]]:
    """Topic, what was found, and whether that is well."""
    if gpu.mig is not None:
        yield "MIG", "on" if gpu.mig else "off", not gpu.mig
    if gpu.persistence is not None:
        yield "persistence", "on" if gpu.persistence else "off", gpu.persistence
    limit, usual = gpu.power_limit, gpu.power_limit_default
    if limit and usual:
        is_usual = limit >= usual * 0.99
        of = ", as shipped" if is_usual else f" of {usual:.0f} W"
        yield "power cap", f"{limit:.0f} W{of}", is_usual
    if gpu.sm_clock and gpu.sm_clock_max:
        now, most = gpu.sm_clock / 1e9, gpu.sm_clock_max / 1e9
        yield "clock", f"SM {now:.2f} of {most:.2f} GHz now", True
    yield "throttling", ", ".join(gpu.throttled_by) or "none", not gpu.throttled_by
    others = [str(process) for process in gpu.processes if process != os.getpid()]
    yield "processes", ", ".join(others) or "no others", not others


def _tool(name: str, tool: Tool | None, has_gpu: bool) -> Check:
    missing = _bad(name, name, "not found")
    if tool is None:
        return missing if has_gpu else replace(missing, status=NOT_NEEDED)
    return Check(name, OK, f"{tool.version_text}, {tool.path}", needed=missing.needed)


def _reader(ncu: Tool | None) -> Check:
    version = installed_version("ncu-report")
    if version is None:
        return _bad("ncu-report", "no reader", "not installed")
    reader = tuple(map(int, re.findall(r"\d+", version)[:2]))
    if ncu and ncu.version[:2] > reader:
        found = f"{version}, older than ncu {ncu.version_text}"
        return _bad("ncu-report", "old reader", found)
    return Check("ncu-report", OK, version)


def _permission(has_gpu: bool) -> Check:
    if not has_gpu:
        return Check("counters", NOT_NEEDED, "no GPU")
    if _has_sys_admin():
        return Check("counters", OK, "readable by this user")
    try:
        parameters = _DRIVER_PARAMETERS.read_text(encoding="utf-8")
    except OSError:
        return _bad("counters", "unknown counters", "can't tell")
    if re.search(r"RmProfilingAdminOnly:\s*0", parameters):
        return Check("counters", OK, "readable by all users")
    found = "for administrators only (RmProfilingAdminOnly)"
    return _bad("counters", "forbidden counters", found)


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
            return _bad("DCGM", "DCGM", f"{name} is running")
    return Check("DCGM", OK, "not running", needed=False)


def _torch() -> Check:
    version = installed_version("torch")
    if version is None:
        return _bad("torch", "torch", "not installed")
    return Check("torch", OK, version, needed=False)


def _disk(out: Path) -> Check:
    folder, free = free_room(out)
    found = f"{free / 2**30:.1f} GiB free"
    if free >= _ROOM_WANTED:
        return Check("disk", OK, found)
    return _bad("disk", "disk", f"{found} in {folder}")
