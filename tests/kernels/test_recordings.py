"""Recordings in reports/h200 are complete, match the sources, and hold nothing private."""

from __future__ import annotations

import hashlib
import ipaddress
import json
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import zstandard

from kernels import pair
from kernels.attention.ladder import RUNGS
from kernels.derive import derived, recorded_latencies
from kernels.document import document
from kernels.ladder_page import BACKENDS, DEFAULT, PICTURE
from kernels.recorded import (
    LATENCY,
    REPORT,
    Profile,
    report_of,
    timed,
    times_as_fast,
)
from profkit.core.integrity import MANIFEST
from profkit.core.yaml_files import read_yaml
from profkit.score.pair_archive import unpacked
from profkit.score.score import pairs_in
from profkit.timing.latency import compare_with, interleaved
from profkit.timing.latency_file import read_latencies
from profkit.timing.latency_format import Series
from profkit.timing.results import Verdict
from tests.analysis.test_views import schema
from tests.conftest import H200, NIGHTLY, ROOT, TRACKED, pair_folder
from tests.examined_pairs import FOLDERS, JUDGED, LADDER, Recorded, examined

PAIRS = H200 / "pairs"
REFERENCE = ROOT / "docs" / "reference"
SIDES = [(name, side) for name in JUDGED for side in pair.read(name).sides]
EXAMINED = {*JUDGED, LADDER.name}
"""By day a third of the folders' reports are read."""
VARIANTS = [*(rung.name for rung in RUNGS), *BACKENDS]
REPORTS = [file for folder in FOLDERS for file in sorted(folder.glob("*.ncu-rep*"))]
MOST_BYTES = 30 * 2**20
PRIVATE = (b"/root/", b"/home/", b"/work/", b"/Users/", b"/mnt/", b"/data/", b"/scratch/")
NEUTRAL = ("/opt/", "/usr/", "/src/", "/tmp/")
HOSTS = {"", "localhost", "vm"}


def recorded(path: Path) -> Recorded:
    """A recorded report, which may be unpacked again, read once for all tests."""
    return examined(path.parent.name).reports[path.name]


def read(path: Path) -> Profile:
    return recorded(path).profile


@cache
def latencies(folder: Path, file: str = LATENCY) -> dict[str, Series]:
    return dict(timed(folder / file))


def by_name(folder: Path) -> str:
    return folder.name


@pytest.mark.parametrize("path", recorded_latencies(), ids=lambda path: str(path.parent.name))
def test_recorded_verdicts_are_what_the_samples_say(path: Path) -> None:
    """Where they are not: python -m kernels.derive."""
    told = json.loads(path.read_text(encoding="utf-8"))["comparisons"]
    for row, again in zip(told, derived(path)["comparisons"], strict=True):
        names = ("a", "b", "verdict", "reason", "details")
        assert [row[name] for name in names] == [again[name] for name in names]
        for name in ("speedup", "low", "high", "detectable"):
            assert row[name] == pytest.approx(again[name], rel=1e-6)


def test_every_pair_and_every_rung_is_recorded() -> None:
    with unpacked(PAIRS) as folders:
        assert [folder.name for folder in pairs_in(folders)] == list(pair.names())
    assert {file.stem for file in LADDER.glob("*.ncu-rep")} == set(VARIANTS)


@pytest.mark.parametrize("folder", FOLDERS, ids=by_name)
def test_a_folder_is_what_its_manifest_says(folder: Path) -> None:
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    assert manifest["name"] == folder.name
    assert manifest["gpu"] == "NVIDIA H200"
    there = {file.name for file in folder.iterdir()}
    assert set(manifest["files"]) == there - {MANIFEST}
    for name, entry in manifest["files"].items():
        data = (folder / name).read_bytes()
        assert entry["bytes"] == len(data), name
        assert entry["sha256"] == hashlib.sha256(data).hexdigest(), name
        if folder / name in REPORTS and folder.name in EXAMINED:
            assert entry["launches"] == len(read(folder / name).summary.launches), name


def test_all_of_it_is_small() -> None:
    files = [file for file in TRACKED.rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) <= MOST_BYTES


@pytest.mark.parametrize("name", pair.names())
def test_a_pair_was_recorded_as_it_is(name: str) -> None:
    written, defined = (
        read_yaml(folder / "pair.yaml") for folder in (pair_folder(name), pair.PAIRS / name)
    )
    if "work" not in written:  # may be declared later
        defined.pop("work", None)
    assert written == defined, "record again"
    assert written["name"] == name


@pytest.mark.parametrize(("name", "side"), SIDES)
def test_a_report_holds_the_launches_of_its_side(name: str, side: str) -> None:
    launches = read(report_of(pair_folder(name), side)).summary.launches
    assert {launch.launch.nvtx for launch in launches} == {(name, side)}
    assert not any(launch.failed for launch in launches)
    asked = pair.read(name).launches[side]
    if not asked:  # by torch or Triton
        return
    assert [(launch.name, launch.grid, launch.block) for launch in launches] == [
        (launch.kernel, whole(launch.grid), whole(launch.block)) for launch in asked
    ]


def whole(extent: tuple[int, ...]) -> tuple[int, ...]:
    return (*extent, 1, 1)[:3]


@pytest.mark.parametrize(("name", "side"), SIDES)
def test_a_pair_was_recorded_with_the_source_that_there_is(name: str, side: str) -> None:
    one = pair.read(name)
    files = {(one.folder / launch.file).resolve() for launch in one.launches[side]}
    imported = own_sources(recorded(report_of(pair_folder(name), side)))
    if not files and imported:  # torch's own kernels have no source
        files = {one.folder / "sides.py"}
    assert imported == {
        str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in files
    }, f"record {name} again: python -m kernels.record {name}"


@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.name)
def test_a_rung_was_recorded_with_the_source_that_there_is(rung: Any) -> None:
    file = f"kernels/attention/{rung.file}"
    imported = own_sources(recorded(report_of(LADDER, rung.name)))
    assert imported == {file: (ROOT / file).read_text(encoding="utf-8")}, "record the ladder again"


def own_sources(report: Recorded) -> dict[str, str]:
    """Imported sources of this repository, by their paths in it."""
    return {
        path[path.index("kernels/") :]: text
        for path, text in report.sources.items()
        if "/kernels/" in path
    }


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_report_of_the_ladder_holds_one_variant(variant: str) -> None:
    launches = read(report_of(LADDER, variant)).summary.launches
    assert {launch.launch.nvtx for launch in launches} == {("ladder", variant)}
    assert not any(launch.failed for launch in launches)


@pytest.mark.parametrize("folder", FOLDERS, ids=by_name)
def test_latencies_are_whole(folder: Path) -> None:
    """By day the schema is held against a sixth of the files: it takes ten times the reading."""
    for file in sorted(folder.glob("*.json")):
        if file.name == MANIFEST:
            continue
        saved = read_latencies(file)
        if NIGHTLY or FOLDERS.index(folder) % 6 == 0:
            schema("time").validate(json.loads(file.read_text("utf-8")))
        assert saved.file
        assert saved.file.left_out == {}
        for latency in saved.latencies:
            assert latency.check.status == "passed", latency.label
            assert (latency.timer, latency.cache) == ("events", "cold")
            assert latency.gpu.name == "NVIDIA H200"


@pytest.mark.parametrize("name", pair.names())
def test_sides_are_interleaved(name: str) -> None:
    sides = latencies(pair_folder(name))
    assert tuple(sides) == pair.read(name).sides
    assert all(len(side.latency.blocks) >= 8 for side in sides.values())
    assert all(
        min(len(block.samples) for block in side.latency.blocks) >= 30 for side in sides.values()
    )
    if len(sides) == 2:
        assert interleaved(sides[pair.BEFORE].latency, sides[pair.AFTER].latency)


DEFECTS = [
    name for name in pair.names() if pair.read(name).category and pair.read(name).kind == "defect"
]


@pytest.mark.parametrize("name", DEFECTS)
def test_a_fix_is_faster(name: str) -> None:
    sides = latencies(pair_folder(name))
    (gain,) = compare_with(sides[pair.BEFORE], [sides[pair.AFTER]])
    assert gain.comparison.low > 1
    assert gain.comparison.verdict in {Verdict.IMPROVED, Verdict.INVALID}


def test_rungs_reach_what_they_are_for() -> None:
    times = latencies(LADDER)
    assert set(times) == set(VARIANTS)
    assert times_as_fast(times, "async_pipeline", "efficient") >= 1.0
    assert times_as_fast(times, "triton_flash", "flash") >= 1.1
    assert times_as_fast(times, "hopper", "flash") >= 1.1
    (against,) = compare_with(times[DEFAULT], [times["hopper"]])
    assert against.comparison.verdict is Verdict.IMPROVED


def test_split_keys_win_where_blocks_are_few_and_only_there() -> None:
    few = latencies(LADDER, "few_blocks.json")
    assert times_as_fast(few, "split_kv", "all_threads") > 2
    assert times_as_fast(latencies(LADDER), "split_kv", "all_threads") < 1


def test_every_length_is_recorded() -> None:
    shapes = [
        one.latency.target.shapes or {}
        for one in (latencies(LADDER, file.name)[DEFAULT] for file in LADDER.glob("length_*.json"))
    ]
    assert sorted(shape["length"] for shape in shapes) == [128, 256, 1024, 2048, 4096]


@pytest.mark.parametrize("folder", FOLDERS, ids=by_name)
def test_nothing_private_is_kept(folder: Path) -> None:
    for file in folder.iterdir():
        data = file.read_bytes()
        if file.name.endswith(REPORT):
            data = zstandard.ZstdDecompressor().decompressobj().decompress(data)
        if file in REPORTS and folder.name in EXAMINED:
            assert_neutral(recorded(file))
        for start in PRIVATE:
            at = data.find(start)
            assert at < 0, (file, data[at : at + 80])


def assert_neutral(report: Recorded) -> None:
    """Of the machine a report names the tools' folders and no more."""
    session = report.session
    assert session.host.name in HOSTS
    addresses = [ipaddress.ip_address(one.partition("%")[0]) for one in session.host.addresses]
    assert not any(address.is_global for address in addresses)
    words = [word for word in shlex.split(session.command) if word.startswith("/")]
    assert all(path.startswith(NEUTRAL) for path in [*words, *report.sources])


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages as they are written now."""
    folder = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kernels.document.profile", read)
        document(H200, folder)
    return folder / "reference"


def test_the_pages_are_those_of_the_recordings(pages: Path) -> None:
    for name in ("methods/ladder.md", "methods/loop.md", "formats.md"):
        assert (REFERENCE / name).read_text("utf-8") == (pages / name).read_text("utf-8"), (
            "run `make docs`"
        )


def test_the_picture_is_that_of_the_recordings(pages: Path) -> None:
    drawn, shipped = ((folder / "methods" / PICTURE).read_text() for folder in (pages, REFERENCE))
    assert words(drawn) == words(shipped), "run `make docs`"
    assert len(shipped) < 100_000


def words(picture: str) -> list[str]:
    """The text of a picture, which matplotlib writes in comments beside the outlines of letters."""
    return re.findall(r"<!-- (.*?) -->", picture)


def test_pages_are_written_where_asked(pages: Path) -> None:
    assert {file.name for file in pages.iterdir()} == {"cli.md", "formats.md", "methods"}
    assert {file.name for file in (pages / "methods").iterdir()} == {
        "ladder.md",
        "loop.md",
        PICTURE,
    }


def test_the_readme_says_of_the_ladder_what_the_page_says() -> None:
    page = ladder_rows((REFERENCE / "methods" / "ladder.md").read_text(encoding="utf-8"))
    against = {name: cells[-2] for name, cells in reversed(page)}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (slower, faster) = re.findall(r"from (\d+)x slower than SDPA to ([\d.]+)x\s+faster", readme)[0]
    assert re.match(rf"{slower}(\.\d+)?x slower", against[RUNGS[0].name])
    assert re.match(rf"{faster}\d*x faster", against[RUNGS[-1].name])


def ladder_rows(text: str) -> list[tuple[str, list[str]]]:
    """The rows of tables that begin with a rung or a backend: its name, the cells behind it."""
    found = []
    for line in text.splitlines():
        match = re.match(r"\| (?:\d\. )?[`\[](\w+)[`\]][^|]*\|(.*)\|$", line)
        if match and match[1] in VARIANTS:
            found.append((match[1], [cell.strip() for cell in match[2].split("|")]))
    return found
