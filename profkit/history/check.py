"""A check of a history: the changes of its series, and the gates that they fail."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from profkit.comparison.gates import FAILED, UNDECIDED, Gate, GateKind, parse_gates
from profkit.core.errors import UsageError
from profkit.history.bisection import Bisection, bisect
from profkit.history.cause import cause_of
from profkit.history.changes import Change, Checked
from profkit.history.marks import Kind
from profkit.history.record import Series
from profkit.history.selection import label
from profkit.ui.text import percent

_GATES = (GateKind.regression, GateKind.inconclusive, GateKind.incomparable)
_KINDS = {GateKind.inconclusive: {Kind.NOISE}, GateKind.incomparable: {Kind.METHOD, Kind.HARDWARE}}


@dataclass(frozen=True)
class GateFailure:
    """A gate that a series fails; `change` is at fault, None where it was not checked."""

    gate: Gate
    series: Series
    why: str
    change: Change | None

    @property
    def undecided(self) -> bool:
        """Whether it says that nothing can be concluded, rather than that something got worse."""
        return self.change is None or self.gate.kind is not GateKind.regression

    def __str__(self) -> str:
        return f"{self.gate}: {label(self.series)}: {self.why}"


@dataclass(frozen=True)
class Alarm:
    """A change that is news, with its cause in lines and the commits to try next."""

    series: Series
    change: Change
    cause: tuple[str, ...]
    bisection: Bisection | None


@dataclass(frozen=True)
class Check:
    """The series of a history, the news among their changes, and the gates that fail."""

    series: tuple[Checked, ...]
    alarms: tuple[Alarm, ...]
    failures: tuple[GateFailure, ...]
    recent: int

    @property
    def exit_code(self) -> int:
        """1 where a series regressed, 3 where what a gate forbids can't be decided, else 0."""
        if any(not failure.undecided for failure in self.failures):
            return FAILED
        return UNDECIDED if self.failures else 0


def history_gates(texts: Iterable[str]) -> tuple[Gate, ...]:
    """The gates of `--fail-on`; raises UsageError for those that a history does not have."""
    gates = parse_gates(texts)
    for gate in gates:
        if gate.kind not in _GATES:
            remedy = f"use {', '.join(_GATES)}"
            raise UsageError(f"--fail-on {gate.kind} is not a gate of a history", remedy)
    return gates


def check(
    series: Sequence[Checked],
    gates: Sequence[Gate],
    recent: int,
    repository: Path | None = None,
) -> Check:
    """What is news in series that were checked: changes detected with the last `recent` runs.

    Real ones come first, the slowest first. With a `repository` the commits to try next are named.
    """
    news = [
        (each.points[0].series, change, each)
        for each in series
        for change in each.changes
        if change.age < recent
    ]
    news.sort(key=lambda row: (row[1].kind is not Kind.REAL, -row[1].change))
    alarms = []
    for name, change, each in news:
        real = change.kind is Kind.REAL
        tried = (
            bisect(
                change.good.commit,
                change.bad.commit,
                (point.commit for point in each.points),
                repository,
            )
            if repository and real
            else None
        )
        alarms.append(Alarm(name, change, cause_of(change.good, change.bad) if real else (), tried))
    failed = tuple(failure for gate in gates for failure in _failures(series, gate, recent))
    return Check(tuple(series), tuple(alarms), failed, recent)


def _failures(series: Sequence[Checked], gate: Gate, recent: int) -> Iterator[GateFailure]:
    nothing = all(each.reason for each in series)  # no gate passes where nothing was checked
    for each in series:
        name = each.points[0].series
        if each.reason and (nothing or gate.kind is GateKind.inconclusive):
            yield GateFailure(gate, name, f"not checked, {each.reason}", None)
        for change in each.changes:
            if change.age < recent and _forbids(gate, change):
                allowed = f", more than {gate.margin * 100:g}%" if gate.margin else ""
                yield GateFailure(gate, name, size_words(change) + allowed, change)


def _forbids(gate: Gate, change: Change) -> bool:
    if gate.kind is GateKind.regression:
        return change.kind is Kind.REAL and change.change > gate.margin
    return change.kind in _KINDS[gate.kind] and change.change > 0


def size_words(change: Change) -> str:
    """`2.1% slower`."""
    return f"{percent(abs(change.change))} {'slower' if change.change > 0 else 'faster'}"
