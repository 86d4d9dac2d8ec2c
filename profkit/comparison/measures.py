"""The measures of a defect: what its rule says to verify, as data. `stall_barrier falls`."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from profkit.report.catalog import catalog
from profkit.report.checks import NOT_COLLECTED
from profkit.report.summary import LaunchSummary

MOVED = 0.1
"""The share of the larger side from which a measure has moved: less is noise, or no fix."""
LEAST_SHARE = 0.02
"""A share below this on both sides means nothing, however it moved."""

_CLAUSE = re.compile(
    r"(?P<names>\w+(?:(?:, | and | or )\w+)*) (?P<moves>falls?|rises?)\b(?P<to_none> to(wards)? 0)?"
)
_NAMES = re.compile(", | and | or ")


@dataclass(frozen=True)
class Measure:
    """Quantities of one unit that a fix lowers, or raises (`rises`): all of them together, or the
    worst of them (`alternatives`, listed with "or"), to which the others may even make up. Where a
    fix lowers them to 0 they count the defect itself (`is_defect`)."""

    names: tuple[str, ...]
    rises: bool
    alternatives: bool = False
    is_defect: bool = False

    def gain(self, before: LaunchSummary, after: LaunchSummary, has_it: LaunchSummary) -> float:
        """By how much it got better, as a share of the larger side; below 0 where it got worse.

        `has_it` is the side with the finding. NaN where a side did not record it. A resource's
        falling share is taken times the duration: what the work needs of it does not fall because
        something else takes longer.
        """
        names = [name for name in self.names if name in before.values and name in after.values]
        if self.alternatives and (worst := self.worst_quantity(has_it)) in names:
            names = [worst]
        if not names:
            return math.nan
        sides = [sum(launch.values[name] for name in names) for launch in (before, after)]
        if _is_small(names[0], sides):
            return 0.0
        if names[0].endswith("_busy") and not self.rises:
            sides = [sides[0] * before.duration, sides[1] * after.duration]
        return self._better(*sides)

    def gain_of(self, name: str, before: LaunchSummary, after: LaunchSummary) -> float:
        """By how much one of its quantities got better as it stands; NaN where not recorded."""
        sides = before.get(name), after.get(name)
        return 0.0 if _is_small(name, sides) else self._better(*sides)

    def worst_quantity(self, launch: LaunchSummary) -> str:
        """The quantity that is worst there; "" where all are unknown, or too small to matter."""
        known = {name: launch.values[name] for name in self.names if name in launch.values}
        if not known:
            return ""
        name = (min if self.rises else max)(known, key=known.__getitem__)
        return "" if not self.rises and _is_small(name, [known[name]]) else name

    def _better(self, before: float, after: float) -> float:
        difference = after - before if self.rises else before - after
        return difference / (max(abs(before), abs(after)) or 1.0)


@cache
def measures(verify: tuple[str, ...]) -> tuple[Measure, ...]:
    """The measures that a rule's `verify` names, in its order; none where no quantity moves."""
    return tuple(dict.fromkeys(measure for line in verify for measure in _measures(line)))


def known_gain(
    measures: Sequence[Measure], before: LaunchSummary, after: LaunchSummary, has_it: LaunchSummary
) -> float:
    """The gain of the first measure that both sides recorded; NaN without one."""
    gains = (measure.gain(before, after, has_it) for measure in measures)
    return next((gain for gain in gains if not math.isnan(gain)), math.nan)


def is_on_both(measures: Sequence[Measure], *sides: LaunchSummary) -> bool:
    """Whether both sides have the defect itself, as far as it is counted: more than MOVED of the
    larger count, and of what it is a share of."""
    names = [each.names[0] for each in measures if each.is_defect]
    counts = ((name, sorted(side.get(name) for side in sides)) for name in names)
    return any(
        less > MOVED * more and not _is_small(name, [less], MOVED) for name, (less, more) in counts
    )


def not_collected(measures: Sequence[Measure], *launches: LaunchSummary) -> bool:
    """Whether a report collected none of the measures: what is undefined of a launch, such as the
    sectors of accesses that there are none of any more, was collected."""
    names = [name for measure in measures for name in measure.names]
    return any(
        bool(names) and all(launch.why_missing(name).startswith(NOT_COLLECTED) for name in names)
        for launch in launches
    )


def _measures(line: str) -> Iterator[Measure]:
    known = catalog().quantities
    for clause in _CLAUSE.finditer(line):
        names = [name for name in _NAMES.split(clause["names"]) if name in known]
        same_unit = tuple(name for name in names if known[name].unit == known[names[0]].unit)
        if same_unit:
            rises = clause["moves"].startswith("rise")
            several, is_defect = " or " in clause["names"], bool(clause["to_none"])
            yield Measure(same_unit, rises, alternatives=several, is_defect=is_defect)


def _is_small(name: str, values: Sequence[float], least: float = LEAST_SHARE) -> bool:
    is_share = catalog().quantities[name].unit == "1"
    return is_share and all(value < least for value in values)
