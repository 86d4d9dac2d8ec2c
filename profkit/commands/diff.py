"""`profkit diff`: two reports, runs or folders compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer
from msgspec.structs import replace

from profkit.commands.groups import Matching, Number, Output
from profkit.commands.kinds import ReportFile
from profkit.commands.options import INCONCLUSIVE, say, warn
from profkit.core.errors import BadInput, ProfkitError, UsageError

if TYPE_CHECKING:
    from profkit.analysis.report import Report
    from profkit.comparison.comparison import Diff
    from profkit.comparison.result import Comparisons, Judged
    from profkit.ui.document import Block

ComparisonFormat = Literal["terminal", "brief", "markdown", "json", "html", "github"]

_KERNELS_SHOWN = 10  # chosen: parts and kernels fit a screen
Side = Literal["before", "after"]

_TOP_SHOWN = 3  # chosen: details of three kernels are two screens
_WITH_LINES = {"json", "github"}
"""Formats that name the lines that findings blame."""


@dataclass(frozen=True)
class SavedReports:
    """Reports that are saved to be compared with.

    Options:
      baseline (NAME): Compare one report with this saved baseline.
      save_baseline (NAME): Save the later report as a baseline of this name, unless a gate fails.
    """

    baseline: str | None = None
    save_baseline: str | None = None


def diff(
    before: ReportFile,
    after: ReportFile | None = None,
    *,
    matching: Matching,
    top: Number | None = None,
    everything: bool = False,
    force_compare: bool = False,
    output: Output[ComparisonFormat],
    fail_on: tuple[str, ...] = (),
    saved: SavedReports,
    ablation: str | None = None,
    with_host: bool = False,
) -> None:
    """Compare two reports: speedups, causes, findings, new limits.

    Kernels are compared by timed latencies where both sides have them, else by ncu durations, runs
    of whole applications by their steps. Exits with 1 if a gate of --fail-on fails, with 3 if
    something can't be compared.

    Arguments:
      before (BEFORE): A report, a run, or a folder of reports.
      after (AFTER): The same, after the change.

    Options:
      top (N): Kernels shown in detail, 0: all (default: 3).
      everything (--all): Also show small changes and what only one side has.
      force_compare: Compare reports even if recorded differently.
      fail_on (GATE,...): Gates: exit 1 on regression[:5%], new-finding, removed, metric:EXPRESSION;
        exit 3 on inconclusive, incomparable; repeatable.
      ablation (NAME): Write the change as a table of an ablation study of this name (Markdown).
      with_host: Include full paths of this machine.

    Examples:
      profkit diff before.ncu-rep after.ncu-rep
      profkit diff runs_before/ runs_after/
      profkit diff runs/ --save-baseline main
      profkit diff runs/ --baseline main --fail-on regression:5%,new-finding
      profkit diff before.ncu-rep after.ncu-rep --ablation padding -o padding.md
    """
    from profkit.application.picks_file import is_application
    from profkit.commands.reading import read_report
    from profkit.comparison.ablation import ablation_blocks
    from profkit.comparison.gates import exit_code, failures, parse_gates
    from profkit.comparison.result import Comparisons, Judged, LeftOut
    from profkit.comparison.saved_reports import check_name

    if ablation and output.format not in {"terminal", "markdown"}:
        raise UsageError(f"--ablation writes Markdown, not {output.format}", "leave out --format")
    baseline, save_baseline = saved.baseline, saved.save_baseline
    check_name(save_baseline or "main")
    if after is not None and is_application(before) and is_application(after):
        _diff_applications(before, after, top, output, fail_on, everything=everything)
        return
    gates = parse_gates(fail_on)
    mode, names = matching.method()

    @lru_cache(maxsize=1)
    def read(path: Path) -> Report:
        return read_report(path, matching.kernel)

    earlier, later = _sides(before, after, baseline, save_baseline, read)
    if earlier is None:
        _save(str(save_baseline), later, read)
        return
    pairs, left_out, damaged = _paired(earlier, later, f"baseline {baseline}" if baseline else "")
    shown = _TOP_SHOWN if top is None else top
    tables: list[Block] = []
    judged: list[Judged] = []
    for label, reports in _readable(pairs, read, damaged):
        lines = output.format in _WITH_LINES
        change = _compare(reports, mode, names, force=force_compare, with_lines=lines)
        judged.append(Judged(label, change, failures(change, gates)))
        if ablation:
            rooflines = (reports[0].roofline(), reports[1].roofline())
            tables += ablation_blocks(ablation, change, rooflines, 1 if top is None else top)
    _warn_of(damaged, nothing_else=not judged)
    _warn_without_lines()
    alone = tuple(LeftOut(side, path.name) for side, path in left_out)
    comparisons = Comparisons(judged, shown, everything, with_host, alone)
    output.put(_text(comparisons, output.format, tables, to_file=output.file is not None))
    failed = [failure for row in judged for failure in row.failures]
    code = exit_code([row.diff for row in judged], failed)
    if code := code or (BadInput.exit_code if damaged else 0):
        raise typer.Exit(code)
    if save_baseline:
        _save(save_baseline, later, read)


def _text(
    comparisons: Comparisons, format: ComparisonFormat, tables: Sequence[Block], *, to_file: bool
) -> str:
    """The text of the comparisons, or of the tables of an ablation study."""
    from profkit.comparison.view import diff_text
    from profkit.ui.document import Lines
    from profkit.ui.markdown import blocks_markdown

    left_out = comparisons.left_out_words
    if tables:
        return blocks_markdown([*tables, *([Lines(left_out)] if left_out else [])]) + "\n"
    return diff_text(comparisons, format, to_file=to_file)


def _readable(
    pairs: Sequence[tuple[str, Path, Path]],
    read: Callable[[Path], Report],
    damaged: list[ProfkitError],
) -> Iterator[tuple[str, tuple[Report, Report]]]:
    """The pairs that can be read; the failure of another goes into `damaged`."""
    for label, before, after in pairs:
        try:
            later = read(after)
            earlier = read(before)
        except BadInput as error:
            damaged.append(error)
        else:
            yield label, (earlier, later)


def _warn_of(damaged: Sequence[ProfkitError], *, nothing_else: bool) -> None:
    """Report what was not compared; raise the last of it where nothing else was."""
    for failure in damaged[:-1] if nothing_else else damaged:
        warn(failure)
    if damaged and nothing_else:
        raise damaged[-1]


def _warn_without_lines() -> None:
    from profkit.report.action import WITHOUT_READER, has_reader

    if not has_reader():
        warn(WITHOUT_READER)


def _sides(
    before: Path,
    after: Path | None,
    baseline: str | None,
    save: str | None,
    read: Callable[[Path], Report],
) -> tuple[Path | None, Path]:
    """The two paths to compare; only the later one where it is to be saved and nothing else."""
    if baseline is not None:
        if after is not None:
            raise UsageError("--baseline replaces BEFORE", "give one report")
        from profkit.comparison.saved_reports import find

        return find(baseline, _gpu(before, read)), before
    if after is not None:
        return before, after
    if save is None:
        raise UsageError("only one report given", "give BEFORE and AFTER, or --baseline")
    return None, before


def _gpu(path: Path, read: Callable[[Path], Report]) -> str:
    """The GPU of the first report that a path names."""
    from profkit.commands.reading import reports_of

    return read(reports_of(path)[0][0]).summary.gpus[0].name


def _save(name: str, path: Path, read: Callable[[Path], Report]) -> None:
    from profkit.comparison.saved_reports import save

    gpu = _gpu(path, read)
    say(f"baseline {name} of {gpu}: {save(name, path, gpu)}")


def _compare(
    reports: tuple[Report, Report],
    mode: str,
    names: Mapping[str, str] | None,
    *,
    force: bool,
    with_lines: bool,
) -> Diff:
    """The comparison; `with_lines` looks up the lines that every finding blames."""
    from profkit.comparison.comparison import diff as compare
    from profkit.comparison.matching import Mode
    from profkit.comparison.reports import side
    from profkit.timing.floor import floor_between_runs

    if reports[0].path.samefile(reports[1].path):
        say(f"both sides are the same file: {reports[0].path}")
    sides = [
        replace(side(report), checklist=report.checklist()) if with_lines else side(report)
        for report in reports
    ]
    timed = [row for side in sides for row in side.timings.timed.values()]
    floor = floor_between_runs({row.latency.measured_with for row in timed})
    return compare(*sides, mode=Mode(mode), names=names, force=force, floor=floor)


def _paired(
    before: Path, after: Path, before_title: str
) -> tuple[list[tuple[str, Path, Path]], list[tuple[Side, Path]], list[ProfkitError]]:
    """The reports to compare, each pair with a title, those that only one side has, and what is
    damaged.

    `before_title` is shown for the earlier one, "" for its own name. Raises UsageError where no
    report has a counterpart, BadInput where a side has none that can be read.
    """
    from profkit.commands.reading import reports_of

    (ours, damaged), (theirs, failures) = reports_of(before), reports_of(after)
    damaged += failures
    if len(ours) == len(theirs) == 1 and not damaged:
        title = f"{before_title or _name(before, ours[0])} → {_name(after, theirs[0])}"
        return [(title, ours[0], theirs[0])], [], damaged
    first, second = _places(ours, before), _places(theirs, after)
    pairs = [(str(place), first[place], second[place]) for place in first if place in second]
    if not pairs and damaged:
        raise damaged[0]
    if not pairs:
        raise UsageError(
            f"{before} and {after}: no reports with the same name or shapes",
            "name one report of each",
        )
    left_out: list[tuple[Side, Path]] = []
    left_out += [("before", file) for place, file in first.items() if place not in second]
    left_out += [("after", file) for place, file in second.items() if place not in first]
    return pairs, left_out, damaged


def _places(files: Sequence[Path], root: Path) -> dict[Path, Path]:
    """Reports by where they lie in their folder, without suffixes.

    The folder of a run has the time in its name, which is another in each folder of runs: a lone
    run of a target goes without it, several by the shapes that they declare, where no two have the
    same.
    """
    from profkit.runs.run import is_run_name

    whole: list[Path] = []
    timeless: list[Path] = []
    for file in files:
        place = file.relative_to(root) if root.is_dir() else Path(file.name)
        whole.append(place.with_suffix(""))
        timeless.append(Path(*(part for part in whole[-1].parts if not is_run_name(part))))
    named = [
        place if timeless.count(place) == 1 else place.with_name(f"{place.name}{_shapes(file)}")
        for file, place in zip(files, timeless, strict=True)
    ]
    uses = Counter(named)
    return {
        name if uses[name] == 1 else place: file
        for file, place, name in zip(files, whole, named, strict=True)
    }


def _shapes(report: Path) -> str:
    """What a run declares to have computed, as the end of a name; "" where it doesn't."""
    from profkit.timing.variants import read_variants

    variants = read_variants(report.parent)
    if variants is None:
        return ""
    sizes = [f"{name}={value}" for name, value in variants.shapes.items()]
    return "".join(f" {word}" for word in (*sizes, variants.dtype) if word)


def _name(path: Path, file: Path) -> str:
    from profkit.ui.text import literal

    return literal(file.name if path == file else path.name or str(path))


def _diff_applications(
    before: Path,
    after: Path,
    top: int | None,
    output: Output[str],
    fail_on: Sequence[str],
    *,
    everything: bool,
) -> None:
    """Compare two runs of applications, and exit with 1 or 3 if a gate fails."""
    from profkit.application.run import read_run
    from profkit.comparison.application import application_diff_document, compare_applications
    from profkit.comparison.gates import GateKind, parse_gates
    from profkit.timing.results import Verdict

    kinds = {gate.kind for gate in parse_gates(fail_on)}
    if others := kinds - {GateKind.regression, GateKind.inconclusive}:
        raise UsageError(
            f"--fail-on {min(others)} is not for applications", "use regression, inconclusive"
        )
    if output.format not in {"terminal", "markdown", "json"}:
        raise UsageError(
            f"two applications can't be written as {output.format}",
            "use terminal, markdown or json",
        )
    diff = compare_applications(read_run(before), read_run(after))
    names = (str(before), str(after))
    shown = _KERNELS_SHOWN if top is None else top
    output.show(diff, lambda: application_diff_document(diff, names, shown, everything=everything))
    if diff.verdict is Verdict.REGRESSED and GateKind.regression in kinds:
        raise typer.Exit(1)
    if diff.verdict is Verdict.INCONCLUSIVE and GateKind.inconclusive in kinds:
        raise typer.Exit(INCONCLUSIVE)
