"""Findings that a change brought, and the lines that they blame as files of a repository."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from profkit.comparison import text as words
from profkit.comparison.comparison import Diff, KernelDiff
from profkit.comparison.finding_changes import WORTH, FindingChange, Status
from profkit.comparison.gates import Failure
from profkit.report.names import file_name
from profkit.report.source_lines import Place
from profkit.rules.checklist import Item
from profkit.ui.text import literal

WORSE = (Status.new, Status.heavier)


@dataclass(frozen=True)
class Spot:
    """A line of a file: its path from the repository's root, or the file's name alone."""

    file: str
    line: int


@dataclass(frozen=True)
class Brought:
    """A finding that a change brought or made heavier, on the kernel at that place."""

    at: int
    kernel: KernelDiff
    change: FindingChange
    item: Item

    @property
    def message(self) -> str:
        """The kernel, the finding and what a fix would give, in a line."""
        name = words.name(self.kernel)
        gain = f"; its fix would give {self.change.promises:.2f}x"
        return literal(f"{name}: {self.item.rule.title}, {words.finding(self.change)}{gain}")


def brought(diff: Diff) -> Iterator[Brought]:
    """The findings of a comparison's kernels that are new or heavier and promise time."""
    for at, kernel in enumerate(diff.kernels):
        for change in kernel.findings:
            if change.status in WORSE and change.after and change.promises >= WORTH:
                yield Brought(at, kernel, change, change.after)


def spot(item: Item, root: Path, *, with_host: bool) -> Spot | None:
    """The line that a finding blames first; None where no line is known."""
    lines = (place for place in item.places if place.file and place.line)
    return next((_spot(place, root, with_host=with_host) for place in lines), None)


def spot_of(failure: Failure, diff: Diff, root: Path, *, with_host: bool) -> Spot | None:
    """The line that the weightiest finding on a failure's kernel blames, those brought first."""
    if failure.at < 0:
        return None
    changes = diff.kernels[failure.at].findings
    ordered = sorted(changes, key=lambda one: one.status not in WORSE)
    found = (spot(one.after, root, with_host=with_host) for one in ordered if one.after)
    return next((one for one in found if one), None)


def in_repository(path: str, root: Path, *, with_host: bool) -> str:
    """A path that a compiler saw, as one below `root`: by the longest end of it that is there.

    Where nothing is there, the file's name; `with_host` keeps the path then.
    """
    posix = PurePosixPath(path.replace("\\", "/"))
    parts = [part for part in posix.parts if part not in {"/", ".", ".."}]
    for at in range(len(parts)):
        end = Path(*parts[at:])
        with suppress(OSError):  # too long a name, for one
            if (root / end).is_file():
                return end.as_posix()
    return file_name(posix.as_posix(), with_host=with_host)


def _spot(place: Place, root: Path, *, with_host: bool) -> Spot:
    return Spot(in_repository(place.file, root, with_host=with_host), place.line)
