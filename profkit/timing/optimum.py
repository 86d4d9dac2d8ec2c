"""Which variant to use: each against the one in use, looked at while the measurement goes on.

Looking several times gives chance several chances: the levels of the intervals are raised so that
all looks together err no more often than one would (Bonferroni over the looks).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from msgspec import structs

from profkit.timing.latency import Pair
from profkit.timing.results import DEFAULT, Comparison, Thresholds, Verdict

LOOKS = (8, 16, 32, 64)
"""After how many blocks a side the verdicts are looked at."""


class Standing(StrEnum):
    """What is known of a variant: it reaches the speed-up asked for, falls short, or is open."""

    reaches = "reaches"
    short = "short"
    open = "open"
    invalid = "invalid"


class Outcome(StrEnum):
    """What to do: use another variant, keep the one in use, or measure longer."""

    use = "use"
    keep = "keep"
    undecided = "undecided"
    invalid = "invalid"


@dataclass(frozen=True)
class Candidate:
    """A variant against the one in use, `pair.a`."""

    pair: Pair
    standing: Standing

    @property
    def label(self) -> str:
        return self.pair.b.label


@dataclass(frozen=True)
class Decision:
    """The outcome, and the candidate that it is about: the one to use, else the fastest of those
    that are not slower; None where all are."""

    outcome: Outcome
    candidate: Candidate | None


def thresholds_of_looks(looks: int = len(LOOKS), base: Thresholds = DEFAULT) -> Thresholds:
    """Thresholds for verdicts that are looked at so many times; blocks of 10 samples will do."""
    return structs.replace(
        base,
        level=1 - (1 - base.level) / looks,
        same_level=1 - (1 - base.same_level) / looks,
        samples=10,
    )


def standing(comparison: Comparison, target: float) -> Standing:
    """Whether a comparison's interval lies at or beyond a speed-up (1.10), or below it."""
    if comparison.verdict is Verdict.INVALID:
        return Standing.invalid
    if comparison.low >= target and comparison.verdict is Verdict.IMPROVED:
        return Standing.reaches
    return Standing.short if comparison.high < target else Standing.open


def decide(candidates: Sequence[Candidate]) -> Decision:
    """The decision that the candidates allow; to use one, only the open ones must not be faster."""
    reaching = [one for one in candidates if one.standing is Standing.reaches]
    if reaching:
        best = max(reaching, key=_speedup)
        rivals = [one for one in candidates if one.standing is Standing.open]
        if any(one.pair.comparison.speedup > best.pair.comparison.speedup for one in rivals):
            return Decision(Outcome.undecided, best)
        return Decision(Outcome.use, best)
    faster = [one for one in candidates if _speedup(one) > 1]
    best_known = max(faster, key=_speedup) if faster else None
    if any(one.standing is Standing.open for one in candidates):
        return Decision(Outcome.undecided, best_known)
    if any(one.standing is Standing.invalid for one in candidates):
        return Decision(Outcome.invalid, best_known)
    return Decision(Outcome.keep, best_known)


def _speedup(candidate: Candidate) -> float:
    return candidate.pair.comparison.speedup
