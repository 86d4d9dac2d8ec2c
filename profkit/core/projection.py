"""Projections: models of output formats, built from computed objects.

class GroupRow(Projection, frozen=True, kw_only=True):
    \"\"\"What the schema says of it.\"\"\"

    name: str
    median: Measured = field(name="median_s")           null where `group.median` is NaN

project(group, GroupRow)                attributes by the names of fields, nested ones too
project(group, GroupRow, name="...")    but for what is given
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET
from msgspec.inspect import (
    DictType,
    StructType,
    TupleType,
    Type,
    UnionType,
    VarTupleType,
    type_info,
)
from msgspec.structs import force_setattr

from profkit.core.typed_file import Model

M = TypeVar("M", bound="Model")

Measured: TypeAlias = float | int | None
"""A number as it was computed, null where it is unknown."""


class Projection(Model, frozen=True, kw_only=True):
    """What is unknown (NaN, infinite, "") is null where null may stand, and refused elsewhere."""

    def __post_init__(self) -> None:
        for name in _nullable(type(self)):
            value = getattr(self, name)
            if (known := _known(value)) is not value:
                force_setattr(self, name, known)


def _known(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_known, value))
    if isinstance(value, dict):
        return {key: _known(part) for key, part in value.items()}
    unknown = value == "" or (isinstance(value, float) and not math.isfinite(value))
    return None if unknown else value


@cache
def _nullable(model: type[Projection]) -> tuple[str, ...]:
    """The fields that may be null, or hold what may be."""
    info = type_info(model)
    assert isinstance(info, StructType)
    return tuple(part.name for part in info.fields if _has_null(part.type))


def _has_null(type: Type) -> bool:
    match type:
        case UnionType():
            return type.includes_none
        case VarTupleType(item_type=part) | DictType(value_type=part):
            return _has_null(part)
        case TupleType(item_types=parts):
            return any(map(_has_null, parts))
    return False


def project(source: Any, model: type[M], /, **values: Any) -> M:
    """The model of an object; raises ValidationError for what it is not.

    A field that the object lacks keeps its default.
    """
    names = zip(model.__struct_fields__, model.__struct_encode_fields__, strict=True)
    row = {
        key: values[name] if name in values else getattr(source, name, UNSET) for name, key in names
    }
    known = {key: value for key, value in row.items() if value is not UNSET}
    return msgspec.convert(known, model, from_attributes=True)
