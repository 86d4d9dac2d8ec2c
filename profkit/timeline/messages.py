"""Sizes of NCCL's messages, from the payloads of its NVTX ranges in an nsys export.

NCCL passes them with each call (its src/collectives.cc and nvtx_payload_schemas.h); the export has
the fields of each schema in a table, and of each range a blob: 32 bytes with domain, schema and
size, then the payload.
"""

import struct
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

SIZE_FIELDS = ("Message size [bytes]", "Bytes")
"""Names of the field with the bytes of a message; the second in older NCCL."""
COMMUNICATOR_FIELD, RANKS_FIELD = "NCCL communicator ID", "No. of ranks"
FIELDS = (*SIZE_FIELDS, COMMUNICATOR_FIELD, RANKS_FIELD)
LARGEST_BLOB = 256  # bytes, chosen: NCCL's payloads have up to 40
HEAD = 32  # bytes before the payload
RANGE_PREFIX = "nccl"  # of the names of NCCL's ranges

_HEAD = struct.Struct("<QQQ")  # domain, schema, bytes of the payload
_FORMATS = {5: "<i", 18: "<Q", 22: "<Q"}
"""By NVTX_PAYLOAD_ENTRY_TYPE_INT, UINT64 and SIZE (nvToolsExtPayload.h), on 64-bit machines."""
_MOST_BYTES = 1 << 50  # chosen: no message is larger, so that sums fit 64 bits

Schemas = Mapping[tuple[int, int], Mapping[str, tuple[str, int]]]
"""By domain and schema, the format and offset of each known field."""


class Payload(Struct, frozen=True):
    """What a payload says; None for a field that it lacks."""

    size: int | None
    communicator: int | None
    ranks: int | None


def schemas_of(rows: Iterable[tuple[Any, ...]]) -> Schemas:
    """The known fields of each schema, from rows of domain, schema, type, name and offset."""
    schemas: defaultdict[tuple[int, int], dict[str, tuple[str, int]]] = defaultdict(dict)
    for domain, schema, kind, name, offset in rows:
        if name in FIELDS and kind in _FORMATS and isinstance(schema, int):
            schemas[domain or 0, schema][name] = _FORMATS[kind], offset or 0  # NULL of the first
    return schemas


def payload_of(blob: bytes, schemas: Schemas) -> Payload | None:
    """A range's payload; None where it has no known schema, or other bytes than it says."""
    if len(blob) < HEAD:
        return None
    domain, schema, size = _HEAD.unpack_from(blob)
    fields = schemas.get((domain, schema))
    if not fields or HEAD + size != len(blob):
        return None

    def value(name: str) -> int | None:
        form, offset = fields.get(name, ("", 0))
        if not form or not 0 <= offset <= size - struct.calcsize(form):
            return None
        (number,) = struct.unpack_from(form, blob, HEAD + offset)
        return int(number)

    sizes = (value(name) for name in SIZE_FIELDS)
    bytes_ = next((number for number in sizes if number is not None), None)
    if bytes_ is not None and bytes_ > _MOST_BYTES:
        return None
    return Payload(bytes_, value(COMMUNICATOR_FIELD), value(RANKS_FIELD))
