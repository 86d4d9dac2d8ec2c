"""Findings in words: gains, evidence, places, roofs, what was not evaluated; and as Markdown."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from profkit.core.unit_words import is_word, unit_after
from profkit.report import names
from profkit.report.catalog import catalog
from profkit.report.floors import WORTH, floors
from profkit.report.resources import RESOURCES
from profkit.rules.rule_file import CONTEXT
from profkit.rules.samples import WORTH_SAMPLING
from profkit.timeline import region
from profkit.ui import text as numbers
from profkit.ui.markdown import code, escape
from profkit.ui.text import compact, literal, number, percent, plural

if TYPE_CHECKING:
    from profkit.report.session import Session
    from profkit.report.source_lines import Place
    from profkit.report.summary import Group, ReportSummary
    from profkit.rules.checklist import Checklist, Item, Proof
    from profkit.rules.engine import Estimate, Evidence

HEADING = "What limits, and what a fix would give"
NOTHING = "nothing found"
NOT_ADDITIVE = "estimates are not additive"
INFORMATIVE = "Without an estimated speedup"
TIMELINE = "the timeline"
_SIGNS = {">": "above", ">=": "at least", "<": "below", "<=": "at most", "!=": "other than"}
_WORTH_A_DIGIT = 1.01
_LEAST_PLACE = 0.05
_FLAT = 0.02  # the largest of fifty places that are all alike: no place to begin at
# what a rule's own `match` selects has no meaning outside of the rule
_LABELS = {
    "matched": "warp samples that this rule selects",
    "matched_active": "warp samples that issue in their loops",
}
_LONGEST = 100
_UNIT_OF_ARGUMENTS = {"min", "max", "abs", "ceil", "clip", "otherwise", "where"}
_UNITS = {name: unit for name, (unit, _) in {**CONTEXT, **region.QUANTITIES}.items()}


def gain(estimate: Estimate) -> str:
    """A kernel's estimated speed-up as `2.2x [1.9, 2.5]`."""
    return numbers.factor_range(estimate.likely, estimate.low, estimate.high)


def factor(value: float) -> str:
    """A speed-up alone: `1.05x`, `2.2x`, `24x`."""
    return numbers.factor(value)


def run_gain(estimate: Estimate) -> str:
    """The factor for the whole report: `1.05x`, `under 1.01x`."""
    return factor(estimate.run) if estimate.run >= _WORTH_A_DIGIT else f"under {_WORTH_A_DIGIT}x"


def prospects(item: Item) -> str:
    """What the fix of an item promises, what holds it back then, and how sure that is."""
    finding, rule = item.finding, item.rule
    estimate = finding.estimate
    if estimate is None:
        if finding.lacking:
            return f"estimated speedup unknown, not recorded: {', '.join(finding.lacking)}"
        if finding.negligible:
            return f"estimated speedup below {WORTH}x"
        return f"no gain promised by the counters; {rule.confidence} confidence that it limits"
    parts = [whole_gain(item)]
    if limit := estimate.bounded_by:
        time = number(estimate.bound_seconds, "s")
        again = limit in {RESOURCES.get(name) for name in rule.relieves}
        verb = " again" if again else " are next" if limit.endswith("s") else " is next"
        parts.append(f"then {limit}{verb}, at {time}")
    if item.peers:
        parts.append(f"of the same weight as {', '.join(map(str, item.peers))} on this kernel")
    return "; ".join((*parts, f"{rule.confidence} confidence"))


def whole_gain(item: Item) -> str:
    """What a fix would give all launches together: `1.05x for the whole report`; "" for nothing."""
    if item.finding.estimate is None:
        return ""
    shown = run_gain(item.finding.estimate)
    if item.group is None:
        return f"{shown} for the whole time from the first GPU work to the last"
    return f"{shown} for {'the launches picked' if item.picked else 'the whole report'}"


def evidence(item: Item) -> tuple[str, ...]:
    """The values that made the rule fire, with their units and thresholds, then other quantities.

    Each once, expressions too long to read left out: `profkit rules explain --on` has them all.
    """
    shown: dict[str, str] = {}
    for value in item.finding.evidence:
        name = value.quantity
        if value.holds and len(name) <= _LONGEST and not name.startswith("known("):
            shown.setdefault(name, measured(value))
    return tuple(shown.values())


def measured(value: Evidence) -> str:
    """A value with its unit and what it was held against: `l2_busy 84.2% (above 60.0%)`."""
    shown, threshold = _with_threshold(value)
    text = f"{_LABELS.get(value.quantity, value.quantity)} {shown}"
    if math.isnan(value.threshold) or value.sign not in _SIGNS:
        return text
    return f"{text} ({_SIGNS[value.sign]} {threshold})"


def compared(value: Evidence) -> str:
    """A comparison, whether it holds or not: `dram_busy 33.1% < 60.0%`."""
    shown, threshold = _with_threshold(value)
    return f"{value.quantity} {shown} {value.sign} {threshold}"


def missed(value: Evidence) -> str:
    """A comparison that does not hold: `dram_busy 33.1%, not above 60.0%`."""
    shown, threshold = _with_threshold(value)
    expected = " ".join(filter(None, (_SIGNS.get(value.sign), threshold)))
    return f"{value.quantity} {shown}, not {expected}"


def _with_threshold(value: Evidence) -> tuple[str, str]:
    """A value and its threshold with their unit; one that is a word is not repeated."""
    unit = unit_of(value.quantity)
    if is_word(unit):
        return f"{compact(value.value)} {unit_after(value.value, unit)}", compact(value.threshold)
    if unit:
        return number(value.value, unit), number(value.threshold, unit)
    return compact(value.value), compact(value.threshold)


@cache
def unit_of(text: str) -> str:
    """The unit of an expression's value, "1" for a share; "" for a plain or mixed number."""
    return _unit(ast.parse(text, mode="eval").body) or ""


def _unit(node: ast.expr) -> str | None:
    """None where the unit is unknown, "" for a constant, which goes with any."""
    match node:
        case ast.Name(id=name):
            entry = catalog().quantities.get(name)
            return entry.unit if entry else _UNITS.get(name)
        case ast.Constant():
            return ""
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _unit(operand)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            return _common_unit((left, right))
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div() as operation, right=right):
            return _unit_of_product(left, right, divided=isinstance(operation, ast.Div))
        case ast.Call(func=ast.Name(id=name), args=args) if name in _UNIT_OF_ARGUMENTS:
            return _common_unit(args[1:] if name == "where" else args)
    return None


def _common_unit(nodes: Iterable[ast.expr]) -> str | None:
    units = set(map(_unit, nodes)) - {""}
    return None if len(units) > 1 else units.pop() if units else ""


def _unit_of_product(left: ast.expr, right: ast.expr, *, divided: bool) -> str | None:
    first, second = _unit(left), _unit(right)
    if divided:
        same = "1" if first == second and first is not None else None
        return first if second in {"", "1"} else same
    # the bytes of a sector, 32 on every architecture
    is_size = any(isinstance(each, ast.Constant) and each.value == 32 for each in (left, right))
    if is_size and "sector" in {first, second}:
        return "B"
    if first in {"", "1"}:
        return second or first
    return first if second in {"", "1"} else None


def places(places: Sequence[Place]) -> str:
    """Lines or instructions with their share: `known.cu:16 94.0%`; "" where there are none."""
    return ", ".join(f"{place_name(place)} {percent(place.share)}" for place in telling(places))


def telling(places: Sequence[Place]) -> list[Place]:
    """The places with a share worth a line; the first where none has and not all are alike."""
    large = [place for place in places if place.share >= _LEAST_PLACE]
    return large or [place for place in places[:1] if place.share >= _FLAT]


def place_name(place: Place) -> str:
    """A line as `known.cu:16`, or an instruction after its distance from the kernel's start."""
    if place.line:
        return f"{literal(Path(place.file).name)}:{place.line}"
    return f"{place.offset} `{literal(place.sass)}`".lstrip() if place.sass else place.offset


def kernel_name(group: Group | None) -> str:
    """What a finding is about: a kernel, or a timeline as a whole."""
    return literal(group.name).removeprefix("void ") if group else TIMELINE


def roofs(checklist: Checklist) -> tuple[tuple[str, str], ...]:
    """Kernels at a roof, each with the roof and which finding says how to need less of it."""
    rows = []
    for group in checklist.roofs:
        roof = floors(group.typical.values)[0]
        ranks = (item.rank for item in checklist.findings_on(group) if item.rank)
        helping = f"; finding {rank} is about using less of it" if (rank := next(ranks, 0)) else ""
        rows.append((kernel_name(group), f"{roof.label} {percent(roof.busy)} busy{helping}"))
    return tuple(rows)


def proof_line(proof: Proof) -> str:
    """What one proof shows: `71x: cudnn does the same work in 49.31 µs`."""
    return f"{factor(proof.speedup)}: {_best(proof)}"


def _best(proof: Proof) -> str:
    return f"{literal(proof.best)} does the same work in {number(proof.best_seconds, 's')}"


def _times(proof: Proof) -> str:
    source = "timed medians" if proof.timed else "sums of ncu's durations"
    return f"{source} of whole variants"


def proof_source(proof: Proof) -> str:
    """What a proof compares, and by which times."""
    return f"{literal(proof.variant)} takes {number(proof.seconds, 's')}; {_times(proof)}"


def proven(proofs: Sequence[Proof]) -> str:
    """What the run's variants prove reachable, in one sentence; "" where they prove nothing."""
    if not proofs:
        return ""
    others = ", ".join(
        f"{factor(proof.speedup)} {'faster ' if proof is proofs[0] else ''}than "
        f"{literal(proof.variant)} ({number(proof.seconds, 's')})"
        for proof in proofs
    )
    return f"{_best(proofs[0])}: {others}; {_times(proofs[0])}"


def untold(checklist: Checklist, session: Session, path: str) -> tuple[str, ...]:
    """Rules that were not evaluated, and what to record so that they are; kernels left out."""
    lines = []
    lacking = checklist.lacking
    if lacking:
        sections = dict.fromkeys(name for rule in checklist.unevaluated for name in rule.sections)
        needed = f": need {', '.join(sections)}" if sections else ""
        full = "full" in session.options.get("set", "").split(",")
        remedy = "record with ncu --set full; " if sections and not full else ""
        lines.append(
            f"{len(lacking)} of {plural(checklist.rules, 'rule')} not evaluated{needed}; "
            f"{remedy}profkit checklist {path} lists what each lacks"
        )
    if unsampled := len(checklist.unevaluated) - len(lacking):
        lines.append(
            f"{plural(unsampled, 'rule')} on samples by instruction not tried on kernels under "
            f"{percent(WORTH_SAMPLING)} of the time: --kernel picks those"
        )
    if checklist.skipped:
        skipped = plural(checklist.skipped, "kernel")
        lines.append(f"{skipped} skipped: no duration, counters failed")
    return tuple(lines)


def without_finding(checklist: Checklist, groups: Iterable[Group]) -> tuple[tuple[str, str], ...]:
    """Kernels that take much of the time and of which nothing is found, where something is of
    others: their share, with the reservation that most rules may lack their data."""
    doubt = "; most rules lack data" if 2 * checklist.evaluated < checklist.rules else ""
    return tuple(
        (kernel_name(group), f"{percent(group.share)} of the time{doubt}")
        for group in groups
        if checklist.findings and group.share >= WORTH_SAMPLING and not checklist.findings_on(group)
    )


def lacks(checklist: Checklist) -> tuple[tuple[str, str], ...]:
    """Each rule that could not be evaluated, with what it lacks."""
    kernels = checklist.kernels
    return tuple(
        (
            rule.rule,
            ", ".join(rule.missing)
            + (f" ({rule.kernels} of {kernels} kernels)" if 0 < rule.kernels < kernels else ""),
        )
        for rule in checklist.lacking
    )


def summary(checklist: Checklist) -> str:
    """How much was found in how much, in one line."""
    rules = plural(checklist.rules, "rule")
    lacking = len(checklist.lacking)
    if checklist.inconclusive:
        lack = f"{lacking} of {rules} lack data"
        return f"can't tell: {lack if checklist.kernels else 'no kernel has a duration'}"
    evaluated = f"{checklist.evaluated} of {rules} evaluated" if lacking else rules
    extent = f"{evaluated} on {plural(checklist.kernels, 'kernel')}"
    promising, informing = len(checklist.items), len(checklist.informative)
    if not promising + informing:
        return f"{NOTHING}: {extent}"
    verb = "promises" if promising == 1 else "promise"
    parts = [f"{plural(promising, 'finding')} {verb} time" if promising else "no time promised"]
    if informing:
        parts.append(f"{informing} {'tells' if informing == 1 else 'tell'} what limits")
    return f"{', '.join(parts)}; {extent}"


def checklist_markdown(report: ReportSummary, checklist: Checklist, top: int) -> str:
    """The `top` items (0: all) of a report's checklist as boxes to tick."""
    from profkit.report import overview

    name = names.file_name(report.path, with_host=False)
    lines = [f"# Checklist for {code(name)}", "", overview.headline(report), ""]
    return "\n".join([*lines, *checklist_lines(report, checklist, top, name)]) + "\n"


def checklist_lines(report: ReportSummary, checklist: Checklist, top: int, name: str) -> list[str]:
    """Boxes to tick, then roofs, proofs and what was not evaluated."""
    lines = []
    if proof := checklist.headline:
        lines += [f"**{escape(proof_line(proof))} ({escape(proof_source(proof))})**", ""]
    lines.append(f"{escape(summary(checklist))}. {NOT_ADDITIVE.capitalize()}.")
    lines += [""] if checklist.items else []
    lines += items_markdown(checklist.items[: top or None])
    if checklist.informative:
        lines += ["", f"{INFORMATIVE}:", "", *items_markdown(checklist.informative)]
    kernels = [("At a roof", *row) for row in roofs(checklist)]
    kernels += [(NOTHING.capitalize(), *row) for row in without_finding(checklist, report.groups)]
    for label, kernel, text in kernels:
        lines += ["", f"{label}: {code(kernel)}: {escape(text)}"]
    if text := proven(checklist.proofs):
        lines += ["", f"Reachable: {escape(text)}"]
    for text in untold(checklist, report.session, name):
        lines += ["", escape(text)]
    if checklist.lacking:
        lines += ["", "Rules not evaluated, and what they lack:", ""]
        lines += [f"- {code(rule)}: {escape(missing)}" for rule, missing in lacks(checklist)]
    return lines


def items_markdown(items: Iterable[Item]) -> list[str]:
    """Items as boxes to tick, with all that is known of each."""
    return [line for item in items for line in _item_markdown(item)]


def _item_markdown(item: Item) -> list[str]:
    rule, estimate = item.rule, item.finding.estimate
    text = f"{gain(estimate)} " if estimate else ""
    title = f"[{escape(rule.title)}]({item.page})" if item.page else escape(rule.title)
    where = places(item.places)
    lines = [
        f"kernel {code(kernel_name(item.group))}" if item.group else TIMELINE,
        f"category {rule.category}, {rule.effort} effort",
        escape(prospects(item)),
        f"seen: {escape('; '.join(evidence(item)))}",
        *([f"where: {escape(where)}"] if where else []),
        *(f"do: {escape(action)}" for action in item.actions),
        *(f"check: {escape(check)}" for check in rule.verify),
    ]
    mark = f"[ ] **{item.rank}. " if item.rank else "**"
    return [f"- {mark}{escape(text)}{title}**", *(f"  - {line}" for line in lines)]
