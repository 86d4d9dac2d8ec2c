"""What a calibration found, for people and as `profkit.calibrate/1` JSON."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from profkit.core.typed_file import File, encode
from profkit.core.version import __version__
from profkit.timing.floor import Floor
from profkit.timing.latency import Differences, Sharper, sharper
from profkit.ui.text import literal, plural


class CalibrationFile(File, frozen=True, kw_only=True, tag="profkit.calibrate/1"):
    """What runs of one build differ by, shares of a latency; `sharper` are the floors between
    processes that more pairs of them would give."""

    profkit: str
    floor: Floor
    within_process: Differences
    between_processes: Differences
    seconds: float
    kept: bool
    sharper: tuple[Sharper, ...]


def calibration_text(
    floor: Floor, within: Differences, between: Differences, seconds: float, kept: Path | None
) -> str:
    """The floors, with what they rest on."""
    lines = [
        f"{literal(floor.name)}: a smaller difference than this means nothing here",
        "",
        f"within a process    {_share(floor.within_process)}   from "
        f"{plural(floor.comparisons, 'A/A comparison')}, largest {_share(within.largest).strip()}: "
        f"{_verdicts(within.verdicts)}",
        f"between processes   {_share(floor.between_processes)}   from "
        f"{plural(floor.processes, 'pair')} of processes, largest "
        f"{_share(between.largest).strip()}: {_verdicts(between.verdicts)}",
        f"between saved runs  {_share(floor.between_runs)}   from the medians of "
        f"{2 * floor.processes} runs",
        "",
        "At most 1% of comparisons of one build with itself exceed these, at 95% confidence.",
        *_sharper(floor, between),
    ]
    disturbed = within.disturbed + between.disturbed
    if disturbed:
        lines.append(
            f"! {plural(disturbed, 'comparison')} disturbed by something else, with intervals over "
            "five times the typical width:\n  not in these figures"
        )
    lines += ["", f"Time  {seconds:.1f} s"]
    if kept is not None:
        lines.append(f"Kept  {kept}")
    return "\n".join(lines) + "\n"


def calibration_json(
    floor: Floor, within: Differences, between: Differences, seconds: float, kept: Path | None
) -> str:
    """The floors and every difference, shares of a latency."""
    return encode(
        CalibrationFile(
            profkit=__version__,
            floor=floor,
            within_process=within,
            between_processes=between,
            seconds=seconds,
            kept=kept is not None,
            sharper=sharper(between),
        ),
        dense=False,
    )


def _sharper(floor: Floor, between: Differences) -> list[str]:
    """What more pairs would give, as far as that is less: no floor is below that in a process."""
    plans, known = [], floor.between_processes
    for plan in sharper(between):
        bound = max(plan.bound, floor.within_process)
        if _share(bound) != _share(known):
            plans.append(f"{_share(bound).strip()} (--processes {plan.processes})")
            known = bound
    return [f"More pairs that scatter alike would give about {' and '.join(plans)}."] * bool(plans)


def _share(share: float) -> str:
    return f"{share:6.2%}"


def _verdicts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
