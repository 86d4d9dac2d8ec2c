"""Laws of the roofline, and of the room that its labels take."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profkit.analysis.roofline import Peaks, Roof, known_names
from profkit.analysis.roofs import attainable
from profkit.errors import UsageError
from profkit.render.names import own_names
from profkit.render.roofline_plot import rate_words
from profkit.render.room import Room, spread

rates = st.floats(1e6, 1e18)
intensities = st.floats(1e-6, 1e9)


def roof(rate: float, *, is_memory: bool = False) -> Roof:
    key = "dram" if is_memory else "fp32"
    return Roof(key, key, rate, Peaks.held, is_memory, verified=True)


@settings(deadline=None)
@given(rates, rates, intensities)
def test_attainable_is_the_lower_of_both_roofs(top: float, line: float, at: float) -> None:
    bound, limit = attainable(roof(top), roof(line, is_memory=True), at)
    assert bound <= top
    assert bound <= at * line
    assert bound in {top, at * line}
    ridge = top / line
    if abs(at / ridge - 1) > 1e-9:
        assert limit == ("dram" if at < ridge else "fp32")


@settings(deadline=None)
@given(rates, rates, intensities, st.floats(1.0, 1e3))
def test_more_intensity_or_higher_roofs_never_attain_less(
    top: float, line: float, at: float, factor: float
) -> None:
    bound, _ = attainable(roof(top), roof(line, is_memory=True), at)
    assert attainable(roof(top), roof(line, is_memory=True), at * factor)[0] >= bound
    both, _ = attainable(roof(top * factor), roof(line * factor, is_memory=True), at)
    assert both == pytest.approx(bound * factor)


def test_an_unknown_roof_bounds_nothing() -> None:
    unknown = roof(math.nan, is_memory=True)
    assert attainable(roof(5.0), unknown, 1.0) == (5.0, "fp32")
    assert math.isnan(attainable(roof(math.nan), unknown, 1.0)[0])


@settings(deadline=None)
@given(st.lists(st.floats(-1, 2), min_size=1, max_size=12), st.floats(0.01, 0.08))
def test_labels_are_spread_inside_without_overlap_in_their_order(
    wanted: list[float], size: float
) -> None:
    centres = spread(wanted, [size] * len(wanted), 0.0, 1.0)
    ordered = sorted(centres)
    assert ordered[0] >= size / 2 - 1e-9
    assert ordered[-1] <= 1 - size / 2 + 1e-9
    assert all(b - a >= size - 1e-9 for a, b in itertools.pairwise(ordered))
    pairs = sorted(zip(wanted, centres, strict=True))
    assert all(a[1] <= b[1] + 1e-9 or a[0] == b[0] for a, b in itertools.pairwise(pairs))


def test_a_label_that_is_alone_stays_where_it_is_wanted() -> None:
    assert spread([0.3, 0.7], [0.1, 0.1], 0, 1) == pytest.approx([0.3, 0.7])
    assert spread([0.5, 0.5], [0.1, 0.1], 0, 1) == pytest.approx([0.45, 0.55])


def test_room_is_taken_once_and_lines_are_not_written_over() -> None:
    room = Room(100, 100)
    room.draw(0, 100, lambda x: x)
    assert room.place([(10, 5, 20, 30), (50, 10, 60, 20)]) == 1
    assert room.place([(55, 15, 65, 25)]) is None
    assert not room.is_free((95, 0, 105, 5))


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("fma_bound(float *, int)", "fma_bound"),
        ("void ns::flash_fwd<ns::Traits<(int)64, (bool)1>>(ns::Params)", "flash_fwd"),
        ("void (anonymous namespace)::softmax<float>(float*)", "softmax"),
        ("cudnn_generated_fort_native_sdpa", "cudnn_generated_fort_native_sdpa"),
    ],
)
def test_a_kernels_own_name(name: str, own: str) -> None:
    assert own_names([name]) == {name: own}


def test_names_that_only_templates_tell_apart_stay_whole() -> None:
    names = ["void f<int>(int)", "void f<float>(float)"]
    assert own_names(names) == {name: name for name in names}


@pytest.mark.parametrize(
    ("rate", "words"),
    [(1.0705e15, "1,070 TFLOP/s"), (66.9e12, "66.9 TFLOP/s"), (3e11, "300 GFLOP/s")],
)
def test_rates_in_words(rate: float, words: str) -> None:
    assert rate_words(rate, "FLOP/s") == words


@pytest.mark.parametrize("names", [("x", "dram", None), ("held", "l3", None), ("held", "l2", "x")])
def test_names_that_are_none_are_refused(names: tuple[str, str, str | None]) -> None:
    with pytest.raises(UsageError, match="there are"):
        known_names(names[0], [names[1]], names[2])
