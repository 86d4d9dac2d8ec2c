"""`profkit calibrate`: the A/A noise floor of comparisons on this machine."""

from __future__ import annotations

from pathlib import Path

from profkit.commands.choices import Cache, Device, TextFormat, Timer
from profkit.commands.options import interruptible, put, warn
from profkit.core.errors import EnvironmentProblem
from profkit.core.timestamp import timestamp
from profkit.ui.progress import stage_progress


def calibrate(
    target: str | None = None,
    comparisons: int = 100,
    processes: int = 8,
    timer: Timer = "events",
    cache: Cache = "cold",
    device: Device | None = None,
    gpu: int | None = None,
    format: TextFormat = "terminal",
) -> None:
    """Measure this GPU's A/A noise floor for comparisons.

    One build is timed against itself within a process, between two processes, and between runs.
    Later comparisons on this GPU ignore smaller differences. At most 1% of A/A comparisons exceed a
    floor, at 95% confidence: fewer --processes make it larger.

    Examples:
      profkit calibrate
      profkit calibrate targets/sdpa_s512.py:flash --comparisons 300
    """
    from profkit.timing import calibration, calibration_target, measurement, stopwatch
    from profkit.timing.floor import Floor, keep_floor

    subject = measurement.subject_of(target or str(calibration_target.__file__))
    plan = measurement.TimingPlan(
        subjects=(subject,),
        settings=stopwatch.Settings(stopwatch.Timer(timer), stopwatch.Cache(cache)),
        blocks=measurement.COMPARED_BLOCKS,
        device=device,
        gpu=gpu,
    )
    with interruptible(), stage_progress() as show:
        repeats = measurement.repeat(measurement.paired(plan), comparisons, processes, show)
    within = calibration.differences(repeats.within)
    between = calibration.differences(repeats.between, within.typical_width)
    sample = repeats.runs[0]
    gpu_id, timer_name, l2 = sample.measured_with
    floor = Floor(
        gpu=gpu_id,
        timer=timer_name,
        cache=l2,
        name=sample.gpu.name or "the CPU",
        within_process=within.floor,
        between_processes=max(within.floor, between.floor),
        between_runs=max(within.floor, between.floor, calibration.between_runs(repeats.runs)),
        comparisons=comparisons,
        processes=processes,
        created=timestamp(),
    )
    saved: Path | None = None
    try:
        saved = keep_floor(floor)
    except EnvironmentProblem as error:
        warn(error)
    render = calibration.calibration_json if format == "json" else calibration.calibration_text
    put(render(floor, within, between, repeats.seconds, saved), None)
