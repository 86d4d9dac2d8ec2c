"""Comparisons as they are to be written, whatever the format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from profkit.comparison.comparison import Diff
from profkit.comparison.gates import Failure


@dataclass(frozen=True)
class Judged:
    """A comparison under its label, with the gates that it failed."""

    label: str
    diff: Diff
    failures: Sequence[Failure]


@dataclass(frozen=True)
class Document:
    """Comparisons; `left_out` are the sides and names of reports that only one side has.

    `top` kernels (0: all) are shown in detail, small changes too if `show_all`; paths are whole
    `with_host`.
    """

    comparisons: Sequence[Judged]
    top: int
    show_all: bool
    with_host: bool
    left_out: Sequence[tuple[str, str]] = ()
