"""A comparison of reports for a terminal."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import zip_longest

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from profkit.comparison import text as words
from profkit.comparison.attribution import Attribution, CauseKind
from profkit.comparison.comparability import can_be_forced
from profkit.comparison.comparison import Diff, KernelDiff
from profkit.comparison.gates import Failure
from profkit.comparison.repeats import Change
from profkit.comparison.tables import SOURCE, moved, why
from profkit.ui.text import bar, cut, literal, plural, shorten
from profkit.ui.view import Grid

_BAR = 12  # chosen: what the other columns leave free of 100
# Rows of other kernels, of removed or added ones, and of findings: chosen for one screen.
_OTHERS, _REMOVED, _FINDINGS = 12, 8, 6
# Columns of source text, at most and at least: chosen for 100 columns; shorter text says nothing.
_LONGEST_LINE, _NARROWEST_LINE = 56, 8
_BARS_FROM = 80  # chosen: a narrower terminal has room for the numbers only
_GAP = 2  # blanks between columns
_NARROWEST = 12  # chosen: a shorter kernel name is hardly recognized
_TOTAL_CAUSES = 4  # chosen: two lines of 100 columns
_FORCE = "--force compares them anyway"
_MATCH = "--match order pairs kernels by launch order, --match FILE by `old name: new name`"
_STYLES = {Change.improved: "green", Change.regressed: "red", Change.same: "dim"}


def diff_view(diff: Diff, title: str, top: int, width: int, *, everything: bool) -> Group:
    """The first `top` kernels (0: all) in detail, the others in a line each.

    Where `width` is short bars go and words are shortened, numbers never.
    """
    parts: list[RenderableType] = [Text(title, "bold")]
    if diff.refused:
        parts += [Text(f"! INCOMPARABLE  {obstacle}", "yellow") for obstacle in diff.obstacles]
        hint = _FORCE if can_be_forced(diff.obstacles) else _MATCH
        return Group(*parts, Text(hint, "dim"), *_others(diff, ()))
    parts += [
        Text(f"! forced despite different {obstacle}", "yellow") for obstacle in diff.obstacles
    ]
    if note := words.collected(diff):
        parts.append(Text(f"! {note}", "yellow"))
    shown = diff.kernels[: top or None]
    if len(diff.kernels) > 1 or diff.removed or diff.added:
        parts += [Text(words.summary(diff)), *_total(diff)]
    if legend := words.legend(diff):
        parts.append(Text(legend, "dim"))
    if diff.variants:
        parts += [Text(), Text("Timed variants with several launches", "bold")]
        timings = (f"{words.variant(timed)}  {words.timing(timed)}" for timed in diff.variants)
        parts += map(_indented, timings)
    for kernel in shown:
        parts += [Text(), *_kernel(kernel, width, everything=everything)]
    parts += _others(diff, shown)
    return Group(*parts)


def failures_view(failed: Sequence[Failure]) -> RenderableType:
    """The gates that failed, a paragraph each."""
    table = Table.grid(padding=(0, _GAP, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for failure in failed:
        table.add_row(Text("FAILED"), Text(str(failure)))
    return table


def _kernel(kernel: KernelDiff, width: int, *, everything: bool) -> list[RenderableType]:
    heading = Text(words.headline(kernel), _STYLES.get(kernel.change, ""))
    parts: list[RenderableType] = [Rule(characters="─", style="dim"), heading]
    parts += [_indented(line) for line in words.evidence(kernel)]
    if kernel.change is Change.incomparable:
        if can_be_forced(kernel.obstacles):
            parts.append(Text(f"  {_FORCE}", "dim"))
        return parts
    if kernel.attribution and (kernel.change is not Change.same or everything):
        parts += _why(kernel.attribution, width)
    parts += _findings(kernel, everything=everything)
    for grid in moved(kernel, show_all=everything):
        parts += _table(grid, width)
    if everything:
        parts += [Text(f"  {words.only_words(quantity)}", "dim") for quantity in kernel.one_sided]
    elif kernel.one_sided:
        count = plural(len(kernel.one_sided), "quantity")
        parts.append(Text(f"  {count} recorded on one side only: --all lists them", "dim"))
    return parts


def _indented(line: str, indent: int = 2) -> RenderableType:
    return Padding(Text(literal(line), "dim"), (0, 0, 0, indent))


def _why(attribution: Attribution, width: int) -> list[RenderableType]:
    grid, causes = why(attribution), words.causes(attribution)[0]
    largest = max((abs(cause.seconds) for cause in causes), default=0.0)
    rows: list[tuple[Text, ...]] = []
    for (name, seconds, before, after), cause in zip_longest(grid.rows, causes):
        style = "" if cause is None else "green" if cause.seconds < 0 else "red"
        row = (
            Text(f"  {name}"),
            Text(seconds, "dim" if cause and cause.kind is CauseKind.rest else style),
            Text(before, "dim"),
            Text(f"→ {after}" if after else "", "dim"),
            Text(bar(abs(cause.seconds) / largest, _BAR) if cause else "", style),
        )
        rows.append(row if width >= _BARS_FROM else row[:-1])
    for cell in rows[-1][:2]:
        cell.stylize("bold")
    change = f"of the change in ncu duration ({words.signed(attribution.change)})"
    reasons = f": {sentence}" if (sentence := words.why(attribution)) else ""
    title = Text.assemble(("Causes  ", "bold"), f"attribution {change}{reasons}")
    parts: list[RenderableType] = [Text(), title, _fitted(rows, width, numbers=(1, 2))]
    if grid.note:
        parts.append(Text(f"  {grid.note[0].lower()}{grid.note[1:]}", "dim"))
    return parts


def _findings(kernel: KernelDiff, *, everything: bool) -> list[RenderableType]:
    findings = [change for change in kernel.findings if everything or change.is_reported]
    if not findings:
        return []
    parts: list[RenderableType] = [Text(), Text("Findings", "bold")]
    for change in findings if everything else findings[:_FINDINGS]:
        parts.append(Padding(Text(words.finding(change)), (0, 0, 0, 2)))
        held = words.estimate_held(change, kernel)
        if held:
            parts.append(_indented(held, 4))
    left = len(findings) - _FINDINGS
    if left > 0 and not everything:
        parts.append(Text(f"  {left} more: --all", "dim"))
    return parts


def _table(grid: Grid, width: int) -> list[RenderableType]:
    """A grid of three columns with its title and note, source text as far as there is room."""
    rows = [(f"  {name}", values, last) for name, values, last in grid.rows]
    longest = width
    if grid.columns[-1] == SOURCE:
        used = sum(max(len(row[column]) for row in rows) + _GAP for column in (0, 1))
        longest = min(width - used, _LONGEST_LINE)
    cells: list[tuple[Text, ...]] = [
        (Text(name), Text(values), Text(cut(last, longest), "dim")) for name, values, last in rows
    ]
    if longest < _NARROWEST_LINE:
        cells = [row[:-1] for row in cells]
    parts: list[RenderableType] = [Text(), Text(grid.title, "bold"), _fitted(cells, width)]
    return [*parts, Text(f"  {grid.note}: --all", "dim")] if grid.note else parts


def _fitted(rows: Sequence[tuple[Text, ...]], width: int, numbers: Collection[int] = ()) -> Table:
    """A table whose first column has the room that the others leave, its words shortened to it;
    the columns of `numbers` are set to the right."""
    others = range(1, len(rows[0]))
    used = sum(max(row[column].cell_len for row in rows) + _GAP for column in others)
    room = max(width - used, _NARROWEST)
    table = Table.grid(padding=(0, _GAP, 0, 0))
    for column in range(len(rows[0])):
        table.add_column(justify="right" if column in numbers else "left", no_wrap=True)
    for name, *values in rows:
        table.add_row(Text(shorten(name.plain, room), name.style, spans=name.spans), *values)
    return table


def _total(diff: Diff) -> list[RenderableType]:
    causes = [cause for cause in diff.total.causes if cause.kind is not CauseKind.rest]
    change = diff.total.after - diff.total.before
    if len(diff.kernels) < 2 or not change:
        return []
    parts = ", ".join(
        f"{words.label(cause)} {words.signed(cause.seconds)}" for cause in causes[:_TOTAL_CAUSES]
    )
    return [Text(f"  change of compared kernels {words.signed(change)}: {parts}", "dim")]


def _others(diff: Diff, shown: Sequence[KernelDiff]) -> list[RenderableType]:
    parts: list[RenderableType] = []
    left = diff.kernels[len(shown) :]
    if left:
        parts += [Text(), Text("Other kernels", "bold")]
        differing = [kernel for kernel in left if kernel.change is not Change.same]
        parts += [Text(f"  {words.headline(kernel)}") for kernel in differing[:_OTHERS]]
        rest = len(left) - len(differing[:_OTHERS])
        if rest:
            parts.append(Text(f"  {rest} more: --top 0 shows all", "dim"))
    for title, groups in (("Removed", diff.removed), ("Added", diff.added)):
        if groups:
            parts += [Text(), Text(f"{title} kernels", "bold")]
            named = words.gone(groups)
            parts += [Text(f"  {time:>9}  {name}") for name, time in named[:_REMOVED]]
            if len(named) > _REMOVED:
                parts.append(Text(f"  {len(named) - _REMOVED} more", "dim"))
        if groups is diff.removed and (went := words.went(diff)):
            parts.append(_indented(f"findings removed with them: {went}"))
    return parts
