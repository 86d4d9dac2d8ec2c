"""Projections: models of formats that are only written, made of what was computed.

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
from msgspec.inspect import StructType, UnionType, type_info

from profkit.core.typed_file import Model

M = TypeVar("M", bound="Model")

Measured: TypeAlias = float | int | None
"""A number as it was computed, null where it is unknown."""


class Projection(Model, frozen=True, kw_only=True):
    """What is unknown (NaN, an infinity, "") is null where null may stand, and refused elsewhere."""

    def __post_init__(self) -> None:
        for name in _nullable(type(self)):
            value = getattr(self, name)
            if value == "" or (isinstance(value, float) and not math.isfinite(value)):
                msgspec.structs.force_setattr(self, name, None)


@cache
def _nullable(model: type[Projection]) -> tuple[str, ...]:
    """The fields that may be null."""
    info = type_info(model)
    assert isinstance(info, StructType)
    return tuple(
        part.name
        for part in info.fields
        if isinstance(part.type, UnionType) and part.type.includes_none
    )


def project(source: Any, model: type[M], **given: Any) -> M:
    """The model of an object; raises ValidationError for what it is not."""
    values = {
        key: given[name] if name in given else getattr(source, name)
        for name, key in zip(model.__struct_fields__, model.__struct_encode_fields__, strict=True)
        if given.get(name) is not msgspec.UNSET
    }
    return msgspec.convert(values, model, from_attributes=True)
