"""`profkit history check`: gates, exit codes, formats, and causes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from profkit.core.errors import UsageError
from profkit.history.check import cause_of, history_gates
from profkit.history.record import Point
from profkit.history.store import Store
from tests.conftest import ROOT, Cli
from tests.history.histories import CUDNN, FLASH, NIGHTLY, point

SLOWER = 1.05
RUNS = 30


def night(number: int, first: int, **more: object) -> Point:
    """A run, slower from the night `first` on."""
    run = point(number, seconds=50e-6 * (SLOWER if number >= first else 1))
    return replace(run, **more)  # type: ignore[arg-type]


def stored(tmp_path: Path, points: Sequence[Point]) -> str:
    Store(tmp_path / "store").add(points)
    return str(tmp_path / "store")


@pytest.fixture
def regressed(tmp_path: Path) -> str:
    """One series 5% slower with the last three runs, one with a new driver, a young one."""
    newer = replace(NIGHTLY, driver="590.1")
    points = [night(number, RUNS - 3) for number in range(RUNS)]
    points += [
        replace(night(number, RUNS - 3), series=CUDNN, run=f"c{number}")
        if number < RUNS - 3
        else replace(night(number, RUNS - 3), series=CUDNN, run=f"c{number}", conditions=newer)
        for number in range(RUNS)
    ]
    points += [
        replace(night(number, RUNS), series=replace(FLASH, variant="math"), run=f"m{number}")
        for number in range(4)
    ]
    return stored(tmp_path, points)


@pytest.mark.parametrize(
    ("gates", "code"),
    [
        ((), 0),
        (("--fail-on", "regression"), 1),
        (("--fail-on", "regression:4%"), 1),
        (("--fail-on", "regression:20%"), 0),
        (("--fail-on", "incomparable"), 3),
        (("--fail-on", "inconclusive"), 3),
        (("--fail-on", "regression,inconclusive,incomparable"), 1),
        (("--fail-on", "regression", "cudnn"), 0),
        (("--fail-on", "regression", "math"), 3),
    ],
)
def test_exit_codes(regressed: str, gates: Sequence[str], code: int, profkit_cli: Cli) -> None:
    result = profkit_cli("history", "check", "--store", regressed, *gates, status=code)
    assert ("FAILED" in result.stdout) is (code == 1)
    assert code != 3 or "OPEN  " in result.stdout


def test_the_terminal_names_kind_size_and_commits(regressed: str, profkit_cli: Cli) -> None:
    result = profkit_cli("history", "check", "--store", regressed)
    text = result.stdout
    assert "REAL  sdpa_s512:flash" in text
    assert "HARDWARE OR DRIVER  sdpa_s512:cudnn" in text
    assert "driver 580.1 → 590.1" in text
    good, bad = (night(number, 0).commit[:9] for number in (RUNS - 4, RUNS - 3))
    assert f"first bad commit in ({good}, {bad}]" in text
    assert "cause not known: no profile at runs" in text
    assert "4 of 11 runs" in text
    assert all(len(line) <= 100 for line in text.splitlines())


def test_a_young_series_that_moved_is_named(tmp_path: Path, profkit_cli: Cli) -> None:
    """Nothing was checked, which is neither a list of regressions nor "none"."""
    moved = replace(FLASH, variant="custom")
    points = [
        replace(point(day, series, 3.43e-3 if day < 2 else 44e-6), run=f"{series.variant}{day}")
        for day in range(3)
        for series in (moved, replace(moved, variant="same"))
        if series is moved or day < 2
    ]
    arguments = ("history", "check", "--store", stored(tmp_path, points))
    text = profkit_cli(*arguments, "--fail-on", "regression", status=3).stdout
    assert "none" not in text
    assert "2 series with too few runs to check (2 to 3 of 11)" in text
    lines = text.splitlines()
    assert lines[1] == "OPEN  regression: 2 series not checked"
    assert sum("not checked" in line for line in lines) == 1
    assert any("custom" in line and "ms → 4" in line for line in lines)
    assert "faster than its first run" in " ".join(text.split())
    assert not any("same" in line and "→" in line for line in lines)


def test_what_fails_stands_first(regressed: str, profkit_cli: Cli) -> None:
    arguments = ("history", "check", "--store", regressed, "--fail-on", "regression")
    done = profkit_cli(*arguments, status=1)
    assert done.stdout.splitlines()[1].startswith("FAILED  regression: sdpa")


def test_older_changes_are_no_news(regressed: str, profkit_cli: Cli) -> None:
    Store(Path(regressed)).add([night(number, 0) for number in range(RUNS, RUNS + 5)])
    arguments = ("history", "check", "flash", "--store", regressed, "--fail-on", "regression")
    profkit_cli(*arguments)
    assert "slower, real" in profkit_cli(*arguments).stdout
    profkit_cli(*arguments, "--recent", "9", status=1)


def test_json_has_every_change(regressed: str, profkit_cli: Cli) -> None:
    result = profkit_cli("history", "check", "--store", regressed, "--format", "json")
    file = json.loads(result.stdout)
    assert file["schema"] == "profkit.history-check/1"
    changes = {
        entry["series"]["variant"]: [change["kind"] for change in entry["changes"]]
        for entry in file["series"]
    }
    assert changes == {"flash": ["real"], "cudnn": ["hardware"], "math": []}
    (change,) = next(entry for entry in file["series"] if entry["changes"])["changes"]
    assert change["change"] == pytest.approx(0.05, abs=0.01)
    assert change["news"]


def test_markdown_is_a_comment_of_a_pull_request(regressed: str, profkit_cli: Cli) -> None:
    arguments = ("--store", regressed, "--format", "markdown", "--fail-on", "regression")
    text = profkit_cli("history", "check", *arguments, status=1).stdout
    assert text.startswith("<!-- profkit-history-check -->\n")
    assert "### REAL  sdpa\\_s512:flash" in text
    assert "\nFAILED  regression: sdpa\\_s512:flash" in text
    assert text.count("<details>") == text.count("</details>") == 1


@pytest.mark.parametrize("gate", ["new-finding", "removed", "metric:duration > 1", "regresion", ""])
def test_gates_that_a_history_does_not_have_are_refused(gate: str) -> None:
    with pytest.raises(UsageError):
        history_gates([gate])


def test_an_empty_store_is_one_line(tmp_path: Path, profkit_cli: Cli) -> None:
    result = profkit_cli("history", "check", "--store", str(tmp_path), status=5)
    assert result.stderr.count("\n") == 1


def test_a_real_change_has_the_cause_of_diff(tmp_path: Path) -> None:
    pair = ROOT / "reports/h200/pairs/transpose_conflicts"
    runs = []
    for name in ("after", "before"):
        (tmp_path / name).mkdir()
        shutil.copy(pair / f"{name}.ncu-repz", tmp_path / name / "run.ncu-repz")
        runs.append(str(tmp_path / name))
    headline, *why = cause_of(*runs)
    assert "2.26x slower" in headline
    assert "mio_throttle" in " ".join((headline, *why))
    assert cause_of(runs[0], runs[0]) == ("cause not known: both runs name one profile",)
