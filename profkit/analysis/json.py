"""Reports as JSON, `profkit.analyze/1`: the schema is `profkit/schemas/analyze.json`.

Numbers are in the catalogue's units (SI, shares of 1); a missing one is null and has its reason in
`missing`. The host (computer name, addresses, folders, program arguments) is left out unless asked.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from profkit.capture.doctor import Diagnosis
from profkit.core.json_text import nullable
from profkit.core.version import __version__
from profkit.report.catalog import NEWEST, Quantity, catalog
from profkit.report.coverage import Coverage
from profkit.report.gpus import Gpu
from profkit.report.names import file_name
from profkit.report.session import Session
from profkit.report.summary import Group, LaunchSummary, ReportSummary, Work
from profkit.rules.checklist import Checklist
from profkit.rules.checklist_json import finding_json, found_json

SCHEMA = "profkit.analyze/1"
CHECKLIST_SCHEMA = "profkit.checklist/1"
METRICS_SCHEMA = "profkit.metrics/1"
DOCTOR_SCHEMA = "profkit.doctor/1"

Json = dict[str, Any]


def report_json(
    reports: Sequence[tuple[ReportSummary, Sequence[Group], Checklist]],
    top: int,
    *,
    with_host: bool,
) -> str:
    """One report as an object of its own, several under `reports`."""
    made = [
        _report(report, groups, found, top, with_host=with_host)
        for report, groups, found in reports
    ]
    head = {"schema": SCHEMA, "profkit": __version__}
    body = made[0] if len(made) == 1 else {"reports": made}
    return _dump(head | body)


def checklist_json(report: ReportSummary, found: Checklist, top: int) -> str:
    """The `top` items (0: all) of a report's checklist, `profkit.checklist/1`."""
    shown = found_json(found)
    return _dump(
        {
            "schema": CHECKLIST_SCHEMA,
            "profkit": __version__,
            "report": {
                "file": file_name(report.path, with_host=False),
                "launches": len(report.launches),
                "total_s": nullable(report.total),
            },
            "rules": found.rules,
            "kernels": found.kernels,
            "skipped": found.skipped,
            **shown,
            "conclusion": shown["conclusion"],
            "checklist": shown["checklist"][: top or None],
            "informative": shown["informative"],
        }
    )


def catalog_json(chosen: Sequence[Quantity]) -> str:
    """Quantities of the catalogue, `profkit.metrics/1`."""
    return _dump({"schema": METRICS_SCHEMA, "quantities": [_quantity(entry) for entry in chosen]})


def coverage_json(
    report: ReportSummary,
    found: Sequence[Coverage],
    raw: Mapping[str, tuple[str, float | str | None]],
) -> str:
    """The catalogue held against a report, `profkit.metrics/1`."""
    quantities = [
        _quantity(item.quantity)
        | {
            "status": item.status,
            "present": item.present,
            "doubtful": item.doubtful,
            "min": nullable(item.low),
            "max": nullable(item.high),
            "reasons": dict(item.reasons),
        }
        for item in found
    ]
    recorded = {name: {"unit": unit, "value": value} for name, (unit, value) in raw.items()}
    return _dump(
        {
            "schema": METRICS_SCHEMA,
            "file": file_name(report.path, with_host=False),
            "launches": len(report.launches),
            "quantities": quantities,
            "recorded": recorded,
        }
    )


def doctor_json(diagnosis: Diagnosis) -> str:
    """The doctor's checks, `profkit.doctor/1`."""
    return _dump(
        {
            "schema": DOCTOR_SCHEMA,
            "can_profile": diagnosis.can_profile,
            "has_gpu": diagnosis.has_gpu,
            "checks": [dataclasses.asdict(check) for check in diagnosis.checks],
        }
    )


def _quantity(entry: Quantity) -> Json:
    return {
        "name": entry.name,
        "group": entry.group,
        "unit": entry.unit,
        "meaning": entry.meaning,
        "section": entry.section,
        "source": entry.source,
        "formulas": [
            {
                "formula": item.formula.text,
                "from_cc": f"{item.cc.low[0]}.{item.cc.low[1]}",
                "to_cc": None if item.cc.high == NEWEST else f"{item.cc.high[0]}.{item.cc.high[1]}",
                "lead": item.lead,
            }
            for item in entry.alternatives
        ],
    }


def _dump(data: Json) -> str:
    return json.dumps(data, indent=2, allow_nan=False) + "\n"


def _report(
    report: ReportSummary,
    groups: Sequence[Group],
    found: Checklist,
    top: int,
    *,
    with_host: bool,
) -> Json:
    shown = groups[: top or None]
    launches = sorted(
        ((launch, group) for group in shown for launch in group.launches),
        key=lambda item: item[0].index,
    )
    return {
        "report": {
            "file": file_name(report.path, with_host=with_host),
            "launches": len(report.launches),
            "total_s": nullable(report.total),
            **_session(report.session, with_host=with_host),
            "notes": list(report.notes),
        },
        "gpu": _gpu(report.gpus[0]),
        "gpus": [_gpu(gpu) for gpu in report.gpus],
        "groups": [_group(group) for group in groups],
        "kernels": [
            _kernel(launch) | _findings(launch, group, found) for launch, group in launches
        ],
        **found_json(found),
    }


def _findings(launch: LaunchSummary, group: Group, found: Checklist) -> Json:
    """Those on the launch's kernel; a launch without a duration has none."""
    items = () if launch.failed else found.findings_of(group)
    return {
        "findings": [finding_json(item) for item in items if item.rank],
        "informative": [finding_json(item) for item in items if not item.rank],
    }


def _session(session: Session, *, with_host: bool) -> Json:
    shared = {
        "recorded": session.created.isoformat() if session.created else None,
        "ncu": session.ncu_version or None,
        "cuda": session.cuda_version or None,
        "driver": session.driver_version or None,
        "command": (session.command if with_host else session.shareable_command()) or None,
        "clock_control": session.clock_control or None,
        "cache_control": session.cache_control or None,
        "replay_mode": session.replay_mode or None,
        "assumed": sorted(session.assumed),
    }
    if not with_host:
        return shared
    return shared | {
        "host": {
            "name": session.host_name,
            "os": session.os,
            "processor": session.processor,
            "addresses": list(session.addresses),
        }
    }


def _gpu(gpu: Gpu) -> Json:
    sheet = gpu.datasheet
    return {
        "name": gpu.name,
        "compute_capability": f"{gpu.cc[0]}.{gpu.cc[1]}",
        "sm_count": gpu.sm_count,
        "clock_hz": gpu.clock,
        "memory_clock_hz": gpu.memory_clock,
        "memory_bytes": gpu.memory_bytes,
        "l2_bytes": gpu.l2_bytes,
        "dram_peak_bytes_per_s": gpu.dram_peak or None,
        "datasheet": sheet.name if sheet else None,
        "datasheet_peaks": {name: peak.value for name, peak in sheet.peaks.items()}
        if sheet
        else {},
        "datasheet_unverified": sorted(
            name for name, peak in (sheet.peaks.items() if sheet else ()) if not peak.verified
        ),
    }


def _group(group: Group) -> Json:
    return {
        "name": group.name,
        "grid": list(group.grid),
        "block": list(group.block),
        "count": group.count,
        "failed": group.failed,
        "total_s": group.total,
        "median_s": nullable(group.median),
        "min_s": nullable(group.low),
        "max_s": nullable(group.high),
        "share": nullable(group.share),
        "launches": [launch.index for launch in group.launches],
    }


def _kernel(launch: LaunchSummary) -> Json:
    occupancy = launch.occupancy
    return {
        "launch": launch.index,
        "name": launch.name,
        "workload": launch.launch.workload,
        "nvtx": list(launch.launch.nvtx),
        "failed": launch.failed,
        "duration_s": nullable(launch.duration),
        "grid": list(launch.grid),
        "block": list(launch.block),
        "metrics": {name: nullable(launch.get(name)) for name in catalog().quantities},
        "missing": dict(launch.missing),
        "stalls": [
            {"reason": stall.reason, "cycles": stall.cycles, "share": stall.share}
            for stall in launch.stalls
        ],
        "work": [_work(work) for work in launch.work if work.operations > 0],
        "occupancy_limiters": list(occupancy.limiters) if occupancy else [],
        "occupancy_next_step": (
            {
                "blocks": occupancy.step.blocks,
                "warps": occupancy.step.warps,
                "changes": occupancy.step.changes,
                "larger_carveout": occupancy.step.carveout,
            }
            if occupancy and occupancy.step
            else None
        ),
        "instructions_by_class": dict(launch.launch.breakdowns.get("instructions_by_class", {})),
        "instructions_by_opcode": dict(launch.launch.breakdowns.get("instructions_by_opcode", {})),
        "ncu_rules": [
            {
                "rule": rule.rule,
                "section": rule.section,
                "kind": rule.kind,
                "title": rule.title,
                "message": rule.message,
                "estimate": rule.speedup,
                "scope": rule.scope or None,
            }
            for rule in launch.rules
        ],
        "warnings": list(launch.warnings),
    }


def _work(work: Work) -> Json:
    return {
        "precision": work.precision,
        "operations": work.operations,
        "rate": nullable(work.rate),
        "peak_held_clock": nullable(work.peak),
        "share_held_clock": nullable(work.share),
        "peak_path": nullable(work.path_peak),
        "share_path": nullable(work.path_share),
        "peak_datasheet": nullable(work.datasheet),
        "share_datasheet": nullable(work.datasheet_share),
    }
