"""Results against references: complex numbers, several precisions, types without a bound."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
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


KINDS = [np.asarray, torch.tensor]


@pytest.mark.parametrize("kind", KINDS)
def test_results_of_a_mapping_are_compared_by_key(kind: Callable[[Any], Any]) -> None:
    one, two = kind([1.0]), kind([2.0])
    right = {"a": one, "b": {"c": two, 3: one}}
    other_order = {"b": {3: one, "c": two}, "a": one}
    assert judge_result("f", other_order, right).status is Status.passed
    exchanged = {"b": {"c": one, 3: two}, "a": one}
    assert judge_result("f", exchanged, right).status is Status.failed
    other_key = judge_result("f", {"a": one, "c": two}, {"a": one, "b": two})
    assert other_key.reason == "keys 'a', 'c', the reference has 'a', 'b'"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool"])
def test_whole_numbers_must_be_equal(kind: Callable[[Any], Any], dtype: str) -> None:
    values = np.array([0, 1, 2**60 + 1]).astype(dtype)
    wrong = values.copy()
    wrong[-1] ^= True
    right = kind(values)
    assert judge_result("f", kind(values), right).status is Status.passed
    verdict = judge_result("f", kind(wrong), right)
    assert verdict.status is Status.failed
    assert verdict.evidence == "1 of 3 whole numbers differ"


@pytest.mark.parametrize("kind", [np.asarray, partial(torch.tensor, dtype=torch.float64)])
@pytest.mark.parametrize("size", [5e-324, 1e-200, 1e200, 1e307])
def test_the_error_is_relative_at_any_size(kind: Callable[[Any], Any], size: float) -> None:
    right = kind([size, -size, size])
    assert judge_result("f", right, right).error == 0
    assert judge_result("f", kind([size, size, size]), right).status is Status.failed
    error = judge_result("f", kind([0.0, -size, size]), right).error
    assert error == pytest.approx(3**-0.5)
