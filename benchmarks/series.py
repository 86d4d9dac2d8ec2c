"""Series of latencies whose median is known, and how tables of rates over them are written."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import signal, stats

Array = npt.NDArray[np.float64]

SERIES = 1000
RUNS = 1000
BLOCKS, SAMPLES = 8, 30
MEDIAN = 60.3e-6
CV = 0.01
TICK = 1.024e-6
SIGMA, SPIKES, SPIKE = 0.8, 0.05, 1.3

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


def share(hits: int, of: int) -> str:
    return f"{100 * hits / of:.1f}%" if of else "-"


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def error(share: float, of: int) -> str:
    return f"{100 * math.sqrt(share * (1 - share) / of):.2f} points"
