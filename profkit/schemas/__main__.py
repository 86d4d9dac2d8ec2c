"""Writes the schemas of the formats that have a model: `python -m profkit.schemas`"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from profkit.analysis import json as analysis
from profkit.analysis import (
    metrics,
    replay_plan,
    source_document,
    without_counters_view,
)
from profkit.application import answer, application, picks_file, timeline_view
from profkit.audit import view as audit
from profkit.calibration import ceilings, floors, gpu_spread
from profkit.capture import correctness, doctor
from profkit.comparison import application as application_diff
from profkit.comparison import result as comparison
from profkit.core.typed_file import Model, json_schema
from profkit.experiment import log
from profkit.history import check as history_check
from profkit.history import view as history
from profkit.roofline import roofline_view
from profkit.rules import checklist_format, rule_file, score
from profkit.runs import manifest
from profkit.study import matrix, plan_format, progress
from profkit.study.summary_format import BaselineFile
from profkit.timing import cell, compare_view, latency_format, optimum

_WIDTH = 96  # characters: chosen as for the code

FORMATS: Mapping[str, tuple[type[Model] | tuple[type[Model], ...], str]] = {
    "analyze": ((analysis.AnalysisFile, analysis.AnalysesFile), "profkit analyze --format json"),
    "application": (application.ApplicationFile, "profkit timeline --format json"),
    "answer": (answer.Answer, "answer.json of a run of `profkit profile --app`"),
    "application-diff": (
        application_diff.ApplicationDiffFile,
        "profkit diff --format json, of two runs of applications",
    ),
    "audit": (audit.AuditFile, "profkit audit --format json"),
    "baseline": (BaselineFile, "summary.json of a baseline"),
    "baseline-plan": (plan_format.PlanFile, "A baseline's plan: its baseline.json"),
    "baseline-progress": (progress.ProgressFile, "progress.json of a baseline on several GPUs"),
    "baseline-status": (progress.StatusFile, "profkit baseline status --format json"),
    "calibrate": (floors.CalibrationFile, "profkit calibrate --format json"),
    "ceilings": (ceilings.CeilingFile, "profkit ceilings --format json, and -o"),
    "cell": (cell.Cell, "A cell of a baseline: cells/SHAPE.BACKEND.json"),
    "check": (correctness.CheckFile, "TARGET.py --check --report FILE, and a run's check.json"),
    "checklist": (checklist_format.ChecklistFile, "profkit checklist --format json"),
    "compare": (compare_view.CompareFile, "profkit compare --format json"),
    "diff": (comparison.DiffFile, "profkit diff --format json"),
    "doctor": (doctor.DoctorFile, "profkit doctor --format json"),
    "gpu-spread": (gpu_spread.GpuSpreadFile, "profkit calibrate --on PLACE --format json"),
    "history": (history.SeriesFile, "profkit history show --format json"),
    "history-check": (history_check.CheckFile, "profkit history check --format json"),
    "history-list": (history.HistoryFile, "profkit history list --format json"),
    "matrix": (matrix.MatrixFile, "A matrix of shapes (YAML)"),
    "metrics": (metrics.MetricsFile, "profkit metrics --format json"),
    "optimize": (optimum.OptimizeFile, "profkit optimize --format json"),
    "experiment": (log.Experiments, "next.json of a run, profkit next --format json"),
    "log": (log.Log, "profkit log --format json"),
    "picks": (picks_file.PicksFile, "picks.json of a run of `profkit profile --app`"),
    "plan": (replay_plan.ReplayPlanFile, "profkit plan --format json"),
    "roofline": (roofline_view.RooflineFile, "profkit roofline --format json"),
    "rules": (rule_file.RulesFile, "A rules file (YAML)"),
    "run": (manifest.Manifest, "A run's manifest.json"),
    "score": (score.Score, "profkit rules score --format json"),
    "source": (source_document.SourceViewFile, "profkit source --format json"),
    "target": (correctness.TargetFile, "TARGET.py --list"),
    "timeline": (
        (timeline_view.TimelineFile, timeline_view.TimelinesFile),
        "profkit analyze --format json, of an nsys SQLite export",
    ),
    "time": (latency_format.LatencyFile, "profkit time --format json, and --save"),
    "without-counters": (
        without_counters_view.WithoutCountersFile,
        "profkit analyze --without-counters --format json, and without_counters.json of a run",
    ),
}
"""The model of each format, or those of its forms, and the title of its schema: what writes it."""


def texts() -> Mapping[str, str]:
    """The schemas by the name of their file."""
    return {
        f"{name}.json": _laid_out(json_schema(model, title)) + "\n"
        for name, (model, title) in FORMATS.items()
    }


def _laid_out(value: Any, margin: str = "") -> str:
    """JSON on one line where it fits, else an entry a line."""
    line = json.dumps(value, ensure_ascii=False)
    if len(margin) + len(line) <= _WIDTH or not isinstance(value, (dict, list)):
        return line
    inner = f"{margin}  "
    if isinstance(value, dict):
        rows = [f"{json.dumps(key)}: {_laid_out(part, inner)}" for key, part in value.items()]
    else:
        rows = [_laid_out(part, inner) for part in value]
    entries = f",\n{inner}".join(rows)
    return f"{line[0]}\n{inner}{entries}\n{margin}{line[-1]}"


def main() -> int:
    """Write those that are not up to date."""
    for name, text in texts().items():
        path = Path(__file__).with_name(name)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(path.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
