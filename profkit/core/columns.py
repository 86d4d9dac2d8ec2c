"""Functions of expressions over float64 arrays of one value per launch; NaN where missing."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


def _where(condition: Column, value: Column, other: Column) -> Column:
    chosen = np.where(condition != 0, value, other)
    return np.where(np.isnan(condition), np.nan, chosen)


def _more_warps(issued: Column, warps: Column, factor: Column) -> Column:
    """The relative issue rate of a scheduler with `factor` times the warps.

    `issued` is the probability that a cycle issues, `warps` those resident per scheduler. Warps
    that are ready independently with probability r issue with I = 1 - (1 - r)^W (Zhou et al., CGO
    2021).
    """
    idle = np.power(np.clip(1 - issued, 1e-9, 1.0), factor)
    return np.where(warps > 0, (1 - idle) / issued, np.nan)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "min": lambda *values: over(np.minimum, values),
    "max": lambda *values: over(np.maximum, values),
    "abs": np.abs,
    "sqrt": np.sqrt,
    "ceil": np.ceil,
    "clip": lambda value, low, high: np.minimum(np.maximum(value, low), high),
    "where": _where,
    "more_warps": _more_warps,
    "known": lambda value: np.where(np.isnan(value), 0.0, 1.0),
    "otherwise": lambda value, default: np.where(np.isnan(value), default, value),
    # A hit rate without accesses is undefined.
    "only_if": lambda value, base: np.where(base == 0, np.nan, value + 0 * base),
    # Zero where the total is zero, even if the excess is unknown.
    "net_of": lambda total, excess: np.where(total == 0, 0.0, np.maximum(total - excess, 0.0)),
    # A unit that was never busy did no work.
    "idle": lambda value: np.where(value == 0, 0.0, np.nan),
    # A summand that may be omitted: under 1% of the whole.
    "negligible": lambda value, whole: np.where(value < 0.01 * whole, 0.0, np.nan),
    # Utilization of a unit from that of its parts.
    "largest": lambda *values: np.maximum.reduce(values),
    # Allocation granularity.
    "round_up": lambda value, unit: np.ceil(value / unit) * unit,
    # A count that was recorded as a rate.
    "count": np.rint,
}
"""The functions of rules and of the catalog's formulas, by name."""


def compared(holds: Callable[[Any, Any], Any], left: Column, right: Column) -> Any:
    unknown = np.isnan(left) | np.isnan(right)
    return np.where(unknown, np.nan, np.where(holds(left, right), 1.0, 0.0))


def both(left: Column, right: Column) -> Any:
    false = (left == 0) | (right == 0)
    unknown = np.isnan(left) | np.isnan(right)
    return np.where(false, 0.0, np.where(unknown, np.nan, 1.0))


def negated(value: Column) -> Any:
    return np.where(np.isnan(value), np.nan, np.where(value == 0, 1.0, 0.0))


def over(combine: Callable[[Any, Any], Any], values: Any) -> Any:
    first, *others = values
    for value in others:
        first = combine(first, value)
    return first


def finite(value: Any) -> Column:
    """The values, NaN in place of infinities."""
    values = np.asarray(value, dtype=np.float64)
    return np.where(np.isfinite(values), values, np.nan)
