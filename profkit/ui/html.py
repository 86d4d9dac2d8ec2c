"""A document as one HTML file that needs nothing else, and as the output of a notebook's cell."""

import html
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from profkit.ui import document as doc
from profkit.ui.template import script_hashes, templates

_MOST_ROWS = 12  # of a table or list; chosen: longer ones are folded, so that figures are near
_NOT_BROKEN = 18  # characters of a cell on one line: chosen, `1.20x [1.09, 1.20]` is one
_LONG = re.compile(r"\w{40,}")  # chosen: more than half of a narrow table
_SCOPE = re.compile(r"::(?![^<>]*>)")  # not within a tag
_TAGS = {doc.Style.code: "code", doc.Style.strong: "strong"}


def document_html(document: doc.Document) -> str:
    """The document as a page: all text is escaped, long tables and lists are folded."""
    headings = (block for block in document.blocks if isinstance(block, doc.Heading))
    sections = [block.text for block in headings if block.level == 2]
    widgets = [block for block in document.blocks if isinstance(block, doc.Widget)]
    return _rendered(
        document.blocks,
        title=document.title,
        sections=sections,
        sheets=dict.fromkeys(widget.style for widget in widgets),
        scripts=dict.fromkeys(widget.script for widget in widgets),
    )


def document_cell(blocks: Sequence[doc.Block]) -> str:
    """Blocks as the output of a notebook's cell, where nothing is folded."""
    return _rendered(blocks, title=None, sections=()).removesuffix("\n")


def _rendered(blocks: Sequence[doc.Block], **names: Any) -> str:
    text: str = _template().render(blocks=blocks, **names)
    return text


@cache
def _template() -> Any:
    from markupsafe import Markup

    filters: Mapping[str, Callable[..., Any]] = {
        "words": lambda words: Markup(words_html(words)),
        "part": lambda words: Markup(_part(words)),
        "cell": lambda words: Markup(_cell(words)),
        "drawing": lambda svg, name: Markup(_drawing(svg, name)),
        "slug": slug,
        "hashes": script_hashes,
    }
    environment = templates("profkit.ui", filters)
    environment.globals |= {
        "kind": lambda block: type(block).__name__,
        "most_rows": _MOST_ROWS,
    }
    return environment.get_template("document.html.j2")


def slug(text: str) -> str:
    """A heading as an anchor."""
    return "-".join(re.findall(r"[^\W_]+", text.lower()))


def words_html(words: str) -> str:
    """A text in its styles; all of it escaped."""
    return "".join(map(_span, doc.spans(words)))


def _span(span: doc.Span) -> str:
    text = html.escape(span.text).replace("\n", "<br>")
    if tag := _TAGS.get(span.style):
        return f"<{tag}>{text}</{tag}>"
    if span.style is doc.Style.link:
        return f'<a href="{html.escape(span.address)}">{text}</a>'
    return text if span.style is doc.Style.plain else f'<span class="{span.style}">{text}</span>'


def _cell(words: str) -> str:
    """Text in which a number stays on the line of its unit."""
    return words_html(words).replace(" ", "&nbsp;") if len(words) <= _NOT_BROKEN else _part(words)


def _part(words: str) -> str:
    """Text of a table, whose names of kernels may be broken at their scopes, and long ones within:
    without that they move the numbers beside them out of view."""
    text = _SCOPE.sub("::<wbr>", words_html(words))
    return _LONG.sub(lambda name: name[0].replace("_", "_<wbr>"), text)


def _drawing(svg: str, name: str) -> str:
    """An SVG without its prologue, its ids prefixed with its name: unique in the document."""
    drawing, own = svg[svg.index("<svg") :], name.removesuffix(".svg") + "-"
    for mark in ('id="', "url(#", 'href="#'):
        drawing = drawing.replace(mark, mark + own)
    return drawing.rstrip()
