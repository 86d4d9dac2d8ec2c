"""Where `-o` writes, and where it never does."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import typer

from profkit.commands.cli import app
from profkit.commands.options import OUTPUTS
from profkit.core.errors import UsageError
from profkit.core.output_file import output_file
from tests.conftest import H200, ROOT, Cli, pair_report

BASIC = H200 / "sdpa_s512_flash_set_basic.ncu-repz"
TIMINGS = H200 / "timing" / "flash_cudnn.json"
TIMELINE = H200 / "sdpa_s512_flash.sqlite"
CLAIMS = "- {gpu: H200, median_ms: 1.0, flop: 1.0e9, gflops: 1000}\n"


@pytest.mark.parametrize(
    "verb", ["analyze", "checklist", "report", "source", "metrics", "roofline"]
)
def test_a_recording_is_never_written_over(tmp_path: Path, profkit_cli: Cli, verb: str) -> None:
    mine, other = tmp_path / "mine.ncu-repz", tmp_path / "other.ncu-repz"
    for file in (mine, other):
        shutil.copy(BASIC, file)
    for output in (mine, other):
        result = profkit_cli(verb, mine, "-o", output, status=2)
        assert f"{output}: is a recording" in result.stderr
        assert output.read_bytes() == BASIC.read_bytes()


@pytest.mark.parametrize("first", [True, False])
def test_what_is_read_is_not_written_over(tmp_path: Path, profkit_cli: Cli, first: bool) -> None:
    claims = tmp_path / "claims.yaml"
    claims.write_text(CLAIMS, encoding="utf-8")
    output = ("-o", tmp_path / "." / "claims.yaml")
    words = (*output, claims) if first else (claims, *output)
    result = profkit_cli("audit", *words, status=2)
    assert "is an input file; write to another file" in result.stderr
    assert claims.read_text(encoding="utf-8") == CLAIMS


@pytest.mark.parametrize("option", ["--save", "-o"])
def test_saved_samples_are_not_written_over(tmp_path: Path, profkit_cli: Cli, option: str) -> None:
    samples = tmp_path / "samples.json"
    shutil.copy(TIMINGS, samples)
    result = profkit_cli("time", "--from", samples, option, samples, status=2)
    assert result.stdout == ""
    assert "is an input file; write to another file" in result.stderr
    assert samples.read_bytes() == TIMINGS.read_bytes()


@pytest.mark.parametrize("name", ["latency.json", "manifest.json"])
def test_a_file_of_a_run_is_not_written_over(tmp_path: Path, profkit_cli: Cli, name: str) -> None:
    run = tmp_path / "run"
    shutil.copytree(next((H200 / "sdpa_s512").iterdir()), run)
    before = (run / name).read_bytes()
    for words in (("time", "--from", run, "--save"), ("checklist", run, "-o")):
        result = profkit_cli(*words, run / name, status=2)
        assert f"{name}: belongs to a recorded run; write to another file" in result.stderr
        assert (run / name).read_bytes() == before


def test_two_outputs_are_two_files(profkit_cli: Cli) -> None:
    result = profkit_cli("time", "--from", TIMINGS, "--save", "x.json", "-o", "./x.json", status=2)
    assert "x.json: is named for two outputs; name a file for each" in result.stderr


def test_a_dash_is_not_a_file(profkit_cli: Cli) -> None:
    result = profkit_cli("checklist", BASIC, "-o", "-", status=2)
    assert "-: is not a file; name a file" in result.stderr


@pytest.mark.parametrize(("option", "name"), [("--save", "x.json"), ("--badge", "x.svg")])
def test_a_place_to_save_is_checked_before_timing(
    tmp_path: Path, profkit_cli: Cli, option: str, name: str
) -> None:
    output = tmp_path / "none" / name
    result = profkit_cli("time", "--from", TIMINGS, option, output, status=2)
    assert result.stdout == ""
    assert f"{output}: can't be written" in result.stderr


TAIL = pair_report("tail_effect", "before")
WRITING: Sequence[tuple[Sequence[object], str]] = [
    (("analyze", BASIC, "-o"), "x.txt"),
    (("analyze", BASIC, "--format", "brief", "-o"), "x.txt"),
    (("analyze", BASIC, "-o"), "x.csv"),
    (("checklist", BASIC, "-o"), "x.md"),
    (("report", BASIC, "-o"), "x.html"),
    (("roofline", TAIL, "-o"), "x.png"),
    (("roofline", BASIC, "-o"), "x.json"),
    (("metrics", "--grep", "dram", "-o"), "x.json"),
    (("diff", BASIC, BASIC, "-o"), "x.html"),
    (("rules", "list", "-o"), "x.md"),
    (("time", "--from", TIMINGS, "--save"), "x.json"),
    (("time", "--from", TIMINGS, "--compare", "flash,cudnn", "--badge"), "x.svg"),
    (("compare", TIMINGS, TIMINGS, "--floor", "1%", "-o"), "x.md"),
    (("timeline", TIMELINE, "-o"), "x.json"),
    (("timeline", TIMELINE, "--perfetto"), "x.pftrace"),
]


@pytest.mark.parametrize(("words", "name"), WRITING, ids=lambda each: str(each)[-40:])
def test_a_file_is_replaced_only_by_force_and_a_link_never_followed(
    tmp_path: Path, profkit_cli: Cli, words: Sequence[object], name: str
) -> None:
    output, aim = tmp_path / name, tmp_path / "aim"
    output.write_text("mine")
    output.chmod(0o640)
    refused = profkit_cli(*words, output, status=2)
    assert refused.stderr == f"profkit: {output}: exists; --force replaces it\n"
    assert output.read_text() == "mine"
    done = profkit_cli(*words, output, "--force", status=None)
    assert done.exit_code in {0, 3}, done.stderr
    assert output.read_bytes() != b"mine"
    assert output.stat().st_mode & 0o777 == 0o640
    for content in ("aim", None):  # a link to nothing is one too
        output.unlink()
        output.symlink_to(aim)
        if content:
            aim.write_text(content)
        refused = profkit_cli(*words, output, status=2)
        assert output.is_symlink()
        assert refused.stderr == f"profkit: {output}: is a link; --force replaces it\n"
        assert profkit_cli(*words, output, "--force", status=None).exit_code in {0, 3}
        assert not output.is_symlink()
        assert not content or aim.read_text() == content
        aim.unlink(missing_ok=True)
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_a_folder_of_runs_may_be_there(tmp_path: Path, profkit_cli: Cli) -> None:
    done = profkit_cli("profile", "-o", tmp_path, tmp_path / "none.py", status=5)
    assert "exists" not in done.stderr


def test_every_verb_that_writes_a_file_takes_force() -> None:
    lacking, commands = [], [typer.main.get_command(app)]
    for command in commands:
        commands += getattr(command, "commands", {}).values()
        named = {option.name: option for option in command.params}
        files = [each for each in OUTPUTS & named.keys() if named[each].metavar == "FILE"]
        if files and "force" not in named:
            lacking.append(command.name)
    assert len(commands) > 25
    assert not lacking


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
from profkit.commands.cli import main
main()
"""


@pytest.mark.parametrize(
    "words",
    [
        ("analyze", BASIC, "--format", "json", "-o", "x.json"),
        ("metrics", "-o", "x.json"),
        ("timeline", TIMELINE, "--perfetto", "x.pftrace"),
        ("report", BASIC, "-o", "x.html"),
    ],
    ids=lambda words: words[0],
)
def test_a_full_disk_keeps_the_old_file(tmp_path: Path, words: Sequence[object]) -> None:
    output = tmp_path / str(words[-1])
    output.write_text("old")
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *map(str, words), "--force"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert f"{output.name}: can't be written (File too large); free disk space" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert output.read_text() == "old"
    assert list(tmp_path.iterdir()) == [output]


KILLED = """
import os, sys
from pathlib import Path
from profkit.commands.options import written
with written(Path(sys.argv[1]), force=True) as temporary:
    temporary.write_text("new")
    os.kill(os.getpid(), int(sys.argv[2]))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_kill_keeps_the_old_file(tmp_path: Path, number: signal.Signals) -> None:
    output = tmp_path / "x.txt"
    output.write_text("old")
    words = [sys.executable, "-c", KILLED, str(output), str(int(number))]
    assert subprocess.run(words, cwd=ROOT, check=False, capture_output=True).returncode
    assert output.read_text() == "old"
    if number != signal.SIGKILL:
        assert list(tmp_path.iterdir()) == [output]


def test_of_two_writers_one_gets_a_new_file(tmp_path: Path) -> None:
    output = tmp_path / "x.txt"

    def two_writers() -> None:
        with output_file(output, force=False) as late:
            late.write_text("late")
            with output_file(output, force=False) as early:
                early.write_text("early")

    with pytest.raises(UsageError, match="exists; --force replaces it"):
        two_writers()
    assert output.read_text() == "early"
    assert list(tmp_path.iterdir()) == [output]


def test_a_name_may_be_as_long_as_the_file_system_takes(tmp_path: Path, profkit_cli: Cli) -> None:
    output = tmp_path / ("é" * 125 + ".txt")
    profkit_cli("rules", "list", "-o", output)
    assert output.stat().st_size


def test_the_standard_output_may_be_a_file(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "profkit", "rules", "list", "-o", "/dev/stdout"]
    with (tmp_path / "x").open("w") as file:
        subprocess.run(words, cwd=ROOT, stdout=file, check=True)
    assert (tmp_path / "x").stat().st_size


def test_a_pipe_is_written_to(tmp_path: Path, profkit_cli: Cli) -> None:
    claims, pipe = tmp_path / "claims.yaml", tmp_path / "pipe"
    claims.write_text(CLAIMS, encoding="utf-8")
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        profkit_cli("audit", claims, "-o", pipe)
        assert b"0 contradictions" in os.read(reading, 1 << 16)
    finally:
        os.close(reading)


def test_a_place_that_can_not_be_is_refused_before_any_work(
    tmp_path: Path, profkit_cli: Cli
) -> None:
    for output, why in ((tmp_path / "none" / "x.html", "No such file"), (tmp_path, "a folder")):
        result = profkit_cli("report", BASIC, "-o", output, status=2)
        assert f"{output}: can't be written" in result.stderr
        assert why in result.stderr
        assert "write into an existing folder" in result.stderr
        assert len(result.stderr.splitlines()) == 1


FORMATS = {
    "analyze": {".txt": "1 launch", ".json": '"profkit.analyze/', ".md": "# ", ".html": "<!doctype"}
    | {".csv": "report,launch,"},
    "checklist": {".json": '"profkit.checklist/', ".md": "# "},
    "report": {".html": "<!doctype", ".htm": "<!doctype"},
    "diff": {".json": '"profkit.diff/', ".md": "<!-- profkit-diff"} | {".html": "<!doctype"},
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
    result = profkit_cli(verb, BASIC, *WORDS.get(verb, ()), "-o", output, status=None)
    assert result.exit_code in {0, 3}, result.stderr
    assert content.lower() in output.read_bytes()[:4000].decode("utf-8", "replace").lower()


@pytest.mark.parametrize("ending", [".pdf", ".docx", ".jsn"])
@pytest.mark.parametrize("verb", [*(set(FORMATS) - {"roofline"}), "audit"])
def test_an_ending_of_no_format_is_refused_before_any_work(
    tmp_path: Path, profkit_cli: Cli, verb: str, ending: str
) -> None:
    output = tmp_path / f"x{ending}"
    status = 5 if verb == "audit" else 2  # what is no file of claims is told first
    result = profkit_cli(verb, BASIC, *WORDS.get(verb, ()), "-o", output, status=status)
    if verb == "audit":
        return
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
    result = profkit_cli(
        "analyze", BASIC, "--format", format, "-o", output, status=0 if agree else 2
    )
    assert output.exists() == agree
    if not agree:
        assert f"contradicts --format {format}" in result.stderr


def test_kept_samples_are_json_by_name_too(tmp_path: Path, profkit_cli: Cli) -> None:
    result = profkit_cli("time", "--from", TIMINGS, "--out", tmp_path / "kept.csv", status=2)
    assert "use .json" in result.stderr
