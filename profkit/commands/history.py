"""`profkit history`: runs over many days, in a store that outlives them."""

from collections.abc import Callable, Sequence, Sized
from dataclasses import astuple
from datetime import datetime
from pathlib import Path
from reprlib import repr as brief
from typing import Any

import typer

from profkit.commands import groups, options
from profkit.core.errors import BadInput, EnvironmentProblem, UsageError
from profkit.core.timestamp import parse_timestamp
from profkit.history import view
from profkit.history.record import Point, matching, named
from profkit.history.store import Store

STORE = Path(".profkit/history")
_RECENT = 3  # chosen: as many runs as must agree on a change
_TOP = 40  # chosen: a screen

history = typer.Typer(name="history", help="Follow runs over many days.", no_args_is_help=True)


@history.command("add", cls=options.Reading)
def add(
    paths: list[Path],
    *,
    store: Path = STORE,
    target: str | None = None,
    branch: str | None = None,
    commit: str | None = None,
    time: str | None = None,
) -> None:
    """Add runs to a history.

    Runs are those of profkit profile, files of profkit time --save, baselines, and JSON of
    pytest-benchmark; folders are searched. A run counts once, however often it is added.

    Arguments:
      paths (PATH...): Runs, baselines, JSON files, or folders of them.

    Options:
      store (DIR): Folder of the history; a shared one has several writers.
      target (NAME): Name of the target, instead of what the runs state.
      branch (NAME): Branch that the runs are of, instead of what they state.
      commit (SHA): Commit of runs that state none.
      time (TIME): Time of runs that state none: 2026-11-23T08:00, UTC (default: of the file).

    Examples:
      profkit history add reports/sdpa_s512
      profkit history add bench.json --branch main --commit $(git rev-parse HEAD)
      profkit history add runs/ --store /shared/history
    """
    from profkit.history.addition import add_runs
    from profkit.history.readers import Stated

    stated = Stated(target or "", branch or "", commit or "", _time(time))
    with options.interruptible("runs that were added stay"):
        result = add_runs(Store(store), paths, stated, spread)
    for note in result.notes:
        options.warn(note)
    if result.runs or result.present or not result.failures:
        options.put(result.words(store), None)
    options.report_failures(result.failures)


def spread(do: Callable[[Any], list[Any]], chunks: Sequence[Any]) -> Sequence[list[Any]]:
    """Import chunks of runs in as many processes as there are CPUs."""
    from profkit.commands.parallel import in_parallel

    death = EnvironmentProblem("a process that read runs died", "add fewer runs at once")
    return in_parallel(do, chunks, lambda chunk: [(path, death) for path, _ in chunk[:1]])


@history.command("list", cls=options.Reading)
def list_(
    words: tuple[str, ...] = (),
    store: Path = STORE,
    top: groups.Number = _TOP,
    *,
    output: groups.Output[groups.TextFormat],
) -> None:
    """List the series of a history.

    A series is a variant of a target at a shape, on a model of GPU and a branch. Words choose
    series by target, variant, shape, GPU or branch.

    Arguments:
      words ([WORD...]): Words of the series: target, variant, shape, GPU or branch.

    Options:
      store (DIR): Folder of the history.
      top (N): Series listed, 0: all.

    Examples:
      profkit history list
      profkit history list sdpa_s512 H200 --store /shared/history
    """
    rows = {row.series: row for row in Store(store).overviews()}
    _refuse_empty(store, rows)
    chosen = tuple(rows[series] for series in matching(words, rows))
    file = view.HistoryFile(str(store), chosen)
    output.show(file, lambda: view.history_document(file, top), dense=True)


@history.command("show", cls=options.Reading)
def show(
    words: list[str],
    store: Path = STORE,
    top: groups.Number = _TOP,
    *,
    output: groups.Output[groups.TextFormat],
) -> None:
    """Show the runs of a series in the order of time.

    Each with its commit, its median and the spread of its blocks, and what changed in the
    conditions of the measurement: GPU, driver, CUDA, clock policy, timer, cache, profkit.

    Arguments:
      words (WORD...): Words of one series: target, variant, shape, GPU or branch.

    Options:
      store (DIR): Folder of the history.
      top (N): Last runs shown, 0: all.

    Examples:
      profkit history show sdpa_s512 flash
      profkit history show sdpa_s512 flash main --top 0 --format json
    """
    file = view.series_file(_one_series(store, words), store)
    output.show(file, lambda: view.series_document(file, top), dense=True)


@history.command("page", cls=options.Reading)
def page(
    words: tuple[str, ...] = (),
    file: Path = Path("history.html"),
    force: bool = False,
    store: Path = STORE,
) -> None:
    """Write all series of a history as one self-contained HTML page.

    It has a small plot of each series with its changes, worst first, and a search.

    Arguments:
      words ([WORD...]): Words of the series: target, variant, shape, GPU or branch.

    Options:
      file (-o, --output FILE): The page.
      store (DIR): Folder of the history.

    Examples:
      profkit history page
      profkit history page sdpa_s512 -o sdpa.html --store /shared/history
    """
    from profkit.history.changes import series_marks
    from profkit.history.page import history_page, points_of_a_series

    opened = Store(store)
    rows = {row.series: row.runs for row in opened.overviews()}
    _refuse_empty(store, rows)
    chosen = matching(words, rows)
    points = opened.points(chosen if words else None, last=points_of_a_series(len(chosen)))
    html = history_page(
        {series: (points[series], series_marks(points[series])) for series in chosen},
        {series: rows[series] for series in chosen},
        store,
    )
    options.put(html, file, force=force)
    options.say(f"Wrote {file} ({len(html.encode()) / 1e6:.1f} MB)")


def _one_series(store: Path, words: Sequence[str]) -> list[Point]:
    """The points of the series that words name."""
    opened = Store(store)
    every = [row.series for row in opened.overviews()]
    _refuse_empty(store, every)
    series = named(words, every)
    return opened.points([series])[series]


@history.command("check", cls=options.Reading)
def check(
    words: tuple[str, ...] = (),
    store: Path = STORE,
    fail_on: tuple[str, ...] = (),
    recent: groups.Count = _RECENT,
    margin: str = "1%",
    top: groups.Number = _TOP,
    *,
    output: groups.Output[groups.NumbersFormat],
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
    from profkit.history.check_view import check_document

    gates = history_gates(fail_on)
    least = groups.share(margin, "--margin")
    points = Store(store).points()
    _refuse_empty(store, points)
    chosen = sorted(matching(words, points), key=astuple)
    checked = [check_series(points[series], least) for series in chosen]
    result = check_changes(checked, gates, recent)
    output.show(result, lambda: check_document(result, top), dense=True)
    if result.exit_code:
        raise typer.Exit(result.exit_code)


def _refuse_empty(store: Path, series: Sized) -> None:
    if not len(series):
        raise BadInput(f"{store}: no runs in this store", "`profkit history add` adds them")


def _time(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return parse_timestamp(text)
    except ValueError:
        raise UsageError(f"--time {brief(text)} is not a time", "--time 2026-11-23T08:00") from None
