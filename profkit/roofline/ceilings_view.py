"""Measured roofs, for people."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from profkit.roofline.ceiling_file import LABELS, CeilingFile, CeilingRow
from profkit.ui.markdown import escape
from profkit.ui.markdown import table_of as markdown_table
from profkit.ui.terminal import facts, note, rendered, table_of
from profkit.ui.text import literal, number, percent, plural
from profkit.ui.view import Grid, Panel, Row

_COLUMNS = ("Ceiling", "Rate", "Interval", "Of datasheet", "SM clock", "Steady", "Power")
_CAP = "software power cap"


def ceilings_terminal(ceilings: CeilingFile, path: Path | None, *, to_file: bool) -> str:
    """The roofs for a terminal; `path` is the file that they are saved in."""
    parts: list[RenderableType] = [
        Text(f"{literal(ceilings.gpu.name or '')}: measured ceilings", "bold"),
        table_of(_rates(ceilings), numbers=True),
        *map(Text, _notes(ceilings)),
        Text(),
        facts(Panel("Method", tuple(Row(*pair) for pair in _methods(ceilings)))),
    ]
    if lines := warnings(ceilings):
        parts += [Text(), *map(note, lines)]
    parts += [Text(), Text(f"Time  {ceilings.seconds:.1f} s")]
    if path is not None:
        parts.append(Text(f"Saved {path}", overflow="fold"))
    return rendered(Group(*parts), to_file=to_file)


def ceilings_markdown(ceilings: CeilingFile) -> str:
    """The roofs as Markdown."""
    lines = [f"# Measured ceilings of {escape(ceilings.gpu.name or '')}", ""]
    lines += markdown_table(_rates(ceilings))
    lines += ["", *map(escape, _notes(ceilings)), ""]
    lines += [f"- {label}: {escape(method)}" for label, method in _methods(ceilings)]
    lines += [f"\n> {escape(warning)}" for warning in warnings(ceilings)]
    return "\n".join(lines) + "\n"


def warnings(ceilings: CeilingFile) -> tuple[str, ...]:
    """Caveats of the ceilings, and those that could not be measured."""
    return tuple(map(literal, _warnings(ceilings)))


def _warnings(ceilings: CeilingFile) -> Iterator[str]:
    for row in ceilings.ceilings:
        if row.problem:
            yield f"{row.label}: impossible, {row.problem}"
    for row in ceilings.ceilings:
        reasons = dict.fromkeys((*row.throttled_by, *row.steady_throttled_by))
        if throttled := ", ".join(reason for reason in reasons if reason != _CAP):
            yield f"{row.label}: SM clock throttled ({throttled})"
        if row.doubtful:
            yield f"{row.label}: bursts slower than the steady load, the SM clock rose late"
    if ceilings.other_processes:
        others = plural(ceilings.other_processes, "other process")
        yield f"{others} on the GPU: actual ceilings may be higher"
    for name, reason in ceilings.left_out.items():
        yield f"{LABELS[name]}: not measured, {reason}"


def _rates(ceilings: CeilingFile) -> Grid:
    rows = tuple(
        (
            row.label,
            number(row.rate, row.unit),
            _interval(row),
            percent(row.share) + ("" if row.verified or math.isnan(row.share) else "?"),
            _whole(row.sm_clock / 1e6, "MHz"),
            number(row.steady, row.unit) + (" *" if _CAP in row.steady_throttled_by else ""),
            _whole(row.steady_power, "W"),
        )
        for row in ceilings.ceilings
    )
    return Grid("Rates", _COLUMNS, rows)


def _interval(row: CeilingRow) -> str:
    """Half of the interval against the rate; ≈ where no confidence level is stated."""
    if math.isnan(row.low):
        return "n/a"
    half = (row.high - row.low) / 2 / row.rate
    return f"{'≈' if math.isnan(row.level) else '±'}{half:.2%}"


def _whole(value: float, unit: str) -> str:
    return "n/a" if math.isnan(value) else f"{value:.0f} {unit}"


def _notes(ceilings: CeilingFile) -> Iterable[str]:
    rows = ceilings.ceilings
    yield "Rate and SM clock: short bursts. Steady rate and power: continuous load."
    if any(_CAP in row.steady_throttled_by for row in rows):
        yield "* SM clock limited by the power cap under continuous load."
    if capped := "; ".join(row.label for row in rows if _CAP in row.throttled_by):
        yield f"SM clock limited by the power cap in bursts too: {capped}."
    if any(not row.verified and not math.isnan(row.peak) for row in rows):
        yield "? share of an unverified datasheet figure."


def _methods(ceilings: CeilingFile) -> Iterable[tuple[str, str]]:
    return ((row.label, literal(row.method)) for row in ceilings.ceilings)
