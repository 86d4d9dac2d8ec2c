"""The answer for an application: its rows, what is found of its kernels, the plan in order."""

from __future__ import annotations

import json
import math
import re
import statistics
from functools import cache

import pytest

import profkit
from profkit.analysis.report import Report
from profkit.application.answer import Answer, answer
from profkit.application.answer_view import answer_document
from profkit.application.parts import KERNELS, step_parts
from profkit.application.picks_file import PickEntry, PicksFile, entry, identified
from profkit.application.ranking import ranking
from profkit.application.run import ApplicationRun, application
from profkit.application.score import side_of
from profkit.application.steps import steady_steps
from profkit.core.typed_file import encode
from profkit.rules.known_trial import KnownTrial
from profkit.timeline.events import Events
from profkit.trial.of_program import tried_rows
from profkit.ui.terminal import document_terminal
from tests.analysis.test_views import schema
from tests.application.synthetic import MS, US, Host, Recording
from tests.conftest import H200, story_folder
from tests.trial.simulated_program import SimulatedProgram

STORIES = ("data_parallel_exposed", "gpt_float32", "gpt_launch_bound", "pipeline_pageable")


@cache
def report() -> Report:
    return profkit.load(H200 / "sdpa_s512_math.ncu-repz")


def program(hidden: bool = False, collective: int = 0) -> Events:
    """Steps of the report's kernels; `hidden`: all but the longest run beside another kernel."""
    recording = Recording()
    host = Host(recording, now=5 * MS)
    launches = report().summary.launches
    for _ in range(10):
        with host.range("step"):
            if hidden:
                host.launch("persistent_kernel(int)", 20 * MS, stream=9)
            for launch in launches:
                time = round(launch.duration * 1e9)
                host.launch(launch.name, time, grid=launch.grid, block=launch.block)  # type: ignore[arg-type]
            if collective:
                host.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)", collective)
            host.synchronize()
    return recording.events()


def picked(events: Events) -> tuple[PickEntry, ...]:
    steps = steady_steps(events)
    return tuple(
        entry(events, pick) for pick in ranking(events, step_parts(events, steps[0]), 1.0).picks
    )


def recorded(events: Events, *, profiled: bool = True) -> ApplicationRun:
    picks = picked(events)
    found = report() if profiled else None
    picks = identified(picks, found.summary) if found else picks
    return application("train", events, events, PicksFile(explain=0.9, picks=picks), found)


def answered(events: Events) -> Answer:
    return answer(recorded(events))


@pytest.mark.parametrize("story", STORIES)
def test_the_rows_of_a_recorded_program_sum_to_its_step(story: str) -> None:
    events = side_of(story_folder(story), "before")
    run = recorded(events, profiled=False)
    result = answer(run)
    assert sum(row.share for row in result.rows) == pytest.approx(1)
    assert sum(row.seconds for row in result.rows) == pytest.approx(result.steps.seconds)
    walls = (run.process.parts.wall / 1e9).tolist()
    quartiles = statistics.quantiles(walls, method="inclusive") if len(walls) > 1 else walls * 3
    assert [result.steps.low, result.steps.high] == pytest.approx([quartiles[0], quartiles[2]])
    schema("answer").validate(json.loads(encode(result, dense=False)))
    text = document_terminal(answer_document(result, run, "run"), to_file=True)
    assert text.startswith("train on ")
    assert "Next  profkit timeline run" in text


def test_a_picked_kernel_has_its_finding_and_no_more_than_amdahl_gives() -> None:
    result = answered(program())
    rows = [row for row in result.rows if row.speedup]
    picked = [kernel for row in rows for kernel in row.kernels if kernel.speedup]
    assert any("tensor cores" in kernel.finding for kernel in picked)
    for row in rows:
        assert row.speedup
        gains = [k.speedup[2] if k.speedup else 1.0 for k in row.kernels if k.finding]
        assert min(gains) <= row.speedup[2] <= max(gains)
    for row in rows:
        assert 1 <= row.gain <= row.high
    for item in result.plan:
        assert 1 <= item.low <= item.likely <= item.high
    assert not [item for item in result.plan if item.part == "GEMM, FP32"]  # as a cause of the step
    assert [item for item in result.plan if item.switches[:1] == ("tf32",)]
    assert 1 < result.together <= result.together_high
    assert result.together >= result.plan[0].likely
    assert result.together_high >= max(item.high for item in result.plan)
    likely = [item.likely for item in result.plan]
    assert likely == sorted(likely, reverse=True)
    assert result.together <= max(*likely, math.prod(likely)) * (1 + 1e-9)


def test_what_runs_beside_a_longer_kernel_gives_nothing() -> None:
    result = answered(program(hidden=True))
    highest = [row.high for row in result.rows if row.group == KERNELS and "GEMM" in row.name]
    assert highest
    assert all(high == pytest.approx(1, abs=0.01) for high in highest)
    assert not [item for item in result.plan if "GEMM" in item.part]


def test_a_kernel_that_was_not_identified_has_a_reason_and_no_finding() -> None:
    events = program()
    flash = profkit.load(H200 / "sdpa_s512_flash.ncu-repz")
    picks = identified(picked(events), flash.summary)
    result = answer(
        application("train", events, events, PicksFile(explain=0.9, picks=picks), flash)
    )
    kernels = [kernel for row in result.rows for kernel in row.kernels if kernel.note]
    assert len(kernels) == len(picks)
    for kernel in kernels:
        assert kernel.note == "not identified: ncu met no launch of this name"
        assert not kernel.finding
        assert kernel.speedup is None


def test_a_launch_with_another_grid_is_not_the_picked_one() -> None:
    picks = picked(program())
    (first, *_) = picks
    other = PickEntry(
        kernel=first.kernel, grid=(7, 1, 1), block=first.block, device=0, share=first.share
    )
    (row,) = identified([other], report().summary)
    assert row.launch is None
    assert "not identified: ncu met no launch of this grid and block" in row.reason


def test_kernels_of_one_name_are_told_apart_by_their_grids() -> None:
    recording = Recording()
    host = Host(recording, now=5 * MS)
    name = "void cudnn::bn_bw_kernel_new<float, float, float2, (int)512, (bool)1>(T2, T2, T2)"
    for _ in range(10):
        with host.range("step"):
            for blocks in (64, 25088):
                host.launch(name, 500 * US, grid=(blocks, 1, 1))
            host.launch("void cudnn::bn_bw_kernel_new<double>(T2)", 100 * US)
            host.synchronize()
    run = recorded(recording.events(), profiled=False)
    text = document_terminal(answer_document(answer(run), run), to_file=True)
    kernels = [line for line in text.splitlines() if line.startswith("  bn_bw")]
    assert len(kernels) == 2
    assert {line.split("  ")[1].split()[-1] for line in kernels} == {"64", "25088"}


def test_communication_comes_with_what_bytes_would_say() -> None:
    result = answered(program(collective=900 * US))
    (row,) = [row for row in result.rows if row.group == "communication"]
    assert row.name == "all-reduce"
    assert row.note.startswith("bus bandwidth unknown: ")
    assert "trace nvtx" in row.note


def test_a_proven_fix_leads_with_what_was_measured() -> None:
    run = recorded(program())
    program_tried = SimulatedProgram(gains={"tf32": 1.4})
    trial = program_tried.trial("tf32")
    run = run.with_trial(KnownTrial(tried_rows(trial), "python train.py"))
    proven = answer(run)
    first = proven.plan[0]
    assert first.switches[:1] == ("tf32",)
    assert first.tried
    assert first.tried.speedup == pytest.approx(1.4, rel=0.02)
    text = document_terminal(answer_document(proven, run, "run"), to_file=True)
    assert re.search(r"1\. +proven 1\.\d+x \[1\.\d+, 1\.\d+\] with tf32 ", text)
    assert "to keep it: torch." in text
