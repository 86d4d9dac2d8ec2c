"""Numbers as they were printed: how much rounding may have hidden, and what a file may be."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profkit.audit.printed_numbers import (
    Commented,
    Figure,
    Printed,
    as_printed,
    read_printed,
)
from profkit.core.errors import BadInput


@pytest.mark.parametrize(
    ("text", "half"),
    [
        ("0.3210", 0.00005),
        ("0.321", 0.0005),
        ("53516", 0.5),
        ("300", 0.5),
        ("17000", 50),
        ("1,555", 0.5),
        ("17.2e9", 0.05e9),
        ("30", 0.5),
        ("100", 0.5),
        ("1000", 5),
        ("5e-6", 0.5e-6),
    ],
)
def test_half_a_unit_of_the_last_digit_that_counts(text: str, half: float) -> None:
    assert Printed(1.0, text).half == pytest.approx(half)


@given(st.floats(1e-12, 1e18), st.integers(3, 9))
def test_a_rounded_number_holds_what_it_was_rounded_from(value: float, digits: int) -> None:
    for shown in (f"{value:#.{digits}g}".rstrip("."), f"{value:.{digits - 1}e}"):
        figure = as_printed(shown)
        assert figure is not None
        assert abs(figure.value - value) <= figure.half * (1 + 1e-9) + 4 * math.ulp(value)


def test_yaml_keeps_digits_and_comments(tmp_path: Path) -> None:
    path = tmp_path / "claims.yaml"
    path.write_text("study:   # NVIDIA L4\n  a: 0.3210  # not this\n  b: [1e5, '7', yes, null]\n")
    read = read_printed(path)
    assert isinstance(read, Commented)
    assert read.comments == {"study": "NVIDIA L4"}
    study = read.items["study"]
    assert isinstance(study, Commented)
    assert study.comments == {}
    assert study.items["a"] == Printed(0.321, "0.3210")
    assert study.items["b"] == [Printed(1e5, "1e5"), "7", True, None]


def test_json_keeps_digits(tmp_path: Path) -> None:
    path = tmp_path / "claims.json"
    path.write_text('{"a": 0.3210, "b": [1e5, "7"]}')
    document = read_printed(path)
    assert isinstance(document, Commented)
    assert document.items == {
        "a": Printed(0.321, "0.3210"),
        "b": [Printed(1e5, "1e5"), "7"],
    }


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("a.json", '{"a": NaN}', "NaN"),
        ("a.json", "{", "not JSON"),
        ("a.yaml", "a: [1, 2", "not YAML"),
        ("a.yaml", "a: " + "[" * 200 + "]" * 200, "too deep"),
        ("a.yaml", "a: &a [1]\nb: *c\n", "not YAML"),
        ("a.yaml", "x: &x {y: *x}\n", "undefined alias"),
        ("a.yaml", "{[1]: 2}", "key"),
        ("a.yaml", "a: 1e999", "finite"),
        ("a.md", "Claims:\nkernel: 34 TFLOP/s: fast", "a YAML list, sentences in quotes"),
    ],
)
def test_what_is_refused(tmp_path: Path, name: str, text: str, what: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(BadInput, match=what):
        read_printed(path)


def test_aliases_can_not_blow_up(tmp_path: Path) -> None:
    path = tmp_path / "laughs.yaml"
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    path.write_text("\n".join(lines))
    with pytest.raises(BadInput, match="too large"):
        read_printed(path)


def test_no_file_and_no_text(tmp_path: Path) -> None:
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    for path, why in (
        (tmp_path, "a directory, not a file"),
        (tmp_path / "none.yaml", "can't be read \\(No such file"),
        (tmp_path / "bytes.yaml", "not UTF-8 text"),
    ):
        with pytest.raises(BadInput, match=why):
            read_printed(path)


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_a_figure_is_positive(value: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        Figure(value)
