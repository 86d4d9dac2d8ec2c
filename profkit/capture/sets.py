"""Sets of ncu sections and metrics, by compute capability (`sets.yaml`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from profkit.core.compute_capability import ComputeCapability, parse_range
from profkit.core.yaml_files import shipped_yaml

NCU_SETS = ("full", "detailed", "basic")
"""Sets of ncu's."""
OWN_SETS = ("scout", "lean")
"""Sets of profkit's."""
AUTO = "auto"
"""Two recordings: scout, and more of the launches that take the time."""


@dataclass(frozen=True)
class CaptureSet:
    """What ncu collects; `passes` are the replay passes of a launch on CC 9.0."""

    sections: tuple[str, ...]
    metrics: tuple[str, ...]
    passes: int

    def __add__(self, other: CaptureSet) -> CaptureSet:
        return CaptureSet(
            tuple(dict.fromkeys((*self.sections, *other.sections))),
            tuple(dict.fromkeys((*self.metrics, *other.metrics))),
            self.passes + other.passes,
        )

    @property
    def words(self) -> list[str]:
        """Options of ncu."""
        words = [word for name in self.sections for word in ("--section", name)]
        return words + (["--metrics", ",".join(self.metrics)] if self.metrics else [])


NOTHING = CaptureSet((), (), 0)


def capture_set(
    name: str, capability: ComputeCapability | None = None, *, by_instruction: bool = True
) -> CaptureSet:
    """A set or addition of `sets.yaml`, for a compute capability; None: what all have.

    `by_instruction` is false for ranges and whole graphs, which have no counts by instruction.
    """
    row = _file()["sets"][name]
    source: Sequence[str] = row.get("source", ()) if by_instruction else ()
    groups = (*row.get("groups", ()), *(() if by_instruction else row.get("without_source", ())))
    metrics = (metric for group in groups for metric in _group_metrics(group, capability))
    sections = (*row.get("sections", ()), *source)
    return CaptureSet(sections, tuple(dict.fromkeys(metrics)), row["passes"])


def passes_of(name: str) -> int:
    """Replay passes of a launch on CC 9.0."""
    passes: int = _file()["sets"][name]["passes"]
    return passes


def _group_metrics(name: str, capability: ComputeCapability | None) -> Iterator[str]:
    group = _file()["groups"][name]
    ranges = map(parse_range, group.get("cc", ()))
    if "cc" not in group or any(capability in span for span in ranges):
        yield from group["metrics"]


@cache
def _file() -> Mapping[str, Any]:
    data: Mapping[str, Any] = shipped_yaml("profkit.capture", "sets.yaml")
    return data
