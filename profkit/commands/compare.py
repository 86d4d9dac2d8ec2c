"""`profkit compare`: two saved results, what can be said of them and what can't."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profkit.commands.formats import TextFormat
from profkit.commands.options import FORMAT, OutputOption, put
from profkit.commands.time import share, thresholds_of
from profkit.commands.timing_options import MarginOption, PresetOption, UnitOption
from profkit.core.errors import UsageError

if TYPE_CHECKING:
    from profkit.timing.latency import Timed

_INCONCLUSIVE = 3


def compare(
    a: Annotated[Path, typer.Argument(metavar="A.json", help="Saved samples: the baseline.")],
    b: Annotated[Path, typer.Argument(metavar="B.json", help="Saved samples to judge.")],
    variant: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this variant of both files; may be repeated."),
    ] = None,
    floor: Annotated[
        str | None,
        typer.Option(metavar="SHARE", help="The A/A floor between runs, instead of this GPU's."),
    ] = None,
    margin: MarginOption = None,
    preset: PresetOption = "default",
    unit: UnitOption = None,
    force: Annotated[
        bool, typer.Option("--force", help="Compare what was measured differently too.")
    ] = False,
    format: Annotated[TextFormat, FORMAT] = "terminal",
    output: OutputOption = None,
) -> None:
    """Say what two saved results allow to be said: they were not measured in turns.

    Without a known A/A floor (profkit calibrate) there is no verdict between two runs: what
    differs may be the build, or the hour. Exits with 3 where nothing can be concluded, or the two
    were measured differently, on two GPUs for example.

    Examples:

      profkit compare before.json after.json

      profkit compare before.json after.json --variant flash --floor 0.5%
    """
    from profkit.timing.compare_view import saved_text
    from profkit.timing.latency import analyze_latency, compare_saved
    from profkit.timing.latency_file import read_latencies

    files = [read_latencies(path, unit) for path in (a, b)]
    before, after = (
        [analyze_latency(one, file.claimed) for one in file.latencies] for file in files
    )
    asked = thresholds_of(preset, margin)
    known = None if floor is None else share(floor, "--floor")
    versions = (files[0].fingerprint.versions or {}, files[1].fingerprint.versions or {})
    matched = _matched(before, after, variant or [], (a, b))
    pairs = [
        compare_saved(
            one, other, thresholds=asked, floor=_floor(one, other) if known is None else known,
            force=force, versions=versions,
        )
        for one, other in matched
    ]  # fmt: skip
    only = _unmatched(before, after, matched) if not variant else ((), ())
    names = (a.name, b.name)
    put(saved_text(pairs, names, format, only=only, to_file=output is not None), output)
    if any(pair.open for pair in pairs):
        raise typer.Exit(_INCONCLUSIVE)


def _matched(
    before: Sequence[Timed], after: Sequence[Timed], names: Sequence[str], files: tuple[Path, Path]
) -> list[tuple[Timed, Timed]]:
    """Latencies of the same label; the only ones of two files whatever their labels.

    Raises UsageError where there are none, or none of one of the names.
    """
    if len(before) == len(after) == 1 and not names:
        return [(before[0], after[0])]
    by_label = {one.label: one for one in after}
    common = {one.label: one for one in before if one.label in by_label}
    for name in names:
        if name not in common:
            raise UsageError(f"--variant {name!r} is not in both: {_content(before, after, files)}")
    if not common:
        raise UsageError(
            f"nothing to compare: {_content(before, after, files)}", "time the same variants"
        )
    return [(common[label], by_label[label]) for label in common if not names or label in names]


def _content(before: Sequence[Timed], after: Sequence[Timed], files: tuple[Path, Path]) -> str:
    """What each file has."""
    from profkit.ui.text import literal

    sides = zip(files, (before, after), strict=True)
    return ", ".join(
        f"{file} has {literal(', '.join(one.label for one in side))}" for file, side in sides
    )


def _unmatched(
    before: Sequence[Timed], after: Sequence[Timed], matched: Sequence[tuple[Timed, Timed]]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The labels that only one of the two files has."""
    used = {id(side) for pair in matched for side in pair}
    first, second = (
        tuple(one.label for one in side if id(one) not in used) for side in (before, after)
    )
    return first, second


def _floor(a: Timed, b: Timed) -> float | None:
    from profkit.timing.floor import floor_between_runs

    return floor_between_runs({a.latency.measured_with, b.latency.measured_with})
