"""Sizes of NCCL's messages in an export, and what a scrubbed one has of payloads."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from profkit.timeline.events import NO_MESSAGES
from profkit.timeline.messages import payload_of, schemas_of
from profkit.timeline.reader import read
from profkit.timeline.redaction import scrub
from tests.conftest import story_folder
from tests.timeline import payloads

RECORDED = "data_parallel_exposed"


@pytest.fixture
def export(tmp_path: Path) -> Path:
    """A recorded program whose all-reduces have sizes: 1 MB the first, 2 MB the next, ..."""
    path = tmp_path / "timeline.sqlite"
    shutil.copyfile(story_folder(RECORDED) / "before.sqlite", path)
    rows = payloads.rows_of(path, "ncclAllReduce")
    sizes = [(row, payloads.all_reduce(number * 10**6)) for number, row in enumerate(rows, 1)]
    steps = payloads.rows_of(path, "step")
    secret = payloads.blob(payloads.USER, b"hunter-2")
    payloads.add_payloads(path, [*sizes, (steps[0], secret)])
    return path


def test_the_sizes_of_messages_are_read(export: Path) -> None:
    messages = read(export).messages
    assert messages.size.tolist() == [number * 10**6 for number in range(1, len(messages) + 1)]
    assert len(messages) == 384  # 64 gradients, 3 steps, 2 ranks
    assert set(messages.ranks.tolist()) == {0}  # the communicator's start is not recorded


def test_the_ranks_are_those_of_the_communicators_start(export: Path) -> None:
    with closing(sqlite3.connect(export)) as database, database:
        first = payloads.rows_of(export, "ncclAllReduce")[0]
        database.execute(
            "UPDATE NVTX_EVENTS SET binaryData = ? WHERE rowid = ?", (payloads.start(16), first)
        )
    messages = read(export).messages
    assert len(messages) == 383
    assert set(messages.ranks.tolist()) == {16}


def test_communicators_are_told_apart(export: Path) -> None:
    rows = payloads.rows_of(export, "ncclAllReduce")
    names = (0xFFFF_FFFF_FFFF_FFFF, 0xABC)  # a hash of 64 bits
    with closing(sqlite3.connect(export)) as database, database:
        database.executemany(
            "UPDATE NVTX_EVENTS SET binaryData = ? WHERE rowid = ?",
            [(payloads.all_reduce(1, names[row % 2]), row) for row in rows],
        )
    numbers = read(export).messages.communicator
    assert set(numbers.tolist()) == {1, 2}
    assert (numbers == numbers[0]).sum() == sum(row % 2 == rows[0] % 2 for row in rows)


def test_a_scrubbed_export_has_the_sizes_and_no_other_payload(export: Path) -> None:
    before = read(export).messages
    scrub(export)
    after = read(export).messages
    assert after.size.tolist() == before.size.tolist()
    assert b"hunter-2" not in export.read_bytes()
    assert b"Password" not in export.read_bytes()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 31,
        payloads.all_reduce(5)[:-1],
        payloads.all_reduce(5) + b"\0",
        payloads.all_reduce(1 << 63),
        payloads.blob(12345, b"\0" * 24),
        payloads.all_reduce(5) * 1000,
    ],
    ids=["empty", "short", "cut", "long", "huge", "other schema", "large"],
)
def test_a_payload_of_another_form_has_no_size(export: Path, data: bytes) -> None:
    with closing(sqlite3.connect(export)) as database, database:
        database.execute("UPDATE NVTX_EVENTS SET binaryData = ? WHERE binaryData NOTNULL", (data,))
    assert read(export).messages is NO_MESSAGES


def test_a_field_beyond_its_payload_has_no_value(export: Path) -> None:
    with closing(sqlite3.connect(export)) as database, database:
        database.execute("UPDATE NVTX_PAYLOAD_SCHEMA_ENTRIES SET offset = 1000")
    assert read(export).messages is NO_MESSAGES


def test_payloads_as_nccl_and_nsys_write_them() -> None:
    """Recorded on an H200: two ranks average a gradient of 8192 x 512 numbers in float32."""
    number, size, whole = payloads.UINT64, payloads.SIZE, payloads.INT
    schemas = schemas_of(
        [
            (1, 16777227, number, "NCCL communicator ID", None),
            (1, 16777227, whole, "No. of ranks", 8),
            (1, 16777221, number, "NCCL communicator ID", None),
            (1, 16777221, size, "Message size [bytes]", 8),
        ]
    )
    start = payload_of(
        bytes.fromhex(
            "01000000000000000b00000100000000180000000000000020000000000000"
            "00d269d09024be68a902000000000000000000000000000000"
        ),
        schemas,
    )
    average = payload_of(
        bytes.fromhex(
            "01000000000000000500000100000000180000000000000020000000000000"
            "00d269d09024be68a900000001000000000400000000000000"
        ),
        schemas,
    )
    assert start
    assert average
    assert (start.ranks, start.size) == (2, None)
    assert average.size == 8192 * 512 * 4
    assert average.communicator == start.communicator == 0xA968BE2490D069D2
