"""The records of a history: what is followed over time, under which conditions, and one point."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from datetime import datetime

from profkit.core.errors import BadInput, NothingMatches, UsageError
from profkit.core.timestamp import YEARS
from profkit.timing.latency_format import LONGEST, SHORTEST
from profkit.ui.text import literal

DIRTY = "-dirty"
"""The end of a commit whose tree had changes."""

_LISTED = 5  # series in an error, chosen: it stays readable
_COMMIT = 9  # digits of a commit, as git shows
_UUID = re.compile(r"(GPU|MIG)-[0-9a-f-]{36}")
_UUID_SHOWN = 12  # characters, chosen: two GPUs of a hundred agree in them with probability 1e-6
_NAMES = {"gpu_uuid": "GPU", "cuda": "CUDA"}
"""Conditions whose names are not words."""


@dataclass(frozen=True)
class Series:
    """What is followed over time; "" where a field is not known."""

    target: str
    variant: str
    shape: str
    gpu_model: str
    branch: str

    @property
    def name(self) -> str:
        """The target and its variant."""
        return ":".join(filter(None, (self.target, self.variant)))

    @property
    def label(self) -> str:
        """Target and variant, shape, GPU and branch in a line, as far as known."""
        parts = (self.name, self.shape, self.gpu_model, self.branch)
        return literal("  ".join(filter(None, parts)))


@dataclass(frozen=True)
class Conditions:
    """How a point was measured: a change here is a change of method, hardware or driver.

    No field is a reading (a clock, a temperature, a time); "" where it is not known.
    """

    gpu_uuid: str = ""
    driver: str = ""
    cuda: str = ""
    clock_policy: str = ""
    timer: str = ""
    cache_policy: str = ""
    profkit: str = ""

    @property
    def words(self) -> str:
        """Those that are known."""
        known = {field.name: getattr(self, field.name) for field in fields(self)}
        return ", ".join(f"{_named(name)} {literal(text)}" for name, text in known.items() if text)

    def differences(self, other: Conditions) -> dict[str, str]:
        """By field what another point's conditions differ in, in words."""
        values = {
            field.name: (getattr(self, field.name), getattr(other, field.name))
            for field in fields(self)
        }
        return {
            name: f"{_named(name)} {_short(before)} → {_short(after)}"
            for name, (before, after) in values.items()
            if before != after
        }


@dataclass(frozen=True)
class Point:
    """One run of a series: the medians of its blocks (s) in the order measured.

    `time` is UTC; `run` is the content id of the run, so that adding it twice makes no second
    point; `source` is the path or URL that was added. `commit` ends with `-dirty`, as git describe
    has it, where the tree had changes beside it.
    """

    series: Series
    conditions: Conditions
    time: datetime
    run: str
    source: str
    commit: str
    block_medians: tuple[float, ...]

    def __post_init__(self) -> None:
        """Raise BadInput for times that no run has, which no store may hold."""
        medians = self.block_medians
        if not medians or not all(SHORTEST <= median <= LONGEST for median in medians):
            low, high = f"{SHORTEST:g}", f"{LONGEST:g}"
            raise BadInput(f"{self.source}: {self.series.label}: times outside {low} to {high} s")
        if not YEARS[0] <= self.time.year <= YEARS[1]:
            raise BadInput(f"{self.source}: its time is not from {YEARS[0]} to {YEARS[1]}")


def _named(condition: str) -> str:
    return _NAMES.get(condition, condition.replace("_", " "))


def _short(condition: str) -> str:
    """A condition; of a GPU's UUID the first part."""
    if _UUID.fullmatch(condition):
        condition = condition[:_UUID_SHOWN]
    return literal(condition) or "unknown"


def short_commit(commit: str) -> str:
    """A commit as people name it."""
    digits = commit.removesuffix(DIRTY)
    return literal(digits[:_COMMIT]) + (DIRTY if digits != commit else "")


def matching(words: Sequence[str], every: Iterable[Series]) -> list[Series]:
    """The series that all words name: each a whole field of it, else a part of its label.

    Raises NothingMatches where there is none.
    """
    rest = list(every)
    for word in words:
        whole = [series for series in rest if word in astuple(series)]
        part = word.casefold()
        fitting = whole or [series for series in rest if part in series.label.casefold()]
        if not fitting:
            raise NothingMatches(f"no series has {word!r}", "see `profkit history list`")
        rest = fitting
    return rest


def named(words: Sequence[str], every: Iterable[Series]) -> Series:
    """The only series that words name; raises UsageError where there are several."""
    rest = matching(words, every)
    if len(rest) != 1:
        labels = [series.label for series in rest[:_LISTED]]
        names = "; ".join(labels) + ("; ..." if len(rest) > _LISTED else "")
        raise UsageError(f"{len(rest)} series: {names}", "add words that only one of them has")
    return rest[0]
