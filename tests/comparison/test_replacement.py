"""Kernels that others replace: one change, in the headline of the whole."""

from __future__ import annotations

import json
import math
import re

import pytest

from profkit.comparison.result import Comparisons, Judged
from profkit.comparison.text import replaced, summary
from profkit.comparison.view import diff_text
from tests.comparing import Made, compared, work


def test_a_replaced_kernel_is_one_change_and_the_headline_is_of_the_whole() -> None:
    """22 ms that became 292 µs beside an unchanged warm-up of 411 µs: 22000 / 292 = 75.3."""
    warm_up = Made("warm_up_kernel", [411e-6], work(0.01))
    found = compared(
        [warm_up, Made("matmul_naive", [22e-3], work(1))],
        [warm_up, Made("ampere_sgemm_128x64_nn", [292e-6], work(3))],
    )
    assert summary(found) == (
        "1 kernel matched, 1 replaced   22.00 ms → 292.0 µs (ncu)   75.3x faster   "
        "1 SAME, times exclude warm-up (411.0 µs → 411.0 µs)"
    )
    shown = diff_text(Comparisons([Judged("both", found, ())], 3, False, False), "terminal")
    assert re.search(r"matmul_naive +ampere_sgemm_128x64_nn +22.00 ms → 292.0 µs .* 75.3x", shown)
    assert "Removed kernels" not in shown
    (row,) = json.loads(
        diff_text(Comparisons([Judged("both", found, ())], 3, False, False), "json")
    )["comparisons"][0]["replaced"]
    assert row["speedup"] == pytest.approx(22e-3 / 292e-6)


def test_kernels_in_the_place_of_others_are_one_change() -> None:
    """Two kernels of 3 and 5 ms between the same two became one of 2 ms: 8 / 2 = 4x; one that was
    added elsewhere is none of it."""
    first, last = Made("load", [1e-3], work(1)), Made("store", [1e-3], work(2))
    eager = [Made("exp_part", [3e-3], work(5)), Made("divide", [5e-3], work(7))]
    fused = Made("softmax_online", [2e-3], work(30))
    found = compared(
        [first, *eager, last], [first, fused, last, Made("checksum", [7e-3], work(90))]
    )
    (change,) = found.replaced
    assert [group.name for group in change.removed] == ["exp_part", "divide"]
    assert [group.name for group in change.added] == ["softmax_online"]
    assert change.speedup == pytest.approx(4)
    assert found.total.whole == pytest.approx((1 + 3 + 5 + 1) / (1 + 2 + 1))
    assert "1 added (7.000 ms)" in summary(found)


def test_a_replacement_that_is_launched_more_often_has_no_speedup() -> None:
    same = Made("axpy", [1e-4])
    found = compared(
        [same, Made("matmul_naive", [22e-3], work(1))],
        [same, Made("ampere_sgemm_128x64_nn", [1e-3] * 10, work(3))],
    )
    assert math.isnan(found.total.whole)
    assert "x faster" not in summary(found)
    assert "1 → 10 launches" in replaced(found.replaced[0])[3]
