"""What rules find in timelines, alone and beside a run's report, through the command line."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import profkit
from profkit.analysis.run_files import one_report
from profkit.application.picks_file import PICKS, PicksFile
from profkit.core.typed_file import encode
from profkit.rules import finding_text as words
from profkit.rules.finding_text import HEADING
from profkit.runs.manifest import Manifest
from profkit.timeline import RUN_FILE
from profkit.timeline.region import measure
from tests.analysis.test_views import schema
from tests.conftest import H200, Cli, story_folder
from tests.timeline.test_nsys import call, export, kernel, strings

RUN = H200 / "sdpa_s512"
FLASH, MATH = (H200 / f"sdpa_s512_{name}.sqlite" for name in ("flash", "math"))

EAGER = """\
rules:
- name: any_gap
  about: timeline
  category: launch_overhead
  title: There are gaps
  explanation: For tests.
  when: [long_gap_share + short_gap_share > 0.01]
  relieves: {long_gap_share: 0, short_gap_share: 0}
  actions: [Close them.]
  verify: [long_gap_share falls]
"""


@pytest.fixture
def eager(tmp_path: Path) -> Path:
    """A rule that fires on any gap."""
    file = tmp_path / "eager.yaml"
    file.write_text(EAGER, encoding="utf-8")
    return file


@pytest.fixture
def launch_bound(tmp_path: Path) -> Path:
    """A timeline of 40 kernels of 4 µs, each 6 µs after the one before."""
    kernels = [kernel(at * 10_000, at * 10_000 + 4_000, at) for at in range(1, 41)]
    calls = [call(at * 10_000 - 3_000, at * 10_000 - 500, at) for at in range(1, 41)]
    tables = {
        "StringIds": strings(),
        "CUPTI_ACTIVITY_KIND_KERNEL": kernels,
        "CUPTI_ACTIVITY_KIND_RUNTIME": calls,
    }
    return export(tmp_path / "made.sqlite", tables)


def timeline(profkit_cli: Cli, *arguments: str | Path) -> dict[str, Any]:
    result = profkit_cli("analyze", *arguments, "--format", "json")
    document: dict[str, Any] = json.loads(result.stdout)
    schema("timeline").validate(document)
    return document


def test_a_timeline_that_waits_for_launches_says_so(profkit_cli: Cli, launch_bound: Path) -> None:
    (item,) = timeline(profkit_cli, launch_bound)["checklist"]
    assert (item["rule"], item["kernel"], item["launches"]) == ("launch_bound", None, [])
    replayed = 10 * 0.65 / (4 + 0.45)  # without nsys
    assert item["range"][0] < replayed < item["range"][1]
    assert item["estimated_speedup"] == pytest.approx(replayed, rel=0.05)
    assert item["page"] == "docs/reference/rules.md#launch_bound"
    shown = profkit_cli("analyze", launch_bound).stdout
    assert shown.index(HEADING) < shown.index("Kernels by share")
    assert re.search(r"^ 1  1\.43x \[1\.16, 1\.64\]  \w", shown, re.MULTILINE)
    assert max(map(len, shown.splitlines())) <= 100
    page = profkit_cli("analyze", launch_bound, "--format", "markdown").stdout
    assert (
        f"## {HEADING}\n\nof a step in steady state of 10.00 µs (median), without what was before"
        in page
    )
    assert "\n\n- [ ] 1. 1.43x \\[1.16, 1.64\\]  **Launch-bound" in page


def test_rules_can_be_chosen_for_timelines(
    profkit_cli: Cli, launch_bound: Path, eager: Path
) -> None:
    left = timeline(profkit_cli, launch_bound, "--disable", "launch_bound")
    assert left["checklist"] == []
    assert HEADING not in profkit_cli("analyze", launch_bound, "--disable", "launch_bound").stdout
    several = timeline(profkit_cli, MATH, launch_bound, "--rules", eager)
    rules = [[item["rule"] for item in one["checklist"]] for one in several["reports"]]
    assert rules == [["any_gap"], ["any_gap", "launch_bound"]]
    profkit_cli("analyze", launch_bound, "--disable", "nothing", status=2)
    profkit_cli("analyze", launch_bound, "--top", "1", status=2)


def test_recorded_timelines(profkit_cli: Cli) -> None:
    """One is of 14 kernels in a row; the other of a whole program with its set-up."""
    assert timeline(profkit_cli, MATH)["checklist"] == []
    (item,) = timeline(profkit_cli, FLASH)["checklist"]
    assert (item["rule"], item["confidence"]) == ("gpu_idle", "low")
    assert item["estimated_speedup"] < 1.05
    assert item["range"][1] > 50
    shown = profkit_cli("analyze", FLASH).stdout
    assert "\n 1  GPU idle, waiting for the host" in shown
    assert "GPU work, start-up included" in " ".join(shown.replace("│", " ").split())
    assert "73x" not in profkit_cli("timeline", FLASH).stdout
    assert "1.01x" not in shown  # how much of the host's work can overlap is not known
    assert "gap_host_code_share 97.0%" in shown


def host_time(path: Path) -> dict[str, float]:
    """By category the share of the whole that the host took in long gaps."""
    quantities = measure(profkit.load_timeline(path).events)
    return {
        name.removeprefix("gap_").removesuffix("_share"): round(value, 4)
        for name, value in quantities.items()
        if name.startswith("gap_") and name.endswith("_share") and value
    }


def test_what_the_host_did_in_long_gaps_is_told(profkit_cli: Cli, tmp_path: Path) -> None:
    """Two kernels of 1 ms around 8 ms: 1 ms cudaMalloc, 2 ms a wait, 4 ms without a call of the
    thread that launches, and 1 ms cudaLaunchKernel; another thread's calls are not the host's."""
    ms = 1_000_000
    names = strings({9: "cudaMalloc_v3020", 10: "cudaStreamSynchronize_v3020"})
    calls = [
        call(ms // 2, ms // 2 + 10_000, 1),
        call(2 * ms, 3 * ms, 2, name=9),
        call(3 * ms, 5 * ms, 3, name=10),
        call(5 * ms, 9 * ms, 4, thread=447, name=9),
        call(9 * ms, 10 * ms, 5),
    ]
    path = export(
        tmp_path / "once.sqlite",
        {
            "StringIds": names,
            "CUPTI_ACTIVITY_KIND_KERNEL": [kernel(ms, 2 * ms, 1), kernel(10 * ms, 11 * ms, 5)],
            "CUPTI_ACTIVITY_KIND_RUNTIME": calls,
        },
    )
    assert host_time(path) == {"allocation": 0.1, "wait": 0.2, "host_code": 0.4, "other_call": 0.1}
    (item,) = timeline(profkit_cli, path)["checklist"]
    assert item["range"][1] == pytest.approx(10 / 2)
    assert "1.0 to 5.0x" in profkit_cli("analyze", path).stdout


def test_python_has_the_findings_of_analyze(profkit_cli: Cli, launch_bound: Path) -> None:
    """Of a program that repeats they are of its steps."""
    for path in (launch_bound, FLASH):
        found = profkit.load_timeline(path).findings()
        items = timeline(profkit_cli, path)["checklist"]
        assert [item.rule.name for item in found] == [item["rule"] for item in items]
        assert found[0].speedup == pytest.approx(items[0]["estimated_speedup"])
    assert "1.0 to 73x" in repr(found[0])


def test_a_run_ranks_its_timeline_with_its_kernels(profkit_cli: Cli, eager: Path) -> None:
    document = json.loads(
        profkit_cli("checklist", RUN, "--format", "json", "--rules", eager).stdout
    )
    schema("checklist").validate(document)
    items = document["checklist"]
    ranks = [item["rank"] for item in items if item["rank"]]
    assert ranks == sorted(ranks)
    (own,) = [item for item in items if item["rule"] == "any_gap"]
    assert (own["kernel"], own["promises"]) == (None, True)
    assert own["saved_s"] > 0
    assert 1 <= own["rank"] < len(items)
    analyzed = json.loads(profkit_cli("analyze", RUN, "--format", "json", "--rules", eager).stdout)
    schema("analyze").validate(analyzed)
    assert analyzed["checklist"] == items
    for verb in ("analyze", "checklist"):
        shown = profkit_cli(verb, RUN, "--rules", eager).stdout
        assert "There are gaps" in shown
        # commands to copy are not wrapped
        assert max(len(line) for line in shown.splitlines() if "profkit " not in line) <= 100
    page = profkit_cli("checklist", RUN, "--rules", eager, "--format", "markdown").stdout
    assert "There are gaps" in page
    assert len(profkit.load(RUN).checklist().items) == len(items) - 1


def test_a_part_of_a_run_says_nothing_of_its_timeline(profkit_cli: Cli, eager: Path) -> None:
    for verb in ("analyze", "checklist"):
        shown = profkit_cli(verb, RUN, "--rules", eager, "--kernel", "flash").stdout
        assert "There are gaps" not in shown


def test_a_report_alone_is_not_asked_about_a_timeline(profkit_cli: Cli) -> None:
    whole = json.loads(profkit_cli("checklist", RUN, "--format", "json").stdout)
    alone = json.loads(profkit_cli("checklist", H200 / "known.ncu-repz", "--format", "json").stdout)
    assert whole["rules"] == alone["rules"] + 3
    assert not any(item["kernel"] is None for item in alone["checklist"])


def test_a_rule_is_explained_on_a_timeline(profkit_cli: Cli, launch_bound: Path) -> None:
    shown = profkit_cli("rules", "explain", "launch_overhead", "--on", launch_bound).stdout
    assert "Fires on the timeline" in shown
    assert re.search(r"yes +kernel_launches 40 launches >= 10", shown)
    assert "  1.9x [1.3, 2.5]" in shown
    shown = profkit_cli("rules", "explain", "gpu_idle", "--on", RUN).stdout
    assert re.search(r"yes +long_gap_share 16.9% > 10.0%", shown)
    refused = profkit_cli("rules", "explain", "gpu_idle", "--on", H200 / "known.ncu-repz", status=5)
    assert "no GPU work on a timeline; name a run" in refused.stderr


def test_a_timeline_has_a_checklist(profkit_cli: Cli, launch_bound: Path, tmp_path: Path) -> None:
    """With all actions, of which `analyze` has the first."""
    shown = profkit_cli("checklist", launch_bound).stdout
    assert "Of a step in steady state of 10.00 µs (median)" in shown
    assert re.search(r"^\[ \] 1\. 1\.43x \[1\.16, 1\.64\]  Launch-bound", shown, re.MULTILINE)
    assert "Give each launch more work, with larger batches." in shown
    assert "Give each launch more work" not in profkit_cli("analyze", launch_bound).stdout
    page = profkit_cli("checklist", launch_bound, "--format", "markdown").stdout
    assert "- [ ] 1. 1.43x \\[1.16, 1.64\\]  **Launch-bound" in page
    file = tmp_path / "list.json"
    profkit_cli("checklist", launch_bound, "-o", file)
    document = json.loads(file.read_text(encoding="utf-8"))
    schema("timeline").validate(document)
    assert [item["rule"] for item in document["checklist"]] == ["launch_bound"]
    assert words.NO_TIMELINE_FINDING in profkit_cli("checklist", MATH).stdout


def test_the_checklist_of_a_timeline_takes_the_range_of_a_step(profkit_cli: Cli) -> None:
    path = story_folder("gpt_clip") / "before.sqlite"
    named = profkit_cli("checklist", path, "--nvtx", "step", "--top", "1").stdout
    assert "[ ] 1. " in named
    assert "[ ] 2. " not in named
    assert "more findings; --top 0 lists them" in named
    refused = profkit_cli("checklist", path, "--nvtx", "epoch", status=2)
    assert "no GPU work in an NVTX range named epoch" in refused.stderr
    profkit_cli("checklist", path, "--kernel", "gemm", status=2)


def test_the_start_of_an_application_is_no_finding_beside_those_of_its_steps(
    tmp_path: Path,
) -> None:
    shutil.copy(one_report(H200 / "sdpa_s512"), tmp_path / "program.ncu-repz")
    shutil.copy(story_folder("gpt_launch_bound") / "before.sqlite", tmp_path / RUN_FILE)
    (tmp_path / "manifest.json").write_text(encode(Manifest(target="program")), encoding="utf-8")

    def about() -> set[str]:
        done = profkit.load(tmp_path).checklist()
        return {item.rule.about for item in (*done.items, *done.informative)}

    assert "timeline" in about()
    (tmp_path / PICKS).write_text(encode(PicksFile(explain=0.9)), encoding="utf-8")
    assert "timeline" not in about()
