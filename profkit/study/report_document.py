"""The report of a baseline as a document, from its template `templates/report.md.j2`.

The template is Markdown of headings, paragraphs, bullets and tables, and is parsed into blocks
before values replace their marks, so that nothing in a value is Markdown.
"""

import re
from itertools import compress
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined, pass_context
from markupsafe import Markup

from profkit.comparison import text as diff_words
from profkit.core import duration, typed_file
from profkit.core.text_files import shipped_text
from profkit.core.work import BACKWARD_FLOP
from profkit.rules import finding_text
from profkit.study import drawings, report_words, summary
from profkit.study.published import overclaims
from profkit.study.report import Report, Step
from profkit.timing import latency_view, statistics, verdict
from profkit.timing.latency import FEWEST_BLOCKS, FEWEST_IN_A_BLOCK
from profkit.timing.latency_format import TRIMMED
from profkit.timing.measurement import BLOCKS
from profkit.ui import document, text
from profkit.ui.document import Block, Document, Heading, Paragraph, Table, bullets, marked

_CAUSES = 3  # chosen: of a change under ncu, fits the cell of a table
_MARK = re.compile("\ue000(\\d+)\ue001")
_MODULES = (
    duration,
    typed_file,
    summary,
    drawings,
    statistics,
    latency_view,
    document,
    text,
    report_words,
)


def report_document(report: Report) -> Document:
    """The report as blocks: the same data give the same ones."""
    values: list[Any] = []
    template = report_environment(values).get_template("report.md.j2")
    shown = template.render(
        vars(report),
        report=report,
        rows=report.summary.cells,
        cells={row.id: row for row in report.summary.cells},
        timed=report.timed,
        fastest=report.fastest(),
        standings=report.standings(),
        shared=report_words.shared(report),
    )
    chunks = (chunk.strip("\n") for chunk in re.split(r"\n\s*\n", shown))
    blocks = tuple(_block(chunk, values) for chunk in chunks if chunk.strip())
    return Document(f"Baseline: {report_words.title(report)}", blocks)


def report_environment(values: list[Any]) -> Environment:
    """The template's environment; the values that it shows are appended to `values`."""

    @pass_context  # so that it is not called when the template is compiled
    def mark(_: object, value: Any) -> Markup:
        if isinstance(value, Markup):
            return value
        values.append(value)
        return Markup(f"\ue000{len(values) - 1}\ue001")

    environment = Environment(
        loader=FunctionLoader(lambda name: shipped_text("profkit.study", f"templates/{name}")),
        autoescape=True,
        finalize=mark,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    names = {name: value for module in _MODULES for name, value in vars(module).items()}
    functions = {name: value for name, value in names.items() if callable(value)}
    environment.globals |= names | {
        "BACKWARD_FLOP": BACKWARD_FLOP,
        "BLOCKS": BLOCKS,
        "CAUSES": _CAUSES,
        "DEPENDENT_ALPHA": verdict.DEPENDENT_ALPHA,
        "FEWEST_BLOCKS": FEWEST_BLOCKS,
        "FEWEST_IN_A_BLOCK": FEWEST_IN_A_BLOCK,
        "LEAST_SIZE": verdict.LEAST_SIZE,
        "TRIMMED": TRIMMED,
        "changes": _changes,
        "findings": finding_text,
        "overclaims": overclaims,
    }
    environment.filters = functions | environment.filters
    environment.tests = functions | environment.tests
    return environment


def _block(chunk: str, values: list[Any]) -> Block:
    def filled(part: str) -> str:
        return _MARK.sub(lambda mark: str(values[int(mark[1])]), " ".join(part.split()))

    if (mark := _MARK.fullmatch(chunk)) and not isinstance(values[int(mark[1])], str):
        block: Block = values[int(mark[1])]
        return block
    if heading := re.match("(#+) ", chunk):
        return Heading(marked(filled(chunk[heading.end() :])), len(heading[1]))
    if chunk.startswith("- "):
        items = re.split("(?:^|\n)- ", chunk)[1:]
        boxes = items[0].startswith("[ ] ")
        texts = (marked(filled(item.removeprefix("[ ] "))) for item in items)
        return bullets(texts, boxes=boxes)
    caption, *rows = re.split(r"(?:^|\n)\|", chunk)
    if rows:
        head, rule, *body = (
            tuple(map(filled, row.strip().removesuffix("|").split("|"))) for row in rows
        )
        return _table(filled(caption), head, rule, body)
    return Paragraph(marked(filled(chunk)))


def _changes(step: Step) -> str:
    """The largest causes of a change of time, the sum of the others, added and removed kernels."""
    if step.evidence is None:
        return report_words.NONE
    total = step.evidence.total
    causes = [cause for cause in total.causes[:_CAUSES] if cause.seconds]
    if not causes:
        return report_words.NONE
    others = total.after - total.before - sum(cause.seconds for cause in causes)
    rows = [(diff_words.label(cause), cause.seconds) for cause in causes]
    rows += [("all other causes", others)]
    rows += [(f"{group.name}, added", group.total) for group in step.evidence.added]
    rows += [(f"{group.name}, removed", -group.total) for group in step.evidence.removed]
    return "; ".join(f"{name} {diff_words.signed(seconds)}" for name, seconds in rows)


def _table(
    caption: str, head: tuple[str, ...], rule: tuple[str, ...], rows: list[tuple[str, ...]]
) -> Table:
    """A table without the `?` columns that have no values."""
    shown = [
        "?" not in mark or any(row[column] != report_words.NONE for row in rows)
        for column, mark in enumerate(rule)
    ]
    head, *rows = (tuple(compress(row, shown)) for row in (head, *rows))
    words = sum(mark.startswith(":") for mark in rule)
    shown_rows = tuple(tuple(map(marked, row)) for row in rows)
    return Table("", head, shown_rows, words=words, caption=caption and marked(caption))
