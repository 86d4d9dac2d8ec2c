"""Baselines on several GPUs: real executors and processes, simulated GPUs."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs
from typer.testing import CliRunner

from profkit.commands.cli import app
from profkit.core.errors import EnvironmentProblem
from profkit.execution.placement import Placement
from profkit.execution.protocol import Fate, Outcome
from profkit.study.distribution import CellResult
from profkit.study.folder import held
from profkit.study.measurement import BaselinePlan
from profkit.study.progress import read_status, status_document
from profkit.study.run import run_baseline
from profkit.study.summary_format import BaselineFile
from profkit.ui.terminal import document_terminal
from tests.conftest import ROOT
from tests.simulated_gpus import (
    Killer,
    measured_shapes,
    plan_of,
    variables,
)

pytestmark = pytest.mark.usefixtures("new_processes")  # a driver has threads, which forks lack
LOCAL = Placement("local")
needs_slurm = pytest.mark.skipif(not find_spec("submitit"), reason="pip install 'profkit[slurm]'")


@pytest.fixture
def two_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with two simulated GPUs."""
    for name, value in variables(tmp_path, "host", 0.01).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "stand_in" / "nvml"))
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    return tmp_path


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """The stand-in of NVML is no other test's."""
    yield
    sys.modules.pop("pynvml", None)


def run(plan: BaselinePlan) -> BaselineFile:
    return run_baseline(plan, lambda _stage, _detail: None)


def cells_of(folder: Path) -> dict[str, Any]:
    return {
        file.stem: json.loads(file.read_text("utf-8"))
        for file in (folder / "out" / "cells").glob("*.json")
    }


def test_backends_of_a_shape_share_a_gpu_and_one_that_crashes_twice_is_passed_over(
    two_gpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROFKIT_STAND_IN_CRASH", "3")
    baseline = run(plan_of(two_gpus, 21, LOCAL))
    assert baseline.counts == {"measured": 40, "failed": 2}
    failed = [row for row in baseline.cells if row.status == "failed"]
    assert {row.shape for row in failed} == {"n3"}
    assert all("ended with status 3" in row.reason for row in failed)
    gpus, rounds = defaultdict(set), defaultdict(set)
    for cell in cells_of(two_gpus).values():
        if cell["status"] == "failed":
            continue
        gpus[cell["shape"]].add(cell["fingerprint"]["gpu"]["uuid"])
        rounds[cell["shape"]].add(cell["round"])
    assert all(len(uuids) == 1 for uuids in gpus.values())
    assert all(len(ids) == 1 for ids in rounds.values())
    assert len(set.union(*gpus.values())) == 2
    assert all(each.verdict for each in baseline.comparisons)
    assert len(baseline.comparisons) == 20
    (note,) = baseline.notes
    assert note.startswith("measured on 2 GPUs of one kind")
    processes = Counter(each.process for each in measured_shapes(two_gpus))
    assert len(processes) <= 2 + 2  # one each, that lasts until it crashes


def test_sizes_on_different_gpus_are_not_compared(
    two_gpus: Path,
) -> None:
    plan = plan_of(two_gpus, 12, LOCAL)
    plan = structs.replace(plan, matrix=with_batches(plan))
    baseline = run(plan)
    uuids = {row.id: row.gpu_uuid for row in baseline.cells}
    assert baseline.scaling
    assert all(uuids[step.before] == uuids[step.after] for step in baseline.scaling)
    (note,) = [note for note in baseline.notes if "2 GPUs" in note]
    assert "on the same GPU alone" in note


def with_batches(plan: BaselinePlan) -> Any:
    from profkit.study.matrix import matrix_of

    shapes = range(1, len(plan.matrix.shapes) + 1)
    return matrix_of("made", "", [{"n": 7, "batch": n} for n in shapes])


def started(plan: BaselinePlan, folder: Path) -> subprocess.Popen[bytes]:
    """A driver in a process of its own, which ends with 130 when it is interrupted."""
    (folder / "plan").write_bytes(pickle.dumps(plan))
    code = (
        "import pickle, sys; from profkit.study.run import run_baseline\n"
        "try: run_baseline(pickle.load(open(sys.argv[1], 'rb')), lambda *_: None)\n"
        "except KeyboardInterrupt: sys.exit(130)"
    )
    words = [sys.executable, "-c", code, str(folder / "plan")]
    return subprocess.Popen(words, env=dict(os.environ), cwd=folder)


def test_a_killed_driver_loses_nothing_and_repeats_nothing(
    two_gpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROFKIT_STAND_IN_SHAPES", "25")
    plan = plan_of(two_gpus, 60, LOCAL)
    driver = started(plan, two_gpus)
    cells = two_gpus / "out" / "cells"
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and len(list(cells.glob("[!.]*.json"))) < 20:
        time.sleep(0.01)
    monkeypatch.delenv("PROFKIT_STAND_IN_SHAPES")
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    saved = {file: file.read_bytes() for file in cells.glob("[!.]*.json")}
    assert 20 <= len(saved) < 120
    assert "ended without a word" in document_terminal(
        status_document(read_status(plan.out)), to_file=True
    )
    baseline = run(structs.replace(plan, resume=True))
    assert baseline.counts == {"measured": 120}
    assert all(file.read_bytes() == content for file, content in saved.items())
    assert not list(cells.glob(".*"))


def test_cells_of_another_version_are_measured_again_and_other_gpus_left_out(
    two_gpus: Path, monkeypatch: Any
) -> None:
    run(plan_of(two_gpus, 3, LOCAL))
    before = cells_of(two_gpus)
    run(plan_of(two_gpus, 3, LOCAL, resume=True))
    assert cells_of(two_gpus) == before
    monkeypatch.setenv("PROFKIT_STAND_IN_VERSION", "made 2")
    run(plan_of(two_gpus, 3, LOCAL, resume=True))
    after = cells_of(two_gpus)
    assert {cell["version"] for cell in after.values()} == {"made 2"}
    assert all(after[name]["key"] != cell["key"] for name, cell in before.items())

    monkeypatch.setenv("PROFKIT_STAND_IN_DRIVER", "590.2")
    for file in two_gpus.glob("out/cells/n2.*"):
        file.unlink()
    with pytest.raises(EnvironmentProblem, match=r"driver 590.2 instead of 580.1"):
        run(plan_of(two_gpus, 3, LOCAL, resume=True))


def test_cancel_ends_a_driver_and_leaves_whole_cells(
    two_gpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROFKIT_STAND_IN_SECONDS", "0.2")
    monkeypatch.setenv("PROFKIT_STAND_IN_SHAPES", "100")
    plan = plan_of(two_gpus, 400, LOCAL)
    driver = started(plan, two_gpus)
    deadline, output = time.monotonic() + 300, ""
    while time.monotonic() < deadline and "shapes a minute" not in output:
        time.sleep(0.2)
        output = CliRunner().invoke(app, ["baseline", "status", str(plan.out)]).stdout
    assert "of 800 configurations" in output
    assert "--on local: running" in output
    assert "GPU 0" in output
    assert shown("cancel", plan.out) == f"{plan.out}: canceled\n"
    assert driver.wait(300) == 130
    assert not (plan.out / "cancel").exists()
    assert "canceled" in shown("status", plan.out)
    assert all(cell["status"] == "measured" for cell in cells_of(two_gpus).values())
    assert shown("cancel", plan.out) == f"{plan.out}: no driver works on it\n"


def shown(verb: str, folder: Path) -> str:
    result = CliRunner().invoke(app, ["baseline", verb, str(folder)])
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_a_run_on_one_gpu_is_no_dead_driver(two_gpus: Path) -> None:
    """A driver is killed, and its baseline resumed without --on."""
    plan = plan_of(two_gpus, 2, LOCAL)
    run(plan)
    progress = plan.out / "progress.json"
    text = progress.read_text("utf-8").replace(': "finished"', ': "running"')
    progress.write_text(text, "utf-8")
    assert "ended without a word" in shown("status", plan.out)
    run(plan_of(two_gpus, 2, None, resume=True))
    assert "Driver" not in shown("status", plan.out)
    with held(plan.out):
        assert "A process of this machine measures them" in shown("status", plan.out)
        assert "press Ctrl-C where that runs" in shown("cancel", plan.out)
    assert not (plan.out / "cancel").exists()
    assert "no driver works on it" in shown("cancel", plan.out)


def test_progress_that_a_loss_of_power_emptied_hides_no_cells(two_gpus: Path) -> None:
    plan = plan_of(two_gpus, 2, LOCAL)
    run(plan)
    (plan.out / "progress.json").write_text("", "utf-8")
    text = shown("status", plan.out)
    assert "4 measured" in text
    assert "progress.json" in text
    assert "no driver works on it" in shown("cancel", plan.out)


def test_a_budget_leaves_the_rest_for_later(two_gpus: Path) -> None:
    plan = structs.replace(plan_of(two_gpus, 40, LOCAL), budget=0.2)
    counts = run(plan).counts
    assert counts["no_time"] > 0
    assert sum(counts.values()) == 80
    assert run(structs.replace(plan, budget=None, resume=True)).counts == {"measured": 80}


@needs_slurm
def test_on_slurm_killed_jobs_lose_and_double_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables(tmp_path, "", 0.05).items():
        monkeypatch.setenv(name, value)
    place = Placement("slurm", gpus=2, cluster="local")
    plan = plan_of(tmp_path, 200, place, backends=["a"])
    with Killer(plan.out, 3.0, most=2) as killer:
        baseline = run(plan)
    assert killer.kills
    assert baseline.counts == {"measured": 200}
    assert not list((plan.out / "jobs" / "results").iterdir())
    spans = defaultdict(list)
    for each in measured_shapes(tmp_path):
        spans[each.process].append(each)
    assert any(  # at the same time
        first[0].start < second[-1].end and second[0].start < first[-1].end
        for first, second in combinations(spans.values(), 2)
    )


def test_results_of_jobs_that_outlived_their_driver_are_taken(two_gpus: Path) -> None:
    """As a job writes them, after the driver was killed."""
    plan = plan_of(two_gpus, 6, LOCAL)
    run(plan)
    cells = cells_of(two_gpus)
    results = plan.out / "jobs" / "results"
    results.mkdir(parents=True)
    for shape in ("n2", "n5"):
        texts = {}
        for name in (f"{shape}.a", f"{shape}.b"):
            file = plan.out / "cells" / f"{name}.json"
            texts[f"cells/{name}.json"] = file.read_text("utf-8")
            file.unlink()
        if shape == "n5":  # of another target
            texts = {
                place: text.replace(json.loads(text)["key"], "0" * 64)
                for place, text in texts.items()
            }
        result = CellResult(cells=texts, measured_on=None, gpu=None, crashed="", process=1)
        outcome = Outcome(shape, Fate.done, "job 1", msgspec.json.encode(result))
        (results / f"{shape}.1").write_bytes(pickle.dumps(outcome))
    assert run(structs.replace(plan, resume=True)).counts == {"measured": 12}
    after = cells_of(two_gpus)
    assert after["n2.a"] == cells["n2.a"]
    assert after["n5.a"]["round"] != cells["n5.a"]["round"]
    assert not list(results.iterdir())


@pytest.mark.parametrize(
    ("place", "message"),
    [
        pytest.param("slurm", "--on slurm: this machine has no Slurm", marks=needs_slurm),
        ("local", "--on local: no GPU is visible; see profkit doctor"),
    ],
)
def test_a_place_that_is_not_there_is_one_line(
    tmp_path: Path, place: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    plan = plan_of(tmp_path, 1, Placement(place))
    with pytest.raises(EnvironmentProblem) as problem:
        run(plan)
    assert str(problem.value).startswith(message)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--on", "moon"], "use local or slurm"),
        (["--partition", "gpu"], "give --on slurm too"),
        (["--on", "local", "--gpu", "1"], "--gpu 1 names one GPU"),
        (["--on", "local", "--time", "20"], "give --on slurm too"),
        (["--on", "ray"], "no such place; use local or slurm"),
        (
            ["--on", "slurm"],
            "requires submitit (not installed); pip install submitit, or '.[slurm]'",
        ),
    ],
)
def test_what_does_not_fit_is_one_line(
    tmp_path: Path, words: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "submitit", None)  # as if not installed
    target = tmp_path / "t.py"
    target.write_text("", encoding="utf-8")
    done = CliRunner().invoke(app, ["baseline", "run", str(target), "--seq", "1", *words])
    assert done.exit_code in {2, 4}
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("profkit:")]
    assert message in line
