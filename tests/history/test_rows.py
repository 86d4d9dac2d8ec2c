"""The rows of parts, each of which may be damaged: one line that names part and row."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from profkit.history.store import Store
from tests.conftest import Cli
from tests.history.histories import CUDNN, FLASH, point
from tests.history.test_store import parts_of

NEWER_THAN_EVER = "9" * 5000
VERBS = (["list"], ["show", "flash"], ["check"], ["page"])


def _changed(folder: Path, change: Callable[[Any], Any]) -> Path:
    """A store of two series whose only part has its table changed."""
    from pyarrow import parquet

    Store(folder).add([point(number, series) for series in (FLASH, CUDNN) for number in range(12)])
    part = parts_of(folder)[0]
    parquet.write_table(change(parquet.read_table(part)), part)
    return part


def _with(name: str, values: Any, kind: Any = None) -> Callable[[Any], Any]:
    """A change of a column's first row, or of all rows to values of another kind."""
    import pyarrow as pa

    def change(table: Any) -> Any:
        field = table.schema.field(name)
        rows = [values, *table[name].to_pylist()[1:]] if kind is None else [values] * len(table)
        place = table.schema.get_field_index(name)
        return table.set_column(place, name, pa.array(rows, kind or field.type))

    return change


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("block_medians", None, "row 1: block_medians is not"),
        ("block_medians", [], "row 1: block_medians is not"),
        ("block_medians", [math.nan], "row 1: block_medians is not"),
        ("block_medians", [1e-5, None], "row 1: block_medians is not"),
        ("block_medians", [1e-5, math.inf], "row 1: block_medians is not"),
        ("block_medians", [1e-5, 0.0], "row 1: block_medians is not"),
        ("block_medians", [-1e-5], "row 1: block_medians is not"),
        ("time", None, "row 1: time is not from 1970"),
        ("time", datetime(1, 1, 1), "row 1: time is not from 1970"),
        ("time", datetime(9999, 12, 31), "row 1: time is not from 1970"),
        ("target", None, "row 1: target is not"),
        ("run", None, "row 1: run is not"),
        ("run", "", "row 1: run is not"),
        ("item", None, "row 1: item is not"),
        ("item", -1, "row 1: item is not"),
    ],
)
@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
def test_a_row_that_can_not_be_is_refused_by_every_verb(
    verb: list[str], name: str, value: Any, why: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, profkit_cli: Cli,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    part = _changed(tmp_path / "s", _with(name, value))
    _assert_refused(
        profkit_cli("history", *verb, "--store", tmp_path / "s", status=5), f"{part}: {why}"
    )


def _assert_refused(result: Result, start: str) -> None:
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith(f"profkit: {start}")


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("time", "yesterday", "string"),
        ("median", "fast", "string"),
        ("target", b"\xff", "binary"),
        ("block_medians", "1", "string"),
        ("item", 0.5, "float64"),
    ],
)
def test_a_column_of_another_type_is_refused(
    name: str, value: Any, kind: str, tmp_path: Path, profkit_cli: Cli
) -> None:
    import pyarrow as pa

    change = _with(name, value, pa.type_for_alias(kind))
    part = _changed(tmp_path, change)
    result = profkit_cli("history", "list", "--store", tmp_path, status=5)
    _assert_refused(result, str(tmp_path))
    assert part.name in result.stderr
    assert name in result.stderr


@pytest.mark.parametrize("column", ["target", "time", "run", "item", "block_medians"])
def test_a_part_without_a_column_that_it_needs_is_refused(
    column: str, tmp_path: Path, profkit_cli: Cli
) -> None:
    part = _changed(tmp_path, lambda table: table.drop_columns([column]))
    _assert_refused(
        profkit_cli("history", "list", "--store", tmp_path, status=5),
        f"{part}: row 1: {column} is not",
    )


def test_rows_of_one_id_must_be_one_point(tmp_path: Path, profkit_cli: Cli) -> None:
    import pyarrow as pa

    part = _changed(tmp_path, _with("run", "same", pa.string()))
    _assert_refused(profkit_cli("history", "page", "--store", tmp_path, status=5), f"{part}: row ")


def test_a_median_that_is_not_that_of_its_blocks_is_not_shown(tmp_path: Path) -> None:
    _changed(tmp_path, _with("median", math.nan))
    (first, second) = Store(tmp_path).overviews()
    assert math.isfinite(first.median + second.median)


def test_a_schema_of_five_thousand_digits(tmp_path: Path, profkit_cli: Cli) -> None:
    part = _changed(
        tmp_path,
        lambda table: table.replace_schema_metadata({"profkit.history": NEWER_THAN_EVER}),
    )
    result = profkit_cli("history", "list", "--store", tmp_path, status=5)
    _assert_refused(result, f"{part}: schema 999")
    assert len(result.stderr) < 400
