"""How often `profkit history check` raises a false alarm, and how soon it detects a step.

python -m benchmarks.history_alarms [--histories N] [--write]

Simulated histories of one program (A/A) and of one that gets 2% slower. Prints Markdown tables;
--write puts them between the markers in docs/reference/methods/history.md. Thresholds were chosen
on other seeds, and on the kinds of noise of `TUNED` alone: `HELD_OUT` and the seeds are held out.
Takes ten minutes on two cores.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy import signal

from profkit.history.changes import Kind, check_series
from profkit.history.record import Conditions, Point, Series
from profkit.history.steps import FEWEST, LEAST

Array = npt.NDArray[np.float64]

RUNS = 150  # of a history
BLOCKS = 8
WITHIN, BETWEEN = 0.01, 0.005  # CV of the blocks of a run, and of runs
STEP = 0.02
BASELINES = (20, 30, 50)
WITHIN_RUNS = 3
LATENCY = 50e-6
SEED = 700_000  # thresholds were chosen on seeds below 400,000
PAGE = Path(__file__).parent.parent / "docs" / "reference" / "methods" / "history.md"
BEGIN, END = "<!-- begin: benchmarks/history_alarms.py -->", "<!-- end -->"


@dataclass
class History:
    """Log times of the blocks of runs, shape (runs, blocks), and the number of each run's
    conditions."""

    times: Array
    conditions: npt.NDArray[np.intp]


Noise = Callable[[np.random.Generator, History], None]


def autoregressive(rng: np.random.Generator, shape: tuple[int, ...], rho: float) -> Array:
    """A stationary AR(1) series along the last axis, standard deviation 1."""
    white = rng.normal(size=(*shape[:-1], shape[-1] + 200)) * np.sqrt(1 - rho**2)
    result: Array = signal.lfilter([1], [1, -rho], white)[..., 200:]
    return result


def independent(rng: np.random.Generator, history: History) -> None:
    """Nothing but white noise, within runs and between them."""
    runs = len(history.times)
    history.times += rng.normal(0, BETWEEN, (runs, 1)) + rng.normal(0, WITHIN, (runs, BLOCKS))


def correlated_runs(rng: np.random.Generator, history: History, rho: float, share: float) -> None:
    """Runs are an AR(1) series; `share` of their standard deviation."""
    runs = len(history.times)
    history.times += rng.normal(0, WITHIN, (runs, BLOCKS))
    history.times += share * BETWEEN * autoregressive(rng, (runs,), rho)[:, None]


def correlated_blocks(rng: np.random.Generator, history: History) -> None:
    """The blocks of a run are an AR(1) series with rho 0.9."""
    runs = len(history.times)
    history.times += rng.normal(0, BETWEEN, (runs, 1))
    history.times += WITHIN * autoregressive(rng, (runs, BLOCKS), 0.9)


def day_ramp(rng: np.random.Generator, history: History) -> None:
    """Eight runs a day, each slower than the one before, 1% from morning to evening."""
    independent(rng, history)
    history.times += 0.01 * (np.arange(len(history.times)) % 8 / 7)[:, None]


def day_wave(rng: np.random.Generator, history: History) -> None:
    """A wave of 4 to 12 runs, 1% up and down."""
    independent(rng, history)
    phase = np.arange(len(history.times)) / rng.integers(4, 13) + rng.random()
    history.times += 0.01 * np.sin(2 * np.pi * phase)[:, None]


def drift_in_runs(rng: np.random.Generator, history: History) -> None:
    """Blocks get slower within a run, by up to 3%."""
    independent(rng, history)
    history.times += np.linspace(0, 0.03, BLOCKS) * rng.random((len(history.times), 1))


def bimodal_runs(rng: np.random.Generator, history: History) -> None:
    """Three runs of ten are 3% slower."""
    independent(rng, history)
    history.times += 0.03 * (rng.random((len(history.times), 1)) < 0.3)


def bimodal_blocks(rng: np.random.Generator, history: History) -> None:
    """Three blocks of ten are 3% slower."""
    independent(rng, history)
    history.times += 0.03 * (rng.random(history.times.shape) < 0.3)


def lasting_modes(rng: np.random.Generator, history: History) -> None:
    """Two modes 3% apart, each for 20 runs on average."""
    independent(rng, history)
    flips = np.cumsum(rng.random(len(history.times)) < 0.05)
    history.times += 0.03 * (flips % 2)[:, None]


def outlier_runs(rng: np.random.Generator, history: History) -> None:
    """A run of twenty is slower, by 10% on average."""
    independent(rng, history)
    runs = len(history.times)
    history.times += np.where(rng.random(runs) < 0.05, rng.exponential(0.1, runs), 0)[:, None]


def outlier_blocks(rng: np.random.Generator, history: History) -> None:
    """A block of twenty is slower, by 20% on average."""
    independent(rng, history)
    shape = history.times.shape
    history.times += np.where(rng.random(shape) < 0.05, rng.exponential(0.2, shape), 0)


def drivers(rng: np.random.Generator, history: History, runs: int) -> None:
    """Another driver after so many runs, which moves the level by 3% (standard deviation)."""
    independent(rng, history)
    history.conditions += np.arange(len(history.times)) // runs
    levels = rng.normal(0, 0.03, history.conditions.max() + 1)
    history.times += levels[history.conditions][:, None]


def heavy_tails(rng: np.random.Generator, history: History) -> None:
    """Student's t with 3 degrees of freedom, within runs and between them."""
    shape = history.times.shape
    history.times += BETWEEN * rng.standard_t(3, (shape[0], 1)) / np.sqrt(3)
    history.times += WITHIN * rng.standard_t(3, shape) / np.sqrt(3)


def several_gpus(rng: np.random.Generator, history: History) -> None:
    """Each run on one of three GPUs that differ by percents."""
    independent(rng, history)
    history.conditions += rng.integers(0, 3, len(history.times))
    history.times += np.array([0, 0.02, -0.03])[history.conditions][:, None]


def coarse_timer(rng: np.random.Generator, history: History) -> None:
    """A timer of 1.024 µs."""
    independent(rng, history)
    ticks = np.round(LATENCY * np.exp(history.times) / 1.024e-6)
    history.times[:] = np.log(ticks * 1.024e-6 / LATENCY)


def uneven_scatter(rng: np.random.Generator, history: History) -> None:
    """Runs whose scatter differs by a factor of two (one standard deviation)."""
    runs = len(history.times)
    history.times += rng.normal(0, WITHIN, (runs, BLOCKS))
    history.times += (rng.normal(0, BETWEEN, runs) * np.exp(rng.normal(0, 0.7, runs)))[:, None]


def three_modes(rng: np.random.Generator, history: History) -> None:
    """Runs in one of three modes, 2% and 5% slower."""
    independent(rng, history)
    history.times += rng.choice([0, 0.02, 0.05], (len(history.times), 1), p=[0.5, 0.3, 0.2])


def slow_wave(rng: np.random.Generator, history: History) -> None:
    """A wave of 40 runs, 1% up and down."""
    independent(rng, history)
    history.times += 0.01 * np.sin(2 * np.pi * np.arange(len(history.times)) / 40)[:, None]


def outlier_pairs(rng: np.random.Generator, history: History) -> None:
    """One or two neighboring runs 5% slower, every 30 runs on average."""
    independent(rng, history)
    place = 0
    while (place := place + 1 + int(rng.exponential(30))) < len(history.times):
        history.times[place : place + rng.integers(1, 3)] += 0.05


def random_walk(rng: np.random.Generator, history: History) -> None:
    """A level that wanders by 0.15% a run and never comes back."""
    independent(rng, history)
    history.times += np.cumsum(rng.normal(0, 0.0015, len(history.times)))[:, None]


TUNED: Mapping[str, Noise] = {
    "independent": independent,
    "AR(1) 0.9 between runs": partial(correlated_runs, rho=0.9, share=1.0),
    "AR(1) 0.9 between runs, sd 1%": partial(correlated_runs, rho=0.9, share=2.0),
    "AR(1) 0.9 within runs": correlated_blocks,
    "drift of 1% within a day": day_ramp,
    "wave of ±1% within a day": day_wave,
    "drift within runs": drift_in_runs,
    "bimodal runs, 3% apart": bimodal_runs,
    "bimodal blocks, 3% apart": bimodal_blocks,
    "modes that last 20 runs, 3% apart": lasting_modes,
    "outlier runs": outlier_runs,
    "outlier blocks": outlier_blocks,
    "driver every 14 runs, recorded": partial(drivers, runs=14),
    "driver every 7 runs, recorded": partial(drivers, runs=7),
}
"""Kinds of noise on which thresholds were chosen, with other seeds."""
HELD_OUT: Mapping[str, Noise] = {
    "heavy tails (t, 3 degrees)": heavy_tails,
    "AR(1) 0.95 between runs": partial(correlated_runs, rho=0.95, share=1.3),
    "three GPUs in turn, recorded": several_gpus,
    "timer of 1.024 µs": coarse_timer,
    "uneven scatter": uneven_scatter,
    "three modes": three_modes,
    "wave of ±1% over 40 runs": slow_wave,
    "one or two outlier runs in a row": outlier_pairs,
    "random walk, 0.15% a run": random_walk,
}
"""Kinds of noise that were looked at only when the thresholds stood."""


def points_of(history: History) -> list[Point]:
    """A history as it would be read from a store, three runs a day, a commit each."""
    series = Series("target", "variant", "shape", "GPU", "main")
    return [
        Point(
            series,
            Conditions(driver=str(number)),
            datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=8 * place),
            run=str(place),
            source="",
            commit=f"{place + 1:040x}",
            block_medians=tuple((LATENCY * np.exp(times)).tolist()),
        )
        for place, (times, number) in enumerate(zip(history.times, history.conditions, strict=True))
    ]


def simulated(noise: Noise, seed: int, runs: int) -> History:
    history = History(np.zeros((runs, BLOCKS)), np.zeros(runs, np.intp))
    noise(np.random.default_rng(seed), history)
    return history


def false_alarms(noise: Noise, seed: int) -> tuple[int, int]:
    """Alarms that call a change of nothing real, and those of them that are regressions."""
    checked = check_series(points_of(simulated(noise, seed, RUNS)))
    real = [change for change in checked.changes if change.kind is Kind.REAL]
    return len(real), sum(change.change > 0 for change in real)


def detected(noise: Noise, seed: int, baseline: int) -> bool:
    """Whether a step after so many runs is called real and slower within three runs of it."""
    history = simulated(noise, seed, baseline + WITHIN_RUNS)
    history.times[baseline:] += STEP
    return any(
        change.kind is Kind.REAL and change.change > 0 and change.runs_since < WITHIN_RUNS
        for change in check_series(points_of(history)).changes
    )


def row(name: str, noise: Noise, histories: int, pool: ProcessPoolExecutor) -> list[str]:
    seeds = range(SEED, SEED + histories)
    alarms = np.array(list(pool.map(partial(false_alarms, noise), seeds, chunksize=5)))
    checks = histories * (RUNS - FEWEST - LEAST + 1)
    powers = []
    for baseline in BASELINES:
        steps = range(SEED * (1 + baseline), SEED * (1 + baseline) + 2 * histories)
        task = partial(detected, noise, baseline=baseline)
        powers.append(float(np.mean(list(pool.map(task, steps, chunksize=5)))))
    return [
        name,
        *(f"{100 * count / checks:.2f}" for count in alarms.sum(axis=0)),
        f"{np.mean(alarms[:, 0] > 0):.0%}",
        *(f"{power:.0%}" for power in powers),
    ]


def head() -> list[str]:
    columns = ["noise", "alarms per 100 checks", "of these slower", "histories with one"]
    columns += [f"2% after {runs} runs" for runs in BASELINES]
    return [f"| {' | '.join(columns)} |", "| --- " + "| --: " * (len(columns) - 1) + "|"]


def table(kinds: Mapping[str, Noise], histories: int, pool: ProcessPoolExecutor) -> list[str]:
    """The kinds of noise, a row each; twice as many histories of the independent one."""
    lines = head()
    for name, noise in kinds.items():
        count = 2 * histories if noise is independent else histories
        lines.append(f"| {' | '.join(row(name, noise, count, pool))} |")
        print(lines[-1], flush=True)
    return ["", *lines, ""]


def sections(tables: Sequence[Sequence[str]]) -> list[str]:
    return [*tables[0], "Kinds of noise on which nothing was chosen:", *tables[1]]


def write(lines: Sequence[str]) -> None:
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    text = "\n".join((BEGIN, *lines, END))
    PAGE.write_text(f"{before}{text}{after}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=30)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    with ProcessPoolExecutor() as pool:
        tables = [table(kinds, options.histories, pool) for kinds in (TUNED, HELD_OUT)]
    if options.write:
        write(sections(tables))


if __name__ == "__main__":
    main()
