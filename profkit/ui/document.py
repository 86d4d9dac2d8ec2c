"""What a verb shows, as blocks; each module of `ui` that lays blocks out is one format.

Text is literal: each format escapes it. Text of several styles is a `Styled` string, which `styled`
joins from parts; `marked` reads the marks of authored text: backticks enclose code, double
asterisks strong text, and `[words](https://...)` is a link.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from profkit.ui.text import literal_lines

_MARKS = re.compile(r"`([^`]+)`|\*\*([^*`]+)\*\*|\[([^\]`]+)\]\(((?:https?:/|\.\.)/[^\s)]+)\)")


class Style(StrEnum):
    """The style of a span; formats without colors show the last four as plain text."""

    plain = "plain"
    code = "code"
    strong = "strong"
    link = "link"
    quiet = "quiet"
    good = "good"
    bad = "bad"
    warning = "warning"


class Span(Struct, frozen=True):
    """Text of one style; `address` is that of a link."""

    text: str
    style: Style = Style.plain
    address: str = ""


class Styled(str):
    """Text of one style or several, which formatting and slicing leave out."""

    parts: tuple[Span, ...]


class Heading(Struct, frozen=True):
    """`level` is 1 for the title; `note` follows on the same line in a quieter voice."""

    text: str
    level: int = 2
    note: str = ""


class Paragraph(Struct, frozen=True):
    """Sentences."""

    text: str


class Lines(Struct, frozen=True):
    """Lines that stay apart; `gap` sets them off from what is above."""

    lines: tuple[str, ...]
    indent: int = 0
    gap: bool = False


class Row(Struct, frozen=True):
    """A labeled value; `share` draws a bar, `note` follows in a quieter voice. A name that a
    terminal shortens has the `most` lines that it takes there."""

    label: str
    value: str
    note: str = ""
    share: float | None = None
    most: int = 0


class Item(Struct, frozen=True):
    """An item of a list: its head, and facts or lines under it. A `mark` of its own is what a
    terminal shows before it; "[ ]" is a box to tick everywhere."""

    head: str
    rows: tuple[Row, ...] = ()
    lines: tuple[str, ...] = ()
    mark: str = ""


class Items(Struct, frozen=True):
    """Items, each with its number or after a mark; set `apart` in a terminal."""

    items: tuple[Item, ...]
    numbered: bool = False
    apart: bool = False


class Table(Struct, frozen=True):
    """Rows of cells under columns.

    The `title` is a heading, the `caption` a part of the table. `words` counts the leading columns
    that are aligned left; None for all. `dispensable` are columns that a narrow terminal goes
    without, the first of them first; `legend` has the meanings of columns, by their names. `names`
    are the columns whose cells a terminal shortens to the room that others leave. By row, `depths`
    indent the first cell, `shares` draw a bar.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    words: int | None = None
    caption: str = ""
    dispensable: tuple[str, ...] = ()
    legend: tuple[tuple[str, str], ...] = ()
    names: tuple[str, ...] = ()
    depths: tuple[int, ...] = ()
    shares: tuple[float, ...] = ()

    def remarks(self, columns: Sequence[str]) -> str:
        """The note, and the meanings of those columns that are shown."""
        meanings = (f"{name}: {words}" for name, words in self.legend if name in columns)
        return "; ".join(filter(None, (self.note, *meanings)))

    def without(self, column: str) -> Table:
        """The table without a column."""
        place = self.columns.index(column)
        names, *rows = (row[:place] + row[place + 1 :] for row in (self.columns, *self.rows))
        return replace(self, columns=names, rows=tuple(rows))


class Facts(Struct, frozen=True):
    """Labeled values under a title. `wide` ones have long notes and want the whole width; others
    are laid out two abreast where there is room. Without a title they may have an `indent`, and a
    `gap` that sets them off from what is above."""

    title: str
    rows: tuple[Row, ...]
    note: str = ""
    wide: bool = False
    indent: int = 0
    gap: bool = False


class Figure(Struct, frozen=True):
    """A drawing: the name of its file, what it shows, and its SVG."""

    name: str
    caption: str
    svg: str

    @property
    def alternative(self) -> str:
        """The alternative text: the first sentence of the caption."""
        return self.caption.split(". ")[0].rstrip(".")


class Code(Struct, frozen=True):
    """Preformatted lines."""

    text: str


class Note(Struct, frozen=True):
    """A remark that a reader must not miss."""

    text: str


class Next(Struct, frozen=True):
    """Commands to run next; `labels` say what each shows."""

    commands: tuple[str, ...]
    labels: tuple[str, ...] = ()


class Badge(Struct, frozen=True):
    """A name and a value in a small colored box; `svg` is its drawing in the file `name`."""

    name: str
    label: str
    value: str
    color: str
    svg: str


class Badges(Struct, frozen=True):
    """Badges in a row."""

    badges: tuple[Badge, ...]


class Widget(Struct, frozen=True):
    """An interactive drawing, which pages alone have: its HTML, style and script."""

    markup: str
    style: str
    script: str


class Fold(Struct, frozen=True):
    """Blocks that a page folds under a title, or shows if it `is_open`."""

    title: str
    blocks: tuple[Block, ...]
    is_open: bool = False


Block: TypeAlias = (
    Heading | Paragraph | Lines | Items | Table | Facts | Figure | Code | Note | Next
    | Badges | Widget | Fold
)  # fmt: skip


class Document(Struct, frozen=True):
    """Blocks in their order; `title` names the document, and is no block.

    `marker` is an HTML comment that its Markdown begins with, by which a bot finds it again.
    """

    title: str
    blocks: tuple[Block, ...]
    marker: str = ""

    @property
    def drawings(self) -> dict[str, str]:
        """Every SVG by the name of its file."""
        drawings: list[Figure | Badge] = []
        for block in self.blocks:
            drawings += block.badges if isinstance(block, Badges) else ()
            drawings += [block] if isinstance(block, Figure) else ()
        return {drawing.name: drawing.svg for drawing in drawings}


def styled(*parts: str) -> Styled:
    """Text joined from parts, which keep their styles."""
    return _joined([span for part in parts for span in _parts(part)])


def _joined(parts: Sequence[Span]) -> Styled:
    words = Styled("".join(span.text for span in parts))
    words.parts = tuple(parts)
    return words


def _parts(words: str) -> tuple[Span, ...]:
    return words.parts if isinstance(words, Styled) else (Span(words),)


def spans(words: str) -> tuple[Span, ...]:
    """The spans of a text, the control characters of each line spelled out."""
    return tuple(replace(span, text=literal_lines(span.text)) for span in _parts(words))


def lines_of(words: str) -> list[Styled]:
    """The lines of a text, each in its styles."""
    lines: list[list[Span]] = [[]]
    for span in _parts(words):
        first, *others = span.text.split("\n")
        lines[-1].append(replace(span, text=first))
        lines += [[replace(span, text=text)] for text in others]
    return list(map(_joined, lines))


def in_style(text: str, style: Style) -> Styled:
    """Text of one style."""
    return _joined([Span(text, style)])


def code(text: str) -> Styled:
    """External text as code."""
    return in_style(text, Style.code)


def link(text: str, address: str) -> Styled:
    """A link to a page."""
    return _joined([Span(text, Style.link, address)])


def strong(text: str) -> Styled:
    """Emphasized text."""
    return in_style(text, Style.strong)


def quiet(text: str) -> Styled:
    """Text of less weight."""
    return in_style(text, Style.quiet)


def marked(text: str) -> Styled:
    """Authored text by its marks."""
    return _joined(list(_marked(text)))


def _marked(text: str) -> Iterator[Span]:
    end = 0
    for match in _MARKS.finditer(text):
        if match.start() > end:
            yield Span(text[end : match.start()])
        body, emphasized, link, address = match.groups()
        style = Style.code if body else Style.strong if emphasized else Style.link
        yield Span(body or emphasized or link, style, address or "")
        end = match.end()
    if end < len(text):
        yield Span(text[end:])


def bullets(texts: Iterable[str], *, boxes: bool = False) -> Items:
    """A list of texts; with check boxes if `boxes`."""
    return Items(tuple(Item(text, mark="[ ]" if boxes else "-") for text in texts))


def authored(text: str) -> Iterator[Block]:
    """The headings, lists and paragraphs of an authored text."""
    for chunk in text.strip().split("\n\n"):
        words = " ".join(chunk.split())
        if chunk.startswith("#"):
            level, _, title = words.partition(" ")
            yield Heading(marked(title), len(level))
        elif chunk.startswith("- "):
            items = re.split("(?:^|\n)- ", chunk)[1:]
            yield bullets(marked(" ".join(item.split())) for item in items)
        else:
            yield Paragraph(marked(words))


def verbatim(text: str) -> str:
    """External text as code in text with marks: without backticks, which would end it."""
    return f"`{text.replace('`', chr(39)) or ' '}`"


def unmarked(text: str) -> str:
    """External text without marks."""
    return text.replace("`", "'").replace("**", "* *").replace("](", "] (")


def cells(rows: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Rows as tuples, for a table."""
    return tuple(tuple(row) for row in rows)
