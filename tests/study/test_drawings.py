"""Drawings of a baseline: which there are, what is on them, the same bytes each time."""

from __future__ import annotations

from xml.etree import ElementTree

from msgspec.structs import replace

from profkit.study.drawings import drawings
from profkit.study.summary_format import Row
from profkit.timing.cell import CellStatus


def rows() -> list[Row]:
    made = []
    for backend, rate in (("default", 50e12), ("fl$ash<b>", 30e12)):
        for length in (512, 1024):
            flop = 4.0 * 8 * 8 * length**2 * 64
            made.append(
                Row(
                    id=f"s{length}.{backend}", shape=f"s{length}", at=0, backend=backend,
                    status=CellStatus.measured, reason="", arguments={}, gpu="L4", batch=8, heads=8,
                    kv_heads=8, length=length, dim=64, causal=False, backward=False,
                    dtype="float16", seconds=flop / rate, low=0.99 * flop / rate,
                    high=1.01 * flop / rate, claim="holds", flop=flop, flop_rate=rate,
                    intensity=length / 2, bandwidth=1e11, share_of_datasheet=rate / 121e12,
                    datasheet_peak=121e12, dram_peak=300e9,
                )
            )  # fmt: skip
    return made


def texts(svg: str) -> set[str]:
    return {
        one.text or "" for one in ElementTree.fromstring(svg).iter() if one.tag.endswith("text")
    }


def test_a_gpus_cells_have_all_drawings_the_same_each_time() -> None:
    found = drawings(rows(), [])
    assert list(found) == ["latency.svg", "peak.svg", "bandwidth.svg", "roofline.svg"]
    assert found == drawings(rows(), [])
    assert {"default", "fl$ash<b>", "latency (µs)", "512", "1024"} <= texts(found["latency.svg"])
    assert "dense datasheet peak 121.0 TFLOP/s" in texts(found["roofline.svg"])
    assert "DRAM peak 300.0 GB/s" in texts(found["bandwidth.svg"])
    assert not any("<dc:date>" in svg or "Matplotlib" in svg for svg in found.values())


def test_what_is_not_known_is_not_drawn() -> None:
    bare = [
        replace(row, flop_rate=None, share_of_datasheet=None, bandwidth=None, dram_peak=None)
        for row in rows()
    ]
    assert list(drawings(bare, [])) == ["latency.svg"]
    elsewhere = [replace(row, length=None) for row in rows()]
    assert drawings(elsewhere, []) == {}
    assert drawings([replace(row, seconds=None) for row in rows()], []) == {}


def test_cells_without_an_interval_are_distinguished() -> None:
    told = [replace(row, low=None, high=None, refused="drifting") for row in rows()[:2]]
    assert "default, no interval" in texts(drawings(told, [])["latency.svg"])
