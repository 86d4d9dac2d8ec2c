"""The store: what is added is there once, whoever writes, and damage is refused in one line."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from profkit.core.errors import EnvironmentProblem
from profkit.history.record import Point
from profkit.history.store import Store, median_of
from tests.conftest import Cli
from tests.history.histories import CUDNN, FLASH, NIGHTLY, point


def parts_of(folder: Path) -> list[Path]:
    return sorted(folder.rglob("part-*.parquet"))


def written(part: Path, points: Sequence[Point], change: Callable[[Any], Any]) -> None:
    """A part with the table of these points changed."""
    from pyarrow import parquet

    Store(part.parents[1]).add(points)
    (made,) = set(parts_of(part.parents[1])) - {part}
    parquet.write_table(change(parquet.read_table(made)), part)
    made.unlink()


def test_points_come_back_as_they_were_in_the_order_of_time(tmp_path: Path) -> None:
    points = [point(number, series) for series in (FLASH, CUDNN) for number in (40, 3, 7, 0)]
    store = Store(tmp_path / "a[1]*" / "store")
    store.add(points)
    for series in (FLASH, CUDNN):
        expected = [point(number, series) for number in (0, 3, 7, 40)]
        assert store.points([series]) == {series: expected}
        assert store.points(last=2)[series] == expected[2:]
    assert store.points() == store.points([CUDNN, FLASH])
    months = sorted(folder.name for folder in store.folder.iterdir())
    assert months == ["month=2026-09", "month=2026-10", "month=2026-11"]


def test_an_overview_has_the_runs_and_the_last_medians(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.add([point(number) for number in range(25)])
    store.add([point(40, CUDNN)])
    cudnn, flash = store.overviews()
    assert (cudnn.series, cudnn.runs) == (CUDNN, 1)
    assert (flash.series, flash.runs) == (FLASH, 25)
    assert (flash.first, flash.last) == tuple(point(n).time.isoformat() for n in (0, 24))
    assert flash.median == median_of(point(24))


def test_a_run_that_two_writers_add_counts_once(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.add([point(0), point(0, CUDNN), point(1)])
    store.add([point(1, source="elsewhere"), point(2)])
    assert len(parts_of(tmp_path)) == 2
    assert [each.time for each in store.points()[FLASH]] == [point(n).time for n in range(3)]
    flash = store.overviews()[1]
    assert flash.runs == 3


def test_the_same_addition_twice_is_one_part(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for _ in range(2):
        store.add([point(0), point(1)])
    assert len(parts_of(tmp_path)) == 1


def add_ten(argument: tuple[Path, int]) -> None:
    folder, first = argument
    for number in range(first, first + 10):
        Store(folder).add([point(number)])


def test_two_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    with get_context("fork").Pool(2) as pool:
        pool.map(add_ten, [(tmp_path, 0), (tmp_path, 5)])
    assert Store(tmp_path).points()[FLASH] == [point(number) for number in range(15)]


def test_the_temporary_file_of_a_killed_writer_is_no_part(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.add([point(0)])
    (part,) = parts_of(tmp_path)
    part.with_name(f".{part.name}.0a1b2c3d.part").write_bytes(part.read_bytes()[:100])
    os.mkfifo(part.with_name("part-pipe.parquet"))
    assert len(store.points()[FLASH]) == 1


def test_an_empty_store_has_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path / "none")
    assert store.overviews() == []
    assert store.points() == {}
    assert store.known(["a"]) == set()
    assert not store.folder.exists()


def test_a_newer_schema_is_refused_in_one_line(tmp_path: Path, profkit_cli: Cli) -> None:
    part = tmp_path / "month=2026-09" / "part-newer.parquet"
    written(part, [point(0)], lambda t: t.replace_schema_metadata({"profkit.history": "2"}))
    result = profkit_cli("history", "list", "--store", tmp_path, status=5)
    assert result.stderr == (
        f"profkit: {part}: schema 2 of the history, newer than this profkit's 1; "
        "update profkit: pip install -U profkit\n"
    )


def test_what_an_older_part_lacks_is_unknown(tmp_path: Path) -> None:
    part = tmp_path / "month=2026-09" / "part-older.parquet"
    written(part, [point(0)], lambda table: table.drop_columns(["clock_policy"]))
    Store(tmp_path).add([point(1)])
    older = replace(point(0), conditions=replace(NIGHTLY, clock_policy=""))
    assert Store(tmp_path).points() == {FLASH: [older, point(1)]}


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + bytes(100) + b"PAR1"])
def test_a_damaged_part_is_named(tmp_path: Path, content: bytes, profkit_cli: Cli) -> None:
    Store(tmp_path).add([point(0)])
    part = tmp_path / "month=2026-09" / "part-damaged.parquet"
    part.write_bytes(content)
    result = profkit_cli("history", "list", "--store", tmp_path, status=5)
    assert result.stderr.count("\n") == 1
    assert str(part) in result.stderr
    Store(tmp_path).add([point(1)])  # writing needs no other part


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentProblem, match="can't be written"):
        Store(tmp_path / "file").add([point(0)])


def test_the_extra_is_named_where_it_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profkit_cli: Cli
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    result = profkit_cli("history", "list", "--store", tmp_path, status=4)
    assert result.stderr.count("\n") == 1
    assert ".[history]" in result.stderr
