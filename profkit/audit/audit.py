"""Claimed figures held against each other and against datasheets.

Each rule takes what is claimed in one place, works out what follows from the rest of it, and says
where the two differ by more than the printed digits allow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from profkit.audit.changes import changes, parts, products, tokens
from profkit.audit.contradiction import Check, Contradiction, statement
from profkit.audit.implied import Subject, sheets_of, subjects
from profkit.audit.intervals import apart, interval, labelled_end, ticks
from profkit.audit.launches import limits, occupancy, residency, sm_counts, waves
from profkit.audit.peaks import above_peak, memory, peak, shares
from profkit.audit.ratios import ratios
from profkit.audit.ridge import bound, ridge
from profkit.audit.summaries import (
    cycles,
    exponents,
    means,
    of_cells,
    outer_intervals,
    rate_ends,
    ratio_interval,
    row_tokens,
)
from profkit.audit.work import bytes_of_shape, flop_of_shape, intensity, rates, speedup

if TYPE_CHECKING:
    from profkit.audit.claims import Claim

_GRID_DIMENSIONS = 3


@dataclass(frozen=True)
class Outcome:
    """A claim, what was checked of it, and what was not, with the reason."""

    claim: Claim
    checks: tuple[Check, ...]
    unchecked: tuple[str, ...]

    @property
    def found(self) -> tuple[Contradiction, ...]:
        """Contradictions and doubts, in the order of the rules."""
        return tuple(check.found for check in self.checks if check.found)

    @property
    def contradictions(self) -> tuple[Contradiction, ...]:
        return tuple(one for one in self.found if not one.doubt)


@dataclass(frozen=True)
class Audit:
    """The outcome of every claim, in their order."""

    outcomes: tuple[Outcome, ...]

    @property
    def checked(self) -> bool:
        """Whether anything was held against anything."""
        return any(outcome.checks for outcome in self.outcomes)

    @property
    def contradictions(self) -> tuple[Contradiction, ...]:
        return tuple(one for outcome in self.outcomes for one in outcome.contradictions)

    @property
    def doubts(self) -> tuple[Contradiction, ...]:
        return tuple(one for outcome in self.outcomes for one in outcome.found if one.doubt)


def examine(claims: Sequence[Claim], gpu: str = "") -> Audit:
    """Every claim with what was checked, what contradicts it and what could not be checked."""
    studies: dict[str, list[Claim]] = {}
    for claim in claims:
        rows = studies.setdefault(claim.study, [])
        if not claim.text:
            rows.append(claim)
    cells = {claim.name: claim for claim in claims if claim.name}
    outcomes = [_outcome(claim, studies[claim.study], gpu, cells) for claim in claims]
    narrow = {where: check for own in studies.values() for where, check in ticks(own).items()}
    return Audit(
        tuple(
            replace(outcome, checks=(*outcome.checks, narrow[outcome.claim.where]))
            if outcome.claim.where in narrow
            else outcome
            for outcome in outcomes
        )
    )


def _outcome(claim: Claim, rows: Sequence[Claim], gpu: str, cells: Mapping[str, Claim]) -> Outcome:
    """Of the rows that a sentence may speak of, the one that contradicts it least counts."""
    tried = []
    for subject in subjects(claim, rows, gpu):
        checks = tuple(check for rule in _RULES for check in rule(subject))
        checks += tuple(of_cells(subject, cells))
        tried.append(checks)
    checks = min(tried, key=lambda one: sum(check.found is not None for check in one))
    return Outcome(claim, checks, _unchecked(claim, checks, gpu))


def _unchecked(claim: Claim, checks: Sequence[Check], gpu: str) -> tuple[str, ...]:
    used = {name for check in checks for name in check.used}
    left = [figure.text or name for name, figure in claim.figures.items() if name not in used]
    left += [name for name in ("bound", "memory") if getattr(claim, name) and name not in used]
    why = []
    if left:
        known = bool(sheets_of(claim, gpu))
        named = claim.gpus[0] if claim.gpus else ""
        reason = "nothing to hold it against"
        if not known:
            reason += f", {named} is not in the GPU table" if named else ", no GPU named"
        why.append(f"{', '.join(left)}: {reason}")
    if claim.unread:
        why.append(f"not understood: {', '.join(claim.unread)}")
    if not checks and not why:
        why.append("no claim understood")
    return tuple(why)


def _grid(subject: Subject) -> Iterator[Check]:
    """A CUDA grid has three dimensions."""
    claimed = subject.claim.grid_dimensions
    if claimed is None:
        return
    if claimed <= _GRID_DIMENSIONS:
        yield Check("grid", ("grid_dimensions",), None)
        return
    yield statement(
        subject, "grid", "grid_dimensions", f"a grid of {claimed} dimensions",
        ("a CUDA grid has three dimensions at most: x, y, z",),
        ("three dimensions, two of the four folded into one" if claimed == 4 else
         "three dimensions, the others folded into them",),
    )  # fmt: skip


_RULES: tuple[Callable[[Subject], Iterator[Check]], ...] = (
    flop_of_shape,
    bytes_of_shape,
    intensity,
    rates,
    shares,
    peak,
    above_peak,
    ridge,
    bound,
    interval,
    labelled_end,
    speedup,
    ratios,
    memory,
    _grid,
    apart,
    limits,
    occupancy,
    residency,
    waves,
    sm_counts,
    changes,
    parts,
    products,
    tokens,
    rate_ends,
    cycles,
    row_tokens,
    exponents,
    means,
    outer_intervals,
    ratio_interval,
)
