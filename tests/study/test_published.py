"""Published figures beside cells: rates by hand, shares of each GPU's own peak, faults."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from profkit.core.fingerprint import Device
from profkit.study.published import (
    Fault,
    overclaims,
    published,
    published_pairs,
    wrong_claims,
)
from profkit.study.report import faults, goal
from profkit.study.summary import top_rows
from profkit.study.summary_format import Row
from profkit.timing.cell import CellStatus
from tests.conftest import ROOT

FACTS = ROOT.parent / "shared" / "facts" / "published.yaml"
FLOP = 4 * 32 * 8 * 512**2 * 64


def row(seconds: float, **more: Any) -> Row:
    told = Row(
        id="a.default", shape="a", at=0, backend="default", status=CellStatus.imported, reason="",
        arguments={}, gpu="L4", batch=32, heads=8, kv_heads=8, length=512, dim=64, causal=False,
        backward=False, dtype="float16", n=100, seconds=seconds, flop=FLOP,
        flop_rate=FLOP / seconds, share_of_datasheet=FLOP / seconds / 121e12,
    )  # fmt: skip
    return replace(told, **more)


def test_every_figure_is_of_a_product_with_a_peak_and_not_above_it() -> None:
    assert len(published()) > 50
    assert {one.gpu for one in published()} == {"L4", "H100 SXM", "H200"}
    assert all(one.share is not None and 0 < one.share < 1 for one in published())
    assert all(
        one.interval[0] <= one.seconds <= one.interval[1]
        for one in published()
        if one.seconds and one.interval
    )


def test_rates_of_times_are_those_that_were_published_with_them() -> None:
    told = {17772: 0, 43240: 0, 53516: 0, 49747: 0, 55245: 0}  # GFLOP/s of the study's lengths
    rates = [one.flop_rate / 1e9 for one in published() if one.series == "SDPA on an L4"]
    assert rates[:5] == pytest.approx(list(told), rel=1e-3)


def test_rates_that_were_published_are_taken_as_they_are() -> None:
    rates = {one.batch: one.flop_rate for one in published()
             if one.series == "SDPA on an L4" and one.length == 512
             and one.heads == 8}  # fmt: skip
    assert rates == {32: 53516e9, 8: 42799e9, 16: 58254e9, 64: 50194e9}


@pytest.mark.skipif(not FACTS.is_file(), reason="published figures (../shared/facts) are not here")
def test_the_study_is_quoted_whole_and_as_published() -> None:
    (study,) = [one for name, one in yaml.safe_load(FACTS.read_text("utf-8")).items()
                if name == "l4_sdpa_study"]  # fmt: skip
    text = files("profkit.study").joinpath("published_claims.yaml").read_text("utf-8")
    kept = yaml.safe_load(text)["l4_sdpa_study"]
    assert (kept["configs"], kept["claims"]) == (study["configs"], study["claims"])
    figures = [one for one in published() if one.study == "l4_sdpa_study"]
    told = [
        [one.batch, one.heads, one.length, one.dim,
         one.seconds and one.seconds * 1e3, [end * 1e3 for end in one.interval or ()],
         one.flop_rate / 1e9]
        for one in figures[:10]
    ]  # fmt: skip
    for one, row in zip(told, study["configs"], strict=True):
        assert one[:4] == row[:4]
        assert one[4] == pytest.approx(row[4])
        assert one[5] == pytest.approx(row[5])
        assert one[6] == pytest.approx(row[6])
    names = {"default": "auto", "flash": "flash", "efficient": "memory_efficient"}
    by_backend = {names[one.backend]: (one.seconds or 0) * 1e3 for one in figures[10:]}
    assert by_backend == pytest.approx(study["backends_s512_ms"])


def test_claims_of_a_study_are_audited_where_its_shapes_are() -> None:
    found = wrong_claims(published_pairs([row(0.32102e-3)], "L4"))
    texts = [outcome.claim.text for outcome in found]
    assert len([text for text in texts if text]) == 12  # every sentence of the study is wrong
    assert "S=512 is firmly compute-bound" in texts
    assert all(outcome.contradictions for outcome in found)
    elsewhere = row(1e-3, heads=16, kv_heads=16, length=1024, batch=16, dim=128)
    other = published_pairs([elsewhere], "H200")
    assert other
    assert wrong_claims(other) == ()


def test_a_shortfall_is_of_the_same_product_and_weighs_the_clock() -> None:
    slow = row(0.08e-3, gpu="H200", sm_clock=1.6e9, throttled={"software power cap": 3})
    chip = Device(sm_clock_max=2.0e9, power_limit=700.0)
    found = {one.figure.series: one for one in published_pairs([slow], "H200", chip)}
    short = found["SDPA default, earlier run"].shortfall
    assert short is not None
    assert (short.clock, short.explained, short.slowed) == (0.8, True, True)
    assert short.at_highest == pytest.approx(50.8 / 80 / 0.8)
    assert short.partly
    assert found["SDPA flash, earlier run"].shortfall is None  # 74.7 us: within a tenth
    assert found["SDPA on an L4"].shortfall is None
    (bare,) = [one.shortfall for one in published_pairs([row(0.08e-3)], "H200")
               if one.figure.series == "SDPA default, earlier run"]  # fmt: skip
    assert bare is not None
    assert not bare.explained


def test_faults_of_published_intervals_are_counted_each_by_its_reason() -> None:
    told = row(
        0.32102e-3, low=0.31e-3, high=0.35e-3, dependence=("start-up",), tick=0.0184e-3, n=100
    )
    found = overclaims(published_pairs([told], "L4"))
    assert found == {"judged": 1, "faulty": 1, "start-up": 1, "one_tick": 1}


def test_a_causal_series_counts_half_of_the_work_and_heads_of_k_and_v_their_own() -> None:
    series = {one.series: one for one in published()}
    assert series["FlashAttention-3, d 128, causal"].causal is True
    assert series["cuDNN, 64 heads on 8, d 128"].kv_heads == 8
    assert all(one.batch * one.length == 16384 and one.heads * one.dim == 2048
               for name, one in series.items() if name.startswith("FlashAttention"))  # fmt: skip


def test_same_samples_of_a_drifting_run_support_no_interval() -> None:
    found = published_pairs([row(0.32102e-3, refused="drifting", tick=1.024e-6)], "L4")
    one = next(one for one in found if one.figure.series == "SDPA on an L4")
    assert one.same_samples
    assert one.faults == (Fault.refused,)
    assert one.rate_ratio == pytest.approx(FLOP / 0.32102e-3 / 53516e9)
    measured = replace(one.row, status=CellStatus.measured)
    again = published_pairs([measured], "L4")
    assert next(one for one in again if one.figure.series == "SDPA on an L4").faults == ()


def test_another_gpu_is_held_by_rates_and_shares_and_never_by_times() -> None:
    found = published_pairs([row(0.0748e-3, gpu="H200")], "H200")
    seen = {one.figure.series: one for one in found}
    assert seen["SDPA default, earlier run"].time_ratio == pytest.approx(50.8 / 74.8)
    assert seen["SDPA on an L4"].time_ratio is None
    assert seen["SDPA on an L4"].rate_ratio == pytest.approx(FLOP / 0.0748e-3 / 53516e9)
    assert published_pairs([row(1e-3, dtype="float32")], "L4") == ()


def test_goal_by_hand() -> None:
    narrow = goal(row(110e-6, low=109e-6, high=111e-6))
    assert narrow.median == pytest.approx(100e-6)
    assert narrow.below == 109e-6
    wide = goal(row(110e-6, low=80e-6, high=150e-6))
    assert wide.median == 80e-6
    assert goal(row(110e-6)).below is None
    gaps = goal(row(110e-6, low=109e-6, high=111e-6, claim="gaps"))
    assert gaps.below is None
    assert gaps.median == pytest.approx(100e-6)
    with pytest.raises(ValueError, match="has no time"):
        goal(replace(row(1.0), seconds=None))


def test_top_rows_are_the_fastest_of_the_shapes_with_the_highest_rates() -> None:
    rows = [
        row(2e-3, id="a.slow", backend="slow"),
        row(1e-3, id="a.fast", backend="fast"),
        row(1e-4, id="b.fast", shape="b"),
        replace(row(1.0, id="c.none", shape="c"), seconds=None, flop_rate=None),
    ]
    assert [one.id for one in top_rows(rows)] == ["b.fast", "a.fast"]


def test_cells_are_known_by_their_faults() -> None:
    drifting = row(
        1e-3, refused="drifting", drift=-0.2, dependence=("autocorrelated", "drifting"),
        autocorrelation=0.9, effective_n=5.0, startup=2, outliers=3, cv=0.4,
    )  # fmt: skip
    steady = row(1e-3, claim="holds", tick=1e-6, drift=0.002)
    cells = faults([steady, drifting, replace(steady, seconds=None)])
    assert cells["claimed"] == cells["ticked"] == [steady]
    assert cells["refused"] == cells["correlated"] == cells["drifting"] == [drifting]
    assert cells["started_up"] == [drifting]
    assert cells["unsteady"] == []


def test_a_fault_is_of_the_cells_which_have_it() -> None:
    slow = row(1e-3, startup=1, cv=0.01, drift=0.004, dependence=("drifting",), late_submitted=3)
    capped = row(1e-3, cv=2.0, drift=5.0, independence="unknown", late_submitted=0, sm_clock=1.5e9,
                 throttled={"software power cap": 8})  # fmt: skip
    counted = row(1e-3, sm_clock=1.4e9, clock_by="device")
    cells = faults([slow, capped, counted])
    assert cells["started_up"] == cells["drifting"] == cells["late_submitted"] == [slow]
    assert cells["unsteady"] == cells["capped"] == cells["read"] == [capped]
    assert cells["clocked"] == [capped, counted]
