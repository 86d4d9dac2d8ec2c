"""What the machine code of a kernel shows without a run: its mix of instructions, by loops.

How often an instruction runs is not known. A loop is taken to run its body LOOP_WEIGHT times, an
instruction in two nested ones LOOP_WEIGHT squared; shares and means over instructions have these
weights. Cycles are those in which a scheduler's part of a unit is taken by a warp's instruction
(CUDA C++ Programming Guide, "Throughput of Native Arithmetic Instructions").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from profkit.machine_code.lane_addresses import accesses
from profkit.machine_code.opcodes import class_of, half_flop_of_move, opcodes
from profkit.machine_code.operation import GLOBAL_LOADS, Operation, unless_loaded
from profkit.machine_code.spare_work import is_division_check

if TYPE_CHECKING:
    from profkit.machine_code.flow import Flow, Loop
    from profkit.machine_code.operation import Operation

LOOP_WEIGHT = 8
"""The times that a loop runs its body, chosen: the usual guess of a compiler is 8 to 10."""

_DEEPEST = 4  # nested loops that count, chosen: what is deeper hides nothing of the others
_SIXTY_FOUR = frozenset({"F64", "64H", "64"})
_EXITS = frozenset({"BRA", "BREAK", "EXIT"})
# Cycles of a warp's instruction in a scheduler's part of a unit, CC 9.0: 32 lanes of FP32, 16 of
# integers and of FP64, 4 of special functions and conversions; one access of all four schedulers
# to L1 and shared memory a cycle.
_UNITS: Mapping[str, tuple[str, int]] = {
    "fp32": ("fma", 1), "fp64": ("fp64", 2), "special": ("xu", 8), "conversion": ("xu", 8),
    "integer": ("alu", 2), "shared_memory": ("lsu", 4), "shared_atomic": ("lsu", 4),
    "global_memory": ("lsu", 4), "local_memory": ("lsu", 4), "global_atomic": ("lsu", 4),
    "shuffle": ("lsu", 4),
}  # fmt: skip
_SLOW_INTEGERS, _PRODUCTS = frozenset({"POPC", "FLO", "BREV"}), frozenset({"IMAD", "UIMAD", "IMUL"})
_COMPARISONS = frozenset({"FMNMX", "FSETP", "FSEL", "FCHK"})  # of FP32, on the units of integers
_NARROW_CONVERSIONS = frozenset({"I2FP", "F2FP", "I2IP"})
_WORD_ACCESSES = frozenset({"LDS", "STS"})  # others have other patterns than a lane's word
_HALF = frozenset({"HFMA2", "HADD2", "HMUL2"})
# Cycles until a result can be used, rounded: microbenchmarks of Volta to Hopper have 4 for
# arithmetic, 8 for FP64, 23 to 30 for shared memory, and 400 to 600 for DRAM.
_LATENCY, _FP64_LATENCY, _SHORT_LATENCY, LOAD_LATENCY = 4, 8, 28, 400
_ROUNDS = 4  # of a loop, chosen: what one adds to the next is then the same
_SHORT = opcodes("short_scoreboard") - {"DADD", "DMUL", "DFMA", "DSETP", "STS", "S2R", "S2UR"}


class CodeFacts:
    """The facts of one launch's code; `block` and `grid` are its extents."""

    def __init__(self, flow: Flow, block: Sequence[int], grid: Sequence[int]) -> None:
        self._flow = flow
        self._steps = flow.operations
        self._accesses = accesses(flow, block, grid)
        depths = [
            sum(number in loop.blocks for loop in flow.loops) for number in range(len(flow.blocks))
        ]
        # How often each instruction is taken to run.
        self._weights: tuple[int, ...] = tuple(
            LOOP_WEIGHT ** min(_DEEPEST, depths[flow.block_of(i)]) for i in range(len(self._steps))
        )
        self._total = sum(self._weights)

    @cached_property
    def values(self) -> Mapping[str, float]:
        """The facts by name: those of `code` in rules/vocabulary.yaml."""
        flow = self._flow
        return {
            "code_instructions": float(len(self._steps)),
            "code_loop_share": self._share(lambda i, _: flow.loop_of(i) is not None),
            "code_loop_depth": max((loop.depth + 1 for loop in flow.loops), default=0),
            **self._mix(),
            **self._unit_cycles(),
            **self._address_facts(),
            **self._load_facts(),
            **self._control_facts(),
            "code_half_share": self._share(lambda _, step: _is_half(step)),
            "code_carried_cycles": self._carried_cycles(),
            "code_unfused_share": self._share(self._is_unfused),
            "code_division_share": self._share(lambda _, step: is_division_check(step)),
        }

    def _share(self, fits: Callable[[int, Operation], bool]) -> float:
        """The share of the instructions that fit, by weight."""
        rows = zip(enumerate(self._steps), self._weights, strict=True)
        return sum(weight for (index, step), weight in rows if fits(index, step)) / self._total

    def _mix(self) -> dict[str, float]:
        """Shares of kinds of instructions."""
        kinds: Counter[str] = Counter()
        for step, weight in zip(self._steps, self._weights, strict=True):
            kinds.update({class_of(step.base): weight})
            kinds.update({step.base: weight})

        def of(*names: str) -> float:
            return sum(kinds[name] for name in names) / self._total

        return {
            "code_tensor_share": of("tensor"),
            "code_mma_sync_share": of("HMMA") if not of("HGMMA") else 0.0,
            "code_ffma_share": of("FFMA"),
            "code_special_share": of("special"),
            "code_overhead_share": of("integer", "control"),
            "code_local_share": of("local_memory"),
            "code_global_share": of("global_memory"),
            "code_shared_share": of("shared_memory"),
            "code_atomic_share": of("global_atomic", "shared_atomic"),
            "code_barrier_share": of("barrier"),
        }

    def _unit_cycles(self) -> dict[str, float]:
        """Cycles of each unit per instruction."""
        cycles: Counter[str] = Counter()
        for step, weight in zip(self._steps, self._weights, strict=True):
            unit, each = unit_of(step)
            cycles[unit] += each * weight
        units = ("fma", "alu", "xu", "fp64", "lsu")
        facts = {f"code_{unit}_cycles": cycles[unit] / self._total for unit in units}
        return {**facts, "code_busiest_cycles": max(1.0, *facts.values())}

    def _address_facts(self) -> dict[str, float]:
        """What the addresses of a warp's lanes show: bank conflicts, sectors that hold nothing."""
        conflicts = shared = excess = sectors = 0.0
        for access in self._accesses:
            weight = self._weights[access.index]
            if access.addresses is None:
                continue
            if not access.is_shared:
                sectors += weight * access.sectors
                excess += weight * (access.sectors - access.needed_sectors)
            elif self._steps[access.index].base in _WORD_ACCESSES:
                shared += weight * access.wavefronts
                conflicts += weight * (access.wavefronts - access.needed_wavefronts)
        return {
            "code_conflict_wavefronts": conflicts / self._total,
            "code_conflict_share": conflicts / shared if shared else 0.0,
            "code_excess_sectors": excess / self._total,
            "code_excess_share": excess / sectors if sectors else 0.0,
        }

    def _load_facts(self) -> dict[str, float]:
        """Loads from global memory: in flight at once, and linked by their own results."""
        loads = [index for index, step in enumerate(self._steps) if step.base in GLOBAL_LOADS]
        total = sum(self._weights[index] for index in loads)
        linked = sum(self._weights[index] for index in loads if self._is_linked(index))
        batches = [(len(batch), len(batch) * self._weights[batch[0]]) for batch in self._batches()]
        batched = sum(weight for _, weight in batches)
        in_flight = sum(size * weight for size, weight in batches)
        return {
            "code_linked_share": linked / total if total else 0.0,
            "code_loads_in_flight": in_flight / batched if batched else 0.0,
        }

    def _is_linked(self, load: int) -> bool:
        """Whether a load's address rests on its own result of the round before."""
        loop = self._flow.loop_of(load)
        reads = [(load, self._steps[load].addresses)]
        return loop is not None and load in self._flow.sources(reads, loop.blocks, unless_loaded)

    def _batches(self) -> Iterator[list[int]]:
        """Loads in the order of the code, parted where one's result is read or a loop begins."""
        batch: list[int] = []
        pending: set[str] = set()
        previous: Loop | None = None
        for index, step in enumerate(self._steps):
            loop = self._flow.loop_of(index)
            if batch and (not pending.isdisjoint(step.reads) or loop is not previous):
                yield batch
                batch, pending = [], set()
            previous = loop
            if step.base in GLOBAL_LOADS:
                batch.append(index)
                pending.update(step.writes)
        if batch:
            yield batch

    def _is_unfused(self, index: int, step: Operation) -> bool:
        """Whether it adds to a product that a fused multiply-add could take in."""
        if step.base != "FADD":
            return False
        writers = {place for name in step.reads for place in self._flow.producers(name, index)}
        return any(self._steps[place].base == "FMUL" for place in writers)

    def _control_facts(self) -> dict[str, float]:
        """Branches and loops that loaded data or the block's place decide."""
        by_data = by_block = 0
        for loop in self._flow.loops:
            places = list(self._places(loop.blocks))
            inner = sum(self._weights[i] for i in places if self._flow.loop_of(i) == loop)
            deciding = self._deciding(i for i in places if self._leaves(i, loop))
            terms = {term for place in deciding for term in self._steps[place].terms}
            by_data += inner * any(self._steps[i].base in GLOBAL_LOADS for i in deciding)
            names = {term.partition(".")[0] for term in terms}
            by_block += inner * ("SR_CTAID" in names and "SR_TID" not in names)
        return {
            "code_loops_on_data": by_data / self._total,
            "code_loops_on_block": by_block / self._total,
            "code_branches_on_data": min(1.0, self._skipped_by_data() / self._total),
        }

    def _skipped_by_data(self) -> float:
        """Instructions that a branch skips by what was loaded."""
        places = {address: place for place, address in enumerate(self._flow.addresses)}
        skipped = 0
        for index, step in enumerate(self._steps):
            target = places.get(step.target or 0, 0)
            if step.base == "BRA" and step.guard and target > index:
                deciding = self._deciding([index])
                if any(self._steps[place].base in GLOBAL_LOADS for place in deciding):
                    skipped += sum(self._weights[index:target])
        return skipped

    def _places(self, blocks: Collection[int]) -> Iterator[int]:
        for number in sorted(blocks):
            yield from range(self._flow.blocks[number].start, self._flow.blocks[number].end)

    def _leaves(self, index: int, loop: Loop) -> bool:
        """Whether an instruction may end a loop."""
        step = self._steps[index]
        if step.base not in _EXITS or not step.guard:
            return False
        after = self._flow.blocks[self._flow.block_of(index)].successors
        return step.base == "EXIT" or any(number not in loop.blocks for number in after)

    def _deciding(self, branches: Iterator[int] | Sequence[int]) -> tuple[int, ...]:
        """What the predicates of branches rest on, as far as loads."""
        reads = [(index, [self._steps[index].guard.lstrip("!")]) for index in branches]
        return self._flow.sources(reads, None, unless_loaded)

    def _carried_cycles(self) -> float:
        """Cycles per instruction that the rounds of a loop wait for one another, mean of loops."""
        weight = waited = 0.0
        for loop in self._flow.loops:
            places = [i for i in self._places(loop.blocks) if self._flow.loop_of(i) == loop]
            if places:
                each = self._weights[places[0]]
                weight += each * len(places)
                waited += each * self._carried(places)
        return waited / weight if weight else 0.0

    def _carried(self, places: Sequence[int]) -> float:
        """Cycles that a round adds where nothing but its results is waited for."""
        ready: dict[str, int] = {}
        ends = []
        end = 0
        for _ in range(_ROUNDS):
            for index in places:
                step = self._steps[index]
                start = max((ready.get(name, 0) for name in step.reads), default=0)
                ready.update(dict.fromkeys(step.writes, start + _latency(step)))
                end = max(end, start + _latency(step))
            ends.append(end)
        return (ends[-1] - ends[0]) / (_ROUNDS - 1)


def _is_half(step: Operation) -> bool:
    """Whether it computes in half precision, outside tensor cores."""
    return step.base in _HALF and not half_flop_of_move(f"{step.opcode} {', '.join(step.terms)}")


def unit_of(step: Operation) -> tuple[str, int]:
    """The unit that an instruction takes, and for how many cycles of a scheduler."""
    base, kind = step.base, class_of(step.base)
    if kind in {"conversion", "special"} and not _SIXTY_FOUR.isdisjoint(step.modifiers):
        return "fp64", 8
    if base in _PRODUCTS or base in _HALF:
        return "fma", 2
    if base in _SLOW_INTEGERS:
        return "xu", 8
    if base in _COMPARISONS or base in _NARROW_CONVERSIONS:
        return "alu", 2
    return _UNITS.get(kind, ("issue", 1))


def _latency(step: Operation) -> int:
    if step.base in GLOBAL_LOADS or step.base == "LDL":
        return LOAD_LATENCY
    if step.base in _SHORT or step.base.endswith("MMA"):
        return _SHORT_LATENCY
    return _FP64_LATENCY if class_of(step.base) == "fp64" else _LATENCY
