"""Findings and the checklist as a terminal shows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from profkit.report import overview
from profkit.rules import finding_text as words
from profkit.ui.names import told_apart
from profkit.ui.terminal import rows_of
from profkit.ui.text import extent, literal, plural, shorten

if TYPE_CHECKING:
    from profkit.report.summary import ReportSummary
    from profkit.rules.checklist import Checklist
    from profkit.rules.finding import Finding, FindingGroup

# chosen: with them, `analyze` fits a screen of 45 lines; the others are counted
SHOWN = 5
_KERNELS_SHOWN = 3  # chosen: five items of three kernels each still fit
_IN_OVERVIEW = 1  # chosen: the overview of kernels, items and what to run next is one screen
_MORE = len("  +99 kernels")
_ROOFS_SHOWN = 5  # chosen: a line each at 100 columns
# chosen: a template kernel's name and its first arguments fit two lines; the rest repeats them
_NAME_LINES = 2
_LABELS = 23  # indentation, the longest label ("estimated speedup") and the gap after it
_INDENT = 4
_NUMBER = 4  # two digits of an item's number and a gap
_GAIN = 7  # a speedup as "1.05x" and a gap
_EVIDENCE_SHOWN = 3  # chosen: a line or two at 100 columns


def overview_view(report: ReportSummary, checklist: Checklist, width: int) -> RenderableType:
    """The first items, a line for each and for each of their kernels, and how many are left."""
    numbered = [item for item in checklist.major if item.rank]
    shown = (numbered or checklist.major)[:SHOWN]
    parts: list[RenderableType] = [
        Text.assemble(
            (words.HEADING, "bold"), (f"  {words.legend(checklist)}" if numbered else "", "dim")
        ),
        *_headline(checklist),
        *([] if shown else [Text(words.summary(checklist))]),
    ]
    numbers = {id(group): number for number, group in enumerate(report.groups, start=1)}
    for item in shown:
        parts += _compact(item, width, checklist, numbers)
    parts += _rest(shown, checklist)
    return Group(*parts, *([Text(words.notes(), "dim")] if numbered else []))


def _remark(item: Finding) -> str:
    """The library of a kernel, and of a finding without an estimate the busiest resource."""
    library = f"{item.library} library" if item.library else ""
    busiest = "" if item.estimate else words.busiest(item)
    parts = ", ".join(filter(None, (library, busiest)))
    return f" ({parts})" if parts else ""


def _rest(shown: Sequence[FindingGroup], checklist: Checklist) -> list[RenderableType]:
    left = [item for item in checklist.major if item not in shown]
    estimated = sum(item.rank > 0 for item in left)
    others = len(left) - estimated
    parts = [f"{plural(estimated, 'finding')} below the top {len(shown)}" if estimated else ""]
    parts.append(f"{plural(others, 'finding')} without an estimated speedup" if others else "")
    parts.append(words.folded(checklist))
    line = "; ".join(filter(None, parts))
    count = len(left) + len(checklist.minor)
    return [Text(f"Not shown ({count}): {line}", "dim")] if line else []


def _compact(
    item: FindingGroup,
    width: int,
    checklist: Checklist,
    numbers: Mapping[int, int],
) -> list[Text]:
    """An item's title, and under it its first kernel with its own speedup and number."""
    number = f"{item.rank:>2}  " if item.rank else " -  "
    gain = f"{words.item_gain(item):<{_GAIN}}" if item.rank else ""
    lines = [
        Text.assemble(
            number, (gain, "green"), (item.rule.title, "bold"), (_basis(item, checklist), "dim")
        )
    ]
    rows = [
        (
            f"{words.gain(each.estimate)}{words.of_chain(each)}"
            if each.estimate and not each.is_ceiling
            else "",
            f"#{numbers[id(each.group)]}" if each.group else "",
            _name(each),
            _remark(each),
        )
        for each in item.findings[:_IN_OVERVIEW]
    ]
    gains, marks = (max(len(row[column]) for row in rows) for column in (0, 1))
    indent = _NUMBER + _GAIN if item.rank else _NUMBER
    before = indent + sum(size + 2 for size in (gains, marks) if size)
    room = width - before - max(len(library) for *_, library in rows) - _MORE
    names = told_apart((name for _, _, name, _ in rows), room)
    for own_gain, mark, name, library in rows:
        columns = [f"{own_gain:<{gains}}  " if gains else "", f"{mark:<{marks}}  " if marks else ""]
        start = " " * indent + "".join(columns)
        lines.append(Text.assemble(start, names[name], (library, "dim")))
    if more := len(item.findings[_IN_OVERVIEW:]):
        lines[-1].append(f"  +{plural(more, 'kernel')}", "dim")
    return lines


def findings_view(report: ReportSummary, checklist: Checklist, width: int) -> RenderableType:
    """The first items with evidence and first action, then roofs, and what was not evaluated."""
    shown = checklist.major[:SHOWN]
    parts: list[RenderableType] = [
        Text.assemble(
            (words.HEADING, "bold"), (f"  {words.extents(checklist)}" if shown else "", "dim")
        ),
        *_headline(checklist),
        *([] if shown else [Text(words.summary(checklist))]),
        *_in_short(shown, width, checklist),
        *_rest(shown, checklist),
    ]
    return Group(*parts, *remarks(report, checklist, width))


def _headline(checklist: Checklist) -> list[RenderableType]:
    """The variant that demonstrates more than any estimated speedup."""
    if checklist.headline is None:
        return []
    line = f"{words.DEMONSTRATED} {words.proof_line(checklist.headline)}"
    source = Text(words.proof_source(checklist.headline), "dim")
    return [Text(line, "bold green"), Padding(source, (0, 0, 0, _INDENT))]


def in_short(items: Iterable[Finding], width: int) -> list[RenderableType]:
    """Findings with their first action, each on its own."""
    return _in_short(map(words.single, items), width)


def in_full(items: Iterable[Finding], width: int) -> list[RenderableType]:
    """Findings as boxes to tick, each on its own, with all that is known of it."""
    return _in_full(map(words.single, items), width, None, "", whole=False)


def located(items: Iterable[Finding], width: int, kernels: int) -> list[RenderableType]:
    """Findings at lines of one of so many `kernels`, without numbers."""
    parts: list[RenderableType] = []
    for item in items:
        extent = f"the {kernels} selected kernels" if item.is_selection else ""
        alone = replace(item, peers=())  # their numbers are those of another list
        rows = _kernel_rows([alone], width, None, brief=True, extent=extent, whole=kernels > 1)
        rows += _action_rows(words.single(item), most=1)
        rows += [("verify", "".join(item.rule.verify[:1])), ("assumes", item.assumes)]
        parts += [Text(item.title, "bold"), rows_of(rows, _INDENT)]
    return parts


def _in_short(
    items: Iterable[FindingGroup], width: int, checklist: Checklist | None = None
) -> list[RenderableType]:
    parts: list[RenderableType] = []
    for item in items:
        rows = [
            *_kernel_rows(item.findings[:_KERNELS_SHOWN], width, checklist, brief=True),
            *_left_out(item, _KERNELS_SHOWN),
            ("all kernels", words.overlap(item)),
            *(row for row in _action_rows(item, most=1)),
            ("verify", "".join(item.rule.verify[:1])),
            ("assumes", item.best.assumes),
        ]
        mark = f"{item.rank:>2}  " if item.rank else " -  "
        parts += [_title(item, mark, checklist), rows_of(rows, _INDENT)]
    return parts


def checklist_view(
    report: ReportSummary,
    checklist: Checklist,
    top: int,
    width: int,
    timeline: str = "",
    *,
    whole: bool,
) -> RenderableType:
    """The `top` items (0: all) as boxes to tick, with all that is known of each; minor ones and
    those at a roof only in the `whole` list. `timeline` is the command that shows the run's."""
    items = checklist.rule_items if whole else checklist.major
    numbered = [item for item in items if item.rank]
    informative = [item for item in items if not item.rank]
    shown = numbered[: top or None]
    parts: list[RenderableType] = [
        Text(shorten(literal(report.path), width), "bold"),
        Text(overview.headline(report)),
        *_headline(checklist),
        Text(words.summary(checklist)),
        *(Text(line, "dim") for line in _legend(checklist) if numbered),
        *_in_full(shown, width, checklist, timeline, whole=whole),
    ]
    if left := len(numbered) - len(shown):
        parts += [Text(), Text(f"{plural(left, 'more finding')}; --top 0 lists them", "dim")]
    if informative:
        parts += [Text(), Text(words.INFORMATIVE, "bold")]
    parts += _in_full(informative, width, checklist, timeline, whole=whole)
    if not whole and (line := words.folded(checklist)):
        parts += [Text(), Text(f"{line}; --all lists them", "dim")]
    rows = remarks(report, checklist, width)
    parts += [Text(), *rows] if rows else []
    if checklist.lacking:
        parts += [Text(), Text("Rules not evaluated, and their missing quantities", "bold")]
        parts.append(rows_of(words.lacks(checklist), _INDENT))
    return Group(*parts)


def _legend(checklist: Checklist) -> Iterator[str]:
    yield f"estimated speedups: {words.extents(checklist)}"
    if checklist.headrooms:
        yield words.NEEDED


def _in_full(
    items: Iterable[FindingGroup],
    width: int,
    checklist: Checklist | None,
    timeline: str,
    *,
    whole: bool,
) -> list[RenderableType]:
    parts: list[RenderableType] = []
    for item in items:
        rule = item.rule
        most = len(item.findings) if whole else _KERNELS_SHOWN
        explained = filter(None, (f"profkit rules explain {rule.name}", item.best.page))
        rows = [
            *_action_rows(item),
            ("verify", _listed(rule.verify)),
            ("assumes", item.best.assumes),
            *_kernel_rows(item.findings[:most], width, checklist, brief=False),
            *_left_out(item, most, "; --all lists them"),
            ("all kernels", words.overlap(item)),
            ("timeline", "" if item.best.group else timeline),
            ("effort", f"{rule.effort}; category {rule.category}"),
            ("details", ", ".join(explained)),
        ]
        mark = f"[ ] {item.rank}. " if item.rank else "- "
        parts += [Text(), _title(item, mark, checklist), rows_of(rows, _INDENT)]
    return parts


def _title(item: FindingGroup, mark: str, checklist: Checklist | None) -> Text:
    gain = f"{words.item_gain(item)}  " if item.rank else ""
    whole = _basis(item, checklist) if checklist else ""
    return Text.assemble(mark, (gain, "green"), (item.rule.title, "bold"), (whole, "dim"))


def _basis(item: FindingGroup, checklist: Checklist) -> str:
    basis = words.basis(item, checklist)
    return f"  ({basis})" if basis else ""


def _action_rows(item: FindingGroup, most: int | None = None) -> list[tuple[str, str]]:
    """The actions for kernels that can be edited, and for callers of library kernels."""
    rows = []
    for actions, library in words.actions_of(item):
        text = _listed(actions) if most is None else "; ".join(actions[:most])
        rows.append(("actions, library" if library else "actions", text))
    return rows if len(rows) > 1 else [("actions", text) for _, text in rows]


def _kernel_rows(
    findings: Sequence[Finding],
    width: int,
    checklist: Checklist | None,
    *,
    brief: bool,
    extent: str = "",
    whole: bool = False,
) -> list[tuple[str, str]]:
    """The kernels of a finding; their speedups for the `whole` report, which is the `extent`, too
    where there are several."""
    whole = whole or len(findings) > 1
    rows: list[tuple[str, str]] = []
    names = _names(findings, (1 if brief else _NAME_LINES) * (width - _LABELS))
    proofs = [checklist.proof_of(item) if checklist else None for item in findings]
    for index, (item, proof) in enumerate(zip(findings, proofs, strict=True)):
        is_new = proof not in proofs[:index]
        most = _EVIDENCE_SHOWN if brief or index else None
        rows += [
            ("kernel", names[_name(item)] if item.group else ""),
            ("", "" if brief else _shape(item)),
            ("estimated speedup", words.estimate(item, whole=whole, extent=extent)),
            ("headroom", words.headroom(checklist.headroom_beside(item) if checklist else None)),
            ("demonstrated", words.proof_of_variant(proof) if proof and is_new else ""),
            ("evidence", "; ".join(words.evidence(item)[:most])),
            ("location", words.location(item)),
        ]
    return [row for row in rows if row[1]]


def _left_out(item: FindingGroup, most: int, remedy: str = "") -> list[tuple[str, str]]:
    more = len(item.findings[most:])
    return [("", f"and {plural(more, 'more kernel')}{remedy}")] if more else []


def _shape(item: Finding) -> str:
    group = item.group
    if group is None:
        return ""
    launches = plural(group.count, "launch") if group.count > 1 else ""
    library = f"library kernel ({item.library})" if item.library else ""
    shape = f"grid {extent(group.grid)}, block {extent(group.block)}"
    return ", ".join(filter(None, (shape, launches, library)))


def _name(item: Finding) -> str:
    return words.kernel_name(item.group)


def _names(findings: Iterable[Finding], width: int) -> Mapping[str, str]:
    return told_apart(map(_name, findings), width)


def _listed(texts: Iterable[str]) -> str:
    return "\n".join(f"- {text}" for text in texts)


def remarks(report: ReportSummary, checklist: Checklist, width: int) -> list[RenderableType]:
    """Roofs, demonstrated speedups and what was not evaluated, a line or two each."""
    roofs = words.roofs(checklist)
    rows = _named("at the roof", roofs[:_ROOFS_SHOWN], width)
    if more := len(roofs[_ROOFS_SHOWN:]):
        rows.append(("", f"and {plural(more, 'more kernel')}"))
    rows += _named(words.NOTHING, words.without_finding(checklist, report.groups), width)
    rows.append(("demonstrated", words.proven(checklist.proofs)))
    lines = words.unevaluated_lines(checklist, report.session, report.path)
    rows += [("not evaluated", line) for line in lines]
    return _labeled(rows)


def main_remarks(report: ReportSummary, checklist: Checklist) -> list[RenderableType]:
    """Demonstrated speedups that the headline leaves out, and rules without data."""
    proven = "" if checklist.headline else words.proven(checklist.proofs)
    lines = words.unevaluated_lines(checklist, report.session, with_samples=False)
    rows = [("demonstrated", proven), *(("not evaluated", line) for line in lines)]
    return _labeled(rows)


def _labeled(rows: Sequence[tuple[str, str]]) -> list[RenderableType]:
    shown = [row for row in rows if row[1]]
    return [rows_of(shown, 0)] if shown else []


def _named(label: str, kernels: Sequence[tuple[str, str]], width: int) -> list[tuple[str, str]]:
    """Kernels and a remark on each, under one label."""
    names = told_apart((name for name, _ in kernels), width // 2)
    lines = [f"{names[name]}: {remark}" for name, remark in kernels]
    return [("" if index else label, line) for index, line in enumerate(lines)]
