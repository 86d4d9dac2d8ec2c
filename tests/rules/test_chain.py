"""Chains of kernels that pass data through DRAM, from hand-made launches."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec import structs

from profkit.report.summary import groups
from profkit.rules.engine import diagnose
from profkit.rules.finding import Finding
from tests.rules.test_engine import FUSING, STREAMING, Values, of_kernels, report

PRODUCT = {
    **STREAMING,
    "dram_busy": 0.3,
    "tensor_instructions": 1e7,
    "instructions_executed": 5e9,
    "duration": 3e-3,
}
TINY = {
    **STREAMING,
    **dict.fromkeys(("dram_read_bytes", "dram_write_bytes", "l2_write_bytes"), 1e3),
}
TINY = {**TINY, "duration": 2e-6, "dram_bytes": 2e3, "dram_busy": 1e-3}
PEAK = 2e9 / (0.9 * 1e-3)  # bytes/s, of STREAMING


def members(findings: Sequence[Finding]) -> list[str]:
    """The launches of each finding's chains, by name."""
    return [
        "".join(launch.name for launch in finding.estimate.launches)
        for finding in findings
        if finding.estimate
    ]


@pytest.mark.parametrize(
    ("order", "chains"),
    [
        ("ab", ["ab"]),
        ("abc", ["abc"]),
        ("aaa", []),  # a repeated kernel works on the same buffers
        ("aabb", ["ab"]),
        ("abab", ["abab"]),  # twice a chain of two
        ("abcabc", ["abcabc"]),
    ],
)
def test_a_chain_is_a_sequence_of_different_kernels(order: str, chains: list[str]) -> None:
    assert members(diagnose(of_kernels(order), [FUSING]).findings) == chains


def test_three_elementwise_kernels_are_one_that_reads_and_writes_once() -> None:
    """Each reads and writes 1 GB: fused, 1 GB is read and written, at 87% of 95% of the peak."""
    (finding,) = diagnose(of_kernels("abc"), [FUSING]).findings
    assert finding.estimate
    fused = 2e9 / (PEAK * 0.95 * 0.87)
    assert finding.estimate.likely == pytest.approx(3e-3 / fused)
    assert finding.saved == pytest.approx(3e-3 - fused)
    assert finding.estimate.bounded_by == ""


def test_an_elementwise_kernel_becomes_the_epilogue_of_a_product() -> None:
    (finding,) = diagnose(report([PRODUCT, STREAMING], names="gx"), [FUSING]).findings
    assert finding.kernel == "g"
    assert finding.estimate
    assert finding.estimate.likely == pytest.approx(4 / 3)  # the product's time remains
    assert diagnose(report([STREAMING, PRODUCT], names="xg"), [FUSING]).findings == ()


def test_tiny_kernels_between_do_not_part_a_chain() -> None:
    found = diagnose(report([STREAMING, TINY, STREAMING], names="atb"), [FUSING])
    assert members(found.findings) == ["atb"]
    assert diagnose(report([STREAMING, TINY], names="at"), [FUSING]).findings == ()


def test_kernels_that_pass_on_little_are_no_chain() -> None:
    other: Values = {**STREAMING, "dram_read_bytes": 2e8}
    assert diagnose(report([STREAMING, other], names="ab"), [FUSING]).findings == ()


def test_a_launch_that_was_not_selected_is_in_no_chain() -> None:
    whole = of_kernels("ab")
    (second,) = (launch for launch in whole.launches if launch.name == "b")
    selection = structs.replace(whole, launches=(second,), groups=groups((second,)))
    assert diagnose(selection, [FUSING]).findings == ()
