"""`profkit history check`: what changed in a history, and whether that is news."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path
from typing import Literal

import typer

from profkit.commands.choices import Count, Number
from profkit.commands.groups import share
from profkit.commands.options import put, show
from profkit.core.errors import BadInput

CheckFormat = Literal["terminal", "markdown", "json", "junit"]

_STORE = Path(".profkit/history")
_TOP = 40  # chosen: a screen
_RECENT = 3  # chosen: as many runs as must agree on a change


def check(
    words: tuple[str, ...] = (),
    store: Path = _STORE,
    fail_on: tuple[str, ...] = (),
    recent: Count = _RECENT,
    margin: str = "1%",
    top: Number = _TOP,
    format: CheckFormat = "terminal",
    output: Path | None = None,
) -> None:
    """Check a history for changes, and say what they are due to.

    A change is real, or due to the method of measurement, to hardware or driver, or noise: only
    real ones are regressions. Three runs must agree on it. Exits with 1 if a gate of --fail-on
    fails, with 3 if what it forbids can't be decided.

    Arguments:
      words ([WORD...]): Words of the series: target, variant, shape, GPU or branch.

    Options:
      store (DIR): Folder of the history.
      fail_on (GATE): Gates, comma-separated: regression[:5%], inconclusive (noise, too few runs),
        incomparable (changes of method, hardware or driver).
      recent (N): A change is news that was detected with the last N runs.
      margin (SHARE): Smallest relevant change: 1% or 0.01.
      top (N): Series listed, 0: all.

    Examples:
      profkit history check
      profkit history check sdpa_s512 --fail-on regression:2%
      profkit history check --format markdown -o comment.md
    """
    from profkit.history.changes import check_series
    from profkit.history.check import check as check_changes
    from profkit.history.check import history_gates
    from profkit.history.check_view import check_document, check_junit
    from profkit.history.record import matching
    from profkit.history.store import Store

    gates = history_gates(fail_on)
    least = share(margin, "--margin")
    points = Store(store).points()
    if not points:
        raise BadInput(f"{store}: no runs in this store", "`profkit history add` adds them")
    chosen = sorted(matching(words, points), key=astuple)
    checked = [check_series(points[series], least) for series in chosen]
    result = check_changes(checked, gates, recent)
    if format == "junit":
        put(check_junit(result), output)
    else:
        show(result, lambda: check_document(result, top), format, output, dense=True)
    if result.exit_code:
        raise typer.Exit(result.exit_code)
