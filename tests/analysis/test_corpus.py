"""Other people's reports, old, partial and odd: a sensible answer or the reason for none."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import profkit
from profkit.roofline.roofs import Peaks, Roofs
from tests.conftest import CORPUS, Cli, needs_corpus

pytestmark = needs_corpus
REPORTS = sorted(CORPUS.glob("*.ncu-rep"))


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_every_report_gives_a_sensible_answer(profkit_cli: Cli, path: Path) -> None:
    report = profkit.load(path)
    for launch in report.summary.launches:
        assert 0 < launch.duration < 60
        assert math.prod(launch.grid) > 0
        assert launch.gpu.cc in {(8, 6), (8, 9), (9, 0)}
        for name, value in launch.values.items():
            assert math.isfinite(value), name
        for name, reason in launch.missing.items():
            assert reason, name
    shown = profkit_cli("analyze", path, "--top", "0")
    assert "nan" not in shown.stdout.replace("nanosleep", "")
    assert max(map(len, shown.stdout.splitlines())) <= 100


@pytest.mark.parametrize(
    ("name", "clock_control", "ncu"),
    [
        ("COALDA__coalesced_chart", "base", "2023.3.0.0"),
        ("IndexSpaces.jl__profile_3176628c", "", "2022.1.1.0"),
        ("mixes-reconstruction__full_profile", "base", "2024.1.1.0"),
        ("nsight-training__manual_nvtx", "base", "2022.3.0.0"),
        ("NuKEXC__profile_309861cc", "base", "2025.2.1.0"),
    ],
)
def test_who_recorded_a_report_and_how(name: str, clock_control: str, ncu: str) -> None:
    session = profkit.load(CORPUS / f"{name}.ncu-rep").session
    assert session.clock_control == clock_control
    assert session.ncu_version == ncu
    assert session.created is not None


def test_values_of_a_single_section_are_those_of_the_file() -> None:
    kernel = profkit.load(CORPUS / "COALDA__coalesced_chart.ncu-rep").kernel(0)
    assert kernel["dram_bytes"] == 788_608
    assert kernel["dram_bandwidth"] == pytest.approx(788_608 / kernel.duration, rel=1e-3)
    assert kernel.missing["dram_busy"] == "not collected; record with ncu --section SpeedOfLight"
    assert kernel.missing["tma_busy"] == "not on this architecture"


def test_dram_roof_of_an_a40_is_its_memory() -> None:
    kernel = profkit.load(CORPUS / "IndexSpaces.jl__profile_3176628c.ncu-rep").kernel(0)
    assert kernel["dram_bandwidth_peak"] == pytest.approx(696e9, rel=0.01)
    assert kernel["dram_bandwidth_share"] == pytest.approx(kernel["dram_busy"], rel=0.01)


def test_an_impossible_counter_is_reported() -> None:
    report = profkit.load(CORPUS / "mixes-reconstruction__full_profile.ncu-rep")
    launch = report.summary.launches[1]
    assert launch.get("global_store_bytes_per_sector") > 32
    assert "global_store_bytes_per_sector" in launch.impossible
    assert any("global_store_bytes_per_sector" in warning for warning in launch.warnings)


def test_a_laptop_is_distinguished_from_the_desktop_card_of_its_name() -> None:
    report = profkit.load(CORPUS / "COALDA__coalesced_chart.ncu-rep")
    assert report.gpu.datasheet is not None
    assert report.gpu.datasheet.name == "RTX 4050 Laptop"
    (note,) = (note for note in report.summary.notes if "datasheet" in note)
    assert "2370 MHz, the max SM clock of this GPU is 1605 MHz" in note
    assert math.isnan(report.summary.launches[0].get("sm_clock"))
    assert "measured clocks" not in note


def test_a_clock_that_varied_is_not_called_locked() -> None:
    report = profkit.load(CORPUS / "Cartoonizer__gtx1660_7C.ncu-repz")
    clocks = [launch.get("sm_clock") for launch in report.summary.launches]
    assert max(clocks) > 1.3 * min(clocks)
    notes = [note for note in report.summary.notes if "clock" in note]
    assert len(notes) == 1
    assert "1.26 to 1.74 GHz though ncu was to lock it to base" in notes[0]


@pytest.mark.parametrize(
    ("name", "precision", "per_cycle", "by_units"),
    [
        ("lammps__output.ncu-repz", "tensor_fp16", 80 * 1024, True),
        ("fused-linear__profile_report.ncu-repz", "tensor_fp16", 40 * 1024, True),
        ("fused-linear__profile_report.ncu-repz", "fp32", 40 * 128, True),
        ("cs599k__silu_77_06.ncu-repz", "tensor_bf16", 108 * 2048, False),
        ("speedy_scan__profile.ncu-repz", "tensor_fp16", 46 * 512, True),
        ("NetworkSim__profile.ncu-repz", "fp64", 66 * 4, True),
        ("KernelBench__matmul_kernel.ncu-rep", "tensor_tf32", 114 * 2048, True),
        ("accelsim-test__algo64.ncu-repz", "tensor_fp8", 148 * 16384, True),
        # 512 FLOP per cycle and SM are in the report itself.
        ("blackwell-kernels__v5_swizzle.ncu-repz", "tensor_bf16", 170 * 512, False),
        ("blackwell-kernels__v5_swizzle.ncu-repz", "tensor_int8", 170 * 2048, False),
    ],
)
def test_roofs_of_arithmetic_on_every_architecture(
    name: str, precision: str, per_cycle: float, by_units: bool
) -> None:
    report = profkit.load(CORPUS / name)
    launch = report.summary.launches[0]
    roof = Roofs(Peaks.held, {}).roof(launch, precision)
    assert roof.rate == pytest.approx(per_cycle * launch.get("sm_clock"), rel=1e-6)
    assert roof.by_units == by_units


def test_counters_of_a_geforce_agree_with_the_units_table() -> None:
    launch = profkit.load(CORPUS / "blackwell-kernels__v5_swizzle.ncu-repz").summary.launches[0]
    clock = launch.get("sm_clock") * launch.gpu.sm_count
    for precision in ("fp16", "bf16", "tf32", "fp8", "int8"):
        counted = launch.get(f"peak_rate_tensor_{precision}") / clock
        assert counted == pytest.approx(launch.gpu.per_cycle(f"tensor_{precision}")), precision


def test_a_gtx_has_no_tensor_roof() -> None:
    launch = profkit.load(CORPUS / "Cartoonizer__gtx1660_7C.ncu-repz").summary.launches[0]
    roofs = Roofs(Peaks.held, {})
    assert math.isnan(roofs.roof(launch, "tensor_fp16").rate)
    assert roofs.roof(launch, "fp32").rate == pytest.approx(22 * 128 * launch.get("sm_clock"))


def test_a_roof_by_units_says_so(profkit_cli: Cli) -> None:
    path = CORPUS / "fused-linear__profile_report.ncu-repz"
    shown = profkit_cli("roofline", path, "--precision", "tensor_fp16").stdout
    assert "measured SM clock, by compute capability" in shown
    assert "no counter for the roof of" in shown


def test_addresses_without_text_and_lines_say_why_and_what_would_give_them(
    profkit_cli: Cli,
) -> None:
    """A V100's code, compiled without line information."""
    report = CORPUS / "lammps__output.ncu-repz"
    for verb in ("checklist", "source"):
        text = " ".join(profkit_cli(verb, report).stdout.split())
        assert "NVIDIA's ncu-report has no instruction text of sm_70" in text
        assert "compile with -lineinfo" in text
