"""Where the recorded reports are, and how tests make damaged or odd ones out of them."""

from __future__ import annotations

import atexit
import csv
import fcntl
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

import pytest
import typer.testing
import zstandard
from hypothesis import HealthCheck, settings
from typer.testing import CliRunner, Result

import profkit
from kernels.attention_archive import complete
from profkit.commands.cli import app
from profkit.core.typed_file import encode
from profkit.score.pair_archive import unpack
from profkit.study.run import derived_summary
from profkit.study.summary_format import BaselineFile
from profkit.ui import progress
from tests import forks
from tests.recorded import reports_are_read_once  # noqa: F401  (a fixture for all)

NIGHTLY = bool(os.environ.get("PROFKIT_NIGHTLY"))
"""Whether sweeps are whole, and properties held to more examples: `make test-nightly`."""

WITHOUT_READER = bool(os.environ.get("PROFKIT_TESTS_WITHOUT_VENDOR"))
"""Whether NVIDIA's reader is hidden, as where it has no wheel: `make test-nightly`."""

# Machines differ, and a first call imports: how long a case takes is no fault of it. The cases are
# the same every time; `--hypothesis-profile searching` looks for others.
settings.register_profile(
    "profkit",
    max_examples=20,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("nightly", settings.get_profile("profkit"), max_examples=500)
settings.register_profile("searching", settings.get_profile("profkit"), derandomize=False)
settings.load_profile("nightly" if NIGHTLY else "profkit")

if WITHOUT_READER:
    sys.modules["ncu_report"] = None  # type: ignore[assignment]

T = TypeVar("T")
Cli = Callable[..., Result]
"""What `profkit_cli` is."""

ROOT = Path(__file__).parent.parent
TRACKED = ROOT / "reports" / "h200"
CORPUS = ROOT.parent / "shared" / "corpus" / "reports"
TRUTH = ROOT.parent / "shared" / "truth" / "crosschip"

FULL = ("known", "sdpa_s512_flash", "sdpa_s512_efficient", "sdpa_s512_cudnn", "sdpa_s512_math")
CAUSAL = ("sdpa_s2048_d128_causal_flash", "sdpa_s2048_d128_causal_cudnn")
REDUCED = (
    "sdpa_s512_flash_set_basic",
    "sdpa_s512_flash_set_detailed",
    "sdpa_s512_flash_two_metrics",
)
RECORDED = FULL + CAUSAL + REDUCED

needs_reader = pytest.mark.skipif(WITHOUT_READER, reason="NVIDIA's reader is hidden")
needs_corpus = pytest.mark.skipif(
    not CORPUS.is_dir(), reason="others' reports (../shared/corpus) are not here"
)
L4 = CORPUS.parent / "l4_latency"
needs_l4 = pytest.mark.skipif(
    not L4.is_dir(), reason="others' latencies (../shared/corpus/l4_latency) are not here"
)
needs_truth = pytest.mark.skipif(
    not TRUTH.is_dir(), reason="others' pairs (../shared/truth) are not here"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--regenerate", action="store_true", help="write the golden files again")


@cache
def scratch() -> Path:
    """A directory for the run of all tests, or for this process."""
    if common := os.environ.get("PROFKIT_TESTS_SCRATCH"):
        return Path(common)
    folder = tempfile.mkdtemp(prefix="profkit-tests-")
    # Not a TemporaryDirectory: a fork clears what is registered, and that would remove the folder.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def written_once(folder: Path, write: Callable[[Path], None]) -> Path:
    """A folder that the first of the processes that ask for it writes."""
    folder.parent.mkdir(exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            part = folder.with_suffix(".part")
            write(part)
            part.rename(folder)
    return folder


@cache
def _unpacked(recorded: Path) -> Path:
    """A copy of a recorded folder with the content of its archives."""

    def write(part: Path) -> None:
        shutil.copytree(recorded, part)
        for archive in part.glob("*.tar.zst"):
            unpack(archive, part)
            archive.unlink()

    return written_once(scratch() / recorded.name, write)


H200 = written_once(scratch() / "reports" / "h200", partial(complete, TRACKED))
"""What is recorded of a GPU, with the files that are tracked in an archive."""


def pair_folder(name: str) -> Path:
    """The folder of a recorded pair, unpacked where it is in the archive."""
    folder = H200 / "pairs" / name
    return folder if folder.is_dir() else _unpacked(H200 / "pairs") / name


def story_folder(name: str) -> Path:
    """The folder of a recorded application before and after a fix, unpacked."""
    return _unpacked(H200 / "apps") / name


def pair_report(name: str, side: str) -> Path:
    """The report of a recorded pair before or after its fix."""
    (path,) = pair_folder(name).glob(f"{side}.ncu-rep*")
    return path


def moments(count: int, start: int) -> range:
    """Those of a sweep over `count` moments, from 1: all every night, one of them by day."""
    return range(1, count + 1) if NIGHTLY else range(start, start + 1)


def by_day(items: Iterable[T], share: int) -> list[T]:
    """Those of a matrix: all every night, one of `share` by day."""
    return list(items)[:: 1 if NIGHTLY else share]


def apart(function: Callable[[Path], T], reports: Sequence[Path]) -> list[T]:
    """What a function returns of reports in a fork, which ends with the memory that the vendor's
    reader never frees."""
    with get_context("fork").Pool(1) as pool:
        return pool.map(function, reports)


def recorded_report(name: str) -> Path:
    """The file of a recorded report, which is plain where an archive has it."""
    (path,) = H200.glob(f"{name}.ncu-rep*")
    return path


@cache
def h200(name: str) -> profkit.Report:
    """A recorded report, read once for all tests."""
    return profkit.load(recorded_report(name))


@cache
def recorded_summary(name: str) -> Path:
    """The summary of a recorded baseline: it is not tracked."""

    def write(part: Path) -> None:
        part.mkdir()
        text = encode(recorded_baseline(name), indent=1)
        (part / "summary.json").write_text(text, encoding="utf-8")

    return written_once(scratch() / f"summary_{name}", write) / "summary.json"


def baseline_folder(name: str) -> Path:
    """A recorded baseline with its cells."""
    return _unpacked(H200 / "baseline" / name)


def sweep_folder() -> Path:
    """The recorded runs of six lengths."""
    return _unpacked(H200 / "sdpa_sweep")


@cache
def recorded_baseline(name: str) -> BaselineFile:
    """A recorded baseline and its summary, derived once for all tests."""
    return derived_summary(baseline_folder(name))


@cache
def export(name: str, page: str) -> tuple[Mapping[str, str], list[Mapping[str, str]]]:
    """ncu's own export of a recorded report: units by column, then a row a launch."""
    with (H200 / f"{name}.{page}.csv").open(encoding="utf-8", newline="") as file:
        rows: list[Mapping[str, str]] = list(csv.DictReader(file))
    return (rows[0], rows[1:]) if page == "raw" else ({}, rows)


def plain_bytes(name: str) -> bytes:
    """A recorded report without its compression."""
    data = (H200 / f"{name}.ncu-repz").read_bytes()
    return zstandard.ZstdDecompressor().decompressobj().decompress(data)


@pytest.fixture(autouse=True, scope="session")
def forked_processes() -> Iterator[None]:
    """Python processes are forked instead of started; see `tests.forks`."""
    with pytest.MonkeyPatch.context() as patch:
        forks.install(patch)
        yield


@pytest.fixture(autouse=True, scope="session")
def no_line_of_progress() -> Iterator[None]:
    """What a command writes does not depend on how busy the machine is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(progress, "_SHOWN_AFTER", math.inf)
        yield


@pytest.fixture
def new_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of how a process starts: here Python processes are started."""
    monkeypatch.setattr(subprocess, "_fork_exec", forks.EXEC)
    monkeypatch.setattr(os, "posix_spawnp", forks.SPAWN)


@pytest.fixture(autouse=True, scope="session")
def signals_as_in_a_terminal() -> None:
    """A shell starts what runs in the background with these ignored, and children inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture(autouse=True, scope="session")
def commands_are_built_once() -> Iterator[None]:
    """For each line that a test runs typer builds the whole tree of commands, which takes 45 ms."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.testing, "_get_command", cache(typer.main.get_command))
        yield


@pytest.fixture
def profkit_cli() -> Cli:
    """Run a command line in this process, in this environment with what is named changed.

    It has to end with this status, where one is given.
    """
    runner = CliRunner(env={"COLUMNS": None})

    def run(*arguments: object, status: int | None = 0, **environment: str) -> Result:
        done = runner.invoke(app, [str(argument) for argument in arguments], env=environment)
        assert status in {None, done.exit_code}, (done.exit_code, done.output, done.exception)
        return done

    return run
