"""`profile --app` against stand-ins: nsys hands out made-up timelines, ncu filters launches."""

from __future__ import annotations

import json
import re
import resource
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import UNSET

import profkit
from profkit.application.answer import answer
from profkit.application.picks_file import NODES, PICKS, PicksFile
from profkit.application.run import application as analyzed_run
from profkit.application.run import read_run
from profkit.capture.ncu import NcuOptions
from profkit.core.errors import TargetFailed
from profkit.core.typed_file import read_file
from profkit.recording import application
from profkit.recording.application import profile_application
from profkit.recording.application_plan import PLAN, ApplicationPlan
from profkit.recording.launch_filter import Search
from profkit.report.framing import check
from profkit.report.messages import decode
from profkit.report.messages import prefixed as to_prefixed
from profkit.report.summary import ReportSummary
from profkit.runs.run import verify
from tests import wire
from tests.analysis.test_views import schema
from tests.application.export import write_export
from tests.application.synthetic import MS, US, Host, Recording
from tests.conftest import ROOT, apart, moments, plain_bytes, scratch, written_once
from tests.recording.test_profile import Bench, plan, wait_for

NAP = 0.1
"""Seconds that ncu takes for a launch."""
LEFT_OUT = {3, 5, 7, 8, 9}
"""Programs of libraries in the report, of 2 to 14 MB, that are left out with their kernels."""
LARGEST = 1 << 20
"""Bytes of a program that is kept: the code of others isn't known."""


BARE = ("gpu__time_duration", "launch__", "device__attribute_")
"""How the names of metrics begin that a bare report has."""


def blocks(data: bytes) -> Iterator[tuple[wire.Message, bytes]]:
    """The blocks of a report: their headers and bytes."""
    start = 8 + int.from_bytes(data[4:8], "little")
    while start < len(data):
        begin = start + 4 + int.from_bytes(data[start : start + 4], "little")
        header = wire.decode(data[start + 4 : begin])
        end = begin + wire.number(header, 5)
        yield header, data[start:end]
        start = end


def head(data: bytes) -> bytes:
    """What is in front of a report's blocks."""
    return data[: 8 + int.from_bytes(data[4:8], "little")]


@cache
def small_report() -> Path:
    """A recorded report with 9 of its 14 launches, in a fifth of its bytes: blocks are left out."""
    data = plain_bytes("sdpa_s512_math")
    parts, sources = [head(data)], 0
    for header, block in blocks(data):
        size = wire.number(header, 5)
        if wire.number(header, 1):
            sources += 1
            if size > LARGEST:
                continue
        if sources not in LEFT_OUT or not size:
            parts.append(block)

    def write(part: Path) -> None:
        part.mkdir()
        (part / "small.ncu-rep").write_bytes(b"".join(parts))

    return written_once(scratch() / "small", write) / "small.ncu-rep"


@cache
def bare_report() -> Path:
    """The same launches with their durations alone, which takes a sixth of the time to analyze."""
    data = small_report().read_bytes()
    names = check(small_report()).names
    parts = [head(data)]
    for _, block in blocks(data):
        message, payload = prefixed(block)
        header = decode("BlockHeader", message)
        records: list[bytes] = []
        for _ in range(header.num_sources + header.num_results):
            record, payload = prefixed(payload)
            records.append(record)
        bare = [to_prefixed(bare_launch(each, names)) for each in records[header.num_sources :]]
        header.num_sources = 0
        header.payload_size = sum(map(len, bare))
        parts += [to_prefixed(header.SerializeToString()), *bare]

    def write(part: Path) -> None:
        part.mkdir()
        (part / "bare.ncu-rep").write_bytes(b"".join(parts))

    return written_once(scratch() / "bare", write) / "bare.ncu-rep"


def bare_launch(record: bytes, names: Sequence[str]) -> bytes:
    launch = decode("ProfileResult", record)
    metrics = [
        metric
        for metric in launch.metric_results
        if names[decode("MetricHead", metric).name_id].startswith(BARE)
    ]
    del launch.metric_results[:], launch.sections[:], launch.rule_results[:]
    launch.metric_results.extend(metrics)
    encoded: bytes = launch.SerializeToString()
    return encoded


def prefixed(data: bytes) -> tuple[bytes, bytes]:
    """A message behind its length, and what follows."""
    end = 4 + int.from_bytes(data[:4], "little")
    return data[4:end], data[end:]


@cache
def launches() -> list[tuple[str, Any, Any, float]]:
    """Kernels of a recorded report: name, grid, block, duration (s)."""
    rows = summary(small_report()).launches
    return [(row.name, row.grid, row.block, row.duration) for row in rows]


def summary(report: Path) -> ReportSummary:
    """What is recorded, read apart: the vendor's reader starts threads, with which a process can't
    be forked."""
    return apart(summary_of, [report])[0]


def summary_of(report: Path) -> ReportSummary:
    return profkit.load(report).summary


def program(
    folder: Path, ranks: int = 1, devices: int = 8, graphs: str = "", *, hides: bool = False
) -> Path:
    """The timeline of a program of ten steps with those kernels; the first one takes long. What
    `hides` has one more, always behind a launch of another kind of the same name.

    `ranks` have a GPU each, of so many `devices`, and an all-reduce. With `graphs` the kernels of a
    step are a CUDA graph, recorded as a "graph" or by "node".
    """
    recording = Recording()
    hosts = [
        Host(recording, process=rank + 1, device=rank % devices, number=100 + rank, now=5 * MS)
        for rank in range(ranks)
    ]
    for step in range(10):
        for host in hosts:
            with host.range("step"):
                if graphs:
                    _graph(host, graphs)
                else:
                    for name, grid, block, duration in launches():
                        time = round(duration * 1e9) * (10 if step == 0 else 1)
                        host.launch(name, time, grid=grid, block=block)
                if hides:
                    host.launch("scale", US, grid=(5, 1, 1))
                    host.launch("scale", 9 * MS, grid=(7, 1, 1), by="cuLaunchKernelEx")
                if ranks > 1:
                    host.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)", 900 * US)
                host.synchronize()
    return write_export(recording.events(), folder / f"program{graphs}.sqlite")


def _graph(host: Host, graphs: str) -> None:
    whole = round(sum(duration for *_, duration in launches()) * 1e9)
    if graphs == "graph":
        host.launch_graph(1, whole)
        return
    if graphs == "lost":
        host.call("cudaGraphLaunch", host.launch_cost)
        host.copy(2 * US, 64, source="device", target="pageable")
        return
    stream, now = host.stream(), host.now + 5 * US
    call = host.call("cudaGraphLaunch", host.launch_cost)
    for node, (name, grid, block, duration) in enumerate(launches(), 1):
        end = now + round(duration * 1e9)
        host.recording.kernel(name, now, end, call, stream, grid, block, node)
        now = end
    host.free[7] = now


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return bench_in(tmp_path)


def bench_in(folder: Path) -> Bench:
    for name in ("ncu", "nsys"):
        shutil.copy2(ROOT / "tests" / "stand_in" / name, folder / name)
    (folder / "tmp").mkdir()
    shutil.copyfile(bare_report(), folder / "report.ncu-rep")
    return Bench(folder)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """A run of an application, for tests that only look at it."""
    bench = bench_in(tmp_path_factory.mktemp("recorded"))
    planned(bench, program(bench.folder), nap=NAP)
    bench.profile("--app", "--nvtx", "step", "--", bench.app("true"))
    return bench


def planned(bench: Bench, timeline: Path, mode: str = "good", **more: Any) -> None:
    plan(bench.folder, mode, timeline=str(timeline), launches=str(timeline), **more)


def picks(bench: Bench) -> PicksFile:
    (run,) = bench.kept()
    verify(run)
    return read_file(run / PICKS, PicksFile)


def profiled(bench: Bench) -> list[Any]:
    return list(json.loads((bench.folder / "ncu_profiled.json").read_text()))


def test_an_application_becomes_a_run_of_its_timeline_and_picked_kernels(recorded: Bench) -> None:
    file = picks(recorded)
    assert len(file.picks) > 2
    assert all(pick.launch is not None for pick in file.picks), file.picks
    (run,) = recorded.kept()
    rows = summary(run).launches
    for pick in file.picks:
        launch = rows[pick.launch or 0]
        assert (launch.name, launch.grid, launch.block) == (pick.kernel, pick.grid, pick.block)
    met = {(name, tuple(grid), tuple(block)) for name, grid, block in profiled(recorded)}
    assert met >= {(pick.kernel, pick.grid, pick.block) for pick in file.picks}
    assert len(profiled(recorded)) <= len(launches()) + 2  # of one step
    assert [file.name for file in run.glob("*.ncu-rep*")] == ["app.ncu-repz"]
    options, _, _ = recorded.seen("ncu")
    numbers = re.findall(r"\d+", options["--kernel-id"].rpartition(":")[2])
    assert min(map(int, numbers)) > 1  # none of the first, slow step


def host_bound(folder: Path, launch_cost: int, ranks: int = 1) -> Path:
    """The timeline of a program of ten steps that wait for the host."""
    recording = Recording()
    for rank in range(ranks):
        host = Host(recording, rank + 1, device=rank, number=100 + rank, launch_cost=launch_cost)
        for _ in range(10):
            with host.range("step"):
                for name, grid, block, _ in launches():
                    host.launch(name, 5 * US, grid=grid, block=block)
                host.synchronize()
    return write_export(recording.events(), folder / "slow.sqlite")


def test_the_timeline_is_analyzed_when_nothing_is_left_to_do_before_ncu(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, known = threading.Event(), Search.fitting
    analyzed_before: list[bool] = []

    def analyzed(*args: Any) -> Any:
        began.set()
        return analyzed_run(*args)

    def fitting(*args: Any) -> Any:
        analyzed_before.append(began.wait(1.0))
        return known(*args)

    planned(bench, program(bench.folder))
    for name, value in bench.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(application, "application", analyzed)
    monkeypatch.setattr(Search, "fitting", fitting)
    asked = ApplicationPlan(
        (str(bench.app("true")),), out=bench.runs, plain=True, options=NcuOptions(sections="lean")
    )
    outcome = profile_application(asked, lambda *_: None)
    assert not analyzed_before[0]
    assert began.is_set()
    assert outcome.answer == answer(outcome.run)


def test_where_the_host_limits_a_step_it_is_timed_without_a_profiler(bench: Bench) -> None:
    planned(bench, host_bound(bench.folder, 100 * MS), nap=1)
    seconds = 0.35 * 10 * len(launches()) * 100e-3  # of less than 0.3 it would not be used
    done = bench.profile("--app", "--nvtx", "step", "--", bench.app(f"sleep {seconds}"))
    unprofiled = picks(bench).unprofiled
    assert unprofiled
    assert unprofiled.source == "wall time by step"
    assert seconds / 10 <= unprofiled.seconds <= len(launches()) * 100e-3
    assert "Without a profiler:" in done.stdout


def nsys_words(bench: Bench) -> list[list[str]]:
    lines = (bench.folder / "nsys_calls.jsonl").read_text().splitlines()
    return [words for line in lines if (words := json.loads(line))[0] == "profile"]


def test_the_timeline_is_recorded_without_samples_and_with_graphs_whole(recorded: Bench) -> None:
    (words,) = nsys_words(recorded)
    assert {
        "--trace=cuda,nvtx,cublas,cudnn", "--sample=none", "--cpuctxsw=none",
        "--cuda-graph-trace=graph",
    } <= set(words)  # fmt: skip
    options, _, _ = recorded.seen("ncu")
    assert options["--kill"] == "yes"
    assert "--devices" not in options


def test_graphs_that_nsys_lost_are_recorded_by_kernel(bench: Bench) -> None:
    nodes = str(program(bench.folder, graphs="node"))
    planned(bench, program(bench.folder, graphs="lost"), nodes=nodes)
    plan_file = bench.folder / "stand_in.json"
    told = json.loads(plan_file.read_text())
    plan_file.write_text(json.dumps(told | {"launches": nodes}))
    done = bench.profile("--app", "--nvtx", "step", "--", bench.app("true"))
    assert "recorded again by kernel" in done.stdout + done.stderr
    assert "Not recorded" not in done.stdout
    (run,) = bench.kept()
    assert NODES not in verify(run).files
    assert all(pick.launch is not None for pick in picks(bench).picks)


def module_calls(bench: Bench) -> list[str | None]:
    """By run under nsys the calls of each module that have ranges, None for no ranges."""
    lines = (bench.folder / "calls").read_text().splitlines()
    return [line or None for line in lines]


def test_a_run_by_node_names_the_kernels_of_graphs_and_all_modules(bench: Bench) -> None:
    """Its times are not used."""
    nodes = str(program(bench.folder, graphs="node"))
    planned(bench, program(bench.folder, graphs="graph"), nodes=nodes)
    plan_file = bench.folder / "stand_in.json"
    told = json.loads(plan_file.read_text())
    plan_file.write_text(json.dumps(told | {"launches": nodes}))
    calls = f'echo "$PROFKIT_MODULE_CALLS" >> {bench.folder}/calls'
    done = bench.profile("--app", "--nvtx", "step", "--", bench.app(calls))
    assert module_calls(bench)[:2] == ["4", "0"]
    assert set(module_calls(bench)[2:]) <= {None}
    assert "odules are named" not in done.stdout
    assert ["--cuda-graph-trace=graph" in words for words in nsys_words(bench)] == [True, False]
    (run,) = bench.kept()
    assert not list(run.glob(".*"))
    assert NODES in verify(run).files
    assert all(pick.launch is not None for pick in picks(bench).picks)
    (bench.folder / "calls").unlink()
    bench.profile("--app", "--no-modules", "--nvtx", "step", "--", bench.app(calls))
    assert set(module_calls(bench)) == {None}


def test_a_program_whose_modules_can_not_be_named_is_profiled(bench: Bench) -> None:
    planned(bench, program(bench.folder))
    app = bench.app('[ -z "$PROFKIT_HOOK_LOG" ] || echo "ValueError: odd" >> "$PROFKIT_HOOK_LOG"')
    done = bench.profile("--app", "--nvtx", "step", "--", app)
    assert "! not all modules are named: ValueError: odd" in done.stdout


def test_nsys_that_can_not_trace_libraries_traces_cuda_alone(bench: Bench) -> None:
    planned(bench, program(bench.folder), nsys="traces no libraries")
    bench.profile("--app", "--", bench.app("true"))
    assert "--trace=cuda,nvtx" in nsys_words(bench)[-1]


def test_ranks_that_wait_for_each_other_are_profiled_on_the_first_alone(bench: Bench) -> None:
    planned(bench, program(bench.folder, ranks=2))
    bench.profile("--app", "--nvtx", "step", "--", bench.app("true"))
    options, _, _ = bench.seen("ncu")
    assert options["--devices"] == "0"
    assert "--kill" not in options
    assert all(pick.launch is not None for pick in picks(bench).picks)
    assert not [name for name, *_ in profiled(bench) if "nccl" in name]


def test_a_launch_that_is_not_the_picked_kernel_is_not_shown_as_if(bench: Bench) -> None:
    planned(bench, program(bench.folder))
    (bench.folder / "report.ncu-rep").write_bytes(plain_bytes("sdpa_s512_flash_set_basic"))
    bench.profile("--app", "--", bench.app("true"))
    for pick in picks(bench).picks:
        assert pick.launch is None
        assert "not identified" in pick.reason


def beginning(report: bytes, launches: int) -> bytes:
    """A report up to its first launches."""
    parts = [head(report)]
    for header, block in blocks(report):
        if not launches:
            break
        launches -= wire.number(header, 2)
        parts.append(block)
    return b"".join(parts)


def test_kernels_that_ncu_passed_over_are_asked_for_alone(bench: Bench) -> None:
    first = bench.folder / "first.ncu-rep"
    first.write_bytes(beginning(bare_report().read_bytes(), 3))
    met = {row.name for row in summary(first).launches}
    planned(bench, program(bench.folder), first=str(first))
    bench.profile("--app", "--nvtx", "step", "--", bench.app("true"))
    assert all(pick.launch is not None for pick in picks(bench).picks), picks(bench)
    calls = (bench.folder / "ncu_calls.jsonl").read_text().splitlines()
    assert len(calls) == 2
    again = json.loads(calls[1])["--kernel-id"].split(":")[3]
    assert not any(re.search(again, name) for name in met)
    (run,) = bench.kept()
    assert [file.name for file in run.glob("*.ncu-rep*")] == ["app.ncu-repz"]
    rows = summary(run).launches
    assert len(rows) == 3 + len(launches())  # what stands in for ncu has one report
    for pick in picks(bench).picks:
        launch = rows[pick.launch or 0]
        assert (launch.name, launch.grid, launch.block) == (pick.kernel, pick.grid, pick.block)


def test_ncu_does_not_start_again_for_little_of_the_step(bench: Bench) -> None:
    """Ten seconds of ncu are worth 5% of the step."""
    first = bench.folder / "first.ncu-rep"
    first.write_bytes(beginning(small_report().read_bytes(), 8))
    planned(bench, program(bench.folder), first=str(first))
    bench.profile("--app", "--nvtx", "step", "--explain", "100%", "--", bench.app("true"))
    (missed,) = [pick for pick in picks(bench).picks if pick.launch is None]
    assert 0 < missed.share < 0.02
    assert missed.reason.endswith("--budget TIME gives it more")
    assert len((bench.folder / "ncu_calls.jsonl").read_text().splitlines()) == 1


def test_a_kernel_that_ncu_always_passes_over_is_said_to_be(bench: Bench) -> None:
    planned(bench, program(bench.folder, hides=True))
    bench.profile("--app", "--nvtx", "step", "--", bench.app("true"))
    (hidden,) = [pick for pick in picks(bench).picks if pick.launch is None]
    assert (hidden.kernel, hidden.grid) == ("scale", (7, 1, 1))
    assert hidden.reason == "not profiled: ncu passes over it behind other launches"


def test_what_does_not_fit_into_the_budget_is_left_out_and_listed(bench: Bench) -> None:
    planned(bench, program(bench.folder))
    done = bench.profile("--app", "--budget", "20s", "--", bench.app("true"))
    left = [
        pick
        for pick in picks(bench).picks
        if pick.reason == "not profiled: no time within --budget"
    ]
    assert left  # all of them: ncu alone takes six seconds to start
    assert [pick.launch for pick in left] == [None] * len(left)
    assert verify(*bench.kept()).unfinished == "ncu"
    assert re.search(r"! \d kernels? not profiled: no time within --budget", done.stdout)
    assert "--duration=7" in nsys_words(bench)[0]
    (run,) = bench.kept()
    bench.run("profile", "--resume", run)  # without a budget
    assert all(pick.launch is not None for pick in picks(bench).picks)
    assert verify(run).unfinished is UNSET


def test_a_hang_of_ncu_ends_and_leaves_what_was_recorded(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned(bench, program(bench.folder), "hangs")
    for name, value in bench.environment().items():
        monkeypatch.setenv(name, value)
    asked = ApplicationPlan(
        (str(bench.app("true")),), out=bench.runs, plain=True, patience=2.0,
        options=NcuOptions(sections="lean"),
    )  # fmt: skip
    outcome = profile_application(asked, lambda *_: None)
    assert isinstance(outcome.failure, TargetFailed)
    assert "ncu was ended: no progress for" in outcome.failure.message
    assert all(pick.launch is not None for pick in picks(bench).picks)
    assert bench.gone()
    verify(outcome.folder)


def test_what_the_budget_cuts_off_is_left_out_and_no_failure(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the clock all before ncu takes no time, and then little is left."""

    def now() -> float:
        return 12.0 * any(verify(run).unfinished == "ncu" for run in bench.kept())

    planned(bench, program(bench.folder), "hangs")
    for name, value in bench.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(application, "time", SimpleNamespace(monotonic=now))
    asked = ApplicationPlan((str(bench.app("true")),), out=bench.runs, plain=True, budget=30.0)
    outcome = profile_application(asked, lambda *_: None)
    assert outcome.failure is None
    assert any("ncu was ended: its time was over after" in line for line in outcome.warnings)
    assert {pick.launch is None for pick in picks(bench).picks} == {
        pick.reason == "not profiled: no time within --budget" for pick in picks(bench).picks
    }
    assert bench.gone()


@pytest.mark.parametrize(("words", "status"), [((), 0), (("--require-counters",), 4)])
def test_a_timeline_is_kept_where_counters_are_refused(
    bench: Bench, words: tuple[str, ...], status: int
) -> None:
    planned(bench, program(bench.folder), "permission")
    bench.profile("--app", *words, "--", bench.app("true"), status=status)
    (run,) = bench.kept()
    assert "timeline.sqlite" in verify(run).files
    assert {pick.reason for pick in picks(bench).picks} == {
        "not profiled: no permission to read GPU performance counters"
    }


def test_of_a_program_that_fails_the_timeline_stays(bench: Bench) -> None:
    planned(bench, program(bench.folder))
    app = bench.app("echo no such file; exit 3")
    done = bench.profile("--app", "--", app, status=6)
    (line,) = done.stderr.strip().splitlines()[-1:]
    (run,) = bench.kept()
    assert "no such file" in line
    assert f"profkit profile --resume {run}" in line
    assert verify(run).unfinished == "nsys"
    bench.app("true")
    bench.run("profile", "--resume", run)
    assert all(pick.launch is not None for pick in picks(bench).picks)
    assert verify(run).unfinished is UNSET


WAITS = """[ -z "$PROFKIT_MODULE_CALLS" ] || {
    trap 'echo saved; exit 3' TERM
    sleep 600 & wait
}"""
"""A program that takes long under nsys, and says so when it is ended."""


@pytest.mark.parametrize(
    ("nsys", "app", "timeout", "duration", "told"),
    [
        ("", WAITS, "2.5", "2", "ended with status 3 when its time was over: saved"),
        ("lingers", "true", "1", "1", ""),  # 0 would be no limit
    ],
)
def test_what_nsys_recorded_until_its_time_was_over_is_used(
    bench: Bench, nsys: str, app: str, timeout: str, duration: str, told: str
) -> None:
    planned(bench, program(bench.folder), nsys=nsys)
    done = bench.profile("--app", "--timeout", timeout, "--", bench.app(app))
    assert told in done.stdout
    (words,) = nsys_words(bench)
    assert {"--trace=cuda,nvtx,cublas,cudnn", f"--duration={duration}"} <= {*words}
    assert picks(bench).picks


def test_nsys_that_runs_out_of_time_is_not_run_again(bench: Bench) -> None:
    planned(bench, program(bench.folder), nap=60)
    done = bench.profile("--app", "--timeout", "1", "--", bench.app("true"), status=4)
    assert "nsys was ended after 1 s; raise --timeout" in done.stderr
    assert len(nsys_words(bench)) == 1


@pytest.mark.parametrize(
    ("number", "start"), [(signal.SIGKILL, 3), (signal.SIGINT, 6), (signal.SIGTERM, 9)]
)
def test_an_end_at_any_moment_leaves_a_run_that_goes_on(
    bench: Bench, recorded: Bench, number: signal.Signals, start: int
) -> None:
    (run,) = recorded.kept()
    whole = sum(stage.seconds for stage in verify(run).stages)
    planned(bench, program(bench.folder), nap=NAP)
    child = f"setsid sh -c 'sleep 600; :' {bench.folder}"
    command = ("--app", "--nvtx", "step", "--", bench.app(f"{child} >/dev/null 2>&1 &"))
    for point in moments(10, start):
        before = bench.kept()
        (bench.folder / "ncu_seen.json").unlink(missing_ok=True)
        process = bench.start(*command)
        time.sleep(whole * point / 11)
        process.send_signal(number)
        process.wait(timeout=600)
        assert bench.gone(), bench.processes()
        new = [run for run in bench.kept() if run not in before]
        assert len(new) == 1 or not (bench.folder / "ncu_seen.json").exists()
        for run in new:
            verify(run)
            assert read_run(run).process.steps
            if (run / PLAN).exists():
                assert verify(run).unfinished
                (run / ".picks.json.0a1b2c3d.part").touch()  # as a write that was killed leaves
                bench.run("profile", "--resume", run)
                assert verify(run).unfinished is UNSET
                assert not list(run.glob(".*"))


def test_a_full_disk_leaves_the_timeline_and_what_was_recorded(bench: Bench) -> None:
    timeline = program(bench.folder)
    planned(bench, timeline)
    shutil.copyfile(small_report(), bench.folder / "report.ncu-rep")
    room = 2 * timeline.stat().st_size  # of a file: less than the page's
    asked = (*bench.command("--app", "--nvtx", "step", "--", bench.app("true")),)
    done = subprocess.run(
        asked, env=bench.environment(), capture_output=True, text=True, check=False, timeout=600,
        preexec_fn=partial(resource.setrlimit, resource.RLIMIT_FSIZE, (room, room)),
    )  # fmt: skip
    (run,) = bench.kept()
    assert done.returncode == 4
    assert "! ncu ended with status 1: OSError" in done.stdout
    assert f"profkit profile --resume {run}" in " ".join(done.stdout.split())
    assert verify(run).unfinished == "ncu"
    assert read_run(run).process.steps
    bench.run("profile", "--resume", run)
    assert all(pick.launch is not None for pick in picks(bench).picks)


def test_a_run_that_is_not_finished_is_read_and_marked(bench: Bench) -> None:
    planned(bench, program(bench.folder), "hangs")
    process = bench.start("--app", "--nvtx", "step", "--", bench.app("true"))
    wait_for(bench.folder / "ncu_seen.json")
    refused = bench.run("profile", "--resume", *bench.kept(), status=4)
    assert "wait until it has finished" in refused.stderr
    process.terminate()
    assert process.wait(timeout=600) == 130
    assert bench.gone()
    (run,) = bench.kept()
    assert verify(run).unfinished == "ncu"
    for verb in (
        ("analyze", run),
        ("timeline", run),
        ("report", run, "-o", bench.folder / "page.html"),
    ):
        done = bench.run(*verb)
        assert f"profkit profile --resume {run}" in done.stderr


def test_a_program_without_gpu_work_that_fails_is_no_run(bench: Bench) -> None:
    planned(bench, write_export(Recording().events(), bench.folder / "nothing.sqlite"))
    done = bench.profile("--app", "--", bench.app("echo no such file; exit 3"), status=6)
    assert "no such file" in done.stderr
    assert not bench.kept()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--app", "--kernel", "gemm"), "--app picks the launches itself"),
        (("--app", "--explain", "many"), "--explain 'many' is not a share"),
        (("--app", "--budget", "soon"), "--budget 'soon' is not a valid duration"),
        (("--explain", "80%"), "--explain is for applications"),
        (("--app", "--collectives"), "can't profile collectives: their replay hangs"),
    ],
)
def test_requests_that_can_not_be_met_end_before_anything_runs(
    bench: Bench, words: tuple[str, ...], message: str
) -> None:
    planned(bench, program(bench.folder))
    done = bench.profile(*words, "--", bench.app("true"), status=None)
    assert done.returncode in {2, 4}
    assert message in done.stderr
    assert not (bench.folder / "nsys_calls.jsonl").exists()


def test_every_verb_takes_the_run_of_an_application(bench: Bench, recorded: Bench) -> None:
    planned(bench, program(bench.folder, ranks=2))
    shutil.copyfile(small_report(), bench.folder / "report.ncu-rep")
    done = bench.profile("--app", "--", bench.app("true", "before"))
    assert "Plan" in done.stdout
    assert "communication: all-reduce" in done.stdout
    (earlier,), (later,) = bench.kept(), recorded.kept()
    assert earlier.parent.name == "before"
    for name in ("answer", "picks"):
        schema(name).validate(json.loads((earlier / f"{name}.json").read_text()))
    assert "communication" in bench.run("timeline", earlier).stdout
    assert "softmax_warp_forward" in bench.run("analyze", earlier).stdout
    assert "DRAM" in bench.run("checklist", earlier).stdout
    page = bench.folder / "page.html"
    bench.run("report", earlier, "-o", page)
    html = page.read_text(encoding="utf-8")
    assert '<section id="application"' in html
    assert html.count("<canvas") == 1
    assert "communication: all-reduce" in html
    assert (earlier / "report.html").is_file()
    text = bench.run("diff", earlier, later).stdout
    assert "1.655 ms → 754.7 µs" in text
    assert "IMPROVED" in text
    assert "all-reduce" in text
    file = json.loads(bench.run("diff", later, earlier, "--format", "json").stdout)
    schema("application-diff").validate(file)
    assert file["verdict"] == "regressed"
    changes = sum(row["after"] - row["before"] for row in file["parts"])
    assert changes == pytest.approx(file["after"]["mean"] - file["before"]["mean"])


def test_an_application_is_not_compared_as_a_report(recorded: Bench) -> None:
    (run,) = recorded.kept()
    for words, message in (
        (("--format", "github"), "two applications can't be written as github"),
        (("--fail-on", "new-finding"), "--fail-on new-finding is not for applications"),
    ):
        assert message in recorded.run("diff", run, run, *words, status=2).stderr


def test_collectives_are_profiled_with_ranks_in_lockstep(bench: Bench) -> None:
    helped = "--communicator arg --communicator-shmem-num-peers arg --lockstep-kernel-launch"
    planned(bench, program(bench.folder, ranks=2), help=helped)
    bench.profile("--app", "--collectives", "--", bench.app("true"))
    options, _, _ = bench.seen("ncu")
    assert options["--communicator-shmem-num-peers"] == "2"
    assert "--lockstep-kernel-launch" in options
    assert "--devices" not in options
    assert [name for name, *_ in profiled(bench) if "nccl" in name]
