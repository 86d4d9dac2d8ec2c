"""The inside of a kernel as JSON, `profkit.source/1` (`profkit/schemas/source.json`)."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from profkit.analysis.source_view import Counts, Inside, SourceView
from profkit.core.json_text import finite
from profkit.core.version import __version__
from profkit.report.names import file_name
from profkit.report.phases import KernelTimeline, Track
from profkit.report.summary import ReportSummary
from profkit.rules.checklist import Checklist
from profkit.rules.checklist_json import finding_json

SCHEMA = "profkit.source/1"

Json = dict[str, Any]


def source_json(report: ReportSummary, inside: Inside, found: Checklist) -> str:
    """A launch's timeline, lines, instructions and the findings on its kernel."""
    launch = inside.launch
    group = next(one for one in report.groups if launch in one.launches)
    document = {
        "schema": SCHEMA,
        "profkit": __version__,
        "report": {"file": file_name(report.path, with_host=False)},
        "kernel": {
            "launch": launch.index,
            "name": launch.name,
            "duration_s": finite(launch.duration),
        },
        "timeline": timeline_json(inside.timeline) if inside.timeline else None,
        "source": view_json(inside.view) if inside.view else None,
        "findings": [finding_json(item) for item in found.findings_of(group)],
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def timeline_json(timeline: KernelTimeline) -> Json:
    """Times in seconds since the kernel's start, values in the track's unit."""
    return {
        "duration_s": finite(timeline.duration),
        "sampled_s": timeline.end,
        "period_s": finite(timeline.period),
        "driver": timeline.driver or None,
        "below_half": finite(timeline.below_half),
        "phases": [
            {"name": phase.name, "start_s": phase.start, "end_s": phase.end}
            for phase in timeline.phases
        ],
        "tracks": [_track(track, timeline) for track in timeline.tracks],
        "notes": list(timeline.notes),
    }


def _track(track: Track, timeline: KernelTimeline) -> Json:
    return {
        "name": track.name,
        "label": track.label,
        "unit": track.unit,
        "steady": finite(timeline.steady.get(track.name, math.nan)),
        "times_s": _numbers([float(time) for time in track.times]),
        "values": _numbers([float(value) for value in track.values]),
    }


def view_json(view: SourceView) -> Json:
    """Files by their names without folders; lines with instructions only."""
    return {
        "has_source": view.has_source,
        "total": counts_json(view.total),
        "files": [
            {
                "file": file_name(file.name, with_host=False),
                "lines": [
                    {
                        "line": line.line,
                        "text": line.text or None,
                        "findings": list(line.findings),
                        "instructions": len(line.addresses),
                        **counts_json(line.counts),
                    }
                    for line in file.lines
                    if line.addresses
                ],
            }
            for file in view.files
        ],
        "instructions": [
            {
                "address": one.address,
                "sass": one.sass or None,
                "file": file_name(one.file, with_host=False) or None,
                "line": one.line or None,
                "findings": list(one.findings),
                **counts_json(one.counts),
            }
            for one in view.instructions
        ],
        "notes": list(view.notes),
    }


def counts_json(counts: Counts) -> Json:
    """null where it was not recorded, or is not known."""
    return {
        "samples": finite(counts.samples),
        "stalls": dict(counts.stalls),
        "executed": finite(counts.executed),
        "shared_excess": finite(counts.shared_excess),
        "global_excess": finite(counts.global_excess),
        "live": finite(counts.live),
    }


def _numbers(values: Sequence[float]) -> list[float | None]:
    return [finite(value) for value in values]
