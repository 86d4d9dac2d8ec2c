"""`profkit diff`: did the fix work?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from profkit.commands.options import FORMAT, KernelOption, OutputOption, put, warn
from profkit.core.errors import BadInput, ProfkitError, UsageError

if TYPE_CHECKING:
    from profkit.analysis.report import Report
    from profkit.comparison.comparison import Diff
    from profkit.comparison.document import Document, Judged

ComparisonFormat = Literal["terminal", "markdown", "json", "html", "sarif", "junit", "github"]

_TOP_SHOWN = 3
_MODES = ("auto", "name", "order", "nvtx")
_WITH_LINES = {"json", "sarif", "github"}
"""Formats that name the lines that findings blame."""


def diff(
    before: Annotated[
        Path, typer.Argument(metavar="BEFORE", help="A report, a run, or a folder of reports.")
    ],
    after: Annotated[
        Path | None, typer.Argument(metavar="AFTER", help="The same after the change.")
    ] = None,
    kernel: KernelOption = None,
    match: Annotated[
        str,
        typer.Option(
            metavar="HOW", help="auto, name, order, nvtx, or a YAML file of `old name: new name`."
        ),
    ] = "auto",
    top: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Kernels to show in detail, 0 for all. [default: 3]"),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Show small changes too, and what one side alone has.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Compare what can't be compared, too.")
    ] = False,
    format: Annotated[ComparisonFormat, FORMAT] = "terminal",
    output: OutputOption = None,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GATE,...",
            help="Exit 1 on regression[:5%], new-finding, removed, metric:EXPRESSION; 3 on "
            "inconclusive, incomparable; may be repeated, an empty one is refused.",
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Compare with this baseline: give one report."),
    ] = None,
    save_baseline: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Keep the later report under this name, unless a gate fails."
        ),
    ] = None,
    ablation: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Write the change as the table of an ablation study, in Markdown."
        ),
    ] = None,
    with_host: Annotated[
        bool, typer.Option("--with-host", help="Write whole paths, folders of this machine too.")
    ] = False,
) -> None:
    """Say whether a change made kernels faster, by how much, why, and what limits them now.

    Examples:

      profkit diff before.ncu-rep after.ncu-rep

      profkit diff reports/sdpa/20260101T120000Z-aaaaaa reports/sdpa/20260102T120000Z-bbbbbb

      profkit diff reports/sdpa --save-baseline main

      profkit diff reports/sdpa --baseline main --fail-on regression:5%,new-finding

      profkit diff before.ncu-rep after.ncu-rep --ablation "padded tile" -o padding.md
    """
    from profkit.commands.reading import read_report
    from profkit.comparison.document import Document, Judged
    from profkit.comparison.gates import exit_code, failures, parse_gates

    if ablation and format not in {"terminal", "markdown"}:
        raise UsageError(f"--ablation writes Markdown, not {format}", "leave --format out")
    gates = parse_gates(fail_on or ())
    mode, names = _matching(match)

    @lru_cache(maxsize=1)
    def read(path: Path) -> Report:
        return read_report(path, kernel)

    earlier, later = _sides(before, after, baseline, save_baseline, read)
    if earlier is None:
        _save(str(save_baseline), later, read)
        return
    pairs, left_out, damaged = _paired(earlier, later, f"baseline {baseline}" if baseline else "")
    shown = _TOP_SHOWN if top is None else top
    texts: list[str] = []
    found: list[Judged] = []
    for label, sides in _readable(pairs, read, damaged):
        lines = format in _WITH_LINES
        compared = _compare(sides, mode, names, force=force, with_lines=lines)
        found.append(Judged(label, compared, failures(compared, gates)))
        if ablation:
            texts.append(_ablation(ablation, compared, sides, 1 if top is None else top))
        elif format == "terminal":
            to_file = output is not None
            texts.append(_terminal(found[-1], shown, everything=everything, to_file=to_file))
    _tell_damaged(damaged, nothing_else=not found)
    alone = [(side, path.name) for side, path in left_out]
    if ablation or format == "terminal":
        texts += [f"only in {side}: {name}\n" for side, name in alone]
        put("\n".join(texts), output)
    else:
        put(_written(Document(found, shown, everything, with_host, alone), format), output)
    failed = [failure for one in found for failure in one.failures]
    code = exit_code([one.diff for one in found], failed)
    if code := code or (BadInput.exit_code if damaged else 0):
        raise typer.Exit(code)
    if save_baseline:
        _save(save_baseline, later, read)


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


def _tell_damaged(damaged: Sequence[ProfkitError], *, nothing_else: bool) -> None:
    """Say what was not compared; raise the last of it where nothing else was."""
    for failure in damaged[:-1] if nothing_else else damaged:
        warn(failure)
    if damaged and nothing_else:
        raise damaged[-1]


def _written(document: Document, format: ComparisonFormat) -> str:
    from profkit.comparison.formats import diff_text
    from profkit.comparison.tables import only_in

    if format in {"sarif", "junit"}:
        for line in only_in(document):
            typer.echo(line, err=True)
    return diff_text(document, format)


def _sides(
    before: Path,
    after: Path | None,
    baseline: str | None,
    save: str | None,
    read: Callable[[Path], Report],
) -> tuple[Path | None, Path]:
    """The two paths to compare; only the later one where it is to be kept and nothing else."""
    if baseline is not None:
        if after is not None:
            raise UsageError("--baseline takes the place of BEFORE", "give one report")
        from profkit.comparison.saved_reports import find

        return find(baseline, _gpu(before, read)).path, before
    if after is not None:
        return before, after
    if save is None:
        raise UsageError("one report is not a comparison", "give BEFORE and AFTER, or --baseline")
    return None, before


def _gpu(path: Path, read: Callable[[Path], Report]) -> str:
    """The GPU of the first report that a path names."""
    from profkit.commands.reading import reports_of

    return read(reports_of(path)[0][0]).summary.gpus[0].name


def _save(name: str, path: Path, read: Callable[[Path], Report]) -> None:
    from profkit.comparison.saved_reports import save

    kept = save(name, path, _gpu(path, read))
    typer.echo(f"baseline {kept.name} of {kept.gpu}: {kept.path}", err=True)


def _compare(
    sides: tuple[Report, Report],
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

    before, after = (report.path for report in sides)
    if before.samefile(after):
        typer.echo(f"both sides are the same file: {before}", err=True)
    one, other = (
        replace(side(report), checklist=report.checklist()) if with_lines else side(report)
        for report in sides
    )
    timed = [*one.timings.timed.values(), *other.timings.timed.values()]
    floor = floor_between_runs({each.latency.measured_with for each in timed})
    return compare(one, other, mode=Mode(mode), names=names, force=force, floor=floor)


def _ablation(name: str, found: Diff, sides: tuple[Report, Report], top: int) -> str:
    from profkit.comparison.ablation import ablation_markdown

    return ablation_markdown(name, found, (sides[0].roofline(), sides[1].roofline()), top)


def _terminal(judged: Judged, top: int, *, everything: bool, to_file: bool) -> str:
    from profkit.comparison.terminal import diff_view, failures_view
    from profkit.ui.terminal import console, rendered

    width = console(to_file=to_file).width
    view = diff_view(judged.diff, judged.label, top, width, everything=everything)
    shown = [view, failures_view(judged.failures)] if judged.failures else [view]
    return "\n".join(rendered(part, to_file=to_file) for part in shown)


def _paired(
    before: Path, after: Path, called: str = ""
) -> tuple[list[tuple[str, Path, Path]], list[tuple[str, Path]], list[ProfkitError]]:
    """The reports to compare, each pair with a title, those that one side alone has, and what is
    damaged.

    `called` is what the earlier one is told as, "" for its own name. Raises UsageError where no
    report has a counterpart, BadInput where a side has none that can be read.
    """
    from profkit.commands.reading import reports_of

    sides: list[list[Path]] = []
    damaged: list[ProfkitError] = []
    for path in (before, after):
        files, failures = reports_of(path)
        sides.append(files)
        damaged += failures
    if len(sides[0]) == len(sides[1]) == 1 and not damaged:
        title = f"{called or _name(before, sides[0][0])} → {_name(after, sides[1][0])}"
        return [(title, sides[0][0], sides[1][0])], [], damaged
    ours, theirs = (
        _places(files, root) for root, files in zip((before, after), sides, strict=True)
    )
    both = [(str(place), ours[place], theirs[place]) for place in ours if place in theirs]
    if not both and damaged:
        raise damaged[0]
    if not both:
        raise UsageError(
            f"{before} and {after}: no report of one has its name or its shapes in the other",
            "name one report of each",
        )
    only = [("before", file) for place, file in ours.items() if place not in theirs]
    only += [("after", file) for place, file in theirs.items() if place not in ours]
    return both, only, damaged


def _places(files: Sequence[Path], root: Path) -> dict[Path, Path]:
    """Reports by where they lie in their folder, without suffixes.

    The folder of a run has the time in its name, which is another in each folder of runs: a lone
    run of a target goes without it, several by the shapes that they declare, where no two have the
    same.
    """
    from profkit.runs.run import is_run_name

    whole = {file: _place(file, root) for file in files}
    bare = {
        file: Path(*(part for part in place.parts if not is_run_name(part)))
        for file, place in whole.items()
    }
    lone = Counter(bare.values())
    named = {
        file: place if lone[place] == 1 else place.with_name(f"{place.name}{_declared(file)}")
        for file, place in bare.items()
    }
    alike = Counter(named.values())
    return {named[file] if alike[named[file]] == 1 else whole[file]: file for file in files}


def _declared(report: Path) -> str:
    """What a run declares to have computed, as the end of a name; "" where it doesn't."""
    from profkit.timing.variants import read_variants

    variants = read_variants(report.parent)
    if variants is None:
        return ""
    sizes = [f"{name}={value}" for name, value in variants.shapes.items()]
    return "".join(f" {word}" for word in (*sizes, variants.dtype) if word)


def _place(file: Path, root: Path) -> Path:
    return (file.relative_to(root) if root.is_dir() else Path(file.name)).with_suffix("")


def _name(given: Path, file: Path) -> str:
    from profkit.ui.text import literal

    return literal(file.name if given == file else given.name or str(given))


def _matching(asked: str) -> tuple[str, Mapping[str, str] | None]:
    if asked in _MODES:
        return asked, None
    path = Path(asked)
    if not path.is_file():
        raise UsageError(
            f"--match {asked!r} is not {', '.join(_MODES)} or a file", "see profkit diff --help"
        )
    return "auto", _names(path)


def _names(path: Path) -> Mapping[str, str]:
    from profkit.core.yaml_files import read_yaml

    told = read_yaml(path, "write `old name: new name`, one a line")
    if not isinstance(told, dict) or not all(isinstance(name, str) for name in told.values()):
        raise BadInput(f"{path}: not names of kernels", "write `old name: new name`, one a line")
    return {str(old): new for old, new in told.items()}
