"""`profkit audit`: mistakes that were published, rows that hold, formats and exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from tests.analysis.test_views import schema
from tests.conftest import H200, ROOT, Cli, recorded_summary

PUBLISHED = ROOT.parent / "shared" / "facts" / "published.yaml"
needs_published = pytest.mark.skipif(
    not PUBLISHED.is_file(), reason="published figures (../shared/facts) are not here"
)

# What the remarks in the file say of each claim, written down by hand: place, rule, what it
# should be (SI; None where it is no number).
MISTAKES = {
    ("configs[1]", "above_peak", 300e9),  # 338 GB/s on a part with 300
    ("claims[0]", "peak", 121e12),  # 30 is FP32; dense FP16 tensor is 121
    ("claims[0]", "above_peak", 1.0),  # 178%: should be 44%
    ("claims[1]", "above_peak", 1.0),  # 113%
    ("claims[2]", "bytes_of_shape", 4 * 32 * 8 * 512 * 64 * 2),  # 67.1e6
    ("claims[2]", "intensity", 256),
    ("claims[3]", "bound", None),  # 256 is left of 121e12 / 300e9 = 403
    ("claims[4]", "interval_end", None),  # 0.3195 is the lower end
    ("claims[5]", "overlap", None),  # different workloads; and three pairs do overlap
    ("claims[6]", "peak", 300e9),  # 338 is no peak
    ("claims[6]", "memory", None),  # GDDR6
    ("claims[7]", "peak", 300e9),  # 242 is the sparse FP16 figure
    ("claims[8]", "interval", None),  # outside its own interval
    ("claims[9]", "share_of_peak", 338e9 / 300e9),  # 132% does not follow either
    ("claims[9]", "above_peak", 1.0),  # 132%
    ("claims[10]", "ratio_of_peaks", 312 / 121),  # 10.4 = 312 / 30
    ("claims[10]", "advantage", 312 / 121 / (0.32 / 0.15)),
    ("claims[11]", "grid", None),
}

ROWS = """
- gpu: L4
  dtype: fp16
  shape: {B: 32, H: 8, S: 512, D: 64}
  time: {median: 0.3210, ci: [0.3195, 0.3379], unit: ms}
  gflops: 53516
  gbps: 209
  percent_of_peak: {compute: 44.2, bandwidth: 69.7}
  bound: memory
"""


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.yaml"
    path.write_text(ROWS, encoding="utf-8")
    return path


def document(result: Result) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(result.stdout)
    schema("audit").validate(data)
    return data


@needs_published
def test_published_mistakes_are_found_and_nothing_else(profkit_cli: Cli) -> None:
    data = document(profkit_cli("audit", PUBLISHED, "--format", "json", status=1))
    study = "l4_sdpa_study."
    found = {
        (one["where"].removeprefix(study), one["rule"]): one["expected"]
        for one in data["contradictions"]
    }
    assert len(found) == len(data["contradictions"])
    wanted = {(where, rule): expected for where, rule, expected in MISTAKES}
    assert set(found) == set(wanted)
    for key, expected in wanted.items():
        assert found[key] == (None if expected is None else pytest.approx(expected, rel=1e-3)), key
    (tick,) = data["doubts"]
    assert (tick["where"], tick["rule"]) == (f"{study}configs[0]", "timer_tick")
    assert "1.024 µs" in tick["follows"]


@needs_published
@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("claims[0]", ["30.3 TFLOP/s is L4's FP32 peak", "44.2%"]),
        ("claims[1]", ["fit in L2"]),
        ("claims[2]", ["67.11 MB", "209.0 GB/s x 321.0 µs", "17.18 GFLOP / 67.11 MB"]),
        ("claims[3]", ["121.0 TFLOP/s / 300.0 GB/s = 403.3 FLOP/B", "101.0 FLOP/B"]),
        ("claims[4]", ["lower end of [0.3195 ms, 0.3379 ms]"]),
        ("claims[5]", ["different shapes", "overlap"]),
        ("claims[6]", ["configs[1] has it as an achieved rate", "GDDR6"]),
        ("claims[7]", ["242 TFLOP/s is L4's sparse tensor FP16 peak", "68.8%"]),
        ("claims[10]", ["312.0 TFLOP/s / 121.0 TFLOP/s = 2.58x", "FP32 peak (30.3 TFLOP/s)"]),
    ],
)
def test_explanations_show_the_calculation(profkit_cli: Cli, where: str, words: list[str]) -> None:
    data = json.loads(profkit_cli("audit", PUBLISHED, "--format", "json", status=1).stdout)
    told = " ".join(
        f"{one['follows']} {one['cause']} {one['should_be']}"
        for one in data["contradictions"]
        if one["where"].endswith(f".{where}")
    )
    for part in words:
        assert part in told


@needs_published
def test_every_value_of_the_published_file_is_checked_or_listed(profkit_cli: Cli) -> None:
    data = document(profkit_cli("audit", PUBLISHED, "--format", "json", status=1))
    listed = {one["where"] for one in data["unchecked"]}
    assert {f"l4_sdpa_study.configs[{at}].peak_mb" for at in range(5)} <= listed
    assert "l4_fa1_kernel_study.note" in listed
    assert not [where for where in listed if where.startswith(("attention_", "h200_"))]
    assert not [where for where in listed if where.startswith("l4_sdpa_study.claims")]
    # 10 rows, 12 sentences, 12 times, 48 + 5 rates of attention, 20 times on an H200
    assert data["checked"] == 10 + 12 + 12 + 53 + 20


@needs_published
def test_the_view_fits_and_reads(profkit_cli: Cli) -> None:
    shown = profkit_cli("audit", PUBLISHED, status=1).stdout
    assert max(map(len, shown.splitlines())) <= 100
    assert "18 contradictions, 1 doubtful claim in 160 checks of 107 claims" in shown
    assert "; unchecked numbers in 20 places" in shown
    assert "peak FP16 30 TFLOP/s, so 178% of spec at S=512" in shown
    assert "121.0 TFLOP/s, of which 53.52 TFLOP/s is 44.2%" in shown


def test_rows_that_hold_end_with_0(profkit_cli: Cli, rows: Path) -> None:
    data = document(profkit_cli("audit", rows, "--format", "json"))
    assert data["contradictions"] == data["doubts"] == data["unchecked"] == []
    assert data["checks"] >= 8
    assert "0 contradictions in" in profkit_cli("audit", rows).stdout


def test_a_wrong_row_ends_with_1_in_every_format(
    profkit_cli: Cli, rows: Path, tmp_path: Path
) -> None:
    rows.write_text(ROWS.replace("53516", "107000"), encoding="utf-8")
    data = document(profkit_cli("audit", rows, "--format", "json", status=1))
    (found,) = [one for one in data["contradictions"] if one["rule"] == "amount_over_time"]
    assert (found["where"], found["claimed"]) == ("[0]", "107000 GFLOP/s")
    assert found["follows"] == "17.18 GFLOP / 321.0 µs = 53.52 TFLOP/s"
    assert "counted twice" in found["cause"]
    output = tmp_path / "audit.md"
    profkit_cli("audit", rows, "--format", "markdown", "-o", output, status=1)
    assert "- ✗ 107000 GFLOP/s   check: amount over time" in output.read_text(encoding="utf-8")
    shown = profkit_cli("audit", rows, status=1)
    assert "17.18 GFLOP / 321.0 µs = 53.52 TFLOP/s" in shown.stdout


@pytest.mark.parametrize("written", ["3", "3x", "3.0x", "3 x", "3×", "3x faster"])
def test_a_speed_up_is_checked_however_it_is_written(
    profkit_cli: Cli, tmp_path: Path, written: str
) -> None:
    path = tmp_path / "a.yaml"
    row = "- {gpu: H200, baseline_ms: 2.0, median_ms: 1.0, speedup: %s}"
    path.write_text(row % written, encoding="utf-8")
    data = document(profkit_cli("audit", path, "--format", "json", status=1))
    (found,) = data["contradictions"]
    assert (found["rule"], found["expected"]) == ("speed_up", pytest.approx(2))
    assert data["unchecked"] == []
    path.write_text(row % written.replace("3", "2"), encoding="utf-8")
    assert document(profkit_cli("audit", path, "--format", "json"))["checks"] == 1


def test_of_a_recorded_summary_only_figures_are_listed(profkit_cli: Cli) -> None:
    path = recorded_summary("l4_study")
    data = document(profkit_cli("audit", path, "--format", "json"))
    # 70 measured cells, 60 comparisons, 84 scalings and 24 best ones.
    assert (data["checks"], data["checked"]) == (2150, 70 + 60 + 84 + 24)
    left = {one["where"]: one["why"] for one in data["unchecked"]}
    assert left["seconds"].endswith("s: no reference to check against")
    assert left["cells[0].drift"].endswith(": unknown quantity")
    assert all(left)
    assert [why for why in left.values() if not why[:1].isdigit() and why[:1] != "-"] == []
    for texts in ("version", "name", "reason", "setting", "sha256", "independence", "verified"):
        assert not [where for where in left if where.endswith(f".{texts}")]


def test_a_claim_at_the_root_is_shown_by_name(profkit_cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "root.yaml"
    path.write_text("{gpu: L4, bandwidth_peak_gbps: 242}", encoding="utf-8")
    (found,) = document(profkit_cli("audit", path, "--format", "json", status=1))["contradictions"]
    assert found["where"] == "bandwidth_peak_gbps"
    path.write_text("{seconds: 2}", encoding="utf-8")
    assert "(seconds: 2 s: no reference to check" in profkit_cli("audit", path, status=5).stderr


def test_the_gpu_may_be_given(profkit_cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("claims: [peak FP16 rate 30 TFLOP/s]", encoding="utf-8")
    unnamed = profkit_cli("audit", path, status=5)
    assert "no GPU named" in unnamed.stderr
    assert "--gpu" in unnamed.stderr
    profkit_cli("audit", path, "--gpu", "L4", status=1)


@pytest.mark.parametrize(
    ("gpu", "words"),
    [
        ("A100", "ambiguous: A100 40 GB, A100 80 GB PCIe, A100 80 GB SXM; name one"),
        ("Voodoo 2", "not in the datasheet table"),
    ],
)
def test_a_gpu_that_is_none_or_several(profkit_cli: Cli, rows: Path, gpu: str, words: str) -> None:
    result = profkit_cli("audit", rows, "--gpu", gpu, status=2)
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{a: 1}", "no claims; "),
        ("claims: [", "is not YAML"),
        ("claims: [{gflops: -1}]", "not a positive number"),
    ],
)
def test_bad_files_end_with_5(profkit_cli: Cli, tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text, encoding="utf-8")
    result = profkit_cli("audit", path, status=5)
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "text",
    [
        "claims: [{gpu: Voodoo 2, bandwidth_peak_gbps: 1}]",
        "- in 2048 MiB it took 3 ways",
        "{kept: [16 chains of 24000 steps], duration: {seconds: 3.5}}",
    ],
)
def test_figures_with_nothing_to_hold_them_against_end_with_5(
    profkit_cli: Cli, tmp_path: Path, text: str
) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text, encoding="utf-8")
    result = profkit_cli("audit", path, status=5)
    assert "no claim that can be checked" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("path", "what"),
    [
        (H200 / "ceilings.json", "no claim that can be checked"),
        (H200 / "known.ncu-repz", "an Nsight Compute report, not a file of claims"),
        (H200 / "sdpa_s512_math.sqlite", "a timeline, not a file of claims"),
        (H200 / "sdpa_s512", "a directory, not a file"),
        (ROOT / "docs" / "img" / "roofline.png", "a picture, not a file of claims"),
        (H200 / "nothing.yaml", "No such file"),
    ],
)
def test_what_is_no_file_of_claims_is_named(profkit_cli: Cli, path: Path, what: str) -> None:
    result = profkit_cli("audit", path, status=5)
    assert what in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert "; " in result.stderr


def test_text_from_the_file_is_shown_as_text(profkit_cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    text = "\u001b[0m L4 peak FP16 30 TFLOP/s <script> [bold]x[/bold] *a* \u202e"
    path.write_text(json.dumps({"claims": [text]}), encoding="utf-8")
    shown = profkit_cli("audit", path, status=1).stdout
    assert "\u001b" not in shown
    assert "\\x1b" in shown
    assert "[bold]x[/bold]" in shown
    markdown = profkit_cli("audit", path, "--format", "markdown", status=1).stdout
    assert "\\<script\\>" in markdown
    document(profkit_cli("audit", path, "--format", "json", status=1))


def test_the_example_of_the_guide_is_contradicted(profkit_cli: Cli) -> None:
    shown = profkit_cli("audit", ROOT / "docs" / "guides" / "claims.yaml", status=1).stdout
    assert "expected      memory-bound by the roofline" in shown
