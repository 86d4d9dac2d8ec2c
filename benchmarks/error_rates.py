"""How often the intervals and verdicts are right, on series whose truth is known.

python -m benchmarks.error_rates [--write]

Prints markdown tables; --write puts them between the markers in
docs/reference/methods/statistics.md. The seeds are fixed. Takes about six minutes on one core.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from msgspec import structs
from scipy import signal

from benchmarks.interval_coverage import coverage_tables
from benchmarks.series import (
    BLOCKS,
    CV,
    RUNS,
    SAMPLES,
    Array,
    Noise,
    autoregressive,
    error,
    normal,
    share,
    skewed,
    table,
)
from profkit.calibration.floors import difference_bound, run_bound
from profkit.timing.resolution import common_tick, common_value, log_shift, open_ticks
from profkit.timing.results import DEFAULT, Summary, Verdict
from profkit.timing.statistics import summarize
from profkit.timing.verdict import judge, margin_of, single_runs

TICK_RUNS = 50
MARGIN = margin_of(DEFAULT.margin, 0.0)
CV_OF_A_RUN = CV * 1.25 / math.sqrt(BLOCKS * SAMPLES)  # of the median of all its samples
PAGE = Path(__file__).parent.parent / "docs" / "reference" / "methods" / "statistics.md"
BEGIN, END = "<!-- begin: benchmarks/error_rates.py -->", "<!-- end -->"


def stepping(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """One of all blocks is 10% slower from some sample on."""
    times = normal(rng, shape)
    blocks = times.reshape(-1, shape[-1])
    blocks[rng.integers(len(blocks)), rng.integers(shape[-1]) :] *= 1.1
    return times


def flipping(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Two clocks 5% apart; it is another one from a sample on in one case of ten."""
    flips = np.cumsum(rng.random(shape) < 0.1, axis=-1) + rng.integers(0, 2, (*shape[:-1], 1))
    return normal(rng, shape) * np.where(flips % 2, 1.05, 1)


def bimodal(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return normal(rng, shape) * np.where(rng.random(shape) < 0.5, 1.05, 1)


@dataclass(frozen=True)
class Machine:
    """What differs between blocks, as shares of the time.

    `offset` (sd) of each block of a side, AR(1) over the blocks with `lasting`; `side` (sd) of a
    whole side; `drift` over the run.
    """

    noise: Noise = normal
    offset: float = 0.0
    lasting: float = 0.0
    side: float = 0.0
    drift: float = 0.0


MACHINES = {
    "independent": Machine(),
    "skewed, 5% outliers": Machine(noise=skewed),
    "AR(1) 0.5 in a block": Machine(noise=autoregressive(0.5)),
    "AR(1) 0.9 in a block": Machine(noise=autoregressive(0.9)),
    "a step of 10% inside one block of 16": Machine(noise=stepping),
    "clock flips of 5% in a block": Machine(noise=flipping),
    "two modes 5% apart": Machine(noise=bimodal),
    "offset of a block, sd 0.5%": Machine(offset=0.005),
    "offset of a block, sd 0.5%, AR(1) 0.7 over blocks": Machine(offset=0.005, lasting=0.7),
    "3% drift over the run, ABBA": Machine(drift=0.03),
    "offset of a side, sd 0.5%, floor unknown": Machine(side=0.005),
}


def experiments(machine: Machine, seed: int) -> Iterator[Array]:
    """Times (s) of interleaved blocks of two equal sides, shape (BLOCKS, 2, SAMPLES), of RUNS."""
    rng = np.random.default_rng(seed)
    order = np.array([[0, 1], [1, 0]] * (BLOCKS // 2))
    clock = np.linspace(1, 1 + machine.drift, BLOCKS * 2 * SAMPLES).reshape(BLOCKS, 2, SAMPLES)
    for _ in range(RUNS):
        times = machine.noise(rng, (BLOCKS, 2, SAMPLES))
        times *= clock[np.arange(BLOCKS)[:, np.newaxis], order]
        steps = rng.standard_normal((2, BLOCKS)) * math.sqrt(1 - machine.lasting**2)
        steps[:, 0] = rng.standard_normal(2)
        offsets = signal.lfilter([1.0], [1.0, -machine.lasting], steps, axis=-1).T
        times *= (1 + machine.offset * offsets)[..., np.newaxis]
        yield times * (1 + machine.side * rng.standard_normal((2, 1)))


def shifts(times: Array, tick: float = 0.0) -> Array:
    """The log ratios of the blocks, as `compare` takes them, shape (BLOCKS,)."""
    return np.array([log_shift(block[0], block[1], tick) for block in times])


def count(verdicts: Iterable[Verdict], *wanted: Verdict) -> int:
    return sum(verdict in wanted for verdict in verdicts)


def verdicts_row(name: str, machine: Machine, seed: int) -> list[str]:
    ratios = [shifts(times) for times in experiments(machine, seed)]
    others = [shifts(times) for times in experiments(machine, seed + 1)]
    same = [judge(one, MARGIN) for one in ratios]
    slower = [judge(one + math.log(1.02), MARGIN).verdict for one in others]
    planned = [
        judge(other + math.log1p(ruling.detectable), MARGIN).verdict
        for ruling, other in zip(same, others, strict=True)
    ]
    verdicts = [ruling.verdict for ruling in same]
    return [
        name,
        share(count(verdicts, Verdict.REGRESSED, Verdict.IMPROVED), RUNS),
        share(count(verdicts, Verdict.SAME), RUNS),
        share(count(slower, Verdict.REGRESSED), RUNS),
        share(count(slower, Verdict.SAME, Verdict.IMPROVED), RUNS),
        share(count(planned, Verdict.REGRESSED), RUNS),
    ]


TICKS, CVS = (0.001, 0.002, 0.005, 0.01, 0.017, 0.03), (0.0005, 0.001, 0.002, 0.005, 0.01)
INSIDE, BEYOND = (0.0, 0.009), (0.015, 0.02)
PHASES: dict[str, Callable[[np.random.Generator], Array]] = {
    "rounded": lambda _: np.array(0.5),
    "one phase a run": lambda rng: rng.random(()),
    "one phase a reading": lambda rng: rng.random((BLOCKS, 2, SAMPLES)),
}


def tick_verdicts(tick: float, cv: float, slower: float, phase: str, seed: int) -> list[Verdict]:
    """Verdicts on `slower` where a tick is that share of a time at a random place of the grid."""
    rng = np.random.default_rng(seed)
    verdicts = []
    for _ in range(TICK_RUNS):
        median = 1 / tick + rng.random()
        times = median * (1 + cv * rng.standard_normal((BLOCKS, 2, SAMPLES)))
        times[:, 1] *= 1 + slower
        ticks = np.floor(times + PHASES[phase](rng))
        seen = common_tick(ticks[:, 0].ravel(), ticks[:, 1].ravel())
        seen = seen or common_value(list(ticks[:, 0]) + list(ticks[:, 1])) or 0.0
        resolution = open_ticks(list(ticks[:, 0]), list(ticks[:, 1]), seen) * seen / median
        ruling = judge(shifts(ticks, seen), MARGIN, samples=SAMPLES, resolution=resolution)
        verdicts.append(ruling.verdict)
    return verdicts


def tick_cell(tick: float, cv: float) -> str:
    """The most wrong verdicts over all phases and changes, and how many of 2% are found."""
    wrong, regressed = [], []
    for at, phase in enumerate(PHASES):
        for slower in INSIDE:
            verdicts = tick_verdicts(tick, cv, slower, phase, at)
            wrong.append(count(verdicts, Verdict.REGRESSED, Verdict.IMPROVED))
        for slower in BEYOND:
            verdicts = tick_verdicts(tick, cv, slower, phase, at)
            wrong.append(count(verdicts, Verdict.SAME, Verdict.IMPROVED))
        regressed.append(count(verdicts, Verdict.REGRESSED))
    return f"{share(max(wrong), TICK_RUNS)}, {100 * sum(regressed) / 3 / TICK_RUNS:.0f}%"


def calibrated_row(spread: float, pairs: int, seed: int) -> list[str]:
    """False verdicts with the floor of a calibration of its own, and how large that is."""
    rng = np.random.default_rng(seed)
    noise = [shifts(times) for times in experiments(Machine(), seed)]
    summaries = [summarize(normal(rng, (BLOCKS * SAMPLES,))) for _ in range(100)]
    between, saved, floors = [], [], []
    for ratios in noise:
        offsets = spread * rng.standard_normal((pairs + 1, 2))
        measured = offsets[:-1] @ [-1, 1] + CV_OF_A_RUN * rng.standard_normal(pairs)
        floor = max(difference_bound(list(measured)), math.expm1(np.abs(measured).max()))
        floors.append(floor)
        margin = margin_of(MARGIN.value, floor)
        between.append(judge(ratios + offsets[-1] @ [-1, 1], margin).verdict)
        runs = np.exp(offsets[:-1].ravel() + CV_OF_A_RUN * rng.standard_normal(2 * pairs))
        sides = [
            scaled(summaries[rng.integers(len(summaries))], math.exp(offset))
            for offset in offsets[-1]
        ]
        known = max(floor, run_bound(list(runs)), runs.max() / runs.min() - 1)
        saved.append(single_runs(sides[0], sides[1], known).verdict)
    return [
        f"{100 * spread:g}%, {pairs} pairs",
        f"{100 * float(np.median(floors)):.1f}%",
        share(count(between, Verdict.REGRESSED, Verdict.IMPROVED), RUNS),
        share(count(saved, Verdict.REGRESSED, Verdict.IMPROVED), RUNS),
    ]


def scaled(summary: Summary, factor: float) -> Summary:
    """What `single_runs` takes of a summary, of times that are all longer by a factor."""
    interval = summary.interval
    if interval is not None:
        interval = structs.replace(interval, low=interval.low * factor, high=interval.high * factor)
    return structs.replace(summary, median=summary.median * factor, interval=interval)


def disjoint() -> str:
    """How often sides far apart are told, where block ratios scatter by a factor."""
    rng = np.random.default_rng(7)
    ratios = math.log(0.03) + rng.standard_normal((RUNS, BLOCKS))
    return share(count([judge(one, MARGIN).verdict for one in ratios], Verdict.IMPROVED), RUNS)


def measure() -> str:
    verdicts = [
        verdicts_row(name, machine, 2 * i) for i, (name, machine) in enumerate(MACHINES.items())
    ]
    ticks = [[f"{100 * tick:g}%", *(tick_cell(tick, cv) for cv in CVS)] for tick in TICKS]
    calibrated = [
        calibrated_row(spread, pairs, 300 + pairs)
        for spread in (0.005, 0.01)
        for pairs in (3, 8, 16)
    ]
    verdict_head = ["between and within blocks", "A/A: false verdict", "A/A: same"]
    verdict_head += ["2%: regressed", "2%: wrong", "detectable: regressed"]
    return "\n\n".join(
        (
            f"Verdicts at the default preset, {BLOCKS} blocks of {SAMPLES} a side, CV 1%, "
            f"{RUNS} runs a cell (standard error {error(0.01, RUNS)} at 1%, "
            f"{error(0.9, RUNS)} at 90%). The last column: REGRESSED in another experiment "
            "whose true slowdown is the one that the first called detectable.",
            table(verdict_head, verdicts),
            "Sides that differ by a factor of 33, where blocks scatter by a factor of e: IMPROVED "
            f"in {disjoint()}.",
            f"Timer ticks of a share of the median (rows), by CV (columns), {TICK_RUNS} runs a "
            f"cell and case: the most wrong verdicts over three models of rounding "
            f"({', '.join(PHASES)}) and true changes of 0, 0.9%, 1.5% and 2%; then how many of 2% "
            "are found.",
            table(["tick", *(f"CV {100 * cv:g}%" for cv in CVS)], ticks),
            f"False verdicts with the floor of a calibration of its own, where processes of one "
            f"build scatter by an offset (sd), {RUNS} calibrations a row.",
            table(
                ["offset, calibrated on", "median floor", "--against: false", "compare: false"],
                calibrated,
            ),
            *coverage_tables(),
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure coverage and error rates.")
    parser.add_argument("--write", action="store_true", help=f"put the tables into {PAGE.name}")
    arguments = parser.parse_args()
    measured = measure()
    print(measured)
    if arguments.write:
        page = PAGE.read_text(encoding="utf-8")
        before, rest = page.split(BEGIN)
        after = rest.split(END, 1)[1]
        PAGE.write_text(f"{before}{BEGIN}\n{measured}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
