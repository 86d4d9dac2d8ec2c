"""The checklist as Markdown: boxes to tick, without the host's name."""

from __future__ import annotations

from collections.abc import Iterable

from profkit.report import overview
from profkit.report.names import file_name
from profkit.report.summary import ReportSummary
from profkit.rules import finding_text as words
from profkit.rules.checklist import Checklist, Item
from profkit.ui.markdown import code, escape


def checklist_markdown(report: ReportSummary, found: Checklist, top: int) -> str:
    """The `top` items (0: all) of a report's checklist as boxes to tick."""
    name = file_name(report.path, with_host=False)
    lines = [f"# Checklist for {code(name)}", "", overview.headline(report), ""]
    return "\n".join([*lines, *checklist_lines(report, found, top, name)]) + "\n"


def checklist_lines(report: ReportSummary, found: Checklist, top: int, name: str) -> list[str]:
    """Boxes to tick, then roofs, proofs and what could not be told."""
    lines = []
    if found.headline:
        proof = found.headline
        told = f"{escape(words.proof_line(proof))} ({escape(words.proof_source(proof))})"
        lines += [f"**{told}**", ""]
    lines += [f"{escape(words.summary(found))}. {words.NOT_ADDITIVE.capitalize()}."]
    if found.items:
        lines.append("")
    lines += items_markdown(found.items[: top or None])
    if found.informative:
        lines += ["", f"{words.INFORMATIVE}:", "", *items_markdown(found.informative)]
    around = [f"At a roof: {code(kernel)}: {escape(told)}" for kernel, told in words.roofs(found)]
    around += [
        f"{words.NOTHING.capitalize()}: {code(kernel)}: {escape(told)}"
        for kernel, told in words.without_finding(found, report.groups)
    ]
    if proven := words.proven(found.proofs):
        around.append(f"Reachable: {escape(proven)}")
    around += [escape(told) for told in words.untold(found, report.session, name)]
    for line in around:
        lines += ["", line]
    if found.lacking:
        lines += ["", "Rules not evaluated, and what they lack:", ""]
        lines += [f"- {code(rule)}: {escape(lacked)}" for rule, lacked in words.lacks(found)]
    return lines


def items_markdown(items: Iterable[Item]) -> list[str]:
    """Items as boxes to tick, with all that is known of each."""
    return [line for item in items for line in _item(item)]


def _item(item: Item) -> list[str]:
    rule, estimate = item.rule, item.finding.estimate
    gain = f"{words.gain(estimate)} " if estimate else ""
    title = f"[{escape(rule.title)}]({item.page})" if item.page else escape(rule.title)
    told = [
        f"kernel {code(words.kernel_name(item.group))}" if item.group else words.TIMELINE,
        f"category {rule.category}, {rule.effort} effort",
        escape(words.prospects(item)),
        f"seen: {escape('; '.join(words.evidence(item)))}",
    ]
    if where := words.places(item.places):
        told.append(f"where: {escape(where)}")
    told += [f"do: {escape(action)}" for action in item.actions]
    told += [f"check: {escape(check)}" for check in rule.verify]
    mark = f"[ ] **{item.rank}. " if item.rank else "**"
    return [f"- {mark}{escape(gain)}{title}**", *(f"  - {line}" for line in told)]
