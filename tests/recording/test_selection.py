"""Which launches a profile takes, and what it refuses before ncu starts."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import profkit
from profkit.capture.ncu import NcuOptions
from profkit.core.errors import UsageError
from profkit.recording.selection import (
    check_autotuner,
    check_cost,
    choose,
    cost,
    passes,
    selected,
)
from profkit.timeline.events import Events, Indices
from tests.conftest import H200, h200
from tests.timeline import building
from tests.timeline.building import Kernel, Range, call, timeline

FULL = NcuOptions()


def kernel(name: str, grid: int = 1, duration: float = 1e-3) -> Kernel:
    return building.kernel(0, duration * 1e6, name=name, grid=(grid, 1, 1))


def recorded(kernels: Sequence[Kernel]) -> tuple[Events, Indices]:
    """A timeline of kernels, and all of them."""
    return timeline(kernels), np.arange(len(kernels), dtype=np.int32)


def test_filters_select_as_ncu_does() -> None:
    names = ("gemm", "softmax", "gemm", "gemm")
    made = timeline(
        [
            building.kernel(10 * n + 5, 10 * n + 9, name=name, launch=call(10 * n, 10 * n + 2))
            for n, name in enumerate(names)
        ],
        ranges=[Range("step", 0, 5)],
    )

    def picked(options: NcuOptions) -> list[int] | None:
        indices = selected(made, options)
        return None if indices is None else indices.tolist()

    assert picked(FULL) == [0, 1, 2, 3]
    assert picked(replace(FULL, kernel="ge", launch_skip=1, launch_count=1)) == [2]
    assert picked(replace(FULL, nvtx="step/")) == [0]
    for unknown in (
        NcuOptions(replay_mode="range"), NcuOptions(graph_profiling="graph"), NcuOptions(kernel="(")
    ):  # fmt: skip
        assert picked(unknown) is None


def test_passes_of_sets_and_additions() -> None:
    assert passes(FULL) == 38
    assert passes(NcuOptions("scout")) == passes(NcuOptions("auto")) == 1
    assert passes(NcuOptions("scout", flop=True)) == 5
    assert passes(NcuOptions("lean", sampling=True)) == passes(NcuOptions("lean")) + 7


def test_the_cost_is_that_of_recorded_runs() -> None:
    for launches, seconds in ((1, 10.8), (4, 19.5), (19, 48.6)):  # on an H200, with the full set
        assert cost([1e-4] * launches, 38).seconds == pytest.approx(seconds, rel=0.25)


def test_passes_of_a_file_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "mine.txt"
    file.write_text("SpeedOfLight\n")
    assert passes(NcuOptions(str(file))) == 10  # ncu 2025.3 on an H200


def test_too_long_a_profile_is_refused_with_what_to_pick() -> None:
    kernels = [kernel("gemm", duration=2e-3)] * 900 + [kernel("copy", duration=1e-4)] * 100
    with pytest.raises(UsageError) as refused:
        check_cost(*recorded(kernels), FULL, 300)
    assert "1,000 launches x 38 passes, about 49 min (limit: 5 min)" in refused.value.message
    remedy = refused.value.remedy
    assert remedy.startswith("use --kernel gemm (99.4% of the time), --launch-count ")
    count = int(re.search(r"--launch-count (\d+)", remedy)[1])  # type: ignore[index]
    check_cost(*recorded(kernels[-count:]), FULL, 300)
    assert "--set lean, --set auto, or raise --max-time" in remedy
    check_cost(*recorded(kernels), NcuOptions("scout"), 300)
    check_cost(*recorded(kernels), NcuOptions("auto"), 300)
    check_cost(*recorded(kernels), FULL, math.inf)


def is_refused(kernels: Sequence[Kernel]) -> bool:
    try:
        check_autotuner(*recorded(kernels), FULL)
    except UsageError:
        return True
    return False


def test_an_autotuner_is_refused_unless_launches_are_picked() -> None:
    tuned = [kernel(f"gemm_{number}", grid=number) for number in range(30)]
    tuned += [kernel("gemm_7", grid=7)] * 20
    with pytest.raises(UsageError, match="an autotuner runs in the profiled region") as refused:
        check_autotuner(*recorded(tuned), FULL)
    assert "warm up outside it" in refused.value.remedy
    assert "29 of 50 launches" in refused.value.message
    for picked in (NcuOptions(kernel="gemm"), NcuOptions(nvtx="step"), NcuOptions(launch_count=9)):
        check_autotuner(*recorded(tuned), picked)


def test_repeated_layers_are_no_autotuner() -> None:
    layers = [kernel(f"layer_{number % 30}") for number in range(120)]
    heads = [kernel(f"head_{number}") for number in range(25)]
    assert not is_refused([*layers, *heads])
    assert not is_refused([kernel(f"k{number}") for number in range(19)])
    assert is_refused([kernel(f"k{number}") for number in range(30)])


def test_a_search_that_times_each_configuration_is_refused() -> None:
    """As Triton's autotuner does, with a kernel between that clears the cache."""
    tried = [
        each
        for grid in (4096, 2048, 1024, 512)
        for _ in range(20)
        for each in (kernel("fill", grid=132), kernel("scale", grid=grid))
    ]
    best = [kernel("scale", grid=1024)]
    with pytest.raises(UsageError, match="scale ran in one configuration after the other"):
        check_autotuner(*recorded([*tried, *best]), FULL)
    assert not is_refused(tried)  # a sweep over sizes
    assert not is_refused([*tried, *best, *tried])  # a program whose phases repeat
    assert not is_refused(tried[1::40] + best)  # each once


def test_auto_picks_the_kernels_that_take_the_time() -> None:
    summary = h200("known").summary
    choice = choose(summary, 11, math.inf)
    times: dict[str, float] = {}
    for group in summary.groups:
        times[group.name] = times.get(group.name, 0.0) + group.share
    chosen = {name: share for name, share in times.items() if re.search(choice.kernel, name)}
    assert sum(chosen.values()) >= 0.9
    assert sum(chosen.values()) - min(chosen.values()) < 0.9
    of_these = [group for group in summary.groups if group.name in chosen]
    assert choice.launches == sum(group.count for group in of_these)
    assert f"of {len(summary.groups)} kernels, 9" in choice.text


def test_auto_takes_as_many_launches_as_fit() -> None:
    summary = profkit.load(H200 / "known.ncu-repz").summary
    choice = choose(summary, 11, 3.0)
    assert choice.launches == 3
    assert "the first 3 of their " in choice.text
    assert choose(summary, 11, 0.001).launches == 1
