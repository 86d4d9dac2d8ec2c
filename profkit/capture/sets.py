"""Sets of ncu sections and metrics, by compute capability (`sets.yaml`)."""

from __future__ import annotations

from functools import cache

from msgspec import Struct

from profkit.core.compute_capability import ComputeCapability, parse_range
from profkit.core.typed_file import convert
from profkit.core.yaml_files import shipped_yaml

NCU_SETS = ("full", "detailed", "basic")
"""Sets of ncu's."""
OWN_SETS = ("scout", "lean")
"""Sets of profkit's."""
AUTO = "auto"
"""Two recordings: scout, and more of the launches that take the time."""


class CaptureSet(Struct, frozen=True):
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
    row = _file().sets[name]
    sections = row.sections + (row.source if by_instruction else ())
    groups = row.groups + (() if by_instruction else row.without_source)
    metrics = dict.fromkeys(
        metric
        for group in map(_file().groups.__getitem__, groups)
        if not group.cc or any(capability in parse_range(span) for span in group.cc)
        for metric in group.metrics
    )
    return CaptureSet(sections, tuple(metrics), row.passes)


def passes_of(name: str) -> int:
    """Replay passes of a launch on CC 9.0."""
    return _file().sets[name].passes


class _Group(Struct, frozen=True):
    metrics: tuple[str, ...]
    cc: tuple[str, ...] = ()


class _Set(Struct, frozen=True):
    passes: int
    sections: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    without_source: tuple[str, ...] = ()


class _Sets(Struct, frozen=True):
    groups: dict[str, _Group]
    sets: dict[str, _Set]


@cache
def _file() -> _Sets:
    return convert(shipped_yaml("profkit.capture", "sets.yaml"), _Sets)
