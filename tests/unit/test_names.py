"""Kernel names where room is short."""

from __future__ import annotations

import pytest

from profkit.render.names import told_apart
from tests.conftest import h200


@pytest.mark.parametrize("report", ["sdpa_s512_math", "known"])
@pytest.mark.parametrize("width", [12, 17, 24, 38, 70, 120])
def test_kernels_that_differ_look_different(report: str, width: int) -> None:
    names = {group.name for group in h200(report).summary.groups}
    shown = told_apart(names, width)
    assert set(shown) == names
    assert len(set(shown.values())) == len(names)
    assert all(len(text) <= width for text in shown.values())
    assert not any(text.startswith("void ") for text in shown.values())


def test_what_fits_is_left_as_it_is() -> None:
    names = ["at::copy(int)", "void copy(int)", "serial_kv"]
    assert list(told_apart(names, 20).values()) == ["at::copy(int)", "copy(int)", "serial_kv"]


def test_what_only_namespaces_tell_apart_keeps_them() -> None:
    names = [f"void {space}::a_kernel_with_a_long_name(int)" for space in ("one", "two", "three")]
    shown = told_apart(names, 25)
    assert len(set(shown.values())) == 3
    assert all(len(text) <= 25 for text in shown.values())


def test_names_part_where_they_part() -> None:
    names = [
        f"void at::map<(int){n}, Functor<{kind}>, Array>(int, T2, T3, T4, T5)"
        for n, kind in ((4, "float"), (4, "half"), (8, "float"))
    ]
    shown = told_apart(names, 30)
    assert list(shown.values()) == [
        "map<(int)4…float>, Array>(int…",
        "map<(int)4…half>, Array>(int,…",
        "map<(int)8, Functor<…, T4, T5)",
    ]
