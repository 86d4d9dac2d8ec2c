"""The work formulas, against cases worked out by hand."""

from __future__ import annotations

import math

import pytest

from profkit.core.work import Work


def test_attention_forward() -> None:
    work = Work.attention(32, 8, 512, 64, element_bytes=2)
    assert work.flop == 17_179_869_184
    assert work.bytes == 67_108_864
    assert work.intensity == 256
    assert work.what == "attention forward B=32 H=8 S=512 D=64"


def test_causal_attention_computes_half_and_moves_the_same() -> None:
    work = Work.attention(32, 8, 512, 64, element_bytes=2, causal=True)
    assert work.flop == 8_589_934_592
    assert work.bytes == 67_108_864
    assert work.what.endswith("causal")


def test_attention_backward() -> None:
    work = Work.attention(32, 8, 512, 64, element_bytes=2, backward=True)
    assert work.flop == 42_949_672_960
    assert work.bytes == 134_217_728
    both = Work.attention(1, 1, 2, 3, element_bytes=4, causal=True, backward=True)
    assert (both.flop, both.bytes) == (60, 192)


def test_gemm() -> None:
    work = Work.gemm(2, 3, 5, element_bytes=2)
    assert work.flop == 60
    assert work.bytes == 62
    large = Work.gemm(4096, 4096, 4096, element_bytes=2)
    assert (large.flop, large.bytes) == (137_438_953_472, 100_663_296)


def test_elementwise() -> None:
    work = Work.elementwise(1000, reads=2, writes=1, flop_per_element=1, element_bytes=4)
    assert (work.flop, work.bytes) == (1000, 12_000)
    assert work.intensity == pytest.approx(1 / 12)


def test_work_without_traffic_has_infinite_intensity() -> None:
    assert Work(1.0, 0.0, "in registers").intensity == math.inf


def test_sizes_that_mean_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="length must be positive, not 0"):
        Work.attention(1, 1, 0, 64, element_bytes=2)
    with pytest.raises(ValueError, match="can't be negative"):
        Work(-1.0, 0.0, "")
