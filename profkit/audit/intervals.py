"""Claims about intervals: around their estimate, rightly labelled, apart, wider than a tick."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

from profkit.audit.claim import Claim
from profkit.audit.contradiction import SLACK, Check, shown, statement
from profkit.audit.implied import Subject
from profkit.audit.printed_numbers import Figure
from profkit.audit.span import Span, amount
from profkit.core.distributions import binomial_above

_TICKS = (1.024e-6, 0.5e-6)
_CHANCE = 1e-6
_NEARLY_ALL = 0.8


def interval(subject: Subject) -> Iterator[Check]:
    """An estimate lies in its interval."""
    low, high, time = (subject.claim[name] for name in ("low", "high", "time"))
    if not (low and high) or "low" in subject.borrowed:
        return
    ends = _ends(subject.claim)
    if low.low > high.high:
        yield statement(
            subject, "interval", "low", ends, "its lower end is above its upper",
            "the ends the other way round", used=("high",),
        )  # fmt: skip
    elif time:
        side = "below" if time.value < low.value else "above"
        yield statement(
            subject, "interval", "time", shown(time, "time"),
            f"{shown(time, 'time')} lies {side} its own interval {ends}",
            f"a value within {ends}, or another interval",
            "estimate and interval come from different samples, or one is mistyped",
            wrong=time.high < low.low or time.low > high.high, used=("low", "high"),
        )  # fmt: skip


def _ends(row: Claim) -> str:
    ends = [shown(figure, name) for name in ("low", "high") if (figure := row[name])]
    return f"[{', '.join(ends)}]"


def labelled_end(subject: Subject) -> Iterator[Check]:
    """What is called an end of an interval is that end of one in the study."""
    for name, end, wrong, other in (
        ("upper", "high", "lower", "low"), ("lower", "low", "upper", "high"),
    ):  # fmt: skip
        field = f"{name}_end"
        claimed = subject.claim[field]
        if claimed is None:
            continue
        rows = _with_interval(subject.rows)
        right = any(_same(row, end, claimed) for row in rows)
        row = next((row for row in rows if right or _same(row, other, claimed)), None)
        if row and (figure := row[end]):
            yield statement(
                subject, "interval_end", field, f"{shown(claimed, field)} as the {name} end",
                f"{shown(claimed, field)} is the {wrong} end of {_ends(row)} ({row.where})",
                shown(figure, end), "the ends were confused", wrong=not right,
            )  # fmt: skip


def _with_interval(rows: Sequence[Claim]) -> list[Claim]:
    return [row for row in rows if row["low"] and row["high"]]


def _same(row: Claim, end: str, claimed: Figure) -> bool:
    figure = row[end]
    return figure is not None and Span.of(figure).allows(claimed)


def apart(subject: Subject) -> Iterator[Check]:
    """Intervals tell alternatives apart, not different work; and whether they overlap is seen."""
    rows = _with_interval(subject.rows) if subject.claim.apart is not None else []
    if len(rows) < 2:
        return
    overlapping = [(one, other) for one, other in combinations(rows, 2) if _overlap(one, other)]
    different = len({row.shape for row in rows}) > 1
    follows = []
    if overlapping:
        one, other = overlapping[0]
        more = f", and {len(overlapping) - 1} more" if len(overlapping) > 1 else ""
        follows.append(
            f"{_ends(one)} of {one.where} and {_ends(other)} of {other.where} overlap{more}"
        )
    if different:
        follows.append("the intervals are of different shapes")
    yield statement(
        subject, "overlap", "apart", "intervals that do not overlap", "; ".join(follows),
        "intervals compared between alternatives for the same shape",
        "of different work, overlap says nothing: neither that results differ nor that they hold"
        if different else "", wrong=bool(follows),
    )  # fmt: skip


def _overlap(one: Claim, other: Claim) -> bool:
    ends = [(row["low"], row["high"]) for row in (one, other)]
    low = max(low.value for low, _ in ends if low)
    return low < min(high.value for _, high in ends if high)


def timer_tick(subject: Subject) -> Iterator[Check]:
    """Of the first row of a study whose interval is one tick of the timer wide."""
    if subject.claim.text or not any(_one_tick(subject.claim, tick) for tick in _TICKS):
        return
    own = [row for row in _with_interval(subject.rows) if row["time"]]
    tick = next((tick for tick in _TICKS if own and _on_grid(own, tick)), math.nan)
    narrow = [row for row in own if _one_tick(row, tick)]
    if narrow and narrow[0] is subject.claim:
        others = ", ".join(row.where for row in narrow[1:])
        yield statement(
            subject, "timer_tick", "low", f"an interval {_ends(subject.claim)}",
            f"nearly all times of the study lie on a grid of {amount(tick, 's')}, and the interval "
            f"is one step of it wide{f' (so in {others})' if others else ''}",
            "the interval widened by a tick, or calls grouped in one pair of events",
            "the timer ticks: what varies below a tick is not in these samples",
            doubt=True, used=("high",),
        )  # fmt: skip


def _on_grid(rows: Sequence[Claim], tick: float) -> bool:
    """Whether nearly all times lie on the grid of a timer (half ticks too: a median of two), more
    of them than chance would have."""
    figures = [row[name] for row in rows for name in ("time", "low", "high")]
    times = {(figure.value, figure.half) for figure in figures if figure}
    step = tick / 2
    on = sum(abs(value - round(value / step) * step) <= half for value, half in times)
    by_chance = max(min(1.0, 2 * half / step) for _, half in times)
    return (
        on >= _NEARLY_ALL * len(times) and binomial_above(on - 1, len(times), by_chance) < _CHANCE
    )


def _one_tick(row: Claim, tick: float) -> bool:
    low, high = row["low"], row["high"]
    if not (low and high):
        return False
    return abs(high.value - low.value - tick) <= (high.half + low.half) * (1 + SLACK)
