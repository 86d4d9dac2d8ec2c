"""Estimates of recorded kernels have no cliffs: small changes have small effects."""

from __future__ import annotations

import dataclasses
import math

import pytest
from msgspec import structs

from profkit.report.catalog import catalog
from profkit.report.summary import ReportSummary, groups
from profkit.rules.engine import explain
from profkit.rules.rule_file import CONTEXT, Rule, shipped_rules
from profkit.rules.samples import SAMPLED
from tests.comparison.test_diff_pairs import side

STEP = 1.01  # 1%, as much as a counter differs between two recordings
CLIFF = 0.03  # of the time: 1.05x of a factor of 1.5x
PAIRS = ("transpose_conflicts", "tail_effect", "register_spills", "atomics_global", "ffma_gemm")
CLIFFS = {("workload_imbalance", "sm_imbalance")}
"""Rules and quantities with a cliff: whether the last wave explains idle SMs is a comparison."""


def left(summary: ReportSummary, rule: Rule) -> float:
    """The share of the time that the fix likely leaves."""
    (trial,) = explain(summary, rule)
    finding = trial.finding
    estimate = finding and finding.estimate
    return 1 / estimate.likely if estimate else 1.0


def is_structural(name: str, value: float) -> bool:
    """What is counted, not measured: the launch, its limits and the device."""
    section = catalog().quantities[name].section
    return section in {"LaunchStats", "Occupancy", "any"} or value == 0


@pytest.mark.parametrize("pair", PAIRS)
def test_a_percent_of_a_counter_is_no_cliff(pair: str) -> None:
    whole = side(pair, "before").summary
    launch = max(whole.launches, key=lambda each: each.duration)
    cliffs = set()
    for rule in shipped_rules():
        if rule.about != "kernel" or not rule.formulas or rule.spans == "chain":
            continue
        for name in set(rule.names) - {*CONTEXT, *SAMPLED, "duration"}:
            value = launch.get(name)
            if math.isnan(value) or is_structural(name, value):
                continue
            shares = []
            for scale in (1 / STEP, STEP):
                moved = dataclasses.replace(launch, values={**launch.values, name: value * scale})
                made = structs.replace(whole, launches=(moved,), groups=groups((moved,)))
                shares.append(left(made, rule))
            if max(shares) - min(shares) > CLIFF:
                cliffs.add((rule.name, name))
    assert cliffs <= CLIFFS
