"""`profkit diff`: did the fix work?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profkit.commands.options import KernelOption, OutputOption, put
from profkit.errors import BadInput, UsageError

if TYPE_CHECKING:
    from profkit.analysis.diff import Diff
    from profkit.analysis.line_changes import LineChange
    from profkit.report import Report

_TOP_SHOWN = 3
_INCOMPARABLE = 3
_MODES = ("auto", "name", "order", "nvtx")


class Format(StrEnum):
    """How a comparison is written."""

    terminal = "terminal"


def diff(
    before: Annotated[
        Path,
        typer.Argument(metavar="BEFORE", help="A report, a run, or a folder of reports."),
    ],
    after: Annotated[
        Path | None,
        typer.Argument(metavar="AFTER", help="The same after the change.", show_default=False),
    ] = None,
    kernel: KernelOption = None,
    match: Annotated[
        str,
        typer.Option(
            metavar="HOW",
            help="auto, name, order, nvtx, or a YAML file of `old name: new name`.",
        ),
    ] = "auto",
    top: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Kernels to show in detail, 0 for all. [default: 3]",
            show_default=False,
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Show small changes too, and what one side alone has.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Compare what can't be compared, too.")
    ] = False,
    format: Annotated[Format, typer.Option("--format", help="How to write it.")] = Format.terminal,
    output: OutputOption = None,
) -> None:
    """Say whether a change made kernels faster, by how much, why, and what limits them now.

    Examples:

      profkit diff before.ncu-rep after.ncu-rep

      profkit diff reports/sdpa/20260101T120000Z-aaaaaa reports/sdpa/20260102T120000Z-bbbbbb
    """
    from profkit.render.diff import diff_view
    from profkit.render.terminal import rendered
    from profkit.report import diff as compare

    if after is None:
        raise UsageError("one report is not a comparison", "give BEFORE and AFTER")
    pairs, left_out = _paired(before, after)
    mode, names = _matching(match)
    shown = _TOP_SHOWN if top is None else top
    texts, found = [], []
    for label, one, other in pairs:
        sides = _read(one, kernel), _read(other, kernel)
        compared = compare(*sides, match=mode, names=names, force=force)
        found.append(compared)
        lines = _lines(compared, sides, shown)
        view = diff_view(compared, label, shown, lines, everything=everything)
        texts.append(rendered(view, to_file=output is not None))
    texts += [f"only in {side}: {path.name}\n" for side, path in left_out]
    put("\n".join(texts), output)
    if any(one.refused or one.incomparable for one in found) and not force:
        raise typer.Exit(_INCOMPARABLE)


def _paired(
    before: Path, after: Path
) -> tuple[list[tuple[str, Path, Path]], list[tuple[str, Path]]]:
    """The reports to compare, each pair with a title, and those that one side alone has."""
    from profkit.commands.reading import find_reports

    sides = []
    for path in (before, after):
        files, failures = find_reports([path])
        if failures:
            raise failures[0]
        sides.append(files)
    if len(sides[0]) == len(sides[1]) == 1:
        title = f"{_name(before, sides[0][0])} → {_name(after, sides[1][0])}"
        return [(title, sides[0][0], sides[1][0])], []
    ours, theirs = (
        {_place(file, root): file for file in files}
        for root, files in zip((before, after), sides, strict=True)
    )
    both = [(str(place), ours[place], theirs[place]) for place in ours if place in theirs]
    if not both:
        raise UsageError(
            f"{before} and {after}: no report of one has its name in the other",
            "name one report of each",
        )
    only = [("before", file) for place, file in ours.items() if place not in theirs]
    return both, only + [("after", file) for place, file in theirs.items() if place not in ours]


def _place(file: Path, root: Path) -> Path:
    """Where a report lies in its folder, without its suffix; its name where it was given itself."""
    return (file.relative_to(root) if root.is_dir() else Path(file.name)).with_suffix("")


def _name(given: Path, file: Path) -> str:
    from profkit.render.text import literal

    return literal(file.name if given == file else given.name or str(given))


def _matching(asked: str) -> tuple[str, Mapping[str, str] | None]:
    if asked in _MODES:
        return asked, None
    path = Path(asked)
    if not path.is_file():
        raise UsageError(
            f"--match {asked!r} is not {', '.join(_MODES)} or a file", "see profkit diff --help"
        )
    return "auto", _names(path)


def _names(path: Path) -> Mapping[str, str]:
    import yaml

    try:
        told = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        raise BadInput(f"{path}: not YAML", "write `old name: new name`, one a line") from None
    if not isinstance(told, dict) or not all(isinstance(name, str) for name in told.values()):
        raise BadInput(f"{path}: not names of kernels", "write `old name: new name`, one a line")
    return {str(old): new for old, new in told.items()}


def _read(path: Path, kernel: str | None) -> Report:
    from profkit.commands.reading import progress_line
    from profkit.report import load

    with progress_line() as progress:
        return load(path, kernel=kernel, progress=progress)


def _lines(
    found: Diff, sides: tuple[Report, Report], top: int
) -> Mapping[int, Sequence[LineChange]]:
    """What changed by source line in the kernels that are shown and that did change."""
    from profkit.analysis.line_changes import line_changes

    changed = [one for one in found.kernels[: top or None] if one.changed]
    made = {
        one.after.typical.index: line_changes(
            sides[0].line_costs(one.before.typical),
            sides[1].line_costs(one.after.typical),
        )
        for one in changed
    }
    return {at: lines for at, lines in made.items() if lines}
