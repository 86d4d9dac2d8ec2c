"""What `import profkit` offers: names, representations, look-ups, paths, timelines, pictures."""

from __future__ import annotations

import math
import subprocess
import sys
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import profkit
from profkit.core import extras
from profkit.rules.finding_text import short_title
from tests.conftest import H200, ROOT, h200

PAIR = H200 / "pairs" / "transpose_conflicts"
RUN = H200 / "sdpa_s512"
FEW_LINES, SHORT = 12, 2000


def test_only_public_names_are_listed() -> None:
    assert dir(profkit) == sorted(profkit.__all__)
    assert {"load", "load_timeline", "diff", "Report", "ProfkitError"} <= set(dir(profkit))
    assert all(getattr(profkit, name) is not None for name in profkit.__all__)
    assert not {"Any", "TYPE_CHECKING", "annotations", "core", "sys"} & set(dir(profkit))


def test_wrong_names_are_attribute_errors_to_python_and_mypy() -> None:
    with pytest.raises(AttributeError, match="no attribute 'lod'") as caught:
        profkit.lod  # type: ignore[attr-defined]  # noqa: B018
    assert (caught.value.name, caught.value.obj) == ("lod", profkit)


def test_import_is_light() -> None:
    heavy = "{'numpy', 'ncu_report', 'msgspec', 'yaml', 'rich', 'pandas', 'torch'}"
    code = f"import sys, profkit; print(sorted({heavy} & set(sys.modules)), dir(profkit)[:1])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[] ['BadInput']\n"


def test_representations_are_short() -> None:
    report = profkit.load(RUN)
    checklist = report.checklist(blamed=0)
    change = profkit.diff(PAIR / "before.ncu-repz", PAIR / "after.ncu-repz")
    roofline = report.roofline()
    timeline = profkit.load_timeline(RUN)
    life = report.kernel(0).timeline()
    lists: list[Any] = [checklist, change]
    lines: list[Any] = [
        *checklist.findings, *checklist.rule_items, *change.kernels, *change.sides, *report,
        report, roofline, timeline, life, report.summary, *report.summary.groups,
        *report.summary.launches,
        *(item.finding for item in checklist.findings), *(item.rule for item in checklist.findings),
    ]  # fmt: skip
    assert all(len(repr(item).splitlines()) <= FEW_LINES for item in lists)
    assert all(len(repr(item)) < SHORT for item in lists)
    assert all("\n" not in repr(item) and len(repr(item)) < 200 for item in lines)


def test_an_item_says_what_a_fix_gives_and_where() -> None:
    item: profkit.Item
    item = profkit.load(PAIR / "before.ncu-repz").checklist().items[0]
    estimate = item.estimate
    assert estimate is not None
    assert item.speedup == estimate.likely
    assert item.range == (estimate.low, estimate.high)
    assert (item.title, item.kernel, item.launch) == (item.rule.title, item.group.name, 0)  # type: ignore[union-attr]
    low, high = item.range
    for text in (f"{item.speedup:.1f}x [{low:.1f}, {high:.1f}]", item.title, "transpose"):
        assert text in repr(item)


def test_an_item_without_an_estimate_has_no_speedup() -> None:
    item = h200("known").checklist(blamed=0).informative[0]
    assert math.isnan(item.speedup)
    assert all(map(math.isnan, item.range))
    assert "no estimated speedup" in repr(item)


def test_an_item_leads_to_its_kernel() -> None:
    report = profkit.load(RUN)
    for item in report.checklist(blamed=0).items:
        if item.launch is not None:
            assert report.kernel(item.launch).name == item.kernel
        else:
            assert item.kernel == ""


def test_a_kernel_is_found_by_index_name_and_expression() -> None:
    report = h200("known")
    padded = report.kernel("transpose_padded")
    assert padded.summary.index == 3
    for key in (3, padded.name, "se_padd", "^transpose_p"):
        assert report.kernel(key).summary.index == 3


def test_of_many_launches_the_median_one_is_found() -> None:
    report = h200("sdpa_s512_math")
    group = next(group for group in report.summary.groups if group.count > 1)
    same = [other for other in report.summary.groups if other.name == group.name]
    if len(same) == 1:
        assert report.kernel(group.name).summary is group.typical
    assert report.kernel(group.typical.index).duration == group.typical.duration


def test_a_name_of_no_kernel_or_of_several_is_refused() -> None:
    report = h200("known")
    with pytest.raises(profkit.NothingMatches, match="did you mean transpose_padded"):
        report.kernel("transpos_paded")
    with pytest.raises(profkit.NothingMatches, match="no kernel matches 'zzz'; its kernels are "):
        report.kernel("zzz")
    with pytest.raises(profkit.NothingMatches, match="no launch 99"):
        report.kernel(99)
    with pytest.raises(profkit.UsageError, match="matches 2 kernels; give the index") as caught:
        report.kernel("^transpose")
    assert "2 (transpose_conflict" in str(caught.value)
    assert "3 (transpose_padded" in str(caught.value)
    with pytest.raises(profkit.UsageError, match="regular expression"):
        report.kernel("(")


def test_paths_are_compared_as_reports_are() -> None:
    paths = [PAIR / "before.ncu-repz", PAIR / "after.ncu-repz"]
    by_path = profkit.diff(str(paths[0]), paths[1])
    by_report = profkit.diff(profkit.load(paths[0]), profkit.load(paths[1]))
    (kernel,), (other,) = by_path.kernels, by_report.kernels
    assert (kernel.speedup, kernel.range) == (other.speedup, other.range)
    assert kernel.range[0] < kernel.speedup < kernel.range[1]
    assert f"{kernel.speedup:.3f}x faster" in repr(by_path)
    with pytest.raises(profkit.BadInput, match="no such file"):
        profkit.diff("absent.ncu-rep", paths[1])
    with pytest.raises(profkit.UsageError, match="auto, name, order, nvtx"):
        profkit.diff(*paths, match="names")


def test_reports_that_cannot_be_compared_say_why() -> None:
    change = profkit.diff(h200("known"), h200("sdpa_s512_flash"))
    assert change.refused
    assert change.obstacle_words in repr(change)


def test_a_timeline_is_loaded_from_an_export_and_from_a_run() -> None:
    timeline = profkit.load_timeline(RUN)
    assert len(timeline) == len(timeline.kernels) == timeline.summary.report.launches == 19
    assert list(timeline.kernels["nvtx"][:2]) == ["sdpa", "flash"]
    assert timeline.kernels["duration"].sum() == pytest.approx(timeline.summary.report.kernel_time)
    assert [item.rule.name for item in timeline.findings()] == ["gpu_idle"]
    assert timeline.findings(disabled=["gpu_idle"]) == ()
    assert len(profkit.load_timeline(H200 / "sdpa_s512_flash.sqlite")) == 5
    assert "gpu busy" in repr(timeline).lower()


def test_reports_and_timelines_are_not_taken_for_each_other() -> None:
    with pytest.raises(profkit.BadInput, match=r"profkit\.load_timeline read a timeline"):
        profkit.load(H200 / "sdpa_s512_flash.sqlite")
    with pytest.raises(profkit.BadInput, match="record with `nsys profile"):
        profkit.load_timeline(H200 / "known.ncu-repz")
    with pytest.raises(profkit.BadInput, match="no such file"):
        profkit.load_timeline(H200 / "absent.sqlite")
    with pytest.raises(profkit.BadInput, match="no timeline in this directory"):
        profkit.load_timeline(H200 / "pairs")


def test_a_roofline_draws_itself(tmp_path: Path) -> None:
    roofline = profkit.load(RUN).roofline()
    picture = tmp_path / "roofline.svg"
    figure = roofline.plot(picture, title="attention")
    assert "attention" in picture.read_text()
    assert figure.axes
    shown = roofline._repr_svg_()
    assert shown is not None
    assert shown.lstrip().startswith("<?xml")
    with pytest.raises(profkit.UsageError, match="not a kind of plot"):
        roofline.plot(tmp_path / "roofline.txt")


def test_without_matplotlib_a_plot_names_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    roofline = profkit.load(RUN).roofline()
    monkeypatch.setattr(extras, "find_spec", lambda _: None)
    with pytest.raises(profkit.EnvironmentProblem, match=r"matplotlib.*pip install"):
        roofline.plot()
    assert roofline._repr_svg_() is None


def test_notebooks_show_the_first_findings() -> None:
    report = profkit.load(RUN)
    html = unescape(report._repr_html_()).replace("\xa0", " ")
    checklist = report.checklist(blamed=0)
    assert all(short_title(item.title) in html for item in checklist.causes[:3])
    timeline = profkit.load_timeline(RUN)._repr_html_()
    assert "GPU idle" in timeline
    assert "Kernels by share of kernel time" in timeline
    assert str(ROOT) not in html + timeline
