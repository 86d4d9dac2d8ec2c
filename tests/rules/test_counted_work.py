"""Avoidable work in recorded pairs, against counts of their machine code by hand."""

from __future__ import annotations

import pytest

import profkit
from profkit.rules.finding import Finding
from tests.conftest import needs_reader, pair_folder


def item(pair: str, side: str, rule: str) -> Finding:
    (file,) = (path for path in pair_folder(pair).glob(f"{side}.ncu-rep*"))
    (found,) = (each for each in profkit.load(file).checklist().items if each.rule.name == rule)
    return found


def evidence(finding: Finding, name: str) -> float:
    return next(each.value for each in finding.evidence if each.quantity == name)


def test_blocks_start_at_less_than_one_a_cycle() -> None:
    """786,432 blocks in 939,966 cycles: 0.84 a cycle."""
    found = item("embedding_rows", "before", "block_start_rate")
    busy = evidence(found, "block_start_busy")
    assert 0.8 <= busy <= 1
    assert busy == pytest.approx(786_432 / 939_966 / 0.87, rel=1e-3)


@needs_reader
def test_each_division_takes_eight_instructions_more() -> None:
    """Its SASS has four FCHK and the check of a reciprocal, executed 524,288 times each, of
    60,878,189 instructions."""
    found = item("diffusion_divisions", "before", "division_sequences")
    expected = 8 * 5 * 524_288 / 60_878_189
    assert evidence(found, "division_share") == pytest.approx(expected, rel=1e-3)


@needs_reader
def test_accumulators_are_most_of_the_shared_memory_instructions() -> None:
    """Its SASS has eight LDS and STS in the loop, executed 262,144 times each; 16 STS before it
    8,192 times and eight LDS after it 16,384 times."""
    found = item("atomics_shared", "after", "accumulator_in_shared_memory")
    updates = 2 * 8 * 262_144
    expected = updates / (updates + 16 * 8_192 + 8 * 16_384)
    assert evidence(found, "shared_accumulator_share") == pytest.approx(expected)
