"""A written report as blocks, whatever it is written in: Markdown, HTML or LaTeX.

Text is plain; what stands between backticks is code, between double asterisks strong, and
`[words](https://...)` a link. Everything else is literal: each renderer escapes it.
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
    """How a piece of text is meant."""

    plain = "plain"
    code = "code"
    strong = "strong"
    link = "link"


@dataclass(frozen=True)
class Span:
    """A piece of text; `address` is that of a link."""

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
    """Some sentences."""

    text: str


@dataclass(frozen=True)
class Bullets:
    """A list; with boxes to tick where `boxes`."""

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
        """What it shows in a sentence, for who does not see it."""
        return self.caption.split(". ")[0].rstrip(".")


@dataclass(frozen=True)
class Code:
    """Lines to be typed or read as they are."""

    text: str


@dataclass(frozen=True)
class Badge:
    """A name and a value in a small coloured box; `svg` is its drawing in the file `name`."""

    name: str
    label: str
    value: str
    colour: str
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
    """The pieces of a text by their marks."""
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
    """Text of others as code: without what would end it."""
    return f"`{text.replace('`', chr(39)) or ' '}`"


def unmarked(text: str) -> str:
    """Text of others as plain words: nothing in it is a mark."""
    return text.replace("`", "'").replace("**", "* *").replace("](", "] (")


def cells(rows: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Rows as a table takes them."""
    return tuple(tuple(row) for row in rows)
