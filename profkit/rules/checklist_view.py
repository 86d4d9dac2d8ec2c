"""The checklist as a document, and findings as blocks of other verbs' documents."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice

from profkit.report import overview
from profkit.report.names import file_name
from profkit.report.summary import Group, ReportSummary
from profkit.rules import finding_text as words
from profkit.rules.checklist import SHOWN, Checklist
from profkit.rules.finding import DemonstratedSpeedup, Finding, FindingGroup
from profkit.rules.headroom import Headroom
from profkit.rules.samples import WORTH_SAMPLING
from profkit.ui.document import (
    Block,
    Document,
    Facts,
    Heading,
    Item,
    Items,
    Lines,
    Paragraph,
    Row,
    Style,
    code,
    in_style,
    link,
    quiet,
    strong,
    styled,
    unmarked,
)
from profkit.ui.markdown import document_markdown
from profkit.ui.names import told_apart
from profkit.ui.text import extent, plural

_KERNELS_SHOWN = 3  # chosen: five items of three kernels each still fit
_LED_NAME = 40  # characters of their names, chosen: with their headroom they fit 100 columns
_TRYING = 2  # causes after those in short, chosen: with what is left they fit two lines
_IN_OVERVIEW = 1  # chosen: the overview of kernels, items and what to run next is one screen
_MORE = len("  +99 kernels")
_ROOFS_SHOWN = 5  # chosen: a line each at 100 columns
_ROOF_NAME = 50  # characters of a kernel's name, chosen: its roof fits beside it at 100 columns
# chosen: a template kernel's name and its first arguments fit two lines; the rest repeats them
_NAME_LINES = 2
_NUMBER = 4  # two digits of an item's number and a gap
_GAIN = 7  # a headroom as "1.05x" and a gap
_BAR = 20  # cells, chosen: what fills it fits beside it at 100 columns
_EVIDENCE_SHOWN = 3  # chosen: a line or two at 100 columns


def checklist_document(
    report: ReportSummary,
    checklist: Checklist,
    name: str,
    top: int = 0,
    timeline: str = "",
    tried: Sequence[Block] = (),
    *,
    whole: bool = False,
    complete: bool = False,
) -> Document:
    """The report's checklist under its `name`, with `tried` at its end; the rest as of
    `checklist_blocks`."""
    blocks = checklist_blocks(report, checklist, top, timeline, whole=whole, complete=complete)
    title = styled("Checklist for " if complete else "", code(name))
    head = Heading(title, 1), Paragraph(overview.headline(report))
    return Document(f"Checklist for {name}", (*head, *blocks, *tried))


def checklist_markdown(report: ReportSummary, checklist: Checklist) -> str:
    """The checklist as a run has it."""
    name = file_name(report.path, with_host=False)
    return document_markdown(checklist_document(report, checklist, name, complete=True))


def checklist_blocks(
    report: ReportSummary,
    checklist: Checklist,
    top: int = 0,
    timeline: str = "",
    *,
    whole: bool = False,
    complete: bool = False,
    brief: bool = False,
) -> Iterator[Block]:
    """The headroom of kernels, then causes as boxes to tick, the `top` (0: SHOWN) with all that is
    known of each, others in a line; then roofs, demonstrated speedups and what was not evaluated.

    Small ones are only in the `whole` list. `timeline` is the command that shows the run's. Unless
    it is `complete`, of a finding on many kernels the first are shown; in `brief` with their first
    action.
    """
    causes, numerics = checklist.causes, checklist.numerics
    most = len(causes) if whole else top or SHOWN
    listed = checklist.listed if whole else checklist.major
    first = [group for group in checklist.major if group.comes_first]
    informative = [group for group in listed if not (group.rank or group.comes_first)]
    small = [group for group in checklist.minor if group.rank]
    kernels = None if whole or complete else _KERNELS_SHOWN
    in_full = partial(
        _in_full,
        checklist=checklist,
        timeline=timeline,
        kernels=kernels,
        complete=complete,
        brief=brief,
    )
    yield from _demonstrated(checklist)
    yield Paragraph(words.summary(checklist))
    if causes or numerics:
        yield Paragraph(quiet(f"estimated speedups: {words.extents(checklist)}"))
    yield from [Paragraph(quiet(words.NEEDED))] if checklist.headrooms else []
    yield from _headrooms(report, checklist)
    yield from [Heading(words.FIRST, 3)] if first else []
    yield from in_full(first)
    yield from [Heading(words.CAUSES, 3)] if causes else []
    yield from in_full(causes[:most])
    yield from _lines_under(words.TRYING, "", map(_trying, causes[most:]))
    yield from _divided(checklist)
    yield from [Heading(words.NUMERICS, 3)] if numerics else []
    yield from in_full(numerics)
    if whole and small:
        yield Heading(words.folded(small), 3)
        yield from in_full(small)
    if brief:
        unranked = (
            f"{each.title}: {each.best.subject}{each.other_kernels}" for each in informative
        )
        yield from _lines_under(words.INFORMATIVE, "", unranked)
    else:
        yield from [Heading(words.INFORMATIVE, 3)] if informative else []
        yield from in_full(informative)
    if not whole and (text := words.folded(checklist.minor)):
        command = f"profkit checklist {shlex.quote(report.path)} --all"
        shown = (f"{text}, listed by", f"  {command}") if brief else (f"{text}; --all lists them",)
        yield Lines(tuple(map(quiet, shown)), gap=True)
    if remarks := _remarks(report, checklist, report.path if brief else None, complete=complete):
        yield Facts("", remarks, gap=True)
    if checklist.lacking and not brief:
        yield Heading("Rules lacking data, and their missing quantities", 3)
        rows = (Row(code(rule), missing) for rule, missing in words.lacks(checklist))
        yield Facts("", tuple(rows), indent=4)


def distances(
    report: ReportSummary, checklist: Checklist
) -> Sequence[tuple[Group, Headroom, str, str]]:
    """The headroom of the first kernels with findings, and what fills the distance: as a bar, and
    in words."""
    known = (
        (group, headroom)
        for group in report.groups
        if checklist.findings_on(group) and (headroom := checklist.headroom_of(group))
    )
    return [
        (group, headroom, *words.distance(group, headroom, _BAR))
        for group, headroom in islice(known, _KERNELS_SHOWN)
    ]


def _headrooms(
    report: ReportSummary, checklist: Checklist, numbers: Mapping[int, int] | None = None
) -> Iterator[Block]:
    """Two lines for each kernel; with the `numbers` of kernels one, which has the factor alone."""
    rows = distances(report, checklist)
    names = told_apart((words.kernel_name(group) for group, *_ in rows), _LED_NAME)
    lines: list[str] = []
    for group, headroom, drawn, parts in rows:
        start = f"    {drawn}  "
        if numbers is None:
            name = code(names[words.kernel_name(group)])
            lines.append(styled(name, "  ", strong(words.headroom(headroom))))
        else:
            start = f"#{numbers[id(group)]}  {words.factor(headroom.factor):<{_GAIN}}{drawn}  "
        lines.append(styled(start, quiet(parts)))
    yield from _lines_under("Headroom", words.BAR, lines)


def _lines_under(title: str, note: str, lines: Iterable[str]) -> Iterator[Block]:
    if shown := tuple(lines):
        yield Heading(title, 3, note)
        yield Lines(shown)


def _trying(group: FindingGroup) -> str:
    gain = in_style(words.least_gain(group), Style.good)
    return styled(f"{group.rank:>2}  ", gain, f"  {group.title}")


def _divided(checklist: Checklist) -> Iterator[Block]:
    """Kernels with fewer blocks than SMs, which no counter says whether they can have more."""
    kernels = checklist.divided
    lines = (
        styled(code(each.subject), f": {words.division(each)}") for each in kernels[:_KERNELS_SHOWN]
    )
    more = len(kernels) - _KERNELS_SHOWN
    others = [quiet(f"and {plural(more, 'more kernel')}")] if more > 0 else []
    yield from _lines_under(words.DIVIDED, words.IF_DIVIDED, (*lines, *others))


def findings_in_full(findings: Iterable[Finding], *, complete: bool = False) -> Iterator[Block]:
    """Findings as boxes to tick, each on its own, with all that is known of it."""
    yield from _in_full(map(words.single, findings), complete=complete)


def findings_in_short(findings: Iterable[Finding]) -> Iterator[Block]:
    """Findings with their first action, each on its own."""
    yield from _in_full(map(words.single, findings), brief=True)


def _in_full(
    groups: Iterable[FindingGroup],
    checklist: Checklist | None = None,
    timeline: str = "",
    kernels: int | None = _KERNELS_SHOWN,
    *,
    complete: bool = False,
    brief: bool = False,
) -> Iterator[Items]:
    """Findings on so many kernels each, all if None; in `brief` with their first action."""
    items = []
    for group in groups:
        shown = group.findings[:kernels]
        left = _left_out(group, len(shown), "" if brief else "; --all lists them")
        rows = [*_kernel_rows(shown, checklist, complete=complete, brief=brief), left]
        if brief:
            rows += _first_action(group)
            mark = f"{group.rank:>2} " if group.rank else " ! " if group.comes_first else " - "
            title = _title(group, checklist)
        else:
            rows = [*_all_actions(group, checklist), *rows, *_about(group, timeline)]
            number, mark = (f"{group.rank}. ", "[ ]") if group.rank else ("", "-")
            mark = "[ ]" if group.comes_first else mark
            title = styled(number, _title(group, checklist))
        items.append(Item(title, _known(rows), mark=mark))
    yield from [Items(tuple(items), apart=not brief)] if items else []


def _all_actions(group: FindingGroup, checklist: Checklist | None) -> Iterator[Row]:
    facets = checklist.facets_of(group.best) if checklist else ()
    more = words.facet_actions(group.best, facets)
    yield from (Row(label, _listed((*actions, *more))) for label, actions in _actions(group))
    yield Row("verify", _listed(words.verify(group.best)))
    yield Row("assumes", group.best.assumes)


def _about(group: FindingGroup, timeline: str) -> Iterator[Row]:
    rule, page = group.rule, group.best.page
    yield Row("timeline", "" if group.best.group else timeline)
    yield Row("effort", f"{rule.effort}; category {rule.category}")
    explained = f"profkit rules explain {rule.name}{', ' if page else ''}"
    yield Row("details", styled(explained, link(page, page)))


def _first_action(group: FindingGroup) -> Iterator[Row]:
    yield from (Row(label, "; ".join(actions[:1])) for label, actions in _actions(group))
    yield Row("verify", "".join(words.verify(group.best)[:1]))
    yield Row("assumes", group.best.assumes)


def _known(rows: Iterable[Row]) -> tuple[Row, ...]:
    return tuple(row for row in rows if row.value)


def _title(group: FindingGroup, checklist: Checklist | None) -> str:
    gain = words.item_gain(group)
    shown = (in_style(gain, Style.good), "  ") if gain else ()
    return styled(*shown, strong(group.title), _basis(group, checklist))


def _basis(group: FindingGroup, checklist: Checklist | None) -> str:
    remarks = words.remarks(group, checklist)
    return quiet(f"  ({remarks})" if remarks else "")


def _actions(group: FindingGroup) -> Sequence[tuple[str, tuple[str, ...]]]:
    """The actions for kernels that can be edited, and for callers of library kernels."""
    lists = words.actions_of(group)
    labels = {True: "actions, library" if len(lists) > 1 else "actions", False: "actions"}
    return [(labels[is_library], actions) for actions, is_library in lists]


def _kernel_rows(
    findings: Sequence[Finding],
    checklist: Checklist | None,
    *,
    brief: bool = False,
    complete: bool = False,
) -> Iterator[Row]:
    """What is known of findings on their kernels; their speedups for the whole report too where
    there are several."""
    proofs: list[DemonstratedSpeedup] = []
    for place, finding in enumerate(findings):
        if finding.group:
            name = code(words.kernel_name(finding.group))
            yield Row("kernel", name, most=1 if brief else _NAME_LINES)
        yield Row("", "" if brief else _shape(finding))
        yield Row("estimated speedup", words.estimate(finding, whole=len(findings) > 1))
        if checklist:
            yield Row("also seen as", words.facets(checklist.facets_of(finding)))
            if (proof := checklist.proof_of(finding)) and proof not in proofs:
                yield Row("demonstrated", words.proof_of_variant(proof))
                proofs.append(proof)
        most = None if complete or not (brief or place) else _EVIDENCE_SHOWN
        yield Row("evidence", "; ".join(words.evidence(finding)[:most]))
        if checklist:
            yield Row("certainty", words.certainty(finding, checklist.rival_of(finding)))
        yield Row("recorded fixes", words.recorded(finding))
        yield Row("location", words.location(finding))


def _left_out(group: FindingGroup, shown: int, remedy: str = "") -> Row:
    more = len(group.findings) - shown
    return Row("", f"and {plural(more, 'more kernel')}{remedy}" if more else "")


def _shape(finding: Finding) -> str:
    group = finding.group
    if group is None:
        return ""
    launches = plural(group.count, "launch") if group.count > 1 else ""
    library = f"library kernel ({finding.library})" if finding.library else ""
    shape = f"grid {extent(group.grid)}, block {extent(group.block)}"
    return ", ".join(filter(None, (shape, launches, library)))


def _listed(texts: Iterable[str]) -> str:
    return "\n".join(f"- {text}" for text in texts)


def _demonstrated(checklist: Checklist) -> Iterator[Block]:
    """The variant that demonstrates more than any estimated speedup."""
    if proof := checklist.headline:
        line = f"{words.DEMONSTRATED} {words.proof_line(proof)}"
        yield Paragraph(in_style(line, Style.good))
        yield Lines((quiet(words.proof_source(proof)),), indent=4)


def _remarks(
    report: ReportSummary, checklist: Checklist, path: str | None, *, complete: bool = False
) -> tuple[Row, ...]:
    """Roofs, demonstrated speedups and what was not evaluated, a line or two each."""
    roofs = words.roofs(checklist, checklist.major)
    shown = roofs if complete else roofs[:_ROOFS_SHOWN]
    rows = [*_named("at the roof", shown, complete=complete)]
    if more := len(roofs) - len(shown):
        rows.append(Row("", f"and {plural(more, 'more kernel')}"))
    without = words.without_finding(checklist, report.groups)
    rows += _named(words.NOTHING, without, complete=complete)
    rows.append(Row("demonstrated", words.proven(checklist.proofs)))
    rows += _named("ncu's rules", [*words.ncu_advice(checklist, report.groups)], complete=complete)
    lines = words.unevaluated_lines(checklist, report.session, path)
    return _known([*rows, *(Row("lacking data", line) for line in lines)])


def _named(label: str, kernels: Sequence[tuple[str, str]], *, complete: bool) -> Iterator[Row]:
    """Kernels and a remark on each, under one label."""
    names = told_apart((name for name, _ in kernels), _ROOF_NAME)
    for place, (name, remark) in enumerate(kernels):
        shown = code(name if complete else names[name])
        colon = ":" if remark.startswith("\n") else ": "
        yield Row("" if place else label, styled(shown, f"{colon}{remark}"))


def overview_blocks(report: ReportSummary, checklist: Checklist, width: int) -> Iterator[Block]:
    """The first findings, a line for each and for its first kernel, and how many are left; then
    demonstrated speedups that were not named, and rules without data."""
    numbers = {id(group): number for number, group in enumerate(report.groups, start=1)}
    causes = checklist.causes
    first = [group for group in checklist.major if group.comes_first]
    shown = [*first, *causes[:SHOWN]] or list(checklist.major[:SHOWN])
    yield from _headrooms(report, checklist, numbers)
    yield Heading(words.HEADING, note=words.legend(checklist) if causes else "")
    yield from _demonstrated(checklist)
    yield from [] if shown else [Paragraph(words.summary(checklist))]
    gains = max((len(words.item_gain(group)) for group in shown), default=0)
    yield Lines(
        tuple(line for each in shown for line in _lines(each, width, checklist, numbers, gains))
    )
    after = causes[SHOWN:]
    more = f", {len(after) - _TRYING} more" if len(after) > _TRYING else ""
    others = sum(not group.rank for group in checklist.major if group not in shown)
    left = (
        f"{plural(others, 'finding')} without an estimated speedup" if others else "",
        words.folded(checklist.minor),
    )
    hidden = "; ".join(filter(None, left))
    rest = f"{words.trying(after[:_TRYING])}{more}", f"Not shown: {hidden}" if hidden else ""
    yield from [Lines((". ".join(filter(None, rest)),))] if any(rest) else []
    yield from _divided(checklist)
    yield from [Lines((quiet(words.NOTES),))] if causes else []
    proven = "" if checklist.headline else words.proven(checklist.proofs)
    named = [group.best.group for group in shown]
    roofs = [
        roof
        for group, roof in zip(checklist.roofs, words.roofs(checklist, shown), strict=True)
        if group not in named and group.share >= WORTH_SAMPLING
    ]
    lines = words.unevaluated_lines(checklist, report.session, with_samples=False)
    rows = _known(
        [
            Row("demonstrated", proven),
            *_named("at the roof", roofs[:_IN_OVERVIEW], complete=False),
            *(
                Row("numerics", f"{words.item_gain(group)} {group.title}")
                for group in checklist.numerics
            ),
            *_named("ncu's rules", [*words.ncu_advice(checklist, report.groups)], complete=False),
            *(Row("lacking data", line) for line in lines),
        ]
    )
    yield from [Facts("", rows, gap=True)] if rows else []


def _lines(
    group: FindingGroup,
    width: int,
    checklist: Checklist,
    numbers: Mapping[int, int],
    gains: int,
) -> Iterator[str]:
    """A finding's title, and under it its first kernel with its own speedup and number; speedups
    are up to `gains` characters long."""
    best = group.best
    number = f"{group.rank:>2}  " if group.rank else " !  " if group.comes_first else " -  "
    gain = words.item_gain(group)
    gain = f"{gain:<{gains}}  " if gain else ""
    basis = _basis(group, checklist)
    fits = len(f"{number}{gain}{group.title}{unmarked(basis)}") <= width
    title = group.title if fits else words.short_title(group.title)
    yield styled(number, in_style(gain, Style.good), strong(title), basis)
    has_own = best.estimate and not best.is_ceiling
    own = f"{best.speedup_text}{words.of_chain(best)}" if has_own else ""
    start = " " * (_NUMBER + len(gain))
    start += f"{own}  " if own else ""
    start += f"#{numbers[id(best.group)]}  " if best.group else ""
    remarks = (
        f"{best.library} library" if best.library else "",
        "" if best.estimate else words.allowed(best) or words.busiest(best),
    )
    remark = ", ".join(filter(None, remarks))
    remark = f" ({remark})" if remark else ""
    name = words.kernel_name(best.group)
    short = told_apart([name], width - len(start) - len(remark) - _MORE)[name]
    more = len(group.findings) - _IN_OVERVIEW
    others = f"  +{plural(more, 'kernel')}" if more else ""
    if best.group or own:
        yield styled(start, short, quiet(f"{remark}{others}"))
