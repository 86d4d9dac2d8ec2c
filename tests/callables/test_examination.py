"""Results against references: complex numbers, several precisions, types without a bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from profkit.callables.examination import agreement, judge_result
from profkit.capture.correctness import Status
from profkit.core.errors import UsageError

torch = pytest.importorskip("torch", reason="tensors need torch")


@pytest.mark.parametrize("kind", [np.asarray, torch.tensor])
def test_the_imaginary_part_counts(kind: Callable[[Any], Any]) -> None:
    right, wrong = kind([1 + 2j, 3 + 4j]), kind([1 - 20j, 3 + 400j])
    assert judge_result("fft", right, right).status is Status.passed
    assert judge_result("fft", wrong, right).status is Status.failed


def test_a_result_of_more_precision_agrees_with_one_of_less() -> None:
    exact = np.linspace(0.1, 1, 100, dtype=np.float32)
    for pair in ((exact, exact.astype(np.float16)), (exact.astype(np.float16), exact)):
        verdict = agreement("f", *pair)
        assert verdict
        assert verdict.status is Status.passed


def test_what_rounds_in_no_known_way_is_not_judged() -> None:
    small = torch.ones(4).to(torch.float8_e4m3fn)
    with pytest.raises(UsageError, match="float8_e4m3fn can't be checked"):
        judge_result("f", small, torch.ones(4))
