"""Rooflines as JSON, `profkit.roofline/1`: the schema is `profkit/schemas/roofline.json`.

SI units, shares of 1, null for what is unknown. It holds nothing of the host.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from profkit.core.json_text import finite
from profkit.core.version import __version__
from profkit.report.names import file_name
from profkit.roofline.roofline import Outside, Point, Roof, Roofline

SCHEMA = "profkit.roofline/1"
Json = dict[str, Any]


def rooflines_json(rooflines: Sequence[Roofline]) -> str:
    """All rooflines in one document."""
    document = {
        "schema": SCHEMA,
        "profkit": __version__,
        "reports": [roofline_object(roofline) for roofline in rooflines],
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def roofline_object(roofline: Roofline) -> Json:
    """One report's roofs and points."""
    return {
        "report": file_name(roofline.title, with_host=False),
        "gpu": roofline.gpu,
        "sm_clock": finite(roofline.sm_clock),
        "roofs": [_roof(roof) for roof in roofline.roofs],
        "ridges": [
            {"level": line.key, "roof": roof.key, "intensity": roof.rate / line.rate}
            for line in roofline.roofs
            if line.is_memory
            for roof in roofline.roofs
            if not roof.is_memory
        ],
        "points": [_point(point) for point in roofline.points],
        "outside": [_outside(one) for one in roofline.outside],
        "notes": list(roofline.notes),
    }


def _roof(roof: Roof) -> Json:
    return {
        "key": roof.key,
        "label": roof.label,
        "rate": roof.rate,
        "source": roof.source.value,
        "is_memory": roof.is_memory,
        "verified": roof.verified,
        "by_units": roof.by_units,
    }


def _point(point: Point) -> Json:
    return {
        "name": point.name,
        "launch": point.launch,
        "level": point.level,
        "precision": point.precision,
        "algorithmic": point.algorithmic,
        "intensity": finite(point.intensity),
        "rate": finite(point.rate),
        "low": finite(point.low),
        "high": finite(point.high),
        "seconds": finite(point.seconds),
        "timed": point.timed,
        "share": finite(point.share),
        "roof": point.roof,
        "of_roof": finite(point.of_roof),
        "attainable": finite(point.attainable),
        "attained": finite(point.attained),
        "bound_by": point.limit or None,
        "flags": list(point.flags),
    }


def _outside(one: Outside) -> Json:
    return {
        "name": one.name,
        "launch": one.launch,
        "seconds": finite(one.seconds),
        "share": finite(one.share),
        "why": one.why,
        "memory": {level: finite(share) for level, share in one.memory.items()},
    }
