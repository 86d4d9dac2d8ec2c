"""Which variant to use: standings, the decision, and what looking several times costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from profkit.core.typed_file import row_of
from profkit.timing.optimum import (
    LOOKS,
    Outcome,
    Standing,
    TimedCandidate,
    decide,
    standing,
    thresholds_of_looks,
)
from profkit.timing.results import DEFAULT, Comparison, Margin, Source, Verdict
from profkit.timing.verdict import compare, judge


def against(speedup: float, scatter: float = 0.002, blocks: int = 8) -> Comparison:
    """Blocks of the one in use and of a variant that is `speedup` times as fast."""
    random = np.random.default_rng(1)
    a = [50e-6 * random.normal(1, scatter) * random.normal(1, 1e-3, 13) for _ in range(blocks)]
    b = [50e-6 / speedup * random.normal(1, scatter) * random.normal(1, 1e-3, 13) for _ in a]
    return compare(a, b, thresholds=thresholds_of_looks())


def candidate(label: str, comparison: Comparison, target: float = 1.10) -> TimedCandidate:
    reached = standing(comparison, target)
    return row_of(TimedCandidate, comparison, variant=label, standing=reached, median=50e-6)


@pytest.mark.parametrize(
    ("speedup", "scatter", "expected"),
    [
        (1.44, 0.002, Standing.reaches),
        (1.05, 0.002, Standing.short),
        (1.0, 0.002, Standing.short),
        (0.5, 0.002, Standing.short),
        (1.12, 0.05, Standing.open),
    ],
)
def test_a_variant_reaches_the_target_or_falls_short_or_is_open(
    speedup: float, scatter: float, expected: Standing
) -> None:
    assert standing(against(speedup, scatter), 1.10) is expected


def test_the_fastest_that_reaches_is_used() -> None:
    outcome, best = decide([candidate("b", against(1.4)), candidate("a", against(1.2))])
    assert outcome is Outcome.use
    assert best is not None
    assert best.variant == "b"


def test_nothing_that_reaches_is_a_result() -> None:
    outcome, best = decide([candidate("a", against(1.05)), candidate("b", against(0.7))])
    assert outcome is Outcome.keep
    assert best is not None
    assert best.variant == "a"
    assert decide([candidate("b", against(0.7))])[1] is None
    assert decide([]) == (Outcome.keep, None)


def test_what_is_open_and_may_be_faster_leaves_it_undecided() -> None:
    wild = against(1.5, scatter=0.5, blocks=6)
    rival = candidate("wild", replace(wild, speedup=1.5, low=0.5, high=4.0))
    assert decide([rival, candidate("a", against(1.2))])[0] is Outcome.undecided
    slow = candidate("slow", replace(wild, speedup=1.1, low=0.5, high=4.0))
    assert decide([candidate("a", against(1.2)), slow])[0] is Outcome.use
    assert decide([slow])[0] is Outcome.undecided


def test_an_environment_that_moved_decides_nothing() -> None:
    moved = candidate("a", replace(against(1.4), verdict=Verdict.INVALID))
    assert moved.standing is Standing.invalid
    assert decide([moved])[0] is Outcome.invalid


def test_levels_are_shared_among_the_looks() -> None:
    asked: Any = thresholds_of_looks()
    assert 1 - asked.level == pytest.approx((1 - DEFAULT.level) / len(LOOKS))
    assert 1 - asked.same_level == pytest.approx((1 - DEFAULT.same_level) / len(LOOKS))


def test_looking_four_times_at_nothing_rarely_finds_something() -> None:
    """A/A ratios of up to 64 blocks that scatter by 1.4%, looked at four times."""
    margin = Margin(0.0, Source.ASKED)
    random = np.random.default_rng(1)
    false = 0
    for _ in range(400):
        ratios = random.normal(0, 0.014, LOOKS[-1])
        false += any(
            judge(ratios[:look], margin, thresholds_of_looks(), 13).verdict
            in {Verdict.IMPROVED, Verdict.REGRESSED}
            for look in LOOKS
        )
    assert false <= 32  # 5% and what 400 tries allow; without the correction 50 and more
