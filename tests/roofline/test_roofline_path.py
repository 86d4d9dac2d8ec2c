"""Reports joined in one picture: by arrows, or by the path of a sweep over sizes."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import profkit
from profkit.analysis.run_files import variants_of
from profkit.roofline.plot import Joined, figure_of
from profkit.roofline.roofline import Roofline
from profkit.ui.text import number
from tests.conftest import H200, pair_report, sweep_folder
from tests.roofline.test_roofline import by_level, words

SIDES = ("before", "after")
MIXED = ("ffma_gemm", "stray_double")


def test_two_reports_are_joined_by_an_arrow_and_more_by_a_path() -> None:
    rooflines = [profkit.load(pair_report("loop_order", side)).roofline() for side in SIDES]
    arrows = figure_of(rooflines, title="x", labels=("a", "b"), joined=Joined.arrows).axes[0]
    ends = {
        (tuple(text.xyann), tuple(text.xy)) for text in arrows.texts if text.arrow_patch is not None
    }
    first, second = (by_level(one) for one in rooflines)
    assert ends == {
        ((first[level].intensity, first[level].rate), (second[level].intensity, second[level].rate))
        for level in ("dram", "l2", "l1")
    }
    three = figure_of(
        [*rooflines, rooflines[0]], title="x", labels=("a", "b", "c"), joined=Joined.path
    )
    stops = {text.get_text() for text in three.axes[0].texts if "stop:" in (text.get_gid() or "")}
    assert stops == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        *((pair_report(name, "before"), pair_report(name, "after")) for name in MIXED),
        (H200 / "ladder" / "serial_kv.ncu-rep", H200 / "ladder" / "tensor_core.ncu-rep"),
    ],
)
def test_an_arrow_leads_from_one_precision_to_another(before: Path, after: Path) -> None:
    rooflines = [profkit.load(side).roofline() for side in (before, after)]
    first, second = (by_level(one) for one in rooflines)
    assert first["dram"].precision != second["dram"].precision
    figure = figure_of(rooflines, title="x", labels=("a", "b"), joined=Joined.arrows)
    ends = [
        (tuple(text.xyann), tuple(text.xy))
        for text in figure.axes[0].texts
        if text.arrow_patch is not None
    ]
    assert sorted(ends) == sorted(
        ((first[level].intensity, first[level].rate), (second[level].intensity, second[level].rate))
        for level in ("dram", "l2", "l1")
    )
    assert "nothing is joined" not in words(figure)


def test_that_nothing_can_be_joined_is_said() -> None:
    rooflines = [profkit.load(pair_report("atomics_global", side)).roofline() for side in SIDES]
    figure = figure_of(rooflines, title="x", labels=("a", "b"), joined=Joined.arrows)
    assert not any(text.arrow_patch for text in figure.axes[0].texts)
    said = [text.get_text() for text in figure.texts]
    assert any("no connecting lines: no kernel has points" in line for line in said)


@cache
def sweep() -> tuple[tuple[str, Roofline, dict[str, Any]], ...]:
    """Each run's length, its roofline at DRAM, and its recorded statistics by variant."""
    found = []
    for path in sweep_folder().glob("*/*.ncu-rep*"):
        variants = variants_of(path)
        assert variants is not None
        saved = json.loads((path.parent / "latency.json").read_text(encoding="utf-8"))
        told = {series["label"]: series["statistics"] for series in saved["series"]}
        roofline_of = profkit.load(path).roofline(levels=["dram"])
        found.append((str(variants.shapes["length"]), roofline_of, told))
    return tuple(sorted(found, key=lambda one: int(one[0])))


def test_the_numbers_of_a_path_are_the_recorded_medians_with_their_intervals() -> None:
    figure = figure_of_sweep()
    shown = [text.get_text() for text in figure.texts if text.get_gid() == "latency:words"]
    for length, _, told in sweep():
        row = shown[shown.index(length) + 1 :][: len(told)]
        assert len(row) == len(told) == 4
        for words_of, statistics in zip(row, told.values(), strict=True):
            assert number(statistics["median"], "s") in words_of
            interval = statistics["interval"]
            ends = [float(end) for end in re.findall(r"[\d.]+", words_of.partition("[")[2])]
            assert ends == pytest.approx(
                [interval[end] * 1e6 for end in ("low", "high")] if interval else [], rel=1e-3
            )


def figure_of_sweep() -> Any:
    """The figure of the path over the lengths."""
    figure = figure_of(
        [one for _, one, _ in sweep()],
        title="sweep",
        labels=[f"length={length}" for length, _, _ in sweep()],
        joined=Joined.path,
    )
    figure.canvas.draw()
    return figure


def test_the_numbers_of_a_path_stand_under_it_and_the_notes_say_no_more() -> None:
    figure = figure_of_sweep()
    cells = [text for text in figure.texts if text.get_gid() == "latency:words"]
    shown = [text.get_text() for text in cells]
    assert len(shown) == 5 + 6 * 5
    assert shown.count("12.58 µs [12.45, 12.67]") == 1
    assert sum("[" in text for text in shown) == 16
    assert "8.155 ms" in shown
    boxes = [text.get_window_extent() for text in cells]
    for at, box in enumerate(boxes):
        assert box.x0 >= 0
        assert box.x1 <= figure.bbox.x1
        assert not any(box.shrunk(1, 0.7).overlaps(other.shrunk(1, 0.7)) for other in boxes[:at])
    said = words(figure)
    assert "brackets and whiskers: 95% interval" in said
    assert "8 of 24 latencies have no confidence interval" in said


@pytest.mark.parametrize(
    ("levels", "unnamed"), [(("dram",), set()), (("dram", "l2", "l1"), {"256", "512", "1024"})]
)
def test_each_stop_of_a_sweep_is_named_over_no_point_or_counted(
    levels: tuple[str, ...], unnamed: set[str]
) -> None:
    runs = sorted(sweep_folder().glob("*/*.ncu-rep*"))
    lengths = [variants.shapes["length"] for variants in map(variants_of, runs) if variants]
    assert len(lengths) == len(runs)
    figure = figure_of(
        [profkit.load(run).roofline(levels=levels) for run in runs],
        title="sweep",
        labels=[f"length={length}" for length in lengths],
        joined=Joined.path,
    )
    figure.canvas.draw()
    axes = figure.axes[0]
    named = [text for text in axes.texts if (text.get_gid() or "").startswith("stop:")]
    stops = {"128", "256", "512", "1024", "2048", "4096"}
    assert {text.get_text() for text in named} == stops - unnamed
    assert ("3 points unnamed" in words(figure)) == bool(unnamed)
    boxes = [text.get_window_extent().shrunk(0.9, 0.7) for text in named]
    points = [
        axes.transData.transform(item.get_offsets()[0])
        for item in axes.collections
        if (item.get_gid() or "").startswith(("point:", "algorithmic:"))
    ]
    for at, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[at + 1 :])
        assert not any(box.contains(*point) for point in points)
    assert any("numbers beside points: length" in text.get_text() for text in figure.texts)
