"""`profkit.sweep`: a callable measured over a grid, as a DataFrame."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, Unpack

from profkit.callables.calls import invocations, measure_calls
from profkit.callables.options import Keywords, options_of
from profkit.callables.run import Run
from profkit.core.errors import UsageError
from profkit.core.extras import require

if TYPE_CHECKING:
    import pandas as pd

COLUMNS: Mapping[str, str] = {
    "median": "median time of a call (s)",
    "low": "lower end of the interval of the median (s)",
    "high": "upper end of the interval of the median (s)",
    "level": "confidence level of the interval; NaN: within the run, no level",
    "samples": "how many calls, or groups of calls, were timed",
    "verdict": "of the check against the reference",
    "timer": "events, graph, cupti, synchronized or wall",
    "gpu": "model; empty on the CPU",
}
"""The columns after those of the grid, with units."""


def sweep(
    function: Callable[..., Any],
    grid: Mapping[str, Sequence[Any]],
    /,
    *,
    make_inputs: Callable[..., Any] | None = None,
    **keywords: Unpack[Keywords],
) -> pd.DataFrame:
    """Measure a callable at every point of a grid; a row for each, in `COLUMNS` and the grid's.

    `grid` has values by name, the last name changing fastest. A point is passed as keyword
    arguments: to the callable, or to `make_inputs`, which returns its arguments (a tuple, a mapping
    of keyword arguments, or one). Other keywords are those of `profkit.profile`, but `ncu`.

    Raises UsageError for an empty grid and a name that is also a column, EnvironmentProblem without
    pandas, and as `profkit.profile`.
    """
    require("sweep", "pandas")
    import pandas as pd

    options = options_of(keywords)
    if not grid or not all(len(values) for values in grid.values()):
        raise UsageError("the grid has no point", 'give {"n": [1024, 2048]}')
    if options.ncu:
        raise UsageError("sweep times, and records nothing", "profkit.profile(..., ncu=True)")
    if taken := set(grid) & set(COLUMNS):
        raise UsageError(f"{taken.pop()!r} is a column of the result", "name it otherwise")
    rows = []
    for values in product(*grid.values()):
        point = dict(zip(grid, values, strict=True))
        args, kwargs = _arguments(make_inputs, point)
        rows.append(point | _row(measure_calls(invocations([function], args, kwargs), options)))
    return pd.DataFrame(rows, columns=[*grid, *COLUMNS])


def _arguments(
    make_inputs: Callable[..., Any] | None, point: Mapping[str, object]
) -> tuple[Sequence[Any], Mapping[str, object]]:
    """The positional and the keyword arguments of a point."""
    if make_inputs is None:
        return (), point
    inputs = make_inputs(**point)
    if isinstance(inputs, Mapping):
        return (), inputs
    return (inputs if isinstance(inputs, tuple) else (inputs,)), {}


def _row(run: Run) -> dict[str, object]:
    """The columns of a point; NaN for the times of a wrong result."""
    row: dict[str, object] = dict.fromkeys(COLUMNS, math.nan) | {"verdict": run.verdict, "gpu": ""}
    if run.times is None:
        return row | {"samples": 0, "timer": ""}
    timed = run.latency
    interval = timed.interval
    if interval:
        level = math.nan if interval.level is None else interval.level
        row |= {"low": interval.low, "high": interval.high, "level": level}
    return row | {
        "median": timed.summary.median,
        "samples": timed.summary.n,
        "timer": timed.latency.timer,
        "gpu": timed.latency.gpu.name or "",
    }
