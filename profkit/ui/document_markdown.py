"""A document in Markdown as GitHub renders it; drawings are files in a folder beside it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from profkit.ui import document as doc
from profkit.ui.markdown import code, escape

_WIDTH = 110


def document_markdown(document: doc.Document, folder: str) -> str:
    """The document; `folder` is that of its drawings, from the place of the file."""
    parts = [_BLOCKS[type(block)](block, folder) for block in document.blocks]
    return "\n\n".join(part for part in parts if part) + "\n"


def _heading(block: doc.Heading, _: str) -> str:
    return f"{'#' * block.level} {_text(block.text)}"


def _paragraph(block: doc.Paragraph, _: str) -> str:
    return _folded(_text(block.text))


def _bullets(block: doc.Bullets, _: str) -> str:
    mark = "- [ ] " if block.boxes else "- "
    return "\n".join(_folded(mark + _text(item), "  ") for item in block.items)


def _table(block: doc.Table, _: str) -> str:
    columns = [_text(column, in_table=True) for column in block.columns]
    marks = ["---" if at < block.words else "---:" for at in range(len(columns))]
    lines = [columns, marks] + [[_text(cell, in_table=True) for cell in row] for row in block.rows]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return f"{_folded(_text(f'**{block.caption}**'))}\n\n{table}" if block.caption else table


def _figure(block: doc.Figure, folder: str) -> str:
    return (
        f"![{escape(block.alternative)}]({folder}/{block.name})\n\n{_folded(_text(block.caption))}"
    )


def _code(block: doc.Code, _: str) -> str:
    longest = max((len(run) for run in re.findall(r"`{3,}", block.text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{block.text}\n{fence}"


def _badges(block: doc.Badges, _: str) -> str:
    return "\n".join(f"![{escape(one.label)}]({_shield(one)})" for one in block.badges)


def _shield(badge: doc.Badge) -> str:
    """A shields.io address; a dash and an underscore are doubled in it."""

    def part(text: str) -> str:
        return quote(text.replace("-", "--").replace("_", "__"), safe="")

    colour = badge.colour.removeprefix("#")
    return f"https://img.shields.io/badge/{part(badge.label)}-{part(badge.value)}-{colour}"


_BLOCKS: Mapping[type, Callable[[Any, str], str]] = {
    doc.Heading: _heading, doc.Paragraph: _paragraph, doc.Bullets: _bullets, doc.Table: _table,
    doc.Figure: _figure, doc.Code: _code, doc.Badges: _badges,
}  # fmt: skip


def _text(text: str, *, in_table: bool = False) -> str:
    return "".join(_span(one, in_table) for one in doc.spans(text))


def _span(span: doc.Span, in_table: bool) -> str:
    match span.style:
        case doc.Style.code:
            return code(span.text, in_table=in_table)
        case doc.Style.strong:
            return f"**{escape(span.text)}**"
        case doc.Style.link:
            return f"[{escape(span.text)}]({span.address})"
        case _:
            return escape(span.text)


def _folded(text: str, indent: str = "") -> str:
    """Text in lines: no break inside code, nor where a line would begin with a mark."""
    words = re.findall(r"(?:`+[^`]*`+|\[[^\]]*\]\([^)]*\)|[^\s`\[]+|[`\[])+", text)
    lines, line = [], ""
    for word in words:
        if (
            line
            and len(line) + 1 + len(word) > _WIDTH
            and not re.match(r"([-+=>#*]|\d+[.)])", word)
        ):
            lines.append(line)
            line = indent + word
        else:
            line = f"{line} {word}" if line else word
    return "\n".join([*lines, line])
