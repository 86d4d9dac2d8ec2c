"""What the variants of a run prove of each other, and what of a run can be compared."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pytest
from msgspec import structs

import profkit
from profkit.report.summary import ReportSummary
from profkit.rules.checklist import proofs
from profkit.timing.variants import Variants, read_variants
from tests.conftest import H200

(RUN,) = (H200 / "sdpa_s512").iterdir()


@pytest.fixture(scope="module")
def report() -> ReportSummary:
    return profkit.load(RUN).summary


def test_timed_medians_of_whole_variants_are_compared(report: ReportSummary) -> None:
    found = proofs(report, read_variants(RUN))
    assert [proof.variant for proof in found] == ["sdpa", "cudnn", "flash", "efficient", "math"]
    assert {proof.best for proof in found} == {"custom"}
    assert all(proof.timed for proof in found)
    assert found[2].speedup == pytest.approx(71.74 / 44.32, rel=1e-3)


def test_without_timing_the_launches_of_a_variant_are_added_up(report: ReportSummary) -> None:
    found = proofs(report, Variants(("sdpa", "flash", "cudnn", "math")))
    assert [proof.variant for proof in found] == ["flash", "math"]
    assert not any(proof.timed for proof in found)
    assert found[0].speedup == pytest.approx(70.016 / 46.88)
    in_math = [one.duration for one in report.launches if "math" in one.launch.nvtx]
    assert len(in_math) == 14
    assert found[1].seconds == pytest.approx(sum(in_math))


def test_a_part_of_a_report_has_no_whole_variants(report: ReportSummary) -> None:
    part = structs.replace(report, launches=report.launches[:3])
    assert proofs(part, Variants(("sdpa", "flash", "cudnn"))) == ()
    assert proofs(part, read_variants(RUN)) != ()


def test_a_variant_with_a_failed_launch_is_not_compared(report: ReportSummary) -> None:
    failed = dataclasses.replace(report.launches[1], values={})
    launches = (report.launches[0], failed, *report.launches[2:])
    lacking = structs.replace(report, launches=launches)
    assert proofs(lacking, Variants(("flash", "cudnn"))) == ()


def test_a_variant_about_as_fast_demonstrates_nothing(report: ReportSummary) -> None:
    assert proofs(report, Variants(("a", "b"), {"a": 1.0, "b": 1.04})) == ()
    assert proofs(report, Variants(("a",), {"a": 1.0})) == ()
    assert proofs(report, None) == ()


def test_only_an_unchanged_run_is_used(tmp_path: Path) -> None:
    run = shutil.copytree(RUN, tmp_path / "run")
    assert read_variants(run) == read_variants(RUN)
    (run / "latency.json").write_text("{}", encoding="utf-8")
    changed = read_variants(run)
    assert changed is not None
    assert changed.medians == {}
    (run / "check.json").write_text("{}", encoding="utf-8")
    assert read_variants(run) is None
    assert read_variants(tmp_path) is None


def test_variants_that_were_timed_in_different_ways_are_not_compared(tmp_path: Path) -> None:
    run = shutil.copytree(RUN, tmp_path / "run")
    (run / "manifest.json").unlink()
    timing = json.loads((run / "latency.json").read_text(encoding="utf-8"))
    timing["series"][0]["cache"] = "warm"
    (run / "latency.json").write_text(json.dumps(timing), encoding="utf-8")
    mixed = read_variants(run)
    assert mixed is not None
    assert mixed.medians == {}


def test_a_demonstrated_speedup_is_the_headline_where_no_estimate_is_larger() -> None:
    found = profkit.load(RUN).checklist(blamed=0)
    proof = found.headline
    assert proof is not None
    assert (proof.variant, proof.best) == ("math", "custom")
    assert proof.speedup == pytest.approx(1210 / 44.32, rel=0.01)
    first = next(item for item in found.items if item.group)
    assert first.estimate is not None
    assert first.estimate.likely < proof.speedup
    assert found.proof_of(first) is proof
    without = dataclasses.replace(found, proofs=())
    assert without.headline is None
    small = dataclasses.replace(proof, seconds=proof.best_seconds * 1.06)
    assert dataclasses.replace(found, proofs=(small,)).headline is None
