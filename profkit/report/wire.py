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
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        match key & 7:
            case 0:
                value, at = _varint(data, at)
                fields[key >> 3].append(value)
                continue
            case 1:
                size = 8
            case 2:
                size, at = _varint(data, at)
            case 5:
                size = 4
            case wire_type:
                raise ValueError(f"wire type {wire_type}")
        if at + size > len(data):
            raise ValueError("field runs past the end")
        fields[key >> 3].append(data[at : at + size])
        at += size
    return fields


def number(message: Message, field: int, default: int = 0) -> int:
    """The last number of a field."""
    values = [value for value in message.get(field, ()) if isinstance(value, int)]
    return values[-1] if values else default


def text(message: Message, field: int) -> str:
    """The last string of a field; undecodable bytes become U+FFFD."""
    values = [value for value in message.get(field, ()) if isinstance(value, bytes)]
    return values[-1].decode("utf-8", "replace") if values else ""


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


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("number runs past the end")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
