"""Ranges around modules: they have their names, end where they began, and change no result."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from profkit.execution.injection import Hook, injected, module_ranges_hooks
from tests.conftest import ROOT, scratch

SCENARIOS = (
    "transformer", "checkpointed", "reentrant", "closures", "data_parallel", "recurrent",
    "recursion", "exceptions", "generators", "inference", "forces", "threads", "transforms",
    "compiled", "adversaries", "late",
)  # fmt: skip
Ranges = list[tuple[int, str | None]]


def run(names: tuple[str, ...], calls: int | None) -> dict[str, Any]:
    """What the programs print, without ranges where `calls` is None."""
    environment, log = (
        {**os.environ, "OMP_NUM_THREADS": "1"},
        scratch() / f"ranges{os.getpid()}.log",
    )
    log.unlink(missing_ok=True)
    if calls is not None:
        stand_in = Hook("torch", ROOT / "tests" / "stand_in" / "nvtx.py")
        environment["PROFKIT_MODULE_CALLS"] = str(calls)
        environment = injected(environment, [stand_in, *module_ranges_hooks()], log)
    program = Path(__file__).with_name("module_programs.py")
    command = [sys.executable, str(program), *names]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=200
    )
    assert done.returncode == 0, done.stderr
    assert not log.exists(), log.read_text()
    return dict(json.loads(done.stdout))


@cache
def plain() -> dict[str, Any]:
    return run(SCENARIOS, None)


@cache
def named(calls: int) -> dict[str, Any]:
    return run(SCENARIOS, calls)


def nested(ranges: Ranges) -> list[tuple[str, ...]]:
    """The ranges with those around them on their thread; those of a thread must all end."""
    stacks: dict[int, list[str]] = {}
    found = []
    for thread, text in ranges:
        stack = stacks.setdefault(thread, [])
        if text is None:
            stack.pop()
            continue
        stack.append(text.removeprefix("profkit-modules:"))
        if not text.startswith("profkit-modules:cost:"):
            found.append(tuple(stack))
    assert not any(stacks.values())
    return found


def innermost(scenario: str, calls: int = 4) -> list[str]:
    return [path[-1] for path in nested(named(calls)[scenario]["ranges"])]


@pytest.mark.parametrize("calls", [4, 0])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_results_are_the_same_and_ranges_end(scenario: str, calls: int) -> None:
    """To the last bit; of compiled programs the graphs too."""
    assert named(calls)[scenario]["result"] == plain()[scenario]["result"]
    assert bool(nested(named(calls)[scenario]["ranges"])) or scenario == "transforms"


def test_modules_are_named_by_their_place_in_the_outermost_one() -> None:
    paths = nested(named(4)["transformer"]["ranges"])
    layer = "first:forward:Transformer.layers.* (Block)"
    assert (
        "first:forward:Transformer",
        layer,
        layer.replace("* (Block)", "*.norm (LayerNorm)"),
    ) in paths
    assert ("first:forward:CrossEntropyLoss",) in paths
    linear = "later:forward:Transformer.layers.*.mlp.* (Linear)"
    later = [path for path in paths if path[-1] == linear]
    assert len(later) == 3 * 6  # calls with ranges after the first step, linear layers
    assert {path[-2] for path in later} == {"later:forward:Transformer.layers.*.mlp (Sequential)"}


def test_backward_work_is_named_in_the_order_of_the_forward_reversed() -> None:
    names = [name for name in innermost("transformer") if ":backward:" in name]
    layer = ["* (Block)", "*.mlp.* (Linear)", "*.mlp.* (ReLU)", "* (Block)",
             "*.attention (MultiheadAttention)", "*.norm (LayerNorm)"]  # fmt: skip
    one = ["CrossEntropyLoss", "Transformer.head (Linear)"]
    one += [f"Transformer.layers.{name}" for name in layer] * 3
    assert [name.split(":", 2)[2] for name in names[: len(one)]] == one


def test_only_the_first_calls_have_ranges() -> None:
    """And those after the first step of an optimizer, which starts the training."""
    names = innermost("transformer")
    assert names.count("first:forward:Transformer") == 2
    assert names.count("later:forward:Transformer") == 3
    assert [name for name in names if ":optimizer:" in name] == [
        "first:optimizer:AdamW.step", *["later:optimizer:AdamW.step"] * 3
    ]  # fmt: skip
    assert innermost("transformer", 0).count("later:forward:Transformer") == 5
    adversaries = innermost("adversaries")
    assert adversaries.count("first:optimizer:SGD.step") == 2


def test_a_module_that_comes_late_has_its_name() -> None:
    names = innermost("late")
    assert [name for name in names if name.startswith("first:forward")] == [
        "first:forward:Linear", "first:forward:LayerNorm", "first:forward:PReLU"
    ]  # fmt: skip
    assert run(("late", "repeated"), 4)["is_restored"]


def test_a_part_that_is_called_by_itself_keeps_its_name() -> None:
    """As the recomputation of a checkpoint, during the backward."""
    backward = {
        path[-1] for path in nested(named(0)["checkpointed"]["ranges"])
        if ":backward:" in path[0] and ":forward:" in path[-1]
    }  # fmt: skip
    assert "later:forward:Transformer.layers.*.mlp (Sequential)" in backward
    assert "later:forward:Transformer.layers.* (Block)" in backward


def test_compiled_modules_have_one_range() -> None:
    names = {name.split(":", 2)[2] for name in innermost("compiled")}
    assert names == {
        "Transformer", "Sequential", "Sequential.* (Linear)", "Sequential.* (Block)",
    }  # fmt: skip


def test_a_cost_is_told_and_ends() -> None:
    """Measured: 2 to 5 us a range with this stand-in, nothing once torch's own call is back."""
    costs = [text for _, text in named(4)["transformer"]["ranges"] if text and ":cost:" in text]
    ranges, spent = map(int, costs[-1].split(":")[2:])
    assert ranges > 150
    assert spent > 0
    assert run(("repeated",), 4)["is_restored"]
