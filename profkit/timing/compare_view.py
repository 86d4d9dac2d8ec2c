"""Comparisons of two saved results: their file, `profkit.compare/1`, and its document."""

from collections.abc import Sequence

from profkit.core.typed_file import File
from profkit.core.version import __version__
from profkit.timing import latency_view
from profkit.timing.latency import SavedPair
from profkit.timing.latency_format import SavedVerdict
from profkit.timing.results import Source, Verdict
from profkit.timing.verdict import Reason, reason_words
from profkit.ui import document as doc
from profkit.ui.text import percent, plural

_SETTLE = "for a verdict: time both interleaved, profkit time --compare or --against"
_NOT_INTERLEAVED = "not interleaved: "


class CompareFile(File, frozen=True, kw_only=True, tag="profkit.compare/1"):
    """Verdicts on saved latencies; `only` has the labels that are in one of the two files alone."""

    profkit: str = __version__
    files: tuple[str, str]
    pairs: tuple[SavedVerdict, ...]
    only: tuple[tuple[str, ...], tuple[str, ...]]


def compare_document(pairs: Sequence[SavedPair], file: CompareFile) -> doc.Document:
    """Each pair with its evidence, and the labels that are in one file alone."""
    title = " → ".join(file.files)
    blocks: list[doc.Block] = [doc.Heading(title, 1)]
    for pair in pairs:
        heading, *lines = _lines(pair)
        evidence = tuple(map(doc.quiet, lines))
        blocks += [doc.Lines((doc.strong(heading),), gap=True), doc.Lines(evidence, indent=2)]
    sides = zip(file.files, file.only, strict=True)
    left = [f"only in {name}: {', '.join(labels)}" for name, labels in sides if labels]
    intervals = [side.interval for pair in pairs for side in (pair.a, pair.b)]
    if any(interval and interval.level is None for interval in intervals):
        left.append(latency_view.WITHIN_RUN_NOTE)
    blocks += [doc.Lines(tuple(left), gap=True)] if left else []
    return doc.Document(title, tuple(blocks))


def _lines(pair: SavedPair) -> list[str]:
    row, a, b = pair.result, pair.a, pair.b
    label = a.label if a.label == b.label else f"{a.label} → {b.label}"
    ratio = f"{row.speedup:.2f}x as fast, no interval"
    if row.low is not None and row.high is not None:
        ratio = latency_view.times_as_fast(row.speedup, row.low, row.high)
    times = f"{latency_view.latency_words(a)} → {latency_view.latency_words(b)}"
    return [
        f"{label}  {times}   {ratio}  {row.verdict.upper()}"
        + ("" if pair.open else " (no confidence level)"),
        *(f"measured differently: {fact}" for fact in row.obstacles),
        f"{_NOT_INTERLEAVED}{_standing(pair)}",
        latency_view.classic_line(row.classic, contradicted=row.verdict != Verdict.IMPROVED.value),
        *(f"measured with other versions: {fact}" for fact in row.notes),
        *row.doubts,
        *[_SETTLE] * pair.open,
    ]


def _standing(pair: SavedPair) -> str:
    row = pair.result
    if row.reason == Reason.TOO_FEW_SAMPLES:
        fewest = min(pair.a.summary.n, pair.b.summary.n)
        return f"{plural(fewest, 'sample')} on a side: too few for a verdict"
    if row.reason == Reason.NO_INTERVAL:
        return "no verdict without an interval for each median"
    if row.margin is None:
        return (
            "the interval is valid for these two runs only; a verdict on the "
            "code needs the A/A floor (difference between identical runs) of the GPU used: "
            "profkit calibrate, or --floor"
        )
    margin = f"margin {latency_view.margin_words(row.margin)}"
    if row.margin.source is not Source.FLOOR and row.floor is not None:
        margin += f", A/A floor {percent(row.floor)}"
    return (
        f"{reason_words(row.reason)}; {margin}; the interval of the ratio "
        "spans all ratios of the two medians' intervals"
    )
