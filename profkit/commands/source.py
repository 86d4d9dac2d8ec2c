"""`profkit source`: a kernel's phases over time and its source lines."""

from contextlib import suppress

from profkit.commands.groups import Number, Output, PlainFormat
from profkit.commands.kinds import ReportFile
from profkit.core.errors import BadInput, UsageError

_TOP = 10  # chosen: with the sparklines they fit one screen


def source(
    path: ReportFile,
    kernel: str | None = None,
    top: Number = _TOP,
    sass: bool = False,
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

    Examples:
      profkit source run.ncu-rep
      profkit source run.ncu-rep --kernel flash --top 20 --sass
    """
    from profkit.analysis.source_document import Inside, source_document, source_result
    from profkit.commands.reading import read_report
    from profkit.core.typed_file import encode

    if output.format == "json" and (sass or top != _TOP):
        raise UsageError("--sass, --top: JSON has all lines and instructions", "leave them out")
    report = read_report(path, kernel)
    checklist = report.checklist()
    slowest = report.kernel(report.summary.groups[0].typical.index)
    view = code = None
    with suppress(BadInput):
        view = slowest.source_view(checklist)
        code = slowest.code(view)
    inside = Inside(slowest.summary, slowest.timeline(), view, code)
    if output.format == "json":
        result = source_result(report.summary, inside, checklist)
        output.put(encode(result, indent=1, dense=False))
        return
    width = output.width
    document = source_document(report.summary, inside, checklist, top=top, sass=sass, width=width)
    output.lay_out(document)
