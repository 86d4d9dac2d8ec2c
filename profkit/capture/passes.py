"""How many replay passes ncu takes for metrics and sections, computed without a GPU.

Five kinds of metrics take passes of their own: those that hardware counts, which NVIDIA's PerfWorks
library schedules; those of patched machine code, by counter and by instruction; warp samples; and
samples over time. Metrics of the launch and of the device take none.

Without the library a table made with it gives an estimate: `pass_table.json`, which
`kernels/pass_table.py` writes.
"""

from __future__ import annotations

import hashlib
import math
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Literal

import msgspec
from msgspec import Struct

from profkit.capture.perfworks import Answer, Question, Schedule, Subject, library_path
from profkit.capture.sections import (
    CAPABILITIES,
    OVER_TIME,
    kind,
    section_metrics,
    section_names,
    underived,
)
from profkit.core.text_files import shipped_text

Source = Literal["library", "table"]
"""What a count comes from: NVIDIA's PerfWorks library, or the table that comes with profkit."""
SASS = "sass"
"""The part of a chip that counters of patched machine code are of."""

_TIMEOUT = 60.0  # s, chosen: the slowest chip takes 3 s for every set
_PATCHED = 33  # counters of one pass with patched code: 33 took one on an H200, 48 took two
_UNLISTED = 0.5  # passes of a metric that the table doesn't have, chosen: most pairs of metrics fit


class Passes(Struct, frozen=True):
    """Replay passes, and the metrics and sections that the chip doesn't have.

    `problem` is why the library was not used, "" where it was.
    """

    count: int
    unknown: tuple[str, ...]
    problem: str = ""

    @property
    def source(self) -> Source:
        return "table" if self.problem else "library"


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
    """`library` is the size of the library that the table was made with."""

    library: int
    metrics: str
    families: list[_Family]

    @property
    def names(self) -> list[str]:
        return self.metrics.split()


def passes(chip: str, metrics: Sequence[str]) -> Passes:
    """The passes that metrics and sections take together on a chip, `GH100`."""
    return passes_of_each(chip, [metrics])[0]


def passes_of_each(chip: str, lists: Sequence[Sequence[str]]) -> list[Passes]:
    """The passes of each of several lists of metrics and sections.

    The library takes 7 s for the parts of the full set on an H100, 1 s for those of the catalog:
    the table has its counts, where it was made with this library.
    """
    library, named = library_path(), [_named(chip, names) for names in lists]
    if library and library.stat().st_size == _table().library and None not in named:
        absent = frozenset(_table().names).difference(_family(chip).by_metric)
        rows = zip(named, lists, strict=True)
        return [Passes(count or 0, _unknown(names, absent)) for count, names in rows]
    return scheduled(chip, lists)


def scheduled(chip: str, lists: Sequence[Sequence[str]]) -> list[Passes]:
    """As `passes_of_each`, by the library wherever there is one."""
    subjects, own = zip(*(_subject(_expanded(chip, names)) for names in lists), strict=True)
    answer = _answer(chip, subjects)
    absent = frozenset(answer.unknown)
    return [
        Passes(
            (_named(chip, names) if answer.problem else None) or _count(schedule, others),
            _unknown(names, absent),
            answer.problem,
        )
        for names, schedule, others in zip(lists, answer.schedules, own, strict=True)
    ]


def _expanded(chip: str, names: Iterable[str]) -> list[str]:
    """Metrics, and those of sections."""
    listed = section_names()
    capability = CAPABILITIES.get(chip, "")
    metrics: list[str] = []
    for name in names:
        metrics += section_metrics(name, capability) if name in listed else [name]
    return underived(metrics)


def _subject(metrics: Iterable[str]) -> tuple[Subject, int]:
    """What is to be scheduled of metrics, and the passes of the others: one of those by
    instruction, one of samples, and one of each group sampled over time that ncu's authors made for
    a pass."""
    by_kind: dict[str, set[str]] = defaultdict(set)
    for name in metrics:
        by_kind[kind(name)].add(name)
    composed: set[str] = set()
    over_time: dict[str, list[str]] = {}
    for name in sorted(by_kind["over_time"]):
        group, _, metric = name.removeprefix(OVER_TIME).rpartition(":")
        if "__" in metric:
            over_time.setdefault(group, []).append(metric)
        else:
            composed.add(metric)
    own = bool(by_kind["by_instruction"]) + bool(by_kind["samples"]) + len(composed)
    return (tuple(sorted(by_kind["hardware"])), tuple(map(tuple, over_time.values()))), own


def _count(schedule: Schedule, own: int) -> int:
    """ncu's count, which is one more than the parts take where those are several: so measured on an
    H200 with each section and set alone."""
    count = schedule.hardware + math.ceil(schedule.patched / _PATCHED) + schedule.sampled + own
    return count + 1 if count > 1 else 1


def _unknown(names: Iterable[str], absent: frozenset[str]) -> tuple[str, ...]:
    return tuple(name for name in names if _is_unknown(name, absent))


@cache
def _is_unknown(name: str, absent: frozenset[str]) -> bool:
    """Whether a name that was asked for is no section, and stands for no metric of the chip."""
    if name in section_names():
        return False
    hardware, over_time = _subject(underived([name]))[0]
    return any(metric in absent for metrics in (hardware, *over_time) for metric in metrics)


@cache
def _answer(chip: str, subjects: tuple[Subject, ...]) -> Answer:
    """The answer of the library, or of the table with the `problem` that there is none."""
    answer = _from_library(chip, subjects)
    return _estimate(chip, subjects, answer.problem) if answer.problem else answer


def _from_library(chip: str, subjects: Sequence[Subject]) -> Answer:
    path = library_path()
    if path is None:
        return Answer(problem="the ncu-report package has no PerfWorks library")
    try:
        finished = subprocess.run(
            [sys.executable, "-m", "profkit.capture.perfworks"],
            input=msgspec.json.encode(Question(str(path), chip, list(subjects))),
            capture_output=True,
            timeout=_TIMEOUT,
            check=False,
        )
        return msgspec.json.decode(finished.stdout, type=Answer)
    except subprocess.TimeoutExpired:
        return Answer(problem=f"the PerfWorks library didn't answer within {_TIMEOUT:.0f} s")
    except (OSError, ValueError):
        return Answer(problem="the PerfWorks library failed")


def _estimate(chip: str, subjects: Sequence[Subject], problem: str) -> Answer:
    """Schedules by the table."""
    family, listed = _family(chip), frozenset(_table().names)
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

    schedules = [
        Schedule(*estimated(hardware), sum(max(1, estimated(group)[0]) for group in groups))
        for hardware, groups in subjects
    ]
    names = {name for hardware, _ in subjects for name in hardware}
    unknown = [name for name in names if name in listed and name not in by_metric]
    return Answer(schedules, unknown, problem)


def _named(chip: str, names: Iterable[str]) -> int | None:
    """The passes of a section or a set of ncu's, of the full set without a section, or of a list of
    the catalog's plan, by the table; None for any other list."""
    return _family(chip).named.get(key_of(names))


def key_of(names: Iterable[str]) -> str:
    """The key of a list of metrics in the table."""
    text = " ".join(sorted(set(names)))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _family(chip: str) -> _Family:
    return next((row for row in _table().families if chip in row.chips), _Family())


@cache
def _table() -> _Table:
    return msgspec.json.decode(shipped_text("profkit.capture", "pass_table.json"), type=_Table)
