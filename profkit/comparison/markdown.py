"""Comparisons as Markdown that fits a pull request's comment, whatever the number of kernels.

The first line never changes, so that a bot finds its own comment again. What does not fit is left
out last to first: details of kernels, rows of unchanged kernels, other rows, comparisons.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from profkit.comparison import tables as parts
from profkit.comparison import text as words
from profkit.comparison.comparison import KernelDiff
from profkit.comparison.document import Document, Judged
from profkit.comparison.repeats import Change
from profkit.ui.markdown import code, escape, table, table_of
from profkit.ui.text import cut, literal, plural
from profkit.ui.view import Grid

MARKER = "<!-- profkit-diff -->"
"""The first line."""
MOST = 65_536
"""Characters that a comment on GitHub may have (its API refuses longer bodies); counted in bytes of
UTF-8, which are never fewer."""

# Chosen: what a reviewer scrolls through; more is folded, or counted.
_ROWS, _FAILURES = 30, 20
_LONGEST = 300  # characters of a cell or line; chosen: three lines of a comment
_OPEN, _CLOSE = "<details><summary>", "</details>"
_OVERHEAD = 400  # bytes of a comparison's headings, folds and notes, more than the longest of them


@dataclass
class _Part:
    """Pieces of one kind, made as they are needed: `taken` are those that fit."""

    count: int
    made: Iterator[str]
    pieces: list[str] = field(default_factory=list)

    @property
    def left(self) -> int:
        return self.count - len(self.pieces)


@dataclass
class _Section:
    """A comparison: lines at its head, kernels that changed, the others, what only one side
    has, and kernels in detail. `whole` says that its head fits."""

    label: str
    head: list[str]
    moved: _Part
    apart: _Part
    same: _Part
    details: _Part
    whole: bool = False


def diff_markdown(document: Document) -> str:
    """The comparisons: gates that failed, a table of kernels, and `top` of them folded."""
    lines = [MARKER, "## profkit diff"]
    if failed := parts.failed_in_words(document):
        lines += ["", f"**{_prose(failed)}**"]
    alone = parts.only_in(document)
    for line in alone[:_FAILURES]:
        lines += ["", _prose(cut(line, _LONGEST))]
    if len(alone) > _FAILURES:
        lines += ["", f"{len(alone) - _FAILURES} more reports on one side only"]
    sections = [_section(judged, document) for judged in document.comparisons]
    _fit(sections, MOST - _size(lines) - _OVERHEAD)
    for section in sections:
        lines += _lines(section)
    left = sum(not section.whole for section in sections)
    if left:
        lines += [
            "",
            f"Omitted for size: {plural(left, 'comparison')}. --format json has everything.",
        ]
    return "\n".join(lines) + "\n"


def _section(judged: Judged, document: Document) -> _Section:
    diff, failed = judged.diff, judged.failures
    head = [f"- **failed** {_prose(cut(str(failure), _LONGEST))}" for failure in failed[:_FAILURES]]
    if len(failed) > _FAILURES:
        head.append(f"- {len(failed) - _FAILURES} more failed")
    word = "**INCOMPARABLE**" if diff.refused else "forced despite different"
    head += [f"- {word} {_prose(cut(str(obstacle), _LONGEST))}" for obstacle in diff.obstacles]
    if note := words.collected(diff):
        head.append(f"- {_prose(note)}")
    if not diff.refused and (len(diff.kernels) != 1 or diff.removed or diff.added):
        head.append(f"- {_prose(words.summary(diff))}")
    if legend := words.legend(diff):
        head.append(f"- {_prose(legend)}")
    head += [f"- {_prose(line)}" for line in parts.timed(diff)[:_FAILURES]]
    moved, same = parts.ordered(judged)
    chosen, apart = [*moved, *same][: document.top or None], parts.apart(diff)
    details = (_detail(failure, show_all=document.show_all) for failure in chosen)
    return _Section(
        judged.label,
        head,
        moved=_Part(len(moved), map(_row, moved)),
        apart=_Part(len(apart), map(_folded, apart)),
        same=_Part(len(same), map(_row, same)),
        details=_Part(len(chosen), details),
    )


def _fit(sections: Sequence[_Section], room: int) -> None:
    """Take what fits, the more important of all sections first."""
    for section in sections:
        needed = _size([*section.head, _title(section)]) + _OVERHEAD
        if needed > room:
            break
        section.whole = True
        room -= needed
    shown = [section for section in sections if section.whole]
    for section in shown:
        room = _take(section.moved, room)
    for section in shown:
        room = _take(section.same, _take(section.apart, room))
    for section in shown:
        room = _take(section.details, room)


def _take(part: _Part, room: int) -> int:
    """Take the first pieces as long as they fit; the room that is left."""
    for piece in part.made:
        needed = _size([piece, ""])
        if needed > room:
            break
        part.pieces.append(piece)
        room -= needed
    return room


def _lines(section: _Section) -> list[str]:
    if not section.whole:
        return []
    lines = ["", _title(section), *(["", *section.head] if section.head else [])]
    rows = section.moved.pieces or section.same.pieces
    folded = rows[_ROWS:] + (section.same.pieces if section.moved.pieces else [])
    if rows:
        lines += ["", *_table(rows[:_ROWS])]
    if folded:
        more = plural(len(folded), "kernel")
        lines += ["", f"{_OPEN}{more} more</summary>", "", *_table(folded), "", _CLOSE]
    for piece in (*section.apart.pieces, *section.details.pieces):
        lines += ["", piece]
    unshown = (
        (section.moved.left + section.same.left, "kernels"),
        (section.apart.left, "tables of removed or added kernels"),
        (section.details.left, "kernels in detail"),
    )
    left = [f"{count} {noun}" for count, noun in unshown if count]
    return (
        [*lines, "", f"Omitted for size: {', '.join(left)}. --format json has everything."]
        if left
        else lines
    )


def _title(section: _Section) -> str:
    return f"### {code(cut(section.label, _LONGEST))}"


def _row(kernel: KernelDiff) -> str:
    name, times, ratio, outcome = parts.row(kernel)
    strong = "**" if kernel.change is Change.regressed else ""
    cells = (_cell(times), f"{strong}{_cell(ratio)}{strong}", _cell(cut(outcome, _LONGEST)))
    return f"| {code(name, in_table=True)} | {' | '.join(cells)} |"


def _table(rows: Sequence[str]) -> list[str]:
    return [f"| {' | '.join(parts.COLUMNS)} |", f"|{'---|' * len(parts.COLUMNS)}", *rows]


def _detail(kernel: KernelDiff, *, show_all: bool) -> str:
    detail = parts.detail(kernel, show_all=show_all)
    lines = [f"{_OPEN}{_summary(detail.headline)}</summary>"]
    for evidence in detail.evidence:
        lines += ["", _prose(evidence)]
    for grid in detail.grids:
        lines += ["", *_titled(grid)]
    return "\n".join([*lines, "", _CLOSE])


def _folded(grid: Grid) -> str:
    """A table of kernels behind its title and their number."""
    rows = [(code(name, in_table=True), _cell(time)) for name, time in grid.rows[:_ROWS]]
    left = len(grid.rows) - len(rows)
    lines = [*table(grid.columns, rows), *(["", f"{left} more"] if left else [])]
    title = _summary(f"{grid.title}: {len(grid.rows)}")
    return "\n".join([f"{_OPEN}{title}</summary>", "", *lines, "", _CLOSE])


def _titled(grid: Grid) -> list[str]:
    return [f"**{grid.title}**", *(line.replace("@", "&#64;") for line in table_of(grid)[1:])]


def _prose(text: str) -> str:
    """Text from reports within a sentence: no markup, and nobody is called by it."""
    return escape(text).replace("@", "&#64;")


def _cell(text: str) -> str:
    return _prose(text).replace("\n", " ")


def _summary(text: str) -> str:
    return html.escape(cut(literal(text), _LONGEST)).replace("@", "&#64;")


def _size(lines: Sequence[str]) -> int:
    return sum(len(line.encode("utf-8", "replace")) + 1 for line in lines)
