"""The messages of a report, decoded by protobuf's runtime as the vendor's reader decodes them.

Fields that the format gains are skipped, the last value of a field counts, and a message that lacks
a required field is refused. `messages.txt` has the format.
"""

import re
from functools import cache
from typing import Any

from profkit.core.text_files import shipped_text

_FIELD = re.compile(r"(\w+) = (\d+)([!*]?) ([^\s;]+)")
_LABELS = {"": 1, "!": 2, "*": 3}  # optional, required, repeated (descriptor.proto)
_MESSAGE, _ENUM = 11, 14  # types of fields (descriptor.proto), as the next ones
_TYPES = {
    "double": 1, "float": 2, "int64": 3, "uint64": 4, "int32": 5, "bool": 8, "bytes": 12,
    "uint32": 13,
}  # fmt: skip


def decode(name: str, data: bytes, *, is_checked: bool = False) -> Any:
    """A message by the name of its type; raises ValueError where `data` is none.

    That it has all that it must have takes twice as long as to decode it: once is enough for bytes
    that are decoded again.
    """
    from google.protobuf.message import DecodeError

    try:
        message = _message_class(name).FromString(data)
    except DecodeError:
        raise ValueError(f"a {name} that can't be decoded") from None
    if not is_checked and not message.IsInitialized():
        missing = ", ".join(message.FindInitializationErrors()[:3])
        raise ValueError(f"a {name} without {missing}")
    return message


def new(name: str, **fields: Any) -> Any:
    """A message of some fields, those that are messages as dictionaries."""
    return _message_class(name)(**fields)


def prefixed(message: bytes) -> bytes:
    """A message behind its length, as blocks and records are."""
    return len(message).to_bytes(4, "little") + message


def text(value: bytes) -> str:
    """A recorded text; undecodable bytes become U+FFFD."""
    return value.decode("utf-8", "replace")


@cache
def _message_class(name: str) -> Any:
    from google.protobuf.message_factory import GetMessageClass

    return GetMessageClass(_pool().FindMessageTypeByName(f"report.{name}"))


@cache
def _pool() -> Any:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.descriptor_pool import DescriptorPool

    file = FileDescriptorProto(name="report.proto", package="report", syntax="proto2")
    enums: dict[str, str] = {}
    lines = shipped_text("profkit.report", "messages.txt").replace("\n  ", " ").splitlines()
    for line in lines:
        name, _, fields = line.partition(": ")
        if line.startswith("#"):
            continue
        message = file.message_type.add(name=name)
        for field, number, mark, kind in _FIELD.findall(fields):
            added = message.field.add(name=field, number=int(number), label=_LABELS[mark])
            if kind in _TYPES:
                added.type = _TYPES[kind]
            elif kind.startswith("enum:"):
                added.type = _ENUM
                added.type_name = enums.setdefault(kind, f".report.Enum{len(enums)}")
            else:
                added.type, added.type_name = _MESSAGE, f".report.{kind}"
    for kind, name in enums.items():
        _add_enum(file, name.rpartition(".")[2], kind.removeprefix("enum:"))
    pool = DescriptorPool()
    pool.Add(file)
    return pool


def _add_enum(file: Any, name: str, spans: str) -> None:
    """An enumeration of spans of numbers: `0-4,12`."""
    enum = file.enum_type.add(name=name)
    for span in spans.split(","):
        low, _, high = span.partition("-")
        for number in range(int(low), int(high or low) + 1):
            enum.value.add(name=f"{name}_{number}", number=number)
