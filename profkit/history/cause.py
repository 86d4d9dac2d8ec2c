"""Why a change happened: the comparison of the stored profiles of its last good and first bad run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from profkit.core.errors import ProfkitError
from profkit.history.record import Point

_SHOWN = 2  # kernels, chosen: those that take most of the change


def cause_of(good: Point, bad: Point) -> tuple[str, ...]:
    """The cause in lines, or a line that says why it is unknown."""
    folders = [_profile(point.source) for point in (good, bad)]
    if None in folders:
        missing = [point.source for point, folder in zip((good, bad), folders, strict=True) if folder is None]
        return (f"cause unknown: no profile at {' and '.join(dict.fromkeys(missing))}",)
    if folders[0] == folders[1]:
        return ("cause unknown: both runs name one profile",)
    try:
        return _compared(*(folder for folder in folders if folder))
    except ProfkitError as error:
        return (f"cause unknown: {error.message}",)


def _profile(source: str) -> Path | None:
    """The run that a source is, or is a file of, where it still has a report."""
    from profkit.analysis.run_files import SUFFIXES

    path = Path(source)
    folder = path if path.is_dir() else path.parent
    try:
        has_report = any(file.suffix in SUFFIXES for file in folder.iterdir())
    except OSError:
        return None
    return folder if has_report else None


def _compared(before: Path, after: Path) -> tuple[str, ...]:
    from profkit.comparison import text as words
    from profkit.comparison.reports import diff

    change = diff(before, after)
    if change.refused:
        return (f"cause unknown: {change.obstacle_words}",)
    lines: list[str] = []
    for kernel in change.kernels[:_SHOWN]:
        lines.append(words.headline(kernel))
        if kernel.attribution and (sentence := words.why(kernel.attribution)):
            lines.append(sentence)
    return tuple(lines) or ("cause unknown: no kernels in common",)


def causes(pairs: Sequence[tuple[Point, Point]]) -> list[tuple[str, ...]]:
    """The causes of several changes."""
    return [cause_of(good, bad) for good, bad in pairs]
