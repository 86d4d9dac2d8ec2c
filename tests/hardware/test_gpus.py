"""The datasheet table: the right product or none, and figures that obey arithmetic."""

from __future__ import annotations

import re

import pytest

from profkit.core.errors import UsageError
from profkit.hardware.gpus import (
    Datasheet,
    Gpu,
    Peak,
    all_datasheets,
    datasheet_named,
    datasheets_named,
    find_datasheet,
    flop_per_cycle,
    gpu_of,
)
from tests.conftest import ROOT

GB = 10**9


def sheet(name: str, cc: tuple[int, int], sms: int, memory: float = 0) -> Datasheet | None:
    return find_datasheet(name, cc, sms, int(memory))[0]


@pytest.mark.parametrize(
    ("name", "cc", "sms", "memory", "product", "fp16", "dram"),
    [
        ("NVIDIA H200", (9, 0), 132, 150 * GB, "H200", 989e12, 4800e9),
        ("NVIDIA H100 80GB HBM3", (9, 0), 132, 85 * GB, "H100 SXM", 989e12, 3350e9),
        ("NVIDIA H100 PCIe", (9, 0), 114, 85 * GB, "H100 PCIe", 756e12, 2000e9),
        ("NVIDIA H20", (9, 0), 78, 102 * GB, "H20", 148e12, 4000e9),
        ("NVIDIA GH200 120GB", (9, 0), 132, 102 * GB, "GH200 96 GB", 989e12, 4000e9),
        ("NVIDIA GH200 144G HBM3e", (9, 0), 132, 150 * GB, "GH200 144 GB", 989e12, 4900e9),
        ("NVIDIA A100-SXM4-40GB", (8, 0), 108, 42 * GB, "A100 40 GB", 312e12, 1555e9),
        ("NVIDIA A100-SXM4-80GB", (8, 0), 108, 85 * GB, "A100 80 GB SXM", 312e12, 2039e9),
        ("NVIDIA A100 80GB PCIe", (8, 0), 108, 85 * GB, "A100 80 GB PCIe", 312e12, 1935e9),
        ("NVIDIA L4", (8, 9), 58, 24 * GB, "L4", 121e12, 300e9),
        ("NVIDIA L40S", (8, 9), 142, 48 * GB, "L40S", 362e12, 864e9),
        ("NVIDIA A10G", (8, 6), 80, 24 * GB, "A10G", 70e12, 600e9),
        ("NVIDIA GeForce RTX 4090", (8, 9), 128, 25 * GB, "RTX 4090", 165e12, 1008e9),
        ("Tesla V100-SXM2-16GB", (7, 0), 80, 17 * GB, "V100 SXM2", 125e12, 900e9),
        ("Tesla T4", (7, 5), 40, 16 * GB, "T4", 65e12, 320e9),
        ("NVIDIA B200", (10, 0), 148, 190 * GB, "B200", 2250e12, 8000e9),
        ("NVIDIA GB200", (10, 0), 148, 190 * GB, "GB200 (one GPU)", 2500e12, 8000e9),
    ],
)
def test_products_get_their_own_dense_peaks(
    name: str, cc: tuple[int, int], sms: int, memory: float, product: str, fp16: float, dram: float
) -> None:
    found = sheet(name, cc, sms, memory)
    assert found is not None
    assert found.name == product
    assert found.peaks["tensor_fp16"].value == fp16
    assert found.peaks["dram"].value == dram


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA GeForce RTX 4060",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA GeForce RTX 4090 D",
        "NVIDIA GeForce RTX 3070 Ti Laptop GPU",
        "NVIDIA GeForce RTX 3080 Laptop GPU",
        "NVIDIA GeForce RTX 3090 Ti",
        "NVIDIA GeForce RTX 2060",
        "NVIDIA GeForce RTX 2080",
        "NVIDIA GeForce RTX 2080 Super with Max-Q Design",
        "NVIDIA GeForce GTX 1660 SUPER",
        "NVIDIA GeForce GTX 1660 Ti with Max-Q Design",
        "NVIDIA GeForce GTX 1650 Ti",
        "Quadro RTX 6000",
        "NVIDIA RTX A600",
        "NVIDIA A100-SXM-64GB",
        "NVIDIA H100 64GB HBM2",
        "Tesla V100-SXM3-32GB",
        "NVIDIA H100",
        "Quadro K6000",
        "NVIDIA H200 NVL",
        "NVIDIA H20-3e",
        "NVIDIA RTX PRO 6000 Blackwell Server Edition",
    ],
)
def test_other_products_get_none(name: str) -> None:
    found, note = find_datasheet(name, (8, 9), 76, 0)
    assert found is None
    assert note == "no datasheet values for this GPU"


def test_a_part_of_a_chip_is_not_the_product() -> None:
    found, note = find_datasheet("NVIDIA H200", (9, 0), 60, 70 * GB)
    assert found is None
    assert "60 SMs" in note


@pytest.mark.parametrize("name", ["NVIDIA A100-SXM4-80GB MIG 7g.80gb", "NVIDIA A40-48Q"])
def test_a_share_of_a_chip_is_not_the_product(name: str) -> None:
    found, note = find_datasheet(name, (8, 0), 108, 85 * GB)
    assert found is None
    assert "a partition of a GPU" in note


def test_recalled_figures_are_marked() -> None:
    a10g = sheet("NVIDIA A10G", (8, 6), 80)
    h200 = sheet("NVIDIA H200", (9, 0), 132)
    assert a10g is not None
    assert h200 is not None
    assert not a10g.peaks["tensor_fp16"].verified
    assert a10g.peaks["dram"].verified
    assert all(peak.verified for peak in h200.peaks.values())


def test_no_sparse_figure_passes_for_a_dense_one() -> None:
    for name, cc, sms in (
        ("NVIDIA L4", (8, 9), 58),
        ("NVIDIA H200", (9, 0), 132),
        ("NVIDIA A100-SXM4-40GB", (8, 0), 108),
        ("NVIDIA L40S", (8, 9), 142),
        ("NVIDIA B200", (10, 0), 148),
    ):
        found = sheet(name, cc, sms)
        assert found is not None
        peaks = {key: peak.value for key, peak in found.peaks.items()}
        assert peaks["tensor_fp16"] == pytest.approx(2 * peaks["tensor_tf32"], rel=0.03)
        assert peaks["tensor_int8"] == pytest.approx(2 * peaks["tensor_fp16"], rel=0.03)
        assert peaks["tensor_bf16"] == peaks["tensor_fp16"]


FACTS = ROOT.parent / "shared" / "facts" / "gpus.md"
# CUDA C++ Programming Guide, results per cycle and SM of FP32 and FP64 adds and multiplies.
FP32_LANES = {(7, 0): 64, (7, 5): 64, (8, 0): 64}
FP64_LANES = {(7, 0): 32, (8, 0): 32, (9, 0): 64, (10, 0): 64}
# Clocks that nobody publishes: each is that of the product's figure, and has to give the others.
CLOCKS_IMPLIED = {"H100 NVL", "H20", "B100"}
# NVIDIA lowered these after its first brief on Blackwell (the facts have that) to what 148 SMs
# do at their highest clock: 148 x 128 x 2 x 1.98 GHz = 75.0 TFLOP/s, and 80.0 at 2.112 GHz.
CORRECTED = {"B200": {"fp32": 75, "fp64": 37}, "GB200 (one GPU)": {"fp32": 80, "fp64": 40}}


def rounding(text_digits: float, value: float) -> float:
    """2%, or half a unit of the last of the digits that a datasheet prints."""
    return max(0.02, text_digits / 2 / value)


def printed_digit(value: float) -> float:
    """The last decimal of a figure as the table prints it: 0.1 of 1.4, 100 of 1100."""
    text = f"{value:g}"
    if "." in text:
        return 10.0 ** -len(text.partition(".")[2])
    return 10.0 ** (len(text) - len(text.rstrip("0")))


@pytest.mark.parametrize("found", all_datasheets(), ids=lambda found: found.name)
def test_every_compute_peak_is_sms_times_units_times_clock(found: Datasheet) -> None:
    """Each figure to 2% or its own rounding, but those that export rules cut."""
    units = flop_per_cycle(found.cc)
    for key, peak in found.peaks.items():
        if key == "dram" or key in found.limited:
            continue
        expected = found.sm_count * units[key] * found.scale.get(key, 1) * found.clock_of(key)
        digit = printed_digit(round(peak.value / 1e12, 6)) * 1e12
        assert peak.value == pytest.approx(expected, rel=rounding(digit, peak.value)), key
    for key, peak in found.f16_accumulate.items():
        assert peak.value == pytest.approx(
            found.sm_count * units[key] * found.tensor_clock, rel=0.02
        ), key


@pytest.mark.parametrize("found", all_datasheets(), ids=lambda found: found.name)
def test_boost_is_the_highest_clock_where_clocks_are_published(found: Datasheet) -> None:
    assert found.tensor_clock <= found.boost * 1.001
    if found.name not in CLOCKS_IMPLIED:
        assert found.vector_clock == found.boost


def test_units_are_those_of_the_programming_guide() -> None:
    for found in all_datasheets():
        units = flop_per_cycle(found.cc)
        assert units["fp32"] == 2 * FP32_LANES.get(found.cc, 128)
        assert units["fp64"] == 2 * FP64_LANES.get(found.cc, 2)
        tensor = units["tensor_fp16"]
        assert units.get("tensor_bf16", tensor) == tensor
        assert units.get("tensor_tf32", tensor / 2) == tensor / 2
        assert units.get("tensor_int8", 2 * tensor) == 2 * tensor
        assert units.get("tensor_fp8", 2 * tensor) == 2 * tensor


def test_products_that_the_corpus_of_reports_has() -> None:
    names = {found.name for found in all_datasheets()}
    for family in (
        "V100 SXM2", "V100 PCIe", "T4", "GTX 1650 GDDR5", "GTX 1660", "GTX 1660 Ti",
        "RTX 2060 SUPER", "RTX 2060 Max-Q", "RTX 2080 Ti", "A100 40 GB", "A100 80 GB PCIe",
        "A100 80 GB SXM", "A10", "A10G", "A40", "RTX A6000", "RTX 3070", "RTX 3070 Ti",
        "RTX 3080 10 GB", "RTX 3080 Ti", "RTX 3090", "L4", "L40S", "RTX 4050 Laptop",
        "RTX 4060 Laptop", "RTX 4070 Ti SUPER", "RTX 4080 SUPER", "RTX 4090", "H100 PCIe",
        "H100 SXM", "H100 NVL", "H800 SXM", "H200", "GH200 96 GB", "B200", "GB200 (one GPU)",
        "RTX 5060 Ti", "RTX 5090",
    ):  # fmt: skip
        assert family in names
    for found in all_datasheets():
        assert found.source
        assert {"fp32", "fp64", "dram"} <= found.peaks.keys()
        assert "GTX" in found.name or "tensor_fp16" in found.peaks


@pytest.mark.parametrize(
    ("name", "cc", "sms", "memory", "dram", "product"),
    [
        ("GeForce RTX 2080 Ti", (7, 5), 68, 11, 616, "RTX 2080 Ti"),
        ("NVIDIA GeForce RTX 2060 SUPER", (7, 5), 34, 8, 448, "RTX 2060 SUPER"),
        ("GeForce RTX 2060 Super", (7, 5), 34, 8, 448, "RTX 2060 SUPER"),
        ("NVIDIA GeForce RTX 2060 with Max-Q Design", (7, 5), 30, 6, 264, "RTX 2060 Max-Q"),
        ("NVIDIA GeForce GTX 1660", (7, 5), 22, 6, 192, "GTX 1660"),
        ("NVIDIA GeForce GTX 1660 Ti", (7, 5), 24, 6, 288, "GTX 1660 Ti"),
        ("NVIDIA GeForce GTX 1650", (7, 5), 14, 4, 128, "GTX 1650 GDDR5"),
        ("NVIDIA GeForce GTX 1650", (7, 5), 14, 4, 192, "GTX 1650 GDDR6"),
        ("NVIDIA GeForce GTX 1650", (7, 5), 16, 4, 128, "GTX 1650 Mobile"),
        ("NVIDIA RTX A6000", (8, 6), 84, 48, 768, "RTX A6000"),
        ("NVIDIA GeForce RTX 3080", (8, 6), 68, 10, 760, "RTX 3080 10 GB"),
        ("NVIDIA GeForce RTX 3080", (8, 6), 70, 12, 912, "RTX 3080 12 GB"),
        ("NVIDIA GeForce RTX 4060 Laptop GPU", (8, 9), 24, 8.6, 256, "RTX 4060 Laptop"),
        ("Tesla V100-PCIE-32GB", (7, 0), 80, 34, 898, "V100 PCIe"),
        ("Tesla V100-SXM2-32GB", (7, 0), 80, 34, 898, "V100 SXM2"),
        ("A100-PCIE-40GB", (8, 0), 108, 42, 1555, "A100 40 GB"),
        ("NVIDIA H100 NVL", (9, 0), 132, 100, 3940, "H100 NVL"),
        ("NVIDIA H800", (9, 0), 132, 85, 3350, "H800 SXM"),
        ("NVIDIA H800 PCIe", (9, 0), 114, 85, 2039, "H800 PCIe"),
        ("NVIDIA GH200 480GB", (9, 0), 132, 102, 4022, "GH200 96 GB"),
        ("NVIDIA GeForce RTX 5060 Ti", (12, 0), 36, 16, 448, "RTX 5060 Ti"),
    ],
)
def test_names_as_drivers_print_them(
    name: str, cc: tuple[int, int], sms: int, memory: float, dram: float, product: str
) -> None:
    found, note = find_datasheet(name, cc, sms, int(memory * GB), dram * GB)
    assert found is not None, note
    assert found.name == product


def test_a_laptop_below_its_highest_clock_says_so() -> None:
    device: dict[str, str | float] = {
        "name": "NVIDIA GeForce RTX 4050 Laptop GPU", "cc_major": 8, "cc_minor": 9,
        "sm_count": 20, "clock_khz": 1605000, "memory_clock_khz": 8001000, "memory_bus_bits": 96,
        "memory_bytes": 6 * GB,
    }  # fmt: skip
    limited, full = gpu_of(device), gpu_of({**device, "clock_khz": 2370000})
    assert limited.datasheet == full.datasheet == datasheet_named("RTX 4050 Laptop")
    assert "2370 MHz" in limited.datasheet_note
    assert "1605 MHz" in limited.datasheet_note
    assert full.datasheet_note == ""


def test_gpus_without_a_datasheet_have_the_units_of_their_capability() -> None:
    def gpu(name: str, cc: tuple[int, int]) -> Gpu:
        return gpu_of({"name": name, "cc_major": cc[0], "cc_minor": cc[1], "sm_count": 10})

    assert gpu("NVIDIA GeForce RTX 3060", (8, 6)).per_cycle("tensor_fp16") == 512
    assert gpu("NVIDIA GeForce RTX 3060", (8, 6)).accumulation_scale == 0.5
    assert gpu("NVIDIA RTX A4000", (8, 6)).per_cycle("tensor_fp16") == 1024
    assert gpu("NVIDIA RTX A4000", (8, 6)).accumulation_scale == 1
    assert gpu("NVIDIA GeForce GTX 1660 SUPER", (7, 5)).per_cycle("tensor_fp16") == 0
    assert gpu("NVIDIA GeForce RTX 5070", (12, 0)).per_cycle("tensor_int8") == 2048
    assert gpu("unknown", (13, 0)).per_cycle("fp32") == 0


def test_both_clocks_and_both_accumulations() -> None:
    h200, l4, rtx = (datasheet_named(name) for name in ("H200", "L4", "RTX 4090"))
    assert h200 is not None
    assert l4 is not None
    assert rtx is not None
    assert (h200.boost, h200.tensor_clock) == (1980e6, 1830e6)
    assert h200.clock_headroom("tensor_fp16") == pytest.approx(1.082, abs=1e-3)
    assert h200.clock_headroom("fp32") == l4.clock_headroom("tensor_fp16") == 1
    assert rtx.f16_accumulate["tensor_fp16"].value == 2 * rtx.peaks["tensor_fp16"].value
    assert "tensor_bf16" not in rtx.f16_accumulate
    assert not l4.f16_accumulate
    assert l4.l2.value == 48 * 2**20
    assert (l4.memory, h200.memory) == ("GDDR6", "HBM3e")
    assert "L4" in l4.source
    assert l4.sparse


@pytest.mark.parametrize(
    ("name", "product"),
    [
        ("NVIDIA L4", "L4"),
        ("l4", "L4"),
        ("H100 SXM", "H100 SXM"),
        ("H100 SXM5 80GB", "H100 SXM"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("H100-PCIe", "H100 PCIe"),
        ("rtx 4090", "RTX 4090"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("A100-SXM4-80GB", "A100 80 GB SXM"),
        ("A100 40GB", "A100 40 GB"),
        ("A10", "A10"),
        ("A10G", "A10G"),
        ("GH200 144GB", "GH200 144 GB"),
        ("GB200", "GB200 (one GPU)"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada"),
    ],
)
def test_a_name_as_people_write_it(name: str, product: str) -> None:
    found = datasheet_named(name)
    assert found is not None
    assert found.name == product


@pytest.mark.parametrize(
    "name", ["", "S512", "H200 NVL", "RTX 4090 Laptop", "RTX 3090 Ti", "RTX 4060", "RTX 2060",
             "80GB", "NVIDIA", "L2",             "A100-SXM4-80GB MIG 7g.80gb"],
)  # fmt: skip
def test_a_name_that_the_table_lacks(name: str) -> None:
    assert datasheet_named(name) is None


@pytest.mark.parametrize(
    ("name", "candidates"),
    [
        ("A100", ("A100 40 GB", "A100 80 GB PCIe", "A100 80 GB SXM")),
        ("A100 80GB", ("A100 80 GB PCIe", "A100 80 GB SXM")),
        ("H100", ("H100 PCIe", "H100 SXM", "H100 NVL")),
        ("V100", ("V100 SXM2", "V100 PCIe")),
        ("RTX 3080", ("RTX 3080 10 GB", "RTX 3080 12 GB")),
    ],
)
def test_a_name_of_several_is_refused(name: str, candidates: tuple[str, ...]) -> None:
    assert tuple(found.name for found in datasheets_named(name)) == candidates
    with pytest.raises(UsageError) as refused:
        datasheet_named(name)
    assert all(candidate in str(refused.value) for candidate in candidates)


@pytest.mark.parametrize("found", all_datasheets(), ids=lambda found: found.name)
def test_every_product_answers_to_its_own_name(found: Datasheet) -> None:
    assert datasheet_named(found.name) == found


@pytest.mark.skipif(not FACTS.is_file(), reason="the collected facts are not here")
def test_every_figure_is_that_of_the_facts() -> None:
    checked = 0
    for row in _facts():
        for found in _products(row[0]):
            for what, cell, peak in _figures(row, found):
                value, verified = cell
                corrected = CORRECTED.get(found.name, {}).get(what.removeprefix("tensor_"))
                value = corrected * 1e12 if corrected else value
                assert peak.value == pytest.approx(value), (found.name, what)
                assert peak.verified == verified, (found.name, what)
                checked += 1
    assert checked == 249


def _facts() -> list[list[str]]:
    lines = FACTS.read_text(encoding="utf-8").splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("| GPU |"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    assert len(rows) == 25
    return rows


def _products(name: str) -> list[Datasheet]:
    """The rows of the table that a row of the facts is of, in the order of its alternatives."""
    known = {found.name: found for found in all_datasheets()}
    several = {
        "A100 80 GB PCIe, SXM": ["A100 80 GB PCIe", "A100 80 GB SXM"],
        "GH200": ["GH200 96 GB", "GH200 144 GB"],
        "GB200, per GPU": ["GB200 (one GPU)"],
    }
    return [known[one] for one in several.get(name, [name])]


def _value(text: str) -> tuple[float, bool]:
    match = re.match(r"([\d.]+)(r?)", text.strip())
    assert match, text
    return float(match.group(1)), not match.group(2)


def _figures(row: list[str], found: Datasheet) -> list[tuple[str, tuple[float, bool], Peak]]:
    """What, the facts' figure and whether it was looked up, the table's: in the table's units."""
    _, cc, sms, boost, fp16, tf32, fp8_int8, fp64, fp32, dram, l2 = row
    assert cc == f"{found.cc[0]}.{found.cc[1]}"
    assert _value(sms)[0] == found.sm_count
    figures: list[tuple[str, str, Peak, float]] = [
        ("tensor_fp16", fp16, found.peaks["tensor_fp16"], 1e12),
        ("fp32", fp32, found.peaks["fp32"], 1e12),
        ("fp64", fp64.split("/")[1], found.peaks["fp64"], 1e12),
        ("dram", _alternative(dram, found), found.peaks["dram"], 1e9),
        ("l2", l2, found.l2, 2**20),
    ]
    if boost.startswith("as "):
        assert (found.boost, found.tensor_clock) == (1980e6, 1830e6)
        assert not found.clocks_verified
    else:
        figures.append(("boost", boost, Peak(found.boost, found.clocks_verified), 1e6))
    if "(tensor" in boost:
        figures.append(
            (
                "tensor clock",
                boost.split("tensor")[1],
                Peak(found.tensor_clock, found.clocks_verified),
                1e6,
            )
        )
    if tf32 != "-":
        figures.append(("tensor_tf32", tf32, found.peaks["tensor_tf32"], 1e12))
    if not fp64.startswith("-"):
        figures.append(("tensor_fp64", fp64, found.peaks["tensor_fp64"], 1e12))
    figures += _eight_bits(fp8_int8, found)
    for key, text in (("tensor_fp16", fp16), ("tensor_fp8", fp8_int8)):
        if "(" in text:
            higher = re.sub(r".*\((?:f16 acc\. )?([\d.]+)\).*", r"\1", text)
            figures.append((f"{key}, FP16", higher, found.f16_accumulate[key], 1e12))
    return [(what, _scaled(text, unit), peak) for what, text, peak, unit in figures]


def _scaled(text: str, unit: float) -> tuple[float, bool]:
    value, verified = _value(text)
    return value * unit, verified


def _eight_bits(text: str, found: Datasheet) -> list[tuple[str, str, Peak, float]]:
    """INT8, and FP8 from CC 8.9 on; where both are given they differ."""
    if text == "-":
        return []
    fp8, _, int8 = text.partition(", INT8 ")
    rows = [("tensor_int8", int8 or fp8, found.peaks["tensor_int8"], 1e12)]
    if found.cc >= (8, 9):
        rows.append(("tensor_fp8", fp8.removeprefix("FP8 "), found.peaks["tensor_fp8"], 1e12))
    else:
        assert "tensor_fp8" not in found.peaks
    return rows


def _alternative(text: str, found: Datasheet) -> str:
    """`1935, 2039` and `4000 or 4900r` are of two products, in their order."""
    parts = re.split(r", | or ", text)
    second = found.name in {"A100 80 GB SXM", "GH200 144 GB"}
    return parts[-1] if second else parts[0]


def test_nvlink_is_of_both_directions_and_only_where_it_was_looked_up() -> None:
    """18 links of 50 GB/s: NVIDIA's system description of its H200 submission to MLPerf 4.1."""
    h200, l4 = sheet("NVIDIA H200", (9, 0), 132), sheet("NVIDIA L4", (8, 9), 58)
    assert h200 is not None
    assert l4 is not None
    assert h200.nvlink == Peak(18 * 50e9, verified=True)
    assert l4.nvlink.value == 0
