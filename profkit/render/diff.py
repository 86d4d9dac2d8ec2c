"""A comparison of reports for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from profkit.analysis.attribution import Attribution, Cause, Kind
from profkit.analysis.diff import Diff, KernelDiff
from profkit.analysis.line_changes import LineChange
from profkit.analysis.repeats import Change
from profkit.render import diff_words as words
from profkit.render.text import bar, literal, plural

_BAR = 12
_CHANGES, _LINES, _GONE, _FINDINGS = 12, 6, 8, 6
_LONGEST_LINE = 56
_STYLES = {Change.improved: "green", Change.regressed: "red", Change.same: "dim"}


def diff_view(found: Diff, title: str, top: int, *, everything: bool) -> Group:
    """The first `top` kernels (0: all) in detail, the others in a line each."""
    parts: list[RenderableType] = [Text(title, "bold")]
    if found.refused:
        parts += [Text(f"! INCOMPARABLE  {obstacle}", "yellow") for obstacle in found.obstacles]
        parts.append(Text("--force compares all the same", "dim"))
        return Group(*parts)
    parts += [Text(f"! forced though {obstacle}", "yellow") for obstacle in found.obstacles]
    shown = found.kernels[: top or None]
    if len(found.kernels) > 1 or found.removed or found.added:
        parts += [Text(words.summary(found)), *_total(found)]
    parts += _variants(found)
    for kernel in shown:
        parts += [Text(), *_kernel(kernel, everything=everything)]
    parts += _others(found, shown)
    return Group(*parts)


def _variants(found: Diff) -> list[RenderableType]:
    """The timed variants that are no single kernel's."""
    told = {id(kernel.timed) for kernel in found.kernels}
    left = [one for one in found.timed if id(one) not in told]
    if not left:
        return []
    lines = [_indented(f"{words.variant(one)}  {words.timing(one)}") for one in left]
    return [Text(), Text("Timed variants of several launches", "bold"), *lines]


def _kernel(kernel: KernelDiff, *, everything: bool) -> list[RenderableType]:
    heading = Text(words.headline(kernel), _STYLES.get(kernel.change, ""))
    parts: list[RenderableType] = [Rule(characters="─", style="dim"), heading]
    parts += [_indented(line) for line in words.evidence(kernel)]
    if kernel.change is Change.incomparable:
        return parts
    if kernel.attribution and (kernel.change is not Change.same or everything):
        parts += _why(kernel.attribution)
    parts += _findings(kernel, everything=everything)
    parts += _changed(kernel, everything=everything)
    parts += _lines(kernel.lines, everything=everything)
    if everything:
        parts += [Text(f"  {words.only_words(one)}", "dim") for one in kernel.one_sided]
    elif kernel.one_sided:
        told = plural(len(kernel.one_sided), "quantity")
        parts.append(Text(f"  {told} recorded on one side only: --all lists them", "dim"))
    return parts


def _indented(line: str, by: int = 2) -> RenderableType:
    return Padding(Text(literal(line), "dim"), (0, 0, 0, by))


def _why(attribution: Attribution) -> list[RenderableType]:
    said = words.why(attribution)
    title = Text.assemble(("Why  ", "bold"), (said, "") if said else "")
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    for _ in range(2):
        table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(width=_BAR, no_wrap=True)
    told, rest = words.causes(attribution)
    largest = max((abs(cause.seconds) for cause in told), default=0.0)
    for cause in told:
        table.add_row(*_cause(cause, largest))
    smaller = len(attribution.causes) - len(told)
    if smaller:
        table.add_row(f"  {smaller} smaller", words.signed(rest), "", "", "")
    table.add_row(Text("  sum", "bold"), Text(words.signed(attribution.change), "bold"), "", "", "")
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
        Text(words.signed(cause.seconds), style if cause.kind is not Kind.rest else "dim"),
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
    return parts


def _changed(kernel: KernelDiff, *, everything: bool) -> list[RenderableType]:
    shown = [one for one in kernel.changed if one.shown or everything]
    if not shown:
        return []
    table = Table.grid(padding=(0, 2, 0, 0))
    for one in shown if everything else shown[:_CHANGES]:
        name, values, how_much = words.change_words(one)
        table.add_row(f"  {name}", values, Text(how_much, "dim"))
    parts: list[RenderableType] = [Text(), Text("What else changed", "bold"), table]
    left = len(kernel.changed) - min(len(shown), _CHANGES)
    if left and not everything:
        parts.append(Text(f"  {left} more, of less weight or within noise: --all", "dim"))
    return parts


def _lines(lines: Sequence[LineChange], *, everything: bool) -> list[RenderableType]:
    if not lines:
        return []
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis", max_width=_LONGEST_LINE)
    for line in lines if everything else lines[:_LINES]:
        where, spent, text = words.line_words(line)
        table.add_row(f"  {Path(line.file).name}:{where}", spent, Text(text, "dim"))
    return [Text(), Text("By source line (samples as time)", "bold"), table]


def _total(found: Diff) -> list[RenderableType]:
    causes = [cause for cause in found.total.causes if cause.kind is not Kind.rest][:4]
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
    went = words.went(found)
    return [*parts, _indented(f"resolved with them: {went}")] if went else parts
