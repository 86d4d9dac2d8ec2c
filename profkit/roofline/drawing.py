"""What the parts of a roofline's picture share: sizes in inches and points, colors, axes, and
labels that are moved apart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

# At 100 mm wide the smallest letters are still 5 points high.
WIDTH, LEFT, RIGHT, LINE = 5.6, 0.48, 1.74, 0.13
TEXT, SMALL, TINY = 8.5, 7.8, 7.2
INK, SOFT, FAINT, GRID = "#1b1b1b", "#5a5a5a", "#c4c4c4", "#efefef"
COLORS = {"dram": "#0072b2", "l2": "#00805e", "l1": "#a34e86"}


def lead(axes: Any, across: float, up: float, label: float, color: str = FAINT) -> None:
    """A line from a place in the axes to the height of its label in the right margin."""
    axes.plot(
        (across, 1.0, 1.035), (up, up, label), transform=axes.transAxes, color=color,
        linewidth=0.6, zorder=1.5, clip_on=False,
    )  # fmt: skip


def beside(axes: Any, text: str, up: float, lift: float = 0.0, **style: Any) -> None:
    """A text in the right margin, `lift` points above the height `up`."""
    axes.annotate(
        text, (1.045, up), (0, lift), xycoords="axes fraction", textcoords="offset points",
        annotation_clip=False, parse_math=False, **style,
    )  # fmt: skip


def spread(wanted: Sequence[float], size: float, low: float, high: float) -> list[float]:
    """Centers for labels of one `size` on a line, between `low` and `high`, none over another.

    They keep the order of the places where they are `wanted`, and each is as far above its own as
    others push it up, and as far below as they push it down. Labels that together are larger than
    the room stick out at its lower end.
    """
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    places = [wanted[index] for index in order]
    up, down = _pushed(places, size, low), _mirrored(places, size, high)
    middle = [(above + below) / 2 for above, below in zip(up, down, strict=True)]
    centers = _mirrored(_pushed(middle, size, low), size, high)
    return [center for _, center in sorted(zip(order, centers, strict=True))]


def _pushed(places: Sequence[float], size: float, low: float) -> list[float]:
    """Ascending places, each at least a size above the last, the first half of one above `low`."""
    steps = accumulate(places, lambda last, place: max(last + size, place), initial=low - size / 2)
    return list(steps)[1:]


def _mirrored(places: Sequence[float], size: float, high: float) -> list[float]:
    """The same from above."""
    return [-place for place in _pushed([-place for place in reversed(places)], size, -high)][::-1]
