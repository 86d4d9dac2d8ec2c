"""Measured roofs, for people."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from profkit.roofline.ceilings import LABELS, Ceiling, Ceilings
from profkit.ui.markdown import escape
from profkit.ui.markdown import table_of as markdown_table
from profkit.ui.terminal import facts, rendered, table_of
from profkit.ui.text import literal, number, percent, plural
from profkit.ui.view import Grid, Panel, Row

_COLUMNS = ("Roof", "Rate", "Interval", "Of datasheet", "SM clock", "Steady", "Power")
_CAP = "software power cap"


def ceilings_terminal(ceilings: Ceilings, kept: Path | None, *, to_file: bool) -> str:
    """The roofs for a terminal; `kept` is the file in which they stay."""
    parts: list[RenderableType] = [
        Text(f"{literal(ceilings.gpu)}: what it really reaches", "bold"),
        table_of(_rates(ceilings), numbers=True),
        *(Text(line) for line in _notes(ceilings)),
        Text(),
        facts(_methods(ceilings)),
    ]
    found = warnings(ceilings)
    if found:
        parts += [Text(), *(Text(f"! {line}", "yellow") for line in found)]
    parts += [Text(), Text(f"Time  {ceilings.seconds:.1f} s")]
    if kept is not None:
        parts.append(Text(f"Kept  {kept}", overflow="fold"))
    return rendered(Group(*parts), to_file=to_file)


def ceilings_markdown(ceilings: Ceilings) -> str:
    """The roofs as Markdown."""
    lines = [f"# Measured roofs of {escape(ceilings.gpu)}", ""]
    lines += markdown_table(_rates(ceilings))
    lines += ["", *(escape(line) for line in _notes(ceilings)), ""]
    lines += [f"- {row.label}: {escape(row.value)}" for row in _methods(ceilings).rows]
    for warning in warnings(ceilings):
        lines += ["", f"> {escape(warning)}"]
    return "\n".join(lines) + "\n"


def warnings(ceilings: Ceilings) -> tuple[str, ...]:
    """What speaks against the roofs, and those that there are none of."""
    found = [
        f"{one.label}: impossible, {one.problem}" for one in ceilings.rates.values() if one.problem
    ]
    for one in ceilings.rates.values():
        reasons = dict.fromkeys((*one.throttled_by, *one.steady_throttled_by))
        held = [reason for reason in reasons if reason != _CAP]
        if held:
            found.append(f"{one.label}: the clock was held down ({', '.join(held)})")
        if one.doubtful:
            found.append(f"{one.label}: bursts were slower than a steady load, the clock rose late")
    if ceilings.neighbours:
        others = plural(ceilings.neighbours, "process")
        found.append(f"{others} of others on the GPU: roofs may be higher than these")
    left = [f"{LABELS[name]}: not measured, {why}" for name, why in ceilings.left_out.items()]
    return tuple(literal(line) for line in [*found, *left])


def _rates(ceilings: Ceilings) -> Grid:
    rows = tuple(
        (
            one.label,
            number(one.rate, one.unit),
            _interval(one),
            percent(one.share) + ("" if one.verified or math.isnan(one.share) else "?"),
            _whole(one.sm_clock / 1e6, "MHz"),
            _steady(one),
            _whole(one.steady_power, "W"),
        )
        for one in ceilings.rates.values()
    )
    return Grid("Rates", _COLUMNS, rows)


def _interval(one: Ceiling) -> str:
    """Half of the interval against the rate; ≈ where it claims no level."""
    if math.isnan(one.low):
        return "n/a"
    half = (one.high - one.low) / 2 / one.rate
    return f"{'≈' if math.isnan(one.level) else '±'}{half:.2%}"


def _steady(one: Ceiling) -> str:
    capped = " *" if _CAP in one.steady_throttled_by else ""
    return number(one.steady, one.unit) + capped


def _whole(value: float, unit: str) -> str:
    return "n/a" if math.isnan(value) else f"{value:.0f} {unit}"


def _notes(ceilings: Ceilings) -> Iterable[str]:
    rates = ceilings.rates.values()
    yield "Rate and clock are of short bursts, Steady and Power of a load that stays on."
    if any(_CAP in one.steady_throttled_by for one in rates):
        yield "* the power cap holds the clock down: a steady load of this kind gets no more."
    capped = [one.label for one in rates if _CAP in one.throttled_by]
    if capped:
        yield f"The power cap held the clock down in bursts too: {'; '.join(capped)}."
    if any(not one.verified and not math.isnan(one.peak) for one in rates):
        yield "? of a datasheet figure that nobody looked up."


def _methods(ceilings: Ceilings) -> Panel:
    rows = tuple(Row(one.label, literal(one.how)) for one in ceilings.rates.values())
    return Panel("How", rows)
