"""How and when a report was recorded: the session block, which the vendor's reader omits.

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
    """How a report was recorded; empty strings and None where the report lacks it.

    `command` is the whole ncu command line. `options` are ncu's own options from it by their long
    names without dashes. `clock_control`, `cache_control` and `replay_mode` are those in effect:
    passed, set in the GUI, or the default of that ncu version, which `assumed` then names.
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
        words = [*own, *program[:1]] if own else []
        return " ".join([*map(_base_name, words), *(["..."] if own and program[1:] else [])])


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
    defaults = {
        "clock_control": (_default_clock_control(ncu_version), _SETTINGS_CLOCK),
        "cache_control": ("all", 0),
        "replay_mode": ("kernel", _SETTINGS_REPLAY),
    }
    policy = {
        name: options.get(name.replace("_", "-")) or wire.text(settings, field).lower()
        for name, (_, field) in defaults.items()
    }
    unset = [name for name, value in policy.items() if (command or settings) and not value]
    created = wire.number(merged, _CREATED)
    try:
        time = datetime.fromtimestamp(created, UTC) if created else None
    except (OverflowError, OSError):
        raise ValueError(f"recorded {created} s after 1970") from None
    return Session(
        created=time,
        ncu_version=ncu_version,
        cuda_version=versions.get("CUDA Version", ""),
        driver_version=versions.get("Display Driver Version", ""),
        command=command,
        options=options,
        **policy | {name: defaults[name][0] for name in unset},
        assumed=frozenset(name.replace("_", "-") for name in unset),
        os=wire.text(system, _SYSTEM_OS),
        # Old versions of ncu put the rest of /proc/cpuinfo after the name.
        processor=wire.text(system, _SYSTEM_PROCESSOR).strip().partition("\n")[0].strip(),
        host_name=wire.text(system, _SYSTEM_NAME),
        addresses=tuple(
            wire.text(address, 1) for address in wire.messages(system, _SYSTEM_ADDRESSES)
        ),
    )


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
    options: dict[str, list[str]] = {}
    words = iter(own[1:])
    for word in words:
        name, equals, value = word.partition("=")
        if not equals and word not in _SWITCHES:
            value = next(words, "")
        options.setdefault(name.lstrip("-"), []).append(value)
    return {name: ",".join(values) for name, values in options.items()}


def _split(command: str) -> tuple[list[str], list[str]]:
    """ncu and its options; the profiled program and its arguments."""
    words = _words(command)
    place = 1
    while place < len(words) and words[place].startswith("-"):
        place += 1 if "=" in words[place] or words[place] in _SWITCHES else 2
    return words[:place], words[place:]


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
