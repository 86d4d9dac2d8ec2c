"""A report or a run without hardware counters: launches, durations, machine code, declared work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from profkit.analysis.report import select_launches
from profkit.analysis.run_files import one_report, one_timeline, reports_in, timeline_beside
from profkit.core.errors import BadInput
from profkit.core.integrity import check_unchanged
from profkit.report.counter_free import counter_free
from profkit.report.cubin import Cubin, cubin_code, function_name, read_cubin
from profkit.report.summary import Group
from profkit.rules.declared_headroom import NONE_MEASURED, DeclaredWork, Roofs
from profkit.rules.outlook import Call, Outlook, outlook, outlook_of_launches
from profkit.timing.variants import read_variants

if TYPE_CHECKING:
    from profkit.machine_code.flow import Flow
    from profkit.report.reader import RawReport
    from profkit.timeline.events import Events

CODE_FOLDER = "code"
"""The folder of a run with the cubins of its kernels."""
_NAME_LENGTH = 16  # hexadecimal digits of a digest, chosen: no two cubins of a run have the same


class Analysis(Struct, frozen=True):
    """What is known of a path without counters. `timeline` is that of its run in a line, "" where
    it has none; `durations` and `roofs` say where they are from, `notes` what a timeline lacks."""

    path: str
    outlook: Outlook
    durations: str
    roofs: str
    timeline: str = ""
    notes: tuple[str, ...] = ()


def source_of(path: Path) -> Path:
    """The report that a path names, or else its timeline; raises as `one_report`, and where the
    timeline differs from its run's manifest."""
    if not path.is_dir():
        return path
    try:
        reports_in(path)
    except BadInput:
        timeline = one_timeline(path)
        check_unchanged(timeline)
        return timeline
    return one_report(path)


def analyze_report(
    report: Path,
    kernel: str | None = None,
    nvtx: str | None = None,
    measured: Roofs = NONE_MEASURED,
) -> Analysis:
    """A report whose counters are not read, with the declared work of its run.

    `kernel` and `nvtx` keep launches as `Report.load` does, which also raises as this does;
    `measured` roofs take the place of the datasheet's. Headrooms are of calls with all of their
    launches: of a part of them there is none.
    """
    from profkit.timeline.summary import summarize_timeline

    every = counter_free(report)
    inside = select_launches(every, None, nvtx)
    calls = _calls(report.parent)
    complete = {
        name: call if _launches_in(name, inside) == _launches_in(name, every) else Call()
        for name, call in calls.items()
    }
    made = outlook_of_launches(inside, complete, measured=measured)
    if kernel is not None:
        made = _of_kernels(made, select_launches(inside, kernel, None))
    recorded = timeline_beside(report)
    headline = summarize_timeline(recorded).headline if recorded else ""
    return Analysis(str(report), made, "ncu's durations", _source(measured), headline)


def _launches_in(name: str, raw: RawReport) -> int:
    return sum(name in launch.nvtx for launch in raw.launches)


def _of_kernels(made: Outlook, chosen: RawReport) -> Outlook:
    """What is of the kernels of some launches."""
    indices = {launch.index for launch in chosen.launches}
    kernels = tuple(each for each in made.kernels if each.group.typical.index in indices)
    groups = tuple(kernel.group for kernel in kernels)
    launches = tuple(launch for launch in made.summary.launches if launch.index in indices)
    return Outlook(
        structs.replace(made.summary, launches=launches, groups=groups),
        kernels,
        tuple(whole for whole in made.wholes if any(each.whole is whole for each in kernels)),
        tuple(each for each in made.findings if any(each.group is group for group in groups)),
    )


def analyze_timeline(events: Events, path: Path, measured: Roofs = NONE_MEASURED) -> Analysis:
    """The kernels of a timeline, with code and declared work of its run."""
    from profkit.analysis.timeline_launches import launches_of_timeline
    from profkit.timeline.summary import summarize_timeline

    folder = path.parent
    files = sorted(folder.glob(f"{CODE_FOLDER}/*.cubin"))
    cubins = [cubin for cubin in map(read_cubin, files) if cubin]
    made = outlook(
        launches_of_timeline(events),
        lambda group: code_of(group, cubins),
        _calls(folder),
        measured=measured,
    )
    summary = summarize_timeline(events)
    roofs, line, notes = _source(measured), summary.headline, summary.report.notes
    return Analysis(str(path), made, "CUPTI activity", roofs, line, notes)


def _source(measured: Roofs) -> str:
    if not measured:
        return "datasheet"
    return "measured ceilings (of benchmarks: no bounds), else the datasheet"


def save_code(
    events: Events, folder: Path, environment: Mapping[str, str], program: Sequence[str]
) -> None:
    """Copy the cubins of a timeline's kernels into a run: from where compilers left them on disk
    for a program of this environment, else from the program's own files."""
    from profkit.analysis.timeline_launches import launches_of_timeline
    from profkit.capture.compiled_code import compiled_files, extracted_files

    missing = []
    for group in launches_of_timeline(events).groups:
        cubins = map(read_cubin, compiled_files(group.function, environment))
        if not _save_first(cubins, group, folder):
            missing.append(group)
    if not missing:
        return
    with TemporaryDirectory(prefix="profkit-") as extracted:
        files = extracted_files(program, environment, missing[0].typical.gpu.cc, Path(extracted))
        linked = [cubin for cubin in map(read_cubin, files) if cubin]
        for group in missing:
            _save_first(linked, group, folder)


def _save_first(cubins: Iterable[Cubin | None], group: Group, folder: Path) -> bool:
    """Whether one of some cubins has a kernel; a copy of the first that does is saved."""
    first = next((each for each in cubins if each and _kernels_in(each, group)), None)
    if first:
        (folder / CODE_FOLDER).mkdir(exist_ok=True)
        name = f"{sha256(first.data).hexdigest()[:_NAME_LENGTH]}.cubin"
        (folder / CODE_FOLDER / name).write_bytes(first.data)
    return first is not None


def _calls(folder: Path) -> Mapping[str, Call]:
    """The variants of a run by name, with the work that its target declares."""
    variants = read_variants(folder)
    if variants is None:
        return {}
    work = DeclaredWork(**variants.work) if variants.work else None
    return {
        name: Call(work, variants.medians[name]) if name in variants.medians else Call(work)
        for name in variants.checked
    }


def code_of(group: Group, cubins: Sequence[Cubin]) -> Flow | None:
    """The code of a kernel among cubins; None where none has it, or several have."""
    fitting = [(cubin, name) for cubin in cubins for name in _kernels_in(cubin, group)]
    if len(fitting) != 1:
        return None
    ((cubin, name),) = fitting
    return cubin_code(cubin, name, group.typical.gpu.cc)


def _kernels_in(cubin: Cubin, group: Group) -> list[str]:
    """The kernels of a cubin, mangled, that a group's may be by its function and its registers."""
    registers = group.typical.get("registers_per_thread")
    return [
        name
        for name, kernel in cubin.kernels.items()
        if group.function in {name, function_name(name)}
        if kernel.registers == registers
    ]
