"""Edits of CUDA source that switches of kernels make."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profkit.recompilation import source_edits as edits
from profkit.recompilation.kernel_switches import build_of, offers_for_source, offers_for_triton

PAIRS = Path(__file__).parent.parent.parent / "kernels" / "pairs"


@pytest.mark.parametrize(
    ("edit", "before", "after"),
    [
        (
            edits.without_aliases,
            "__global__ void __launch_bounds__(kA * kB) f(const float* x, int n, float *y) {}",
            "__global__ void __launch_bounds__(kA * kB) f(const float* __restrict__ x, int n,"
            " float * __restrict__ y) {}",
        ),
        (edits.unrolled(4), "#pragma unroll 1\nfor (;;) f();", "#pragma unroll 4\nfor (;;) f();"),
        (
            edits.unrolled(2),
            "for (int i = 0; i < n; ++i) { for (int j = 0; j < n; ++j) f(j); }",
            "for (int i = 0; i < n; ++i) { \n#pragma unroll 2\nfor (int j = 0; j < n; ++j) f(j); }",
        ),
        (edits.bounded(0), "__launch_bounds__(kThreads, 8)", "__launch_bounds__(kThreads)"),
        (edits.bounded(3), "__launch_bounds__(f(a, b))", "__launch_bounds__(f(a, b), 3)"),
        (edits.padded, "__shared__ float t[2][kT][kT];", "__shared__ float t[2][kT][(kT) + 1];"),
        (edits.padded, "constexpr int kPitch = 32;", "constexpr int kPitch = (32) + 1;"),
        (edits.contracted, "__fadd_rn(__fmul_rn(a, f(b, c)), d)", "((((a) * (f(b, c)))) + (d))"),
        (edits.in_float, "x * 0.5 + 1.f - v2.0x", "x * 0.5f + 1.f - v2.0x"),
        (edits.cached, "__ldcg(p) + __ldg(q)", "__ldca(p) + __ldg(q)"),
        (edits.with_constant("kA", 7), "#define kA 4\n", "#define kA 7\n"),
        (edits.with_constant("kA", 7), "constexpr int kAB = 4;", "constexpr int kAB = 4;"),
    ],
)
def test_an_edit_changes_what_it_says(edit: edits.Edit, before: str, after: str) -> None:
    assert " ".join(edit(before).split()) == " ".join(after.split())


@pytest.mark.parametrize(
    ("pair", "switch"),
    [
        ("loads_in_flight", "restrict"),
        ("no_unrolling", "unroll-16"),
        ("winograd_register_cap", "blocks-per-sm-0"),
        ("batched_cholesky_capped", "blocks-per-sm-6"),
        ("bone_matrices_padding", "padded-rows"),
        ("transpose_conflicts", "padded-rows"),
        ("stray_double", "float-literals"),
        ("seismic_gain_double", "float-literals"),
    ],
)
def test_switches_make_the_recorded_fix(pair: str, switch: str) -> None:
    before, after = ((PAIRS / pair / f"{side}.cu").read_text() for side in ("before", "after"))
    build, _ = build_of([switch])
    assert code(build.edit(before)) == code(after)


def code(text: str) -> str:
    """Source without comments, spaces and the parentheses of a name."""
    bare = re.sub(r"\s+", "", re.sub(r"//[^\n]*", "", text))
    return re.sub(r"\(([A-Za-z]\w*)\)(?=\+1[\];])", r"\1", bare)


def test_offered_are_the_switches_that_change_the_source() -> None:
    names = {
        offer.name for offer in offers_for_source(["constexpr int kTile = 4; double x = 1.0;"])
    }
    assert {"float-literals", "kTile-2", "kTile-8", "kTile-16", "fast-math"} <= names
    assert names.isdisjoint({"restrict", "padded-rows", "unroll-4", "blocks-per-sm-2"})
    assert not [*offers_for_source([])]


def test_triton_gets_other_values_of_its_constants() -> None:
    names = {offer.name for offer in offers_for_triton({"num_warps": 4, "block": 64})}
    assert names == {
        "num_warps-1",
        "num_warps-2",
        "num_warps-8",
        "num_warps-16",
        "block-32",
        "block-128",
    }


@given(st.text(max_size=200))
def test_any_text_can_be_edited(text: str) -> None:
    for offer in offers_for_source([text]):
        build, _ = build_of([offer.name])
        assert isinstance(build.edit(text), str)
