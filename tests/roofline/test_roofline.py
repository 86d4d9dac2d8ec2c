"""Rooflines of recorded reports, against ncu's own exports: points, roofs, pictures, the verb."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import matplotlib.image
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

import profkit
from profkit.calibration.ceilings import CeilingFile, CeilingRow
from profkit.core.errors import BadInput, UsageError
from profkit.core.fingerprint import Device
from profkit.core.typed_file import encode
from profkit.report.summary import groups
from profkit.roofline.plot import figure_of, plot_rooflines
from profkit.roofline.roofline import Outside, Point, Roofline, roofline
from profkit.roofline.roofs import Peaks
from profkit.timing.variants import Variants
from tests.conftest import CORPUS, H200, ROOT, Cli, export, h200, needs_corpus

RUN = H200 / "sdpa_s512"
PICTURE = ROOT / "tests" / "data" / "roofline_sdpa_s512.png"


@cache
def run() -> profkit.Report:
    return profkit.load(RUN)


@cache
def timed() -> Roofline:
    return run().roofline()


def cell(name: str, column: str, launch: int = 0) -> float:
    """What ncu's export says, in SI units."""
    units, rows = export(name, "raw")
    unit = units[column]
    value = float(rows[launch][column].replace(",", ""))
    scale = 1.0
    for word, factor in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("K", 1e3)):
        if unit.startswith((f"{word}byte", f"{word}hz", f"{word}inst")):
            scale = factor
    return value * {"us": 1e-6, "ms": 1e-3, "ns": 1e-9}.get(unit, scale)


def by_level(found: Roofline, name: str | None = None) -> dict[str, Point]:
    measured = [point for point in found.points if not point.algorithmic]
    return {point.level: point for point in measured if name in {None, point.name}}


@pytest.mark.parametrize(
    ("name", "flop", "roof"),
    [
        ("sdpa_s512_flash", "sm__ops_path_tensor_src_fp16.sum", "tensor_fp16_mma_sync"),
        ("sdpa_s512_cudnn", "sm__ops_path_tensor_src_fp16.sum", "tensor_fp16"),
        (
            "sdpa_s2048_d128_causal_flash",
            "sm__ops_path_tensor_src_bf16_dst_fp32.sum",
            "tensor_bf16_mma_sync",
        ),
    ],
)
def test_points_are_what_ncus_export_gives_by_hand(name: str, flop: str, roof: str) -> None:
    seconds = cell(name, "gpu__time_duration.sum")
    work = cell(name, flop)
    l2 = cell(name, "derived__lts__lts2xbar_bytes.sum.per_second")
    l1 = cell(name, "derived__l1tex__lsu_writeback_bytes_mem_lgds.sum.per_second")
    dram = cell(name, "dram__bytes_read.sum") + cell(name, "dram__bytes_write.sum")
    points = by_level(h200(name).roofline())
    assert {point.roof for point in points.values()} == {roof}
    for level, moved in (("dram", dram), ("l2", l2 * seconds), ("l1", l1 * seconds)):
        assert points[level].intensity == pytest.approx(work / moved, rel=2e-3), level
        assert points[level].rate == pytest.approx(work / seconds, rel=1e-3)
        assert points[level].flags == ()


def test_l1_and_compute_roofs_are_of_one_clock() -> None:
    roofline = profkit.load(H200 / "known.ncu-repz").roofline()
    rates = {roof.key: roof.rate for roof in roofline.roofs}
    # CC 9.0: 128 B to registers and 128 multiply-adds of FP32 per cycle and SM.
    assert rates["l1"] == pytest.approx(132 * 128 * roofline.sm_clock, rel=1e-3)
    assert rates["fp32"] == pytest.approx(132 * 256 * roofline.sm_clock, rel=1e-3)
    assert rates["fp32"] / rates["l1"] == pytest.approx(2)


def test_measured_roofs_are_asked_for_with_their_values() -> None:
    with pytest.raises(UsageError, match="no measured roofs"):
        h200("sdpa_s512_cudnn").roofline(peaks="measured")


def test_roofs_are_what_ncus_export_gives_by_hand() -> None:
    name = "sdpa_s512_flash"
    clock = cell(name, "gpc__cycles_elapsed.avg.per_second")
    hmma = "sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32_sparsity_off.sum.peak_sustained"
    fused = cell(name, "derived__sm__sass_thread_inst_executed_op_ffma_pred_on_x2")
    by_hand = {
        "dram": cell(name, "dram__bytes.sum.peak_sustained")
        * cell(name, "dram__cycles_elapsed.avg.per_second"),
        "l2": cell(name, "derived__lts__lts2xbar_bytes.sum.peak_sustained")
        * cell(name, "lts__cycles_elapsed.avg.per_second"),
        "l1": cell(name, "derived__l1tex__lsu_writeback_bytes_mem_lgds.sum.peak_sustained") * clock,
        "fp32": fused * clock,
        "tensor_fp16_mma_sync": cell(name, hmma) * clock,
    }
    found = h200(name).roofline()
    assert {roof.key for roof in found.roofs} == set(by_hand)
    for key, rate in by_hand.items():
        roof = found.roof(key)
        assert roof is not None
        assert roof.rate == pytest.approx(rate, rel=2e-3), key
        assert roof.source is Peaks.held
    assert found.sm_clock == pytest.approx(clock, rel=1e-3)


def test_declared_work_has_an_intensity_of_256_and_stands_beside_the_measured_one() -> None:
    algorithmic = {point.name: point for point in timed().points if point.algorithmic}
    assert set(algorithmic) == {"sdpa", "flash", "cudnn", "efficient", "math", "custom"}
    for point in algorithmic.values():  # 4 B H S S D over 4 tensors of B H S D at 2 bytes
        assert point.intensity == 4 * 32 * 8 * 512 * 512 * 64 / (4 * 32 * 8 * 512 * 64 * 2) == 256
        assert point.level == "dram"
    math_variant = by_level(timed(), "math")["dram"]
    assert math_variant.intensity < 256 / 30


def test_a_point_is_of_the_timed_median_and_its_interval() -> None:
    saved = json.loads(next(RUN.glob("*/latency.json")).read_text(encoding="utf-8"))
    for series in saved["series"]:
        told = series["statistics"] | {"interval": series["interval"]}
        point = by_level(timed(), series["label"])["dram"]
        assert point.timed
        assert point.seconds == pytest.approx(told["median"])
        work = point.rate * point.seconds
        assert point.low == pytest.approx(work / told["interval"]["high"])
        assert point.high == pytest.approx(work / told["interval"]["low"])
    assert any("timed latency (events, cold L2)" in note for note in timed().notes)


def test_a_timed_point_is_held_against_the_roof_that_is_drawn() -> None:
    """SDPA at S=512 beside the wgmma roof of the highest clock, 132 SMs x 4096 FLOP x 1.98 GHz."""
    found = timed()
    roof = found.roof("tensor_fp16")
    assert roof is not None
    assert roof.rate == pytest.approx(132 * 4096 * 1.98e9, rel=1e-2)
    point = by_level(found, "sdpa")["dram"]
    assert point.attained == pytest.approx(point.rate / roof.rate)


def test_a_variant_is_all_of_its_launches() -> None:
    launches = [one for one in run().summary.launches if "math" in one.launch.nvtx]
    assert len(launches) == 14
    point = by_level(timed(), "math")["dram"]
    work = sum(one.get("flop_fp32") for one in launches)
    moved = sum(one.get("dram_bytes") for one in launches)
    assert point.intensity == pytest.approx(work / moved)
    assert point.rate == pytest.approx(work / point.seconds)
    assert point.precision == "fp32"


def test_each_precision_is_held_against_its_own_roof() -> None:
    found = h200("sdpa_s512_flash").roofline(precision="all")
    points = {point.precision: point for point in found.points if point.level == "dram"}
    assert set(points) == {"tensor_fp16", "fp32"}
    assert points["fp32"].roof == "fp32"
    assert points["tensor_fp16"].roof == "tensor_fp16_mma_sync"
    assert points["tensor_fp16"].rate > points["fp32"].rate
    only = h200("sdpa_s512_flash").roofline(precision="fp32", levels=["dram"])
    assert [(point.precision, point.level) for point in only.points] == [("fp32", "dram")]


def test_kernels_without_work_say_so_and_how_near_memory_they_are() -> None:
    found = h200("known").roofline()
    outside = {one.name.partition("(")[0]: one for one in found.outside if one.seconds > 1e-5}
    assert set(outside) == {
        "copy_coalesced", "copy_strided", "transpose_conflict", "transpose_padded", "atomics",
        "pointer_chase",
    }  # fmt: skip
    assert all(one.why == "no floating-point work" for one in outside.values())
    peak = cell("known", "dram__bytes.sum.peak_sustained") * cell(
        "known", "dram__cycles_elapsed.avg.per_second"
    )
    moved = cell("known", "dram__bytes.sum.per_second")
    assert outside["copy_coalesced"].memory["dram"] == pytest.approx(moved / peak, rel=5e-3)


def test_what_was_not_collected_is_said_with_the_section_to_add() -> None:
    (one,) = h200("sdpa_s512_flash_set_basic").roofline().outside
    assert one.why == "work unknown: not collected; record with ncu --section " + (
        "SpeedOfLight_RooflineChart"
    )
    with pytest.raises(BadInput, match=r"no kernel has a point.*SpeedOfLight_RooflineChart"):
        figure_of([h200("sdpa_s512_flash_set_basic").roofline()], title="basic")


def test_datasheet_and_measured_roofs_and_what_stands_in_for_what_they_lack() -> None:
    sheet = h200("sdpa_s512_cudnn").roofline(peaks="datasheet")
    roofs = {roof.key: roof for roof in sheet.roofs}
    assert roofs["tensor_fp16"].rate == 989e12
    assert roofs["dram"].rate == 4.8e12
    assert roofs["tensor_fp16"].source is Peaks.datasheet
    assert roofs["l2"].source is Peaks.held
    assert any(note.startswith("no datasheet roof for L2, L1") for note in sheet.notes)
    own = h200("sdpa_s512_cudnn").roofline(
        peaks="measured", measured={"dram": 4.3e12, "tensor_fp16": 760e12}
    )
    roofs = {roof.key: roof for roof in own.roofs}
    assert (roofs["dram"].rate, roofs["dram"].source) == (4.3e12, Peaks.measured)
    assert roofs["fp32"].source is Peaks.held
    point = by_level(own)["dram"]
    assert point.attainable == pytest.approx(min(760e12, point.intensity * 4.3e12))


def test_a_point_above_a_roof_is_flagged_with_a_reason() -> None:
    low = h200("sdpa_s512_cudnn").roofline(
        peaks="measured", measured={"tensor_fp16": 100e12, "dram": 0.1e12}
    )
    point = by_level(low)["dram"]
    assert point.attained > 1
    assert [flag.partition(":")[0].partition(" of ")[2] for flag in point.flags] == [
        "FP16 wgmma", "DRAM",
    ]  # fmt: skip
    assert all("upper bound" in flag for flag in point.flags)
    axes = figure_of([low], title="low").axes[0]
    flagged = [item.get_gid() for item in axes.collections if "flag:" in (item.get_gid() or "")]
    assert len(flagged) == len([one for one in low.points if one.flags])


def test_hits_of_a_warm_cache_and_a_held_base_clock_are_named() -> None:
    report = run().summary
    fast = [
        structs.replace(one, statistics=structs.replace(one.summary, median=1e-6), interval=None)
        for one in _latencies()
    ]
    warm = [structs.replace(one, cache="warm") for one in fast]
    base = structs.replace(report, session=structs.replace(report.session, clock_control="base"))
    flags = by_level(roofline(base, latencies=warm), "flash")["dram"].flags
    assert "timed at a higher clock than the base clock that ncu locked" in flags[0]
    assert "warm cache" in flags[1]
    cold = by_level(roofline(report, latencies=fast), "flash")["dram"].flags
    assert "different clock" in cold[1]


def _latencies() -> list[Any]:
    from profkit.timing.latency import analyze_latency
    from profkit.timing.latency_file import read_latencies

    return [analyze_latency(one) for one in read_latencies(RUN).latencies if one.label == "flash"]


def test_no_recorded_point_lies_above_a_roof() -> None:
    for report in (run(), h200("known")):  # the run has all backends
        for point in report.roofline(precision="all").points:
            assert point.flags == () or point.precision == "fp16", point


def test_a_part_of_a_report_makes_no_whole_variant() -> None:
    part = profkit.load(RUN, kernel="flash_fwd").roofline()
    assert not any(point.timed for point in part.points)
    assert any("a timed latency covers all" in note for note in part.notes)
    kept = run().roofline(kernel="flash_fwd")
    assert {point.name for point in kept.points} == {"flash"}
    assert all(point.timed for point in kept.points)


def test_latencies_of_no_range_are_not_guessed() -> None:
    found = h200("sdpa_s512_flash").roofline(latency=RUN)
    assert not any(point.timed for point in found.points)
    assert any("no launch is in an NVTX range" in note for note in found.notes)


def test_variants_without_latencies_are_added_up() -> None:
    found = roofline(run().summary, variants=Variants(("math",)))
    point = by_level(found, "math")["dram"]
    launches = [one for one in run().summary.launches if "math" in one.launch.nvtx]
    assert not point.timed
    assert point.seconds == pytest.approx(sum(one.duration for one in launches))


@given(st.data())
def test_each_launch_counts_once_whichever_lie_in_a_variants_range(data: st.DataObject) -> None:
    summary = run().summary
    launches = tuple(
        dataclasses.replace(
            one,
            launch=dataclasses.replace(
                one.launch, nvtx=data.draw(st.sampled_from([(), ("a",), ("b",), ("b", "a")]))
            ),
        )
        for one in summary.launches
    )
    marked = structs.replace(summary, launches=launches, groups=groups(launches))
    found = roofline(marked, variants=Variants(("a", "b")), precision="all")
    placed: list[Point | Outside] = [*found.points, *found.outside]
    shares = {(one.name, one.launch): one.share for one in placed}
    assert sum(shares.values()) == pytest.approx(1)
    total = sum(one.duration for one in launches)
    for name, sides in (("a", {("a",), ("b", "a")}), ("b", {("b",)})):
        inside = sum(one.duration for one in launches if one.launch.nvtx in sides)
        told = sum(share for (own, _), share in shares.items() if own == name)
        assert told == pytest.approx(inside / total)


def test_what_is_drawn_is_where_the_numbers_are() -> None:
    found = timed()
    axes = figure_of([found], title="sdpa").axes[0]
    drawn = {item.get_gid(): item.get_offsets()[0] for item in axes.collections}
    for point in found.points:
        name = f"point:{point.name}:{point.level}"
        gid = f"algorithmic:{point.name}" if point.algorithmic else name
        assert tuple(drawn[gid]) == (point.intensity, point.rate), gid
    lines = {line.get_gid(): line for line in axes.lines}
    for roof in found.roofs:
        x, y = lines[f"roof:{roof.key}"].get_data()
        expected = roof.rate * np.array(x) if roof.is_memory else [roof.rate] * 2
        assert np.allclose(np.array(y), expected)
    for point in (one for one in found.points if not one.algorithmic):
        _, y = lines[f"whisker:{point.name}:{point.level}"].get_data()
        assert tuple(y) == (point.low, point.high)
    (x,), (y,) = lines["ridge:dram:tensor_fp16"].get_data()
    dram, tensor = found.roof("dram"), found.roof("tensor_fp16")
    assert dram is not None
    assert tensor is not None
    assert (x, y) == (tensor.rate / dram.rate, tensor.rate)


@pytest.mark.parametrize("precision", [None, "all"])
def test_labels_do_not_overlap_and_lie_in_the_picture(precision: str | None) -> None:
    figure = figure_of([run().roofline(precision=precision)], title="sdpa")
    figure.canvas.draw()
    axes = figure.axes[0]
    boxes = [
        text.get_window_extent()
        for text in axes.texts
        if (text.get_gid() or "").startswith("label:")
    ]
    assert len(boxes) >= 18
    for at, one in enumerate(boxes):
        assert one.x1 <= figure.bbox.x1
        assert not any(one.shrunk(0.98, 0.8).overlaps(other) for other in boxes[at + 1 :])


def words(figure: Any) -> str:
    """All that stands outside the axes, a space between lines."""
    lines = sorted(figure.texts, key=lambda text: -text.get_position()[1])
    return " ".join(" ".join(text.get_text() for text in lines).split())


def test_ridges_without_a_number_are_counted() -> None:
    figure = figure_of([timed()], title="sdpa")
    axes = figure.axes[0]
    ridges = sum((line.get_gid() or "").startswith("ridge:") for line in axes.lines)
    numbers = sum((text.get_gid() or "").startswith("number:") for text in axes.texts)
    assert ridges > numbers > 0
    assert f"({ridges - numbers} unnumbered: see --table)" in words(figure)
    alone = figure_of([h200("sdpa_s512_cudnn").roofline(levels=["dram"])], title="x")
    assert "◇ ridge" in words(alone)
    assert "unnumbered" not in words(alone)


def test_the_legend_has_the_bandwidth_of_each_level() -> None:
    (legend,) = figure_of([timed()], title="x").legends
    entries = [text.get_text() for text in legend.get_texts()]
    assert entries[:3] == ["DRAM 4.81 TB/s", "L2 10.3 TB/s", "L1 33.4 TB/s"]


def test_a_picture_is_the_one_that_was_looked_at(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    file = tmp_path / "now.png"
    plot_rooflines([timed()], file, title="sdpa_s512")
    now = _small(matplotlib.image.imread(file)[..., :3].mean(axis=2))
    if request.config.getoption("--regenerate"):
        matplotlib.image.imsave(PICTURE, now, cmap="gray", vmin=0, vmax=1)
    then = matplotlib.image.imread(PICTURE).reshape(*now.shape, -1)[..., 0]
    assert float(np.sqrt(np.mean((now - then) ** 2))) < 0.06


def _small(grey: np.ndarray) -> np.ndarray:
    """On a raster of 48 by 40: what fonts and versions change is lost in it."""
    for axis, parts in ((0, 40), (1, 48)):
        pieces = np.array_split(grey, parts, axis=axis)
        grey = np.stack([piece.mean(axis=axis) for piece in pieces], axis=axis)
    return grey


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_the_verb_writes_pictures_of_each_kind(
    profkit_cli: Cli, tmp_path: Path, suffix: str
) -> None:
    file = tmp_path / f"roofline{suffix}"
    done = profkit_cli("roofline", H200 / "sdpa_s512_cudnn.ncu-repz", "-o", file)
    assert done.stdout == ""
    starts = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
    assert file.read_bytes().startswith(starts[suffix])


def test_the_table_says_the_numbers(profkit_cli: Cli) -> None:
    done = profkit_cli("roofline", RUN)
    assert max(map(len, done.stdout.splitlines())) <= 100
    rows = {line.split("  ")[0]: line for line in done.stdout.splitlines() if line}
    assert "49.86 µs [49.77, 49.92]" in done.stdout
    assert "290.2" in rows["sdpa"]
    assert "256.0" in done.stdout
    assert "1.068 PFLOP/s" in done.stdout


def test_a_narrow_terminal_breaks_no_number_and_no_name(profkit_cli: Cli) -> None:
    wide = profkit_cli("roofline", RUN).stdout.split()
    done = profkit_cli("roofline", RUN, COLUMNS="60")
    assert max(map(len, done.stdout.splitlines())) <= 60
    left_out = {"Source"}  # the column of where a roof's clock is from
    assert {word for word in wide if "/" not in word} - left_out <= set(done.stdout.split())
    for whole in ("49.86 µs [49.73, 50.01]", "344.6 TFLOP/s", "16.2% of FP16 mma.sync"):
        assert whole in done.stdout


def test_the_share_of_its_roof_stands_beside_that_of_the_nearest(profkit_cli: Cli) -> None:
    what = (H200 / "sdpa_s512_flash.ncu-repz", "--kernel", "flash", "--level", "dram")
    done = profkit_cli("roofline", *what, "--precision", "all")
    (row,) = (line for line in done.stdout.splitlines() if "3.550 TFLOP/s" in line)
    assert row.endswith("5.9% of FP32           17.9% of DRAM")
    assert "38.6%" in done.stdout


def test_a_picture_needs_a_point_and_numbers_do_not(profkit_cli: Cli, tmp_path: Path) -> None:
    what = ("roofline", H200 / "known.ncu-repz", "--kernel", "copy_strided")
    done = profkit_cli(*what)
    assert "no floating-point work" in done.stdout
    drawn = profkit_cli(*what, "-o", tmp_path / "x.png", status=5)
    assert drawn.stderr == (
        "profkit: known: no kernel has a point to plot (no floating-point work); "
        "leave out -o for the numbers\n"
    )


def test_markdown_and_json_have_the_same_points(profkit_cli: Cli, tmp_path: Path) -> None:
    schema = json.loads((ROOT / "profkit/schemas/roofline.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    file = tmp_path / "points.json"
    for what in (RUN, H200 / "known.ncu-repz", H200 / "sdpa_s512_flash_set_basic.ncu-repz"):
        profkit_cli("roofline", what, "--format", "json", "-o", file, "--force")
        data = json.loads(file.read_text(encoding="utf-8"))
        jsonschema.Draft202012Validator(schema).validate(data)
        assert data["schema"] == "profkit.roofline/1"
        assert str(H200) not in file.read_text(encoding="utf-8")
    done = profkit_cli("roofline", RUN, "--format", "markdown", "--level", "dram")
    assert "| sdpa | 290.2 |" in done.stdout


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (
            ("-o", "roofline.jpg"),
            2,
            ".jpg is not a format of this verb; use .txt or .json or .md or .png or .svg or .pdf",
        ),
        (("--precision", "fp17"), 2, "no precision 'fp17'; use fp64, fp32"),
        (("--level", "l3"), 2, "--level"),
        (("--kernel", "("), 2, "not a valid regular expression"),
        (("--kernel", "nothing"), 2, "no kernel or variant matches 'nothing'"),
        (("--latency", "nowhere.json"), 5, "nowhere.json: can't be read"),
    ],
)
def test_wrong_usage_is_one_line(
    profkit_cli: Cli, words: tuple[str, ...], code: int, said: str
) -> None:
    done = profkit_cli("roofline", H200 / "sdpa_s512_cudnn.ncu-repz", *words, status=code)
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_measured_roofs_are_those_of_a_file_or_kept_of_the_gpu(
    profkit_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    report = H200 / "sdpa_s512_cudnn.ncu-repz"
    words = ("roofline", report, "--peaks", "measured", "--format", "json")
    none = profkit_cli(*words, status=4)
    assert "run `profkit ceilings`" in none.stderr
    assert "--ceilings FILE" in none.stderr
    copied = CeilingRow(
        name="dram", rate=4.3e12, low=4.2e12, high=4.4e12, unit="B/s", method="copy", amount=1e9,
        samples=30, level=0.95, sm_clock=1.9e9, power=600.0, temperature=50.0, peak=4.8e12,
        verified=True,
    )  # fmt: skip
    file = tmp_path / "ceilings.json"
    for gpu, code in (("NVIDIA H200", 0), ("NVIDIA L4", 2)):
        device = Device(name=gpu, uuid=None)
        measured = CeilingFile(gpu=device, ceilings=(copied,), created="2026-11-21T10:00:00+00:00")
        file.write_text(encode(measured), encoding="utf-8")
        done = profkit_cli(*words, "--ceilings", file, status=code)
        if code == 0:
            roofs = {one["key"]: one for one in json.loads(done.stdout)["reports"][0]["roofs"]}
            assert (roofs["dram"]["rate"], roofs["dram"]["source"]) == (4.3e12, "measured")
            assert roofs["tensor_fp16"]["source"] == "held"
    profkit_cli("roofline", report, "--ceilings", file, status=2)
    device = Device(name="NVIDIA H200", uuid="GPU-1")
    of_another = CeilingFile(gpu=device, ceilings=(copied,), created=measured.created)
    file.write_text(encode(of_another), encoding="utf-8")
    run_words = ("roofline", RUN, "--peaks", "measured", "--ceilings", file)
    done = profkit_cli(*run_words, status=2)
    assert re.search(r"\(uuid GPU-1 when measured, GPU-\S+ in the report\)", done.stderr)


@needs_corpus
def test_others_reports_give_points_or_a_reason(profkit_cli: Cli) -> None:
    for path in sorted(CORPUS.glob("*.ncu-rep")):
        found = profkit.load(path).roofline(precision="all")
        assert found.points or found.outside
        for point in found.points:
            assert point.intensity > 0
            assert math.isfinite(point.rate)
            assert point.flags or not point.attained > 1.01
        assert all(one.why for one in found.outside)
    profkit_cli("roofline", CORPUS / "KernelBench__matmul_kernel.ncu-rep")
