"""A step's time without a profiler, from a short run of the program: nsys slows down the host."""

from collections.abc import Mapping, Sequence
from statistics import median

from profkit.application.picks_file import UnprofiledStep
from profkit.core.errors import TargetFailed
from profkit.trial.run import WALL, Extent, run_program
from profkit.ui.text import number

WINDOW = 2.0
"""Seconds of steps after which the program is ended. Chosen: 20 steps of 0.1 s."""
_LEAST, _MOST = 0.3, 1.2
"""Shares of the recorded step that a step can take. Chosen: nsys slowed hosts down to 1.7x on an
H200; other times are of another step, or of another state of the machine."""


def unprofiled_step(
    program: Sequence[str],
    recorded: float,
    steps: int,
    *,
    environment: Mapping[str, str],
    timeout: float,
) -> UnprofiledStep:
    """Run a program whose `steps` took `recorded` s each under nsys, until there are enough.

    Where its steps aren't seen from outside, the whole run is divided by their number: with its
    start it is an upper bound, used where it is below the recorded time. Raises TargetFailed where
    the program says nothing within `timeout` s.
    """
    extent = Extent(window=WINDOW)
    result = run_program(program, (), extent, environment=environment, timeout=timeout)
    if result.failure:
        raise TargetFailed(f"without a profiler: {result.failure}", "run it without profkit first")
    if result.unit == WALL:
        step = UnprofiledStep(seconds=result.seconds / steps, source="wall time by step")
        most = 1.0
    else:
        step = UnprofiledStep(
            seconds=median(result.times), source=f"{result.unit} steps", count=len(result.times)
        )
        most = _MOST
    if not _LEAST <= step.seconds / recorded <= most:
        times = f"{number(step.seconds, 's')}, {number(recorded, 's')} in the timeline"
        raise TargetFailed(f"without a profiler a step takes {times}", "name a step with --nvtx")
    return step
