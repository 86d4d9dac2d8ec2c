"""The document of a check of a history."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from profkit.comparison.text import faster
from profkit.history.changes import NAMES, Change, Checked, Kind
from profkit.history.check import CheckFile, size_words
from profkit.history.record import Series, short_commit
from profkit.history.steps import FEWEST, LEAST
from profkit.ui import document as doc
from profkit.ui.text import literal, number, percent, plural, shorten

MARKER = "<!-- profkit-history-check -->"
"""The first line of the Markdown, by which a bot finds its comment again."""
_MOVED = 0.1  # of the first run, chosen: three times what recorded series scatter at most
_LONGEST = 40  # characters of a series' name, chosen: a row then fits 100 columns


def check_document(check: CheckFile, top: int) -> doc.Document:
    """The gates that fail, the news in detail, what was not checked, then the series; `top` of each
    (0: all)."""
    runs = sum(each.runs for each in check.series)
    checked = f"{plural(len(check.series), 'series')}, {plural(runs, 'run')}"
    blocks: list[doc.Block] = [doc.Heading("Performance history", 1, checked)]
    if check.failed:
        failed = (doc.in_style(line, doc.Style.bad) for line in _failed(check))
        blocks.append(doc.Lines(tuple(failed)))
    blocks.append(doc.Lines((_news(check),)))
    for series, change in check.news[: top or None]:
        title = f"{NAMES[change.kind].upper()}  {series.label}"
        times = f"{number(change.before, 's')} → {number(change.after, 's')}"
        lines = (f"{size_words(change)}: {times}", *_details(change))
        blocks += [doc.Heading(doc.in_style(title, _style(change)), 3), doc.Lines(lines, indent=2)]
    if top and (left := len(check.news) - top) > 0:
        blocks.append(doc.Lines((f"{plural(left, 'change')} more: --top 0",), gap=True))
    if unchecked := [each for each in check.series if each.reason]:
        blocks.append(doc.Lines(tuple(_unchecked(unchecked, top)), gap=True))
    return doc.Document("History", (*blocks, doc.Fold("Series", (_table(check, top),))), MARKER)


def _failed(check: CheckFile) -> Iterator[str]:
    """The gates that fail, then those that can't be decided: series that were not checked in one
    line."""
    unchecked = {each.series for each in check.series if each.reason}
    open_gates = [failed for failed in check.failed if failed.undecided]
    yield from (f"FAILED  {failed}" for failed in check.failed if not failed.undecided)
    yield from (f"OPEN  {failed}" for failed in open_gates if failed.series not in unchecked)
    for gate in dict.fromkeys(failed.gate for failed in open_gates):
        if count := sum(each.gate == gate and each.series in unchecked for each in open_gates):
            yield f"OPEN  {gate}: {plural(count, 'series')} not checked"


def _news(check: CheckFile) -> str:
    """The count of new changes by kind, of the series that were checked."""
    kinds = [change.kind for _, change in check.news]
    counts = [f"{kinds.count(kind)} {NAMES[kind]}" for kind in Kind if kind in kinds]
    last = f"the last {check.recent} runs" if check.recent > 1 else "the last run"
    checked = sum(not each.reason for each in check.series)
    if not (checked or counts):
        return "Nothing was checked"
    words = ", ".join(counts) or "none"
    return f"Changes detected with {last} of {plural(checked, 'checked series')}: {words}"


def _unchecked(series: Sequence[Checked], top: int) -> Iterator[str]:
    """How many series have too few runs, and those whose last run is far from the first."""
    low, high = (pick(each.runs for each in series) for pick in (min, max))
    runs = f"{low} to {high}" if low < high else f"{low}"
    count = plural(len(series), "series")
    yield f"{count} with too few runs to check ({runs} of {FEWEST + LEAST})"
    moved = [each for each in series if abs(each.last / each.first - 1) > _MOVED]
    moved.sort(key=lambda each: each.first / each.last)
    for each in moved[: top or None]:
        change = f"{number(each.first, 's')} → {number(each.last, 's')}"
        yield f"{each.series.label}: {change}, {faster(each.first / each.last)} than its first run"


def _details(change: Change) -> Iterator[str]:
    """What a change rests on, and its cause."""
    good, bad = change.good, change.bad
    first, last = (f"{datetime.fromisoformat(run.time):%Y-%m-%d %H:%M}" for run in (good, bad))
    measured = f"{first} to {last} UTC"
    if change.kind is not Kind.REAL:
        yield f"runs of {measured}"
    elif good.commit and bad.commit:
        commits = short_commit(bad.commit)
        if good.commit != bad.commit:
            commits = f"({short_commit(good.commit)}, {commits}]"
        yield f"first bad commit in {commits}, runs of {measured}"
    else:
        yield f"between the runs of {measured}, whose commits are not known"
    chance = f"p {change.p_value:.1g}" if change.p_value >= 1e-6 else "p < 1e-6"
    yield f"a single run scatters by {percent(change.scatter)}; {chance}"
    if change.why:
        yield change.why
    yield from map(literal, change.cause)


def _style(change: Change) -> doc.Style:
    if change.kind is not Kind.REAL:
        return doc.Style.warning
    return doc.Style.bad if change.change > 0 else doc.Style.good


def _table(check: CheckFile, top: int) -> doc.Table:
    """Every series with its noise and its last change."""
    shown = check.series[: top or None]
    rows = [_row(checked, name) for checked, name in zip(shown, _names(check.series), strict=False)]
    left = len(check.series) - len(shown)
    note = f"{left:,} more: --top 0" if left else ""
    columns = ("Series", "Runs", "Level", "Scatter", "Last change")
    return doc.Table("", columns, tuple(rows), note)


def _row(checked: Checked, name: Series) -> tuple[str, ...]:
    change = checked.reason or "none"
    if checked.changes:
        last = checked.changes[-1]
        change = f"{size_words(last)}, {NAMES[last.kind]}, {last.bad.time[:10]}"
    return (
        shorten(name.label, _LONGEST),
        f"{checked.runs:,}",
        number(checked.last if checked.reason else checked.level, "s"),
        percent(checked.scatter),
        change,
    )


def _names(checked: Sequence[Checked]) -> list[Series]:
    """The series without the GPU and the branch that all have."""
    every = [each.series for each in checked]
    common = {
        field: ""
        for field in ("gpu_model", "branch")
        if len({getattr(series, field) for series in every}) == 1
    }
    return [replace(series, **common) for series in every]
