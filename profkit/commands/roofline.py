"""`profkit roofline`: kernels under the roofs of their GPU, as numbers or as a picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from profkit.commands.formats import NumbersFormat
from profkit.commands.options import KernelOption, output_option, put, report_failures
from profkit.core.errors import NothingMatches, ProfkitError, UsageError
from profkit.ui.picture import PICTURES, check_picture

if TYPE_CHECKING:
    from profkit.analysis.report import Report
    from profkit.roofline.roofline import Roofline

_Peaks = Literal["held", "datasheet", "measured"]


def roofline(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE|RUN...", help="Reports (.ncu-rep, .ncu-repz), runs, or folders of them."
        ),
    ],
    level: Annotated[
        Literal["dram", "l2", "l1", "all"],
        typer.Option(help="The level of memory that bytes are of."),
    ] = "all",
    precision: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="fp32, tensor_fp16, ... or all. [default: the one nearest to its roof]",
        ),
    ] = None,
    peaks: Annotated[
        _Peaks, typer.Option(help="Roofs: the report's at the clock it held, or others.")
    ] = "held",
    ceilings: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Measured roofs, instead of those kept of this GPU (profkit ceilings).",
        ),
    ] = None,
    latency: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN|FILE", help="Timed latencies, instead of those in the report's own run."
        ),
    ] = None,
    kernel: KernelOption = None,
    path: Annotated[
        bool, typer.Option("--path", help="Join the points of several reports in order: a sweep.")
    ] = False,
    table: Annotated[
        bool, typer.Option("--table", help="Print the numbers too when a picture is written.")
    ] = False,
    format: Annotated[
        NumbersFormat, typer.Option("--format", help="How to write numbers.")
    ] = "terminal",
    output: Annotated[
        Path | None, output_option("A picture (.png, .svg, .pdf), or the numbers in the --format.")
    ] = None,
) -> None:
    """Show how near kernels come to what their GPU can compute and move.

    Each kernel is a point for each level of memory: how much it computes for each byte there, and
    how fast. A run's timed latencies take the place of ncu's durations. Two reports are joined by
    arrows, before to after.

    Examples:

      profkit roofline reports/sdpa_s512

      profkit roofline run.ncu-rep --kernel flash --level dram -o roofline.png

      profkit roofline before.ncu-rep after.ncu-rep --table -o change.svg

      profkit roofline s128.ncu-rep s512.ncu-rep s2048.ncu-rep --path -o sweep.pdf
    """
    from profkit.roofline.roofline import known_names
    from profkit.roofline.roofs import LEVELS

    if ceilings is not None and peaks != "measured":
        raise UsageError("--ceilings are measured roofs", "add --peaks measured")
    picture = _picture(output, format)
    levels = LEVELS if level == "all" else (level,)
    known_names(peaks, levels, precision)

    def make(report: Report) -> Roofline:
        return report.roofline(
            peaks=peaks,
            measured=_measured(peaks, ceilings, report),
            latency=latency,
            levels=levels,
            precision=precision,
            kernel=kernel,
        )

    shown, failures = _rooflines(paths, make)
    if shown:
        shown = _by_shape(shown) if path else shown
        if picture is not None:
            _plot(shown, picture, path=path)
        if picture is None or table or format != "terminal":
            output = None if picture else output
            text = _text([one.roofline for one in shown], format, to_file=output is not None)
            put(text, output)
    report_failures(failures)


@dataclass(frozen=True)
class _Shown:
    """A report's roofline; `shapes` are those that its target names."""

    path: Path
    shapes: Mapping[str, Any]
    roofline: Roofline


def _picture(output: Path | None, format: NumbersFormat) -> Path | None:
    """The picture to write; raises UsageError for a name that none can have."""
    if output is None or (output.suffix not in PICTURES and format != "terminal"):
        return None
    check_picture(output)
    return output


def _measured(peaks: _Peaks, ceilings: Path | None, report: Report) -> Mapping[str, float] | None:
    """Measured roofs by name: those of the file, or those kept of the report's GPU.

    Raises EnvironmentProblem where none are kept of it, UsageError for those of another GPU.
    """
    if peaks != "measured":
        return None
    from profkit.analysis.run_files import latencies_of
    from profkit.core.typed_file import plain
    from profkit.roofline.ceiling_file import find_ceilings, read_ceilings, unfit

    saved = latencies_of(report.path)
    told = next((one.gpu for one in saved.latencies if one.gpu), None) if saved else None
    gpu = (plain(told) if told else {}) | {"name": report.gpu.name}
    found = read_ceilings(ceilings) if ceilings else find_ceilings(gpu)
    reasons = unfit(found, gpu)
    if reasons:
        raise UsageError(f"{ceilings}: not the roofs of this GPU ({reasons[0]})", "measure its own")
    return found.plain


def _rooflines(
    paths: Sequence[Path], make: Callable[[Report], Roofline]
) -> tuple[list[_Shown], list[ProfkitError]]:
    """Those of all reports in order, and what went wrong; a filter that leaves nothing of some
    reports but something of others is no failure."""
    from profkit.analysis.run_files import variants_of
    from profkit.commands.reading import find_reports, read_report

    files, failures = find_reports(paths)
    shown = []
    for file in files:
        try:
            found = make(read_report(file))
        except ProfkitError as error:
            failures.append(error)
            continue
        variants = variants_of(file)
        shown.append(_Shown(file, variants.shapes if variants else {}, found))
    if shown:
        failures = [one for one in failures if not isinstance(one, NothingMatches)]
    return shown, failures


def _by_shape(shown: list[_Shown]) -> list[_Shown]:
    """In the order of the one number in which the shapes differ; as given where there is none."""
    differing = _differing(shown)
    if len(differing) != 1:
        return shown
    values = [one.shapes.get(differing[0]) for one in shown]
    if not all(isinstance(value, int | float) for value in values):
        return shown
    return sorted(shown, key=lambda one: one.shapes[differing[0]])


def _differing(shown: Sequence[_Shown]) -> list[str]:
    """The names of the shapes that are not the same in all reports."""
    names = dict.fromkeys(name for one in shown for name in one.shapes)
    return [name for name in names if len({str(one.shapes.get(name)) for one in shown}) > 1]


def _text(rooflines: Sequence[Roofline], format: NumbersFormat, *, to_file: bool) -> str:
    if format == "json":
        from profkit.roofline.roofline_json import rooflines_json

        return rooflines_json(rooflines)
    from profkit.roofline.roofline_view import rooflines_markdown, rooflines_terminal

    if format == "markdown":
        return rooflines_markdown(rooflines)
    return rooflines_terminal(rooflines, to_file=to_file)


def _plot(shown: Sequence[_Shown], picture: Path, *, path: bool) -> None:
    from profkit.roofline.plot import Joined, plot_rooflines

    joined = Joined.arrows if len(shown) == 2 else Joined.apart
    title, labels = _labels(shown)
    plot_rooflines(
        [one.roofline for one in shown],
        picture,
        title=title,
        labels=labels,
        joined=Joined.path if path else joined,
    )


def _labels(shown: Sequence[_Shown]) -> tuple[str, tuple[str, ...]]:
    """What the reports have in common, and what tells them apart: shapes, or names."""
    stems = tuple(one.path.stem for one in shown)
    if len(shown) == 1:
        return stems[0], ()
    title = stems[0] if len(set(stems)) == 1 else shown[0].path.resolve().parent.name
    differing = _differing(shown)
    if differing:
        return title, tuple(
            " ".join(f"{name}={one.shapes.get(name)}" for name in differing) for one in shown
        )
    if len(set(stems)) == len(stems):
        return title, stems
    return title, tuple(one.path.resolve().parent.name for one in shown)
