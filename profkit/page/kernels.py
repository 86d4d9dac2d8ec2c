"""The page's kernels: a table of all, and what the terminal shows of each as panels and tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from profkit.report import overview, panels
from profkit.report.catalog import catalog
from profkit.report.summary import Group, LaunchSummary
from profkit.rules.checklist import Checklist
from profkit.ui.text import count, extent, literal, number, percent
from profkit.ui.view import Grid, Panel

Json = dict[str, Any]

_SHARES = (
    ("SM", "sm_busy"),
    ("Tensor", "tensor_busy"),
    ("L1", "l1_busy"),
    ("L2", "l2_busy"),
    ("DRAM", "dram_busy"),
    ("Occ.", "occupancy_achieved"),
)


def anchor(group: Group) -> str:
    """The name by which a kernel's details are linked to."""
    return f"kernel-{group.typical.index}"


def table(
    groups: Sequence[Group],
    found: Checklist,
    short: Mapping[str, str],
    detailed: Sequence[int],
) -> Json:
    """All kernels, a row each; cells have their words and what to sort them by."""
    columns = [
        _column("#", "rank"),
        _column("Kernel", "name", words=True, help="with the first finding on it"),
        _column("Share", "share", help="of the report's GPU time"),
        _column("Total", "total", help="GPU time of all launches, by ncu"),
        _column("Count", "count", help="launches"),
        _column("Median", "median"),
        _column("Spread", "spread", help="half of slowest less fastest, of the median"),
        *(_column(label, name, help=_meaning(name)) for label, name in _SHARES),
        _column("Regs", "registers_per_thread", help="registers a thread"),
        _column("Grid / block", "shape", words=True),
    ]
    rows = [_row(rank, group, found, short, detailed) for rank, group in enumerate(groups, start=1)]
    return {"columns": columns, "rows": rows}


def _column(label: str, key: str, *, words: bool = False, help: str = "") -> Json:
    return {"label": label, "key": key, "words": words, "help": help}


def _meaning(name: str) -> str:
    return catalog().quantities[name].meaning


def _row(
    rank: int,
    group: Group,
    found: Checklist,
    short: Mapping[str, str],
    detailed: Sequence[int],
) -> Json:
    name, typical = literal(group.name), group.typical
    measured = group.count - group.failed
    shape = f"{extent(group.grid)} / {extent(group.block)}"
    spread = (group.high - group.low) / 2 / group.median if measured > 1 else math.nan
    first = next(iter(found.findings_of(group)), None)
    failed = f" ({group.failed} failed)" if group.failed else ""
    return {
        "full": name,
        "anchor": anchor(group) if typical.index in detailed else "",
        "finding": first.rule.title if first else "",
        "place": found.place(first) if first else 0,
        "search": f"{name} {shape} {first.rule.title if first else ''}".lower(),
        "cells": [
            _cell(str(rank), rank),
            _cell(short[name], name.lower()),
            _cell(percent(group.share), group.share, bar=True),
            _cell(number(group.total, "s") if measured else "counters failed", group.total),
            _cell(f"{group.count}{failed}", group.count),
            _cell(number(group.median, "s"), group.median),
            _cell(f"±{percent(spread)}" if measured > 1 else "", spread),
            *(_quantity(typical, key, share=True) for _, key in _SHARES),
            _quantity(typical, "registers_per_thread", share=False),
            _cell(shape, math.prod(group.grid) if group.grid else None),
        ],
    }


def _cell(text: str, sort: float | str | None, *, bar: bool = False) -> Json:
    unknown = isinstance(sort, float) and math.isnan(sort)
    known = None if unknown else sort
    return {
        "text": text,
        "sort": "" if known is None else known,
        "bar": known if bar else None,
        "heat": 0,
        "why": "",
    }


def _quantity(launch: LaunchSummary, name: str, *, share: bool) -> Json:
    value = launch.get(name)
    text = percent(value) if share else count(value)
    doubt = "?" if name in launch.impossible else ""
    cell = _cell(text + doubt, value)
    return cell | {
        "heat": round(min(value, 1.0), 3) if share and value > 0 else 0,
        "why": literal(launch.why_missing(name)),
    }


def detail(
    group: Group, found: Checklist, short: Mapping[str, str], timeline: bool, source: bool
) -> Json:
    """A kernel's typical launch: the panels and tables of the other views, and its findings."""
    launch = group.typical
    made = () if launch.failed else panels.panels(launch)
    return {
        "launch": launch.index,
        "anchor": anchor(group),
        "name": short[literal(group.name)],
        "full": literal(group.name),
        "about": overview.about(group),
        "share": percent(group.share),
        "seconds": number(group.total, "s") if not launch.failed else "counters failed",
        "warnings": [literal(warning) for warning in launch.warnings],
        "findings": [
            {"place": found.place(item), "rank": item.rank, "title": item.rule.title}
            for item in found.findings_of(group)
        ],
        "panels": [_panel(panel) for panel in made],
        "grids": [] if launch.failed else [grid_of(grid) for grid in panels.grids(launch)],
        "ncu": [] if launch.failed else [_words(row) for row in overview.rule_rows(launch)],
        "timeline": timeline,
        "source": source,
    }


def _panel(panel: Panel) -> Json:
    return {
        "title": panel.title,
        "note": panel.note,
        "wide": panel.wide,
        "bars": any(row.share is not None for row in panel.rows),
        "rows": [
            {
                "label": row.label,
                "value": row.value,
                "note": row.note,
                "share": _bounded(row.share),
            }
            for row in panel.rows
        ],
    }


def _bounded(share: float | None) -> float | None:
    if share is None or math.isnan(share):
        return None
    return min(max(share, 0.0), 1.0)


def grid_of(grid: Grid) -> Json:
    """A table's words; cells of several lines are lists."""
    return {
        "title": grid.title,
        "columns": list(grid.columns),
        "rows": [[cell.split("\n") for cell in row] for row in grid.rows],
        "note": grid.note,
    }


def _words(row: Any) -> Json:
    return {"label": row.label, "value": row.value, "note": row.note}
