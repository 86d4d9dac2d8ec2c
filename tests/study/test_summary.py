"""What is derived of a baseline's cells, against numbers worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from profkit.core.fingerprint import Device, Fingerprint
from profkit.core.typed_file import convert
from profkit.core.work import Work
from profkit.hardware.gpus import datasheet_named
from profkit.study import summary
from profkit.study.matrix import Matrix
from profkit.study.plan_format import Backend, Program
from profkit.study.report import goal
from profkit.study.summary_format import BaselineFile, Best, Options, Row
from profkit.timing.cell import Cell, CellStatus
from profkit.timing.latency_format import Latency

H200 = {
    "name": "NVIDIA H200",
    "compute_capability": "9.0",
    "multiprocessors": 132,
    "memory_bytes": 150_000_000_000,
}
BLOCKS = 8


def cell(
    seconds: float,
    *,
    backend: str = "default",
    of: int = 2,
    place: int = 0,
    round_: str | None = "r",
    clock: float | None = 1.785e9,
    gpu: Mapping[str, Any] = H200,
    throttled: Sequence[str] = (),
    scatter: float = 1e-3,
    drift: float = 0.0,
    late_submitted: int | None = None,
    steady: bool | None = None,
    cache: str = "cold",
    power: float | None = None,
    samples: int = 13,
    chosen: str | None = None,
    counted: Sequence[float | None] = (None,) * BLOCKS,
    slower: Sequence[float] = (1.0,) * BLOCKS,
    **sizes: Any,
) -> Cell:
    """A cell of attention at `place` of the `of` in turn, with `late_submitted` samples a block.

    `scatter` is relative, `drift` by how much the last sample is slower than the first. `counted`
    are the clocks of the blocks, of which each is so many times `slower`.
    """
    shape = {"batch": 32, "heads": 8, "length": 512, "dim": 64, "causal": False} | sizes
    dtype = shape.pop("dtype", "float16")
    work = Work.attention(
        shape["batch"],
        shape["heads"],
        shape["length"],
        shape["dim"],
        element_bytes=2,
        causal=shape["causal"],
        kv_heads=shape.get("kv_heads"),
        backward=shape.get("backward", False),
    )
    noise = np.random.default_rng(place).normal(1, scatter, (BLOCKS, samples))
    noise *= np.linspace(1, 1 + drift, noise.size).reshape(noise.shape)
    moment = {
        "sm_clock": clock, "power": power, "temperature": None, "throttled_by": list(throttled)
    }  # fmt: skip
    blocks = [
        {
            "turn": at * of + (place if at % 2 == 0 else of - 1 - place),
            "gpu": moment,
            "overtaken": late_submitted,
            "sm_clock": counted[at],
            "samples": (seconds * slower[at] * noise[at]).tolist(),
        }
        for at in range(BLOCKS)
    ]
    latency = convert(
        {
            "label": backend,
            "timer": "events",
            "cache": cache,
            "target": {
                "name": "sdpa",
                "shapes": shape,
                "dtype": dtype,
                "work": {"flop": work.flop, "bytes": work.bytes, "what": work.what},
            },
            "gpu": gpu,
            "ready": {"memory": {"peak_allocated": 80_500_000}, "steady": steady},
            "blocks": blocks,
        },
        Latency,
    )
    name = "-".join(f"{key}{value}" for key, value in (shape | {"dtype": dtype}).items())
    return Cell(
        shape=name,
        at=0,
        arguments=shape | {"dtype": dtype},
        backend=backend,
        status=CellStatus.measured,
        latency=latency,
        round=round_,
        chosen=chosen if backend == "default" else None,
        asked=100,
    )


def derive(
    cells: Sequence[Cell],
    gpu: Mapping[str, Any],
    order: Sequence[str] = (),
    **more: Any,
) -> BaselineFile:
    frame = BaselineFile(
        profkit="",
        name="",
        created="",
        target=Program(name=None, file=None, sha256=None),
        matrix=Matrix("made", "", ()),
        options=Options(
            samples=None, blocks=None, seed=None, timer="", cache="", warmup=None, backends=(),
            device=None, budget=None,
        ),
        command=(),
        gpu=convert(gpu, Device) or None,
        gpu_from="measured",
        backends=tuple(
            Backend(name=name, available=True, reason="", setting="") for name in order
        ),
        profiles=(),
        seconds=None,
    )  # fmt: skip
    return summary.derive(frame, cells, **more)


def row(one: Cell, gpu: Mapping[str, Any] = H200) -> Row:
    (found,) = derive([one], gpu).cells
    return found


@pytest.mark.parametrize(
    ("gpu", "peak", "per_cycle"),
    [
        ("H200", "tensor_fp16", 4096),
        ("H200", "fp32", 256),
        ("L4", "tensor_fp16", 1024),
        ("L4", "fp32", 256),
        ("A30", "tensor_fp16", 2048),
        ("RTX 4090", "tensor_fp16", 512),
        ("V100 SXM2", "tensor_fp16", 1024),
        ("B200", "tensor_fp16", 8192),
        ("H20", "tensor_fp16", 1024),
    ],
)
def test_flop_of_an_sm_in_a_cycle(gpu: str, peak: str, per_cycle: int) -> None:
    sheet = datasheet_named(gpu)
    assert sheet is not None
    assert sheet.per_cycle(peak) == per_cycle


def test_rates_and_shares_of_a_cell() -> None:
    found = row(cell(50.9e-6))
    seconds = found.seconds
    assert seconds is not None
    assert seconds == pytest.approx(50.9e-6, rel=1e-3)
    assert (found.flop, found.bytes, found.intensity) == (17_179_869_184, 67_108_864, 256)
    assert found.flop_rate == pytest.approx(17_179_869_184 / seconds)
    assert found.bandwidth == pytest.approx(67_108_864 / seconds)
    assert found.tokens_per_second == pytest.approx(32 * 512 / seconds)
    assert found.held_peak == 132 * 4096 * 1.785e9  # 965 TFLOP/s, as ncu gives it at that clock
    assert found.share_of_held == pytest.approx(0.3497, abs=1e-3)
    assert found.share_of_datasheet == pytest.approx(337.5e12 / 989e12, abs=1e-3)
    assert found.share_of_dram == pytest.approx(1.318e12 / 4.8e12, abs=1e-3)
    assert found.ridge == pytest.approx(965.1e12 / 4.8e12, rel=1e-3)  # 201 FLOP/B
    assert found.regime == "compute"
    assert found.peak_memory == 80_500_000
    assert found.flop_rate is not None
    assert found.flop_rate_low is not None
    assert found.flop_rate_high is not None
    assert found.flop_rate_low < found.flop_rate < found.flop_rate_high


def test_the_share_at_the_held_clock_is_of_the_cycles_that_a_call_took() -> None:
    """Blocks at two clocks: a time of the one over a clock of the other would be neither's."""
    clocks = (1.6e9, 1.6e9, 1.6e9, 1.6e9, 1.6e9, 2e9, 2e9, 2e9)
    slower = (1.25, 1.25, 1.25, 1.25, 1.25, 1.0, 1.0, 1.0)
    found = row(cell(1e-4, counted=clocks, slower=slower, clock=1.98e9, scatter=1e-6))
    assert (found.clock_by, found.clocked, found.sm_clock) == ("device", 8, 1.6e9)
    assert found.cycles == pytest.approx(200_000, rel=1e-4)
    assert found.share_of_held == pytest.approx(17_179_869_184 / (200_000 * 132 * 4096), rel=1e-4)
    few = row(cell(1e-4, counted=(None,) * 5 + clocks[5:], clock=1.98e9))
    assert (few.clock_by, few.clocked, few.sm_clock, few.cycles) == ("driver", 3, 1.98e9, None)


def test_what_a_kernel_differs_by_from_itself_is_the_least_margin_of_its_shape() -> None:
    def margins(same: float) -> dict[str, float]:
        cells = alternatives(("default", 50e-6), ("cudnn", same), ("flash", 51e-6), chosen="cudnn")
        found = derive(cells, H200, order=("default", "cudnn", "flash"))
        return {one.b: one.margin or 0.0 for one in found.comparisons}

    assert margins(50.1e-6) == {"cudnn": 0.01, "flash": 0.01}
    apart = margins(52.5e-6)
    assert apart["cudnn"] == 0.01
    assert apart["flash"] == pytest.approx(0.05, abs=1e-3)


def test_a_duplicate_never_turns_a_difference_into_none() -> None:
    def verdict(*slower: float) -> str:
        cells = [
            cell(50e-6, place=0, of=3, chosen="flash"),
            cell(50e-6, backend="flash", place=1, of=3, slower=slower),
            cell(55e-6, backend="cudnn", place=2, of=3),
        ]
        found = derive(cells, H200, order=("default", "flash", "cudnn"))
        return {one.b: one for one in found.comparisons}["cudnn"].verdict.name

    assert verdict(*[1.0] * BLOCKS) == "REGRESSED"
    assert verdict(*[1.0] * (BLOCKS - 1), 2.5) == "REGRESSED"  # one block spoils the same kernel
    assert verdict(*[1.2] * BLOCKS) == "INCONCLUSIVE"


def test_slow_samples_are_no_cycles_of_the_others() -> None:
    spoilt = cell(1e-4, counted=(1.5e9,) * BLOCKS, scatter=1e-6)
    assert spoilt.latency is not None
    blocks = tuple(
        replace(block, samples=(15 * block.samples[0], *block.samples[1:]))
        for block in spoilt.latency.blocks
    )
    found = row(replace(spoilt, latency=replace(spoilt.latency, blocks=blocks)))
    assert found.cycles == pytest.approx(150_000, rel=1e-4)


def test_gaps_leave_no_claim_where_there_is_no_interval_either() -> None:
    levels = [1.0, 1.1, 1.05, 0.95, 1.15, 0.9, 1.02, 1.2]
    found = row(cell(1e-3, slower=levels, late_submitted=5, of=1))
    assert found.refused is not None
    assert found.claim == "gaps"
    assert goal(found).below is None


def test_grouped_heads_and_masks() -> None:
    """The published rate of 671 TFLOP/s at S=4096 with 64 heads of Q and 8 of K and V."""
    shape: dict[str, Any] = {"batch": 1, "heads": 64, "kv_heads": 8, "length": 4096, "dim": 128}
    flop = 4 * 64 * 4096**2 * 128
    grouped = row(cell(flop / 671e12, dtype="bfloat16", **shape))
    assert grouped.flop_rate == pytest.approx(671e12, rel=1e-3)
    assert grouped.bytes == 2 * (2 * 64 + 2 * 8) * 4096 * 128
    assert grouped.precision == "tensor_bf16"
    causal = row(cell(1e-3, dtype="bfloat16", causal=True, **shape))
    assert causal.flop == flop / 2
    assert causal.bytes == grouped.bytes
    backward = row(cell(1e-3, dtype="bfloat16", backward=True, **shape))
    assert backward.flop == 2.5 * flop
    assert backward.bytes == 2 * grouped.bytes


def test_what_is_unknown_stays_unknown() -> None:
    no_clock = row(cell(50.9e-6, clock=None))
    assert (no_clock.held_peak, no_clock.share_of_held) == (None, None)
    assert no_clock.ridge == pytest.approx(989e12 / 4.8e12)
    nowhere = row(cell(50.9e-6, gpu={}), {})
    unknown = ("precision", "datasheet_peak", "dram_peak", "ridge", "regime", "verified", "gpu")
    assert {name: getattr(nowhere, name) for name in unknown} == dict.fromkeys(unknown)
    assert nowhere.flop_rate is not None
    failed = row(
        Cell(
            shape="s",
            at=0,
            arguments={"n": 1},
            backend="default",
            status=CellStatus.out_of_memory,
            reason="too large",
        )
    )
    assert (failed.seconds, failed.flop, failed.batch, failed.causal) == (None, None, None, None)


def test_what_cannot_be_is_flagged() -> None:
    assert row(cell(50.9e-6)).flags == ()
    (impossible,) = row(cell(15e-6)).flags  # 1145 TFLOP/s; 4.5 TB/s is below 4.8
    assert "above the dense peak" in impossible
    cached = row(cell(13e-6, length=128, batch=64, heads=16))
    assert any("caches served part of it" in flag for flag in cached.flags)
    held = row(cell(50.9e-6, throttled=["hardware slowdown"]))
    assert held.flags == ("throttled in every block: hardware slowdown",)
    assert held.throttled == {"hardware slowdown": BLOCKS}


def test_a_clock_that_still_moved_after_the_warm_up_is_flagged() -> None:
    assert row(cell(50.9e-6, steady=False)).flags == (
        "SM clock not stable at the end of the warm-up",
    )
    assert row(cell(50.9e-6, steady=True)).flags == ()


def test_an_interval_claims_nothing_where_over_a_tenth_may_hold_gaps_of_the_host() -> None:
    few = row(cell(50.9e-6, late_submitted=1))
    assert (few.late_submitted, few.level, few.claim) == (8, 0.95, "holds")
    assert few.flags == ("8 of 104 samples may include host launch gaps",)
    many = row(cell(50.9e-6, late_submitted=2))
    assert (many.late_submitted, many.level, many.claim) == (16, None, "gaps")
    assert many.flags == (
        "16 of 104 samples may include host launch gaps: the interval is invalid",
    )
    assert many.low is not None


def test_no_share_of_dram_beside_a_cell_that_a_warm_cache_surely_served() -> None:
    l4 = {
        "name": "NVIDIA L4", "compute_capability": "8.9", "multiprocessors": 58,
        "memory_bytes": 24_000_000_000,
    }  # fmt: skip
    cells = [
        cell(60e-6, gpu=l4, cache="", length=128),  # 16.8 MB, 280 GB/s
        cell(100e-6, gpu=l4, cache="", length=256),  # 33.6 MB, 336 GB/s of 300
        cell(320e-6, gpu=l4, cache="", length=512),  # 67.1 MB: more than L2 holds
    ]
    fits, served, larger = derive(cells, l4).cells
    assert (served.cache, fits.cache) == ("warm", "")
    assert fits.share_of_dram is None
    assert fits.bandwidth == pytest.approx(280e9, rel=0.01)
    assert fits.flags == (
        f"share of DRAM peak unknown: the data fit in L2, which served {served.id}",
    )
    assert larger.share_of_dram == pytest.approx(0.699, abs=1e-3)
    assert larger.flags == ()
    alone, _ = derive([cells[0], cells[2]], l4).cells
    assert alone.share_of_dram == pytest.approx(0.932, abs=1e-3)


def alternatives(*speeds: tuple[str, float], **more: Any) -> list[Cell]:
    return [
        cell(seconds, backend=name, place=at, of=len(speeds), **more)
        for at, (name, seconds) in enumerate(speeds)
    ]


def test_interleaved_backends_are_compared_with_the_first() -> None:
    cells = alternatives(("cudnn", 50e-6), ("default", 50.05e-6), ("flash", 72e-6))
    found = derive(cells, H200, order=("default", "flash", "cudnn"))
    versus = {(one.a, one.b): one for one in found.comparisons}
    assert set(versus) == {("default", "cudnn"), ("default", "flash")}
    assert versus["default", "cudnn"].verdict.name == "SAME"
    slower = versus["default", "flash"]
    assert slower.verdict.name == "REGRESSED"
    assert slower.overlap is False
    assert slower.speedup == pytest.approx(50.05 / 72, rel=1e-3)
    assert [one.backend for one in found.best if one.kind == "backend"] == ["cudnn"]


def test_faster_is_claimable_by_verdict_classic_rule_and_two_intervals_with_a_level() -> None:
    def versus(**more: Any) -> Any:
        (one,) = derive(
            alternatives(("default", 72e-6), ("flash", 50e-6), **more), H200
        ).comparisons
        return one

    sure = versus()
    assert sure.verdict.name == "IMPROVED"
    assert sure.claimable
    drifting = versus(drift=0.003)  # both intervals are widened, and claim no level
    assert drifting.verdict.name == "IMPROVED"
    assert drifting.speedup >= 1.1
    assert drifting.delta >= 0.3
    assert not drifting.claimable
    assert not versus(late_submitted=2).claimable
    throttled = versus(throttled=["hardware slowdown"])
    assert throttled.verdict.name == "INVALID"
    assert throttled.speedup >= 1.1
    assert throttled.delta >= 0.3
    assert not throttled.claimable


def test_other_shapes_and_other_rounds_are_never_compared() -> None:
    one = alternatives(("default", 50e-6), ("flash", 72e-6))
    other = alternatives(("default", 50e-6), ("flash", 72e-6), length=1024)
    found = derive([*one, *other], H200)
    assert [versus.shape for versus in found.comparisons] == [one[0].shape, other[0].shape]
    apart = [cell(50e-6), cell(72e-6, backend="flash", round_="another")]
    assert derive(apart, H200).comparisons == ()


def test_holm_runs_over_all_comparisons_of_a_baseline() -> None:
    few = derive(alternatives(("default", 50e-6), ("flash", 72e-6)), H200)
    cells = [
        one
        for length in (128, 256, 512, 1024)
        for one in alternatives(("default", 50e-6), ("flash", 72e-6), length=length)
    ]
    many = derive(cells, H200)
    (alone,) = few.comparisons
    adjusted = sorted(one.p_adjusted or 0.0 for one in many.comparisons)
    raw = sorted(one.p_value or 0.0 for one in many.comparisons)
    assert alone.p_adjusted == alone.p_value
    assert adjusted[0] == pytest.approx(4 * raw[0])


def scaling_of(found: BaselineFile, along: str) -> list[tuple[float, float, float | None]]:
    return [
        (step.factor, step.exponent, step.flop_exponent)
        for step in found.scaling
        if step.along == along
    ]


def test_scaling_is_between_neighbors_that_differ_in_one_size() -> None:
    cells = [
        cell(20e-6, length=256),
        cell(60e-6, length=512),
        cell(10e-6, length=512, batch=4),
        cell(1.0, length=512, dtype="bfloat16"),
    ]
    found = derive(cells, H200)
    ((factor, exponent, flop),) = scaling_of(found, "length")
    assert (factor, flop) == (2, 2)
    assert exponent == pytest.approx(math.log2(3), rel=1e-2)
    ((factor, exponent, flop),) = scaling_of(found, "batch")
    assert (factor, flop) == (8, 1)
    assert exponent == pytest.approx(math.log(6) / math.log(8), rel=1e-2)
    best = {one.kind: one for one in found.best if one.kind != "backend"}
    assert best["length"].value == 512 or best["length"].value == 256
    assert best["batch"].value == 32


def test_cells_that_differ_in_an_option_of_their_own_are_no_neighbors() -> None:
    cells = [cell(1e-3, length=1024, window=128), cell(3e-3, length=2048, window=512)]
    assert scaling_of(derive(cells, H200), "length") == []
    cells.append(cell(2e-3, length=2048, window=128))
    ((factor, exponent, _),) = scaling_of(derive(cells, H200), "length")
    assert factor == 2
    assert exponent == pytest.approx(1, rel=1e-2)


def test_sizes_that_are_none_of_attentions_are_left_alone() -> None:
    one = cell(1e-3)
    odd = replace(one, arguments={"heads": [8], "dim": [4, 2], "kv_heads": 3})
    assert row(replace(odd, latency=None, status=CellStatus.failed)).heads is None


def test_scaling_at_the_same_number_of_tokens() -> None:
    cells = [cell(1e-3, length=512, batch=32), cell(2e-3, length=1024, batch=16)]
    ((factor, exponent, flop),) = scaling_of(derive(cells, H200), "length (same tokens)")
    assert (factor, flop) == (2, 1)
    assert exponent == pytest.approx(1, rel=1e-2)


def test_environments_apart_from_the_dtype_are_counted() -> None:
    one = replace(cell(1e-3), fingerprint=Fingerprint(dtype="float16", versions={"torch": "1"}))
    same = replace(
        cell(1e-3, length=1024), fingerprint=Fingerprint(dtype="bfloat16", versions={"torch": "1"})
    )
    other = replace(
        cell(1e-3, length=2048), fingerprint=Fingerprint(dtype="float16", versions={"torch": "2"})
    )
    assert derive([one, same], H200).notes == ()
    (note,) = derive([one, same, other], H200).notes
    assert note.startswith("measured in 2 environments")


def best_of(*speeds: tuple[str, float], **more: Any) -> Best:
    (best,) = [one for one in derive(alternatives(*speeds, **more), H200).best
               if one.kind == "backend"]  # fmt: skip
    return best


def test_the_fastest_is_tested_against_every_other_backend() -> None:
    alone = best_of(("flash", 72e-6), ("cudnn", 50e-6), ("custom", 60e-6))
    assert (alone.backend, alone.tied) == ("cudnn", ())
    close = best_of(("flash", 72e-6), ("cudnn", 50e-6), ("custom", 50.05e-6))
    assert close.backend == "cudnn"
    assert [name.rpartition(".")[2] for name in close.tied] == ["custom"]


def test_rows_not_interleaved_with_the_fastest_are_tied() -> None:
    cells = [
        cell(50e-6, backend="cudnn", of=1, round_="first"),
        cell(72e-6, backend="flash", of=1, round_="second"),
    ]
    (best,) = [one for one in derive(cells, H200).best if one.kind == "backend"]
    assert [name.rpartition(".")[2] for name in best.tied] == ["flash"]


def test_sizes_whose_rates_may_be_as_high_are_tied() -> None:
    cells = [
        cell(50e-6, length=512),
        cell(4 * 50.01e-6, length=1024),
        cell(16 * 80e-6, length=2048),
    ]
    (best,) = [one for one in derive(cells, H200).best if one.kind == "length"]
    assert best.value == 512
    assert [name for name in best.tied if "length1024" in name] == list(best.tied)
    assert len(best.tied) == 1
