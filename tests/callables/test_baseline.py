"""What two runs of one build may differ by, where `profkit time` was not calibrated."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

import profkit
from profkit.callables.baseline import judge
from profkit.history.record import Conditions, Point, Series
from profkit.timing.results import DEFAULT


def stored(commit: str, median: float) -> Point:
    series = Series("test", "f", "", "", "main")
    conditions = Conditions("", "", "", "", "wall", "warm", "")
    time = datetime(2026, 1, 1, tzinfo=UTC)
    return Point(series, conditions, time, "run", "", commit, (median,) * 8)


def test_an_improvement_between_commits_is_no_spread_of_one_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROFKIT_LOCK_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    run = profkit.profile(lambda x: x + 1, np.zeros(4), samples=80, warmup_ms=2)
    slow = [stored("a" * 40, 10e-6), stored("a" * 40, 10e-6)]
    fast = [stored("b" * 40, median) for median in (5e-6, 5.1e-6, 5e-6)]
    assert judge(run, slow + fast, DEFAULT).floor == DEFAULT.margin
    more = [*slow, *fast, stored("b" * 40, 5e-6), stored("b" * 40, 5e-6)]
    assert judge(run, more, DEFAULT).floor == pytest.approx(0.02)
