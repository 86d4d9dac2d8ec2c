"""Kernel names where room is short."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.report.quantities import evaluate
from profkit.report.summary import Group, groups, summarize
from profkit.ui.names import told_apart
from tests.conftest import h200
from tests.report.test_quantities import raw


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


def test_names_that_differ_only_in_namespaces_keep_them() -> None:
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


def group(*names: str) -> tuple[Group, ...]:
    """The groups of a report of launches with these demangled names, all of function `Kernel`."""
    report = raw((9, 0), gpu__time_duration__dot__sum=1e-3)
    (launch,) = summarize(report, evaluate(report)).launches
    launches = [
        replace(launch, launch=replace(launch.launch, name=name, function="Kernel"))
        for name in names
    ]
    return groups(launches)


CUTLASS = (
    "void cutlass::Kernel<cutlass_80_tensorop_f16_s16816gemm_f16_128x128_32x4_nn_align8>(Params)",
    "void cutlass::Kernel<cutlass_80_tensorop_f16_s16816gemm_f16_256x128_32x3_nn_align8>(Params)",
)


def test_kernels_of_one_function_show_what_differs() -> None:
    names = [one.short_name(40) for one in group(*CUTLASS)]
    assert len(set(names)) == 2
    assert all("Kernel" in name and len(name) <= 40 for name in names)
    assert "128x128" in names[0]
    assert "256x128" in names[1]


def test_a_kernel_that_became_another_of_its_function_shows_what_differs() -> None:
    sides = [group(name)[0] for name in CUTLASS]
    assert {one.short_name(40) for one in sides} == {"Kernel"}
    assert len({one.short_name(40, sides) for one in sides}) == 2
