"""Who recorded a report, when and how: the session block that the vendor's reader leaves out.

Field numbers: NVIDIA, Nsight Compute Customization Guide, "File Format" (SessionDetails).
A session is private data (computer name, addresses, paths); `shareable_command` is what may leave.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath, PureWindowsPath

from profkit.report import wire

_CREATED, _HOST, _TARGET, _VERSIONS, _SETTINGS, _COMMAND = 2, 3, 4, 8, 10, 11
_SYSTEM_OS, _SYSTEM_PROCESSOR, _SYSTEM_NAME, _SYSTEM_ADDRESSES = 1, 3, 5, 7
_SETTINGS_CLOCK, _SETTINGS_REPLAY = 8, 11

_CLOCK_DEFAULT_IS_BOOST_SINCE = (2026, 1)
_MOST_DIGITS = 9  # of a part of a version, which has at most 4
_LONGEST = 1 << 17  # characters of a command, which a shell's rules split at 2 µs for each
_SWITCHES = {
    "-f", "--force-overwrite", "--nvtx", "--call-stack", "--csv", "--print-fp", "--verbose", "-v",
    "--open-in-ui", "--null-stdin", "--disable-profiler-start-stop", "--help", "-h", "--version",
}  # fmt: skip


@dataclass(frozen=True)
class Session:
    """How a report was recorded; empty strings and None where the report does not tell.

    `command` is the whole ncu command line. `options` are ncu's own options from it by their long
    names without dashes. `clock_control`, `cache_control` and `replay_mode` are what was in force:
    passed, set in the GUI, or that ncu's default, which `assumed` then names.
    """

    created: datetime | None
    ncu_version: str
    cuda_version: str
    driver_version: str
    command: str
    options: Mapping[str, str]
    clock_control: str
    cache_control: str
    replay_mode: str
    assumed: frozenset[str]
    os: str
    processor: str
    host_name: str
    addresses: tuple[str, ...]

    def shareable_command(self) -> str:
        """The command line without folders and without the profiled program's arguments."""
        own, program = _split(self.command)
        if not own:
            return ""
        words = [_base_name(word) for word in own]
        if program:
            words.append(_base_name(program[0]))
        if len(program) > 1:
            words.append("...")
        return " ".join(words)


def decode(messages: Iterable[bytes]) -> Session:
    """Merge the session messages of a report; what can't be decoded is left out.

    Raises ValueError for a time or a version that can't be.
    """
    merged: dict[int, list[int | bytes]] = {}
    for message in messages:
        try:
            for field, values in wire.decode(message).items():
                merged.setdefault(field, []).extend(values)
        except ValueError:
            continue
    versions = {
        wire.text(entry, 1): wire.text(entry, 2) for entry in wire.messages(merged, _VERSIONS)
    }
    systems = wire.messages(merged, _TARGET) or wire.messages(merged, _HOST)
    system = systems[-1] if systems else {}
    settings = (wire.messages(merged, _SETTINGS) or [{}])[-1]
    command = wire.text(merged, _COMMAND).strip()
    ncu_version = versions.get("Nsight Compute Target", "").split(" ")[0]
    options = _options(command)
    policy, assumed = _policy(options, settings, ncu_version, known=bool(command or settings))
    created = wire.number(merged, _CREATED)
    return Session(
        created=_time(created),
        ncu_version=ncu_version,
        cuda_version=versions.get("CUDA Version", ""),
        driver_version=versions.get("Display Driver Version", ""),
        command=command,
        options=options,
        clock_control=policy["clock-control"],
        cache_control=policy["cache-control"],
        replay_mode=policy["replay-mode"],
        assumed=assumed,
        os=wire.text(system, _SYSTEM_OS),
        processor=_first_line(wire.text(system, _SYSTEM_PROCESSOR)),
        host_name=wire.text(system, _SYSTEM_NAME),
        addresses=tuple(
            wire.text(address, 1) for address in wire.messages(system, _SYSTEM_ADDRESSES)
        ),
    )


def _time(created: int) -> datetime | None:
    """The time of so many seconds since 1970; None where there is none."""
    try:
        return datetime.fromtimestamp(created, UTC) if created else None
    except (OverflowError, OSError):
        raise ValueError(f"recorded {created} s after 1970") from None


def _first_line(text: str) -> str:
    """A name without what old versions of ncu put after it: the rest of /proc/cpuinfo."""
    return text.strip().partition("\n")[0].strip()


def _policy(
    options: Mapping[str, str], settings: wire.Message, ncu_version: str, *, known: bool
) -> tuple[Mapping[str, str], frozenset[str]]:
    """The policies in force, and which of them are ncu's defaults; empty when nothing is known."""
    defaults = {
        "clock-control": (_default_clock_control(ncu_version), _SETTINGS_CLOCK),
        "cache-control": ("all", None),
        "replay-mode": ("kernel", _SETTINGS_REPLAY),
    }
    policy: dict[str, str] = {}
    for name, (_, field) in defaults.items():
        in_gui = wire.text(settings, field).lower() if field else ""
        policy[name] = options.get(name) or in_gui
    assumed = frozenset(name for name, told in policy.items() if known and not told)
    return policy | {name: defaults[name][0] for name in assumed}, assumed


def _default_clock_control(ncu_version: str) -> str:
    parts = re.findall(r"\d+", ncu_version)[:2]
    if len(parts) < 2:
        return ""
    if max(map(len, parts)) > _MOST_DIGITS:
        raise ValueError(f"a version of {max(map(len, parts)):,} digits")
    version = (int(parts[0]), int(parts[1]))
    return "boost" if version >= _CLOCK_DEFAULT_IS_BOOST_SINCE else "base"


def _options(command: str) -> Mapping[str, str]:
    """ncu's own options by long name; one given several times keeps all values, comma-separated."""
    own, _ = _split(command)
    found: dict[str, list[str]] = {}
    words = iter(own[1:])
    for word in words:
        name, equals, value = word.partition("=")
        if not equals and word not in _SWITCHES:
            value = next(words, "")
        found.setdefault(name.lstrip("-"), []).append(value)
    return {name: ",".join(values) for name, values in found.items()}


def _split(command: str) -> tuple[list[str], list[str]]:
    """ncu and its options; the profiled program and its arguments."""
    words = _words(command)
    at = 1
    while at < len(words) and words[at].startswith("-"):
        at += 1 if "=" in words[at] or words[at] in _SWITCHES else 2
    return words[:at], words[at:]


def _words(command: str) -> list[str]:
    if len(command) > _LONGEST:
        return command.split()
    lexer = shlex.shlex(command, posix=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    lexer.escape = "" if "\\" in command and ":\\" in command else "\\"
    try:
        return list(lexer)
    except ValueError:
        return command.split()


def _base_name(word: str) -> str:
    option, equals, value = word.partition("=")
    if equals and option.startswith("-"):
        return f"{option}={_base_name(value)}"
    if "\\" in word:
        return PureWindowsPath(word).name
    return PurePosixPath(word).name if "/" in word else word
