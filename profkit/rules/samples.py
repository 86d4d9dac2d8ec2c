"""Quantities for rules from a launch's warp samples: shares by cause and by loop.

Let T be all samples of a launch, M those that a rule's `match` selects, A those in which a warp
issued an instruction of the same loops. Removing the cause leaves 1 - M/T of the time. Overlapping
the wait with other work leaves 1 - min(A, M)/T, at most a speedup of 2x: the work to overlap with
is what the loop issues (Zhou et al., CGO 2021). Several independent loads in flight gain more,
because their latencies overlap.
"""

from __future__ import annotations

import fnmatch
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Annotated, TypeAlias

from msgspec import Meta

from profkit.core.grouping import grouped
from profkit.core.typed_file import Model
from profkit.core.yaml_files import shipped_yaml
from profkit.machine_code.blame import LONG, Samples, Wait
from profkit.machine_code.operation import GLOBAL_LOADS
from profkit.machine_code.spare_work import (
    division_share,
    overhead_share,
    reread_share,
    shared_accumulator_share,
)
from profkit.report.source_lines import Place

if TYPE_CHECKING:
    from profkit.machine_code.flow import Loop

CHAIN: Mapping[str, tuple[str, str]]
"""Quantities of a kernel's chain for rules, with unit and meaning."""
SAMPLED: Mapping[str, tuple[str, str]]
"""Quantities from warp samples by instruction for rules, with unit and meaning. Unknown for a
launch without samples, or with too many instructions."""
APPLICATION: Mapping[str, tuple[str, str]]
"""Quantities of an application's step for rules, with unit and meaning."""
SAVINGS: Mapping[str, str]
"""The parts of a step's time that a fix may eliminate, in words."""
CATEGORIES: Sequence[str]
"""Categories of rules."""
CODE: Mapping[str, tuple[str, str]]
"""Quantities of a kernel's machine code, with unit and meaning."""
LAUNCHED: Mapping[str, tuple[str, str]]
"""Quantities of a kernel's launch and declared work besides the catalog's."""
GROUPS: Mapping[str, Sequence[str]]
"""Names for several resources or stalls in what a fix relieves."""
BLAMED: Mapping[str, str]
"""What line quantities count, in words."""
CHAIN, SAMPLED, APPLICATION, SAVINGS, CATEGORIES, CODE, LAUNCHED, GROUPS, BLAMED = shipped_yaml(
    "profkit.rules", "vocabulary.yaml"
).values()

SAMPLED_FROM = "pc_samples"
"""The catalog quantity of launches with warp samples by instruction."""

WORTH_SAMPLING = 0.15
"""The smallest share of a report's time from which a kernel's samples are read: the vendor's
disassembler alone takes a third of a second, half as long as everything else."""
MOST_READ = 6000
"""Instructions of the longest code whose samples are read, chosen: the vendor's disassembler then
takes as long as all else."""
NOT_SAMPLED = "no warp samples were recorded"
SHORT_KERNEL = f"kernels below {WORTH_SAMPLING:.0%} of the GPU time; --kernel REGEX selects one"
LONG_CODE = f"code of more than {MOST_READ:,} instructions is not read"
NO_CODE = "NVIDIA's reader shows no machine code of this kernel; it lacks old architectures"
"""Why nothing is known of a launch's samples by instruction."""

LONGEST_LINE = 200  # characters of a source line, chosen: bounds the cost of matching patterns
_ENOUGH_ATTRIBUTED = 0.5  # of the samples, chosen: a mean over less than half may mislead

_OF_THE_CODE: Mapping[str, Callable[[Samples], float]] = {
    "overhead_share": overhead_share,
    "division_share": division_share,
    "shared_accumulator_share": shared_accumulator_share,
    "reread_share": reread_share,
}

Texts: TypeAlias = Annotated[tuple[str, ...], Meta(min_length=1)]
Patterns: TypeAlias = Annotated[
    tuple[Annotated[str, Meta(min_length=1, max_length=100)], ...],
    Meta(min_length=1, max_length=20),
]


class Match(Model, frozen=True, kw_only=True):
    """A selection of warp samples; an empty field selects all.

    `stall` are stall reasons, `opcode` and `producer` patterns (`*` and `?`) for the opcodes of the
    stalled instruction and of the one that it waits for, `line` for the source text of the stalled
    one; `in_loop` selects instructions in loops.
    """

    stall: Texts = ()
    opcode: Patterns = ()
    producer: Patterns = ()
    line: Patterns = ()
    in_loop: bool = False


class Sampled:
    """The quantities of one launch. `text` returns the source line of an instruction, "" if
    unknown."""

    def __init__(self, samples: Samples, text: Callable[[str, int], str]) -> None:
        self._samples = samples
        self._text = text
        self._shares = cache(self._selected_shares)
        self._waits_of = cache(self._waits_by_waiter)
        self._mean = cache(self._mean_of)
        self._whole = cache(lambda name: _OF_THE_CODE[name](samples))

    def get(self, name: str, match: tuple[Match, ...] = ()) -> float:
        """A fact of SAMPLED; NaN where it is unknown."""
        samples = self._samples
        if not samples.total or not samples.has_code:
            return math.nan
        match name:
            case "matched" | "matched_active":
                return self._shares(match)[name == "matched_active"]
            case "overlap_share":
                return self._overlap
        return self._whole(name) if name in _OF_THE_CODE else self._mean(name)

    def causes(self, reason: str, most: int) -> tuple[Place, ...]:
        """The source lines, or instructions, that others wait for most, largest first."""
        places: dict[tuple[str, int, int, str], float] = defaultdict(float)
        waits = self._samples.waits(reason)
        for wait in waits:
            row = self._samples.rows[wait.producer]
            address, sass = (0, "") if row.line else (row.address, " ".join(row.sass.split()))
            places[row.file, row.line, address, sass] += wait.samples
        total = sum(wait.samples for wait in waits)
        largest = sorted(places.items(), key=lambda item: (-item[1], item[0]))[:most]
        return tuple(
            Place(file, line, sass, samples / total, address)
            for (file, line, address, sass), samples in largest
        )

    def _selected_shares(self, match: tuple[Match, ...]) -> tuple[float, float]:
        """M/T and A/T of what any of the blocks selects."""
        samples = self._samples
        selected = {
            index: sum(
                count * max((self._share(block, index, reason) for block in match), default=0.0)
                for reason, count in samples.by_reason[index].items()
            )
            for index in range(len(samples.rows))
        }
        loops = dict.fromkeys(samples.flow.loop_of(index) for index in selected if selected[index])
        issued = samples.issued({index for loop in loops for index in samples.places(loop)})
        return sum(selected.values()) / samples.total, issued / samples.total

    def _share(self, match: Match, index: int, reason: str) -> float:
        """The share of the samples of an instruction and a reason that a block selects."""
        flow, row = self._samples.flow, self._samples.rows[index]
        excluded = (
            (match.stall and reason not in match.stall)
            or (match.in_loop and flow.loop_of(index) is None)
            or (match.opcode and not _fits(flow.operations[index].opcode, match.opcode))
            or (match.line and not _fits(self._text(row.file, row.line)[:LONGEST_LINE], match.line))
        )
        if excluded or not match.producer:
            return 0.0 if excluded else 1.0
        waits = self._waits_of(reason).get(index, ())
        fitting = sum(
            wait.samples
            for wait in waits
            if _fits(flow.operations[wait.producer].opcode, match.producer)
        )
        return fitting / sum(wait.samples for wait in waits) if waits else 0.0

    def _waits_by_waiter(self, reason: str) -> Mapping[int, Sequence[Wait]]:
        return grouped((wait.waiter, wait) for wait in self._samples.waits(reason))

    @cached_property
    def _loads(self) -> tuple[Wait, ...]:
        """Waits for loads from global memory; none where too few of such waits are attributed."""
        samples, operations = self._samples, self._samples.flow.operations
        loads = [w for w in samples.waits(LONG) if operations[w.producer].base in GLOBAL_LOADS]
        total = sum(samples.by_reason[index].get(LONG, 0.0) for index in range(len(operations)))
        attributed = sum(wait.samples for wait in loads)
        return tuple(loads) if attributed > _ENOUGH_ATTRIBUTED * total else ()

    def _mean_of(self, name: str) -> float:
        """A fact about loads from global memory, weighted by the samples that wait for them."""
        total = sum(wait.samples for wait in self._loads)
        values: Mapping[str, Callable[[int], float]] = {
            "chased_share": lambda load: bool(self._samples.feeding(load)),
            "linked_share": self._samples.is_linked,
            "loads_per_wait": {
                load: len(batch) for batch in self._batches for load in batch
            }.__getitem__,
        }
        weighted = sum(wait.samples * values[name](wait.producer) for wait in self._loads)
        return weighted / total if total else math.nan

    @cached_property
    def _batches(self) -> tuple[tuple[int, ...], ...]:
        """Loads in the order of the code, parted where a warp waits for one of the batch or where
        another loop begins."""
        flow = self._samples.flow
        awaited: dict[int, set[int]] = defaultdict(set)
        for wait in self._loads:
            awaited[wait.waiter].add(wait.producer)
        batches: list[list[int]] = [[]]
        previous: Loop | None = None
        for index, operation in enumerate(flow.operations):
            loop = flow.loop_of(index)
            if not awaited[index].isdisjoint(batches[-1]) or loop is not previous:
                batches.append([])
            previous = loop
            if operation.base in GLOBAL_LOADS:
                batches[-1].append(index)
        return tuple(tuple(batch) for batch in batches if batch)

    @cached_property
    def _overlap(self) -> float:
        if not self._loads:
            return math.nan
        waits: dict[int, float] = defaultdict(float)
        for wait in self._loads:
            waits[wait.producer] += wait.samples
        loops = grouped((self._samples.flow.loop_of(batch[0]), batch) for batch in self._batches)
        hidden = sum(self._hidden(batches, waits) for batches in loops.values())
        return hidden / self._samples.total

    def _hidden(self, batches: Sequence[Sequence[int]], waits: Mapping[int, float]) -> float:
        """All waits of some batches less those on the longest chain of batches that need one
        another's results."""
        longest: list[float] = []
        total = 0.0
        for batch in batches:
            needed = {load for index in batch for load in self._samples.feeding(index)}
            chains = zip(batches, longest, strict=False)
            before = [chain for earlier, chain in chains if needed.intersection(earlier)]
            own = sum(waits.get(index, 0.0) for index in batch)
            total += own
            longest.append(own + max(before, default=0.0))
        return total - max(longest, default=0.0)


def _fits(text: str, patterns: Sequence[str]) -> bool:
    """Whether a text fits a pattern; `*` and `?` alone can't be made to take long."""
    return any(fnmatch.fnmatchcase(text, pattern) for pattern in patterns)
