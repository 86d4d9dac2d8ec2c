"""`profkit source`: a kernel's phases over time and its source lines."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from profkit.commands.groups import Number, Output, PlainFormat
from profkit.commands.kinds import ReportFile
from profkit.commands.options import written
from profkit.core.errors import BadInput, UsageError
from profkit.ui.picture import check_picture

_TOP = 10  # chosen: with the sparklines they fit one screen


def source(
    path: ReportFile,
    kernel: str | None = None,
    top: Number = _TOP,
    sass: bool = False,
    plot: Path | None = None,
    *,
    output: Output[PlainFormat],
) -> None:
    """Show phases and hottest source lines of the longest kernel.

    Prologue, steady state and tail need ncu's section PmSampling, lines need SourceCounters, and
    their text needs `nvcc -lineinfo` and `ncu --import-source yes`.

    Arguments:
      path (FILE): A report (.ncu-rep, .ncu-repz) or a run.

    Options:
      top (N): Source lines listed, 0: all (terminal).
      sass: List SASS instructions instead of source lines (terminal).
      plot (FILE): Plot its phases over time: .png, .svg or .pdf.

    Examples:
      profkit source run.ncu-rep
      profkit source run.ncu-rep --kernel flash --top 20 --sass
      profkit source reports/sdpa_s512 --plot phases.png
    """
    from profkit.analysis.source_document import Inside, source_document, source_result
    from profkit.analysis.source_plot import plot_timeline
    from profkit.commands.reading import read_report
    from profkit.core.typed_file import encode

    if output.format == "json" and (sass or top != _TOP):
        raise UsageError("--sass, --top: JSON has all lines and instructions", "leave them out")
    if plot is not None:
        check_picture(plot)
    report = read_report(path, kernel)
    checklist = report.checklist()
    slowest = report.kernel(report.summary.groups[0].typical.index)
    view = code = None
    with suppress(BadInput):
        view = slowest.source_view(checklist)
        code = slowest.code(view)
    inside = Inside(slowest.summary, slowest.timeline(), view, code)
    if plot is not None:
        if inside.timeline is None:
            raise BadInput(
                f"{path}: {inside.launch.name} has no PM samples to plot",
                "record with `ncu --section PmSampling`",
            )
        with written(plot, force=output.force) as temporary:
            plot_timeline(inside.timeline, temporary, inside.launch.name)
    if output.format == "json":
        result = source_result(report.summary, inside, checklist)
        output.put(encode(result, indent=1, dense=False))
        return
    width = output.width
    document = source_document(report.summary, inside, checklist, top=top, sass=sass, width=width)
    output.lay_out(document)
