"""`profkit metrics`: the catalog, its page, and a report held against it."""

from __future__ import annotations

import json

import pytest

from kernels.quantities_page import PAGE, quantities_page
from profkit.report.catalog import catalog
from tests.analysis.test_views import schema
from tests.conftest import H200, Cli

BASIC = H200 / "sdpa_s512_flash_set_basic.ncu-repz"


def test_the_catalog_is_listed(profkit_cli: Cli) -> None:
    shown = profkit_cli("metrics").stdout
    for name in catalog().quantities:
        assert name in shown
    assert max(map(len, shown.splitlines())) <= 100


def test_the_page_is_that_of_the_catalog() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert quantities_page(catalog()) == page, "run `make docs`"
    for entry in catalog().quantities.values():
        assert f"### `{entry.name}`" in page
        for item in entry.alternatives:
            assert f"- `{item.formula.text}`" in page


def test_grep_finds_names_meanings_and_ncu_names(profkit_cli: Cli) -> None:
    assert "shared_conflicts" in profkit_cli("metrics", "--grep", "conflict").stdout
    assert "dram_bytes" in profkit_cli("metrics", "--grep", "dram__bytes_read").stdout
    nothing = profkit_cli("metrics", "--grep", "nothing of the kind", status=2)
    assert "nothing of the kind" in nothing.stderr


def test_a_report_is_held_against_the_catalog(profkit_cli: Cli) -> None:
    data = json.loads(profkit_cli("metrics", BASIC, "--format", "json").stdout)
    schema("metrics").validate(data)
    status = {entry["name"]: entry["status"] for entry in data["quantities"]}
    assert list(status) == list(catalog().quantities)
    assert status["duration"] == "found"
    assert status["sm_active_share"] == "derived"
    assert status["warp_latency"] == "missing"
    reasons = {entry["name"]: list(entry["reasons"]) for entry in data["quantities"]}
    assert reasons["warp_latency"] == ["not collected; record with ncu --section WarpStateStats"]
    assert reasons["fp16_busy"] == ["not on this architecture"]
    shown = profkit_cli("metrics", BASIC).stdout
    for heading in ("Found", "Derived", "Missing"):
        assert heading in shown


def test_all_shows_what_ncu_recorded_in_its_own_units(profkit_cli: Cli) -> None:
    shown = profkit_cli("metrics", BASIC, "--all", "--grep", "gpu__time").stdout
    assert "gpu__time_duration.sum" in shown
    assert "ns" in shown
    data = json.loads(profkit_cli("metrics", BASIC, "--all", "--format", "json").stdout)
    schema("metrics").validate(data)
    assert len(data["recorded"]) == 563
    assert data["recorded"]["device__attribute_display_name"]["value"] == "NVIDIA H200"


def test_the_catalog_as_json_keeps_its_schema(profkit_cli: Cli) -> None:
    data = json.loads(profkit_cli("metrics", "--format", "json").stdout)
    schema("metrics").validate(data)
    assert len(data["quantities"]) == len(catalog().quantities)


@pytest.mark.parametrize(
    "options", [("--all",), ("--kernel", "x"), ("--format", "markdown", "--grep", "x")]
)
def test_options_that_need_a_report_or_the_whole(
    profkit_cli: Cli, options: tuple[str, ...]
) -> None:
    assert profkit_cli("metrics", *options, status=2).stderr.startswith("profkit: ")


def test_values_that_cannot_be_are_marked(profkit_cli: Cli) -> None:
    known = H200 / "known.ncu-repz"
    shown = profkit_cli("metrics", known).stdout
    (line,) = [line for line in shown.splitlines() if line.startswith("l2_read_hit_rate ")]
    assert " to 115.9%?  " in line
    assert "? in 1 of 13" in line
    assert "? invalid measurement" in shown
    data = json.loads(profkit_cli("metrics", known, "--format", "json").stdout)
    schema("metrics").validate(data)
    doubtful = {entry["name"]: entry["doubtful"] for entry in data["quantities"]}
    assert doubtful["l2_read_hit_rate"] == 1
    assert doubtful["duration"] == 0
    assert "?" not in profkit_cli("metrics", BASIC).stdout
