"""`profkit calibrate`: the A/A noise floor of comparisons on this machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from profkit.commands.choices import Count, TextFormat
from profkit.commands.groups import OnDevice, Place, TimingMethod
from profkit.commands.kinds import Script
from profkit.commands.options import interruptible, put, warn
from profkit.core.errors import EnvironmentProblem, UsageError
from profkit.core.timestamp import timestamp
from profkit.ui.progress import stage_progress

if TYPE_CHECKING:
    from profkit.execution.placement import Placement
    from profkit.timing.measurement import TimingPlan


def calibrate(
    target: Script | None = None,
    *,
    comparisons: Annotated[int, Meta(ge=10)] = 100,
    processes: Count = 8,
    method: TimingMethod,
    where: OnDevice,
    place: Place,
    format: TextFormat = "terminal",
) -> None:
    """Measure this GPU's A/A noise floor for comparisons.

    One build is timed against itself within a process, between two processes, and between runs.
    Later comparisons on this GPU ignore smaller differences. At most 1% of A/A comparisons exceed a
    floor, at 95% confidence: fewer --processes make it larger. With --on the same call is timed on
    every GPU, in --processes runs each: the spread between GPUs of one kind, which baselines use.

    Arguments:
      target ([TARGET:VARIANT]): What to time against itself (default: a matrix product).

    Options:
      comparisons (N): A/A comparisons within one process.
      processes (N): Pairs of interleaved processes.
      on (PLACE): Spread between GPUs: local, ray, ray://HOST:PORT or slurm.

    Examples:
      profkit calibrate
      profkit calibrate targets/sdpa_s512.py:flash --comparisons 300
      profkit calibrate --on local
    """
    from profkit.timing import calibration, calibration_target, measurement
    from profkit.timing.floor import Floor, keep_floor

    subject = measurement.subject_of(target or str(calibration_target.__file__))
    if place.on is not None:  # a worker may start in another folder
        subject = replace(subject, path=subject.path.resolve())
    plan = measurement.TimingPlan(
        subjects=(subject,),
        settings=method.settings(),
        blocks=measurement.COMPARED_BLOCKS,
        device=where.device,
        gpu=where.gpu,
    )
    if place.on is not None:
        _spread(plan, place.placement(where), processes, subject.labeled(subject.path.stem), format)
        return
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


def _spread(
    plan: TimingPlan, place: Placement | None, runs: int, call: str, format: TextFormat
) -> None:
    """Measure the spread between GPUs, save it and print it."""
    from shutil import rmtree
    from tempfile import mkdtemp
    from time import monotonic

    from profkit.core.typed_file import encode
    from profkit.core.version import __version__
    from profkit.timing.gpu_spread import (
        GpuSpreadFile,
        keep_spread,
        measure_spread,
        spread_text,
        spreads_of,
    )

    assert place is not None
    if runs < 2:
        raise UsageError(f"--processes {runs}: one run has no scatter", "give 2 or more")
    started = monotonic()
    with interruptible(), stage_progress() as show:
        # on slurm jobs write here: a folder that all hosts see
        folder = Path(mkdtemp(prefix="profkit-calibrate-", dir=Path.cwd()))
        try:
            times, state = measure_spread(plan, place, runs, folder, show)
        finally:
            rmtree(folder, ignore_errors=True)
    file = GpuSpreadFile(
        profkit=__version__,
        times=tuple(times),
        spreads=spreads_of(times, plan, call),
        unused={**state.excluded, **state.given_up},
        seconds=monotonic() - started,
    )
    saved: list[Path] = []
    try:
        saved = [keep_spread(spread) for spread in file.spreads]
    except EnvironmentProblem as error:
        warn(error)
    put(encode(file, dense=False) if format == "json" else spread_text(file, saved), None)
