"""A report as blocks, independent of its format: Markdown, HTML or LaTeX.

Text is plain except for marks: backticks enclose code, double asterisks strong text, and
`[words](https://...)` is a link. Everything else is literal: each renderer escapes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from profkit.ui.text import literal

_MARKS = re.compile(r"`([^`]+)`|\*\*([^*`]+)\*\*|\[([^\]`]+)\]\((https?://[^\s)]+)\)")


class Style(StrEnum):
    """The style of a span."""

    plain = "plain"
    code = "code"
    strong = "strong"
    link = "link"


@dataclass(frozen=True)
class Span:
    """Text of one style; `address` is that of a link."""

    text: str
    style: Style = Style.plain
    address: str = ""


@dataclass(frozen=True)
class Heading:
    """`level` is 1 for the title."""

    level: int
    text: str


@dataclass(frozen=True)
class Paragraph:
    """Sentences."""

    text: str


@dataclass(frozen=True)
class Bullets:
    """A list; with check boxes if `boxes`."""

    items: tuple[str, ...]
    boxes: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of text under columns; `words` counts the leading columns that are aligned left."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int = 1


@dataclass(frozen=True)
class Figure:
    """A drawing: the name of its file, what it shows, and its SVG."""

    name: str
    caption: str
    svg: str

    @property
    def alternative(self) -> str:
        """The alternative text: the first sentence of the caption."""
        return self.caption.split(". ")[0].rstrip(".")


@dataclass(frozen=True)
class Code:
    """Preformatted lines."""

    text: str


@dataclass(frozen=True)
class Badge:
    """A name and a value in a small colored box; `svg` is its drawing in the file `name`."""

    name: str
    label: str
    value: str
    color: str
    svg: str


@dataclass(frozen=True)
class Badges:
    """Badges in a row."""

    badges: tuple[Badge, ...]


Block: TypeAlias = Heading | Paragraph | Bullets | Table | Figure | Code | Badges


@dataclass(frozen=True)
class Document:
    """Blocks in their order."""

    title: str
    blocks: tuple[Block, ...]

    @property
    def drawings(self) -> dict[str, str]:
        """Every SVG by the name of its file."""
        drawings: list[Figure | Badge] = []
        for block in self.blocks:
            drawings += block.badges if isinstance(block, Badges) else ()
            drawings += [block] if isinstance(block, Figure) else ()
        return {drawing.name: drawing.svg for drawing in drawings}


def spans(text: str) -> Iterator[Span]:
    """The spans of a text by its marks."""
    end = 0
    for match in _MARKS.finditer(text):
        if match.start() > end:
            yield Span(literal(text[end : match.start()]))
        code, strong, link, address = match.groups()
        style = Style.code if code else Style.strong if strong else Style.link
        yield Span(literal(code or strong or link), style, address or "")
        end = match.end()
    if end < len(text):
        yield Span(literal(text[end:]))


def verbatim(text: str) -> str:
    """External text as code: without backticks, which would end it."""
    return f"`{text.replace('`', chr(39)) or ' '}`"


def unmarked(text: str) -> str:
    """External text without marks."""
    return text.replace("`", "'").replace("**", "* *").replace("](", "] (")


def cells(rows: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Rows as tuples, for a table."""
    return tuple(tuple(row) for row in rows)
