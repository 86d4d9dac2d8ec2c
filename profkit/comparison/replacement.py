"""Kernels that others replace: what only one side launches, where the other launches another."""

import math
import re
from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct

from profkit.comparison.matching import Match, plain
from profkit.report.summary import Group

_WARM_UP = re.compile(r"warm[_ ]?up", re.IGNORECASE)


class Evidence(StrEnum):
    """Why kernels are taken for a replacement. Neither shows that both do the same work."""

    only = "the only kernels without a counterpart"
    place = "launched between the same kernels"


class Replacement(Struct, frozen=True):
    """Kernels that are gone, and those in their place: one change."""

    removed: tuple[Group, ...]
    added: tuple[Group, ...]
    evidence: Evidence

    @property
    def before(self) -> float:
        """Seconds of all launches of the removed kernels, by ncu."""
        return math.fsum(group.total for group in self.removed)

    @property
    def after(self) -> float:
        """Seconds of all launches of the added kernels, by ncu."""
        return math.fsum(group.total for group in self.added)

    @property
    def speedup(self) -> float:
        """Time before / time after; NaN where the kernels are not all launched equally often: a
        side may have repeated its work."""
        counts = {group.count for group in (*self.removed, *self.added)}
        is_like = len(counts) == 1 and self.before > 0 and self.after > 0
        return self.before / self.after if is_like else math.nan


def is_warm_up(group: Group) -> bool:
    """Whether a kernel's name says that it warms the GPU up, and does none of the work."""
    return bool(_WARM_UP.search(plain(group.name)))


def replacements(
    pairs: Iterable[Match], removed: Iterable[Group], added: Iterable[Group]
) -> tuple[Replacement, ...]:
    """Removed and added kernels that are one change: between the same matched kernels in the order
    of launches, or the only ones left."""
    pairs = list(pairs)
    anchors = [
        {_start(getattr(pair, side)): place for place, pair in enumerate(pairs)}
        for side in ("before", "after")
    ]
    left = [[group for group in side if not is_warm_up(group)] for side in (removed, added)]
    gaps: dict[int, tuple[list[Group], list[Group]]] = {}
    for side, groups in enumerate(left):
        for group in sorted(groups, key=_start):
            gaps.setdefault(_gap(group, anchors[side]), ([], []))[side].append(group)
    found = [
        Replacement(tuple(gone), tuple(come), Evidence.place)
        for gone, come in gaps.values()
        if gone and come
    ]
    if all(len(groups) == 1 for groups in left):
        return (Replacement(tuple(left[0]), tuple(left[1]), Evidence.only),)
    return tuple(sorted(found, key=lambda each: -(each.before + each.after)))


def _start(group: Group) -> int:
    return group.launches[0].index


def _gap(group: Group, anchors: dict[int, int]) -> int:
    """The matched pair whose kernel is launched last before a group; -1 where none is."""
    earlier = [start for start in anchors if start < _start(group)]
    return anchors[max(earlier)] if earlier else -1
