"""What `profkit timeline` says first: what to fix, what the GPU waits for, and what is copied."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from profkit.application.application import application_result, read_application
from profkit.application.causes import findings, quantities
from profkit.application.parts import GAPS
from profkit.application.view import application_document
from profkit.core.errors import BadInput
from profkit.core.typed_file import encode
from profkit.rules.finding_text import item_gain, single
from profkit.rules.rule_file import shipped_rules
from profkit.timeline.events import Events
from profkit.timeline.reader import read
from profkit.ui.terminal import document_terminal
from tests.application.synthetic import US, Host, Recording
from tests.conftest import story_folder


def shown(events: Events) -> str:
    """The terminal's text, a fact a line."""
    text = document_terminal(application_document(read_application(events), "x"), to_file=True)
    return re.sub(r"\n {10,}", " ", text)


def copying(copies: int, time: int) -> Events:
    """A loop with many copies and a kernel of so many ns."""
    host = Host(Recording())
    for _ in range(8):
        with host.range("step"):
            host.launch("work(float *)", time)
            for _ in range(copies):
                host.copy(1 * US, 64, source="pageable", target="device")
            host.synchronize()
    return host.recording.events()


@pytest.mark.parametrize("name", ["loader_pageable", "gpt_launch_bound", "pipeline_allocation"])
def test_it_is_that_of_the_checklist(name: str) -> None:
    events = read(story_folder(name) / "before.sqlite")
    best = findings(events, shipped_rules())[0]
    words = f"Fix first {item_gain(single(best))} {best.title}"
    assert words in " ".join(shown(events).split())
    document = json.loads(encode(application_result(read_application(events), "x")))
    assert document["checklist"][0]["rule"] == best.rule.name


def test_a_step_that_nsys_makes_longer_says_so() -> None:
    """Measured without it: 10.14 ms of 14.89 ms, and as recorded."""
    slowed, same = (
        shown(read(story_folder(name) / "before.sqlite"))
        for name in ("gpt_launch_bound", "data_parallel_exposed")
    )
    assert re.search(r"Without nsys +mostly shorter: nsys slows the host down; a step took", slowed)
    assert "Without nsys" not in same


def test_causes_of_idle_time_and_copies_are_named() -> None:
    text = shown(read(story_folder("loader_results") / "before.sqlite"))
    assert "of the step: host code without CUDA calls 5.1%; in copy calls 4.4%\n" in text
    assert "66.9% of the step: device to host, pageable 65.9%, 1 per step" in text


def test_many_copies_are_named_though_they_are_short() -> None:
    text = shown(copying(25, 20_000 * US))
    assert re.search(r"Exposed copies +0\.\d% of the step: host to device.* 25 per step\n", text)


@pytest.mark.parametrize("longer", [1, 6])
def test_steps_that_make_the_mean_longer_than_the_median_are_counted(longer: int) -> None:
    host = Host(Recording())
    for step in range(10):
        with host.range("step"):
            host.launch("work(float *)", 500 * US * (longer if step in {5, 8} else 1))
            host.synchronize()
    text = " ".join(shown(host.recording.events()).split())
    assert bool(re.search(r"! 2 of \d+ steps took over 1.5 times the median", text)) == (longer > 1)


def test_a_cause_in_a_few_steps_says_so() -> None:
    host = Host(Recording())
    for step in range(12):
        with host.range("step"):
            for _ in range(4):
                host.launch("work(float *)", 200 * US)
            host.synchronize()
            if step in {6, 9}:
                host.compute(3_000 * US)
    text = shown(host.recording.events())
    assert re.search(r"GPU idle.*host code without CUDA calls \d+\.\d%, in 2 of \d+ steps", text)


def test_the_busy_share_is_of_all_steps_as_the_idle_share_is() -> None:
    """Of every other step in which the host computes, not only of those of about the median."""
    host = Host(Recording())
    for step in range(12):
        with host.range("step"):
            host.launch("work(float *)", 200 * US)
            host.synchronize()
            host.compute((900 if step % 3 == 0 else 100) * US)
    application = read_application(host.recording.events())
    parts = application.processes[0].parts
    idle = sum(map(parts.share, parts.group(GAPS)))
    steps = [each.parts.steps for each in application.processes]
    assert quantities(application.events, steps)["gpu_busy_share"] == pytest.approx(1 - idle)


def test_times_of_a_short_step_have_digits() -> None:
    """0.000 ms beside 2.0% was no time."""
    text = shown(copying(1, 4 * US))
    assert "µs/step" in text
    assert not re.search(r" 0\.000 ", text)


def test_a_kernel_that_is_not_there_is_failed_tracing(tmp_path: Path) -> None:
    path = tmp_path / "failed.sqlite"
    with closing(sqlite3.connect(path)) as database:
        database.executescript("""
            CREATE TABLE StringIds (id, value);
            INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'), (2, 'cudaMemcpy_v3020');
            CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId);
            INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (5, 9, 1, 1, 1), (10, 12, 1, 2, 2);
            CREATE TABLE DIAGNOSTIC_EVENT (severity, text);
            INSERT INTO DIAGNOSTIC_EVENT VALUES (1, 'Loaded CUDA'), (2, 'No NVTX events'),
                (2, 'No CUDA events collected. Does the process use CUDA?'),
                (2, 'Not all CUDA events might have been collected.'), (3, 'CUDA driver is old.');
        """)
    with pytest.raises(BadInput) as refused:
        read_application(read(path))
    message = (
        "tracing failed: launches, copies and memsets called: 2, recorded on the GPU: 0 (nsys: "
        "CUDA driver is old. Not all CUDA events might have been collected.)"
    )
    assert str(refused.value).startswith(f"{path}: no GPU work in this timeline: {message}; ")
    assert refused.value.remedy.startswith("record again with an nsys as new as the driver")


def test_launches_without_kernels_beside_copies_are_failed_tracing() -> None:
    host = Host(Recording())
    for _ in range(4):
        host.call("cudaLaunchKernel", 3 * US)
        host.copy(2 * US, 64, source="pageable", target="device")
    assert "tracing failed: launches called: 4, recorded on the GPU: 0" in shown(
        host.recording.events()
    ).replace("\n", " ")


def test_a_busy_gpu_has_no_figure_that_nothing_measured() -> None:
    text = shown(read(story_folder("pipeline_streams") / "after.sqlite"))
    assert re.search(r"no fix found outside of kernels, which take 100\.0%: profile these", text)
    assert "Fix first" not in text


_OF_IDLE_TIME = {"launch_bound", "synchronization", "data_loader", "allocation"}


@pytest.mark.parametrize("name", ["pipeline_synchronization", "diffusion_guidance"])
def test_a_fix_of_idle_time_gives_no_more_than_the_idle_share_shown(name: str) -> None:
    application = read_application(read(story_folder(name) / "before.sqlite"))
    parts = application.processes[0].parts
    busy = 1 - sum(map(parts.share, parts.group(GAPS)))
    found = [each for each in application.findings if each.rule.category in _OF_IDLE_TIME]
    assert found
    assert all(each.speedup < 1 / busy for each in found)
    assert all(each.range[1] <= 1.001 / busy for each in found)
    assert all(each.assumes for each in found if each.rule.name == "launch_bound")


def test_a_range_from_below_a_promise_has_no_central_figure() -> None:
    """As of kernels: on one screen with `4.0x [2.5, 5.8]`."""
    text = shown(read(story_folder("loader_results") / "before.sqlite"))
    assert re.search(r"^Fix first +\d\.\dx \[\d\.\d, \d\.\d\]  ", text, re.MULTILINE)
    assert re.search(r"^then +1\.0\d to 1\.\d\dx  ", text, re.MULTILINE)


def test_figures_of_further_fixes_say_what_they_are_of() -> None:
    several, one = (
        shown(read(story_folder(name) / "before.sqlite"))
        for name in ("loader_results", "pipeline_synchronization")
    )
    of = r"speedup is of the step without the profiler, about [\d.]+ ms"
    assert re.search(rf"each {of}, and without the other\s+fixes", several)
    assert re.search(rf"the {of}\n", one)


def test_an_idle_gpu_is_not_called_busy() -> None:
    """It waits for another GPU, of which this process's calls say nothing."""
    host = Host(Recording())
    for _ in range(8):
        with host.range("step"):
            for number in range(10):
                host.launch("stage()", 20 * US, after=host.now + 800 * US if number == 5 else 0)
            host.synchronize()
    text = " ".join(shown(host.recording.events()).split())
    assert re.search(
        r"no fix found; the GPU is idle for 7\d\.\d% of a median step, about 9\d\d", text
    )
    assert "profile these" not in text
