"""Launches are decoded as NVIDIA's reader decodes them, whatever their bytes."""

from __future__ import annotations

import math
import random
import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from profkit.core.errors import BadInput
from profkit.report import reader
from profkit.report.action import Action, block
from profkit.report.framing import MAGIC, Kind, check, walk
from profkit.report.launch_message import FUNCTION
from profkit.report.messages import decode, new, prefixed
from tests import wire
from tests.conftest import H200, NIGHTLY, needs_reader, plain_bytes

EXTENT = {"x": 1, "y": 1, "z": 1}
NAMES = ("gpu__time_duration.sum", "inst_executed", "launch__grid_size")
DURATION, EXECUTED = (13, 0), (13, 1)
DAMAGES = 1000 if NIGHTLY else 100
NOTHING = reader.Request((), {}, {})


def launch(*metrics: bytes, **fields: Any) -> bytes:
    """A launch with all that it must have, but for fields that are None."""
    content: dict[str, Any] = {
        **dict.fromkeys(("thread_id", "api_call_id", "program_handle", "kernel_id"), 1),
        **dict.fromkeys(("kernel_mangled_name", "kernel_function_name"), b"f"),
        "kernel_demangled_name": b"f()",
        "work_dimensions": 1,
        **dict.fromkeys(("global_work_offset", "grid_size", "block_size"), EXTENT),
        "source": {"reference": 1},
        **fields,
    }
    known = {name: value for name, value in content.items() if value is not None}
    message: bytes = new("ProfileResult", **known).SerializePartialToString()
    return message + b"".join(wire.encoded(13, metric) for metric in metrics)


def report(*launches: bytes) -> bytes:
    version = new("FileHeader", version=7).SerializeToString()
    return MAGIC + prefixed(version) + block({Kind.kernel: launches}, NAMES)


def value(path: Path, name: str) -> Any:
    """The value of a metric of the first launch, by the vendor's reader and by profkit's."""
    import ncu_report

    (ours,) = reader.read(path, NOTHING).actions
    metric = ours.metric_by_name(name)
    handle = ncu_report.load_report(str(path))[0][0]
    vendors = handle.metric_by_name(name)
    return vendors.value() if vendors else None, metric.value() if metric else None


@needs_reader
@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (wire.message({1: 1, 2: wire.message({5: 7})}), 7),
        (wire.encoded(99, b"newer") + wire.message({1: 1, 2: wire.message({5: 7})}), 7),
        (wire.message({1: 1}) + wire.encoded(98, 5) + wire.encoded(2, wire.message({5: 7})), 7),
        (b"\x88\x80\x00\x01" + wire.encoded(2, wire.message({5: 7})), 7),
        (wire.encoded(2, wire.message({5: 7})) + wire.encoded(1, 1), 7),
        (wire.message({1: 1, 2: wire.message({5: 7})}) + wire.encoded(2, b"\x28\x08"), 8),
        (wire.message({1: 1, 2: wire.encoded(5, 7) + wire.encoded(5, 9)}), 9),
        (wire.message({1: 1, 2: wire.encoded(5, 7) + b"\x19" + struct.pack("<d", 2.5)}), 2.5),
    ],
    ids=["plain", "unknown first", "unknown between", "padded tag", "other order",
         "value twice", "number twice", "two kinds"],
)  # fmt: skip
def test_values_of_any_spelling_are_those_of_the_vendor(
    tmp_path: Path, metric: bytes, expected: float
) -> None:
    path = tmp_path / "x.ncu-rep"
    path.write_bytes(report(launch(metric)))
    assert value(path, "inst_executed") == (expected, expected)


@needs_reader
@pytest.mark.parametrize(
    "field", ["thread_id", "kernel_id", "kernel_demangled_name", "work_dimensions", "grid_size",
              "source"],
)  # fmt: skip
def test_a_launch_without_what_it_must_have_is_refused(tmp_path: Path, field: str) -> None:
    import ncu_report

    path = tmp_path / "x.ncu-rep"
    path.write_bytes(report(launch(**{field: None})))
    (handles,) = ncu_report.load_report(str(path))
    assert handles[0].name() is None
    with pytest.raises(BadInput, match=f"without {field}"):
        reader.read(path, NOTHING)


def test_text_of_no_encoding_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "x.ncu-rep"
    path.write_bytes(report(launch(kernel_demangled_name=b"\xff\xfef()")))
    (read,) = reader.read(path, NOTHING).launches
    assert read.name == "��f()"


def damages(data: bytes, seed: int) -> Iterator[bytes]:
    """Copies of a launch's bytes with a few of them changed, cut or repeated."""
    chance = random.Random(seed)
    for _ in range(DAMAGES):
        changed = bytearray(data)
        for _ in range(chance.choice((1, 1, 1, 2, 5))):
            place = chance.randrange(len(changed))
            match chance.randrange(4):
                case 0:
                    changed[place] ^= 1 << chance.randrange(8)
                case 1:
                    changed[place] = chance.randrange(256)
                case 2:
                    del changed[place : place + chance.randrange(1, 9)]
                case _:
                    changed[place:place] = changed[place : place + chance.randrange(1, 40)]
        yield bytes(changed)


def values_of(action: Action) -> Mapping[str, Any]:
    """All values of a launch as profkit reads them."""
    metrics = {name: action.metric_by_name(name) for name in action.metric_names()}
    return {
        name: list(map(comparable, (metric.value(), *metric.instances.values)))
        for name, metric in metrics.items()
        if metric
    }


def values_of_vendor(handle: Any) -> Mapping[str, Any]:
    """All values of a launch as the vendor's reader has them, but those that can't be."""
    rows: dict[str, Any] = {}
    for name in handle.metric_names():
        metric = handle.metric_by_name(name)
        shown = metric.value() if metric.has_value() else None
        if isinstance(shown, int | float) and not 0 <= shown <= 1e20:
            shown = None  # no counter has such a number, and profkit shows it as missing
        parts = (metric.value(place) for place in range(metric.num_instances()))
        rows[name] = list(map(comparable, (shown, *parts)))
    return rows


def comparable(value: Any) -> Any:
    """NaN and what is missing as a word, and bytes of no encoding as profkit shows them."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    missing = value is None or (isinstance(value, float) and math.isnan(value))
    return "missing" if missing else value


@needs_reader
def test_damaged_launches_are_read_as_the_vendor_reads_them_or_refused(tmp_path: Path) -> None:
    import ncu_report

    path = tmp_path / "x.ncu-rep"
    file = H200 / "sdpa_s512_flash_set_basic.ncu-repz"
    framing = check(file)
    records: list[Any] = []
    with file.open("rb") as opened:
        walk(file, opened, records.append)
    (data,) = (record.data for record in records if record.kind is Kind.kernel)
    start = MAGIC + prefixed(new("FileHeader", version=7).SerializeToString())
    outcomes: Counter[str] = Counter()
    for changed in damages(data, seed=20261125):
        path.write_bytes(start + block({Kind.kernel: [changed]}, framing.names))
        handles = [handle for part in ncu_report.load_report(str(path)) for handle in part]
        try:
            (action,) = reader.read(path, NOTHING).actions
            ours = values_of(action)
        except BadInput:
            is_dropped = handles[0].name() is None
            outcomes["refused" if is_dropped else "refused by profkit alone"] += 1
            continue
        assert [handle.name() for handle in handles] == [action.message.kernel_name(FUNCTION)]
        assert ours == values_of_vendor(handles[0])
        outcomes["read"] += 1
    assert outcomes["read"] > DAMAGES / 10
    assert outcomes["refused by profkit alone"] < DAMAGES / 20, outcomes


def test_the_whole_format_is_known() -> None:
    """A message of each kind, as recorded reports have them, loses nothing."""
    for name in ("known", "sdpa_s512_math"):
        data = plain_bytes(name)
        path = H200 / f"{name}.ncu-repz"
        records: list[Any] = []
        with path.open("rb") as opened:
            walk(path, opened, records.append)
        assert len(data) > 0
        for record in records:
            kind = {Kind.source: "SourceData", Kind.kernel: "ProfileResult"}[record.kind]
            assert not unknown(decode(kind, record.data))


def unknown(message: Any) -> list[int]:
    """Numbers of fields that the format lacks, in a message and those inside it."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    numbers = [field.field_number for field in UnknownFieldSet(message)]
    for field, content in message.ListFields():
        if field.message_type:
            parts = content if field.is_repeated else [content]
            numbers += [number for part in parts for number in unknown(part)]
    return numbers
