"""Writes the schemas of the formats that have a model: `python -m kernels.schemas`"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from profkit.analysis import json as analysis
from profkit.analysis import (
    metrics,
    replay_plan,
    source_document,
    without_counters_view,
)
from profkit.application import answer, application, picks_file, timeline_view
from profkit.audit import view as audit
from profkit.calibration import ceilings, floors
from profkit.capture import correctness, doctor
from profkit.comparison import application as application_diff
from profkit.comparison import result as comparison
from profkit.core.typed_file import ALWAYS, Model
from profkit.experiment import log
from profkit.history import check as history_check
from profkit.history import view as history
from profkit.roofline import roofline_view
from profkit.rules import checklist_format, rule_file
from profkit.runs import manifest
from profkit.score import score
from profkit.study import matrix, plan_format, progress
from profkit.study.summary_format import BaselineFile
from profkit.timing import cell, compare_view, latency_format, optimum
from profkit.trial import kernels as kernel_trial
from profkit.trial.trial_file import TrialFile

SCHEMAS = Path(__file__).parent.parent / "profkit" / "schemas"
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
    "try": (TrialFile, "profkit try -- PROGRAM --format json"),
    "try-kernels": (kernel_trial.KernelTrial, "profkit try TARGET --format json"),
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


def json_schema(model: type[Model] | tuple[type[Model], ...], title: str) -> dict[str, object]:
    """The JSON Schema (2020-12) of a format, or of its several forms, as written today; older
    files may lack fields."""
    models = model if isinstance(model, tuple) else (model,)
    _, parts = msgspec.json.schema_components(models, ref_template="#/$defs/{name}")
    wholes = [parts.pop(form.__name__) for form in models]
    for part in parts.values():
        part.pop("title", None)
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **({"$id": str(tag)} if (tag := models[0].__struct_config__.tag) else {}),
        **(wholes[0] if len(wholes) == 1 else {"oneOf": wholes}),
        "title": title,
        "$defs": dict(sorted(parts.items())),
    }
    simplified: dict[str, object] = _simplified(schema)
    return simplified


def _simplified(form: Any) -> Any:
    """A schema as people read it: whatever is always written is required, a text is one line."""
    if isinstance(form, list):
        return [_simplified(part) for part in form]
    if not isinstance(form, dict):
        return form
    if form.get("type") == "object" and "properties" in form:
        # The fields without a default, those with one other than UNSET, and those that follow.
        required = [
            name
            for name, part in form["properties"].items()
            if name in form["required"] or "default" in part or ALWAYS in part
        ]
        form = form | {"required": required}
    form = {
        key: {name: _simplified(part) for name, part in value.items()}
        if key in {"properties", "$defs"}
        else _simplified(value)
        for key, value in form.items()
        if key not in {"default", ALWAYS}
    }
    if isinstance(form.get("description"), str):
        form["description"] = " ".join(form["description"].split())
    return _union(form) if "anyOf" in form else form


def _union(form: dict[str, Any]) -> dict[str, Any]:
    """A choice of plain kinds as a list of them; an integer is covered by a number."""
    rows = form.pop("anyOf")
    if any(row.get("type") == "number" for row in rows):
        rows = [row for row in rows if row.get("type") != "integer"]
    kinds = [row.get("type") for row in rows]
    if not all(isinstance(kind, str) for kind in kinds) or any("enum" in row for row in rows):
        return {"anyOf": rows} | form
    merged = {key: value for row in rows for key, value in row.items()}
    return merged | form | {"type": kinds if len(kinds) > 1 else kinds[0]}


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
        path = SCHEMAS / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(path.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
