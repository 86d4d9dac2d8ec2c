"""Comparisons in every written form but the terminal's."""

from __future__ import annotations

import os

from profkit.comparison.document import Document
from profkit.core.version import __version__


def diff_text(document: Document, format: str) -> str:
    """Comparisons in a format of `profkit diff`.

    SARIF and JUnit have no place for what was left out; they and JSON have all kernels. "github"
    also appends the Markdown to the step's summary, the file of $GITHUB_STEP_SUMMARY; it and
    "sarif" name files from the current folder. Raises EnvironmentProblem where that summary can't
    be written.
    """
    match format:
        case "json":
            from profkit.comparison.json import diff_json

            return diff_json(document)
        case "html":
            from profkit.comparison import tables, text
            from profkit.ui.template import templates

            template = templates("profkit.comparison").get_template("diff.html.j2")
            return template.render(document=document, parts=tables, words=text, version=__version__)
        case "junit":
            from profkit.comparison.junit import diff_junit

            return diff_junit(document)
        case "sarif":
            from profkit.comparison.sarif import diff_sarif

            return diff_sarif(document)
    from profkit.comparison.markdown import diff_markdown

    markdown = diff_markdown(document)
    if format == "markdown":
        return markdown
    from profkit.comparison.github import append_summary, diff_github

    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        append_summary(markdown, summary)
    return diff_github(document)
