"""The written report of a baseline, in Markdown, HTML or LaTeX. It renders; it computes nothing."""

from __future__ import annotations

from profkit.study.report_model import Written
from profkit.study.written.beyond import ablation, published, to_beat
from profkit.study.written.body import performance, statistics
from profkit.study.written.end import limitations, methods, reproducibility
from profkit.study.written.front import front, title
from profkit.ui.document import Document


def report(written: Written) -> Document:
    """The report as blocks: the same data give the same ones."""
    parts = (
        front(written), statistics(written), performance(written), to_beat(written),
        published(written), ablation(written), reproducibility(written), limitations(written),
        methods(),
    )  # fmt: skip
    return Document(f"Baseline: {title(written)}", tuple(block for part in parts for block in part))


def report_text(document: Document, format: str, folder: str) -> str:
    """The report as "markdown", "html" or "latex"; `folder` is that of its drawings."""
    from profkit.ui import document_formats

    if format == "html":
        return document_formats.document_html(document)
    if format == "latex":
        return document_formats.document_latex(document, folder)
    return document_formats.document_markdown(document, folder)
