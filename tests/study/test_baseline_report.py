"""`profkit baseline report`: the report of a saved baseline."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from profkit.analysis.report import load
from profkit.audit.audit import examine
from profkit.audit.claims import read_claims
from profkit.core.errors import BadInput
from profkit.study.report import gather, goal
from profkit.study.summary import is_same_kernel
from profkit.timing.latency_file import read_latencies
from profkit.timing.results import Verdict
from tests.conftest import (
    H200,
    L4,
    ROOT,
    baseline_folder,
    needs_l4,
    recorded_baseline,
    recorded_summary,
)
from tests.html_page import HtmlPage
from tests.study.test_baseline import environment, run

LADDER = H200 / "ladder"
MATRIX = """
schema: profkit.matrix/1
name: tiny
about: Shapes that a CPU has done in no time.
groups:
  - with: {heads: 2, dim: 16, dtype: float32, batch: 2}
    vary: {length: [16, 32]}
"""
SECTIONS = [
    "Summary",
    "Claims",
    "Configuration",
    "Statistics",
    "Performance",
    "Thresholds for an improvement",
    "Comparison with published numbers",
    "Ablation",
    "Reproducibility",
    "Limitations",
    "Appendix: methods",
]


@pytest.fixture(scope="module")
def on_cpu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch", reason="targets need torch")
    folder = tmp_path_factory.mktemp("cpu")
    (folder / "matrix.yaml").write_text(MATRIX, encoding="utf-8")
    sweep = ROOT / "targets" / "sdpa_sweep.py"
    run(
        folder, "run", sweep, "--matrix", "matrix.yaml", "--device", "cpu", "--warmup-ms", "1",
        "--samples", "48", "--backends", "default,math,xformers", "--out", "kept",
    )  # fmt: skip
    return folder / "kept"


@pytest.fixture(scope="module")
def on_l4(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("l4")
    files = sorted(L4.glob("config_*.json"))
    matrix = ROOT / "targets" / "matrices" / "l4_study.yaml"
    run(folder, "import", *files, "-o", "kept", "--matrix", matrix, "--gpu", "L4")
    return folder / "kept"


def written(baseline: Path, into: Path, name: str, *arguments: str | Path) -> str:
    into.mkdir(exist_ok=True)
    run(into, "report", baseline, "-o", name, "--force", *arguments)
    return (into / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def plain(on_cpu: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report in Markdown without options."""
    return written(on_cpu, tmp_path_factory.mktemp("plain"), "r.md")


@pytest.fixture(scope="module")
def full(on_cpu: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a report with a price and an ablation table."""
    folder = tmp_path_factory.mktemp("full")
    written(on_cpu, folder, "r.md", "--price", "7.2", "--ablation", LADDER)
    return folder


def claims(text: str) -> list[str]:
    section = text.split("## Claims")[1].split("\n## ")[0]
    return [" ".join(one.split()) for one in section.split("\n- ")[1:]]


def digests(folder: Path) -> dict[str, str]:
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.suffix in {".md", ".html", ".svg"}
    }


def test_the_same_data_give_the_same_bytes_wherever_they_lie(
    on_cpu: Path, full: Path, tmp_path: Path
) -> None:
    moved = tmp_path / "elsewhere" / "kept"
    shutil.copytree(on_cpu, moved)
    words = ("report", moved, "-o", "r.md", "--ablation", LADDER, "--price", "7.2")
    subprocess.run(  # in a process of its own
        [sys.executable, "-m", "profkit", "baseline", *map(str, words)],
        cwd=tmp_path, env=environment(tmp_path), capture_output=True, check=True, timeout=600,
    )  # fmt: skip
    first, second = digests(full), digests(tmp_path)
    assert first == second
    assert {"r.md", "r-drawings/latency.svg"} <= set(first)
    texts = [written(folder, tmp_path, "r.html") for folder in (on_cpu, moved)]
    assert texts[0] == texts[1]
    texts.append((full / "r.md").read_text("utf-8"))
    assert not any(str(place) in text for text in texts for place in (on_cpu.parent, ROOT))


def test_every_claim_has_its_parts(plain: str) -> None:
    import torch

    text, told = plain, claims(plain)
    assert len(told) == 2
    for one, length in zip(told, (16, 32), strict=True):
        assert f"B=2 H=2 S={length} D=16, float32, forward" in one
        assert re.search(r"median [\d.,]+ (ns|µs|ms|s), .*interval", one)
    shared = " ".join(text.split("## Claims")[1].split("\n- ")[0].split())
    for part in (
        "measured on the CPU", f"torch {torch.__version__}", "N=48", "seed 42",
        "by host clock around a synchronized call",
    ):  # fmt: skip
        assert part in shared
    assert "expected" not in text.split("## Reproducibility")[0]


def test_markdown_has_its_sections_tables_and_drawings(on_cpu: Path, full: Path) -> None:
    text = (full / "r.md").read_text("utf-8")
    assert re.findall(r"^## (.*)$", text, re.M) == SECTIONS
    for block in re.findall(r"(?:^\|.*\n)+", text, re.M):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(widths) == 1, block
    places = re.findall(r"\]\((r-drawings/[^)]+)\)", text)
    assert places
    for place in places:
        root = ElementTree.fromstring((full / place).read_text("utf-8"))
        assert root.tag.endswith("svg")
    badges = re.findall(r"!\[([\w ]+)\]\(https://img\.shields\.io/badge/[^)\s]+\)", text)
    assert badges == ["latency", "compulsory bandwidth", "GPU", "environment"]
    assert (full / "r-drawings" / "badge-latency.svg").is_file()
    seconds = json.loads((on_cpu / "summary.json").read_text("utf-8"))["seconds"]
    assert f"{seconds / 3600 * 7.2:,.2f} $ at 7.2 $ per hour" in " ".join(text.split())
    assert "`xformers`" in text.split("### Not measured")[1].split("\n## ")[0]


def test_an_audit_of_the_summary_and_of_the_report_finds_nothing(
    on_cpu: Path, plain: str, tmp_path: Path
) -> None:
    assert examine(read_claims(on_cpu / "summary.json").claims).contradictions == ()
    told = {"claims": claims(plain)}
    (tmp_path / "claims.json").write_text(json.dumps(told), encoding="utf-8")
    assert examine(read_claims(tmp_path / "claims.json").claims).contradictions == ()


def test_html_is_one_file_that_loads_nothing(on_cpu: Path, tmp_path: Path) -> None:
    text = written(on_cpu, tmp_path, "r.html")
    page = HtmlPage(text)
    assert not any({"src", "data", "poster"} & attributes.keys() for _, attributes in page.tags)
    assert not any(name == "link" and "href" in attributes for name, attributes in page.tags)
    assert "script" not in page.names
    assert page.names.count("h2") == len(SECTIONS)
    assert page.names.count("svg") >= 2
    ids = [attributes["id"] for _, attributes in page.tags if attributes.get("id")]
    assert len(ids) == len(set(ids))
    assert "@import" not in text
    assert sorted(file.name for file in tmp_path.iterdir() if file.suffix) == ["r.html"]


def test_the_goal_is_what_the_classic_rule_asks_for(on_cpu: Path) -> None:
    told = gather(on_cpu)
    assert told.goals
    for one in told.goals:
        row = one.row
        assert row.seconds is not None
        assert one.median <= row.seconds / 1.10
        assert one.below == row.low
        assert one == goal(row)


def test_variants_without_a_profile_are_not_called_free_of_findings(
    on_cpu: Path, tmp_path: Path
) -> None:
    recording = tmp_path / "times"
    recording.mkdir()
    shutil.copy2(LADDER / "latency.json", recording)
    text = written(on_cpu, tmp_path, "r.md", "--ablation", recording)
    assert "| `serial_kv` → `all_threads` | not profiled | - | not profiled |" in text


def test_the_ablation_table_is_filled_from_a_recording(full: Path) -> None:
    text = (full / "r.md").read_text("utf-8")
    section = text.split("## Ablation")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if " → " in line and line.startswith("|")]
    steps = [re.findall(r"`(\w+)`", line)[:2] for line in rows]
    names = ["serial_kv", "all_threads", "split_kv", "tensor_core", "swizzled", "async_pipeline",
             "triton_flash", "hopper"]  # fmt: skip
    assert steps == [list(pair) for pair in pairwise(names)]
    swizzled = next(line for line in rows if "→ `swizzled`" in line)
    assert "Shared-memory bank conflicts" in swizzled
    assert "IMPROVED" in swizzled
    series = json.loads((LADDER / "latency.json").read_text("utf-8"))["series"]
    medians = {one["label"]: one["statistics"]["median"] for one in series}
    speedup = medians["tensor_core"] / medians["swizzled"]
    (shown,) = re.findall(r"\| ([\d.]+)x \\\[", swizzled)[-1:]
    assert float(shown) == pytest.approx(speedup, rel=0.02)


def test_names_of_others_are_text_in_every_form(on_cpu: Path, tmp_path: Path) -> None:
    baseline = tmp_path / "kept"
    shutil.copytree(on_cpu, baseline)
    plan = json.loads((baseline / "baseline.json").read_text("utf-8"))
    about = "<script>alert(1)</script> a|b `c` 100% $x_1$ \\end{document} µ"
    plan["asked"]["matrix"]["about"] = about
    (baseline / "baseline.json").write_text(json.dumps(plan), encoding="utf-8")
    assert "<script>" not in written(baseline, tmp_path, "r.html")
    assert "\\<script\\>" in written(baseline, tmp_path, "r.md")


def test_drawings_lie_in_a_folder_that_every_form_can_name(on_cpu: Path, tmp_path: Path) -> None:
    text = written(on_cpu, tmp_path, "my 100% (1).md")
    named = re.findall(r"\]\(([^)]*\.svg)\)", text)
    assert named
    assert all((tmp_path / name).is_file() for name in named)


def test_the_statistics_are_those_of_the_samples_whatever_the_cell_says(
    on_cpu: Path, plain: str, tmp_path: Path
) -> None:
    baseline = tmp_path / "kept"
    shutil.copytree(on_cpu, baseline)
    for file in (baseline / "cells").iterdir():
        cell = json.loads(file.read_text("utf-8"))
        file.write_text(json.dumps({name: cell[name] for name in cell if name != "statistics"}))
    assert written(baseline, tmp_path, "r.md") == plain


def test_a_report_is_of_the_cells_whatever_the_summary_says(
    on_cpu: Path, plain: str, tmp_path: Path
) -> None:
    baseline = tmp_path / "kept"
    shutil.copytree(on_cpu, baseline)
    summary = json.loads((baseline / "summary.json").read_text("utf-8"))
    for row in summary["cells"]:
        row["seconds"] = row["seconds"] and 0.125
    (baseline / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    assert written(baseline, tmp_path, "r.md") == plain
    done = run(tmp_path, "report", tmp_path, status=5)
    assert "no baseline" in done.stderr


def test_findings_of_profiled_cells_are_listed_and_those_without_are_named(
    on_cpu: Path, tmp_path: Path
) -> None:
    baseline = tmp_path / "kept"
    shutil.copytree(on_cpu, baseline)
    run_of = baseline / "profiles" / "one"
    run_of.mkdir(parents=True)
    shutil.copy(LADDER / "tensor_core.ncu-rep", run_of / "report.ncu-rep")
    profiles = [
        {"id": "one.default", "folder": "profiles/one", "reason": ""},
        {"id": "two.default", "folder": None, "reason": "ncu is not here"},
        {"id": "three.default", "folder": "profiles/three", "reason": ""},
    ]
    (baseline / "profiles" / "profiles.json").write_text(json.dumps(profiles), encoding="utf-8")
    told = written(baseline, tmp_path, "r.md").split("### Profiles")[1].split("\n## ")[0]
    one, two, three = told.split("#### ")[1:]
    boxes = re.findall(r"^- \[ \] \*\*(.*)", one, re.M)
    assert "Shared-memory bank conflicts" in boxes[0]
    assert "Not profiled: ncu is not here." in two
    assert "Not profiled: " in three
    assert str(tmp_path) not in three


def test_a_baseline_without_latencies_has_no_claims_to_quote(tmp_path: Path) -> None:
    recorded = H200 / "baseline" / "l4_study"  # its cells are packed
    folder = tmp_path / "l4_study"
    folder.mkdir()
    for name in ("baseline.json", "cells.tar.zst"):
        shutil.copy2(recorded / name, folder)
    result = run(tmp_path, "report", folder, status=5)
    assert "nothing to report" in result.output
    assert "unpack cells.tar.zst" in result.output
    assert "to be quoted" not in result.output


@needs_l4
def test_others_latencies_are_reported_with_their_faults(on_l4: Path, tmp_path: Path) -> None:
    text = written(on_l4, tmp_path, "r.md")
    plain = " ".join(text.split())
    faults = plain.split("### Unsupported by the data")[1].split("## Performance")[0]
    assert "An interval for 4 cells (drifting)" in faults
    assert "8 cells start with up to 3 slow samples" in faults
    assert "0.97" in faults
    assert "differ by up to 17.7%" in faults
    assert "1.024 µs" in faults
    assert "10 of 10 published intervals of these samples" in plain
    assert "7 are of autocorrelated samples" in plain
    assert "5 are one timer tick wide" in plain
    assert "**13 published claims " in plain
    wrong = plain.split("### Published claims that are wrong")[1].split("## Ablation")[0]
    assert "**S=512 is firmly compute-bound**: compute-bound: 256.0 FLOP/B is left of" in wrong
    shares = plain.split("**Rates at the median**")[1].split("**Query tokens")[0]
    assert "278 GB/s | - | 403" in shares
    assert "338 GB/s | cached | 403" in shares
    assert "210 GB/s | 69.7% | 403" in shares
    section = plain.split("## Claims")[1].split("## Configuration")[0]
    for part in ("imported, measured on L4", "driver and versions unknown", "seed unknown"):
        assert section.count(part) == 1
    assert not any("95%" in one for one in claims(text))
    assert examine(read_claims(on_l4 / "summary.json").claims, "L4").contradictions == ()


@needs_l4
def test_others_latencies_beside_published_figures(on_l4: Path) -> None:
    found = {(one.figure.series, one.row.length, one.row.batch, one.row.heads): one
             for one in gather(on_l4).published}  # fmt: skip
    own = found["SDPA on an L4", 512, 32, 8]
    assert own.same_gpu
    assert own.time_ratio == pytest.approx(1, abs=1e-3)
    assert own.row.flop_rate == pytest.approx(4 * 32 * 8 * 512**2 * 64 / 0.321e-3, rel=1e-3)
    other = found["SDPA cudnn, earlier run", 512, 32, 8]
    assert not other.same_gpu
    assert other.time_ratio is None
    here, there = 53.516 / 121, 17.18 / 0.0509 / 989.5  # TFLOP/s over each dense FP16 peak
    assert other.share_ratio == pytest.approx(here / there, rel=0.01)


RECORDED = ROOT / "reports" / "h200" / "baseline"


DERIVED = re.compile(r"derived \S+ \(UTC\)")


@pytest.mark.parametrize("name", ["l4_study", "attention_paper"])
def test_the_committed_report_comes_of_the_recorded_data_byte_for_byte(
    tmp_path: Path, name: str
) -> None:
    """But for the minute in which the summary was derived, which is not tracked."""
    text = written(baseline_folder(name), tmp_path, "report.md", "--ablation", LADDER)
    tracked = (RECORDED / name / "report.md").read_text("utf-8")
    assert DERIVED.sub("", text) == DERIVED.sub("", tracked) != tracked
    drawings, tracked_drawings = (
        {file: digest for file, digest in digests(folder).items() if file.endswith(".svg")}
        for folder in (tmp_path, RECORDED / name)
    )
    assert "report-drawings/latency.svg" in drawings
    assert drawings == {
        file: digest for file, digest in tracked_drawings.items() if file.startswith("report")
    }


def test_the_share_at_the_counted_clock_is_what_ncu_counted_of_the_tensor_pipe() -> None:
    """Of calls of a millisecond and more, beside which launching takes nothing to speak of."""
    summary = json.loads(recorded_summary("attention_paper").read_text("utf-8"))
    cells = {row["id"]: row for row in summary["cells"]}
    assert len(summary["profiles"]) == 3
    for told in summary["profiles"]:
        (file,) = (RECORDED / "attention_paper" / told["folder"]).glob("*.ncu-repz")
        (launch,) = load(file).summary.launches
        row = cells[told["id"]]
        assert row["clock_by"] == "device"
        assert row["share_of_held"] == pytest.approx(launch.get("tensor_busy"), rel=0.02)


def test_a_cell_is_read_as_a_file_of_latencies(tmp_path: Path) -> None:
    cells = baseline_folder("attention_paper") / "cells"
    saved = read_latencies(cells / "b1-h64-kv8-s8192-d128-bf16.cutlass.json")
    (latency,) = saved.latencies
    assert (latency.label, len(latency.samples)) == ("cutlass", 104)
    assert saved.fingerprint.gpu
    assert saved.fingerprint.gpu.name == "NVIDIA H200"
    with pytest.raises(BadInput, match="a cell without measurements"):
        read_latencies(cells / "b1-h64-kv8-s32768-d128-bf16.math.json")
    text = (cells / "b1-h64-kv8-s8192-d128-bf16.cutlass.json").read_text("utf-8")
    for wrong in ("text", {"versions": ["x"]}, {"versions": {"torch": 2}}):
        file = tmp_path / "damaged.json"
        file.write_text(json.dumps({**json.loads(text), "fingerprint": wrong}), encoding="utf-8")
        with pytest.raises(BadInput, match=r"damaged\.json: fingerprint"):
            read_latencies(file)


def test_one_kernel_under_two_names_is_nowhere_said_to_differ() -> None:
    for name in ("l4_study", "attention_paper"):
        baseline = recorded_baseline(name)
        same = [
            pair
            for pair in baseline.comparisons
            if is_same_kernel(pair.shape, pair.a, pair.b, baseline.cells)
        ]
        assert len(same) >= 10
        assert not {Verdict.IMPROVED, Verdict.REGRESSED} & {pair.verdict for pair in same}


@pytest.mark.parametrize("name", ["l4_study", "attention_paper"])
def test_audit_finds_nothing_in_what_was_recorded(name: str) -> None:
    claims = read_claims(recorded_summary(name)).claims
    assert claims
    assert examine(claims).contradictions == ()


def test_a_time_that_shrinks_as_the_shape_grows_is_no_fault_of_a_summary(tmp_path: Path) -> None:
    file = tmp_path / "summary.json"
    growth = {"to": "b", "from": "a", "factor": 2.0, "time_ratio": 0.98, "exponent": -0.029}
    file.write_text(json.dumps({"schema": "profkit.baseline/1", "scaling": [growth]}), "utf-8")
    assert examine(read_claims(file).claims).contradictions == ()
