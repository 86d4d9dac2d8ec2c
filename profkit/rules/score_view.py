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

_SUMMARY = ("", "First", "In top three", "Mean error", "Largest error", "False alarms")
_PAIRS = ("Pair", "Category", "Gave", "Told", "Error", "Rank", "ncu's", "Error", "Rank")
_WORDS = {"", "Pair", "Category"}


def score_view(score: Score) -> RenderableType:
    """The figures, a row a pair, and what was missed and why."""
    parts: list[RenderableType] = [Text(_headline(score), "bold")]
    for grid in _grids(score):
        parts += [Text(), Text(grid.title, "bold"), _table(grid)]
        if grid.note:
            parts.append(Text(grid.note, "dim"))
    rows = [*_misses(score), *_alarms(score.pairs)]
    if rows:
        parts += [Text(), Text("Misses and false alarms", "bold")]
        parts += [rows_of([(literal(name), text)], 0) for name, text in rows]
    return Group(*parts)


def score_markdown(score: Score, note: str) -> str:
    """The page docs/accuracy.md."""
    lines = [shipped_text("profkit.rules", "accuracy.md"), f"{escape(_headline(score))}."]
    lines += ["", escape(note)] if note else []
    for grid in _grids(score):
        lines += ["", *table_of(grid)]
    misses, alarms = (
        [f"- {code(name)}: {escape(text)}" for name, text in rows]
        for rows in (_misses(score), _alarms(score.pairs))
    )
    count = f"{len(misses)} of {score.summary.defects}"
    criterion = f"Not first, or an error above {_share(LARGE_ERROR)}: {count}.\n"
    lines += ["", "### Misses", "", criterion, *misses]
    lines += ["", "### False alarms", "", *(alarms or ["None."])]
    return "\n".join(lines) + "\n"


def _headline(score: Score) -> str:
    controls = sum(pair.category is None for pair in score.pairs)
    gpus = ", ".join(sorted({literal(pair.gpu) for pair in score.pairs}))
    counts = f"{plural(score.summary.defects, 'defect')}, {plural(controls, 'control')}"
    return f"{counts}, recorded on {gpus}"


def _grids(score: Score) -> list[Grid]:
    parts = (
        ("All pairs", score.summary, ""),
        ("Design half", score.design, " The others, and controls."),
        ("Held-out half", score.held_out, " The defects that held_out.yaml names."),
    )
    grids = [_summary(title, part, extent) for title, part, extent in parts if part]
    return [*grids, _pairs_grid(score.pairs)]


def _summary(title: str, part: Part, extent: str) -> Grid:
    judges = {"profkit": part, "ncu's rules": part.ncu, "no gain": part.no_gain}
    rows = tuple(
        (name, *(_share(getattr(accuracy, figure)) for figure in Accuracy.__struct_fields__))
        for name, accuracy in judges.items()
    )
    note = (
        f"{plural(part.defects, 'defect')}; {plural(part.nothing_to_gain, 'report')} with nothing "
        f"to gain.{extent} Range holds the gain: {part.within_range} of {part.estimated}, "
        f"{part.above_range} gained more; {part.first_without_estimate} of those named first have "
        "no estimate."
    )
    return Grid(title, _SUMMARY, rows, note)


def _share(value: float) -> str:
    return "n/a" if math.isnan(value) else f"{value:.0%}"


def _pairs_grid(pairs: Sequence[PairScore]) -> Grid:
    several = len({pair.gpu for pair in pairs}) > 1
    note = "Gave: by the fix. Told: by profkit, then by ncu's rules, each with its error and rank."
    if untimed := sum(pair.measured == "profiled" for pair in pairs):
        count = plural(untimed, "pair")
        note += f" ~: by the durations in the reports, {count} had no latency.json."
    return Grid("Pairs", _PAIRS, tuple(_row(pair, several=several) for pair in pairs), note)


def _row(pair: PairScore, *, several: bool) -> tuple[str, ...]:
    name = literal(f"{pair.name} ({pair.gpu})" if several else pair.name)
    if pair.category is None:
        return (name, "none (control)", *[""] * (len(_PAIRS) - 2))
    gave = f"{'' if pair.measured == 'timed' else '~'}{words.factor(pair.achieved)}"
    judged = (
        (words.factor(judge.estimated), _share(judge.error), str(judge.rank or "-"))
        for judge in (pair, pair.ncu)
    )
    return (name, pair.category, gave, *(cell for cells in judged for cell in cells))


def _misses(score: Score) -> list[tuple[str, str]]:
    rows = []
    for pair in score.misses:
        rank = f"rank {pair.rank}" if pair.rank else f"{pair.category} is not named"
        estimated, gave = words.factor(pair.estimated), words.factor(pair.achieved)
        why = pair.why or "not yet explained"
        rows.append((pair.name, f"{rank}, told {estimated}, gave {gave}. {why}"))
    return rows


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
