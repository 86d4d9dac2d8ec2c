"""95% intervals cover the known truth of simulated processes; others state no level."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from profkit.timing.latency import FEWEST_BLOCKS, FEWEST_IN_A_BLOCK, analyze_latency
from profkit.timing.latency_file import read_latencies
from profkit.timing.latency_format import Latency, Recorded
from profkit.timing.latency_view import latency_words
from profkit.timing.results import Claim, Interval
from tests.conftest import L4, needs_l4

Array = npt.NDArray[np.float64]
Process = Callable[[np.random.Generator], Latency]

MEDIAN, CV, RUNS = 60.3e-6, 0.01, 100


def autoregressive(rng: np.random.Generator, n: int, rho: float) -> Array:
    steps: Array = rng.standard_normal(n) * (1 - rho**2) ** 0.5
    steps[0] /= (1 - rho**2) ** 0.5
    for i in range(1, n):
        steps[i] += rho * steps[i - 1]
    return steps


def series(times: Array, *, contiguous: bool = False) -> Latency:
    """Blocks in rows of `times`; one in every two slots unless they are `contiguous`."""
    return Latency(
        label="x",
        blocks=tuple(
            Recorded(turn=turn if contiguous else 2 * turn, samples=tuple((MEDIAN * row).tolist()))
            for turn, row in enumerate(times)
        ),
    )


def wander(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    n = shape[0] * shape[1]
    slow = 0.005 * autoregressive(rng, n, 0.98)
    return (1 + CV * rng.standard_normal(n) + slow).reshape(shape)


def offsets(rng: np.random.Generator, shape: tuple[int, int], sd: float) -> Array:
    return 1 + CV * rng.standard_normal(shape) + sd * rng.standard_normal((shape[0], 1))


def in_blocks(rng: np.random.Generator, rho: float) -> Array:
    return np.array([1 + CV * autoregressive(rng, 30, rho) for _ in range(8)])


def ticking(rng: np.random.Generator) -> Array:
    tick = 1.024e-6 / MEDIAN
    start = rng.random((8, 30))
    return np.floor(start + (1 + 1e-3 * rng.standard_normal((8, 30))) / tick) * tick


PROCESSES: dict[str, Process] = {
    "independent": lambda rng: series(offsets(rng, (8, 30), 0.0)),
    "a run with a slow wander": lambda rng: series(wander(rng, (1, 100))),
    "the run cut in pieces": lambda rng: series(wander(rng, (8, 13)), contiguous=True),
    "offsets of blocks, sd 0.25%, 8 x 30": lambda rng: series(offsets(rng, (8, 30), 0.0025)),
    "offsets of blocks, sd 0.5%, 8 x 13": lambda rng: series(offsets(rng, (8, 13), 0.005)),
    "AR(1) 0.9 in a block": lambda rng: series(in_blocks(rng, 0.9)),
    "1.024 µs tick": lambda rng: series(ticking(rng)),
}


def levelled(latency: Latency) -> list[Interval]:
    timed = analyze_latency(latency)
    stated = (timed.interval, timed.summary.interval, timed.summary.order_interval)
    return [one for one in stated if one is not None and one.level is not None]


@pytest.mark.parametrize("name", PROCESSES)
def test_what_says_95_percent_covers_it(name: str) -> None:
    """Of as many intervals fewer hits than the least here happen once in a thousand at 95%."""
    rng = np.random.default_rng(11)
    stated = [one for _ in range(RUNS) for one in levelled(PROCESSES[name](rng))]
    assert all(one.level == 0.95 for one in stated)
    hits = sum(one.low <= MEDIAN <= one.high for one in stated)
    assert hits >= stats.binom.ppf(1e-3, len(stated), 0.95) if stated else True


@pytest.mark.parametrize("name", ["independent", "offsets of blocks, sd 0.5%, 8 x 13"])
def test_interleaved_blocks_state_a_level(name: str) -> None:
    rng = np.random.default_rng(1)
    timed = [analyze_latency(PROCESSES[name](rng)) for _ in range(10)]
    assert sum(one.interval is not None and one.interval.level == 0.95 for one in timed) >= 8
    assert any("±" in latency_words(one) for one in timed)


def test_the_headline_is_students_t_over_block_medians() -> None:
    rng = np.random.default_rng(2)
    times = offsets(rng, (8, 30), 0.005)
    found = analyze_latency(series(times))
    medians = np.log(MEDIAN * np.median(times, axis=1))
    ends = stats.t.interval(0.95, 7, medians.mean(), stats.sem(medians))
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx(np.exp(ends))
    assert found.interval.claim is Claim.HOLDS
    assert found.without_level is None


@pytest.mark.parametrize(
    ("shape", "contiguous"),
    [
        ((1, 240), False),
        ((FEWEST_BLOCKS - 1, 30), False),
        ((8, FEWEST_IN_A_BLOCK - 1), False),
        ((8, 30), True),
    ],
)
def test_without_blocks_that_carry_one_no_level_is_stated(
    shape: tuple[int, int], *, contiguous: bool
) -> None:
    rng = np.random.default_rng(3)
    timed = analyze_latency(series(offsets(rng, shape, 0.0), contiguous=contiguous))
    assert timed.interval is not None
    assert timed.interval.level is None
    assert timed.without_level
    assert "≈" in latency_words(timed)


def test_equal_times_leave_no_interval() -> None:
    timed = analyze_latency(series(np.ones((8, 30))))
    assert timed.interval is None


@needs_l4
@pytest.mark.parametrize("path", sorted(L4.glob("*.json")), ids=lambda path: path.stem)
def test_published_single_runs_carry_no_level(path: Path) -> None:
    assert "raw_latencies" in json.loads(path.read_text(encoding="utf-8"))
    for latency in read_latencies(path).latencies:
        assert levelled(latency) == []


def test_an_interval_far_wider_than_its_median_is_called_too_noisy() -> None:
    """Blocks of 60 µs of which one took 500 times as long, on a machine that did other work."""
    rng = np.random.default_rng(3)
    times = 60e-6 * (1 + 0.01 * rng.standard_normal((8, 30)))
    times[::2] *= 500
    words = latency_words(analyze_latency(series(times)))
    assert "too noisy" in words
    assert "%" not in words
