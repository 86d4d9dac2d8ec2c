"""Claims in rows and in prose: what is understood, and that the rest is reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profkit.audit.audit import examine
from profkit.audit.claim_text import understood
from profkit.audit.claims import Claims, read_claims
from profkit.audit.view import audit_document, audit_result
from profkit.core.errors import BadInput
from profkit.ui.output import shown


def read(tmp_path: Path, text: str, name: str = "claims.yaml") -> Claims:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read_claims(path)


def figures(text: str) -> dict[str, float]:
    return {name: figure.value for name, figure in understood(text).figures.items()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("peak bandwidth 900 GB/s", {"byte_peak": 900e9}),
        ("reaches 900 GB/s", {"byte_rate": 900e9}),
        ("650 GB/s of 900 GB/s", {"byte_rate": 650e9, "byte_peak": 900e9}),
        ("1.2 TB/s, theoretical 1.555 TB/s", {"byte_rate": 1.2e12, "byte_peak": 1.555e12}),
        ("72% of the 312 TFLOP/s", {"flop_share": 0.72, "flop_peak": 312e12}),
        ("225 TFLOPS, which is 72% of peak", {"flop_rate": 225e12, "flop_share": 0.72}),
        ("% of peak bandwidth: 44%", {"byte_share": 0.44}),
        ("0.25 µs median", {"time": 0.25e-6}),
        ("CI [1.0, 1.2] ms around 1.1 ms", {"low": 1e-3, "high": 1.2e-3, "time": 1.1e-3}),
        ("3 ms (lower bound of the CI)", {"lower_end": 3e-3}),
        ("the upper end of the interval is 3 ms", {"upper_end": 3e-3}),
        ("2.0 ms → 1.0 ms, 2.0x faster", {"baseline": 2e-3, "time": 1e-3, "speedup": 2.0}),
        ("moves 12 MiB and does 3 GFLOP", {"bytes": 12 * 2**20, "flop": 3e9}),
        ("17.2 GFLOP / 67.1 MB = 256 FLOP/byte",
         {"flop": 17.2e9, "bytes": 67.1e6, "intensity": 256}),
        ("arithmetic intensity of 12.5", {"intensity": 12.5}),
    ],
)  # fmt: skip
def test_units_and_roles(text: str, expected: dict[str, float]) -> None:
    assert figures(text) == pytest.approx(expected)
    assert understood(text).unread == ()


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("uses 42 registers", ("42 registers",)),
        ("CV 32%", ("32%",)),
        ("median < 0.30 ms", ("0.30 ms",)),
        ("flash 0.30 ms, cudnn 0.25 ms", ("0.25 ms", "0.30 ms")),
        ("the sparse peak is 242 TFLOP/s", ("242 TFLOP/s",)),
        ("100 TFLOP/s and then 120 TFLOP/s", ("100 TFLOP/s", "120 TFLOP/s")),
    ],
)
def test_numbers_of_unknown_role_are_reported(text: str, left: tuple[str, ...]) -> None:
    claim = understood(text)
    assert claim.unread == left
    assert not claim.figures


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("S=16k, H=8", "length", 16384),
        ("it is clearly memory-bound", "bound", "memory"),
        ("in BF16 on the tensor cores", "dtype", "bf16"),
        ("80 GB of HBM2e", "memory", "HBM2e"),
        ("a 4D grid", "grid_dimensions", 4),
        ("grid (batch, heads, tiles)", "grid_dimensions", 3),
        ("on an RTX 4090 and", "gpus", ("RTX 4090",)),
        ("H100 SXM in FP8", "gpus", ("H100 SXM",)),
    ],
)
def test_words(text: str, field: str, value: object) -> None:
    assert understood(text).value(field) == value


@pytest.mark.parametrize("text", ["it is not compute-bound", "H*D = 2048", "S = 512/1k/2k"])
def test_what_is_not_claimed(text: str) -> None:
    claim = understood(text)
    assert not any((claim.bound, claim.dim, claim.length))


ROW = """
claims:
  - gpu: NVIDIA L4
    dtype: FP16
    shape: {B: 32, H: 8, S: 512, D: 64}
    time: {median: 0.3210, ci: [0.3195, 0.3379], unit: ms}
    n: 100
    gflops: 53516
    gbps: 209
    intensity: 256
    peak: {tflops: 121, gbps: 300, of: datasheet}
    percent_of_peak: {compute: 44.2, bandwidth: 69.7}
    bound: memory
    causal: no
    note: registers 168
    blocks: 2048
"""


@pytest.mark.parametrize(
    ("rates", "share"),
    [("gflops: 34359", "flop_share"), ("gbps: 209", "byte_share"),
     ("gflops: 34359, gbps: 209", "share")],
)  # fmt: skip
def test_a_share_of_peak_is_of_what_its_row_has(tmp_path: Path, rates: str, share: str) -> None:
    row = f"claims: [{{gpu: L4, dtype: fp16, {rates}, percent_of_peak: 60}}]"
    (claim,) = read(tmp_path, row).claims
    assert claim.figures.keys() - {"flop_rate", "byte_rate"} == {share}


def test_a_row(tmp_path: Path) -> None:
    read_file = read(tmp_path, ROW)
    row = read_file.claims[0]
    assert row.where == "claims[0]"
    assert (row.gpus, row.dtype, row.bound, row.causal, row.n) == (
        ("NVIDIA L4",), "fp16", "memory", False, 100,
    )  # fmt: skip
    assert (row.batch, row.heads, row.length, row.dim) == (32, 8, 512, 64)
    assert {name: figure.value for name, figure in row.figures.items()} == pytest.approx(
        {
            "time": 0.321e-3, "low": 0.3195e-3, "high": 0.3379e-3, "flop_rate": 53.516e12,
            "byte_rate": 209e9, "intensity": 256, "flop_peak": 121e12, "byte_peak": 300e9,
            "flop_share": 0.442, "byte_share": 0.697,
        }
    )  # fmt: skip
    assert row["time"] is not None
    assert row["time"].half == pytest.approx(0.00005e-3)
    assert row["time"].text == "0.3210 ms"
    assert read_file.claims[1].unread == ("168",)
    assert read_file.unread == {"claims[0].blocks": "2048"}


def test_flat_rows_of_a_json(tmp_path: Path) -> None:
    text = (
        '{"gpu": {"name": "NVIDIA H200", "sm_count": 132}, "cells": [{"batch": 1, "heads": 64,'
        ' "kv_heads": 8, "length": 2048, "dim": 128, "dtype": "bf16", "causal": null, "cache": "",'
        ' "seconds": 2.17e-4, "low": 2.16e-4, "high": 2.18e-4, "flop_rate": 6.33e14,'
        ' "bandwidth": null, "held_peak": 9.6e14, "share_of_held": 0.659, "regime": "compute"}]}'
    )
    row = next(claim for claim in read(tmp_path, text, "a.json").claims if claim["time"])
    assert row.gpus == ("NVIDIA H200",)
    assert (row.heads, row.kv_heads, row.bound) == (64, 8, "compute")
    assert row["low"] is not None
    assert row["low"].value == 2.16e-4
    assert row["byte_rate"] is None
    assert row["held_share"] is not None


def test_columns_and_context_by_comment_and_key(tmp_path: Path) -> None:
    text = """
study:      # NVIDIA L4, FP16, N=100
  rows:     # B, H, S, D, median_ms, tiles
    - [32, 8, 512, 64, 0.3210, 7]
  b200_d128_causal_tflops: {1024: 700, 2048: 800}
"""
    found = read(tmp_path, text)
    first, second, third = found.claims
    assert (first.gpus[0], first.dtype, first.length) == ("L4", "fp16", 512)
    assert first.study == "study"
    assert (second.gpus[0], second.dim, second.causal, second.length) == ("B200", 128, True, 1024)
    assert third["flop_rate"] is not None
    assert third["flop_rate"].value == 800e12
    assert found.unread == {"study.rows[0].tiles": "7"}


def test_remarks_on_items_are_no_claims(tmp_path: Path) -> None:
    text = 'claims:  # see\n  - "AI 128 on an L4"  # [should be 256, compute-bound]\n'
    (claim,) = read(tmp_path, text).claims
    assert claim.bound == ""
    assert claim["intensity"] is not None
    assert claim["intensity"].value == 128


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("claims: []", "no claims"),
        ("", "no claims: the file is empty"),
        ("{}", "no claims: the file is empty"),
        ("just words here", "no claims"),
        ("{a: 1, b: [2, 3]}", "no claims"),
        ("claims: [{gflops: -3}]", "claims\\[0\\].gflops is -3, not a positive number"),
        ("claims: [{median_ms: 0, gflops: 1}]", "not a positive number"),
        ("claims: [{B: 1.5, gflops: 1}]", "not a whole number"),
    ],
)
def test_what_holds_no_claims_or_impossible_ones(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(BadInput, match=what):
        read(tmp_path, text)


NUMBERS = st.one_of(
    st.integers(-5, 10**12), st.floats(allow_nan=False, allow_infinity=False), st.integers()
)
KEYS = st.sampled_from(
    ["B", "H", "S", "D", "gpu", "dtype", "time", "median_ms", "ci_ms", "gflops", "gbps", "peak",
     "bytes", "flop", "intensity", "bound", "text", "causal", "rows", "128", "256", "l4_ms", "x",
     "seconds", "low", "high", "shape", "percent_of_peak", "speedup", "baseline_ms", "of", "unit",
     "schema", "versions", "name"]
)  # fmt: skip
WORDS = st.lists(
    st.one_of(
        st.sampled_from(
            ["peak", "L4", "A100", "S=512", "30", "TFLOP/s", "GB/s", "of", "%", "%", "[1, 2] ms",
             "CI", "upper bound", "ms", "x faster", "compute-bound", "grid", "4D", "AI", "FP16",
             "non-overlapping", "1e400", "0", "0e99999", "ratio of", ",", "(", ")", "->", "B=0"]
        ),
        st.text(max_size=8),
        NUMBERS.map(str),
    ),
    max_size=12,
).map(" ".join)  # fmt: skip
TOKENS = st.sampled_from(["fp16", "L4", "3x", "0x", "1e400x", "3 x faster", "2.11.0", "3a82c0d"])
LEAVES = st.one_of(st.none(), st.booleans(), NUMBERS, WORDS, TOKENS)
DOCUMENTS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=6)),
    max_leaves=20,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(DOCUMENTS)
def test_any_document_is_audited_or_refused(tmp_path: Path, document: object) -> None:
    try:
        claims = read(tmp_path, json.dumps(document), "any.json")
    except BadInput:
        return
    found = examine(claims.claims, "L4")
    file = audit_result(claims, found)
    for form in ("terminal", "markdown", "json"):
        assert shown(file, lambda: audit_document(file, found), form, to_file=True)


@pytest.mark.parametrize(
    ("words", "causal", "backward"),
    [("forward, causal", True, None), ("non-causal", None, None), ("Causal backward", True, True),
     ("not causal, forward", None, None)],
)  # fmt: skip
def test_a_sentence_states_the_mask_and_the_direction(
    words: str, causal: bool | None, backward: bool | None
) -> None:
    claim = understood(f"B=4 H=32 S=4096 D=64, {words}: median 491.6 µs on an H200")
    assert (claim.causal, claim.backward) == (causal, backward)


def test_ends_of_a_rates_interval_and_what_a_gpu_is_are_no_claims_of_work(tmp_path: Path) -> None:
    path = tmp_path / "summary.json"
    path.write_text(
        '{"gpu": {"name": "L4", "memory_bytes": 0}, "cells": [{"B": 1, "H": 1, "S": 64, "D": 64,'
        ' "flop_rate": 5e9, "flop_rate_low": 4e9, "flop_rate_high": 6e9}]}',
        encoding="utf-8",
    )
    (row,) = [claim for claim in read_claims(path).claims if claim.says_something]
    assert row.gpus == ("L4",)
    assert set(row.figures) == {"flop_rate", "flop_rate_low", "flop_rate_high"}
    assert row["flop"] is None


@pytest.mark.parametrize(
    "text", ["3x", "3.0x", "3 x", "3×", "3 ×", "3X", "3x faster", "3.0× speed-up", '"3x"']
)
@pytest.mark.parametrize(("key", "name"), [("speedup", "speedup"), ("peak_ratio", "peak_ratio")])
def test_a_ratio_may_be_written_with_an_x(tmp_path: Path, text: str, key: str, name: str) -> None:
    found = read(tmp_path, f"- {{gpu: L4, {key}: {text}, median_ms: 1.0}}")
    (claim,) = found.claims
    assert claim.figures[name].value == 3
    assert claim.figures[name].half == (0.05 if ".0" in text else 0.5)
    assert found.unread == {}


def test_ratios_in_columns_and_below_a_key_may_have_an_x(tmp_path: Path) -> None:
    text = "rows:  # S, median_ms, speedup\n  - [512, 1.0, 3x]\nspeedup: {flash: 2.5x faster}"
    values = [claim.figures["speedup"].value for claim in read(tmp_path, text).claims]
    assert values == [3, 2.5]


@pytest.mark.parametrize(
    ("row", "listed"),
    [
        ("speedup: 3x-ish", {"[0].speedup": "3x-ish"}),
        ("speedup: some", {"[0].speedup": "some"}),
        ("baseline_ms: n/a", {"[0].baseline_ms": "n/a"}),
        ("dtype: half", {"[0].dtype": "half"}),
        ("bound: latency", {"[0].bound": "latency"}),
        ("path: scalar", {"[0].path": "scalar"}),
        ("path: results/run.json", {}),
        ("B: many", {"[0].B": "many"}),
        ('speedup: "3"', {"[0].speedup": "3"}),
        ("gflops: 3x", {"[0].gflops": "3x"}),
        ("tiles: 3x", {"[0].tiles": "3x"}),
    ],
)
def test_what_a_known_key_is_given_and_is_not_understood_is_listed(
    tmp_path: Path, row: str, listed: dict[str, str]
) -> None:
    found = read(tmp_path, f"- {{gpu: L4, median_ms: 1.0, {row}}}")
    assert [set(claim.figures) for claim in found.claims] == [{"time"}]
    assert found.unread == listed


def test_a_ratio_is_positive(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="speedup is 0, not a positive number"):
        read(tmp_path, "- {median_ms: 1.0, speedup: 0x}")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("seconds: 2.5", "seconds"),
        ("{gpu: L4, dtype: fp16, seconds: 2.5, low: 2.4, high: 2.6}", "seconds"),
        ("{gpu: L4, median_ms: 2.5, gbps: 100}", "claims.yaml"),
        ("L4 reaches 100 GB/s", "claims.yaml"),
        ("[L4 reaches 100 GB/s]", "[0]"),
        ("text: L4 reaches 100 GB/s", "text"),
    ],
)
def test_what_stands_at_the_root_has_a_name(tmp_path: Path, text: str, where: str) -> None:
    (claim,) = read(tmp_path, text).claims
    assert claim.where == where


def test_a_lone_value_at_the_root_is_listed_by_the_files_name(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no claims; "):
        read(tmp_path, "42")


VERSIONS = """
claims: [L4 reaches 100 GB/s with torch 2.11.0, at 3a82c0d84154 it uses 42 registers]
built: with cuDNN 9.19.0
version: torch 2.11.0+cu130, cuDNN 91900
versions: {cuda: 13.0, torch: 2.11.0, cudnn: "91900"}
gpu_uuid: GPU-285b6bf2-2726
sha256: "0123456789012345"
created: 2026-11-21T20:03:33+00:00
day: 2026-11-21
kernel: sdpa_s512.fp16
name: the study of 12 shapes
seed: 42
empty: ""
tiles: 7
share: 44%
limit: compute-bound
count: "12"
note: it became slower
"""
NO_FIGURE = {"tiles": "7", "share": "44%", "limit": "compute-bound", "count": "12"}


def test_versions_hashes_and_names_are_no_claims(tmp_path: Path) -> None:
    found = read(tmp_path, VERSIONS)
    assert {claim.where: claim.unread for claim in found.claims} == {
        "claims[0]": (), "claims[1]": ("42 registers",), "note": (),
    }  # fmt: skip
    assert found.unread == NO_FIGURE


def test_texts_of_a_programs_record_are_claims_where_they_hold_figures(tmp_path: Path) -> None:
    found = read(tmp_path, f"schema: a-program/1\nverified: true\n{VERSIONS}")
    assert [claim.where for claim in found.claims] == ["claims[0]"]
    assert found.unread == {key: one for key, one in NO_FIGURE.items() if key != "count"}
    plain = read(tmp_path, f"verified: true\n{VERSIONS}")
    assert plain.unread == {"verified": "true", **NO_FIGURE}


def test_a_ratio_of_work_is_no_work(tmp_path: Path) -> None:
    found = read(tmp_path, "{median_ms: 1, scaling: {flop_ratio: 4.0, flop_exponent: 2.0}}")
    assert [set(claim.figures) for claim in found.claims] == [
        {"time"},
        {"flop_ratio", "flop_exponent"},
    ]
    assert not found.unread
