"""Laws of the roofline, and of the room that its labels take."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profkit.core.errors import UsageError
from profkit.report.quantities import evaluate
from profkit.report.summary import summarize
from profkit.roofline.plot import rate_words, spread
from profkit.roofline.roofline import Point, Roofline, known_names, roofline
from profkit.roofline.roofs import Peaks, Roof, attainable
from profkit.roofline.tracks import steps
from profkit.ui.names import own_names
from tests.report.test_quantities import raw

rates = st.floats(1e6, 1e18)
intensities = st.floats(1e-6, 1e9)


def roof(rate: float, *, is_memory: bool = False) -> Roof:
    key = "dram" if is_memory else "fp32"
    return Roof(key, key, rate, Peaks.held, is_memory, verified=True)


@given(rates, rates, intensities)
def test_attainable_is_the_lower_of_both_roofs(top: float, line: float, at: float) -> None:
    bound, limit = attainable(roof(top), roof(line, is_memory=True), at)
    assert bound <= top
    assert bound <= at * line
    assert bound in {top, at * line}
    ridge = top / line
    if abs(at / ridge - 1) > 1e-9:
        assert limit == ("dram" if at < ridge else "fp32")


@given(rates, rates, intensities, st.floats(1.0, 1e3))
def test_more_intensity_or_higher_roofs_never_attain_less(
    top: float, line: float, at: float, factor: float
) -> None:
    bound, _ = attainable(roof(top), roof(line, is_memory=True), at)
    assert attainable(roof(top), roof(line, is_memory=True), at * factor)[0] >= bound
    both, _ = attainable(roof(top * factor), roof(line * factor, is_memory=True), at)
    assert both == pytest.approx(bound * factor)


def test_an_unknown_roof_bounds_nothing() -> None:
    unknown = roof(math.nan, is_memory=True)
    assert attainable(roof(5.0), unknown, 1.0) == (5.0, "fp32")
    assert math.isnan(attainable(roof(math.nan), unknown, 1.0)[0])


@given(st.lists(st.floats(-1, 2), min_size=1, max_size=12), st.floats(0.01, 0.08))
def test_labels_are_spread_inside_without_overlap_in_their_order(
    wanted: list[float], size: float
) -> None:
    centers = spread(wanted, size, 0.0, 1.0)
    ordered = sorted(centers)
    assert ordered[0] >= size / 2 - 1e-9
    assert ordered[-1] <= 1 - size / 2 + 1e-9
    assert all(b - a >= size - 1e-9 for a, b in itertools.pairwise(ordered))
    pairs = sorted(zip(wanted, centers, strict=True))
    assert all(a[1] <= b[1] + 1e-9 or a[0] == b[0] for a, b in itertools.pairwise(pairs))


def test_a_label_that_is_alone_stays_where_it_is_wanted() -> None:
    assert spread([0.3, 0.7], 0.1, 0, 1) == pytest.approx([0.3, 0.7])
    assert spread([0.5, 0.5], 0.1, 0, 1) == pytest.approx([0.45, 0.55])


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("fma_bound(float *, int)", "fma_bound"),
        ("void ns::flash_fwd<ns::Traits<(int)64, (bool)1>>(ns::Params)", "flash_fwd"),
        ("void (anonymous namespace)::softmax<float>(float*)", "softmax"),
        ("cudnn_generated_fort_native_sdpa", "cudnn_generated_fort_native_sdpa"),
    ],
)
def test_a_kernels_own_name(name: str, own: str) -> None:
    assert own_names([name]) == {name: own}


def test_names_that_differ_only_in_templates_stay_whole() -> None:
    names = ["void f<int>(int)", "void f<float>(float)"]
    assert own_names(names) == {name: name for name in names}


@pytest.mark.parametrize(
    ("rate", "words"),
    [(1.0705e15, "1,070 TFLOP/s"), (66.9e12, "66.9 TFLOP/s"), (3e11, "300 GFLOP/s")],
)
def test_rates_in_words(rate: float, words: str) -> None:
    assert rate_words(rate, "FLOP/s") == words


@pytest.mark.parametrize("names", [("x", "dram", None), ("held", "l3", None), ("held", "l2", "x")])
def test_names_that_are_none_are_refused(names: tuple[str, str, str | None]) -> None:
    with pytest.raises(UsageError, match="use "):
        known_names(names[0], [names[1]], names[2])


def point(
    name: str, precision: str, *, launch: int = 0, share: float = 1.0, of_roof: float = 0.5,
    timed: bool = False,
) -> Point:  # fmt: skip
    return Point(
        name=name, launch=launch, level="dram", precision=precision, intensity=1.0, rate=of_roof,
        low=math.nan, high=math.nan, seconds=1.0, timed=timed, share=share, algorithmic=False,
        roof=precision, of_roof=of_roof, attainable=1.0, attained=of_roof, bound_by=None, flags=(),
    )  # fmt: skip


def report(*points: Point) -> Roofline:
    return Roofline(
        title="x", gpu="GPU", sm_clock=math.nan, nominal=(), roofs=(), ridges=(), points=points,
        outside=(), notes=(),
    )  # fmt: skip


FP32, FP64, TENSOR = "fp32", "fp64", "tensor_fp16"


@pytest.mark.parametrize(
    ("before", "after", "joined"),
    [
        (("a:fp32",), ("b:tensor_fp16",), {("a:fp32", "b:tensor_fp16")}),
        (("a:fp32", "b:fp32"), ("b:fp64",), {("b:fp32", "b:fp64")}),
        (("a:fp32", "b:fp32"), ("c:fp32",), set()),
        (
            ("a:fp32", "a:fp64"),
            ("a:fp32", "a:tensor_fp16"),
            {("a:fp32", "a:fp32"), ("a:fp64", "a:tensor_fp16")},
        ),
        (("a:fp32", "a:fp64"), ("a:fp64",), {("a:fp64", "a:fp64")}),
        (("a:fp32", "a:fp64"), ("b:fp64",), {("a:fp64", "b:fp64")}),
        ((), ("a:fp32",), set()),
    ],
)
def test_kernels_are_joined_whichever_their_precision(
    before: tuple[str, ...], after: tuple[str, ...], joined: set[tuple[str, str]]
) -> None:
    sides = [report(*(point(*word.split(":")) for word in words)) for words in (before, after)]
    found = steps(*sides)
    assert {tuple(f"{end.name}:{end.precision}" for end in pair) for pair in found} == joined
    assert len(found) == len(joined)


def test_of_several_that_changed_their_precision_the_principal_ones_are_joined() -> None:
    before = report(point("a", FP32, of_roof=0.1), point("a", FP64, of_roof=0.4))
    after = report(point("a", TENSOR, launch=3, share=0.2), point("a", TENSOR, share=0.8))
    assert steps(before, after) == [(before.points[1], after.points[1])]


@pytest.mark.parametrize(("tensor", "precisions"), [(0.0, ["fp32"]), (0.4, []), (None, [])])
def test_vector_work_makes_no_point_where_tensor_work_is_unknown(
    tensor: float | None, precisions: list[str]
) -> None:
    busy = "sm__pipe_tensor_cycles_active__dot__avg__dot__pct_of_peak_sustained_elapsed"
    rates = "smsp__sass_thread_inst_executed_op_f{}_pred_on__dot__sum__dot__per_cycle_elapsed"
    raw_report = raw(
        (7, 5),
        gpu__time_duration__dot__sum=1e-3,
        smsp__cycles_elapsed__dot__avg=1.5e6,
        dram__bytes_read__dot__sum=1e6,
        dram__bytes_write__dot__sum=1e6,
        derived__smsp__sass_thread_inst_executed_op_ffma_pred_on_x2=1000.0,
        **{rates.format(kind): 0.0 for kind in ("add", "mul")},
        **({} if tensor is None else {busy: tensor}),
    )
    found = roofline(summarize(raw_report, evaluate(raw_report)), levels=["dram"])
    assert [point.precision for point in found.points] == precisions
    told = [one.why.startswith("tensor-core work unknown") for one in found.outside]
    assert told == ([] if precisions else [True])
    shown = roofline(summarize(raw_report, evaluate(raw_report)), levels=["dram"], precision="fp32")
    assert len(shown.points) == 1
    assert any("tensor-core work" in note for note in shown.notes) == (not precisions)
