"""Recorded H200 timelines against SQL by hand, and what people and machines get of them."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

import jsonschema
import pytest
from markdown_it import MarkdownIt

from profkit.application.timeline_view import Report, timeline_document, timelines_json
from profkit.timeline.reader import read
from profkit.timeline.redaction import scrub
from profkit.timeline.summary import TimelineSummary, summarize_timeline
from profkit.ui.output import laid_out
from tests.conftest import H200, ROOT

RECORDED = ("sdpa_s512_flash", "sdpa_s512_math")
FORMATS = ("terminal", "markdown", "json")
KERNEL, CALL = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"
ODD = "a|[red]<b>\x1b[1m`\u202e"


def file(name: str) -> Path:
    return H200 / f"{name}.sqlite"


def summary(name: str) -> TimelineSummary:
    return summarize_timeline(read(file(name)))


def ask(path: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
        return database.execute(query).fetchall()


def shown(path: Path, format_name: str, *, with_host: bool = False) -> str:
    made = summarize_timeline(read(path))
    report = Report(made, ())
    if format_name == "json":
        return timelines_json([report], with_host=with_host)
    is_shared = format_name == "markdown"
    document = timeline_document(report, is_shared=is_shared, with_host=with_host)
    return laid_out(document, format_name, to_file=True)


def validate(data: Any) -> None:
    schema = json.loads((ROOT / "profkit/schemas/timeline.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(data)


@pytest.mark.parametrize("name", RECORDED)
def test_kernel_times_are_those_of_the_table(name: str) -> None:
    ((count, total),) = ask(file(name), f"SELECT COUNT(*), SUM(end - start) FROM {KERNEL}")
    grouped = ask(
        file(name),
        f"""SELECT value, gridX, gridY, gridZ, blockX, blockY, blockZ, COUNT(*), SUM(end - start),
                   MIN(end - start), MAX(end - start)
            FROM {KERNEL} JOIN StringIds ON id = demangledName
            GROUP BY 1, 2, 3, 4, 5, 6, 7 ORDER BY SUM(end - start) DESC""",
    )
    made = summary(name)
    assert made.report.launches == count
    assert made.report.kernel_time == pytest.approx(total / 1e9, rel=1e-12)
    assert [(group.name, *group.grid, *group.block, group.count) for group in made.groups] == [
        row[:8] for row in grouped
    ]
    for group, row in zip(made.groups, grouped, strict=True):
        times = (group.total, group.low, group.high)
        assert times == pytest.approx([value / 1e9 for value in row[8:]], rel=1e-12)
        assert group.share == pytest.approx(row[8] / total)
    assert sum(group.share for group in made.groups) == pytest.approx(1)


@pytest.mark.parametrize("name", RECORDED)
def test_calls_are_those_of_the_table(name: str) -> None:
    rows = ask(
        file(name),
        f"""SELECT value, COUNT(*), SUM(end - start), MAX(end - start)
            FROM {CALL} JOIN StringIds ON id = nameId GROUP BY 1 ORDER BY 3 DESC""",
    )
    calls = summary(name).calls
    assert [use.count for use in calls] == [row[1] for row in rows]
    for use, (full, _, total, longest) in zip(calls, rows, strict=True):
        assert re.fullmatch(rf"{use.name}(_v\d+)?", full)
        assert use.total == pytest.approx(total / 1e9, rel=1e-12)
        assert use.high == pytest.approx(longest / 1e9, rel=1e-12)


@pytest.mark.parametrize("name", RECORDED)
def test_the_region_and_its_gaps_are_those_of_the_tables(name: str) -> None:
    ((first, last),) = ask(
        file(name),
        f"""SELECT MIN(start), MAX(end) FROM
            (SELECT start, end FROM {KERNEL} UNION ALL SELECT start, end FROM {CALL})""",
    )
    # Neither recording has kernels that overlap, so that busy time is their sum.
    ((overlaps, gaps, longest),) = ask(
        file(name),
        f"""SELECT SUM(gap < 0), SUM(gap), MAX(gap) FROM
            (SELECT start - LAG(end) OVER (ORDER BY start) AS gap FROM {KERNEL})""",
    )
    ((total, begun, done),) = ask(
        file(name), f"SELECT SUM(end - start), MIN(start), MAX(end) FROM {KERNEL}"
    )
    assert overlaps == 0
    region = summary(name).region
    assert region.span == pytest.approx((last - first) / 1e9, rel=1e-12)
    assert region.busy == pytest.approx(total / 1e9, rel=1e-9)
    assert region.busy_share == pytest.approx(total / (last - first))
    assert region.gaps.total == pytest.approx(gaps / 1e9, rel=1e-9)
    assert region.largest[0].duration == pytest.approx(longest / 1e9, rel=1e-9)
    assert region.lead == pytest.approx((begun - first) / 1e9, rel=1e-9)
    assert region.tail == pytest.approx((last - done) / 1e9, rel=1e-9)


@pytest.mark.parametrize("name", RECORDED)
def test_launch_delays_are_those_of_the_tables(name: str) -> None:
    rows = ask(
        file(name),
        f"""SELECT k.start - c.start, k.start - c.end,
                   k.start - LAG(k.end) OVER (ORDER BY k.start),
                   c.start > LAG(k.end) OVER (ORDER BY k.start)
            FROM {KERNEL} k JOIN {CALL} c USING (correlationId) ORDER BY k.start""",
    )
    delays = summary(name).delays
    spreads = (delays.from_call_start, delays.after_call_return, delays.stream_gaps)
    for told, column in zip(spreads, zip(*rows, strict=True), strict=False):
        times = [time / 1e9 for time in column if time is not None]
        assert told.count == len(times)
        assert told.median == pytest.approx(median(times), rel=1e-9)
        assert (told.low, told.high) == pytest.approx((min(times), max(times)), rel=1e-9)
    assert delays.late == sum(bool(row[3]) for row in rows)


def test_the_range_holds_the_kernel_launched_in_it() -> None:
    ((total, count),) = ask(
        file("sdpa_s512_flash"),
        f"""SELECT SUM(k.end - k.start), COUNT(*) FROM {KERNEL} k
            JOIN {CALL} c ON c.correlationId = k.correlationId
              AND c.globalTid & ~0xFFFFFF = k.globalPid
            JOIN NVTX_EVENTS n ON n.globalTid = c.globalTid
              AND n.start <= c.start AND n.end >= c.end
            WHERE n.text = 'profkit:flash'""",
    )
    (inside,) = (use for use in summary("sdpa_s512_flash").ranges if use.path)
    assert inside.path == ("profkit:flash",)
    assert inside.launches == count == 1
    assert inside.kernel_time == pytest.approx(total / 1e9)
    assert inside.host_time == pytest.approx((3571990926 - 3569797041) / 1e9)
    assert summary("sdpa_s512_math").ranges == ()


@pytest.mark.parametrize("name", RECORDED)
def test_json_keeps_its_schema(name: str) -> None:
    data = json.loads(shown(file(name), "json"))
    validate(data)
    assert data["schema"] == "profkit.timeline/1"
    assert data["report"]["file"] == f"{name}.sqlite"
    assert data["report"]["nsys"] == "2025.3.2.0"
    assert data["gpus"][0]["name"] == "NVIDIA H200"
    assert sum(group["count"] for group in data["kernels"]) == data["report"]["kernel_launches"]


def test_several_exports_give_reports_of_the_same_shape() -> None:
    reports = [Report(summary(name), ()) for name in RECORDED]
    data = json.loads(timelines_json(reports))
    validate(data)
    assert [report["report"]["kernel_launches"] for report in data["reports"]] == [5, 14]


def test_an_export_of_calls_alone_keeps_the_schema(tmp_path: Path) -> None:
    path = tmp_path / "calls.sqlite"
    shutil.copy(file("sdpa_s512_math"), path)
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"DROP TABLE {KERNEL}")
    data = json.loads(shown(path, "json"))
    validate(data)
    assert data["region"]["busy_share"] == 0
    assert data["launch_delays"]["stream_gap"]["median_s"] is None
    text = shown(path, "terminal")
    assert "! tracing failed: launches, copies and memsets called: " in text
    assert "Kernels by share" not in text
    assert "GPU busy" not in text


@pytest.mark.parametrize("name", RECORDED)
def test_the_terminal_view_is_plain_and_fits_100_columns(name: str) -> None:
    lines = shown(file(name), "terminal").splitlines()
    assert max(map(len, lines)) <= 100
    assert all(line == line.rstrip() for line in lines)
    assert "\x1b" not in "".join(lines)


def test_the_terminal_view_shows_the_main_figures() -> None:
    text = shown(file("sdpa_s512_math"), "terminal")
    for fact in (
        "14 kernel launches, 1.210 ms of kernel time; GPU busy 78.4% of 1.543 ms",
        "NVIDIA H200, CC 9.0, 132 SMs, 140 GiB",
        "2026-11-20 09:33:49 UTC, nsys 2025.3.2.0, schema 3.20.3",
        "32768 / 32×4      1  131.8 µs",
        "Late-submitted: 2 of 14 launches",
        "326.2 µs  107.4 µs",
        "cudaDeviceSynchronize      1  845.9 µs",
    ):
        assert fact in text
    assert re.search(r"GPU busy +1\.210 ms, 78\.4% +█", text)
    assert re.search(r"profkit:flash +1 +2\.194 ms +1 +70\.43 µs +33\.7%", shown(
        file("sdpa_s512_flash"), "terminal"
    ))  # fmt: skip


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """An export whose kernels and range have names of markup, escapes and direction marks."""
    path = tmp_path / "odd.sqlite"
    shutil.copy(file("sdpa_s512_flash"), path)
    with closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE StringIds SET value = ? || '(int)' WHERE id = 759", (ODD,))
        database.execute("UPDATE StringIds SET value = ? WHERE id = 760", (ODD,))
        database.execute("UPDATE NVTX_EVENTS SET text = ?", (ODD,))
        database.commit()
    return path


@pytest.mark.parametrize("format_name", ["terminal", "markdown"])
def test_names_are_shown_as_they_are(odd: Path, format_name: str) -> None:
    text = shown(odd, format_name)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[red]<b>\\x1b[1m`\\u202e" in text
    if format_name == "markdown":
        html = MarkdownIt("commonmark").enable("table").render(text)
        assert "<b>" not in html
        table = html[html.index("Kernels by share") :]
        table = table[: table.index("</table>")]
        assert all(row.count("<td") == 7 for row in table.split("<tr>")[2:])
    else:
        assert max(map(len, text.splitlines())) <= 100


def test_json_keeps_names_whole(odd: Path) -> None:
    data = json.loads(shown(odd, "json"))
    assert data["kernels"][0]["name"] == f"{ODD}(int)"
    assert [ODD] in [use["path"] for use in data["ranges"]]


@pytest.mark.parametrize("format_name", ["markdown", "json"])
def test_what_is_shared_says_nothing_of_the_host(tmp_path: Path, format_name: str) -> None:
    path = tmp_path / "run.sqlite"
    shutil.copy(file("sdpa_s512_flash"), path)
    text = shown(path, format_name)
    for word in (str(tmp_path), "1312d340", "0000:00:06.0", "dlopen", "python3", "vsock"):
        assert word not in text
    assert str(tmp_path) in shown(path, format_name, with_host=True)


@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.parametrize("format_name", FORMATS)
def test_a_scrubbed_export_shows_the_same(tmp_path: Path, name: str, format_name: str) -> None:
    path = tmp_path / f"{name}.sqlite"
    shutil.copy(file(name), path)
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA page_size = 4096")  # as nsys writes them
        database.execute("VACUUM")
    before, size = shown(path, format_name), path.stat().st_size
    scrub(path)
    assert path.stat().st_size < size / 2
    assert shown(path, format_name) == before


def test_long_tables_say_what_they_leave_out(tmp_path: Path) -> None:
    path = tmp_path / "many.sqlite"
    shutil.copy(file("sdpa_s512_math"), path)
    with closing(sqlite3.connect(path)) as database:
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({KERNEL})")]
        picked = ", ".join("gridX + n" if name == "gridX" else name for name in columns)
        numbers = "WITH t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 30)"
        database.execute(
            f"INSERT INTO {KERNEL} {numbers} SELECT {picked} FROM {KERNEL}, t LIMIT 30"
        )
        database.commit()
    groups = len(json.loads(shown(path, "json"))["kernels"])
    assert groups > 20
    for format_name in ("terminal", "markdown"):
        assert f"{groups - 20} more rows" in shown(path, format_name)
