"""ncu's command line: which policies were in force, and what of it may be shared."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from profkit.report.session import Session, decode


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number: int, value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def session(command: str, ncu: str = "2025.3.1.0 (build 1)", settings: bytes = b"") -> Session:
    version = field(1, "Nsight Compute Target") + field(2, ncu)
    message = field(2, 1_700_000_000) + field(8, version) + field(11, command)
    if settings:
        message += field(10, settings)
    system = field(1, "Linux") + field(5, "box") + field(7, field(1, "10.0.0.1"))
    return decode([message, field(4, system)])


def test_policies_passed_are_distinguished_from_defaults() -> None:
    told = session("ncu --clock-control none --cache-control=none -o out ./app --clock-control x")
    assert (told.clock_control, told.cache_control, told.replay_mode) == ("none", "none", "kernel")
    assert told.assumed == {"replay-mode"}
    assert told.created == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    assert (told.host.name, told.host.addresses) == ("box", ("10.0.0.1",))


@pytest.mark.parametrize(
    ("ncu", "default"),
    [("2022.1.1.0", "base"), ("2025.3.1.0", "base"), ("2026.1.0", "boost"), ("2027.2", "boost")],
)
def test_the_default_clock_control_depends_on_the_version(ncu: str, default: str) -> None:
    told = session("ncu ./app", f"{ncu} (build 9)")
    assert told.clock_control == default
    assert "clock-control" in told.assumed


def test_what_the_gui_set_counts_as_asked() -> None:
    told = session("ncu --set full ./app", settings=field(8, "Base") + field(11, "Application"))
    assert told.clock_control == "base"
    assert told.replay_mode == "application"
    assert told.assumed == {"cache-control"}


def test_nothing_is_assumed_without_a_command_line() -> None:
    told = session("")
    assert told.clock_control == ""
    assert told.assumed == frozenset()
    assert told.shareable_command() == ""


def test_options_given_twice_are_kept() -> None:
    told = session("/opt/n/ncu --section A --section B -f --nvtx --set full python3 x.py --set y")
    assert told.options["section"] == "A,B"
    assert told.options["set"] == "full"


@pytest.mark.parametrize(
    ("command", "shared"),
    [
        (
            "/opt/nvidia/ncu --set full -o /home/ann/out python3 /home/ann/train.py --token s3cret",
            "ncu --set full -o out python3 ...",
        ),
        ("ncu --export=/home/ann/out /home/ann/app", "ncu --export=out app"),
        (
            '"C:\\Program Files\\N\\ncu.exe" --export "C:/Users/ann/r" C:\\Users\\ann\\app.exe',
            "ncu.exe --export r app.exe",
        ),
        ("ncu --set full 'un closed", "ncu --set full 'un ..."),
    ],
)
def test_a_shared_command_holds_no_folders_and_no_program_arguments(
    command: str, shared: str
) -> None:
    assert session(command).shareable_command() == shared
