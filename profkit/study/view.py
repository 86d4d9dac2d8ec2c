"""A baseline in short: medians, the fastest backend of each shape, and missing cells."""

from collections.abc import Sequence, Set

from profkit.study.report_words import NONE, STATUS, digits, quantity
from profkit.study.summary import flagged_cells, unmeasured
from profkit.study.summary_format import BaselineFile, Contrast, Row, name_parts
from profkit.timing.results import Verdict
from profkit.ui import document as doc
from profkit.ui.text import number, percent, plural, shorten

_LONGEST_NAME = 30  # chosen: leaves six backends of 11 columns at 100
_NAMES = ("Shape",)


def baseline_document(summary: BaselineFile, folder: str, width: int) -> doc.Document:
    """The baseline in a terminal of that width."""
    title = "  ".join(name_parts(summary.target, summary.matrix))
    blocks: list[doc.Block] = [doc.Heading(title, 1), doc.Lines((_about(summary),))]
    timed = [row for row in summary.cells if row.is_timed]
    if timed:
        blocks += [_medians(summary, timed, width), _fastest(summary)]
    if left := _not_measured(summary.cells):
        lines = tuple(shorten(line, width) for line in left)
        blocks += [doc.Heading("Not measured"), doc.Lines(lines)]
    cautions = [
        f"{ids[0] if len(ids) == 1 else plural(len(ids), 'cell')}: {flag}"
        for flag, ids in flagged_cells(summary.cells).items()
    ]
    cautions += summary.notes
    marked = tuple(doc.in_style(f"! {line}", doc.Style.warning) for line in cautions)
    blocks += [doc.Lines(marked, gap=True)] if marked else []
    blocks.append(doc.Lines((f"Saved   {folder}",), gap=True))
    return doc.Document(title, tuple(blocks))


def _about(summary: BaselineFile) -> str:
    timed = sum(row.is_timed for row in summary.cells)
    unknown = "the CPU" if summary.options.device == "cpu" else "an unknown device"
    name = (summary.gpu and summary.gpu.name) or unknown
    several = f"{len(summary.gpus)} x " if summary.gpus and len(summary.gpus) > 1 else ""
    words = [f"{plural(timed, 'cell')} of {len(summary.cells)} on {several}{name}"]
    if summary.options.samples:
        words.append(f"{summary.options.samples} samples requested")
    if summary.seconds:
        words.append(f"{summary.seconds:.0f} s")
    return ", ".join(words)


def _medians(summary: BaselineFile, timed: Sequence[Row], width: int) -> doc.Table:
    """A row a shape, a column a backend, the fastest and those tied with it marked."""
    backends = list(dict.fromkeys(row.backend for row in timed))
    by_cell = {(row.shape, row.backend): row for row in timed}
    fastest = [best for best in summary.best if best.kind == "backend"]
    marked = {name for best in fastest for name in (best.id, *best.tied)}
    fits = max(1, (width - _LONGEST_NAME) // 11)
    rows = [
        (shape, *(_median(by_cell.get((shape, name)), marked) for name in backends[:fits]))
        for shape in dict.fromkeys(row.shape for row in timed)
    ]
    note = "*: the fastest, or tied with it (no verdict separates them)"
    if len(backends) > fits:
        note += f"; {', '.join(backends[fits:])}: in summary.json"
    return doc.Table("Medians", ("Shape", *backends[:fits]), tuple(rows), note, 1, names=_NAMES)


def _median(row: Row | None, best: Set[str]) -> str:
    return quantity(row.seconds, "s", row) + "*" * (row.id in best) if row else NONE


def _fastest(summary: BaselineFile) -> doc.Table:
    """The fastest of each shape, its rates, and its verdict against the reference backend."""
    cells = {row.id: row for row in summary.cells}
    contrasts = {(pair.shape, pair.b): pair for pair in summary.comparisons}
    references = {pair.a for pair in summary.comparisons}
    columns = ["Shape", "Fastest", "Median", "FLOP/s", "% of peak", "Regime"]
    if references:
        columns.append(f"vs {references.pop() if len(references) == 1 else 'its reference'}")
    rows = []
    for best in (best for best in summary.best if best.kind == "backend"):
        row = cells[best.id]
        others = ", ".join(name.removeprefix(f"{row.shape}.") for name in best.tied)
        fastest = (
            row.shape,
            row.backend
            + (f" ({row.chosen})" if row.chosen else "")
            + (f", tied: {others}" if others else ""),
            _with_interval(row),
            quantity(row.flop_rate or None, "FLOP/s", row),
            quantity(row.share_of_datasheet, "1"),
            row.regime or NONE,
            _verdict(contrasts.get((row.shape, row.backend))),
        )
        rows.append(fastest[: len(columns)])
    note = "% of peak: of the dense datasheet peak" if summary.datasheet else ""
    return doc.Table(
        "Fastest backend per shape", tuple(columns), tuple(rows), note, 1, names=_NAMES
    )


def _with_interval(row: Row) -> str:
    """The median and the half-width of its interval; `≈` one without a level."""
    seconds, low, high = row.seconds or 0.0, row.low, row.high
    if low is None or high is None:
        return f"{number(seconds, 's', digits(row))} (no interval)"
    half = max(high - seconds, seconds - low) / seconds
    sign = "≈" if row.level is None else "±"
    return f"{number(seconds, 's', digits(row))} {sign}{percent(half)}"


def _verdict(contrast: Contrast | None) -> str:
    """A verdict in short; the intervals are in summary.json."""
    if contrast is None:
        return NONE
    match contrast.verdict:
        case Verdict.IMPROVED:
            return f"{contrast.speedup:.2f}x faster"
        case Verdict.REGRESSED:
            return f"{1 / contrast.speedup:.2f}x slower"
        case verdict:
            return verdict.name


def _not_measured(rows: Sequence[Row]) -> list[str]:
    """Cells without measurements, a line per backend and reason."""
    everywhere, lines = len({row.shape for row in rows}), []
    for (backend, status, reason), shapes in unmeasured(rows).items():
        more = f" and {len(shapes) - 1} more" if len(shapes) > 1 else ""
        where = "all shapes" if len(shapes) == everywhere else f"{shapes[0]}{more}"
        lines.append(f"{backend}, {where}: {STATUS[status]} ({reason})")
    return lines
