"""What the written forms of a comparison show: a row per kernel, tables of its details."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from profkit.comparison import text as words
from profkit.comparison.attribution import Attribution
from profkit.comparison.changes import Changed
from profkit.comparison.comparison import Diff, KernelDiff
from profkit.comparison.document import Document, Judged
from profkit.comparison.line_changes import LineChange
from profkit.comparison.repeats import Change
from profkit.ui.text import literal, plural
from profkit.ui.view import Grid

COLUMNS = ("Kernel", "Before → after", "Change", "Cause, current limiter")
"""Headings of `row`."""

SOURCE = "Source"
"""The heading of the text of source lines."""

# Rows of a table, chosen: the details of a kernel fit two screens; --all shows the rest.
_CHANGES, _FINDINGS, _LINES = 12, 8, 6


@dataclass(frozen=True)
class Detail:
    """A kernel: its headline, what the verdict rests on, and tables."""

    headline: str
    evidence: tuple[str, ...]
    grids: tuple[Grid, ...]


def row(kernel: KernelDiff) -> tuple[str, str, str, str]:
    """A kernel in a table: name, times, ratio, outcome."""
    outcome = "; ".join(literal(part) for part in words.outcome(kernel))
    return words.name(kernel), words.times(kernel), words.ratio(kernel), outcome


def ordered(judged: Judged) -> tuple[list[KernelDiff], list[KernelDiff]]:
    """The kernels to be seen first, those that fail a gate before all, and those that are SAME."""
    failing = {failure.index for failure in judged.failures}
    kernels = judged.diff.kernels
    first = [kernel for index, kernel in enumerate(kernels) if index in failing]
    others = [kernel for index, kernel in enumerate(kernels) if index not in failing]
    first += [kernel for kernel in others if kernel.change is not Change.same]
    return first, [kernel for kernel in others if kernel.change is Change.same]


def detail(kernel: KernelDiff, *, show_all: bool) -> Detail:
    """A kernel in detail; small changes and what only one side has if `show_all`."""
    grids: list[Grid] = []
    if kernel.change is not Change.incomparable:
        if kernel.attribution and (kernel.change is not Change.same or show_all):
            grids.append(why(kernel.attribution))
        grids += [_findings(kernel, show_all=show_all), *moved(kernel, show_all=show_all)]
    if show_all:
        rows = tuple((literal(words.only_words(quantity)),) for quantity in kernel.one_sided)
        grids.append(Grid("Recorded on one side only", ("Quantity",), rows))
    evidence = tuple(literal(line) for line in words.evidence(kernel))
    shown = tuple(grid for grid in grids if grid.rows)
    return Detail(literal(words.headline(kernel)), evidence, shown)


def moved(kernel: KernelDiff, *, show_all: bool) -> tuple[Grid, ...]:
    """Other changes, and source lines by their time; not the tables that would be empty."""
    grids = _changed(kernel.changed, show_all=show_all), _lines(kernel.lines, show_all=show_all)
    return tuple(grid for grid in grids if grid.rows)


def apart(diff: Diff) -> tuple[Grid, ...]:
    """Kernels that only one side has, with their time."""
    return tuple(
        Grid(f"{title} kernels", ("Kernel", "Time"), tuple(words.gone(groups)))
        for title, groups in (("Removed", diff.removed), ("Added", diff.added))
        if groups
    )


def timed(diff: Diff) -> tuple[str, ...]:
    """The verdicts on timed variants that are not already a kernel's."""
    return tuple(
        literal(f"{variant.after.label}: {words.timing(variant)}") for variant in diff.variants
    )


def only_in(document: Document) -> tuple[str, ...]:
    """Reports that only one side has, a line each: `only in before: matmul.ncu-rep`."""
    return tuple(literal(f"only in {side}: {name}") for side, name in document.left_out)


def failed_in_words(document: Document) -> str:
    """The numbers of failed gates and failures, in a line; "" where none failed."""
    failed = [failure for judged in document.comparisons for failure in judged.failures]
    if not failed:
        return ""
    gates = len({str(judged.gate) for judged in failed})
    return f"{plural(gates, 'gate')} failed: {plural(len(failed), 'failure')}"


def why(attribution: Attribution) -> Grid:
    """The causes worth a line, the sum of the smaller ones, and of all."""
    causes, rest = words.causes(attribution)
    rows = [
        (literal(words.label(cause)), words.signed(cause.seconds), *words.cause_values(cause))
        for cause in causes
    ]
    smaller = len(attribution.causes) - len(causes)
    if smaller:
        rows.append((f"{smaller} smaller causes", words.signed(rest), "", ""))
    rows.append(("total", words.signed(attribution.change), "", ""))
    missing = ", ".join(attribution.missing)
    note = f"Not attributed: {missing} (not recorded on one side)" if missing else ""
    return Grid(
        "Causes of the change in ncu duration",
        ("Cause", "Change", "Before", "After"),
        tuple(rows),
        note,
    )


def _findings(kernel: KernelDiff, *, show_all: bool) -> Grid:
    findings = [change for change in kernel.findings if show_all or change.is_reported]
    shown = findings if show_all else findings[:_FINDINGS]
    rows = tuple(
        (
            change.category,
            change.status.value,
            literal(words.seen(change.seen)) if change.seen else "",
            words.fix_saves(change),
            words.estimate_held(change, kernel).removeprefix(f"{change.category}: "),
        )
        for change in shown
    )
    columns = ("Finding", "Status", "Evidence", "Estimated saving", "Predicted vs. measured")
    left = len(findings) - len(shown)
    return Grid("Findings", columns, rows, f"{left} more" if left else "")


def _changed(changed: Sequence[Changed], *, show_all: bool) -> Grid:
    shown = changed if show_all else [change for change in changed if change.shown][:_CHANGES]
    left = len(changed) - len(shown)
    note = f"{left} more, smaller or within noise" if left else ""
    columns = ("Quantity", "Before → after", "Change")
    return Grid("Other changes", columns, tuple(map(words.change_words, shown)), note)


def _lines(lines: Sequence[LineChange], *, show_all: bool) -> Grid:
    shown = lines if show_all else lines[:_LINES]
    rows = []
    for line in shown:
        location, spent, text = words.line_words(line)
        rows.append((f"{literal(line.file)}:{location}", spent, text))
    left = len(lines) - len(shown)
    note = f"{left} more lines" if left > 1 else "1 more line" if left else ""
    return Grid(
        "Time by source line (from warp samples)",
        ("Line", "Before → after", SOURCE),
        tuple(rows),
        note,
    )
