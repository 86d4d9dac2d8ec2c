"""What the verbs show of a history: lists, points, plots and the page."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from profkit.history.record import Series
from profkit.history.store import Store
from tests.conftest import ROOT, Cli
from tests.history.histories import CUDNN, FLASH, NIGHTLY, point

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
HOSTILE = Series("</script><b>$x_1$", "a&b\x1b[31m", "{{ 7 * 7 }}", "GPU <1>", "main")
SLOWED = replace(FLASH, target="norm", variant="")
NEW_DRIVER = replace(NIGHTLY, driver="590.2")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty nights of four series: one is slower since night 20, all have a new driver since
    night 10."""
    folder = tmp_path_factory.mktemp("history")
    series = (FLASH, CUDNN, HOSTILE, SLOWED)
    Store(folder).add(
        [
            point(
                number,
                each,
                52e-6 if each is SLOWED and number >= 20 else 50e-6,
                NEW_DRIVER if number >= 10 else NIGHTLY,
            )
            for number in range(30)
            for each in series
        ]
    )
    return folder


def test_words_choose_series(store: Path, profkit_cli: Cli) -> None:
    def shown(*words: str) -> list[str]:
        result = profkit_cli("history", "list", *words, "--store", store, "--format", "json")
        return [row["series"]["variant"] for row in json.loads(result.stdout)["series"]]

    assert len(shown()) == 4
    assert shown("flash") == shown("FLASH", "h200") == ["flash"]
    assert shown("sdpa", "main") == ["cudnn", "flash"]
    result = profkit_cli("history", "list", "none", "--store", store, status=2)
    assert result.stderr.count("\n") == 1
    result = profkit_cli("history", "show", "sdpa_s512", "--store", store, status=2)
    assert "2 series: sdpa_s512:cudnn" in result.stderr
    empty = profkit_cli("history", "list", "--store", store / "none", status=5)
    assert empty.stderr.count("\n") == 1


def test_the_points_of_a_series_with_what_changed(store: Path, profkit_cli: Cli) -> None:
    words = ("history", "show", "flash", "--store", store)
    lines = profkit_cli(*words).stdout.splitlines()
    (changed,) = (line for line in lines if "→" in line)
    assert changed.startswith("2026-10-08 02:30")
    assert changed.endswith("driver 580.1 → 590.2")
    assert profkit_cli(*words, "--top", "3").stdout.count("2026-10-") == 3
    document = json.loads(profkit_cli(*words, "--format", "json").stdout)
    schema = json.loads((ROOT / "profkit/schemas/history.json").read_text(encoding="utf-8"))
    jsonschema.validate(document, schema)
    assert [row["block_medians"] for row in document["points"]] == [
        list(point(number).block_medians) for number in range(30)
    ]


@pytest.mark.parametrize("format", ["terminal", "markdown"])
@pytest.mark.parametrize("verb", [["list"], ["show", "GPU"]])
def test_names_are_shown_and_not_interpreted(
    verb: list[str], format: str, store: Path, profkit_cli: Cli
) -> None:
    text = profkit_cli("history", *verb, "--store", store, "--format", format).stdout
    assert "\x1b" not in text
    assert "x1b[31m" in text.replace("\\", "")
    if format == "markdown":
        assert not re.search(r"(?<!\\)<b>", text)


@pytest.fixture(scope="module")
def page(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The page in a browser without network; at the end it must have logged nothing."""
    if CHROMIUM is None or importlib.util.find_spec("playwright") is None:
        pytest.skip("no browser: apt-get install chromium, pip install playwright")
    from playwright.sync_api import sync_playwright
    from typer.testing import CliRunner

    from profkit.commands.cli import app

    file = tmp_path_factory.mktemp("page") / "history.html"
    words = ["history", "page", "--store", str(store), "-o", str(file)]
    assert CliRunner().invoke(app, words).exit_code == 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        tab = browser.new_context(viewport={"width": 1280, "height": 900}, offline=True).new_page()
        complaints: list[str] = []
        requests: list[str] = []
        tab.on("console", lambda message: complaints.append(message.text))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on("request", lambda request: requests.append(request.url))
        tab.goto(file.as_uri())
        yield tab
        assert complaints == []
        assert set(requests) == {file.as_uri()}
        browser.close()


def names_on(tab: Any) -> list[str]:
    names: list[str] = tab.locator(".card:visible h2").all_text_contents()
    return names


def test_the_page_has_the_worst_series_first_and_text_as_text(page: Any) -> None:
    names = names_on(page)
    assert (names[0], len(names)) == ("norm", 4)
    assert any(name.startswith("</script><b>$x_1$:a&b") for name in names)
    first = page.locator(".card").first
    assert re.fullmatch(r"5\d\.\d\d µs \+[34]\.\d\d%.*", first.locator(".facts").inner_text())
    assert first.locator("svg path.rule.hardware").count() == 1
    assert "driver 580.1 → 590.2" in first.locator("details").text_content()


def test_the_page_is_searched_and_sorted(page: Any) -> None:
    page.fill("#search", "sdpa FLASH")
    assert names_on(page) == ["sdpa_s512:flash"]
    assert page.inner_text("#shown") == "1"
    page.fill("#search", "")
    page.select_option("#order", "name")
    assert names_on(page)[-2:] == ["sdpa_s512:cudnn", "sdpa_s512:flash"]
    page.select_option("#order", "worst")
    assert names_on(page)[0] == "norm"


def test_the_run_under_the_pointer_is_named(page: Any) -> None:
    box = page.locator(".card svg").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] - 2, box["y"] + 20)
    tip = page.locator(".card .tip").first.inner_text()
    assert re.fullmatch(r"2026-10-27 02:30 · 5\d\.\d\d µs · [0-9a-f]{9}", tip)
    page.mouse.move(2, 2)
    assert page.locator(".card .tip").first.inner_text() == "30 runs"


def test_the_page_is_no_wider_than_a_telephone(page: Any) -> None:
    page.set_viewport_size({"width": 360, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
