"""The unit of an expression over catalogue quantities, where it has one."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cache

from profkit.report.catalog import catalog
from profkit.rules.rule_file import CONTEXT
from profkit.timeline import region

SHARE = "1"
_PLAIN = ""
_OF_THEIR_ARGUMENTS = {"min", "max", "abs", "ceil", "clip", "otherwise", "where"}


@cache
def unit_of(text: str) -> str:
    """The unit of an expression's value, "1" for a share; "" for a plain or mixed number."""
    return _unit(ast.parse(text, mode="eval").body) or _PLAIN


def _unit(node: ast.expr) -> str | None:
    """None where the unit can't be told, "" for a constant, which goes with any."""
    match node:
        case ast.Name(id=name):
            for vocabulary in (CONTEXT, region.QUANTITIES):
                if name in vocabulary:
                    return vocabulary[name][0]
            entry = catalog().quantities.get(name)
            return entry.unit if entry else None
        case ast.Constant():
            return _PLAIN
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _unit(operand)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            return _common((_unit(left), _unit(right)))
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            units = _unit(left), _unit(right)
            return "B" if _is_sectors_to_bytes((left, right), units) else _product(*units)
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return _quotient(_unit(left), _unit(right))
        case ast.Call(func=ast.Name(id=name), args=args) if name in _OF_THEIR_ARGUMENTS:
            return _common(_unit(part) for part in (args[1:] if name == "where" else args))
    return None


def _is_sectors_to_bytes(factors: Iterable[ast.expr], units: tuple[str | None, ...]) -> bool:
    """Whether a product is of sectors and the bytes of a sector, 32 on every architecture."""
    by_size = any(isinstance(node, ast.Constant) and node.value == 32 for node in factors)
    return by_size and "sector" in units


def _common(units: Iterable[str | None]) -> str | None:
    found = set(units) - {_PLAIN}
    if len(found) > 1:
        return None
    return found.pop() if found else _PLAIN


def _product(left: str | None, right: str | None) -> str | None:
    if left in {_PLAIN, SHARE}:
        return right or left
    return left if right in {_PLAIN, SHARE} else None


def _quotient(left: str | None, right: str | None) -> str | None:
    if right in {_PLAIN, SHARE}:
        return left
    return SHARE if left == right and left is not None else None
