"""The catalog's arithmetic: what it admits, and its laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from profkit.report.formula import parse

numbers = arrays(np.float64, 5, elements=st.floats(-1e12, 1e12) | st.just(np.nan))


def test_names_may_hold_dots() -> None:
    formula = parse("dram__bytes_read.sum + 2 * dram__bytes_write.sum")
    assert formula.names == ("dram__bytes_read.sum", "dram__bytes_write.sum")
    assert not formula.is_plain
    columns = {
        "dram__bytes_read.sum": np.array([1.0, 2.0]),
        "dram__bytes_write.sum": np.array([10.0, 20.0]),
    }
    assert formula(columns).tolist() == [21.0, 42.0]
    assert parse("gpu__time_duration.sum").is_plain


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').getcwd()",
        "a.b()",
        "f(a)",
        "only_if(a, c=b)",
        "a if b else c",
        "[a]",
        "a ** b",
        "lambda: a",
        "'text'",
        "a < b",
        "(a).b[0]",
        "a +",
        "",
        "x := a",
    ],
)
def test_nothing_but_arithmetic_is_admitted(text: str) -> None:
    with pytest.raises(ValueError, match=r"(invalid expression|not allowed)"):
        parse(text)


@given(numbers, numbers)
def test_missing_propagates_and_nothing_is_infinite(a: np.ndarray, b: np.ndarray) -> None:
    for text in ("a + b", "a - b", "a * b", "a / b", "only_if(a, b)"):
        value = parse(text)({"a": a, "b": b})
        assert not np.isinf(value).any()
        assert np.isnan(value[np.isnan(a) | np.isnan(b)]).all()


@given(numbers, numbers)
def test_what_has_no_base_is_undefined(a: np.ndarray, b: np.ndarray) -> None:
    columns = {"a": a, "b": b}
    assert np.isnan(parse("a / b")(columns)[b == 0]).all()
    assert np.isnan(parse("only_if(a, b)")(columns)[b == 0]).all()
    kept = ~np.isnan(a) & ~np.isnan(b) & (b != 0)
    assert (parse("only_if(a, b)")(columns)[kept] == a[kept]).all()


@given(numbers)
def test_an_idle_unit_did_no_work(a: np.ndarray) -> None:
    value = parse("idle(a)")({"a": a})
    assert (value[a == 0] == 0).all()
    assert np.isnan(value[a != 0]).all()


def test_an_excess_need_not_be_known_where_nothing_was_counted() -> None:
    columns = {"a": np.array([0.0, 5.0, 5.0, np.nan]), "b": np.array([np.nan, 2.0, 9.0, 1.0])}
    value = parse("net_of(a, b)")(columns)
    assert value[:3].tolist() == [0.0, 3.0, 0.0]
    assert np.isnan(value[3])


def test_a_small_part_may_be_left_out() -> None:
    columns = {"a": np.array([0.9, 1.1, 0.0, np.nan]), "b": np.array([100.0, 100.0, 0.0, 1.0])}
    value = parse("negligible(a, b)")(columns)
    assert value[0] == 0
    assert np.isnan(value[1:]).all()
