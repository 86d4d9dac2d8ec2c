"""Findings as text: speedups, evidence, locations, roofs, rules not evaluated."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from profkit.core.compute_capability import why_no_text
from profkit.core.unit_words import is_word, unit_after
from profkit.machine_code.blame import SAMPLES
from profkit.report.action import WITHOUT_READER, has_reader
from profkit.report.floors import ESSENTIAL, LAUNCH, REACH, SHORTEST, WORTH, floors
from profkit.report.resources import RESOURCES
from profkit.rules.filling import filling
from profkit.rules.finding import (
    SECTOR,
    DemonstratedSpeedup,
    Estimate,
    Evidence,
    Finding,
    FindingGroup,
    unit_of,
)
from profkit.rules.headroom import ARITHMETIC
from profkit.rules.memory import TESTED
from profkit.rules.samples import BLAMED, WORTH_SAMPLING
from profkit.timeline import region
from profkit.ui import text as numbers
from profkit.ui.text import compact, literal, number, percent, plural, quantity_text

if TYPE_CHECKING:
    from profkit.report.session import Session
    from profkit.report.source_lines import Place
    from profkit.report.summary import Group
    from profkit.rules.checklist import Checklist
    from profkit.rules.headroom import Headroom

HEADING = "Bottlenecks and estimated speedups"
NOTHING = "nothing found"
_LEAST = f"{1 - 1 / WORTH:.0%}"
_HELD = "docs/reference/accuracy.md"
_LEFT_OUT = f"savings below {_LEAST} of a kernel left out"
_REACHED = f"{REACH['dram_busy']:.0%} of peak"
_TENSOR = f"FLOP (tensor cores, INT8 too, at {REACH['tensor_busy']:.0%})"
HEADROOM = (
    f"Headroom: speedup that a kernel's DRAM traffic (at {_REACHED}), {_TENSOR} "
    "and launch allow without the waste that findings name"
)
NEEDED = (
    f"Headroom keeps the recorded DRAM bytes (at {_REACHED}), {_TENSOR} and "
    "launch, minus the waste that findings name; moving or computing less gains more"
)
BAR = "of the time; exposed: latency, imbalance, tail"
DEMONSTRATED = "Demonstrated speedup"
NO_TIMELINE_FINDING = "No limit of a step is known that a fix would relieve by 2% or more."
FIRST = "Fix first, then record again: until then, estimates for these kernels are not valid"
CAUSES = "Causes, the most promising first"
TRYING = "Worth trying after them"
DIVIDED = "The GPU is not filled"
IF_DIVIDED = "fewer blocks than SMs; the last factor if the work can be divided"
NUMERICS = "These change numerics: another data type"
INFORMATIVE = "Without an estimated speedup"
TIMELINE = "the timeline"
_ALONE = "a range alone promises no gain"
NOTES = f"{_ALONE} ({_HELD}); {_LEFT_OUT}"
"""What ranges are, and which findings are left out."""
_RANGE = "kernel [low, high]"
STEP = "a step in steady state"
ALONE = "the speedup is of the step without the profiler{}"
EACH_ALONE = "each speedup is of the step without the profiler{}, and without the other fixes"
_SPAN = "the time from the first to the last GPU work"
_SIGNS = {">": "above", ">=": "at least", "<": "below", "<=": "at most", "!=": "other than"}
_LEAST_PLACE = 0.05  # chosen: three lines are shown at most, each with a share worth a look
AWAITED = "awaited_"
_BARRIER = f"{SAMPLES}barrier"
_FLAT = 0.02  # the share of each of fifty equal places: none stands out
_NO_FLOP = "FLOP not recorded"
UNKNOWN_FLOP = " (FLOP?)"
"""Behind a headroom where the FLOP were not recorded."""
_FLOORS = {
    RESOURCES["dram_busy"]: "DRAM",
    ARITHMETIC: "FLOP",
    LAUNCH: "launch",
}
"""What a headroom at a floor keeps."""
_DISTINCT = 0.01  # of a kernel's time, chosen: less is not seen in a bar
# what a rule's own `match` selects has no meaning outside of the rule
_LABELS = {
    "matched": "warp samples that this rule selects",
    "matched_active": "warp samples that issue in their loops",
}
_GAP = f"{region.SHORT_GAP * 1e6:.0f} µs"
_LABELS |= {"long_gaps": f"long_gaps (over {_GAP})", "short_gaps": f"short_gaps (up to {_GAP})"}
_ADVICE = 3  # of ncu's results on a kernel, chosen: those with the largest estimates
_FACET_ACTIONS = 2  # chosen: the head's own come first, and are often enough
_LONGEST = 100  # characters, chosen: an expression that fits one line


factor = numbers.factor
"""A speedup alone: `1.05x`, `2.2x`, `24x`."""


def headroom(headroom: Headroom | None) -> str:
    """How far a kernel is from what its work allows: `4.8x above what needed DRAM traffic and FLOP
    take`; "" where it is unknown."""
    if headroom is None:
        return ""
    if headroom.floor == LAUNCH:
        needs = f"a launch takes ({number(SHORTEST, 's')})"
    elif headroom.flop_recorded:
        needs = "needed DRAM traffic and FLOP take"
    else:
        needs = f"needed DRAM traffic takes ({_NO_FLOP})"
    return f"{factor(headroom.factor)} above what {needs}"


def distance(group: Group, headroom: Headroom, width: int) -> tuple[str, str]:
    """What fills a kernel's time, as a bar and in words: what its work needs, what the busiest unit
    holds it to, and what is exposed: `needed 11% (DRAM); held to 77% by L2; exposed 23%`."""
    needed, busiest = 1 / headroom.factor, floors(group.typical.values)[0]
    held = max(needed, min(busiest.seconds / group.typical.duration, 1.0))
    cells = [round(share * width) for share in (needed, held)]
    drawn = "█" * cells[0] + "▓" * (cells[1] - cells[0]) + "░" * (width - cells[1])
    parts = [f"needed {needed:.0%} ({_FLOORS[headroom.floor]})"]
    parts += [f"held to {held:.0%} by {busiest.label}"] if held > needed + _DISTINCT else []
    all_known = group.typical.values.keys() >= {*ESSENTIAL}
    rest = "exposed" if all_known else "exposed, or in units not recorded:"
    return drawn, "; ".join((*parts, f"{rest} {1 - held:.0%}"))


def headroom_legend(cells: Iterable[str]) -> str:
    """What a column of headrooms means."""
    unknown = any(UNKNOWN_FLOP in cell for cell in cells)
    return f"{HEADROOM}{f'; FLOP?: {_NO_FLOP}, may allow less' if unknown else ''}"


def kernel_columns(checklist: Checklist | None) -> Mapping[str, Callable[[Group], str]]:
    """What a table of kernels has of their checklist: the variants that a kernel is of, in a report
    of several, and its headroom: `4.8x, then DRAM`."""
    if checklist is None:
        return {}

    def headroom(group: Group) -> str:
        most = checklist.headroom_of(group)
        unknown = UNKNOWN_FLOP if most and not most.flop_recorded else ""
        return f"{factor(most.factor)}, then {_FLOORS[most.floor]}{unknown}" if most else ""

    def variant(group: Group) -> str:
        names = dict.fromkeys(map(checklist.wholes.name, group.launches))
        return literal(", ".join(filter(None, names)))

    return {"Variant": variant, "Headroom": headroom}


def estimate(item: Finding, *, whole: bool = True) -> str:
    """A kernel's estimated speedup with its range, and what is known about it; `whole` adds that
    for the whole report."""
    if item.estimate is None:
        return prospects(item)
    if item.group is None:
        of = _extent(item, "") + (", start-up included" if item.is_ceiling else "")
        return f"{item.speedup_text} for {of}; {prospects(item, whole=False)}"
    return f"{item.estimate}{of_chain(item)}; {prospects(item, whole=whole)}"


def of_chain(item: Finding) -> str:
    """` for its kernel chain`, where an estimate is of the kernels before and after it too."""
    return " for its kernel chain" if item.rule.spans == "chain" and item.estimate else ""


def prospects(item: Finding, *, whole: bool = True) -> str:
    """The speedup for the `whole` report, what limits the kernel after it, and the confidence."""
    estimate = item.estimate
    if estimate is None:
        return _no_estimate(item) or f"unknown; {_limits(item)}"
    parts = [whole_gain(item)] if whole else []
    parts += _bound(item, estimate)
    return "; ".join((*parts, f"{item.confidence} confidence"))


def _bound(item: Finding, estimate: Estimate) -> Iterator[str]:
    """What bounds the time after a fix."""
    time = number(estimate.bound_seconds, "s")
    if item.rule.about == "application":
        yield "by replay and what recorded changes gained"
        if not math.isnan(item.bound):
            left = number(estimate.whole_seconds / item.bound, "s")
            yield f"at most {factor(item.bound)}: kernels that stay, and run alone, take {left}"
    elif item.group is None:
        parts = " and ".join(f"all {region.PARTS[name]}" for name in item.rule.relieves)
        most = f"{factor(estimate.high)} if {parts} disappear ({time} left)"
        if item.is_ceiling:
            yield f"{time} left if {parts} disappear"
        elif factor(estimate.likely) == factor(estimate.high):
            yield most
        else:
            lower = f"{factor(estimate.likely)} is the lower estimate, "
            yield f"{lower if _is_lower(estimate) else ''}up to {most}"
    elif limit := estimate.bounded_by:
        each = " per launch" if item.group.count > 1 else ""
        beyond = ", more only with less work for it" if estimate.high > estimate.limit else ""
        there = f"{factor(estimate.limit)} to there{beyond}"
        yield f"next limit {limit} (needs {time}{each}, {there})"


def _no_estimate(item: Finding) -> str:
    if item.rule.first:
        return "unknown; fix it first, then record again"
    lacking = ", ".join(item.lacking)
    parts = allowed(item), f"size unknown, not recorded: {lacking}" if lacking else ""
    return "; ".join(filter(None, parts))


def allowed(item: Finding) -> str:
    """What its fix allows by what is known, where an estimate lacks quantities; "" for nothing."""
    return f"this alone allows {factor(item.bound)}" if item.bound >= WORTH else ""


def _limits(item: Finding) -> str:
    text = f"{item.confidence} confidence that this limits the kernel"
    return "; ".join(filter(None, (text, busiest(item))))


def busiest(item: Finding) -> str:
    """The resource with the highest floor of a finding's kernel: `busiest resource: L2 (86.3%)`."""
    floor = next(iter(floors(item.group.typical.values)), None) if item.group else None
    return f"busiest resource: {floor.label} ({percent(floor.busy)})" if floor else ""


def whole_gain(item: Finding) -> str:
    """The speedup of all launches together: `1.05x for the whole report`; "" without one."""
    return f"{single(item).gain} for {_extent(item, item.variant)}" if item.estimate else ""


def item_gain(item: FindingGroup) -> str:
    """The speedup of all launches together from fixing all kernels of an item, `1.05x`; of a
    timeline with its range, and "" where only the ceiling is known. What an experiment gave stands
    in its place."""
    gained = item.best.estimate
    if item.best.tried and item.best.tried.headline:
        return item.best.tried.headline
    if not item.rank or not gained or item.best.is_ceiling:
        return ""
    return item.gain if item.best.group else str(gained)


def _is_lower(estimate: Estimate) -> bool:
    """Whether an estimate is the lower end of its range."""
    return factor(estimate.low) == factor(estimate.likely) != factor(estimate.high)


def whole_of(item: FindingGroup) -> str:
    """What the speedup of an item is of: `the whole report`, `variant math`."""
    return _extent(item.best, item.variant)


def _extent(item: Finding, variant: str) -> str:
    if item.group is None:
        return STEP if item.rule.about == "application" else _SPAN
    if item.is_selection:
        return f"the selected launches{f' of {literal(variant)}' if variant else ''}"
    return f"variant {literal(variant)}" if variant else "the whole report"


def remarks(item: FindingGroup, checklist: Checklist | None) -> str:
    """What the speedup of an item is of, and what to know before it is believed."""
    parts = (
        basis(item, checklist) if checklist else "",
        "changes numerics" if item.rule.numerics else "",
        "fix first" if item.comes_first else "",
        "not valid until then" if item.best.void_until else "",
    )
    return ", ".join(filter(None, parts))


def basis(item: FindingGroup, checklist: Checklist) -> str:
    """A short name of what the speedup of an item is of; "" where all are of the report."""
    if not item.rank or not _has_several_bases(checklist):
        return ""
    if item.best.group is None:
        return "timeline"
    whole = "selected launches" if item.best.is_selection else "report"
    variant = "selected of" if item.best.is_selection else "variant"
    return f"{variant} {literal(item.variant)}" if item.variant else whole


def _has_several_bases(checklist: Checklist) -> bool:
    return any(item.variant or item.group is None for item in checklist.items)


def legend(checklist: Checklist) -> str:
    """What the speedups of items and kernels are of, in a few words."""
    is_selection = any(item.is_selection for item in checklist.items)
    first = f"of {'the selected launches' if is_selection else 'the whole report'}"
    first = "title: of part in ()" if _has_several_bases(checklist) else first
    return f"{first}; {_RANGE}; not additive"


def extents(checklist: Checklist) -> str:
    """What the speedups of items and kernels are of, their ranges, and what is left out."""
    return f"{legend(checklist)}; {_ALONE} ({_HELD}: how often ranges held); {_LEFT_OUT}"


def actions_of(item: FindingGroup) -> tuple[tuple[tuple[str, ...], bool], ...]:
    """The actions of an item, each list once, and whether it is for callers of library kernels."""
    return tuple(dict.fromkeys((each.actions, bool(each.library)) for each in item.findings))


def folded(items: Sequence[FindingGroup]) -> str:
    """How many items are too small to act on now, and why; "" for none."""
    from profkit.rules.checklist import WORTH_TRYING

    ranked = sum(item.rank > 0 for item in items)
    small = f"{plural(ranked, 'finding')} likely below {WORTH_TRYING}x" if ranked else ""
    short = f"{plural(len(items) - ranked, 'finding')} on short kernels"
    return ", ".join(filter(None, (small, short if len(items) > ranked else "")))


def least_gain(item: FindingGroup) -> str:
    """The speedup of an item in a line of its own, where only a ceiling is known that."""
    return item_gain(item) or item.best.speedup_text


def trying(items: Iterable[FindingGroup]) -> str:
    """Causes after those shown, in a line: `Worth trying after them: register spills (1.10x)`."""
    listed = ", ".join(f"{_inline(item.title)} ({least_gain(item)})" for item in items)
    return f"{TRYING}: {listed}" if listed else ""


def facets(found: Iterable[Finding]) -> str:
    """The other findings of a cause: `barrier stalls, L1 and shared-memory bandwidth`."""
    return ", ".join(map(_inline, dict.fromkeys(each.title for each in found)))


def facet_actions(item: Finding, found: Iterable[Finding]) -> tuple[str, ...]:
    """What facets of a cause suggest beyond its head."""
    named = ((_inline(each.title), action) for each in found for action in each.actions[:1])
    others = (f"{name}: {action}" for name, action in named if action not in item.actions)
    return tuple(islice(others, _FACET_ACTIONS))


def short_title(title: str) -> str:
    """A title up to a comma or parenthesis."""
    return re.split(r",? \(|, ", title)[0]


def _inline(title: str) -> str:
    """A title within a sentence."""
    short = short_title(title)
    return short if short[1:2].isupper() or short[1:2].isdigit() else short[0].lower() + short[1:]


def division(item: Finding) -> str:
    """What a kernel with fewer blocks than SMs gains from more: `64 blocks, 148 SMs; same
    threads spread: below 1.02x; work divided: 2.3x by SMs alone`."""
    launch = item.group.typical if item.group else None
    if launch is None:
        return ""
    spread, divided = filling(launch)
    blocks = f"{plural(int(launch.get('grid_size')), 'block')}, {launch.get('sm_count'):.0f} SMs"
    gain = factor(spread) if spread >= WORTH else f"below {WORTH}x"
    same = "" if math.isnan(spread) else f"same threads spread: {gain}"
    most = item.headroom.factor if item.headroom else math.inf
    more = f"{factor(divided)} by SMs alone" if divided < most else f"at most {factor(most)}"
    return "; ".join(filter(None, (blocks, same, f"work divided: {more}")))


def evidence(item: Finding) -> tuple[str, ...]:
    """The values that made the rule fire, with their units and thresholds, then other quantities.

    Each once, expressions too long to read left out: `profkit rules explain --on` has them all.
    """
    shown: dict[str, str] = {}
    for value in item.evidence:
        if len(value.quantity) <= _LONGEST and not value.quantity.startswith("known("):
            shown.setdefault(value.quantity, measured(value))
    return tuple(shown.values())


_SEVERAL, _WORDS = re.compile(r"^(?:\w+, )+\w+ or \w+"), re.compile(r"\w*_\w+")


def verify(item: Finding) -> tuple[str, ...]:
    """What to verify; where any of several quantities may fall, those that made the rule fire."""
    compared = _WORDS.findall(" ".join(each.quantity for each in item.evidence if each.comparison))

    def fired(names: re.Match[str]) -> str:
        named = [name for name in _WORDS.findall(names[0]) if name in compared]
        return " or ".join(named) or names[0]

    return tuple(_SEVERAL.sub(fired, text) for text in item.rule.verify)


def certainty(item: Finding, rival: Finding | None) -> str:
    """How sure a kernel's first finding is: `likely: such first findings were the cause in 9 of 12
    published kernels`; "" for others. Where it is open, between it and which."""
    sure = item.similar.certainty if item.similar else None
    if sure is None:
        return ""
    right, tested = TESTED.get(sure, (0, 0))
    between = f" between this and {_inline(rival.title)}" if sure == "open" and rival else ""
    place = f"{sure}{between}" if rival else f"{sure}, the only cause with an estimate"
    rate = f"first findings this sure were the cause in {right} of {tested} kernels"
    return f"{place}: {rate} that others fixed" if tested else place


def recorded(item: Finding) -> str:
    """What recorded fixes of similar kernels gained: `3 of the 5 most similar kernels had this;
    fixes gave 1.4x to 2.1x (nearest: row_sums)`; "" where none had it, but of a kernel's first."""
    similar = item.similar
    if similar is None or not (similar.fixes or similar.certainty):
        return ""
    least, most = map(factor, similar.gains)
    gains = least if least == most else f"{least} to {most}"
    count = f"{len(similar.fixes) or 'none'} of the {similar.among} most similar kernels had this"
    nearest = f"; fixes gave {gains} (nearest: {similar.fixes[0].name})" if similar.fixes else ""
    return count + nearest


def measured(value: Evidence) -> str:
    """A value with its unit and its threshold: `l2_busy 84.2% (above 60.0%)`."""
    shown, threshold = _with_threshold(value)
    whole = f" of {_SPAN}" if value.quantity in region.PARTS else ""
    sign = "" if value.threshold is None else _SIGNS.get(value.comparison or "", "")
    text = f"{_expression(value.quantity)} {shown}{whole}"
    return f"{text} ({sign} {threshold})" if sign else text


def compared(value: Evidence) -> str:
    """A comparison, whether it holds or not: `dram_busy 33.1% < 60.0%`."""
    shown, threshold = _with_threshold(value)
    return f"{_expression(value.quantity)} {shown} {value.comparison} {threshold}"


def missed(value: Evidence) -> str:
    """A comparison that does not hold: `dram_busy 33.1%, not above 60.0%`."""
    shown, threshold = _with_threshold(value)
    expected = " ".join(filter(None, (_SIGNS.get(value.comparison or ""), threshold)))
    return f"{_expression(value.quantity)} {shown}, not {expected}"


def _expression(text: str) -> str:
    """A quantity's name, or a formula and an equals sign: `global_sectors_excessive × 32 B =`."""
    if text.isidentifier():
        return _LABELS.get(text, text)
    if unit_of(text) == "B":
        text = text.replace(f" * {SECTOR}", f" * {SECTOR} B")
    return f"{text.replace(' * ', ' × ')} ="


def _with_threshold(value: Evidence) -> tuple[str, str]:
    """A value and its threshold with their unit; one that is a word is not repeated."""
    unit, threshold = value.unit or "", math.nan if value.threshold is None else value.threshold
    if unit == "flag":
        return ("no", "yes")[int(value.value)], compact(threshold)
    if is_word(unit):
        return f"{compact(value.value)} {unit_after(value.value, unit)}", compact(threshold)
    if unit:
        name = value.quantity
        return quantity_text(name, value.value, unit), quantity_text(name, threshold, unit)
    return compact(value.value), compact(threshold)


def places(places: Sequence[Place]) -> str:
    """Lines or instructions with their share: `known.cu:16 94.0%`; "" where there are none."""
    return ", ".join(f"{place_name(place)} {percent(place.share)}" for place in main_places(places))


def location(item: Finding) -> str:
    """A finding's places with their shares, what these are of, and what the lines are."""
    text = places(item.places)
    if not text:
        return ""
    counted = " and ".join(map(_counted, item.rule.blame))
    note = location_note(item)
    return f"{text} of the {counted}{f' ({note})' if note else ''}"


def _counted(blame: str) -> str:
    """What a line quantity counts, in words."""
    for start in (SAMPLES, AWAITED):
        if blame.startswith(start):
            return f"{blame.removeprefix(start)} samples"
    return BLAMED.get(blame, blame)


def location_note(item: Finding) -> str:
    """What the lines of warp samples are (where warps wait, not what they wait for), and why there
    are instructions in place of lines, or their addresses alone."""
    notes = []
    if all(name.startswith(SAMPLES) for name in item.rule.blame):
        barrier = ": at or after the barrier" if _BARRIER in item.rule.blame else ""
        notes.append(f"where warps wait{barrier}")
    elif all(name.startswith(AWAITED) for name in item.rule.blame):
        notes.append("what they wait for")
    if not any(place.line for place in item.places):
        can_help = has_reader() and not item.library
        notes += ["compile with -lineinfo for lines"] if can_help else []
        if item.group and not any(place.sass for place in item.places):
            notes.append(why_no_text(item.group.typical.gpu.cc))
    return "; ".join(filter(None, notes))


def main_places(places: Sequence[Place]) -> list[Place]:
    """The places with a large share; else the first one, unless all have equal shares."""
    large = [place for place in places if place.share >= _LEAST_PLACE]
    return large or [place for place in places[:1] if place.share >= _FLAT]


def place_name(place: Place) -> str:
    """A line as `known.cu:16`, or an instruction after its distance from the kernel's start, which
    is negative for a function that the kernel calls, and for what lies elsewhere."""
    if place.line:
        return f"{literal(Path(place.file).name)}:{place.line}"
    called = "(outside of the kernel's code)" if place.offset.startswith("-") else ""
    sass = f"`{literal(place.sass)}`" if place.sass else ""
    return " ".join(filter(None, (place.offset, called, sass)))


def kernel_name(group: Group | None) -> str:
    """What a finding is about: a kernel, or a timeline as a whole."""
    return literal(group.name).removeprefix("void ") if group else TIMELINE


def roofs(checklist: Checklist, shown: Iterable[FindingGroup]) -> tuple[tuple[str, str], ...]:
    """Kernels at a roof, each with the roof and the finding with actions on it, of those `shown`
    with their numbers."""
    rows, numbers = [], {group.rank for group in shown} - {0}
    for group in checklist.roofs:
        roof = floors(group.typical.values)[0]
        ranks = (item.rank for item in checklist.findings_on(group) if item.rank in numbers)
        helping = f"; see finding {rank}" if (rank := next(ranks, 0)) else ""
        rows.append((kernel_name(group), f"{roof.label} {percent(roof.busy)} busy{helping}"))
    return tuple(rows)


def proof_line(proof: DemonstratedSpeedup) -> str:
    """A demonstrated speedup: `71x over math in GPU time: cudnn does the same work in 49.31 µs`."""
    return f"{factor(proof.speedup)} over {literal(proof.variant)} in GPU time: {_best(proof)}"


def proof_of_variant(proof: DemonstratedSpeedup) -> str:
    """A demonstrated speedup beside a kernel of the variant, which is of more than the kernel."""
    gained = f"{factor(proof.speedup)} in GPU time"
    return f"variant {literal(proof.variant)} as a whole: {gained} ({_best(proof)})"


def _best(proof: DemonstratedSpeedup) -> str:
    return f"{literal(proof.best)} does the same work in {number(proof.best_seconds, 's')}"


def _times(proof: DemonstratedSpeedup) -> str:
    return ("sums of ncu's durations", "median GPU times")[proof.timed] + " of whole variants"


def proof_source(proof: DemonstratedSpeedup) -> str:
    """What a demonstrated speedup compares, by which times, and what the host leaves of it."""
    text = f"{literal(proof.variant)} takes {number(proof.seconds, 's')}; {_times(proof)}"
    hosts = (f"{name}, {time} of host time per call" for name, time in _hosts([proof]))
    back_to_back = f"called back to back, {_back_to_back([proof])}; launch-bound: "
    return f"{text}; {back_to_back}{', '.join(hosts)}" if proof.launch_bound else text


def proven(proofs: Sequence[DemonstratedSpeedup]) -> str:
    """The speedups that the run's variants demonstrate, in one sentence; "" for none."""
    if not proofs:
        return ""
    others = ", ".join(
        f"{factor(proof.speedup)} {'faster ' if proof is proofs[0] else ''}than "
        f"{literal(proof.variant)} ({number(proof.seconds, 's')})"
        for proof in proofs
    )
    text = f"{_best(proofs[0])} of GPU time: {others}; {_times(proofs[0])}"
    if not (bound := [proof for proof in proofs if proof.launch_bound]):
        return text
    calls = ", ".join(f"{name} {time} per call" for name, time in _hosts(bound))
    return f"{text}; back to back, {_back_to_back(bound)}; launch-bound: {calls}"


def _hosts(proofs: Sequence[DemonstratedSpeedup]) -> list[tuple[str, str]]:
    """The variants that are launch-bound, with their host time."""
    hosts = dict(pair for proof in proofs for pair in proof.launch_bound)
    return [(literal(name), number(host, "s")) for name, host in hosts.items()]


def _back_to_back(proofs: Sequence[DemonstratedSpeedup]) -> str:
    compared = ", ".join(
        f"{factor(max(gain, 1 / gain))} {'faster' if gain >= 1 else 'slower'} than "
        f"{literal(proof.variant)}"
        for proof in proofs
        for gain in [proof.back_to_back]
    )
    return f"{literal(proofs[0].best)} is {compared}"


def unevaluated_lines(
    checklist: Checklist, session: Session, path: str | None = "", *, with_samples: bool = True
) -> tuple[str, ...]:
    """Rules that were not evaluated, and what to record for them; kernels left out.

    `with_samples` has the rules that need per-instruction samples which were not read, `path` is
    the report's in commands, None for a checklist, which lists the missing quantities itself.
    """
    lines = []
    if lacking := checklist.lacking:
        sections = dict.fromkeys(name for rule in checklist.unevaluated for name in rule.sections)
        needed = f": need {', '.join(sections)}" if sections else ""
        full = "full" in session.options.get("set", "").split(",")
        remedy = f"{f'profkit checklist {path}'.rstrip()} lists the missing quantities"
        remedy = "missing quantities below" if path is None else remedy
        remedy = "record with ncu --set full" if sections and not full else remedy
        lines.append(f"{len(lacking)} of {plural(checklist.rules, 'rule')}{needed}; {remedy}")
        lines += [] if has_reader() else [WITHOUT_READER]
    unread = (row.reasons.values() for row in checklist.unevaluated if row.unsampled)
    for reason, rules in Counter(each for reasons in unread for each in {*reasons}).items():
        if with_samples:
            lines.append(f"{plural(rules, 'rule')} on per-instruction samples: {reason}")
    if checklist.skipped:
        lines.append(f"{plural(checklist.skipped, 'kernel')}: no duration, counters failed")
    return tuple(lines)


def without_finding(checklist: Checklist, groups: Iterable[Group]) -> tuple[tuple[str, str], ...]:
    """Kernels with much of the time and no finding, where others have some: their share, and
    whether most rules lack data."""
    doubt = "; most rules lack data" if 2 * checklist.evaluated < checklist.rules else ""
    return tuple(
        (kernel_name(group), f"{percent(group.share)} of the GPU time{doubt}")
        for group in groups
        if checklist.findings and group.share >= WORTH_SAMPLING and not checklist.findings_on(group)
    )


def lacks(checklist: Checklist) -> Iterator[tuple[str, str]]:
    """Each rule that was not evaluated, with its missing quantities."""
    kernels = checklist.kernels
    for rule in checklist.lacking:
        some = f" ({rule.kernels} of {kernels} launch configurations)"
        yield rule.rule, ", ".join(rule.missing) + (some if 0 < rule.kernels < kernels else "")


def ncu_advice(checklist: Checklist, groups: Iterable[Group]) -> Iterator[tuple[str, str]]:
    """Kernels with much of the time, where most rules lack data, each with what ncu's own rules
    said of it, as a list."""
    from profkit.report.overview import rule_rows  # listing rules needs no numpy

    for group in groups:
        if 2 * checklist.evaluated < checklist.rules and group.share >= WORTH_SAMPLING:
            lines = ""
            for row in rule_rows(group.typical)[:_ADVICE]:
                value = f" ({row.value})" if row.value else ""
                sentence, stop, _ = row.note.partition(". ")
                lines += f"\n- {row.label}{value}: {sentence}{stop.strip()}"
            yield from [(kernel_name(group), lines)] if lines else []


def summary(checklist: Checklist) -> str:
    """The numbers of findings, rules and kernels, in one line."""
    rules = plural(checklist.rules, "rule")
    lacking = len(checklist.lacking)
    if checklist.inconclusive:
        lack = f"{lacking} of {rules} lack data"
        return f"inconclusive: {lack if checklist.kernels else 'no kernel has a duration'}"
    evaluated = f"{checklist.evaluated} of {rules}" if lacking else rules
    configurations = plural(checklist.kernels, "launch configuration")
    extent = f"{evaluated} evaluated on {configurations}"
    estimated = sum(item.rank > 0 for item in checklist.listed)
    others = len(checklist.listed) - estimated
    if not estimated + others:
        return f"{NOTHING}{' but what is below' if checklist.rule_items else ''}: {extent}"
    parts = [f"{plural(estimated, 'finding')} with an estimated speedup" if estimated else ""]
    parts.append(f"{others} without" if others and estimated else "")
    parts.append("" if estimated else f"{plural(others, 'finding')}, no estimated speedup")
    return f"{', '.join(filter(None, parts))}; {extent}"


def single(item: Finding) -> FindingGroup:
    """A finding as an item of its own."""
    gained = item.estimate
    run, ends = math.nan, (math.nan, math.nan)
    if gained:
        run, ends = gained.run, (gained.of_run(gained.low), gained.of_run(gained.high))
    return FindingGroup(item.rank, (item,), run, minor=False, variant=item.variant, range=ends)
