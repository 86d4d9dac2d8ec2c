"""The formats that have a model, by the name of their schema."""

from __future__ import annotations

from collections.abc import Mapping

from profkit.core.typed_file import File


def formats() -> Mapping[str, tuple[type[File], str]]:
    """The model of each, and the title of its schema: what writes it."""
    from profkit.capture.target_format import CheckFile, TargetFile
    from profkit.roofline.ceiling_file import CeilingFile
    from profkit.runs.manifest import Manifest
    from profkit.study.matrix import MatrixFile
    from profkit.timing.calibration_view import CalibrationFile
    from profkit.timing.cell import Cell
    from profkit.timing.compare_view import CompareFile
    from profkit.timing.latency_format import LatencyFile

    return {
        "calibrate": (CalibrationFile, "profkit calibrate --format json"),
        "ceilings": (CeilingFile, "profkit ceilings --format json, and -o"),
        "cell": (Cell, "A cell of a baseline: cells/SHAPE.BACKEND.json"),
        "check": (CheckFile, "TARGET.py --check --report FILE, and a run's check.json"),
        "compare": (CompareFile, "profkit compare --format json"),
        "matrix": (MatrixFile, "A matrix of shapes (YAML)"),
        "run": (Manifest, "A run's manifest.json"),
        "target": (TargetFile, "TARGET.py --list"),
        "time": (LatencyFile, "profkit time --format json, and --out"),
    }
