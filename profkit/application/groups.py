"""Groups of a step's kernels, by what they do and what limits them, over all launch configurations.

Each has a finding, the rule whose change takes most of its time, or else what names and launches of
its kernels say: where that settles no limit, it is left to a profile.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from profkit.application.causes import plan
from profkit.application.kernel_changes import MULTIPLYING
from profkit.application.kernel_kinds import COMMUNICATION, GRAPH, group_statement, kernel_traits
from profkit.application.parts import COPIES, FILLS, KERNELS, Part, StepParts
from profkit.application.ranking import KernelUse, Ranking
from profkit.application.replay import Replay, Work
from profkit.application.sequences import PASSES, SHORT_PRODUCT, chains
from profkit.application.what_if import WhatIf, changed
from profkit.core.grouping import grouped
from profkit.core.typed_file import Amount, Count, Model
from profkit.rules.finding import Finding
from profkit.rules.rule_file import Rule, shipped_rules
from profkit.timeline.callers import Caller, Launched, callers
from profkit.timeline.events import Events

_HIDDEN = "; the step gains nothing by it alone"
_PRECISION = "product_precision"
_PAGEABLE = "pageable"  # in names of copies
_RELIEVED = 0.1  # of a group's time, chosen: less is not what limits it
_COVERED = 0.5  # of a group's time, chosen: a change of less of it is not of the group
_MOST = 0.5  # of what another change takes of a group's time, chosen: about as much
_FEW_BLOCKS = 0.5  # of a group's time in grids of few blocks, chosen: most of it


class GroupRow(Model, frozen=True, kw_only=True):
    """A group of kernels: its time per step in seconds and as share of the step, launches per step.

    `finding` is the rule whose change takes most of its time (of products also one by which the
    step gains nothing alone), `relieved` the share of the group's time that this takes at best;
    `statement` is what is known without one, "" for nothing, and `limited` whether that is what
    limits it. `callers` are what most of its time was launched by.
    """

    name: str
    seconds: Amount
    share: Amount
    launches: Amount
    kernels: Count
    finding: str = ""
    title: str = ""
    relieved: Amount = 0.0
    statement: str = ""
    limited: bool = False
    callers: tuple[Caller, ...] = ()

    @property
    def is_explained(self) -> bool:
        return bool(self.finding) or self.limited

    @property
    def text(self) -> str:
        """What limits it, in words."""
        return self.title or self.statement or "not known without a profile"


def explained_share(groups: Sequence[GroupRow]) -> float:
    """The share of the kernels' time in groups with a finding or a known limit."""
    return _share((group.share, group.is_explained) for group in groups)


def explained_of_gpu(
    groups: Sequence[GroupRow], parts: StepParts, findings: Iterable[Finding]
) -> float:
    """The same of all of the GPU's time: of fills and copies the bandwidth of memory or of the bus
    is the limit, but of pageable ones, and of communication, where no finding is about it."""
    found = {item.rule.category for item in findings}
    rows = [(group.share, group.is_explained) for group in groups]
    rows += [(parts.share(part), True) for part in parts.group(FILLS)]
    for part in parts.group(COPIES):
        rows.append((parts.share(part), _PAGEABLE not in part.name or "pageable_copies" in found))
    for part in parts.group(COMMUNICATION):
        rows.append((parts.share(part), "exposed_communication" in found))
    return _share(rows)


def _share(rows: Iterable[tuple[float, bool]]) -> float:
    """The share in the rows that are counted."""
    rows = tuple(rows)
    total = sum(share for share, _ in rows)
    return sum(share for share, is_counted in rows if is_counted) / total if total else math.nan


def kernel_groups(
    events: Events,
    parts: StepParts,
    ranking: Ranking,
    step: float,
    findings: Iterable[Finding] = (),
    what_if: WhatIf | None = None,
) -> tuple[GroupRow, ...]:
    """The groups of the kernels of a ranking, most time first; a step takes `step` seconds,
    `what_if` replays the same kernels."""
    uses = grouped((use.group, use) for use in ranking.kernels)
    found = [item.rule for item in findings]
    others = [rule for rule in shipped_rules() if rule.category == _PRECISION and rule not in found]
    reliefs, hidden = (list(_reliefs(what_if, each)) if what_if else [] for each in (found, others))
    steps = parts.steps
    traits = (kernel_traits(each.name).group for each in events.kernel_names)
    launched = Launched(
        steps.process, parts.kernel_time, tuple(traits), steps.basis.range, steps.median * 1e9
    )
    named = callers(events, launched)
    sm_count = min((gpu.sm_count for gpu in events.gpus), default=0)
    chained = _chained(what_if.replay) if what_if else defaultdict[str, float](lambda: 1.0)
    rows = []
    for name, own in uses.items():
        share = sum(use.share for use in own)
        rule, relieved = _limit(name, reliefs)
        statement, is_limit = (
            ("", False) if rule else _statement(events, own, sm_count, chained[name])
        )
        if not (rule or is_limit) and chained[name] > _COVERED:  # time is with the first of a chain
            rule = next((each for each, _ in reliefs if plan(each.relieves).compiled), None)
        is_hidden = not (rule or is_limit) and name.split(",")[0] in MULTIPLYING
        if is_hidden:
            rule, relieved = _limit(name, hidden)
        row = GroupRow(
            name=name,
            seconds=share * step,
            share=share,
            launches=sum(use.launches for use in own) / ranking.steps,
            kernels=len({use.name for use in own}),
            finding=rule.name if rule else "",
            title=rule.title + _HIDDEN * is_hidden if rule else "",
            relieved=relieved,
            statement="" if rule else statement,
            limited=is_limit,
            callers=named.get(name, ()),
        )
        rows.append(row)
    rows += (_of_graphs(part, parts, step) for part in parts.group(KERNELS) if part.name == GRAPH)
    return tuple(sorted(rows, key=lambda row: -row.share))


def _of_graphs(part: Part, parts: StepParts, step: float) -> GroupRow:
    """The kernels of CUDA graphs that were recorded as a whole."""
    share, steps = parts.share(part), len(parts.wall)
    return GroupRow(
        name=GRAPH,
        seconds=share * step,
        share=share,
        launches=part.count / steps,
        kernels=0,
        statement=group_statement(GRAPH)[0],
    )


def _limit(
    group: str, reliefs: Sequence[tuple[Rule, Mapping[str, float]]]
) -> tuple[Rule | None, float]:
    """The first rule whose change takes much of a group's time, and the share that it takes. Of
    those that take the same, one change being part of another, it is that of the fewest groups."""
    most = max((shares.get(group, 0.0) for _, shares in reliefs), default=0.0)
    least = max(_RELIEVED, _MOST * most)
    much = [(rule, shares) for rule, shares in reliefs if shares.get(group, 0.0) >= least]
    if not much:
        return None, 0.0
    relieved = much[0][1][group]
    alike = [pair for pair in much if math.isclose(pair[1][group], relieved)]
    rule, _ = min(alike, key=lambda pair: sum(share >= _RELIEVED for share in pair[1].values()))
    return rule, relieved


def _chained(replay: Replay) -> Mapping[str, float]:
    """Of each group's time the share in chains of passes over memory."""
    times, found = defaultdict[str, float](float), defaultdict[str, float](float)
    indices = {index for row in chains(replay) for index in row}
    for index, work in enumerate(replay.works):
        if work.role == "kernel":
            name = replay.traits[work.group[0]].group
            times[name] += work.duration
            found[name] += work.duration * (index in indices)
    return defaultdict(float, {name: found[name] / time for name, time in times.items() if time})


def _statement(
    events: Events, uses: Sequence[KernelUse], sm_count: int, chained: float
) -> tuple[str, bool]:
    """What names and launches say without a finding, and whether that is the limit; a share of them
    is `chained`."""
    time = sum(use.time for use in uses)
    blocks = [math.prod(events.configurations[use.configuration].grid) for use in uses]
    few = sum(use.time for use, own in zip(uses, blocks, strict=True) if 2 * own <= sm_count)
    if few > _FEW_BLOCKS * time:
        return f"grids of fewer blocks than half of the {sm_count} SMs", True
    if sum(use.time for use in uses if use.median < SHORT_PRODUCT) > _FEW_BLOCKS * time:
        return "kernels of a few µs: latency is the limit", True
    if chained > _COVERED and uses[0].group in PASSES:
        return "passes over memory, which may be in chains", False
    return group_statement(uses[0].group)


def _reliefs(what_if: WhatIf, rules: Iterable[Rule]) -> Iterator[tuple[Rule, Mapping[str, float]]]:
    """Of each group's time the share that the change of a rule takes, of those of which it changes
    as much as is of the group."""
    for rule in rules:
        change = plan(rule.relieves)
        if change.of_kernels:
            yield rule, _relief(what_if.replay, changed(what_if.replay, change).works)


def _relief(replay: Replay, after: Sequence[Work]) -> Mapping[str, float]:
    times, left, covered = (defaultdict[str, float](float) for _ in range(3))
    for work, other in zip(replay.works, after, strict=True):
        if work.role == "kernel":
            name = replay.traits[work.group[0]].group
            times[name] += work.duration
            left[name] += other.duration
            covered[name] += work.duration * (other.duration != work.duration)
    return {
        name: 1 - left[name] / time
        for name, time in times.items()
        if time and covered[name] >= _COVERED * time
    }
