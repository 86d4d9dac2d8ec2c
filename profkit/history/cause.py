"""Why a change happened: `diff` of the profiles of its last good and first bad run."""

from __future__ import annotations

from pathlib import Path

from profkit.core.errors import ProfkitError
from profkit.history.record import Point

_SHOWN = 2  # kernels, chosen: those that take most of the change


def cause_of(good: Point, bad: Point) -> tuple[str, ...]:
    """The cause in lines, or a line that says why it is not known."""
    before, after = _profile(good.source), _profile(bad.source)
    if before is None or after is None:
        missing = bad.source if before else good.source
        return (f"cause not known: no profile at {missing}",)
    if before == after:
        return ("cause not known: both runs name one profile",)
    try:
        return _compared(before, after)
    except ProfkitError as error:
        return (f"cause not known: {error.message}",)


def _profile(source: str) -> Path | None:
    """The run that a source is, or is the latencies of, where it still has a report."""
    from profkit.analysis.run_files import LATENCY, SUFFIXES

    path = Path(source)
    folder = path.parent if path.name == LATENCY else path
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
        return (f"cause not known: {change.obstacle_words}",)
    lines: list[str] = []
    for kernel in change.kernels[:_SHOWN]:
        lines.append(words.headline(kernel))
        if kernel.attribution and (sentence := words.why(kernel.attribution)):
            lines.append(sentence)
    return tuple(lines) or ("cause not known: no kernels in common",)
