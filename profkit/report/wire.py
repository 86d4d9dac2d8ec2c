"""Protocol-buffer wire format, as much as a report's own framing needs.

The vendor's reader gives neither the framing nor the session block, so the few messages that hold
them are read by field number. Format: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

Message = Mapping[int, Sequence[int | bytes]]


def decode(data: bytes) -> Message:
    """The values of each field number, in order; raises ValueError where `data` is no message."""
    fields: defaultdict[int, list[int | bytes]] = defaultdict(list)
    sizes = {1: 8, 5: 4}
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        field, kind = key >> 3, key & 7
        if kind in {0, 2}:
            value, place = _varint(data, place)
        elif kind not in sizes:
            raise ValueError(f"wire type {kind}")
        if kind == 0:
            fields[field].append(value)
            continue
        end = place + sizes.get(kind, value if kind == 2 else 0)
        if end > len(data):
            raise ValueError("field runs past the end")
        fields[field].append(data[place:end])
        place = end
    return fields


def number(message: Message, field: int, default: int = 0) -> int:
    """The last number of a field."""
    values = (value for value in reversed(message.get(field, ())) if isinstance(value, int))
    return next(values, default)


def text(message: Message, field: int) -> str:
    """The last string of a field; undecodable bytes become U+FFFD."""
    values = (value for value in reversed(message.get(field, ())) if isinstance(value, bytes))
    return next(values, b"").decode("utf-8", "replace")


def messages(message: Message, field: int) -> list[Message]:
    """The messages of a field; those that can't be decoded are left out."""
    decoded = []
    for value in message.get(field, ()):
        if isinstance(value, bytes):
            try:
                decoded.append(decode(value))
            except ValueError:
                continue
    return decoded


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """A number and the place after it."""
    value = 0
    for shift, byte in zip(range(0, 64, 7), data[place : place + 10], strict=False):
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place + shift // 7 + 1
    raise ValueError("number runs past the end")
