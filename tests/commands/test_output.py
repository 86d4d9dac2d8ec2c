"""Where `-o` writes, and where it never does."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from tests.conftest import H200

Cli = Callable[..., Result]
BASIC = H200 / "sdpa_s512_flash_set_basic.ncu-repz"
TIMINGS = H200 / "timing" / "flash_cudnn.json"
CLAIMS = "- {gpu: H200, median_ms: 1.0, flop: 1.0e9, gflops: 1000}\n"


@pytest.mark.parametrize(
    "verb", ["analyze", "checklist", "report", "source", "metrics", "roofline"]
)
def test_a_recording_is_never_written_over(tmp_path: Path, profkit_cli: Cli, verb: str) -> None:
    mine, other = tmp_path / "mine.ncu-repz", tmp_path / "other.ncu-repz"
    for file in (mine, other):
        shutil.copy(BASIC, file)
    for output in (mine, other):
        result = profkit_cli(verb, mine, "-o", output)
        assert result.exit_code == 2
        assert f"{output}: is a recording" in result.stderr
        assert output.read_bytes() == BASIC.read_bytes()


@pytest.mark.parametrize("first", [True, False])
def test_what_is_read_is_not_written_over(tmp_path: Path, profkit_cli: Cli, first: bool) -> None:
    claims = tmp_path / "claims.yaml"
    claims.write_text(CLAIMS, encoding="utf-8")
    output = ("-o", tmp_path / "." / "claims.yaml")
    words = (*output, claims) if first else (claims, *output)
    result = profkit_cli("audit", *words)
    assert result.exit_code == 2
    assert "is an input file; write to another file" in result.stderr
    assert claims.read_text(encoding="utf-8") == CLAIMS


@pytest.mark.parametrize("option", ["--save", "-o"])
def test_saved_samples_are_not_written_over(tmp_path: Path, profkit_cli: Cli, option: str) -> None:
    samples = tmp_path / "samples.json"
    shutil.copy(TIMINGS, samples)
    result = profkit_cli("time", "--from", samples, option, samples)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "is an input file; write to another file" in result.stderr
    assert samples.read_bytes() == TIMINGS.read_bytes()


@pytest.mark.parametrize("name", ["latency.json", "manifest.json"])
def test_a_file_of_a_run_is_not_written_over(tmp_path: Path, profkit_cli: Cli, name: str) -> None:
    run = tmp_path / "run"
    shutil.copytree(next((H200 / "sdpa_s512").iterdir()), run)
    before = (run / name).read_bytes()
    for words in (("time", "--from", run, "--save"), ("checklist", run, "-o")):
        result = profkit_cli(*words, run / name)
        assert result.exit_code == 2
        assert f"{name}: belongs to a recorded run; write to another file" in result.stderr
        assert (run / name).read_bytes() == before


def test_two_outputs_are_two_files(profkit_cli: Cli) -> None:
    result = profkit_cli("time", "--from", TIMINGS, "--save", "x.json", "-o", "./x.json")
    assert result.exit_code == 2
    assert "x.json: is named for two outputs; name a file for each" in result.stderr


def test_a_dash_is_not_a_file(profkit_cli: Cli) -> None:
    result = profkit_cli("checklist", BASIC, "-o", "-")
    assert result.exit_code == 2
    assert "-: is not a file; name a file" in result.stderr


@pytest.mark.parametrize(("option", "name"), [("--save", "x.json"), ("--badge", "x.svg")])
def test_a_place_to_save_is_checked_before_timing(
    tmp_path: Path, profkit_cli: Cli, option: str, name: str
) -> None:
    output = tmp_path / "none" / name
    result = profkit_cli("time", "--from", TIMINGS, option, output)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert f"{output}: can't be written" in result.stderr


def test_what_was_written_before_is_written_over(tmp_path: Path, profkit_cli: Cli) -> None:
    claims, told = tmp_path / "claims.yaml", tmp_path / "told.txt"
    claims.write_text(CLAIMS, encoding="utf-8")
    for _ in range(2):
        assert profkit_cli("audit", claims, "-o", told).exit_code == 0
    assert told.read_text(encoding="utf-8").count("0 contradictions") == 1


def test_a_pipe_is_written_to(tmp_path: Path, profkit_cli: Cli) -> None:
    claims, pipe = tmp_path / "claims.yaml", tmp_path / "pipe"
    claims.write_text(CLAIMS, encoding="utf-8")
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert profkit_cli("audit", claims, "-o", pipe).exit_code == 0
        assert b"0 contradictions" in os.read(reading, 1 << 16)
    finally:
        os.close(reading)


def test_a_place_that_can_not_be_is_refused_before_any_work(
    tmp_path: Path, profkit_cli: Cli
) -> None:
    for output, why in ((tmp_path / "none" / "x.html", "No such file"), (tmp_path, "a folder")):
        result = profkit_cli("report", BASIC, "-o", output)
        assert result.exit_code == 2
        assert f"{output}: can't be written" in result.stderr
        assert why in result.stderr
        assert "write into an existing folder" in result.stderr
        assert len(result.stderr.splitlines()) == 1


FORMATS = {
    "analyze": {".txt": "1 launch", ".json": '"profkit.analyze/', ".md": "# ", ".html": "<!doctype"}
    | {".csv": "report,launch,"},
    "checklist": {".json": '"profkit.checklist/', ".md": "# "},
    "report": {".html": "<!doctype", ".htm": "<!doctype"},
    "diff": {".json": '"profkit.diff/', ".md": "<!-- profkit-diff", ".xml": "<?xml"}
    | {".sarif": "sarif", ".html": "<!doctype"},
    "source": {".json": '"profkit.source/'},
    "roofline": {".json": '"profkit.roofline/', ".md": "|"},
    "metrics": {".json": '"profkit.metrics/'},
}
WORDS = {"diff": (str(BASIC),)}


@pytest.mark.parametrize(
    ("verb", "ending", "content"),
    [(verb, ending, text) for verb, known in FORMATS.items() for ending, text in known.items()],
)
def test_the_ending_of_a_file_chooses_its_format(
    tmp_path: Path, profkit_cli: Cli, verb: str, ending: str, content: str
) -> None:
    output = tmp_path / f"x{ending}"
    result = profkit_cli(verb, BASIC, *WORDS.get(verb, ()), "-o", output)
    assert result.exit_code in {0, 3}, result.stderr
    assert content.lower() in output.read_bytes()[:4000].decode("utf-8", "replace").lower()


@pytest.mark.parametrize("ending", [".pdf", ".docx", ".jsn"])
@pytest.mark.parametrize("verb", [*(set(FORMATS) - {"roofline"}), "audit"])
def test_an_ending_of_no_format_is_refused_before_any_work(
    tmp_path: Path, profkit_cli: Cli, verb: str, ending: str
) -> None:
    output = tmp_path / f"x{ending}"
    result = profkit_cli(verb, BASIC, *WORDS.get(verb, ()), "-o", output)
    if verb == "audit":  # what is no file of claims is told first
        assert result.exit_code == 5
        return
    assert result.exit_code == 2
    assert f"{output}: {ending} is not a format of this verb; use " in result.stderr
    assert not output.exists()


@pytest.mark.parametrize(
    ("format", "ending", "agree"),
    [
        ("json", ".md", False),
        ("json", ".pdf", False),
        ("html", ".json", False),
        ("markdown", ".txt", True),
        ("json", ".out", True),
        ("json", "", True),
    ],
)
def test_an_ending_may_not_contradict_the_format(
    tmp_path: Path, profkit_cli: Cli, format: str, ending: str, agree: bool
) -> None:
    output = tmp_path / f"x{ending}"
    result = profkit_cli("analyze", BASIC, "--format", format, "-o", output)
    assert (result.exit_code, output.exists()) == ((0, True) if agree else (2, False))
    if not agree:
        assert f"contradicts --format {format}" in result.stderr


def test_kept_samples_are_json_by_name_too(tmp_path: Path, profkit_cli: Cli) -> None:
    result = profkit_cli("time", "--from", TIMINGS, "--out", tmp_path / "kept.csv")
    assert result.exit_code == 2
    assert "use .json" in result.stderr
