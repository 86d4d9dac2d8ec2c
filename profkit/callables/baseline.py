"""A call against the times that a history has of it: the verdict of a test."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from profkit.callables.calls import invocations, measure_calls
from profkit.callables.options import options_of
from profkit.callables.run import WRONG, Run
from profkit.core.errors import BadInput
from profkit.core.typed_file import encode
from profkit.history.readers import Content, Stated, import_latencies
from profkit.history.record import Point
from profkit.history.store import Store
from profkit.timing.floor import floor_between_runs
from profkit.timing.latency_view import latency_words, times_as_fast
from profkit.timing.results import Verdict
from profkit.timing.statistics import summarize
from profkit.timing.verdict import interval_over_blocks, single_runs
from profkit.ui.text import number, percent

MARGIN = 0.05
"""Of a test without a margin; chosen: runs of one build on one GPU differ by up to 3%."""
_CONDITIONS = ("conditions.gpu_uuid", "conditions.timer", "conditions.cache_policy")


def check_call(
    function: Callable[..., Any],
    args: Sequence[Any],
    options: Mapping[str, object],
    *,
    test: str,
    folder: Path,
    save: bool,
    tell: Callable[[str], None],
) -> Run:
    """Measure a call, and fail the test where it is wrong or slower than the baseline.

    With `save` it becomes the baseline. Skips the test where there is none. `tell` gets the verdict
    in a line. Raises as `profkit.profile`, and EnvironmentProblem without DuckDB.
    """
    __tracebackhide__ = True
    store = Store(folder)  # raises before anything is measured
    run = measure_calls(
        invocations([function], args, {}), options_of({"margin": MARGIN, **options})
    )
    if run.verdict == WRONG:
        pytest.fail(repr(run), pytrace=False)
    point = _point(run, test)
    if save:
        store.add([point])
        return run
    conditions = attrgetter(*_CONDITIONS)
    stored = [
        other
        for other in store.points([point.series]).get(point.series, [])
        if conditions(other) == conditions(point)
    ]
    if not stored:
        device = f"{point.series.gpu_model}, timer {point.conditions.timer}"
        pytest.skip(f"no baseline of {run.name} on {device}: pytest --profkit-save")
    verdict, line = judged(run, stored[-1])
    tell(line)
    if verdict is Verdict.REGRESSED:
        pytest.fail(f"{line}\n{run!r}", pytrace=False)
    return run


def judged(run: Run, last: Point) -> tuple[Verdict, str]:
    """The verdict on a run against a stored one that was measured alike, and a line of it.

    Two runs of one build differ: by what `profkit calibrate` found, else taken to be the margin.

    `softmax: 12.3 µs of 2026-11-20 (3dbb8bf) → 13.8 µs ±0.2%, 1.12x slower [1.10, 1.14]  REGRESSED`
    """
    assert run.times is not None
    thresholds, timed = run.times.thresholds, run.latency
    alone = structs.replace(thresholds, samples=1)  # the median of a block stands for it
    interval = interval_over_blocks([(median,) for median in last.block_medians], 0.0, alone)
    before = structs.replace(summarize(last.block_medians), interval=interval)
    after = structs.replace(timed.summary, interval=timed.interval)
    floor = floor_between_runs({timed.latency.measured_with})
    source = "taken to be the margin: profkit calibrate" if floor is None else "profkit calibrate"
    floor = thresholds.margin if floor is None else floor
    within = single_runs(before, after, floor, thresholds)
    commit = f" ({last.commit[:9]})" if last.commit else ""
    ratio = f"{within.speedup:.2f}x as fast"
    if within.low is not None and within.high is not None:
        ratio = times_as_fast(within.speedup, within.low, within.high)
    margin = percent(within.margin.value) if within.margin else "none"
    return within.verdict, (
        f"{run.name}: {number(before.median, 's')} of {last.time:%Y-%m-%d}{commit} → "
        f"{latency_words(timed)}, {ratio}  {within.verdict.name}; margin {margin}, runs of one "
        f"build differ by {percent(floor)} ({source})"
    )


def _point(run: Run, test: str) -> Point:
    """The run as the history has it: the test is its target."""
    assert run.times is not None
    data = encode(run.times).encode()
    stated = Stated(target=test, time=datetime.now(UTC))
    points = import_latencies(Content(Path(test), data, stated, f"pytest {test}")).points
    if not points:
        raise BadInput(f"{test}: no times", "name the function")
    return points[0]
