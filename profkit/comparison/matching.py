"""Which kernel of one report is which of another's.

By demangled name and launch shape; what is left by name, in the order of launches; by name without
template arguments; then by likeness of names near the same place in the sequence. One kernel that
is left on each side is a pair too, where both do the same work. What nothing matches was added or
removed. Only the first two are certain: the others are marked as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from profkit.report.summary import Group

LIKE = 0.5
"""The likeness from which two names may be one kernel's: half of the words of both together."""
_NEAR = 16
_WORD = re.compile(r"[A-Za-z]+|\d+")
_ANONYMOUS = "(anonymous namespace)::"
_TEMPLATE = re.compile(r"<[^<>]*>")


class Mode(StrEnum):
    """How kernels are matched."""

    auto = "auto"
    name = "name"
    order = "order"
    nvtx = "nvtx"


class How(StrEnum):
    """What made two kernels a pair."""

    same = "same name and launch shape"
    shape = "same name, another launch shape"
    function = "same function, other template arguments or parameters"
    renamed = "renamed: like name and place"
    order = "by order"
    only = "the only kernels"
    left = "the only kernels left, with equal work"
    nvtx = "by NVTX range"
    asked = "as asked"


@dataclass(frozen=True)
class Match:
    """Two groups of launches taken as one kernel; `likeness` of their names, 1 for equal ones."""

    before: Group
    after: Group
    how: How
    likeness: float = 1.0

    @property
    def certain(self) -> bool:
        """Whether the demangled name, or the user, tells it."""
        return self.how in {How.same, How.shape, How.asked}

    @property
    def is_named(self) -> bool:
        """Whether names, ranges or the user join them: not only that nothing else is there."""
        return self.how not in {How.only, How.left}


@dataclass(frozen=True)
class Matching:
    """Pairs in the order of the earlier report's groups, and what only one side has."""

    pairs: tuple[Match, ...]
    removed: tuple[Group, ...]
    added: tuple[Group, ...]


def match(
    before: Sequence[Group],
    after: Sequence[Group],
    mode: Mode = Mode.auto,
    names: Mapping[str, str] | None = None,
    does_same_work: Callable[[Group, Group], bool] = lambda _, __: False,
) -> Matching:
    """Pairs of groups.

    `names` says which kernel of the earlier report became which (demangled names, or without
    arguments), before all else. `mode` name takes equal names only, order the sequence alone, nvtx
    ranges first and then as auto does. Of those that are left, one on each side is a pair if
    `does_same_work` of the two.
    """
    left, right = _Side(before), _Side(after)
    found: list[Match] = []
    if names:
        found += _asked(left, right, names)
    if mode is Mode.order:
        found += [
            left.with_(one, other, right, How.order)
            for one, other in zip(left.rest(), right.rest(), strict=False)
        ]
    else:
        found += _by_rules(left, right, mode)
    if len(before) == len(after) == 1 and not found and mode is not Mode.name:
        likeness = alike(before[0].name, after[0].name)
        found = [left.with_(before[0], after[0], right, How.only, likeness)]
    if mode is not Mode.name:
        found += _last(left, right, does_same_work)
    place = {id(group): at for at, group in enumerate(before)}
    return Matching(
        tuple(sorted(found, key=lambda one: place[id(one.before)])),
        tuple(group for group in before if left.has(group)),
        tuple(group for group in after if right.has(group)),
    )


class _Side:
    """The groups of a report that have no partner yet, in the order of their first launch."""

    def __init__(self, groups: Sequence[Group]) -> None:
        ordered = sorted(groups, key=lambda group: group.launches[0].index)
        self._left = {id(group): group for group in ordered}
        self.place = {id(group): at for at, group in enumerate(ordered)}

    def rest(self) -> list[Group]:
        return list(self._left.values())

    def has(self, group: Group) -> bool:
        return id(group) in self._left

    def take(self, group: Group) -> None:
        del self._left[id(group)]

    def with_(
        self, group: Group, other: Group, side: _Side, how: How, likeness: float = 1.0
    ) -> Match:
        """A match of a group here with one of another side; neither is left."""
        self.take(group)
        side.take(other)
        return Match(group, other, how, likeness)


def _by_rules(left: _Side, right: _Side, mode: Mode) -> list[Match]:
    found: list[Match] = []
    if mode is Mode.nvtx:
        found += _joined(left, right, _named_in_ranges, How.nvtx)
        found += _joined(left, right, _ranges, How.nvtx)
    found += _joined(left, right, lambda group: (group.name, group.grid, group.block), How.same)
    found += _joined(left, right, lambda group: group.name, How.shape)
    if mode is not Mode.name:
        found += _joined(left, right, lambda group: plain(group.name), How.function)
        found += _like(left, right)
    return found


def _named_in_ranges(group: Group) -> tuple[object, ...]:
    """Its ranges and its name; nothing outside of any range."""
    ranges = _ranges(group)
    return (ranges, group.name) if ranges else ()


def _asked(left: _Side, right: _Side, names: Mapping[str, str]) -> list[Match]:
    found = []
    for one, other in names.items():
        ours = [group for group in left.rest() if one in {group.name, plain(group.name)}]
        theirs = [group for group in right.rest() if other in {group.name, plain(group.name)}]
        found += [
            left.with_(first, second, right, How.asked)
            for first, second in zip(ours, theirs, strict=False)
        ]
    return found


def _joined(
    left: _Side, right: _Side, key: Callable[[Group], Hashable], how: How
) -> Iterable[Match]:
    """Groups with equal keys, those of one key in order; keys that are empty match nothing."""
    theirs: dict[Hashable, list[Group]] = {}
    for group in right.rest():
        theirs.setdefault(key(group), []).append(group)
    found = []
    for group in left.rest():
        waiting = theirs.get(key(group))
        if waiting and key(group):
            likeness = 1.0 if group.name == waiting[0].name else alike(group.name, waiting[0].name)
            found.append(left.with_(group, waiting.pop(0), right, how, likeness))
    return found


def _like(left: _Side, right: _Side) -> Iterable[Match]:
    """Pairs of what is left whose names are most alike, near the same place, best first."""
    ours, theirs = left.rest(), right.rest()
    words = {id(group): _words(group.name) for group in (*ours, *theirs)}
    places = _places(ours, theirs)
    likely = [
        (likeness, -abs(at - near), at, other)
        for at, near in enumerate(places)
        for other in range(max(0, near - _NEAR), min(len(theirs), near + _NEAR + 1))
        if (likeness := _overlap(words[id(ours[at])], words[id(theirs[other])])) >= LIKE
    ]
    found = []
    for likeness, _, at, other in sorted(likely, reverse=True):
        if left.has(ours[at]) and right.has(theirs[other]):
            found.append(left.with_(ours[at], theirs[other], right, How.renamed, likeness))
    return found


def _last(
    left: _Side, right: _Side, does_same_work: Callable[[Group, Group], bool]
) -> Iterable[Match]:
    """The one group that is left on each side."""
    ours, theirs = left.rest(), right.rest()
    if len(ours) == len(theirs) == 1 and does_same_work(ours[0], theirs[0]):
        likeness = alike(ours[0].name, theirs[0].name)
        return [left.with_(ours[0], theirs[0], right, How.left, likeness)]
    return []


def _places(ours: Sequence[Group], theirs: Sequence[Group]) -> list[int]:
    """Where in the other sequence each would be if both ran alike."""
    scale = (len(theirs) - 1) / max(len(ours) - 1, 1)
    return [round(at * scale) for at in range(len(ours))]


def alike(one: str, other: str) -> float:
    """The share of words that two names have in common, of those of both (Jaccard's index)."""
    return _overlap(_words(one), _words(other))


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(len(one | other), 1)


def _words(name: str) -> frozenset[str]:
    """The words of a name without its arguments: at underscores, capitals and digits."""
    text = re.sub(r"([a-z])([A-Z])", r"\1 \2", plain(name))
    return frozenset(word.lower() for word in _WORD.findall(text))


def plain(name: str) -> str:
    """A demangled name without return type, template arguments and parameters."""
    text = name.replace(_ANONYMOUS, "")
    while (shorter := _TEMPLATE.sub("", text)) != text:
        text = shorter
    return text.split("(")[0].removeprefix("void ").strip()


def _ranges(group: Group) -> tuple[str, ...]:
    return group.launches[0].launch.nvtx
