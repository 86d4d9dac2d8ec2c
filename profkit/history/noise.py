"""Whether a step stands out of the noise of a series, whatever that noise is made of.

The noise of a run's level is white (the scatter of blocks, and of runs at random) plus a part that
is alike in runs that follow each other (AR(1): temperature, placement, other users). The mixture
is not known, so that the p-value of a step is the mean over mixtures, each by generalized least
squares and weighted by how well it explains the series with the step in it.
"""

import math
from functools import lru_cache
from itertools import product
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from profkit.core.distributions import t_cdf

Array: TypeAlias = npt.NDArray[np.float64]

# Chosen: correlations of neighboring runs, and the share of the variance that is correlated; finer
# grids change no p-value by more than a tenth of itself.
_CORRELATIONS = (0.5, 0.8, 0.9, 0.97)
_SHARES = (0.25, 0.5, 0.75, 1.0)
_NEGLIGIBLE = 1e-4  # weight of a model, chosen: moves no p-value that matters


class Step(Struct, frozen=True):
    """A step of log time from one run on: its `size`, the scatter of a single run around its level,
    the p-value of no step, and the log likelihood of the place."""

    size: float
    scatter: float
    p_value: float
    likelihood: float


def step_at(values: Array, levels: Array, split: int, least_scatter: float) -> Step | None:
    """The step from run `split` on.

    `values` has shape (n,): log times. `levels` (n, k) has a column of ones for the runs of each
    condition, whose levels are not known. `least_scatter` is the least that a run's level is known
    to. None where the step can't be told from the levels.
    """
    n = values.size
    after = (np.arange(n) >= split).astype(np.float64)
    design: Array = np.column_stack((levels, after))
    freedom = n - design.shape[1]
    if freedom < 2 or np.linalg.matrix_rank(design) < design.shape[1]:
        return None
    whitening, logs = _whitening(n)
    x, y = whitening @ design, whitening @ values
    transposed = x.transpose(0, 2, 1)
    gram = transposed @ x
    inverse = np.linalg.inv(gram)
    weights = (inverse @ (transposed @ y[:, :, None]))[:, :, 0]
    rest = y - (x @ weights[:, :, None])[:, :, 0]
    variance = np.maximum((rest**2).sum(axis=1) / freedom, max(least_scatter, 1e-12) ** 2)
    likelihood = -0.5 * (freedom * np.log(variance) + logs + np.linalg.slogdet(gram)[1])
    shares = np.exp(likelihood - likelihood.max())
    shares /= shares.sum()
    t = np.abs(weights[:, -1]) / np.sqrt(variance * inverse[:, -1, -1])
    return Step(
        size=float(shares @ weights[:, -1]),
        scatter=math.sqrt(float(shares @ variance)),
        p_value=sum(
            float(share) * 2 * t_cdf(-float(value), freedom)
            for share, value in zip(shares, t, strict=True)
            if share > _NEGLIGIBLE
        ),
        likelihood=float(likelihood.max()),
    )


@lru_cache(maxsize=128)
def _whitening(n: int) -> tuple[Array, Array]:
    """For each noise model the inverse Cholesky factor of the correlations of n runs, and the log
    determinant of these."""
    lags = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    models = [np.eye(n)]
    models += [
        (1 - share) * np.eye(n) + share * rho**lags
        for rho, share in product(_CORRELATIONS, _SHARES)
    ]
    factors = np.linalg.cholesky(np.array(models))
    logs: Array = 2 * np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    return np.linalg.inv(factors).astype(np.float64), logs
