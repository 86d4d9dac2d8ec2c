"""How and when a report was recorded: the session block, which the vendor's reader omits.

A session is private data (computer name, addresses, paths); `shareable_command` is what may leave.
"""

import re
import shlex
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import PurePosixPath, PureWindowsPath

from msgspec import Struct

from profkit.core.typed_file import Model
from profkit.report.messages import decode as decode_message
from profkit.report.messages import text

_CLOCK_DEFAULT_IS_BOOST_SINCE = (2026, 1)
_MOST_DIGITS = 9  # of a part of a version, which has at most 4
_LONGEST = 1 << 17  # characters of a command, which a shell's rules split at 2 µs for each
_SWITCHES = {
    "-f", "--force-overwrite", "--nvtx", "--call-stack", "--csv", "--print-fp", "--verbose", "-v",
    "--open-in-ui", "--null-stdin", "--disable-profiler-start-stop", "--help", "-h", "--version",
}  # fmt: skip


class Host(Model, frozen=True, kw_only=True):
    """The machine; only with --with-host."""

    name: str
    os: str
    processor: str
    addresses: tuple[str, ...]


class Session(Struct, frozen=True):
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
    host: Host

    def shareable_command(self) -> str:
        """The command line without folders and without the profiled program's arguments."""
        own, program = _split(self.command)
        words = [*own, *program[:1]] if own else []
        return " ".join([*map(_base_name, words), *(["..."] if own and program[1:] else [])])


def decode(messages: Iterable[bytes]) -> Session:
    """Merge the session messages of a report; raises ValueError for a time or a version that can't
    be."""
    merged = decode_message("ReportSessionDetails", b"".join(messages))
    versions = {text(each.provider): text(each.version) for each in merged.version_info}
    is_remote = merged.HasField("target_system_info")
    system = merged.target_system_info if is_remote else merged.host_system_info
    settings = merged.profiler_settings
    command = text(merged.profiler_cmdline).strip()
    ncu_version = versions.get("Nsight Compute Target", "").split(" ")[0]
    options = _options(command)
    defaults = {
        "clock_control": (_default_clock_control(ncu_version), settings.clock_control_mode),
        "cache_control": ("all", b""),
        "replay_mode": ("kernel", settings.replay_mode),
    }
    policy = {
        name: options.get(name.replace("_", "-")) or text(value).lower()
        for name, (_, value) in defaults.items()
    }
    is_known = command or merged.HasField("profiler_settings")
    unset = [name for name, value in policy.items() if is_known and not value]
    created = merged.creation_time
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
        host=Host(
            name=text(system.computer_name),
            os=text(system.os_name),
            # Old versions of ncu put the rest of /proc/cpuinfo after the name.
            processor=text(system.processor).strip().partition("\n")[0].strip(),
            addresses=tuple(text(each.address) for each in system.ip_addresses),
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
