"""What the parts of a roofline's picture share: sizes in inches and points, colors, axes, and room
for labels: moved apart by as little as it takes, or put where nothing is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple

# At 100 mm wide the smallest letters are still 5 points high.
WIDTH, LEFT, RIGHT, LINE = 5.6, 0.48, 1.74, 0.13
TEXT, SMALL, TINY = 8.5, 7.8, 7.2
INK, SOFT, FAINT, GRID = "#1b1b1b", "#5a5a5a", "#c4c4c4", "#efefef"
COLORS = {"dram": "#0072b2", "l2": "#00805e", "l1": "#a34e86"}

Box = tuple[float, float, float, float]
"""Left, bottom, right, top."""


def draw_quietly(axes: Any, size: float, grid: Literal["both", "y"]) -> None:
    """Axes whose lines and letters (points) stay behind what is drawn on them."""
    axes.tick_params(labelsize=size, color=FAINT, labelcolor=INK, length=3)
    axes.tick_params(which="minor", color=FAINT, length=1.5)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.grid(which="major", axis=grid, color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)


def scale(axis: Any, steps: tuple[float, ...], text: Callable[[float], str]) -> None:
    """Ticks of a logarithmic axis at `steps` of each decade, with their texts."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(base=10, subs=steps, numticks=20))
    axis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))
    axis.set_minor_formatter(NullFormatter())


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


def whisker(
    axes: Any, x: float, ends: tuple[float, float], behind: float, *, seen: bool, front: float,
    gid: str,
) -> None:  # fmt: skip
    """An interval as a line; with ends, and in `front`, where its marker doesn't hide them."""
    axes.plot(
        (x, x), ends, color=INK, linewidth=0.9, zorder=front if seen else behind,
        marker="_" if seen else "", markersize=4, gid=gid,
    )  # fmt: skip


class Room:
    """A picture's plane, with what takes room on it: boxes, and lines that rise or are level."""

    def __init__(self, width: float, height: float) -> None:
        self._width, self._height = width, height
        self._boxes: list[Box] = []
        self._lines: list[tuple[float, float, float, float]] = []

    def take(self, box: Box) -> None:
        self._boxes.append(box)

    def draw(self, begin: float, end: float, low: float, slope: float) -> None:
        """A line from `begin` to `end` across, which begins at the height `low`."""
        self._lines.append((begin, end, low, slope))

    def is_free(self, box: Box) -> bool:
        """Whether nothing is there, and it is inside the plane."""
        left, bottom, right, top = box
        inside = left >= 0 and right <= self._width and bottom >= 0 and top <= self._height
        return (
            inside
            and not any(_overlap(box, other) for other in self._boxes)
            and not any(_crosses(box, *line) for line in self._lines)
        )

    def place(self, boxes: Iterable[Box]) -> int | None:
        """Take the first box that is free and return its index; None where none is."""
        for index, box in enumerate(boxes):
            if self.is_free(box):
                self.take(box)
                return index
        return None


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _crosses(box: Box, begin: float, end: float, low: float, slope: float) -> bool:
    left, right = max(box[0], begin), min(box[2], end)
    if left >= right:
        return False
    return low + (left - begin) * slope < box[3] and low + (right - begin) * slope > box[1]


class _Pool(NamedTuple):
    """Labels that touch; `wish` is the mean of where its middle would be by each one's wish."""

    members: list[int]
    wish: float
    size: float

    def start(self, low: float, high: float) -> float:
        """Where it begins, inside the room where there is enough."""
        if self.size > high - low:
            return (low + high - self.size) / 2
        return min(max(self.wish - self.size / 2, low), high - self.size)

    def then(self, other: _Pool) -> _Pool:
        """This one with another behind it."""
        count, size = len(self.members), self.size + other.size
        start = (self.wish - self.size / 2) * count
        start += (other.wish - other.size / 2 - self.size) * len(other.members)
        members = self.members + other.members
        return _Pool(members, start / len(members) + size / 2, size)


def spread(wanted: Sequence[float], sizes: Sequence[float], low: float, high: float) -> list[float]:
    """Centers for labels of `sizes` on a line, between `low` and `high`, none over another.

    Each stays as near to where it is `wanted` as the others let it, in the order of the wishes
    (least sum of squares, by pooling neighbors that would overlap). Labels that together are
    larger than the room are packed from its middle and stick out at both ends.
    """
    pools: list[_Pool] = []
    for index in sorted(range(len(wanted)), key=wanted.__getitem__):
        pool = _Pool([index], wanted[index], sizes[index])
        while pools and pools[-1].start(low, high) + pools[-1].size > pool.start(low, high):
            pool = pools.pop().then(pool)
        pools.append(pool)
    centers = [0.0] * len(wanted)
    for pool in pools:
        edge = pool.start(low, high)
        for index in pool.members:
            centers[index] = edge + sizes[index] / 2
            edge += sizes[index]
    return centers
