"""Sets of ncu sections and metrics, by compute capability (`sets.yaml`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from profkit.core.yaml_files import shipped_yaml

NCU_SETS = ("full", "detailed", "basic")
"""Sets of ncu's."""
OWN_SETS = ("scout", "lean")
"""Sets of profkit's."""
AUTO = "auto"
"""Two recordings: scout, and more of the launches that take the time."""

Capability = tuple[int, int]
_NEWEST: Capability = (99, 9)


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
    name: str, capability: Capability | None = None, *, by_instruction: bool = True
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
    """Replay passes of a launch on CC 9.0; those of full for a file of sections and metrics."""
    sets = _file()["sets"]
    passes: int = sets.get(name, sets["full"])["passes"]
    return passes


def _group_metrics(name: str, capability: Capability | None) -> Iterator[str]:
    group = _file()["groups"][name]
    spans = [_span(text) for text in group.get("cc", ())]
    here = any(low <= capability <= high for low, high in spans) if capability else False
    if here or not spans:
        yield from group["metrics"]


def _span(text: str) -> tuple[Capability, Capability]:
    """A range of compute capabilities: `9.0`, `8.0-8.9` or `10.0-` (and newer)."""
    low, dash, high = text.partition("-")
    return _parsed(low), (_parsed(high) if high else _NEWEST) if dash else _parsed(low)


def _parsed(text: str) -> Capability:
    major, _, minor = text.partition(".")
    return int(major), int(minor)


@cache
def _file() -> Mapping[str, Any]:
    data: Mapping[str, Any] = shipped_yaml("profkit.capture", "sets.yaml")
    return data
