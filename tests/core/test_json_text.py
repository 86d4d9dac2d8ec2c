"""JSON in pieces: the same document, rows on one line, lists made one item at a time."""

from __future__ import annotations

import json

import pytest

from profkit.core.json_text import json_rows

DOCUMENT = {
    "a": [1, 2.5, None],
    "rows": [{"name": "x, [y]\n", "grid": [1, 2]}, {}],
    "nested": [{"rows": [{"b": True}], "path": ["p", "q"]}],
    "empty": {},
    "none": [],
}


def test_rows_are_the_document_and_take_one_line_each() -> None:
    text = "".join(json_rows(DOCUMENT))
    assert json.loads(text) == DOCUMENT
    assert '    {"name": "x, [y]\\n", "grid": [1, 2]},\n    {}\n  ],' in text


def test_a_list_is_made_one_item_at_a_time() -> None:
    made: list[int] = []

    def row(number: int) -> dict[str, int]:
        made.append(number)
        return {"number": number}

    pieces = json_rows({"rows": map(row, range(1000))})
    while made != [0, 1]:
        assert len(made) < 2
        next(pieces)
    assert sum(1 for _ in pieces) > 1000
    assert made == list(range(1000))


def test_a_number_that_json_has_not_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        "".join(json_rows({"rows": [{"x": float("nan")}]}))
