"""Where callables run, and which timer sees their work."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from profkit.callables.surroundings import Surroundings, pointer_of, surroundings
from profkit.core.errors import EnvironmentProblem, UsageError
from profkit.timing.stopwatch import Timer

torch = pytest.importorskip("torch", reason="CUDA events are torch's")


@pytest.fixture(autouse=True)
def torch_of_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch that was built with CUDA, as this one need not be."""
    monkeypatch.setattr(torch.version, "cuda", "13.0")


def on(device: str, *frameworks: str, unsure: bool = False) -> Surroundings:
    return Surroundings(device, frozenset(frameworks), unsure=unsure)


@pytest.mark.parametrize(
    ("where", "wanted", "timer"),
    [
        (on("cpu", "torch"), None, Timer.wall),
        (on("cpu", "torch"), "cupti", Timer.wall),
        (on("cuda", "torch"), None, Timer.events),
        (on("cuda", "cupy"), None, Timer.events),
        (on("cuda"), None, Timer.events),
        (on("cuda", "torch"), "graph", Timer.graph),
        (on("cuda", "jax"), None, Timer.synchronized),
        (on("cuda", "jax", "torch"), None, Timer.synchronized),
        (on("cuda", "numpy", unsure=True), None, Timer.synchronized),
    ],
)
def test_the_timer_is_one_that_sees_the_work(
    where: Surroundings, wanted: str | None, timer: Timer
) -> None:
    assert where.timer(wanted) is timer


@pytest.mark.parametrize("wanted", ["events", "graph", "cupti", "sundial"])
def test_a_timer_that_sees_nothing_of_jax_is_refused(wanted: str) -> None:
    with pytest.raises(UsageError, match=wanted):
        on("cuda", "jax").timer(wanted)


def test_a_torch_without_cuda_has_no_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", None)
    assert on("cuda", "cupy").timer(None) is Timer.synchronized
    with pytest.raises(EnvironmentProblem, match="torch with CUDA"):
        on("cuda", "cupy").timer("events")


class OnGpu:
    """An array of a framework's module on a GPU, by the array interchange protocol."""

    __module__ = "cupy._core.core"

    def __init__(self, number: int) -> None:
        self.number = number

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.number


def test_arrays_say_where_a_call_runs() -> None:
    where = surroundings([np.zeros(1), OnGpu(1)], None)
    assert (where.device, where.number) == ("cuda", 1)
    assert where.frameworks == {"numpy", "cupy"}
    assert surroundings([np.zeros(1)], None).device == "cpu"
    with pytest.raises(UsageError, match="2 GPUs"):
        surroundings([OnGpu(0), OnGpu(1)], None)


@pytest.mark.parametrize(
    "stream", [7, SimpleNamespace(ptr=7), SimpleNamespace(cuda_stream=7), SimpleNamespace(handle=7)]
)
def test_streams_of_all_frameworks_have_a_pointer(stream: Any) -> None:
    assert pointer_of(stream) == 7


def test_what_is_no_stream_is_refused() -> None:
    with pytest.raises(UsageError, match="stream is str"):
        pointer_of("mine")
