"""What the page holds: JSON that can't break out, scripts by hash, data without its bulk."""

from __future__ import annotations

import hashlib
import json
import math
import re
from importlib.resources import files
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profkit.analysis.source_view import Counts, Instruction, SourceFile, SourceLine, SourceView
from profkit.page.charts import MOST_SAMPLES, steady_rates, timeline_chart
from profkit.page.data import _key
from profkit.page.page import page_templates
from profkit.page.sources import MOST_ROWS, source_data
from profkit.report.phases import KernelTimeline, Phase, Track
from profkit.report.source_lines import Code
from profkit.ui.template import embedded
from tests.conftest import h200

ASSETS = files("profkit.page") / "assets"


@given(st.text())
def test_embedded_json_says_the_same_and_can_not_end_its_element(text: str) -> None:
    made = embedded({"name": text + "</script><!--"})
    assert json.loads(made)["name"] == text + "</script><!--"
    assert "<" not in made
    assert made.isascii()


def test_nan_is_no_json() -> None:
    with pytest.raises(ValueError, match="JSON"):
        embedded([math.nan])


def test_what_is_bundled_is_what_is_recorded() -> None:
    for one in json.loads((ASSETS / "vendored.json").read_text(encoding="utf-8")):
        data = (ASSETS / one["file"]).read_bytes()
        assert hashlib.sha256(data).hexdigest() == one["sha256"]
        assert one["version"] in data.decode()
        assert "License" in (ASSETS / one["licence_file"]).read_text(encoding="utf-8")


def timeline(samples: int) -> KernelTimeline:
    times = tuple(at * 1e-6 for at in range(samples))
    wave = [0.8 if at < samples / 2 else 0.2 for at in range(samples)]
    tracks = tuple(
        Track(
            name=name,
            label=label,
            unit="1",
            steady=0.8 * scale or math.nan,
            times=times,
            values=tuple(value * scale for value in wave),
        )
        for name, label, scale in (
            ("dram_busy", "DRAM", 1.0), ("l2_busy", "L2", 0.5), ("fp64_busy", "FP64 pipe", 0.0),
        )
    )  # fmt: skip
    end = samples * 1e-6
    return KernelTimeline(
        duration=end,
        end=end,
        period=1e-6,
        driver="dram_busy",
        below_half=0.5,
        phases=(Phase("steady", 0.0, end / 2), Phase("tail", end / 2, end)),
        tracks=tracks,
        notes=("a note",),
    )


@pytest.mark.parametrize("samples", [100, MOST_SAMPLES, 4 * MOST_SAMPLES + 1])
def test_a_track_keeps_its_mean_however_long_it_is(samples: int) -> None:
    chart: Any = timeline_chart(timeline(samples))
    assert [track["name"] for track in chart["tracks"]] == ["dram_busy", "l2_busy"]
    assert len(chart["times"]) == 1
    values = chart["tracks"][0]["v"]
    assert len(values) == len(chart["times"][0]) <= MOST_SAMPLES
    assert np.mean(values) == pytest.approx(0.5, abs=0.01)
    assert chart["end"] == pytest.approx(samples * 1e-6, rel=1e-4)


def test_a_timeline_in_words() -> None:
    life = timeline(100)
    shown = str(page_templates().get_template("parts.html.j2").make_module().utilization(life, 3))  # type: ignore[attr-defined]
    for name in ("steady", "tail"):
        assert f"<b>{name}</b> 50.00 µs, 50.0%</span>" in shown
    assert re.search('<span class="quiet">50.0% of [^<]*[(]DRAM[)]</span>', shown)
    assert steady_rates(life) == [("DRAM", "80.0%"), ("L2", "40.0%"), ("FP64 pipe", "n/a")]
    assert re.search('<p class="note">[^<]*: FP64 pipe</p>', shown)


def counts(samples: float) -> dict[str, Any]:
    stalls = {"wait": samples} if samples else {}
    excess = {"shared_excess": 0.0, "global_excess": math.nan}
    return {"samples": samples, "stalls": stalls, "executed": 7.0, "live": 12.0, **excess}


def test_of_many_instructions_the_most_sampled_and_the_blamed_are_kept() -> None:
    many = 3 * MOST_ROWS
    view = SourceView(
        files=(),
        instructions=tuple(
            Instruction(16 * at, f"IADD3 R{at}", None, None, (5,) if at == 2 else (), **counts(at))
            for at in range(many)
        ),
        total=Counts(**counts(many)),
        has_source=False,
        notes=(),
    )
    data = source_data(view, Code(frozenset(), 0))
    addresses = [int(row[0], 16) for row in data["sass"]]
    assert data["instructions"] == many
    assert len(addresses) == MOST_ROWS
    assert addresses == sorted(addresses)
    assert addresses[0] == 32
    assert addresses[1] == 16 * (many - MOST_ROWS + 1)
    assert data["sass"][0][2] == [2, 7, 0, None, 12]
    assert data["reasons"] == ["wait"]


def test_of_a_long_header_the_lines_about_its_instructions_are_kept() -> None:
    lines = tuple(
        SourceLine(
            line=at,
            text=f"\tline {at}\x1b",
            findings=(),
            instructions=int(at == 5000),
            **counts(9.0 if at == 5000 else 0.0),
        )
        for at in range(1, 9001)
    )
    view = SourceView(
        files=(SourceFile("/a/b.cuh", lines),),
        instructions=(Instruction(16, "NOP", "/a/b.cuh", 5000, (), **counts(9.0)),),
        total=Counts(**counts(9.0)),
        has_source=True,
        notes=(),
    )
    (file,) = source_data(view, Code(frozenset({16}), 0))["files"]
    assert file["name"] == "b.cuh"
    assert [row[0] for row in file["lines"]] == list(range(4997, 5004))
    assert file["lines"][3][1] == "    line 5000\\x1b"
    assert file["of"] == 9000


def test_items_of_one_rule_have_keys_of_their_own() -> None:
    report = h200("known")
    items = report.checklist().rule_items
    assert len({_key(item) for item in items}) == len(items)
