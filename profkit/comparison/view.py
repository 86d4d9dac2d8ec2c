"""The document of comparisons, and their texts in every format of `profkit diff`."""

import os
from collections.abc import Iterator, Sequence

from profkit.comparison import text as words
from profkit.comparison.attribution import Attribution, Cause, CauseKind
from profkit.comparison.changes import Changed
from profkit.comparison.comparability import can_be_forced
from profkit.comparison.comparison import Diff, KernelDiff
from profkit.comparison.finding_changes import FindingChange
from profkit.comparison.line_changes import LineChange
from profkit.comparison.repeats import Change
from profkit.comparison.replacement import Replacement
from profkit.comparison.result import Comparisons, Judged, diff_result
from profkit.core.typed_file import encode
from profkit.report.summary import Group
from profkit.ui import document as doc
from profkit.ui.output import laid_out
from profkit.ui.text import literal, plural

MARKER = "<!-- profkit-diff -->"
"""The first line of the Markdown, by which a bot finds its own comment again."""
MOST = 65_536
"""Characters that a comment on GitHub may have (its API refuses longer bodies)."""

# Rows in a terminal, chosen for one screen; a file has all.
_OTHERS, _REMOVED = 12, 8
# Rows of a table, chosen: the details of a kernel fit two screens; --all shows the rest.
_CHANGES, _FINDINGS, _LINES = 12, 8, 6
_FORCE = "--force-compare compares them anyway"
_MATCH = "--match order pairs kernels by launch order, --match FILE by `old name: new name`"
_STYLES = {
    Change.improved: doc.Style.good, Change.regressed: doc.Style.bad, Change.same: doc.Style.quiet,
}  # fmt: skip


def diff_text(comparisons: Comparisons, format: str, *, to_file: bool = True) -> str:
    """Comparisons in a format of `profkit diff`.

    JSON has all kernels. Markdown that is too long for a comment goes without details. "github"
    also appends the Markdown to the step's summary, the file of $GITHUB_STEP_SUMMARY; it names
    files from the current folder. Raises EnvironmentProblem where that summary can't be written.
    """
    if format == "json":
        return encode(diff_result(comparisons), dense=False)
    if format in {"markdown", "github"}:
        markdown = _markdown(comparisons)
        return markdown if format == "markdown" else _annotated(comparisons, markdown)
    is_terminal = format != "html"
    return laid_out(diff_document(comparisons, is_terminal=is_terminal), format, to_file=to_file)


def _markdown(comparisons: Comparisons) -> str:
    from profkit.ui.markdown import document_markdown

    text = document_markdown(diff_document(comparisons))
    if len(text) <= MOST:
        return text
    return document_markdown(diff_document(comparisons, with_details=False))


def _annotated(comparisons: Comparisons, markdown: str) -> str:
    from profkit.comparison.annotations import append_summary, diff_github

    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        append_summary(markdown, summary)
    return diff_github(comparisons)


def diff_document(
    comparisons: Comparisons, *, is_terminal: bool = False, with_details: bool = True
) -> doc.Document:
    """Each comparison: its summary, kernels in detail and the others, and the gates that failed.

    A terminal has the first rows of long lists only.
    """
    judged = comparisons.judged
    blocks: list[doc.Block] = [doc.Heading("profkit diff", 1)] if len(judged) > 1 else []
    for each in judged:
        blocks += [doc.Heading(literal(each.label), 2 if blocks else 1)]
        blocks += _comparison(each, comparisons, is_terminal=is_terminal, in_detail=with_details)
    if not with_details:
        blocks.append(doc.Note("Details of kernels are left out: a comment has no room for them."))
    if comparisons.left_out:
        blocks.append(doc.Lines(comparisons.left_out_words, gap=True))
    title = literal(judged[0].label) if len(judged) == 1 else "profkit diff"
    return doc.Document(title, tuple(blocks), MARKER)


def _comparison(
    judged: Judged, comparisons: Comparisons, *, is_terminal: bool, in_detail: bool
) -> Iterator[doc.Block]:
    diff, failures = judged.diff, judged.failures
    if failures:
        gates = plural(len({failure.gate for failure in failures}), "gate")
        yield doc.Note(f"{gates} failed: {plural(len(failures), 'failure')}")
    yield from _summary(diff)
    if diff.variants:
        yield doc.Heading("Timed variants with several launches", 3)
        yield _quiet(f"{words.variant(timed)}  {words.timing(timed)}" for timed in diff.variants)
    failing = {failure.index for failure in failures}
    order = sorted(range(len(diff.kernels)), key=lambda place: place not in failing)
    kernels = [diff.kernels[place] for place in order]
    first = kernels[: comparisons.top or None] if in_detail else []
    for kernel in first:
        style = _STYLES.get(kernel.change, doc.Style.plain)
        headline = doc.in_style(words.headline(kernel), style)
        blocks = tuple(_kernel(kernel, everything=comparisons.show_all))
        yield doc.Fold(headline, blocks, is_open=kernel is kernels[0])
    yield from _others(kernels[len(first) :], is_terminal=is_terminal)
    if gone := words.unexplained(diff, "removed"):
        yield _one_sided(f"Removed kernels: {len(gone)}", gone, is_terminal=is_terminal)
    if went := words.went(diff):
        yield _quiet((f"findings of removed kernels: {went}",))
    if new := words.unexplained(diff, "added"):
        yield _one_sided(f"Added kernels: {len(new)}", new, is_terminal=is_terminal)
    if failures:
        lines = (doc.in_style(f"FAILED  {failure}", doc.Style.bad) for failure in failures)
        yield doc.Lines(tuple(lines), gap=True)


def _quiet(lines: Iterator[str] | Sequence[str]) -> doc.Lines:
    return doc.Lines(tuple(doc.quiet(literal(line)) for line in lines), indent=2)


def _summary(diff: Diff) -> Iterator[doc.Block]:
    """What keeps the reports from being compared, or all kernels in short."""
    if diff.refused:
        yield from (doc.Note(f"INCOMPARABLE  {obstacle}") for obstacle in diff.obstacles)
        hint = _FORCE if can_be_forced(diff.obstacles) else _MATCH
        yield doc.Lines((doc.quiet(hint),))
        return
    yield from (doc.Note(f"forced despite different {obstacle}") for obstacle in diff.obstacles)
    if collected := words.collected(diff):
        yield doc.Note(collected)
    if len(diff.kernels) > 1 or diff.removed or diff.added:
        yield doc.Lines((words.summary(diff),))
    if diff.replaced:
        yield _replaced(diff.replaced)


def _replaced(changes: Sequence[Replacement]) -> doc.Table:
    rows = []
    for removed, added, times, ratio in map(words.replaced, changes):
        rows.append((doc.code(removed), doc.code(added), times, doc.strong(ratio)))
    columns = ("Removed", "In its place", "Before → after", "Change")
    note = words.same_work_assumed(changes)
    return doc.Table("Replaced kernels", columns, tuple(rows), note, names=columns[:2])


def _kernel(kernel: KernelDiff, *, everything: bool) -> Iterator[doc.Block]:
    """What a verdict rests on, causes, findings, other changes and lines; all if `everything`."""
    if evidence := words.evidence(kernel):
        yield _quiet(evidence)
    if kernel.change is Change.incomparable:
        if can_be_forced(kernel.obstacles):
            yield _quiet((_FORCE,))
        return
    if kernel.attribution and (kernel.change is not Change.same or everything):
        yield from _causes(kernel.attribution)
    findings = [change for change in kernel.findings if everything or change.is_reported]
    if findings:
        most = None if everything else _FINDINGS
        yield doc.Heading("Findings", 3)
        yield doc.Items(tuple(_finding(change, kernel) for change in findings[:most]))
        if most and len(findings) > most:
            yield _quiet((f"{len(findings) - most} more: --all",))
    tables = _changed(kernel.changed, everything), _lines(kernel.lines, everything)
    yield from (table for table in tables if table.rows)
    if kernel.one_sided:
        count = plural(len(kernel.one_sided), "quantity")
        hint = f"{count} recorded on one side only: --all lists them"
        yield _quiet(map(words.only_words, kernel.one_sided) if everything else (hint,))


def _causes(attribution: Attribution) -> Iterator[doc.Block]:
    """The causes worth a line, the sum of the smaller ones, and of all."""
    sentence = words.why(attribution)
    reasons = f": {sentence}" if sentence else ""
    change = words.signed(attribution.change)
    yield doc.Heading("Causes", 3, f"attribution of the change in ncu duration ({change}){reasons}")
    causes, rest = words.causes(attribution)
    rows = [_cause(cause) for cause in causes]
    largest = max((abs(cause.seconds) for cause in causes), default=1.0)
    shares = [abs(cause.seconds) / largest for cause in causes]
    if smaller := len(attribution.causes) - len(causes):
        rows.append((plural(smaller, "smaller cause"), words.signed(rest), "", ""))
    rows.append((doc.strong("total"), doc.strong(change), "", ""))
    missing = ", ".join(attribution.missing)
    yield doc.Table(
        "",
        ("Cause", "Change", "Before", "After"),
        tuple(rows),
        f"Not attributed: {missing} (not recorded on one side)" if missing else "",
        words=1,
        names=("Cause",),
        shares=(*shares, *[0.0] * (len(rows) - len(shares))),
    )


def _cause(cause: Cause) -> tuple[str, ...]:
    style = doc.Style.good if cause.seconds < 0 else doc.Style.bad
    style = doc.Style.quiet if cause.kind is CauseKind.rest else style
    seconds = doc.in_style(words.signed(cause.seconds), style)
    return words.label(cause), seconds, *words.cause_values(cause)


def _finding(change: FindingChange, kernel: KernelDiff) -> doc.Item:
    facts = {
        "estimated saving": words.fix_saves(change),
        "predicted speedup": words.estimate_held(change, kernel),
    }
    rows = (doc.Row(name, value) for name, value in facts.items() if value)
    return doc.Item(words.finding(change), tuple(rows))


def _changed(changed: Sequence[Changed], everything: bool) -> doc.Table:
    shown = changed if everything else [change for change in changed if change.shown][:_CHANGES]
    left = len(changed) - len(shown)
    note = f"{left} more, smaller or within noise: --all" if left else ""
    columns = ("Quantity", "Before → after", "Change")
    return doc.Table("Other changes", columns, tuple(map(words.change_words, shown)), note)


def _lines(lines: Sequence[LineChange], everything: bool) -> doc.Table:
    shown = lines if everything else lines[:_LINES]
    left = len(lines) - len(shown)
    note = f"{left} more {'line' if left == 1 else 'lines'}: --all" if left else ""
    columns = ("Line", "Before → after", "Source")
    rows = tuple(map(words.line_words, shown))
    return doc.Table("Time by source line (from warp samples)", columns, rows, note)


def _others(kernels: Sequence[KernelDiff], *, is_terminal: bool) -> Iterator[doc.Block]:
    """Kernels in a row each; a terminal has the first of those that differ."""
    shown = sorted(kernels, key=lambda kernel: kernel.change is Change.same)
    if is_terminal:
        shown = [kernel for kernel in shown if kernel.change is not Change.same][:_OTHERS]
    left = len(kernels) - len(shown)
    note = f"{left} more: --top 0 shows all" if left else ""
    columns = ("Kernel", "Before → after", "Change", "Cause, current limiter")
    if kernels:
        rows = tuple(map(_row, shown))
        yield doc.Table("Other kernels", columns, rows, note, names=("Kernel",))


def _row(kernel: KernelDiff) -> tuple[str, ...]:
    ratio = words.ratio(kernel)
    ratio = doc.strong(ratio) if kernel.change is Change.regressed else ratio
    outcome = "; ".join(words.outcome(kernel))
    return doc.code(words.name(kernel)), words.times(kernel), ratio, outcome


def _one_sided(title: str, groups: Sequence[Group], *, is_terminal: bool) -> doc.Fold:
    """Kernels that only one side has, with their time."""
    named = words.gone(groups)
    named = named[:_REMOVED] if is_terminal else named
    left = len(groups) - len(named)
    rows = tuple((doc.code(name), time) for name, time in named)
    note = f"{left} more" if left else ""
    return doc.Fold(title, (doc.Table("", ("Kernel", "Time"), rows, note, names=("Kernel",)),))
