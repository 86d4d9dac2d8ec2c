"""The formats that have a model, by the name of their schema."""

from __future__ import annotations

from collections.abc import Mapping

from profkit.core.typed_file import Model


def formats() -> Mapping[str, tuple[type[Model] | tuple[type[Model], ...], str]]:
    """The model of each, or those of its forms, and the title of its schema: what writes it."""
    from profkit.analysis.json import AnalysesFile, AnalysisFile
    from profkit.analysis.metrics_view import MetricsFile
    from profkit.analysis.source_json import SourceViewFile
    from profkit.analysis.timeline_json import ExportFile, ExportsFile
    from profkit.audit.view import AuditFile
    from profkit.capture.doctor import DoctorFile
    from profkit.capture.target_format import CheckFile, TargetFile
    from profkit.comparison.json import DiffFile
    from profkit.roofline.ceiling_file import CeilingFile
    from profkit.roofline.roofline_json import RooflineFile
    from profkit.rules.checklist_format import ChecklistFile
    from profkit.rules.rule_file import RulesFile
    from profkit.rules.score import Score
    from profkit.runs.manifest import Manifest
    from profkit.study.json import BaselineFile
    from profkit.study.matrix import MatrixFile
    from profkit.study.plan_format import PlanFile
    from profkit.timing.calibration import CalibrationFile
    from profkit.timing.cell import Cell
    from profkit.timing.compare_view import CompareFile
    from profkit.timing.latency_format import LatencyFile
    from profkit.timing.optimize_view import OptimizeFile

    return {
        "analyze": ((AnalysisFile, AnalysesFile), "profkit analyze --format json"),
        "audit": (AuditFile, "profkit audit --format json"),
        "baseline": (BaselineFile, "summary.json of a baseline"),
        "baseline-plan": (PlanFile, "A baseline's plan: its baseline.json"),
        "calibrate": (CalibrationFile, "profkit calibrate --format json"),
        "ceilings": (CeilingFile, "profkit ceilings --format json, and -o"),
        "cell": (Cell, "A cell of a baseline: cells/SHAPE.BACKEND.json"),
        "check": (CheckFile, "TARGET.py --check --report FILE, and a run's check.json"),
        "checklist": (ChecklistFile, "profkit checklist --format json"),
        "compare": (CompareFile, "profkit compare --format json"),
        "diff": (DiffFile, "profkit diff --format json"),
        "doctor": (DoctorFile, "profkit doctor --format json"),
        "matrix": (MatrixFile, "A matrix of shapes (YAML)"),
        "metrics": (MetricsFile, "profkit metrics --format json"),
        "optimize": (OptimizeFile, "profkit optimize --format json"),
        "roofline": (RooflineFile, "profkit roofline --format json"),
        "rules": (RulesFile, "A rules file (YAML)"),
        "run": (Manifest, "A run's manifest.json"),
        "score": (Score, "profkit rules score --format json"),
        "source": (SourceViewFile, "profkit source --format json"),
        "target": (TargetFile, "TARGET.py --list"),
        "timeline": (
            (ExportFile, ExportsFile),
            "profkit analyze --format json, of an nsys SQLite export",
        ),
        "time": (LatencyFile, "profkit time --format json, and --out"),
    }
