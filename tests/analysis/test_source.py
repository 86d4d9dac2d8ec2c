"""`profkit source`: recorded kernels from the inside, against ncu's own values."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import profkit
from profkit.analysis.source_document import sparkline
from profkit.report.phases import BUSY, KernelTimeline
from profkit.rules.rule_file import shipped_rules
from tests.analysis.test_views import schema
from tests.conftest import (
    CAUSAL,
    CORPUS,
    H200,
    REDUCED,
    Cli,
    export,
    h200,
    needs_corpus,
    needs_reader,
    pair_report,
    recorded_report,
)

SAMPLED = ("known", "sdpa_s512_flash", "sdpa_s512_cudnn", *CAUSAL)
SUMMED = ("known", "sdpa_s512_flash", "sdpa_s512_cudnn", "ladder/split_kv")
SHOWN = ("known", "sdpa_s512_cudnn", *REDUCED)
WITH_TEXT = ("known", "ladder/hopper", "ladder/triton_flash", "ladder/split_kv")
COUNTED = {
    "samples": "smsp__pcsamp_sample_count",
    "executed": "inst_executed",
    "shared_excess": "derived__memory_l1_wavefronts_shared_excessive",
    "global_excess": "derived__memory_l2_theoretical_sectors_global_excessive",
}
(_CONFLICTS,) = (rule for rule in shipped_rules() if rule.name == "shared_bank_conflicts")


@cache
def actions(name: str) -> tuple[Any, ...]:
    """The launches of a recorded report as the vendor's own reader gives them."""
    return profkit.load(recorded_report(name))._raw.actions


@cache
def pair(name: str, side: str = "before") -> profkit.Kernel:
    return profkit.load(pair_report(name, side)).kernel(0)


def timeline(kernel: profkit.Kernel) -> KernelTimeline:
    found = kernel.timeline()
    assert found is not None
    return found


def sampled() -> Iterator[tuple[profkit.Kernel, KernelTimeline]]:
    for name in SAMPLED:
        for kernel in h200(name):
            yield kernel, timeline(kernel)


def test_the_kernel_is_as_long_in_the_samples_as_its_pass_says() -> None:
    """ncu stamps the start and end of the launch in the pass that it samples in."""
    for name in SAMPLED:
        for action, kernel in zip(actions(name), h200(name), strict=True):
            start, end = (
                action.metric_by_name(f"profiler__timestamp_workload_{which}_0").addresses()[0]
                for which in ("start", "end")
            )
            seconds = (end - start) / 1e9
            found = timeline(kernel)
            assert abs(found.end - seconds) <= 3 * found.period


def test_the_kernel_is_as_long_in_the_samples_as_in_the_timed_pass() -> None:
    for kernel, found in sampled():
        assert found.duration == kernel.duration
        assert found.end == pytest.approx(kernel.duration, rel=0.035, abs=2 * found.period)


def test_tracks_average_to_the_counters_or_say_so() -> None:
    """Counters of other passes over the whole kernel; what is sampled as L2 lacks parts of it."""
    checked = 0
    for kernel, found in sampled():
        if not found.phases:
            continue
        for track in found.tracks:
            told = any(note.startswith(f"{track.label}: ") for note in found.notes)
            if track.name in BUSY and not told:
                assert np.mean(track.values) == pytest.approx(kernel[track.name], abs=0.0501)
                checked += 1
        for name in ("issue_busy", "dram_busy", "tensor_busy"):
            named = found.track(name)
            assert named is not None
            assert np.mean(named.values) == pytest.approx(kernel[name], abs=0.03)
    assert checked > 50


def test_the_share_of_sms_at_work_averages_to_ncus_active_cycles() -> None:
    for name in SAMPLED:
        for action, kernel in zip(actions(name), h200(name), strict=True):
            found = timeline(kernel)
            track = found.track("sm_active")
            if not found.phases:
                continue
            active = float(action.metric_by_name("sm__cycles_active.avg").value())
            elapsed = float(action.metric_by_name("sm__cycles_elapsed.max").value())
            assert track is not None
            assert 0 <= min(track.values) <= max(track.values) <= 1
            assert np.mean(track.values) == pytest.approx(active / elapsed, abs=0.035)


def test_132_blocks_of_133_and_then_one() -> None:
    """tail_effect: as long as the others, a block of the second wave is alone on 132 SMs."""
    found = timeline(pair("tail_effect"))
    assert [phase.name for phase in found.phases] == ["prologue", "steady", "tail"]
    assert found.share("tail") == pytest.approx(0.5, abs=0.02)
    assert found.below_half == pytest.approx(0.5, abs=0.02)
    active, tail = found.track("sm_active"), found.phases[2]
    assert active is not None
    times = np.array(active.times)
    inside = (times > tail.start + 50e-6) & (times < tail.end - 50e-6)
    alone = np.array(active.values)[inside]
    assert np.median(alone) == pytest.approx(1 / 132, rel=0.02)
    assert timeline(pair("tail_effect", "after")).share("tail") < 0.06


def test_a_few_long_blocks_are_a_long_tail() -> None:
    before, after = (timeline(pair("workload_imbalance", side)) for side in ("before", "after"))
    assert before.share("tail") > 0.6
    assert before.below_half > 0.6
    assert after.share("tail") < 0.1


@pytest.mark.parametrize(
    "name", [f"control_{kind}" for kind in ("copy", "fma", "low_occupancy", "saxpy", "stencil")]
)
def test_controls_are_steady(name: str) -> None:
    found = timeline(pair(name))
    assert found.share("steady") > 0.95
    assert found.below_half < 0.06


def test_clusters_of_two_blocks_on_132_sms() -> None:
    """66 clusters on 8 GPCs; other kernels have none and no such track."""
    found = timeline(pair("control_matmul"))
    assert found.steady["clusters_active"] == pytest.approx(66 / 8, rel=0.01)
    assert timeline(pair("control_copy")).track("clusters_active") is None


def test_short_kernels_have_no_phases_and_say_why() -> None:
    found = timeline(h200("known").kernel(12))
    assert found.phases == ()
    assert any(note.startswith("no phases: 1 samples") for note in found.notes)


def test_a_range_of_launches_has_no_phases() -> None:
    (run,) = (H200 / "matmul").iterdir()
    found = timeline(profkit.load(run).kernel(0))
    assert found.phases == ()
    assert any("range replay" in note for note in found.notes)


def test_nothing_sampled_is_no_timeline() -> None:
    assert h200("sdpa_s512_flash_set_basic").kernel(0).timeline() is None


@pytest.mark.parametrize("name", SUMMED)
def test_lines_and_instructions_add_up_to_what_ncu_recorded(name: str) -> None:
    for action, kernel in zip(actions(name), h200(name), strict=True):
        view = kernel.source_view()
        without = [one for one in view.instructions if not one.line]
        lines = [*(line for file in view.files for line in file.lines), *without]
        for field, metric in COUNTED.items():
            whole = float(action.metric_by_name(metric).value())
            assert getattr(view.total, field) == whole
            assert math.fsum(getattr(one, field) for one in lines) == whole
            assert math.fsum(getattr(one, field) for one in view.instructions) == whole
        assert sum(view.total.stalls.values()) == view.total.samples
        for reason, count in view.total.stalls.items():
            stalled = f"smsp__pcsamp_warps_issue_stalled_{_ncu(reason)}"
            assert float(action.metric_by_name(stalled).value()) == count


def _ncu(reason: str) -> str:
    return {"gmma": "warpgroup_arrive", "no_instruction": "no_instructions"}.get(reason, reason)


@pytest.mark.parametrize("name", ["known", "sdpa_s512_flash"])
def test_totals_are_those_of_ncus_export(name: str) -> None:
    """Of other passes; kernels that spin while they wait execute another number in each."""
    _, rows = export(name, "raw")
    for row, kernel in zip(rows, h200(name), strict=True):
        view = kernel.source_view()
        executed = row.get("smsp__inst_executed.sum") or row["sm__inst_executed.sum"]
        assert view.total.executed == pytest.approx(float(executed.replace(",", "")), rel=1e-3)


@needs_reader
@pytest.mark.parametrize(
    "name", ["known", "ladder/hopper", "ladder/flash", "pairs/tail_effect/before"]
)
def test_live_registers_fit_into_those_allocated(name: str) -> None:
    for kernel in h200(name):
        view = kernel.source_view()
        takes_more = any((one.sass or "").startswith("USETMAXREG") for one in view.instructions)
        most = 255 if takes_more else kernel["registers_per_thread"]
        assert 0 < view.total.live <= most
        assert view.total.live == max(one.live for one in view.instructions)


@needs_reader
@pytest.mark.parametrize("name", WITH_TEXT)
def test_lines_stand_beside_their_text(name: str) -> None:
    for kernel, action in zip(h200(name), actions(name), strict=True):
        view = kernel.source_view()
        assert view.has_source
        samples = [sum(line.samples for line in file.lines) for file in view.files]
        assert samples == sorted(samples, reverse=True)
        texts = action.source_files()
        for file in view.files:
            for line in file.lines:
                assert line.text == (texts[file.file].splitlines()[line.line - 1] or None)
        for row in view.instructions:
            info = action.source_info(row.address)
            if row.line:
                assert (info.file_name(), info.line()) == (row.file, row.line)


@needs_reader
def test_code_of_several_files_stands_in_each() -> None:
    (kernel,) = h200("ladder/triton_flash")
    names = [Path(file.file).name for file in kernel.source_view().files]
    assert names == ["triton_flash.py", "standard.py"]


@needs_reader
def test_the_line_of_a_finding_carries_its_rank() -> None:
    report = profkit.load(H200 / "known.ncu-repz", kernel="transpose_conflict")
    found = report.checklist([_CONFLICTS])
    (kernel,) = report
    (line,) = [one for one in kernel.source_view(found).files[0].lines if one.findings]
    (item,) = [item for item in found.items if item.rank in line.findings]
    assert item.rule.category == "shared_bank_conflicts"
    assert line.line == item.places[0].line
    assert line.shared_excess == 65_011_712
    assert not any(one.findings for one in kernel.source_view().instructions)


@pytest.mark.parametrize("name", SHOWN)
def test_json_keeps_its_schema(profkit_cli: Cli, name: str) -> None:
    result = profkit_cli("source", recorded_report(name), "--format", "json")
    document = json.loads(result.stdout)
    schema("source").validate(document)
    kernel = h200(name).kernel(document["kernel"]["launch"])
    assert document["kernel"]["name"] == kernel.name
    if document["timeline"]:
        found = timeline(kernel)
        assert [track["name"] for track in document["timeline"]["tracks"]] == [
            track.name for track in found.tracks
        ]
        assert document["timeline"]["sampled_s"] == found.end


@pytest.mark.parametrize("name", SHOWN)
@pytest.mark.parametrize("more", [(), ("--sass", "--top", "30")])
def test_the_terminal_keeps_to_100_columns(
    profkit_cli: Cli, name: str, more: tuple[str, ...]
) -> None:
    result = profkit_cli("source", recorded_report(name), *more)
    assert max(map(len, result.stdout.splitlines())) <= 100
    assert " nan" not in result.stdout


@needs_reader
def test_a_transpose_from_the_inside(profkit_cli: Cli) -> None:
    shown = profkit_cli("source", H200 / "known.ncu-repz", "--kernel", "transpose_conflict").stdout
    assert "220 samples every 1.500 µs, 330.0 µs; ncu's duration 330.2 µs" in shown
    assert "* phases from L1 and shared memory" in shown
    assert "known.cu:8  100.0%  ██████████" in shown
    assert "65.01 M excess shared wavefronts; 12 live" in " ".join(shown.split())
    assert "more kernel" not in shown


@needs_reader
def test_a_finding_names_an_instruction_as_the_listing_does(profkit_cli: Cli) -> None:
    done = profkit_cli("source", H200 / "sdpa_s512", "--kernel", "flash", "--sass", "--top", "0")
    listing, _, findings = done.stdout.partition("Findings at these")
    listed = dict(re.findall(r"(\+0x[0-9a-f]{4}) +\S+%[ █▏▎▍▌▋▊▉]+(\S.*)$", listing, re.M))
    named = re.findall(r"(\+0x[0-9a-f]{4}) `([^`]+)`", " ".join(findings.split()))
    assert len(named) >= 6
    for offset, text in named:
        assert text.startswith(listed[offset])
    assert "0x7f" not in done.stdout
    found = profkit_cli("checklist", H200 / "sdpa_s512", "--format", "json")
    places = [one for item in json.loads(found.stdout)["checklist"] for one in item["where"]]
    assert all(bool(one["instruction"]) == bool(one["offset"]) for one in places)


def test_a_full_character_is_the_peak_that_is_printed() -> None:
    spiky = [0.135] * 99 + [0.977]
    assert sparkline(spiky, 10) == "▂" * 10
    assert sparkline(spiky, 100) == "▂" * 99 + "█"
    assert sparkline([0.5, 1.0, math.nan], 3) == "▅█ "
    assert sparkline([1056.0] + [0.0] * 19, 2, counted=True) == "█▁"


def test_blocks_launched_are_counted_exactly(profkit_cli: Cli) -> None:
    """1,056 blocks a sample: as a rate of three digits they would be 1,060."""
    shown = profkit_cli("source", H200 / "known.ncu-repz", "--kernel", "fma_bound").stdout
    (row,) = (line for line in shown.splitlines() if line.startswith("Blocks launched/sample"))
    blocks = math.prod(h200("known").kernel(4).summary.grid)
    assert row.split()[-1] == f"{blocks:,}"


@needs_reader
def test_only_instructions_with_excess_wavefronts_have_bank_conflicts() -> None:
    report = h200("known")
    kernel = report.kernel("transpose_conflict")
    view = kernel.source_view(report.checklist([_CONFLICTS]))
    conflicting = {row.address for row in view.instructions if row.findings}
    excess = {row.address for row in view.instructions if row.shared_excess > 0}
    assert conflicting == excess
    assert {(row.sass or "").split()[0] for row in view.instructions if row.findings} == {"LDS"}


@pytest.mark.parametrize("words", [("--sass",), ("--top", "3")])
def test_json_has_all_lines_and_takes_no_selection(
    profkit_cli: Cli, words: tuple[str, ...]
) -> None:
    done = profkit_cli("source", H200 / "known.ncu-repz", "--format", "json", *words, status=2)
    assert "JSON has all lines and instructions" in done.stderr


def test_the_kernel_with_the_most_time_is_the_default(profkit_cli: Cli) -> None:
    shown = profkit_cli("source", H200 / "known.ncu-repz").stdout
    assert h200("known").summary.groups[0].name.split("(")[0] in shown
    assert "12 more kernels: copy_strided, spill, " in shown
    assert "--kernel REGEX selects one" in shown


def test_what_to_record_where_nothing_was(profkit_cli: Cli) -> None:
    shown = profkit_cli("source", H200 / "sdpa_s512_flash_two_metrics.ncu-repz").stdout
    assert "record with `ncu --section PmSampling`" in shown
    assert "record with `ncu --section SourceCounters`" in shown


@pytest.mark.parametrize(
    ("arguments", "exit_code", "told"),
    [
        (("--kernel", "no_such"), 2, "no kernel matches"),
    ],
)
def test_wrong_usage(
    profkit_cli: Cli, arguments: tuple[str, ...], exit_code: int, told: str
) -> None:
    result = profkit_cli("source", H200 / "sdpa_s512_flash.ncu-repz", *arguments, status=exit_code)
    assert told in result.stderr
    assert len(result.stderr.splitlines()) == 1


@needs_corpus
@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.ncu-rep")), ids=lambda path: path.stem)
def test_other_peoples_reports(profkit_cli: Cli, path: Path) -> None:
    result = profkit_cli("source", path)
    assert max(map(len, result.stdout.splitlines())) <= 100
    document = json.loads(profkit_cli("source", path, "--format", "json").stdout)
    schema("source").validate(document)


@needs_corpus
def test_ampere_has_resident_warps_and_tracks_of_two_passes() -> None:
    kernel = profkit.load(CORPUS / "mixes-reconstruction__version2.ncu-rep").kernel(0)
    found = timeline(kernel)
    warps, l2 = found.track("warps_active"), found.track("l2_busy")
    assert warps is not None
    assert l2 is not None
    whole = 2 * kernel.summary.gpu.chip.warps * kernel["occupancy_achieved"]
    assert np.median(warps.values) == pytest.approx(whole, rel=0.05)
    assert l2.times[-1] <= found.end
    assert any("sampled in another pass" in note for note in found.notes)
