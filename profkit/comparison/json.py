"""Comparisons as JSON, `profkit.diff/1`: the schema is `profkit/schemas/diff.json`.

Times are in seconds, other numbers in the catalogue's units (SI, shares of 1), null where unknown.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from profkit.comparison.attribution import Attribution, Cause
from profkit.comparison.changes import Changed, OneSided
from profkit.comparison.comparability import Obstacle
from profkit.comparison.comparison import Diff, KernelDiff, Side
from profkit.comparison.finding_changes import FindingChange, Limit
from profkit.comparison.gates import Failure
from profkit.comparison.line_changes import LineChange
from profkit.comparison.problem_size import SizeEvidence
from profkit.comparison.repeats import Change, Profiled
from profkit.comparison.text import headline, reason
from profkit.comparison.timed_change import TimedChange
from profkit.core.json_text import finite
from profkit.core.version import __version__
from profkit.report.names import file_name
from profkit.report.summary import Group
from profkit.rules.checklist import Item
from profkit.rules.checklist_json import finding_json
from profkit.timing.latency import Timed

SCHEMA = "profkit.diff/1"

Json = dict[str, Any]


def diff_json(
    diffs: Sequence[tuple[str, Diff]],
    failures: Sequence[Sequence[Failure]],
    *,
    top: int,
    with_host: bool,
    left_out: Sequence[tuple[str, str]] = (),
) -> str:
    """All kernels of all comparisons, each with the gates that it failed.

    `top` of a comparison (0: all) have their source lines. `left_out` are the sides and names of
    reports that one side alone has.
    """
    document = {
        "schema": SCHEMA,
        "profkit": __version__,
        "comparisons": [
            _comparison(label, diff, failed, top=top, with_host=with_host)
            for (label, diff), failed in zip(diffs, failures, strict=True)
        ],
        "left_out": [{"side": side, "file": name} for side, name in left_out],
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _comparison(
    label: str, diff: Diff, failed: Sequence[Failure], *, top: int, with_host: bool
) -> Json:
    total = diff.total
    before, after = (_side(side, with_host=with_host) for side in diff.sides)
    return {
        "label": label,
        "before": before,
        "after": after,
        "refused": diff.refused,
        "forced": diff.forced,
        "obstacles": [_obstacle(one) for one in diff.obstacles],
        "failures": [_failure(one) for one in failed],
        "counts": {change.value: diff.counted(change) for change in Change},
        "total": {
            "before_s": total.before,
            "after_s": total.after,
            "removed_s": total.removed,
            "added_s": total.added,
            "launches": list(total.launches),
            "speedup": finite(total.speedup),
            "causes": [_cause(one) for one in total.causes],
            "unmeasured": total.unmeasured,
            "incomparable": total.incomparable,
        },
        "kernels": [
            _kernel(one, with_lines=not top or at < top) for at, one in enumerate(diff.kernels)
        ],
        "removed": [_group(group) for group in diff.removed],
        "added": [_group(group) for group in diff.added],
        "removed_findings": [_item(item) for item in diff.removed_findings],
        "timed": [_timed(one) for one in diff.timed],
    }


def _side(side: Side, *, with_host: bool) -> Json:
    report = side.report
    session = report.session
    latencies = file_name(side.timings.path, with_host=with_host) if side.timings.path else None
    return {
        "file": file_name(report.path, with_host=with_host),
        "recorded": session.created.isoformat() if session.created else None,
        "ncu": session.ncu_version or None,
        "gpus": sorted({gpu.name for gpu in report.gpus}),
        "launches": len(report.launches),
        "total_s": report.total,
        "latencies": latencies,
    }


def _obstacle(one: Obstacle) -> Json:
    return {"what": one.what.value, "before": one.before, "after": one.after}


def _failure(one: Failure) -> Json:
    return {
        "gate": str(one.gate),
        "kind": one.gate.kind.value,
        "kernel": one.kernel or None,
        "at": one.at if one.at >= 0 else None,
        "undecided": one.undecided,
        "why": reason(one),
    }


def _kernel(kernel: KernelDiff, *, with_lines: bool) -> Json:
    limit = kernel.limit
    return {
        "name": kernel.after.name,
        "headline": headline(kernel),
        "verdict": kernel.change.value,
        "by": _basis(kernel),
        "speedup": finite(kernel.speedup),
        "saved_s": finite(kernel.saved),
        "match": {
            "how": kernel.match.how.value,
            "certain": kernel.match.certain,
            "likeness": kernel.match.likeness,
        },
        "before": _group(kernel.before),
        "after": _group(kernel.after),
        "obstacles": [_obstacle(one) for one in kernel.obstacles],
        "size": _size(kernel.size) if kernel.size else None,
        "profiled": _profiled(kernel.profiled) if kernel.profiled else None,
        "timed": _timed(kernel.timed) if kernel.timed else None,
        "attribution": _attribution(kernel.attribution) if kernel.attribution else None,
        "findings": [_finding(one) for one in kernel.findings],
        "limit": _limit(limit) if limit else None,
        "changed": [_changed(one) for one in kernel.changed],
        "one_sided": [_one_sided(one) for one in kernel.one_sided],
        "lines": [_line(one) for one in kernel.lines] if with_lines else None,
    }


def _limit(limit: Limit) -> Json:
    return {"name": limit.name, "busy": finite(limit.busy), "certain": limit.certain}


def _basis(kernel: KernelDiff) -> str | None:
    """What the verdict rests on."""
    if kernel.by_timing:
        return "timing"
    if kernel.profiled is None:
        return None
    return "cycles" if kernel.in_cycles else "ncu"


def _group(group: Group) -> Json:
    return {
        "name": group.name,
        "grid": list(group.grid),
        "block": list(group.block),
        "launches": [launch.index for launch in group.launches],
        "failed": group.failed,
        "total_s": group.total,
        "median_s": finite(group.median),
        "min_s": finite(group.low),
        "max_s": finite(group.high),
        "share": finite(group.share),
    }


def _size(one: SizeEvidence) -> Json:
    return {
        "threads": [finite(count) for count in one.threads],
        "proven": one.is_proven,
        "work": [
            {
                "measure": measure.label,
                "before": measure.before,
                "after": measure.after,
                "equal": measure.is_equal,
            }
            for measure in one.measures
        ],
    }


def _profiled(one: Profiled) -> Json:
    return {
        "verdict": one.change.value,
        "speedup": finite(one.speedup),
        "range": [finite(one.low), finite(one.high)],
        "repeats": list(one.repeats),
        "noise": finite(one.noise),
    }


def _timed(one: TimedChange) -> Json:
    classic = one.classic
    return {
        "before": _latency(one.before),
        "after": _latency(one.after),
        "how": one.how,
        "verdict": one.verdict,
        "valid": one.valid,
        "speedup": finite(one.speedup),
        "low": _optional(one.low),
        "high": _optional(one.high),
        "margin": _optional(one.margin),
        "why": one.why,
        "classic": {
            "delta": finite(classic.delta),
            "separation": classic.separation.value,
            "p_value": finite(classic.p_value),
            "apart": classic.apart,
            "speedup": finite(classic.speedup),
            "claimable": classic.claimable,
        },
    }


def _latency(one: Timed) -> Json:
    interval = one.interval
    return {
        "label": one.label,
        "n": one.summary.n,
        "median_s": one.summary.median,
        "interval": [interval.low, interval.high] if interval else None,
    }


def _attribution(one: Attribution) -> Json:
    return {
        "before_s": one.before,
        "after_s": one.after,
        "change_s": one.change,
        "causes": [_cause(cause) for cause in one.causes],
        "missing": list(one.missing),
    }


def _cause(one: Cause) -> Json:
    return {
        "key": one.key,
        "label": one.label,
        "kind": one.kind.value,
        "seconds": one.seconds,
        "before": finite(one.before),
        "after": finite(one.after),
        "unit": one.unit or None,
    }


def _finding(one: FindingChange) -> Json:
    return {
        "category": one.category,
        "status": one.status.value,
        "before": _item(one.before) if one.before else None,
        "after": _item(one.after) if one.after else None,
        "saved_before_s": one.saved_before,
        "saved_after_s": one.saved_after,
        "promised": finite(one.promised),
        "promises": finite(one.promises),
        "at_threshold": one.is_at_threshold,
        "seen": {
            "quantity": one.seen.name,
            "before": finite(one.seen.before),
            "after": finite(one.seen.after),
        }
        if one.seen
        else None,
    }


def _item(item: Item) -> Json:
    return {**finding_json(item), "title": item.rule.title, "page": item.page or None}


def _changed(one: Changed) -> Json:
    return {
        "quantity": one.name,
        "meaning": one.meaning,
        "unit": one.unit,
        "sort": one.sort.value,
        "before": one.before,
        "after": one.after,
        "weight": one.weight,
        "shown": one.shown,
    }


def _one_sided(one: OneSided) -> Json:
    return {
        "quantity": one.name,
        "side": one.side,
        "value": one.value,
        "unit": one.unit,
        "why": one.why,
    }


def _line(one: LineChange) -> Json:
    return {
        "file": PurePath(one.file).name,
        "line_before": one.line_before or None,
        "line_after": one.line_after or None,
        "text": one.text,
        "before_s": one.before,
        "after_s": one.after,
    }


def _optional(value: float | None) -> float | None:
    return None if value is None else finite(value)
