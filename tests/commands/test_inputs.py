"""What a verb makes of a path of another kind than it reads: one line, the right exit code."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import Result

from profkit.rules.samples import CATEGORIES
from tests.conftest import H200, ROOT, Cli

BASIC = H200 / "sdpa_s512_flash_set_basic.ncu-repz"
TWO_METRICS = H200 / "sdpa_s512_flash_two_metrics.ncu-repz"
TIMINGS = H200 / "timing" / "flash_cudnn.json"
TIMELINE = H200 / "sdpa_s512_flash.sqlite"

VERBS = {
    "profile": ("profile", "PATH"),
    "analyze": ("analyze", "PATH"),
    "checklist": ("checklist", "PATH"),
    "report": ("report", "PATH"),
    "diff": ("diff", "PATH", str(BASIC)),
    "diff to": ("diff", str(BASIC), "PATH"),
    "source": ("source", "PATH"),
    "roofline": ("roofline", "PATH"),
    "metrics": ("metrics", "PATH"),
    "explain": ("rules", "explain", "tail_effect", "--on", "PATH"),
    "compare": ("compare", "PATH", str(TIMINGS)),
    "time from": ("time", "--from", "PATH"),
    "audit": ("audit", "PATH"),
    "check": ("rules", "check", "PATH"),
    "rules": ("analyze", str(BASIC), "--rules", "PATH"),
    "score": ("rules", "score", "--pairs", "PATH"),
    "time": ("time", "PATH"),
    "optimize": ("optimize", "PATH"),
    "calibrate": ("calibrate", "PATH"),
    "baseline run": ("baseline", "run", "PATH"),
    "baseline import": ("baseline", "import", "PATH", "-o", "made"),
    "baseline report": ("baseline", "report", "PATH"),
}
TAKE = {
    "report": {"analyze", "checklist", "report", "diff", "diff to", "source", "roofline"}
    | {"metrics", "explain"},
    "timeline": {"analyze", "checklist", "explain"},
    "latencies": {"compare", "time from", "audit", "baseline import"},
    "script": {"profile", "time", "optimize", "calibrate", "baseline run", "baseline import"},
}
NAMES = {
    "report": "an Nsight Compute report",
    "timeline": "a timeline",
    "latencies": "saved latencies",
    "script": "a Python script",
    "picture": "a picture",
}


def words_of(verb: str, path: str | Path) -> list[str]:
    return [str(path) if word == "PATH" else word for word in VERBS[verb]]


def assert_one_line(result: Result, *words: str) -> None:
    assert result.stdout == ""
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith("profkit: ")
    for word in words:
        assert word in line


@pytest.fixture
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """A file of each kind, in the current folder."""
    content = {
        "report": (TWO_METRICS.read_bytes(), ".ncu-repz"),
        "timeline": (TIMELINE.read_bytes(), ".sqlite"),
        "latencies": (TIMINGS.read_bytes(), ".json"),
        "script": (b"print('no target')\n", ".py"),
        "picture": (b"\x89PNG\r\n\x1a\n" + bytes(64), ".png"),
    }
    for data, suffix in content.values():
        (tmp_path / f"x{suffix}").write_bytes(data)
    monkeypatch.chdir(tmp_path)
    return {kind: tmp_path / f"x{suffix}" for kind, (_, suffix) in content.items()}


@pytest.mark.parametrize("verb", VERBS)
def test_an_empty_path_is_wrong_usage(
    verb: str, profkit_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(BASIC, tmp_path)  # what the current folder holds is not what was meant
    monkeypatch.chdir(tmp_path)
    assert_one_line(profkit_cli(*words_of(verb, ""), status=2), "is a shell variable unset?")


@pytest.mark.parametrize("option", ["-o", "--kernel", "--rules"])
def test_an_empty_value_is_wrong_usage(option: str, profkit_cli: Cli) -> None:
    assert_one_line(profkit_cli("analyze", BASIC, option, "", status=2), option)


def test_a_profiled_program_may_have_empty_arguments(profkit_cli: Cli) -> None:
    result = profkit_cli("profile", "--", "./no_such_program", "", status=5)
    assert_one_line(result, "no_such_program: no such program")


@pytest.mark.parametrize("verb", sorted(set(VERBS) - {"rules", "score", "baseline report"}))
def test_a_missing_file_is_bad_input(verb: str, profkit_cli: Cli, tmp_path: Path) -> None:
    name = "none.py" if verb in TAKE["script"] else "none.ncu-rep"
    assert_one_line(profkit_cli(*words_of(verb, tmp_path / name), status=5), name)


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("verb", sorted(set(VERBS) - {"score", "baseline report"}))
def test_a_file_of_another_kind_is_named_for_what_it_is(
    verb: str, kind: str, inputs: dict[str, Path], profkit_cli: Cli
) -> None:
    if verb in TAKE.get(kind, ()) or (verb, kind) == ("profile", "latencies"):
        return
    result = profkit_cli(*words_of(verb, inputs[kind]), status=5)
    assert_one_line(result, f"{inputs[kind]}: {NAMES[kind]}, not ")


@pytest.mark.parametrize("verb", ["checklist", "compare", "audit", "diff to", "explain"])
def test_another_database_is_not_called_a_timeline(
    verb: str, profkit_cli: Cli, tmp_path: Path
) -> None:
    file = tmp_path / "x.sqlite"
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE journeys (start TEXT)")
    result = profkit_cli(*words_of(verb, file), status=5)
    assert_one_line(result, f"{file}: an SQLite ", ", not ")
    assert "Systems timeline" not in result.stderr


def test_a_rule_about_kernels_is_not_explained_on_a_timeline(profkit_cli: Cli) -> None:
    result = profkit_cli("rules", "explain", "tail_effect", "--on", TIMELINE, status=5)
    words = "a timeline, and tail_effect is about kernels; name a report or a run"
    assert_one_line(result, words)


@pytest.mark.parametrize(
    "option", ["--variant x", "--samples 50", "--seed 1", "--device cpu", "--timer graph"]
)
def test_options_of_a_measurement_do_not_go_with_saved_samples(
    option: str, profkit_cli: Cli
) -> None:
    flag = option.split()[0]
    result = profkit_cli("time", "--from", TIMINGS, *option.split(), status=2)
    assert_one_line(result, f"{flag} doesn't apply to --from")


def test_a_gate_without_a_comparison_does_not_pass(profkit_cli: Cli) -> None:
    result = profkit_cli("time", "--from", TIMINGS, "--fail-on", "regression", status=2)
    assert_one_line(result, "--fail-on judges a comparison; add --compare A,B")


@pytest.mark.parametrize(("name", "words"), [("none", "no such directory"), ("x", "not a direct")])
def test_pairs_are_in_a_directory(name: str, words: str, profkit_cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("x", encoding="utf-8")
    result = profkit_cli("rules", "score", "--pairs", tmp_path / name, status=5)
    assert_one_line(result, f"{tmp_path / name}: {words}")


def test_a_labeled_program_is_scored_by_a_timeline(profkit_cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "label.yaml").write_text("cause: fusion\n", encoding="utf-8")
    result = profkit_cli("rules", "score", "--pairs", tmp_path, status=5)
    told = f"{tmp_path}: label.yaml without a timeline (.sqlite); record with `nsys profile"
    assert_one_line(result, told)


def test_a_report_given_to_compare_is_sent_to_diff(profkit_cli: Cli) -> None:
    assert_one_line(profkit_cli("compare", BASIC, BASIC, status=5), "`profkit diff` compares two")


@pytest.mark.parametrize("verb", sorted(set(VERBS) - {"score", "baseline report"}))
def test_a_pipe_is_no_file(verb: str, profkit_cli: Cli, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")  # opened, it would be waited at for ever
    result = profkit_cli(*words_of(verb, tmp_path / "pipe.py"), status=5)
    assert_one_line(result, "pipe.py: a pipe, not a file")


def test_what_a_shell_makes_of_a_command_is_a_pipe(profkit_cli: Cli) -> None:
    reading, writing = os.pipe()
    try:
        os.write(writing, BASIC.read_bytes()[:1000])
        result = profkit_cli("analyze", f"/dev/fd/{reading}", status=5)
        assert_one_line(result, "a pipe, not a file")
    finally:
        os.close(reading)
        os.close(writing)


@pytest.mark.parametrize(
    ("words", "code"),
    [(("--help",), 0), (("diff", "--help"), 0), (("metrics",), 128 + signal.SIGPIPE)],
)
def test_a_reader_that_goes_away_ends_it_quietly(words: tuple[str, ...], code: int) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "profkit", *words]
    done = subprocess.run(
        command, stdout=writing, stderr=subprocess.PIPE, cwd=ROOT, timeout=600, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (code, b"")


def test_a_full_disk_is_reported_of_the_output() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "profkit", "metrics"],
            stdout=full, stderr=subprocess.PIPE, cwd=ROOT, timeout=600, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == b"profkit: can't write the output (No space left on device)\n"


def test_every_fault_of_a_rule_is_reported_at_once_with_what_is_allowed(
    profkit_cli: Cli, tmp_path: Path
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        "rules:\n"
        "  - name: mine\n"
        "    category: nonsense\n"
        "    title: x\n"
        "    explanation: y\n"
        "    when: ['dram_bzzy > 0.5', 'dram_busy +']\n"
        "    relieves: {zork: 0.5}\n"
        "    actions: [do]\n"
        "    verify: [look]\n"
    )
    result = profkit_cli("rules", "check", file, status=5)
    lines = result.stdout.splitlines()
    assert [int(line.removeprefix(f"{file}:").partition(":")[0]) for line in lines] == [3, 6, 6, 7]
    assert all(name in lines[0] for name in CATEGORIES)
    assert "unknown quantity 'dram_bzzy'; did you mean dram_busy?" in lines[1]
    assert "invalid expression" in lines[2]
    assert all(name in lines[3] for name in ("dram_busy", "l2_busy", "tensor_busy"))


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Two folders of the same two reports, of which one is damaged in the second."""
    pair = H200 / "pairs" / "tail_effect"
    before, after = tmp_path / "before", tmp_path / "after"
    for folder in (before, after):
        folder.mkdir()
        shutil.copy(pair / "before.ncu-repz", folder / "whole.ncu-repz")
        shutil.copy(BASIC, folder / "cut.ncu-repz")
    (after / "cut.ncu-repz").write_bytes(BASIC.read_bytes()[:100_000])
    return before, after


def test_one_damaged_report_of_a_folder_is_skipped_and_reported(
    folders: tuple[Path, Path], profkit_cli: Cli
) -> None:
    result = profkit_cli("diff", *folders, "--format", "json", status=5)
    assert f"{folders[1] / 'cut.ncu-repz'}: the report is truncated" in result.stderr
    assert "polynomial" in json.dumps(json.loads(result.stdout))


def test_nothing_is_kept_as_a_baseline_where_a_report_is_damaged(
    folders: tuple[Path, Path], profkit_cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folders[0].parent)
    profkit_cli("diff", *folders, "--save-baseline", "main", status=5)
    assert not Path(".profkit").exists()
