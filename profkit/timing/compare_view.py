"""Two saved results side by side: terminal, Markdown and `profkit.compare/1` JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rich.console import Group
from rich.text import Text

from profkit.core.version import __version__
from profkit.timing.latency import SavedPair
from profkit.timing.latency_view import classic_line, doubts, latency_words, times_as_fast
from profkit.timing.verdict import Reason
from profkit.ui.markdown import escape
from profkit.ui.terminal import rendered
from profkit.ui.text import literal, percent, plural

SCHEMA = "profkit.compare/1"
_IN_TURNS = "measured one after the other, not in turns: "


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
        return _json(pairs, names, only)
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


def _json(
    pairs: Sequence[SavedPair],
    names: tuple[str, str],
    only: tuple[Sequence[str], Sequence[str]],
) -> str:
    document = {
        "schema": SCHEMA,
        "profkit": __version__,
        "files": list(names),
        "pairs": [_pair(pair) for pair in pairs],
        "only": [list(labels) for labels in only],
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _pair(pair: SavedPair) -> dict[str, Any]:
    within = pair.within
    margin = within.margin
    return {
        "a": pair.a.label,
        "b": pair.b.label,
        "verdict": "incomparable" if pair.open and pair.obstacles else within.verdict.value,
        "reason": within.reason.value,
        "medians": [pair.a.summary.median, pair.b.summary.median],
        "speedup": within.speedup,
        "low": within.low,
        "high": within.high,
        "margin": None
        if margin is None
        else {"value": margin.value, "source": margin.source.value},
        "floor": pair.floor,
        "obstacles": list(pair.obstacles),
        "notes": list(pair.notes),
        "classic": {
            "delta": pair.classic.delta.value,
            "separation": pair.classic.delta.separation.value,
            "p_value": pair.classic.delta.p_value,
            "apart": pair.classic.apart,
            "speedup": pair.classic.speedup,
            "claimable": pair.classic.claimable,
        },
        "doubts": [f"{name} {doubt}" for name, doubt in _doubts(pair)],
    }
