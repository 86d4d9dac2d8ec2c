"""A document as one HTML file: drawings and style are in it, nothing is asked of the network."""

from __future__ import annotations

from html import escape
from typing import Any

from profkit.core.text_files import shipped_text
from profkit.ui import document as doc


def document_html(document: doc.Document) -> str:
    """The document; raises nothing for any text, which is escaped."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["marked"] = lambda text: Markup(_marked(text))
    environment.filters["drawing"] = lambda svg, name: Markup(_drawing(svg, name))
    template = shipped_text("profkit.ui", "templates/document.html.j2")
    blocks = [(type(block).__name__, block) for block in document.blocks]
    page: dict[str, Any] = {
        "title": document.title,
        "blocks": blocks,
        "sections": [
            (slug(block.text), block.text)
            for _, block in blocks
            if isinstance(block, doc.Heading) and block.level == 2
        ],
        "slug": slug,
    }
    return environment.from_string(template).render(page) + "\n"


def slug(text: str) -> str:
    """A heading as the name of a place."""
    words = "".join(one if one.isalnum() else " " for one in text.lower()).split()
    return "-".join(words)


def _marked(text: str) -> str:
    return "".join(_span(one) for one in doc.spans(text))


def _span(span: doc.Span) -> str:
    text = escape(span.text)
    match span.style:
        case doc.Style.code:
            return f"<code>{text}</code>"
        case doc.Style.strong:
            return f"<strong>{text}</strong>"
        case doc.Style.link:
            return f'<a href="{escape(span.address)}">{text}</a>'
        case _:
            return text


def _drawing(svg: str, name: str) -> str:
    """An SVG without its prologue, its names told apart from those of the other drawings."""
    start = svg.index("<svg")
    own = name.removesuffix(".svg") + "-"
    return (
        svg[start:]
        .replace('id="', f'id="{own}')
        .replace("url(#", f"url(#{own}")
        .replace('href="#', f'href="#{own}')
        .rstrip()
    )
