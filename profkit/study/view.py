"""A baseline for a terminal: medians, the fastest backend of each shape, and missing cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from rich.console import Group, RenderableType
from rich.text import Text

from profkit.study.plan_format import PlanFile
from profkit.study.report_words import STATUS, bare_digits, digits
from profkit.study.summary import Baseline, Contrast, Row, flagged_cells, unmeasured
from profkit.timing.latency_view import ENERGY_COLUMNS, ENERGY_NOTE, energy_words
from profkit.timing.results import Verdict
from profkit.ui.terminal import console, rendered, table_of
from profkit.ui.text import literal, number, percent, plural, shorten
from profkit.ui.view import Grid

_NONE = "-"
_LONGEST_NAME = 30  # chosen: leaves six backends of 11 columns at 100
_SHAPES_IN_A_LIST = 1  # chosen: one line per backend and reason


def baseline_terminal(
    baseline: Baseline, plan: PlanFile, folder: str, *, to_file: bool = False
) -> str:
    """The baseline for a terminal."""
    width = console(to_file=to_file).width
    heading = literal("  ".join(plan.name_parts))
    parts: list[RenderableType] = [Text(heading, "bold"), Text(_about(baseline, plan))]
    if any(row.is_timed for row in baseline.rows):
        parts += [
            table_of(_medians(baseline, width), numbers=True),
            table_of(_fastest(baseline), numbers=True),
        ]
    if any(row.energy for row in baseline.rows):
        parts.append(table_of(_energy(baseline), numbers=True))
    left = list(_not_measured(baseline))
    if left:
        parts += [Text(), Text("Not measured", "bold")]
        parts += [Text(shorten(line, width)) for line in left]
    flags = list(_flags(baseline))
    if flags:
        parts.append(Text())
    parts += [Text(f"! {line}", "yellow") for line in (*flags, *baseline.notes)]
    parts += [Text(), Text(f"Saved   {literal(folder)}")]
    return rendered(Group(*parts), to_file=to_file)


def _about(baseline: Baseline, plan: PlanFile) -> str:
    counts = baseline.counts
    timed = sum(row.is_timed for row in baseline.rows)
    device = (plan.measured_on and plan.measured_on.device) or plan.asked.device
    unknown = "the CPU" if device == "cpu" else "an unknown device"
    name = (plan.gpu and plan.gpu.name) or unknown
    several = f"{len(plan.gpus)} x " if plan.gpus and len(plan.gpus) > 1 else ""
    words = [f"{plural(timed, 'cell')} of {sum(counts.values())} on {several}{literal(name)}"]
    if plan.asked.samples:
        words.append(f"{plan.asked.samples} samples requested")
    if plan.seconds:
        words.append(f"{plan.seconds:.0f} s")
    return ", ".join(words)


def _medians(baseline: Baseline, width: int) -> Grid:
    """A row a shape, a column a backend, the fastest and those tied with it marked."""
    timed = [row for row in baseline.rows if row.is_timed]
    backends = list(dict.fromkeys(row.backend for row in timed))
    by_cell = {(row.shape, row.backend): row for row in timed}
    fastest = [best for best in baseline.best if best.kind == "backend"]
    marked = {name for best in fastest for name in (best.id, *best.tied)}
    fits = max(1, (width - _LONGEST_NAME) // 11)
    shown = backends[:fits]
    rows = tuple(
        (
            shorten(literal(shape), _LONGEST_NAME),
            *(_median(by_cell.get((shape, name)), marked) for name in shown),
        )
        for shape in dict.fromkeys(row.shape for row in timed)
    )
    note = "*: the fastest, or tied with it (no verdict separates them)"
    if len(backends) > fits:
        note += f"; {', '.join(backends[fits:])}: in summary.json"
    return Grid("Medians", ("Shape", *map(literal, shown)), rows, note)


def _median(row: Row | None, best: Set[str]) -> str:
    if row is None or row.seconds is None:
        return _NONE
    return number(row.seconds, "s", bare_digits(row)) + ("*" if row.id in best else "")


def _fastest(baseline: Baseline) -> Grid:
    """The fastest of each shape, its rates, and its verdict against the reference backend."""
    rows = {row.id: row for row in baseline.rows}
    contrasts = {(pair.shape, pair.b): pair for pair in baseline.comparisons}
    references = {pair.a for pair in baseline.comparisons}
    reference = references.pop() if len(references) == 1 else "its reference" * bool(references)
    fastest = [
        _fastest_row(rows[best.id], best.tied, contrasts.get((best.where["shape"], best.backend)))
        for best in baseline.best
        if best.kind == "backend"
    ]
    columns = ("Shape", "Fastest", "Median", "FLOP/s", "% of peak", "Regime", f"vs {reference}")
    return Grid(
        "Fastest backend per shape",
        columns if reference else columns[:-1],
        tuple(row if reference else row[:-1] for row in fastest),
        "% of peak: of the dense datasheet peak" if baseline.datasheet else "",
    )


def _fastest_row(row: Row, tied: Sequence[str], contrast: Contrast | None) -> tuple[str, ...]:
    others = [name.removeprefix(f"{row.shape}.") for name in tied]
    return (
        shorten(literal(row.shape), _LONGEST_NAME),
        literal(row.backend)
        + (f" ({literal(row.chosen)})" if row.chosen else "")
        + (f", tied: {literal(', '.join(others))}" if others else ""),
        _with_interval(row),
        number(row.flop_rate, "FLOP/s", bare_digits(row)) if row.flop_rate else _NONE,
        _share(row),
        row.regime or _NONE,
        _verdict(contrast),
    )


def _energy(baseline: Baseline) -> Grid:
    """A row a cell whose energy was measured."""
    rows = tuple(
        (
            shorten(literal(row.shape), _LONGEST_NAME),
            literal(row.backend),
            *energy_words(row.energy),
        )
        for row in baseline.rows
        if row.energy
    )
    return Grid("Energy", ("Shape", "Backend", *ENERGY_COLUMNS), rows, ENERGY_NOTE)


def _with_interval(row: Row) -> str:
    """The median and the half-width of its interval; `≈` one without a level."""
    seconds, low, high = row.seconds or 0.0, row.low, row.high
    if low is None or high is None:
        return f"{number(seconds, 's', digits(row))} (no interval)"
    half = max(high - seconds, seconds - low) / seconds
    sign = "≈" if row.level is None else "±"
    return f"{number(seconds, 's', digits(row))} {sign}{percent(half)}"


def _share(row: Row) -> str:
    return _NONE if row.share_of_datasheet is None else percent(row.share_of_datasheet)


def _verdict(contrast: Contrast | None) -> str:
    """A verdict in short; the intervals are in summary.json."""
    if contrast is None:
        return _NONE
    match contrast.verdict:
        case Verdict.IMPROVED:
            return f"{contrast.speedup:.2f}x faster"
        case Verdict.REGRESSED:
            return f"{1 / contrast.speedup:.2f}x slower"
        case verdict:
            return verdict.name


def _not_measured(baseline: Baseline) -> Iterator[str]:
    """Cells without measurements, by backend and reason."""
    everywhere = len({row.shape for row in baseline.rows})
    for (backend, status, reason), shapes in unmeasured(baseline.rows).items():
        where = "all shapes" if len(shapes) == everywhere else ", ".join(shapes[:_SHAPES_IN_A_LIST])
        if _SHAPES_IN_A_LIST < len(shapes) < everywhere:
            where += f" and {len(shapes) - _SHAPES_IN_A_LIST} more"
        yield literal(f"{backend}, {where}: {STATUS[status]} ({reason})")


def _flags(baseline: Baseline) -> Iterator[str]:
    """Caveats, each with its cells."""
    for flag, cells in flagged_cells(baseline.rows).items():
        where = cells[0] if len(cells) == 1 else plural(len(cells), "cell")
        yield literal(f"{where}: {flag}")
