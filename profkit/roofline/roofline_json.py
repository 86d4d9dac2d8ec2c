"""Rooflines as JSON, `profkit.roofline/1`."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.core.typed_file import Model, Output, Real, encode
from profkit.core.version import __version__
from profkit.report.names import file_name
from profkit.roofline.roofline import Outside, Point, Roofline
from profkit.roofline.roofs import Roof


class Ridge(Model, frozen=True):
    """Where a level's line meets a compute roof, FLOP/B."""

    level: str
    roof: str
    intensity: float


class ReportRoofline(Model, frozen=True, kw_only=True):
    """One report's roofs and points; `sm_clock` (Hz) is the one that the roofs were held at."""

    report: str
    gpu: str
    sm_clock: Real
    roofs: tuple[Roof, ...]
    ridges: tuple[Ridge, ...]
    points: tuple[Point, ...]
    outside: tuple[Outside, ...]
    notes: tuple[str, ...]


class RooflineFile(Output, frozen=True, kw_only=True, tag="profkit.roofline/1"):
    """Kernels under their roofs. SI units, shares of 1, null where unknown. It holds nothing of the
    host."""

    profkit: str
    reports: tuple[ReportRoofline, ...]


def rooflines_json(rooflines: Sequence[Roofline]) -> str:
    """All rooflines in one document."""
    reports = tuple(_report(roofline) for roofline in rooflines)
    return encode(RooflineFile(profkit=__version__, reports=reports), dense=False)


def _report(roofline: Roofline) -> ReportRoofline:
    memory, compute = (
        [roof for roof in roofline.roofs if roof.is_memory is kind] for kind in (True, False)
    )
    return ReportRoofline(
        report=file_name(roofline.title, with_host=False),
        gpu=roofline.gpu,
        sm_clock=roofline.sm_clock,
        roofs=roofline.roofs,
        ridges=tuple(
            Ridge(line.key, roof.key, roof.rate / line.rate) for line in memory for roof in compute
        ),
        points=roofline.points,
        outside=roofline.outside,
        notes=roofline.notes,
    )
