"""The change of a share over pairs between two orders of findings, with its interval."""

from collections.abc import Sequence

from profkit.core.typed_file import Model
from profkit.timing.statistics import RESAMPLES

_ENDS = (0.025, 0.975)  # of a 95% interval
_SEED = 20261126  # any: the same interval every time


class Change(Model, frozen=True):
    """The change of a share, and the ends of its 95% interval."""

    mean: float
    low: float
    high: float


def change(differences: Sequence[int], families: Sequence[str]) -> Change | None:
    """The mean of paired differences, by a percentile bootstrap (Efron 1979) of whole families: the
    pairs of one are alike. None without pairs."""
    import numpy as np

    if not differences:
        return None
    _, places = np.unique(families, return_inverse=True)
    sums, sizes = np.bincount(places, differences), np.bincount(places)
    often = np.random.default_rng(_SEED).multinomial(
        len(sums), np.full(len(sums), 1 / len(sums)), RESAMPLES
    )
    low, high = np.quantile(often @ sums / (often @ sizes), _ENDS)
    return Change(float(sums.sum() / sizes.sum()), float(low), float(high))
