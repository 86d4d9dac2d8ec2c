"""Other changes between two launches of a kernel: configuration, work, traffic, behavior."""

from enum import Enum
from functools import cache
from typing import Any, Literal

from msgspec import Struct, field

from profkit.core.typed_file import Model
from profkit.core.yaml_files import shipped_yaml
from profkit.report.catalog import catalog
from profkit.report.summary import LaunchSummary


class Sort(Enum):
    """How a quantity is compared.

    `setting`: any difference counts. `amount`: relative to the larger side, and to what it is part
    of. `share`: the difference in points.
    """

    setting = "setting"
    amount = "amount"
    share = "share"


COUNT_MOVED = 0.03
"""The share from which a count has changed: traffic and instructions of one kernel differ by as
much from one recording to the next."""
SHARE_MOVED = 0.02
"""The difference (of 1) from which a share has changed: 2 percentage points, chosen to hide what
one recording differs by from the next."""
SMALL_PART = 0.01
"""The part of its whole below which a count is negligible. Chosen: 1% of the traffic or the
instructions can't explain a change above noise."""


class Compared(Struct, frozen=True):
    """A quantity that is worth comparing; `whole` is what a count is a part of, "" for itself."""

    name: str
    sort: Sort
    whole: str = ""


class Changed(Model, frozen=True):
    """A quantity with both values, in the catalog's unit.

    `weight` ranks changes: 1 for a setting, for a count the share of the larger side that it
    differs by times its part of the whole, for a share the difference. `shown` is false for what is
    small or noise.
    """

    name: str = field(name="quantity")
    meaning: str
    unit: str
    sort: Sort
    before: float
    after: float
    weight: float
    shown: bool


class OneSided(Model, frozen=True):
    """A quantity that only one side recorded, and why the other lacks it."""

    name: str = field(name="quantity")
    side: Literal["before", "after"]
    value: float
    unit: str
    why: str


_SCALE = {"threads_per_instruction": 32.0}
"""The full value of a share that is not of 1: a warp has 32 threads."""


@cache
def quantities() -> tuple[Compared, ...]:
    """What is compared, in the order of `changes.yaml`."""
    file: dict[str, Any] = shipped_yaml("profkit.comparison", "changes.yaml")
    return (
        *(Compared(name, Sort.setting) for name in file["settings"]),
        *(
            Compared(name, Sort.amount, whole)
            for whole, names in file["amounts"].items()
            for name in names
        ),
        *(Compared(name, Sort.share) for name in file["shares"]),
    )


def changes(before: LaunchSummary, after: LaunchSummary) -> tuple[Changed, ...]:
    """The quantities that both recorded and that differ, weightiest first, those shown before all.

    A value that can't be (a hit rate above 1) is compared with nothing, one by a measure that is
    only near the quantity with its like.
    """
    doubtful = before.impossible | after.impossible
    changed = [
        _changed(compared, before, after)
        for compared in quantities()
        if abs(before.get(compared.name) - after.get(compared.name)) > 0
        and compared.name not in doubtful
        and before.is_proxy(compared.name) == after.is_proxy(compared.name)
    ]
    return tuple(
        sorted(changed, key=lambda change: (not change.shown, -change.weight, change.name))
    )


def one_sided(before: LaunchSummary, after: LaunchSummary) -> tuple[OneSided, ...]:
    """The quantities to compare that only one of two launches has."""
    sides: tuple[tuple[Literal["before", "after"], LaunchSummary, LaunchSummary], ...] = (
        ("before", before, after),
        ("after", after, before),
    )
    return tuple(
        OneSided(name, side, having.values[name], catalog().quantities[name].unit, reason)
        for side, having, lacking in sides
        for name in (compared.name for compared in quantities())
        if name in having.values and name not in lacking.values
        for reason in (lacking.why_missing(name),)
    )


def _changed(compared: Compared, before: LaunchSummary, after: LaunchSummary) -> Changed:
    name, sort = compared.name, compared.sort
    values = before.get(name), after.get(name)
    difference = abs(values[1] - values[0])
    weight, shown = 1.0, True
    if sort is Sort.share:
        weight = difference / _SCALE.get(name, 1.0)
        shown = weight >= SHARE_MOVED
    elif sort is Sort.amount:
        moved, part = difference / max(map(abs, values)), _part(compared, before, after)
        weight, shown = moved * part, moved >= COUNT_MOVED and part >= SMALL_PART
    entry = catalog().quantities[name]
    return Changed(name, entry.meaning, entry.unit, sort, *values, weight, shown)


def _part(compared: Compared, before: LaunchSummary, after: LaunchSummary) -> float:
    """How much of its whole a count is, on the side where it is more."""
    parts = [
        side.get(compared.name) / side.get(compared.whole)
        for side in (before, after)
        if side.get(compared.whole) > 0
    ]
    return min(max(parts, default=1.0), 1.0)
