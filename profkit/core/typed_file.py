"""Typed files: one model of a format, from which its reader, its writer and its JSON Schema come.

    class Block(Model, frozen=True, kw_only=True):
        \"\"\"The description in the schema.\"\"\"

        turn: Count
        power: Maybe[Amount] = UNSET        absent, null or a number, and written as it was read
        seconds: Amount | None = None       may be absent in older files; always written
        median: Derived[Number] = UNSET     always written, follows from the rest: absent by hand

    class BlockFile(File, frozen=True, kw_only=True, tag="profkit.block/1"):
        blocks: dict[str, Block]

    file = read_file(path, BlockFile)       BadInput: `x.json: blocks['a'].turn: expected int ...`
    write(path, encode(file))               indented, a list of numbers on one line

Rules that hold between fields stand in `__post_init__` and raise ValueError. `Facts` are models
that may be empty. A NaN is refused when it is written: a field that has none says `| None`. What is
only written is an `Output`: there NaN is null, in fields of `Real` alone.
`python -m kernels.schemas` writes the schemas of the formats that it lists.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterable
from pathlib import Path
from reprlib import repr as brief
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from profkit.core.errors import BadInput, inside
from profkit.core.json_text import json_text
from profkit.core.text_files import Malformed, brief_words, parse_json, read_text

T = TypeVar("T")
M = TypeVar("M", bound="Model")
R = TypeVar("R", bound=Struct)

ALWAYS = "always"
"""The mark of a field that is always written, in what msgspec makes a schema of."""
_LARGEST = 1e30  # of a number, chosen: beyond any time, rate or count, and its square is a double
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]|(\[\.\.\.\])")

Number: TypeAlias = Annotated[float, Meta(ge=-_LARGEST, le=_LARGEST)] | int
"""A number as it was written: 40 stays 40."""
Amount: TypeAlias = Annotated[float, Meta(ge=0, le=_LARGEST)] | Annotated[int, Meta(ge=0)]
"""A number from 0 on, as it was written."""
Count: TypeAlias = Annotated[int, Meta(ge=0)]
Share: TypeAlias = Annotated[float, Meta(extra_json_schema={"minimum": 0, "maximum": 1})]
if TYPE_CHECKING:
    Real: TypeAlias = float
else:
    Real = float | None
"""A number of an `Output`, not finite where it is unknown: null in the file."""
Maybe: TypeAlias = T | UnsetType | None
"""A field that may be absent or null, which are distinguished; its default is UNSET."""
Place: TypeAlias = tuple[str | int, ...]
"""A path in a document: keys and indices."""
Derived: TypeAlias = Annotated[T | UnsetType, Meta(extra_json_schema={ALWAYS: True})]
"""A field that is always written and optional on reading; its default is UNSET."""


class Model(Struct, frozen=True, forbid_unknown_fields=True):
    """An object of a file."""


class _Field(str):
    """A key that is a field of a model."""


class Facts(Model, frozen=True):
    """Optional attributes, {} without any; false where it is empty."""

    def __bool__(self) -> bool:
        return any(getattr(self, name) is not UNSET for name in self.__struct_fields__)


class File(Model, frozen=True, tag_field="schema", tag="profkit"):
    """A whole file; the `tag` of its class is its `schema`."""


class Output(File, frozen=True, tag="profkit"):
    """A file of results that profkit only writes."""


def known(value: T | UnsetType | None) -> T | None:
    """A value, None where it is absent."""
    return None if isinstance(value, UnsetType) else value


def read_file(path: Path, model: type[M], remedy: str = "check the file") -> M:
    """The content of a file; raises as `read_text`, and BadInput naming the place."""
    text = read_text(path, remedy)
    with inside(path, remedy):
        return decode(text, model)


def decode(text: str, model: type[M]) -> M:
    """The content of a text; raises Malformed as `parse_json` and `of_schema`, and for a key given
    twice."""
    return of_schema(parse_json(text, object_pairs_hook=_unique), model)


def of_schema(document: Any, model: type[M]) -> M:
    """The file of a parsed document; raises Malformed as `convert`, and for another schema."""
    tag = model.__struct_config__.tag
    schema = document.get("schema") if isinstance(document, dict) else None
    if tag is not None and schema != tag:
        raise Malformed(
            f"schema {brief(schema)}, expected {tag}" if schema else f"no schema, expected {tag}"
        )
    return convert(document, model)


def convert(document: Any, model: type[T]) -> T:
    """The model of a parsed document; raises Malformed, naming the place, for what it is not."""
    try:
        return msgspec.convert(document, model)
    except msgspec.ValidationError as error:
        place, problem = _located(document, model, str(error))
        steps = (f".{step}" if isinstance(step, _Field) else f"[{brief(step)}]" for step in place)
        path = "".join(steps).lstrip(".")
        raise Malformed(f"{path}: {problem}" if path else problem) from None


def fault(part: Any, kind: Any) -> tuple[Place, str] | None:
    """The place and the message of the first fault in a part of a document; None without one."""
    try:
        msgspec.convert(part, kind)
    except msgspec.ValidationError as error:
        return _located(part, kind, str(error))
    return None


def number(value: Any, label: str, low: float = -_LARGEST, high: float = _LARGEST) -> float:
    """The value, a number from `low` to `high`; raises BadInput, naming it `label`."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise BadInput(f"{label} is {brief(value)}, not a number")
    if not low <= value <= high:
        raise BadInput(f"{label} is {brief(value)}, outside {low:g} to {high:g}")
    return value


def plain(model: Any) -> dict[str, Any]:
    """A model, or a dataclass, as dictionaries and lists."""
    document: dict[str, Any] = msgspec.to_builtins(model, enc_hook=_builtin)
    return document


def part(source: Any, *names: str) -> dict[str, Any]:
    """Attributes by name, for a model that has fields of the same names."""
    return {name: getattr(source, name) for name in names}


def row_of(model: type[R], source: Any, **others: Any) -> R:
    """A model of the attributes of `source` that have the names of its fields, and of `others`."""
    names = (name for name in model.__struct_fields__ if name not in others)
    return model(**part(source, *names), **others)


def encode(model: Model, indent: int = 2, *, dense: bool = True) -> str:
    """The text of a file, a list of numbers on one line where it is `dense`.

    Raises ValueError for NaN and infinities, which JSON has not.
    """
    document = as_output(model) if isinstance(model, Output) else plain(model)
    if isinstance(model, Output):
        msgspec.convert(document, type(model))  # no null where there must be a number
    if dense:
        return json_text(document, indent)
    return json.dumps(document, indent=indent, allow_nan=False) + "\n"


_NAN_AS_NULL = json.JSONDecoder(parse_constant=lambda _: None)


def as_output(model: Model) -> dict[str, object]:
    """A model as dictionaries and lists, NaN as null."""
    # msgspec writes no lone surrogates, which names of kernels may have.
    document: dict[str, object] = _NAN_AS_NULL.decode(json.dumps(plain(model)))
    return document


def _unique(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    row: dict[str, object] = {}
    for key, value in pairs:
        if key in row:
            raise Malformed(f"duplicate key {brief(key)}")
        row[key] = value
    return row


def _builtin(value: Any) -> Any:
    """The plain value of a number of NumPy's or a version of torch's."""
    for kind in (int, float, str):
        if isinstance(value, kind):
            return kind(value)
    raise TypeError(f"{type(value).__name__} is not of JSON")


def _located(document: Any, model: Any, error: str) -> tuple[Place, str]:
    """An error of msgspec, with the key where its path has `[...]`."""
    problem, _, place = error.partition(" - at `")
    steps: list[str | int] = []
    value = document
    for name, index, any_key in _STEP.findall(place.rstrip("`").removeprefix("$")):
        step = _failing(document, value, model, error) if any_key else (name or int(index))
        steps.append(_Field(step) if name else step)
        value = value[step]
    return tuple(steps), brief_words(ValueError(problem[:1].lower() + problem[1:].replace("`", "")))


def _failing(document: Any, place: dict[str, object], model: Any, error: str) -> str:
    """The first key of a mapping inside a document that is refused with this error."""
    rows = list(place.items())

    def fails(count: int) -> bool:
        place.clear()
        place.update(rows[:count])
        try:
            msgspec.convert(document, model)
        except msgspec.ValidationError as problem:
            return str(problem) == error
        return False

    key = rows[bisect_left(range(len(rows)), True, key=lambda index: fails(index + 1))][0]
    place.clear()
    place.update(rows)
    return key
