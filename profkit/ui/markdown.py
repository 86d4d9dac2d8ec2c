"""A document in Markdown as GitHub renders it."""

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import quote

from profkit.ui import document as doc
from profkit.ui.text import literal, literal_lines

_WIDTH = 110  # columns of a paragraph; chosen: two diffs fit side by side on a wide screen


def document_markdown(document: doc.Document, folder: str = "") -> str:
    """The document; `folder` holds its drawings, relative to the file."""
    marker = f"{document.marker}\n" if document.marker else ""
    return f"{marker}{blocks_markdown(document.blocks, folder)}\n"


def blocks_markdown(blocks: Iterable[doc.Block], folder: str = "") -> str:
    """Blocks, a blank line between them."""
    parts = ("\n".join(_lines(block, folder)) for block in blocks)
    return "\n\n".join(filter(None, parts))


def _lines(block: doc.Block, folder: str) -> Iterator[str]:
    match block:
        case doc.Heading(text=words, level=level, note=note):
            yield f"{'#' * level} {prose(words)}"
            yield from ["", escape(note)] if note else []
        case doc.Paragraph(text=words):
            yield _folded(prose(words))
        case doc.Lines(lines=lines, indent=indent):
            yield from (f"- {prose(line)}" if indent else f"{prose(line)}  " for line in lines)
        case doc.Items():
            yield from _items(block)
        case doc.Table():
            yield from _table(block)
        case doc.Facts(title=title):
            yield from _panel(block) if title else map(_labeled, block.rows)
        case doc.Fold(title=title, blocks=blocks):
            yield f"<details><summary>{_html(title)}</summary>"
            yield from ("", blocks_markdown(blocks, folder), "", "</details>")
        case _:
            yield from _aside(block, folder)


def _aside(block: doc.Block, folder: str) -> Iterator[str]:
    match block:
        case doc.Figure(name=name, caption=caption):
            yield from (f"![{escape(block.alternative)}]({folder}/{name})", "")
            yield _folded(prose(caption))
        case doc.Code(text=text):
            fence = "`" * (max((len(run) for run in re.findall(r"`{3,}", text)), default=2) + 1)
            yield from (fence, literal_lines(text), fence)
        case doc.Note(text=words):
            yield f"> {prose(words)}"
        case doc.Next(commands=commands):
            yield from _aside(doc.Code("\n".join(commands)), folder)
        case doc.Badges(badges=badges):
            yield from map(_badge, badges)


def _html(words: str) -> str:
    """A text where Markdown is not parsed: within a tag."""
    return html.escape(literal_lines(words), quote=False).replace("@", "&#64;")


def prose(words: str, *, in_table: bool = False) -> str:
    """A text in its styles."""
    return "".join(_span(span, in_table=in_table) for span in doc.spans(words))


def _span(span: doc.Span, *, in_table: bool) -> str:
    match span.style:
        case doc.Style.code:
            return code(span.text, in_table=in_table)
        case doc.Style.strong:
            return f"**{escape(span.text)}**"
        case doc.Style.link:
            return f"[{escape(span.text)}]({span.address})"
    return "<br>".join(map(escape, span.text.split("\n"))) if in_table else escape(span.text)


def _items(block: doc.Items) -> Iterator[str]:
    for place, item in enumerate(block.items, 1):
        box = "- [ ] " if item.mark == "[ ]" else "- "
        mark = f"{place}. " if block.numbered else box
        head = mark + prose(item.head)
        yield head if item.rows or item.lines else _folded(head, "  ")
        indent = " " * (len(mark) if block.numbered else 2)
        yield from (f"{indent}{_labeled(row, indent)}" for row in item.rows)
        yield from (f"{indent}- {prose(line)}" for line in item.lines)


def _labeled(row: doc.Row, indent: str = "") -> str:
    """A labeled value in a list; one of several lines is a list itself, below its first line where
    only the others are items."""
    lines = doc.lines_of(row.value)
    items = [line.startswith("- ") for line in lines]
    has_head = len(lines) == 1 or items[:2] == [False, True]
    texts = [prose(line).removeprefix("- ") for line in lines]
    first = ": ".join(filter(None, (literal(row.label), texts.pop(0) if has_head else "")))
    return "\n".join([f"- {first}{'' if has_head else ':'}", *(f"{indent}  - {t}" for t in texts)])


def _table(block: doc.Table) -> Iterator[str]:
    """A table with its heading, caption and note; numbers are aligned right."""
    if block.title:
        yield from (f"### {literal(block.title)}", "")
    if block.caption:
        yield from (_folded(f"**{prose(block.caption)}**"), "")
    if block.rows:
        rows = [[prose(part, in_table=True) for part in row] for row in block.rows]
        for row, depth in zip(rows, block.depths, strict=False):
            row[0] = "&emsp;" * depth + row[0]
        head, rule, *body = table([escape(name) for name in block.columns], rows)
        if block.words is not None:
            marks = (
                "---" if place < block.words else "---:" for place in range(len(block.columns))
            )
            rule = f"| {' | '.join(marks)} |"
        yield from (head, rule, *body)
    if note := escape(block.remarks(block.columns)):
        yield from ("", note) if block.rows else (note,)


def _badge(badge: doc.Badge) -> str:
    address = "-".join(map(_shield, (badge.label, badge.value, badge.color.removeprefix("#"))))
    return f"![{escape(badge.label)}](https://img.shields.io/badge/{address})"


def _shield(text: str) -> str:
    """A part of a shields.io address: dashes and underscores are doubled in it."""
    return quote(literal(text).replace("-", "--").replace("_", "__"), safe="")


def _folded(text: str, indent: str = "") -> str:
    """Text in lines: no break inside code, nor before a word that would start a list or heading."""
    words = re.findall(r"(?:`+[^`]*`+|\[[^\]]*\]\([^)]*\)|[^\s`\[]+|[`\[])+", text)
    lines, line = [], ""
    for word in words:
        is_full = line and len(line) + 1 + len(word) > _WIDTH
        if is_full and not re.match(r"([-+=>#*]|\d+[.)])", word):
            lines.append(line)
            line = indent + word
        else:
            line = f"{line} {word}" if line else word
    return "\n".join([*lines, line])


def code(text: str, *, in_table: bool = False) -> str:
    """Text as a code span, whatever it holds: kernel names are full of markup characters."""
    shown = literal(text)
    longest = max((len(run) for run in re.findall(r"`+", shown)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") or not shown else ""
    if in_table:
        shown = shown.replace("\\|", "\\ |").replace("|", "\\|")  # no fence holds a table's pipe
    return f"{fence}{pad}{shown}{pad}{fence}"


def escape(text: str) -> str:
    """Prose with Markdown's and HTML's special characters made harmless, and nobody called."""
    return re.sub(r"([\\`*_\[\]<>|#&])", r"\\\1", literal(text)).replace("@", "&#64;")


def cell(text: str) -> str:
    """Text as a table's cell."""
    return "<br>".join(escape(line) for line in text.split("\n"))


def _panel(panel: doc.Facts) -> list[str]:
    """A panel as a heading, a table and its note."""
    rows = [(cell(row.label), cell(row.value), cell(row.note)) for row in panel.rows]
    lines = [f"### {literal(panel.title)}", "", *table(("", "", ""), rows)]
    return [*lines, "", escape(panel.note)] if panel.note else lines


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table, its cells as they are."""
    return [
        f"| {' | '.join(columns)} |",
        f"|{'---|' * len(columns)}",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
