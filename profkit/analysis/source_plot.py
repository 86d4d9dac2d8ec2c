"""Plot of a kernel's PM samples over time, with prologue and tail shaded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from profkit.report.phases import KernelTimeline, Track
from profkit.ui.picture import DPI, check_picture
from profkit.ui.text import literal, number, percent, shorten

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH, _SHARES_HEIGHT, _OTHER_HEIGHT = 9.0, 3.4, 0.9
_LONGEST_NAME = 80  # characters, chosen: fits the width of the figure at the title's font size
_INK, _QUIET, _SHADE = "#1b1b1b", "#6b6b6b", "#ececec"
_COLORS = {
    "tensor_busy": "#0072b2",
    "fma_busy": "#56b4e9",
    "fp64_busy": "#999999",
    "issue_busy": "#1b1b1b",
    "l1_busy": "#009e73",
    "l2_busy": "#e69f00",
    "dram_busy": "#d55e00",
    "sm_active": "#cc79a7",
}
_IDLE_BELOW = 0.01  # share of the peak, chosen: less can't be seen above the axis
_SCALE, _UNIT = 1e6, "µs"


def timeline_figure(timeline: KernelTimeline, name: str = "") -> Figure:
    """Shares of peak on one axis, other quantities below it; prologue and tail are shaded.

    A value is plotted over its interval. Tracks always below 1% are only listed in the legend.
    """
    from matplotlib.figure import Figure

    shares = [track for track in timeline.tracks if track.unit == "1"]
    others = [
        track for track in timeline.tracks if track.unit != "1" and np.nanmax(track.values) > 0
    ]
    ratios = [_SHARES_HEIGHT, *[_OTHER_HEIGHT] * len(others)]
    figure = Figure(figsize=(_WIDTH, sum(ratios) + 0.8), layout="constrained")
    rows = figure.subplots(
        len(ratios), squeeze=False, sharex=True, gridspec_kw={"height_ratios": ratios}
    )
    all_axes = [axes for (axes,) in rows]
    _shares(all_axes[0], timeline, shares)
    for axes, track in zip(all_axes[1:], others, strict=True):
        _steps(axes, timeline, track, _INK)
        axes.set_ylabel(track.label, rotation=0, ha="right", va="center", fontsize=8)
        axes.set_ylim(bottom=0)
    for axes in all_axes:
        _shade(axes, timeline)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xlim(0, timeline.end * _SCALE)
    all_axes[0].set_title(_title(timeline, name), loc="left", fontsize=9)
    all_axes[-1].set_xlabel(f"time since kernel start ({_UNIT})")
    return figure


def plot_timeline(timeline: KernelTimeline, path: Path, name: str = "") -> None:
    """Write the figure as .png, .svg or .pdf; raises UsageError for another kind of file."""
    check_picture(path)
    timeline_figure(timeline, name).savefig(path, dpi=DPI)


def _shares(axes: Any, timeline: KernelTimeline, tracks: list[Track]) -> None:
    for track in tracks:
        idle = not np.nanmax(track.values) >= _IDLE_BELOW
        drives = track.name == timeline.driver
        label = f"{track.label} (below {_IDLE_BELOW:.0%})" if idle else track.label
        _steps(
            axes, timeline, track, _COLORS[track.name],
            label=f"{label} *" if drives else label, linewidth=2.0 if drives else 1.1,
            linestyle="--" if track.name == "sm_active" else "-", visible=not idle,
        )  # fmt: skip
    if timeline.driver:
        half = timeline.steady[timeline.driver] / 2
        axes.axhline(
            half, color=_QUIET, linewidth=0.8, linestyle=":", label="half of the steady rate of *"
        )
    axes.set_ylim(0, 1.02)
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.set_ylabel("share of peak")
    axes.legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _steps(axes: Any, timeline: KernelTimeline, track: Track, color: str, **style: Any) -> None:
    edges = np.append(track.times, min(track.times[-1] + timeline.period, timeline.end))
    axes.stairs(track.values, edges * _SCALE, baseline=None, color=color, **style)


def _shade(axes: Any, timeline: KernelTimeline) -> None:
    for phase in timeline.phases:
        if phase.name != "steady":
            ends = phase.start * _SCALE, phase.end * _SCALE
            axes.axvspan(*ends, color=_SHADE, zorder=0, linewidth=0, gid=phase.name)


def _title(timeline: KernelTimeline, name: str) -> str:
    lines = [shorten(literal(name), _LONGEST_NAME).replace("$", r"\$")] if name else []
    if timeline.phases:
        parts = (f"{phase.name} {percent(timeline.share(phase.name))}" for phase in timeline.phases)
        below = percent(timeline.below_half)
        lines.append(
            f"{', '.join(parts)}; * below half of its steady rate in {below} of the samples"
        )
    else:
        lines += [note for note in timeline.notes if note.startswith("no phases")]
    lines.append(f"sampled every {number(timeline.period, 's')}; shaded: prologue and tail")
    return "\n".join(lines)
