"""Source views for the browser: rows of plain values, without what would make the page heavy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profkit.report.source_lines import Code
from profkit.ui.text import literal

if TYPE_CHECKING:
    from profkit.analysis.source_view import Counts, Instruction, SourceFile, SourceLine, SourceView

Json = dict[str, Any]

MOST_ROWS = 1500
"""Lines or instructions of a kernel that a page holds; the coldest are left out first."""

_STALLS_TOLD = 3
_AROUND = 3
_TAB = 4


def source_data(view: SourceView) -> Json:
    """Lines and instructions of a kernel; counts are [samples, executed, shared, global, live].

    Stalls are the largest of a row as [reason, samples], the reason by its place in `reasons`.
    """
    reasons = list(view.total.stalls)
    files = [_file(file, reasons) for file in view.files] if view.has_source else []
    kept = _kept([_heat(one.counts, one.findings) for one in view.instructions])
    names = {file.name: at for at, file in enumerate(view.files)}
    code = view.code
    return {
        "reasons": reasons,
        "total": _counts(view.total),
        "stalls": [[at, count] for at, count in enumerate(view.total.stalls.values())],
        "files": files,
        "sass": [
            _instruction(one, code, names, reasons)
            for one, keep in zip(view.instructions, kept, strict=True)
            if keep
        ],
        "instructions": len(view.instructions),
        "notes": [literal(note) for note in view.notes],
    }


def _file(file: SourceFile, reasons: Sequence[str]) -> Json:
    """A file's lines: all of a short one, of a long header those near its instructions."""
    used = [at for at, line in enumerate(file.lines) if line.addresses]
    near = {at + by for at in used for by in range(-_AROUND, _AROUND + 1)}
    heat = [
        _heat(line.counts, line.findings) if line.addresses else float(at in near) / 2
        for at, line in enumerate(file.lines)
    ]
    if len(file.lines) > MOST_ROWS:
        heat = [value if at in near else -1.0 for at, value in enumerate(heat)]
    kept = _kept(heat)
    return {
        "name": literal(Path(file.name).name),
        "lines": [
            _line(line, reasons) for line, keep in zip(file.lines, kept, strict=True) if keep
        ],
        "of": len(file.lines),
    }


def _line(line: SourceLine, reasons: Sequence[str]) -> list[Any]:
    text = _text(line.text)
    if not line.addresses:
        return [line.line, text]
    return [
        line.line, text, _counts(line.counts), _stalls(line.counts, reasons), list(line.findings),
    ]  # fmt: skip


def _instruction(
    one: Instruction, code: Code, names: dict[str, int], reasons: Sequence[str]
) -> list[Any]:
    return [
        code.offset(one.address), _text(code.told(one.sass)),
        _counts(one.counts), _stalls(one.counts, reasons),
        list(one.findings), names.get(one.file, -1) if one.line else -1, one.line,
    ]  # fmt: skip


def _counts(counts: Counts) -> list[int | float | None]:
    told = (
        counts.samples, counts.executed, counts.shared_excess, counts.global_excess, counts.live,
    )  # fmt: skip
    return [_number(value) for value in told]


def _number(value: float) -> int | float | None:
    if not math.isfinite(value):
        return None
    return int(value) if value == int(value) else float(f"{value:.4g}")


def _stalls(counts: Counts, reasons: Sequence[str]) -> list[list[Any]]:
    largest = sorted(counts.stalls.items(), key=lambda item: -item[1])[:_STALLS_TOLD]
    return [[reasons.index(reason), _number(value)] for reason, value in largest if value > 0]


def _heat(counts: Counts, findings: Sequence[int]) -> float:
    """What a row is worth keeping for: blame above all, then samples."""
    samples = counts.samples if math.isfinite(counts.samples) else 0.0
    return math.inf if findings else 1.0 + samples


def _kept(heat: Sequence[float]) -> list[bool]:
    """Which rows stay, in their order: all below the limit, else the hottest."""
    possible = [value >= 0 for value in heat]
    if sum(possible) <= MOST_ROWS:
        return possible
    ranked = sorted(range(len(heat)), key=lambda at: (-heat[at], at))
    chosen = set(ranked[:MOST_ROWS])
    return [at in chosen and possible[at] for at in range(len(heat))]


def _text(text: str) -> str:
    return literal(text.expandtabs(_TAB).rstrip())
