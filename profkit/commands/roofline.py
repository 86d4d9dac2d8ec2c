"""`profkit roofline`: kernels under the roofs of their GPU, as numbers or as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profkit.commands.options import KernelOption, put
from profkit.errors import BadInput, ProfkitError, UsageError

if TYPE_CHECKING:
    from profkit.analysis.roofline import Roofline
    from profkit.report import Report

_PICTURES = (".png", ".svg", ".pdf")
_ALL = "all"


class Format(StrEnum):
    """How numbers are written."""

    terminal = "terminal"
    json = "json"
    markdown = "markdown"


class Level(StrEnum):
    """Levels of memory, as options spell them."""

    dram = "dram"
    l2 = "l2"
    l1 = "l1"
    all = _ALL


class PeaksFrom(StrEnum):
    """Where roofs come from, as options spell it."""

    held = "held"
    datasheet = "datasheet"
    measured = "measured"


def roofline(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE|RUN...",
            help="Reports (.ncu-rep, .ncu-repz), runs, or folders of them.",
            show_default=False,
        ),
    ],
    level: Annotated[
        Level, typer.Option(help="The level of memory that bytes are of.")
    ] = Level.all,
    precision: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="fp32, tensor_fp16, ... or all. [default: the one nearest to its roof]",
            show_default=False,
        ),
    ] = None,
    peaks: Annotated[
        PeaksFrom, typer.Option(help="Roofs: the report's at the clock it held, or others.")
    ] = PeaksFrom.held,
    latency: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN|FILE",
            help="Timed latencies, instead of those in the report's own run.",
            show_default=False,
        ),
    ] = None,
    kernel: KernelOption = None,
    path: Annotated[
        bool, typer.Option("--path", help="Join the points of several reports in order: a sweep.")
    ] = False,
    table: Annotated[
        bool, typer.Option("--table", help="Print the numbers too when a picture is written.")
    ] = False,
    format: Annotated[Format, typer.Option("--format", help="How to write numbers.")] = (
        Format.terminal
    ),
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="A picture (.png, .svg, .pdf), or the numbers in the --format.",
            show_default=False,
        ),
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
    from profkit.analysis.roofline import LEVELS, known_names

    picture = _picture(output, format)
    levels = LEVELS if level is Level.all else (level.value,)
    known_names(peaks, levels, precision)
    reports, failures = _read(paths, kernel)
    rooflines = [
        report.roofline(
            peaks=peaks.value, measured=_measured(peaks, report), latency=latency, levels=levels,
            precision=precision,
        )
        for report in reports
    ]  # fmt: skip
    if rooflines:
        _write(rooflines, reports, picture, path, table, format, output)
    for failure in failures:
        typer.echo(f"profkit: {failure}", err=True)
    if failures:
        raise typer.Exit(max(failure.exit_code for failure in failures))


def _picture(output: Path | None, format: Format) -> Path | None:
    """The picture to write; raises UsageError for a name that none can have."""
    if output is None or (output.suffix not in _PICTURES and format is not Format.terminal):
        return None
    from profkit.render.roofline_plot import check_suffix

    check_suffix(output)
    return output


def _measured(peaks: PeaksFrom, report: Report) -> Mapping[str, float] | None:
    if peaks is not PeaksFrom.measured:
        return None
    raise UsageError(f"no measured roofs of {report.gpu.name}", "use --peaks held or datasheet")


def _read(paths: Sequence[Path], kernel: str | None) -> tuple[list[Report], list[ProfkitError]]:
    """The reports in order, and what went wrong; a filter that leaves nothing of some counts only
    where it leaves nothing of any."""
    from profkit.commands.reading import find_reports
    from profkit.report import load

    files, failures = find_reports(paths)
    reports = []
    for file in files:
        try:
            reports.append(load(file, kernel=kernel))
        except ProfkitError as error:
            failures.append(error)
    if reports:
        failures = [failure for failure in failures if isinstance(failure, BadInput)]
    return reports, failures


def _write(
    rooflines: Sequence[Roofline],
    reports: Sequence[Report],
    picture: Path | None,
    path: bool,
    table: bool,
    format: Format,
    output: Path | None,
) -> None:
    if picture is not None:
        _plot(rooflines, reports, picture, path)
    if picture is None or table or format is not Format.terminal:
        put(
            _text(rooflines, format, to_file=picture is None and output is not None),
            None if picture else output,
        )


def _text(rooflines: Sequence[Roofline], format: Format, *, to_file: bool) -> str:
    if format is Format.json:
        from profkit.render.roofline_json import rooflines_json

        return rooflines_json(rooflines)
    from profkit.render.roofline import rooflines_markdown, rooflines_terminal

    if format is Format.markdown:
        return rooflines_markdown(rooflines)
    return rooflines_terminal(rooflines, to_file=to_file)


def _plot(
    rooflines: Sequence[Roofline], reports: Sequence[Report], picture: Path, path: bool
) -> None:
    from profkit.render.roofline_plot import Joined, plot_rooflines

    joined = Joined.arrows if len(rooflines) == 2 else Joined.apart
    labels, title = _labels(reports)
    plot_rooflines(
        rooflines, picture, title=title, labels=labels, joined=Joined.path if path else joined
    )


def _labels(reports: Sequence[Report]) -> tuple[tuple[str, ...], str]:
    """What tells the reports apart, and what they have in common."""
    stems = [report.path.stem for report in reports]
    if len(reports) == 1:
        return (), stems[0]
    folders = dict.fromkeys(report.path.resolve().parent.name for report in reports)
    if len(set(stems)) == 1:
        return tuple(report.path.resolve().parent.name for report in reports), stems[0]
    return tuple(stems), ", ".join(folders)
