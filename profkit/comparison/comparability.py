"""Obstacles to a comparison of two reports, by name, with both sides' values."""

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

from msgspec import Struct, field

from profkit.capture.correctness import Declared
from profkit.comparison.problem_size import SizeEvidence, size_evidence
from profkit.core.typed_file import Model
from profkit.report.session import Session
from profkit.report.summary import Group, ReportSummary, clocks_apart
from profkit.ui.text import plural

CLOCK_MOVED = 0.02
"""The share from which clocks differ. Chosen: below it a compute-bound kernel's time differs by
less than ncu's run-to-run variation (repeats.NOISE)."""

_FEW = 4  # names of sections or metrics, chosen: they fit a line


class Aspect(StrEnum):
    """What differs."""

    gpu = "GPU"
    clock = "SM clock"
    memory_clock = "DRAM clock"
    clock_control = "clock control"
    cache_control = "cache control"
    ncu_version = "ncu version"
    collected = "what was collected"
    replay = "replay mode"
    problem = "problem size"
    counters = "counters"
    time = "ncu's time"
    match = "kernels with a counterpart"


_OWN_TIME, _NCUS_WORK = "of the launch", "with work of its own"
_LABELS = {Aspect.collected: "collected metrics", Aspect.match: "matched kernels"}


class Obstacle(Model, frozen=True):
    """A reason not to compare: `before` and `after` are what each side has."""

    aspect: Aspect = field(name="what")
    before: str
    after: str

    def __str__(self) -> str:
        return f"{_LABELS.get(self.aspect, self.aspect)}: {self.before} vs. {self.after}"


class Problem(Struct, frozen=True):
    """What a run declares to have computed: a target's name, shapes, dtype and work (FLOP, B)."""

    target: str
    shapes: str
    dtype: str
    work: tuple[float, float] | None

    @property
    def size(self) -> tuple[str, str, tuple[float, float] | None]:
        """What makes it the same problem as another, whatever computes it."""
        return self.shapes, self.dtype, self.work

    def __str__(self) -> str:
        return " ".join(part for part in (self.target, self.shapes, self.dtype) if part)


Problems = tuple[Problem | None, Problem | None]
"""What the runs of two reports declare to compute, None where one does not."""


def problem_of(target: Declared) -> Problem | None:
    """The problem of a target as saved latencies describe it; None where nothing is declared."""
    work = target.work
    if not target.shapes and not work:
        return None
    return Problem(
        target.name or "",
        " ".join(f"{name}={shape}" for name, shape in (target.shapes or {}).items()),
        target.dtype or "",
        (float(work.flop), float(work.bytes)) if work else None,
    )


def reports_apart(before: ReportSummary, after: ReportSummary) -> tuple[Obstacle, ...]:
    """What of how two reports were recorded keeps them from being compared."""
    sessions = before.session, after.session
    gpus = (", ".join(sorted({gpu.name for gpu in side.gpus})) for side in (before, after))
    versions = [session.ncu_version for session in sessions]
    years = [re.match(r"\d+", version) for version in versions]
    same_year = not all(years) or len({year[0] for year in years if year}) == 1
    facts = {
        Aspect.gpu: gpus,
        Aspect.ncu_version: ("", "") if same_year else versions,
        Aspect.cache_control: (session.cache_control for session in sessions),
        Aspect.clock_control: (session.clock_control for session in sessions),
        Aspect.replay: (session.replay_mode for session in sessions),
    }
    return tuple(_differing(facts))


def collected_apart(before: ReportSummary, after: ReportSummary) -> Obstacle | None:
    """The sets of two reports where they differ: no obstacle, only what both have is compared."""
    facts = {Aspect.collected: [_collected(side.session) for side in (before, after)]}
    return next(_differing(facts), None)


def kernels_apart(
    before: Group,
    after: Group,
    problems: Problems = (None, None),
    *,
    is_named: bool = True,
) -> tuple[Obstacle, ...]:
    """What keeps two groups of launches from being compared.

    `problems` are those that the two runs declare; where either does not, work counters show
    the size. Kernels that no name joins (`is_named` false) have to be shown to do equal work.
    """
    obstacles = []
    recorded = [group.count > group.failed for group in (before, after)]
    if not all(recorded):
        obstacles.append(
            Obstacle(Aspect.counters, *("recorded" if side else "failed" for side in recorded))
        )
    timed = [group.typical.is_timed for group in (before, after)]
    if not all(timed):
        obstacles.append(
            Obstacle(Aspect.time, *(_OWN_TIME if side else _NCUS_WORK for side in timed))
        )
    obstacles += _differing({Aspect.gpu: (before.typical.gpu.name, after.typical.gpu.name)})
    obstacles += size_apart(before, after, problems, is_named=is_named)
    clocks = ((Aspect.clock, "sm_clock"), (Aspect.memory_clock, "dram_clock"))
    for aspect, name in clocks:
        values = before.typical.get(name), after.typical.get(name)
        if clocks_apart(name, before.typical, after.typical, CLOCK_MOVED):
            obstacles.append(Obstacle(aspect, *(f"{value / 1e6:.0f} MHz" for value in values)))
    return tuple(obstacles)


def can_be_forced(obstacles: Iterable[Obstacle]) -> bool:
    """Whether there is something to compare anyway: where counters failed, or no kernel has
    a counterpart, there is not."""
    return not {obstacle.aspect for obstacle in obstacles} & {Aspect.counters, Aspect.match}


def no_counterparts(before: ReportSummary, after: ReportSummary) -> Obstacle:
    """That no kernel of one report was matched with one of the other."""
    return Obstacle(Aspect.match, *(f"none of {len(side.groups)}" for side in (before, after)))


def only_the_clock(obstacles: Iterable[Obstacle]) -> bool:
    """Whether cycles may be compared though times may not: the SM clock alone differs."""
    return {obstacle.aspect for obstacle in obstacles} == {Aspect.clock}


def size_apart(
    before: Group, after: Group, problems: Problems, *, is_named: bool
) -> tuple[Obstacle, ...]:
    """That two groups of launches are not taken for one problem, as in `kernels_apart`."""
    earlier, later = problems
    if earlier and later:
        if earlier.size == later.size:
            return ()
        return (Obstacle(Aspect.problem, _size_words(earlier), _size_words(later)),)
    evidence = size_evidence(before.typical, after.typical)
    is_same = evidence.is_same if is_named or not evidence.measures else evidence.is_proven
    return () if is_same else (Obstacle(Aspect.problem, *_sizes(evidence)),)


def _sizes(evidence: SizeEvidence) -> tuple[str, str]:
    """Both sizes: threads where they differ, and amounts of work that differ."""
    parts = []
    if not evidence.has_equal_threads:
        parts.append(tuple(f"{count:,.0f} threads" for count in evidence.threads))
    parts += [
        (f"{measure.before:.4g} {measure.label}", f"{measure.after:.4g} {measure.label}")
        for measure in evidence.measures
        if not measure.is_equal
    ]
    before, after = (", ".join(side) for side in zip(*parts, strict=True))
    return before, after


def _size_words(problem: Problem) -> str:
    work = f", {problem.work[0]:.4g} FLOP, {problem.work[1]:.4g} B" if problem.work else ""
    return f"{problem}{work}"


def _differing(facts: Mapping[Aspect, Iterable[str]]) -> Iterator[Obstacle]:
    """Those whose values are both known and differ."""
    for aspect, (before, after) in facts.items():
        if before and after and before != after:
            yield Obstacle(aspect, before, after)


def _collected(session: Session) -> str:
    """The sets, sections and metrics that ncu collected, many as their number; "" where the report
    does not have them."""
    if not session.command and not session.options:
        return ""
    asked = []
    for word, name in (("set", "set"), ("section", "section"), ("metric", "metrics")):
        names = sorted(filter(None, session.options.get(name, "").split(",")))
        if names:
            asked.append(
                plural(len(names), word) if len(names) > _FEW else f"{name} {','.join(names)}"
            )
    return " ".join(asked) or "set basic (default)"
