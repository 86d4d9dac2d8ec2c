"""The arithmetic of the catalogue: formulas over named columns, and nothing else.

A formula is a Python expression of numbers, names, `+ - * /`, unary minus and the functions below.
A name may hold dots (`dram__bytes_read.sum`). Columns are float64 arrays of one value a launch;
NaN (missing) propagates, and what has no value (0/0, x/0) becomes NaN.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[np.float64]


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
_INFERENCES = {"idle", "negligible"}
_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


@dataclass(frozen=True)
class Formula:
    """A checked formula: its text, syntax tree and the names that it reads, in order."""

    text: str
    tree: ast.expr
    names: tuple[str, ...]

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

    def __call__(self, columns: Mapping[str, Column]) -> Column:
        """The value for each launch; raises KeyError for a name that `columns` lacks."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            value = np.asarray(_evaluate(self.tree, columns), dtype=np.float64)
        return np.where(np.isfinite(value), value, np.nan)


def parse(text: str) -> Formula:
    """Check a formula; raises ValueError with the offending part."""
    text = text.strip()
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"not an expression: {text!r}") from error
    return Formula(text, tree, tuple(dict.fromkeys(_names(tree))))


def _names(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Name() | ast.Attribute():
            yield _dotted(node)
        case ast.Constant(value=int() | float()):
            pass
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            yield from _names(left)
            yield from _names(right)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            yield from _names(operand)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
            for argument in args:
                yield from _names(argument)
        case _:
            raise ValueError(f"not allowed in a formula: {ast.unparse(node)!r}")


def _dotted(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attribute):
            return f"{_dotted(value)}.{attribute}"
        case _:
            raise ValueError(f"not a name: {ast.unparse(node)!r}")


def _evaluate(node: ast.expr, columns: Mapping[str, Column]) -> Any:
    match node:
        case ast.Name() | ast.Attribute():
            return columns[_dotted(node)]
        case ast.Constant(value=value):
            return np.float64(value)  # type: ignore[arg-type]
        case ast.BinOp(left=left, op=op, right=right):
            return _BINARY[type(op)](_evaluate(left, columns), _evaluate(right, columns))
        case ast.UnaryOp(operand=operand):
            return -_evaluate(operand, columns)
        case ast.Call(func=ast.Name(id=name), args=args):
            return FUNCTIONS[name](*(_evaluate(argument, columns) for argument in args))
        case _:
            raise ValueError(f"not allowed in a formula: {ast.unparse(node)!r}")
