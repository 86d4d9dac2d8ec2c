"""Latencies of several shapes as text."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import wrap

from profkit.core.typed_file import known
from profkit.timing.latency import LatencyReport
from profkit.timing.latency_view import doubts, heading, pair_line, variant_line
from profkit.ui.text import literal

_WIDTH = 100  # columns, chosen: as piped output of other verbs


def shapes_text(reports: Mapping[str, LatencyReport], folder: str) -> str:
    """The reports of shapes in short: where each was timed, its variants and its verdicts."""
    lines: list[str] = []
    gpus: set[str] = set()
    for name, report in reports.items():
        gpu = known(report.timed[0].latency.gpu.uuid) or ""
        gpus.add(gpu)
        lines += [f"{literal(name)}   {literal(gpu) or 'on the CPU'}"]
        lines += [f"  {variant_line(row)}" for row in report.timed]
        for pair in report.pairs:
            lines += [f"  {heading(pair)}", f"    {pair_line(pair)}"]
        lines += [line for doubt in doubts(report.timed) for line in _wrapped(f"! {doubt}")]
    if len(gpus) > 1:
        note = f"Timed on {len(gpus)} GPUs: each shape on one. Shapes also differ by their GPUs."
        lines += ["", note]
    lines += ["", f"Saved  {literal(folder)}/SHAPE/latency.json"]
    return "\n".join(lines) + "\n"


def _wrapped(line: str) -> list[str]:
    return wrap(line, _WIDTH, subsequent_indent="  ")
