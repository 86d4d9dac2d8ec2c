"""Series by words: how they are named, and which of them words name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple

from profkit.core.errors import NothingMatches, UsageError
from profkit.history.record import Series
from profkit.ui.text import literal

_LISTED = 5  # series in an error, chosen: it stays readable


def label(series: Series) -> str:
    """A series in a line: its target and variant, its shape, GPU and branch, as far as known."""
    first = ":".join(filter(None, (series.target, series.variant)))
    return literal("  ".join(filter(None, (first, series.shape, series.gpu_model, series.branch))))


def matching(words: Sequence[str], every: Iterable[Series]) -> list[Series]:
    """The series that all words name: each a whole field of it, else a part of its label.

    Raises NothingMatches where there is none.
    """
    rest = list(every)
    for word in words:
        whole = [series for series in rest if word in astuple(series)]
        part = word.casefold()
        fitting = whole or [series for series in rest if part in label(series).casefold()]
        if not fitting:
            raise NothingMatches(f"no series has {word!r}", "see `profkit history list`")
        rest = fitting
    return rest


def named(words: Sequence[str], every: Iterable[Series]) -> Series:
    """The only series that words name; raises UsageError where there are several."""
    rest = matching(words, every)
    if len(rest) != 1:
        names = "; ".join(map(label, rest[:_LISTED])) + ("; ..." if len(rest) > _LISTED else "")
        raise UsageError(f"{len(rest)} series: {names}", "add words that only one of them has")
    return rest[0]
