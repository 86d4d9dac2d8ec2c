"""Command lines over GPUs: real processes, simulated GPUs."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernels.commands import OUT, Command, Commands, inputs_of, run_commands
from profkit.core.errors import EnvironmentProblem, UsageError
from profkit.execution.driver import State, drive
from profkit.execution.local import LocalExecutor
from profkit.execution.placement import Placement
from profkit.execution.protocol import Worker
from tests.conftest import ROOT
from tests.simulated_gpus import variables

pytestmark = pytest.mark.usefixtures("new_processes")
LOCAL = Placement("local")
PROGRAM = """
import os, sys, time
from pathlib import Path
name, out, log = sys.argv[1:]
time.sleep(0.1)
with open(log, "a") as file:
    file.write(name + "\\n")
if name == "broken":
    sys.exit("profkit: it can't run")
(Path(out) / "sub").mkdir()
(Path(out) / "sub" / "seen.txt").write_text(os.environ["CUDA_VISIBLE_DEVICES"])
"""


@pytest.fixture
def two_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine with two simulated GPUs."""
    for name, value in variables(tmp_path, "host", 0.01).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "stand_in" / "nvml"))
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    yield tmp_path
    sys.modules.pop("pynvml", None)


def commands_of(folder: Path, *names: str, statuses: tuple[int, ...] = (0,)) -> Commands:
    program = folder / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    return Commands(
        tuple(
            Command(name, (str(program), name, OUT, str(folder / "log")), statuses)
            for name in names
        ),
        str(folder),
        inputs_of([program]),
    )


def run(folder: Path, commands: Commands, *, resume: bool = False) -> State:
    return run_commands(commands, LOCAL, folder / "out", lambda *_: None, resume=resume)


def seen(folder: Path) -> dict[str, str]:
    files = (folder / "out").glob("*/sub/seen.txt")
    return {file.parent.parent.name: file.read_text("utf-8") for file in files}


def test_each_command_sees_one_gpu_and_no_finished_one_is_repeated(two_gpus: Path) -> None:
    run(two_gpus, commands_of(two_gpus, "a", "b", "c", "d"))
    assert set(seen(two_gpus)) == {"a", "b", "c", "d"}
    assert set(seen(two_gpus).values()) == {"GPU-aaaa-0", "GPU-bbbb-1"}
    with pytest.raises(UsageError, match="contains results; resume with --resume"):
        run(two_gpus, commands_of(two_gpus, "a", "b", "c", "d"))
    (two_gpus / "out" / "c" / "sub" / "seen.txt").unlink()
    (two_gpus / "out" / "c" / "sub").rmdir()
    (two_gpus / "out" / "c").rmdir()
    run(two_gpus, commands_of(two_gpus, "a", "b", "c", "d"), resume=True)
    log = (two_gpus / "log").read_text("utf-8").split()
    assert sorted(log) == ["a", "b", "c", "c", "d"]
    with pytest.raises(UsageError, match="another target, matrix, options or profkit"):
        run(two_gpus, commands_of(two_gpus, "a", "b"), resume=True)


def test_a_full_disk_leaves_no_part_and_says_where(
    two_gpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    commands = commands_of(two_gpus, "a")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", full)
        with pytest.raises(
            EnvironmentProblem, match=r"out/a: can't be written \(No space"
        ) as raised:
            run(two_gpus, commands)
    assert "--resume" in raised.value.remedy
    assert not list((two_gpus / "out").glob(".*.part"))
    assert run(two_gpus, commands, resume=True).finished == 1


def test_a_worker_that_cannot_be_made_ends_the_run() -> None:
    def make(_: int | None) -> AbstractContextManager[Worker]:
        raise OSError(errno.ENOMEM, "no memory")

    handler: Any = SimpleNamespace(content=lambda task, _: task, watch=lambda _: None)
    executor = LocalExecutor(make, [0, 1], 2)
    with pytest.raises(EnvironmentProblem, match="no worker can be made"):
        drive(executor, ["a", "b"], handler)
    executor.close()


def test_a_command_that_fails_twice_is_recorded_and_passed_over(two_gpus: Path) -> None:
    state = run(two_gpus, commands_of(two_gpus, "a", "broken", "b"))
    assert state.given_up == {"broken": "it can't run (exit status 1)"}
    assert set(seen(two_gpus)) == {"a", "b"}
    assert "it can't run" in (two_gpus / "out" / "failed" / "broken.txt").read_text("utf-8")
    assert (two_gpus / "log").read_text("utf-8").split().count("broken") == 2


def test_a_gpu_that_somebody_measures_on_is_left_alone(two_gpus: Path) -> None:
    from profkit.core.lock import gpu_lock

    with gpu_lock("GPU-bbbb-1"):
        state = run(two_gpus, commands_of(two_gpus, "a", "b", "c"))
    assert list(seen(two_gpus).values()) == ["GPU-aaaa-0"] * 3
    (reason,) = state.excluded.values()
    assert "is being measured" in reason
