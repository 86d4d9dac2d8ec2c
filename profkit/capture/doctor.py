"""Whether this machine can profile: checks, each with its consequence and remedy."""

import os
import platform
import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from msgspec import structs

from profkit.capture.gpu import GpuState, NoDriver, states
from profkit.capture.tools import Tool, find, installed_version
from profkit.core.typed_file import File, Model
from profkit.core.yaml_files import shipped_yaml
from profkit.runs.run import free_room
from profkit.ui import document as doc

OK, WARNING, FAILS, NOT_NEEDED = "ok", "warning", "fails", "n/a"
_NOT_FOUND = "not found"
_STYLES = {OK: doc.Style.good, WARNING: doc.Style.warning, FAILS: doc.Style.bad}
_ROOM = 2 << 30  # chosen: a full report of a large program with its timeline fits
_CAP_SYS_ADMIN = 21  # linux/capability.h
_advice = cache(lambda: shipped_yaml("profkit.capture", "doctor.yaml"))


class Check(Model, frozen=True):
    """A check: its status, the finding, the consequence of a bad one, and the remedy."""

    name: str
    status: str
    state: str
    costs: str = ""
    remedy: str = ""
    needed: bool = True


class DoctorFile(File, frozen=True, kw_only=True, tag="profkit.doctor/1"):
    """Whether a machine can profile; null is unknown (no NVML)."""

    can_profile: bool | None
    has_gpu: bool | None
    checks: tuple[Check, ...]


def diagnose(out: Path) -> DoctorFile:
    """Check all requirements of profiling; `out` is the folder of runs."""
    ncu, nsys = find("ncu"), find("nsys")
    gpus: list[GpuState] = []
    absent = "none"
    try:
        gpus = states()
    except NoDriver as error:
        absent = str(error)
    can_ask = find_spec("pynvml") is not None
    has_gpu = any(not gpu.problem for gpu in gpus) if gpus or can_ask else None
    present = bool(gpus) or (has_gpu is None and bool(_devices()))
    checks = (
        *(check for gpu in gpus for check in _gpu(gpu)),
        *([] if gpus else [_no_gpu(absent, can_ask)]),
        _tool("ncu", ncu, present),
        _reader(ncu),
        _tool("nsys", nsys, present),
        _permission(present),
        _dcgm(),
        Check("python", OK, platform.python_version()),
        _torch(),
        _disk(out),
    )
    failed = any(check.needed and _prevents(check) for check in checks)
    return DoctorFile(can_profile=False if failed else has_gpu, has_gpu=has_gpu, checks=checks)


def _prevents(check: Check) -> bool:
    """Whether a check rules out profiling, if profiling needs it."""
    return check.status == FAILS or check.state == _NOT_FOUND


def _bad(name: str, topic: str, state: str, gpu: GpuState | None = None) -> Check:
    """A failed check or a warning, with the advice on its topic."""
    advice = {"status": WARNING, **_advice()[topic]}
    return Check(name, state=state, **advice | {"remedy": advice["remedy"].format(gpu=gpu)})


def _devices() -> list[str]:
    """The GPUs that the system has device files for."""
    return sorted(str(path) for path in Path("/dev").glob("nvidia[0-9]*"))


def _no_gpu(absent: str, can_ask: bool) -> Check:
    if can_ask:
        return _bad("GPU", "absent", absent or "none")
    devices = ", ".join(_devices())
    hint = f"found {devices}" if devices else "no /dev/nvidia0, so probably none"
    return _bad("GPU", "unknown", f"unknown: nvidia-ml-py is not installed ({hint})")


def _gpu(gpu: GpuState) -> Iterable[Check]:
    if gpu.problem:
        yield _bad(f"GPU {gpu.index}", "lost", gpu.problem)
    else:
        yield Check(f"GPU {gpu.index}", OK, f"{gpu.name}, driver {gpu.driver}")
        yield from gpu_checks(gpu)


def gpu_checks(gpu: GpuState) -> Iterable[Check]:
    """The settings and the load of a GPU; values that NVML does not report are left out."""
    for topic, state, is_good in _settings(gpu):
        name = f"GPU {gpu.index} {topic}"
        yield Check(name, OK, state) if is_good else _bad(name, topic, state, gpu)


def _settings(gpu: GpuState) -> Iterator[tuple[str, str, bool]]:
    """Topic, state, and whether that is good."""
    if gpu.mig is not None:
        yield "MIG", "on" if gpu.mig else "off", not gpu.mig
    if gpu.persistence is not None:
        yield "persistence", "on" if gpu.persistence else "off", bool(gpu.persistence)
    limit, usual = gpu.power_limit, gpu.power_limit_default
    if limit and usual:
        is_usual = limit >= usual * 0.99
        base = " (default)" if is_usual else f" (default {usual:.0f} W)"
        yield "power cap", f"{limit:.0f} W{base}", is_usual
    if gpu.sm_clock and gpu.sm_clock_max:
        now, most = gpu.sm_clock / 1e9, gpu.sm_clock_max / 1e9
        yield "clock", f"SM {now:.2f} GHz now, max {most:.2f} GHz", True
    yield "throttling", ", ".join(gpu.throttled_by) or "none", not gpu.throttled_by
    others = [str(process) for process in gpu.processes if process != os.getpid()]
    yield "processes", ", ".join(others) or "no others", not others


def _tool(name: str, tool: Tool | None, has_gpu: bool) -> Check:
    missing = _bad(name, name, _NOT_FOUND)
    if tool is None:
        return missing if has_gpu else structs.replace(missing, status=NOT_NEEDED)
    return Check(name, OK, f"{tool.version_text}, {tool.path}", needed=missing.needed)


def _reader(ncu: Tool | None) -> Check:
    version = installed_version("ncu-report")
    if version is None:
        return _bad("ncu-report", "no reader", "not installed")
    if ncu and ncu.version[:2] > tuple(map(int, re.findall(r"\d+", version)[:2])):
        state = f"{version}, older than ncu {ncu.version_text}"
        return _bad("ncu-report", "old reader", state)
    return Check("ncu-report", OK, version)


def _permission(has_gpu: bool) -> Check:
    if not has_gpu:
        return Check("counters", NOT_NEEDED, "no GPU")
    capabilities = re.search(r"^CapEff:\s*([0-9a-f]+)", _text("/proc/self/status"), re.MULTILINE)
    if capabilities and int(capabilities[1], 16) >> _CAP_SYS_ADMIN & 1:
        return Check("counters", OK, "accessible to this user")
    parameters = _text("/proc/driver/nvidia/params")
    if not parameters:
        return _bad("counters", "unknown counters", "unknown")
    if re.search(r"RmProfilingAdminOnly:\s*0", parameters):
        return Check("counters", OK, "accessible to all users")
    state = "restricted to administrators (RmProfilingAdminOnly)"
    return _bad("counters", "forbidden counters", state)


def _text(path: str) -> str:
    """The content of a file of the kernel or the driver; "" where it can't be read."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _dcgm() -> Check:
    for entry in Path("/proc").iterdir():
        name = _text(f"{entry}/comm").strip() if entry.name.isdigit() else ""
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
    room = f"{free / 2**30:.1f} GiB free"
    return Check("disk", OK, room) if free >= _ROOM else _bad("disk", "disk", f"{room} in {folder}")


def doctor_document(diagnosis: DoctorFile) -> doc.Document:
    """One line per check: status and finding, and below a bad one its consequence and remedy."""
    rows = []
    for check in diagnosis.checks:
        status = doc.in_style(f"{check.status:<8}", _STYLES.get(check.status, doc.Style.quiet))
        advice = "; ".join(filter(None, (check.costs, check.remedy)))
        bad = check.status != OK and advice
        finding = doc.styled(check.state, "\n", doc.quiet(advice)) if bad else check.state
        rows.append(doc.Row(doc.styled(status, check.name), finding))
    verdict = doc.Heading(_verdict(diagnosis), 2)
    return doc.Document("Doctor", (doc.Facts("", tuple(rows)), verdict))


def _verdict(diagnosis: DoctorFile) -> str:
    if diagnosis.can_profile:
        return "This machine can profile: profkit profile targets/sdpa_s512.py"
    if diagnosis.can_profile is None:
        return "Unknown whether this machine can profile: see GPU above. Reading reports works."
    reasons = [
        f"{check.name} {check.state}"
        for check in diagnosis.checks
        if check.needed and _prevents(check) and not check.name.startswith("GPU")
    ]
    if diagnosis.has_gpu is False:
        reasons.insert(0, "no usable GPU")
    reading = "Reading reports works: profkit analyze, profkit metrics."
    return f"Can't profile: {', '.join(reasons)}. {reading}"
