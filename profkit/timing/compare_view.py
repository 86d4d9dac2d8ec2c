"""Two saved results side by side: terminal, Markdown and `profkit.compare/1` JSON."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group
from rich.text import Text

from profkit.core.typed_file import File, Model, encode, part
from profkit.core.version import __version__
from profkit.timing.latency import SavedPair
from profkit.timing.latency_view import classic_line, doubts, latency_words, times_as_fast
from profkit.timing.results import Classic, Margin
from profkit.timing.verdict import Reason
from profkit.ui.markdown import escape
from profkit.ui.terminal import rendered
from profkit.ui.text import literal, percent, plural

_IN_TURNS = "measured one after the other, not in turns: "


class SavedVerdict(Model, frozen=True, kw_only=True):
    """What two saved latencies say of `b` against `a`.

    `medians` are in seconds. `speedup` is the median of a over that of b; `low` to `high` holds for
    these two runs. `margin` is null without a known A/A `floor`, a share. `obstacles` is what
    differs in how they were measured, `notes` are versions that differ, `doubts` are of either.
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
    notes: tuple[str, ...]
    classic: Classic
    doubts: tuple[str, ...]


class CompareFile(File, frozen=True, kw_only=True, tag="profkit.compare/1"):
    """Verdicts on saved latencies; `only` has the labels that one of the two files alone has."""

    profkit: str
    files: tuple[str, str]
    pairs: tuple[SavedVerdict, ...]
    only: tuple[tuple[str, ...], tuple[str, ...]]


def saved_text(
    pairs: Sequence[SavedPair],
    names: tuple[str, str],
    format: str,
    *,
    only: tuple[Sequence[str], Sequence[str]] = ((), ()),
    to_file: bool,
) -> str:
    """The pairs as "terminal", "markdown" or "json".

    `names` are those of the two files, `only` the labels that only the one or the other has.
    """
    title = f"{literal(names[0])} → {literal(names[1])}"
    if format == "json":
        first, second = map(tuple, only)
        rows = tuple(map(_pair, pairs))
        file = CompareFile(profkit=__version__, files=names, pairs=rows, only=(first, second))
        return encode(file, dense=False)
    blocks = [_lines(pair) for pair in pairs]
    left = [
        literal(f"only in {name}: {', '.join(labels)}")
        for name, labels in zip(names, only, strict=True)
        if labels
    ]
    if format == "markdown":
        parts = [f"# {escape(title)}"]
        for heading, *lines in blocks:
            parts += ["", f"**{escape(heading)}**", "", *(f"- {escape(line)}" for line in lines)]
        for line in left:
            parts += ["", escape(line)]
        return "\n".join(parts) + "\n"
    texts = [Text(title, "bold")]
    for heading, *lines in blocks:
        texts += [Text(), Text(heading), *(Text(f"  {line}", "dim") for line in lines)]
    texts += [Text(), *map(Text, left)] if left else []
    return rendered(Group(*texts), to_file=to_file)


def _lines(pair: SavedPair) -> list[str]:
    within = pair.within
    label = pair.a.label if pair.a.label == pair.b.label else f"{pair.a.label} → {pair.b.label}"
    verdict = "INCOMPARABLE" if pair.open and pair.obstacles else within.verdict.name
    times = f"{latency_words(pair.a)} → {latency_words(pair.b)}"
    lines = [f"{literal(label)}  {times}   {_ratio(pair)}  {verdict}"]
    lines += [f"measured differently: {literal(what)}" for what in pair.obstacles]
    lines += [_standing(pair), classic_line(pair.classic)]
    lines += [f"measured with other versions: {literal(what)}" for what in pair.notes]
    lines += [f"{name} {doubt}" for name, doubt in _doubts(pair)]
    if pair.open:
        lines.append("to settle it: time both in turns, profkit time --compare or --against")
    return lines


def _doubts(pair: SavedPair) -> list[tuple[str, str]]:
    sides = (("before:", pair.a), ("after:", pair.b))
    return [(name, doubt) for name, side in sides for doubt in doubts([side])]


def _ratio(pair: SavedPair) -> str:
    within = pair.within
    if within.low is None or within.high is None:
        return f"{within.speedup:.2f}x as fast, no interval"
    return times_as_fast(within.speedup, within.low, within.high)


def _standing(pair: SavedPair) -> str:
    within = pair.within
    if within.reason is Reason.TOO_FEW_SAMPLES:
        fewest = min(pair.a.summary.n, pair.b.summary.n)
        return f"{_IN_TURNS}{plural(fewest, 'sample')} on a side: too few for a verdict"
    if within.reason is Reason.NO_INTERVAL:
        return f"{_IN_TURNS}a median without an interval allows no verdict"
    if within.margin is None:
        return (
            f"{_IN_TURNS}the interval holds for these two runs only, and says nothing of the "
            "builds while this GPU's A/A floor is unknown (profkit calibrate, or --floor)"
        )
    return (
        f"{_IN_TURNS}{within.reason.value}; margin {percent(within.margin.value)} "
        f"({within.margin.source.value})"
    )


def _pair(pair: SavedPair) -> SavedVerdict:
    within = pair.within
    return SavedVerdict(
        a=pair.a.label,
        b=pair.b.label,
        verdict="incomparable" if pair.open and pair.obstacles else within.verdict.value,
        reason=within.reason.value,
        medians=(pair.a.summary.median, pair.b.summary.median),
        **part(within, "speedup", "low", "high", "margin"),
        **part(pair, "floor", "obstacles", "notes", "classic"),
        doubts=tuple(f"{name} {doubt}" for name, doubt in _doubts(pair)),
    )
