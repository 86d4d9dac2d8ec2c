"""How often the intervals of one variant hold its median, on series whose median is known."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from msgspec import structs
from scipy import signal

from benchmarks.series import (
    BLOCKS,
    CV,
    MEDIAN,
    RUNS,
    SAMPLES,
    SERIES,
    TICK,
    Array,
    Noise,
    autoregressive,
    drifting,
    error,
    normal,
    rounded,
    share,
    skewed,
    table,
    two_readings,
)
from profkit.timing.latency import FEWEST_BLOCKS, FEWEST_IN_A_BLOCK
from profkit.timing.results import DEFAULT, Claim, State, Summary
from profkit.timing.statistics import bootstrap_median, find_tick, summarize
from profkit.timing.verdict import interval_over_blocks

WANDER, WANDER_RHO = 0.005, 0.98
STEP, FLIP, FLIPS = 0.02, 0.01, 1 / 20
LEAD_IN = 6  # of two sides: 10 ms of calls before each block, 65 of those that take 60 µs and flush
JUDGED = structs.replace(DEFAULT, blocks=FEWEST_BLOCKS, samples=FEWEST_IN_A_BLOCK)


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


def coverage_tables() -> list[str]:
    """Sentences and markdown tables, in order."""
    intervals = [
        intervals_row(name, noise, n, 100 * n + i)
        for n in (100, 30)
        for i, (name, noise) in enumerate(SAMPLED.items())
    ]
    over_blocks = [
        over_blocks_row(name, alone, 1000 + i) for i, (name, alone) in enumerate(ALONE.items())
    ]
    head = ["series", "seen not independent", "bootstrap, unconditional"]
    head += ["within the run (series)", "widened (series)", "refused", "order statistics"]
    return [
        "Coverage of the median by the intervals within one run, which state no level: CV 1%, "
        f"{SERIES} series a row (standard error {error(0.95, SERIES)} at 95%). The "
        "unconditional bootstrap has no tick added.",
        table(head, intervals),
        f"Coverage of the 95% interval over {BLOCKS} blocks of {SAMPLES} that take turns with "
        f"another side, {RUNS} runs a row (standard error {error(0.95, RUNS)}).",
        table(["series", "none", "coverage", "half width"], over_blocks),
    ]
