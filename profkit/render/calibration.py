"""What a calibration found, for people and as `profkit.calibrate/1` JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from profkit import __version__
from profkit.analysis.latency import Differences
from profkit.render.text import literal, plural
from profkit.store.floor import Floor

SCHEMA = "profkit.calibrate/1"


def calibration_text(
    floor: Floor, within: Differences, between: Differences, seconds: float, kept: Path | None
) -> str:
    """The floors, with what they rest on."""
    lines = [
        f"{literal(floor.name)}: a smaller difference than this means nothing here",
        "",
        f"within a process    {_share(floor.within_process)}   largest of "
        f"{plural(floor.comparisons, 'A/A comparison')}: {_verdicts(within.verdicts)}",
        f"between processes   {_share(floor.between_processes)}   largest of "
        f"{plural(len(between.all), 'pair')} that took turns: {_verdicts(between.verdicts)}",
        f"between saved runs  {_share(floor.between_runs)}   largest between the medians of "
        f"{2 * len(between.all)} runs",
    ]
    disturbed = within.disturbed + between.disturbed
    if disturbed:
        lines.append(
            f"! {plural(disturbed, 'comparison')} disturbed by something else (intervals over five "
            "times the typical width): not in these figures"
        )
    lines += ["", f"Time  {seconds:.1f} s"]
    if kept is not None:
        lines.append(f"Kept  {kept}")
    return "\n".join(lines) + "\n"


def calibration_json(
    floor: Floor, within: Differences, between: Differences, seconds: float, kept: Path | None
) -> str:
    """The floors and every difference, shares of a latency."""
    document = {
        "schema": SCHEMA,
        "profkit": __version__,
        "floor": asdict(floor),
        "within_process": asdict(within),
        "between_processes": asdict(between),
        "seconds": seconds,
        "kept": kept is not None,
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _share(share: float) -> str:
    return f"{share:6.2%}"


def _verdicts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
