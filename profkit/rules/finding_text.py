"""Findings in words: gains, evidence, places, roofs and what could not be told. No layout."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from profkit.core.unit_words import is_word, unit_after
from profkit.report.floors import WORTH
from profkit.report.resources import RESOURCES
from profkit.rules.samples import WORTH_SAMPLING
from profkit.rules.units import unit_of
from profkit.ui.text import compact, literal, number, percent, plural

if TYPE_CHECKING:
    from profkit.report.session import Session
    from profkit.report.source_lines import Place
    from profkit.report.summary import Group
    from profkit.rules.checklist import Checklist, Item
    from profkit.rules.engine import Estimate, Evidence
    from profkit.rules.proof import Proof
    from profkit.rules.rule_file import Rule

HEADING = "What limits, and what a fix would give"
NOTHING = "nothing found"
NOT_ADDITIVE = "estimates are not additive"
INFORMATIVE = "Without an estimated speedup"
TIMELINE = "the timeline"
_SIGNS = {">": "above", ">=": "at least", "<": "below", "<=": "at most", "!=": "other than"}
_PRECISE_BELOW = 1.5
_ROUND_FROM = 10.0
_WORTH_A_DIGIT = 1.01
_PLACE_WORTH_TELLING = 0.05
_FLAT = 0.02  # the largest of fifty places that are all alike: no place to begin at
_WHETHER_KNOWN = "known("
# what a rule's own `match` selects has no meaning outside of the rule
_LABELS = {
    "matched": "warp samples that this rule selects",
    "matched_active": "warp samples that issue in their loops",
}
_LONGEST = 100


def gain(estimate: Estimate) -> str:
    """A kernel's estimated speed-up as `2.2x [1.9, 2.5]`."""
    precise = estimate.likely < _PRECISE_BELOW
    low, high = (_factor(end, precise=precise) for end in (estimate.low, estimate.high))
    return f"{_factor(estimate.likely, precise=precise)}x [{low}, {high}]"


def factor(value: float) -> str:
    """A speed-up alone: `1.05x`, `2.2x`, `24x`."""
    return f"{_factor(value, precise=value < _PRECISE_BELOW)}x"


def run_gain(estimate: Estimate) -> str:
    """The factor for the whole report: `1.05x`, `under 1.01x`."""
    return factor(estimate.run) if estimate.run >= _WORTH_A_DIGIT else f"under {_WORTH_A_DIGIT}x"


def _factor(value: float, *, precise: bool) -> str:
    digits = 0 if value >= _ROUND_FROM else 2 if precise else 1
    return f"{value:,.{digits}f}"


def prospects(item: Item) -> str:
    """What the fix of an item promises, what holds it back then, and how sure that is."""
    estimate, rule = item.finding.estimate, item.rule
    if estimate is None:
        return _without_estimate(item)
    said = [whole_gain(item), _next_limit(estimate, rule)]
    if item.peers:
        ranks = ", ".join(str(rank) for rank in item.peers)
        said.append(f"of the same weight as {ranks} on this kernel")
    said.append(f"{rule.confidence} confidence")
    return "; ".join(filter(None, said))


def _without_estimate(item: Item) -> str:
    """Why a finding has no estimate."""
    finding, rule = item.finding, item.rule
    if finding.lacking:
        return f"estimated speedup unknown, not recorded: {', '.join(finding.lacking)}"
    if finding.negligible:
        return f"estimated speedup below {WORTH}x"
    return f"no gain promised by the counters; {rule.confidence} confidence that it limits"


def whole_gain(item: Item) -> str:
    """What a fix would give all launches together: `1.05x for the whole report`; "" for nothing."""
    if item.finding.estimate is None:
        return ""
    gain_of_all = run_gain(item.finding.estimate)
    if item.group is None:
        return f"{gain_of_all} for the whole time from the first GPU work to the last"
    return f"{gain_of_all} for {'the launches picked' if item.picked else 'the whole report'}"


def _next_limit(estimate: Estimate, rule: Rule) -> str:
    """Which floor the kernel then meets: another one, or what is left of the relieved one."""
    limit, at = estimate.bounded_by, number(estimate.bound_seconds, "s")
    if not limit:
        return ""
    if limit in {RESOURCES.get(name) for name in rule.relieves}:
        return f"then {limit} again, at {at}"
    return f"then {limit} {'are' if limit.endswith('s') else 'is'} next, at {at}"


def evidence(item: Item) -> tuple[str, ...]:
    """The values that made the rule fire, with their units and thresholds, then those beside.

    Each once, expressions too long to read left out: `profkit rules explain --on` has them all.
    """
    told: dict[str, str] = {}
    for one in item.finding.evidence:
        if one.holds and len(one.what) <= _LONGEST and not one.what.startswith(_WHETHER_KNOWN):
            told.setdefault(one.what, measured(one))
    return tuple(told.values())


def measured(told: Evidence) -> str:
    """A value with its unit and what it was held against: `l2_busy 84.2% (above 60.0%)`."""
    value, threshold = _both(told)
    text = f"{_LABELS.get(told.what, told.what)} {value}"
    if math.isnan(told.threshold) or told.sign not in _SIGNS:
        return text
    return f"{text} ({_SIGNS[told.sign]} {threshold})"


def compared(told: Evidence) -> str:
    """A comparison, whether it holds or not: `dram_busy 33.1% < 60.0%`."""
    value, threshold = _both(told)
    return f"{told.what} {value} {told.sign} {threshold}"


def missed(told: Evidence) -> str:
    """A comparison that does not hold: `dram_busy 33.1%, not above 60.0%`."""
    value, threshold = _both(told)
    return f"{told.what} {value}, not {' '.join(filter(None, (_SIGNS.get(told.sign), threshold)))}"


def _both(told: Evidence) -> tuple[str, str]:
    """A value and its threshold with their unit; one that is a word is not repeated."""
    unit = unit_of(told.what)
    if is_word(unit):
        value = f"{compact(told.value)} {unit_after(told.value, unit)}"
        return value, compact(told.threshold)
    shown = [number(one, unit) if unit else compact(one) for one in (told.value, told.threshold)]
    return shown[0], shown[1]


def places(found: Iterable[Place]) -> str:
    """Lines or instructions with their share: `known.cu:16 94.0%`; "" where there are none."""
    return ", ".join(f"{place_name(place)} {percent(place.share)}" for place in telling(found))


def telling(found: Iterable[Place]) -> tuple[Place, ...]:
    """The places with a share worth telling; the first where none has and not all are alike."""
    places = tuple(found)
    worth = tuple(place for place in places if place.share >= _PLACE_WORTH_TELLING)
    return worth or tuple(place for place in places[:1] if place.share >= _FLAT)


def place_name(place: Place) -> str:
    """A line as `known.cu:16`, or an instruction after its distance from the kernel's start."""
    if place.line:
        return f"{literal(Path(place.file).name)}:{place.line}"
    return f"{place.offset} `{literal(place.sass)}`".lstrip() if place.sass else place.offset


def kernel_name(group: Group | None) -> str:
    """What a finding is about: a kernel, or a timeline as a whole."""
    return literal(group.name).removeprefix("void ") if group else TIMELINE


def roofs(found: Checklist) -> tuple[tuple[str, str], ...]:
    """Kernels at a roof, each with the roof and which finding says how to need less of it."""
    return tuple(
        (
            kernel_name(roof.group),
            f"{roof.label} {percent(roof.busy)} busy"
            + (f"; finding {roof.less} is about using less of it" if roof.less else ""),
        )
        for roof in found.roofs
    )


def proof_line(proof: Proof) -> str:
    """What one proof shows: `71x: cudnn does the same work in 49.31 µs`."""
    return f"{factor(proof.speedup)}: {_best(proof)}"


def _best(proof: Proof) -> str:
    return f"{literal(proof.best)} does the same work in {number(proof.best_seconds, 's')}"


def _times(proof: Proof) -> str:
    how = "timed medians" if proof.timed else "sums of ncu's durations"
    return f"{how} of whole variants"


def proof_source(proof: Proof) -> str:
    """What a proof compares, and by which times."""
    return f"{literal(proof.variant)} takes {number(proof.seconds, 's')}; {_times(proof)}"


def proven(found: Sequence[Proof]) -> str:
    """What the run's variants prove reachable, in one sentence; "" where they prove nothing."""
    if not found:
        return ""
    first = found[0]
    others = ", ".join(
        f"{factor(proof.speedup)} {'faster ' if proof is first else ''}than "
        f"{literal(proof.variant)} ({number(proof.seconds, 's')})"
        for proof in found
    )
    return f"{_best(first)}: {others}; {_times(first)}"


def untold(found: Checklist, session: Session, path: str) -> tuple[str, ...]:
    """Rules that could not be told, and what to record so that they can; kernels left out."""
    said = []
    if found.lacking:
        count = f"{len(found.lacking)} of {plural(found.rules, 'rule')} not evaluated"
        needed = f": need {', '.join(found.sections)}" if found.sections else ""
        full = "full" in session.options.get("set", "").split(",")
        remedy = "record with ncu --set full; " if found.sections and not full else ""
        said.append(f"{count}{needed}; {remedy}profkit checklist {path} lists what each lacks")
    if unsampled := len(found.unevaluated) - len(found.lacking):
        said.append(
            f"{plural(unsampled, 'rule')} on samples by instruction not tried on kernels under "
            f"{percent(WORTH_SAMPLING)} of the time: --kernel picks those"
        )
    if found.skipped:
        said.append(f"{plural(found.skipped, 'kernel')} skipped: no duration, counters failed")
    return tuple(said)


def without_finding(found: Checklist, groups: Iterable[Group]) -> tuple[tuple[str, str], ...]:
    """Kernels that take much of the time and of which nothing is found, beside others of which
    something is: their share, with the reservation that most rules may lack their data."""
    named = {id(item.group.typical) for item in found.findings if item.group}
    doubt = "; most rules lack data" if 2 * found.evaluated < found.rules else ""
    return tuple(
        (kernel_name(group), f"{percent(group.share)} of the time{doubt}")
        for group in groups
        if found.findings and group.share >= WORTH_SAMPLING and id(group.typical) not in named
    )


def lacks(found: Checklist) -> tuple[tuple[str, str], ...]:
    """Each rule that could not be evaluated, with what it lacks."""
    rows = []
    for one in found.lacking:
        some = 0 < one.kernels < found.kernels
        where = f" ({one.kernels} of {found.kernels} kernels)" if some else ""
        rows.append((one.rule, ", ".join(one.missing) + where))
    return tuple(rows)


def summary(found: Checklist) -> str:
    """How much was found in how much, in one line."""
    if found.inconclusive:
        return _inconclusive(found)
    tried = plural(found.rules, "rule")
    if found.lacking:
        tried = f"{found.evaluated} of {tried} evaluated"
    looked = f"{tried} on {plural(found.kernels, 'kernel')}"
    promising, informing = len(found.items), len(found.informative)
    if not promising + informing:
        return f"{NOTHING}: {looked}"
    verb = "promises" if promising == 1 else "promise"
    said = [f"{plural(promising, 'finding')} {verb} time" if promising else "no time promised"]
    if informing:
        said.append(f"{informing} {'tells' if informing == 1 else 'tell'} what limits")
    return f"{', '.join(said)}; {looked}"


def _inconclusive(found: Checklist) -> str:
    if not found.kernels:
        return "can't tell: no kernel has a duration"
    return f"can't tell: {len(found.lacking)} of {plural(found.rules, 'rule')} lack data"
