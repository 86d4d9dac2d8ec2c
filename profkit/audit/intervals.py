"""Claims about intervals: around their estimate, rightly labelled, apart, wider than a tick."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from profkit.audit.claims import SHAPE, Claim
from profkit.audit.contradiction import SLACK, Amount, Check, shown, statement
from profkit.audit.implied import Span, Subject
from profkit.core.distributions import binomial_above

if TYPE_CHECKING:
    from profkit.audit.printed_numbers import Figure

_TICKS = (1.024e-6, 0.5e-6)
_CHANCE = 1e-6
_NEARLY_ALL = 0.8


def interval(subject: Subject) -> Iterator[Check]:
    """An estimate lies in its interval."""
    claim = subject.claim
    if not (claim.low and claim.high) or "low" in subject.borrowed:
        return
    ends = f"[{shown(claim.low, 'low')}, {shown(claim.high, 'high')}]"
    if claim.low.low > claim.high.high:
        yield statement(subject, "interval", "low", ends, ("its lower end is above its upper",),
                         ("the ends the other way round",), used=("high",))  # fmt: skip
    elif claim.time is None:
        return
    elif claim.time.high < claim.low.low or claim.time.low > claim.high.high:
        side = "below" if claim.time.value < claim.low.value else "above"
        yield statement(
            subject, "interval", "time", shown(claim.time, "time"),
            (f"{shown(claim.time, 'time')} lies {side} its own interval {ends}",),
            (f"a value within {ends}, or another interval",),
            ("estimate and interval come from different samples, or one is mistyped",),
            used=("low", "high"),
        )  # fmt: skip
    else:
        yield Check("interval", ("time", "low", "high"), None)


def labelled_end(subject: Subject) -> Iterator[Check]:
    """What is called an end of an interval is that end of one in the study."""
    for field, end, other in (("upper_end", "high", "low"), ("lower_end", "low", "high")):
        claimed = getattr(subject.claim, field)
        rows = [row for row in subject.rows if row.low and row.high]
        if claimed is None or not rows:
            continue
        if any(_same(getattr(row, end), claimed) for row in rows):
            yield Check("interval end", (field,), None)
            continue
        row = next((row for row in rows if _same(getattr(row, other), claimed)), None)
        if row is None or row.low is None or row.high is None:
            continue
        name = "upper" if end == "high" else "lower"
        wrong = "lower" if end == "high" else "upper"
        yield statement(
            subject, "interval end", field, f"{shown(claimed, field)} as the {name} end",
            (f"{shown(claimed, field)} is the {wrong} end of "
             f"[{shown(row.low, 'low')}, {shown(row.high, 'high')}] ({row.where})",),
            (shown(getattr(row, end), end),), ("the ends were confused",),
        )  # fmt: skip


def _same(figure: Figure, claimed: Figure) -> bool:
    return Span.of(figure).allows(claimed, 0.0)


def apart(subject: Subject) -> Iterator[Check]:
    """Intervals tell alternatives apart, not different work; and whether they overlap is seen."""
    rows = [row for row in subject.rows if row.low and row.high]
    if subject.claim.apart is None or len(rows) < 2:
        return
    overlapping = [(one, other) for one, other in combinations(rows, 2) if _overlap(one, other)]
    different = len({tuple(getattr(row, name) for name in SHAPE) for row in rows}) > 1
    if not overlapping and not different:
        yield Check("overlap", ("apart",), None)
        return
    follows: tuple[str, ...] = ()
    if overlapping:
        one, other = overlapping[0]
        more = f", and {len(overlapping) - 1} more" if len(overlapping) > 1 else ""
        follows += (
            f"{_ends(one)} of {one.where} and {_ends(other)} of {other.where} overlap{more}",
        )
    if different:
        follows += (f"{'; ' if follows else ''}the intervals are of different shapes",)
    yield statement(
        subject, "overlap", "apart", "intervals that do not overlap", follows,
        ("intervals compared between alternatives for the same shape",),
        ("of different work, overlap says nothing: neither that results differ nor that they hold",)
        if different else (),
    )  # fmt: skip


def _overlap(one: Claim, other: Claim) -> bool:
    if not (one.low and one.high and other.low and other.high):
        return False
    return max(one.low.value, other.low.value) < min(one.high.value, other.high.value)


def _ends(row: Claim) -> str:
    return f"[{row.low.text if row.low else ''}, {row.high.text if row.high else ''}]"


def ticks(rows: Sequence[Claim]) -> dict[str, Check]:
    """For a study, by the first row whose interval is one tick of the timer wide."""
    own = [row for row in rows if row.low and row.high and row.time]
    tick = next((tick for tick in _TICKS if own and _on_grid(own, tick)), None)
    narrow = [row for row in own if tick and _one_tick(row, tick)]
    return {narrow[0].where: _narrow(narrow, tick)} if tick and narrow else {}


def _on_grid(rows: Sequence[Claim], tick: float) -> bool:
    """Whether nearly all times lie on the grid of a timer (half ticks too: a median of two), more
    of them than chance would have."""
    figures = [one for row in rows for one in (row.time, row.low, row.high) if one]
    times = {(figure.value, figure.half) for figure in figures}
    step = tick / 2
    on = sum(abs(value - round(value / step) * step) <= half for value, half in times)
    by_chance = max((min(1.0, 2 * half / step) for _, half in times), default=1.0)
    nearly_all = bool(times) and on >= _NEARLY_ALL * len(times)
    return nearly_all and binomial_above(on - 1, len(times), by_chance) < _CHANCE


def _one_tick(row: Claim, tick: float) -> bool:
    if not (row.low and row.high):
        return False
    width, hidden = row.high.value - row.low.value, row.high.half + row.low.half
    return abs(width - tick) <= hidden * (1 + SLACK)


def _narrow(rows: Sequence[Claim], tick: float) -> Check:
    first = rows[0]
    others = ", ".join(row.where for row in rows[1:])
    subject = Subject(first, ())
    return statement(
        subject, "timer tick", "low", f"an interval {_ends(first)}",
        ("nearly all times of the study lie on a grid of ", Amount(tick, "s"),
         ", and the interval is one step of it wide", f" (so in {others})" if others else ""),
        ("the interval widened by a tick, or calls grouped in one pair of events",),
        ("the timer ticks: what varies below a tick is not in these samples",),
        doubt=True, used=("high",),
    )  # fmt: skip
