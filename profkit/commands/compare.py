"""`profkit compare`: two saved latency results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from profkit.commands import groups, options
from profkit.commands.kinds import Latencies
from profkit.core.errors import UsageError

if TYPE_CHECKING:
    from profkit.timing.latency_format import Series


def compare(
    a: Latencies,
    b: Latencies,
    *,
    variant: tuple[str, ...] = (),
    floor: str | None = None,
    verdicts: groups.VerdictOptions,
    unit: groups.Unit | None = None,
    output: groups.Output[groups.TextFormat],
) -> None:
    """Compare two latency results saved in separate runs.

    They were not interleaved, so a verdict needs a known A/A noise floor between runs (`profkit
    calibrate`). Exits with 3 if inconclusive, or if they were measured differently, for example on
    two GPUs.

    Arguments:
      a (A.json): Saved samples: the baseline.
      b (B.json): Saved samples to compare with it.

    Options:
      variant (NAME): Only this variant of both files; repeatable.
      floor (SHARE): A/A noise floor between runs, instead of this GPU's (`profkit calibrate`).

    Examples:
      profkit compare before.json after.json
      profkit compare before.json after.json --variant flash --floor 0.5%
    """
    from profkit.timing.compare_view import CompareFile, compare_document
    from profkit.timing.floor import floor_between_runs
    from profkit.timing.latency import analyze_latency, compare_saved
    from profkit.timing.latency_file import read_latencies

    files = [read_latencies(path, unit) for path in (a, b)]
    before, after = ({row.label: analyze_latency(row) for row in file.latencies} for file in files)
    thresholds = verdicts.thresholds()
    known = None if floor is None else groups.share(floor, "--floor")
    versions = (files[0].fingerprint.versions or {}, files[1].fingerprint.versions or {})
    pairs = []
    labels = _matched(before, after, variant, (a, b))
    for label, other in labels:
        sides = (before[label], after[other])
        setups = {side.latency.measured_with for side in sides}
        limit = floor_between_runs(setups) if known is None else known
        pairs.append(
            compare_saved(
                *sides,
                thresholds=thresholds,
                floor=limit,
                versions=versions,
                claimed=(files[0].claimed, files[1].claimed),
            )
        )
    only: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    if not variant:
        matched_before, matched_after = zip(*labels, strict=True)
        only = (
            tuple(label for label in before if label not in matched_before),
            tuple(label for label in after if label not in matched_after),
        )
    results = tuple(pair.result for pair in pairs)
    file = CompareFile(files=(a.name, b.name), pairs=results, only=only)
    output.show(file, lambda: compare_document(pairs, file))
    if any(pair.open for pair in pairs):
        raise typer.Exit(options.INCONCLUSIVE)


def _matched(
    before: Mapping[str, Series],
    after: Mapping[str, Series],
    names: Sequence[str],
    files: tuple[Path, Path],
) -> list[tuple[str, str]]:
    """The labels to compare: the same ones; the only ones of two files whatever they are.

    Raises UsageError where there are none, or none of one of the names.
    """
    from profkit.ui.text import literal

    if len(before) == len(after) == 1 and not names:
        return [(next(iter(before)), next(iter(after)))]
    content = ", ".join(
        f"{file} has {literal(', '.join(side))}"
        for file, side in zip(files, (before, after), strict=True)
    )
    common = [label for label in before if label in after]
    for name in names:
        if name not in common:
            where = "one file only" if name in before or name in after else "neither file"
            raise UsageError(f"--variant {name!r} is in {where}: {content}")
    if not common:
        raise UsageError(f"nothing to compare: {content}", "time the same variants")
    return [(label, label) for label in common if not names or label in names]
