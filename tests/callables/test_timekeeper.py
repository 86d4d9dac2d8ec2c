"""A callable of this process is timed as `profkit time` times it in a process of its own."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from profkit.callables.examination import Invocation
from profkit.callables.surroundings import Surroundings
from profkit.callables.timekeeper import CallableTimekeeper
from profkit.capture.correctness import Declared
from profkit.timing.measurement import (
    Subject,
    TimingPlan,
    environment_of,
    latency_report,
    measure,
    paired,
    process_of,
)
from profkit.timing.results import Thresholds, Verdict
from profkit.timing.stopwatch import Settings
from tests.clock import install

torch = pytest.importorskip("torch", reason="targets need torch")

WAIT = 2e-4  # s of a call
TARGET = f"""
from profkit import Target, Variant, normal_inputs
from tests.clock import install

passes = install()

def wait(inputs):
    passes({WAIT})
    return inputs["x"]

target = Target(
    name="toy", shapes={{}}, dtype="float32", variants=[Variant("wait", wait)],
    inputs=lambda device, seed: normal_inputs(device, seed, "float32", x=(4,)),
    reference=lambda inputs: inputs["x"],
)
"""


def test_both_take_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passes = install(monkeypatch)

    def wait(x: Any) -> Any:
        passes(WAIT)
        return x

    script = tmp_path / "toy.py"
    script.write_text(TARGET, encoding="utf-8")
    target = Subject(script, ("wait",), label="target")
    callable_here = Subject(Path("wait"), ("wait",), label="callable")
    here = CallableTimekeeper(
        [Invocation("wait", wait, (torch.ones(4),))],
        Declared(name="wait", shapes={}, work=None, dtype="float32"),
        Surroundings("cpu", frozenset({"torch"})),
        nullcontext,
    )
    plan = paired(
        TimingPlan(
            subjects=(target, callable_here),
            settings=Settings(warmup=0.01),
            device="cpu",
            check=False,
        )
    )
    with process_of(target, environment_of(plan)) as process:
        timing = measure(plan, lambda _stage, _detail: None, [process, here])
    labels = ("target:wait", "callable:wait")
    report = latency_report(timing, plan, labels=labels, thresholds=Thresholds(margin=0.1))
    (pair,) = report.pairs
    assert pair.comparison.verdict is Verdict.SAME
    for side in (pair.a, pair.b):
        assert WAIT <= min(side.latency.samples) < 1.01 * WAIT
    assert [block.turn for block in pair.a.latency.blocks][:3] == [0, 3, 4]
