"""Estimates passes without NVIDIA's library, from a table of passes and counters made with it.

`pass_table.json` is written by `kernels/pass_table.py`; chips with the same counters are a family.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec

from profkit.capture.sections import set_sections
from profkit.core.text_files import shipped_text

SASS = "sass"
"""The part of a chip that counters of patched machine code are of."""

_UNLISTED = 0.5  # passes of a metric that the table doesn't have, chosen: most pairs of metrics fit


@dataclass(frozen=True)
class _Family:
    """Chips with the same counters: parts with the shares of a pass that a counter takes, beside
    others of its unit and at least; the part of each counter, the counters of each metric, and the
    passes of sections and sets."""

    parts: Sequence[tuple[str, float, float]]
    counters: Sequence[int]
    metrics: Mapping[str, Sequence[int]]
    named: Mapping[str, int]


def estimated(
    chip: str, questions: Sequence[tuple[Sequence[str], Sequence[Sequence[str]]]]
) -> dict[str, Any]:
    """Schedules of lists of metrics and of groups sampled over time, as the library answers."""
    family = _family(chip)
    names = {name for hardware, _ in questions for name in hardware}
    return {
        "schedules": [_schedule(family, hardware, groups) for hardware, groups in questions],
        "unknown": [name for name in names if name in _listed() and name not in family.metrics],
    }


def named(chip: str, sections: Iterable[str]) -> int | None:
    """The passes of a section or a set of ncu's; None for any other list."""
    wanted = set(sections)
    key = next((key for key, names in set_sections().items() if set(names) == wanted), None)
    if key is None and len(wanted) == 1:
        key = wanted.pop()
    return _family(chip).named.get(key or "")


def _schedule(
    family: _Family, hardware: Iterable[str], groups: Iterable[Sequence[str]]
) -> dict[str, int]:
    passes, patched = _passes(family, hardware)
    over_time = (max(1, _passes(family, group)[0]) for group in groups)
    return {"hardware": passes, "patched": patched, "sampled": sum(over_time)}


def _passes(family: _Family, metrics: Iterable[str]) -> tuple[int, int]:
    """Passes of the fullest part of the chip, and counters of patched machine code."""
    names = set(metrics)
    numbers = {number for name in names for number in family.metrics.get(name, ())}
    counts = Counter(family.counters[number] for number in numbers)
    shares: dict[str, float] = defaultdict(float)
    shares["sm"] = _UNLISTED * len(names - _listed())
    fullest, patched = 0.0, 0
    for part, count in counts.items():
        unit, beside, least = family.parts[part]
        if unit == SASS:
            patched += count
        else:
            shares[unit] += count * beside
            fullest = max(fullest, count * least)
    return math.ceil(max(fullest, *shares.values())), patched


@cache
def _family(chip: str) -> _Family:
    rows = _document()["families"]
    row = next((row for row in rows if chip in row["chips"]), None)
    if row is None:
        return _Family((), (), {}, {})
    metrics = {
        name: [int(number) for number in text.split(",") if number]
        for name, text in zip(
            _document()["metrics"].split(), row["metrics"].split(";"), strict=True
        )
        if text != "-"
    }
    return _Family(row["parts"], row["counters"], metrics, row["named"])


@cache
def _listed() -> frozenset[str]:
    return frozenset(_document()["metrics"].split())


@cache
def _document() -> Any:
    return msgspec.json.decode(shipped_text("profkit.capture", "pass_table.json"))
