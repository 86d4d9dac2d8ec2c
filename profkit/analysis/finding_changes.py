"""What became of findings: resolved, eased, heavier, new; and what limits a kernel now."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from profkit.analysis.checklist import Checklist, Item
from profkit.analysis.limits import REACH, RESOURCES
from profkit.analysis.summary import Group, LaunchSummary
from profkit.metrics.catalog import catalog

REMAINS = 0.1
"""A finding is resolved when no more than this share of the time that it weighed remains."""
WORTH = 1.05
"""The factor from which a finding that was not there before is a new one."""
LIMITS = 1.15
"""The factor from which a finding, rather than a busy resource, is what limits a kernel."""
BUSY = 0.6
"""The share from which the busiest resource is what limits a kernel: ncu's own bound for it."""

_CATEGORIES = {
    "dram_busy": "dram_bandwidth",
    "l2_busy": "l2_bandwidth",
    "issue_busy": "instruction_issue",
}
_SHARED = "shared_bank_conflicts"
_COUNTED = frozenset(
    ("instruction", "cycle", "s", "sector", "request", "wavefront", "B", "B/s", "FLOP", "FLOP/s")
)
_WAYS = ("shared_ways_load", "shared_ways_store", "shared_ways_atomic")


class Status(StrEnum):
    """What became of a finding."""

    resolved = "resolved"
    eased = "eased"
    unchanged = "unchanged"
    heavier = "heavier"
    new = "new"


@dataclass(frozen=True)
class Seen:
    """A quantity that a finding rests on, before and after; NaN where it was not recorded."""

    name: str
    before: float
    after: float


@dataclass(frozen=True)
class FindingChange:
    """A category of finding on a kernel; `before` and `after` are None where it is not found.

    `saved_before` and `saved_after` are the seconds a launch that a fix was, and is, taken to save.
    """

    category: str
    status: Status
    before: Item | None
    after: Item | None
    saved_before: float
    saved_after: float
    seen: Seen | None

    @property
    def promised(self) -> float:
        """The factor that the earlier report promised for a fix; NaN where it promised none."""
        estimate = self.before.finding.estimate if self.before else None
        return estimate.likely if estimate else math.nan

    @property
    def promises(self) -> float:
        """The factor that the later report promises."""
        estimate = self.after.finding.estimate if self.after else None
        return estimate.likely if estimate else math.nan


@dataclass(frozen=True)
class Limit:
    """What limits a kernel: a category or a resource, and how busy that is (NaN for a finding)."""

    name: str
    busy: float


def finding_changes(
    before: Group, after: Group, found: Checklist, found_after: Checklist
) -> tuple[FindingChange, ...]:
    """The findings of a kernel on either side, by category; the weightiest first."""
    sides = _by_category(found, before), _by_category(found_after, after)
    compared = [
        _change(category, sides[0].get(category), sides[1].get(category), before, after)
        for category in dict.fromkeys((*sides[0], *sides[1]))
    ]
    return tuple(sorted(compared, key=lambda one: -max(one.saved_before, one.saved_after)))


def limit(group: Group, found: Checklist) -> Limit | None:
    """What limits a kernel now; None where neither a finding nor a busy resource tells."""
    items = [item for item in found.of(group) if item.finding.estimate]
    promising = [item for item in items if _factor(item) >= LIMITS]
    if promising:
        return Limit(max(promising, key=_factor).rule.category, math.nan)
    busy = {
        name: group.typical.get(name) / REACH.get(name, 1.0)
        for name in RESOURCES
        if group.typical.get(name) > 0
    }
    if busy and max(busy.values()) >= BUSY:
        name = max(busy, key=lambda name: busy[name])
        return Limit(_CATEGORIES.get(name, RESOURCES[name]), group.typical.get(name))
    worth = [item for item in items if _factor(item) >= WORTH]
    return Limit(max(worth, key=_factor).rule.category, math.nan) if worth else None


def _by_category(found: Checklist, group: Group) -> Mapping[str, Item]:
    """The first item of each category; those that only say a kernel is at its roof left out."""
    items: dict[str, Item] = {}
    for item in found.of(group):
        if item.rule.category != "at_the_roof":
            items.setdefault(item.rule.category, item)
    return items


def _change(
    category: str, item: Item | None, item_after: Item | None, before: Group, after: Group
) -> FindingChange:
    saved, saved_after = _saved(item, before), _saved(item_after, after)
    return FindingChange(
        category,
        _status(item, item_after, saved, saved_after),
        item,
        item_after,
        saved,
        saved_after,
        _seen(item or item_after, before.typical, after.typical),
    )


def _status(item: Item | None, item_after: Item | None, saved: float, saved_after: float) -> Status:
    """Mirrors: what is resolved one way is new the other, what eases gets heavier."""
    if item_after is None or (saved > 0 and saved_after <= REMAINS * saved):
        return Status.resolved
    if item is None or (saved_after > 0 and saved <= REMAINS * saved_after):
        return Status.new
    if min(saved, saved_after) >= (1 - REMAINS) * max(saved, saved_after):
        return Status.unchanged
    return Status.eased if saved_after < saved else Status.heavier


def _saved(item: Item | None, group: Group) -> float:
    """Seconds of one launch that a fix is taken to save."""
    estimate = item.finding.estimate if item else None
    return group.median * (1 - 1 / estimate.likely) if estimate else 0.0


def _factor(item: Item) -> float:
    return item.finding.estimate.likely if item.finding.estimate else 1.0


def _seen(item: Item | None, before: LaunchSummary, after: LaunchSummary) -> Seen | None:
    """The first quantity of a finding's evidence that changed, rates and shares before counts; of
    bank conflicts, their ways."""
    names: Sequence[str] = [told.what for told in item.finding.evidence] if item else ()
    if item and item.rule.category == _SHARED:
        ways = max(_WAYS, key=lambda name: before.values.get(name, 0.0))
        names = (ways, *names)
    seen = [
        Seen(name, before.get(name), after.get(name)) for name in names if name in before.values
    ]
    moved = [one for one in seen if one.before != one.after]
    telling = [one for one in moved if catalog().quantities[one.name].unit not in _COUNTED]
    return next(iter((*telling, *moved)), None)
