"""Comparisons as one HTML file that needs nothing else: it opens from disk and prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from profkit.comparison import tables as parts
from profkit.comparison import text as words
from profkit.comparison.comparison import Diff
from profkit.comparison.gates import Failure
from profkit.comparison.tables import Detail
from profkit.core.version import __version__
from profkit.ui.text import literal
from profkit.ui.view import Grid


@dataclass(frozen=True)
class _Row:
    """A kernel in the table: its cells, and the verdict that colours it."""

    cells: tuple[str, ...]
    verdict: str


@dataclass(frozen=True)
class _Section:
    """A comparison as the template lays it out."""

    label: str
    summary: str
    failures: tuple[str, ...]
    obstacles: tuple[str, ...]
    refused: bool
    timed: tuple[str, ...]
    rows: tuple[_Row, ...]
    details: tuple[Detail, ...]
    apart: tuple[Grid, ...]


def diff_html(
    diffs: Sequence[tuple[str, Diff]],
    failures: Sequence[Sequence[Failure]],
    *,
    top: int,
    show_all: bool,
    left_out: Sequence[tuple[str, str]] = (),
) -> str:
    """Every kernel in a table, `top` of them (0: all) with all that is known."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("profkit.comparison", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    sections = [
        _section(label, diff, failed, top, show_all=show_all)
        for (label, diff), failed in zip(diffs, failures, strict=True)
    ]
    return environment.get_template("diff.html.j2").render(
        columns=parts.COLUMNS,
        failed=parts.failed_in_words(failures),
        alone=parts.only_in(left_out),
        sections=sections,
        version=__version__,
    )


def _section(
    label: str, diff: Diff, failed: Sequence[Failure], top: int, *, show_all: bool
) -> _Section:
    moved, same = parts.ordered(diff, failed)
    kernels = [*moved, *same]
    return _Section(
        label=literal(label),
        summary="" if diff.refused else literal(words.summary(diff)),
        failures=tuple(map(parts.failure, failed)),
        obstacles=tuple(literal(str(obstacle)) for obstacle in diff.obstacles),
        refused=diff.refused,
        timed=parts.timed(diff),
        rows=tuple(_Row(parts.row(kernel), kernel.change.value.lower()) for kernel in kernels),
        details=tuple(parts.detail(one, show_all=show_all) for one in kernels[: top or None]),
        apart=parts.apart(diff),
    )
