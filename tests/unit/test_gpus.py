"""The datasheet table: the right product or none, and figures that obey arithmetic."""

from __future__ import annotations

import pytest

from profkit.analysis.gpus import Datasheet, find_datasheet

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
