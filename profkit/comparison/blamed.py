"""Findings that a change introduced, and the lines that they blame as files of a repository."""

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
from profkit.rules.finding import Finding
from profkit.ui.text import literal

WORSE = (Status.new, Status.worsened)


@dataclass(frozen=True)
class Spot:
    """A line of a file: its path from the repository's root, or the file's name alone."""

    file: str
    line: int


@dataclass(frozen=True)
class IntroducedFinding:
    """A finding that a change introduced or worsened, on the kernel at that place."""

    index: int
    kernel: KernelDiff
    change: FindingChange
    item: Finding

    @property
    def message(self) -> str:
        """The kernel, the finding and its estimated speedup, in a line."""
        name = words.name(self.kernel)
        gain = f"; estimated speedup {self.change.speedup_after:.2f}x"
        return literal(f"{name}: {self.item.rule.title}, {words.finding(self.change)}{gain}")


def introduced_findings(diff: Diff) -> Iterator[IntroducedFinding]:
    """The findings of a comparison's kernels that are new or worsened and have an estimated
    speedup."""
    for index, kernel in enumerate(diff.kernels):
        for change in kernel.findings:
            if change.status in WORSE and change.after and change.speedup_after >= WORTH:
                yield IntroducedFinding(index, kernel, change, change.after)


@dataclass(frozen=True)
class Sources:
    """Files of a repository, named from its folder; `with_host` keeps the paths of others."""

    root: Path
    with_host: bool

    def item_spot(self, item: Finding) -> Spot | None:
        """The line that a finding blames first; None where no line is known."""
        place = next((place for place in item.places if place.file and place.line), None)
        return Spot(self.named(place.file), place.line) if place else None

    def failure_spot(self, failure: Failure, diff: Diff) -> Spot | None:
        """The line that the weightiest finding on a failure's kernel blames, a new one first."""
        if failure.index is None:
            return None
        changes = diff.kernels[failure.index].findings
        ordered = sorted(changes, key=lambda change: change.status not in WORSE)
        spots = (self.item_spot(change.after) for change in ordered if change.after)
        return next(filter(None, spots), None)

    def named(self, path: str) -> str:
        """A path that a compiler saw, as one below the root: by the longest end that is there.

        Where nothing is there, the file's name, or the path with the host.
        """
        posix = PurePosixPath(path.replace("\\", "/"))
        parts = [part for part in posix.parts if part not in {"/", ".", ".."}]
        for start in range(len(parts)):
            end = Path(*parts[start:])
            with suppress(OSError):  # a name too long, for example
                if (self.root / end).is_file():
                    return end.as_posix()
        return file_name(posix.as_posix(), with_host=self.with_host)
