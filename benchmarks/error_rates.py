"""How often the intervals and verdicts are right, on series whose truth is known.

python benchmarks/error_rates.py [--write]

Prints three markdown tables; --write puts them between the markers in docs/statistics.md. The seeds
are fixed. Takes about ten minutes on one core.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy import signal, stats

from profkit.analysis.latency import FEWEST_BLOCKS, FEWEST_IN_A_BLOCK
from profkit.analysis.statistics import (
    Claim,
    State,
    Summary,
    bootstrap_median,
    find_tick,
    summarize,
)
from profkit.analysis.verdict import DEFAULT, Verdict, interval_over_blocks, judge, margin_of

Array = npt.NDArray[np.float64]

SERIES = 4000
RUNS = 4000
BLOCKS, SAMPLES = 8, 30
MEDIAN = 60.3e-6
CV = 0.01
TICK = 1.024e-6
SIGMA, SPIKES, SPIKE = 0.8, 0.05, 1.3
WANDER, WANDER_RHO = 0.005, 0.98
STEP, FLIP, FLIPS = 0.02, 0.01, 1 / 20
LEAD_IN = 6  # of two sides: 10 ms of calls before each block, 65 of those that take 60 µs and flush
JUDGED = replace(DEFAULT, blocks=FEWEST_BLOCKS, samples=FEWEST_IN_A_BLOCK)
PAGE = Path(__file__).parent.parent / "docs" / "statistics.md"
BEGIN, END = "<!-- begin: benchmarks/error_rates.py -->", "<!-- end -->"

Noise = Callable[[np.random.Generator, tuple[int, ...]], Array]


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return MEDIAN * (1 + CV * rng.standard_normal(shape))


def skewed(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Lognormal on top of a fastest time; one in twenty is 1.3 times as long. Median: MEDIAN.

    The median is that of the mixture: the level of the lognormal part below which half of all
    samples lie, for no spike is shorter than it.
    """
    middle = math.exp(SIGMA * float(stats.norm.ppf(0.5 / (1 - SPIKES))))
    times = 1 + CV * (np.exp(SIGMA * rng.standard_normal(shape)) - middle)
    return MEDIAN * times * np.where(rng.random(shape) < SPIKES, SPIKE, 1)


def rounded(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return np.rint(normal(rng, shape) / TICK) * TICK


def two_readings(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    start = rng.random(shape)
    return np.floor(start + normal(rng, shape) / TICK) * TICK


def autoregressive(rho: float) -> Noise:
    def noise(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        steps = rng.standard_normal(shape) * math.sqrt(1 - rho**2)
        steps[..., 0] = rng.standard_normal(shape[:-1])
        filtered: Array = signal.lfilter([1.0], [1.0, -rho], steps, axis=-1)
        return MEDIAN * (1 + CV * filtered)

    return noise


def drifting(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return normal(rng, shape) + MEDIAN * np.linspace(-0.015, 0.015, shape[-1])


def wandering(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """White noise, and below it something that changes slowly."""
    slow = autoregressive(WANDER_RHO)(rng, shape) / MEDIAN - 1
    return normal(rng, shape) * (1 + slow * WANDER / CV)


def stepping(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """A step up at a moment of the middle half."""
    n = shape[-1]
    moment = rng.uniform(0.25, 0.75, (*shape[:-1], 1)) * n
    return normal(rng, shape) * (1 + STEP * ((np.arange(n) > moment) - 0.5))


def flipping(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """A clock that flips between two states, equally often in either."""
    first = rng.random((*shape[:-1], 1)) < 0.5
    state = (np.cumsum(rng.random(shape) < FLIPS, axis=-1) + first) % 2
    return normal(rng, shape) * (1 + FLIP * (2 * state - 1))


def on_ticks(cv: float) -> Noise:
    def noise(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        times = MEDIAN * (1 + cv * rng.standard_normal(shape))
        return np.floor(rng.random(shape) + times / TICK) * TICK

    return noise


SAMPLED: dict[str, Noise] = {
    "normal": normal,
    "skewed, 5% outliers": skewed,
    "1.024 µs tick, rounded": rounded,
    "1.024 µs tick, two readings": two_readings,
    "AR(1) 0.5": autoregressive(0.5),
    "AR(1) 0.9": autoregressive(0.9),
    "white, wander AR(1) 0.98 sd 0.5%": wandering,
    "3% drift": drifting,
    "2% step": stepping,
    "clock flips of 2%": flipping,
}


def share(hits: int, of: int) -> str:
    return f"{100 * hits / of:.1f}%" if of else "-"


def holds(summary: Summary, which: str) -> bool:
    interval = getattr(summary, which)
    return bool(interval is not None and interval.low <= MEDIAN <= interval.high)


def intervals_row(name: str, noise: Noise, n: int, seed: int) -> list[str]:
    series = noise(np.random.default_rng(seed), (SERIES, n))
    summaries = [summarize(times) for times in series]
    plain = [bootstrap_median(times, n) for times in series]
    objected = [s for s in summaries if s.independence.state is State.NOT_INDEPENDENT]
    plainly = [s for s in summaries if s.interval and s.interval.claim is Claim.WITHIN_RUN]
    widened = [s for s in summaries if s.interval and s.interval.claim is Claim.WIDENED]
    return [
        f"{name}, n = {n}",
        share(len(objected), SERIES),
        share(sum(low <= MEDIAN <= high for low, high in plain), SERIES),
        f"{share(sum(holds(s, 'interval') for s in plainly), len(plainly))} ({len(plainly)})",
        f"{share(sum(holds(s, 'interval') for s in widened), len(widened))} ({len(widened)})",
        share(sum(s.interval is None for s in summaries), SERIES),
        share(sum(holds(s, "order_interval") for s in summaries), SERIES),
    ]


@dataclass(frozen=True)
class Machine:
    """What differs between blocks, as shares of the time.

    `offset` (sd) of each block of a side, AR(1) over the blocks with `lasting`; `side` (sd) of a
    whole side; `drift` over the run; `floor` is the A/A floor that is known of the machine.
    """

    noise: Noise = normal
    offset: float = 0.0
    lasting: float = 0.0
    side: float = 0.0
    drift: float = 0.0
    floor: float = 0.0


MACHINES = {
    "independent": Machine(),
    "AR(1) 0.5 in a block": Machine(noise=autoregressive(0.5)),
    "offset of a block, sd 0.5%": Machine(offset=0.005),
    "offset of a block, sd 0.5%, AR(1) 0.7 over blocks": Machine(offset=0.005, lasting=0.7),
    "3% drift over the run, ABBA": Machine(drift=0.03),
    "offset of a side, sd 0.5%, floor unknown": Machine(side=0.005),
    "offset of a side, sd 0.5%, floor 1.5%": Machine(side=0.005, floor=0.015),
}


@dataclass(frozen=True)
class Alone:
    """One side of blocks that take turns: its slot is one of `slots`, `samples` are in a block.

    `offset` (sd) of each block, AR(1) over the blocks with `lasting`.
    """

    noise: Noise = normal
    samples: int = SAMPLES
    slots: int = 2
    offset: float = 0.0
    lasting: float = 0.0


ALONE = {
    "independent": Alone(),
    "independent, 8 x 13": Alone(samples=13),
    "skewed, 5% outliers": Alone(skewed),
    "skewed, 5% outliers, 8 x 13": Alone(skewed, 13),
    "AR(1) 0.5": Alone(autoregressive(0.5)),
    "AR(1) 0.9": Alone(autoregressive(0.9)),
    "offset of a block, sd 0.25%": Alone(offset=0.0025),
    "offset of a block, sd 0.5%, 8 x 13": Alone(samples=13, offset=0.005),
    "AR(1) 0.9, offset of a block, sd 3%": Alone(autoregressive(0.9), offset=0.03),
    "offset of a block, sd 3%, AR(1) 0.7 over blocks": Alone(offset=0.03, lasting=0.7),
    "white, wander AR(1) 0.98 sd 0.5%, slots as `time` has them": Alone(wandering, slots=LEAD_IN),
    "white, wander AR(1) 0.98 sd 0.5%, nothing between two sides": Alone(wandering),
    "3% drift": Alone(drifting),
    "2% step": Alone(stepping),
    "clock flips of 2%": Alone(flipping),
    "1.024 µs tick, CV 1%": Alone(on_ticks(0.01)),
    "1.024 µs tick, CV 0.1%": Alone(on_ticks(0.001)),
}


def log_ratios(machine: Machine, slower: float, seed: int) -> Array:
    """log(median B / median A), shape (RUNS, BLOCKS); B takes `slower` times as long."""
    medians = block_medians(machine, seed)
    return np.log(medians[..., 1] * slower / medians[..., 0])


def block_medians(machine: Machine, seed: int) -> Array:
    """The medians of blocks of both sides, shape (RUNS, BLOCKS, 2)."""
    rng = np.random.default_rng(seed)
    medians = np.empty((RUNS, BLOCKS, 2))
    order = np.array([[0, 1], [1, 0]] * (BLOCKS // 2))
    for run in range(RUNS):
        times = machine.noise(rng, (BLOCKS, 2, SAMPLES))
        clock = np.linspace(1, 1 + machine.drift, BLOCKS * 2 * SAMPLES)
        times *= clock.reshape(BLOCKS, 2, SAMPLES)[np.arange(BLOCKS)[:, np.newaxis], order]
        medians[run] = np.median(times, axis=-1)
    steps = rng.standard_normal((RUNS, 2, BLOCKS)) * math.sqrt(1 - machine.lasting**2)
    steps[..., 0] = rng.standard_normal((RUNS, 2))
    offsets = signal.lfilter([1.0], [1.0, -machine.lasting], steps, axis=-1)
    medians *= 1 + machine.offset * offsets.transpose(0, 2, 1)
    medians *= 1 + machine.side * rng.standard_normal((RUNS, 1, 2))
    return medians


def verdicts_row(name: str, machine: Machine, seed: int) -> list[str]:
    margin = margin_of(0.01, 0.0, machine.floor)
    same = [judge(ratios, margin).verdict for ratios in log_ratios(machine, 1.0, seed)]
    slower = [judge(ratios, margin).verdict for ratios in log_ratios(machine, 1.02, seed + 1)]
    false = same.count(Verdict.REGRESSED) + same.count(Verdict.IMPROVED)
    return [
        name,
        share(false, RUNS),
        share(same.count(Verdict.SAME), RUNS),
        share(slower.count(Verdict.REGRESSED), RUNS),
        share(slower.count(Verdict.SAME) + slower.count(Verdict.IMPROVED), RUNS),
    ]


def offsets(rng: np.random.Generator, alone: Alone) -> Array:
    """What each block of each run is longer by, as shares, shape (RUNS, BLOCKS)."""
    steps = rng.standard_normal((RUNS, BLOCKS)) * math.sqrt(1 - alone.lasting**2)
    steps[:, 0] = rng.standard_normal(RUNS)
    filtered: Array = signal.lfilter([1.0], [1.0, -alone.lasting], steps, axis=-1)
    return alone.offset * filtered


def over_blocks_row(name: str, alone: Alone, seed: int) -> list[str]:
    """Coverage of the interval over blocks of a side, and how wide it is in the middle."""
    rng = np.random.default_rng(seed)
    known = []
    for offset in offsets(rng, alone):
        times = alone.noise(rng, (BLOCKS * alone.slots * alone.samples,))
        own = times.reshape(BLOCKS, alone.slots, alone.samples)[:, 0] * (1 + offset[:, np.newaxis])
        interval = interval_over_blocks(list(own), find_tick(own.ravel()) or 0.0, JUDGED)
        if interval is not None and interval.low < interval.high:
            known.append(interval)
    hits = sum(interval.low <= MEDIAN <= interval.high for interval in known)
    width = float(np.median([(one.high - one.low) / (2 * MEDIAN) for one in known]))
    return [name, share(RUNS - len(known), RUNS), share(hits, len(known)), f"±{100 * width:.2f}%"]


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def error(share: float, of: int) -> str:
    return f"{100 * math.sqrt(share * (1 - share) / of):.2f} points"


def measure() -> str:
    intervals = [
        intervals_row(name, noise, n, 100 * n + i)
        for n in (100, 30)
        for i, (name, noise) in enumerate(SAMPLED.items())
    ]
    verdicts = [
        verdicts_row(name, machine, 2 * i) for i, (name, machine) in enumerate(MACHINES.items())
    ]
    over_blocks = [
        over_blocks_row(name, alone, 1000 + i) for i, (name, alone) in enumerate(ALONE.items())
    ]
    head = ["series", "seen not independent", "bootstrap, unconditional"]
    head += ["within the run (series)", "widened (series)", "refused", "order statistics"]
    return "\n\n".join(
        (
            "Coverage of the median by the intervals within one run, which state no level: CV 1%, "
            f"{SERIES} series a row (standard error {error(0.95, SERIES)} at 95%). The "
            "unconditional bootstrap has no tick added.",
            table(head, intervals),
            f"Verdicts at the default preset, {BLOCKS} blocks of {SAMPLES} a side, CV 1%, {RUNS} "
            f"runs a cell (standard error {error(0.01, RUNS)} at 1%, {error(0.9, RUNS)} at 90%).",
            table(
                ["between blocks", "A/A: false verdict", "A/A: same", "2%: regressed", "2%: wrong"],
                verdicts,
            ),
            f"Coverage of the 95% interval over {BLOCKS} blocks of {SAMPLES} that take turns with "
            f"another side, {RUNS} runs a row (standard error {error(0.95, RUNS)}).",
            table(["series", "none", "coverage", "half width"], over_blocks),
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
