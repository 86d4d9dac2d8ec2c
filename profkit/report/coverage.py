"""Coverage of the catalog by a report: quantities found, derived, or missing and why."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from profkit.report.catalog import Quantity, catalog
from profkit.report.formula import parse

if TYPE_CHECKING:
    from profkit.report.summary import LaunchSummary


@dataclass(frozen=True)
class Coverage:
    """Coverage of one quantity over some launches.

    `status` is "found" (one ncu metric as it is), "derived" (by a formula) or "missing"; `present`
    the launches that have it, `doubtful` those of them with an impossible value; `low` and `high`
    the range of its values, NaN without any; `reasons` why the others lack it, most frequent first.
    """

    quantity: Quantity
    status: str
    present: int
    doubtful: int
    launches: int
    low: float
    high: float
    reasons: tuple[tuple[str, int], ...]


def coverage(launches: Sequence[LaunchSummary]) -> tuple[Coverage, ...]:
    """The coverage of every catalog quantity, in the order of the catalog."""
    return tuple(_coverage(quantity, launches) for quantity in catalog().quantities.values())


def _coverage(quantity: Quantity, launches: Sequence[LaunchSummary]) -> Coverage:
    name = quantity.name
    present = [launch for launch in launches if name in launch.values]
    values = [launch.values[name] for launch in present]
    formulas = {launch.formulas[name] for launch in present}
    plain = all(formula and parse(formula).is_plain for formula in formulas)
    reasons = Counter(launch.missing[name] for launch in launches if name in launch.missing)
    return Coverage(
        quantity=quantity,
        status=("found" if plain else "derived") if present else "missing",
        present=len(present),
        doubtful=sum(name in launch.impossible for launch in present),
        launches=len(launches),
        low=min(values, default=math.nan),
        high=max(values, default=math.nan),
        reasons=tuple(reasons.most_common()),
    )
