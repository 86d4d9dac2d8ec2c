"""How well findings hold, as a terminal and a page show it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from profkit.rules import finding_text as words
from profkit.rules.pairs import PairNotes
from profkit.rules.score import LARGE_ERROR, WORTH_AN_ALARM, Accuracy, PairScore, Part, Score
from profkit.ui.markdown import code, escape, table_of
from profkit.ui.terminal import rows_of
from profkit.ui.text import literal, plural
from profkit.ui.view import Grid

PAGE_HEAD = f"""\
# Accuracy

How well profkit tells what limits a kernel and what mending it gives, measured on pairs: a kernel
with one known defect, and the same kernel mended. Both sides are profiled and timed.
`profkit rules score --pairs DIR` scores pairs of your own.

- **Gave**: what the fix gave, the ratio of the timed medians. **Told**: what the first finding in
  the defect's category promises for the whole report, of the report from before the fix alone.
- **Error**: \\|told - gave\\| / gave. A category that is not named counts as 1.00x told.
- **Rank**: the place of the defect's category among those found, most time saved first.
- **False alarm**: a finding that promises {WORTH_AN_ALARM}x or more where nothing is to gain: in
  any category on a control, a kernel without a defect, and in the mended category after a fix,
  unless `pair.yaml` says that it is what limits then. Counted as a share of such reports.
- **ncu's rules**: what ncu's own rules say in the same reports, by their own estimates weighted by
  the kernel's share of the time. `profkit/rules/ncu_rules.yaml` tells which category each stands
  for; those that name nothing to mend take no place.
- **No gain**: the guess that no fix gives anything.

This page is written by `profkit rules score --format markdown`.
"""

_JUDGES = ("profkit", "ncu's rules", "no gain")
_SUMMARY = ("", "First", "In top three", "Mean error", "Largest error", "False alarms")
_PAIRS = ("Pair", "Category", "Gave", "Told", "Error", "Rank", "ncu's", "Error", "Rank")
_WORDS = {"", "Pair", "Category"}
_CONTROL = "none (control)"
_UNNAMED = "-"
_UNEXPLAINED = "not yet explained"


def score_view(found: Score, notes: PairNotes) -> RenderableType:
    """The figures, a row a pair, and what was missed and why."""
    parts: list[RenderableType] = [Text(_headline(found), "bold")]
    for grid in (*_summaries(found), _pairs_grid(found.pairs)):
        parts += [Text(), Text(grid.title, "bold"), _table(grid)]
        if grid.note:
            parts.append(Text(grid.note, "dim"))
    rows = [*_misses(found, notes), *((name, told) for name, told in _alarms(found.pairs))]
    if rows:
        parts += [Text(), Text("Misses and false alarms", "bold")]
        parts += [rows_of([(literal(name), told)], 0) for name, told in rows]
    return Group(*parts)


def score_markdown(found: Score, notes: PairNotes) -> str:
    """The page docs/accuracy.md."""
    lines = [PAGE_HEAD, f"{escape(_headline(found))}."]
    if notes.note:
        lines += ["", escape(notes.note)]
    for grid in (*_summaries(found), _pairs_grid(found.pairs)):
        lines += ["", *table_of(grid)]
    lines += ["", "### Misses", "", _what_misses_are(found)]
    lines += [*_listed(_misses(found, notes)), "", "### False alarms", ""]
    alarms = _alarms(found.pairs)
    lines += _listed(alarms) if alarms else ["None."]
    return "\n".join(lines) + "\n"


def _listed(rows: Iterable[tuple[str, str]]) -> list[str]:
    return [f"- {code(name)}: {escape(told)}" for name, told in rows]


def _headline(found: Score) -> str:
    controls = sum(pair.category is None for pair in found.pairs)
    gpus = ", ".join(sorted({literal(pair.gpu) for pair in found.pairs}))
    counts = f"{plural(found.whole.defects, 'defect')}, {plural(controls, 'control')}"
    return f"{counts}, recorded on {gpus}"


def _summaries(found: Score) -> list[Grid]:
    grids = [_summary("All pairs", found.whole)]
    if found.design and found.held_out:
        told = "the others, and controls"
        grids.append(_summary("Design half", found.design, told))
        told = "the defects that held_out.yaml names"
        grids.append(_summary("Held-out half", found.held_out, told))
    return grids


def _summary(title: str, part: Part, told: str = "") -> Grid:
    rows = tuple(
        (judge, *_figures(accuracy))
        for judge, accuracy in zip(_JUDGES, (part.ours, part.ncu, part.no_gain), strict=True)
    )
    counts = (
        f"{plural(part.defects, 'defect')}; {plural(part.watched, 'report')} with nothing to gain"
    )
    note = f"{counts}. {told[0].upper()}{told[1:]}." if told else f"{counts}."
    note += f" {_ranges(part)}"
    return Grid(title, _SUMMARY, rows, note)


def _ranges(part: Part) -> str:
    """How often the measured gain lies in the range of an estimate."""
    held = f"range holds the gain: {part.within} of {part.estimated}, {part.above} gained more"
    first = f"{part.named} of those named first have no estimate"
    return f"{held[0].upper()}{held[1:]}; {first}."


def _figures(accuracy: Accuracy) -> tuple[str, ...]:
    values = (accuracy.top1, accuracy.top3, accuracy.mean_error, accuracy.max_error)
    return tuple(map(_share, (*values, accuracy.false_alarms)))


def _share(value: float) -> str:
    return "n/a" if math.isnan(value) else f"{value:.0%}"


def _pairs_grid(pairs: Sequence[PairScore]) -> Grid:
    several = len({pair.gpu for pair in pairs}) > 1
    rows = tuple(_row(pair, several=several) for pair in pairs)
    untimed = sum(pair.category is not None and not pair.timed for pair in pairs)
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
    gave = f"{'' if pair.timed else '~'}{words.factor(pair.achieved)}"
    judged = (
        (words.factor(one.estimated), _share(one.error), str(one.rank or _UNNAMED))
        for one in (pair.ours, pair.ncu)
    )
    return (name, pair.category, gave, *(cell for cells in judged for cell in cells))


def _what_misses_are(found: Score) -> str:
    missed = f"Not first, or an error above {_share(LARGE_ERROR)}"
    return f"{missed}: {len(found.misses)} of {found.whole.defects}.\n"


def _misses(found: Score, notes: PairNotes) -> list[tuple[str, str]]:
    return [
        (pair.name, f"{_missed(pair)}. {notes.why.get(pair.name, _UNEXPLAINED)}")
        for pair in found.misses
    ]


def _missed(pair: PairScore) -> str:
    rank = f"rank {pair.ours.rank}" if pair.ours.rank else f"{pair.category} is not named"
    told, gave = words.factor(pair.ours.estimated), words.factor(pair.achieved)
    return f"{rank}, told {told}, gave {gave}"


def _alarms(pairs: Iterable[PairScore]) -> list[tuple[str, str]]:
    return [
        (pair.name, f"{alarm.category} promises {words.factor(alarm.factor)} {_where(pair)}")
        for pair in pairs
        for alarm in pair.ours.alarms
    ]


def _where(pair: PairScore) -> str:
    return "after the fix" if pair.category else "on a control"


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
