"""A document for a terminal: colored only on one."""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from msgspec import Struct
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from profkit.ui import document as doc
from profkit.ui.fit import BAR, STYLES, fitted, trimmed
from profkit.ui.names import told_apart
from profkit.ui.text import bar, literal, literal_lines, shorten

PIPED_WIDTH = 100  # chosen: fits a page of text, a log and a review
# Chosen: longer lines are hard to read, shorter ones break numbers from their units.
_WIDEST, _NARROWEST = 120, 60
_TWO_COLUMNS_FROM = 96  # chosen: two narrow panels with their bars
_GAP = 3  # blanks between columns
_UNDER_MARK = 4  # columns before the rows of an item with a mark of its own


def document_terminal(document: doc.Document, *, to_file: bool) -> str:
    """The document as text in the width that there is: colored for a terminal; else without
    trailing blanks."""
    out = console(to_file=to_file)
    with out.capture() as captured:
        # In a group: by itself a text would be wrapped, even a command that must not be.
        out.print(Group(*_laid_out(document.blocks, out.width)), crop=False)
    text = captured.get().lstrip("\n")
    if out.is_terminal:
        return text
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def _laid_out(blocks: Sequence[doc.Block], width: int) -> Iterator[RenderableType]:
    """Titled facts two abreast, all other blocks one after the other."""
    for is_panel, group in groupby(blocks, lambda block: isinstance(block, doc.Facts)):
        if is_panel:
            yield from _facts([block for block in group if isinstance(block, doc.Facts)], width)
        else:
            for block in group:
                yield from _block(block, width)


def _facts(blocks: Sequence[doc.Facts], width: int) -> Iterator[RenderableType]:
    for has_title, group in groupby(blocks, lambda block: bool(block.title)):
        if has_title:
            yield from panels_view(group, width)
        else:
            for block in group:
                yield from [Text()] if block.gap else []
                yield _Labeled(block.rows, block.indent)


def _block(block: doc.Block, width: int) -> Iterator[RenderableType]:
    match block:
        case doc.Heading(level=level):
            yield from [Text()] if level > 1 else []
            yield _heading(block, width)
        case doc.Paragraph(text=words):
            yield text_of(words)
        case doc.Lines(lines=lines, indent=indent, gap=gap):
            yield from [Text()] if gap else []
            yield from (Padding(text_of(line), (0, 0, 0, indent)) for line in lines)
        case doc.Items():
            yield _listed(block)
        case doc.Table():
            yield from [Text(), Text(literal(block.title), "bold")] if block.title else []
            yield from _fitted(block, width)
        case doc.Fold(title=title, blocks=blocks):
            yield from (Text(), _heading(doc.Heading(title), width))
            yield from _laid_out(blocks, width)
        case _:
            yield from _aside(block)


def _aside(block: doc.Block) -> Iterator[RenderableType]:
    match block:
        case doc.Code(text=text):
            yield from (Text(), Padding(Text(literal_lines(text)), (0, 0, 0, 2)))
        case doc.Note(text=words):
            yield Text(literal_lines(f"! {words}"), "yellow")
        case doc.Next():
            yield from _next(block)
        case doc.Badges(badges=badges):
            yield from (text_of(f"{badge.label}: {badge.value}") for badge in badges)


def _next(block: doc.Next) -> Iterator[Text]:
    """Commands, each on one line that can be copied."""
    yield from (Text(), Text("Next", "bold")) if block.labels else (Text(),)
    labels = block.labels or ("Next",) * len(block.commands)
    width = max(map(len, labels)) + 2
    for label, command in zip(labels, block.commands, strict=True):
        style = "dim" if block.labels else ""
        line = Text.assemble((literal(f"{label:<{width}}"), style), literal(command))
        line.no_wrap, line.overflow = True, "ignore"
        yield line


def text_of(words: str) -> Text:
    """A text in its styles."""
    spans = doc.spans(words)
    return Text.assemble(*((span.text, STYLES.get(span.style, "")) for span in spans))


def _heading(block: doc.Heading, width: int) -> Text:
    """A heading; a title of one word, as the path of a file, is shortened to a line."""
    is_word = block.level == 1 and " " not in block.text
    heading = text_of(shorten(block.text, width) if is_word else block.text)
    heading.stylize("bold")
    return heading.append(literal(f"  {block.note}"), "dim") if block.note else heading


def _listed(block: doc.Items) -> RenderableType:
    """Items after their marks, if any, with what is under each."""
    table = RichTable.grid(padding=(0, 1))
    numbers = [f"{place}." for place in range(1, len(block.items) + 1)]
    marks = numbers if block.numbered else [item.mark for item in block.items]
    if any(marks):
        table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for item, text in zip(block.items, marks, strict=True):
        mark = [text_of(text)] if any(marks) else []
        indent = _UNDER_MARK - len(text) - 1 if mark and not block.numbered else 2
        below = [_Labeled(item.rows, max(indent, 0))] if item.rows else []
        lines = [Text.assemble(text_of(line), style="dim") for line in item.lines]
        if block.apart:
            table.add_row(*[""] * len(table.columns))
        table.add_row(*mark, Group(text_of(item.head), *below, *lines))
    return table


def console(*, to_file: bool) -> Console:
    """A console as wide as COLUMNS, else as the terminal, else 100 columns; colored only on a
    terminal."""
    if to_file or not sys.stdout.isatty():
        width = _within(_columns() or PIPED_WIDTH)
        return Console(force_terminal=False, width=width, color_system=None, highlight=False)
    return Console(width=_within(Console(highlight=False).width), highlight=False)


def _columns() -> int:
    """The width that the environment requests; 0 where it is not a valid width."""
    text = os.environ.get("COLUMNS", "")
    return int(text) if text.isascii() and text.isdigit() else 0


def _within(width: int) -> int:
    return max(_NARROWEST, min(width, _WIDEST))


class _Labeled(Struct, frozen=True):
    """Rows that take the width they are given, names in the lines that they have."""

    rows: Sequence[doc.Row]
    indent: int = 0

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        labels = max((len(row.label) for row in self.rows), default=0)
        room = options.max_width - self.indent - labels - 2
        table = RichTable.grid(padding=(0, 2))
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        lines = max((row.most for row in self.rows), default=0)
        names = told_apart((row.value for row in self.rows if row.most), max(1, lines * room))
        for row in self.rows:
            value = Text(names[row.value]) if row.most else text_of(row.value)
            table.add_row(Text.assemble(text_of(row.label), style="dim"), value)
        yield Padding(table, (0, 0, 0, self.indent))


def panels_view(launch_panels: Iterable[doc.Facts], width: int) -> list[RenderableType]:
    """Narrow panels two abreast where the width allows, wide ones alone."""
    parts: list[RenderableType] = []
    abreast: list[doc.Facts] = []
    columns = 2 if width >= _TWO_COLUMNS_FROM else 1
    column = (width - _GAP * (columns - 1)) // columns
    for panel in launch_panels:
        if panel.wide:
            parts += [Text(), _panel(panel)]
            continue
        abreast.append(panel)
        if len(abreast) == columns:
            parts += [Text(), _abreast(abreast, column)]
            abreast = []
    if abreast:
        parts += [Text(), _abreast(abreast, column if len(abreast) == columns else width)]
    return parts


def _abreast(row: Sequence[doc.Facts], column: int) -> RenderableType:
    table = RichTable.grid(padding=(0, _GAP, 0, 0))
    for _ in row:
        table.add_column(width=column)
    table.add_row(*(_panel(panel) for panel in row))
    return table


def _panel(panel: doc.Facts) -> RenderableType:
    table = RichTable.grid(padding=(0, 2 if panel.wide else 1))
    bars = any(row.share is not None and row.share > 0 for row in panel.rows)
    values = any(row.value for row in panel.rows)
    table.add_column(no_wrap=True)
    if values:
        table.add_column(justify="right" if bars else "left", no_wrap=True)
    if bars:
        table.add_column(width=BAR, no_wrap=True)
    table.add_column(overflow="fold")
    for row in panel.rows:
        cells = [text_of(row.label)]
        if values:
            cells.append(text_of(row.value))
        if bars:
            cells.append(Text(bar(row.share, BAR) if row.share is not None else "", "cyan"))
        cells.append(Text(literal_lines(row.note), "dim"))
        table.add_row(*cells)
    parts: list[RenderableType] = [Text(literal(panel.title), "bold"), table]
    if panel.note:
        parts.append(Text(literal_lines(panel.note), "dim"))
    return Group(*parts)


def _fitted(block: doc.Table, width: int) -> Iterator[Text]:
    """A table with its note in the width."""
    table = trimmed(block, width)
    names, lines = fitted(table, width) if table.rows else ([], [])
    for name in names:
        name.stylize("dim")
    yield from (*names, *lines)
    if remarks := table.remarks(table.columns):
        yield Text(literal_lines(remarks), "dim")
