"""docs/reference/methods/ladder.svg: latencies of rungs and SDPA, bars on a logarithmic axis."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kernels.attention.ladder import RUNGS
from kernels.ladder_page import BACKENDS, DEFAULT, shape_words
from profkit.timing.latency_format import Series
from profkit.ui.text import number

_INK, _RUNG, _BACKEND, _LINE = "#1b1b1b", "#7fabd6", "#c9c9c9", "#b26a00"
_TICKS = (1, 2, 5)
_SEED = "profkit"  # of the identifiers in the picture, so that it is the same every time


def plot_ladder(timed: Mapping[str, Series], path: Path) -> None:
    """Write the picture as SVG."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    bars = {f"{rung.number}. {rung.name}": timed[rung.name] for rung in RUNGS}
    bars |= {f"SDPA, {name.replace(DEFAULT, 'default')}": timed[name] for name in BACKENDS}
    with mpl.rc_context({"svg.hashsalt": _SEED}):
        figure = Figure(figsize=(8.4, 4.4), layout="constrained")
        axes = figure.subplots()
        for row, one in enumerate(bars.values()):
            _draw(axes, row, one, _RUNG if row < len(RUNGS) else _BACKEND)
        default = timed[DEFAULT].summary.median * 1e6
        axes.axvline(default, color=_LINE, linewidth=1, linestyle="--", zorder=3)
        axes.set_yticks(range(len(bars)), list(bars), fontsize=9)
        axes.set_ylim(len(bars) - 0.4, -0.6)
        _scale(axes, [one.summary.median * 1e6 for one in bars.values()])
        axes.set_title(f"{shape_words(timed[DEFAULT])}, {_gpu(timed)}", fontsize=10)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def _draw(axes: Any, row: int, one: Series, color: str) -> None:
    median, interval = one.summary.median * 1e6, one.summary.interval
    axes.barh(row, median, color=color, height=0.62, zorder=2)
    if interval is not None:
        ends = [[median - interval.low * 1e6], [interval.high * 1e6 - median]]
        axes.errorbar(median, row, xerr=ends, color=_INK, linewidth=1, capsize=3, zorder=4)
    axes.annotate(
        number(one.summary.median, "s"), (median, row), xytext=(5, 0), textcoords="offset points",
        va="center", fontsize=9, color=_INK, zorder=5,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.9},
    )  # fmt: skip


def _scale(axes: Any, medians: list[float]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.set_xscale("log")
    axes.set_xlim(0.6 * min(medians), 1.6 * max(medians))
    axes.xaxis.set_major_locator(LogLocator(subs=_TICKS))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_xlabel(
        "µs on a logarithmic axis, with the median's interval; the line: SDPA's default"
    )


def _gpu(timed: Mapping[str, Series]) -> str:
    return str(timed[DEFAULT].latency.gpu.name)
