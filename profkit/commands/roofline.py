"""`profkit roofline`: kernels under the roofs of their GPU, as numbers or as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from profkit.commands.groups import NumbersFormat, Output
from profkit.commands.kinds import Ceilings, Latencies, ReportFile
from profkit.commands.options import report_failures, written
from profkit.core.errors import NothingMatches, ProfkitError, UsageError
from profkit.ui.picture import PICTURES, check_picture

if TYPE_CHECKING:
    from profkit.analysis.report import Report
    from profkit.capture.correctness import Shapes
    from profkit.roofline.roofline import Roofline


class _Row(NamedTuple):
    """A report's roofline; `shapes` are those that its target names."""

    path: Path
    shapes: Shapes
    roofline: Roofline


def roofline(
    paths: list[ReportFile],
    *,
    level: Literal["dram", "l2", "l1", "all"] = "all",
    precision: str | None = None,
    peaks: Literal["held", "datasheet", "measured"] = "held",
    ceilings: Ceilings | None = None,
    latency: Latencies | None = None,
    kernel: str | None = None,
    table: bool = False,
    output: Output[NumbersFormat],
) -> None:
    """Place kernels on their GPU's roofline, as numbers or a plot.

    Each kernel is a point per memory level: its arithmetic intensity there, and its rate. Timed
    latencies of a run replace ncu's durations. Arrows connect two reports, before to after.

    Arguments:
      paths (FILE...): Reports (.ncu-rep, .ncu-repz), runs, or folders of them.

    Options:
      level: Memory level whose traffic is counted
      precision (NAME): fp32, tensor_fp16, ... or all (default: the one nearest to its roof).
      peaks: Roofs at the measured SM clock, of the datasheet, or of `profkit ceilings`
      ceilings (FILE): Measured ceilings, instead of those saved of this GPU (`profkit ceilings`).
      latency (FILE): Timed latencies (file or run), instead of those of the report's own run.
      table: Also print the numbers when a plot is written.
      format: Format of the numbers
      file (-o, --output FILE): A plot (.png, .svg, .pdf), or a file for the numbers.

    Examples:
      profkit roofline reports/sdpa_s512
      profkit roofline run.ncu-rep --kernel flash --level dram -o roofline.png
      profkit roofline before.ncu-rep after.ncu-rep --table -o change.svg
    """
    from profkit.analysis.run_files import variants_of
    from profkit.commands.reading import find_reports, read_report
    from profkit.roofline.roofline import known_names
    from profkit.roofline.roofline_view import rooflines_document, rooflines_result
    from profkit.roofline.roofs import LEVELS

    if ceilings is not None and peaks != "measured":
        raise UsageError("--ceilings: only for measured roofs", "add --peaks measured")
    file, is_terminal = output.file, output.format == "terminal"
    picture = file if file and (file.suffix in PICTURES or is_terminal) else None
    if picture is not None:
        check_picture(picture)
    levels = LEVELS if level == "all" else (level,)
    known_names(peaks, levels, precision)
    files, failures = find_reports(paths)
    rows: list[_Row] = []
    for file in files:
        try:
            report = read_report(file)
            roofs = report.roofline(
                peaks=peaks,
                measured=_measured(ceilings, report) if peaks == "measured" else None,
                latency=latency,
                levels=levels,
                precision=precision,
                kernel=kernel,
            )
        except ProfkitError as error:
            failures.append(error)
        else:
            variants = variants_of(file)
            rows.append(_Row(file, variants.shapes if variants else {}, roofs))
    if rows:
        failures = [error for error in failures if not isinstance(error, NothingMatches)]
        if picture is not None:
            with written(picture, force=output.force) as temporary:
                _plot(rows, temporary)
        if picture is None or table or output.format != "terminal":
            rooflines = [row.roofline for row in rows]
            replace(output, file=None if picture else output.file).show(
                rooflines_result(rooflines),
                lambda: rooflines_document(rooflines, brief=output.format == "terminal"),
            )
    report_failures(failures)


def _measured(ceilings: Path | None, report: Report) -> Mapping[str, float]:
    """Measured roofs by name: those of the file, or those saved of the report's GPU.

    Raises EnvironmentProblem where none are saved of it, UsageError for those of another GPU.
    """
    from msgspec import structs

    from profkit.analysis.run_files import latencies_of
    from profkit.calibration.ceilings import find_ceilings, read_ceilings, unfit
    from profkit.core.fingerprint import Device

    saved = latencies_of(report.path)
    timed = next((row.gpu for row in saved.latencies if row.gpu), None) if saved else None
    gpu = structs.replace(timed or Device(), name=report.gpu.name)
    measured = read_ceilings(ceilings) if ceilings else find_ceilings(gpu)
    reasons = unfit(measured, gpu)
    if reasons:
        raise UsageError(
            f"{ceilings}: not the ceilings of this GPU ({reasons[0]})", "measure them on it"
        )
    return measured.plain


def _differing(rows: Sequence[_Row]) -> list[str]:
    """The names of the shapes that are not the same in all reports."""
    names = dict.fromkeys(name for row in rows for name in row.shapes)
    return [name for name in names if len({str(row.shapes.get(name)) for row in rows}) > 1]


def _plot(rows: Sequence[_Row], picture: Path) -> None:
    from profkit.roofline.plot import plot_rooflines

    title, labels = _labels(rows)
    rooflines = [row.roofline for row in rows]
    plot_rooflines(rooflines, picture, title=title, labels=labels, arrows=len(rows) == 2)


def _labels(rows: Sequence[_Row]) -> tuple[str, tuple[str, ...]]:
    """What the reports have in common, and what distinguishes them: shapes, or names."""
    stems = tuple(row.path.stem for row in rows)
    if len(rows) == 1:
        return stems[0], ()
    parents = tuple(row.path.resolve().parent.name for row in rows)
    title = stems[0] if len(set(stems)) == 1 else parents[0]
    if differing := _differing(rows):
        shapes = ([f"{name}={row.shapes.get(name)}" for name in differing] for row in rows)
        return title, tuple(map(" ".join, shapes))
    return title, stems if len(set(stems)) == len(stems) else parents
