"""Timelines as nsys itself writes them (.nsys-rep): exported where nsys is installed."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from typer.testing import Result

from tests.conftest import H200, ROOT, Cli

VERBS = (
    ("timeline",),
    ("analyze",),
    ("checklist",),
    ("rules", "explain", "launch_overhead", "--on"),
)


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "run.nsys-rep"
    path.write_bytes(b"graph")
    return path


@pytest.fixture
def run(tmp_path: Path, profkit_cli: Cli) -> Cli:
    """A verb where nsys, which does as it is told, is installed or not."""

    def command(
        *words: str | Path, installed: bool = True, nsys: str = "", status: int | None = 0
    ) -> Result:
        (timeline,) = (H200 / "sdpa_s512").glob("*/timeline.sqlite")
        if installed:
            shutil.copy2(ROOT / "tests" / "stand_in" / "nsys", tmp_path / "nsys")
            plan = {"timeline": str(timeline), "nsys": nsys}
            (tmp_path / "stand_in.json").write_text(json.dumps(plan))
        folders = [str(tmp_path), *os.get_exec_path()]
        return profkit_cli(*words, status=status, PATH=os.pathsep.join(folders))

    return command


@pytest.mark.parametrize("verb", VERBS[:3], ids=" ".join)
def test_a_report_of_nsys_is_as_its_export(verb: tuple[str, ...], report: Path, run: Cli) -> None:
    (timeline,) = (H200 / "sdpa_s512").glob("*/timeline.sqlite")
    made, expected = (run(*verb, path, "--format", "json") for path in (report, timeline))
    shown = made.stdout.replace(str(report), str(timeline)).replace(report.name, timeline.name)
    assert json.loads(shown) == json.loads(expected.stdout)


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_without_nsys_a_line_says_what_to_do(verb: tuple[str, ...], report: Path, run: Cli) -> None:
    if shutil.which("nsys"):
        pytest.skip("nsys is installed")
    result = run(*verb, report, installed=False, status=4)
    (line,) = result.stderr.splitlines()
    assert "nsys export --type sqlite FILE" in line


@pytest.mark.parametrize("nsys", ["fails", "garbles"])
def test_a_failed_export_is_one_line(nsys: str, report: Path, run: Cli) -> None:
    result = run("timeline", report, nsys=nsys, status=None)
    assert result.exit_code in {4, 5}
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"profkit: {report}: ")
