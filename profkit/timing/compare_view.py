"""Comparisons of two saved results: their file, `profkit.compare/1`, and its document."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.core.typed_file import File, Model, part
from profkit.core.version import __version__
from profkit.timing.latency import SavedPair
from profkit.timing.latency_view import (
    WITHIN_RUN_NOTE,
    classic_line,
    doubts,
    latency_words,
    margin_words,
    times_as_fast,
)
from profkit.timing.results import Classic, Margin, Source, Verdict
from profkit.timing.verdict import Reason, reason_words
from profkit.ui import document as doc
from profkit.ui.text import percent, plural

_SETTLE = "for a verdict: time both interleaved, profkit time --compare or --against"
_NOT_INTERLEAVED = "not interleaved: "


class SavedVerdict(Model, frozen=True, kw_only=True):
    """The comparison of two saved latencies: `b` against `a`.

    `medians` are in seconds. `speedup` is the median of a over that of b; `low` to `high` holds for
    these two runs, at no confidence level. `margin` is null without a known A/A `floor`, a share.
    `obstacles` are differences in how they were measured, which a `forced` verdict ignores;
    `notes` are versions that differ, `doubts` warnings on either.
    """

    a: str
    b: str
    verdict: str
    reason: str
    medians: tuple[float, float]
    speedup: float
    low: float | None
    high: float | None
    margin: Margin | None
    floor: float | None
    obstacles: tuple[str, ...]
    forced: bool
    notes: tuple[str, ...]
    classic: Classic
    doubts: tuple[str, ...]


class CompareFile(File, frozen=True, kw_only=True, tag="profkit.compare/1"):
    """Verdicts on saved latencies; `only` has the labels that are in one of the two files alone."""

    profkit: str
    files: tuple[str, str]
    pairs: tuple[SavedVerdict, ...]
    only: tuple[tuple[str, ...], tuple[str, ...]]


def compare_result(
    pairs: Sequence[SavedPair],
    names: tuple[str, str],
    only: tuple[tuple[str, ...], tuple[str, ...]],
) -> CompareFile:
    """The pairs as their file; `names` are those of the two files."""
    return CompareFile(profkit=__version__, files=names, pairs=tuple(map(_pair, pairs)), only=only)


def compare_document(pairs: Sequence[SavedPair], file: CompareFile) -> doc.Document:
    """Each pair with its evidence, and the labels that are in one file alone."""
    title = " → ".join(file.files)
    blocks: list[doc.Block] = [doc.Heading(title, 1)]
    for pair, row in zip(pairs, file.pairs, strict=True):
        heading, *lines = _lines(pair, row)
        evidence = tuple(map(doc.quiet, lines))
        blocks += [doc.Lines((doc.strong(heading),), gap=True), doc.Lines(evidence, indent=2)]
    sides = zip(file.files, file.only, strict=True)
    left = [f"only in {name}: {', '.join(labels)}" for name, labels in sides if labels]
    intervals = [side.interval for pair in pairs for side in (pair.a, pair.b)]
    if any(interval and interval.level is None for interval in intervals):
        left.append(WITHIN_RUN_NOTE)
    blocks += [doc.Lines(tuple(left), gap=True)] if left else []
    return doc.Document(title, tuple(blocks))


def _lines(pair: SavedPair, row: SavedVerdict) -> list[str]:
    within, a, b = pair.within, pair.a, pair.b
    label = a.label if a.label == b.label else f"{a.label} → {b.label}"
    ratio = f"{within.speedup:.2f}x as fast, no interval"
    if within.low is not None and within.high is not None:
        ratio = times_as_fast(within.speedup, within.low, within.high)
    times = f"{latency_words(a)} → {latency_words(b)}"
    return [
        f"{label}  {times}   {ratio}  {row.verdict.upper()}{_caveats(pair)}",
        *(f"measured differently: {fact}" for fact in pair.obstacles),
        _standing(pair),
        classic_line(
            pair.classic,
            contradicted=pair.open or pair.within.verdict is not Verdict.IMPROVED,
        ),
        *(f"measured with other versions: {fact}" for fact in pair.notes),
        *row.doubts,
        *[_SETTLE] * pair.open,
    ]


def _caveats(pair: SavedPair) -> str:
    """What a verdict lacks: ` (forced, no confidence level)`; "" where there is none."""
    if pair.open:
        return ""
    return " (forced, no confidence level)" if pair.obstacles else " (no confidence level)"


def _standing(pair: SavedPair) -> str:
    within = pair.within
    if within.reason is Reason.TOO_FEW_SAMPLES:
        fewest = min(pair.a.summary.n, pair.b.summary.n)
        return f"{_NOT_INTERLEAVED}{plural(fewest, 'sample')} on a side: too few for a verdict"
    if within.reason is Reason.NO_INTERVAL:
        return f"{_NOT_INTERLEAVED}no verdict without an interval for each median"
    if within.margin is None:
        return (
            f"{_NOT_INTERLEAVED}the interval is valid for these two runs only; a verdict on the "
            "code needs the A/A floor (difference between identical runs) of the GPU used: "
            "profkit calibrate, or --floor"
        )
    margin = f"margin {margin_words(within.margin)}"
    if within.margin.source is not Source.FLOOR and pair.floor is not None:
        margin += f", A/A floor {percent(pair.floor)}"
    return (
        f"{_NOT_INTERLEAVED}{reason_words(within.reason)}; {margin}; the interval of the ratio "
        "spans all ratios of the two medians' intervals"
    )


def _pair(pair: SavedPair) -> SavedVerdict:
    sides = zip(("before:", "after:"), (pair.a, pair.b), pair.claimed, strict=True)
    warnings = (
        f"{name} {doubt}" for name, side, claimed in sides for doubt in doubts([side], claimed)
    )
    is_open = pair.open and pair.obstacles
    return SavedVerdict(
        a=pair.a.label,
        b=pair.b.label,
        verdict="incomparable" if is_open else pair.within.verdict.value,
        medians=(pair.a.summary.median, pair.b.summary.median),
        **part(pair.within, "reason", "speedup", "low", "high", "margin"),
        **part(pair, "floor", "obstacles", "notes", "classic"),
        forced=bool(pair.obstacles) and not pair.open,
        doubts=tuple(warnings),
    )
