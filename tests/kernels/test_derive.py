"""Recorded latencies derived again: samples stay, derived figures follow."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from kernels.derive import REPORTS, derive, derived, recorded_latencies
from profkit.core.integrity import check_unchanged

RECORDED = REPORTS / "h200" / "pairs" / "tail_effect"


def test_a_verdict_that_today_s_code_would_not_give_is_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "tail_effect"
    shutil.copytree(RECORDED, folder)
    path = folder / "latency.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    verdict = derived(path)["comparisons"][0]["verdict"]
    document["comparisons"][0]["verdict"] = "invalid"
    path.write_text(json.dumps(document), encoding="utf-8")
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    del manifest["files"]["latency.json"]["sha256"]
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")

    assert derive(path)
    again = json.loads(path.read_text(encoding="utf-8"))
    assert again["comparisons"][0]["verdict"] == verdict != "invalid"
    assert again["created"] == document["created"]
    blocks = [[row["blocks"] for row in each["series"]] for each in (document, again)]
    assert blocks[0] == blocks[1]
    check_unchanged(path)
    assert not derive(path)


def test_all_recorded_latencies_are_seen() -> None:
    paths = recorded_latencies()
    assert len(paths) > 20
    assert RECORDED / "latency.json" in paths
