"""Numbers and names as people read them."""

from __future__ import annotations

import math
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profkit.ui.text import (
    bar,
    compact,
    count,
    extent,
    factor_span,
    literal,
    measured_factor,
    number,
    percent,
    plural,
    quantity_text,
    shorten,
    supported_digits,
)


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (69.408e-6, "s", "69.41 µs"),
        (2.176e-6, "s", "2.176 µs"),
        (12.4548078, "s", "12.45 s"),
        (0.0, "s", "0 ns"),
        (59_763_968.0, "B", "59.76 MB"),
        (4.811e12, "B/s", "4.811 TB/s"),
        (17_179_869_184.0, "FLOP", "17.18 GFLOP"),
        (999_960.0, "B", "1.000 MB"),
        (1.98e9, "Hz", "1.980 GHz"),
        (0.384, "1", "38.4%"),
        (0.0001, "1", "<0.1%"),
        (0.0, "1", "0.0%"),
        (1.159, "1", "115.9%"),
        (math.nan, "B", "n/a"),
        (3.9296, "cycle", "3.930 cycles"),
        (1_234_567.0, "wavefront", "1,234,567 wavefronts"),
    ],
)
def test_numbers_carry_their_unit(value: float, unit: str, shown: str) -> None:
    assert number(value, unit) == shown


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        (1.0, 1.004, "below 1.01x"),
        (1.0, 1.9, "1.0 to 1.9x"),
        (1.052, 1.054, "1.05x"),
        (1.0, 73.0, "1.0 to 73x"),
        (1.05, 7.8, "1.0 to 7.8x"),
        (1.1, 7.84, "1.1 to 7.8x"),
        (1.049, 1.13, "1.04 to 1.13x"),
    ],
)
def test_a_span_says_what_its_digits_can(low: float, high: float, shown: str) -> None:
    assert factor_span(low, high) == shown


@pytest.mark.parametrize(("value", "shown"), [(3.3, "3.30x"), (11.06, "11.1x"), (0.98, "0.980x")])
def test_ends_of_a_measured_range_have_as_many_digits(value: float, shown: str) -> None:
    assert measured_factor(value) == shown


@given(st.floats(1e-9, 1e17))
def test_a_scaled_number_reads_back(value: float) -> None:
    scales = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
    text, unit = number(value, "B").split(" ")
    read = float(text.replace(",", "")) * scales[unit.removesuffix("B")]
    assert read == pytest.approx(value, rel=5.1e-4, abs=5.1e-7)


def test_counts_are_exact_or_compact() -> None:
    assert count(5_308_624) == "5,308,624"
    assert compact(5_308_624) == "5.309 M"
    assert compact(999_999) == "999,999"
    assert compact(1_672_661_506_796) == "1.673 T"
    assert compact(math.nan) == "n/a"


@given(st.text(max_size=80), st.integers(2, 60))
def test_a_shortened_name_keeps_both_ends(text: str, width: int) -> None:
    short = shorten(text, width)
    assert len(short) <= width
    if len(text) > width:
        head, _, tail = short.partition("…")
        assert text.startswith(head)
        assert text.endswith(tail) or "…" in text
    else:
        assert short == text


@given(st.text())
def test_literal_text_holds_nothing_that_acts(text: str) -> None:
    shown = literal(text)
    hidden = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
    assert not any(unicodedata.category(character) in hidden for character in shown)
    assert literal(shown) == shown


@given(st.floats(0, 1), st.integers(1, 40))
def test_a_bar_is_never_longer_than_its_cells(share: float, width: int) -> None:
    assert len(bar(share, width)) <= width
    assert len(bar(1.5, width)) == width
    assert bar(math.nan, width) == ""


def test_shared_memory_is_in_kib_and_traffic_in_kb() -> None:
    assert quantity_text("shared_static", 4224, "B") == "4.125 KiB"
    assert quantity_text("l1_bytes", 4224, "B") == "4.224 kB"


def test_small_words() -> None:
    assert percent(math.nan) == "n/a"
    assert extent((4, 32, 8)) == "4×32×8"
    assert extent((1024, 1, 1)) == "1024"
    assert extent(()) == "n/a"
    assert plural(1, "launch") == "1 launch"
    assert plural(2, "launch") == "2 launches"
    assert plural(1200, "quantity") == "1,200 quantities"


@pytest.mark.parametrize(
    ("value", "digits", "shown"),
    [(534.5e-6, 2, "530 µs"), (1.0384e-3, 3, "1.04 ms"), (999.6e-6, 3, "1.00 ms")],
)
def test_a_number_in_fewer_digits(value: float, digits: int, shown: str) -> None:
    assert number(value, "s", digits) == shown


@pytest.mark.parametrize(
    ("half", "digits"), [(0.2, 2), (0.03, 3), (0.002, 4), (0.0001, 4), (None, 2)]
)
def test_a_value_has_the_digits_that_its_interval_supports(half: float | None, digits: int) -> None:
    ends = (None, None) if half is None else (1 - half, 1 + half)
    assert supported_digits(1.0, *ends) == digits
