"""The rules' expressions: what they admit, what they refuse, and the logic of what is unknown."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from profkit.core.expression import parse

truths = arrays(np.float64, 4, elements=st.sampled_from([0.0, 1.0, np.nan]))
numbers = arrays(np.float64, 5, elements=st.floats(-1e12, 1e12) | st.just(np.nan))


def value(text: str, **columns: float) -> float:
    arrays = {name: np.array([number]) for name, number in columns.items()}
    return float(np.broadcast_to(parse(text)(arrays), 1)[0])


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a + 2 * b - a / b", 4.5),
        ("-a < b", 1.0),
        ("a > 1", 0.0),
        ("not a > 1 and b >= 2", 1.0),
        ("min(a, b, 0.5)", 0.5),
        ("clip(b, 0, 1.5)", 1.5),
        ("where(a == 1, b, 7)", 2.0),
        ("otherwise(missing, 3)", 3.0),
        ("known(missing) or known(a)", 1.0),
        ("a > 2 and missing > 1", 0.0),
        ("a < 2 or missing > 1", 1.0),
    ],
)
def test_values(text: str, wanted: float) -> None:
    assert value(text, a=1.0, b=2.0, missing=np.nan) == wanted


@pytest.mark.parametrize("text", ["missing > 1", "a + missing", "a < 2 and missing > 1", "a / 0"])
def test_what_is_not_known_is_not_guessed(text: str) -> None:
    assert np.isnan(value(text, a=1.0, missing=np.nan))


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').getcwd()",
        "().__class__.__bases__[0].__subclasses__()",
        "a.__class__",
        "a.b",
        "a[0]",
        "a ** 9 ** 9 ** 9",
        "9 ** 9",
        "1 << 99",
        "a % b",
        "a // b",
        "a @ b",
        "a & b",
        "[x for x in a]",
        "(lambda: 1)()",
        "a if b else c",
        "f'{a}'",
        "'text'",
        "b'text'",
        "1j",
        "True",
        "None",
        "...",
        "eval(a)",
        "open(a)",
        "getattr(a, b)",
        "min(a)",
        "min(*a)",
        "min(a, key=b)",
        "abs(a, b)",
        "a < b < c",
        "a is b",
        "a in b",
        "~a",
        "+a",
        "x := a",
        "(yield)",
        "await a",
        "a; b",
        "import os",
        "",
        "a +",
        "a\0b",
        "(" * 500 + "a" + ")" * 500,
        "-" * 900 + "a",
        "not " * 200 + "a",
        "a+" * 400 + "a",
        "a" * 2000,
        "max(" * 60 + "a" + ", 1)" * 60,
    ],
)
def test_an_attack_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"invalid expression|not allowed|too long|characters"):
        parse(text)


@given(truths, truths)
def test_logic_is_kleenes(a: np.ndarray, b: np.ndarray) -> None:
    columns = {"a": a, "b": b}
    both, either = parse("a and b")(columns), parse("a or b")(columns)
    np.testing.assert_array_equal(both, parse("not (not a or not b)")(columns))
    np.testing.assert_array_equal(either, parse("b or a")(columns))
    assert ((both == 0) == ((a == 0) | (b == 0))).all()
    assert ((either == 1) == ((a == 1) | (b == 1))).all()


@given(numbers, numbers)
def test_a_comparison_and_its_negation(a: np.ndarray, b: np.ndarray) -> None:
    columns = {"a": a, "b": b}
    np.testing.assert_array_equal(parse("a < b")(columns), parse("not a >= b")(columns))
    assert (np.isnan(parse("a < b")(columns)) == (np.isnan(a) | np.isnan(b))).all()


def test_evidence_is_the_comparisons() -> None:
    condition = parse("a > 0.5 and (b < 2 * c or known(d))")
    assert [(one.left.text, one.sign, one.right.text) for one in condition.comparisons] == [
        ("a", ">", "0.5"),
        ("b", "<", "2 * c"),
    ]


@pytest.mark.parametrize("text", ["min(a, b, 3) > max(a, b)", "clip(a, 0, b)"])
def test_an_expression_goes_from_process_to_process(text: str) -> None:
    columns = {"a": np.array([1.0, 5.0]), "b": np.array([4.0, 2.0])}
    expression = parse(text)
    again = pickle.loads(pickle.dumps(expression))
    assert again == expression
    np.testing.assert_array_equal(again(columns), expression(columns))
