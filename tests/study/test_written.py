"""The written report of baselines made up cell by cell: gaps, clocks, reasons."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jinja2 import nodes

from profkit.core.errors import BadInput
from profkit.core.text_files import shipped_text
from profkit.core.typed_file import convert
from profkit.study.folder import cell_json, cell_place, write_plan
from profkit.study.plan_format import PlanFile
from profkit.study.report import Report, gather
from profkit.study.report_document import report_document, report_environment
from profkit.study.run import summarize
from profkit.timing.cell import Cell
from profkit.timing.results import Verdict
from profkit.ui.markdown import document_markdown
from tests.study.test_summary import H200, alternatives, cell

GQA: dict[str, Any] = {
    "batch": 1, "heads": 64, "kv_heads": 8, "length": 4096, "dim": 128, "dtype": "bfloat16",
}  # fmt: skip
FLOP = 4 * 64 * 4096**2 * 128
PUBLISHED = 671e12
CHIP = {**H200, "sm_clock_max": 1.98e9, "power_limit": 700.0}
CAP = "software power cap"


def folder(into: Path, cells: Sequence[Cell], asked: Sequence[str] = ()) -> Path:
    """A baseline's folder with these cells."""
    (into / "cells").mkdir(parents=True)
    for one in cells:
        (into / cell_place(one, again=False)).write_text(cell_json(one), encoding="utf-8")
    shapes = {one.shape: dict(one.arguments) for one in cells}
    backends = list(dict.fromkeys(one.backend for one in cells))
    write_plan(into, convert({
        "asked": {
            "target": "sdpa_sweep.py", "samples": 100, "blocks": 8, "seed": 42, "timer": "events",
            "cache": "cold", "warmup": 0.2, "device": "cuda", "backends": list(asked),
            "matrix": {
                "name": "made_up", "about": "",
                "shapes": [{"name": name, "arguments": told} for name, told in shapes.items()],
            },
        },
        "target": {"name": "sdpa_sweep", "file": "sdpa_sweep.py", "sha256": None},
        "gpu": CHIP, "measured_on": {"device": "cuda"}, "budget": None, "command": ["profkit"],
        "created": "2026-01-01T00:00:00+00:00", "seconds": 1.0,
        "backends": [
            {"name": name, "version": None, "available": True, "reason": "", "setting": ""}
            for name in backends
        ],
    }, PlanFile))  # fmt: skip
    summarize(into)
    return into


def text(into: Path, cells: Sequence[Cell], asked: Sequence[str] = (), **more: Any) -> str:
    """The report in Markdown, its lines joined."""
    told = gather(folder(into, cells, asked), **more)
    return " ".join(document_markdown(report_document(told), "drawings").split())


def grouped(share: float, **more: Any) -> Cell:
    """A cell by cuDNN that reaches a share of the published rate."""
    return cell(FLOP / (share * PUBLISHED), backend="cudnn", gpu=CHIP, **{**GQA, **more})


def test_a_cell_below_a_published_figure_is_explained_by_what_the_data_have(
    tmp_path: Path,
) -> None:
    capped = grouped(0.85, clock=1.7e9, throttled=[CAP], late_submitted=1, power=690.0)
    told = text(tmp_path, [capped])
    assert (
        f"`{capped.id}` reaches 0.850 of the published rate: 8 of 8 blocks met a power cap; the SM "
        "clock (NVML reading before the blocks, approximate) was 1.700 GHz, 85.9% of the maximum "
        "(1.980 GHz); scaled to the maximum clock the rate would be 0.990 of the published one; 8 "
        "of 104 samples may include host launch gaps; power draw before blocks 690 W of 700 W."
    ) in told


def test_what_a_clock_does_not_make_good_and_nothing_explains_is_called_unexplained(
    tmp_path: Path,
) -> None:
    slow = text(tmp_path / "slow", [grouped(0.5, clock=1.9e9)])
    assert "0.521 of the published one; no block met a power cap. The rest is unexplained." in slow
    at_highest = text(tmp_path / "highest", [grouped(0.85, clock=1.98e9)])
    assert (
        "reaches 0.850 of the published rate: unexplained, no reason in the data (the SM clock "
        "(NVML reading before the blocks, approximate) was 1.980 GHz, 100.0% of the maximum (1.980 "
        "GHz); no block met a power cap)."
    ) in at_highest
    near = text(tmp_path / "near", [grouped(0.95, clock=1.9e9)])
    assert "of the published rate:" not in near


def test_too_many_gaps_of_the_host_are_said_wherever_the_interval_is(tmp_path: Path) -> None:
    one = grouped(0.95, late_submitted=2)
    told = text(tmp_path, [one])
    claim = told.split("## Claims")[1].split("## Configuration")[0]
    assert "invalid (16 of 104 samples may include host launch gaps)." in claim
    assert "95%" not in claim
    assert "| ≈ \\[" in told.split("**Medians and their intervals**")[1]
    assert f"`{one.id}`: 16 of 104 samples may include host launch gaps, so its interval" in told
    assert "1 an invalid one" in told
    few = text(tmp_path / "few", [grouped(0.95, late_submitted=1)])
    assert "N=104, 8 may include host launch gaps, seed" in few
    assert "invalid" not in few.split("## Appendix")[0]


def test_every_verdict_has_its_reason(tmp_path: Path) -> None:
    cells = [
        *alternatives(("default", 50e-6), ("flash", 72e-6), gpu=CHIP),
        *alternatives(
            ("default", 50e-6), ("flash", 72e-6), gpu=CHIP, length=1024,
            throttled=["hardware slowdown"],
        ),
        *alternatives(("default", 50e-6), ("flash", 72e-6), gpu=CHIP, length=2048, samples=3),
    ]  # fmt: skip
    table = text(tmp_path, cells).split("### Comparison of backends")[1]
    assert re.search(r"`flash` \| `default` \| slower .*?\| no \| beyond the margin \|", table)
    invalid = "default was throttled throughout: hardware slowdown; flash was throttled throughout"
    assert re.search(rf"\| invalid .*?\| no \| {invalid}: hardware slowdown \|", table)
    assert re.search(r"\| inconclusive .*?\| no \| too few samples in a block \|", table)


def test_samples_and_blocks_are_those_of_the_cells(tmp_path: Path) -> None:
    cells = [cell(50e-6, gpu=CHIP), cell(90e-6, gpu=CHIP, length=1024, samples=3)]
    assert "| samples per cell | 100 requested, 24 to 104 taken in 8 blocks |" in text(
        tmp_path, cells
    )


def test_a_clock_that_was_not_steady_is_said(tmp_path: Path) -> None:
    told = text(tmp_path, [cell(50e-6, gpu=CHIP, steady=False)])
    assert "not stable in 1 cell |" in told
    assert "- A stable SM clock in 1 cell: " in told


def test_one_kernel_by_two_names_is_the_fastest_once(tmp_path: Path) -> None:
    cells = [
        *alternatives(("default", 50e-6), ("cudnn", 50.1e-6), gpu=CHIP, chosen="cudnn"),
        *alternatives(("default", 90e-6), ("cudnn", 89e-6), gpu=CHIP, length=1024, chosen="cudnn"),
        *alternatives(("default", 99e-6), ("cudnn", 99e-6), ("custom", 60e-6), gpu=CHIP,
                      length=2048, chosen="cudnn"),
    ]  # fmt: skip
    told = text(tmp_path, cells)
    assert (
        "against all others of its shape: `cudnn` at 2 (1 as `default`), `custom` at 1 of 3 shapes."
    ) in told


def test_heads_of_k_and_v_tokens_memory_and_badges_are_named(tmp_path: Path) -> None:
    one, other = grouped(0.95), grouped(0.475, length=2048)
    told = text(tmp_path, [one, other])
    assert "with batch 1, heads 64, kv heads 8, dim 128, dtype bfloat16: length 4096" in told
    rate = 4096 * 0.95 * PUBLISHED / FLOP
    assert f"| `cudnn` | {rate / 1e6:.2f} M | 80.50 MB |" in told
    badges = re.findall(r"!\[([^\]]+)\]\(https://img\.shields\.io/badge/([^)\s]+)\)", told)
    assert [name for name, _ in badges] == [
        "latency", "compulsory bandwidth", "GPU", "environment",
    ]  # fmt: skip
    assert all("cudnn" in value for _, value in badges[:2])


def test_a_row_of_what_must_be_beaten_has_one_unit(tmp_path: Path) -> None:
    section = text(tmp_path, [cell(50e-6, gpu=CHIP)]).split("## Thresholds for an improvement")[1]
    row = next(line for line in section.split("| |") if "`default`" in line and " ms" in line)
    assert "µs" not in row
    assert re.search(r"\| 0\.0[45]\d+ ms \| \\\[0\.0[45]\d+, 0\.0[45]\d+\\\] ms \|", row)


def test_the_command_of_the_report_has_its_options(tmp_path: Path) -> None:
    from tests.conftest import H200 as RECORDED

    ladder = RECORDED / "ladder"
    told = text(tmp_path, [cell(50e-6, gpu=CHIP)], price=3.5, ladder=ladder)
    assert "profkit baseline report DIR --price 3.5 --ablation ladder -o DIR/report.md" in told
    assert "−39.48 µs; not\\_selected (ready, another warp issued)" in told
    assert "all other causes +10.95 µs; combine, added +42.18 µs |" in told
    assert "combine, removed −42.18 µs |" in told


def test_a_floor_that_the_cells_do_not_know_is_no_reason_to_refuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    floor = SimpleNamespace(within_process=0.03)
    monkeypatch.setattr("profkit.study.run.read_floor", lambda *_: floor)
    cells = alternatives(("default", 50e-6), ("flash", 51e-6), gpu=CHIP)
    (one,) = gather(folder(tmp_path, cells)).summary.comparisons
    assert (one.margin, one.verdict) == (0.03, Verdict.SAME)


@pytest.mark.parametrize(
    "gpu", [{}, {**CHIP, "compute_capability": "9"}, {**CHIP, "sm_clock_max": "2"}]
)
def test_a_gpu_that_can_not_be_is_refused(tmp_path: Path, gpu: Any) -> None:
    into = folder(tmp_path, [cell(50e-6, gpu=CHIP)])
    summary = json.loads((into / "summary.json").read_text("utf-8"))
    (into / "summary.json").write_text(json.dumps({**summary, "gpu": gpu}), encoding="utf-8")
    with pytest.raises(BadInput, match="gpu"):
        gather(into)


def test_rows_without_a_deciding_verdict_are_tied_by_name(tmp_path: Path) -> None:
    close = alternatives(("flash", 72e-6), ("cudnn", 50e-6), ("custom", 50.05e-6), gpu=CHIP)
    told = text(tmp_path, close)
    assert "tied: `cudnn` and `custom` at 1 of 1 shape" in told
    claim = told.split("## Claims")[1].split("## Configuration")[0]
    assert "tied with `custom`." in claim
    assert "flash" not in claim


def test_what_claims_share_is_said_once(tmp_path: Path) -> None:
    cells = [cell(50e-6, gpu=CHIP), cell(99e-6, gpu=CHIP, length=1024)]
    claims = text(tmp_path, cells).split("## Claims")[1].split("## Configuration")[0]
    assert claims.count("NVIDIA H200") == 1
    assert claims.count("seed 42") == 1
    assert len(re.findall(r"median [\d.]+ µs, 95% confidence interval", claims)) == 2


def test_another_backend_is_named_and_not_marked(tmp_path: Path) -> None:
    told = text(tmp_path, [cell(FLOP / PUBLISHED, backend="custom", gpu=CHIP, **GQA)])
    section = told.split("## Comparison with published numbers")[1]
    assert "(another)" not in section
    assert "| Shape | Published backend | Backend |" in section
    assert re.search(r"\| `cudnn` \| `custom` \|", section)


def test_no_median_without_an_interval_has_more_than_two_digits(tmp_path: Path) -> None:
    levels = [1.0, 1.3, 1.25, 0.9, 1.35, 0.8, 1.02, 1.4]
    gone = [cell(5.432e-4, gpu=CHIP, slower=sorted(levels), drift=0.3)]
    told = text(tmp_path, gone)
    row = told.split("**Medians and their intervals**")[1].split("| `")[2]
    assert "none" in row
    median = row.split("|")[1].strip()
    assert len(median.split()[0].replace(".", "").strip("0")) <= 2


def test_the_template_uses_nothing_that_there_is_not() -> None:
    """Its branches that no baseline here takes too."""
    environment = report_environment([])
    tree = environment.parse(shipped_text("profkit.study", "templates/report.md.j2"))
    names = list(tree.find_all(nodes.Name))
    known = {name.name for name in names if name.ctx != "load"} | environment.globals.keys()
    fields = {field.name for field in dataclasses.fields(Report)}
    names_shown = {"loop", "report", "rows", "cells", "timed", "fastest", "standings", "shared"}
    assert {name.name for name in names} <= known | fields | names_shown
    filters = {node.name for node in tree.find_all(nodes.Filter)}
    assert filters <= environment.filters.keys()
    assert {node.name for node in tree.find_all(nodes.Test)} <= environment.tests.keys()
