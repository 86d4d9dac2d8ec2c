"""Files that are not whole reports: one clear line and exit code 5, never numbers."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import struct
from pathlib import Path

import pytest
import zstandard
from typer.testing import Result

import profkit
from profkit.core.errors import BadInput
from profkit.core.regular_file import digest
from profkit.report.framing import MAGIC, check
from tests import wire
from tests.conftest import CORPUS, H200, NIGHTLY, Cli, needs_reader, plain_bytes

FUZZED = ("sdpa_s512_flash_set_basic", "sdpa_s512_cudnn", "known")


def assert_refused(result: Result, *words: str) -> None:
    assert result.stdout == ""
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1
    assert "Traceback" not in result.stderr
    for word in words:
        assert word in lines[0]


def block_ends(data: bytes) -> list[int]:
    """Where each block of a plain report ends, after the file header."""
    at = 8 + struct.unpack_from("<I", data, 4)[0]
    ends = [at]
    while at < len(data):
        size = struct.unpack_from("<I", data, at)[0]
        header = wire.decode(data[at + 4 : at + 4 + size])
        at += 4 + size + wire.number(header, 5)
        ends.append(at)
    return ends


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("empty.ncu-rep", b"", ("empty",)),
        ("random.ncu-rep", random.Random(1).randbytes(4096), ("not an Nsight Compute report",)),
        (
            "pointer.ncu-rep",
            b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n",
            ("git-LFS", "git lfs pull"),
        ),
        ("packed.ncu-rep", b"\x1f\x8b\x08" + bytes(50), ("gzip",)),
        ("magic.ncu-rep", b"NVR\0", ("truncated",)),
        ("zstd.ncu-repz", b"\x28\xb5\x2f\xfd" + b"\xff" * 40, ("damaged",)),
        (
            "text.ncu-repz",
            zstandard.compress(b"hello, hello, hello"),
            ("zstd data", "not an Nsight"),
        ),
    ],
)
def test_other_files_are_named_for_what_they_are(
    tmp_path: Path, profkit_cli: Cli, name: str, content: bytes, words: tuple[str, ...]
) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    assert_refused(profkit_cli("analyze", file, status=5), name, *words)
    profkit_cli("metrics", file, status=5)


def test_no_such_file(tmp_path: Path, profkit_cli: Cli) -> None:
    assert_refused(profkit_cli("analyze", tmp_path / "none.ncu-rep", status=5), "no such file")


def test_a_directory_without_reports(tmp_path: Path, profkit_cli: Cli) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    assert_refused(profkit_cli("analyze", tmp_path, status=5), "no Nsight Compute report")


@pytest.mark.parametrize("name", FUZZED)
def test_every_cut_inside_a_block_is_noticed(tmp_path: Path, name: str) -> None:
    data = plain_bytes(name)
    ends = set(block_ends(data))
    cuts = random.Random(name).sample(range(5, len(data)), 220)
    file = tmp_path / "cut.ncu-rep"
    tried = 0
    for cut in cuts:
        if cut in ends:
            continue
        file.write_bytes(data[:cut])
        with pytest.raises(BadInput, match=r"truncated|damaged|no kernel launch"):
            profkit.load(file)
        tried += 1
    assert tried >= 200


@pytest.mark.parametrize("name", FUZZED)
def test_every_cut_of_a_compressed_report_is_noticed(tmp_path: Path, name: str) -> None:
    data = (H200 / f"{name}.ncu-repz").read_bytes()
    file = tmp_path / "cut.ncu-repz"
    for cut in [*random.Random(name).sample(range(5, len(data)), 200), len(data) - 1]:
        file.write_bytes(data[:cut])
        with pytest.raises(BadInput, match=r"truncated|damaged|no kernel launch"):
            profkit.load(file)


def test_a_cut_between_blocks_is_found_by_a_manifest_alone(tmp_path: Path) -> None:
    data = plain_bytes("known")
    whole = profkit.load(H200 / "known.ncu-repz")
    shorter = tmp_path / "short.ncu-rep"
    shorter.write_bytes(data[: block_ends(data)[-3]])
    assert 0 < len(profkit.load(shorter)) < len(whole)
    write_manifest(tmp_path, "short.ncu-rep", data, launches=len(whole))
    with pytest.raises(BadInput, match="SHA-256"):
        profkit.load(shorter)


def write_manifest(folder: Path, name: str, content: bytes, **more: int) -> None:
    entry = {"sha256": hashlib.sha256(content).hexdigest(), **more}
    (folder / "manifest.json").write_text(json.dumps({"files": {name: entry}}))


@needs_reader
def test_a_report_that_changes_after_it_was_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.ncu-rep"
    file.write_bytes(plain_bytes("sdpa_s512_cudnn")[:-1] + b"\0")  # read as no other test's
    (kernel,) = profkit.load(file)
    os.utime(file, (1, 1))
    with pytest.raises(BadInput, match="changed while it was read"):
        kernel.instructions("samples")


def test_details_are_read_after_the_report_was_moved(tmp_path: Path) -> None:
    file = tmp_path / "run.ncu-repz"
    file.write_bytes(zstandard.compress(plain_bytes("sdpa_s512_cudnn"), 1))
    (kernel,) = profkit.load(file)
    file.rename(tmp_path / "other.ncu-repz")
    assert len(kernel.instructions("samples")) > 100


def test_a_report_that_its_manifest_describes_is_read(tmp_path: Path) -> None:
    content = (H200 / "sdpa_s512_cudnn.ncu-repz").read_bytes()
    file = tmp_path / "run.ncu-repz"
    file.write_bytes(content)
    write_manifest(tmp_path, file.name, content, launches=1)
    assert len(profkit.load(file)) == 1
    write_manifest(tmp_path, file.name, content, launches=2)
    with pytest.raises(BadInput, match=r"1 launches, but manifest\.json lists 2"):
        profkit.load(file)
    (tmp_path / "manifest.json").write_text("[]")
    with pytest.raises(BadInput, match="not a run manifest"):
        profkit.load(file)


def test_one_changed_byte_is_found_by_a_manifest(tmp_path: Path, profkit_cli: Cli) -> None:
    content = bytearray((H200 / "sdpa_s512_cudnn.ncu-repz").read_bytes())
    write_manifest(tmp_path, "run.ncu-repz", bytes(content))
    content[len(content) // 2] ^= 1
    (tmp_path / "run.ncu-repz").write_bytes(content)
    result = profkit_cli("analyze", tmp_path / "run.ncu-repz", status=5)
    assert "run.ncu-repz" in result.stderr


def test_fewer_launches_than_announced(tmp_path: Path, profkit_cli: Cli) -> None:
    data = bytearray(plain_bytes("sdpa_s512_cudnn"))
    at = 8 + struct.unpack_from("<I", data, 4)[0]
    while True:
        size = struct.unpack_from("<I", data, at)[0]
        header = wire.decode(bytes(data[at + 4 : at + 4 + size]))
        if wire.number(header, 2) == 1:
            field = data.index(b"\x10\x01", at + 4, at + 4 + size)
            data[field + 1] = 3
            break
        at += 4 + size + wire.number(header, 5)
    file = tmp_path / "announced.ncu-rep"
    file.write_bytes(data)
    assert_refused(profkit_cli("analyze", file, status=5), "launches")


def test_a_report_without_launches(tmp_path: Path, profkit_cli: Cli) -> None:
    data = plain_bytes("sdpa_s512_cudnn")
    file = tmp_path / "session_only.ncu-rep"
    file.write_bytes(data[: block_ends(data)[1]])
    assert_refused(profkit_cli("analyze", file, status=5), "no kernel launch")


def test_good_reports_are_shown_beside_bad_ones(tmp_path: Path, profkit_cli: Cli) -> None:
    bad = tmp_path / "bad.ncu-rep"
    bad.write_bytes(b"")
    result = profkit_cli("analyze", bad, H200 / "sdpa_s512_cudnn.ncu-repz", "--top", "1", status=5)
    assert "cudnn" in result.stdout
    assert "bad.ncu-rep: empty file" in result.stderr


def test_a_kernel_whose_counters_failed_is_reported_and_not_ranked(
    tmp_path: Path, profkit_cli: Cli
) -> None:
    duration = struct.pack("<d", 2176.0)
    data = plain_bytes("known")
    assert duration in data
    file = tmp_path / "failed.ncu-rep"
    file.write_bytes(data.replace(duration, struct.pack("<d", float("nan"))))
    report = profkit.load(file)
    failed = [launch.index for launch in report.summary.launches if launch.failed]
    assert failed == [12]
    assert [group.typical.index for group in report.summary.groups][-1] == 12
    assert report.summary.total == pytest.approx(
        profkit.load(H200 / "known.ncu-repz").summary.total - 2.176e-6
    )
    shown = profkit_cli("analyze", file, "--top", "0").stdout
    assert "counters failed" in shown
    data_json = json.loads(profkit_cli("analyze", file, "--format", "json").stdout)
    kernel = data_json["kernels"][12]
    assert kernel["failed"] is True
    assert kernel["duration_s"] is None
    assert kernel["missing"]["duration"] == "the counter returned no value"


def test_a_report_by_another_name_is_reported(tmp_path: Path, profkit_cli: Cli) -> None:
    packed = tmp_path / "run.ncu-rep"
    packed.write_bytes((H200 / "sdpa_s512_cudnn.ncu-repz").read_bytes())
    assert_refused(profkit_cli("analyze", packed, status=5), "rename it to .ncu-repz")
    plain = tmp_path / "run.ncu-repz"
    plain.write_bytes(plain_bytes("sdpa_s512_cudnn"))
    assert_refused(profkit_cli("analyze", plain, status=5), "rename it to .ncu-rep")


def test_changed_bytes_never_end_in_a_traceback(tmp_path: Path, profkit_cli: Cli) -> None:
    chance = random.Random(7)
    sources = [plain_bytes("sdpa_s512_flash_set_basic"), plain_bytes("sdpa_s512_cudnn")]
    if CORPUS.is_dir():
        sources += [
            (CORPUS / f"{name}.ncu-rep").read_bytes()
            for name in ("KernelBench__matmul_kernel", "COALDA__coalesced_chart")
        ]
    for source in sources:
        for _ in range(25 if NIGHTLY else 8):
            data = bytearray(source)
            at = chance.randrange(len(data))
            length = chance.choice([1, 5, 50])
            data[at : at + length] = chance.randbytes(min(length, len(data) - at))
            file = tmp_path / "changed.ncu-rep"
            file.write_bytes(data)
            result = profkit_cli("analyze", file, status=None)
            assert result.exit_code in {0, 5}, result.exception
            if result.exit_code == 5:
                assert_refused(result)


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """A run of one launch, with a timeline and a check."""
    folder = tmp_path / "runs" / "first"
    folder.mkdir(parents=True)
    shutil.copy(H200 / "sdpa_s512_cudnn.ncu-repz", folder / "run.ncu-repz")
    shutil.copy(H200 / "sdpa_s512_flash.sqlite", folder / "timeline.sqlite")
    (folder / "check.json").write_text('{"variants": []}')
    files = {file.name: {"sha256": digest(file)} for file in folder.iterdir()}
    (folder / "manifest.json").write_text(json.dumps({"schema": "profkit.run/1", "files": files}))
    return folder


@pytest.mark.parametrize("name", ["timeline.sqlite", "check.json"])
def test_a_run_of_which_a_part_was_changed_is_refused(
    run_folder: Path, profkit_cli: Cli, name: str
) -> None:
    profkit_cli("analyze", run_folder, "--top", "1")
    other = H200 / "sdpa_s512_math.sqlite"
    (run_folder / name).write_bytes(other.read_bytes())
    words = (name, "manifest.json", "SHA-256 differs")
    assert_refused(profkit_cli("analyze", run_folder, status=5), *words)
    assert_refused(profkit_cli("metrics", run_folder, status=5), *words)
    with pytest.raises(BadInput, match="SHA-256"):
        profkit.load(run_folder)
    (run_folder / name).unlink()
    profkit_cli("metrics", run_folder)


def test_a_changed_timeline_is_refused(run_folder: Path, profkit_cli: Cli) -> None:
    timeline = run_folder / "timeline.sqlite"
    profkit_cli("analyze", timeline)
    timeline.write_bytes((H200 / "sdpa_s512_math.sqlite").read_bytes())
    assert_refused(profkit_cli("analyze", timeline, status=5), "timeline.sqlite", "SHA-256 differs")
    (run_folder / "manifest.json").unlink()
    profkit_cli("analyze", timeline)


def test_the_other_runs_are_shown_beside_a_changed_one(run_folder: Path, profkit_cli: Cli) -> None:
    shutil.copytree(run_folder, run_folder.with_name("second"))
    (run_folder / "check.json").write_text("{}")
    result = profkit_cli("analyze", run_folder.parent, "--format", "csv", status=5)
    assert len(result.stdout.splitlines()) == 2
    assert len(result.stderr.splitlines()) == 1


def test_a_range_of_range_replay_counts_as_a_launch(tmp_path: Path) -> None:
    """ncu announces ranges in a field of their own (7 of the block header)."""

    def record(data: bytes) -> bytes:
        return struct.pack("<I", len(data)) + data

    def header(payload: int, *, launches: int, ranges: int) -> bytes:
        varints = [(1, 0), (2, launches), (5, payload), (7, ranges)]
        return bytes(byte for field, value in varints for byte in (field << 3, value))

    payload = record(b"a range")
    whole = MAGIC + record(b"\x08\x07")
    file = tmp_path / "range.ncu-rep"
    file.write_bytes(whole + record(header(len(payload), launches=0, ranges=1)) + payload)
    assert check(file).launches == 1
    file.write_bytes(whole + record(header(len(payload), launches=0, ranges=2)) + payload)
    with pytest.raises(BadInput, match="fewer launches than a block header announces"):
        check(file)
