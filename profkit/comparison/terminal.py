"""A comparison of reports for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from profkit.comparison import text as words
from profkit.comparison.attribution import Attribution, Cause, CauseKind
from profkit.comparison.comparability import can_be_forced
from profkit.comparison.comparison import Diff, KernelDiff
from profkit.comparison.gates import Failure
from profkit.comparison.line_changes import LineChange
from profkit.comparison.repeats import Change
from profkit.comparison.tables import failure
from profkit.ui.text import bar, cut, literal, plural, shorten

_BAR = 12
_CHANGES, _LINES, _GONE, _FINDINGS = 12, 6, 8, 6
_LONGEST_LINE = 56
_BARS_FROM = 80
_GAP = 2
_NARROWEST, _NARROWEST_LINE = 12, 8
_FORCE = "--force compares all the same"
_MATCH = "--match order pairs kernels by their sequence, --match FILE by the names that it gives"
_STYLES = {Change.improved: "green", Change.regressed: "red", Change.same: "dim"}


def diff_view(found: Diff, title: str, top: int, width: int, *, everything: bool) -> Group:
    """The first `top` kernels (0: all) in detail, the others in a line each.

    Where `width` is short bars go and words are shortened, numbers never.
    """
    parts: list[RenderableType] = [Text(title, "bold")]
    if found.refused:
        parts += [Text(f"! INCOMPARABLE  {obstacle}", "yellow") for obstacle in found.obstacles]
        hint = _FORCE if can_be_forced(found.obstacles) else _MATCH
        return Group(*parts, Text(hint, "dim"), *_others(found, ()))
    parts += [Text(f"! forced though {obstacle}", "yellow") for obstacle in found.obstacles]
    shown = found.kernels[: top or None]
    if len(found.kernels) > 1 or found.removed or found.added:
        parts += [Text(words.summary(found)), *_total(found)]
    parts += _variants(found)
    for kernel in shown:
        parts += [Text(), *_kernel(kernel, width, everything=everything)]
    parts += _others(found, shown)
    return Group(*parts)


def failures_view(failed: Sequence[Failure]) -> RenderableType:
    """The gates that failed, a paragraph each."""
    table = Table.grid(padding=(0, _GAP, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for one in failed:
        table.add_row(Text("FAILED"), Text(failure(one)))
    return table


def _variants(found: Diff) -> list[RenderableType]:
    """The timed variants that are no single kernel's."""
    if not found.variants:
        return []
    lines = [_indented(f"{words.variant(one)}  {words.timing(one)}") for one in found.variants]
    return [Text(), Text("Timed variants of several launches", "bold"), *lines]


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
    parts += _changed(kernel, width, everything=everything)
    parts += _lines(kernel.lines, width, everything=everything)
    if everything:
        parts += [Text(f"  {words.only_words(one)}", "dim") for one in kernel.one_sided]
    elif kernel.one_sided:
        told = plural(len(kernel.one_sided), "quantity")
        parts.append(Text(f"  {told} recorded on one side only: --all lists them", "dim"))
    return parts


def _indented(line: str, by: int = 2) -> RenderableType:
    return Padding(Text(literal(line), "dim"), (0, 0, 0, by))


def _why(attribution: Attribution, width: int) -> list[RenderableType]:
    said = words.why(attribution)
    title = Text.assemble(("Why  ", "bold"), (said, "") if said else "")
    told, rest = words.causes(attribution)
    largest = max((abs(cause.seconds) for cause in told), default=0.0)
    rows: list[tuple[Text, ...]] = [_cause(cause, largest) for cause in told]
    smaller = len(attribution.causes) - len(told)
    empty = Text(), Text(), Text()
    if smaller:
        rows.append((Text(f"  {smaller} smaller"), Text(words.signed(rest)), *empty))
    rows.append((Text("  sum", "bold"), Text(words.signed(attribution.change), "bold"), *empty))
    if width < _BARS_FROM:
        rows = [row[:-1] for row in rows]
    table = _fitted(rows, width, ("left", "right", "right", "left", "left"))
    parts: list[RenderableType] = [Text(), title, table]
    if attribution.missing:
        missing = ", ".join(attribution.missing)
        parts.append(Text(f"  not told apart: {missing}; a side did not record them", "dim"))
    return parts


def _cause(cause: Cause, largest: float) -> tuple[Text, ...]:
    before, after = words.cause_values(cause)
    style = "green" if cause.seconds < 0 else "red"
    return (
        Text(f"  {words.label(cause)}"),
        Text(words.signed(cause.seconds), style if cause.kind is not CauseKind.rest else "dim"),
        Text(before, "dim"),
        Text(f"→ {after}" if after else "", "dim"),
        Text(bar(abs(cause.seconds) / largest, _BAR), style),
    )


def _findings(kernel: KernelDiff, *, everything: bool) -> list[RenderableType]:
    found = [one for one in kernel.findings if everything or one.tells]
    if not found:
        return []
    parts: list[RenderableType] = [Text(), Text("Findings", "bold")]
    for one in found if everything else found[:_FINDINGS]:
        parts.append(Padding(Text(words.finding(one)), (0, 0, 0, 2)))
        held = words.estimate_held(one, kernel)
        if held:
            parts.append(_indented(held, 4))
    left = len(found) - _FINDINGS
    if left > 0 and not everything:
        parts.append(Text(f"  {left} more: --all", "dim"))
    return parts


def _changed(kernel: KernelDiff, width: int, *, everything: bool) -> list[RenderableType]:
    shown = [one for one in kernel.changed if one.shown or everything]
    if not shown:
        return []
    told = map(words.change_words, shown if everything else shown[:_CHANGES])
    rows = [
        (Text(f"  {name}"), Text(values), Text(how_much, "dim")) for name, values, how_much in told
    ]
    table = _fitted(rows, width, ("left", "left", "left"))
    parts: list[RenderableType] = [Text(), Text("What else changed", "bold"), table]
    left = len(kernel.changed) - min(len(shown), _CHANGES)
    if left and not everything:
        parts.append(Text(f"  {left} more, of less weight or within noise: --all", "dim"))
    return parts


def _lines(lines: Sequence[LineChange], width: int, *, everything: bool) -> list[RenderableType]:
    if not lines:
        return []
    rows = []
    for line in lines if everything else lines[:_LINES]:
        where, spent, text = words.line_words(line)
        rows.append((f"  {line.file}:{where}", spent, text))
    room = width - sum(max(len(row[at]) for row in rows) + _GAP for at in (0, 1))
    longest = min(room, _LONGEST_LINE)
    cells: list[tuple[Text, ...]] = [
        (Text(where), Text(spent), Text(cut(text, longest), "dim")) for where, spent, text in rows
    ]
    if longest < _NARROWEST_LINE:
        cells = [row[:-1] for row in cells]
    table = _fitted(cells, width, ("left", "left", "left"))
    parts: list[RenderableType] = [Text(), Text("By source line (samples as time)", "bold"), table]
    left = len(lines) - len(rows)
    if left:
        parts.append(Text(f"  {plural(left, 'line')} more: --all", "dim"))
    return parts


def _fitted(
    rows: Sequence[tuple[Text, ...]], width: int, sides: Sequence[Literal["left", "right"]]
) -> Table:
    """A table whose first column has the room that the others leave, its words shortened to it."""
    others = range(1, len(rows[0]))
    taken = sum(max(row[at].cell_len for row in rows) + _GAP for at in others)
    room = max(width - taken, _NARROWEST)
    table = Table.grid(padding=(0, _GAP, 0, 0))
    for side in sides[: len(rows[0])]:
        table.add_column(justify=side, no_wrap=True)
    for name, *values in rows:
        table.add_row(Text(shorten(name.plain, room), name.style), *values)
    return table


def _total(found: Diff) -> list[RenderableType]:
    causes = [cause for cause in found.total.causes if cause.kind is not CauseKind.rest][:4]
    change = found.total.after - found.total.before
    if len(found.kernels) < 2 or not change:
        return []
    told = ", ".join(f"{words.label(one)} {words.signed(one.seconds)}" for one in causes)
    return [Text(f"  of compared kernels {words.signed(change)}: {told}", "dim")]


def _others(found: Diff, shown: Sequence[KernelDiff]) -> list[RenderableType]:
    parts: list[RenderableType] = []
    left = found.kernels[len(shown) :]
    if left:
        parts += [Text(), Text("Other kernels", "bold")]
        differing = [one for one in left if one.change is not Change.same]
        parts += [Text(f"  {words.headline(one)}") for one in differing[:_CHANGES]]
        rest = len(left) - len(differing[:_CHANGES])
        if rest:
            parts.append(Text(f"  {plural(rest, 'kernel')} more: --top 0 shows all", "dim"))
    for title, groups in (("Removed", found.removed), ("Added", found.added)):
        if groups:
            parts += [Text(), Text(f"{title} kernels", "bold")]
            named = words.gone(groups)
            parts += [Text(f"  {time:>9}  {name}") for name, time in named[:_GONE]]
            if len(named) > _GONE:
                parts.append(Text(f"  {len(named) - _GONE} more", "dim"))
        if groups is found.removed and (went := words.went(found)):
            parts.append(_indented(f"resolved with them: {went}"))
    return parts
