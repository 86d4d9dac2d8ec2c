"""`profile --app` of a Python program that is started, to be timed and for ncu, while nsys records
it."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from profkit.capture import attach
from profkit.capture.ncu import NcuOptions
from profkit.capture.tools import Tool
from profkit.core.errors import EnvironmentProblem
from profkit.recording import early
from profkit.recording.application import ApplicationOutcome, profile_application
from profkit.recording.application_plan import ApplicationPlan
from profkit.recording.unprofiled import timed_environment
from tests.application.synthetic import MS
from tests.conftest import moments
from tests.recording.test_application import bench, host_bound, launches, picks, planned, program
from tests.recording.test_profile import Bench, wait_for

__all__ = ["bench"]

STARTS = """
import os, sys, time
from pathlib import Path
here, waits = Path(__file__).parent, "STAND_IN_WAITS" in os.environ
print("x" * 100_000)  # more than a pipe holds
with (here / "starts").open("a") as starts:
    starts.write("early\\n" if waits else "plain\\n")
if waits:
    exec(sys.argv[1])
    (here / "part").write_text(str(os.getpid()))
    (here / "part").rename(here / "gpu")
    while not (here / "attached").exists():
        time.sleep(0.01)
    time.sleep(600)
"""
TIMED = """
import json, os, sys, time
from pathlib import Path
here, temporary = Path(__file__).parent, Path(os.environ["TMPDIR"])
if "STAND_IN_WAITS" in os.environ:
    (here / "part").write_text(str(os.getpid()))
    (here / "part").rename(here / "gpu")
    time.sleep(600)
elif "PROFKIT_TRIAL" in os.environ:
    with (here / "timed").open("a") as timed:
        timed.write(f"{os.getpid()}\\n")
    held = json.loads((here / "held").read_text())
    exec(sys.argv[2])
    time.sleep(1.5)
elif not (here / "held").exists():  # under nsys
    held = []
    while not (len(held) == 2 and all(held)):
        held = [path.read_text() for path in temporary.glob("profkit-early-*/held")]
        time.sleep(0.01)
    (here / "held").write_text(json.dumps(held))
    exec(sys.argv[1])
    time.sleep(2)
"""
LAUNCH_COST = 50 * MS
"""With which a run of 1.5 s takes a third of the time under nsys."""
MANY_CORES = """
import sys
from profkit.recording import early
early._FEWEST_CORES = 1
sys.argv = ["profkit", *sys.argv[1:]]
from profkit.commands.cli import main
main()
"""
LAUNCHED = "ncu_launched.json"


def script(bench: Bench, effect: str = "pass") -> tuple[str, ...]:
    (bench.folder / "main.py").write_text(STARTS, encoding="utf-8")
    return (sys.executable, str(bench.folder / "main.py"), effect)


def profile(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], **more: Any
) -> ApplicationOutcome:
    for name, value in bench.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(early, "_FEWEST_CORES", 1)
    monkeypatch.setattr(tempfile, "tempdir", str(bench.folder / "tmp"))
    options = NcuOptions(sections="lean")
    asked = ApplicationPlan(words, out=bench.runs, plain=True, options=options, **more)
    return profile_application(asked, lambda *_: None)


def starts(bench: Bench) -> list[str]:
    file = bench.folder / "starts"
    return file.read_text().split() if file.exists() else []


def test_ncu_attaches_to_a_program_that_was_held_meanwhile(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned(bench, program(bench.folder), nap=0.1, export_nap=1)
    outcome = profile(bench, monkeypatch, script(bench))
    assert outcome.failure is None
    assert starts(bench) == ["plain", "early"]
    assert all(pick.launch is not None for pick in picks(bench).picks)
    timeline = outcome.folder / "timeline.sqlite"
    assert (bench.folder / LAUNCHED).stat().st_mtime < timeline.stat().st_mtime
    launched, words, _ = json.loads((bench.folder / LAUNCHED).read_text())
    options, _, variables = bench.seen("ncu")
    assert words == list(script(bench))
    assert launched["--port"] == options["--port"]
    assert {"--nvtx", "--target-processes"} <= launched.keys() - options.keys()
    assert {"--kill", "--kernel-id", "--clock-control"} <= options.keys() - launched.keys()
    assert not [name for name in variables if name.startswith("PROFKIT_HO")]
    assert [stage.name for stage in outcome.stages].count("ncu") == 1
    assert bench.gone()
    assert not list((bench.folder / "tmp").glob("profkit-early-*"))


@pytest.mark.parametrize(
    ("effect", "told", "expected"),
    [
        ("pass", {"attach": "fails"}, ["plain", "early", "plain"]),
        ("sys.exit(3)", {}, ["plain", "early", "plain"]),
    ],
)
def test_a_program_that_can_not_be_attached_to_is_started_again(
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
    effect: str,
    told: dict[str, str],
    expected: list[str],
) -> None:
    planned(bench, program(bench.folder), **told)
    outcome = profile(bench, monkeypatch, script(bench, effect))
    assert outcome.failure is None
    assert not [warning for warning in outcome.warnings if "ncu" in warning]
    assert starts(bench) == expected
    assert all(pick.launch is not None for pick in picks(bench).picks)
    assert bench.gone()


def test_ranks_and_what_ends_early_are_profiled_as_before(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned(bench, program(bench.folder, ranks=2))
    outcome = profile(bench, monkeypatch, script(bench))
    assert outcome.failure is None
    assert starts(bench) == ["plain", "plain"]
    assert (bench.folder / LAUNCHED).exists()
    assert all(pick.launch is not None for pick in picks(bench).picks)
    assert bench.gone()


def test_counters_that_are_refused_are_not_asked_for_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned(bench, program(bench.folder), "permission", export_nap=1)
    outcome = profile(bench, monkeypatch, script(bench))
    assert isinstance(outcome.failure, EnvironmentProblem)
    assert starts(bench) == ["plain", "early"]
    assert bench.gone()


@pytest.mark.parametrize(
    "words",
    [
        ("sh", "main.py"),
        (sys.executable, "-I", "main.py"),
        (sys.executable, "-u", "-S", "main.py"),
        (sys.executable,),
    ],
)
def test_what_can_not_be_held_is_not_started_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setattr(early, "_FEWEST_CORES", 1)
    tool = Tool(str(tmp_path / "ncu"), (2025, 3, 1))
    with early.early_programs(
        words, {"PATH": "/usr/bin:/bin"}, timed_environment, tool, NcuOptions()
    ) as programs:
        assert programs == (None, None)


def test_a_program_with_much_memory_is_ended(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a model there are no two copies."""
    source = Path(str(attach.__file__)).read_text(encoding="utf-8")
    small = bench.folder / "attach.py"
    small.write_text(source.replace("_LARGEST = 4 << 30", "_LARGEST = 1 << 10"), encoding="utf-8")
    monkeypatch.setattr(attach, "__file__", str(small))
    planned(bench, program(bench.folder), nap=0.3)
    outcome = profile(bench, monkeypatch, script(bench))
    assert outcome.failure is None
    assert starts(bench) == ["plain", "plain"]
    assert (bench.folder / LAUNCHED).exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moment", [LAUNCHED, "nsys_export_seen.json", "attached"])
def test_whatever_ends_profkit_ends_the_early_program(
    bench: Bench, number: signal.Signals, moment: str
) -> None:
    planned(bench, program(bench.folder), "hangs", nap=0.5, export_nap=2)
    profkit = start_on_many_cores(bench, script(bench))
    wait_for(bench.folder / moment)
    time.sleep(0.2)
    profkit.send_signal(number)
    profkit.wait(timeout=600)
    assert bench.gone(), bench.processes()
    if moment != "attached":
        assert "early" not in starts(bench)


def timed(bench: Bench, under_nsys: str = "pass", without: str = "pass") -> tuple[str, ...]:
    """A program that does this under nsys, once both others are held, and that when timed."""
    (bench.folder / "main.py").write_text(TIMED, encoding="utf-8")
    return (sys.executable, str(bench.folder / "main.py"), under_nsys, without)


def early_and_timed(bench: Bench) -> list[bool]:
    """Of each process that was timed whether it was there while nsys recorded."""
    held = json.loads((bench.folder / "held").read_text())
    return [number in held for number in (bench.folder / "timed").read_text().split()]


KILLED = "[os.kill(int(number), 9) for number in held]"


@pytest.mark.parametrize(
    ("under_nsys", "without", "expected"),
    [
        ("pass", "pass", [True]),
        (KILLED, "pass", [False]),
        ("pass", "str(os.getpid()) in held and sys.exit(3)", [True, False]),
    ],
)
def test_a_step_is_timed_in_a_program_that_was_held_meanwhile(
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
    under_nsys: str,
    without: str,
    expected: list[bool],
) -> None:
    """Where it has ended, or fails, the program is started again."""
    planned(bench, host_bound(bench.folder, LAUNCH_COST))
    outcome = profile(bench, monkeypatch, timed(bench, under_nsys, without))
    assert early_and_timed(bench) == expected
    assert not [warning for warning in outcome.warnings if "host" in warning]
    unprofiled = picks(bench).unprofiled
    assert unprofiled
    assert unprofiled.source == "wall time by step"
    assert 0.15 <= unprofiled.seconds <= len(launches()) * LAUNCH_COST / 1e9
    assert [stage.name for stage in outcome.stages].count("unprofiled") == 1
    assert bench.gone()
    assert not list((bench.folder / "tmp").glob("profkit-[et]*"))


def test_ranks_are_timed_as_before(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    planned(bench, host_bound(bench.folder, LAUNCH_COST, ranks=2))
    profile(bench, monkeypatch, timed(bench))
    assert early_and_timed(bench) == [False]
    assert picks(bench).unprofiled
    assert bench.gone()


def start_on_many_cores(bench: Bench, words: tuple[str, ...]) -> subprocess.Popen[bytes]:
    command = (*bench.command("--app", "--", *words)[3:],)
    return subprocess.Popen(
        [sys.executable, "-c", MANY_CORES, *command], env=bench.environment(),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("number", "start"), [(signal.SIGKILL, 4), (signal.SIGINT, 6), (signal.SIGTERM, 8)]
)
def test_an_end_at_any_moment_leaves_nothing_of_early_programs(
    bench: Bench, number: signal.Signals, start: int
) -> None:
    planned(bench, host_bound(bench.folder, LAUNCH_COST))
    for point in moments(12, start):
        for name in ("held", "gpu", "attached"):
            (bench.folder / name).unlink(missing_ok=True)
        profkit = start_on_many_cores(bench, timed(bench))
        time.sleep(point / 2)
        profkit.send_signal(number)
        profkit.wait(timeout=600)
        assert bench.gone(), bench.processes()
        folders = list((bench.folder / "tmp").glob("profkit-early-*"))
        assert not folders or number == signal.SIGKILL
        for folder in folders:
            shutil.rmtree(folder)


def test_the_end_of_profkit_is_that_of_a_program_that_is_timed(bench: Bench) -> None:
    planned(bench, host_bound(bench.folder, LAUNCH_COST))
    profkit = start_on_many_cores(bench, timed(bench, without="time.sleep(600)"))
    wait_for(bench.folder / "timed")
    profkit.terminate()
    profkit.wait(timeout=600)
    assert bench.gone(), bench.processes()
    assert early_and_timed(bench) == [True]
    assert not list((bench.folder / "tmp").glob("profkit-[et]*"))
