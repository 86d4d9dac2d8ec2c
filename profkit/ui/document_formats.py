"""A document in Markdown, as one self-contained HTML file, and in LaTeX.

`folder` holds the drawings of Markdown and LaTeX, relative to the file.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from profkit.core.text_files import shipped_text
from profkit.ui import document as doc
from profkit.ui.markdown import code, escape

_Forms = Mapping[doc.Style, Callable[[str, str], str]]
"""A text, and an address, by style."""
_WIDTH = 110  # columns of Markdown; chosen: two diffs fit side by side on a wide screen
_MOST_ROWS = 12  # of a table or list; chosen: longer ones are folded, so that figures are near
_LATEX_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
    "µ": r"\ensuremath{\mu}", "×": r"\ensuremath{\times}", "±": r"\ensuremath{\pm}",
    "≈": r"\ensuremath{\approx}", "→": r"\ensuremath{\rightarrow}", "≥": r"\ensuremath{\geq}",
    "≤": r"\ensuremath{\leq}", "·": r"\ensuremath{\cdot}", "²": r"\ensuremath{^2}", "…": r"\dots{}",
    "√": r"\ensuremath{\surd}",
    "’": "'", "−": r"\ensuremath{-}", "–": r"\textendash{}",
    "ρ": r"\ensuremath{\rho}", "δ": r"\ensuremath{\delta}",
}  # fmt: skip
_BREAKS, _BREAK = re.compile(r"[-.=,/]|\\_"), r"\g<0>\\allowbreak{}"
_LEVELS = ("", "section*", "section", "subsection", "subsubsection")
_LATEX_MARKS = {
    f"{kind}_{side}_string": mark
    for kind, marks in (("variable", "<< >>"), ("block", "<% %>"), ("comment", "<# #>"))
    for side, mark in zip(("start", "end"), marks.split(), strict=True)
}


def document_markdown(document: doc.Document, folder: str) -> str:
    """The document as GitHub renders it."""
    environment = _environment(
        marked=_markdown, cell=_cell, literal=escape, folded=_folded, fence=_fence, shield=_shield
    )
    return _blocks(document, environment, "document.md.j2", folder=folder)[1] + "\n"


def document_latex(document: doc.Document, folder: str) -> str:
    """The document for pdflatex."""
    environment = _environment(
        _LATEX_MARKS, marked=_latex, literal=_latex_literal, shape=_latex_columns
    )
    head, text = _blocks(document, environment, "document.tex.j2", folder=folder, levels=_LEVELS)
    return f"{head.strip()}\n{text}\n\\end{{document}}\n"


def document_html(document: doc.Document) -> str:
    """The document as one HTML file: all text is escaped, long tables and lists are folded."""
    from markupsafe import Markup

    environment = _environment(
        {"autoescape": True},
        marked=lambda text: Markup(_html(text)),
        drawing=lambda svg, name: Markup(_drawing(svg, name)),
    )
    headings = (block for block in document.blocks if isinstance(block, doc.Heading))
    template = shipped_text("profkit.ui", "templates/document.html.j2")
    text = environment.from_string(template).render(
        title=document.title,
        blocks=[(type(block).__name__, block) for block in _figure_first(document.blocks)],
        most_rows=_MOST_ROWS,
        sections=[(slug(block.text), block.text) for block in headings if block.level == 2],
        slug=slug,
    )
    return f"{text}\n"


def _figure_first(blocks: Sequence[doc.Block]) -> Sequence[doc.Block]:
    """The blocks with the first figure at the end of the first section: it sums up the document."""
    sections = (block for block in blocks if isinstance(block, doc.Heading) and block.level == 2)
    first, second = next(sections, None), next(sections, None)
    figure = next((block for block in blocks if isinstance(block, doc.Figure)), None)
    if first is None or second is None or figure is None:
        return blocks
    others = [block for block in blocks if block is not figure]
    end = others.index(second)
    return [*others[:end], figure, *others[end:]]


def slug(text: str) -> str:
    """A heading as an anchor."""
    return "-".join(re.findall(r"[^\W_]+", text.lower()))


def _environment(options: dict[str, Any] | None = None, **filters: Callable[..., Any]) -> Any:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, **(options or {})
    )
    environment.filters |= filters
    return environment


def _blocks(document: doc.Document, environment: Any, name: str, **names: Any) -> tuple[str, str]:
    """The head of the template, and the blocks: each by the macro of its type."""
    template = environment.from_string(shipped_text("profkit.ui", f"templates/{name}"), names)
    macros = template.module
    parts = [getattr(macros, type(block).__name__)(block).strip("\n") for block in document.blocks]
    return str(macros), "\n\n".join(filter(None, parts))


def _marked(text: str, forms: _Forms) -> str:
    """A text by its spans, each in the form of its style."""
    return "".join(forms[span.style](span.text, span.address) for span in doc.spans(text))


def _html(text: str) -> str:
    return _marked(text, _HTML)


def _drawing(svg: str, name: str) -> str:
    """An SVG without its prologue, its ids prefixed with its name: unique in the document."""
    drawing, own = svg[svg.index("<svg") :], name.removesuffix(".svg") + "-"
    for mark in ('id="', "url(#", 'href="#'):
        drawing = drawing.replace(mark, mark + own)
    return drawing.rstrip()


def _markdown(text: str) -> str:
    return _marked(text, _MARKDOWN)


def _cell(text: str) -> str:
    in_table = {doc.Style.code: lambda words, _: code(words, in_table=True)}
    return _marked(text, {**_MARKDOWN, **in_table})


def _fence(text: str) -> str:
    return "`" * (max((len(run) for run in re.findall(r"`{3,}", text)), default=2) + 1)


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


def _shield(text: str) -> str:
    """A part of a shields.io address: dashes and underscores are doubled in it."""
    return quote(text.replace("-", "--").replace("_", "__"), safe="")


def _latex(text: str) -> str:
    return _marked(text, _LATEX)


def _latex_columns(table: doc.Table) -> str:
    """The columns of a table: text columns share the width that the numbers leave."""
    numbers = len(table.columns) - table.words
    share = max(0.1, (0.98 - 0.092 * numbers) / max(1, table.words) - 0.015)
    words = f">{{\\raggedright\\arraybackslash}}p{{{share:.3f}\\textwidth}}"
    return words * table.words + "r" * numbers


def _latex_address(address: str) -> str:
    return address.replace("%", r"\%").replace("#", r"\#").replace("_", r"\_")


def _latex_literal(text: str) -> str:
    """Text with LaTeX's characters made harmless; those without a glyph as code points."""
    escaped = "".join(_LATEX_SPECIAL.get(character) or _glyph(character) for character in text)
    return escaped.replace("--", "-{}-")  # two hyphens would become a dash


def _glyph(character: str) -> str:
    """Western letters as they are, for which T1 has a glyph each; code points of others."""
    return character if ord(character) < 0x100 else f"U+{ord(character):04X}"


_HTML: _Forms = {
    doc.Style.plain: lambda text, _: html.escape(text),
    doc.Style.code: lambda text, _: f"<code>{html.escape(text)}</code>",
    doc.Style.strong: lambda text, _: f"<strong>{html.escape(text)}</strong>",
    doc.Style.link: lambda text, url: f'<a href="{html.escape(url)}">{html.escape(text)}</a>',
}
_MARKDOWN: _Forms = {
    doc.Style.plain: lambda text, _: escape(text),
    doc.Style.code: lambda text, _: code(text),
    doc.Style.strong: lambda text, _: f"**{escape(text)}**",
    doc.Style.link: lambda text, url: f"[{escape(text)}]({url})",
}
_LATEX: _Forms = {
    doc.Style.plain: lambda text, _: _latex_literal(text),
    doc.Style.code: lambda text, _: f"\\texttt{{{_BREAKS.sub(_BREAK, _latex_literal(text))}}}",
    doc.Style.strong: lambda text, _: f"\\textbf{{{_latex_literal(text)}}}",
    doc.Style.link: lambda text, url: f"\\href{{{_latex_address(url)}}}{{{_latex_literal(text)}}}",
}
