"""What is known of kernels without counters: headroom by declared work, and what code shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec import field

from profkit.core.typed_file import Count, Model
from profkit.machine_code.facts import CodeFacts
from profkit.report.counter_free import launch_facts
from profkit.report.cubin import launch_code
from profkit.report.quantities import evaluate
from profkit.report.reader import KERNEL, RawReport
from profkit.report.summary import Group, LaunchSummary, ReportSummary, summarize
from profkit.rules.code_signs import CodeFinding, Factors, KernelFacts, code_findings, factors
from profkit.rules.declared_headroom import (
    NONE_MEASURED,
    DeclaredHeadroom,
    DeclaredWork,
    Roofs,
    Unit,
    declared_headroom,
)

if TYPE_CHECKING:
    from profkit.machine_code.flow import Flow

_WORTH_CODE = 0.01
"""The least share of the time from which a kernel's code is read, chosen: what takes less is never
among the first findings."""

# A matrix product on the FMA pipe: the least share of its instructions that are multiply-adds,
# chosen (16 and 8 loads for 4 by 4 values a thread, and what spills or addresses add); the others
# as in the rule tensor_cores_unused: multiply-adds per access to shared memory, the largest share
# of special functions, and the least FLOP per byte.
_PRODUCT_SHARE, _PER_ACCESS, _SPECIAL, _INTENSITY = 0.4, (1, 40), 0.02, 20

Codes = Callable[[Group], "Flow | None"]
"""The machine code of a kernel; None where it is not available."""


@dataclass(frozen=True)
class Call:
    """A call of a target's variant: its declared work, and its timed median (s), NaN if untimed."""

    work: DeclaredWork | None = None
    seconds: float = math.nan


class Whole(Model, frozen=True):
    """What declared work is of: a variant, or all launches (`name` is "").

    `seconds` are of one call as timed, else of its kernels. `headroom` is None without work.
    """

    name: str
    seconds: float
    is_timed: bool = field(name="timed")
    launches: Count
    headroom: DeclaredHeadroom | None


@dataclass(frozen=True)
class KernelOutlook:
    """A kernel, the quantities of its launch and of its code; none of the latter where the code is
    not available. `whole` is what it is a part of."""

    group: Group
    launch: Mapping[str, float]
    code: Mapping[str, float]
    whole: Whole


@dataclass(frozen=True)
class Outlook:
    """Kernels by time, and findings by what shows of them, the strongest first."""

    summary: ReportSummary
    kernels: tuple[KernelOutlook, ...]
    wholes: tuple[Whole, ...]
    findings: tuple[CodeFinding, ...]

    @property
    def facts(self) -> tuple[KernelFacts, ...]:
        """What signs are evaluated on."""
        return kernel_facts(self.kernels)


def outlook(
    summary: ReportSummary,
    codes: Codes,
    calls: Mapping[str, Call],
    fitted: Factors | None = None,
    measured: Roofs = NONE_MEASURED,
) -> Outlook:
    """What launches, code and declared work show.

    `calls` are the calls by the name of the NVTX range that their launches are in; "" is all
    launches. `fitted` are the factors of signs, the shipped ones if None; `measured` roofs take the
    place of the datasheet's.
    """
    groups = [group for group in summary.groups if group.count > group.failed]
    code = {id(group): _code(group, codes) for group in groups}
    launches: dict[str, list[LaunchSummary]] = {}
    for launch in summary.measured:
        launches.setdefault(_range(launch, calls), []).append(launch)
    wholes = {
        name: _whole(
            name,
            members,
            calls.get(name, Call()),
            measured,
            unit=_unit(
                [code[id(group)] for group in groups if _is_in(group, name, calls)],
                calls.get(name, Call()).work,
            ),
        )
        for name, members in launches.items()
    }
    kernels = tuple(
        KernelOutlook(
            group,
            launch_facts(group.typical),
            code[id(group)],
            wholes[_range(group.typical, calls)],
        )
        for group in groups
    )
    chosen = factors() if fitted is None else fitted
    findings = code_findings(kernel_facts(kernels), chosen)
    return Outlook(summary, kernels, tuple(wholes.values()), findings)


def outlook_of_launches(
    raw: RawReport,
    calls: Mapping[str, Call],
    fitted: Factors | None = None,
    measured: Roofs = NONE_MEASURED,
) -> Outlook:
    """Of the launches of a report that was read without its counters, with their own code."""
    launches = zip(raw.launches, raw.actions, strict=True)
    actions = {launch.index: action for launch, action in launches if launch.workload == KERNEL}

    def code(group: Group) -> Flow | None:
        action = actions.get(group.typical.index)
        return launch_code(action) if action else None

    return outlook(summarize(raw, evaluate(raw)), code, calls, fitted, measured)


def kernel_facts(kernels: Sequence[KernelOutlook]) -> tuple[KernelFacts, ...]:
    """What signs are evaluated on, with the shares of the time of the kernels of a call."""
    calls: dict[int, list[float]] = {}
    for kernel in kernels:
        calls.setdefault(id(kernel.whole), []).append(kernel.group.total)
    facts = []
    for kernel in kernels:
        totals = calls[id(kernel.whole)]
        share, largest = kernel.group.total / sum(totals), max(totals)
        others = 1 - share if kernel.group.total == largest else 0.0
        headroom = kernel.whole.headroom
        declared = headroom.dram_share if headroom else math.nan
        facts.append(KernelFacts(kernel.group, kernel.code, share, others, declared))
    return tuple(facts)


def _code(group: Group, codes: Codes) -> Mapping[str, float]:
    flow = codes(group) if group.share >= _WORTH_CODE else None
    return CodeFacts(flow, group.block, group.grid).values if flow else {}


def _is_in(group: Group, name: str, calls: Mapping[str, Call]) -> bool:
    share = group.share >= _WORTH_CODE
    return share and any(_range(launch, calls) == name for launch in group.launches)


def _unit(codes: Sequence[Mapping[str, float]], work: DeclaredWork | None) -> Unit:
    """The fastest unit that the work of some code fits: tensor cores where some use them, are a
    matrix product without them, or are not known."""
    intensity = work.flop / work.bytes if work and work.bytes else math.nan
    if not all(codes) or any(
        code["code_tensor_share"] > 0 or _is_product(code, intensity) for code in codes
    ):
        return "tensor_fp16"
    return "fp16" if any(code["code_half_share"] > 0 for code in codes) else "fp32"


def _is_product(code: Mapping[str, float], intensity: float) -> bool:
    """Whether its multiply-adds on shared memory fit tensor cores."""
    fused, accesses = code["code_ffma_share"], code["code_shared_share"]
    return (
        fused > _PRODUCT_SHARE
        and _PER_ACCESS[0] * accesses < fused < _PER_ACCESS[1] * accesses
        and code["code_special_share"] < _SPECIAL
        and intensity > _INTENSITY
    )


def _range(launch: LaunchSummary, calls: Mapping[str, Call]) -> str:
    return next((name for name in launch.launch.nvtx if name in calls), "")


def _whole(
    name: str, launches: list[LaunchSummary], call: Call, measured: Roofs, unit: Unit
) -> Whole:
    is_timed = call.seconds > 0
    seconds = call.seconds if is_timed else sum(launch.duration for launch in launches)
    headroom = declared_headroom(
        call.work or DeclaredWork(), seconds, launches[0].gpu, unit=unit, measured=measured
    )
    return Whole(name, seconds, is_timed, len(launches), headroom)
