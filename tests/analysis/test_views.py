"""What people and machines get: the formats, what they leave out, and names shown as they are."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import jsonschema
import pytest
from markdown_it import MarkdownIt
from msgspec import structs

import profkit
from profkit.report.catalog import catalog
from profkit.report.checks import NOT_TIMED, OF_ONE
from profkit.report.panels import work_grid
from profkit.report.quantities import evaluate, request
from profkit.report.reader import read
from profkit.report.summary import groups, summarize
from tests.conftest import (
    CORPUS,
    H200,
    RECORDED,
    ROOT,
    Cli,
    h200,
    needs_corpus,
    needs_reader,
    plain_bytes,
)

KNOWN = H200 / "known.ncu-repz"
SCHEMAS = ROOT / "profkit" / "schemas"
RUN = H200 / "sdpa_s512"
ODD = "a|[red]<b>\x1b[1m`"


@cache
def schema(name: str) -> jsonschema.Draft202012Validator:
    data = json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(data)
    return jsonschema.Draft202012Validator(data)


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report whose kernels have names of markup, escapes and direction marks."""
    data = plain_bytes("known")
    replacements = {
        b"transpose_conflict": ODD.encode() + b"___",
        b"transpose_padded": b"[lambda() (1)]__",
        b"copy_coalesced": b"<unnamed>::\xe2\x80\xae",
        b"pointer_chase": b"**x**_[/red]_",
    }
    for old, new in replacements.items():
        assert len(old) == len(new)
        data = data.replace(old, new)
    file = tmp_path_factory.mktemp("odd") / "odd.ncu-rep"
    file.write_bytes(data)
    return file


@pytest.mark.parametrize("name", RECORDED)
def test_json_keeps_its_schema_and_says_what_is_missing(profkit_cli: Cli, name: str) -> None:
    result = profkit_cli("analyze", H200 / f"{name}.ncu-repz", "--format", "json")
    data = json.loads(result.stdout)
    schema("analyze").validate(data)
    assert data["schema"] == "profkit.analyze/1"
    report = h200(name)
    assert len(data["kernels"]) == len(report)
    for kernel, launch in zip(data["kernels"], report.summary.launches, strict=True):
        assert kernel["name"] == launch.name
        assert list(kernel["metrics"]) == list(catalog().quantities)
        nulls = {key for key, value in kernel["metrics"].items() if value is None}
        assert nulls == set(kernel["missing"])
        assert all(kernel["missing"].values())
        assert sum(stall["share"] for stall in kernel["stalls"]) == pytest.approx(
            1 if kernel["stalls"] else 0
        )


@needs_reader
def test_several_reports_give_reports_of_the_same_shape(profkit_cli: Cli) -> None:
    result = profkit_cli(
        "analyze", KNOWN, H200 / "sdpa_s512_cudnn.ncu-repz", "--format", "json", "--top", "1"
    )
    data = json.loads(result.stdout)
    schema("analyze").validate(data)
    assert [len(report["kernels"]) for report in data["reports"]] == [1, 1]
    alone = json.loads(profkit_cli("analyze", KNOWN, "--format", "json", "--top", "1").stdout)
    assert data["reports"][0] == {
        key: value for key, value in alone.items() if key not in {"schema", "profkit"}
    }


def test_a_directory_is_all_reports_in_it(profkit_cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name in ("sdpa_s512_cudnn", "sdpa_s512_flash_set_basic"):
        (tmp_path / "deep" / f"{name}.ncu-repz").symlink_to(H200 / f"{name}.ncu-repz")
    data = json.loads(profkit_cli("analyze", tmp_path, "--format", "json").stdout)
    assert [report["report"]["file"] for report in data["reports"]] == [
        "sdpa_s512_cudnn.ncu-repz",
        "sdpa_s512_flash_set_basic.ncu-repz",
    ]


def test_csv_is_one_row_a_launch_with_catalog_columns(profkit_cli: Cli) -> None:
    text = profkit_cli("analyze", KNOWN, "--format", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 13
    assert list(rows[0])[6:] == list(catalog().quantities)
    frame = h200("known").kernels
    for row, (_, expected) in zip(rows, frame.iterrows(), strict=True):
        assert row["kernel"] == expected["kernel"]
        assert float(row["duration"]) == expected["duration"]
        assert (row["l1_local_hit_rate"] == "") == (
            expected["l1_local_hit_rate"] != expected["l1_local_hit_rate"]
        )


def test_output_goes_to_a_file(profkit_cli: Cli, tmp_path: Path) -> None:
    for format_name in ("terminal", "json", "markdown", "csv"):
        file = tmp_path / format_name
        result = profkit_cli("analyze", KNOWN, "--format", format_name, "-o", file)
        assert result.stdout == ""
        shown = profkit_cli("analyze", KNOWN, "--format", format_name).stdout
        assert file.read_text(encoding="utf-8") == shown
    refused = profkit_cli("analyze", KNOWN, "-o", tmp_path / "no" / "where", status=2)
    assert "can't be written" in refused.stderr


@pytest.mark.usefixtures("new_processes")
def test_piped_output_is_plain_and_in_the_characters_that_there_are() -> None:
    variables = {"COLUMNS": "66", "FORCE_COLOR": "1", "PYTHONIOENCODING": "ascii"}
    done = run_profkit("analyze", KNOWN, "--top", "1", **variables)
    shown = done.stdout.decode("ascii")
    assert "710.0 us" in shown
    assert "1.10x" in shown
    assert "?" not in shown
    assert b"\x1b" not in done.stdout + done.stderr
    assert all(
        line.endswith(b" s  reading") for line in done.stderr.splitlines()
    )  # where it is slow
    assert max(map(len, shown.splitlines())) == 66


@pytest.mark.parametrize(
    ("columns", "width"), [("", 100), ("66", 66), ("20", 60), ("999", 120), ("wide", 100)]
)
def test_output_is_as_wide_as_columns_says(profkit_cli: Cli, columns: str, width: int) -> None:
    shown = profkit_cli("analyze", KNOWN, "--top", "1", COLUMNS=columns).stdout
    lines = shown.splitlines()
    assert max(map(len, lines)) == width
    assert all(line == line.rstrip() for line in lines)
    assert "\n3   spill" in shown
    assert "12.9%" in shown


def test_names_are_shown_as_they_are(profkit_cli: Cli, odd: Path) -> None:
    shown = profkit_cli("analyze", odd, "--top", "0").stdout
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert r"a|[red]<b>\x1b[1m`" in shown
    assert r"<unnamed>::\u202e(" in shown
    assert "**x**_[/red]_" in shown
    assert "[lambda() (1)]" in shown
    names = {
        kernel["name"]
        for kernel in json.loads(profkit_cli("analyze", odd, "--format", "json").stdout)["kernels"]
    }
    assert any(name.startswith(ODD) for name in names)
    assert any("\u202e" in name for name in names)


def test_markdown_keeps_names_whole(profkit_cli: Cli, odd: Path) -> None:
    text = profkit_cli("analyze", odd, "--format", "markdown", "--top", "0").stdout
    assert "\x1b" not in text
    assert "\u202e" not in text
    html = MarkdownIt("commonmark").enable("table").render(text)
    codes = re.findall(r"<code>(.*?)</code>", html)
    assert any("a|[red]&lt;b&gt;\\x1b[1m`" in code for code in codes)
    assert any("&lt;unnamed&gt;::\\u202e" in code for code in codes)
    assert "<unnamed>" not in html
    assert "<b>" not in html
    table = html[html.index(">Kernels<") :]
    table = table[: table.index("</table>")]
    assert table.count("<tr>") == 14
    columns = len(re.findall("<th[ >]", table))
    assert all(row.count("<td") == columns for row in table.split("<tr>")[2:])


def test_notebook_views_keep_names_whole(odd: Path) -> None:
    report = profkit.load(odd)
    for html in (report._repr_html_(), *(kernel._repr_html_() for kernel in report)):
        assert "<unnamed>" not in html
        assert "<b>\\x1b" not in html
        assert "\x1b" not in html
    assert "&lt;unnamed&gt;" in report._repr_html_()
    assert "DRAM" in report.kernel(0)._repr_html_()


PRIVATE = ("tkhen", "OneDrive", "C:", "repos")


@needs_corpus
@pytest.mark.parametrize("format_name", ["json", "markdown"])
def test_what_is_shared_says_nothing_of_the_host(profkit_cli: Cli, format_name: str) -> None:
    for file in CORPUS.glob("*.ncu-rep"):
        session = profkit.load(file).session
        text = profkit_cli("analyze", file, "--format", format_name).stdout
        assert session.host.name
        assert not re.search(rf"\b{re.escape(session.host.name)}\b", text)
        for address in session.host.addresses:
            assert address not in text
        assert "/home/" not in text
        assert "/opt/" not in text
        assert "\\Users" not in text
        assert str(file.parent) not in text
    windows = CORPUS / "mixes-reconstruction__version2.ncu-rep"
    text = profkit_cli("analyze", windows, "--format", format_name).stdout
    assert not any(word in text for word in PRIVATE)
    whole = profkit_cli("analyze", windows, "--format", format_name, "--with-host").stdout
    assert "tkhen" in whole
    assert "HOME" in whole


def test_the_recording_is_reported(profkit_cli: Cli) -> None:
    shown = profkit_cli("analyze", H200 / "sdpa_s512_flash.ncu-repz", "--top", "1").stdout
    for fact in (
        "NVIDIA H200, CC 9.0, 132 SMs",
        "2026-11-20 09:49:58 UTC",
        "ncu 2025.3.1.0, CUDA 13.0",
        "SM 1.78 GHz (max SM clock 1.980 GHz)",
        "clock-control none, cache-control all (default), replay-mode kernel (default), 38 passes",
        "--set full",
    ):
        assert fact in shown


def test_filters_and_sorting(profkit_cli: Cli) -> None:
    def names(*options: str) -> list[str]:
        text = profkit_cli("analyze", KNOWN, "--format", "json", *options).stdout
        return [group["name"].split("(")[0] for group in json.loads(text)["groups"]]

    assert names("--kernel", "^transpose") == ["transpose_conflict", "transpose_padded"]
    assert names("--sort", "name") == sorted(names())
    assert names("--sort", "order")[0] == "copy_coalesced"
    assert names("--sort", "dram_busy")[0] == "copy_coalesced"
    assert names("--sort", "tensor_busy")[0] == "fma_bound"
    assert names("--sort", "time")[0] == "fma_bound"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--kernel", "nothing_of_the_kind"), ("no kernel matches", "fma_bound")),
        (("--kernel", "("), ("not a valid regular expression",)),
        (("--nvtx", "train"), ("NVTX", "ncu --nvtx")),
        (("--sort", "beauty"), ("not time, name", "profkit metrics")),
        (("--sort", "dram_bussy"), ("did you mean dram_busy",)),
    ],
)
def test_wrong_usage_ends_with_2_and_a_remedy(
    profkit_cli: Cli, options: tuple[str, ...], words: tuple[str, ...]
) -> None:
    result = profkit_cli("analyze", KNOWN, *options, status=2)
    assert len(result.stderr.strip().splitlines()) == 1
    for word in words:
        assert word in result.stderr


def test_the_whole_name_stands_above_the_detail_to_be_picked_by(profkit_cli: Cli) -> None:
    file = H200 / "sdpa_s512_math.ncu-repz"
    shown = profkit_cli("analyze", file, "--top", "0").stdout
    folded = re.sub(r"\s", "", shown)
    name = "vectorized_elementwise_kernel<(int)4, at::native::FillFunctor<float>"
    assert f"at::native::{name}".replace(" ", "") in folded
    found = profkit_cli("analyze", file, "--kernel", "FillFunctor<float>", "--format", "json")
    assert len(json.loads(found.stdout)["kernels"]) == 1


def test_few_bytes_are_not_printed_in_kibibytes(profkit_cli: Cli) -> None:
    shown = profkit_cli("analyze", H200 / "sdpa_s512_math.ncu-repz", "--top", "0").stdout
    assert "16 B static" in shown
    assert "0.01562 KiB" not in shown


@needs_reader
def test_the_sort_key_is_known_for_all_kernels_or_explained(profkit_cli: Cli) -> None:
    file = H200 / "sdpa_s512_math.ncu-repz"
    shown = profkit_cli("analyze", file, "--sort", "flop_rate", "--top", "1").stdout
    table = shown[shown.index("  Kernel ") :]
    table = table[: table.index("\n\n")]
    assert "n/a" not in table
    assert table.count("FLOP/s") == len(h200("sdpa_s512_math").summary.groups) == 11
    unknown = profkit_cli("analyze", file, "--sort", "l1_local_hit_rate", "--top", "1").stdout
    assert "l1_local_hit_rate n/a: undefined for this launch" in unknown


def test_without_a_look_at_half_precision_both_bounds_are_reported() -> None:
    report = profkit.load(KNOWN, kernel="fma_bound", check_half_from=0.05)
    note = work_grid(report.summary.launches[0]).note
    assert note.startswith("half precision: 0 to 1.352 GFLOP (1.4% of its roof)")


def test_csv_names_what_is_doubtful(profkit_cli: Cli) -> None:
    text = profkit_cli("analyze", KNOWN, "--format", "csv").stdout
    doubtful = {row["kernel"]: row["doubtful"] for row in csv.DictReader(io.StringIO(text))}
    assert doubtful["fma_bound(float *, int)"] == "l2_read_hit_rate"
    assert doubtful["atomics(int *)"] == ""


def test_files_beside_a_report_are_listed(profkit_cli: Cli, tmp_path: Path) -> None:
    (run,) = RUN.iterdir()
    for file in (H200 / "sdpa_s512_flash.ncu-repz", run / "timeline.sqlite", run / "check.json"):
        shutil.copy(file, tmp_path)
    digests = {
        file.name: {"sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
        for file in tmp_path.iterdir()
    }
    manifest = {"schema": "profkit.run/1", "files": digests}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    shown = profkit_cli("analyze", tmp_path, "--top", "1").stdout
    assert "timeline.sqlite (profkit analyze shows it), check.json" in shown
    assert "check.json" not in profkit_cli("analyze", KNOWN, "--top", "1").stdout


def test_a_range_of_launches_says_that_it_is_one() -> None:
    """Two products of 4096 x 4096 x 4096 replayed as one range."""
    report = profkit.load(next((H200 / "matmul").iterdir()))
    (kernel,) = (report.kernel(at) for at in range(len(report)))
    assert kernel["flop_tensor"] == 2 * (2 * 4096**3)
    assert "range replay" in kernel.warnings[0]


def test_what_is_of_one_launch_is_unknown_of_a_range(profkit_cli: Cli) -> None:
    """ncu records the launch configuration of one launch, whose rules say nothing of the range."""
    (run,) = (H200 / "matmul").iterdir()
    kernel = profkit.load(run).kernel(0)
    several = {"grid_size", "registers_per_thread", "waves", "occupancy_theoretical"}
    assert all(math.isnan(kernel[name]) for name in several)
    assert not math.isnan(kernel["occupancy_achieved"])
    assert {kernel.summary.missing[name] for name in several} == {OF_ONE}
    other = replace(kernel.summary, launch=replace(kernel.summary.launch, nvtx=("other",)))
    assert [group.count for group in groups([kernel.summary, other, other])] == [2, 1]
    unknown = json.loads(profkit_cli("checklist", run, "--format", "json").stdout)["not_evaluated"]
    assert {"tail_effect", "occupancy_registers"} <= {row["rule"] for row in unknown}


def test_ncus_time_of_a_range_is_not_its_own(profkit_cli: Cli) -> None:
    """Of ncu's 583 µs SMs were active for 312 in the mean: products that take tensor cores to 91%
    of their rate by samples over time would be shown at half of it."""
    (run,) = (H200 / "matmul").iterdir()
    kernel = profkit.load(run).kernel(0)
    assert kernel["duration"] == 582.528e-6
    assert kernel["active_cycles"] / kernel["sm_clock"] == pytest.approx(311.8e-6, rel=1e-3)
    rates = {"tensor_busy", "dram_busy", "issue_busy", "dram_bandwidth", "flop_rate", "l2_busy"}
    assert {kernel.summary.missing[name] for name in rates} == {NOT_TIMED}
    assert "SMs were active for 311.8 µs of it" in kernel.warnings[1]
    document = json.loads(profkit_cli("checklist", run, "--format", "json").stdout)
    assert [item for item in document["checklist"] if item["kernel"]] == []
    groups_of = json.loads(profkit_cli("analyze", run, "--format", "json").stdout)["groups"]
    assert groups_of[0]["headroom"] is None
    compared = json.loads(profkit_cli("diff", run, run, "--format", "json", status=3).stdout)
    (row,) = compared["comparisons"][0]["kernels"]
    assert row["verdict"] == "INCOMPARABLE"
    assert row["obstacles"][0]["what"] == "ncu's time"
    shown = profkit_cli("roofline", run, "--format", "json").stdout
    assert json.loads(shown)["reports"][0]["points"] == []


def test_kernels_beside_graphs_as_a_whole_have_no_rates() -> None:
    """ncu gives a fill of 0.7 µs 192 µs in such a report (2025.3 on an H200)."""
    raw = read(KNOWN, request())
    session = structs.replace(
        raw.session, options={**raw.session.options, "graph-profiling": "graph"}
    )
    summary = summarize(replace(raw, session=session), evaluate(replace(raw, session=session)))
    launch, usual = summary.launches[0], profkit.load(KNOWN).kernel(0)
    assert not launch.is_timed
    assert math.isnan(launch.get("dram_busy"))
    assert launch.get("grid_size") == usual["grid_size"]
    assert launch.get("sm_clock") == usual["sm_clock"]
    assert launch.get("dram_bytes") == usual["dram_bytes"]


def test_a_recorded_run_keeps_its_schemas() -> None:
    (folder,) = RUN.iterdir()
    kept = (("manifest", "run"), ("check", "check"), ("latency", "time"))
    for file, name in kept:
        document = json.loads((folder / f"{file}.json").read_text(encoding="utf-8"))
        assert list(schema(name).iter_errors(document)) == []


def test_options_for_reports_are_refused_for_timelines(profkit_cli: Cli) -> None:
    timeline = H200 / "sdpa_s512_flash.sqlite"
    for options in (("--sort", "name"), ("--top", "0"), ("--kernel", "x")):
        refused = profkit_cli("analyze", timeline, *options, status=2)
        assert options[0] in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("analyze", KNOWN, "--format", "xml"),
            ("'--format': 'xml'", "'terminal', 'brief', 'json'"),
        ),
        (("analyze", KNOWN, "--formt", "json"), ("--formt; did you mean --format?",)),
        (("analyze", KNOWN, "--top", "-1"), ("--top", "equal to 0")),
        (("analyze", KNOWN, "--top"), ("'--top'", "see `profkit analyze --help`")),
        (("analyze",), ("missing argument 'FILE...'; for example `profkit analyze run.ncu-rep`",)),
        (("plan", KNOWN), ("; for example `profkit plan --gpu H200 --set full`",)),
        (("analyz",), ("no such command 'analyz'; did you mean 'analyze'?",)),
        (("--versio",), ("--versio; did you mean --version?",)),
        (("doctor", "extra"), ("extra", "for example `profkit doctor`")),
        (("compare", "a.json"), ("missing argument 'B.json'",)),
        (("time", "--wrong"), ("no such option: --wrong; see `profkit time --help`",)),
        (("profile", "--launch-count", "0", "x"), ("--launch-count", "profkit profile --help")),
    ],
)
def test_a_wrong_command_line_is_reported_in_one_line(
    profkit_cli: Cli, arguments: tuple[str | Path, ...], words: tuple[str, ...]
) -> None:
    result = profkit_cli(*arguments, status=2)
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("profkit: ")
    for word in words:
        assert word in line


def test_no_arguments_give_help(profkit_cli: Cli) -> None:
    assert "Usage: " in profkit_cli(status=2).output
    profkit_cli("analyze", "--help")


@needs_corpus
def test_nvtx_ranges_select_launches(profkit_cli: Cli) -> None:
    file = CORPUS / "nsight-training__manual_nvtx.ncu-rep"
    for pattern, launches in (("daxpy", 1), ("run_test/", 3), ("*init*", 1)):
        text = profkit_cli("analyze", file, "--nvtx", pattern, "--format", "json").stdout
        assert len(json.loads(text)["kernels"]) == launches
    missing = profkit_cli("analyze", file, "--nvtx", "train", status=2)
    assert "run_test" in missing.stderr


def test_launches_of_one_kernel_and_shape_are_grouped(profkit_cli: Cli) -> None:
    file = H200 / "sdpa_s512_math.ncu-repz"
    data = json.loads(profkit_cli("analyze", file, "--format", "json").stdout)
    assert sum(group["count"] for group in data["groups"]) == 14
    assert sum(group["share"] for group in data["groups"]) == pytest.approx(1)
    largest = max(data["groups"], key=lambda group: group["count"])
    times = [
        kernel["duration_s"]
        for kernel in data["kernels"]
        if kernel["launch"] in largest["launches"]
    ]
    assert largest["count"] == len(times) > 1
    assert largest["total_s"] == pytest.approx(sum(times))
    assert largest["min_s"] == min(times)
    assert largest["max_s"] == max(times)
    shown = profkit_cli("analyze", file, "--top", "0").stdout
    assert f"(median of {largest['count']} launches)" in shown
    (pair,) = [group for group in data["groups"] if group["count"] == 2]
    assert pair["min_s"] < pair["median_s"]
    assert "(nearest below the median of 2 launches)" in shown


def test_the_version_is_said(profkit_cli: Cli) -> None:
    assert profkit_cli("--version").stdout == f"profkit {profkit.__version__}\n"


def test_help_has_examples(profkit_cli: Cli) -> None:
    for verb in ("analyze", "metrics"):
        text = profkit_cli(verb, "--help").stdout
        assert f"profkit {verb} run.ncu-rep" in text


def run_profkit(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "profkit", *map(str, arguments)],
        capture_output=True,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.usefixtures("new_processes")
def test_a_full_disk_is_reported_in_one_line() -> None:
    small = H200 / "sdpa_s512_flash_two_metrics.ncu-repz"
    for arguments in (("analyze", small), ("analyze", small, "--format", "json")):
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run(
                [sys.executable, "-m", "profkit", *map(str, arguments)],
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        assert done.returncode == 2
        last = done.stderr.splitlines()[-1]  # after progress, where a machine is slow
        assert last == "profkit: can't write the output (No space left on device)"


def test_a_sort_quantity_gets_a_column_and_the_doubtful_come_last(profkit_cli: Cli) -> None:
    shown = profkit_cli("analyze", KNOWN, "--sort", "l2_read_hit_rate", "--top", "1").stdout
    lines = shown.splitlines()
    table = lines[lines.index("Kernels") + 2 :][:13]
    assert "l2_read_hit_rate" in shown
    assert table[-1].endswith("115.9%?")
    shares = [float(line.split()[-1].rstrip("%?").lstrip("<")) for line in table[:-1]]
    assert shares == sorted(shares, reverse=True)


def test_a_filter_is_named_beside_the_shares(profkit_cli: Cli) -> None:
    shown = profkit_cli("analyze", KNOWN, "--kernel", "fma_bound").stdout
    assert "selected from 13 launches" in shown
    assert "kept of" not in profkit_cli("analyze", KNOWN).stdout


def test_what_was_collected_alone_is_shown(profkit_cli: Cli) -> None:
    shown = profkit_cli(
        "analyze", H200 / "sdpa_s512_flash_two_metrics.ncu-repz", "--top", "1"
    ).stdout
    assert "50.41 MB read" in shown
    assert "710.2 GB/s read" in shown
