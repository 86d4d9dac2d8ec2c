"""The report page, in a real browser and as the commands write it."""

from __future__ import annotations

import base64
import hashlib
import html
import importlib.util
import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import profkit
from profkit.commands.cli import app
from profkit.ui import document as doc
from profkit.ui.html import document_html
from tests.conftest import H200, NIGHTLY, ROOT, Cli, export, h200, needs_reader, plain_bytes

KNOWN = H200 / "known.ncu-repz"
RUN = H200 / "sdpa_s512"
SCRIPT = "<script>a</script>"
IMAGE = '"><img src=x>'
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-renderer-backgrounding",  # else on a busy machine it gets no time
]
PATIENCE = 180_000  # milliseconds: a test machine may have much else to do
KEY_OF_FOCUS = """
    document.activeElement.id || document.activeElement.parentElement.dataset.key || ''
"""

STUDY = doc.Document(
    "A study",
    (
        doc.Heading("A study", 1),
        doc.Badges((doc.Badge("a.svg", "environment", "driver 580 " * 9, "#455a64", "<svg/>"),)),
        doc.Heading("Summary"),
        doc.bullets(doc.marked(f"`{'item' * 20}` {number}") for number in range(20)),
        doc.Heading("Numbers"),
        doc.Table("Times", ("Shape", "A", "B"), (("b1-" * 40, "1" * 60, "2"),) * 20, words=1),
        doc.Figure("f.svg", "A drawing.", '<svg width="900" height="300" viewBox="0 0 900 300"/>'),
    ),
)
WIDER = """scrolling =>
    Array.from(document.querySelectorAll('body *'))
        .filter(at => !at.closest(scrolling + ', svg svg, script, .skip'))
        .filter(at => { const box = at.getBoundingClientRect();
            return box.width && (box.right > innerWidth + 1 || box.left < -1); })
        .map(at => `${at.tagName} ${at.className} ${at.textContent.slice(0, 40)}`)
"""

needs_browser = pytest.mark.skipif(
    CHROMIUM is None or importlib.util.find_spec("playwright") is None,
    reason="no browser: apt-get install chromium, pip install playwright",
)


@dataclass
class Seen:
    """A page in the browser, and what it should not do."""

    tab: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pages of a report whose kernels are named like markup, and of a run with latencies."""
    folder = tmp_path_factory.mktemp("pages")
    data = plain_bytes("known")
    for old, new in {b"transpose_conflict": SCRIPT, b"pointer_chase": IMAGE}.items():
        assert len(old) == len(new)
        data = data.replace(old, new.encode())
    odd = folder / "odd.ncu-rep"
    odd.write_bytes(data)
    made = {}
    for name, source in (("odd", odd), ("run", RUN)):
        report = profkit.load(source)
        made[name] = folder / f"{name}.html"
        made[name].write_text(report.page(), encoding="utf-8")
    made["diff"], made["study"] = folder / "diff.html", folder / "study.html"
    pair = H200 / "pairs" / "transpose_conflicts"
    arguments = ["diff", pair / "before.ncu-repz", pair / "after.ncu-repz", "-o", made["diff"]]
    assert CliRunner().invoke(app, list(map(str, arguments))).exit_code == 0
    made["study"].write_text(document_html(STUDY), encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def show(browser: Any, pages: dict[str, Path]) -> Iterator[Callable[..., Seen]]:
    """Open a page; at the end it must have logged no error and requested no file."""
    opened: list[Seen] = []

    def one(name: str = "odd", width: int = 1600, theme: str = "light") -> Seen:
        context = browser.new_context(
            viewport={"width": width, "height": 1000}, color_scheme=theme, offline=True
        )
        context.set_default_timeout(PATIENCE)
        seen = Seen(context.new_page())
        seen.tab.on("console", lambda message: seen.complaints.append(message.text))
        seen.tab.on("pageerror", lambda error: seen.complaints.append(str(error)))
        seen.tab.on("dialog", lambda dialog: seen.complaints.append(dialog.message))
        seen.tab.on("request", lambda request: seen.requests.append(request.url))
        seen.tab.goto(pages[name].as_uri())
        opened.append(seen)
        return seen

    yield one
    for seen in opened:
        assert not seen.complaints
        assert {url.partition(":")[0] for url in seen.requests} == {"file"}
        assert len(set(seen.requests)) == 1
        seen.tab.context.close()


def rows_shown(tab: Any) -> list[str]:
    shown: list[str] = tab.locator("#kernel-table tbody tr:visible th").all_inner_texts()
    return shown


def draw_all(tab: Any) -> None:
    """Draw what is drawn once it is seen, which a busy browser notices late."""
    tab.evaluate(
        "document.querySelectorAll('.chart').forEach(c => c.profkitDraw && c.profkitDraw())"
    )
    tab.wait_for_function("document.getElementById('roofline-chart').profkit")


@needs_browser
@pytest.mark.parametrize(
    ("width", "theme"),
    [(400, "light"), (1600, "dark"), *([(400, "dark"), (1600, "light")] if NIGHTLY else [])],
)
@pytest.mark.parametrize("name", ["odd", "run"])
def test_it_loads_without_a_complaint_and_never_scrolls_sideways(
    show: Callable[..., Seen], name: str, width: int, theme: str
) -> None:
    tab = show(name, width, theme).tab
    tab.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
    draw_all(tab)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.evaluate("document.documentElement.dataset.theme") == theme
    assert tab.locator("#roofline-chart svg").count() == 1


@needs_browser
def test_on_a_laptop_no_column_is_cut_or_runs_into_the_next(show: Callable[..., Seen]) -> None:
    tab = show("run", 1280).tab
    assert tab.evaluate(
        "[...document.querySelectorAll('#kernels .scroll')]"
        ".every(box => box.scrollWidth <= box.clientWidth)"
    )
    assert tab.evaluate(
        "[...document.querySelectorAll('.first .run small')].every(text =>"
        " text.scrollWidth <= text.clientWidth + 1)"
    )
    assert tab.evaluate(
        "[...document.querySelectorAll('.first .gain')].every(gain =>"
        " gain.scrollWidth <= gain.clientWidth + 1)"
    )


def test_what_is_only_possible_is_called_so_everywhere() -> None:
    report = profkit.load(h200("sdpa_s512_flash_set_basic").path)
    text = report.page()
    titles = {item.rule.title for item in report.checklist().findings if item.is_uncertain}
    assert titles
    for title in titles:
        assert text.count(f">{title}<") == 0
        assert text.count(f"Possibly: {title}<") >= 3


@needs_browser
@pytest.mark.parametrize("width", [390, 1280])
def test_one_kernel_has_a_roofline_with_a_slope_and_ticks(browser: Any, width: int) -> None:
    """Two decades of either axis at least, so two ticks, and the roof's ridge in the frame."""
    tab = browser.new_page(viewport={"width": width, "height": 1000})
    tab.set_content("<div id=chart style='height:400px'></div>")
    for script in ("echarts.common.min.js", "theme.js", "charts.js"):
        tab.add_script_tag(path=str(ROOT / "profkit" / "page" / "assets" / script))
    bounds = tab.evaluate(
        "() => { const point = {x: 900, y: 9e14, share: 1, level: 'dram', flags: [], name: 'k',"
        " full: 'k', launch: 0, precision: 'fp16', roof: 'fp16', facts: []};"
        " const roofs = [{key: 'dram', rate: 4.8e12, memory: true, text: ''},"
        " {key: 'fp16', rate: 9.9e14, memory: false, text: ''}];"
        " const drawn = profkitCharts.roofline(document.getElementById('chart'),"
        " {points: [point], roofs: roofs}, {level: 'dram', chosen: () => {}});"
        " const option = drawn.chart.instance.getOption();"
        " return [option.xAxis[0].min, option.xAxis[0].max, option.yAxis[0].min] }"
    )
    ridge = 9.9e14 / 4.8e12
    assert bounds[0] < ridge / 2
    assert bounds[1] / bounds[0] >= 100
    assert bounds[2] <= 9.9e14 / 40
    tab.close()


@needs_browser
def test_the_first_screen_has_the_answer_and_the_verdicts(show: Callable[..., Seen]) -> None:
    tab = show("run").tab
    first = profkit.load(RUN).checklist().items[0]
    title = tab.locator(".lead-title").inner_text()
    assert title.startswith("27x")
    assert "custom" in title
    steps = tab.locator(".steps").inner_text()
    assert first.rule.title in steps
    assert first.actions[0] in steps
    assert "profkit diff sdpa_s512.ncu-repz AFTER" in steps
    for selector in (".lead", ".findings li:first-child", ".time-rows", ".verdicts tr:last-child"):
        box = tab.locator(selector).first.bounding_box()
        assert box["y"] + box["height"] <= 1000, selector
    flash = tab.locator(".verdicts tr", has_text="flash").inner_text()
    assert "71.74 µs" in flash
    assert "1.438x slower [1.436, 1.441]" in flash


@needs_browser
@pytest.mark.parametrize("name", ["odd", "run"])
def test_no_element_is_wider_than_a_phone(show: Callable[..., Seen], name: str) -> None:
    """Only the section links and source views scroll sideways: tables become rows."""
    tab = show(name, 390).tab
    tab.evaluate("document.querySelectorAll('details').forEach(place => { place.open = true })")
    draw_all(tab)
    tab.wait_for_function("document.querySelector('.view table')")
    assert tab.evaluate(WIDER, ".rail, .view-wrap *") == []


@needs_browser
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", ["diff", "study"])
def test_a_diff_and_a_document_fit_a_phone(
    show: Callable[..., Seen], name: str, theme: str
) -> None:
    tab = show(name, 390, theme).tab
    tab.evaluate("document.querySelectorAll('details').forEach(place => { place.open = true })")
    assert tab.evaluate(WIDER, ".scroll *, figure svg") == []


@needs_browser
def test_the_source_shows_a_hundred_characters(show: Callable[..., Seen]) -> None:
    tab = show(width=1400).tab
    tab.locator("#kernel-4 details.source").evaluate("place => { place.open = true }")
    view = tab.locator("#kernel-4 .view-wrap")
    right = view.bounding_box()["x"] + view.bounding_box()["width"]
    cell = view.locator("td.src").first
    character = tab.evaluate(
        """cell => {
            const probe = cell.appendChild(document.createElement('span'));
            probe.textContent = '0'.repeat(100);
            const width = probe.getBoundingClientRect().width;
            probe.remove();
            return width / 100;
        }""",
        cell.element_handle(),
    )
    assert right - cell.bounding_box()["x"] >= 100 * character
    counts = h200("known").kernel(4).source_view().total
    heads = view.locator("th").all_inner_texts()
    assert ("Shared excess" in heads) == (counts.shared_excess > 0)
    assert ("Global excess" in heads) == (counts.global_excess > 0)


@needs_browser
def test_the_chosen_section_is_marked_where_it_can_not_reach_the_top(
    show: Callable[..., Seen],
) -> None:
    tab = show("run").tab
    for section in ("provenance", "environment", "summary"):
        tab.locator(f'.rail a[href="#{section}"]').click()
        tab.wait_for_timeout(300)
        marked = tab.locator(".rail a[aria-current]")
        assert marked.evaluate_all("links => links.map(link => link.hash)") == [f"#{section}"]


@needs_browser
def test_all_levels_have_a_legend(show: Callable[..., Seen]) -> None:
    tab = show().tab
    draw_all(tab)
    assert not tab.locator("#roofline-legend").is_visible()
    tab.locator('#levels input[value="all"]').check(force=True)
    assert tab.locator("#roofline-legend li:visible").count() == 3
    colors = {
        tab.evaluate("at => getComputedStyle(at).fill", mark)
        for mark in tab.locator("#roofline-legend svg").element_handles()
    }
    assert len(colors) == 3


def test_each_item_of_the_checklist_is_one_box(pages: dict[str, Path]) -> None:
    items = profkit.load(RUN).checklist()
    text = pages["run"].read_text(encoding="utf-8")
    boxes = re.findall(r'<li class="item" id="item-([^"]*)"', text)
    expected = [*items.major, *items.minor]
    assert boxes == [str(item.rank or item.rule.name) for item in expected]
    assert sum(len(item.findings) > 1 for item in expected) == text.count('class="on-kernels"')
    before, _, after = text.partition('<details class="fold minor">')
    assert before.count('<li class="item"') == len(items.major)
    assert after.count('<li class="item"') == len(items.minor)
    count = before.count('<li class="item"') + after.count('<li class="item"')
    assert f'href="#checklist">Checklist <span class="count">{count}</span>' in text


@needs_reader
@needs_browser
def test_a_script_in_a_kernels_name_stays_text(show: Callable[..., Seen]) -> None:
    tab = show().tab
    assert tab.locator("script").count() == 5
    assert tab.locator("img").count() == 0
    assert any(SCRIPT in row for row in rows_shown(tab))
    assert any(IMAGE in row for row in rows_shown(tab))
    tab.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
    tab.locator("#checklist a[data-source]", has_text="known.cu:8").first.click()
    assert SCRIPT in tab.locator("tr.here").inner_text()
    assert tab.locator("script").count() == 5


@needs_browser
def test_the_table_sorts_by_any_column_and_says_so(show: Callable[..., Seen]) -> None:
    tab = show().tab
    head = tab.locator('#kernel-table th[data-key="dram_busy"]')
    by_busy = sorted(
        (launch for launch in h200("known").summary.groups),
        key=lambda group: -group.typical.get("dram_busy"),
    )
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert rows_shown(tab)[0].startswith(by_busy[0].name[:14])
    head.locator("button").press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert rows_shown(tab)[-1].startswith(by_busy[0].name[:14])
    names = tab.locator('#kernel-table th[data-key="name"]')
    names.locator("button").click()
    shown = [row.split("\n")[0].lower() for row in rows_shown(tab)]
    assert shown == sorted(shown)
    assert head.get_attribute("aria-sort") == "none"


@needs_browser
def test_the_table_filters_by_name_shape_and_finding(show: Callable[..., Seen]) -> None:
    tab = show().tab
    everything = len(rows_shown(tab))
    tab.locator("#filter").fill("copy_coalesced")
    assert len(rows_shown(tab)) == 2
    assert tab.locator("#shown").inner_text() == "2"
    tab.locator("#filter").fill("copy_coalesced bandwidth bound")
    assert len(rows_shown(tab)) == 1
    tab.locator("#filter").fill("")
    assert len(rows_shown(tab)) == everything


@needs_browser
def test_pointing_at_a_kernel_in_the_roofline_names_it(show: Callable[..., Seen]) -> None:
    tab = show().tab
    draw_all(tab)
    chart = tab.locator("#roofline-chart")
    chart.scroll_into_view_if_needed()
    told = {}
    for level, words in (("dram", "DRAM traffic"), ("l2", "L2 traffic")):
        tab.locator(f'#levels input[value="{level}"]').check(force=True)
        x, y = tab.evaluate("document.getElementById('roofline-chart').profkit.where('fma_bound')")
        box = chart.bounding_box()
        tab.mouse.move(box["x"] + x - 40, box["y"] + y)
        tab.mouse.move(box["x"] + x, box["y"] + y)
        told[level] = tab.locator(".tip:visible", has_text=words).inner_text()
        assert "fma_bound(float *, int)" in told[level]
    points = {
        point.level: point
        for point in h200("known").roofline().points
        if point.name.startswith("fma_bound")
    }
    for level in told:
        said = re.search(r"([\d,.]+) FLOP/B", told[level])
        assert said
        value = float(said[1].replace(",", ""))
        assert value == pytest.approx(points[level].intensity, rel=1e-3)


@needs_browser
def test_the_roofline_zooms_and_can_be_walked_by_keys(show: Callable[..., Seen]) -> None:
    tab = show().tab
    chart = tab.locator("#roofline-chart")
    draw_all(tab)
    where = "document.getElementById('roofline-chart').profkit.where('spill')"
    before = tab.evaluate(where)
    tab.locator("#zoom-in").press("Enter")
    assert tab.evaluate(where) != before
    tab.locator("#zoom-reset").press("Enter")
    assert tab.evaluate(where) == pytest.approx(before)
    chart.focus()
    tab.keyboard.press("ArrowRight")
    first = tab.locator("#roofline-selection").inner_text()
    tab.keyboard.press("ArrowRight")
    assert first
    assert tab.locator("#roofline-selection").inner_text() != first
    tab.keyboard.press("Escape")
    assert tab.locator("#roofline-selection").inner_text() == ""


@needs_reader
@needs_browser
def test_a_blamed_line_opens_the_source_at_it(show: Callable[..., Seen]) -> None:
    tab = show().tab
    item = next(
        item for item in h200("known").checklist().items if item.group and item.places[:1]
        and item.places[0].line == 16
    )  # fmt: skip
    assert item.group is not None
    assert tab.locator(".view table").count() == 0
    link = tab.locator(f'#item-{item.rank} a[data-source$="{item.places[0].line}"]').first
    if not link.is_visible():
        tab.locator(f"#item-{item.rank} summary").click()
    link.click()
    row = tab.locator("tr.here")
    assert row.locator("td").first.inner_text() == "16"
    assert row.locator(f'a[href="#item-{item.rank}"]').is_visible()
    assert "100%" in row.inner_text()
    row.locator("button").click()
    view = tab.locator(".view table:visible").first
    assert view.locator("th.src").inner_text() == "SASS"
    kernel = h200("known").kernel(item.group.typical.index)
    assert view.locator("tbody tr").count() == len(kernel.source_view().instructions)


@needs_browser
def test_ticks_are_kept_and_what_is_done_can_be_hidden(show: Callable[..., Seen]) -> None:
    tab = show().tab
    items = tab.locator(".item:visible").count()
    tab.locator("#check-item-2").check()
    assert tab.locator("#done").inner_text() == "1"
    _reload(tab, "document.querySelector('#check-item-2').checked")
    assert not tab.locator("#check-item-1").is_checked()
    tab.locator("#hide-done").check()
    assert tab.locator(".item:visible").count() == items - 1
    tab.locator("#hide-done").uncheck()
    tab.locator("#check-item-2").uncheck()
    assert tab.locator("#done").inner_text() == "0"


def _reload(tab: Any, stored: str) -> None:
    """Reload until the page holds what it stored: the browser writes that down a moment later."""
    for _ in range(60):
        tab.wait_for_timeout(500)
        tab.reload()
        if tab.evaluate(stored):
            return
    pytest.fail(f"not stored: {stored}")


@needs_browser
def test_the_theme_follows_the_system_until_it_is_chosen(show: Callable[..., Seen]) -> None:
    tab = show(theme="dark").tab
    dark = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    tab.locator("#theme").click()
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") != dark
    _reload(tab, "document.documentElement.dataset.theme === 'light'")


@needs_browser
def test_it_can_be_used_by_keys_alone(show: Callable[..., Seen]) -> None:
    tab = show().tab
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.className") == "skip"
    reached = set()
    for _ in range(150):
        tab.keyboard.press("Tab")
        if tab.evaluate("document.activeElement === document.body"):
            break  # past the last element
        reached.add(tab.evaluate(KEY_OF_FOCUS))
        outlined = tab.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        opacity = tab.evaluate("getComputedStyle(document.activeElement).opacity")
        assert outlined != "none" or opacity == "0"  # a radio button's label has its outline
    assert {"theme", "check-item-1", "hide-done", "filter", "rank", "total"} <= reached


@needs_browser
def test_paper_is_light_and_has_the_whole_checklist(show: Callable[..., Seen]) -> None:
    tab = show("run", theme="dark").tab
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert tab.evaluate("document.documentElement.dataset.theme") == "light"
    assert tab.locator(".items details:not([open])").count() == 0
    assert tab.locator("#latency-chart svg").count() == 1
    tab.emulate_media(media="print")
    assert not tab.locator(".top").is_visible()
    assert not tab.locator("#filter").is_visible()
    tab.emulate_media(media="screen")
    tab.evaluate("dispatchEvent(new Event('afterprint'))")
    assert tab.evaluate("document.documentElement.dataset.theme") == "dark"
    assert tab.locator(".item details:not([open])").count() > 0


@needs_browser
def test_samples_can_be_compared_on_one_axis(show: Callable[..., Seen]) -> None:
    tab = show("run").tab
    draw_all(tab)
    tab.wait_for_function("document.getElementById('latency-note').textContent")
    assert tab.locator('#latency-axis input[value="own"]').is_checked()
    separate = tab.locator("#latency-note").inner_text()
    tab.locator('#latency-axis input[value="common"]').check(force=True)
    assert tab.locator("#latency-note").inner_text() != separate


def test_the_page_is_small_and_holds_every_kernel(pages: dict[str, Path]) -> None:
    text = pages["odd"].read_text(encoding="utf-8")
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert data
    assert len(text.encode()) - len(data[1]) < 3_000_000
    parsed = json.loads(data[1])
    assert {point["level"] for point in parsed["roofline"]["points"]} == {"dram", "l2", "l1"}
    for group in h200("known").summary.groups:
        assert f'href="#kernel-{group.typical.index}"' in text or group.share < 0.01


def test_the_page_allows_its_own_scripts_and_nothing_else(pages: dict[str, Path]) -> None:
    text = pages["odd"].read_text(encoding="utf-8")
    found = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert found
    policy = html.unescape(found[1])
    scripts = re.findall(r"<script>(.*?)</script>", text, re.S)
    assert len(scripts) == 4
    digests = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts]
    assert policy.split("; ") == [
        "default-src 'none'",
        " ".join(["script-src", *(f"'sha256-{digest}'" for digest in digests)]),
        "style-src 'unsafe-inline'",
        "base-uri 'none'",
        "form-action 'none'",
    ]


def test_the_times_are_those_that_ncu_exports(pages: dict[str, Path]) -> None:
    units, launches = export("known", "raw")
    assert units["gpu__time_duration.sum"] == "ns"
    durations = [float(row["gpu__time_duration.sum"].replace(",", "")) for row in launches]
    text = pages["odd"].read_text(encoding="utf-8")
    table = text[
        text.index('id="kernel-table"') : text.index("</table>", text.index("kernel-table"))
    ]
    rows = [re.findall(r'data-v="([^"]*)"', row) for row in table.split("<tr data-search")[1:]]
    shown = [float(row[3]) * 1e9 for row in rows]
    assert shown == pytest.approx(sorted(durations, reverse=True))
    assert sum(float(row[2]) for row in rows) == pytest.approx(1)


def test_the_host_is_left_out_unless_requested(tmp_path: Path, profkit_cli: Cli) -> None:
    session = h200("known").session
    shared, own = tmp_path / "shared.html", tmp_path / "own.html"
    result = profkit_cli("report", KNOWN, "-o", shared)
    assert str(shared) in result.stderr
    profkit_cli("report", KNOWN, "-o", own, "--with-host")
    host = f">{session.host.name}"
    private = [host, *session.host.addresses, str(KNOWN.parent)]
    assert all(word not in shared.read_text(encoding="utf-8") for word in private)
    assert host in own.read_text(encoding="utf-8")


def test_what_was_not_settled_is_inconclusive(pages: dict[str, Path]) -> None:
    """Four blocks settle nothing, eight do."""
    settled = pages["run"].read_text(encoding="utf-8")
    assert ">INCONCLUSIVE</span>" not in settled
    assert "of datasheet peak</th>" in settled
    (run,) = (H200 / "sdpa_sweep").glob("*-c6b07a")
    assert ">INCONCLUSIVE</span>" in profkit.load(run).page()


@pytest.mark.parametrize(
    "damage",
    [
        {"stages": [{"name": "ncu", "seconds": None}]},
        {"stages": 3},
        {"files": {"x": {}}},
        {"files": []},
        {"warnings": [1]},
        {"gpu": "H200"},
        {"fingerprint": {"gpu": {"power_limit": "much", "sm_clock": [1]}}},
    ],
)
def test_a_damaged_manifest_takes_nothing_from_the_page_but_itself(
    tmp_path: Path, profkit_cli: Cli, damage: dict[str, Any]
) -> None:
    (run,) = (H200 / "sdpa_sweep").glob("*-c6b07a")
    copied = tmp_path / "run"
    copied.mkdir()
    shutil.copy(run / "sdpa_sweep.ncu-repz", copied)
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    (copied / "manifest.json").write_text(json.dumps(manifest | damage), encoding="utf-8")
    page = tmp_path / "page.html"
    result = profkit_cli("report", copied, "-o", page, "--top", "1", status=None)
    if result.exit_code:
        assert result.exit_code == 5
        assert result.stderr.startswith("profkit: ")
        assert len(result.stderr.splitlines()) == 1
    else:
        assert "sdpa_sweep" in page.read_text(encoding="utf-8")


def test_analyze_writes_the_page_of_any_one_report(tmp_path: Path, profkit_cli: Cli) -> None:
    page = tmp_path / "page.html"
    profkit_cli(
        "analyze", KNOWN, "--format", "html", "--kernel", "transpose", "--top", "1", "-o", page
    )
    text = page.read_text(encoding="utf-8")
    assert "transpose_padded" in text
    assert 'id="kernel-' in text
    assert len(re.findall(r'<details class="kernel"', text)) == 1
    markup = re.sub(r"<script.*?</script>", "", text, flags=re.S)
    assert not re.search(r'(?:src|href)="(?!#)', markup)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["analyze", KNOWN, RUN, "--format", "html"], "--format html"),
        (["analyze", H200 / "sdpa_s512_flash.sqlite", "--format", "html"], "no page of its own"),
        (["report", KNOWN, "-o", "/nowhere/page.html"], "can't be written"),
        (["report", KNOWN, "--kernel", "nosuchkernel"], "no kernel matches"),
    ],
)
def test_what_can_not_be_meant_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    profkit_cli: Cli,
    words: list[str | Path],
    told: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    result = profkit_cli(*words, status=2)
    assert told in result.stderr
    assert not list(tmp_path.iterdir())
