"""Causes: findings on a kernel that blame the same lines, and relieve the same units or stalls.

A reduction tree in shared memory shows as barrier stalls, a busy data stage, full queues and
dependent instructions: each estimate counts a part of what one change takes away together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from profkit.machine_code.blame import AWAITED, SAMPLES
from profkit.report.resources import RESOURCES
from profkit.report.source_lines import Place
from profkit.rules.engine import NOMINAL
from profkit.rules.finding import Finding
from profkit.rules.rule_file import Rule

_BARRIER = f"{SAMPLES}barrier"
_NEAR = 2
"""Lines, or instructions, between places of one statement, chosen: the head of a loop, what it does
and its barrier are three lines, and a wait is sampled after the instruction that waits."""
_INSTRUCTION = 16  # bytes, on every architecture since Volta
_OVERLAP = 0.25
"""The share of what two findings blame that has to be at the same places, chosen: of two loops that
each blames, one is the same."""
_UNITS = {
    **dict.fromkeys(("stall_wait", "stall_selected", "stall_not_selected"), "issue_busy"),
    **dict.fromkeys(("stall_mio_throttle", "stall_short_scoreboard"), "lsu_data_busy"),
    "stall_lg_throttle": "lsu_busy",
}
"""The unit that warps wait for with a stall reason, as Nsight Compute documents it."""
_COUNTED = ("global", "shared", "local", "executed_fp64")
"""What line quantities count: those that differ are of different instructions of a line."""


def with_causes(findings: Iterable[Finding]) -> list[Finding]:
    """Findings, the better ones of each kernel first, with the one that each is a facet of."""
    kernels: dict[int | None, list[list[Finding]]] = defaultdict(list)
    marked = []
    for finding in findings:
        causes = kernels[finding.launch]
        cause = next((each for each in causes if _is_facet(finding, each)), [])
        marked.append(replace(finding, facet_of=cause[0].rule.name if cause else ""))
        if cause:
            cause.append(finding)
        elif _is_compared(finding):
            causes.append([finding])
    return marked


def _is_facet(finding: Finding, cause: Sequence[Finding]) -> bool:
    """Whether a finding shows the same cause as others: it shares a unit or a stall with the first
    of them, or, where a barrier lets each warp wait for all, with any."""
    rule, rules = finding.rule, [each.rule for each in cause]
    barriers = [_BARRIER in each.blame for each in (rule, *rules)]
    compared = rules if any(barriers) else rules[:1]
    related = any(barriers[:2]) or any(_relieved(rule) & _relieved(each) for each in compared)
    return (
        _is_compared(finding)
        and related
        and not any(_count_others(rule, each) for each in rules)
        and any(_overlap(finding, each) for each in cause)
    )


def _is_compared(finding: Finding) -> bool:
    rule = finding.rule
    beside = rule.first or rule.is_apart or rule.spans == "chain" or rule.name in NOMINAL
    return bool(finding.estimate and rule.blame and not beside)


def _relieved(rule: Rule) -> set[str]:
    """The units and stall reasons that a fix relieves."""
    stalls = {name for name in rule.relieves if name.startswith("stall_")}
    stalls |= {f"stall_{reason}" for selection in rule.match for reason in selection.stall}
    stalls |= {f"stall_{AWAITED.get(each, each.removeprefix(SAMPLES))}" for each in rule.blame}
    units = RESOURCES.keys() & rule.relieves.keys()
    return units | stalls | {_UNITS[name] for name in stalls & _UNITS.keys()}


def _count_others(one: Rule, other: Rule) -> bool:
    """Whether rules count different instructions."""
    counted, others = set(_counted(one)), set(_counted(other))
    return bool(counted and others) and counted.isdisjoint(others)


def _counted(rule: Rule) -> Iterator[str]:
    return (kind for name in rule.blame for kind in _COUNTED if name.startswith(kind))


def _overlap(one: Finding, other: Finding) -> bool:
    """Whether much of what two findings blame is at the same places; of unknown places, whether
    they blame the same."""
    if not (one.blamed and other.blamed):
        return not set(one.rule.blame).isdisjoint(other.rule.blame)
    shares = (
        min(place.share, sum(each.share for each in other.blamed if _near(place, each)))
        for place in one.blamed
    )
    return sum(shares) >= _OVERLAP


def _near(one: Place, other: Place) -> bool:
    if one.line or other.line:
        return one.file == other.file and abs(one.line - other.line) <= _NEAR
    return abs(one.address - other.address) <= _NEAR * _INSTRUCTION
