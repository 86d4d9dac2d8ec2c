"""The energy of calls: bounds from a counter that advances in steps, and what is said of them."""

from __future__ import annotations

import json
import math
import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from typer.testing import Result

from profkit.capture.gpu import NoDriver, Watch
from profkit.core.errors import EnvironmentProblem
from profkit.execution.placement import Placement
from profkit.study.report import gather
from profkit.study.report_document import report_document
from profkit.study.run import run_baseline
from profkit.timing.energy import Reading, check_counter, energy_between, energy_run
from profkit.timing.latency_view import latency_document
from profkit.timing.measurement import Subject, TimingPlan, latency_report, time_targets
from profkit.ui.markdown import document_markdown
from profkit.ui.terminal import document_terminal
from tests.conftest import ROOT
from tests.simulated_gpus import PROGRAM, plan_of, variables

SCHEMA = json.loads((ROOT / "profkit" / "schemas" / "time.json").read_text("utf-8"))
TURNS = {"a": (0, 3, 4, 7, 8, 11, 12, 15), "b": (1, 2, 5, 6, 9, 10, 13, 14)}
WORK = {"flop": 8e12, "bytes": 2e9, "what": "a product"}


class Steps:
    """A counter of a GPU that draws `watts`, which advances every `step` seconds."""

    def __init__(self, watts: float, step: float) -> None:
        self._watts, self._step, self._start = watts, step, time.perf_counter()

    def __call__(self) -> float:
        steps = (time.perf_counter() - self._start) // self._step
        return self._watts * self._step * steps


class Sleeping:
    """Ten calls of 0.2 ms at a time."""

    def queue(self) -> int:
        time.sleep(0.002)
        return 10

    def finish(self) -> None:
        """Nothing is left."""


@given(
    seed=st.integers(0, 2**32),
    step=st.floats(0.001, 0.1),
    poll=st.floats(0.001, 0.02),
    span=st.tuples(st.floats(0.1, 0.4), st.floats(0.5, 0.7)),
)
def test_the_bounds_hold_whatever_the_steps_the_power_and_the_polling(
    seed: int, step: float, poll: float, span: tuple[float, float]
) -> None:
    random = Random(seed)
    count = 80 + math.ceil(60 * poll / step)
    steps = [random.uniform(step / 3, step) for _ in range(count)]
    powers = [random.choice([0.0, random.uniform(1, 1000)]) for _ in steps]
    powers[-count // 4 :] = [random.uniform(1, 1000) for _ in steps[-count // 4 :]]
    polls = [random.uniform(poll / 3, poll) for _ in range(math.ceil(3 * sum(steps) / poll))]
    instants = [0.0, *accumulate(steps)]
    joules = [0.0, *accumulate(gap * power for gap, power in zip(steps, powers, strict=True))]

    def drawn(moment: float) -> float:
        last = min(bisect_right(instants, moment), len(steps)) - 1
        return joules[last] + (moment - instants[last]) * powers[last]

    def reading(moment: float) -> float:
        return joules[bisect_right(instants, moment) - 1]

    whole = min(instants[-1], sum(polls))
    start, end = (share * whole for share in span)
    moments = list(accumulate(polls))
    readings = [Reading(at, at + 0.0005, reading(at + 0.0002)) for at in moments]
    low, high = energy_between(readings, start, end)
    assert low <= drawn(end) - drawn(start) + 1e-9
    assert high >= drawn(end) - drawn(start) - 1e-9
    most = 2 * max(powers) * 2 * (max(steps) + max(polls))  # two steps and polls at either end
    assert high - low <= most + 1e-9


def test_a_run_s_bounds_hold_the_energy_at_the_known_power() -> None:
    run = energy_run(Sleeping(), Steps(300.0, 0.005), 0.4)
    assert run.seconds >= 0.4
    assert run.low <= 300.0 * run.seconds <= run.high
    assert run.high - run.low < 300.0 * 0.2  # a busy machine polls seldom
    assert 10 <= run.steps <= run.seconds / 0.005 + 2
    assert 0 < run.calls * 0.0002 <= run.seconds


def test_a_counter_that_stands_still_is_refused() -> None:
    with pytest.raises(EnvironmentProblem, match="counter does not advance; leave out --energy"):
        check_counter(lambda: 5.0)


def run_of(joules: float, **changes: float) -> dict[str, float]:
    """1000 calls in 5 s."""
    fields = {"low": joules - 10, "high": joules + 10, "calls": 1000, "seconds": 5.0, "steps": 60}
    return fields | changes


def saved(folder: Path, runs: dict[str, list[dict[str, float]]], **target: Any) -> Path:
    """Two series, with runs of their energy."""
    series = [
        {
            "label": label,
            "timer": "events",
            "cache": "cold",
            "target": target,
            "blocks": [
                {"turn": turn, "samples": [1e-3 + 1e-6 * (at % 7) for at in range(30)]}
                for turn in TURNS[label]
            ],
            "energy": runs[label],
        }
        for label in TURNS
    ]
    file = folder / "latency.json"
    file.write_text(json.dumps({"schema": "profkit.time/1", "series": series}), encoding="utf-8")
    return file


def test_joules_watts_and_work_per_joule_are_shown_as_by_hand(
    tmp_path: Path, profkit_cli: Callable[..., Result]
) -> None:
    runs = {"a": [run_of(2000), run_of(2020)], "b": [run_of(1000), run_of(1010)]}
    file = saved(tmp_path, runs, work=WORK)
    options = ("time", "--from", file, "--compare", "a,b")
    document = json.loads(profkit_cli(*options, "--format", "json").stdout)
    jsonschema.validate(document, SCHEMA)
    first, second = document["series"]
    assert first["energy"] == runs["a"]
    energy = first["energy_per_call"]
    assert energy["joules"] == pytest.approx(2.01)  # 4020 J over 2000 calls
    assert (energy["low"], energy["high"]) == (1.99, 2.03)
    assert energy["power"] == pytest.approx(402.0)  # in 10 s
    assert energy["flop_per_joule"] == pytest.approx(8e12 / 2.01)
    assert energy["bytes_per_joule"] == pytest.approx(2e9 / 2.01)
    assert second["energy_per_call"]["joules"] == pytest.approx(1.005)
    shown = " ".join(profkit_cli(*options).stdout.split())
    assert "a 2.010 J [1.990, 2.030] J 402.0 W 3.980 TFLOP/s per W" in shown
    ratio = f"0.500x [{0.99 / 2.03:.3f}, {1.02 / 1.99:.3f}] (bounds, no verdict)"
    assert f"energy per call: 2.010 J → 1.005 J, {ratio}" in shown
    without = " ".join(profkit_cli("time", "--from", saved(tmp_path, runs)).stdout.split())
    assert f"402.0 W {1 / 2.01:.4f} calls/J" in without


def test_fewer_than_fifty_steps_are_refused_with_the_seconds_needed(
    tmp_path: Path, profkit_cli: Callable[..., Result]
) -> None:
    few = run_of(4000, seconds=10.0, steps=49)
    file = saved(tmp_path, {"a": [run_of(2000), few], "b": [run_of(2000, steps=50)] * 2})
    done = profkit_cli("time", "--from", file)
    assert done.exit_code == 4
    why = "the energy counter advanced 49 times in 10.0 s, 50 are needed"
    assert f"a: no energy: {why}; --energy-seconds 11" in " ".join(done.stderr.split())
    assert f"! a: no energy: {why}" in done.stdout
    assert "b  " in done.stdout.partition("Energy")[2]


@pytest.mark.parametrize(
    "changes", [{"low": 3000.0}, {"calls": 0}, {"high": 0.0, "low": 0.0}, {"seconds": 0.0}]
)
def test_energies_that_can_t_be_are_bad_input(
    tmp_path: Path, profkit_cli: Callable[..., Result], changes: dict[str, float]
) -> None:
    bad = [run_of(2000, **changes)]
    done = profkit_cli("time", "--from", saved(tmp_path, {"a": bad, "b": bad}))
    assert done.exit_code == 5
    assert "energy[0]" in done.stderr


class NotSupported(Exception):
    """As NVML's."""


@pytest.mark.parametrize(
    ("drawn", "mig", "problem"),
    [(1_500, 0, ""), (None, 0, "no energy counter"), (1_500, 1, "split by MIG")],
)
def test_nvml_s_counter_is_in_millijoules_and_of_a_whole_gpu(
    monkeypatch: pytest.MonkeyPatch, drawn: int | None, mig: int, problem: str
) -> None:
    def total(_handle: object) -> int:
        if drawn is None:
            raise NotSupported
        return drawn

    nvml = SimpleNamespace(
        NVMLError=NotSupported,
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetHandleByUUID=lambda uuid: uuid,
        nvmlDeviceGetMigMode=lambda _: [mig, mig],
        nvmlDeviceGetTotalEnergyConsumption=total,
    )
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    watch = Watch("GPU-1")
    if problem:
        with pytest.raises(NoDriver, match=problem):
            watch.energy()
    else:
        assert watch.energy() == 1.5
    watch.close()


@pytest.fixture
def simulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine with simulated GPUs."""
    for name, value in variables(tmp_path, "host", 0.01).items():
        monkeypatch.setenv(name, value)
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "stand_in" / "nvml"))
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    yield tmp_path
    sys.modules.pop("pynvml", None)


@pytest.mark.usefixtures("new_processes")
def test_a_baseline_has_the_energy_of_every_cell(simulated: Path) -> None:
    plan = plan_of(simulated, 2, Placement("local"))
    plan = structs.replace(plan, timing=replace(plan.timing, energy=5.0))
    baseline = run_baseline(plan, lambda *_: None)
    assert {row.backend: row.energy and row.energy.power for row in baseline.cells} == {
        "a": 300.0,
        "b": 450.0,
    }
    energy = baseline.cells[0].energy
    assert energy
    assert energy.joules == pytest.approx(0.3)  # 300 W for 1 ms
    assert (energy.low, energy.high) == pytest.approx((0.294, 0.306))
    report = document_markdown(report_document(gather(simulated / "out")), "drawings")
    assert "| 300.0 mJ | \\[294, 306\\] mJ | 300.0 W | 3.333 GFLOP/s per W |" in report


@pytest.mark.usefixtures("new_processes")
def test_a_timing_measures_energy_behind_its_samples(simulated: Path) -> None:
    target = simulated / "made.py"
    target.write_text("# its process is simulated\n", encoding="utf-8")
    plan = TimingPlan(
        (Subject(target, ("a", "b")),), ("--n", "1"), samples=80, program=PROGRAM, energy=6.0
    )
    timing = time_targets(plan, lambda *_: None)
    runs = [latency.energy for latency in timing.latencies]
    assert [[run.seconds for run in each or ()] for each in runs] == [[6.0, 6.0]] * 2
    assert timing.spans["energy"] >= 0
    report = latency_report(timing, plan, labels=("a", "b"))
    text = document_terminal(latency_document(report), to_file=True)
    assert "300.0 mJ → 450.0 mJ, 1.500x [1.451, 1.551]" in " ".join(text.split())
    assert not any(
        latency.energy for latency in time_targets(replace(plan, energy=None), print).latencies
    )
