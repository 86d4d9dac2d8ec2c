"""The datasheet table: the right product or none, and figures that obey arithmetic."""

from __future__ import annotations

import re

import pytest

from profkit.analysis.gpus import (
    Datasheet,
    Peak,
    all_datasheets,
    datasheet_named,
    datasheets_named,
    find_datasheet,
)
from profkit.errors import UsageError
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
        "NVIDIA GeForce RTX 4050 Laptop GPU",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA GeForce RTX 3090 Ti",
        "NVIDIA GeForce RTX 3070",
        "Quadro K6000",
        "NVIDIA H200 NVL",
        "NVIDIA H20-3e",
        "NVIDIA RTX PRO 6000 Blackwell Server Edition",
    ],
)
def test_other_products_get_none(name: str) -> None:
    found, note = find_datasheet(name, (8, 9), 76, 0)
    assert found is None
    assert note == "no datasheet figures for this GPU"


def test_a_part_of_a_chip_is_not_the_product() -> None:
    found, note = find_datasheet("NVIDIA H200", (9, 0), 60, 70 * GB)
    assert found is None
    assert "60 SMs" in note


@pytest.mark.parametrize("name", ["NVIDIA A100-SXM4-80GB MIG 7g.80gb", "NVIDIA A40-48Q"])
def test_a_share_of_a_chip_is_not_the_product(name: str) -> None:
    found, note = find_datasheet(name, (8, 0), 108, 85 * GB)
    assert found is None
    assert "a part of a chip" in note


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
LANES = {(7, 0): 64, (7, 5): 64, (8, 0): 64}
TENSOR_FLOP_PER_CYCLE = {
    (7, 0): 1024, (7, 5): 1024, (8, 0): 2048, (8, 6): 1024, (8, 9): 1024, (9, 0): 4096,
    (10, 0): 8192, (12, 0): 1024,
}  # fmt: skip
# With FP32 accumulation GeForce does half of that; the L40's datasheet has half of it as well.
HALF_RATE = {"RTX 3090", "RTX 4090", "RTX 5090", "L40"}
# Boost clocks nobody looked up: with these the published peaks do not follow from the clock.
CLOCK_RECALLED = {
    "A10G", "H100 NVL", "GH200 96 GB", "GH200 144 GB", "H20", "B100", "B200", "GB200 (one GPU)",
}  # fmt: skip


def test_fp32_peaks_follow_from_lanes_and_clock() -> None:
    """SMs x FP32 lanes x 2 x boost clock, to 1%: datasheets print two to four digits."""
    checked = set()
    for found in all_datasheets():
        if found.clocks_verified:
            lanes = LANES.get(found.cc, 128)
            expected = found.sm_count * lanes * 2 * found.boost
            assert found.peaks["fp32"].value == pytest.approx(expected, rel=0.01), found.name
            checked.add(found.name)
    assert {found.name for found in all_datasheets()} - checked == CLOCK_RECALLED


def test_tensor_peaks_follow_from_their_clock() -> None:
    """SMs x FP16 FLOP per cycle and SM x tensor clock, to 1.5%."""
    for found in all_datasheets():
        if not found.clocks_verified:
            assert found.name in CLOCK_RECALLED
            continue
        per_cycle = TENSOR_FLOP_PER_CYCLE[found.cc] / (2 if found.name in HALF_RATE else 1)
        expected = found.sm_count * per_cycle * found.tensor_clock
        assert found.peaks["tensor_fp16"].value == pytest.approx(expected, rel=0.015), found.name


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
    assert "datasheets" in l4.source


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
    "name", ["", "S512", "H200 NVL", "RTX 4090 Laptop", "RTX 3090 Ti", "80GB", "NVIDIA", "L2",
             "A100-SXM4-80GB MIG 7g.80gb"],
)  # fmt: skip
def test_a_name_that_the_table_lacks(name: str) -> None:
    assert datasheet_named(name) is None


@pytest.mark.parametrize(
    ("name", "candidates"),
    [
        ("A100", ("A100 40 GB", "A100 80 GB PCIe", "A100 80 GB SXM")),
        ("A100 80GB", ("A100 80 GB PCIe", "A100 80 GB SXM")),
        ("H100", ("H100 PCIe", "H100 SXM", "H100 NVL")),
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
