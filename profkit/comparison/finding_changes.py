"""How findings changed: resolved, improved, worsened, masked, new; and what limits a kernel now."""

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from profkit.comparison.measures import (
    MOVED,
    Measure,
    is_on_both,
    known_gain,
    measures,
    not_collected,
)
from profkit.comparison.repeats import within_noise
from profkit.core.typed_file import Model
from profkit.report.floors import REACH, floors
from profkit.report.resources import RESOURCES
from profkit.report.summary import Group, LaunchSummary
from profkit.rules.checklist import Checklist
from profkit.rules.finding import Finding

REMAINS = 0.1
"""The share of the larger saving by which it has to change, and of which no more remains where a
finding is resolved: chosen equal to measures.MOVED, below which a change is noise."""
SMALLEST = 0.02
"""The share of a kernel's time by which an estimated saving has to change: chosen, the least that
is reported as a finding, so that one at that limit does not come and go."""
WORTH = 1.05
"""The estimated speedup from which a finding that one side has is new or resolved. Chosen: less
than ncu's run-to-run variation of two recordings (repeats.NOISE) would not be measurable."""
LIMITS = 1.15
"""The estimated speedup from which a finding, rather than a busy resource, is what limits a kernel.
Chosen: a lower one names small findings, a higher one hides them behind the busiest resource."""
BUSY = 0.6
"""The share from which the busiest resource is what limits a kernel: ncu's own bound for it."""

_CATEGORIES = {
    "dram_busy": "dram_bandwidth",
    "l2_busy": "l2_bandwidth",
    "issue_busy": "instruction_issue",
}
RESOURCE_OF = {category: RESOURCES[name] for name, category in _CATEGORIES.items()}
"""The resource that a category of findings is about."""
_UNSURE = "low"
_SHARED = "shared_bank_conflicts"
_WAYS = ("shared_ways_load", "shared_ways_store", "shared_ways_atomic")


class Status(StrEnum):
    """How a finding changed.

    `masked`: no longer reported though its own measure did not improve, because something else
    takes the time now. `unmasked`: reported for the first time though its measure did not worsen.
    `unknown`: a report did not collect its measures.
    """

    resolved = "resolved"
    masked = "masked"
    improved = "improved"
    unchanged = "unchanged"
    worsened = "worsened"
    unmasked = "unmasked"
    new = "new"
    unknown = "not known"


class Seen(Struct, frozen=True):
    """The evidence of a finding's change: a quantity before and after; NaN for no accesses.

    `share` is the share of wavefronts of this kind of access that are bank conflicts after a
    finding of them was resolved.
    """

    name: str
    before: float
    after: float
    share: float = math.nan


class FindingChange(Struct, frozen=True):
    """A category of finding on a kernel; `before` and `after` are None where it is not found.

    `saved_before` and `saved_after` are the seconds per launch that a fix is estimated to save.
    """

    category: str
    status: Status
    before: Finding | None
    after: Finding | None
    saved_before: float
    saved_after: float
    seen: Seen | None

    @property
    def speedup_before(self) -> float:
        """The estimated speedup of a fix in the earlier report; NaN where it has none."""
        return _factor(self.before, math.nan)

    @property
    def speedup_after(self) -> float:
        """The estimated speedup in the later report."""
        return _factor(self.after, math.nan)

    @property
    def has_come(self) -> bool:
        """Whether the later report alone has the finding: its defect is new, or has grown to one
        that is worth a fix."""
        is_larger = self.saved_before <= REMAINS * self.saved_after
        return self.status is Status.new or (self.status is Status.worsened and is_larger)

    @property
    def is_lasting(self) -> bool:
        """Whether both reports have the finding, of a defect that counts in both."""
        lasting = {Status.unchanged, Status.improved, Status.worsened}
        return self.status in lasting and not self.has_come

    @property
    def is_reported(self) -> bool:
        """Whether it is shown by default: it changed, and where one side has it is worth a fix;
        never where a side lacks what its size rests on."""
        if any(side and side.lacking for side in (self.before, self.after)):
            return False
        if self.status in {Status.unchanged, Status.unknown}:
            return False
        if self.status in {Status.new, Status.unmasked}:
            return self.speedup_after >= WORTH
        if self.status is Status.masked:
            return self.speedup_before >= WORTH
        return self.status is not Status.resolved or not self.speedup_before < WORTH


class Limit(Model, frozen=True):
    """What limits a kernel: a category or a resource, and how busy that is (None for a finding).

    It is not `certain` where it rests on a finding of low confidence alone.
    """

    name: str
    busy: float | None
    certain: bool = True


def finding_changes(
    before: Group, after: Group, checklist: Checklist, checklist_after: Checklist
) -> tuple[FindingChange, ...]:
    """The findings of a kernel on either side, by category; the weightiest first."""
    sides = _by_category(checklist, before), _by_category(checklist_after, after)
    compared = [
        _change(category, sides[0].get(category), sides[1].get(category), before, after)
        for category in dict.fromkeys((*sides[0], *sides[1]))
    ]
    return tuple(sorted(compared, key=lambda change: -max(change.saved_before, change.saved_after)))


def limit(group: Group, checklist: Checklist) -> Limit | None:
    """What limits a kernel now: the first finding on it in the checklist, where its estimate is
    large; else the busiest resource, as checklists name it; None where neither shows."""
    found = checklist.findings_on(group)
    items = [item for item in found if item.estimate and not item.lacking]
    return _promising(items, LIMITS) or _busiest(group) or _promising(items, WORTH)


def _promising(items: Sequence[Finding], least: float) -> Limit | None:
    """The first finding, from an estimated speedup on."""
    item = next(iter(items), None)
    if item is None or _factor(item) < least:
        return None
    sure = item.estimate and item.estimate.confidence != _UNSURE
    return Limit(item.rule.category, None, bool(sure))


def _busiest(group: Group) -> Limit | None:
    """The resource that is busiest, where it is busy enough to limit."""
    floor = next(iter(floors(group.typical.values)), None)
    if floor is None or floor.busy / REACH.get(floor.resource, 1.0) < BUSY:
        return None
    return Limit(_CATEGORIES.get(floor.resource, floor.label), floor.busy)


def _by_category(checklist: Checklist, group: Group) -> Mapping[str, Finding]:
    """The first item of each category; without those that only state that a kernel is at its
    roof."""
    items: dict[str, Finding] = {}
    for item in checklist.findings_on(group):
        if item.rule.category != "at_the_roof":
            items.setdefault(item.rule.category, item)
    return items


def _change(
    category: str, item: Finding | None, item_after: Finding | None, before: Group, after: Group
) -> FindingChange:
    saved, saved_after = _saved(item, before), _saved(item_after, after)
    was, now = (bool(each and each.rule.spans == "chain") for each in (item, item_after))
    gone = item_after is None or (saved > 0 and saved_after <= REMAINS * saved) or (was and not now)
    came = not gone and (
        item is None or (saved_after > 0 and saved <= REMAINS * saved_after) or (now and not was)
    )
    judged = item_after if came or item is None else item
    verified = measures(judged.rule.verify) if judged else ()
    least = max(REMAINS * max(saved, saved_after), SMALLEST * max(before.median, after.median))
    if max(saved, saved_after) > 0 and abs(saved - saved_after) <= least:
        status = Status.unchanged
    elif judged and judged.rule.spans == "chain" and (gone or came):
        status = (
            Status.resolved if gone else Status.new
        )  # of several kernels, whatever this one does
    elif gone or came:
        status = _come_or_gone(verified, before, after, gone=gone)
    else:
        status = _weighed(saved, saved_after)
    seen = _seen(category, status, verified, before.typical, after.typical)
    return FindingChange(category, status, item, item_after, saved, saved_after, seen)


def _come_or_gone(
    verified: Sequence[Measure], before: Group, after: Group, *, gone: bool
) -> Status:
    """Whether a finding on one side only was fixed, is new, or was only hidden.

    Mirrors: what is resolved one way is new the other, what is masked unmasked. A defect that is
    counted on both sides improved or worsened. At an unchanged time nothing else can have
    hidden it.
    """
    if not_collected(verified, before.typical, after.typical):
        return Status.unknown
    has_it = before if gone else after
    gain = known_gain(verified, before.typical, after.typical, has_it.typical)
    better = gain if gone else -gain
    if better >= MOVED and is_on_both(verified, before.typical, after.typical):
        return Status.improved if gone else Status.worsened
    if math.isnan(gain) or better >= MOVED:
        return Status.resolved if gone else Status.new
    if abs(gain) < MOVED and within_noise(before.median, after.median):
        return Status.unchanged
    return Status.masked if gone else Status.unmasked


def _weighed(saved: float, saved_after: float) -> Status:
    """Of a finding on both sides; mirrors: what improves one way worsens the other."""
    if saved == saved_after:
        return Status.unchanged
    return Status.improved if saved_after < saved else Status.worsened


def _saved(item: Finding | None, group: Group) -> float:
    """Seconds per launch that a fix is estimated to save."""
    return group.median * (1 - 1 / factor) if (factor := _factor(item)) != 1 else 0.0


def _factor(item: Finding | None, unknown: float = 1.0) -> float:
    """The estimated speedup of a fix."""
    estimate = item.estimate if item else None
    return estimate.likely if estimate else unknown


def _seen(
    category: str,
    status: Status,
    verified: Sequence[Measure],
    before: LaunchSummary,
    after: LaunchSummary,
) -> Seen | None:
    """The first quantity of a defect's measures that moved as its status says; None without one.

    Of several in a measure it is the one that was worst where the finding was. Of bank conflicts it
    is their ways.
    """
    if category == _SHARED and (ways := _ways(status, before, after)):
        return ways
    has_it = after if status in {Status.new, Status.unmasked} else before
    for measure in verified:
        name = measure.worst_quantity(has_it)
        if name and _agrees(status, measure.gain_of(name, before, after)):
            return Seen(name, before.get(name), after.get(name))
    return None


def _ways(status: Status, before: LaunchSummary, after: LaunchSummary) -> Seen | None:
    """The worst conflicts of a kind of access on either side; accesses that are not there have
    none."""
    pairs = [(name, [launch.values.get(name, 1.0) for launch in (before, after)]) for name in _WAYS]
    name, ways = max(pairs, key=lambda pair: max(pair[1]))
    if not _agrees(status, (ways[0] - ways[1]) / max(ways)):
        return None
    conflicts = name.replace("ways", "conflict_share")
    share = after.get(conflicts) if status is Status.resolved else math.nan
    return Seen(name, before.get(name), after.get(name), share)


def _agrees(status: Status, gain: float) -> bool:
    """Whether a quantity that got better by that share shows what became of a finding."""
    match status:
        case Status.resolved | Status.improved | Status.unmasked:
            return gain >= MOVED
        case Status.new | Status.worsened | Status.masked:
            return gain <= -MOVED
    return abs(gain) < MOVED
