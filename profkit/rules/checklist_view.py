"""Findings and the checklist as a terminal shows them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from profkit.report import overview
from profkit.report.names import told_apart
from profkit.rules import finding_text as words
from profkit.ui.terminal import rows_of
from profkit.ui.text import extent, literal, plural, shorten

if TYPE_CHECKING:
    from profkit.report.summary import ReportSummary
    from profkit.rules.checklist import Checklist, Item

SHOWN = 5
_ROOFS_SHOWN = 5
_NAME_LINES = 2
_LABELS = 12
_INDENT = 4
_NARROWEST_NAME = 16
_EVIDENCE_SHOWN = 3


def findings_view(report: ReportSummary, checklist: Checklist, width: int) -> RenderableType:
    """The first findings in short, then roofs, proofs and what was not evaluated."""
    first = (checklist.items or checklist.informative)[:SHOWN]
    parts: list[RenderableType] = [
        Text.assemble((words.HEADING, "bold"), (f"  {words.NOT_ADDITIVE}", "dim")),
        *_proof_lines(checklist),
        *([] if first else [Text(words.summary(checklist))]),
        *in_short(first, width, checklist),
    ]
    if rest := len(checklist.findings) - len(first):
        more = f"{plural(rest, 'more finding')}, all actions and checks"
        parts.append(Text(f"{more}: profkit checklist {report.path}", "dim"))
    return Group(*parts, *_remarks(report, checklist, width))


def _proof_lines(checklist: Checklist) -> list[RenderableType]:
    """The headline, where a variant proves more than any finding promises."""
    if checklist.headline is None:
        return []
    line = words.proof_line(checklist.headline)
    return [Text(line, "bold green"), Text(f"    {words.proof_source(checklist.headline)}", "dim")]


def in_short(
    items: Sequence[Item], width: int, checklist: Checklist | None = None
) -> list[RenderableType]:
    """Items with their first action, the kernel's name on the same line where all have room for it.

    `checklist` is the one that they are from, for what its variants prove of their kernels.
    """
    parts: list[RenderableType] = []
    heads = [_title(item, f"{item.rank or '-':>2}  ", "  ") for item in items]
    room = width - max((head.cell_len for head in heads), default=0)
    has_room = room >= _NARROWEST_NAME
    kernels = [words.kernel_name(item.group) for item in items]
    names = told_apart(kernels, room if has_room else width - _LABELS)
    for item, head, kernel in zip(items, heads, kernels, strict=True):
        rows = [
            *_facts(item, "" if has_room else names[kernel], checklist),
            ("seen", "; ".join(words.evidence(item)[:_EVIDENCE_SHOWN])),
            ("where", words.places(item.places)),
            ("do", "".join(item.actions[:1])),
            ("check", "".join(item.rule.verify[:1])),
        ]
        parts += [head.append(names[kernel]) if has_room else head, rows_of(rows, _INDENT)]
    return parts


def checklist_view(
    report: ReportSummary, checklist: Checklist, top: int, width: int
) -> RenderableType:
    """The `top` items (0: all) as boxes to tick, with all that is known of each."""
    shown = checklist.items[: top or None]
    parts: list[RenderableType] = [
        Text(shorten(literal(report.path), width), "bold"),
        Text(overview.headline(report)),
        *_proof_lines(checklist),
        Text(words.summary(checklist)),
        *_in_full(shown, width, checklist),
    ]
    if left := len(checklist.items) - len(shown):
        parts += [Text(), Text(f"{plural(left, 'more item')}: --top 0 shows all", "dim")]
    if checklist.informative:
        parts += [Text(), Text(words.INFORMATIVE, "bold")]
    parts += _in_full(checklist.informative, width, checklist)
    remarks = _remarks(report, checklist, width)
    parts += [Text(), *remarks] if remarks else []
    if checklist.lacking:
        parts += [Text(), Text("Rules not evaluated, and what they lack", "bold")]
        parts.append(rows_of(words.lacks(checklist), _INDENT))
    return Group(*parts)


def _title(item: Item, mark: str, end: str = "") -> Text:
    gain = f"{words.gain(item.finding.estimate)}  " if item.finding.estimate else ""
    return Text.assemble(mark, (gain, "green"), (item.rule.title, "bold"), (end, "not bold"))


def _facts(
    item: Item, name: str, checklist: Checklist | None, shape: str = ""
) -> list[tuple[str, str]]:
    proof = checklist.proof_of(item) if checklist else None
    return [
        ("kernel" if item.group else "about", name),
        ("shape", shape),
        ("proven", words.proof_line(proof) if proof else ""),
        ("gives", words.prospects(item)),
    ]


def _in_full(items: Iterable[Item], width: int, checklist: Checklist) -> list[RenderableType]:
    parts: list[RenderableType] = []
    for item in items:
        group, rule = item.group, item.rule
        name = shorten(words.kernel_name(group), _NAME_LINES * (width - _LABELS))
        shape = f"grid {extent(group.grid)}, block {extent(group.block)}" if group else ""
        if group and group.count > 1:
            shape += f", {plural(group.count, 'launch')}"
        rows = [
            *_facts(item, name, checklist, shape),
            ("effort", f"{rule.effort}; category {rule.category}"),
            ("seen", "; ".join(words.evidence(item))),
            ("where", words.places(item.places)),
            ("do", "\n".join(f"- {action}" for action in item.actions)),
            ("check", "\n".join(f"- {check}" for check in rule.verify)),
            ("more", ", ".join(filter(None, (f"profkit rules explain {rule.name}", item.page)))),
        ]
        title = _title(item, f"[ ] {item.rank}. " if item.rank else "- ")
        parts += [Text(), title, rows_of(rows, _INDENT)]
    return parts


def _remarks(report: ReportSummary, checklist: Checklist, width: int) -> list[RenderableType]:
    """Roofs, proofs and what was not evaluated, a line or two each."""
    roofs = words.roofs(checklist)
    rows = _named("at a roof", roofs[:_ROOFS_SHOWN], width)
    if more := len(roofs[_ROOFS_SHOWN:]):
        rows.append(("", f"and {plural(more, 'more kernel')}"))
    rows += _named(words.NOTHING, words.without_finding(checklist, report.groups), width)
    rows.append(("reachable", words.proven(checklist.proofs)))
    lines = words.untold(checklist, report.session, report.path)
    rows += [("incomplete", line) for line in lines]
    shown = [row for row in rows if row[1]]
    return [rows_of(shown, 0)] if shown else []


def _named(label: str, kernels: Sequence[tuple[str, str]], width: int) -> list[tuple[str, str]]:
    """Kernels and a remark on each, under one label."""
    names = told_apart((name for name, _ in kernels), width // 2)
    lines = [f"{names[name]}: {remark}" for name, remark in kernels]
    return [("" if index else label, line) for index, line in enumerate(lines)]
