"""What importers of runs share: files of measurements, and what a user states of them."""

from __future__ import annotations

import hashlib
import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from profkit.core.errors import BadInput
from profkit.core.fingerprint import Device
from profkit.core.regular_file import read_limited
from profkit.history.record import Point
from profkit.runs.manifest import Manifest

BLOCKS = 8
"""Blocks of samples that come without any; chosen: as many as `profkit time` measures."""
DIRTY = "-dirty"
"""The end of a commit whose tree had changes."""

_LARGEST = 64 << 20  # bytes; as profkit.core.text_files reads


@dataclass(frozen=True)
class Stated:
    """What a user states of runs whose files don't have it."""

    target: str = ""
    branch: str = ""
    commit: str = ""
    time: datetime | None = None


@dataclass(frozen=True)
class Imported:
    """A run: its points, and what had to be assumed."""

    points: tuple[Point, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Content:
    """A file of measurements: its bytes, read once, and what the user states."""

    path: Path
    data: bytes
    stated: Stated
    source: str
    manifest: Manifest | None = None

    @cached_property
    def run(self) -> str:
        """The id of the run."""
        return hashlib.sha256(self.data).hexdigest()

    def time(self, *texts: str) -> tuple[datetime, tuple[str, ...]]:
        """When it was measured, as `time_of` has it."""
        return time_of(self.path, self.stated, *texts)


def content_of(path: Path, stated: Stated) -> Content:
    """The content of a file; raises BadInput where it can't be read."""
    try:
        data = read_limited(path, _LARGEST)
    except OSError as error:
        raise BadInput(f"{path}: can't be read ({error.strerror})", "check the path") from None
    return Content(path, data, stated, str(path))


def time_of(path: Path, stated: Stated, *texts: str) -> tuple[datetime, tuple[str, ...]]:
    """When a file was measured: the first time that it states, else what the user states, else its
    modification, with a note."""
    for text in filter(None, texts):
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            raise BadInput(f"{path}: {text!r} is not a time", "check the file") from None
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC), ()
    if stated.time is not None:
        return stated.time, ()
    modified = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    return modified, (f"{path}: states no time; that of its last modification taken",)


def medians_of(samples: Sequence[float]) -> tuple[float, ...]:
    """The medians of as many blocks as `BLOCKS`, of samples in the order measured."""
    count = min(BLOCKS, len(samples))
    edges = [len(samples) * number // count for number in range(count + 1)]
    return tuple(statistics.median(samples[start:end]) for start, end in itertools.pairwise(edges))


def commit_of(commit: str, stated: Stated, *, dirty: bool) -> str:
    """A file's commit, else the one that the user states."""
    return f"{commit}{DIRTY}" if commit and dirty else commit or stated.commit


def clock_policy(gpu: Device) -> str:
    """The settings that decide the clock: they are no readings."""
    words = []
    if gpu.sm_clock_application:
        words.append(f"application clock {gpu.sm_clock_application / 1e6:.0f} MHz")
    if gpu.power_limit:
        words.append(f"power limit {gpu.power_limit:.0f} W")
    return ", ".join(words)
