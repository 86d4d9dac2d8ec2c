"""Reading the reports that a command was given, many of them at once in processes of their own."""

from __future__ import annotations

import math
import shlex
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from profkit.analysis.report import load
from profkit.analysis.run_files import check_run_of, reports_in
from profkit.commands.groups import Advice
from profkit.commands.options import T, interruptible, warn
from profkit.core.errors import BadInput, EnvironmentProblem, ProfkitError, UsageError
from profkit.core.suggestion import did_you_mean
from profkit.core.typed_file import known
from profkit.runs.run import read_manifest
from profkit.timeline import RUN_FILE
from profkit.ui.progress import progress_line

if TYPE_CHECKING:
    from profkit.analysis.report import Report
    from profkit.application.timeline_view import Report as TimelineReport
    from profkit.report.summary import Group, ReportSummary
    from profkit.rules.checklist import Checklist
    from profkit.rules.known_trial import KnownTrial
    from profkit.score.score import PairScore, RecordedPair, Withheld
    from profkit.score.stories import Applications
    from profkit.timeline.events import Events

_RANKS: dict[str, Callable[[Group], Any]] = {
    "name": lambda group: group.name,
    "count": lambda group: -group.count,
    "order": lambda group: group.launches[0].index,
}
_KEYS = ("time", *_RANKS)


def check_sort_key(key: str) -> None:
    """Raise UsageError for a sort key that is none."""
    from profkit.report.catalog import catalog

    if key not in _KEYS and key not in catalog().quantities:
        raise UsageError(
            f"--sort {key!r} is not {', '.join(_KEYS)} or a quantity",
            did_you_mean(key, (*_KEYS, *catalog().quantities), "see `profkit metrics`", most=3),
        )


def sorted_groups(report: ReportSummary, key: str) -> tuple[Group, ...]:
    """The report's groups by a known sort key; those without a value that can be come last."""

    def largest_first(group: Group) -> float:
        value = group.typical.get(key)
        doubtful = math.isnan(value) or key in group.typical.impossible
        return math.inf if doubtful else -value

    if key == "time":
        return report.groups
    return tuple(sorted(report.groups, key=_RANKS.get(key, largest_first)))


def read_reports(
    paths: Sequence[Path], advice: Advice, **selection: Any
) -> tuple[list[tuple[ReportSummary, Checklist]], list[ProfkitError]]:
    """The reports in order with their findings, and what went wrong with those that can't be read.

    `selection` is as `profkit.load` takes it. One report is read here, several in parallel
    processes. When filters leave nothing of some reports but something of others, only the latter
    count.
    """
    files, failures = find_reports(paths)
    if len(files) == 1:
        with progress_line() as progress:
            outcomes = [_read(files[0], advice, {"progress": progress, **selection})]
    else:
        from profkit.commands.parallel import in_parallel

        outcomes = in_parallel(partial(_read, advice=advice, selection=selection), files, _died)
    reports = [outcome for outcome in outcomes if isinstance(outcome, tuple)]
    failures += [outcome for outcome in outcomes if isinstance(outcome, ProfkitError)]
    if reports:
        failures = [failure for failure in failures if isinstance(failure, BadInput)]
    return reports, failures


def whole(path: Path) -> Path:
    """A path to read: of an application's run without a report its timeline. Warns of a run that
    is unfinished."""
    from profkit.analysis.run_files import SUFFIXES
    from profkit.application.picks_file import is_application

    if not is_application(path):
        return path
    if stage := known(read_manifest(path).unfinished):
        run = shlex.quote(str(path))
        warn(f"{path}: unfinished, it ended in {stage}; `profkit profile --resume {run}` goes on")
    has_report = any(file.suffix in SUFFIXES for file in path.iterdir())
    return path if has_report else path / RUN_FILE


def read_report(path: Path, kernel: str | None = None, nvtx: str | None = None) -> Report:
    """The report that a path names, with progress on stderr; raises as `profkit.load`."""
    with progress_line() as progress:
        return load(path, kernel=kernel, nvtx=nvtx, progress=progress)


def checklist_of(
    report: Report, advice: Advice, tried: Path | None = None
) -> tuple[Checklist, KnownTrial]:
    """A report's checklist with what was tried on its kernels, in a file or beside it."""
    from profkit.rules.known_trial import NO_TRIAL
    from profkit.trial.trial_file import TRIAL

    if tried is None and not (report.path.parent / TRIAL).is_file():
        return report.checklist(*advice), NO_TRIAL
    from profkit.trial.of_report import with_trial

    return with_trial(report.checklist(*advice), report, tried)


def timeline_report(
    path: Path, advice: Advice, nvtx: str | None = None, tried: Path | None = None
) -> TimelineReport:
    """A timeline's summary and findings, with what was tried on its program."""
    from profkit.application.causes import with_findings
    from profkit.application.timeline_view import Report
    from profkit.rules.rule_file import shipped_rules
    from profkit.trial.of_program import program_trial

    events, rules = read_timeline(path), advice.rules or shipped_rules()
    trial = program_trial(path, (gpu.name for gpu in events.gpus), tried)
    return Report(*with_findings(events, rules, advice.disabled, nvtx, trial), trial)


def find_reports(paths: Sequence[Path]) -> tuple[list[Path], list[ProfkitError]]:
    """The report files that paths name: themselves, or all below a directory.

    A report in a directory goes with what else its run holds: where that was changed, it failed.
    """
    files: dict[Path, None] = {}
    failures: list[ProfkitError] = []
    for path in paths:
        try:
            listed = reports_in(path) if path.is_dir() else [path]
        except BadInput as error:
            failures.append(error)
            continue
        for file in listed:
            try:
                if path.is_dir():
                    check_run_of(file)
                files[file] = None
            except BadInput as error:
                failures.append(error)
    return list(files), failures


def reports_of(path: Path) -> tuple[list[Path], list[ProfkitError]]:
    """As `find_reports`, of one path; raises the first failure where there is no report."""
    files, failures = find_reports([path])
    if not files:
        raise failures[0]
    return files, failures


def read_timeline(path: Path) -> Events:
    """A timeline that nsys exported or torch.profiler wrote, or an `.nsys-rep` where nsys is.

    Raises BadInput for anything else and EnvironmentProblem where nsys is needed and missing.
    """
    from profkit.timeline.reader import read

    if path.suffix != ".nsys-rep" or not path.is_file():
        return read(path)
    from profkit.capture import nsys
    from profkit.capture.program_environment import reduced_environment
    from profkit.capture.tools import find

    tool = find("nsys")
    if tool is None:
        raise EnvironmentProblem(
            f"{path}: nsys is needed to export it and was not found",
            "export it where nsys is installed: nsys export --type sqlite FILE",
        )
    with interruptible(), tempfile.TemporaryDirectory(prefix="profkit-") as folder:
        database = Path(folder) / f"{path.stem}.sqlite"
        try:
            nsys.export(tool, path, database, environment=reduced_environment(), timeout=None)
            return replace(read(database), path=path)
        except BadInput as error:
            message = error.message.replace(str(database), str(path))
            raise BadInput(message, error.remedy) from None
        except nsys.NoTimeline as error:
            remedy = "export it with the nsys that recorded it: nsys export --type sqlite FILE"
            raise EnvironmentProblem(f"{path}: {error.message}", remedy) from None


def judge_applications(
    folders: Sequence[Path], advice: Advice
) -> tuple[Applications | None, list[ProfkitError]]:
    """The stories and programs below folders and in archives judged, and errors."""
    from profkit.application.program_score import judge_program, programs_in
    from profkit.application.score import judge_story, stories_in
    from profkit.rules.rule_file import shipped_rules
    from profkit.score.pair_archive import unpacked
    from profkit.score.stories import score_stories

    known = shipped_rules() if advice.rules is None else advice.rules
    rules = [rule for rule in known if not {rule.name, rule.category} & advice.disabled]
    errors: list[ProfkitError] = []
    with ExitStack() as stack:
        places = [place for path in folders for place in stack.enter_context(unpacked(path))]
        stories = list(_readable(partial(judge_story, rules=rules), stories_in(places), errors))
        programs = list(_readable(partial(judge_program, rules=rules), programs_in(places), errors))
    return score_stories(stories, programs) if stories or programs else None, errors


def _readable(
    judge: Callable[[Path], T], folders: Iterable[Path], errors: list[ProfkitError]
) -> Iterator[T]:
    """What is judged in folders; a failure goes to `errors`."""
    for folder in folders:
        try:
            yield judge(folder)
        except ProfkitError as error:
            errors.append(error)


def judge_pairs(
    folders: Sequence[Path], advice: Advice, *, optional: bool = False
) -> tuple[list[PairScore], list[ProfkitError]]:
    """The pairs below folders and in archives judged, in parallel processes, and errors.

    Each folder is a set; those of one name are one. Raises BadInput for a folder without pairs,
    unless they are `optional`.
    """
    from profkit.commands.parallel import in_parallel
    from profkit.score.pair_archive import ARCHIVE, unpacked
    from profkit.score.score import definitions_of, pairs_in, read_pair, withheld

    failures: list[ProfkitError] = []
    pairs: list[RecordedPair] = []
    with ExitStack() as stack:
        for folder in folders:
            name = folder.name.removesuffix(ARCHIVE)
            name = folder.resolve().parent.name if name == "pairs" else name
            for place in pairs_in(stack.enter_context(unpacked(folder)), optional=optional):
                try:
                    pairs.append(read_pair(place, definitions_of(folder), name))
                except ProfkitError as error:
                    failures.append(error)
        tasks = [(pair, withheld(pair, pairs)) for pair in pairs]
        outcomes = in_parallel(
            partial(_judge, advice=advice), tasks, lambda task: _died(task[0].before)
        )
    failures += [outcome for outcome in outcomes if isinstance(outcome, ProfkitError)]
    return [each for each in outcomes if not isinstance(each, ProfkitError)], failures


def _judge(task: tuple[RecordedPair, Withheld], advice: Advice) -> PairScore | ProfkitError:
    from profkit.score.score import judge

    pair, apart = task
    try:
        return judge(pair, partial(_examined, advice=advice), apart)
    except ProfkitError as error:
        return error


def _examined(file: Path, advice: Advice, **selection: Any) -> tuple[ReportSummary, Checklist]:
    report = load(file, **selection)
    return report.summary, report.checklist(*advice)


def _read(
    file: Path, advice: Advice, selection: dict[str, object]
) -> tuple[ReportSummary, Checklist] | ProfkitError:
    try:
        report = load(file, **selection)  # type: ignore[arg-type]
        items, trial = checklist_of(report, advice)
        notes = (*report.summary.notes, *filter(None, [trial.note]))
        return replace(report.summary, notes=notes), items
    except ProfkitError as error:
        return error


def _died(path: Path) -> BadInput:
    return BadInput(
        f"{path}: the process that read it died (out of memory, or a damaged file)",
        "read it alone, on a machine with more memory",
    )
