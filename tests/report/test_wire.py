"""The wire reader: reads what was written, refuses what was cut."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profkit.core.errors import BadInput
from profkit.report import wire
from profkit.report.framing import MAGIC, check
from tests.report.test_session import field

fields = st.lists(
    st.tuples(st.integers(1, 2000), st.integers(0, 2**63 - 1) | st.binary(max_size=40)), max_size=12
)


@given(fields)
def test_what_was_written_is_read(written: list[tuple[int, int | bytes]]) -> None:
    message = wire.decode(b"".join(field(number, value) for number, value in written))
    for number in {number for number, _ in written}:
        assert list(message[number]) == [value for at, value in written if at == number]


@given(st.binary(max_size=200))
def test_any_bytes_are_decoded_or_refused(data: bytes) -> None:
    try:
        message = wire.decode(data)
    except ValueError:
        return
    assert all(number >= 0 for number in message)


def test_a_cut_message_is_refused() -> None:
    data = field(1, b"twelve bytes")
    for cut in range(1, len(data)):
        with pytest.raises(ValueError, match="past the end"):
            wire.decode(data[:cut])


def test_texts_and_messages_survive_what_can_not_be_decoded() -> None:
    message = wire.decode(field(1, b"\xff\xfe") + field(2, field(1, 7)) + field(2, b"\xff"))
    assert wire.text(message, 1) == "\ufffd\ufffd"
    assert [wire.number(inner, 1) for inner in wire.messages(message, 2)] == [7]
    assert wire.number(message, 9, default=3) == 3


def test_a_range_of_range_replay_counts_as_a_launch(tmp_path: Path) -> None:
    """ncu announces ranges in a field of their own (7 of the block header)."""

    def record(data: bytes) -> bytes:
        return struct.pack("<I", len(data)) + data

    def header(payload: int, *, launches: int, ranges: int) -> bytes:
        varints = [(1, 0), (2, launches), (5, payload), (7, ranges)]
        return bytes(byte for field, value in varints for byte in (field << 3, value))

    payload = record(b"a range")
    whole = MAGIC + record(b"\x08\x07")
    file = tmp_path / "range.ncu-rep"
    file.write_bytes(whole + record(header(len(payload), launches=0, ranges=1)) + payload)
    assert check(file).launches == 1
    file.write_bytes(whole + record(header(len(payload), launches=0, ranges=2)) + payload)
    with pytest.raises(BadInput, match="fewer launches than a block header announces"):
        check(file)
