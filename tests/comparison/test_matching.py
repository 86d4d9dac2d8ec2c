"""Which kernel of one report is which of another's."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profkit.comparison.matching import Basis, Matching, Mode, match, plain
from profkit.report.summary import Group, groups
from tests.conftest import h200

KERNELS = [
    "void sort<float>(float *)",
    "void sort<int>(int *)",
    "reduce_rows(float *)",
    "reduce_columns(float *)",
    "copy_tiles(char *)",
    "ns::copy<4>(char *)",
    "(anonymous namespace)::scan(int *)",
]


def groups_of(
    names: Sequence[str], grids: Sequence[int] = (), ranges: Sequence[tuple[str, ...]] = ()
) -> tuple[Group, ...]:
    """A launch for each name, in order, with these grids and inside these NVTX ranges."""
    known = h200("known").summary.launches[0]
    launches = [
        dataclasses.replace(
            known,
            launch=dataclasses.replace(
                known.launch, index=at, name=name, nvtx=ranges[at] if ranges else ()
            ),
            values={**known.values, "grid_x": float(grids[at] if grids else 1)},
        )
        for at, name in enumerate(names)
    ]
    return groups(launches)


def told(found: Matching) -> dict[str, tuple[str, Basis]]:
    return {one.before.name: (one.after.name, one.basis) for one in found.pairs}


def test_equal_names_with_other_grids_and_what_is_gone_and_new() -> None:
    found = match(
        groups_of(["a(int)", "b(int)", "gone(int)"], [1, 2, 3]),
        groups_of(["b(int)", "a(int)", "quite_new(float)"], [2, 7, 3]),
    )
    assert told(found) == {"a(int)": ("a(int)", Basis.shape), "b(int)": ("b(int)", Basis.same)}
    assert [group.name for group in found.removed] == ["gone(int)"]
    assert [group.name for group in found.added] == ["quite_new(float)"]


def test_several_shapes_of_a_name_match_by_shape_before_order() -> None:
    found = match(groups_of(["a", "a", "a"], [1, 2, 3]), groups_of(["a", "a", "a"], [3, 9, 1]))
    pairs = {one.before.grid[0]: (one.after.grid[0], one.basis) for one in found.pairs}
    assert pairs == {1: (1, Basis.same), 3: (3, Basis.same), 2: (9, Basis.shape)}


def test_other_template_arguments_and_renames_are_marked() -> None:
    found = match(
        groups_of(["void gemm<64, 64>(float *)", "softmax_rows(float *)", "tail()"]),
        groups_of(["void gemm<128, 64>(float *)", "softmax_rows_fused(float *)", "tail()"]),
    )
    assert told(found)["void gemm<64, 64>(float *)"][1] is Basis.function
    assert told(found)["softmax_rows(float *)"] == ("softmax_rows_fused(float *)", Basis.renamed)
    (renamed,) = (one for one in found.pairs if one.basis is Basis.renamed)
    assert not renamed.certain
    assert renamed.likeness == pytest.approx(2 / 3)


def test_only_kernels_of_both_are_one_whatever_their_names() -> None:
    found = match(groups_of(["flash_fwd"]), groups_of(["cudnn_sdpa"]))
    assert told(found) == {"flash_fwd": ("cudnn_sdpa", Basis.only)}
    assert not match(groups_of(["flash_fwd"]), groups_of(["cudnn_sdpa"]), Mode.name).pairs


def test_by_order_and_by_range() -> None:
    before = groups_of(["a", "b"], ranges=[("step", "load"), ("step", "sum")])
    after = groups_of(["x", "y"], ranges=[("step", "sum"), ("step", "load")])
    assert told(match(before, after, Mode.order)) == {
        "a": ("x", Basis.order), "b": ("y", Basis.order)
    }  # fmt: skip
    assert told(match(before, after, Mode.nvtx)) == {"a": ("y", Basis.nvtx), "b": ("x", Basis.nvtx)}


def test_outside_of_any_range_shapes_match_before_the_order() -> None:
    before, after = groups_of(["a", "a"], [1, 2]), groups_of(["a", "a"], [2, 1])
    found = match(before, after, Mode.nvtx)
    assert [(one.before.grid[0], one.after.grid[0]) for one in found.pairs] == [(1, 1), (2, 2)]
    assert {one.basis for one in found.pairs} == {Basis.same}


def test_names_from_a_file_come_first() -> None:
    found = match(
        groups_of(["void old<1>(int)", "new(int)"]),
        groups_of(["new(int)", "other(int)"]),
        names={"old": "other"},
    )
    assert told(found)["void old<1>(int)"] == ("other(int)", Basis.asked)
    assert told(found)["new(int)"] == ("new(int)", Basis.same)


def test_plain_names() -> None:
    assert plain("void at::native::(anonymous namespace)::sum<float, at::K<3>>(float *, int)") == (
        "at::native::sum"
    )
    assert plain("julia__5_6739") == "julia__5_6739"


@given(
    st.lists(st.sampled_from(KERNELS), min_size=1, max_size=8),
    st.lists(st.sampled_from(KERNELS), min_size=1, max_size=8),
    st.sampled_from(Mode),
)
def test_everything_is_matched_once_or_left(one: list[str], other: list[str], mode: Mode) -> None:
    before, after = groups_of(one), groups_of(other)
    found = match(before, after, mode)
    assert sorted(map(id, [*(pair.before for pair in found.pairs), *found.removed])) == sorted(
        map(id, before)
    )
    assert sorted(map(id, [*(pair.after for pair in found.pairs), *found.added])) == sorted(
        map(id, after)
    )


@given(st.lists(st.sampled_from(KERNELS), min_size=1, max_size=8, unique=True))
def test_a_report_matches_itself(names: list[str]) -> None:
    before, after = groups_of(names), groups_of(names)
    found = match(before, after)
    assert [(one.before.name, one.after.name) for one in found.pairs] == [
        (group.name, group.name) for group in before
    ]
    assert {one.basis for one in found.pairs} == {Basis.same}


def test_one_kernel_left_on_each_side_is_a_pair_where_work_allows() -> None:
    before, after = groups_of(["a", "quick_sort"]), groups_of(["a", "merge"])
    renamed = match(before, after, does_same_work=lambda _, __: True)
    assert told(renamed) == {"a": ("a", Basis.same), "quick_sort": ("merge", Basis.left)}
    assert not renamed.pairs[1].certain
    apart = match(before, after, does_same_work=lambda _, __: False)
    assert ([one.name for one in apart.removed], [one.name for one in apart.added]) == (
        ["quick_sort"], ["merge"]
    )  # fmt: skip
    more = groups_of(["a", "merge", "fill"])
    assert len(match(before, more, does_same_work=lambda _, __: True).pairs) == 1
    by_name = match(before, after, Mode.name, does_same_work=lambda _, __: True)
    assert len(by_name.pairs) == 1
