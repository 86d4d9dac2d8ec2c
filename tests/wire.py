"""Protocol-buffer wire format, as much as a report needs.

A report's messages are read by field number, of which few are needed: what is not is passed over by
its length. Format: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

Message = Mapping[int, Sequence[int | bytes]]
Span = tuple[int, int]
"""Where a field's bytes start and end."""

_VARINT, _WORD, _BYTES, _HALF_WORD = 0, 1, 2, 5  # wire types
_SIZES = {_WORD: 8, _HALF_WORD: 4}
_LONGEST = 10  # bytes of a number, by the format
_64_BITS = (1 << 64) - 1


def decode(data: bytes) -> Message:
    """The values of each field number, in order; raises ValueError where `data` is no message."""
    fields: defaultdict[int, list[int | bytes]] = defaultdict(list)
    for field, value, end in spans(data, 0, len(data)):
        fields[field].append(value if end < 0 else data[value:end])
    return fields


def spans(data: bytes, place: int, stop: int) -> Iterator[tuple[int, int, int]]:
    """Each field of the message in a part of `data`: its number, and where its bytes start and end.

    Of a number, its value and -1. Raises ValueError where there is no message.
    """
    while place < stop:
        key, place = varint(data, place)
        kind = key & 7
        if kind == _VARINT:
            value, place = varint(data, place)
            end = -1
        else:
            if kind == _BYTES:
                size, value = varint(data, place)
            elif kind in _SIZES:
                size, value = _SIZES[kind], place
            else:
                raise ValueError(f"wire type {kind}")
            place = end = value + size
        if place > stop:
            raise ValueError("field runs past the end")
        yield key >> 3, value, end


def varint(data: bytes, place: int) -> tuple[int, int]:
    """A number and the place after it; raises ValueError where there is none."""
    try:
        byte = data[place]
        place += 1
        if byte < 0x80:
            return byte, place
        value, shift = byte & 0x7F, 7
        while shift < 7 * _LONGEST:
            byte = data[place]
            place += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & _64_BITS, place
            shift += 7
    except IndexError:
        pass
    raise ValueError("number runs past the end")


def floating(data: bytes, start: int, end: int) -> float:
    """The floating-point number in a span; raises ValueError where it has neither size of such."""
    if end - start == 8:
        return float(struct.unpack_from("<d", data, start)[0])
    if end - start == 4:
        return float(struct.unpack_from("<f", data, start)[0])
    raise ValueError(f"a number of {end - start} bytes")


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


def message(fields: Mapping[int, int | bytes]) -> bytes:
    """A message of these fields."""
    return b"".join(encoded(field, fields[field]) for field in sorted(fields))


def encoded(field: int, value: int | bytes) -> bytes:
    """A field of a message; fields of fixed size are left out of what profkit writes."""
    if isinstance(value, bytes):
        return _varint(field << 3 | _BYTES) + _varint(len(value)) + value
    return _varint(field << 3 | _VARINT) + _varint(value)


def prefixed(message: bytes) -> bytes:
    """A message behind its length, as blocks and records are."""
    return len(message).to_bytes(4, "little") + message


def _varint(value: int) -> bytes:
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)
