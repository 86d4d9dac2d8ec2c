"""Two recorded applications compared: step time with a verdict, parts of the step, kernels."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec import structs

from profkit.application.application import TITLES
from profkit.application.parts import KERNELS
from profkit.application.run import ApplicationRun
from profkit.comparison.text import signed
from profkit.core.typed_file import Count, Model, Output, part
from profkit.core.version import __version__
from profkit.timing.results import Claim, Interval, Reason, Summary, Verdict
from profkit.timing.statistics import summarize
from profkit.timing.verdict import reason_words, single_runs
from profkit.ui.document import Document, Heading, Lines, Table
from profkit.ui.names import told_apart
from profkit.ui.text import factor_range, literal, number, percent, plural

FLOOR = 0.03
"""Relative difference of step times between two recordings of one program: steps of a GPT recorded
three times each differ by up to 1.2%, with and without nsys by up to 2%."""
_SHOWN = 0.002  # of the step before, chosen: smaller changes are left out unless all are asked for
_NAME = 44  # characters, chosen: the table fits 80 columns

_Parts = Mapping[tuple[str, str], float]


class PartRow(Model, frozen=True):
    """Seconds a step in both runs; 0 where it is absent."""

    group: str
    name: str
    before: float
    after: float

    @property
    def change(self) -> float:
        return self.after - self.before


class ApplicationSide(Model, frozen=True, kw_only=True):
    """A run: seconds of its steps, and their coefficient of variation."""

    name: str
    steps: Count
    median: float
    mean: float
    cv: float | None


class ApplicationDiffFile(Output, frozen=True, kw_only=True, tag="profkit.application-diff/1"):
    """Two applications: `speedup` is the median step before over that after, `low` to `high` holds
    for these two runs; `floor` is how much runs of one program differ. Changes of parts sum to that
    of the mean step. Parts and kernels have the largest change first."""

    profkit: str
    before: ApplicationSide
    after: ApplicationSide
    verdict: Verdict
    reason: str
    speedup: float
    low: float | None
    high: float | None
    floor: float
    parts: tuple[PartRow, ...]
    kernels: tuple[PartRow, ...]


def compare_applications(before: ApplicationRun, after: ApplicationRun) -> ApplicationDiffFile:
    """The comparison of two runs."""
    first, second = (_step_times(run) for run in (before, after))
    within = single_runs(first, second, FLOOR)
    return ApplicationDiffFile(
        profkit=__version__,
        before=_side(before, first),
        after=_side(after, second),
        reason=reason_words(within.reason),
        **part(within, "verdict", "speedup", "low", "high"),
        floor=FLOOR,
        parts=_changes(_parts(before), _parts(after)),
        kernels=_changes(_kernels(before), _kernels(after)),
    )


def _side(run: ApplicationRun, steps: Summary) -> ApplicationSide:
    return ApplicationSide(name=run.name, steps=steps.n, **part(steps, "median", "mean", "cv"))


def _step_times(run: ApplicationRun) -> Summary:
    summary = summarize(run.process.parts.wall / 1e9)
    if summary.refused is not Reason.CONSTANT:
        return summary
    median = summary.median
    return structs.replace(summary, interval=Interval(median, median, None, Claim.WITHIN_RUN))


def _parts(run: ApplicationRun) -> _Parts:
    return {
        (part.group, part.name): float(np.mean(part.times)) / 1e9
        for part in run.process.parts.parts
        if part.times.any()
    }


def _kernels(run: ApplicationRun) -> _Parts:
    """Seconds a step on the GPU's critical path by kernel, all launch configurations together."""
    step = run.process.parts.total / len(run.process.parts.wall) / 1e9
    seconds: dict[tuple[str, str], float] = {}
    for use in run.process.ranking.kernels:
        key = KERNELS, run.process.named.kernel_names[use.name].name
        seconds[key] = seconds.get(key, 0.0) + use.share * step
    return seconds


def _changes(before: _Parts, after: _Parts) -> tuple[PartRow, ...]:
    changes = [
        PartRow(*key, before.get(key, 0.0), after.get(key, 0.0)) for key in {**before, **after}
    ]
    return tuple(sorted(changes, key=lambda row: -abs(row.change)))


def application_diff_document(
    diff: ApplicationDiffFile, names: Sequence[str], top: int, *, everything: bool
) -> Document:
    """Verdict, and tables of the parts and kernels that changed."""
    title = f"{literal(names[0])} → {literal(names[1])}"
    tables = _tables(diff, top, everything=everything)
    return Document(title, (Heading(title, 1), Lines(_verdict(diff)), *tables))


def _verdict(diff: ApplicationDiffFile) -> tuple[str, ...]:
    ratio = f"{diff.speedup:.2f}x as fast"
    if diff.low is not None and diff.high is not None:
        ratio = f"{factor_range(diff.speedup, diff.low, diff.high)} as fast"
    spread = ", ".join(
        plural(side.steps, "step") + (f" with a spread of {percent(side.cv)}" if side.cv else "")
        for side in (diff.before, diff.after)
    )
    return (
        f"Step {number(diff.before.median, 's')} → {number(diff.after.median, 's')}  {ratio}  "
        f"{diff.verdict.value.upper()}",
        f"{spread}; {diff.reason}; runs of one program differ by up to {percent(FLOOR)}",
    )


def _tables(diff: ApplicationDiffFile, top: int, *, everything: bool) -> Iterator[Table]:
    least = 0.0 if everything else _SHOWN * diff.before.mean
    parts, kernels = (
        [row for row in rows if abs(row.change) >= least] for rows in (diff.parts, diff.kernels)
    )
    kernels = kernels if everything or not top else kernels[:top]
    names = told_apart({literal(row.name) for row in kernels}, _NAME) if kernels else {}
    columns = ("Before", "After", "Change")
    note = "Mean seconds a step. Changes sum to that of the step."
    yield Table("Parts of the step", ("Part", *columns), tuple(map(_cells, parts)), note, words=1)
    rows = tuple((names[literal(row.name)], *_cells(row)[1:]) for row in kernels)
    if rows:
        yield Table("Kernels", ("Kernel", *columns), rows, words=1)


def _cells(row: PartRow) -> tuple[str, ...]:
    title = TITLES.get(row.group, row.group)
    name = title if row.name == row.group else f"{title}: {literal(row.name)}"
    before, after = (
        number(value, "s", 3) if value else "none" for value in (row.before, row.after)
    )
    return name, before, after, signed(row.change)
