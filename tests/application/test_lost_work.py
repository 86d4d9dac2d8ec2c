"""Timelines in which nsys lost GPU work: their time without any is not called idle."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import astuple, replace

from profkit.application import causes
from profkit.application.application import read_application
from profkit.application.parts import GAPS, UNRECORDED, step_parts
from profkit.application.steps import steady_steps
from profkit.core.errors import BadInput
from profkit.rules.rule_file import shipped_rules
from profkit.timeline.events import Events, Graphs, Kernels
from profkit.timeline.lost_work import lost_graphs, lost_work
from profkit.timeline.reader import read
from tests.application.synthetic import US, Host, Recording
from tests.conftest import Cli, story_folder

LOST = {"jax_dispatch/before", "jax_dispatch/after"}


def replaying() -> Events:
    """A decode loop of CUDA graphs, and a copy in each step."""
    host = Host(Recording())
    for _ in range(12):
        with host.range("step"):
            host.launch_graph(1, 300 * US)
            host.copy(2 * US, 64, source="device", target="pageable")
    return host.recording.events()


def without_graphs(events: Events) -> Events:
    graphs = events.graphs
    return replace(events, graphs=Graphs(*(column[:0] for column in astuple(graphs))))


def groups(events: Events) -> set[str]:
    (steps,) = steady_steps(events)
    return {part.group for part in step_parts(events, steps).parts}


def test_graphs_without_a_trace_are_lost_work() -> None:
    events = replaying()
    assert not lost_work(events)
    assert GAPS in groups(events)
    lost = without_graphs(events)
    assert lost_work(lost) == "the GPU work of 12 of 12 launched CUDA graphs is not recorded"
    assert groups(lost) == {"copies", UNRECORDED}


def launching() -> Events:
    """Plain launches, each with the driver's call within it, after the capture of a graph."""
    host = Host(Recording())
    host.call("cudaStreamBeginCapture", US)
    for _ in range(200):
        host.call("cudaLaunchKernel", 4 * US)
    host.call("cudaStreamEndCapture", US)
    for _ in range(12):
        with host.range("step"):
            for _ in range(10):
                host.recording.call("cuLaunchKernel", host.now + US, host.now + 2 * US, host.thread)
                host.launch("work(float*)", 20 * US)
            host.copy(2 * US, 64, source="device", target="pageable")
    return host.recording.events()


def test_launches_without_a_kernel_are_lost_work() -> None:
    events = launching()
    assert not lost_work(events)
    kernels = events.kernels
    lost = replace(events, kernels=Kernels(*(column[::4] for column in astuple(kernels))))
    assert lost_work(lost) == "the GPU work of 90 of 120 launched kernels is not recorded"
    assert not lost_graphs(lost)
    assert UNRECORDED in groups(lost)
    assert causes.findings(lost, shipped_rules()) == ()
    (note,) = [note for note in _notes(lost) if "launched kernels" in note]
    assert "cuda-graph-trace" not in note
    unknown = np.full_like(kernels.call, -1)
    assert not lost_work(replace(events, kernels=replace(kernels, call=unknown)))


def test_the_parts_still_sum_to_the_step() -> None:
    (steps,) = steady_steps(events := without_graphs(replaying()))
    parts = step_parts(events, steps)
    assert np.sum([part.times for part in parts.parts], axis=0) == pytest.approx(parts.wall)


def test_work_of_unknown_calls_may_be_that_of_the_graphs() -> None:
    events = replaying()
    unknown = replace(events.graphs, call=np.full_like(events.graphs.call, -1))
    assert not lost_work(replace(events, graphs=unknown))


def test_no_cause_is_given_for_time_of_lost_work() -> None:
    events = without_graphs(replaying())
    assert causes.findings(replaying(), shipped_rules())
    assert causes.findings(events, shipped_rules()) == ()
    (note,) = [note for note in _notes(events) if "graphs" in note]
    assert note.endswith("record with --cuda-graph-trace=node")


def _notes(events: Events) -> list[str]:
    from profkit.application.view import notes

    return list(notes(read_application(events)))


@pytest.mark.parametrize(
    "name",
    [
        f"{file.parent.name}/{file.name.removesuffix('.sqlite')}"
        for file in sorted(story_folder("").glob("*/*.sqlite"))
    ],
)
def test_only_recordings_of_jax_with_whole_graphs_lost_work(name: str) -> None:
    events = read(story_folder("") / f"{name}.sqlite")
    assert bool(lost_work(events)) == (name in LOST)


def test_a_recording_of_jax_that_lost_its_launches_says_so(profkit_cli: Cli) -> None:
    path = story_folder("jax_dispatch") / "before.sqlite"
    shown = profkit_cli("timeline", path, "--format", "markdown").stdout
    assert "| **Not recorded: idle, or lost work** |" in shown
    assert "GPU idle" not in shown
    assert "the GPU work of 457 of 460 launched XLA modules is not recorded" in shown
    shown = profkit_cli("analyze", path, "--format", "markdown").stdout
    assert "the GPU work of 457 of 460 launched XLA modules is not recorded" in shown
    assert "waiting for the host" not in shown
    with pytest.raises(BadInput, match="GPU work of 8 of 8 launched XLA modules"):
        read_application(read(story_folder("jax_dispatch") / "after.sqlite"))
