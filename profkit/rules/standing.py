"""The order of a kernel's findings, and their ranges, by what fixes save and like ones gained."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from msgspec.structs import replace as replace_field

from profkit.report.resources import RESOURCES
from profkit.rules.calibration import Calibration
from profkit.rules.finding import Finding
from profkit.rules.memory import POSSIBLE, Memory, certainty, similar
from profkit.rules.rule_file import DIVISION

_DRAM = "dram_busy"
"""What fixes that go beyond a kernel's headroom relieve: of 366 recorded ones 21 went 2% beyond, 17
of them found by rules about DRAM's traffic."""


def remember(
    findings: Iterable[Finding], memory: Memory, calibration: Calibration
) -> list[Finding]:
    """Findings with what recorded fixes of kernels like theirs say of their category, and the range
    of what fixes of findings like them gained.

    On a kernel they stand in the order of (factor - 1) x weight: the first has the place of the
    largest estimate, and so on. Those that stand apart are not compared with the others.
    """
    kernels: dict[tuple[int, bool], list[Finding]] = defaultdict(list)
    others: list[Finding] = []
    for finding in findings:
        of_kernel = finding.estimate and finding.group and finding.rule.spans == "kernel"
        kernel = id(finding.group), finding.rule.is_apart
        (kernels[kernel] if of_kernel else others).append(finding)
    placed = [each for own in kernels.values() for each in _placed(own, memory)]
    return [_with_range(each, calibration) for each in (*placed, *others)]


def _with_range(finding: Finding, calibration: Calibration) -> Finding:
    estimate, prospect = finding.estimate, finding.prospect
    if not (estimate and prospect):
        return finding
    low, high = calibration.range(prospect)
    relieved = finding.rule.relieves.keys()
    goes_beyond = _DRAM in relieved and not finding.possible
    # What waits less has the same floors.
    keeps_work = relieved.isdisjoint(RESOURCES) and finding.rule.category != DIVISION
    limit = estimate.limit if keeps_work else math.inf
    known = [high, finding.bound, limit, math.inf if goes_beyond else estimate.most]
    high = max(min(each for each in known if not math.isnan(each)), estimate.likely)
    low = 1.0 if finding.lacking else min(low, high)
    return replace(finding, estimate=replace(estimate, low=low, high=high))


def _placed(findings: Sequence[Finding], memory: Memory) -> Iterator[Finding]:
    group = findings[0].group
    alike = similar(memory, group.typical.values if group else {})
    estimates = [each.estimate for each in findings if each.estimate]
    places = sorted(estimates, key=lambda each: -each.saved)
    weighed = []
    for finding, estimate in zip(findings, estimates, strict=True):
        kernels = alike(finding.rule.category)
        if finding.possible and kernels.vote < POSSIBLE:
            continue
        # the likely factor is too low where another floor is near, the other too high
        factor = (estimate.likely + estimate.without_stalls) / 2
        weighed.append(((factor - 1) * kernels.weight, finding, kernels))
    weighed.sort(key=lambda each: -each[0])
    total = sum(weight for weight, *_ in weighed)
    for (weight, finding, kernels), place in zip(weighed, places, strict=False):
        is_first = finding is weighed[0][1] and kernels.among and not finding.rule.is_apart
        share = 0.0 if finding.lacking else weight / total
        sure = certainty(share) if is_first and total else None
        yield replace(finding, similar=replace_field(kernels, certainty=sure), standing=place)
