"""Measuring the roofs of a GPU: a process that holds it, each roof in turn, what came of it."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from profkit.capture.gpu import VISIBLE, GpuState, Moment, NoDriver, chosen, lock_name, visibility
from profkit.core.errors import EnvironmentProblem, UsageError
from profkit.core.lock import gpu_lock
from profkit.core.timestamp import timestamp
from profkit.report.gpus import Datasheet, find_datasheet
from profkit.roofline.ceilings import LABELS, Ceilings, Measured, ceiling, held_together
from profkit.timing.turns import worker

SEED = 42

_WORKER = "profkit.roofline.loads.worker"
Tell = Callable[[str, str], None]


def roofs_named(words: str | None) -> tuple[str, ...]:
    """Roofs by names with commas between, all for None, in the order in which they are measured.

    A name stands for those that begin with it too: `tensor` for all of the tensor cores. Raises
    UsageError for one that there is not.
    """
    if words is None:
        return tuple(LABELS)
    chosen_names: set[str] = set()
    for word in filter(None, re.split(r"[,\s]+", words)):
        found = {name for name in LABELS if name == word or name.startswith(f"{word}_")}
        if not found:
            raise UsageError(f"--only {word!r} is no roof", f"use {', '.join(LABELS)}")
        chosen_names |= {word} if word in LABELS else found
    if not chosen_names:
        raise UsageError("--only names no roof", f"use {', '.join(LABELS)}")
    return tuple(name for name in LABELS if name in chosen_names)


def measure_ceilings(names: Sequence[str], gpu: int | None, tell: Tell) -> Ceilings:
    """Measure roofs, alone on the GPU as far as profkit can tell; `tell` gets (stage, what).

    Raises EnvironmentProblem without a GPU or torch, and where none of the roofs can be measured;
    TargetFailed where a load computes something wrong.
    """
    started = time.monotonic()
    visible = os.environ.get(VISIBLE)
    state = _gpu(gpu, visible)
    with gpu_lock(lock_name(state, gpu, visible)), ExitStack() as stack:
        tell("start", "")
        environment = visibility(state, gpu, visible)
        turn = stack.enter_context(
            worker("the measurement", environment=environment, module=_WORKER)
        )
        opened = turn.ask("open", seed=SEED)
        told = {}
        for at, name in enumerate(names, start=1):
            tell("measure", f"{at} of {len(names)}, {LABELS[name]}")
            told[name] = turn.ask("measure", name=name)
    left_out = {name: one["left_out"] for name, one in told.items() if "left_out" in one}
    if len(left_out) == len(names):
        why = "; ".join(dict.fromkeys(left_out.values()))
        raise EnvironmentProblem(f"no roof can be measured here: {why}", "see `profkit doctor`")
    device = opened["fingerprint"]["gpu"]
    sheet = _datasheet(device, opened["machine"])
    rates = {
        name: ceiling(
            name, [_measured(load) for load in one["loads"]], sheet, opened["machine"]["sm_count"]
        )
        for name, one in told.items()
        if name not in left_out
    }
    return Ceilings(
        gpu=device["name"],
        uuid=device.get("uuid") or "",
        rates=held_together(rates),
        created=timestamp(),
        seconds=time.monotonic() - started,
        left_out=left_out,
        fingerprint=opened["fingerprint"],
        neighbours=len(state.processes) if state else 0,
    )


def _gpu(index: int | None, visible: str | None) -> GpuState | None:
    """The GPU to measure, None where NVML can't tell; raises EnvironmentProblem without one."""
    try:
        state = chosen(index, visible)
    except NoDriver:
        return None
    if state is None:
        raise EnvironmentProblem(f"{VISIBLE} hides every GPU", "unset it, or name one with --gpu")
    return state


def _datasheet(device: Mapping[str, Any], machine: Mapping[str, Any]) -> Datasheet | None:
    if device.get("mig"):
        return None
    major, minor = machine["cc"]
    sheet, _ = find_datasheet(
        device["name"], (major, minor), machine["sm_count"], machine["memory_bytes"]
    )
    return sheet


def _measured(load: Mapping[str, Any]) -> Measured:
    return Measured(
        how=load["how"],
        amount=load["amount"],
        samples=_samples(load["bursts"]),
        moments=_moments(load["bursts"]),
        steady_samples=_samples(load["steady"]),
        steady_moments=_moments(load["steady"]),
    )


def _samples(blocks: Sequence[Mapping[str, Any]]) -> tuple[float, ...]:
    return tuple(value for block in blocks for value in block["samples"])


def _moments(blocks: Sequence[Mapping[str, Any]]) -> tuple[Moment, ...]:
    """The GPU during blocks; its SM clock as counted over a block, else as told before it."""
    return tuple(
        Moment(
            **{
                **block["gpu"],
                "sm_clock": block.get("sm_clock") or block["gpu"]["sm_clock"],
                "throttled_by": tuple(block["gpu"]["throttled_by"]),
            }
        )
        for block in blocks
        if block["gpu"] is not None
    )
