"""What the samples of a launch tell a rule: shares of its warp samples, by cause and by loop.

Let T be all samples of a launch, M those that a rule's `match` selects and A those in which a warp
issued an instruction of the same loops. Removing the cause leaves 1 - M/T of the time. Hiding the
wait behind other work leaves 1 - min(A, M)/T, so it never gives more than 2x: the work to hide
behind is what the loop issues (Zhou et al., CGO 2021). Several independent loads in flight at once
give more, because they wait together.
"""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Annotated, TypeAlias

from msgspec import Meta

from profkit.core.typed_file import Model
from profkit.core.yaml_files import shipped_yaml
from profkit.report.blame import GLOBAL_LOADS, LONG, Samples, Wait
from profkit.report.source_lines import Place
from profkit.report.spare_work import overhead_share, reread_share

if TYPE_CHECKING:
    from profkit.report.sass_flow import Loop

BEFORE: Mapping[str, tuple[str, str]]
"""What rules may name of the launch right before, with unit and meaning."""
SAMPLED: Mapping[str, tuple[str, str]]
"""What rules may name of the samples by instruction, with unit and meaning. Unknown of a launch
without them, or of one too long to be looked at."""
BEFORE, SAMPLED = shipped_yaml("profkit.rules", "vocabulary.yaml").values()

SAMPLED_FROM = "pc_samples"
"""The catalogue quantity that a launch has where it was sampled by instruction."""

WORTH_SAMPLING = 0.15
"""The share of a report's time that a kernel must take for its samples to be looked at: the
vendor's disassembler alone takes a third of a second, half as long as all else."""

LONGEST_LINE = 200
_ENOUGH_TOLD = 0.5


Texts: TypeAlias = Annotated[tuple[str, ...], Meta(min_length=1)]
Patterns: TypeAlias = Annotated[
    tuple[Annotated[str, Meta(min_length=1, max_length=100)], ...],
    Meta(min_length=1, max_length=20),
]


class Match(Model, frozen=True, kw_only=True):
    """Which samples a rule is about; what is empty selects all.

    `stall` are reasons, `opcode` and `producer` patterns (`*` and `?`) for the opcodes of the
    waiting instruction and of the one it waits for, `line` for the waiting one's source text.
    """

    stall: Texts = ()
    opcode: Patterns = ()
    producer: Patterns = ()
    line: Patterns = ()
    in_loop: bool = False


class Sampled:
    """The facts of one launch. `text` gives the source line of an instruction, "" if unknown."""

    def __init__(self, samples: Samples, text: Callable[[str, int], str]) -> None:
        self._samples = samples
        self._text = text
        self._matched: dict[tuple[Match, ...], tuple[float, float]] = {}

    def get(self, name: str, match: tuple[Match, ...] = ()) -> float:
        """A fact of SAMPLED; NaN where it can't be told."""
        if not self._samples.total or not self._samples.has_code:
            return math.nan
        facts: Mapping[str, Callable[[], float]] = {
            "matched": lambda: self._shares(match)[0],
            "matched_active": lambda: self._shares(match)[1],
            "chased_share": lambda: self._chased,
            "linked_share": lambda: self._linked,
            "loads_per_wait": lambda: self._batched,
            "overlap_share": lambda: self._overlap,
            "overhead_share": lambda: overhead_share(self._samples),
            "reread_share": lambda: reread_share(self._samples),
        }
        return facts[name]()

    def causes(self, reason: str, most: int) -> tuple[Place, ...]:
        """The source lines, or instructions, that others wait for most, largest first."""
        found: dict[tuple[str, int, int], float] = {}
        texts: dict[int, str] = {}
        waits = self._samples.waits(reason)
        for wait in waits:
            row = self._samples.rows[wait.producer]
            address = 0 if row.line else row.address
            texts[address] = "" if row.line else " ".join(row.sass.split())
            key = (row.file, row.line, address)
            found[key] = found.get(key, 0.0) + wait.samples
        total = sum(wait.samples for wait in waits)
        largest = sorted(found.items(), key=lambda item: (-item[1], item[0]))[:most]
        return tuple(
            Place(file, line, texts[address], samples / total, address)
            for (file, line, address), samples in largest
        )

    def _shares(self, match: tuple[Match, ...]) -> tuple[float, float]:
        """M/T and A/T of what any of the blocks selects."""
        if match not in self._matched:
            total = self._samples.total
            places: dict[int, float] = {}
            for at in range(len(self._samples.rows)):
                share = sum(self._selected(match, at))
                if share:
                    places[at] = share
            loops = dict.fromkeys(self._samples.flow.loop_of(at) for at in places)
            around = {at for loop in loops for at in self._samples.places(loop)}
            issued = self._samples.issued(around)
            self._matched[match] = sum(places.values()) / total, issued / total
        return self._matched[match]

    def _selected(self, match: tuple[Match, ...], at: int) -> Iterator[float]:
        """The samples at an instruction by reason, as far as one of the blocks selects them."""
        for reason, samples in self._samples.by_reason(at).items():
            if samples:
                yield samples * max((self._share(one, at, reason) for one in match), default=0.0)

    def _share(self, match: Match, at: int, reason: str) -> float:
        if match.stall and reason not in match.stall:
            return 0.0
        flow, row = self._samples.flow, self._samples.rows[at]
        if match.in_loop and flow.loop_of(at) is None:
            return 0.0
        if match.opcode and not _fits(flow.operations[at].opcode, match.opcode):
            return 0.0
        if match.line and not _fits(self._text(row.file, row.line)[:LONGEST_LINE], match.line):
            return 0.0
        return self._caused(match.producer, at, reason) if match.producer else 1.0

    def _caused(self, patterns: tuple[str, ...], at: int, reason: str) -> float:
        """The share of an instruction's samples that await a producer of these opcodes."""
        waits = self._by_waiter(reason).get(at, ())
        operations = self._samples.flow.operations
        fit = sum(
            wait.samples for wait in waits if _fits(operations[wait.producer].opcode, patterns)
        )
        return fit / sum(wait.samples for wait in waits) if waits else 0.0

    def _by_waiter(self, reason: str) -> Mapping[int, Sequence[Wait]]:
        if reason not in self._waiting:
            found: dict[int, list[Wait]] = {}
            for wait in self._samples.waits(reason):
                found.setdefault(wait.waiter, []).append(wait)
            self._waiting[reason] = found
        return self._waiting[reason]

    @cached_property
    def _waiting(self) -> dict[str, Mapping[int, Sequence[Wait]]]:
        return {}

    @cached_property
    def _loads(self) -> tuple[Wait, ...]:
        """Waits for loads from global memory; none where too few of such waits could be told."""
        operations = self._samples.flow.operations
        found = tuple(
            wait
            for wait in self._samples.waits(LONG)
            if operations[wait.producer].base in GLOBAL_LOADS
        )
        all_of_them = sum(
            self._samples.by_reason(at).get(LONG, 0.0) for at in range(len(operations))
        )
        told = sum(wait.samples for wait in found)
        return found if told > _ENOUGH_TOLD * all_of_them else ()

    @cached_property
    def _chased(self) -> float:
        return self._mean(lambda wait: float(bool(self._samples.feeding(wait.producer))))

    @cached_property
    def _linked(self) -> float:
        return self._mean(lambda wait: float(self._samples.is_linked(wait.producer)))

    @cached_property
    def _batched(self) -> float:
        sizes = {at: len(batch) for batch in self._batches for at in batch}
        return self._mean(lambda wait: float(sizes[wait.producer]))

    def _mean(self, value: Callable[[Wait], float]) -> float:
        total = sum(wait.samples for wait in self._loads)
        if not total:
            return math.nan
        return sum(wait.samples * value(wait) for wait in self._loads) / total

    @cached_property
    def _batches(self) -> tuple[tuple[int, ...], ...]:
        """Loads in the order of the code, parted where a warp waits for one of the batch or where
        another loop begins."""
        operations, flow = self._samples.flow.operations, self._samples.flow
        waiters: dict[int, set[int]] = {}
        for wait in self._loads:
            waiters.setdefault(wait.waiter, set()).add(wait.producer)
        found: list[tuple[int, ...]] = []
        batch: list[int] = []
        loop: Loop | None = None
        for at, one in enumerate(operations):
            here = flow.loop_of(at)
            if batch and (waiters.get(at, set()).intersection(batch) or here is not loop):
                found.append(tuple(batch))
                batch = []
            loop = here
            if one.base in GLOBAL_LOADS:
                batch.append(at)
        return (*found, tuple(batch)) if batch else tuple(found)

    @cached_property
    def _overlap(self) -> float:
        if not self._loads:
            return math.nan
        waits: dict[int, float] = {}
        for wait in self._loads:
            waits[wait.producer] = waits.get(wait.producer, 0.0) + wait.samples
        by_loop: dict[Loop | None, list[tuple[int, ...]]] = {}
        for batch in self._batches:
            by_loop.setdefault(self._samples.flow.loop_of(batch[0]), []).append(batch)
        hidden = sum(self._hidden(batches, waits) for batches in by_loop.values())
        return hidden / self._samples.total

    def _hidden(self, batches: Sequence[Sequence[int]], waits: Mapping[int, float]) -> float:
        """All waits of some batches less those on the longest chain of batches that need one
        another's results."""
        longest: list[float] = []
        for number, batch in enumerate(batches):
            needed = {other for at in batch for other in self._samples.feeding(at)}
            before = (longest[at] for at in range(number) if needed.intersection(batches[at]))
            own = sum(waits.get(at, 0.0) for at in batch)
            longest.append(own + max(before, default=0.0))
        total = sum(waits.get(at, 0.0) for batch in batches for at in batch)
        return total - max(longest, default=0.0)


@cache
def _pattern(text: str) -> Callable[[str], bool]:
    """A pattern's test; `*` and `?` alone can't be made to take long."""
    return lambda told: fnmatch.fnmatchcase(told, text)


def _fits(text: str, patterns: Sequence[str]) -> bool:
    return any(_pattern(one)(text) for one in patterns)
