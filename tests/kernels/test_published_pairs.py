"""Pairs of published reports as `profkit rules score --sets` reads them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from kernels.published_pairs import main
from profkit.score.score import pairs_in, read_pair
from tests.examined_pairs import PAIRS

REPORT = PAIRS / "transpose_conflicts" / "before.ncu-repz"


@pytest.mark.parametrize("listed", [True, False])
def test_labels_become_pairs(tmp_path: Path, *, listed: bool) -> None:
    keys = ("speedup", "also", "repo") if listed else ("gain", "related", "source")
    fixed, idle = (
        {"name": name, "family": "transpose", "category": "shared_bank_conflicts"}
        | dict(zip(keys, (gain, ["l1_bandwidth"], "owner/repository"), strict=True))
        for name, gain in (("fixed", 2.3), ("idle", 1.01))
    )
    place = tmp_path / "pairs" if listed else tmp_path
    for label in (fixed, idle):
        (place / str(label["name"])).mkdir(parents=True)
        shutil.copy(REPORT, place / str(label["name"]))
        if not listed:
            (place / str(label["name"]) / "pair.json").write_text(json.dumps(label), "utf-8")
    if listed:
        (tmp_path / "pairs.json").write_text(json.dumps({"pairs": [fixed, idle]}), "utf-8")
    assert main([str(tmp_path), *([str(tmp_path / "pairs.json")] if listed else [])]) == 0
    first, second = map(read_pair, pairs_in([tmp_path]))
    assert (first.name, first.kind) == ("fixed", "defect")
    assert first.achieved == pytest.approx(2.3)
    assert (first.family, first.also, first.source) == (
        "transpose", ("l1_bandwidth",), "owner/repository",
    )  # fmt: skip
    assert (second.name, second.kind) == ("idle", "no_gain")
