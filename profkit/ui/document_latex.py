"""A document in LaTeX, for pdflatex with the packages that come with it.

Tables are `longtable`s, so that they may go over pages. Drawings are named in a comment: pdflatex
takes no SVG, so `\\includegraphics` asks for the PDF that a converter makes of it, if any.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from profkit.ui import document as doc

_SPECIAL = {
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
_LEVELS = {1: "section*", 2: "section", 3: "subsection", 4: "subsubsection"}
_HEAD = r"""\documentclass[10pt]{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{textcomp}
\usepackage{array}
\usepackage{longtable}
\usepackage{graphicx}
\usepackage[a4paper,landscape,margin=16mm]{geometry}
\usepackage[hidelinks]{hyperref}
\setlength{\parindent}{0pt}
\setlength{\parskip}{4pt}
\sloppy
\begin{document}
"""


def document_latex(document: doc.Document, folder: str) -> str:
    """The document; `folder` is that of its drawings, from the place of the file."""
    parts = [_BLOCKS[type(block)](block, folder) for block in document.blocks]
    return _HEAD + "\n\n".join(part for part in parts if part) + "\n\\end{document}\n"


def _heading(block: doc.Heading, _: str) -> str:
    return f"\\{_LEVELS[block.level]}{{{_text(block.text)}}}"


def _paragraph(block: doc.Paragraph, _: str) -> str:
    return _text(block.text)


def _bullets(block: doc.Bullets, _: str) -> str:
    mark = r"\item[\fbox{\rule{0pt}{1ex}\rule{1ex}{0pt}}]" if block.boxes else r"\item"
    items = "\n".join(f"{mark} {{}}{_text(item)}" for item in block.items)
    return f"\\begin{{itemize}}\n{items}\n\\end{{itemize}}" if items else ""


def _table(block: doc.Table, _: str) -> str:
    """Columns of words share what width the numbers leave."""
    numbers = len(block.columns) - block.words
    share = max(0.1, (0.98 - 0.092 * numbers) / max(1, block.words) - 0.015)
    words = f">{{\\raggedright\\arraybackslash}}p{{{share:.3f}\\textwidth}}"
    shape = words * block.words + "r" * numbers
    head = " & ".join(f"\\textbf{{{_text(column)}}}" for column in block.columns)
    rows = "\n".join(
        " & ".join(_text(cell) for cell in row) + r" \tabularnewline" for row in block.rows
    )
    caption = f"\\textbf{{{_text(block.caption)}}}\n\n" if block.caption else ""
    return (
        f"{caption}{{\\scriptsize\\setlength{{\\tabcolsep}}{{3pt}}\n"
        f"\\begin{{longtable}}{{{shape}}}\n\\hline\n{head} \\\\\n\\hline\n\\endhead\n{rows}\n"
        "\\hline\n\\end{longtable}}"
    )


def _figure(block: doc.Figure, folder: str) -> str:
    stem = f"{folder}/{block.name.removesuffix('.svg')}"
    return (
        f"% {block.name}: rsvg-convert -f pdf -o {stem}.pdf {stem}.svg\n"
        f"\\IfFileExists{{{stem}.pdf}}{{\\includegraphics[width=\\textwidth]{{{stem}.pdf}}}}"
        f"{{\\texttt{{{_text(stem)}.svg}}}}\n\n{_text(block.caption)}"
    )


def _code(block: doc.Code, _: str) -> str:
    lines = [f"\\texttt{{{_escape(line)}}}" for line in block.text.split("\n")]
    return "\\begin{flushleft}\\small\n" + "\\\\\n".join(lines) + "\n\\end{flushleft}"


def _badges(_: doc.Badges, __: str) -> str:
    return ""


_BLOCKS: Mapping[type, Callable[[Any, str], str]] = {
    doc.Heading: _heading, doc.Paragraph: _paragraph, doc.Bullets: _bullets, doc.Table: _table,
    doc.Figure: _figure, doc.Code: _code, doc.Badges: _badges,
}  # fmt: skip


def _text(text: str) -> str:
    return "".join(_span(one) for one in doc.spans(text))


def _span(span: doc.Span) -> str:
    text = _escape(span.text)
    match span.style:
        case doc.Style.code:
            return f"\\texttt{{{_BREAKS.sub(_BREAK, text)}}}"
        case doc.Style.strong:
            return f"\\textbf{{{text}}}"
        case doc.Style.link:
            return f"\\href{{{_address(span.address)}}}{{{text}}}"
        case _:
            return text


def _address(address: str) -> str:
    return address.replace("%", r"\%").replace("#", r"\#").replace("_", r"\_")


def _escape(text: str) -> str:
    """Text with LaTeX's characters made harmless; those without a glyph are spelled out."""
    escaped = "".join(_SPECIAL.get(one) or _glyph(one) for one in text)
    return escaped.replace("--", "-{}-")  # two hyphens would become a dash


def _glyph(character: str) -> str:
    """Western letters as they are, for which T1 has a glyph each; code points of others."""
    if ord(character) < 0x100:
        return character
    return f"U+{ord(character):04X}"
