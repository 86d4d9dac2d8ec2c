"""Rooflines as JSON, `profkit.roofline/1`."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.core.typed_file import Model, Output, Real, encode, part
from profkit.core.version import __version__
from profkit.report.names import file_name
from profkit.roofline.roofline import Outside, Point, Roofline
from profkit.roofline.roofs import Roof, split


class Ridge(Model, frozen=True):
    """Where a level's line meets a compute roof, FLOP/B."""

    level: str
    roof: str
    intensity: float


class ReportRoofline(Model, frozen=True, kw_only=True):
    """One report's roofs and points; `sm_clock` (Hz) is that of the roofs."""

    report: str
    gpu: str
    sm_clock: Real
    roofs: tuple[Roof, ...]
    ridges: tuple[Ridge, ...]
    points: tuple[Point, ...]
    outside: tuple[Outside, ...]
    notes: tuple[str, ...]


class RooflineFile(Output, frozen=True, kw_only=True, tag="profkit.roofline/1"):
    """Kernels under their roofs. SI units, shares of 1, null where unknown. It contains nothing
    about the host."""

    profkit: str
    reports: tuple[ReportRoofline, ...]


def rooflines_json(rooflines: Sequence[Roofline]) -> str:
    """All rooflines in one document."""
    reports = tuple(map(_report, rooflines))
    return encode(RooflineFile(profkit=__version__, reports=reports), dense=False)


def _report(roofline: Roofline) -> ReportRoofline:
    memory, compute = split(roofline.roofs)
    ridges = (Ridge(line.key, top.key, top.rate / line.rate) for line in memory for top in compute)
    return ReportRoofline(
        report=file_name(roofline.title, with_host=False),
        ridges=tuple(ridges),
        **part(roofline, "gpu", "sm_clock", "roofs", "points", "outside", "notes"),
    )
