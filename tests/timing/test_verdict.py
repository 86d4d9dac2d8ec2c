"""Verdicts against hand calculations, their laws, and what they must not be misled by."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from scipy import stats

from profkit.core.errors import BadInput
from profkit.timing.results import (
    DEFAULT,
    PERMISSIVE,
    PRESETS,
    STRICT,
    Comparison,
    Margin,
    Source,
    Verdict,
)
from profkit.timing.statistics import summarize
from profkit.timing.verdict import (
    Reason,
    compare,
    holm,
    interval_over_blocks,
    judge,
    margin_of,
    single_runs,
)

Array = npt.NDArray[np.float64]
MIRROR = {Verdict.REGRESSED: Verdict.IMPROVED, Verdict.IMPROVED: Verdict.REGRESSED}
ONE = Margin(0.01, Source.ASKED)


TICK = 1.024e-6


def side(factor: float = 1.0, seed: int = 0, blocks: int = 8, n: int = 30) -> list[Array]:
    noise = np.random.default_rng(seed).standard_normal((blocks, n))
    return list(factor * 60e-6 * (1 + 0.01 * noise))


def test_a_verdict_by_hand() -> None:
    ratios = np.log([1.03, 1.02, 1.03, 1.04, 1.02, 1.03])
    ruling = judge(ratios, ONE)
    interval = stats.ttest_1samp(ratios, 0).confidence_interval(0.95)
    assert (ruling.low, ruling.high) == pytest.approx((interval.low, interval.high))
    p = 2 * stats.ttest_1samp(ratios, math.log(1.01), alternative="greater").pvalue
    assert ruling.p_value == pytest.approx(p)
    assert (ruling.verdict, ruling.reason) == (Verdict.REGRESSED, Reason.BEYOND_MARGIN)


def test_an_interval_over_blocks_by_hand() -> None:
    """Each block's samples are all the same, as they are where they depend on each other wholly."""
    medians = 1e-3 * np.array([1.02, 0.98, 1.01, 1.03, 0.97, 1.00])
    found = interval_over_blocks([np.full(30, median) for median in medians], tick=1e-6)
    interval = stats.ttest_1samp(np.log(medians), 0).confidence_interval(0.95)
    assert found is not None
    assert found.low == pytest.approx(math.exp(interval.low) - 1e-6)
    assert found.high == pytest.approx(math.exp(interval.high) + 1e-6)
    assert found.level == 0.95


def test_an_interval_over_blocks_that_are_all_the_same_is_that_value() -> None:
    found = interval_over_blocks([np.full(30, 1e-6)] * 8)
    assert found is not None
    assert (found.low, found.high) == (1e-6, 1e-6)


def test_no_interval_over_few_small_or_dependent_blocks() -> None:
    assert interval_over_blocks(side()) is not None
    assert interval_over_blocks(side(blocks=5)) is None
    assert interval_over_blocks(side(n=29)) is None
    rising = [block * (1 + 0.02 * at) for at, block in enumerate(side())]
    assert interval_over_blocks(rising) is None


@given(seed=st.integers(0, 1000), factor=st.floats(1e-3, 1e3), turn=st.integers(0, 7))
def test_an_interval_over_blocks_knows_no_unit_and_no_order_within_a_block(
    seed: int, factor: float, turn: int
) -> None:
    blocks = side(seed=seed)
    found = interval_over_blocks(blocks)
    other = interval_over_blocks([factor * np.roll(block, turn) for block in blocks])
    assert (found is None) == (other is None)
    if found and other:
        mean = math.exp(np.mean([math.log(np.median(block)) for block in blocks]))
        assert found.low < mean < found.high
        assert other.low == pytest.approx(factor * found.low)
        assert other.high == pytest.approx(factor * found.high)


def test_same_is_two_one_sided_tests() -> None:
    ratios = np.array([0.004, -0.004, 0.006, -0.002, 0.003, -0.005])
    assert judge(ratios, ONE).verdict is Verdict.SAME
    limit = stats.ttest_1samp(ratios, 0).confidence_interval(0.90).high
    assert judge(ratios, Margin(math.expm1(limit * 1.001), Source.ASKED)).verdict is Verdict.SAME
    tight = judge(ratios, Margin(math.expm1(limit * 0.999), Source.ASKED))
    assert tight.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("factor", "verdict"),
    [(1.0, Verdict.SAME), (1.03, Verdict.REGRESSED), (0.97, Verdict.IMPROVED)],
)
def test_clear_cases(factor: float, verdict: Verdict) -> None:
    result = compare(side(), side(factor, seed=1))
    assert result.verdict is verdict
    assert result.low < 1 / factor < result.high
    assert result.speedup == pytest.approx(1 / factor, rel=0.005)
    assert result.margin == Margin(0.01, Source.ASKED)
    assert (result.blocks, len(result.ratios), result.blocks_needed) == (8, 8, None)


def test_what_sets_the_margin() -> None:
    assert margin_of(0.01, 0.002) == Margin(0.01, Source.ASKED)
    assert margin_of(0.01, 0.03) == Margin(0.03, Source.FLOOR)
    for bad in (-0.1, math.nan, math.inf):
        with pytest.raises(BadInput):
            margin_of(0.01, bad)
        with pytest.raises(BadInput):
            compare(side(), side(), tick=bad)


@pytest.mark.parametrize(("before", "after"), [(59, 60), (60, 61), (60, 60), (61, 60)])
def test_rounding_to_a_coarse_tick_decides_nothing(before: int, after: int) -> None:
    """All samples of a side are one multiple of 1.024 µs: times of 59.5 to 60.5 ticks are 60."""
    a, b = ([np.full(30, ticks * TICK)] * 8 for ticks in (before, after))
    result = compare(a, b, tick=TICK)
    assert (result.verdict, result.reason) == (Verdict.INCONCLUSIVE, Reason.RESOLUTION)
    assert result.margin == Margin(0.01, Source.ASKED)
    assert result.resolution > TICK / (60 * TICK)
    assert result.low <= 1 <= result.high
    assert result.blocks_needed is None


def test_a_shift_of_several_ticks_is_found_all_the_same() -> None:
    a, b = ([np.full(30, ticks * TICK)] * 8 for ticks in (59, 62))
    assert compare(a, b, tick=TICK).verdict is Verdict.REGRESSED


def test_samples_that_are_all_equal_are_one_tick() -> None:
    equal = [np.full(30, 33 * TICK)] * 8
    result = compare(equal, equal)
    assert (result.verdict, result.reason) == (Verdict.INCONCLUSIVE, Reason.RESOLUTION)


def ticked(rng: np.random.Generator, median: float, cv: float, phase: float | Array) -> Array:
    """Eight blocks of 30 readings (s) on the grid of TICK; `median` in ticks."""
    times = median * (1 + cv * rng.standard_normal((8, 30)))
    return np.asarray(np.floor(times + phase) * TICK)


@pytest.mark.parametrize("share", [0.002, 0.005, 0.017, 0.03])
@pytest.mark.parametrize("cv", [0.0005, 0.002, 0.005])
def test_ticks_make_no_wrong_verdicts(share: float, cv: float) -> None:
    """Rounded, at one phase for both sides, and at one for each reading."""
    rng = np.random.default_rng(0)
    wrong = 0
    for run in range(18):
        median = 1 / share + rng.random()
        change = (0.0066, 0.015, 0.02)[run % 3]
        phase = (0.5, rng.random(), rng.random((8, 30)))[run // 3 % 3]
        sides = [ticked(rng, median * factor, cv, phase) for factor in (1, 1 + change)]
        verdict = compare(*(list(each) for each in sides), tick=TICK).verdict
        wrong += verdict in (MIRROR if change < 0.01 else {Verdict.SAME, Verdict.IMPROVED})
    assert wrong == 0


@pytest.mark.parametrize("rounded", [True, False])
def test_scatter_resolves_a_change_of_about_a_tick(rounded: bool) -> None:
    """2% of 60.3 µs is 1.2 ticks of 1.024 µs; launches scatter by 0.6 ticks (CV 1%)."""
    rng = np.random.default_rng(1)
    verdicts = []
    for _ in range(25):
        phase = 0.5 if rounded else rng.random((8, 30))
        a, b = (ticked(rng, 60.3e-6 / TICK * factor, 0.01, phase) for factor in (1, 1.02))
        verdicts.append(compare(list(a), list(b), tick=TICK).verdict)
    assert verdicts.count(Verdict.REGRESSED) >= 22
    assert Verdict.SAME not in verdicts


def test_a_change_below_the_scatter_of_launches_with_two_modes_is_found() -> None:
    rng = np.random.default_rng(2)

    def modes(factor: float) -> list[Array]:
        slow = np.where(rng.random((8, 30)) < 0.5, 1.05, 1)
        return list(60e-6 * factor * slow * (1 + 0.01 * rng.standard_normal((8, 30))))

    verdicts = [compare(modes(1), modes(1.02)).verdict for _ in range(25)]
    assert verdicts.count(Verdict.REGRESSED) >= 22


def test_the_floor_holds_a_verdict_back() -> None:
    a, b = side(), side(1.03, seed=1)
    assert compare(a, b).verdict is Verdict.REGRESSED
    assert compare(a, b, floor=0.04).verdict is Verdict.SAME
    assert compare(a, b, floor=0.03).verdict is Verdict.INCONCLUSIVE


def test_an_environment_that_moved_is_invalid_whatever_was_measured() -> None:
    result = compare(side(), side(1.5, seed=1), invalid=["SM clock fell by 10%"])
    assert (result.verdict, result.reason) == (Verdict.INVALID, Reason.ENVIRONMENT)
    assert result.details == ("SM clock fell by 10%",)


def test_too_few_blocks_or_samples_settle_nothing() -> None:
    few = compare(side(blocks=4), side(1.1, seed=1, blocks=4))
    assert (few.verdict, few.reason) == (Verdict.INCONCLUSIVE, Reason.TOO_FEW_BLOCKS)
    assert few.blocks_needed == 6
    short = compare(side(n=20), side(1.1, seed=1, n=20))
    assert (short.verdict, short.reason) == (Verdict.INCONCLUSIVE, Reason.TOO_FEW_SAMPLES)
    loose = compare(side(blocks=4), side(1.1, seed=1, blocks=4), thresholds=PERMISSIVE)
    assert loose.verdict is Verdict.REGRESSED


def test_presets_get_stricter() -> None:
    assert PRESETS == {"strict": STRICT, "default": DEFAULT, "permissive": PERMISSIVE}
    assert STRICT.margin < DEFAULT.margin < PERMISSIVE.margin
    assert STRICT.level > DEFAULT.level > PERMISSIVE.level
    assert STRICT.blocks > DEFAULT.blocks > PERMISSIVE.blocks


def test_blocks_needed_settle_it() -> None:
    ratios = np.array([0.05, -0.01, 0.03, 0.00, 0.04, 0.01])
    ruling = judge(ratios, ONE)
    assert (ruling.verdict, ruling.reason) == (Verdict.INCONCLUSIVE, Reason.NEEDS_BLOCKS)
    assert ruling.blocks_needed is not None
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((400, ruling.blocks_needed)) * ratios.std(ddof=1) + ratios.mean()
    settled = [judge(row, ONE).verdict is Verdict.REGRESSED for row in noise]
    assert 0.84 < np.mean(settled) < 0.96


def test_no_number_of_blocks_settles_an_effect_at_the_margin() -> None:
    ruling = judge(math.log(1.01) + np.array([0.002, -0.002, 0.001, -0.001, 0.003, -0.003]), ONE)
    assert (ruling.verdict, ruling.reason) == (Verdict.INCONCLUSIVE, Reason.AT_MARGIN)
    assert ruling.blocks_needed is None


@pytest.mark.parametrize("blocks", [6, 8, 16, 32])
def test_the_detectable_effect_of_one_experiment_is_found_by_another(blocks: int) -> None:
    """One row in forty looks dependent by chance and finds less: the plan allows for it."""
    rows = np.random.default_rng(5).standard_normal((1500, blocks)) * 0.004
    effects = [math.log1p(judge(row, ONE).detectable) for row in rows]
    found = [
        judge(row + effect, ONE).verdict is Verdict.REGRESSED
        for row, effect in zip(np.roll(rows, 1, axis=0), effects, strict=True)
    ]
    assert 0.88 <= np.mean(found) <= 0.92


@pytest.mark.parametrize("effect", [0.0, 0.005, 0.017, 0.025])
def test_the_blocks_needed_settle_it_at_the_planned_power(effect: float) -> None:
    ratios = effect + np.array([0.022, -0.022, 0.019, -0.019, 0.02, -0.02])
    ruling = judge(ratios, ONE)
    assert ruling.blocks_needed is not None
    noise = np.random.default_rng(0).standard_normal((500, ruling.blocks_needed))
    settled = [
        judge(row * ratios.std(ddof=1) + effect, ONE).verdict is not Verdict.INCONCLUSIVE
        for row in noise
    ]
    assert 0.86 < np.mean(settled) < 0.96


@pytest.mark.parametrize("ratio", [10, 0.03])
def test_sides_that_are_far_apart_are_never_left_open(ratio: float) -> None:
    """Though one in forty rows of independent blocks looks autocorrelated."""
    rows = np.random.default_rng(0).standard_normal((1000, 8)) * 0.5 + math.log(ratio)
    wanted = Verdict.REGRESSED if ratio > 1 else Verdict.IMPROVED
    assert {judge(row, ONE).verdict for row in rows} == {wanted}


def test_offsets_that_last_over_blocks_make_few_false_verdicts() -> None:
    """Of two sides, sd 0.5% each, AR(1) 0.7 over eight blocks."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((1000, 8)) * math.sqrt(2) * 0.005
    for block in range(1, 8):
        rows[:, block] = 0.7 * rows[:, block - 1] + math.sqrt(1 - 0.7**2) * rows[:, block]
    false = [judge(row, ONE).verdict in MIRROR for row in rows]
    assert np.mean(false) <= 0.01


def test_one_outlier_block_is_named() -> None:
    ratios = np.array([0.030, 0.031, 0.029, 0.9, 0.030, 0.032, 0.028, 0.031])
    ruling = judge(ratios, ONE)
    assert (ruling.verdict, ruling.reason) == (Verdict.INCONCLUSIVE, Reason.OUTLIER_BLOCK)
    assert ruling.high - ruling.low > 0.4


def test_blocks_that_depend_on_each_other_are_worth_less() -> None:
    trend = np.linspace(0.002, 0.05, 12)
    ruling = judge(trend, ONE)
    assert ruling.dependence is not None
    assert ruling.dependence > 0.5
    assert (ruling.verdict, ruling.reason) == (Verdict.INCONCLUSIVE, Reason.DEPENDENT_BLOCKS)
    shuffled = judge(np.random.default_rng(0).permutation(trend), ONE)
    assert shuffled.verdict is Verdict.REGRESSED
    assert shuffled.high - shuffled.low < ruling.high - ruling.low


def test_a_drift_measured_in_turn_is_no_difference() -> None:
    clock = np.linspace(1, 1.03, 16 * 30).reshape(16, 30)
    noise = 1 + 0.01 * np.random.default_rng(3).standard_normal((16, 30))
    times = 60e-6 * clock * noise
    a = [times[2 * i + (i % 2)] for i in range(8)]
    b = [times[2 * i + 1 - (i % 2)] for i in range(8)]
    assert compare(a, b).verdict is Verdict.SAME


@pytest.mark.parametrize(
    ("a", "b"),
    [([], []), ([[1.0]], [[1.0]]), ([[1.0]] * 2, [[1.0]] * 3), ([[1.0], []], [[1.0]] * 2)],
)
def test_bad_blocks_are_refused(a: list[list[float]], b: list[list[float]]) -> None:
    with pytest.raises(BadInput):
        compare(a, b)
    with pytest.raises(BadInput):
        compare([[1.0], [math.nan]], [[1.0], [1.0]])


@given(
    st.integers(0, 10_000),
    st.floats(0.9, 1.1),
    st.floats(0.0, 0.05),
    st.integers(2, 9),
    st.sampled_from([0.0, 32e-9, 1.024e-6]),
    st.sampled_from(sorted(PRESETS)),
)
def test_swapping_the_sides_mirrors_the_verdict(
    seed: int, factor: float, offset: float, blocks: int, tick: float, preset: str
) -> None:
    rng = np.random.default_rng(seed)
    wild = 1 + offset * np.abs(rng.standard_normal((blocks, 1)))
    a = side(seed=seed, blocks=blocks)
    b = list(np.array(side(factor, seed + 1, blocks)) * wild)
    there = compare(a, b, tick=tick, thresholds=PRESETS[preset])
    back = compare(b, a, tick=tick, thresholds=PRESETS[preset])
    assert back.verdict is MIRROR.get(there.verdict, there.verdict)
    assert (back.reason, back.margin) == (there.reason, there.margin)
    assert back.speedup == pytest.approx(1 / there.speedup)
    assert (back.low, back.high) == pytest.approx((1 / there.high, 1 / there.low))
    assert (back.p_value, back.detectable) == pytest.approx((there.p_value, there.detectable))
    assert back.blocks_needed == there.blocks_needed
    assert there.low <= there.speedup <= there.high
    if there.verdict in MIRROR:
        assert not there.low <= 1 <= there.high


@given(
    st.lists(st.floats(-0.05, 0.05), min_size=6, max_size=12),
    st.floats(0, 0.03),
    st.floats(0, 0.03),
)
def test_a_coarser_timer_only_widens(ratios: list[float], one: float, more: float) -> None:
    fine = judge(ratios, ONE, resolution=one)
    coarse = judge(ratios, ONE, resolution=one + more)
    assert coarse.low <= fine.low <= fine.effect <= fine.high <= coarse.high
    assert coarse.p_value >= fine.p_value
    assert coarse.detectable >= fine.detectable
    assert coarse.verdict in {fine.verdict, Verdict.INCONCLUSIVE}


@given(
    st.integers(0, 10_000),
    st.floats(0.95, 1.05),
    st.sampled_from([0.001, 0.01, 0.03]),
    st.sampled_from([2.0**-8, 4.0]),
)
def test_readings_on_a_grid_keep_the_laws(
    seed: int, factor: float, share: float, scale: float
) -> None:
    rng = np.random.default_rng(seed)
    a, b = (list(ticked(rng, f / share, 0.005, rng.random())) for f in (1, factor))
    there, back = compare(a, b, tick=TICK), compare(b, a, tick=TICK)
    scaled = compare(
        [scale * block for block in a], [scale * block for block in b], tick=scale * TICK
    )
    assert back.verdict is MIRROR.get(there.verdict, there.verdict)
    assert (back.low, back.high) == pytest.approx((1 / there.high, 1 / there.low))
    assert (scaled.verdict, scaled.reason) == (there.verdict, there.reason)
    assert (scaled.low, scaled.high) == pytest.approx((there.low, there.high))


@given(st.integers(0, 10_000), st.floats(0.95, 1.05), st.sampled_from([2.0**-8, 4.0]))
def test_order_in_a_block_and_scale_change_nothing(seed: int, factor: float, scale: float) -> None:
    a, b = side(seed=seed), side(factor, seed + 1)
    rng = np.random.default_rng(seed)
    result = compare(a, b)
    shuffled = compare(a, [rng.permutation(block) for block in b])
    scaled = compare([block * scale for block in a], [block * scale for block in b])
    for other in (shuffled, scaled):
        assert (other.verdict, other.reason) == (result.verdict, result.reason)
        assert (other.low, other.high) == pytest.approx((result.low, result.high))


def test_holm_by_hand() -> None:
    base = compare(side(), side(1.03, seed=1))
    given_p = [0.01, 0.04, 0.03, 0.005]
    adjusted = holm([replaced(base, p) for p in given_p])
    assert [one.p_adjusted for one in adjusted] == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert [one.verdict for one in adjusted] == [
        Verdict.REGRESSED,
        Verdict.INCONCLUSIVE,
        Verdict.INCONCLUSIVE,
        Verdict.REGRESSED,
    ]
    assert adjusted[1].reason is Reason.CORRECTED


def replaced(comparison: Comparison, p_value: float) -> Comparison:
    return structs.replace(comparison, p_value=p_value)


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_only_falls_back(p_values: list[float]) -> None:
    base = compare(side(blocks=6), side(1.03, seed=1, blocks=6))
    given_ones = [replaced(base, p) for p in p_values]
    for one, adjusted in zip(given_ones, holm(given_ones), strict=True):
        assert adjusted.p_adjusted is not None
        assert adjusted.p_adjusted >= one.p_value
        assert adjusted.verdict in {one.verdict, Verdict.INCONCLUSIVE}


def test_holm_leaves_out_what_is_invalid_and_keeps_same() -> None:
    invalid = compare(side(), side(seed=1), invalid=["throttled"])
    same = compare(side(), side(seed=1))
    slower = compare(side(), side(1.03, seed=1))
    adjusted = holm([invalid, same, slower])
    assert [one.verdict for one in adjusted] == [one.verdict for one in (invalid, same, slower)]
    assert adjusted[0].p_adjusted is None
    assert adjusted[2].p_adjusted == pytest.approx(2 * slower.p_value)


def test_two_saved_runs_have_no_gate_without_a_floor() -> None:
    a, b = (summarize(np.concatenate(side(f, s))) for f, s in ((1.0, 0), (1.2, 1)))
    result = single_runs(a, b)
    assert (result.verdict, result.reason) == (Verdict.INCONCLUSIVE, Reason.NOT_INTERLEAVED)
    assert result.margin is None
    assert result.low is not None
    assert result.high is not None
    assert result.low < result.speedup < result.high < 0.9


@pytest.mark.parametrize(
    ("factor", "floor", "verdict"),
    [
        (1.05, 0.02, Verdict.REGRESSED),
        (0.95, 0.02, Verdict.IMPROVED),
        (1.0, 0.02, Verdict.SAME),
        (1.02, 0.02, Verdict.INCONCLUSIVE),
    ],
)
def test_two_saved_runs_with_a_known_floor(factor: float, floor: float, verdict: Verdict) -> None:
    a, b = summarize(np.concatenate(side())), summarize(np.concatenate(side(factor, seed=1)))
    result = single_runs(a, b, floor)
    assert result.verdict is verdict
    assert result.margin == Margin(floor, Source.FLOOR)
    assert single_runs(b, a, floor).verdict is MIRROR.get(verdict, verdict)


def test_two_saved_runs_without_an_interval() -> None:
    result = single_runs(summarize([1e-6, 2e-6]), summarize([1e-6, 2e-6]), 0.01)
    assert (result.verdict, result.reason) == (Verdict.INCONCLUSIVE, Reason.NO_INTERVAL)
    assert result.low is result.high is None
