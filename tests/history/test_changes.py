"""Changes of series: what is detected in simulated histories, and how it is classed."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from benchmarks.history_alarms import (
    STEP,
    TUNED,
    autoregressive,
    detected,
    points_of,
    simulated,
)
from profkit.history.changes import Checked, Kind, check_series, series_marks
from profkit.history.divisive import distances, statistic
from profkit.history.noise import step_at
from profkit.history.record import Conditions, Point
from profkit.history.steps import FEWEST, LEAST, detect, level_of
from profkit.timing import floor as floors
from tests.conftest import ROOT

OTAVA = json.loads((ROOT / "tests/data/history/otava.json").read_text(encoding="utf-8"))["cases"]


def slower(points: Sequence[Point], first: int, factor: float = 1 + STEP) -> list[Point]:
    """The points, from one on by a factor slower."""
    return [
        replace(point, block_medians=tuple(median * factor for median in point.block_medians))
        if number >= first
        else point
        for number, point in enumerate(points)
    ]


def calm(runs: int) -> list[Point]:
    """Runs of one program with so little noise that nothing of it can be an alarm."""
    history = simulated(TUNED["independent"], 7, runs)
    history.times *= 0.2
    return points_of(history)


@pytest.mark.parametrize("factor", [1.08, 0.7])
@pytest.mark.parametrize("kind", ["independent", "outlier runs"])
def test_a_large_step_has_its_place_and_size(kind: str, factor: float) -> None:
    for history in range(12):
        points = slower(points_of(simulated(TUNED[kind], history, 60)), 40, factor)
        found = [mark for mark in series_marks(points) if abs(mark.index - 40) <= 1]
        assert [mark.change for mark in found] == [pytest.approx(factor - 1, rel=0.3)]


@pytest.mark.parametrize("between", [4, 6])
@pytest.mark.parametrize("back", [1.06, 1 / 1.06])
def test_a_step_soon_after_another_is_detected(between: int, back: float) -> None:
    points = slower(slower(calm(50), 30, 1.06), 30 + between, back)
    first, second = check_series(points).changes
    assert first.change == pytest.approx(0.06, abs=0.015)
    assert second.change == pytest.approx(back - 1, abs=0.015)


def test_steps_come_in_order_whatever_follows_them() -> None:
    for seed in range(60):
        rng = np.random.default_rng(seed)
        history = simulated(TUNED["independent"], seed, 40)
        first = int(rng.integers(10, 14))
        history.times[first:] += 0.1
        history.times[first + int(rng.integers(3, 7)) :] += 0.1
        steps = detect(list(history.times), history.conditions.tolist())
        assert all(one.latest < other.first for one, other in pairwise(steps))


def kinds(checked: Checked) -> list[Kind]:
    return [change.kind for change in checked.changes]


@pytest.mark.parametrize("number", range(len(OTAVA)))
def test_the_statistic_is_that_of_otava(number: int) -> None:
    case = OTAVA[number]
    values = statistic(distances([np.array([value]) for value in case["series"]]))
    assert values[1:] == pytest.approx(case["q"], abs=1e-7)
    if case["change_points"]:
        assert int(values.argmax()) in case["change_points"]


@pytest.mark.parametrize("number", [0, 3, 4])
def test_large_steps_are_where_otava_has_them(number: int) -> None:
    """Steps of three and four scatters, and none; smaller ones are less sure here than there."""
    case = OTAVA[number]
    runs = [np.array([value / 100]) for value in case["series"]]
    steps = detect(runs, [0] * len(runs))
    assert len(steps) == len(case["change_points"])
    for step, place in zip(steps, case["change_points"], strict=True):
        assert step.earliest <= place <= step.latest


def test_distances_are_those_of_the_blocks() -> None:
    runs = [np.array([0.0, 2.0]), np.array([1.0, 5.0]), np.array([3.0])]
    assert distances(runs).tolist() == [[0, 2.5, 2], [2.5, 0, 2], [2, 2, 0]]


def test_the_level_of_a_run_withstands_outliers() -> None:
    blocks = np.array([1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 3.0, 1.0])
    assert level_of(blocks) == pytest.approx(1.0, abs=0.01)


def test_a_wander_is_seldom_a_step() -> None:
    """Where a t test of AR(1) noise sees a step in most cases."""
    columns = np.ones((60, 1))
    seldom = often = 0
    for seed in range(40):
        walk = autoregressive(np.random.default_rng(seed), (60,), 0.9)
        step = step_at(walk, columns, 30, 0.0)
        assert step is not None
        seldom += step.p_value < 0.01
        often += stats.ttest_ind(walk[:30], walk[30:]).pvalue < 0.01
    assert seldom <= 4
    assert often >= 16


def test_false_alarms_are_at_most_one_in_a_hundred_checks() -> None:
    """Two histories of each kind of noise that the method has to withstand."""
    required = (
        "independent",
        "AR(1) 0.9 between runs",
        "drift of 1% within a day",
        "bimodal runs, 3% apart",
        "outlier runs",
        "driver every 14 runs, recorded",
    )
    checks = alarms = 0
    for number, kind in enumerate(required):
        for seed in (2 * number, 2 * number + 1):
            points = points_of(simulated(TUNED[kind], seed, 110))
            changes = check_series(points).changes
            alarms += sum(change.kind is Kind.REAL for change in changes)
            checks += len(points) - FEWEST - LEAST + 1
    assert alarms <= checks / 100


def test_a_step_of_two_percent_is_detected_within_three_runs() -> None:
    """With a power of 90%, more than five of twenty are missed once in 90 times."""
    assert sum(detected(TUNED["independent"], seed, 30) for seed in range(20)) >= 15


def test_a_change_names_the_runs_around_it() -> None:
    points = slower(calm(45), 40, 1.05)
    (change,) = check_series(points).changes
    assert (change.kind, change.runs_since) == (Kind.REAL, 2)
    assert [run.run for run in (change.good, change.bad)] == [points[39].run, points[40].run]
    assert change.change == pytest.approx(0.05, abs=0.01)
    (mark,) = series_marks(points)
    assert (mark.index, mark.kind) == (40, Kind.REAL)


def test_later_runs_move_no_change() -> None:
    points = slower(calm(80), 40, 1.03)
    early = check_series(points[:43]).changes
    late = check_series(points).changes
    assert [change.bad for change in early] == [change.bad for change in late[:1]]
    assert [change.runs_since for change in late[:1]] == [early[0].runs_since + 80 - 43]


@pytest.mark.parametrize("runs", [1, 2, FEWEST + LEAST - 1])
def test_few_runs_are_not_checked(runs: int) -> None:
    checked = check_series(slower(calm(runs), runs - 1, 2.0))
    assert not checked.changes
    assert checked.reason == f"{runs} of 11 runs"


@pytest.mark.parametrize(
    ("field", "kind"),
    [
        ("driver", Kind.HARDWARE),
        ("gpu_uuid", Kind.HARDWARE),
        ("timer", Kind.METHOD),
        ("cache_policy", Kind.METHOD),
        ("profkit", Kind.METHOD),
    ],
)
def test_a_change_with_its_conditions_is_not_real(field: str, kind: Kind) -> None:
    points = slower(calm(40), 30, 1.05)
    points[30:] = [
        replace(point, conditions=replace(point.conditions, **{field: "another"}))
        for point in points[30:]
    ]
    (change,) = check_series(points).changes
    assert change.kind is kind
    assert "→ another" in change.why
    assert change.bad.run == points[30].run


def test_a_real_change_is_detected_on_each_of_several_gpus() -> None:
    points = [
        replace(point, conditions=replace(point.conditions, gpu_uuid=f"GPU-{number % 2}"))
        for number, point in enumerate(calm(50))
    ]
    points = [
        slower([point], number % 2, 1.2)[0] if number % 2 else point
        for number, point in enumerate(slower(points, 44, 1.05))
    ]
    assert kinds(check_series(points)) == [Kind.REAL]


def test_one_commit_at_two_levels_is_noise() -> None:
    points = slower([replace(point, commit="c" * 40) for point in calm(40)], 35, 1.05)
    (change,) = check_series(points).changes
    assert change.kind is Kind.NOISE
    assert change.why == "commit ccccccccc was measured at both levels"


def test_changes_of_a_tree_with_changes_can_be_real() -> None:
    points = slower([replace(point, commit="c" * 40 + "-dirty") for point in calm(40)], 35, 1.05)
    assert kinds(check_series(points)) == [Kind.REAL]


def test_a_level_that_goes_there_and_back_becomes_noise() -> None:
    points = calm(100)
    for first in (20, 40, 60, 80):
        points = slower(points, first, 1.05 if first in (20, 60) else 1 / 1.05)
    assert kinds(check_series(points)) == [Kind.REAL, Kind.REAL, Kind.NOISE, Kind.NOISE]


def test_points_of_one_run_count_once() -> None:
    points = slower(calm(40), 39, 1.1)
    points += [replace(points[-1], source=f"again {number}") for number in range(5)]
    checked = check_series(points)
    assert checked.runs == 40
    assert not checked.changes


def test_a_coarse_timer_makes_no_steps() -> None:
    """From 59 to 60 ticks is 1.7%, less than can be told."""
    points = [
        replace(point, block_medians=(1.024e-6 * (59 + (number >= 30)),) * 8)
        for number, point in enumerate(calm(40))
    ]
    assert not check_series(points).changes


def test_runs_without_scatter_show_a_step() -> None:
    seconds = [5e-5 * (1.05 if number >= 30 else 1) for number in range(40)]
    points = [
        replace(
            point,
            block_medians=tuple(
                level * (1 + 1e-6 * math.sin(9 * number + block)) for block in range(8)
            ),
        )
        for number, (level, point) in enumerate(zip(seconds, calm(40), strict=True))
    ]
    (change,) = check_series(points).changes
    assert change.kind is Kind.REAL
    assert change.change == pytest.approx(0.05, abs=1e-3)


def test_a_calibrated_floor_holds_back_a_short_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    known = Conditions("GPU-1", "", "", "", "events", "cold", "")
    points = [replace(point, conditions=known) for point in slower(calm(14), 10, 1.04)]
    assert kinds(check_series(points)) == [Kind.REAL]
    floors.keep_floor(floors.Floor("GPU-1", "events", "cold", "", 0.01, 0.05, 0.1, 9, 9, ""))
    assert not check_series(points).changes
