"""Numbers from the pages of an SQLite file are those of a query, or the query is asked."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profkit.timeline.pages import UNKNOWN, OtherFormat, whole_numbers

Row = Sequence[Any]

# Every size that SQLite gives a number, and its bounds.
NUMBERS = st.one_of(
    st.none(),
    st.integers(-3, 3),
    st.integers(0, 63).map(lambda bits: 1 << bits).flatmap(
        lambda bound: st.integers(max(-bound, UNKNOWN + 1), bound - 1)
    ),
)  # fmt: skip


def file(path: Path, rows: Sequence[Row], columns: str = "a, b, c", size: int = 512) -> Path:
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA page_size = {size}")
        database.execute(f"CREATE TABLE t ({columns})")
        if rows:
            marks = ", ".join("?" for _ in rows[0])
            database.executemany(f"INSERT INTO t VALUES ({marks})", rows)
        database.commit()
    return path


def numbers(path: Path, columns: Sequence[str] = "ca") -> list[tuple[int, ...]]:
    with closing(sqlite3.connect(path)) as database, path.open("rb") as opened:
        parts = list(whole_numbers(database, opened.fileno(), "t", columns))
    return [row for part in parts for row in zip(*(c.tolist() for c in part), strict=True)]


@given(rows=st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), max_size=80))
@pytest.mark.parametrize("size", [512, 4096, 65_536])
def test_numbers_are_those_of_a_query(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Row], size: int
) -> None:
    path = file(tmp_path_factory.getbasetemp() / "numbers.sqlite", rows, size=size)
    wanted = [
        tuple(UNKNOWN if value is None else value for value in (third, first))
        for first, _, third in rows
    ]
    assert numbers(path) == wanted


@pytest.mark.parametrize("count", [2_000, 200_000])
def test_many_rows_over_several_levels(tmp_path: Path, count: int) -> None:
    rows = [(row, row * row, -row) for row in range(count)]
    path = file(tmp_path / "many.sqlite", rows)
    assert numbers(path, "b") == [(row * row,) for row in range(count)]


def test_rows_that_were_deleted_are_gone(tmp_path: Path) -> None:
    path = file(tmp_path / "gone.sqlite", [(row, 0, 0) for row in range(500)])
    with closing(sqlite3.connect(path)) as database:
        database.execute("DELETE FROM t WHERE a % 3")
        database.execute("INSERT INTO t (rowid, a) VALUES (-5, 7)")
        database.execute("INSERT INTO t (rowid, a) VALUES (?, 8)", (2**62,))
        database.commit()
    assert numbers(path, "a") == [(7,), *((row,) for row in range(0, 500, 3)), (8,)]


def test_values_that_are_not_asked_for_may_be_texts(tmp_path: Path) -> None:
    path = file(tmp_path / "text.sqlite", [(1, "text", 2), (3, b"blob", 4), (5, 0.5, 6)])
    assert numbers(path) == [(2, 1), (4, 3), (6, 5)]


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        ("a, b, c", [(1, 2, "text")]),
        ("a, b, c", [(1, 2, 0.5)]),
        ("a, b, c", [(1, "x" * 60, 2)]),
        ("a, b, c", [(1, "x" * 9_000, 2)]),
        ("a INTEGER PRIMARY KEY, b, c", [(1, 2, 3)]),
        ("a, b, c, PRIMARY KEY (a, b)) WITHOUT ROWID; --", [(1, 2, 3)]),
        ("a, b, c AS (a + b)", [(1, 2)]),
    ],
    ids=["text", "float", "long", "overflow", "key", "no row numbers", "computed"],
)
def test_another_form_is_left_to_the_query(tmp_path: Path, columns: str, rows: list[Row]) -> None:
    with pytest.raises(OtherFormat):
        numbers(file(tmp_path / "other.sqlite", rows, columns))


def test_a_column_that_was_added_is_left_to_the_query(tmp_path: Path) -> None:
    path = file(tmp_path / "added.sqlite", [(1, 2, 3)])
    with closing(sqlite3.connect(path)) as database:
        database.execute("ALTER TABLE t ADD COLUMN d DEFAULT 9")
    with pytest.raises(OtherFormat):
        numbers(path, "d")


def test_a_write_ahead_log_is_left_to_the_query(tmp_path: Path) -> None:
    path = file(tmp_path / "log.sqlite", [(1, 2, 3)])
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        with pytest.raises(OtherFormat):
            numbers(path)


def test_damaged_pages_are_numbers_or_left_to_the_query(tmp_path: Path) -> None:
    path = file(tmp_path / "damaged.sqlite", [(row, row * row, -row) for row in range(4_000)])
    whole = path.read_bytes()
    with closing(sqlite3.connect(path)) as database:
        ((root,),) = database.execute("SELECT rootpage FROM sqlite_master")
        chance = random.Random(3)
        others = 0
        for trial in range(400):
            data = bytearray(whole)
            first = 512 * (root - 1) if trial % 2 else 512 * chance.randrange(1, len(whole) // 512)
            for _ in range(chance.randrange(1, 9)):
                data[first + chance.randrange(40)] = chance.choice([0, root, chance.randrange(256)])
            with (tmp_path / "copy").open("w+b") as copy:
                copy.write(data)
                copy.flush()
                try:
                    for part in whole_numbers(database, copy.fileno(), "t", "ab"):
                        assert len(part[0]) == len(part[1])
                except OtherFormat:
                    others += 1
    assert others > 100
