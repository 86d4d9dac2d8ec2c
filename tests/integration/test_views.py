"""What people and machines get: the formats, what they leave out, and names shown as they are."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
from markdown_it import MarkdownIt
from typer.testing import Result

import profkit
from profkit.metrics.catalog import catalog
from tests.conftest import CORPUS, H200, RECORDED, ROOT, h200, needs_corpus, plain_bytes

Cli = Callable[..., Result]
KNOWN = H200 / "known.ncu-repz"
SCHEMAS = ROOT / "profkit" / "schemas"
ODD = "a|[red]<b>\x1b[1m`"


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
    assert result.exit_code == 0
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


def test_csv_is_one_row_a_launch_with_catalogue_columns(profkit_cli: Cli) -> None:
    text = profkit_cli("analyze", KNOWN, "--format", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 13
    assert list(rows[0])[5:] == list(catalog().quantities)
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
        assert result.exit_code == 0
        assert result.stdout == ""
        shown = profkit_cli("analyze", KNOWN, "--format", format_name).stdout
        assert file.read_text(encoding="utf-8") == shown
    refused = profkit_cli("analyze", KNOWN, "-o", tmp_path / "no" / "where")
    assert refused.exit_code == 2
    assert "can't be written" in refused.stderr


def test_piped_output_is_plain_and_fits_100_columns() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "profkit", "analyze", str(KNOWN), "--top", "0"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "60", "FORCE_COLOR": "1"},
    )
    assert "\x1b" not in done.stdout
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 100
    assert all(line == line.rstrip() for line in lines)


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
    assert all(row.count("<td") == 8 for row in table.split("<tr>")[2:])


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
        assert session.host_name
        assert not re.search(rf"\b{re.escape(session.host_name)}\b", text)
        for address in session.addresses:
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


def test_the_recording_is_told(profkit_cli: Cli) -> None:
    shown = profkit_cli("analyze", H200 / "sdpa_s512_flash.ncu-repz").stdout
    for fact in (
        "NVIDIA H200, CC 9.0, 132 SMs",
        "2026-11-20 09:49:58 UTC",
        "ncu 2025.3.1.0, CUDA 13.0",
        "SM 1.78 GHz held (chip: 1.980 GHz)",
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
        (("--kernel", "("), ("not a regular expression",)),
        (("--nvtx", "train"), ("NVTX", "ncu --nvtx")),
        (("--sort", "beauty"), ("not time, name", "profkit metrics")),
        (("--sort", "dram_bussy"), ("did you mean dram_busy",)),
    ],
)
def test_wrong_usage_ends_with_2_and_a_remedy(
    profkit_cli: Cli, options: tuple[str, ...], words: tuple[str, ...]
) -> None:
    result = profkit_cli("analyze", KNOWN, *options)
    assert result.exit_code == 2
    assert len(result.stderr.strip().splitlines()) == 1
    for word in words:
        assert word in result.stderr


def test_unknown_options_end_with_2(profkit_cli: Cli) -> None:
    assert profkit_cli("analyze", KNOWN, "--format", "xml").exit_code == 2
    assert profkit_cli("analyze", KNOWN, "--wrong").exit_code == 2
    assert profkit_cli("analyze").exit_code == 2


@needs_corpus
def test_nvtx_ranges_select_launches(profkit_cli: Cli) -> None:
    file = CORPUS / "nsight-training__manual_nvtx.ncu-rep"
    for pattern, launches in (("daxpy", 1), ("run_test/", 3), ("*init*", 1)):
        text = profkit_cli("analyze", file, "--nvtx", pattern, "--format", "json").stdout
        assert len(json.loads(text)["kernels"]) == launches
    missing = profkit_cli("analyze", file, "--nvtx", "train")
    assert missing.exit_code == 2
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
    assert f"(the median of {largest['count']})" in shown


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


def test_a_full_disk_is_told_in_one_line() -> None:
    for arguments in (("analyze", KNOWN), ("analyze", KNOWN, "--format", "json"), ("metrics",)):
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run(
                [sys.executable, "-m", "profkit", *map(str, arguments)],
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        assert done.returncode == 2
        assert done.stderr == "profkit: can't write the output (No space left on device)\n"


def test_a_terminal_without_our_characters_gets_others() -> None:
    done = run_profkit("analyze", KNOWN, PYTHONIOENCODING="ascii")
    shown = done.stdout.decode("ascii")
    assert "710.0 us" in shown
    assert "256x256" in shown
    assert "?" not in shown


def test_a_sort_quantity_gets_a_column_and_the_doubtful_come_last(profkit_cli: Cli) -> None:
    shown = profkit_cli("analyze", KNOWN, "--sort", "l2_read_hit_rate", "--top", "1").stdout
    lines = shown.splitlines()
    table = [line for line in lines if re.match(r" ?\d+  \w", line)][:13]
    assert "l2_read_hit_rate" in shown
    assert table[-1].endswith("115.9%?")
    shares = [float(line.split()[-1].rstrip("%?").lstrip("<")) for line in table[:-1]]
    assert shares == sorted(shares, reverse=True)


def test_a_filter_is_told_beside_the_shares(profkit_cli: Cli) -> None:
    shown = profkit_cli("analyze", KNOWN, "--kernel", "fma_bound").stdout
    assert "kept of 13, shares are of these" in shown
    assert "kept of" not in profkit_cli("analyze", KNOWN).stdout


def test_what_was_collected_alone_is_shown(profkit_cli: Cli) -> None:
    shown = profkit_cli("analyze", H200 / "sdpa_s512_flash_two_metrics.ncu-repz").stdout
    assert "50.41 MB read" in shown
    assert "710.2 GB/s read" in shown
