"""A check of a history as JSON, `profkit.history-check/1`."""

from __future__ import annotations

import math

from profkit.core.typed_file import Count, Model, Number, Output, encode
from profkit.history.changes import Change, Checked
from profkit.history.check import Check
from profkit.history.marks import Kind
from profkit.history.record import Point, Series
from profkit.history.view import iso


class RunEntry(Model, frozen=True, kw_only=True):
    """A run; "" where its commit is not known."""

    time: str
    commit: str
    run: str
    source: str


class ChangeEntry(Model, frozen=True, kw_only=True):
    """A change of a series' level, times in seconds.

    `change` is relative, above 0 is slower. `good` is the last run that is surely before it, `bad`
    the first that is surely after: the first bad commit is after the former's, up to the latter's.
    `runs_since` counts the runs since it was detected. `scatter` is that of a single run. `cause`
    compares the stored profiles of both runs; `next` are commits to measure (--bisect). Both are
    there of real changes that are news alone.
    """

    kind: Kind
    news: bool
    change: Number
    before: Number
    after: Number
    scatter: Number
    p_value: Number
    good: RunEntry
    bad: RunEntry
    runs_since: Count
    why: str
    cause: tuple[str, ...]
    next: tuple[str, ...]


class CheckedEntry(Model, frozen=True, kw_only=True):
    """A series: its level (s) and the relative scatter of its last runs, null where too few.

    `reason` says why it was not checked, "" where it was.
    """

    series: Series
    runs: Count
    level: Number
    scatter: Number | None
    reason: str
    changes: tuple[ChangeEntry, ...]


class GateEntry(Model, frozen=True, kw_only=True):
    """A gate that failed; `undecided`: nothing can be concluded, exit code 3."""

    gate: str
    series: Series
    why: str
    undecided: bool


class CheckFile(Output, frozen=True, kw_only=True, tag="profkit.history-check/1"):
    """A check of a history; `recent` is with how many last runs a change is news."""

    recent: Count
    series: tuple[CheckedEntry, ...]
    failed: tuple[GateEntry, ...]


def check_json(check: Check) -> str:
    """Every series with every change of it."""
    return encode(
        CheckFile(
            recent=check.recent,
            series=tuple(_checked(checked, check) for checked in check.series),
            failed=tuple(
                GateEntry(
                    gate=str(failure.gate),
                    series=(failure.series),
                    why=failure.why,
                    undecided=failure.undecided,
                )
                for failure in check.failures
            ),
        )
    )


def _checked(checked: Checked, check: Check) -> CheckedEntry:
    return CheckedEntry(
        series=(checked.points[0].series),
        runs=len(checked.points),
        level=checked.level,
        scatter=None if math.isnan(checked.scatter) else checked.scatter,
        reason=checked.reason,
        changes=tuple(_change(change, check) for change in checked.changes),
    )


def _change(change: Change, check: Check) -> ChangeEntry:
    alarm = next((alarm for alarm in check.alarms if alarm.change is change), None)
    tried = alarm.bisection if alarm else None
    return ChangeEntry(
        kind=change.kind,
        news=alarm is not None,
        change=change.change,
        before=change.before,
        after=change.after,
        scatter=change.scatter,
        p_value=change.p_value,
        good=_run(change.good),
        bad=_run(change.bad),
        runs_since=change.age,
        why=change.why,
        cause=alarm.cause if alarm else (),
        next=tried.commits if tried else (),
    )


def _run(point: Point) -> RunEntry:
    return RunEntry(time=iso(point.time), commit=point.commit, run=point.run, source=point.source)
