"""Claimed figures checked against each other and datasheets.

Each rule takes what is claimed in one place, works out what follows from the rest of it, and
reports where the two differ by more than the printed digits allow.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct

from profkit.audit import launches, peaks, statistics, work
from profkit.audit.check import Check, Contradiction
from profkit.audit.claim import UNITS, Claim
from profkit.audit.subject import Subject, sheets_of, subjects


class Outcome(Struct, frozen=True):
    """A claim, what was checked of it, and what was not, with the reason."""

    claim: Claim
    checks: tuple[Check, ...]
    unchecked: tuple[str, ...]

    @property
    def findings(self) -> tuple[tuple[Contradiction, bool], ...]:
        """What was found, in the order of the rules, and whether it is a doubt only."""
        return tuple((c.contradiction, c.doubt) for c in self.checks if c.contradiction)

    @property
    def contradictions(self) -> tuple[Contradiction, ...]:
        return tuple(finding for finding, doubt in self.findings if not doubt)


class Audit(Struct, frozen=True):
    """The outcome of every claim, in their order."""

    outcomes: tuple[Outcome, ...]

    @property
    def checked(self) -> int:
        """The number of claims that were checked."""
        return sum(bool(outcome.checks) for outcome in self.outcomes)

    @property
    def contradictions(self) -> tuple[Contradiction, ...]:
        return tuple(wrong for outcome in self.outcomes for wrong in outcome.contradictions)

    @property
    def doubts(self) -> tuple[Contradiction, ...]:
        findings = (finding for outcome in self.outcomes for finding in outcome.findings)
        return tuple(contradiction for contradiction, doubt in findings if doubt)


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
    tried = []
    for subject in subjects(claim, rows, gpu):
        by_rule = [check for rule in _RULES for check in rule(subject)]
        tried.append((*by_rule, *statistics.quotients_of_cells(subject, cells)))
    checks = min(tried, key=lambda checks: sum(bool(check.contradiction) for check in checks))
    return Outcome(claim, checks, _unchecked(claim, checks, gpu))


def _unchecked(claim: Claim, checks: Sequence[Check], gpu: str) -> tuple[str, ...]:
    used = {name for check in checks for name in check.used}
    figures = ((name, claim[name]) for name in UNITS if name not in used)
    left = [figure.text or name for name, figure in figures if figure]
    left += [name for name in ("bound", "memory") if getattr(claim, name) and name not in used]
    why = []
    if left:
        reason = "no reference to check against"
        if not sheets_of((*claim.gpus, gpu)):
            named = f"{claim.gpus[0]} is not in the GPU table" if claim.gpus else "no GPU named"
            reason += f", {named}"
        why.append(f"{', '.join(left)}: {reason}")
    if claim.unread:
        why.append(f"not recognized: {', '.join(claim.unread)}")
    return tuple(why) if why or checks else ("no claim recognized",)


_RULES: tuple[Callable[[Subject], Iterator[Check]], ...] = (
    work.flop_of_shape, work.bytes_of_shape, work.intensity, work.rates, peaks.shares, peaks.peak,
    peaks.above_bytes, peaks.above_flop, peaks.above_hundred, work.ridge, work.bound,
    statistics.interval, statistics.labeled_end, work.speedup, peaks.ratios, peaks.memory,
    launches.grid, statistics.disjoint, launches.limits, launches.occupancy, launches.residency,
    statistics.changes, work.tokens, work.rate_ends, work.cycles, work.row_tokens,
    statistics.exponents, statistics.means, statistics.outer_intervals, statistics.ratio_interval,
    statistics.timer_tick,
)  # fmt: skip
