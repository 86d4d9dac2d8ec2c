"""A damaged export: numbers are those that SQLite reads of it, or there are none."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from benchmarks.long_timeline import write
from profkit.application.application import application_result, read_application
from profkit.core.errors import BadInput
from profkit.core.typed_file import as_output
from profkit.timeline.export import COLUMNS
from profkit.timeline.reader import read
from tests.conftest import H200, NIGHTLY

COUNT = 300 if NIGHTLY else 36
RECORDED = H200 / "sdpa_s512_flash.sqlite"

Damage = Callable[[bytearray, random.Random, int], None]


def flip_bits(data: bytearray, chance: random.Random, _: int) -> None:
    for _ in range(chance.randrange(1, 9)):
        data[chance.randrange(16, len(data))] ^= 1 << chance.randrange(8)


def flip_bits_of_a_page(data: bytearray, chance: random.Random, page: int) -> None:
    """In the header of a page, the pointers to its cells or its first rows."""
    first = page * chance.randrange(len(data) // page)
    for _ in range(chance.randrange(1, 5)):
        data[first + chance.randrange(100 if first else 200)] ^= 1 << chance.randrange(8)


def overwrite(data: bytearray, chance: random.Random, _: int) -> None:
    size = chance.choice([1, 2, 8, 64, 600])
    place = chance.randrange(16, len(data) - size)
    data[place : place + size] = chance.randbytes(size)


def overwrite_a_header(data: bytearray, chance: random.Random, page: int) -> None:
    place = page * chance.randrange(1, len(data) // page) + chance.randrange(12)
    data[place] = chance.choice([0, 1, 2, 5, 10, 13, chance.randrange(256)])


def swap_pages(data: bytearray, chance: random.Random, page: int) -> None:
    one, other = (page * number for number in chance.sample(range(1, len(data) // page), 2))
    data[one : one + page], data[other : other + page] = (
        data[other : other + page],
        data[one : one + page],
    )


def repeat_a_page(data: bytearray, chance: random.Random, page: int) -> None:
    one, other = (page * number for number in chance.sample(range(1, len(data) // page), 2))
    data[one : one + page] = data[other : other + page]


def clear_a_page(data: bytearray, chance: random.Random, page: int) -> None:
    first = page * chance.randrange(1, len(data) // page)
    data[first : first + page] = bytes(page)


def cut(data: bytearray, chance: random.Random, page: int) -> None:
    del data[chance.randrange(page, len(data)) :]


DAMAGES: tuple[Damage, ...] = (
    flip_bits,
    flip_bits_of_a_page,
    overwrite,
    overwrite_a_header,
    swap_pages,
    repeat_a_page,
    clear_a_page,
    cut,
)


def made(path: Path, kernels: int, page: int, *indices: str) -> bytes:
    """An export with pages of this size, some of them free, and with indices."""
    write(path, kernels)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("DELETE FROM OSRT_API")
        database.execute(f"PRAGMA page_size = {page}")
        database.execute("VACUUM")
        database.execute("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE rowid % 50 = 0")
        for number, columns in enumerate(indices):
            database.execute(f"CREATE INDEX i{number} ON {columns}")
    return path.read_bytes()


def result(path: Path) -> str:
    """The JSON of `profkit timeline`."""
    return json.dumps(as_output(application_result(read_application(read(path)), path.name)))


def read_plainly(path: Path, fresh: Path) -> Path:
    """A new file of what SQLite reads in all rows of the tables, in order and without an index.

    Raises sqlite3.DatabaseError where it refuses.
    """
    fresh.unlink(missing_ok=True)
    with (
        closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as old,
        closing(sqlite3.connect(fresh)) as new,
    ):
        old.text_factory = partial(str, encoding="utf-8", errors="replace")
        tables = old.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            columns = [row[1] for row in old.execute(f"PRAGMA table_info({table})")]
            names = ", ".join(f'"{name}"' for name in COLUMNS.get(table, ()) if name in columns)
            if names:
                new.execute(f"CREATE TABLE {table} ({names})")
                rows = old.execute(f"SELECT {names} FROM {table} NOT INDEXED")
                marks = ", ".join("?" for _ in rows.description)
                new.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
        new.commit()
    return fresh


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_numbers_of_a_damaged_export_are_those_that_sqlite_reads(
    damage: Damage, tmp_path: Path
) -> None:
    (tmp_path / "plain").mkdir()
    path, fresh = tmp_path / "t.sqlite", tmp_path / "plain" / "t.sqlite"
    wholes = [
        (made(path, 1500, 1024), 1024),
        (
            made(
                path, 600, 4096,
                "CUPTI_ACTIVITY_KIND_KERNEL (start, end)",
                "CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId)",
                "StringIds (id, value)",
            ),
            4096,
        ),
        (RECORDED.read_bytes(), 4096),
    ]  # fmt: skip
    chance = random.Random(f"{damage.__name__} 1")
    refusals = []
    for number in range(-(-COUNT // len(DAMAGES))):
        whole, page = wholes[number % len(wholes)]
        data = bytearray(whole)
        damage(data, chance, page)
        path.write_bytes(data)
        try:
            text = result(path)
        except BadInput as error:
            refusals.append(str(error))
        else:
            assert text == result(read_plainly(path, fresh)), number
    assert not any("\n" in line for line in refusals)
    assert damage in {flip_bits, overwrite, swap_pages} or refusals
