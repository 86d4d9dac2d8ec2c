"""A call against the times that a history has of it: the verdict of a test."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct, structs

from profkit.callables.calls import invocations, measure_calls
from profkit.callables.options import options_of
from profkit.callables.run import WRONG, Run
from profkit.core.errors import BadInput
from profkit.core.typed_file import encode
from profkit.history.readers import Content, Stated, import_latencies
from profkit.history.record import DIRTY, Point
from profkit.history.store import DEFAULT, Store
from profkit.timing.floor import read_floor
from profkit.timing.latency_view import latency_words, times_as_fast
from profkit.timing.results import Thresholds, Verdict
from profkit.timing.statistics import summarize
from profkit.timing.verdict import WithinRun, interval_over_blocks, single_runs
from profkit.ui.text import number, percent

MARGIN = 0.05
"""Of a test without a margin; chosen: runs of one build on one GPU differ by up to 3%."""
_LEAST_RUNS = 5  # stored runs whose differences bound those of one build; chosen
_CONDITIONS = ("gpu_uuid", "timer", "cache_policy")


class Judgment(Struct, frozen=True):
    """The verdict on a run against a stored one; `floor` is what two runs of a build differ by."""

    within: WithinRun
    baseline: Point
    floor: float
    floor_source: str


def store_folder(root: Path) -> Path:
    """The history of a project."""
    return root / DEFAULT


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
    stored = [
        other
        for other in store.points([point.series]).get(point.series, [])
        if _conditions(other) == _conditions(point)
    ]
    if not stored:
        pytest.skip(f"no baseline of {run.name} on {_device(point)}: pytest --profkit-save")
    assert run.times is not None
    judged = judge(run, stored, run.times.thresholds)
    verdict = words(run, judged)
    tell(verdict)
    if judged.within.verdict is Verdict.REGRESSED:
        pytest.fail(f"{verdict}\n{run!r}", pytrace=False)
    return run


def judge(run: Run, stored: Sequence[Point], thresholds: Thresholds) -> Judgment:
    """The verdict on a run against the last of the points, which were measured alike.

    Two runs of one build differ; by how much is known from `profkit calibrate`, else from the
    stored runs of the baseline's commit where there are five, else taken to be the margin.
    """
    last = stored[-1]
    medians = last.block_medians
    alone = structs.replace(thresholds, samples=1)  # the median of a block stands for it
    interval = interval_over_blocks([(median,) for median in medians], 0.0, alone)
    before = structs.replace(summarize(medians), interval=interval)
    timed = run.latency
    after = structs.replace(timed.summary, interval=timed.interval)
    floor, source = _floor(run, stored, thresholds.margin)
    return Judgment(single_runs(before, after, floor, thresholds), last, floor, source)


def words(run: Run, judged: Judgment) -> str:
    """`softmax: 1.12x slower [1.10, 1.14] than 12.3 µs of 2026-11-20 (3dbb8bf)  REGRESSED`."""
    within, last = judged.within, judged.baseline
    before = number(summarize(last.block_medians).median, "s")
    commit = f" ({last.commit[:9]})" if last.commit else ""
    ratio = f"{within.speedup:.2f}x as fast"
    if within.low is not None and within.high is not None:
        ratio = times_as_fast(within.speedup, within.low, within.high)
    margin = percent(within.margin.value) if within.margin else "none"
    return (
        f"{run.name}: {before} of {last.time:%Y-%m-%d}{commit} → {latency_words(run.latency)}, "
        f"{ratio}  {within.verdict.name}; margin {margin}, runs of one build differ by "
        f"{percent(judged.floor)} ({judged.floor_source})"
    )


def _floor(run: Run, stored: Sequence[Point], margin: float) -> tuple[float, str]:
    floor = read_floor(*run.latency.latency.measured_with)
    if floor:
        return floor.between_runs, "profkit calibrate"
    commit = stored[-1].commit
    same = [point for point in stored if point.commit == commit and not commit.endswith(DIRTY)]
    if commit and len(same) >= _LEAST_RUNS:
        centers = [summarize(point.block_medians).median for point in same]
        return max(centers) / min(centers) - 1, f"{len(same)} stored runs of its commit"
    return margin, "taken to be the margin: profkit calibrate"


def _point(run: Run, test: str) -> Point:
    """The run as the history has it: the test is its target."""
    assert run.times is not None
    data = encode(run.times).encode()
    stated = Stated(target=test, time=datetime.now(UTC))
    points = import_latencies(Content(Path(test), data, stated, f"pytest {test}")).points
    if not points:
        raise BadInput(f"{test}: no times", "name the function")
    return points[0]


def _conditions(point: Point) -> tuple[str, ...]:
    return tuple(getattr(point.conditions, name) for name in _CONDITIONS)


def _device(point: Point) -> str:
    return f"{point.series.gpu_model}, timer {point.conditions.timer}"
