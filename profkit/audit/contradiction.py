"""What an audit finds: a claim, the calculation that contradicts it, and what would be right."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from profkit.audit.printed_numbers import Figure

if TYPE_CHECKING:
    from profkit.audit.implied import Span, Subject

SLACK = 1e-3
PEAK_SLACK = 0.02
_CLOSE = 0.02
UNITS = {
    "flop": "FLOP", "bytes": "B", "intensity": "FLOP/B", "flop_rate": "FLOP/s", "byte_rate": "B/s",
    "flop_share": "1", "byte_share": "1", "share": "1", "flop_peak": "FLOP/s", "byte_peak": "B/s",
    "held_peak": "FLOP/s", "held_share": "1", "ridge": "FLOP/B", "time": "s", "baseline": "s",
    "low": "s", "high": "s", "lower_end": "s", "upper_end": "s",
    "flop_rate_low": "FLOP/s", "flop_rate_high": "FLOP/s", "held_clock": "Hz", "cycles": "",
    "factor": "x", "time_ratio": "x", "flop_ratio": "x", "exponent": "", "flop_exponent": "",
    "ratio_low": "x", "ratio_high": "x", "clock": "Hz",
    "l2_rate": "B/s", "shared_rate": "B/s", "link_rate": "B/s",
    "registers": "", "threads": "", "shared": "B", "occupancy": "1", "achieved_occupancy": "1",
    "resident_blocks": "", "resident_warps": "", "resident_threads": "", "grid_blocks": "",
    "sms": "", "waves": "", "token_rate": "tokens/s", "token_limit": "tokens/s", "tokens": "",
    "flop_per_token": "FLOP", "bytes_per_token": "B",
    "mean": "s", "deviation": "", "measure": "",
    "speedup": "x", "peak_ratio": "x", "advantage": "x",
}  # fmt: skip


@dataclass(frozen=True)
class Amount:
    """A quantity within words; `unit` is "1" for a share, "x" for a ratio."""

    value: float
    unit: str


Words = tuple[str | Amount, ...]


@dataclass(frozen=True)
class Contradiction:
    """A claim that the rest of what is claimed, or a datasheet, contradicts.

    `claimed` is as it was written. `follows` is the calculation, `cause` what likely went wrong
    (empty where nothing is known), `should_be` what would be right. `value` and `expected` are the
    same as numbers in `unit`, NaN where the claim is no number. A `doubt` is no contradiction:
    what is claimed may be right, but does not say what it seems to.
    """

    where: str
    text: str
    rule: str
    field: str
    claimed: str
    follows: Words
    cause: Words
    should_be: Words
    value: float = math.nan
    expected: float = math.nan
    unit: str = ""
    doubt: bool = False


@dataclass(frozen=True)
class Check:
    """A rule that could be held against a claim: the fields it used, and what it found."""

    rule: str
    used: tuple[str, ...]
    found: Contradiction | None


def check(
    subject: Subject,
    rule: str,
    field: str,
    expected: Sequence[Span],
    follows: Callable[[Span], Words],
    *,
    used: tuple[str, ...] = (),
    cause: Callable[[Span], Words] = lambda _: (),
    should_be: Callable[[Span], Words] | None = None,
    slack: float = SLACK,
    doubt: bool = False,
) -> Iterator[Check]:
    """A claimed field against what it should be, any of `expected`; nothing for a borrowed one."""
    claimed = getattr(subject.claim, field)
    if field in subject.borrowed or not isinstance(claimed, Figure) or not expected:
        return
    fields = (field, *used)
    if any(span.allows(claimed, slack) for span in expected):
        yield Check(rule, fields, None)
        return
    nearest = min(expected, key=lambda span: abs(math.log(span.value / claimed.value)))
    unit = UNITS[field]
    right = should_be(nearest) if should_be else (Amount(nearest.value, unit),)
    found = Contradiction(
        where=subject.claim.where,
        text=subject.claim.text,
        rule=rule,
        field=field,
        claimed=shown(claimed, field),
        follows=follows(nearest),
        cause=cause(nearest),
        should_be=right,
        value=claimed.value,
        expected=nearest.value,
        unit=unit,
        doubt=doubt,
    )
    yield Check(rule, fields, found)


def statement(
    subject: Subject, rule: str, field: str, claimed: str, follows: Words, should_be: Words,
    cause: Words = (), *, doubt: bool = False, used: tuple[str, ...] = (),
) -> Check:  # fmt: skip
    """A contradiction of what is no number."""
    claim = subject.claim
    found = Contradiction(
        claim.where, claim.text, rule, field, claimed, follows, cause, should_be, doubt=doubt
    )
    return Check(rule, (field, *used), found)


def shown(figure: Figure, field: str) -> str:
    return figure.text or f"{figure.value:.6g} {UNITS[field].strip('1')}".strip()


def near(ratio: float, factor: float) -> bool:
    return abs(ratio / factor - 1) < _CLOSE
