"""The formats that have a model, by the name of their schema."""

from __future__ import annotations

from collections.abc import Mapping

from profkit.core.typed_file import File


def formats() -> Mapping[str, tuple[type[File], str]]:
    """The model of each, and the title of its schema: what writes it."""
    from profkit.audit.view import AuditFile
    from profkit.timing.cell import Cell
    from profkit.timing.latency_format import LatencyFile

    return {
        "audit": (AuditFile, "profkit audit --format json"),
        "cell": (Cell, "A cell of profkit baseline: DIR/cells/SHAPE.BACKEND.json"),
        "time": (LatencyFile, "profkit time --format json, and --out"),
    }
