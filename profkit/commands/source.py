"""`profkit source`: a kernel from the inside, over its life and by its lines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profkit.commands.formats import PlainFormat
from profkit.commands.options import (
    FORMAT,
    KernelOption,
    OutputOption,
    ReportArgument,
    put,
    put_view,
    width_of,
)
from profkit.core.errors import BadInput
from profkit.ui.picture import check_picture

if TYPE_CHECKING:
    from profkit.analysis.report import Report
    from profkit.analysis.source_view import Inside
    from profkit.rules.checklist import Checklist

_TOP_SHOWN = 10


def source(
    path: ReportArgument,
    kernel: KernelOption = None,
    top: Annotated[
        int, typer.Option(min=0, metavar="N", help="Lines to list; 0 for all (terminal).")
    ] = _TOP_SHOWN,
    sass: Annotated[
        bool, typer.Option("--sass", help="List instructions, not source lines (terminal).")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw its life: .png, .svg or .pdf.")
    ] = None,
    format: Annotated[PlainFormat, FORMAT] = "terminal",
    output: OutputOption = None,
) -> None:
    """Look inside the kernel that takes the most time: its life and its hottest lines.

    Prologue, steady state and tail come from samples over time (ncu's section PmSampling), lines
    from SourceCounters; text of lines from `ncu --import-source yes` and `nvcc -lineinfo`.

    Examples:

      profkit source run.ncu-rep

      profkit source run.ncu-rep --kernel flash --top 20 --sass

      profkit source reports/sdpa_s512 --plot life.png
    """
    from profkit.analysis.source_json import source_json
    from profkit.analysis.source_plot import plot_timeline
    from profkit.analysis.source_terminal import inside_view
    from profkit.commands.reading import read_report

    if plot is not None:
        check_picture(plot)
    report = read_report(path, kernel)
    found = report.checklist()
    inside = _look(report, found)
    if plot is not None:
        if inside.timeline is None:
            raise BadInput(
                f"{path}: {inside.launch.name} has no samples over time to draw",
                "record with `ncu --section PmSampling`",
            )
        plot_timeline(inside.timeline, plot, inside.launch.name)
    if format == "json":
        put(source_json(report.summary, inside, found), output)
        return
    width = width_of(output)
    put_view(inside_view(report.summary, inside, found, top=top, sass=sass, width=width), output)


def _look(report: Report, found: Checklist) -> Inside:
    """Inside the typical launch of the kernel that takes the most time."""
    from profkit.analysis.source_view import Inside

    kernel = report.kernel(report.summary.groups[0].typical.index)
    try:
        view = kernel.source_view(found)
    except BadInput:
        view = None
    return Inside(kernel.summary, kernel.timeline(), view)
