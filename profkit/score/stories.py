"""The score of recorded stories of applications: causes named, and gains of their fixes."""

import math
import statistics
from collections.abc import Sequence
from typing import Literal

from profkit.core.typed_file import Count, Model, Real

NAMED_STORY = 1.05
"""The smallest gain that names a cause, chosen: a fix that gains less is seldom worth it."""
EXCEEDED = 1.03
"""Factor above a range, chosen: by so much steps as recorded and as timed without a profiler
differ where the GPU is the limit."""
TUNED = 1.2  # likely gain from which a tuned program is said to be slow, chosen
EXPLAINED = 0.9  # share of the GPU's time with a finding or a limit, chosen
BUSY_KERNELS = "slow_kernel"
NEAR = 1.15  # factor between a gain and the replayed gain of the same kernels


OF_KERNELS = frozenset(
    {
        "slow_kernel",
        "product_precision",
        "layout",
        "unfused_kernels",
        "unfused_optimizer",
        "unfused_attention",
        "small_products",
        "unaligned_products",
        "algorithm",
    }
)
"""Categories of causes that are what kernels do."""


class CauseNamed(Model, frozen=True, kw_only=True):
    """A cause that was named, with the lowest, the likely and the highest factor of its fix."""

    category: str
    low: Real
    likely: Real
    high: Real


class StoryScore(Model, frozen=True, kw_only=True):
    """A scored story. `causes` are those planted, `fix` the category that was fixed, `measured` its
    gain without a profiler, `low` and `estimated` the range of the estimate; where it is `replayed`
    the gain of the same kernels or copies. `step_ms` is a step without a profiler, `recorded_ms` in
    the timeline, `replay_error` what the replay without a change takes more, as a share."""

    name: str
    program: str
    gpu: str
    causes: tuple[str, ...]
    fix: str
    complete: bool
    control: bool
    measured: Real
    low: Real
    estimated: Real
    replayed: bool
    named: tuple[CauseNamed, ...]
    step_ms: Real
    recorded_ms: Real
    replay_error: Real

    @property
    def first(self) -> str:
        """The cause named first; "" where none is."""
        return next((each.category for each in self.named if each.high >= NAMED_STORY), "")

    @property
    def is_named(self) -> bool:
        """Whether what is named first was planted; where nothing was, anything or nothing is."""
        named = {self.first, *(("slow_kernel",) if self.first in OF_KERNELS else ())}
        return not self.causes or bool(named & set(self.causes))

    @property
    def is_exceeded(self) -> bool:
        return self.measured > self.estimated * (NEAR if self.replayed else EXCEEDED)

    @property
    def is_reached(self) -> bool:
        """Whether the fix gains as much as the range starts at."""
        return self.low <= self.measured * (NEAR if self.replayed else EXCEEDED)


class ChangeScore(Model, frozen=True, kw_only=True):
    """A change of a program: its measured gain, the lowest and the highest of its rounds, and the
    estimate, 1 without a finding about it. `bound` is what it gains at most by the finding, null
    where that says no such thing; `rules` are the rules that it is of."""

    name: str
    measured: Real
    rounds: tuple[Real, Real]
    low: Real
    likely: Real
    high: Real
    bound: Real
    rules: tuple[str, ...] = ()

    @property
    def interval(self) -> tuple[Real, Real]:
        """What its rounds measured; of a single one, as far as two differ."""
        low, high = self.rounds
        return (low, high) if low < high else (low / EXCEEDED, high * EXCEEDED)

    @property
    def is_found(self) -> bool:
        """Whether a finding is about it."""
        return self.high > 1

    @property
    def is_exceeded(self) -> bool:
        """Whether it gained more than its "at most"."""
        return min(self.measured, self.interval[0]) > self.bound

    @property
    def missed(self) -> Literal["", "exceeded", "not found", "no rule", "above", "below"]:
        """How a gain is out of its range: not found, or without a rule, is what gains as much as
        names a cause."""
        least, most = self.interval
        if self.is_exceeded:
            return "exceeded"
        if not self.is_found:
            missing: Literal["not found", "no rule"] = "not found" if self.rules else "no rule"
            return missing if self.measured >= NAMED_STORY else ""
        if min(self.measured, least) > self.high:
            return "above"
        return "below" if max(self.measured, most) < self.low else ""


class GroupShare(Model, frozen=True):
    """A group of kernels, its share of the step, and what limits it."""

    name: str
    share: Real
    limit: str


class ProgramScore(Model, frozen=True, kw_only=True):
    """A scored program: its labels, categories that are right, those that were named with their
    likely gains, those of the change that gained `best` by NAMED_STORY or more, `explained` of the
    GPU's time, which is `busy` of the step, and changes. `contradicted`: changes of the labeled
    cause gained less than NAMED_STORY, another one more."""

    name: str
    cause: str
    second: str
    accepted: tuple[str, ...]
    contradicted: bool
    named: tuple[tuple[str, Real], ...]
    best: tuple[str, ...]
    explained: Real
    busy: Real
    groups: tuple[GroupShare, ...]
    changes: tuple[ChangeScore, ...]
    step_ms: Real

    @property
    def is_named(self) -> bool:
        """Whether the cause is one of the first two; of a tuned one, whether none gains much."""
        if self.cause == "well_tuned":
            return all(likely < TUNED for _, likely in self.named)
        return bool(set(self.accepted) & self._first)

    @property
    def is_best_named(self) -> bool:
        """Whether the change that gained most is of one of the first two."""
        return not self.best or bool(set(self.best) & self._first)

    @property
    def _first(self) -> set[str]:
        return {category for category, _ in self.named[:2]}


class Applications(Model, frozen=True, kw_only=True):
    """Accuracy over stories; shares are fractions of 1. `named` is of the stories with a planted
    cause, `within` of all, `reached` of those with a complete fix and of controls. Of programs,
    those whose cause, or whose best change, is one of the first two, the causes also without labels
    that measurement contradicts, and with `explained` of their GPU's time; of their changes with a
    finding those whose gain is in its range, of those without one (`changes_unfound`) those that
    gained (`changes_missed`), and of those that are bounded those above it."""

    stories: tuple[StoryScore, ...]
    named: Real
    within: Real
    reached: Real
    programs: tuple[ProgramScore, ...] = ()
    programs_named: Real = math.nan
    contradicted: Count = 0
    others_named: Real = math.nan
    best_named: Real = math.nan
    explained: Real = math.nan
    changes_found: Count = 0
    changes_within: Real = math.nan
    changes_unfound: Count = 0
    changes_missed: Count = 0
    changes_bounded: Count = 0
    changes_exceeded: Count = 0
    replay_error: Real


def score_stories(
    stories: Sequence[StoryScore], programs: Sequence[ProgramScore] = ()
) -> Applications:
    """Summarize scored stories and programs."""
    changes = [change for program in programs for change in program.changes]
    found = [change for change in changes if change.is_found]
    planted = [story for story in stories if story.causes]
    checked = [story for story in stories if story.complete or story.control]
    return Applications(
        stories=tuple(stories),
        programs=tuple(programs),
        programs_named=mean([program.is_named for program in programs]),
        contradicted=sum(program.contradicted for program in programs),
        others_named=mean([each.is_named for each in programs if not each.contradicted]),
        best_named=mean([program.is_best_named for program in programs if program.best]),
        explained=mean([program.explained >= EXPLAINED for program in programs]),
        changes_found=len(found),
        changes_within=mean([not change.missed for change in found]),
        changes_unfound=len(changes) - len(found),
        changes_missed=sum(bool(each.missed) and not each.is_found for each in changes),
        changes_bounded=sum(not math.isnan(change.bound) for change in changes),
        changes_exceeded=sum(change.is_exceeded for change in changes),
        named=mean([story.is_named for story in planted]),
        within=mean([not story.is_exceeded for story in stories]),
        reached=mean([story.is_reached for story in checked]),
        replay_error=max((abs(story.replay_error) for story in stories), default=float("nan")),
    )


def mean(values: Sequence[float]) -> float:
    return statistics.fmean(values) if values else float("nan")
