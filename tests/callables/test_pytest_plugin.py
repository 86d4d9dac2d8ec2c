"""The fixture `profkit_time`: tests of a project against the times that its history has."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytest.importorskip("duckdb", reason="the history needs DuckDB")

PLUGIN = "profkit.callables.pytest_plugin"
TESTS = """
import os, sys
import numpy as np
from tests.clock import install

passes = install()
SECONDS = float(os.environ.get("SECONDS", "2e-4"))

def wait(x):
    passes(SECONDS)
    return x + float(os.environ.get("ADDED", "1"))

def test_wait(profkit_time):
    run = profkit_time(wait, np.zeros(4), reference=lambda x: x + 1, warmup_ms=1, margin=0.1)
    assert run.median >= SECONDS
"""
TWO_CALLS = """
import os
import numpy as np
from tests.clock import install

passes = install()

def wait(x):
    passes(x[0])
    return x

def test_two(profkit_time):
    for seconds in (float(os.environ.get("FIRST", "1e-4")), 2e-3):
        profkit_time(wait, np.full(1, seconds), warmup_ms=1, samples=40, margin=0.5)
"""
LIGHT = """
import sys

def test_nothing_heavy_is_imported():
    heavy = {"numpy", "msgspec", "torch", "rich", "profkit.callables.calls", "profkit.api"}
    assert PLUGIN in sys.modules
    assert not heavy & set(sys.modules)
"""


@pytest.fixture
def project(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run pytest in a project of its own, with the plugin and no other."""
    (tmp_path / "test_speed.py").write_text(TESTS, encoding="utf-8")

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-p", PLUGIN, "-rsA", *arguments],
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
                "PYTHONPATH": str(ROOT),
                "XDG_STATE_HOME": str(tmp_path),
                "PROFKIT_LOCK_DIR": str(tmp_path),
                **variables,
            },
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_a_test_fails_where_a_call_became_slower_than_its_baseline(
    project: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    first = project()
    assert first.returncode == 0
    assert "no baseline of wait on cpu, timer wall: pytest --profkit-save" in first.stdout
    saved = project("--profkit-save")
    assert "1 passed" in saved.stdout, saved.stdout
    assert list((tmp_path / ".profkit/history").rglob("*.parquet"))
    same = project()
    assert "1 passed" in same.stdout, same.stdout
    assert "runs of one build differ by 10.0% (taken to be the margin" in same.stdout
    slower = project(SECONDS="1e-3")
    assert slower.returncode == 1, slower.stdout
    assert "REGRESSED; margin 10.0%" in slower.stdout
    assert "Traceback" not in slower.stdout
    wrong = project(ADDED="2")
    assert wrong.returncode == 1
    assert "wait  WRONG" in wrong.stdout


def test_two_calls_of_a_test_have_a_baseline_each(
    project: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    (tmp_path / "test_two.py").write_text(TWO_CALLS, encoding="utf-8")
    saved = project("test_two.py", "--profkit-save")
    assert "1 passed" in saved.stdout, saved.stdout
    same = project("test_two.py")
    assert "1 passed" in same.stdout, same.stdout
    assert "IMPROVED" not in same.stdout
    slower = project("test_two.py", FIRST="2e-3")
    assert "REGRESSED; margin 50.0%" in slower.stdout, slower.stdout


@pytest.mark.usefixtures("new_processes")
def test_the_plugin_costs_nothing_where_it_is_not_used(
    project: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    (tmp_path / "test_light.py").write_text(f"PLUGIN = {PLUGIN!r}\n{LIGHT}", encoding="utf-8")
    done = project("test_light.py")
    assert "1 passed" in done.stdout, done.stdout


def test_pytest_loads_the_plugin_of_an_installed_profkit() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"profkit": PLUGIN}
