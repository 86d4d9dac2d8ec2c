"""Matches the kernels of two reports.

By demangled name and launch shape; what is left by name, in the order of launches; by name without
template arguments; then by similarity of names near the same place in the sequence. One kernel left
on each side is a pair too, where both do the same work. Unmatched kernels were added or removed.
Only the first two are certain: the others are marked.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from profkit.core.grouping import grouped
from profkit.report.summary import Group

LIKE = 0.5
"""The similarity from which two names may be one kernel's: half of the words of both together.
Chosen: lower pairs unrelated kernels, higher misses renamed ones."""
# Positions in the sequence that a renamed kernel is searched in. Chosen: bounds the work on reports
# of thousands of kernels.
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


class Basis(StrEnum):
    """How two kernels were matched."""

    same = "same name and launch shape"
    shape = "same name, another launch shape"
    function = "same function, other template arguments or parameters"
    renamed = "renamed: like name and place"
    order = "by order"
    only = "the only kernels"
    left = "the only kernels left, with equal work"
    nvtx = "by NVTX range"
    asked = "as asked"


class Match(Struct, frozen=True):
    """Two groups of launches matched as one kernel; `likeness`: the similarity of their names, 1 if
    equal."""

    before: Group
    after: Group
    basis: Basis
    likeness: float = 1.0

    @property
    def certain(self) -> bool:
        """Whether it is by demangled name, or by the user."""
        return self.basis in {Basis.same, Basis.shape, Basis.asked}

    @property
    def is_named(self) -> bool:
        """Whether names, ranges or the user join them: not only that nothing else is there."""
        return self.basis not in {Basis.only, Basis.left}


class Matching(Struct, frozen=True):
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
    still = _Open(before, after)
    for earlier, later in (names or {}).items():
        ours = [group for group in still.left.values() if earlier in _names(group)]
        theirs = [group for group in still.right.values() if later in _names(group)]
        still.pair(zip(ours, theirs, strict=False), Basis.asked, 1.0)
    if mode is Mode.order:
        still.pair(zip(still.left.values(), still.right.values(), strict=False), Basis.order, 1.0)
    else:
        _by_rules(still, mode)
    if len(before) == len(after) == 1 and not still.pairs and mode is not Mode.name:
        still.pair([(before[0], after[0])], Basis.only)
    last = list(zip(still.left.values(), still.right.values(), strict=False))
    if len(still.left) == len(still.right) == 1 and mode is not Mode.name:
        still.pair((pair for pair in last if does_same_work(*pair)), Basis.left)
    place = {id(group): index for index, group in enumerate(before)}
    return Matching(
        tuple(sorted(still.pairs, key=lambda earlier: place[id(earlier.before)])),
        tuple(group for group in before if id(group) in still.left),
        tuple(group for group in after if id(group) in still.right),
    )


class _Open:
    """The groups of two reports that have no partner yet, in the order of their first launch, and
    the pairs that were found."""

    def __init__(self, before: Sequence[Group], after: Sequence[Group]) -> None:
        self.left, self.right = (
            {
                id(group): group
                for group in sorted(side, key=lambda earlier: earlier.launches[0].index)
            }
            for side in (before, after)
        )
        self.pairs: list[Match] = []

    def pair(
        self, pairs: Iterable[tuple[Group, Group]], basis: Basis, likeness: float | None = None
    ) -> None:
        """Make pairs, of their names' similarity unless that is given."""
        for earlier, later in list(pairs):
            del self.left[id(earlier)], self.right[id(later)]
            own = alike(earlier.name, later.name) if likeness is None else likeness
            self.pairs.append(Match(earlier, later, basis, own))

    def join(self, key: Callable[[Group], Hashable], basis: Basis) -> None:
        """Pair equal keys, those of one key in order; keys that are empty match nothing."""
        theirs = grouped((key(group), group) for group in self.right.values())
        self.pair(
            [
                (group, theirs[key(group)].pop(0))
                for group in self.left.values()
                if key(group) and theirs.get(key(group))
            ],
            basis,
        )


def _by_rules(still: _Open, mode: Mode) -> None:
    if mode is Mode.nvtx:
        still.join(
            lambda group: (*_ranges(group), group.name) if _ranges(group) else (), Basis.nvtx
        )
        still.join(_ranges, Basis.nvtx)
    still.join(lambda group: (group.name, group.region, group.grid, group.block), Basis.same)
    still.join(lambda group: (group.name, group.region), Basis.shape)
    if mode is not Mode.name:
        still.join(lambda group: plain(group.name), Basis.function)
        _pair_like(still)


def _names(group: Group) -> set[str]:
    return {group.name, plain(group.name)}


def _pair_like(still: _Open) -> None:
    """Pair what is left whose names are most alike, near the same place, best first."""
    ours, theirs = list(still.left.values()), list(still.right.values())
    words = {id(group): _words(group.name) for group in (*ours, *theirs)}
    # where in the other sequence each would be if both ran alike
    scale = (len(theirs) - 1) / max(len(ours) - 1, 1)
    likely = [
        (likeness, -abs(index - near), index, other)
        for index in range(len(ours))
        for near in (round(index * scale),)
        for other in range(max(0, near - _NEAR), min(len(theirs), near + _NEAR + 1))
        if (likeness := _overlap(words[id(ours[index])], words[id(theirs[other])])) >= LIKE
    ]
    for likeness, _, index, other in sorted(likely, reverse=True):
        if id(ours[index]) in still.left and id(theirs[other]) in still.right:
            still.pair([(ours[index], theirs[other])], Basis.renamed, likeness)


def alike(first: str, second: str) -> float:
    """The share of words that two names have in common, of those of both (Jaccard's index)."""
    return 1.0 if first == second else _overlap(_words(first), _words(second))


def _overlap(first: frozenset[str], second: frozenset[str]) -> float:
    return len(first & second) / max(len(first | second), 1)


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
