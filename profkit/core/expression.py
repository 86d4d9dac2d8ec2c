"""Expressions over columns: arithmetic, comparisons and logic, and nothing else.

A Python expression of numbers, names, `+ - * /`, unary minus, comparisons, `and`, `or`, `not` and
the functions of its language: rules have one, the catalog's formulas another. Columns are float64
arrays of one value per launch, NaN where a value is missing. Truth is 1, 0, or NaN for unknown:
`and` with a false side is false, `or` with a true side is true, whatever the other side is; a
comparison with a missing value is unknown. Text from a file is never executed: `parse` rejects
everything that is not listed above.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from profkit.core.columns import Column


class NotAllowed(ValueError):
    """An expression with an unsupported part: `part` is its text."""

    def __init__(self, part: str) -> None:
        super().__init__(f"not allowed in an expression: {part!r}")
        self.part = part


# Bounds on the time that a foreign expression takes, chosen: twice to four times the largest
# shipped one (536 characters, 11 levels, 67 nodes).
_LONGEST = 1000  # characters
_DEEPEST = 40  # levels of the syntax tree
_MOST_NODES = 300
_LARGEST = 1e300  # of a number: near the largest double, and far beyond any quantity


Arity = tuple[int, int]
"""The fewest and the most values that a function takes."""

FUNCTIONS: Mapping[str, Arity] = {
    "min": (2, 16), "max": (2, 16), "abs": (1, 1), "sqrt": (1, 1), "ceil": (1, 1), "clip": (3, 3),
    "where": (3, 3), "more_warps": (3, 3), "known": (1, 1), "otherwise": (2, 2),
}  # fmt: skip
"""The functions of rules."""
_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip
Sign = Literal["<", "<=", ">", ">=", "==", "!="]
_SIGNS: Mapping[type[ast.cmpop], Sign] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
HOLDS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
"""What each sign of a comparison means."""


@dataclass(frozen=True)
class Language:
    """What an expression may contain besides arithmetic: functions, conditions, dotted names."""

    functions: Mapping[str, Arity]
    conditions: bool = True
    dotted: bool = False


RULES = Language(FUNCTIONS)


@dataclass(frozen=True)
class Comparison:
    """One comparison of a condition, as its sides' own expressions: for evidence."""

    left: Expression
    sign: Sign
    right: Expression

    @property
    def is_guard(self) -> bool:
        """Whether it tests only that a value is known, which is not evidence."""
        return self.left.text.startswith("known(")


@dataclass(frozen=True)
class Expression:
    """A checked expression: its text, syntax tree and the names that it reads, in order."""

    text: str
    tree: ast.expr = field(compare=False)
    names: tuple[str, ...]
    language: Language = field(default=RULES, compare=False, repr=False)

    def __call__(self, columns: Mapping[str, Column]) -> Column:
        """The value for each launch, NaN where unknown.

        Raises KeyError for a name that `columns` lacks.
        """
        import numpy as np

        from profkit.core.columns import finite

        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return finite(_evaluate(self.tree, columns, self.language))

    @property
    def is_condition(self) -> bool:
        """Whether it is true or false, not a number."""
        return _is_condition(self.tree)

    @cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The simple comparisons that make up a condition, those inside `and`s and `or`s too."""
        return tuple(_comparisons(self.tree))


def parse(text: str, language: Language = RULES) -> Expression:
    """Check an expression; raises ValueError with the offending part."""
    text = text.strip()
    if len(text) > _LONGEST:
        raise ValueError(f"expression of {len(text):,} characters, at most {_LONGEST:,}")
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, RecursionError, MemoryError, ValueError) as error:
        raise ValueError(f"invalid expression: {text[:80]!r}") from error
    if _depth(tree) > _DEEPEST or sum(1 for _ in ast.walk(tree)) > _MOST_NODES:
        raise ValueError(f"expression too long or too deeply nested: {text[:80]!r}")
    return _expression(tree, language)


def _expression(tree: ast.expr, language: Language) -> Expression:
    names = tuple(dict.fromkeys(_names(tree, language)))
    return Expression(ast.unparse(tree), tree, names, language)


def _is_condition(tree: ast.expr) -> bool:
    match tree:
        case ast.Compare() | ast.Call(func=ast.Name(id="known")):
            return True
        case ast.BoolOp(values=parts):
            return all(map(_is_condition, parts))
        case ast.UnaryOp(op=ast.Not(), operand=part):
            return _is_condition(part)
    return False


def _depth(tree: ast.AST) -> int:
    """The depth of the tree; by levels, so that a deep one does not exhaust the stack."""
    depth, level = 0, [tree]
    while level and depth <= _DEEPEST:
        depth += 1
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return depth


def _names(node: ast.expr, language: Language) -> Iterator[str]:
    match node:
        case ast.Name() | ast.Attribute():
            yield _name(node, language)
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            if not abs(value) <= _LARGEST:
                raise ValueError(
                    f"number above {_LARGEST:g} in an expression: {ast.unparse(node)[:40]!r}"
                )
        case _:
            for part in _parts(node, language):
                yield from _names(part, language)


def _name(node: ast.expr, language: Language) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attribute) if language.dotted:
            return f"{_name(value, language)}.{attribute}"
    raise _refused(node)


def _parts(node: ast.expr, language: Language) -> list[ast.expr]:
    """The expressions that an admitted node is made of."""
    match node:
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return [left, right]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return [operand]
        case ast.UnaryOp(op=ast.Not(), operand=operand) if language.conditions:
            return [operand]
        case ast.BoolOp(values=values) if language.conditions:
            return values
        case ast.Compare(left=left, ops=[op], comparators=[right]) if (
            language.conditions and type(op) in _SIGNS
        ):
            return [left, right]
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in language.functions:
            least, most = language.functions[name]
            if least <= len(args) <= most:
                return args
    raise _refused(node)


def _refused(node: ast.expr) -> NotAllowed:
    return NotAllowed(ast.unparse(node)[:80])


def _evaluate(node: ast.expr, values: Mapping[str, Column], language: Language) -> Any:
    import numpy as np

    from profkit.core import columns

    match node:
        case ast.Name() | ast.Attribute():
            return values[_name(node, language)]
        case ast.Constant(value=value):
            return np.float64(value)  # type: ignore[arg-type]
    parts = [_evaluate(part, values, language) for part in _parts(node, language)]
    match node:
        case ast.UnaryOp(op=ast.USub()):
            return -parts[0]
        case ast.UnaryOp():
            return columns.negated(parts[0])
        case ast.BinOp(op=operation):
            return _BINARY[type(operation)](*parts)
        case ast.Compare(ops=[sign]):
            return columns.compared(HOLDS[_SIGNS[type(sign)]], *parts)
        case ast.BoolOp(op=ast.And()):
            return columns.over(columns.both, parts)
        case ast.BoolOp():
            return columns.negated(columns.over(columns.both, map(columns.negated, parts)))
        case ast.Call(func=ast.Name(id=name)):
            return columns.FUNCTIONS[name](*parts)
    raise _refused(node)


def _comparisons(node: ast.expr) -> Iterator[Comparison]:
    match node:
        case ast.Compare(left=left, ops=[sign], comparators=[right]):
            first, second = (_expression(side, RULES) for side in (left, right))
            yield Comparison(first, _SIGNS[type(sign)], second)
        case ast.BoolOp(values=values):
            for value in values:
                yield from _comparisons(value)
