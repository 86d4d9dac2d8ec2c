"""Ranges of estimates from gains of recorded pairs."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.fixes import OWN
from kernels.gains import FILE, gains
from profkit.rules.calibration import ENDS, Calibration, Gain, Prospect, shipped_calibration
from tests.conftest import ROOT
from tests.score.test_score import recorded

factors = st.floats(1.0, 1000.0)
votes = st.floats(0.0, 1.0)
prospects = st.builds(Prospect, factors, factors, factors, votes)
rows = st.builds(
    Gain, factors, factors, factors, votes, family=st.sampled_from("abcdefgh"), measured=factors
)


def gain(measured: float, family: str = "", likely: float = 1.5, most: float = 4.0) -> Gain:
    return Gain(likely, likely, most, family=family or f"{measured}", measured=measured)


ALIKE = tuple(gain(1 + place / 100) for place in range(1, 101))
WHERE = Prospect(1.5, 1.5, 4.0)


def test_a_range_has_the_quantiles_of_what_like_fixes_gained() -> None:
    assert Calibration(ALIKE).range(WHERE) == pytest.approx([1 + end for end in ENDS], abs=0.011)


def test_what_unlike_fixes_gained_counts_little() -> None:
    unlike = tuple(gain(30 + place, likely=20.0, most=100.0) for place in range(100))
    own = Calibration(ALIKE).range(WHERE)
    assert Calibration((*ALIKE, *unlike)).range(WHERE) == pytest.approx(own, abs=0.031)
    low, high = Calibration((*ALIKE, *unlike)).range(Prospect(20.0, 20.0, 100.0))
    assert low > 20 - 1e-9
    assert high > 100


def test_a_range_goes_beyond_the_headroom_where_fixes_did() -> None:
    beyond = tuple(gain(1 + place / 50, likely=1.04, most=1.05) for place in range(1, 101))
    assert Calibration(beyond).range(Prospect(1.04, 1.04, 1.05))[1] > 2.5


def test_a_family_counts_once() -> None:
    often = Calibration((*ALIKE, *[gain(2.0, ALIKE[-1].family)] * 50))
    assert often.range(WHERE) == pytest.approx(Calibration(ALIKE).range(WHERE), abs=0.011)


@given(st.lists(rows, max_size=40), prospects)
def test_ranges_hold_their_estimate(made: list[Gain], prospect: Prospect) -> None:
    low, high = Calibration(tuple(made)).range(prospect)
    assert 1 <= low <= prospect.likely <= high


def test_ranges_from_half_of_the_pairs_hold_the_other_half() -> None:
    random = np.random.default_rng(1)
    held = []
    for _ in range(20):
        estimated = np.exp(random.uniform(0.2, 2.0, 400))
        measured = estimated * np.exp(random.normal(0, 0.15, 400))
        made = [
            gain(float(factor), f"{place}", likely=float(likely), most=50.0)
            for place, (likely, factor) in enumerate(zip(estimated, measured, strict=True))
        ]
        calibration = Calibration(tuple(made[:200]))
        for other in made[200:]:
            low, high = calibration.range(other)
            held.append(low <= other.measured <= high)
    assert ENDS[1] - ENDS[0] - 0.02 <= np.mean(held) <= 1.0


def test_a_family_can_be_left_out() -> None:
    shipped = shipped_calibration()
    family = shipped.gains[0].family
    left = shipped.without({family})
    others = {each.family for each in shipped.gains} - {family}
    assert {each.family for each in left.gains} == others
    assert left.without({family}) is left


def test_the_shipped_gains_are_those_of_the_recorded_pairs() -> None:
    shipped = json.loads((ROOT / FILE).read_text(encoding="utf-8"))
    own = json.loads(gains(recorded()["pairs"]))
    assert own
    assert all(row in shipped for row in own), "run `python -m kernels.gains`"
    assert sum(row["source"] != OWN for row in shipped) > 150
