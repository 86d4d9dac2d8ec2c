"""What the parts of a roofline's picture have in common: sizes in inches and points, colours."""

from __future__ import annotations

from typing import Any, Literal

# At 100 mm wide the smallest letters are still 5 points high.
WIDTH, LEFT, RIGHT, LINE = 5.6, 0.48, 1.74, 0.13
TEXT, SMALL, TINY = 8.5, 7.8, 7.2
INK, SOFT, FAINT, GRID = "#1b1b1b", "#5a5a5a", "#c4c4c4", "#efefef"
COLOURS = {"dram": "#0072b2", "l2": "#00805e", "l1": "#a34e86"}


def draw_quietly(axes: Any, size: float, grid: Literal["both", "y"]) -> None:
    """Axes whose lines and letters (points) stay behind what is drawn on them."""
    axes.tick_params(labelsize=size, color=FAINT, labelcolor=INK, length=3)
    axes.tick_params(which="minor", color=FAINT, length=1.5)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.grid(which="major", axis=grid, color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
