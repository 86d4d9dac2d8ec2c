"""The comparison of two applications: its result and its document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from profkit.application.application import TITLES
from profkit.comparison.application import FLOOR, ApplicationDiff, PartChange
from profkit.comparison.text import signed
from profkit.core.typed_file import Count, Model, Output
from profkit.core.version import __version__
from profkit.timing.verdict import reason_words
from profkit.ui.document import Document, Heading, Lines, Table
from profkit.ui.names import told_apart
from profkit.ui.text import factor_range, literal, number, percent, plural

_SHOWN = 0.002  # of the step before, chosen: smaller changes are left out unless all are asked for
_NAME = 44  # characters, chosen: the table fits 80 columns


class PartRow(Model, frozen=True, kw_only=True):
    """Seconds a step in both runs; 0 where it is absent."""

    group: str
    name: str
    before: float
    after: float


class ApplicationSide(Model, frozen=True, kw_only=True):
    """A run: seconds of its steps."""

    name: str
    steps: Count
    median: float
    mean: float


class ApplicationDiffFile(Output, frozen=True, kw_only=True, tag="profkit.application-diff/1"):
    """Two applications: `speedup` is the median step before over that after, `low` to `high` holds
    for these two runs; `floor` is how much runs of one program differ. Changes of parts sum to that
    of the mean step."""

    profkit: str
    before: ApplicationSide
    after: ApplicationSide
    verdict: str
    reason: str
    speedup: float
    low: float | None
    high: float | None
    floor: float
    parts: tuple[PartRow, ...]
    kernels: tuple[PartRow, ...]


def application_diff_result(diff: ApplicationDiff) -> ApplicationDiffFile:
    """The comparison as its file."""
    sides = [
        ApplicationSide(name=run.name, steps=steps.n, median=steps.median, mean=steps.mean)
        for run, steps in zip((diff.before, diff.after), diff.steps, strict=True)
    ]
    return ApplicationDiffFile(
        profkit=__version__,
        before=sides[0],
        after=sides[1],
        verdict=diff.within.verdict.value,
        reason=reason_words(diff.within.reason),
        speedup=diff.within.speedup,
        low=diff.within.low,
        high=diff.within.high,
        floor=FLOOR,
        parts=_rows(diff.parts),
        kernels=_rows(diff.kernels),
    )


def application_diff_document(
    diff: ApplicationDiff, names: Sequence[str], top: int, *, everything: bool
) -> Document:
    """Verdict, and tables of the parts and kernels that changed."""
    title = f"{literal(names[0])} → {literal(names[1])}"
    tables = _tables(diff, top, everything=everything)
    return Document(title, (Heading(title, 1), Lines(_verdict(diff)), *tables))


def _verdict(diff: ApplicationDiff) -> tuple[str, ...]:
    within = diff.within
    before, after = diff.steps
    ratio = f"{within.speedup:.2f}x as fast"
    if within.low is not None and within.high is not None:
        ratio = f"{factor_range(within.speedup, within.low, within.high)} as fast"
    spread = ", ".join(
        plural(side.n, "step") + (f" with a spread of {percent(side.cv)}" if side.cv else "")
        for side in diff.steps
    )
    return (
        f"Step {number(before.median, 's')} → {number(after.median, 's')}  {ratio}  "
        f"{within.verdict.value.upper()}",
        f"{spread}; {reason_words(within.reason)}; runs of one program differ by up to "
        f"{percent(FLOOR)}",
    )


def _tables(diff: ApplicationDiff, top: int, *, everything: bool) -> Iterator[Table]:
    least = 0.0 if everything else _SHOWN * diff.steps[0].mean
    parts = [row for row in diff.parts if abs(row.change) >= least]
    kernels = [row for row in diff.kernels if abs(row.change) >= least]
    kernels = kernels if everything or not top else kernels[:top]
    names = told_apart({literal(row.name) for row in kernels}, _NAME) if kernels else {}
    columns = ("Before", "After", "Change")
    note = "Mean seconds a step. Changes sum to that of the step."
    yield Table("Parts of the step", ("Part", *columns), tuple(map(_cells, parts)), note, words=1)
    rows = tuple((names[literal(row.name)], *_cells(row)[1:]) for row in kernels)
    if rows:
        yield Table("Kernels", ("Kernel", *columns), rows, words=1)


def _cells(row: PartChange) -> tuple[str, ...]:
    title = TITLES.get(row.group, row.group)
    name = title if row.name == row.group else f"{title}: {literal(row.name)}"
    return (
        name,
        number(row.before, "s", 3) if row.before else "none",
        number(row.after, "s", 3) if row.after else "none",
        signed(row.change),
    )


def _rows(changes: Iterable[PartChange]) -> tuple[PartRow, ...]:
    return tuple(
        PartRow(group=row.group, name=row.name, before=row.before, after=row.after)
        for row in changes
    )
