"""Recorded reports with other values of some metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from profkit.report.action import block
from profkit.report.framing import MAGIC, Kind, Record, check, walk
from profkit.report.messages import decode, new, prefixed

Change = Callable[[Any], None]


def edited(report: Path, copy: Path, changes: Mapping[str, Change]) -> Path:
    """Write a copy of a report with the messages of some metrics changed, by their names."""
    framing = check(report)
    records: dict[Kind, list[bytes]] = {}

    def visit(record: Record) -> None:
        data = record.data
        if record.kind is Kind.kernel:
            launch = decode("ProfileResult", data)
            for index, recorded in enumerate(launch.metric_results):
                metric = decode("ProfileMetricResult", recorded)
                if change := changes.get(framing.names[metric.name_id]):
                    change(metric)
                    launch.metric_results[index] = metric.SerializeToString()
            data = launch.SerializeToString()
        records.setdefault(record.kind, []).append(data)

    with report.open("rb") as file:
        walk(report, file, visit)
    session = decode("ReportSessionDetails", framing.session[0])
    version = prefixed(new("FileHeader", version=7).SerializeToString())
    whole = block(records, framing.names, session_details=session)
    copy.write_bytes(MAGIC + version + whole)
    return copy


def valued(value: float | str | None) -> Change:
    """A change of a metric's own value, None: to none."""

    def change(metric: Any) -> None:
        metric.ClearField("metric_value")
        if isinstance(value, str):
            metric.metric_value.string_value = value.encode()
        elif value is not None:
            metric.metric_value.double_value = value

    return change


def instance(value: float) -> Change:
    """A change of the first instance of a metric, where it has any."""

    def change(metric: Any) -> None:
        if not metric.metric_value_list:
            return
        element = metric.metric_value_list[0].element_value
        element.Clear()
        element.double_value = value

    return change
