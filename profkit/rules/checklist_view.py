"""Findings and the checklist as a terminal shows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from profkit.report import overview
from profkit.report.names import told_apart
from profkit.rules import finding_text as words
from profkit.ui.terminal import rows_of
from profkit.ui.text import extent, literal, plural, shorten

if TYPE_CHECKING:
    from profkit.report.summary import Group as KernelGroup
    from profkit.report.summary import ReportSummary
    from profkit.rules.checklist import Checklist, Item

SHOWN = 5
_ROOFS_SHOWN = 5
_NAME_LINES = 2
_LABELS = 12
_INDENT = 4
_NARROWEST_NAME = 16
_EVIDENCE_SHOWN = 3


def findings_view(report: ReportSummary, found: Checklist, width: int) -> RenderableType:
    """The first findings in short, then roofs, proofs and what could not be told."""
    parts: list[RenderableType] = [
        Text.assemble((words.HEADING, "bold"), (f"  {words.NOT_ADDITIVE}", "dim"))
    ]
    first = (found.items or found.informative)[:SHOWN]
    parts += _proof_lines(found)
    if not first:
        parts.append(Text(words.summary(found)))
    parts += in_short(first, width, found)
    rest = len(found.findings) - len(first)
    if rest:
        more = f"{plural(rest, 'more finding')}, all actions and checks"
        parts.append(Text(f"{more}: profkit checklist {report.path}", "dim"))
    return Group(*parts, *_around(report, found, width))


def _proof_lines(found: Checklist) -> list[RenderableType]:
    """The headline, where a variant proves more than any finding promises."""
    if found.headline is None:
        return []
    line = words.proof_line(found.headline)
    return [Text(line, "bold green"), Text(f"    {words.proof_source(found.headline)}", "dim")]


def in_short(
    items: Sequence[Item], width: int, found: Checklist | None = None
) -> list[RenderableType]:
    """Items with their first action, the kernel's name beside where all have room for it.

    `found` is the checklist that they are from, for what its variants prove of their kernels.
    """
    parts: list[RenderableType] = []
    heads = [_headline(item) for item in items]
    room = width - max((head.cell_len for head in heads), default=0)
    beside = room >= _NARROWEST_NAME
    names = told_apart(
        (words.kernel_name(item.group) for item in items), room if beside else width - _LABELS
    )
    for item, head in zip(items, heads, strict=True):
        name = names[words.kernel_name(item.group)]
        proven = _proven(found, item)
        parts += [
            head.append(name) if beside else head,
            _short(item, "" if beside else name, proven),
        ]
    return parts


def checklist_view(report: ReportSummary, found: Checklist, top: int, width: int) -> RenderableType:
    """The `top` items (0: all) as boxes to tick, with all that is known of each."""
    parts: list[RenderableType] = [
        Text(shorten(literal(report.path), width), "bold"),
        Text(overview.headline(report)),
        *_proof_lines(found),
        Text(words.summary(found)),
    ]
    for item in found.items[: top or None]:
        parts += [Text(), *_whole(item, width, _proven(found, item))]
    left = len(found.items) - len(found.items[: top or None])
    if left:
        parts += [Text(), Text(f"{plural(left, 'more item')}: --top 0 shows all", "dim")]
    if found.informative:
        parts += [Text(), Text(words.INFORMATIVE, "bold")]
    for item in found.informative:
        parts += [Text(), *_whole(item, width, _proven(found, item))]
    around = _around(report, found, width)
    parts += [*([Text()] if around else []), *around]
    if found.lacking:
        parts += [Text(), Text("Rules not evaluated, and what they lack", "bold")]
        parts.append(rows_of(words.lacks(found), _INDENT))
    return Group(*parts)


def _headline(item: Item) -> Text:
    return Text.assemble(
        f"{item.rank or '-':>2}  ", (_gain(item), "green"), (item.rule.title, "bold"),
        ("  ", "not bold"),
    )  # fmt: skip


def _gain(item: Item) -> str:
    return f"{words.gain(item.finding.estimate)}  " if item.finding.estimate else ""


def _proven(found: Checklist | None, item: Item) -> str:
    proof = found.proof_of(item) if found else None
    return words.proof_line(proof) if proof else ""


def _short(item: Item, name: str, proven: str) -> RenderableType:
    rows = [
        *_finding(item, name, proven),
        ("seen", "; ".join(words.evidence(item)[:_EVIDENCE_SHOWN])),
        ("where", words.places(item.places)),
        *(("do", action) for action in item.actions[:1]),
        *(("check", check) for check in item.rule.verify[:1]),
    ]
    return rows_of(rows, _INDENT)


def _finding(item: Item, name: str, proven: str, shape: str = "") -> list[tuple[str, str]]:
    return [
        ("kernel" if item.group else "about", name),
        ("shape", shape),
        ("proven", proven),
        ("gives", words.prospects(item)),
    ]


def _whole(item: Item, width: int, proven: str) -> list[RenderableType]:
    group, rule = item.group, item.rule
    name = shorten(words.kernel_name(group), _NAME_LINES * (width - _LABELS))
    rows = [
        *_finding(item, name, proven, _shape(group) if group else ""),
        ("effort", f"{rule.effort}; category {rule.category}"),
        ("seen", "; ".join(words.evidence(item))),
        ("where", words.places(item.places)),
        *((("do" if at == 0 else ""), f"- {action}") for at, action in enumerate(item.actions)),
        *((("check" if at == 0 else ""), f"- {check}") for at, check in enumerate(rule.verify)),
        ("more", ", ".join(filter(None, (f"profkit rules explain {rule.name}", item.page)))),
    ]
    mark = f"[ ] {item.rank}. " if item.rank else "- "
    head = Text.assemble(mark, (_gain(item), "green"), (rule.title, "bold"))
    return [head, rows_of(rows, _INDENT)]


def _shape(group: KernelGroup) -> str:
    launches = f", {plural(group.count, 'launch')}" if group.count > 1 else ""
    return f"grid {extent(group.grid)}, block {extent(group.block)}{launches}"


def _around(report: ReportSummary, found: Checklist, width: int) -> list[RenderableType]:
    """Roofs, proofs and what could not be told, a line or two each."""
    roofs = words.roofs(found)[:_ROOFS_SHOWN]
    rows = _named("at a roof", roofs, width)
    if len(found.roofs) > len(roofs):
        rows.append(("", f"and {plural(len(found.roofs) - len(roofs), 'more kernel')}"))
    rows += _named(words.NOTHING, words.without_finding(found, report.groups), width)
    rows.append(("reachable", words.proven(found.proofs)))
    rows += [("incomplete", told) for told in words.untold(found, report.session, report.path)]
    shown = [row for row in rows if row[1]]
    return [rows_of(shown, 0)] if shown else []


def _named(label: str, kernels: Sequence[tuple[str, str]], width: int) -> list[tuple[str, str]]:
    """Kernels and what is told of each, under one label."""
    names = told_apart((name for name, _ in kernels), width // 2)
    return [
        ("" if at else label, f"{names[name]}: {told}") for at, (name, told) in enumerate(kernels)
    ]
