"""Comparisons in every written form but the terminal's."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from profkit.comparison.comparison import Diff
from profkit.comparison.gates import Failure


def diff_text(
    diffs: Sequence[tuple[str, Diff]],
    failures: Sequence[Sequence[Failure]],
    format: str,
    *,
    top: int,
    show_all: bool,
    with_host: bool,
    left_out: Sequence[tuple[str, str]] = (),
) -> str:
    """Comparisons, each with its label and the gates that it failed, in a format of `profkit diff`.

    `left_out` are the sides and names of reports that one side alone has; SARIF and JUnit have no
    place for them. `top` kernels (0: all) are told in detail, small changes too if `show_all`;
    JSON, SARIF and JUnit have all kernels. "github" also appends the Markdown to the step's
    summary, the file of $GITHUB_STEP_SUMMARY; it and "sarif" name files from the current folder.
    Raises EnvironmentProblem where that summary can't be written.
    """
    match format:
        case "json":
            from profkit.comparison.json import diff_json

            return diff_json(diffs, failures, top=top, with_host=with_host, left_out=left_out)
        case "html":
            from profkit.comparison.html import diff_html

            return diff_html(diffs, failures, top=top, show_all=show_all, left_out=left_out)
        case "junit":
            from profkit.comparison.junit import diff_junit

            return diff_junit(diffs, failures)
        case "sarif":
            from profkit.comparison.sarif import diff_sarif

            return diff_sarif(diffs, failures, root=Path.cwd(), with_host=with_host)
    from profkit.comparison.markdown import diff_markdown

    markdown = diff_markdown(diffs, failures, top=top, show_all=show_all, left_out=left_out)
    if format == "markdown":
        return markdown
    from profkit.comparison.github import append_summary, diff_github

    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        append_summary(markdown, summary)
    return diff_github(diffs, failures, root=Path.cwd(), with_host=with_host)
