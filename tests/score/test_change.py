"""The interval of a change of a share over pairs, between two orders of findings."""

from __future__ import annotations

import numpy as np

from profkit.score.change import change
from tests.conftest import NIGHTLY


def test_the_interval_covers_the_true_change_of_families_drawn_at_random() -> None:
    """Pairs of a family gain or lose the first place together: 0.3 - 0.1 is the true change."""
    rng = np.random.default_rng(7)
    covered: list[bool] = []
    too_narrow: list[bool] = []
    for _ in range(200 if NIGHTLY else 60):
        sizes = rng.integers(1, 6, 40)
        moved = rng.choice([1, 0, -1], 40, p=[0.3, 0.6, 0.1])
        differences = np.repeat(moved, sizes).tolist()
        families = np.repeat(np.arange(40), sizes).astype(str).tolist()
        for places, held in ((families, covered), (map(str, range(len(families))), too_narrow)):
            found = change(differences, list(places))
            assert found
            assert found.low <= found.mean <= found.high
            held.append(found.low <= 0.2 <= found.high)
    assert np.mean(covered) >= 0.9  # nominal 0.95; percentile intervals of 40 families hold less
    assert np.mean(too_narrow) < np.mean(covered)  # as if each pair were a family of its own


def test_a_change_is_the_mean_of_differences() -> None:
    found = change([1, 0, -1, 1], ["a", "a", "b", "c"])
    assert found == change([1, 0, -1, 1], ["a", "a", "b", "c"])
    assert found
    assert found.mean == 0.25
    assert (found.low, found.high) == (-1.0, 1.0)  # of "b" alone, and of "c" alone
    assert change([], []) is None
