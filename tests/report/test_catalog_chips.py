"""The catalog against every chip of NVIDIA's library: a formula, or a reason why there is none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kernels.perfworks import Chip, Library, library_path
from profkit.capture.passes import passes
from profkit.capture.sections import CAPABILITIES
from profkit.core.compute_capability import parse_capability
from profkit.report.catalog import TENSOR_CODE, Quantity, catalog

PATH = library_path()
WITHOUT = dict.fromkeys(("TU116", "TU117"), "no tensor cores")
"""Chips that lack what others of their capability have."""
OF_WITHOUT = {
    "tensor_hmma_utilization",
    "peak_rate_tensor_fp16",
    "peak_rate_tensor_fp16_hmma",
    "peak_rate_tensor_int8",
}

needs_library = pytest.mark.skipif(
    PATH is None, reason="the ncu-report package has no PerfWorks library"
)


def unexplained(chip: str) -> Iterator[str]:
    """Quantities that have no formula on a chip, and no reason for that."""
    entries, cc = catalog().quantities, parse_capability(CAPABILITIES[chip])
    names = {name for entry in entries.values() for item in entry.alternatives
             for name in item.formula.names} - entries.keys() - TENSOR_CODE.keys()  # fmt: skip
    unknown = set(passes(chip, sorted(names)).unknown)
    state: dict[str, bool] = {}

    def exists(name: str) -> bool:
        if name not in entries:
            return name not in unknown
        if name not in state:
            state[name] = False  # a formula over itself gives nothing
            state[name] = has_formula(entries[name])
        return state[name]

    def has_formula(entry: Quantity) -> bool:
        if entry.is_none_on(cc) or entry.computed:
            return True
        usable = (item.formula for item in entry.alternatives if cc in item.cc)
        return entry.exists_on(cc) and any(all(map(exists, item.names)) for item in usable)

    for name, entry in entries.items():
        if not exists(name) and entry.exists_on(cc):
            yield name


@needs_library
@pytest.mark.parametrize("chip", CAPABILITIES)
def test_every_quantity_has_a_formula_or_a_reason_on_every_chip(chip: str) -> None:
    expected = OF_WITHOUT if chip in WITHOUT else set()
    assert set(unexplained(chip)) == expected


@needs_library
def test_no_chip_of_the_library_is_left_out() -> None:
    assert PATH is not None
    library = Library(PATH)
    assert set(library.chips()) == CAPABILITIES.keys()
    assert Chip(library, "GH100").counters("dram__bytes_read.sum")
