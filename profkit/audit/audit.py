"""Claimed figures held against each other and against datasheets.

Each rule takes what is claimed in one place, works out what follows from the rest of it, and says
where the two differ by more than the printed digits allow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from profkit.audit import changes, intervals, launches, peaks, ratios, records, ridge, tokens, work
from profkit.audit.claim import Claim
from profkit.audit.contradiction import Check, Contradiction, statement
from profkit.audit.implied import Subject, sheets_of, subjects

_GRID_DIMENSIONS = 3


@dataclass(frozen=True)
class Outcome:
    """A claim, what was checked of it, and what was not, with the reason."""

    claim: Claim
    checks: tuple[Check, ...]
    unchecked: tuple[str, ...]

    @property
    def findings(self) -> tuple[tuple[Contradiction, bool], ...]:
        """What was found, in the order of the rules, and whether it is a doubt only."""
        return tuple((check.found, check.doubt) for check in self.checks if check.found)

    @property
    def contradictions(self) -> tuple[Contradiction, ...]:
        return tuple(finding for finding, doubt in self.findings if not doubt)


@dataclass(frozen=True)
class Audit:
    """The outcome of every claim, in their order."""

    outcomes: tuple[Outcome, ...]

    @property
    def checked(self) -> int:
        """How many claims were held against anything."""
        return sum(bool(outcome.checks) for outcome in self.outcomes)

    @property
    def contradictions(self) -> tuple[Contradiction, ...]:
        return tuple(one for outcome in self.outcomes for one in outcome.contradictions)

    @property
    def doubts(self) -> tuple[Contradiction, ...]:
        return tuple(
            finding for outcome in self.outcomes for finding, doubt in outcome.findings if doubt
        )


def examine(claims: Sequence[Claim], gpu: str = "") -> Audit:
    """Every claim with what was checked, what contradicts it and what could not be checked."""
    studies: dict[str, list[Claim]] = {claim.study: [] for claim in claims}
    for claim in claims:
        if not claim.text:
            studies[claim.study].append(claim)
    cells = {claim.name: claim for claim in claims if claim.name}
    return Audit(tuple(_outcome(claim, studies[claim.study], gpu, cells) for claim in claims))


def _outcome(claim: Claim, rows: Sequence[Claim], gpu: str, cells: Mapping[str, Claim]) -> Outcome:
    """Of the rows that a sentence may speak of, the one that contradicts it least counts."""
    tried = [
        (*(check for rule in _RULES for check in rule(subject)), *records.of_cells(subject, cells))
        for subject in subjects(claim, rows, gpu)
    ]
    checks = min(tried, key=lambda checks: sum(check.found is not None for check in checks))
    return Outcome(claim, checks, _unchecked(claim, checks, gpu))


def _unchecked(claim: Claim, checks: Sequence[Check], gpu: str) -> tuple[str, ...]:
    used = {name for check in checks for name in check.used}
    left = [figure.text or name for name, figure in claim.figures.items() if name not in used]
    left += [name for name in ("bound", "memory") if getattr(claim, name) and name not in used]
    why = []
    if left:
        reason = "nothing to hold it against"
        if not sheets_of((*claim.gpus, gpu)):
            named = f"{claim.gpus[0]} is not in the GPU table" if claim.gpus else "no GPU named"
            reason += f", {named}"
        why.append(f"{', '.join(left)}: {reason}")
    if claim.unread:
        why.append(f"not understood: {', '.join(claim.unread)}")
    return tuple(why) if why or checks else ("no claim understood",)


def _grid(subject: Subject) -> Iterator[Check]:
    """A CUDA grid has three dimensions."""
    claimed = subject.claim.grid_dimensions
    if claimed is not None:
        others = (
            "two of the four folded into one" if claimed == 4 else "the others folded into them"
        )
        yield statement(
            subject, "grid", "grid_dimensions", f"a grid of {claimed} dimensions",
            "a CUDA grid has three dimensions at most: x, y, z", f"three dimensions, {others}",
            wrong=claimed > _GRID_DIMENSIONS,
        )  # fmt: skip


_RULES: tuple[Callable[[Subject], Iterator[Check]], ...] = (
    work.flop_of_shape, work.bytes_of_shape, work.intensity, work.rates, peaks.shares, peaks.peak,
    peaks.above_bytes, peaks.above_level, peaks.above_flop, peaks.above_hundred, ridge.ridge,
    ridge.bound, intervals.interval, intervals.labelled_end, work.speedup, ratios.ratios,
    peaks.memory, _grid, intervals.apart, launches.limits, launches.occupancy, launches.residency,
    launches.waves, launches.sm_counts, changes.changes, changes.parts, changes.products,
    tokens.tokens, work.rate_ends, work.cycles, tokens.row_tokens, records.exponents,
    records.means, records.outer_intervals, records.ratio_interval, intervals.timer_tick,
)  # fmt: skip
