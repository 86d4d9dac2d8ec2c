"""How many replay passes ncu takes for metrics and sections, computed without a GPU.

Five kinds of metrics take passes of their own: those that hardware counts; those of patched machine
code, by counter and by instruction; warp samples; and samples over time. Metrics of the launch and
of the device take none.

`pass_table.json` has what NVIDIA's PerfWorks library schedules for sections and sets, and what an
estimate for other metrics takes; `kernels/pass_table.py` writes it.
"""

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Literal

import msgspec
from msgspec import Struct

from profkit.capture import sections
from profkit.core.text_files import shipped_text

Source = Literal["library", "table"]
"""What a count is: that of NVIDIA's PerfWorks library, or an estimate."""
Subject = tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]
"""Metrics to schedule: those that hardware counts, and groups sampled over time."""
SASS = "sass"
"""The part of a chip that counters of patched machine code are of."""

_PATCHED = 33  # counters of one pass with patched code: 33 took one on an H200, 48 took two
_UNLISTED = 0.5  # passes of a metric that the table doesn't have, chosen: most pairs of metrics fit


class Passes(Struct, frozen=True):
    """Replay passes, and the metrics and sections that the chip doesn't have."""

    count: int
    unknown: tuple[str, ...]
    source: Source


class Schedule(Struct, frozen=True):
    """Passes of the metrics that hardware counts, counters that patched machine code counts, and
    passes of the groups of metrics sampled over time."""

    hardware: int
    patched: int
    sampled: int


class _Family(msgspec.Struct, frozen=True):
    """Chips with the same counters: parts with the shares of a pass that a counter takes, beside
    others of its unit and at least; the part of each counter, the counters of each metric of the
    table ("-": not on these chips), and the passes of sections and sets."""

    chips: list[str] = []
    named: dict[str, int] = {}
    parts: list[tuple[str, float, float]] = []
    counters: list[int] = []
    metrics: str = ""

    @property
    def by_metric(self) -> Mapping[str, Sequence[int]]:
        rows = zip(_table().names, self.metrics.split(";"), strict=False)
        return {name: [int(n) for n in row.split(",") if n] for name, row in rows if row != "-"}


class _Table(msgspec.Struct, frozen=True):
    metrics: str
    families: list[_Family]

    @property
    def names(self) -> list[str]:
        return self.metrics.split()


def passes(chip: str, metrics: Sequence[str]) -> Passes:
    """The passes that metrics and sections take together on a chip, `GH100`."""
    return passes_of_each(chip, [metrics])[0]


def passes_of_each(chip: str, lists: Sequence[Sequence[str]]) -> list[Passes]:
    """The passes of each of several lists of metrics and sections."""
    family = next((row for row in _table().families if chip in row.chips), _Family())
    absent = frozenset(_table().names).difference(family.by_metric)
    every: list[Passes] = []
    for names in lists:
        count = family.named.get(key_of(names))
        source: Source = "library"
        if count is None:
            subject, own = subject_of(chip, names)
            count, source = count_of(_estimate(family, subject), own), "table"
        unknown = tuple(name for name in names if _is_unknown(name, absent))
        every.append(Passes(count, unknown, source))
    return every


def subject_of(chip: str, names: Iterable[str]) -> tuple[Subject, int]:
    """What is to be scheduled of metrics and sections, and the passes of the others."""
    return _subject(_expanded(chip, names))


def _expanded(chip: str, names: Iterable[str]) -> list[str]:
    """Metrics, and those of sections."""
    listed = sections.section_names()
    capability = sections.CAPABILITIES.get(chip, "")
    metrics: list[str] = []
    for name in names:
        metrics += sections.section_metrics(name, capability) if name in listed else [name]
    return sections.underived(metrics)


def _subject(metrics: Iterable[str]) -> tuple[Subject, int]:
    """What is to be scheduled of metrics, and the passes of the others: one of those by
    instruction, one of samples, and one of each group sampled over time that ncu's authors made for
    a pass."""
    by_kind: dict[str, set[str]] = defaultdict(set)
    for name in metrics:
        by_kind[sections.kind(name)].add(name)
    composed: set[str] = set()
    over_time: dict[str, list[str]] = {}
    for name in sorted(by_kind["over_time"]):
        group, _, metric = name.removeprefix(sections.OVER_TIME).rpartition(":")
        if "__" in metric:
            over_time.setdefault(group, []).append(metric)
        else:
            composed.add(metric)
    own = bool(by_kind["by_instruction"]) + bool(by_kind["samples"]) + len(composed)
    return (tuple(sorted(by_kind["hardware"])), tuple(map(tuple, over_time.values()))), own


def count_of(schedule: Schedule, own: int) -> int:
    """ncu's count, which is one more than the parts take where those are several: so measured on an
    H200 with each section and set alone."""
    count = schedule.hardware + math.ceil(schedule.patched / _PATCHED) + schedule.sampled + own
    return count + 1 if count > 1 else 1


@cache
def _is_unknown(name: str, absent: frozenset[str]) -> bool:
    """Whether a name that was asked for is no section, and stands for no metric of the chip."""
    if name in sections.section_names():
        return False
    if "__" not in name and sections.kind(name) == "hardware":
        return True
    hardware, over_time = _subject(sections.underived([name]))[0]
    return any(metric in absent for metrics in (hardware, *over_time) for metric in metrics)


def _estimate(family: _Family, subject: Subject) -> Schedule:
    """A schedule by the shares of a pass that counters take."""
    listed = frozenset(_table().names)
    by_metric = family.by_metric

    def estimated(metrics: Iterable[str]) -> tuple[int, int]:
        """Passes of the fullest part of the chip, and counters of patched machine code."""
        names = set(metrics)
        numbers = {number for name in names for number in by_metric.get(name, ())}
        shares: dict[str, float] = defaultdict(float)
        shares["sm"] = _UNLISTED * len(names - listed)
        fullest, patched = 0.0, 0
        for part, count in Counter(family.counters[number] for number in numbers).items():
            unit, beside, least = family.parts[part]
            if unit == SASS:
                patched += count
            else:
                shares[unit] += count * beside
                fullest = max(fullest, count * least)
        return math.ceil(max(fullest, *shares.values())), patched

    hardware, groups = subject
    return Schedule(*estimated(hardware), sum(max(1, estimated(group)[0]) for group in groups))


def key_of(names: Iterable[str]) -> str:
    """The key of a list of metrics in the table."""
    text = " ".join(sorted(set(names)))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@cache
def _table() -> _Table:
    return msgspec.json.decode(shipped_text("profkit.capture", "pass_table.json"), type=_Table)
