"""`profkit calibrate`: the A/A noise floor of comparisons on this machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, structs

from profkit.commands import groups
from profkit.commands.kinds import Script
from profkit.commands.options import interruptible, kept, show
from profkit.core.errors import UsageError
from profkit.ui.progress import stage_progress

if TYPE_CHECKING:
    from profkit.execution.placement import Placement
    from profkit.timing.measurement import TimingPlan


def calibrate(
    target: Script | None = None,
    *,
    comparisons: Annotated[int, Meta(ge=10)] = 100,
    processes: groups.Count = 8,
    method: groups.TimingMethod,
    where: groups.OnDevice,
    place: groups.Place,
    format: groups.TextFormat = "terminal",
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
    from profkit.calibration import floors
    from profkit.calibration import target as product
    from profkit.timing import measurement
    from profkit.timing.floor import keep_floor

    subject = measurement.subject_of(target or str(product.__file__))
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
    with interruptible(), stage_progress() as tell:
        repeats = measurement.repeat(measurement.paired(plan), comparisons, processes, tell)
    file = floors.calibrate(repeats)
    saved = kept(lambda: keep_floor(file.floor))
    file = structs.replace(file, kept=saved is not None)
    show(file, lambda: floors.calibration_document(file, saved), format, None)


def _spread(
    plan: TimingPlan, place: Placement | None, runs: int, call: str, format: groups.TextFormat
) -> None:
    """Measure the spread between GPUs, save it and print it."""
    from shutil import rmtree
    from tempfile import mkdtemp
    from time import monotonic

    from profkit.calibration.gpu_spread import (
        GpuSpreadFile,
        keep_spread,
        measure_spread,
        spread_document,
        spreads_of,
    )
    from profkit.core.version import __version__

    assert place is not None
    if runs < 2:
        raise UsageError(f"--processes {runs}: one run has no scatter", "give 2 or more")
    started = monotonic()
    with interruptible(), stage_progress() as tell:
        # on slurm jobs write here: a folder that all hosts see
        folder = Path(mkdtemp(prefix="profkit-calibrate-", dir=Path.cwd()))
        try:
            times, state = measure_spread(plan, place, runs, folder, tell)
        finally:
            rmtree(folder, ignore_errors=True)
    file = GpuSpreadFile(
        profkit=__version__,
        times=tuple(times),
        spreads=spreads_of(times, plan, call),
        unused={**state.excluded, **state.given_up},
        seconds=monotonic() - started,
    )
    saved = kept(lambda: [keep_spread(spread) for spread in file.spreads]) or []
    show(file, lambda: spread_document(file, saved), format, None)
