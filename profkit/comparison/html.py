"""Comparisons as one HTML file that needs nothing else: it opens from disk and prints."""

from __future__ import annotations

from profkit.comparison import tables as parts
from profkit.comparison import text as words
from profkit.comparison.document import Document
from profkit.core.version import __version__
from profkit.ui.template import templates


def diff_html(document: Document) -> str:
    """Every kernel in a table, `top` of them with all that is known."""
    template = templates("profkit.comparison").get_template("diff.html.j2")
    return template.render(document=document, parts=parts, words=words, version=__version__)
