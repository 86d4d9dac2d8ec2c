"""What holds an application's step up: quantities for rules about applications.

Each cause has the share of the step's time that its fix saves at best, by replay; the finding with
the highest likely gain comes first (`rules.checklist.application_items`).
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, median

import numpy as np
from msgspec import structs

from profkit.application.host_work import host_work, is_pageable, is_synchronization
from profkit.application.kernel_changes import kernel_quantities
from profkit.application.kernel_kinds import frameworks
from profkit.application.ranks import ranks_of
from profkit.application.replay import Replay
from profkit.application.steps import Steps, steady_steps
from profkit.application.what_if import (
    Change,
    WhatIf,
    bandwidths,
    small_kernels,
)
from profkit.rules.checklist import application_items, timeline_items, with_tried
from profkit.rules.finding import Finding
from profkit.rules.known_trial import NO_TRIAL, KnownTrial
from profkit.rules.rule_file import Rule, shipped_rules
from profkit.score.stories import NAMED_STORY
from profkit.timeline import intervals, region
from profkit.timeline.cuda_calls import TO_DEVICE
from profkit.timeline.events import Events
from profkit.timeline.lost_work import lost_work
from profkit.timeline.summary import TimelineSummary, summarize_timeline
from profkit.timeline.work import work_of

FASTER = 0.9
"""Of its time that a kernel takes after a fix for which there is no estimate, chosen: enough that a
busy GPU is named where nothing else is, and less than what a fix of another limit gives."""

CHANGES: Mapping[str, Change] = {
    "saved_by_graphs": Change(graphs=True),
    "saved_by_pinned_copies": Change(pinned=True),
    "saved_by_overlap": Change(overlapped=True),
    "saved_by_prefetch": Change(prefetched=True),
    "saved_by_reuse": Change(preallocated=True),
    "saved_by_streams": Change(concurrent=True),
    "saved_by_balance": Change(balanced=True),
    "saved_by_tf32": Change(arithmetic="TF32"),
    "saved_by_single": Change(arithmetic="FP32"),
    "saved_by_half": Change(arithmetic="BF16"),
    "saved_by_channels_last": Change(channels_last=True),
    "saved_by_fusing": Change(fused=True),
    "saved_by_compiling": Change(compiled=True),
    "saved_by_fused_update": Change(updated=True),
    "saved_by_fused_attention": Change(attended=True),
    "saved_by_sparse_products": Change(sparse=True),
    "saved_by_batching": Change(batched=True),
    "saved_by_padding": Change(padded=True),
}
"""What each cause's fix changes."""
_OF_HOST = ("host_wait_time", "host_work", "allocation_time")
_WAITS, _WAITING = "saved_by_no_waits", Change(unsynchronized=True)


def plan(names: Iterable[str]) -> Change:
    """The fixes of some causes together, by the names of what they save; of kernels there is none
    without a profile of them."""
    change = Change()
    for name in names:
        change |= _WAITING if name == _WAITS else CHANGES.get(name, Change())
    return change


def findings(
    events: Events, rules: Sequence[Rule], disabled: Collection[str] = ()
) -> tuple[Finding, ...]:
    """What rules find in a timeline: in its steps, or in all of it where nothing repeats. Of
    several programs they are of that on the first GPU.

    Shipped rules about all of a timeline would count its start and warm-up, and lost work as idle.
    """
    return findings_of(events, replayed(events, steady_steps(events)), rules, disabled)


def with_findings(
    events: Events,
    rules: Sequence[Rule],
    disabled: Collection[str] = (),
    nvtx: str | None = None,
    tried: KnownTrial = NO_TRIAL,
) -> tuple[TimelineSummary, tuple[Finding, ...]]:
    """A timeline's summary and findings, with what was `tried` of these; the summary's notes say of
    which processes there are none."""
    steps, summary = steady_steps(events, nvtx), summarize_timeline(events)
    items = findings_of(events, replayed(events, steps), rules, disabled)
    is_stepped = any(item.rule.about == "application" for item in items)
    notes = ranks_of(events, steps).notes if is_stepped else ()
    notes = (*summary.report.notes, *notes, *filter(None, [tried.note]))
    report = structs.replace(summary.report, notes=notes)
    return structs.replace(summary, report=report), with_tried(items, tried.rows)


def findings_of(
    events: Events,
    what_if: WhatIf | None,
    rules: Sequence[Rule],
    disabled: Collection[str] = (),
) -> tuple[Finding, ...]:
    """What rules find in the replayed steps; see `findings`."""
    step = quantities_of(events, what_if)
    shipped = shipped_rules() if step or lost_work(events) else ()
    whole = [rule for rule in rules if rule.about == "timeline" and rule not in shipped]
    items = timeline_items(region.measure(events), whole, disabled) if whole else ()
    if not step:
        return items
    items = (*application_items(step, rules, disabled), *items)
    by_gain = sorted(items, key=lambda item: -item.speedup)
    return tuple(replace(item, rank=rank) for rank, item in enumerate(by_gain, 1))


def quantities(
    events: Events,
    steps: Sequence[Steps],
    known: float | None = None,
    host: float | None = None,
) -> Mapping[str, float]:
    """The quantities of the step of the program on the first GPU; see `replayed`."""
    return quantities_of(events, replayed(events, steps, known, host))


def replayed(
    events: Events,
    steps: Sequence[Steps],
    known: float | None = None,
    host: float | None = None,
) -> WhatIf | None:
    """The replay of a step of the program on the first GPU; None of a program that repeats nothing,
    or whose calls or GPU work were not recorded.

    `known` and `host` are what WhatIf takes.
    """
    if not len(events.calls) or not steps:
        return None
    ranks = ranks_of(events, steps)
    if len(ranks.first) < 2 or any(lost_work(events, each.process) for each in ranks.steps):
        return None
    return WhatIf(events, steps, known, host)


def quantities_of(events: Events, what_if: WhatIf | None) -> Mapping[str, float]:
    """The quantities of a replayed step; none without one."""
    if what_if is None:
        return {}
    ranks, works = what_if.ranks, what_if.replay.works
    kernels = {what_if.names[work.group[0]] for work in works if work.role == "kernel"}
    return {
        "step_time": ranks.first.median,
        "gpu_busy_share": fmean(_busy_share(events, each) for each in ranks.steps),
        **(known := frameworks([*kernels, *events.range_names])),
        **(evidence := _evidence(what_if.replay, what_if.sm_count, what_if.present * 1e9)),
        **{
            f"{name.removesuffix('_time')}_share": evidence[name] / what_if.recorded
            for name in _OF_HOST
        },
        "cache_frees": evidence["frees"] * known["torch"],
        **kernel_quantities(what_if.replay, what_if.present * 1e9),
        **_savings(what_if),
    }


def _savings(what_if: WhatIf) -> dict[str, float]:
    def saved(change: Change) -> float:
        return 1 - 1 / what_if.best(change)

    savings = {name: saved(change) for name, change in CHANGES.items()}
    least = 1 - 1 / NAMED_STORY
    has_data = any(map(is_pageable, what_if.replay.works))  # small copies are no finding
    of_waits = {"saved_by_prefetch": True, "saved_by_pinned_copies": has_data}
    others = plan(name for name, has in of_waits.items() if has and savings[name] >= least)
    faster = Change(
        kernels={work.group: FASTER for work in what_if.replay.works if work.role == "kernel"}
    )
    # a wait before host work, or after a copy of pageable memory, is part of what holds that up
    waits = saved(others | _WAITING) - saved(others)
    of_kernels = max(savings[name] for name, change in CHANGES.items() if change.of_kernels)
    by_kernels = saved(faster)
    if by_kernels <= of_kernels:  # a finding says what makes kernels faster, and by how much
        by_kernels = 0.0
    if max(*savings.values(), waits, by_kernels) < least:
        # a host that takes as long as its GPU: neither gives anything without the other
        beside = saved(CHANGES["saved_by_graphs"] | faster) - savings["saved_by_graphs"]
        by_kernels = max(by_kernels, beside)
    return {
        **savings,
        **{
            name.replace("saved", "most"): most
            for name, change in CHANGES.items()
            if change.is_bounded and (most := what_if.most(change)) < math.inf
        },
        _WAITS: waits,
        "saved_by_kernels": by_kernels,
    }


def _evidence(replay: Replay, sm_count: int, step: float) -> dict[str, float]:
    calls, works = replay.calls, replay.works
    working = {work.index for work in host_work(replay)}
    issuing = [
        call.own + (0 if index in working else call.gap)
        for index, call in enumerate(calls)
        if call.role == "launch"
    ]
    durations = [work.duration for work in works if work.role == "kernel"]
    waits = [call for call in calls if is_synchronization(call, works)]
    pageable = [work for work in works if is_pageable(work)]
    size, copying = sum(work.size for work in pageable), sum(work.duration for work in pageable)
    collectives = [work for work in works if work.role == "communication"]
    allocating = [call for call in calls if call.role == "allocation"]
    speeds = bandwidths(works)

    def each(count: float) -> float:
        return count / replay.steps / replay.ranks

    return {
        "launches": each(sum(call.role == "launch" for call in calls)),
        "launch_share": each(sum(issuing)) / step,
        "kernel_median": median(durations) / 1e9 if durations else math.nan,
        "host_waits": each(len(waits)),
        "host_wait_time": each(sum(call.end - call.start for call in waits)) / 1e9,
        "host_work": each(sum(calls[index].gap for index in working)) / 1e9,
        "pageable_bytes": each(size),
        "pageable_copy_share": each(copying) / replay.recorded,
        "pageable_bandwidth": size / copying * 1e9 if copying else math.nan,
        "pinned_bandwidth": speeds.get(TO_DEVICE, math.nan),
        "collectives": each(len(collectives)),
        "communication_time": each(sum(work.duration for work in collectives)) / 1e9,
        "allocations": each(len(allocating)),
        "frees": each(sum("Free" in call.name for call in allocating)),
        "allocation_time": each(sum(call.end - call.start for call in allocating)) / 1e9,
        "small_kernels": each(small_kernels(works, sm_count)),
        "ranks": replay.ranks,
    }


def _busy_share(events: Events, steps: Steps) -> float:
    """Of the time of all typical steps, as the parts of a step are."""
    work = work_of(events, steps.process, steps.device)
    busy = np.diff(intervals.covered(intervals.union(work.start, work.end), steps.bounds))
    return float(busy[steps.typical].sum() / steps.wall.sum())
