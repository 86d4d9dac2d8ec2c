"""A summary that a program wrote: what it repeats or derives is that of its cells."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from profkit.audit.audit import examine
from profkit.audit.claims import read_claims

RECORD: dict[str, Any] = {
    "schema": "profkit.baseline/1",
    "cells": [
        {"id": "s512.flash", "seconds": 1.00001e-4, "low": 0.99e-4, "high": 1.02e-4,
         "mean": 1.01e-4, "cv": 0.03, "blocks_low": 0.98e-4, "blocks_high": 1.03e-4,
         "run_low": 0.99e-4, "run_high": 1.01e-4},
        {"id": "s1024.flash", "seconds": 3.00003e-4},
    ],
    "comparisons": [{"shape": "s512", "speedup": 1.2, "low": 1.1, "high": 1.3}],
    "scaling": [{"from": "s512.flash", "to": "s1024.flash", "factor": 2.0, "time_ratio": 3.00001}],
    "best": [{"id": "s512.flash", "by": "seconds", "measure": 1.00001e-4}],
}  # fmt: skip


def contradictions(path: Path, document: dict[str, Any]) -> int:
    path.write_text(json.dumps(document), encoding="utf-8")
    return len(examine(read_claims(path).claims).contradictions)


def test_a_record_that_holds_together_is_left(tmp_path: Path) -> None:
    assert contradictions(tmp_path / "summary.json", RECORD) == 0


DERIVED = (
    ("cells", "mean"), ("best", "measure"), ("scaling", "time_ratio"), ("comparisons", "speedup"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("part", "key", "factor"),
    [
        *((*figure, factor) for figure in DERIVED for factor in (0.75, 1.25)),
        ("cells", "blocks_low", 1.25),
        ("cells", "blocks_high", 0.75),
        ("cells", "run_low", 1.25),
        ("cells", "run_high", 0.75),
        ("comparisons", "low", 1.25),
        ("comparisons", "high", 0.75),
    ],
)
def test_a_figure_that_is_25_percent_off_or_crosses_its_estimate_is_found(
    tmp_path: Path, part: str, key: str, factor: float
) -> None:
    document = copy.deepcopy(RECORD)
    document[part][0][key] *= factor
    assert contradictions(tmp_path / "summary.json", document) == 1
