"""`profkit calibrate`: the smallest difference that means anything on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from profkit.commands.formats import TextFormat
from profkit.commands.options import FORMAT, interruptible, warn
from profkit.commands.timing_options import CacheOption, DeviceOption, GpuOption, TimerOption
from profkit.core.errors import EnvironmentProblem
from profkit.core.timestamp import timestamp
from profkit.ui.progress import Teller


def calibrate(
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="[TARGET:VARIANT]",
            help="What to time against itself; a matrix product where none is named.",
        ),
    ] = None,
    comparisons: Annotated[
        int, typer.Option(min=10, metavar="N", help="A/A comparisons within one process.")
    ] = 100,
    processes: Annotated[
        int, typer.Option(min=1, metavar="N", help="Pairs of processes that take turns.")
    ] = 8,
    timer: TimerOption = "events",
    cache: CacheOption = "cold",
    device: DeviceOption = None,
    gpu: GpuOption = None,
    format: Annotated[TextFormat, FORMAT] = "terminal",
) -> None:
    """Time one build against itself, and keep what it differs by: the A/A floor of this GPU.

    From then on comparisons on this GPU take no smaller difference for real: within a process,
    between two processes, and between two runs saved at different times. At most 1% of comparisons
    of one build with itself exceed a floor, at 95% confidence: the fewer processes it is measured
    on, the larger it has to be.

    Examples:

      profkit calibrate

      profkit calibrate targets/sdpa_s512.py:flash --comparisons 300
    """
    from profkit.timing import calibration_target
    from profkit.timing import stopwatch as how
    from profkit.timing.calibration import (
        between_runs,
        calibration_json,
        calibration_text,
        differences,
    )
    from profkit.timing.floor import Floor, keep_floor
    from profkit.timing.measurement import COMPARED_BLOCKS, TimingPlan, paired, repeat, subject_of

    subject = subject_of(target or str(calibration_target.__file__))
    plan = paired(
        TimingPlan(
            subjects=(subject,),
            settings=how.Settings(how.Timer(timer), how.Cache(cache)),
            blocks=COMPARED_BLOCKS,
            device=device,
            gpu=gpu,
        )
    )
    with interruptible(), Teller() as teller:
        repeats = repeat(plan, comparisons, processes, teller.tell)
    within = differences(repeats.within)
    between = differences(repeats.between, within.typical_width)
    sample = repeats.runs[0]
    measured_on, by, l2 = sample.measured_with
    floor = Floor(
        gpu=measured_on,
        timer=by,
        cache=l2,
        name=sample.gpu.name or "the CPU",
        within_process=within.floor,
        between_processes=max(within.floor, between.floor),
        between_runs=max(within.floor, between.floor, between_runs(repeats.runs)),
        comparisons=comparisons,
        processes=processes,
        created=timestamp(),
    )
    kept: Path | None = None
    try:
        kept = keep_floor(floor)
    except EnvironmentProblem as error:
        warn(error)
    render = calibration_json if format == "json" else calibration_text
    typer.echo(render(floor, within, between, repeats.seconds, kept), nl=False)
