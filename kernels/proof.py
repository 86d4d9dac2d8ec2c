"""The proof of the README: a finding beside the speedup of its fix, and accuracy over all pairs.

The picture (docs/img/accuracy.svg) and the table of the README come from the recorded pairs. The
figures on kernels that others published are of sets that are not in this repository
(kernels/unseen_sets.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernels.output_blocks import printed
from kernels.unseen_sets import FILE, PARTIAL
from profkit.score.score import ALL_SETS

PICTURE = "accuracy.svg"
EXAMPLE = "transpose_conflicts"
_INK, _ESTIMATE, _MEASURED, _GRAY = "#1b1b1b", "#2f6fb0", "#b26a00", "#8a8a8a"
_SEED = "profkit"  # of the identifiers in the picture, so that it is the same every time
_TABLE = re.compile(r"(<!-- begin: kernels/proof\.py -->\n).*?(<!-- end -->)", re.DOTALL)


@dataclass(frozen=True)
class Accuracy:
    """How well findings held on a set of pairs; `in_range` counts pairs whose speedup is in the
    predicted range."""

    pairs: int
    first: float
    top_three: float
    factor: float
    in_range: int


@dataclass(frozen=True)
class Pair:
    """A recorded pair: the speedup of its fix, and what was estimated for it beforehand."""

    name: str
    measured: float
    estimated: float
    interval: tuple[float, float] | None


def score() -> Mapping[str, Any]:
    """What `profkit rules score` makes of the recorded pairs."""
    scored: Mapping[str, Any] = json.loads(printed("profkit rules score --format json"))
    return scored


def pairs_of(scored: Mapping[str, Any]) -> list[Pair]:
    """The pairs with a defect."""
    return [
        Pair(row["name"], row["achieved"], row["estimated"], _interval(row["range"]))
        for row in scored["pairs"]
        if row["category"] is not None and row["kind"] != "no_gain"
    ]


def _interval(ends: Sequence[float] | None) -> tuple[float, float] | None:
    return (ends[0], ends[1]) if ends else None


def accuracy_of(part: Mapping[str, Any]) -> Accuracy:
    """The figures of a set."""
    in_range = round(part["coverage"] * part["defects"])
    return Accuracy(part["defects"], part["top1"], part["top3"], part["factor"], in_range)


def unseen() -> Mapping[str, Accuracy]:
    """The sets that are not in this repository together, partial reports apart."""
    sets = json.loads(FILE.read_text(encoding="utf-8"))
    rows = {}
    for label, partial in (("from public code of others", False), (f"published, {PARTIAL}", True)):
        names = sorted(
            (name for name in sets if (PARTIAL in name) is partial),
            key=lambda name: not name.startswith(ALL_SETS),
        )
        for row in [accuracy_of(sets[name]) for name in names[:1]]:
            rows[f"{row.pairs} {label}"] = row
    return rows


def accuracy_table(own: Accuracy) -> str:
    """The table of the README."""
    sets = {
        **unseen(),
        f"{own.pairs} recorded pairs of this repository, used for tuning": own,
    }
    rows = [
        f"| {name} | {row.first:.0%} | {row.top_three:.0%} | {row.factor:.2f}x | {_in_range(row)} |"
        for name, row in sets.items()
    ]
    return "\n".join(
        [
            "| Kernels | True limit ranked first | In top three"
            " | Typical factor between estimate and measurement (1x = exact)"
            " | Range holds the measured speedup |",
            "|---|---|---|---|---|",
            *rows,
        ]
    )


def _in_range(row: Accuracy) -> str:
    """The share of all pairs, also of those without an estimate, and the counts behind it."""
    return f"{row.in_range / row.pairs:.0%} ({row.in_range} of {row.pairs})"


def _unseen_line() -> str:
    """The figures on kernels that the rules were not tuned for, for the foot of the picture."""
    rows = unseen().values()
    pairs = sum(row.pairs for row in rows)
    first = sum(row.first * row.pairs for row in rows) / pairs
    in_range = sum(row.in_range for row in rows) / pairs
    return (
        f"On {pairs} kernels from public code of others: true limit named first in {first:.0%};\n"
        f"range holds the measured speedup in {in_range:.0%}."
    )


def write_table(readme: Path, own: Accuracy) -> None:
    """Put the table between its marks."""
    text = readme.read_text(encoding="utf-8")
    new = _TABLE.sub(lambda mark: f"{mark[1]}{accuracy_table(own)}\n{mark[2]}", text)
    readme.write_text(new, encoding="utf-8")


def plot_proof(scored: Mapping[str, Any], path: Path) -> None:
    """Write the picture as SVG."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    report = f"reports/h200/pairs/{EXAMPLE}/before.ncu-repz"
    finding = json.loads(printed(f"profkit checklist {report} --format json"))["checklist"][0]
    with mpl.rc_context({"svg.hashsalt": _SEED}):
        figure = Figure(figsize=(9.6, 4.4), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
        _draw_finding(left, finding, next(p for p in pairs_of(scored) if p.name == EXAMPLE))
        _draw_pairs(right, pairs_of(scored), accuracy_of(scored["summary"]))
        figure.supxlabel(_unseen_line(), fontsize=10.5, color=_INK)
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def _draw_finding(axes: Any, finding: Mapping[str, Any], pair: Pair) -> None:
    """A finding's estimated speedup beside the measured one of its fix."""
    low, high = finding["range"]
    likely = finding["estimated_speedup"]
    place = finding["where"][0]
    axes.set_title("One of these pairs: a finding and its fix", fontsize=11, loc="left")
    axes.barh(0, likely, color=_ESTIMATE, height=0.5)
    axes.errorbar(likely, 0, xerr=[[likely - low], [high - likely]], color=_INK, capsize=5)
    axes.barh(1, pair.measured, color=_MEASURED, height=0.5)
    for row, value, words in (
        (0, high, f" {likely:.1f}x [{low:.1f}, {high:.1f}]"),
        (1, pair.measured, f" {pair.measured:.1f}x"),
    ):
        axes.text(value + 0.03, row, words, va="center", fontsize=11, color=_INK)
    axes.set_yticks([0, 1], ["estimated\nbefore the fix", "measured\nafter the fix"], fontsize=10)
    axes.set_xlim(0, 3.4)
    axes.set_ylim(2.95, -1.9)
    axes.set_xticks([])
    axes.text(
        0, -1.05, f"kernel {finding['kernel']}, line {place['file']}:{place['line']}:\n"
        f"{finding['rule'].replace('_', ' ')}, rank {finding['rank']}",
        fontsize=10, color=_INK, va="center",
    )  # fmt: skip
    axes.text(0, 2.2, "Fix: the tile's rows are padded by one word.", fontsize=10, color=_INK)
    axes.text(0, 2.65, "NVIDIA H200; 240 timed calls of each version.", fontsize=9, color=_GRAY)
    axes.spines[["top", "right", "bottom", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def _draw_pairs(axes: Any, pairs: Sequence[Pair], own: Accuracy) -> None:
    """Estimated over measured speedups of all pairs, on logarithmic axes."""
    ends = (0.9, 50)
    axes.plot(ends, ends, color=_GRAY, linewidth=1, zorder=1)
    for pair in pairs:
        if pair.interval:
            axes.plot([pair.measured] * 2, pair.interval, color=_ESTIMATE, alpha=0.3, linewidth=2)
        axes.plot(pair.measured, pair.estimated, "o", color=_ESTIMATE, markersize=4.5, zorder=3)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for scale in (axes.xaxis, axes.yaxis):
        scale.set_major_formatter(lambda value, _: f"{value:g}x")
        scale.set_ticks([1, 2, 5, 10, 20, 50])
        scale.set_minor_locator(_no_ticks())
    axes.set_xlim(ends)
    axes.set_ylim(ends)
    axes.set_xlabel("measured speedup of the fix", fontsize=10)
    axes.set_ylabel("estimated speedup", fontsize=10)
    axes.set_title(f"{own.pairs} recorded pairs, used for tuning", fontsize=11, loc="left")
    axes.text(
        1.0, 45, f"true limit named first: {own.first:.0%}\n"
        f"typical factor between\nestimate and measurement: {own.factor:.2f}x\n"
        f"range holds the measured\nspeedup: {_in_range(own)}",
        fontsize=9, color=_INK, va="top",
    )  # fmt: skip
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=9)


def _no_ticks() -> Any:
    from matplotlib.ticker import NullLocator

    return NullLocator()
