"""Existence proofs: a variant that does the same work faster shows what the others could reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from profkit.report.summary import ReportSummary
    from profkit.timing.variants import Variants

_FASTER = 1.05


@dataclass(frozen=True)
class Proof:
    """What a variant could reach, for another one, `best`, does.

    Seconds of whole variants: medians of timed calls, or, where not `timed`, sums of what ncu
    measured of their launches.
    """

    variant: str
    seconds: float
    best: str
    best_seconds: float
    timed: bool

    @property
    def speedup(self) -> float:
        return self.seconds / self.best_seconds

    @property
    def saved(self) -> float:
        """The time (s) of the variant beyond that of the best."""
        return self.seconds - self.best_seconds


def proofs(report: ReportSummary, variants: Variants | None) -> tuple[Proof, ...]:
    """A proof for each variant that the fastest one clearly outruns, least to gain first."""
    if variants is None:
        return ()
    timed = all(name in variants.medians for name in variants.passed)
    seconds = variants.medians if timed else _profiled(report, variants)
    compared = {name: seconds[name] for name in variants.passed if name in seconds}
    if len(compared) < 2:
        return ()
    best = min(compared, key=lambda name: compared[name])
    made = (
        Proof(name, compared[name], best, compared[best], timed)
        for name in sorted(compared, key=lambda name: compared[name])
    )
    return tuple(proof for proof in made if proof.speedup >= _FASTER)


def _profiled(report: ReportSummary, variants: Variants) -> Mapping[str, float]:
    """Sums over the launches of each variant; nothing of a report of which only a part is kept."""
    if len(report.launches) < report.recorded:
        return {}
    launches = {
        name: [launch for launch in report.launches if name in launch.launch.nvtx]
        for name in variants.passed
    }
    return {
        name: sum(launch.duration for launch in own)
        for name, own in launches.items()
        if own and not any(launch.failed for launch in own)
    }
