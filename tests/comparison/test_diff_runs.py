"""`profkit diff` on runs: which launches compute the same, and what their timings say."""

from __future__ import annotations

import hashlib
import json
import math
import re
import shutil
from functools import cache
from pathlib import Path

import pytest

import profkit
from profkit.comparison.comparability import Aspect
from profkit.comparison.comparison import diff
from profkit.comparison.repeats import Change
from profkit.comparison.text import evidence
from tests.comparison.test_diff_pairs import bare
from tests.conftest import H200, Cli, sweep_folder


def test_a_kernel_of_several_variants_has_the_problem_that_they_declare(profkit_cli: Cli) -> None:
    """Two lengths of one target: cuDNN's kernel runs in two variants, in equal grids."""
    sweep = sweep_folder()
    sides = sweep / "20261121T170612Z-c6b07a", sweep / "20261121T170653Z-015599"
    asked = "--fail-on", "regression"
    result = profkit_cli("diff", *sides, *asked, "--format", "json", status=3)
    (told,) = json.loads(result.stdout)["comparisons"]
    assert told["failures"] == []
    assert {one["verdict"] for one in told["kernels"]} == {"INCOMPARABLE"}
    (cudnn,) = [one for one in told["kernels"] if one["name"].startswith("cudnn")]
    assert cudnn["before"]["grid"] == cudnn["after"]["grid"]
    assert "length=128" in cudnn["obstacles"][0]["before"]
    assert "length=256" in cudnn["obstacles"][0]["after"]
    total = told["total"]
    assert (total["before_s"], total["after_s"], total["causes"]) == (0, 0, [])
    assert total["incomparable"] == 3
    shown = profkit_cli("diff", *sides, *asked, status=3).stdout
    assert shown.splitlines()[1] == "3 kernels matched   3 INCOMPARABLE"
    assert "of compared kernels" not in shown
    assert "INVALID" not in shown
    forced = profkit_cli("diff", *sides, "--force-compare").stdout
    assert re.search(r"\d REGRESSED \(forced\)", forced.splitlines()[1])
    assert "x slower (forced)" in forced
    assert "INCOMPARABLE, shapes: " in " ".join(forced.split())


def test_runs_of_one_target_are_judged_by_their_latencies(tmp_path: Path) -> None:
    """A run against a copy of it whose variant took 5% longer each time, the others 0.1%."""
    (run,) = (folder for folder in (H200 / "sdpa_s512").iterdir() if folder.is_dir())
    copy = tmp_path / run.name
    shutil.copytree(run, copy)
    latency = json.loads((copy / "latency.json").read_text(encoding="utf-8"))
    for series in latency["series"]:
        longer = 1.05 if series["label"] == "flash" else 1.001
        for block in series["blocks"]:
            block["samples"] = [sample * longer for sample in block["samples"]]
    text = json.dumps(latency).encode()
    (copy / "latency.json").write_bytes(text)
    manifest = json.loads((copy / "manifest.json").read_text(encoding="utf-8"))
    manifest["files"]["latency.json"] |= {
        "bytes": len(text), "sha256": hashlib.sha256(text).hexdigest()
    }  # fmt: skip
    (copy / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    found = profkit.diff(profkit.load(run), profkit.load(copy))
    timed = {kernel.timed.before.label: kernel for kernel in found.kernels if kernel.timed}
    assert {kernel.timed.design for kernel in timed.values() if kernel.timed} == {"within-run only"}
    assert timed["flash"].change is Change.regressed
    assert timed["flash"].speedup == pytest.approx(1 / 1.05)
    assert timed["custom"].change is Change.same
    assert {one.before.label: one.change for one in found.timed} == {
        "sdpa": Change.same, "flash": Change.regressed, "cudnn": Change.same,
        "efficient": Change.same, "math": Change.same, "custom": Change.same,
    }  # fmt: skip
    assert "not interleaved" in " ".join(evidence(timed["flash"]))
    untimed = profkit.diff(profkit.load(run), profkit.load(run))
    assert {kernel.change for kernel in untimed.kernels} == {Change.same}
    assert untimed.total.before == pytest.approx(untimed.total.after)


def test_runs_of_two_folders_are_paired_whenever_they_were_recorded(
    profkit_cli: Cli, tmp_path: Path
) -> None:
    for folder, time in (("a", "20260101T120000Z-00aa11"), ("b", "20260102T130000Z-22bb33")):
        for target in ("flash", "cudnn"):
            run = tmp_path / folder / target / time
            run.mkdir(parents=True)
            (run / f"{target}.ncu-repz").symlink_to(H200 / f"sdpa_s512_{target}.ncu-repz")
    result = profkit_cli("diff", tmp_path / "a", tmp_path / "b")
    assert " ".join(result.stdout.split()).count("SAME (no difference)") == 2
    assert "only in" not in result.stdout


def test_runs_of_one_target_are_paired_by_what_they_declare_to_compute(
    profkit_cli: Cli, tmp_path: Path
) -> None:
    runs = sorted(sweep_folder().iterdir())[:3]
    again = [f"20261122T{at}00000Z-{at}{at}ff00" for at in range(3)]
    for folder, names in (("a", [run.name for run in runs]), ("b", again[::-1])):
        for run, name in zip(runs, names, strict=True):
            shutil.copytree(run, tmp_path / folder / "sdpa_sweep" / name)
    result = profkit_cli("diff", tmp_path / "a", tmp_path / "b", "--format", "json")
    document = json.loads(result.stdout)
    lengths = [
        int(found[1])
        for one in document["comparisons"]
        if (found := re.search(r"length=(\d+)", one["label"]))
    ]
    declared = [json.loads((run / "check.json").read_text("utf-8"))["shapes"] for run in runs]
    assert sorted(lengths) == sorted(shapes["length"] for shapes in declared)
    assert all(
        kernel["verdict"] == "SAME" for one in document["comparisons"] for kernel in one["kernels"]
    )


def test_variants_that_the_other_run_did_not_profile_are_in_no_total() -> None:
    """Of six variants of one shape the sweep's run has four; its shapes are the same."""
    (one,) = (H200 / "sdpa_s512").iterdir()
    (other,) = sweep_folder().glob("*-4d7da1")
    found = profkit.diff(profkit.load(one), profkit.load(other))
    assert found.total.before < 1e-3
    assert found.total.removed == 0
    assert found.total.incomparable > 0
    matched = sum(kernel.before.total for kernel in found.kernels)
    assert found.total.before == pytest.approx(matched)


@cache
def swept(run: str) -> profkit.Report:
    return profkit.load(sweep_folder() / run)


def test_sizes_of_a_sweep_are_other_problems_without_a_run_that_declares_them() -> None:
    """Sequences of 256 and 512: cuDNN's kernel is persistent, with as many threads for both."""
    runs = "20261121T170653Z-015599", "20261121T174332Z-4d7da1"
    found = diff(*(bare(swept(run)) for run in runs))
    assert found.kernels
    for kernel in found.kernels:
        assert kernel.change is Change.incomparable
        assert Aspect.problem in {obstacle.aspect for obstacle in kernel.obstacles}
    assert math.isnan(found.total.speedup)
