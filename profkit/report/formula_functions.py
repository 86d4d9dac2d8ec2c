"""What the functions of the catalogue's formulas compute, over columns of one value a launch."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from profkit.core.columns import Column


def _only_if(value: Column, condition: Column) -> Column:
    """`value` where `condition` is not zero, else undefined: a hit rate of no accesses is none."""
    return np.where(condition == 0, np.nan, value + 0 * condition)


def _net_of(counted: Column, excess: Column) -> Column:
    """`counted - excess`; zero where nothing was counted, whether or not the excess is known."""
    return np.where(counted == 0, 0.0, np.maximum(counted - excess, 0.0))


def _idle(value: Column) -> Column:
    """Zero where `value` is zero, else undefined: a unit that did nothing did no work."""
    return np.where(value == 0, 0.0, np.nan)


def _negligible(value: Column, beside: Column) -> Column:
    """Zero where `value` is under 1% of `beside`, else undefined: what may be left out of a sum."""
    return np.where(value < 0.01 * beside, 0.0, np.nan)


def _largest(*values: Column) -> Column:
    """The largest of some values: of a unit's parts, how busy the unit is."""
    largest: Column = np.maximum.reduce(values)
    return largest


def _round_up(value: Column, unit: Column) -> Column:
    """The next multiple of `unit`: what an allocation takes."""
    return np.ceil(value / unit) * unit


def _count(value: Column) -> Column:
    """The nearest whole number: a count that was recorded as a rate."""
    return np.rint(value)


FUNCTIONS: Mapping[str, Callable[..., Column]] = {
    "only_if": _only_if,
    "net_of": _net_of,
    "idle": _idle,
    "negligible": _negligible,
    "largest": _largest,
    "round_up": _round_up,
    "count": _count,
}
