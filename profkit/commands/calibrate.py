"""`profkit calibrate`: the A/A noise floor of comparisons on this machine."""

from typing import Annotated

from msgspec import Meta, structs

from profkit.commands import groups
from profkit.commands.kinds import Script
from profkit.commands.options import interruptible, kept
from profkit.ui.progress import stage_progress


def calibrate(
    target: Script | None = None,
    *,
    comparisons: Annotated[int, Meta(ge=10)] = 100,
    processes: groups.Count = 8,
    method: groups.TimingMethod,
    where: groups.OnDevice,
    format: groups.TextFormat = "terminal",
) -> None:
    """Measure this GPU's A/A noise floor for comparisons.

    One build is timed against itself within a process, between two processes, and between runs.
    Later comparisons on this GPU ignore smaller differences. At most 1% of A/A comparisons exceed a
    floor, at 95% confidence: fewer --processes make it larger.

    Arguments:
      target ([TARGET:VARIANT]): What to time against itself (default: a matrix product).

    Options:
      comparisons (N): A/A comparisons within one process.
      processes (N): Pairs of interleaved processes.

    Examples:
      profkit calibrate
      profkit calibrate targets/sdpa_s512.py:flash --comparisons 300
    """
    from profkit.calibration import floors
    from profkit.calibration import target as product
    from profkit.timing import measurement
    from profkit.timing.floor import keep_floor

    subject = measurement.subject_of(target or str(product.__file__))
    plan = measurement.TimingPlan(
        subjects=(subject,),
        settings=method.settings(),
        blocks=measurement.BLOCKS,
        device=where.device,
        gpu=where.gpu,
    )
    with interruptible(), stage_progress() as tell:
        repeats = measurement.repeat(measurement.paired(plan), comparisons, processes, tell)
    file = floors.calibrate(repeats)
    saved = kept(lambda: keep_floor(file.floor))
    file = structs.replace(file, kept=saved is not None)
    groups.Output(format).show(file, lambda: floors.calibration_document(file, saved))
