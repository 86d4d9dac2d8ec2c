"""The formulas of the catalogue: arithmetic over named columns.

A name may hold dots (`dram__bytes_read.sum`). Columns are float64 arrays of one value a launch;
NaN (missing) propagates, and what has no value (0/0, x/0) becomes NaN.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

import numpy as np

from profkit.core import expression
from profkit.core.expression import Column, Expression, Function, Language


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


_LANGUAGE = Language(
    functions={
        "only_if": Function(_only_if, 2, 2),
        "net_of": Function(_net_of, 2, 2),
        "idle": Function(_idle, 1, 1),
        "negligible": Function(_negligible, 2, 2),
        "largest": Function(_largest, 1, 16),
        "round_up": Function(_round_up, 2, 2),
        "count": Function(_count, 1, 1),
    },
    conditions=False,
    dotted=True,
)
_INFERENCES = {"idle", "negligible"}


@dataclass(frozen=True)
class Formula(Expression):
    """A checked formula of the catalogue."""

    @property
    def infers(self) -> bool:
        """Whether the formula concludes from other facts, and says nothing where it can't."""
        calls = (node for node in ast.walk(self.tree) if isinstance(node, ast.Call))
        return any(
            isinstance(call.func, ast.Name) and call.func.id in _INFERENCES for call in calls
        )

    @property
    def is_plain(self) -> bool:
        """Whether the formula is one name alone, so that its value is what was recorded."""
        return self.names == (self.text,)


def parse(text: str) -> Formula:
    """Check a formula; raises ValueError with the offending part."""
    checked = expression.parse(text, _LANGUAGE)
    return Formula(text.strip(), checked.tree, checked.names, _LANGUAGE)
