"""A Run as text, Markdown and HTML: the same lines in each."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from html import escape as html_escape

from profkit.callables.measurement import Measurement
from profkit.timing.latency import Pair
from profkit.timing.latency_view import (
    margin_words,
    marked_interval,
    method,
    pair_line,
    settling_options,
    variant_line,
)
from profkit.timing.results import Verdict
from profkit.timing.verdict import reason_words
from profkit.ui.markdown import escape
from profkit.ui.terminal import PIPED_WIDTH
from profkit.ui.text import literal, percent
from profkit.ui.view import Row

_COLORS = {
    "IMPROVED": "#1a7f37", "PASSED": "#1a7f37", "REGRESSED": "#cf222e", "WRONG": "#cf222e",
    "INVALID": "#cf222e", "INCONCLUSIVE": "#9a6700",
}  # fmt: skip
_LEFT = "text-align:left;padding:1px 12px 1px 0"


def run_text(run: Measurement) -> str:
    """For a terminal and a log."""
    rows = list(_rows(run))
    width = max((len(row.label) for row in rows), default=0)
    lines = [f"{literal(run.name)}  {run.verdict}"]
    lines += [
        line
        for row in rows
        for line in _wrapped(f"  {row.label:<{width}}  {literal(row.value)}", width + 4)
    ]
    lines += [line for remark in run.remarks for line in _wrapped(f"  ! {literal(remark)}", 4)]
    return "\n".join(lines)


def run_markdown(run: Measurement) -> str:
    """For a notebook that is converted."""
    lines = [f"**{escape(run.name)}**: {run.verdict}", ""]
    lines += [f"- {escape(row.label)}: {escape(row.value)}" for row in _rows(run)]
    for remark in run.remarks:
        lines += ["", f"> {escape(remark)}"]
    return "\n".join(lines) + "\n"


def run_html(run: Measurement) -> str:
    """For a notebook."""
    color = _COLORS.get(run.verdict, "inherit")
    rows = "".join(
        f'<tr><td style="{_LEFT};opacity:0.7">{_html(row.label)}</td>'
        f'<td style="{_LEFT}">{_html(row.value)}</td></tr>'
        for row in _rows(run)
    )
    remarks = "".join(f"<div>! {_html(line)}</div>" for line in run.remarks)
    head = f'<b>{_html(run.name)}</b> <b style="color:{color}">{run.verdict}</b>'
    return f"<div>{head}<table>{rows}</table>{remarks}</div>"


def _rows(run: Measurement) -> Iterator[Row]:
    if run.times:
        for pair in run.times.pairs:
            yield from _of_pair(pair, run)
        if not run.times.pairs:
            yield Row("Median", variant_line(run.latency).removeprefix(f"{run.latency.label}  "))
            yield Row("Interval", marked_interval(run.latency))
        target, gpu = run.latency.latency.target, run.latency.latency.gpu
        if target.words:
            yield Row("Arguments", f"{target.words}{f', {target.dtype}' if target.dtype else ''}")
        yield Row("Method", method(run.latency))
        if gpu:
            yield Row("GPU", str(gpu.name))
    if run.check:
        yield Row("Check", f"{run.check.status.value}: {run.check.evidence}")
    elif run.times:
        yield Row("Check", "not checked: no reference=")
    if run.recording:
        yield Row("ncu", f"{run.recording.folder}, recorded by {run.recorded_by}")


def _of_pair(pair: Pair, run: Measurement) -> Iterator[Row]:
    comparison, times = pair.comparison, run.times
    assert times is not None
    yield Row("Change", pair_line(pair).removesuffix(comparison.verdict.name).rstrip())
    margin = f"{reason_words(comparison.reason)}; margin {margin_words(comparison.margin)}"
    if comparison.verdict in {Verdict.SAME, Verdict.INCONCLUSIVE}:
        margin += f"; smallest detectable slowdown: {percent(comparison.detectable)}"
    yield Row("Verdict", "; ".join([margin, *comparison.details]))
    options = settling_options(pair, times.thresholds)
    if options:
        names = (name.removeprefix("--").replace("-", "_") for name in options[::2])
        words = zip(names, options[1::2], strict=True)
        keywords = (f"{name}={word if word.isdigit() else repr(word)}" for name, word in words)
        yield Row("To settle it", ", ".join(keywords))


def _wrapped(line: str, indent: int) -> list[str]:
    """A line in lines of a page's width; the further ones indented."""
    return textwrap.wrap(line, PIPED_WIDTH, subsequent_indent=" " * indent, break_long_words=False)


def _html(text: str) -> str:
    return html_escape(literal(text))
