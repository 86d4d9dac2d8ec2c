"""Source views for the browser: rows of plain values, the coldest rows of large kernels omitted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profkit.report.source_lines import Code
from profkit.ui.text import literal

if TYPE_CHECKING:
    from profkit.analysis.source_view import Counts, Instruction, SourceFile, SourceLine, SourceView

Json = dict[str, Any]

MOST_ROWS = 1500
"""Lines or instructions of a kernel on the page; the coldest are omitted first. Chosen: 0.15 MB."""

_STALLS = 3  # of a row; chosen: two fit its column, the third is in its tooltip
_CONTEXT_LINES = 3  # before and after a line with instructions, as in `diff -U3`
_TAB = 4  # columns; chosen: the indentation of the CUDA samples


def source_data(view: SourceView, code: Code) -> Json:
    """Lines and instructions of a kernel; counts are [samples, executed, shared, global, live].

    Stalls are the largest of a row as [reason, samples], the reason by its index in `reasons`.
    """
    reasons = list(view.total.stalls)
    files = [_file(file, reasons) for file in view.files] if view.has_source else []
    shown = _shown([_heat(row, row.findings) for row in view.instructions])
    names = {file.file: index for index, file in enumerate(view.files)}
    return {
        "reasons": reasons,
        "total": _counts(view.total),
        "stalls": list(map(list, enumerate(view.total.stalls.values()))),
        "files": files,
        "sass": [
            _instruction(row, code, names, reasons) for row in compress(view.instructions, shown)
        ],
        "instructions": len(view.instructions),
        "notes": [literal(note) for note in view.notes],
    }


def _file(file: SourceFile, reasons: Sequence[str]) -> Json:
    """A file's lines: all of a short file, of a long header those near its instructions."""
    rows = list(enumerate(file.lines))
    used = [index for index, line in rows if line.instructions]
    near = {
        index + offset for index in used for offset in range(-_CONTEXT_LINES, _CONTEXT_LINES + 1)
    }
    far = -1.0 if len(file.lines) > MOST_ROWS else 0.0
    heat = [
        (_heat(line, line.findings) if line.instructions else 0.5) if index in near else far
        for index, line in rows
    ]
    return {
        "name": literal(Path(file.file).name),
        "lines": [_line(line, reasons) for line in compress(file.lines, _shown(heat))],
        "of": len(file.lines),
    }


def _line(line: SourceLine, reasons: Sequence[str]) -> list[Any]:
    text = _text(line.text or "")
    if not line.instructions:
        return [line.line, text]
    return [
        line.line, text, _counts(line), _stalls(line, reasons), list(line.findings),
    ]  # fmt: skip


def _instruction(
    row: Instruction, code: Code, names: dict[str, int], reasons: Sequence[str]
) -> list[Any]:
    return [
        code.offset(row.address), _text(code.relative(row.sass or "")),
        _counts(row), _stalls(row, reasons),
        list(row.findings), names.get(row.file or "", -1) if row.line else -1, row.line or 0,
    ]  # fmt: skip


def _counts(counts: Counts) -> list[int | float | None]:
    return [
        _number(counts.samples), _number(counts.executed), _number(counts.shared_excess),
        _number(counts.global_excess), _number(counts.live),
    ]  # fmt: skip


def _number(value: float) -> int | float | None:
    if not math.isfinite(value):
        return None
    return int(value) if value == int(value) else float(f"{value:.4g}")


def _stalls(counts: Counts, reasons: Sequence[str]) -> list[list[Any]]:
    largest = sorted(counts.stalls.items(), key=lambda item: -item[1])[:_STALLS]
    return [[reasons.index(reason), _number(value)] for reason, value in largest if value > 0]


def _heat(counts: Counts, findings: Sequence[int]) -> float:
    """The priority of a row: rows of findings first, then those with the most samples."""
    samples = counts.samples if math.isfinite(counts.samples) else 0.0
    return math.inf if findings else 1.0 + samples


def _shown(heat: Sequence[float]) -> list[bool]:
    """Whether each row is shown: all up to the limit, else the hottest."""
    possible = [value >= 0 for value in heat]
    if sum(possible) <= MOST_ROWS:
        return possible
    ranked = sorted(range(len(heat)), key=lambda index: (-heat[index], index))
    chosen = set(ranked[:MOST_ROWS])
    return [index in chosen and possible[index] for index in range(len(heat))]


def _text(text: str) -> str:
    return literal(text.expandtabs(_TAB).rstrip())
