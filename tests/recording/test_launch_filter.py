"""The launches that ncu's filter takes are those of the picks, as ncu documents it."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from profkit.application.parts import step_parts
from profkit.application.ranking import ranking
from profkit.application.score import side_of
from profkit.application.steps import steady_steps
from profkit.recording.launch_filter import LaunchFilter, launch_filter
from profkit.timeline.events import Events
from tests.application.synthetic import MS, US, Host, Recording
from tests.conftest import story_folder

NAMES = (
    "void at::native::elementwise_kernel<4, Add>(int, Add)",
    "void at::native::elementwise_kernel<4, Mul>(int, Mul)",
    "sm90_gemm_(tile)128",
    "flash_fwd",
)


def taken(events: Events, selection: LaunchFilter) -> list[tuple[int, int, int]]:
    """What ncu takes: name, configuration and number among launches that have both."""
    _, _, operator, name, number = selection.kernel_id.split(":")
    assert operator == "regex"
    counts: Counter[tuple[int, int]] = Counter()
    launches = []
    for row in range(len(events.kernels)):
        stream = events.streams[events.kernels.stream[row]]
        key = int(events.kernels.name[row]), int(events.kernels.configuration[row])
        counts[key] += 1
        if selection.device not in {None, stream.device}:
            continue
        if re.search(name, events.kernel_names[key[0]].name) and re.fullmatch(
            number, str(counts[key])
        ):
            launches.append((*key, counts[key]))
    return launches[: selection.launches]


@settings(deadline=None, max_examples=25)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(5, 80)),
        min_size=1, max_size=12,
    ),
    st.integers(2, 12),
    st.integers(1, 4),
)  # fmt: skip
def test_every_pick_is_taken_in_a_steady_step(
    pattern: list[tuple[int, int, int]], steps: int, slow: int
) -> None:
    recording = Recording()
    host = Host(recording, now=MS)
    for _ in range(slow):
        host.launch("warm_up", 3 * MS)
    for _ in range(steps):
        with host.range("step"):
            for name, grid, time in pattern:
                host.launch(NAMES[name], time * US, grid=(grid, 1, 1))
            host.synchronize()
    events = recording.events()
    found = steady_steps(events, "step")
    picks = ranking(events, step_parts(events, found[0])).picks
    selection = launch_filter(events, found, picks)
    launches = taken(events, selection)
    groups = {(name, shape) for name, shape, _ in launches}
    assert groups >= {(pick.name, pick.configuration) for pick in picks}
    assert len(launches) == selection.launches
    per_step = Counter((name, grid) for name, grid, _ in pattern)
    assert len(launches) <= len(per_step) * max(per_step.values())


def test_ranks_with_a_gpu_each_are_told_apart_by_it() -> None:
    recording = Recording()
    for rank in range(2):
        host = Host(recording, process=rank + 1, device=rank, number=100 + rank, now=MS)
        for _ in range(6):
            with host.range("step"):
                host.launch(NAMES[2], 50 * US)
                host.synchronize()
    events = recording.events()
    found = steady_steps(events)
    picks = ranking(events, step_parts(events, found[0])).picks
    assert launch_filter(events, found, picks).device == 0


def test_the_recorded_step_of_a_gpt_needs_few_launches() -> None:
    events = side_of(story_folder("gpt_optimizer"), "before")
    found = steady_steps(events)
    picks = ranking(events, step_parts(events, found[0])).picks
    selection = launch_filter(events, found, picks)
    names = {events.kernel_names[pick.name].name for pick in picks}
    assert selection.launches <= 4 * len(picks)
    expression = selection.kernel_id.split(":")[3]
    assert all(re.search(expression, name) for name in names)
    assert np.isfinite(selection.reached)
