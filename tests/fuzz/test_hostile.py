"""Files made to break a reader: each verb ends in one line with exit code 5, soon and small."""

from __future__ import annotations

import os
import random
import sqlite3
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest
import zstandard

from profkit.report.action import block
from profkit.report.framing import Kind
from profkit.timeline.export import COLUMNS, KERNELS, STRINGS
from tests import wire
from tests.conftest import H200, ROOT, plain_bytes
from tests.core.test_text_files import LAUGHS, MERGES
from tests.fuzz.formats import REPORT, RUN
from tests.fuzz.test_fuzz import broken_law
from tests.fuzz.zygote import Outcome, Zygote

SESSION, CREATED, VERSIONS = 3, 2, 8
READERS = (
    ("analyze {}", ".ncu-rep"),
    ("checklist {}", ".ncu-repz"),
    ("source {}", ".ncu-rep"),
    ("metrics {}", ".ncu-rep"),
    ("roofline {}", ".ncu-rep"),
    ("report {} -o page.html", ".ncu-repz"),
    ("diff r.ncu-repz {}", ".ncu-rep"),
    ("analyze {}", ".sqlite"),
    ("rules explain launch_overhead --on {}", ".sqlite"),
    ("time --from {}", ".json"),
    ("compare {0} {0}", ".json"),
    ("roofline r.ncu-repz --latency {}", ".json"),
    ("roofline r.ncu-repz --peaks measured --ceilings {}", ".json"),
    ("baseline import {} -o out --gpu L4 --unit ms", ".json"),
    ("baseline import {} -o out --matrix {}", ".yaml"),
    ("audit {}", ".yaml"),
    ("audit {}", ".json"),
    ("rules check {}", ".yaml"),
    ("analyze r.ncu-repz --rules {}", ".yaml"),
)
TEXTS = tuple(row for row in READERS if row[1] in {".json", ".yaml"})


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    with Zygote() as zygote:
        yield zygote


@pytest.fixture
def run(zygote: Zygote, tmp_path: Path) -> Callable[[str, Path], Outcome]:
    """Run a command line with a file for its `{}`."""
    (tmp_path / "r.ncu-repz").symlink_to(H200 / f"{REPORT}.ncu-repz")

    def run(command: str, file: Path) -> Outcome:
        return zygote.run(command.replace("{0}", "{}").replace("{}", str(file)).split(), tmp_path)

    return run


def assert_refused(done: Outcome, *codes: int) -> None:
    assert broken_law(done) == "", done
    assert done.code in (codes or (5,)), done


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(20 << 30)


@pytest.mark.parametrize("make", [_pipe, _endless, _sparse])
def test_what_is_no_file_of_a_sane_size_is_refused_by_every_verb(
    run: Callable[[str, Path], Outcome], tmp_path: Path, make: Callable[[Path], None]
) -> None:
    for number, (command, suffix) in enumerate(READERS):
        path = tmp_path / f"x{number}{suffix}"
        make(path)
        assert_refused(run(command, path))


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, "{a: " * 50_000, LAUGHS, MERGES, "a: 2026-13-45", "a: " + "9" * 5000],
    ids=["deep lists", "deep mappings", "aliases", "merge keys", "no date", "digits"],
)
def test_hostile_texts_are_refused_by_every_verb_that_reads_text(
    run: Callable[[str, Path], Outcome], tmp_path: Path, text: str
) -> None:
    for number, (command, suffix) in enumerate(TEXTS):
        path = tmp_path / f"x{number}{suffix}"
        path.write_text(text, encoding="utf-8")
        assert_refused(run(command, path), 5, 2, 0)


@pytest.mark.parametrize("text", ["9" * 5000 + ": a", "a: 2026-13-45", "a: &a [*a]"])
def test_a_match_file_of_no_names(
    run: Callable[[str, Path], Outcome], tmp_path: Path, text: str
) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text, encoding="utf-8")
    assert_refused(run("diff r.ncu-repz r.ncu-repz --match {}", path))


def _with_session(change: Mapping[int, int | bytes]) -> bytes:
    """A plain report with one more block, whose session has these fields."""
    session = _message({name: [value] for name, value in change.items()})
    header = _message({SESSION: [session]})
    return plain_bytes(REPORT) + struct.pack("<I", len(header)) + header


def _message(fields: wire.Message) -> bytes:
    return b"".join(
        wire.encoded(name, value) for name, values in fields.items() for value in values
    )


@pytest.mark.parametrize(
    "change",
    [
        {CREATED: 2**63},
        {CREATED: 10**12},
        {
            VERSIONS: wire.encoded(1, b"Nsight Compute Target")
            + wire.encoded(2, b"9" * 5000 + b".1")
        },
    ],
    ids=["no time", "year 33658", "digits"],
)
def test_a_session_that_can_not_be(
    run: Callable[[str, Path], Outcome], tmp_path: Path, change: Mapping[int, int | bytes]
) -> None:
    path = tmp_path / "x.ncu-rep"
    path.write_bytes(_with_session({CREATED: 10**9}))
    assert run("analyze {}", path).code == 0
    path.write_bytes(_with_session(change))
    assert_refused(run("analyze {}", path))


def test_a_manifest_nested_deep(run: Callable[[str, Path], Outcome], tmp_path: Path) -> None:
    path = tmp_path / "x.ncu-rep"
    path.write_bytes(plain_bytes(REPORT))
    (tmp_path / "manifest.json").write_text("[" * 100_000)
    assert_refused(run("analyze {}", path))


_ZEROS = bytes(1 << 24)


def _packed(path: Path, start: bytes, gib: int) -> None:
    with path.open("wb") as file, zstandard.ZstdCompressor().stream_writer(file) as writer:
        writer.write(start)
        for _ in range(gib << 6):
            writer.write(_ZEROS)


def _block(records: int, size: int) -> bytes:
    header = _message({1: [records], 5: [records * (4 + size)]})
    return struct.pack("<I", len(header)) + header


@pytest.mark.parametrize(
    "start",
    [
        b"",
        b"NVR\0" + struct.pack("<I", 2**32 - 1),
        b"NVR\0" + struct.pack("<I", 0),
        b"NVR\0" + struct.pack("<I", 0) + _block(1, 3 << 30) + struct.pack("<I", 3 << 30),
        b"NVR\0" + struct.pack("<I", 0) + _block(10**9, 0),
    ],
    ids=["zeros", "header", "blocks", "record", "records"],
)
def test_a_bomb_is_refused_before_it_is_unpacked(
    run: Callable[[str, Path], Outcome], tmp_path: Path, start: bytes
) -> None:
    path = tmp_path / "x.ncu-repz"
    _packed(path, start, 3)
    assert path.stat().st_size < 1 << 20
    assert_refused(run("analyze {}", path))


_EXTENT = wire.message({1: 1, 2: 1, 3: 1})
_NAMES: dict[int, int | bytes] = {
    **dict.fromkeys(range(1, 5), 1), 5: b"_Z1f", 6: b"f", 7: b"f()", 8: 1,
    **dict.fromkeys(range(9, 12), _EXTENT), 15: wire.message({1: 1}),
}  # fmt: skip
"""What a launch must have."""
_CODE = ["inst_executed"]
_METRIC = wire.encoded(13, wire.message({1: 0, 2: wire.message({5: 7})}))
_NUMBERED = wire.message({1: 0})
_CUT = b"\x1a\x05\x12\x03\x2d12"
_INSTANCE = wire.encoded(3, wire.message({1: wire.message({5: 1}), 2: wire.message({5: 1})}))


@pytest.mark.parametrize(
    "launch",
    [
        wire.message(_NAMES) + wire.encoded(13, wire.message({1: 99})),
        wire.message(_NAMES) + wire.encoded(13, b""),
        wire.message(_NAMES) + b"\x6a\x7f\x08",
        wire.message(_NAMES) + b"\x0b" * 100_000,
        wire.message(_NAMES) + _METRIC * 3_000_000,
        wire.message(_NAMES | {7: b"f" * (2 << 20)}),
        wire.message({6: b"f"}),
        wire.message(_NAMES) + wire.encoded(13, _NUMBERED + _INSTANCE * 2_000_000),
        wire.message(_NAMES) + wire.encoded(13, _NUMBERED + _CUT),
        wire.message(_NAMES) + b"\xff" * 1000,
    ],
    ids=[
        "unknown metric", "unnamed metric", "cut metric", "nested", "metrics", "long name",
        "no name", "instances", "cut instance", "number",
    ],
)  # fmt: skip
def test_a_launch_that_can_not_be(
    run: Callable[[str, Path], Outcome], tmp_path: Path, launch: bytes
) -> None:
    path = tmp_path / "x.ncu-rep"
    header = wire.prefixed(wire.message({1: 7}))
    path.write_bytes(b"NVR\0" + header + block({Kind.kernel: [launch]}, _CODE))
    for command in ("analyze {}", "metrics {}", "source {}"):
        assert_refused(run(command, path))


def test_a_launch_without_metrics_is_read(
    run: Callable[[str, Path], Outcome], tmp_path: Path
) -> None:
    path = tmp_path / "x.ncu-rep"
    header = wire.prefixed(wire.message({1: 7}))
    launch = wire.message(_NAMES) + _METRIC
    path.write_bytes(b"NVR\0" + header + block({Kind.kernel: [launch]}, _CODE))
    assert run("analyze {}", path).code == 0


def test_thirty_thousand_launches_without_metrics(
    run: Callable[[str, Path], Outcome], tmp_path: Path
) -> None:
    path = tmp_path / "x.ncu-rep"
    header = wire.prefixed(wire.message({1: 7}))
    path.write_bytes(
        b"NVR\0" + header + block({Kind.kernel: [wire.message(_NAMES)] * 30_000}, _CODE)
    )
    done = run("analyze {}", path)
    assert broken_law(done) == ""
    assert "30,000 launches of 1 kernel" in done.stdout


def test_a_report_of_many_gigabytes_needs_the_users_word(
    run: Callable[[str, Path], Outcome], tmp_path: Path
) -> None:
    path = tmp_path / "x.ncu-rep"
    path.write_bytes(plain_bytes(REPORT))
    os.truncate(path, 9 << 30)
    done = run("analyze {}", path)
    assert_refused(done)
    assert "PROFKIT_LARGEST_REPORT" in done.stderr


def test_a_timeline_whose_names_are_repeated_a_thousand_times(
    run: Callable[[str, Path], Outcome], tmp_path: Path
) -> None:
    path = tmp_path / "x.sqlite"
    _timeline(path, "n" * 100_000, 2000)
    assert run("analyze {}", path).code == 0
    done = run("analyze {} --format json", path)
    assert_refused(done)
    assert "MiB of JSON" in done.stderr


def _timeline(path: Path, name: str, kernels: int) -> None:
    """An export of kernels that have one name, and a grid each."""
    with closing(sqlite3.connect(path)) as database:
        for table in (KERNELS, STRINGS):
            database.execute(f"CREATE TABLE {table} ({', '.join(COLUMNS[table])})")
        database.execute(f"INSERT INTO {STRINGS} VALUES (1, ?)", (name,))
        database.executemany(
            f"INSERT INTO {KERNELS} (start, end, demangledName, gridX) VALUES (?, ?, 1, ?)",
            ((at * 1000, at * 1000 + 800, at) for at in range(1, kernels + 1)),
        )
        database.commit()


@pytest.mark.skipif(not os.access("/proc/kmsg", os.R_OK), reason="the kernel's log is closed here")
def test_a_file_that_has_nothing_to_say_now(
    run: Callable[[str, Path], Outcome], tmp_path: Path
) -> None:
    path = tmp_path / "x.json"
    path.symlink_to("/proc/kmsg")
    assert_refused(run("time --from {}", path))
    assert_refused(run("diff r.ncu-repz {}", path))


def test_bytes_at_random(run: Callable[[str, Path], Outcome], tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    data = (RUN / "timeline.sqlite").read_bytes()
    path.write_bytes(data[:4096] + random.Random(1).randbytes(len(data) - 4096))
    assert_refused(run("analyze {}", path))


@pytest.mark.parametrize(
    "when",
    ["9" * 900 + " > 1", "l2_busy > 0x" + "f" * 900, "l2_busy ** 9 ** 9 > 1", "(" * 400 + "1"],
)
def test_a_rule_and_a_gate_with_a_number_beyond_reason(
    run: Callable[[str, Path], Outcome], tmp_path: Path, when: str
) -> None:
    path = tmp_path / "x.yaml"
    rule = (ROOT / "rules" / "samples.yaml").read_text(encoding="utf-8")
    first = rule.index("when:")
    path.write_text(f"{rule[:first]}when: ['{when}']\n    junk: {rule[first:]}", encoding="utf-8")
    assert_refused(run("rules check {}", path))
    gate = f"metric:{when.replace(' ', '')}"
    assert_refused(run(f"diff r.ncu-repz {{}} --fail-on {gate}", tmp_path / "r.ncu-repz"), 2)
