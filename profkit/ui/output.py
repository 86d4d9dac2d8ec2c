"""A verb's result in a format: JSON is the result itself, all others lay out its document."""

from collections.abc import Callable

from profkit.core.typed_file import Model, encode
from profkit.ui.document import Document


def shown(
    result: Model,
    document: Callable[[], Document],
    format: str,
    *,
    to_file: bool,
    dense: bool = False,
) -> str:
    """The text of a result; `dense` JSON has a list of numbers on one line.

    `format` is json, markdown, html, or, for people at a terminal and agents, anything else.
    """
    if format == "json":
        return encode(result, dense=dense)
    return laid_out(document(), format, to_file=to_file)


def laid_out(document: Document, format: str, *, to_file: bool) -> str:
    """The text of a document in any other format."""
    match format:
        case "markdown":
            from profkit.ui.markdown import document_markdown

            return document_markdown(document)
        case "html":
            from profkit.ui.html import document_html

            return document_html(document)
    from profkit.ui.terminal import document_terminal

    return document_terminal(document, to_file=to_file)
