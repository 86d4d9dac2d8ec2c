"""Sentences judged by hand: the wrong ones are contradicted, the true ones never."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from profkit.audit.audit import examine
from profkit.audit.check import Contradiction
from profkit.audit.claim_text import LONGEST, understood
from profkit.audit.claims import read_claims
from tests.conftest import Cli, recorded_summary

DATA = Path(__file__).parent.parent / "data" / "claims"


def contradicted(text: str) -> tuple[Contradiction, ...]:
    return examine([replace(understood(text), text=text)]).contradictions


def judged(name: str) -> tuple[list[str], list[str]]:
    """Texts of the wrong sentences and of the true ones."""
    rows: list[dict[str, Any]] = yaml.safe_load((DATA / name).read_text(encoding="utf-8"))
    assert all(row["reason"] for row in rows)
    wrong = [row["text"] for row in rows if row["wrong"]]
    return wrong, [row["text"] for row in rows if not row["wrong"]]


@pytest.mark.parametrize(("name", "wrong_ones"), [("sentences.yaml", 46), ("heldout.yaml", 13)])
def test_wrong_sentences_are_caught_and_true_ones_left(name: str, wrong_ones: int) -> None:
    """At most one in twenty of the wrong ones is missed, rounded up to one of thirteen."""
    wrong, true = judged(name)
    assert len(wrong) == wrong_ones < len(true)
    accused = {text: contradicted(text) for text in true}
    assert not {text: found for text, found in accused.items() if found}
    missed = [text for text in wrong if not contradicted(text)]
    assert len(missed) <= max(1, len(wrong) // 20), missed


@pytest.mark.parametrize(
    ("text", "rule", "expected"),
    [
        ("Locked at 1410 MHz, the H200's dense BF16 peak is 989 TFLOP/s.", "peak", 762.3e12),
        ("At 1980 MHz an H100 SXM peaks at 1340 TFLOP/s dense FP16.", "peak", 1070.5e12),
        ("RTX 4090: a tensor FP16 peak of 330 TFLOP/s, FP32 accumulate", "peak", 165e12),
        ("2,048 tokens in 0.25 s is 6,100 tokens/s", "tokens", 8192),
        ("At 20 GFLOP per token, 9,000 tokens/s is 120 TFLOP/s", "tokens", 180e12),
        ("8192x8192x8192 takes 1.43 ms, 960 TFLOP/s", "amount_over_time", 768.9e12),
        ("64 registers per thread and 256 threads per block: 75% occupancy on an A100",
         "occupancy", 0.5),
    ],
)  # fmt: skip
def test_what_follows(text: str, rule: str, expected: float) -> None:
    (found,) = contradicted(text)
    assert found.rule == rule
    assert found.expected == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize(
    ("text", "ends_in"),
    [
        ("Our kernel takes 1.0 ms against 1.4 ms, so it is 60% faster.", "1.4x, i.e. 40% more"),
        ("It went from 100 µs to 70 µs, a 43% reduction.", "1.43x, i.e. 30% less"),
        ("805 MB vs 268 MB of traffic, a factor of 4.1.", "3x"),
    ],
)
def test_changes_show_the_quotient(
    profkit_cli: Cli, tmp_path: Path, text: str, ends_in: str
) -> None:
    path = tmp_path / "claims.yaml"
    path.write_text(json.dumps([text]), encoding="utf-8")
    result = profkit_cli("audit", path, "--format", "json", status=1)
    (found,) = json.loads(result.stdout)["contradictions"]
    assert found["rule"] == "change"
    assert found["follows"].replace(".0%", "%").endswith(ends_in)


def test_thirty_percent_faster_of_thirty_percent_less_is_a_doubt() -> None:
    text = "It takes 70 µs instead of 100 µs, so it is 30% faster."
    audit = examine([replace(understood(text), text=text)])
    assert not audit.contradictions
    assert [doubt.rule for doubt in audit.doubts] == ["change"]


@pytest.mark.parametrize(
    ("text", "follows", "should_be"),
    [
        (
            "On an A100 a block of 1024 threads gives a theoretical occupancy of 67%.",
            "CC 8.0, limited by warps to 2 blocks per SM: 64 of 64 warps = 100.0%",
            "50.0%",
        ),
        (
            "The H100 SXM has a dense FP16 peak of 1979 TFLOP/s.",
            "H100 SXM's dense tensor FP16 peak is 989.0 TFLOP/s",
            "989.0 TFLOP/s",
        ),
        (
            "Eight H100 SXM GPUs together offer 15.8 PFLOP/s of dense FP16.",
            "the dense tensor FP16 peak of 8 x H100 SXM is 7.912 PFLOP/s (datasheet), "
            "8.561 PFLOP/s at the max SM clock",
            "at most 8.561 PFLOP/s",
        ),
        (
            "The RTX 3090 has an FP32 peak of 71 TFLOP/s.",
            "RTX 3090's FP32 peak is 35.60 TFLOP/s",
            "35.60 TFLOP/s",
        ),
        (
            "Reading 14 GB of weights per token, an A100 80GB SXM decodes 210 tokens/s at batch 1.",
            "at most 2.039 TB/s / 14.00 GB = 145.6 tokens/s (151 tokens/s if 14 GB is rounded up)",
            "at most 145.6 tokens/s",
        ),
    ],
)
def test_an_implied_value_names_its_basis(text: str, follows: str, should_be: str) -> None:
    (wrong,) = contradicted(text)
    assert (wrong.follows, wrong.should_be) == (follows, should_be)


@given(
    before=st.floats(1.0, 900.0),
    factor=st.floats(1.05, 8.0),
    wrong=st.sampled_from([0.7, 1.0, 1.4]),
)
def test_a_speedup_in_prose_is_the_quotient_of_its_times(
    before: float, factor: float, wrong: float
) -> None:
    """Printed to many digits, what follows is never accused and an error of 30% always."""
    after = before / factor
    text = f"It takes {after:.4f} ms versus {before:.4f} ms, {factor * wrong:.2f}x faster."
    assert bool(contradicted(text)) == (wrong != 1.0)


def derived_fields() -> list[str]:
    return [
        "flop", "bytes", "intensity", "flop_rate", "flop_rate_low", "flop_rate_high", "bandwidth",
        "tokens_per_second", "cycles", "held_peak", "share_of_held", "datasheet_peak",
        "share_of_datasheet", "dram_peak", "share_of_dram", "ridge",
    ]  # fmt: skip


@pytest.fixture(scope="module")
def summary() -> dict[str, Any]:
    """A baseline's summary cut down to one measured cell, one comparison and one scaling."""
    path = recorded_summary("l4_study")
    whole: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    cell = next(one for one in whole["cells"] if one.get("share_of_held"))
    return {
        "schema": whole["schema"], "gpu": whole["gpu"], "cells": [cell],
        "comparisons": whole["comparisons"][:1], "scaling": whole["scaling"][:1],
    }  # fmt: skip


def changed(summary: dict[str, Any], place: str, field: str, factor: float) -> dict[str, Any]:
    copy: dict[str, Any] = json.loads(json.dumps(summary))
    copy[place][0][field] *= factor
    return copy


@pytest.mark.parametrize("factor", [0.75, 1.25])
@pytest.mark.parametrize(
    ("place", "field"),
    [
        *(("cells", field) for field in derived_fields()),
        ("comparisons", "speedup"), ("scaling", "exponent"), ("scaling", "flop_exponent"),
        ("scaling", "time_ratio"), ("scaling", "flop_ratio"),
    ],
)  # fmt: skip
def test_every_derived_figure_of_a_summary_is_recomputed(
    summary: dict[str, Any], tmp_path: Path, place: str, field: str, factor: float
) -> None:
    path = tmp_path / "summary.json"
    path.write_text(json.dumps(summary), encoding="utf-8")
    assert not examine(read_claims(path).claims).contradictions
    path.write_text(json.dumps(changed(summary, place, field, factor)), encoding="utf-8")
    assert examine(read_claims(path).claims).contradictions


@pytest.mark.parametrize("unit", ["a", "1 ", "x ", "CI [", "12.5 ms ", "44% of "])
def test_an_endless_sentence_is_refused_at_once(
    profkit_cli: Cli, tmp_path: Path, unit: str
) -> None:
    path = tmp_path / "claims.json"
    path.write_text(json.dumps({"claims": [unit * (10**6 // len(unit))]}), encoding="utf-8")
    started = time.process_time()
    result = profkit_cli("audit", path, status=5)
    assert time.process_time() - started < 5
    assert len(result.stderr.splitlines()) == 1


PARTS = (
    "1 ", "12,345", "1.5 ms ", "9 x ", "% of ", "peak ", "upper ", "CI [", "1 TB/s ", "A100 ",
    "L2 ", "0", " ", "1 x 1 x ", "faster ", "threads per block ", "occupancy of ", "tokens ",
    "99 SMs ",
)  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
def test_the_longest_sentence_is_read_in_time(part: str) -> None:
    """A second for each kind of repetition that patterns may try in many ways."""
    text = part * (LONGEST // len(part))
    started = time.process_time()
    understood(text)
    assert time.process_time() - started < 2
