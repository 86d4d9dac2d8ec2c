"""A step's time without a profiler: of programs whose times are known, as they move the clock."""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace

import pytest

from profkit.application.picks_file import UnprofiledStep
from profkit.capture import process
from profkit.capture.ncu import NcuOptions
from profkit.capture.tools import Tool
from profkit.core.errors import TargetFailed
from profkit.recording import early
from profkit.recording.unprofiled import timed_environment, unprofiled_step

STEP = 0.05
TRAINING = f"""
import time, torch
now = 0
time.perf_counter_ns = lambda: now
weight = torch.nn.Parameter(torch.ones(1))
optimizer = torch.optim.SGD([weight], lr=0.1)
for step in range(100_000):
    weight.grad = torch.ones(1)
    now += round(1e9 * (0.5 if step == 0 else {STEP}))
    optimizer.step()
"""


def measured(*program: str, recorded: float, steps: int, timeout: float = 300) -> UnprofiledStep:
    return unprofiled_step(program, recorded, steps, environment=os.environ, timeout=timeout)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
def test_steps_of_torch_are_seen_and_the_program_is_ended_after_some(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(TRAINING)
    step = measured(sys.executable, str(program), recorded=1.5 * STEP, steps=30)
    assert step.source == "optimizer steps"
    assert step.seconds == pytest.approx(STEP)
    assert step.count >= 10


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
def test_steps_are_seen_in_a_program_that_was_held_with_torch_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of its import is not the program's."""
    monkeypatch.setattr(early, "_FEWEST_CORES", 1)
    old = Tool("ncu", (2020, 1, 0))  # which doesn't attach
    program = tmp_path / "train.py"
    program.write_text(TRAINING)
    words = (sys.executable, str(program))
    with early.early_programs(words, os.environ, timed_environment, old, NcuOptions()) as started:
        timed, for_ncu = started
        assert timed
        assert for_ncu is None
        number = timed.place / "held"
        while not (number.exists() and has_torch(number.read_text())):
            time.sleep(0.05)
        step = unprofiled_step(
            words, 1.5 * STEP, 30, environment=os.environ, timeout=300, early=timed
        )
    assert step.source == "optimizer steps"
    assert step.seconds == pytest.approx(STEP)
    assert step.count >= 10
    assert not timed.place.exists()


def has_torch(process: str) -> bool:
    return process != "" and "libtorch" in Path(f"/proc/{process}/maps").read_text()


@pytest.fixture
def a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the clock a second passes after a program was started."""
    readings = chain([0.0], repeat(1.0))
    monkeypatch.setattr(process, "time", SimpleNamespace(monotonic=readings.__next__))


@pytest.mark.usefixtures("a_second")
def test_without_steps_the_whole_run_is_divided_by_their_number() -> None:
    step = measured("true", recorded=0.15, steps=10)
    assert step.source == "wall time by step"
    assert step.seconds == 0.1


@pytest.mark.usefixtures("a_second")
@pytest.mark.parametrize(("recorded", "steps"), [(0.05, 10), (2.0, 2)])
def test_a_time_of_other_steps_is_not_used(recorded: float, steps: int) -> None:
    with pytest.raises(TargetFailed, match="without a profiler a step takes"):
        measured("true", recorded=recorded, steps=steps)


def test_a_program_that_takes_too_long_or_fails_says_nothing() -> None:
    with pytest.raises(TargetFailed, match="without a profiler: ended after"):
        measured("sleep", "60", recorded=1.0, steps=60, timeout=1.0)
    with pytest.raises(TargetFailed, match="without a profiler: exit code 3"):
        measured("sh", "-c", "exit 3", recorded=1.0, steps=60)
