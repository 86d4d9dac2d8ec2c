"""Contradictions between claimed figures: by hand, and as laws over random consistent claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from profkit.audit.audit import examine
from profkit.audit.check import Contradiction
from profkit.audit.claim import NOTHING, Claim
from profkit.audit.claim_text import understood
from profkit.audit.printed_numbers import Figure
from profkit.hardware.gpus import datasheet_named

S512 = {"gpus": ("NVIDIA L4",), "dtype": "fp16", "batch": 32, "heads": 8, "length": 512, "dim": 64}
"""4 x 32 x 8 x 512² x 64 = 17,179,869,184 FLOP; 4 x 32 x 8 x 512 x 64 x 2 B = 67,108,864 B."""


def claim(**given: Any) -> Claim:
    numbers: dict[str, Any] = {
        name: Figure(float(value)) if isinstance(value, float) else value
        for name, value in given.items()
    }
    return NOTHING.stating(**numbers)


def audit(claims: Sequence[Claim], gpu: str = "") -> tuple[Contradiction, ...]:
    return examine(claims, gpu).contradictions


def changed(row: Claim, **figures: float) -> Claim:
    new = {name: Figure(value) for name, value in figures.items()}
    return replace(row, figures={**row.figures, **new})


def said(text: str, **known: Any) -> Claim:
    return replace(understood(text), text=text).over(Claim(**known))


def rules(*claims: Claim) -> list[tuple[str, str]]:
    return [(one.rule, one.field) for one in audit(claims)]


def only(*claims: Claim) -> Contradiction:
    (found,) = audit(claims)
    return found


def test_a_consistent_row_gives_nothing() -> None:
    row = claim(
        **S512, time=0.321e-3, low=0.3195e-3, high=0.3379e-3, flop=17179869184.0,
        bytes=67108864.0, intensity=256.0, flop_rate=53.52e12, byte_rate=209.06e9,
        flop_peak=121e12, flop_share=0.4423, byte_peak=300e9, byte_share=0.6969, bound="memory",
        memory="GDDR6",
    )  # fmt: skip
    outcome = examine([row]).outcomes[0]
    assert not outcome.findings
    assert not outcome.unchecked
    assert len(outcome.checks) >= 12


@pytest.mark.parametrize(
    ("field", "value", "rule", "expected"),
    [
        ("flop", 8.59e9, "flop_of_shape", 17179869184),
        ("bytes", 25.6e6, "bytes_of_shape", 67108864),
        ("intensity", 671.0, "intensity", 256),
        ("flop_rate", 26.76e12, "amount_over_time", 17179869184 / 0.321e-3),
        ("byte_rate", 104.5e9, "amount_over_time", 67108864 / 0.321e-3),
        ("flop_peak", 30.3e12, "peak", 121e12),
        ("byte_peak", 242e9, "peak", 300e9),
        ("byte_share", 1.13, "above_peak", 1.0),
        ("low", 0.33e-3, "interval", None),
    ],
)
def test_one_wrong_figure(field: str, value: float, rule: str, expected: float | None) -> None:
    wrong = claim(**S512, time=0.321e-3, high=0.3379e-3, **{field: value})
    found = [one for one in audit([wrong]) if one.rule == rule]
    assert len(found) == 1
    assert found[0].expected == (expected and pytest.approx(expected))


@pytest.mark.parametrize(
    ("gpu", "dtype", "flop_peak", "likely"),
    [
        ("L4", "fp16", 30.3e12, "FP32"),
        ("L4", "fp16", 242e12, "sparse tensor FP16"),
        ("H100 SXM", "bf16", 1979e12, "sparse tensor BF16"),
        ("A30", "fp16", 312e12, "A100 40 GB"),
        ("H20", "fp16", 989e12, "H100 SXM"),
        ("H200", "fp8", 989e12, "dense tensor FP16"),
        ("L4", "fp16", 300e12, "GB/s"),
    ],
)
def test_what_a_wrong_peak_is(gpu: str, dtype: str, flop_peak: float, likely: str) -> None:
    found = only(claim(gpus=(gpu,), dtype=dtype, flop_peak=flop_peak))
    assert found.rule == "peak"
    assert likely in str(found.cause)


def test_fp16_accumulation_is_a_doubt_only() -> None:
    result = examine([claim(gpus=("RTX 4090",), dtype="fp16", flop_peak=330e12)])
    assert not result.contradictions
    assert "FP16 accumulation" in str(result.doubts[0].cause)


def test_boost_clock_lets_a_tensor_rate_exceed_the_datasheet_but_not_itself() -> None:
    """H200: 989 TFLOP/s at 1.83 GHz are 1070 at 1.98 GHz."""
    h200 = {"gpus": ("H200",), "dtype": "fp16"}
    assert not rules(claim(**h200, flop_rate=1.05e15, flop_share=1.06))
    assert rules(claim(**h200, flop_rate=1.2e15)) == [("above_peak", "flop_rate")]
    assert rules(claim(gpus=("L4",), dtype="fp16", flop_share=1.05)) == [
        ("above_peak", "flop_share")
    ]


def test_time_alone_may_be_impossible() -> None:
    """17.18 GFLOP at 121 TFLOP/s take 142 µs."""
    found = only(claim(**S512, time=0.1e-3))
    assert (found.rule, found.field) == ("above_peak", "time")
    assert found.expected == pytest.approx(141.98e-6, rel=1e-3)


def test_a_warm_cache_may_serve_more_than_dram() -> None:
    """B=32 H=8 S=256 D=64 in fp16 are 33.6 MB; an L4 has 48 MiB of L2. S=512 does not fit."""
    small = claim(**{**S512, "length": 256}, time=0.0993e-3, byte_rate=337.92e9)
    assert rules(small) == [("above_peak", "byte_rate")]
    assert not rules(replace(small, cache="warm"))
    large = claim(**S512, time=0.2e-3, byte_rate=335.5e9, cache="warm")
    assert rules(large) == [("above_peak", "byte_rate")]


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"gpus": ("L4",), "dtype": "fp16", "intensity": 256.0, "bound": "compute"}, True),
        ({"gpus": ("L4",), "dtype": "fp16", "intensity": 256.0, "bound": "memory"}, False),
        ({"gpus": ("L4",), "dtype": "fp16", "intensity": 512.0, "bound": "compute"}, False),
        ({"gpus": ("L4",), "dtype": "fp32", "intensity": 256.0, "bound": "compute"}, False),
        ({"gpus": ("H200",), "dtype": "fp16", "intensity": 256.0, "bound": "compute"}, False),
        ({"gpus": ("A100",), "dtype": "fp16", "intensity": 180.0, "bound": "compute"}, False),
        ({"gpus": ("A100",), "dtype": "fp16", "intensity": 100.0, "bound": "compute"}, True),
        ({"gpus": ("L4",), "intensity": 50.0, "bound": "compute"}, False),
        ({"intensity": 1.0, "bound": "compute"}, False),
    ],
)
def test_bound_by_the_ridge(given: dict[str, Any], wrong: bool) -> None:
    """Ridges: L4 121e12/300e9 = 403 and, in fp32, 101; H200 206; A100 153 to 201, as it has
    1555, 1935 or 2039 GB/s. Without a precision the lowest one counts: the L4's fp64, 1.6."""
    assert rules(claim(**given)) == ([("bound", "bound")] if wrong else [])


def test_memory_bound_right_of_the_ridge_is_a_doubt() -> None:
    row = claim(gpus=("L4",), dtype="fp16", intensity=1024.0, bound="memory")
    result = examine([row])
    assert not result.contradictions
    assert [one.rule for one in result.doubts] == ["bound"]


def test_bound_by_the_held_clock() -> None:
    """At 1.0 GHz an H200 has 541 TFLOP/s: the ridge is 113, not 206."""
    held = {"gpus": ("H200",), "dtype": "fp16", "intensity": 150.0, "bound": "compute"}
    assert rules(claim(**held)) == [("bound", "bound")]
    assert not rules(claim(**held, ridge=112.6, held_peak=540.7e12, byte_peak=4.8e12))
    assert not rules(claim(**held, flop_peak=540.7e12, byte_peak=4.8e12, peak_of="held"))
    assert ("ridge", "ridge") in rules(claim(**held, ridge=500.0, held_peak=540.7e12))


def test_a_held_peak_is_not_above_the_boost_clock() -> None:
    h200 = {"gpus": ("H200",), "dtype": "fp16"}
    assert not rules(claim(**h200, held_peak=962.3e12, flop_rate=247.5e12, held_share=0.2572))
    assert rules(claim(**h200, held_peak=1979e12)) == [("peak", "held_peak")]
    assert rules(claim(**h200, held_peak=962.3e12, flop_rate=247.5e12, held_share=0.25)) == [
        ("share_of_peak", "held_share")
    ]


def test_gqa_causal_and_backward() -> None:
    """64 heads of Q and O, 8 of K and V: (64 + 64 + 8 + 8) x S x D x 2 B; causal half the FLOP,
    backward 2.5 times."""
    gqa = {
        "gpus": ("H200",), "dtype": "bf16", "batch": 1, "heads": 64, "kv_heads": 8,
        "length": 2048, "dim": 128,
    }  # fmt: skip
    flop = 4.0 * 64 * 2048**2 * 128
    moved = 144.0 * 2048 * 128 * 2
    assert not rules(claim(**gqa, flop=flop, bytes=moved, intensity=flop / moved))
    assert not rules(claim(**gqa, causal=True, flop=flop / 2))
    assert rules(claim(**gqa, flop=flop / 2)) == [("flop_of_shape", "flop")]
    assert not rules(claim(**gqa, causal=True, backward=True, flop=1.25 * flop, bytes=2 * moved))


def test_an_unknown_dtype_leaves_the_element_size_open() -> None:
    row = {**S512, "dtype": "", "gpus": ()}
    for size in (1, 2, 4, 8):
        assert not rules(claim(**row, bytes=33554432.0 * size))
    assert rules(claim(**row, bytes=3 * 33554432.0)) == [("bytes_of_shape", "bytes")]


def test_another_operation_is_not_taken_for_attention() -> None:
    row = claim(**S512, operation="layer norm", flop=1e6, time=1e-3, flop_rate=1e9)
    assert not rules(row)


def test_a_speed_up() -> None:
    assert not rules(claim(baseline=0.5e-3, time=0.25e-3, speedup=2.0))
    assert only(claim(baseline=0.5e-3, time=0.25e-3, speedup=3.0)).expected == pytest.approx(2)


def test_an_interval_the_wrong_way_round() -> None:
    assert only(claim(low=2e-3, high=1e-3)).rule == "interval"


def test_rounding_is_no_contradiction_and_more_is() -> None:
    """1 TFLOP in 3.0 ms printed to two digits may be 328 to 339 TFLOP/s."""
    time = Figure(3.0e-3, 0.05e-3)
    assert not rules(claim(flop=1e12, time=time, flop_rate=Figure(338e12)))
    assert rules(claim(flop=1e12, time=time, flop_rate=Figure(345e12)))


def test_sentences_speak_of_the_rows_of_their_study() -> None:
    row = claim(**S512, where="rows[0]", time=0.321e-3, flop_rate=53.52e12)
    wrong = said("S=512: 80% of the 121 TFLOP/s", gpus=("L4",), dtype="fp16")
    right = said("S=512: 44.2% of the 121 TFLOP/s", gpus=("L4",), dtype="fp16")
    found = only(row, right, wrong)
    assert found.text == wrong.text
    assert found.expected == pytest.approx(0.4423, rel=1e-3)
    assert not audit([row, replace(wrong, study="another")])
    outcome = examine([replace(wrong, study="another")]).outcomes[0]
    assert [check.rule for check in outcome.checks] == ["peak", "above_peak"]


def test_of_several_rows_the_one_that_fits_counts() -> None:
    rows = [
        claim(**{**S512, "batch": batch}, where=f"rows[{batch}]", time=time)
        for batch, time in ((8, 0.1e-3), (16, 0.15e-3), (32, 0.3e-3))
    ]
    assert not audit([*rows, said("S=512: 8.59 GFLOP")])
    assert rules(*rows, said("S=512: 6 GFLOP")) == [("flop_of_shape", "flop")]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("8 ms (upper bound of the CI)", "interval_end"),
        ("9 ms (lower bound of the CI)", "interval_end"),
        ("9 ms (upper bound of the CI)", None),
        ("7 ms (upper bound of the CI)", None),
        ("all 2 cells have non-overlapping CIs", "overlap"),
        ("A100 vs L4: compute ratio of 10.3", "ratio_of_peaks"),
        ("A100 vs L4: compute ratio of 2.58", None),
        ("on an L4 with HBM3", "memory"),
        ("on an L4 with GDDR6", None),
        ("a 5D grid", "grid"),
        ("a 2D grid", None),
    ],
)
def test_statements(text: str, rule: str | None) -> None:
    rows = [
        claim(where="a", time=8.5e-3, low=8e-3, high=9e-3, length=1),
        claim(where="b", time=1.5e-3, low=1e-3, high=2e-3, length=2),
    ]
    found = audit([*rows, said(text, dtype="fp16")])
    assert [one.rule for one in found] == ([rule] if rule else [])


def test_intervals_of_alternatives_may_be_disjoint() -> None:
    rows = [
        claim(**S512, where="a", time=8.5e-3, low=8e-3, high=9e-3),
        claim(**S512, where="b", time=1.5e-3, low=1e-3, high=2e-3),
    ]
    assert not audit([*rows, said("the CIs do not overlap")])
    overlapping = changed(rows[1], high=8.2e-3)
    assert [one.rule for one in audit([rows[0], overlapping, said("the CIs do not overlap")])] == [
        "overlap"
    ]


def test_an_interval_of_one_tick_is_a_doubt() -> None:
    ticks = [59, 97, 313, 1349, 4859, 98, 144, 668]

    def figure(count: int) -> Figure:
        return Figure(round(count * 1.024e-6, 7), 0.5e-7)

    rows = [
        claim(
            where=f"rows[{tick}]",
            time=figure(tick),
            low=figure(tick),
            high=figure(tick + width),
        )
        for tick, width in zip(ticks, [1, 1, 20, 9, 9, 9, 9, 9], strict=True)
    ]
    result = examine(rows)
    assert not result.contradictions
    (doubt,) = result.doubts
    assert doubt.rule == "timer_tick"
    assert "rows[97]" in str(doubt.follows)
    off_grid = [changed(row, low=1e-5 + 7.7e-7 * at) for at, row in enumerate(rows)]
    assert not [one for one in examine(off_grid).doubts if one.rule == "timer_tick"]


def test_what_could_not_be_checked_is_reported() -> None:
    lone = claim(flop_rate=1e12)
    unknown = claim(gpus=("Voodoo 2",), byte_peak=1e12)
    unread = said("uses 42 registers")
    reasons = [outcome.unchecked for outcome in examine([lone, unknown, unread]).outcomes]
    assert "no GPU named" in reasons[0][0]
    assert "Voodoo 2 is not in the GPU table" in reasons[1][0]
    assert reasons[2] == ("not recognized: 42 registers",)


def test_versions_and_hashes_in_a_sentence_are_not_left_unchecked() -> None:
    named = said("torch 2.11.0 at 3a82c0d84154 reaches 100 GB/s", dtype="fp16")
    assert "not understood" not in str(examine([named]).outcomes[0].unchecked)
    both = said("torch 2.11.0 uses 42 registers and 1e9 steps")
    assert examine([both]).outcomes[0].unchecked == ("not recognized: 42 registers, 1e9 steps",)


def test_the_gpu_of_claims_that_name_none() -> None:
    peak = claim(dtype="fp16", flop_peak=30.3e12)
    assert not audit([peak])
    assert [one.rule for one in audit([peak], gpu="L4")] == ["peak"]
    assert not audit([claim(gpus=("RTX 4090",), dtype="fp16", flop_peak=165e12)], gpu="L4")


SIZES = st.sampled_from([1, 2, 4, 8, 16, 32])
SHOWN = ("time", "flop", "bytes", "intensity", "flop_rate", "byte_rate", "flop_share", "byte_share")


@st.composite
def consistent(draw: st.DrawFn) -> dict[str, float | str | int | bool]:
    """A shape, a time that the GPU can reach, and all that follows from them."""
    gpu = draw(st.sampled_from(["L4", "H200", "H100 PCIe", "A30", "RTX 4090", "B200"]))
    dtype = draw(st.sampled_from(["fp16", "bf16", "tf32"]))
    sheet = datasheet_named(gpu)
    assert sheet is not None
    batch, heads = draw(SIZES), draw(SIZES)
    length, dim = (
        draw(st.sampled_from([128, 384, 1000, 4096])),
        draw(st.sampled_from([40, 64, 128])),
    )
    causal = draw(st.booleans())
    flop = 4.0 * batch * heads * length**2 * dim / (2 if causal else 1)
    moved = 4.0 * batch * heads * length * dim * (4 if dtype == "tf32" else 2)
    peaks = sheet.peaks[f"tensor_{dtype}"].value, sheet.peaks["dram"].value
    time = max(flop / peaks[0], moved / peaks[1]) / draw(st.floats(0.01, 0.97))
    return {
        "gpu": gpu, "dtype": dtype, "batch": batch, "heads": heads, "length": length, "dim": dim,
        "causal": causal, "time": time, "flop": flop, "bytes": moved, "intensity": flop / moved,
        "flop_rate": flop / time, "byte_rate": moved / time, "flop_peak": peaks[0],
        "byte_peak": peaks[1], "flop_share": flop / time / peaks[0],
        "byte_share": moved / time / peaks[1],
        "bound": "compute" if flop / moved > peaks[0] / peaks[1] else "memory",
    }  # fmt: skip


def printed(value: float, digits: int) -> Figure:
    """A number as a table shows it."""
    text = f"{value:.{digits - 1}e}"
    exponent = int(text.partition("e")[2])
    return Figure(float(text), 0.5 * 10.0 ** (exponent - digits + 1), text)


def as_claim(values: dict[str, Any], digits: int) -> Claim:
    numbers: dict[str, Any] = {
        name: printed(value, digits) for name, value in values.items() if isinstance(value, float)
    }
    words = {name: value for name, value in values.items() if name not in numbers and name != "gpu"}
    return NOTHING.stating(gpus=(values["gpu"],), **numbers, **words)


@given(consistent(), st.integers(3, 7))
def test_what_follows_from_a_shape_and_a_time_is_never_contradicted(
    values: dict[str, Any], digits: int
) -> None:
    outcome = examine([as_claim(values, digits)]).outcomes[0]
    assert not outcome.findings
    assert not outcome.unchecked


@given(
    consistent(),
    st.integers(3, 7),
    st.sampled_from((*SHOWN, "flop_peak", "byte_peak")),
    st.one_of(st.floats(0.3, 0.95), st.floats(1.053, 3)),
)
def test_a_figure_that_is_5_percent_off_is_found(
    values: dict[str, Any], digits: int, field: str, factor: float
) -> None:
    """Rounding to three digits hides up to 0.5% of each of three figures."""
    assume(abs(factor - 1) > 0.05)
    values[field] *= factor
    assert audit([as_claim(values, digits)])
