"""Reports joined in one picture by arrows."""

from __future__ import annotations

from pathlib import Path

import pytest

import profkit
from profkit.roofline.plot import figure_of
from tests.conftest import H200, pair_report
from tests.roofline.test_roofline import by_level, words

SIDES = ("before", "after")
MIXED = ("ffma_gemm", "stray_double")


def test_two_reports_are_joined_by_an_arrow() -> None:
    rooflines = [profkit.load(pair_report("loop_order", side)).roofline() for side in SIDES]
    arrows = figure_of(rooflines, title="x", labels=("a", "b"), arrows=True).axes[0]
    ends = {
        (tuple(text.xyann), tuple(text.xy)) for text in arrows.texts if text.arrow_patch is not None
    }
    first, second = (by_level(one) for one in rooflines)
    assert ends == {
        ((first[level].intensity, first[level].rate), (second[level].intensity, second[level].rate))
        for level in ("dram", "l2", "l1")
    }


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
    figure = figure_of(rooflines, title="x", labels=("a", "b"), arrows=True)
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
    figure = figure_of(rooflines, title="x", labels=("a", "b"), arrows=True)
    assert not any(text.arrow_patch for text in figure.axes[0].texts)
    said = [text.get_text() for text in figure.texts]
    assert any("no connecting lines: no kernel has points" in line for line in said)
