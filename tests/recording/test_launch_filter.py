"""The launches that ncu's filter takes are those of the picks, as ncu documents it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from profkit.application.parts import step_parts
from profkit.application.ranking import Pick, ranking
from profkit.application.score import side_of
from profkit.application.steps import Steps, steady_steps
from profkit.recording.launch_filter import LaunchFilter, Search, own_device
from profkit.timeline.events import Events
from tests.application.synthetic import MS, US, Host, Recording
from tests.conftest import story_folder

NAMES = (
    "void at::native::elementwise_kernel<4, Add>(int, Add)",
    "void at::native::elementwise_kernel<4, Mul>(int, Mul)",
    "sm90_gemm_(tile)128",
    "flash_fwd",
)


def launch_filter(
    events: Events, steps: Sequence[Steps], picks: Sequence[Pick]
) -> LaunchFilter | None:
    return Search(events, steps, picks[0].process).filter(picks)


def taken(events: Events, selection: LaunchFilter | None) -> list[tuple[int, int]]:
    """What ncu 2025.3 takes: names and configurations. A matching launch by an extended call that
    comes after one by a plain call is passed over."""
    assert selection
    kernels, invocations, is_plain = events.kernels, Counter[int](), False
    matching = []
    for row in range(len(kernels)):
        name = int(kernels.name[row])
        if not re.search(selection.kernel, events.kernel_names[name].name):
            continue
        is_extended = "Ex" in events.call_names[events.calls.name[kernels.call[row]]]
        if not (is_extended and is_plain):
            invocations[name] += 1
            if invocations[name] in selection.invocations:
                matching.append((name, int(kernels.configuration[row])))
        is_plain = not is_extended
    return matching[: selection.launches]


CALLS = dict.fromkeys(NAMES[2:], "cuLaunchKernelEx")


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(5, 80)),
        min_size=1, max_size=12,
    ),
    st.integers(2, 12),
    st.integers(1, 4),
    st.booleans(),
)  # fmt: skip
def test_every_pick_that_ncu_sees_is_taken(
    pattern: list[tuple[int, int, int]], steps: int, slow: int, extended: bool
) -> None:
    recording = Recording()
    host = Host(recording, now=MS)
    for _ in range(slow):
        host.launch("warm_up", 3 * MS)
    for _ in range(steps):
        with host.range("step"):
            for index, grid, time in pattern:
                name = NAMES[index]
                call = CALLS.get(name, "cudaLaunchKernel") if extended else "cudaLaunchKernel"
                host.launch(name, time * US, grid=(grid, 1, 1), by=call)
            host.synchronize()
    events = recording.events()
    found = steady_steps(events, "step")
    picks = ranking(events, step_parts(events, found[0])).picks
    wanted = {(pick.name, pick.configuration) for pick in picks}
    selection = launch_filter(events, found, picks)
    assert selection
    met = set(taken(events, selection))
    assert len(taken(events, selection)) == selection.launches
    assert extended or met >= wanted
    plain = {pair for pair in wanted if events.kernel_names[pair[0]].name not in CALLS}
    assert met >= plain
    if hidden := [pick for pick in picks if (pick.name, pick.configuration) not in met]:
        again = launch_filter(events, found, hidden)  # alone they are seen
        assert set(taken(events, again)) >= wanted - met


def test_a_function_in_front_is_passed_over_in_place_of_a_pick() -> None:
    recording = Recording()
    host = Host(recording, now=MS)
    for _ in range(8):
        with host.range("step"):
            host.launch(NAMES[0], 500 * US)
            host.launch("gemm_with_bias", 5 * US, by="cuLaunchKernelEx")
            host.launch(NAMES[2], 500 * US, by="cuLaunchKernelEx")
            host.synchronize()
    events = recording.events()
    found = steady_steps(events, "step")
    picks = ranking(events, step_parts(events, found[0])).picks
    selection = launch_filter(events, found, picks)
    assert selection
    assert "gemm_with_bias" in selection.kernel
    names = {events.kernel_names[name].name for name, _ in taken(events, selection)}
    assert names >= {NAMES[0], NAMES[2]}


def test_a_kernel_that_a_compiler_launches_is_no_extended_launch() -> None:
    """cuDNN's kernel that prepares another: both by cudaLaunchKernelExC, the first is seen after
    any launch, and the second not behind it, by a report of a ResNet-50 (H100, ncu 2025.3.1)."""
    prepare = "void cask::init_workspace_kernel<wgrad::Params>(T1, bool)"
    recording = Recording()
    host = Host(recording, now=MS)
    for _ in range(8):
        with host.range("step"):
            host.launch(NAMES[0], 500 * US)
            host.launch(prepare, 5 * US, by="cudaLaunchKernelExC")
            host.launch(NAMES[2], 500 * US, by="cudaLaunchKernelExC")
            host.synchronize()
    events = recording.events()
    found = steady_steps(events, "step")
    picks = ranking(events, step_parts(events, found[0])).picks
    search = Search(events, found, picks[0].process)
    filters = {pick.name: search.filter([pick]) for pick in picks}
    assert all(filters.values())  # alone each is seen
    (plain,) = {pick.name for pick in picks if events.kernel_names[pick.name].name == NAMES[0]}
    selection = search.filter(picks)
    assert selection
    assert {name for name, _ in selection.groups} == {plain}
    assert "init_workspace" not in selection.kernel


def test_a_pick_that_takes_many_launches_more_is_left_out() -> None:
    """A number more is a launch more of each function: two shapes at different numbers of theirs
    need a second one, for six launches."""
    recording = Recording()
    host = Host(recording, now=MS)
    rare = {(3, 4), (5, 5)}
    for step in range(8):
        with host.range("step"):
            for number in range(6):
                grid = (7 if (step, number) in rare else 1, 1, 1)
                host.launch(f"void kernel_{number}(int)", 500 * US, grid=grid)
            host.synchronize()
    events = recording.events()
    kernels = events.kernels
    groups = dict.fromkeys(zip(kernels.name.tolist(), kernels.configuration.tolist(), strict=True))
    usual = [group for group in groups if events.configurations[group[1]].grid[0] == 1]
    first, second = sorted(set(groups) - set(usual))
    pick = {group: Pick(1, 0, *group, 0, 0.1, 0, 0, ()) for group in groups}
    search = Search(events, steady_steps(events, "step"), 1)
    selection, left_out = search.fitting(
        [pick[first], *map(pick.__getitem__, usual[:4]), pick[second]], lambda _: True
    )
    assert selection
    assert selection.groups == {first, *usual[:4]}
    assert selection.invocations[0] == 4
    assert left_out == (pick[second],)
    selection, left_out = search.fitting(
        list(map(pick.__getitem__, usual)), lambda tried: tried.launches <= 3
    )
    assert selection
    assert selection.groups == set(usual[:3])
    assert list(left_out) == [pick[group] for group in usual[3:]]


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


def test_the_recorded_step_of_a_gpt_needs_few_launches() -> None:
    events = side_of(story_folder("gpt_optimizer"), "before")
    found = steady_steps(events)
    picks = ranking(events, step_parts(events, found[0])).picks
    selection = launch_filter(events, found, picks)
    wanted = {(pick.name, pick.configuration) for pick in picks}
    assert len(wanted & set(taken(events, selection))) >= 0.8 * len(wanted)
    assert selection
    assert selection.launches <= 2 * len(picks)
