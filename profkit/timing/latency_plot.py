"""Plots of latencies: every sample, their density, the median and its interval; and badges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from profkit.timing.latency_format import LatencyFile, Series
from profkit.timing.latency_view import change, latency_words
from profkit.timing.results import Verdict
from profkit.ui.badge import badge_svg
from profkit.ui.picture import DPI, check_picture
from profkit.ui.text import literal, shorten

_ROW_HEIGHT, _LEAST_HEIGHT, _WIDTH = 0.95, 2.4, 9.0
_SPREAD = 0.16  # chosen: the samples' band, half inside the violin (0.35)
_INK, _SAMPLE, _VIOLIN = "#1b1b1b", "#2a6fbb", "#cfe0f2"
# Chosen: samples over 6 interquartile ranges above the median are off scale; medians that differ by
# a factor of 2.5 get axes of their own.
_FAR, _SEPARATE_AXES = 6.0, 2.5
_LONGEST_LABEL = 28  # chosen: fits the left margin of a 9-inch figure
_SCALES = ((1.0, "s", 0.1), (1e3, "ms", 1e-3), (1e6, "µs", 0.0))
_BADGE = {
    Verdict.IMPROVED: "#2e7d32",
    Verdict.REGRESSED: "#c62828",
    Verdict.SAME: "#546e7a",
    Verdict.INCONCLUSIVE: "#b26a00",
    Verdict.INVALID: "#6a1b9a",
}


def plot_latencies(report: LatencyFile, path: Path) -> None:
    """Write a plot as .png, .svg or .pdf; raises UsageError for another kind of file.

    Samples beyond the end of the axis are counted there.
    """
    check_picture(path)
    from matplotlib.figure import Figure

    medians = [timed.summary.median for timed in report.series]
    groups = [report.series]  # on one axis, but where it would hide the others' spread
    if max(medians) >= _SEPARATE_AXES * min(medians):
        groups = [(timed,) for timed in report.series]
    height = max(_LEAST_HEIGHT, 1.0 + _ROW_HEIGHT * len(report.series) + 0.3 * len(groups))
    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    ratios = [len(group) for group in groups]
    rows = figure.subplots(len(groups), squeeze=False, gridspec_kw={"height_ratios": ratios})
    for (axes,), group in zip(rows, groups, strict=True):
        _panel(axes, group)
    rows[0][0].set_title(_title(report), loc="left", fontsize=10)
    label = rows[-1][0].get_xlabel()
    rows[-1][0].set_xlabel(f"{label}; one dot per sample, time runs downward")
    figure.savefig(path, dpi=DPI)


def _panel(axes: Any, group: tuple[Series, ...]) -> None:
    largest = max(timed.summary.median for timed in group)
    scale, unit = next((step for step in _SCALES if largest >= step[2]), _SCALES[-1])[:2]
    low, high = _limits(group)
    for row, timed in enumerate(group):
        _draw(axes, row, timed, scale, (low, high))
    labels = [
        shorten(literal(timed.label), _LONGEST_LABEL).replace("$", r"\$")
        + f"\n{latency_words(timed)}"
        for timed in group
    ]
    axes.set_xlim(low * scale, high * scale)
    axes.set_ylim(len(group) - 0.4, -0.6)
    axes.set_yticks(range(len(group)), labels, fontsize=9)
    axes.set_xlabel(f"latency per call ({unit})")
    axes.ticklabel_format(axis="x", useOffset=False)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="#e5e5e5", linewidth=0.6)
    axes.set_axisbelow(True)


def badge(report: LatencyFile) -> str:
    """A small SVG with the verdicts, or the latencies where nothing was compared."""
    if report.pairs:
        pairs = report.pairs
        worst = max((pair.comparison.verdict for pair in pairs), key=list(_BADGE).index)
        words = ", ".join(f"{pair.b.label} {change(pair.comparison)}" for pair in pairs)
        return badge_svg(worst.name, words, _BADGE[worst])
    words = "; ".join(f"{timed.label} {latency_words(timed)}" for timed in report.series)
    return badge_svg("latency", words, _BADGE[Verdict.SAME])


def _draw(axes: Any, row: int, timed: Series, scale: float, limits: tuple[float, float]) -> None:
    samples = np.array(timed.latency.samples)
    inside = samples[(samples >= limits[0]) & (samples <= limits[1])]
    if inside.size > 1 and inside.min() < inside.max():
        violin = axes.violinplot(
            [inside * scale], positions=[row], orientation="horizontal", widths=0.7,
            showextrema=False,
        )  # fmt: skip
        for body in violin["bodies"]:
            body.set(facecolor=_VIOLIN, edgecolor="none", alpha=1)
    order = np.linspace(-_SPREAD, _SPREAD, inside.size)
    axes.scatter(inside * scale, row + order, s=7, color=_SAMPLE, alpha=0.55, linewidths=0)
    summary, interval = timed.summary, timed.interval
    if interval is not None:
        ends = [interval.low * scale, interval.high * scale]
        style = ":" if interval.level is None else "-"
        axes.plot(ends, [row + 0.3] * 2, color=_INK, linewidth=2.2, linestyle=style, marker="|")
    axes.plot(summary.median * scale, row + 0.3, marker="o", color=_INK, markersize=4)
    outside = samples.size - inside.size
    if outside:
        axes.annotate(
            f"{outside} off scale, up to {samples.max() * scale:.4g}",
            (limits[1] * scale, row - 0.42), ha="right", va="center", fontsize=8, color="#8a1c1c",
        )  # fmt: skip


def _title(report: LatencyFile) -> str:
    first = report.series[0].latency
    cache = f"{first.cache} L2" if first.cache and first.timer != "wall" else ""
    parts = [report.title, first.gpu.name or "", cache]
    lines = [literal(", ".join(filter(None, parts)))]
    lines += [
        literal(f"{pair.a.label} → {pair.b.label}: {change(pair.comparison)} "
                f"{pair.comparison.verdict.name}")
        for pair in report.pairs
    ]  # fmt: skip
    return "\n".join(lines)


def _limits(group: tuple[Series, ...]) -> tuple[float, float]:
    """From the fastest sample to the slowest that is not far beyond its series' own spread."""
    lows, highs = [], []
    for timed in group:
        samples = np.array(timed.latency.samples)
        middle = np.median(samples)
        spread = np.quantile(samples, 0.75) - np.quantile(samples, 0.25) or 0.01 * middle
        lows.append(samples.min())
        highs.append(samples[samples <= middle + _FAR * spread].max())
    pad = 0.06 * (max(highs) - min(lows)) or 0.05 * max(highs)
    return max(0.0, float(min(lows) - pad)), float(max(highs) + pad)
