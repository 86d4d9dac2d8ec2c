"""A baseline's drawings as SVG: the same numbers give the same bytes."""

import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from profkit.core.grouping import grouped
from profkit.study.summary_format import GAPS, Row, Scaling
from profkit.ui.text import literal, number

_COLORS = (
    "#0072b2", "#d55e00", "#00805e", "#a34e86", "#8a6d00", "#3b3b98", "#56a0c9", "#7a7a7a",
    "#c23b22",
)  # fmt: skip
_MARKERS = "osD^vPX<>"
_NO_LEVEL = {"widened", GAPS}
_LETTER = 0.065  # inches per character of a legend at 8 points, DejaVu Sans
_GRAY, _GRID = "#8c8c8c", "#e5e5e5"
_PANEL, _HEIGHT, _ACROSS = 4.3, 3.2, 2
_DETERMINISTIC: Any = {
    "svg.hashsalt": "profkit", "svg.fonttype": "none", "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"], "font.size": 9,
}  # fmt: skip


class _Plot(Struct, frozen=True):
    """What a drawing has on its axes: the fields of cells on the y axis, times `scale`, with the
    ends of its interval if any, and on the x axis; `more` adds to a panel.

    It is drawn where a cell has the fields that it `needs`, by default the one on the y axis.
    """

    label: str
    y: str
    scale: float
    low: str = ""
    high: str = ""
    log: bool = True
    more: Callable[[Any, Sequence[Row]], Any] = lambda *_: None
    x: str = "length"
    x_label: str = "sequence length S"
    needs: tuple[str, ...] = ()

    def value(self, row: Row, name: str) -> float | None:
        """A field of a cell on the y axis."""
        value = getattr(row, name) if name else None
        return None if value is None else value * self.scale

    def point(self, row: Row) -> tuple[Any, Any]:
        """Where a cell is; either may be missing."""
        return getattr(row, self.x), self.value(row, self.y)

    def has(self, row: Row) -> bool:
        """Whether a cell has what the drawing needs."""
        return all(getattr(row, name) is not None for name in self.needs or (self.y,))


def drawings(rows: Sequence[Row], scaling: Sequence[Scaling]) -> dict[str, str]:
    """The SVGs that the cells have numbers for, by name: latency, peak, bandwidth, roofline;
    none of a target without sequence lengths."""
    timed = [row for row in rows if row.is_timed]
    if not timed or any(row.length is None for row in timed):
        return {}
    scale, unit = _time_scale(timed)
    plots = {
        "latency.svg": _Plot(f"latency ({unit})", "seconds", scale, "low", "high"),
        "peak.svg": _Plot(
            "% of the dense datasheet peak", "share_of_datasheet", 100, log=False,
            more=lambda axes, _: axes.set_ylim(bottom=0),
        ),
        "bandwidth.svg": _Plot(
            "compulsory traffic / latency (GB/s)", "bandwidth", 1e-9, more=_dram_line
        ),
        "roofline.svg": _Plot(
            "TFLOP/s", "flop_rate", 1e-12, "flop_rate_low", "flop_rate_high", more=_roofs,
            x="intensity", x_label="FLOP per byte of compulsory traffic",
            needs=("dram_peak", "datasheet_peak"),
        ),
    }  # fmt: skip
    drawn = {name: plot for name, plot in plots.items() if any(map(plot.has, timed))}
    return {name: _panels(timed, scaling, plot) for name, plot in drawn.items()}


def _time_scale(rows: Sequence[Row]) -> tuple[float, str]:
    largest = max(row.seconds or 0.0 for row in rows)
    if largest >= 1:
        return 1.0, "s"
    return (1e3, "ms") if largest >= 1e-3 else (1e6, "µs")


def _facet(row: Row) -> tuple[Any, ...]:
    """The sizes and options that the cells of one panel share."""
    ratio = (row.heads or 1) // (row.kv_heads or 1)
    return (row.dtype, row.dim, row.causal, ratio, row.backward)


def _facet_title(facet: tuple[Any, ...]) -> str:
    dtype, dim, causal, ratio, backward = facet
    parts = [literal(str(dtype or "")), f"d {dim}" if dim else "", "causal" if causal else ""]
    parts += [f"{ratio} Q heads per KV head" if ratio != 1 else ""]
    parts += ["backward" if backward else ""]
    return ", ".join(filter(None, parts))


def _panels(rows: Sequence[Row], scaling: Sequence[Scaling], plot: _Plot) -> str:
    """A panel for each kind of cell: points with intervals, neighbors in length joined."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    facets = grouped((_facet(row), row) for row in rows)
    wide = min(_ACROSS, len(facets))
    high = -(-len(facets) // wide)
    width = _PANEL * wide if wide > 1 else 6.2
    backends = list(dict.fromkeys(row.backend for row in rows))
    with rc_context(_DETERMINISTIC):
        figure = Figure(figsize=(width, _HEIGHT * high + 0.5), layout="constrained")
        grid = figure.subplots(high, wide, squeeze=False)
        for axes, (facet, cells) in zip(grid.flat, facets.items(), strict=False):
            _panel(axes, cells, scaling, plot, backends)
            plot.more(axes, cells)
            axes.set_title(_facet_title(facet).replace("$", r"\$"), loc="left", fontsize=9)
            axes.set_xlabel(plot.x_label)
            axes.set_ylabel(plot.label)
        for axes in list(grid.flat)[len(facets) :]:
            axes.set_visible(False)
        handles = {
            label: handle
            for axes in grid.flat
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", fontsize=8,
                      ncols=_columns(list(handles), width), frameon=False)  # fmt: skip
        return _svg(figure)


def _columns(labels: Sequence[str], width: float) -> int:
    """How many columns of a legend fit in `width` inches."""
    longest = max((len(label) for label in labels), default=1)
    return max(1, min(len(labels), int(width / (_LETTER * (longest + 6)))))


def _panel(
    axes: Any, rows: Sequence[Row], scaling: Sequence[Scaling], plot: _Plot, backends: Sequence[str]
) -> None:
    from matplotlib.ticker import LogLocator

    steps = list(_steps(scaling, {row.id: row for row in rows}))
    kinds = {row.batch == other.batch for row, other in steps}
    for row, other in steps:
        points = [plot.point(end) for end in (row, other)]
        if all(x and y for x, y in points):
            aside = len(kinds) > 1 and row.batch != other.batch
            color = _COLORS[backends.index(row.backend) % len(_COLORS)]
            axes.plot(*zip(*points, strict=True), color=color, linestyle=":" if aside else "-",
                      linewidth=1.1, alpha=0.75, zorder=2)  # fmt: skip
    for place, backend in enumerate(backends):
        color, marker = _COLORS[place % len(_COLORS)], _MARKERS[place % len(_MARKERS)]
        own = [row for row in rows if row.backend == backend and all(plot.point(row))]
        size = max(4.0, 8.0 - place)  # those behind others are larger
        for refused in (False, True):
            points = [plot.point(row) for row in own if bool(row.refused) == refused]
            if points:
                name = literal(backend) + (", no interval" if refused else "")
                axes.plot(*zip(*points, strict=True), marker, color=color, markersize=size,
                          zorder=3, linestyle="none", label=name.replace("$", r"\$"),
                          markerfacecolor="white" if refused else color)  # fmt: skip
        for row in own:
            ends = (plot.value(row, plot.low), plot.value(row, plot.high))
            if None not in ends:
                style = ":" if row.claim in _NO_LEVEL else "-"
                axes.plot([plot.point(row)[0]] * 2, ends, color=color, linewidth=1.6,
                          linestyle=style, marker="_", markersize=6, zorder=4)  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(LogLocator(base=2, numticks=8))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    if plot.log:
        axes.set_yscale("log", subs=[])
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.grid(color=_GRID, linewidth=0.6, which="major")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _steps(scaling: Sequence[Scaling], by_id: dict[str, Row]) -> Iterator[tuple[Row, Row]]:
    """Neighbours in length."""
    for step in scaling:
        if step.along.startswith("length") and step.before in by_id and step.after in by_id:
            yield by_id[step.before], by_id[step.after]


def _dram_line(axes: Any, rows: Sequence[Row]) -> None:
    peak = next((row.dram_peak for row in rows if row.dram_peak), None)
    if peak:
        axes.axhline(peak / 1e9, color=_GRAY, linestyle="--", linewidth=1,
                     label=f"DRAM peak {number(peak, 'B/s')}")  # fmt: skip


def _roofs(axes: Any, rows: Sequence[Row]) -> None:
    """DRAM's slope and the dense peaks, over the intensities of the cells and a bit beyond."""
    row = next((row for row in rows if row.dram_peak and row.datasheet_peak), None)
    intensities = [row.intensity for row in rows if row.intensity]
    if row is None or not row.dram_peak or not row.datasheet_peak or not intensities:
        return
    ridge = row.datasheet_peak / row.dram_peak
    left, right = min([*intensities, ridge]) / 2, max([*intensities, ridge]) * 2
    axes.plot([left, ridge], [left * row.dram_peak / 1e12, row.datasheet_peak / 1e12],
              color=_GRAY, linewidth=1.3, label=f"DRAM {number(row.dram_peak, 'B/s')}")  # fmt: skip
    axes.plot([ridge, right], [row.datasheet_peak / 1e12] * 2, color="#3b3b3b", linewidth=1.3,
              label=f"dense datasheet peak {number(row.datasheet_peak, 'FLOP/s')}")  # fmt: skip
    held = [row.held_peak for row in rows if row.held_peak]
    if held:
        source = "NVML" if any(row.clock_is_read for row in rows) else "measured SM"
        axes.axhspan(min(held) / 1e12, max(held) / 1e12, color="#d55e00", alpha=0.25,
                     label=f"dense peak at {source} clocks")  # fmt: skip
    axes.set_xlim(left, right)


def _svg(figure: Any) -> str:
    """The SVG without a date or a creator."""
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"
