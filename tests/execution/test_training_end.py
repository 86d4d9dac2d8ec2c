"""A training ends once its timeline is long enough, and only then."""

import os
import subprocess
import sys
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profkit.execution.injection import TRAINING_END, injected, training_end_hooks
from profkit.execution.injection.training_end import is_enough
from tests.trial.imitated_torch import write_torch

PROGRAM = """
import itertools, time
now = itertools.count()
time.monotonic = lambda: 0.2 * next(now)
import torch
from types import SimpleNamespace as Names
torch.compiler = Names(is_compiling=lambda: False)
torch.distributed = Names(is_initialized=lambda: {grouped})
optimizer, steps = torch.optim.Optimizer(), 0
try:
    for step in range(1000):
        try:
            optimizer.step()
        except {caught}:
            print("caught")
        steps += 1
finally:
    print(steps)
"""


@pytest.mark.parametrize(
    ("grouped", "caught", "output"),
    [(False, "OSError", "49\n"), (True, "OSError", "1000\n"), (False, "", "caught\n1000\n")],
)
def test_a_training_ends_after_enough_steps_unless_others_wait_for_it(
    tmp_path: Path, grouped: bool, caught: str, output: str
) -> None:
    """Nor where the program goes on, which catches all."""
    (tmp_path / "train.py").write_text(PROGRAM.format(grouped=grouped, caught=caught))
    log, end = tmp_path / "log", tmp_path / "end"
    environment = {**os.environ, "PYTHONPATH": write_torch(tmp_path), TRAINING_END: str(end)}
    done = subprocess.run(
        (sys.executable, str(tmp_path / "train.py")), capture_output=True, text=True, check=True,
        env=injected(environment, training_end_hooks(), log),
    )  # fmt: skip
    assert not log.exists()
    assert done.stdout == output
    is_ended = output == "49\n"  # the last step has ended, but not the program's part of it
    assert end.exists() is is_ended
    assert not is_ended or end.read_text() == "50"


@given(st.floats(0.001, 10.0), st.integers(1, 300))
def test_steps_of_one_length_are_enough_after_40_and_5_s(seconds: float, count: int) -> None:
    ends = list(accumulate([seconds] * count))
    steady = count - 6
    expected = steady >= 40 and steady * seconds >= 5
    if abs(steady * seconds - 5) > 1e-6:
        assert is_enough(ends) is expected


@given(st.integers(1, 5), st.integers(45, 90))
def test_what_runs_between_steps_is_seen_three_times(periods: int, steps: int) -> None:
    """Rollouts, evaluations, epochs."""
    times = ([0.2] * steps + [9.0]) * periods + [0.2] * 5
    assert is_enough(list(accumulate(times))) is (periods >= 3)


@given(st.floats(5.0, 100.0), st.integers(50, 80))
def test_what_runs_once_is_not_waited_for(seconds: float, steps: int) -> None:
    """A compilation, say."""
    times = [0.2] * steps + [seconds]
    again = 2 * (steps - 6)
    assert not is_enough(list(accumulate([*times, *[0.2] * (again - 1)])))
    assert is_enough(list(accumulate([*times, *[0.2] * (again + 2)])))
