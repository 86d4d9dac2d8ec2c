"""A step's time without a profiler, from a short run of the program: nsys slows down the host."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median

from profkit.application.picks_file import UnprofiledStep
from profkit.core.errors import TargetFailed
from profkit.recording.early import EarlyProgram
from profkit.trial.prepared import Plan
from profkit.trial.run import TIMED_OUT, WALL, Extent, hooked_environment, run_program
from profkit.ui.text import number

WINDOW = 2.0
"""Seconds of steps after which the program is ended. Chosen: 20 steps of 0.1 s."""
_LEAST, _MOST = 0.3, 1.2
"""Shares of the recorded step that a step can take. Chosen: nsys slowed hosts down to 1.7x on an
H200; other times are of another step, or of another state of the machine."""


def timed_environment(environment: Mapping[str, str], place: Path) -> dict[str, str]:
    """The variables of a program that is started early, with its plan in the folder `place`."""
    Plan(str(place), None, 0, WINDOW, "", (), 0.0).write(place / "plan")
    return hooked_environment(environment, place)


def unprofiled_step(
    program: Sequence[str],
    recorded: float,
    steps: int,
    *,
    environment: Mapping[str, str],
    timeout: float,
    early: EarlyProgram | None = None,
) -> UnprofiledStep:
    """Run a program whose `steps` took `recorded` s each under nsys, until there are enough; the
    one that was started `early` unless that fails.

    Where its steps aren't seen from outside, the whole run is divided by their number: with its
    start it is an upper bound, used where it is below the recorded time. Raises TargetFailed where
    the program says nothing within `timeout` s.
    """
    run = partial(run_program, program, (), Extent(window=WINDOW), environment=environment)
    if early is not None:
        result = run(timeout=timeout, begin=early.begin, plan_folder=early.place)
        timeout -= result.seconds
    if early is None or (result.failure and result.status != TIMED_OUT):
        result = run(timeout=timeout)
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
