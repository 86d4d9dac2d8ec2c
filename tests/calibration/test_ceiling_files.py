"""Measured roofs: rates and counts by hand, what is impossible, files, and what is found again."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from profkit.calibration.ceilings import (
    LABELS,
    CeilingFile,
    ceiling,
    ceilings_document,
    cross_checked,
    find_ceilings,
    keep_ceilings,
    read_ceilings,
    unfit,
    warnings,
)
from profkit.calibration.loads import counts
from profkit.calibration.loads.answers import Measured
from profkit.calibration.loads.counts import Machine
from profkit.capture.gpu import Moment
from profkit.core.errors import BadInput, EnvironmentProblem
from profkit.core.fingerprint import Device, Fingerprint
from profkit.core.typed_file import encode
from profkit.hardware.gpus import Datasheet, find_datasheet
from profkit.ui.markdown import document_markdown
from profkit.ui.terminal import document_terminal
from tests.conftest import ROOT

SCHEMA = json.loads((ROOT / "profkit" / "schemas" / "ceilings.json").read_text(encoding="utf-8"))
GIB = 1 << 30
CAP = "software power cap"
H200 = Machine((9, 0), sm_count=132, l2_bytes=60 << 20, memory_bytes=150_000_000_000)
T4 = Machine((7, 5), sm_count=40, l2_bytes=4 << 20, memory_bytes=15_800_000_000)
DEVICE = Device(name="NVIDIA H200", uuid="GPU-1", multiprocessors=132, power_limit=700.0)
ANY_H200 = Device(name="NVIDIA H200")


def sheet() -> Datasheet:
    found, _ = find_datasheet("NVIDIA H200", (9, 0), 132, 150_000_000_000)
    assert found is not None
    return found


def timed(seconds: float, amount: float, how: str = "copy.cu", clock: float = 1.98e9) -> Measured:
    """Independent samples around a time, with the GPU as it was in two blocks."""
    noise = np.random.default_rng(1).uniform(-1e-3, 1e-3, 70)
    samples = tuple((seconds * (1 + noise - np.median(noise))).tolist())
    moments = (Moment(clock, 400.0, 50.0, ()), Moment(clock - 4e7, 420.0, 51.0, ()))
    steady = (Moment(1.5e9, 690.0, 60.0, (CAP,)), Moment(1.4e9, 680.0, 61.0, (CAP,)))
    return Measured(how, amount, samples, moments, (seconds * 1.25,) * 9, steady)


def measured(
    *names: str, rate: float = 4e12, device: Device = DEVICE, **fields: Any
) -> CeilingFile:
    rows = tuple(ceiling(name, [timed(1e-3, rate / 1e3)], None, 132) for name in names)
    fingerprint = Fingerprint(gpu=device)
    whole = CeilingFile(
        gpu=device, ceilings=rows, created="2026-01-01T00:00:00+00:00",
        seconds=40.0, fingerprint=fingerprint,
    )  # fmt: skip
    return structs.replace(whole, **fields)


# ---- Counts


def test_the_sizes_of_an_h200_by_hand() -> None:
    # 2 GiB each side: 134,217,728 vectors of 16 bytes; a copy moves 4 GiB.
    assert counts.buffer_vectors(H200) == 2 * GIB // 16
    assert counts.copy_bytes(2 * GIB // 16) == 4 * GIB
    # Two blocks on each of 132 SMs, 32 KiB each: 8.25 MiB of 60.
    slices = counts.l2_slices(H200)
    assert slices == counts.Slices(264, 2048)
    assert slices.bytes == 8.25 * (1 << 20)
    assert counts.read_bytes(slices, 100) == 825 * (1 << 20)
    # 528 blocks; 2 GiB / 528 / 32 KiB = 124.1 whole tiles each.
    assert counts.read_slices(H200) == counts.Slices(528, 124 * 2048)


def test_flop_by_hand() -> None:
    # 528 blocks of 256 threads, 16 values, 12000 steps of two FMA of two FLOP.
    assert counts.multiply_add_flop(528, 12_000) == 528 * 256 * 16 * 12_000 * 2 * 2
    # 264 blocks of 8 warps, 16 instructions a step of 16 by 8 by 16 products.
    assert counts.mma_flop(264, 4_000) == 264 * 8 * 4_000 * 16 * (16 * 8 * 16) * 2
    assert counts.product_flop(8192) == 1_099_511_627_776


@given(
    sm_count=st.integers(1, 200), l2=st.integers(1, 256).map(lambda mib: mib << 20),
    memory=st.integers(1, 300).map(lambda gb: gb * 10**9),
)  # fmt: skip
def test_sets_fit_where_they_are_to_be(sm_count: int, l2: int, memory: int) -> None:
    machine = Machine((8, 0), sm_count, l2, memory)
    slices = counts.l2_slices(machine)
    if slices is not None:
        assert slices.bytes <= l2 / 2
        assert slices.count % counts.READ_TILE == 0
        assert slices.blocks % sm_count == 0
    vectors = counts.buffer_vectors(machine)
    assert vectors % counts.COPY_TILE == 0
    assert vectors == 0 or 4 * l2 <= 16 * vectors <= memory / 8
    assert 16 * vectors < 1 << 35  # an int counts vectors


def test_a_small_l2_takes_one_block_a_multiprocessor() -> None:
    assert counts.l2_slices(T4) == counts.Slices(40, 2048)
    assert counts.l2_slices(structs.replace(T4, l2_bytes=1 << 20)) is None


# ---- Rates


def test_a_rate_is_the_amount_over_the_median_time() -> None:
    one = ceiling("dram", [timed(1e-3, 4.3e9)], sheet(), 132)
    assert one.rate == pytest.approx(4.3e12)
    assert one.low <= one.rate <= one.high
    assert one.high - one.low < 0.002 * one.rate
    assert (one.unit, one.samples) == ("B/s", 70)
    assert math.isnan(one.level)  # bursts of one process
    assert (one.sm_clock, one.sm_clock_low, one.sm_clock_high) == (1.96e9, 1.94e9, 1.98e9)
    assert (one.power, one.temperature) == (410.0, 50.5)
    assert one.share == pytest.approx(4.3 / 4.8)
    assert one.throttled_by == ()
    assert one.problem == ""


def test_beside_it_stands_what_a_steady_load_gets() -> None:
    one = ceiling("dram", [timed(1e-3, 4.3e9)], sheet(), 132)
    assert one.steady == pytest.approx(4.3e12 / 1.25)
    assert (one.steady_clock, one.steady_power) == (1.45e9, 685.0)
    assert one.steady_throttled_by == (CAP,)
    assert not one.doubtful
    late = ceiling(
        "dram", [structs.replace(timed(1e-3, 4.3e9), steady_samples=(0.9e-3,) * 9)], None, 132
    )
    assert late.doubtful


def test_the_fastest_way_is_the_roof() -> None:
    ways = [timed(2e-3, 8e9, "slow"), timed(1e-3, 4.3e9, "fast"), timed(1e-3, 4.2e9, "other")]
    one = ceiling("dram", ways, None, 132)
    assert one.rate == pytest.approx(4.3e12)
    assert one.method == "fast (fastest of 3 methods)"
    assert math.isnan(one.peak)


def test_rates_above_what_the_chip_can_do_are_impossible() -> None:
    def problem(name: str, rate: float, clock: float = 1.9e9) -> str:
        return ceiling(name, [timed(1e-3, rate * 1e-3, clock=clock)], sheet(), 132).problem

    assert "not all bytes came from DRAM" in problem("dram", 4.9e12)
    assert "not all bytes came from DRAM" in problem("dram_read", 4.9e12)
    assert problem("dram_read", 4.7e12) == ""
    assert "the operation count is wrong" in problem("tensor_fp16", 1.0e15)
    assert "the operation count is wrong" in problem("tensor_fp16_mma_sync", 1.0e15)
    assert problem("tensor_fp16", 0.98e15) == ""
    # The datasheet's peak is at 1980 MHz: at 2.2 GHz a tenth more can be done.
    assert problem("fp32", 70e12, clock=2.2e9) == ""
    assert problem("fp32", 70e12, clock=1.98e9) != ""
    # 132 SMs take 64 B a cycle: 15.9 TB/s at 1.88 GHz, the median of the two blocks.
    assert problem("l2", 15e12) == ""
    assert "not all bytes came from L2" in problem("l2", 16.1e12)


def test_an_l2_no_faster_than_dram_was_missed() -> None:
    rates = {**measured("dram", rate=4e12).rates, **measured("l2", rate=3.9e12).rates}
    assert "did not stay in L2" in cross_checked(rates)["l2"].problem
    rates |= measured("l2", rate=7e12).rates
    assert cross_checked(rates) == rates


def test_without_nvml_and_datasheet_nothing_is_made_up() -> None:
    one = ceiling("fp32", [Measured("x", 6e10, (1e-3,) * 40, ())], None, 132)
    assert all(map(math.isnan, (one.sm_clock, one.power, one.temperature, one.peak, one.share)))
    assert all(map(math.isnan, (one.steady, one.steady_clock, one.steady_power)))
    assert one.problem == ""


# ---- Files


def test_a_file_says_what_was_measured(tmp_path: Path) -> None:
    whole = measured("dram", "tensor_int8", left_out={"l2": "too small"}, other_processes=2)
    text = encode(whole)
    jsonschema.validate(json.loads(text), SCHEMA)
    assert SCHEMA["$defs"]["CeilingRow"]["properties"]["name"]["enum"] == list(LABELS)
    file = tmp_path / "ceilings.json"
    file.write_text(text, encoding="utf-8")
    back = read_ceilings(file)
    assert (back.gpu.name, back.gpu.uuid, back.left_out, back.other_processes) == (
        "NVIDIA H200", "GPU-1", {"l2": "too small"}, 2,
    )  # fmt: skip
    assert back.rates["tensor_int8"].unit == "op/s"
    assert encode(back) == text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda told: told.update(schema="profkit.time/1"), "expected profkit.ceilings/1"),
        (lambda told: told.pop("gpu"), "missing required field gpu"),
        (
            lambda told: told["ceilings"][0].update(name="gddr"),
            "'gddr' is not one of dram, ",
        ),
        (
            lambda told: told["ceilings"][0].update(rate=-1),
            "ceilings[0].rate: expected",
        ),
        (
            lambda told: told["ceilings"][0].update(rate=None),
            "ceilings[0].rate: expected",
        ),
        (
            lambda told: told["ceilings"][0].update(unit="GB/s"),
            "ceilings[0].unit: ",
        ),
        (lambda told: told["ceilings"].append(told["ceilings"][0]), "duplicate roof"),
        (lambda told: told.update(ceilings=[1]), "ceilings[0]: expected object, got int"),
        (lambda told: told.update(left_out=[]), "left_out: expected object, got array"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, change: Any, message: str) -> None:
    told = json.loads(encode(measured("dram")))
    change(told)
    file = tmp_path / "ceilings.json"
    file.write_text(json.dumps(told), encoding="utf-8")
    with pytest.raises(BadInput) as caught:
        read_ceilings(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[]", b'{"schema": NaN}'])
def test_damaged_files_are_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "ceilings.json"
    file.write_bytes(content)
    with pytest.raises(BadInput, match=r"ceilings\.json: "):
        read_ceilings(file)
    with pytest.raises(BadInput, match="can't be read"):
        read_ceilings(tmp_path)


# ---- Kept


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder


def test_roofs_are_found_again_by_gpu(state: Path) -> None:
    path = keep_ceilings(measured("dram"))
    assert path == state / "profkit" / "ceilings" / "GPU-1.json"
    jsonschema.validate(json.loads(path.read_text(encoding="utf-8")), SCHEMA)
    assert set(find_ceilings(DEVICE).rates) == {"dram"}
    assert set(find_ceilings(ANY_H200).rates) == {"dram"}


def test_the_newest_of_a_model_is_taken_where_the_gpu_is_not_known() -> None:
    keep_ceilings(measured("dram"))
    other = structs.replace(DEVICE, uuid="GPU-2")
    later = "2026-02-01T00:00:00+00:00"
    keep_ceilings(measured("l2", device=other, created=later))
    assert find_ceilings(ANY_H200).gpu.uuid == "GPU-2"
    assert find_ceilings(DEVICE).gpu.uuid == "GPU-1"


def test_roofs_of_another_gpu_are_refused() -> None:
    with pytest.raises(EnvironmentProblem, match="no measured ceilings of NVIDIA H200 are saved"):
        find_ceilings(DEVICE)
    keep_ceilings(measured("dram"))
    with pytest.raises(EnvironmentProblem, match="no measured ceilings of NVIDIA L4"):
        find_ceilings(Device(name="NVIDIA L4"))
    with pytest.raises(EnvironmentProblem, match=r"not of this GPU \(uuid GPU-1 when measured"):
        find_ceilings(structs.replace(DEVICE, uuid="GPU-2"))


def test_roofs_under_other_settings_are_stale() -> None:
    whole = measured("dram")
    assert unfit(whole, DEVICE) == ()
    assert unfit(whole, Device(name="NVIDIA H200", driver="600", ecc=None)) == ()
    (why,) = unfit(whole, structs.replace(DEVICE, power_limit=500.0))
    assert why == "power limit 700.0 when measured, 500.0 in the report"
    keep_ceilings(whole)
    with pytest.raises(EnvironmentProblem, match=r"power limit 700\.0 when measured"):
        find_ceilings(structs.replace(DEVICE, power_limit=500.0))


def test_impossible_roofs_are_not_kept() -> None:
    whole = measured("dram", "l2")
    bad = structs.replace(whole.rates["l2"], problem="no faster than DRAM")
    whole = structs.replace(whole, ceilings=(whole.ceilings[0], bad))
    assert set(whole.plain) == {"dram"}
    keep_ceilings(whole)
    assert set(find_ceilings(DEVICE).rates) == {"dram"}


def test_what_can_not_be_kept_is_said(state: Path) -> None:
    state.write_text("in the way", encoding="utf-8")
    with pytest.raises(EnvironmentProblem, match=r"can't be written.*set XDG_STATE_HOME"):
        keep_ceilings(measured("dram"))


# ---- Shown


def shown(**change: Any) -> CeilingFile:
    rows = (
        ceiling("dram", [timed(1e-3, 4.31e9)], sheet(), 132),
        ceiling("tensor_fp16", [timed(1.46e-3, 1.0995e12)], sheet(), 132),
    )
    gpu = Device(name="NVIDIA H200", uuid="GPU-1")
    return CeilingFile(gpu=gpu, ceilings=rows, seconds=41.2, **change)


def terminal(ceilings: CeilingFile, path: Path | None = None) -> str:
    return document_terminal(ceilings_document(ceilings, path), to_file=True)


def markdown(ceilings: CeilingFile) -> str:
    return document_markdown(ceilings_document(ceilings, None))


def test_the_terminal_shows_rates_and_how_they_were_had() -> None:
    text = terminal(shown(), Path("/kept/GPU-1.json"))
    lines = text.splitlines()
    assert max(map(len, lines)) <= 100
    (copy,) = (line for line in lines if line.startswith("DRAM copy") and "TB/s" in line)
    assert copy.split() == [
        "DRAM", "copy", "4.310", "TB/s", "≈0.02%", "89.8%", "1960", "MHz",
        "3.448", "TB/s", "*", "685", "W",
    ]  # fmt: skip
    assert "753.1 TFLOP/s" in text
    assert "602.5 TFLOP/s *" in text
    assert "* SM clock limited by the power cap" in text
    assert "in bursts too" not in text
    assert "Saved /kept/GPU-1.json" in text


def test_what_speaks_against_roofs_is_shown() -> None:
    whole = shown(left_out={"tensor_fp8": "no such type"}, other_processes=1)
    hot = ("hardware thermal slowdown",)
    bad = structs.replace(whole.ceilings[0], problem="hits", steady=5e12, steady_throttled_by=hot)
    whole = structs.replace(whole, ceilings=(bad, whole.ceilings[1]))
    assert tuple(warnings(whole)) == (
        "DRAM copy: impossible, hits",
        "DRAM copy: SM clock throttled (hardware thermal slowdown)",
        "DRAM copy: bursts slower than the steady load, the SM clock rose late",
        "1 other process on the GPU: actual ceilings may be higher",
        "tensor FP8: not measured, no such type",
    )
    for text in (terminal(whole), markdown(whole)):
        assert "impossible, hits" in text


def test_a_power_cap_that_holds_bursts_down_is_said() -> None:
    whole = shown()
    capped = structs.replace(whole.rates["tensor_fp16"], throttled_by=(CAP,))
    whole = structs.replace(whole, ceilings=(whole.ceilings[0], capped))
    text = terminal(whole)
    assert "SM clock limited by the power cap in bursts too: tensor FP16." in text


def test_all_columns_fit_with_the_longest_name() -> None:
    name = "tensor_bf16_mma_sync"
    row = ceiling(name, [timed(1.7e-3, 1.0995e12)], sheet(), 132)
    whole = structs.replace(shown(), ceilings=(row,))
    (line,) = (line for line in terminal(whole).splitlines()
              if line.startswith("tensor BF16, mma.sync") and "646.8" in line)  # fmt: skip
    assert line.endswith("517.4 TFLOP/s *  685 W")


def test_markdown_is_a_table() -> None:
    text = markdown(shown())
    assert "| DRAM copy | 4.310 TB/s |" in text
    assert "- DRAM copy: copy.cu" in text
