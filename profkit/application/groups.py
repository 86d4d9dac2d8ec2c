"""Groups of a step's kernels, by what they do and what limits them, over all launch configurations.

Each has a finding, the rule whose change takes most of its time, or else what names and launches of
its kernels say: what has neither is named and left to a profile.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from profkit.application.causes import plan
from profkit.application.kernel_kinds import group_statement, kernel_traits
from profkit.application.parts import StepParts
from profkit.application.ranking import KernelUse, Ranking
from profkit.application.replay import Work
from profkit.application.what_if import WhatIf, changed
from profkit.core.grouping import grouped
from profkit.core.typed_file import Amount, Count, Model
from profkit.rules.finding import Finding
from profkit.timeline.callers import Caller, Launched, callers
from profkit.timeline.events import Events

_RELIEVED = 0.1  # of a group's time, chosen: less is not what limits it
_MOST = 0.5  # of what another change takes of a group's time, chosen: about as much
_FEW_BLOCKS = 0.5  # of a group's time in grids of few blocks, chosen: most of it


class GroupRow(Model, frozen=True, kw_only=True):
    """A group of kernels: its time per step in seconds and as share of the step, launches per step.

    `finding` is the rule whose change takes most of its time, `relieved` the share of the group's
    time that this takes at best; `statement` is what is known without one, "" for nothing.
    `callers` are what most of its time was launched by.
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
    callers: tuple[Caller, ...] = ()

    @property
    def is_explained(self) -> bool:
        return bool(self.finding or self.statement)

    @property
    def text(self) -> str:
        """What limits it, in words."""
        return self.title or self.statement or "not known without a profile"


def explained_share(groups: Sequence[GroupRow]) -> float:
    """The share of the kernels' time in groups with a finding or a statement."""
    total = sum(group.share for group in groups)
    return sum(group.share for group in groups if group.is_explained) / total if total else math.nan


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
    reliefs = list(_reliefs(what_if, findings)) if what_if else []
    steps = parts.steps
    traits = (kernel_traits(each.name).group for each in events.kernel_names)
    launched = Launched(
        steps.process, parts.kernel_time, tuple(traits), steps.basis.range, steps.median * 1e9
    )
    named = callers(events, launched)
    sm_count = min((gpu.sm_count for gpu in events.gpus), default=0)
    rows = []
    for name, own in uses.items():
        share = sum(use.share for use in own)
        item, relieved = _limit(name, reliefs)
        row = GroupRow(
            name=name,
            seconds=share * step,
            share=share,
            launches=sum(use.launches for use in own) / ranking.steps,
            kernels=len({use.name for use in own}),
            finding=item.rule.name if item else "",
            title=item.title if item else "",
            relieved=relieved,
            statement="" if item else _statement(events, own, sm_count),
            callers=named.get(name, ()),
        )
        rows.append(row)
    return tuple(sorted(rows, key=lambda row: -row.share))


def _limit(
    group: str, reliefs: Sequence[tuple[Finding, Mapping[str, float]]]
) -> tuple[Finding | None, float]:
    """The first finding whose change takes much of a group's time, and the share that it takes. Of
    those that take the same, one change being part of another, it is that of the fewest groups."""
    most = max((shares.get(group, 0.0) for _, shares in reliefs), default=0.0)
    least = max(_RELIEVED, _MOST * most)
    much = [(item, shares) for item, shares in reliefs if shares.get(group, 0.0) >= least]
    if not much:
        return None, 0.0
    relieved = much[0][1][group]
    alike = [pair for pair in much if math.isclose(pair[1][group], relieved)]
    item, _ = min(alike, key=lambda pair: sum(share >= _RELIEVED for share in pair[1].values()))
    return item, relieved


def _statement(events: Events, uses: Sequence[KernelUse], sm_count: int) -> str:
    """What names and launches say without a finding."""
    time = sum(use.time for use in uses)
    blocks = [math.prod(events.configurations[use.configuration].grid) for use in uses]
    few = sum(use.time for use, own in zip(uses, blocks, strict=True) if 2 * own <= sm_count)
    if few > _FEW_BLOCKS * time:
        return f"grids of fewer blocks than half of the {sm_count} SMs"
    return group_statement(uses[0].group)


def _reliefs(
    what_if: WhatIf, findings: Iterable[Finding]
) -> Iterator[tuple[Finding, Mapping[str, float]]]:
    """Of each group's time the share that the change of a finding takes."""
    before = _times(what_if)
    for item in findings:
        change = plan(item.rule.relieves)
        if change.of_kernels:
            after = _times(what_if, changed(what_if.replay, change).works)
            yield (
                item,
                {name: 1 - after.get(name, 0) / time for name, time in before.items() if time},
            )


def _times(what_if: WhatIf, works: Iterable[Work] | None = None) -> Mapping[str, float]:
    replay = what_if.replay
    times: dict[str, float] = defaultdict(float)
    for work in replay.works if works is None else works:
        if work.role == "kernel":
            times[replay.traits[work.group[0]].group] += work.duration
    return times
