"""Reading the reports that a command was given, many of them at once in processes of their own."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from profkit.analysis.report import load
from profkit.analysis.run_files import check_run_of, reports_in
from profkit.commands.options import interruptible
from profkit.core.errors import BadInput, EnvironmentProblem, ProfkitError
from profkit.ui.progress import progress_line

if TYPE_CHECKING:
    from profkit.analysis.report import Report
    from profkit.report.summary import ReportSummary
    from profkit.rules.checklist import Checklist
    from profkit.rules.rule_file import Rule
    from profkit.rules.score import PairNotes, Verdict
    from profkit.timeline.reader import Timeline


@dataclass(frozen=True)
class Selection:
    """What to read of each report, as `profkit.load` takes it."""

    kernel: str | None
    nvtx: str | None
    check_half_from: float


@dataclass(frozen=True)
class Advice:
    """How to look for findings: the rules (None: the shipped ones), what of them to leave out, and
    for how many findings to look up the lines to blame (None: all)."""

    rules: tuple[Rule, ...] | None = None
    disabled: frozenset[str] = frozenset()
    blamed: int | None = None


@dataclass(frozen=True)
class Examined:
    """A report that was read, and what was found in it."""

    report: ReportSummary
    found: Checklist


def read_reports(
    paths: Sequence[Path], selection: Selection, advice: Advice
) -> tuple[list[Examined], list[ProfkitError]]:
    """The reports in order, and what went wrong with those that can't be read.

    One report is read here, several in parallel processes. When filters leave nothing of some
    reports but something of others, only the latter count.
    """
    files, failures = find_reports(paths)
    if len(files) == 1:
        with progress_line() as progress:
            outcomes = [_read(files[0], selection, advice, progress)]
    else:
        from profkit.commands.parallel import in_parallel

        outcomes = in_parallel(partial(_read, selection=selection, advice=advice), files, _died)
    reports = [outcome for outcome in outcomes if isinstance(outcome, Examined)]
    failures += [outcome for outcome in outcomes if isinstance(outcome, ProfkitError)]
    if reports:
        failures = [failure for failure in failures if isinstance(failure, BadInput)]
    return reports, failures


def read_report(path: Path, kernel: str | None = None, nvtx: str | None = None) -> Report:
    """The report that a path names, with progress on stderr; raises as `profkit.load`."""
    with progress_line() as progress:
        return load(path, kernel=kernel, nvtx=nvtx, progress=progress)


def find_reports(paths: Sequence[Path]) -> tuple[list[Path], list[ProfkitError]]:
    """The report files that paths name: themselves, or all below a directory.

    A report in a directory goes with what else its run holds: where that was changed, it failed.
    """
    files: dict[Path, None] = {}
    failures: list[ProfkitError] = []
    for path in paths:
        if not path.is_dir():
            files[path] = None
            continue
        try:
            found = reports_in(path)
        except BadInput as error:
            failures.append(error)
            continue
        for file in found:
            try:
                check_run_of(file)
            except BadInput as error:
                failures.append(error)
            else:
                files[file] = None
    return list(files), failures


def reports_of(path: Path) -> tuple[list[Path], list[ProfkitError]]:
    """As `find_reports`, of one path; raises the first failure where there is no report."""
    files, failures = find_reports([path])
    if not files:
        raise failures[0]
    return files, failures


def read_timeline(path: Path) -> Timeline:
    """A timeline that nsys exported, or its own `.nsys-rep` where nsys is installed.

    Raises BadInput for anything else and EnvironmentProblem where nsys is needed and missing.
    """
    from profkit.timeline.reader import read

    if path.suffix != ".nsys-rep" or not path.is_file():
        return read(path)
    from profkit.capture import nsys
    from profkit.capture.process import reduced_environment
    from profkit.capture.tools import find

    tool = find("nsys")
    if tool is None:
        raise EnvironmentProblem(
            f"{path}: nsys is needed to export it and was not found",
            "export it where nsys is: nsys export --type sqlite FILE",
        )
    with interruptible(), tempfile.TemporaryDirectory(prefix="profkit-") as folder:
        database = Path(folder) / f"{path.stem}.sqlite"
        nsys.export(tool, path, database, environment=reduced_environment(), timeout=None)
        return read(database)


def judge_pairs(
    folders: Sequence[Path], advice: Advice
) -> tuple[list[Verdict], PairNotes, list[ProfkitError]]:
    """The pairs below folders judged, in parallel processes; their notes; what went wrong.

    Raises BadInput for a folder without pairs, or with notes that can't be read.
    """
    from profkit.commands.parallel import in_parallel
    from profkit.rules.score import joined, pairs_in, read_notes

    notes = [read_notes(folder) for folder in folders]
    tasks = [
        (pair, known.held_out)
        for folder, known in zip(folders, notes, strict=True)
        for pair in pairs_in(folder)
    ]
    outcomes = in_parallel(partial(_judge, advice=advice), tasks, lambda task: _died(task[0]))
    failures = [outcome for outcome in outcomes if isinstance(outcome, ProfkitError)]
    judged = [outcome for outcome in outcomes if not isinstance(outcome, ProfkitError)]
    return judged, joined(notes), failures


def _judge(task: tuple[Path, Collection[str] | None], advice: Advice) -> Verdict | ProfkitError:
    from profkit.rules.score import judge, read_pair

    folder, held_out = task

    def examine(report: Path) -> tuple[ReportSummary, Checklist]:
        read = load(report)
        return read.summary, read.checklist(advice.rules, advice.disabled, advice.blamed)

    try:
        return judge(read_pair(folder), examine, held_out)
    except ProfkitError as error:
        return error


def _died(path: Path) -> BadInput:
    return BadInput(
        f"{path}: the process that read it died, for lack of memory or of damage",
        "read it alone, on a machine with more memory",
    )


def _read(
    file: Path,
    selection: Selection,
    advice: Advice,
    progress: Callable[[int, int], None] | None = None,
) -> Examined | ProfkitError:
    try:
        report = load(file, progress=progress, **asdict(selection))
        found = report.checklist(advice.rules, advice.disabled, advice.blamed)
        return Examined(report.summary, found)
    except ProfkitError as error:
        return error
