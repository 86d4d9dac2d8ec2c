"""The change of timed latencies, where both reports' runs hold them."""

from collections import Counter
from collections.abc import Iterator, Mapping

from msgspec import Struct

from profkit.comparison.comparability import Problem, problem_of
from profkit.comparison.repeats import NOISE, Change
from profkit.report.summary import Group, ReportSummary
from profkit.timing.latency import analyze_latency, compare_saved, compare_with, interleaved
from profkit.timing.latency_file import Saved
from profkit.timing.latency_format import Series
from profkit.timing.results import DEFAULT, Classic, Verdict

INTERLEAVED = "interleaved"
WITHIN_RUN = "within-run only"


class TimedChange(Struct, frozen=True):
    """The timed verdict on a variant: `before` and `after` are the two latencies.

    `design` is how they were measured: INTERLEAVED, or WITHIN_RUN, where the machine's A/A floor,
    or NOISE where that is unknown, inflates the margin. `low` to `high` is the interval of
    `speedup`, None where there is none. `why` is what a verdict rests on, or why there is none;
    `valid` is false where the environment changed (INVALID) or the two were measured differently
    (INCOMPARABLE).
    """

    before: Series
    after: Series
    design: str
    change: Change
    speedup: float
    low: float | None
    high: float | None
    margin: float | None
    why: str
    classic: Classic
    valid: bool

    @property
    def design_words(self) -> str:
        """How the two were measured, in words."""
        return "not interleaved" if self.design == WITHIN_RUN else self.design

    @property
    def verdict(self) -> str:
        """The word for it: a change, INVALID or INCOMPARABLE."""
        if self.valid:
            return self.change.value
        return "INVALID" if self.design == INTERLEAVED else Change.incomparable.value


class Timings(Struct, frozen=True):
    """The latencies of a report's run by label, and the file they are from."""

    path: str
    timed: Mapping[str, Series]

    def label_of(self, group: Group) -> str:
        """The one variant that all launches of a group belong to, by its NVTX range; "" if none."""
        labels = set(self._labels(group))
        return labels.pop() if len(labels) == 1 else ""

    def problem_of(self, group: Group) -> Problem | None:
        """The one problem that all variants with launches of a group declare; None if none."""
        problems = {problem_of(self.timed[label].latency.target) for label in self._labels(group)}
        return problems.pop() if len(problems) == 1 else None

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What the variants declare to compute."""
        declared = (problem_of(timed.latency.target) for timed in self.timed.values())
        return tuple(dict.fromkeys(filter(None, declared)))

    def launches_of(self, report: ReportSummary) -> Mapping[str, int]:
        """How many launches of a report each variant has."""
        return Counter(self._labels(report))

    def _labels(self, launches: Group | ReportSummary) -> Iterator[str]:
        nvtx = (label for launch in launches.launches for label in launch.launch.nvtx)
        return (label for label in nvtx if label in self.timed)


def timings(saved: Saved | None) -> Timings:
    """The latencies of a file, analyzed; none where there is no file."""
    if saved is None:
        return Timings("", {})
    return Timings(
        saved.path, {latency.label: analyze_latency(latency) for latency in saved.latencies}
    )


def timed_change(
    before: Timings, after: Timings, labels: tuple[str, str], *, floor: float | None = None
) -> TimedChange:
    """The verdict on the second label's latency against the first's.

    `floor` is the machine's A/A floor between runs, a share. Raises BadInput for samples that
    differ beyond measure.
    """
    earlier, later = before.timed[labels[0]], after.timed[labels[1]]
    sides = [[side.timed.get(label) for label in labels] for side in (before, after)]
    one_run = all(
        first and second and same_samples(first, second)
        for first, second in zip(*sides, strict=True)
    )
    blocks = len(earlier.latency.blocks), len(later.latency.blocks)
    if one_run and blocks[0] == blocks[1] > 1 and interleaved(earlier.latency, later.latency):
        (pair,) = compare_with(earlier, (later,))
        result = pair.comparison
        why = "; ".join(result.details) or _reason(result.reason, result.margin.value)
        valid = result.verdict is not Verdict.INVALID
        return TimedChange(
            pair.a, pair.b, INTERLEAVED, _CHANGES[result.verdict], result.speedup, result.low,
            result.high, result.margin.value, why, result.classic, valid,
        )  # fmt: skip
    floor = NOISE if floor is None else floor
    saved = compare_saved(earlier, later, thresholds=DEFAULT, floor=floor).result
    obstacles, margin = saved.obstacles, saved.margin.value if saved.margin else None
    return TimedChange(
        earlier, later, WITHIN_RUN,
        Change.inconclusive if obstacles else _CHANGES[Verdict(saved.verdict)], saved.speedup,
        saved.low, saved.high, margin, "; ".join(obstacles) or _reason(saved.reason, margin),
        saved.classic, not obstacles,
    )  # fmt: skip


def _reason(reason: str, margin: float | None) -> str:
    """A reason in words, with the margin that it names."""
    return f"{reason} of {margin * 100:g}%" if margin and "margin" in reason else str(reason)


def same_samples(first: Series, second: Series) -> bool:
    """Whether two latencies are one measurement, wherever their files lie."""
    return first.latency.blocks == second.latency.blocks


_CHANGES = {
    Verdict.IMPROVED: Change.improved, Verdict.REGRESSED: Change.regressed,
    Verdict.SAME: Change.same, Verdict.INCONCLUSIVE: Change.inconclusive,
    Verdict.INVALID: Change.inconclusive,
}  # fmt: skip
