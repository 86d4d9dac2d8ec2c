"""The points of profiles that were not timed: ncu's durations, or the steps of an application."""

from __future__ import annotations

from pathlib import Path

from profkit.core.fingerprint import Device
from profkit.core.integrity import MANIFEST
from profkit.core.regular_file import digest
from profkit.core.typed_file import known
from profkit.history.content import (
    Imported,
    Stated,
    clock_policy,
    commit_of,
    medians_of,
    time_of,
)
from profkit.history.record import Conditions, Point, Series
from profkit.report.checks import NOT_TIMED
from profkit.runs.manifest import Manifest
from profkit.timeline import RUN_FILE
from profkit.ui.text import extent, plural

STEP = "step"
"""The variant that is an application's step."""


def import_profile(folder: Path, manifest: Manifest, stated: Stated) -> Imported:
    """The points of a profile without latencies: its kernels, or the steps of an application."""
    from profkit.application.picks_file import is_application

    application = is_application(folder)
    measured, left_out = (_steps(folder), ()) if application else _kernels(folder)
    timer = "nsys" if application else "ncu"
    time, notes = time_of(folder / MANIFEST, stated, manifest.created)
    commit = known(manifest.fingerprint.commit) or {}
    gpu, driver = known(manifest.fingerprint.gpu) or Device(), manifest.gpu
    settings = clock_policy(gpu)
    control = "" if application else known(manifest.policy.clock_control)
    conditions = Conditions(
        gpu_uuid=gpu.uuid or (driver and driver.uuid) or "",
        driver=gpu.driver or (driver and driver.driver) or "",
        cuda=(known(manifest.fingerprint.versions) or {}).get("cuda") or "",
        clock_policy=", ".join(filter(None, (control and f"ncu: {control}", settings))),
        timer=" ".join(filter(None, (timer, manifest.versions.get(timer)))),
        cache_policy="" if application else known(manifest.policy.cache_control) or "",
        profkit=manifest.versions.get("profkit") or "",
    )
    points = tuple(
        Point(
            series=Series(
                target=stated.target or manifest.target,
                variant=variant,
                shape=shape,
                gpu_model=gpu.name or (driver and driver.name) or "",
                branch=stated.branch,
            ),
            conditions=conditions,
            time=time,
            run=digest(folder / MANIFEST),
            source=str(folder),
            commit=commit_of(
                str(commit.get("commit", "")), stated, dirty=commit.get("dirty") is True
            ),
            parent="",
            block_medians=medians_of(durations),
        )
        for (variant, shape), durations in measured.items()
        if durations
    )
    return Imported(points, (*notes, *left_out))


def _kernels(folder: Path) -> tuple[dict[tuple[str, str], list[float]], tuple[str, ...]]:
    """The durations of launches by kernel and launch configuration, in their order, and a note
    where ncu's time of a launch is not the launch's own."""
    from profkit.analysis.report import load

    summary = load(folder).summary
    untimed = sum(not launch.is_timed for launch in summary.launches)
    durations = {
        (group.name, f"grid {extent(group.grid)}, block {extent(group.block)}"): [
            launch.duration for launch in group.launches if launch.is_timed and not launch.failed
        ]
        for group in summary.groups
    }
    note = f"{plural(untimed, 'launch')} left out: {NOT_TIMED}"
    return durations, (note,) if untimed else ()


def _steps(folder: Path) -> dict[tuple[str, str], list[float]]:
    """The durations of an application's typical steps, of the process on the first GPU."""
    import numpy as np

    from profkit.application.picks_file import recorded_range
    from profkit.application.run import first_rank
    from profkit.application.steps import steady_steps
    from profkit.timeline.reader import read

    name = recorded_range(folder)
    steps = steady_steps(read(folder / RUN_FILE), name)
    if not steps:
        return {}
    first = first_rank(steps)
    durations = np.diff(first.bounds)[first.typical] * 1e-9
    return {(STEP, name or ""): durations.tolist()}
