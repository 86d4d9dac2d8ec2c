"""A check of a history in words. No layout."""

from __future__ import annotations

import math
from collections.abc import Iterator

from profkit.history.bisection import Bisection
from profkit.history.changes import Change, Checked
from profkit.history.check import Alarm, Check
from profkit.history.marks import Kind
from profkit.history.steps import MARGIN
from profkit.history.view import changes as changed_conditions
from profkit.history.view import short_commit
from profkit.ui.text import literal, number, percent, plural

KINDS = {
    Kind.REAL: "real",
    Kind.METHOD: "method change",
    Kind.HARDWARE: "hardware or driver",
    Kind.NOISE: "noise",
}
"""Kinds of changes in words."""
# Simulated: a step of 2% where runs scatter by 0.61% is detected within three runs with a power of
# 90% (docs/reference/methods/history.md).
_DETECTED = 3.3


def headline(check: Check) -> str:
    """What was checked, and what is news."""
    runs = sum(len(each.points) for each in check.series)
    unchecked = sum(bool(each.reason) for each in check.series)
    text = f"{plural(len(check.series), 'series')}, {plural(runs, 'run')}"
    if unchecked:
        text += f"; {unchecked:,} not checked: too few runs"
    return text


def news(check: Check) -> str:
    """The count of new changes by kind."""
    counts = [
        f"{count} {KINDS[kind]}"
        for kind in Kind
        if (count := sum(alarm.change.kind is kind for alarm in check.alarms))
    ]
    last = f"the last {check.recent} runs" if check.recent > 1 else "the last run"
    return f"Changes detected with {last} of a series: {', '.join(counts) or 'none'}"


def times(change: Change) -> str:
    """The levels before and after."""
    return f"{number(change.before, 's')} → {number(change.after, 's')}"


def commits(change: Change) -> str:
    """The range of the first bad commit: after the last good one, up to the first bad one."""
    good, bad = change.good, change.bad
    if good.commit == bad.commit:
        return short_commit(bad.commit)
    return f"({short_commit(good.commit)}, {short_commit(bad.commit)}]"


def details(alarm: Alarm) -> Iterator[str]:
    """What a change rests on, its cause and what to do next."""
    change = alarm.change
    measured = f"{change.good.time:%Y-%m-%d %H:%M} to {change.bad.time:%Y-%m-%d %H:%M} UTC"
    if change.kind is not Kind.REAL:
        yield f"runs of {measured}"
    elif change.good.commit and change.bad.commit:
        yield f"first bad commit in {commits(change)}, runs of {measured}"
    else:
        yield f"between the runs of {measured}, whose commits are not known"
    chance = f"p {change.p_value:.1g}" if change.p_value >= 1e-6 else "p < 1e-6"
    yield f"a single run scatters by {percent(change.scatter)}; {chance}"
    if change.kind in {Kind.METHOD, Kind.HARDWARE}:
        yield "; ".join(changed_conditions(change.good.conditions, change.bad.conditions))
    elif change.why:
        yield change.why
    yield from map(literal, alarm.cause)
    if alarm.bisection:
        yield bisection(alarm.bisection)


def bisection(result: Bisection) -> str:
    """The commits to try next, or why there is none."""
    if result.commits:
        verb = "measure again" if result.again else "measure next"
        names = " ".join(map(short_commit, result.commits))
        return f"{verb}: {names} (of {plural(result.count, 'commit')})"
    return f"nothing to measure next: {result.reason}"


def detectable(checked: Checked) -> str:
    """The smallest step that three runs show with a power of 90%."""
    if checked.reason or math.isnan(checked.scatter):
        return "-"
    return percent(max(MARGIN, _DETECTED * checked.scatter))
