"""How well findings hold, as a terminal and a page show it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from profkit.core.text_files import shipped_text
from profkit.rules import finding_text as words
from profkit.rules.score import LARGE_ERROR, Accuracy, PairScore, Part, Score
from profkit.ui.markdown import code, escape, table_of
from profkit.ui.terminal import rows_of
from profkit.ui.text import literal, plural
from profkit.ui.view import Grid

_JUDGES = ("profkit", "ncu's rules", "no gain")
_SUMMARY = ("", "First", "In top three", "Mean error", "Largest error", "False alarms")
_PAIRS = ("Pair", "Category", "Gave", "Told", "Error", "Rank", "ncu's", "Error", "Rank")
_WORDS = {"", "Pair", "Category"}
_CONTROL = "none (control)"
_UNNAMED = "-"
_UNEXPLAINED = "not yet explained"


def score_view(found: Score) -> RenderableType:
    """The figures, a row a pair, and what was missed and why."""
    parts: list[RenderableType] = [Text(_headline(found), "bold")]
    for grid in (*_summaries(found), _pairs_grid(found.pairs)):
        parts += [Text(), Text(grid.title, "bold"), _table(grid)]
        if grid.note:
            parts.append(Text(grid.note, "dim"))
    rows = [*_misses(found), *_alarms(found.pairs)]
    if rows:
        parts += [Text(), Text("Misses and false alarms", "bold")]
        parts += [rows_of([(literal(name), told)], 0) for name, told in rows]
    return Group(*parts)


def score_markdown(found: Score, note: str) -> str:
    """The page docs/accuracy.md."""
    lines = [shipped_text("profkit.rules", "accuracy.md"), f"{escape(_headline(found))}."]
    if note:
        lines += ["", escape(note)]
    for grid in (*_summaries(found), _pairs_grid(found.pairs)):
        lines += ["", *table_of(grid)]
    lines += ["", "### Misses", "", _what_misses_are(found)]
    lines += [*_listed(_misses(found)), "", "### False alarms", ""]
    alarms = _alarms(found.pairs)
    lines += _listed(alarms) if alarms else ["None."]
    return "\n".join(lines) + "\n"


def _listed(rows: Iterable[tuple[str, str]]) -> list[str]:
    return [f"- {code(name)}: {escape(told)}" for name, told in rows]


def _headline(found: Score) -> str:
    controls = sum(pair.category is None for pair in found.pairs)
    gpus = ", ".join(sorted({literal(pair.gpu) for pair in found.pairs}))
    counts = f"{plural(found.summary.defects, 'defect')}, {plural(controls, 'control')}"
    return f"{counts}, recorded on {gpus}"


def _summaries(found: Score) -> list[Grid]:
    parts = (
        ("All pairs", found.summary, ""),
        ("Design half", found.design, " The others, and controls."),
        ("Held-out half", found.held_out, " The defects that held_out.yaml names."),
    )
    return [_summary(title, part, told) for title, part, told in parts if part]


def _summary(title: str, part: Part, told: str) -> Grid:
    rows = tuple(
        (judge, *_figures(accuracy))
        for judge, accuracy in zip(_JUDGES, (part, part.ncu, part.no_gain), strict=True)
    )
    note = (
        f"{plural(part.defects, 'defect')}; {plural(part.nothing_to_gain, 'report')} with nothing "
        f"to gain.{told} Range holds the gain: {part.within_range} of {part.estimated}, "
        f"{part.above_range} gained more; {part.first_without_estimate} of those named first have "
        "no estimate."
    )
    return Grid(title, _SUMMARY, rows, note)


def _figures(accuracy: Accuracy) -> tuple[str, ...]:
    values = (accuracy.top1, accuracy.top3, accuracy.mean_error, accuracy.max_error)
    return tuple(map(_share, (*values, accuracy.false_alarms)))


def _share(value: float) -> str:
    return "n/a" if math.isnan(value) else f"{value:.0%}"


def _pairs_grid(pairs: Sequence[PairScore]) -> Grid:
    several = len({pair.gpu for pair in pairs}) > 1
    rows = tuple(_row(pair, several=several) for pair in pairs)
    untimed = sum(pair.measured == "profiled" for pair in pairs)
    note = "Gave: by the fix. Told: by profkit, then by ncu's rules, each with its error and rank."
    if untimed:
        note += (
            f" ~: by the durations in the reports, {plural(untimed, 'pair')} had no latency.json."
        )
    return Grid("Pairs", _PAIRS, rows, note)


def _row(pair: PairScore, *, several: bool) -> tuple[str, ...]:
    name = literal(f"{pair.name} ({pair.gpu})" if several else pair.name)
    if pair.category is None:
        return (name, _CONTROL, *[""] * (len(_PAIRS) - 2))
    gave = f"{'' if pair.measured == 'timed' else '~'}{words.factor(pair.achieved)}"
    judged = (
        (words.factor(one.estimated), _share(one.error), str(one.rank or _UNNAMED))
        for one in (pair, pair.ncu)
    )
    return (name, pair.category, gave, *(cell for cells in judged for cell in cells))


def _what_misses_are(found: Score) -> str:
    missed = f"Not first, or an error above {_share(LARGE_ERROR)}"
    return f"{missed}: {len(found.misses)} of {found.summary.defects}.\n"


def _misses(found: Score) -> list[tuple[str, str]]:
    return [(pair.name, f"{_missed(pair)}. {pair.why or _UNEXPLAINED}") for pair in found.misses]


def _missed(pair: PairScore) -> str:
    rank = f"rank {pair.rank}" if pair.rank else f"{pair.category} is not named"
    told, gave = words.factor(pair.estimated), words.factor(pair.achieved)
    return f"{rank}, told {told}, gave {gave}"


def _alarms(pairs: Iterable[PairScore]) -> list[tuple[str, str]]:
    return [
        (
            pair.name,
            f"{alarm.category} promises {words.factor(alarm.promised)} "
            f"{'after the fix' if pair.category else 'on a control'}",
        )
        for pair in pairs
        for alarm in pair.alarms
    ]


def _table(grid: Grid) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in grid.columns:
        left = name in _WORDS
        table.add_column(
            name, justify="left" if left else "right", overflow="fold", no_wrap=not left
        )
    for row in grid.rows:
        table.add_row(*map(Text, row))
    return table
