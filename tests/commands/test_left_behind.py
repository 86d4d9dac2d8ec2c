"""What is left of a command that a signal ends, and what memory that runs out ends in."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
import zstandard

from tests.conftest import H200, ROOT, plain_bytes

SIGNALS = [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL]
ON_TWO_CORES = """
import os
os.sched_getaffinity = lambda _: {0, 1}
from profkit.__main__ import main
main()
"""
HOLDING = """
import sys
import profkit
report = profkit.load(sys.argv[1])
print("ready", flush=True)
sys.stdin.read()
"""


def repeated(name: str, copies: int, file: Path) -> int:
    """Write a recorded report several times over as one compressed report; its plain size."""
    data = plain_bytes(name)
    start = 8 + int.from_bytes(data[4:8], "little")
    with file.open("wb") as packed, zstandard.ZstdCompressor(1).stream_writer(packed) as writer:
        writer.write(data[:start])
        for _ in range(copies):
            writer.write(data[start:])
    return start + copies * (len(data) - start)


@pytest.fixture(scope="module")
def packed_report(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A report of 65 launches, which takes a second to read, and its plain size."""
    report = tmp_path_factory.mktemp("packed") / "x.ncu-repz"
    return report, repeated("known", 5, report)


@pytest.fixture(scope="module")
def long_report(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A report of 130 launches, which takes seconds to read, and its plain size."""
    report = tmp_path_factory.mktemp("long") / "x.ncu-repz"
    return report, repeated("known", 10, report)


def files_of(size: int, *folders: Path) -> list[Path]:
    """The files of a size in the folders where a program may put what it unpacks."""
    places = {Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp"), *folders}
    return [
        file
        for folder in places
        if folder.is_dir()
        for file in folder.iterdir()
        if size_of(file) == size
    ]


def size_of(file: Path) -> int:
    """That of a file, -1 of what is none or gone."""
    try:
        return file.stat().st_size if file.is_file() else -1
    except OSError:
        return -1


def start(words: Sequence[object], folder: Path, pipe: int) -> subprocess.Popen[bytes]:
    """Start Python in a session of its own, with a temporary folder of its own."""
    temporary = folder / "tmp"
    temporary.mkdir()
    return subprocess.Popen(
        [sys.executable, *map(str, words)],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(temporary)},
        start_new_session=True,
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
    )


def test_a_report_is_read_without_a_file_of_its_unpacked_bytes(tmp_path: Path) -> None:
    report = tmp_path / "x.ncu-repz"
    size = repeated("sdpa_s512_flash_two_metrics", 2, report)
    assert not files_of(size)  # of a size that nothing else has
    command = start(("-c", HOLDING, report), tmp_path, subprocess.PIPE)
    assert command.stdout is not None
    assert command.stdout.readline() == b"ready\n"
    assert not unnamed_of(command.pid, tmp_path / "tmp")
    assert not files_of(size, tmp_path / "tmp")
    command.communicate(timeout=300)
    assert not list((tmp_path / "tmp").iterdir())


def unnamed_of(process: int, folder: Path) -> list[Path]:
    """What a process has open of files that have no name in a folder, or none any more."""
    held = []
    for link in Path(f"/proc/{process}/fd").iterdir():
        with suppress(FileNotFoundError):
            file = link.readlink()
            is_unnamed = file.name.endswith(" (deleted)")  # tempfile tries a folder by a named one
            held += [link] if is_unnamed and file.is_relative_to(folder) else []
    return held


@pytest.mark.parametrize("number", SIGNALS)
def test_no_signal_to_analyze_leaves_an_unpacked_report(
    number: signal.Signals, packed_report: tuple[Path, int], tmp_path: Path
) -> None:
    report, size = packed_report
    command = start(("-m", "profkit", "analyze", report), tmp_path, subprocess.DEVNULL)
    wait_until(lambda: unnamed_of(command.pid, tmp_path / "tmp"))
    unpacked = unnamed_of(command.pid, tmp_path / "tmp")[-1]
    assert unpacked.stat().st_mode & 0o777 == 0o600
    assert not list((tmp_path / "tmp").iterdir())  # without a name while it is read, too
    assert command.poll() is None
    command.send_signal(number)
    assert command.wait(timeout=300)
    assert not files_of(size, tmp_path / "tmp")
    assert not list((tmp_path / "tmp").iterdir())


def processes_of(session: int) -> Mapping[int, str]:
    """The living processes of a session, by number."""
    living = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, owner = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(owner) == session and state != "Z":
            living[int(folder.name)] = state
    return living


def wait_until(reached: object, seconds: float = 300.0) -> None:
    ending = time.monotonic() + seconds
    assert callable(reached)
    while not reached():
        assert time.monotonic() < ending
        time.sleep(0.02)


@pytest.mark.usefixtures("new_processes")  # a fork may die between a folder and its clean-up
@pytest.mark.parametrize("number", SIGNALS)
def test_no_signal_leaves_processes_that_read(number: signal.Signals, tmp_path: Path) -> None:
    names = ("known", "sdpa_s512_math", "sdpa_s512_efficient")
    reports = [H200 / f"{name}.ncu-repz" for name in names]
    command = start(("-c", ON_TWO_CORES, "analyze", *reports), tmp_path, subprocess.DEVNULL)
    wait_until(lambda: len(processes_of(command.pid)) > 3)  # the command, its helpers, a worker
    command.send_signal(number)
    command.wait(timeout=300)
    wait_until(lambda: not processes_of(command.pid))
    if number != signal.SIGKILL:
        assert not list((tmp_path / "tmp").iterdir())


def analyze_below(limit: float, report: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Analyze a report in a process that gets so many bytes of address space."""
    (folder / "tmp").mkdir()
    return subprocess.run(
        [sys.executable, "-m", "profkit", "analyze", str(report), "--format", "csv"],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(folder / "tmp"), "OPENBLAS_NUM_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (int(limit), int(limit))),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.mark.usefixtures("new_processes")
def test_many_launches_are_read_in_little_memory(
    long_report: tuple[Path, int], tmp_path: Path
) -> None:
    """130 launches of all metrics, 160 MB; libraries take 400 MB of the address space."""
    done = analyze_below(1.0e9, long_report[0], tmp_path)
    assert done.returncode == 0
    assert all(line.endswith(" s  reading") for line in done.stderr.splitlines())
    assert len(done.stdout.splitlines()) == 1 + 130


@pytest.mark.usefixtures("new_processes")
def test_a_report_that_memory_just_suffices_for_is_read(tmp_path: Path) -> None:
    report = tmp_path / "x.ncu-repz"
    repeated("sdpa_s512_flash_two_metrics", 8, report)
    done = analyze_below(1.2e9, report, tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 1
