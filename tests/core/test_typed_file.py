"""Typed files: what a model refuses, its error's location, and what it writes."""

from __future__ import annotations

import json
import math
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import jsonschema
import numpy as np
import pytest
from msgspec import UNSET, Meta

from kernels.schemas import json_schema, texts
from profkit.core.errors import BadInput
from profkit.core.typed_file import (
    Amount,
    Derived,
    Facts,
    File,
    Maybe,
    Model,
    decode,
    encode,
    read_file,
)

SCHEMAS = Path(__file__).parents[2] / "profkit" / "schemas"


class Kind(Enum):
    SMALL = "small one"


class Fact(Facts, frozen=True, kw_only=True):
    name: Maybe[str] = UNSET


class Part(Model, frozen=True, kw_only=True):
    turn: Annotated[int, Meta(ge=0)]
    power: Maybe[Amount] = UNSET
    seconds: float | None = None
    total: Derived[float] = UNSET
    kind: Kind = Kind.SMALL
    fact: Fact = Fact()

    def __post_init__(self) -> None:
        if self.seconds == self.turn:
            raise ValueError("seconds are a turn")


class Whole(File, frozen=True, kw_only=True, tag="made/1"):
    """A made
    format."""

    parts: dict[str, Part]


def told(**parts: object) -> str:
    return json.dumps({"schema": "made/1", "parts": parts})


def test_what_is_written_is_read_again_and_of_its_schema() -> None:
    one = Part(turn=1, power=40, seconds=2.5, total=1.0, fact=Fact(name=None))
    whole = Whole(parts={"a": one, "b": Part(turn=0, total=1.0)})
    text = encode(whole)
    assert decode(text, Whole) == whole
    assert '"power": 40,' in text
    assert json.loads(text)["parts"]["a"]["fact"] == {"name": None}
    form: Any = json_schema(Whole, "made")
    jsonschema.Draft202012Validator.check_schema(form)
    jsonschema.Draft202012Validator(form).validate(json.loads(text))
    assert form["$id"] == "made/1"
    assert form["description"] == "A made format."
    assert form["$defs"]["Part"]["required"] == ["turn", "seconds", "total", "kind", "fact"]
    assert form["$defs"]["Part"]["properties"]["power"]["type"] == ["number", "null"]


def test_absent_and_null_are_kept_apart() -> None:
    parts = decode(told(a={"turn": 1}, b={"turn": 1, "power": None}), Whole).parts
    assert (parts["a"].power, parts["b"].power) == (UNSET, None)
    assert not parts["a"].fact
    assert json.loads(encode(Whole(parts=parts)))["parts"]["b"]["power"] is None


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (told(a={"turn": 1}, b={"turn": -1}, c={"turn": -2}), "parts['b'].turn: "),
        (told(**{"x.y[0]\nz": {"turn": "one"}}), "parts['x.y[0]\\nz'].turn: "),
        (told(a={"turn": 1, "more": 1}), "parts['a']: "),
        (told(a={"turn": 1, "seconds": 1.0}), "parts['a']: seconds are a turn"),
        (told(a={"turn": 1, "kind": "huge"}), "parts['a'].kind: "),
        (told(a={}), "parts['a']: "),
        ('{"schema": "made/1", "parts": {"a": {"turn": 1, "turn": 2}}}', "duplicate key 'turn'"),
        ('{"schema": "made/1", "parts": {"a": {"turn": NaN}}}', "contains NaN"),
        ('{"schema": "made/2", "parts": {}}', "schema 'made/2', expected made/1"),
        ('{"parts": {}}', "no schema, expected made/1"),
        ("[]", "no schema, expected made/1"),
        ("{", "is not JSON"),
    ],
)
def test_what_is_not_of_the_model_is_refused_in_one_line_with_its_place(
    tmp_path: Path, text: str, place: str
) -> None:
    file = tmp_path / "made.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(BadInput) as refused:
        read_file(file, Whole)
    assert refused.value.message.startswith(f"{file}: {place}")
    assert "\n" not in str(refused.value)


def test_a_number_that_is_none_is_never_written() -> None:
    for value in (math.nan, math.inf, np.float64("nan")):
        with pytest.raises(ValueError, match="JSON"):
            encode(Whole(parts={"a": Part(turn=1, seconds=value)}))
    text = encode(Whole(parts={"a": Part(turn=1, seconds=np.float64(0.5))}))
    assert json.loads(text)["parts"]["a"]["seconds"] == 0.5


@pytest.mark.parametrize("name", sorted(texts()))
def test_shipped_schemas_are_those_of_the_models(name: str) -> None:
    text = (SCHEMAS / name).read_text(encoding="utf-8")
    assert text == texts()[name], "write it again: python -m kernels.schemas"
    jsonschema.Draft202012Validator.check_schema(json.loads(text))
