"""The table, JSON and page of an application's timeline."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from profkit.application import drawing
from profkit.application.application import Application, application_result, read_application
from profkit.application.drawing import timeline_widget, view_data
from profkit.application.view import application_document
from profkit.core.errors import BadInput
from profkit.core.typed_file import encode
from profkit.ui.html import document_html
from profkit.ui.markdown import document_markdown
from profkit.ui.terminal import document_terminal
from tests.application.synthetic import US, Host, Recording, training
from tests.conftest import Cli

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def application() -> Application:
    return read_application(training(nvtx="step", host_time=300 * US))


def test_the_table_fits_100_columns(application: Application) -> None:
    text = document_terminal(application_document(application, "x.sqlite"), to_file=True)
    assert max(map(len, text.splitlines())) <= 100
    assert re.search(r"^Kernels +1\.060 +75\.7%", text, re.M)
    assert re.search(r"^  host code without CUDA calls +0\.300 +21\.4%", text, re.M)
    assert "Next: profkit profile --app --nvtx step -- PROGRAM" in text


def test_markdown_has_the_same_rows(application: Application) -> None:
    text = document_markdown(application_document(application, "x.sqlite"))
    assert "| **Kernels** | 1.060 | 75.7% |  | 31 |" in text


def test_json_sums_to_the_wall_time(application: Application) -> None:
    document = json.loads(encode(application_result(application, "x.sqlite")))
    process = document["processes"][0]
    total = np.sum([part["seconds"] for part in process["parts"]], axis=0)
    assert total == pytest.approx(process["wall_s"])
    assert sum(part["share"] for part in process["parts"]) == pytest.approx(1)
    assert process["steps"] == 'NVTX range "step"'
    assert process["picks"][0]["nvtx"] == ["step"]


def test_a_timeline_without_gpu_work_is_refused() -> None:
    recording = Recording()
    recording.call("cudaMalloc", 0, 10, recording.thread())
    with pytest.raises(BadInput, match="no GPU work in this timeline"):
        read_application(recording.events())


def test_a_view_has_the_work_of_its_steps(application: Application) -> None:
    data = view_data(application)
    assert [step.name for step in data.steps] == ["step 5", "step 6", "step 7"]
    stream = data.tracks[0]
    assert stream.name == "GPU 0, stream 7"
    begin = np.cumsum(stream.start)
    end = begin + stream.length
    assert begin.min() >= 0
    assert end.max() <= data.span
    assert len(begin) == 3 * 32


def test_a_view_is_limited(monkeypatch: pytest.MonkeyPatch, application: Application) -> None:
    monkeypatch.setattr(drawing, "MOST_SLICES", 100)
    data = view_data(application)
    assert len(data.steps) == 1
    assert sum(len(track.start) for track in data.tracks) <= 100


def test_names_can_not_end_the_data() -> None:
    host = Host(Recording())
    for _ in range(10):
        host.launch("</script><script>alert(1)</script>", 20 * US)
        host.synchronize()
    text = timeline_widget(read_application(host.recording.events())).markup
    assert text.count("</script>") == 1


@pytest.mark.skipif(
    CHROMIUM is None or importlib.util.find_spec("playwright") is None,
    reason="no browser: apt-get install chromium, pip install playwright",
)
def test_a_browser_draws_zooms_and_names(tmp_path: Path, application: Application) -> None:
    from playwright.sync_api import sync_playwright

    page_file = tmp_path / "timeline.html"
    document = application_document(application, "x.sqlite", is_page=True)
    page_file.write_text(document_html(document), encoding="utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 800})
        problems: list[str] = []
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(page_file.as_uri())
        canvas = page.locator("canvas")
        canvas.scroll_into_view_if_needed()
        box = canvas.bounding_box()
        assert box is not None
        drawn = canvas.evaluate("canvas => canvas.toDataURL()")
        canvas.focus()
        for key in ("+", "+", "ArrowRight"):
            page.keyboard.press(key)
        assert canvas.evaluate("canvas => canvas.toDataURL()") != drawn
        page.keyboard.press("0")
        assert canvas.evaluate("canvas => canvas.toDataURL()") == drawn
        middle = box["x"] + box["width"] / 2
        page.mouse.move(middle, box["y"] + 58)
        page.mouse.wheel(0, -900)
        page.mouse.move(middle + 1, box["y"] + 58)
        assert "µs, at" in page.locator(".tip").inner_text()
        width = page.evaluate("document.documentElement.scrollWidth")
        browser.close()
    assert problems == []
    assert width <= 390
    assert page_file.stat().st_size < 2_000_000


def test_the_verb_writes_a_trace_beside_the_table(tmp_path: Path, profkit_cli: Cli) -> None:
    pytest.importorskip("perfetto")
    from tests.timeline.test_perfetto import slices, tracks

    trace = tmp_path / "run.pftrace"
    profkit_cli("timeline", "reports/h200/sdpa_s512_flash.sqlite", "--perfetto", str(trace))
    assert slices(tracks(trace), "Stream 7")[-1].name == "flash_fwd_kernel"


def test_work_on_another_gpu_of_the_process_is_named() -> None:
    recording = Recording()
    hosts = [Host(recording, process=1, device=device) for device in range(2)]
    for _ in range(12):
        for device, host in enumerate(hosts):
            host.launch("gemm()", (200 - 100 * device) * US)
            host.synchronize()
    text = document_markdown(
        application_document(read_application(recording.events()), "run.sqlite")
    )
    assert "also has work on GPU 1" in text
