"""Claims about intervals, means, growth and changes."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from msgspec.structs import replace

from profkit.audit.check import Check, Span, amount
from profkit.audit.claim import Change, Claim
from profkit.audit.printed_numbers import Figure
from profkit.audit.subject import SLACK, Subject, figure_words
from profkit.core.distributions import binomial_above

_TICKS = (1.024e-6, 0.5e-6)
_CHANCE = 1e-6  # chosen: the probability of a false alarm per study
_NEARLY_ALL = 0.8  # chosen: a few times of other calls may be among them
# Ratios are rounded in prose: 2.3x for 2.25, "about" by a tenth; percentages by a point.
_SLACK = 0.03
_HEDGED = 0.1  # "about", as above
_POINT = 0.01  # of a percentage, as above
_POINTS_HEDGED = 0.05  # chosen: "about 40%" is rounded to tens


def interval(subject: Subject) -> Iterator[Check]:
    """An estimate lies in its interval."""
    low, high, time = (subject.claim[name] for name in ("low", "high", "time"))
    if not (low and high) or "low" in subject.borrowed:
        return
    ends = _ends(subject.claim)
    if low.low > high.high:
        yield subject.statement(
            "interval", "low", ends, "its lower end is above its upper end",
            "the ends swapped", used=("high",),
        )  # fmt: skip
    elif time:
        side, estimate = "below" if time.value < low.value else "above", figure_words(time, "time")
        yield subject.statement(
            "interval", "time", estimate, f"{estimate} is {side} its own interval {ends}",
            f"a value within {ends}, or another interval",
            "estimate and interval of different samples, or a typo",
            wrong=time.high < low.low or time.low > high.high, used=("low", "high"),
        )  # fmt: skip


def _ends(row: Claim) -> str:
    ends = [figure_words(figure, name) for name in ("low", "high") if (figure := row[name])]
    return f"[{', '.join(ends)}]"


def labeled_end(subject: Subject) -> Iterator[Check]:
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
            words = figure_words(claimed, field)
            yield subject.statement(
                "interval_end", field, f"{words} as the {name} end",
                f"{words} is the {wrong} end of {_ends(row)} ({row.where})",
                figure_words(figure, end), "lower and upper end swapped", wrong=not right,
            )  # fmt: skip


def _with_interval(rows: Sequence[Claim]) -> list[Claim]:
    return [row for row in rows if row["low"] and row["high"]]


def _same(row: Claim, end: str, claimed: Figure) -> bool:
    figure = row[end]
    return figure is not None and Span.around(figure).allows(claimed)


def disjoint(subject: Subject) -> Iterator[Check]:
    """Intervals tell alternatives apart, not different work; and whether they overlap is seen."""
    rows = _with_interval(subject.rows) if subject.claim.apart is not None else []
    if len(rows) < 2:
        return
    overlapping = [pair for pair in combinations(rows, 2) if _overlap(pair)]
    different = len({row.shape for row in rows}) > 1
    follows = []
    if overlapping:
        first, second = overlapping[0]
        more = f", and {len(overlapping) - 1} more" if len(overlapping) > 1 else ""
        follows.append(
            f"{_ends(first)} of {first.where} and {_ends(second)} of {second.where} overlap{more}"
        )
    if different:
        follows.append("the intervals are of different shapes")
    yield subject.statement(
        "overlap", "apart", "intervals that do not overlap", "; ".join(follows),
        "intervals of alternatives for the same shape",
        "for different work, overlap or its absence shows nothing"
        if different else "", wrong=bool(follows),
    )  # fmt: skip


def _overlap(pair: tuple[Claim, Claim]) -> bool:
    low = max(figure.value for row in pair if (figure := row["low"]))
    return low < min(figure.value for row in pair if (figure := row["high"]))


def timer_tick(subject: Subject) -> Iterator[Check]:
    """Of the first row of a study whose interval is one tick of the timer wide."""
    if subject.claim.text or not any(_one_tick(subject.claim, tick) for tick in _TICKS):
        return
    own = [row for row in _with_interval(subject.rows) if row["time"]]
    tick = next((tick for tick in _TICKS if own and _on_grid(own, tick)), math.nan)
    narrow = [row for row in own if _one_tick(row, tick)]
    if narrow and narrow[0] is subject.claim:
        others = ", ".join(row.where for row in narrow[1:])
        yield subject.statement(
            "timer_tick", "low", f"an interval {_ends(subject.claim)}",
            f"nearly all times of the study are multiples of {amount(tick, 's')}, and the interval "
            f"is one step wide{f' (also in {others})' if others else ''}",
            "an interval inflated by the timer resolution, or several calls per pair of events",
            "timer resolution: the samples don't show variation below it",
            doubt=True, used=("high",),
        )  # fmt: skip


def _on_grid(rows: Sequence[Claim], tick: float) -> bool:
    """Whether nearly all times lie on the grid of a timer (half ticks too: a median of two), more
    of them than chance would have."""
    figures = [row[name] for row in rows for name in ("time", "low", "high")]
    times = {(figure.value, figure.half) for figure in figures if figure}
    step = tick / 2
    count = sum(abs(value - round(value / step) * step) <= half for value, half in times)
    chance = max(min(1.0, 2 * half / step) for _, half in times)
    expected = count >= _NEARLY_ALL * len(times)
    return expected and binomial_above(count - 1, len(times), chance) < _CHANCE


def _one_tick(row: Claim, tick: float) -> bool:
    low, high = row["low"], row["high"]
    if not (low and high):
        return False
    return abs(high.value - low.value - tick) <= (high.half + low.half) * (1 + SLACK)


def changes(subject: Subject) -> Iterator[Check]:
    """A factor or a percentage between two quantities is their quotient."""
    for change in subject.claim.changes:
        small, large = (
            Span.around(figure, change.kind)
            for figure in sorted((change.first, change.second), key=lambda figure: figure.value)
        )
        ratio = large.over(small, "x")
        less = Span(1 - 1 / ratio.value, 1 - 1 / ratio.low, 1 - 1 / ratio.high)
        more = Span(ratio.value - 1, ratio.low - 1, ratio.high - 1)
        expected = {"times": ratio, "less": less}.get(change.meaning, more)
        words, cause = ratio.calculation, ""
        if change.meaning != "times":
            which = "less" if change.meaning == "less" else "more"
            words += f", i.e. {amount(expected.value, '1')} {which}"
        if change.meaning == "worth" and _fits(change, less):
            cause = "this is the reduction in time, not the gain in speed"
        yield subject.statement(
            "change", "changes", change.claimed.text, words,
            amount(expected.value, "1" if change.claimed.text.endswith("%") else "x"), cause,
            wrong=not _fits(change, expected), doubt=bool(cause),
            used=("speedup", "peak_ratio", "advantage"),
        )  # fmt: skip


def _fits(change: Change, span: Span) -> bool:
    claimed, slack, points = change.claimed, _HEDGED if change.hedged else _SLACK, 0.0
    if claimed.text.endswith("%"):
        points = _POINTS_HEDGED if change.hedged else _POINT
    low, high = span.low * (1 - slack) - points, span.high * (1 + slack) + points
    return claimed.low <= high and claimed.high >= low


def exponents(subject: Subject) -> Iterator[Check]:
    """The exponent of a growth is the logarithm of its ratio to the base of the factor."""
    for factor in subject.spans("factor"):
        for field, growth in (("exponent", "time_ratio"), ("flop_exponent", "flop_ratio")):
            spans = [
                Span.exactly(
                    math.log(ratio.value) / math.log(factor.value), "",
                    f"log({ratio.value:.6g}) / log({factor.value:.6g})",
                    ("factor", "time_ratio", "flop_ratio"),
                )
                for ratio in subject.spans(growth)
                if ratio.value > 1 and factor.value > 1
            ]  # fmt: skip
            right = (f"{span.value:.4g}" for span in spans)
            yield from subject.check("exponent", field, spans, should_be=next(right, ""))


def means(subject: Subject) -> Iterator[Check]:
    """Mean and median are at most a standard deviation apart, whatever the distribution."""
    mean, median, deviation = (subject.claim[name] for name in ("mean", "time", "deviation"))
    if not (mean and median and deviation):
        return
    wide = mean.value * deviation.value
    words = (f"mean and median, {amount(median.value, 's')}, differ by at most a standard "
             f"deviation, {amount(wide, 's')}")  # fmt: skip
    span = _within(mean, median.value - wide, median.value + wide, "s", words)
    yield from subject.check("mean", "mean", [replace(span, used=("time", "deviation"))])


def _within(figure: Figure, low: float, high: float, unit: str, words: str) -> Span:
    """An interval; what lies outside should be at its nearer end."""
    return Span(min(max(figure.value, low), high), low, high, unit, words)


def outer_intervals(subject: Subject) -> Iterator[Check]:
    """Every interval of a median holds it."""
    ends = subject.claim.outer_ends
    for time in subject.spans("time"):
        for low, high in zip(ends[::2], ends[1::2], strict=True):
            yield subject.statement(
                "interval", "outer_ends", f"{low.text} to {high.text}",
                f"an interval of the median contains it, {time}", f"an interval around {time}",
                wrong=not low.value <= time.value <= high.value, used=time.used,
            )  # fmt: skip


def ratio_interval(subject: Subject) -> Iterator[Check]:
    """A speedup lies in its own interval."""
    speedup, ends = subject.claim["speedup"], ("ratio_low", "ratio_high")
    low, high = (subject.claim[name] for name in ends)
    if not (speedup and low and high):
        return
    if low.value > high.value:
        yield subject.statement(
            "interval", "speedup", speedup.text,
            f"its interval's upper end {high.value:.4g} is below its lower end {low.value:.4g}",
            f"an interval around {amount(speedup.value, 'x')}", used=ends,
        )  # fmt: skip
        return
    words = f"its own interval is from {amount(low.value, 'x')} to {amount(high.value, 'x')}"
    span = _within(speedup, low.value, high.value, "x", words)
    yield from subject.check("interval", "speedup", [replace(span, used=ends)])


def quotients_of_cells(subject: Subject, cells: Mapping[str, Claim]) -> Iterator[Check]:
    """What repeats a cell of the record, or is the quotient of two, is that."""
    claim = subject.claim
    names = [name for name in claim.sources if name in cells]
    figures = [cells[name][claim.measure_of or "time"] for name in names]
    spans = [Span.around(figure) for figure in figures if figure]
    if not spans or len(spans) < len(claim.sources):
        return
    field, span, words = "measure", spans[0], " / ".join(claim.sources)
    if len(spans) > 1:
        field, span, words = "time_ratio", span.over(spans[1], "x"), f"the times of {words}"
    yield from subject.check("record", field, [replace(span, calculation=words)])
