"""What each verb loads, and what the verbs say that need an extra which is not installed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from typer.testing import Result

import profkit
from profkit.core.errors import EnvironmentProblem
from profkit.study.run import summarize
from tests.conftest import ROOT, Cli, baseline_folder

WATCHED = (
    "duckdb", "numpy", "numpy.random", "pandas", "pyarrow", "scipy", "matplotlib", "torch",
    "ncu_report", "jinja2", "jsonschema", "yaml", "rich.console", "sqlite3", "multiprocessing",
    "profkit.rules.engine", "profkit.timing.verdict",
)  # fmt: skip
REPORT = "reports/h200/sdpa_s512_flash_set_basic.ncu-repz"
TIMINGS = "reports/h200/timing"
OF_A_REPORT = "numpy yaml rich.console"
OF_FINDINGS = f"{OF_A_REPORT} profkit.rules.engine"
OF_LATENCIES = "numpy numpy.random yaml rich.console profkit.timing.verdict"
LOADED: Mapping[str, str] = {
    "--version": "",
    "--help": "rich.console",
    "metrics": "yaml rich.console",
    f"metrics {REPORT}": OF_A_REPORT,
    "plan --gpu H200 --set basic": "yaml rich.console",
    "rules list": "yaml rich.console",
    "rules explain memory_latency": "yaml rich.console",
    "rules check rules": "yaml",
    "audit tests/data/claims/heldout.yaml": "yaml rich.console",
    f"time --from {TIMINGS}/against.json": OF_LATENCIES,
    f"compare {TIMINGS}/sdpa_s512.json {TIMINGS}/flash_cudnn.json": OF_LATENCIES,
    "doctor": "yaml rich.console",
    "analyze reports/h200/sdpa_s512_flash.sqlite": (
        "numpy yaml rich.console sqlite3 profkit.rules.engine"
    ),
    "timeline reports/h200/sdpa_s512_flash.sqlite": (
        "numpy yaml rich.console sqlite3 profkit.rules.engine"
    ),
    f"analyze {REPORT}": OF_FINDINGS,
    f"source {REPORT}": OF_FINDINGS,
    f"diff {REPORT} {REPORT}": f"{OF_FINDINGS} profkit.timing.verdict",
    f"roofline {REPORT}": f"{OF_A_REPORT} profkit.timing.verdict",
    "history list --store reports/h200/history": "duckdb rich.console",
    f"report {REPORT} -o /dev/null": "numpy yaml jinja2 profkit.rules.engine",
}
"""Those of WATCHED that a verb loads."""

# Each verb in a process of its own, forked where nothing is loaded but the command line's library.
FORKS = """
import json, os, sys
import typer, typer._adapters
watched, verbs = json.load(sys.stdin)
loaded = {}
for verb in verbs:
    answer, ask = os.pipe()
    if not os.fork():
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        sys.argv = ["profkit", *verb.split()]
        try:
            from profkit.__main__ import main
            main()
        except SystemExit as end:
            code = end.code or 0
        found = [name for name in watched if name in sys.modules]
        os.write(ask, json.dumps([code, found]).encode())
        os._exit(0)
    os.close(ask)
    with open(answer) as file:
        loaded[verb] = json.load(file)
    os.wait()
print(json.dumps(loaded))
"""
ENDS = {"audit": 1, "compare": 3}


def test_a_verb_loads_what_it_uses() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKS],
        input=json.dumps([WATCHED, list(LOADED)]),
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    found = json.loads(done.stdout)
    assert {verb: set(names) for verb, (_, names) in found.items()} == {
        verb: set(names.split()) for verb, names in LOADED.items()
    }
    assert {verb: code for verb, (code, _) in found.items()} == {
        verb: ENDS.get(verb.split()[0], 0) for verb in LOADED
    }


@pytest.fixture
def core_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the extras were not installed."""
    for name in ("matplotlib", "pandas", "pyarrow"):
        for module in [name, *(each for each in sys.modules if each.startswith(f"{name}."))]:
            monkeypatch.setitem(sys.modules, module, None)


@pytest.mark.usefixtures("core_alone")
@pytest.mark.parametrize(
    "words",
    [
        ["roofline", REPORT, "-o"],
    ],
)
def test_a_picture_needs_the_extra_for_plots(
    words: list[str], tmp_path: Path, profkit_cli: Cli
) -> None:
    words = [str(ROOT / word) if word.startswith("reports/") else word for word in words]
    picture = tmp_path / "picture.svg"
    result = profkit_cli(*words, str(picture), status=4)
    assert not picture.exists()
    assert result.stderr.count("\n") == 1
    assert "matplotlib" in result.stderr
    assert ".[plots]" in result.stderr


@pytest.mark.usefixtures("core_alone")
def test_a_written_report_needs_the_extra_for_plots(profkit_cli: Cli) -> None:
    result = profkit_cli("baseline", "report", str(baseline_folder("l4_study")), status=4)
    assert ".[plots]" in result.stderr


@pytest.mark.usefixtures("core_alone")
def test_tables_in_python_need_their_extra() -> None:
    report = profkit.load(ROOT / REPORT)
    kernel = report.kernel(0)
    tables: tuple[Callable[[], object], ...] = (
        lambda: report.kernels,
        lambda: report.missing,
        kernel.stalls,
        lambda: kernel.instructions("samples"),
        lambda: kernel.time_series("dram_busy"),
    )
    for table in tables:
        with pytest.raises(EnvironmentProblem, match="pandas") as told:
            table()
        assert ".[tables]" in told.value.remedy


def imported(profkit_cli: Cli, out: Path) -> Result:
    """A baseline of samples is written there."""
    samples = out.with_name("samples.txt")
    samples.write_text("\n".join(str(50 + at % 3) for at in range(40)), encoding="utf-8")
    return profkit_cli("baseline", "import", samples, "--unit", "us", "-o", out)


@pytest.mark.usefixtures("core_alone")
def test_a_study_leaves_out_the_table_and_says_so(tmp_path: Path, profkit_cli: Cli) -> None:
    out = tmp_path / "theirs"
    assert "no cells.parquet" in imported(profkit_cli, out).stderr
    assert (out / "summary.json").is_file()
    assert not (out / "cells.parquet").exists()


def test_a_table_of_other_cells_does_not_stay(
    tmp_path: Path, profkit_cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "theirs"
    imported(profkit_cli, out)
    assert (out / "cells.parquet").is_file()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    summarize(out)
    assert not (out / "cells.parquet").exists()
