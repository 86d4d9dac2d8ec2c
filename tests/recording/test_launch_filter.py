"""The launches that ncu's filter takes are those of the picks, as ncu documents it."""

from __future__ import annotations

import re
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from profkit.application.parts import step_parts
from profkit.application.ranking import ranking
from profkit.application.score import side_of
from profkit.application.steps import steady_steps
from profkit.recording.launch_filter import LaunchFilter, by_invocation, in_sequence, own_device
from profkit.timeline.events import Events
from tests.application.synthetic import MS, US, Host, Recording
from tests.conftest import story_folder

NAMES = (
    "void at::native::elementwise_kernel<4, Add>(int, Add)",
    "void at::native::elementwise_kernel<4, Mul>(int, Mul)",
    "sm90_gemm_(tile)128",
    "flash_fwd",
)


def taken(events: Events, selection: LaunchFilter | None) -> list[tuple[int, int]]:
    """What ncu takes: names and configurations."""
    assert selection
    kernels, invocations = events.kernels, Counter[int]()
    matching = []
    for row in range(len(kernels)):
        name = int(kernels.name[row])
        invocations[name] += 1
        numbered = not selection.invocations or invocations[name] in selection.invocations
        if re.search(selection.kernel, events.kernel_names[name].name) and numbered:
            matching.append((name, int(kernels.configuration[row])))
    return matching[selection.skip or 0 :][: selection.launches]


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
    wanted = {(pick.name, pick.configuration) for pick in picks}
    numbered, sequence = by_invocation(events, found, picks), in_sequence(events, found, picks)
    assert set(taken(events, numbered)) >= wanted
    assert set(taken(events, sequence)) >= wanted
    assert len(taken(events, sequence)) == sequence.launches <= len(pattern) + 2
    assert numbered
    assert len(taken(events, numbered)) == numbered.launches


def test_picks_are_not_directly_behind_one_another() -> None:
    recording = Recording()
    host = Host(recording, now=MS)
    pattern = [0, 0, 0, 1, 0, 2, 0, 3]
    for _ in range(8):
        with host.range("step"):
            for name in pattern:
                host.launch(NAMES[name], 50 * US)
            host.synchronize()
    events = recording.events()
    found = steady_steps(events, "step")
    picks = ranking(events, step_parts(events, found[0])).picks
    assert len(picks) > 2
    selection = by_invocation(events, found, picks)
    assert selection
    counts = Counter[int]()
    met, is_behind = set(), False
    for name in pattern * 8:
        counts[name] += 1
        is_profiled = counts[name] in selection.invocations
        if is_profiled and not is_behind:
            met.add(name)
        is_behind = is_profiled
    assert {pick.name for pick in picks} <= met


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
    assert [own_device(events, each.process) for each in found] == [0, 1]


def test_a_kernel_that_was_missed_begins_its_own_recording() -> None:
    recording = Recording()
    host = Host(recording, now=MS)
    for _ in range(6):
        with host.range("step"):
            for name, grid in ((NAMES[0], 1), (NAMES[2], 1), (NAMES[2], 4), (NAMES[2], 2)):
                host.launch(name, 50 * US, grid=(grid, 1, 1))
            host.synchronize()
    events = recording.events()
    found = steady_steps(events)
    for pick in ranking(events, step_parts(events, found[0])).picks:
        launches = taken(events, in_sequence(events, found, [pick]))
        assert launches[0] == (pick.name, pick.configuration)


def test_the_recorded_step_of_a_gpt_needs_few_launches() -> None:
    events = side_of(story_folder("gpt_optimizer"), "before")
    found = steady_steps(events)
    picks = ranking(events, step_parts(events, found[0])).picks
    selection = by_invocation(events, found, picks)
    assert set(taken(events, selection)) >= {(pick.name, pick.configuration) for pick in picks}
    assert selection
    assert selection.launches <= 2 * len(picks)
