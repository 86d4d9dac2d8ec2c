"""Runs the tests, each file in a fork of a process that has imported what most of them import.

The vendor's reader frees nothing of the reports that it has read, so no process outlives a file. As
many files run at once as there are cores, those first that took longest the last time; all of them
run, whatever fails. `python -m tests.run [PATH...] [ARGUMENTS OF PYTEST]`.

With `--changed` those of the rooms that changed since HEAD run, then those of the rooms above, as
far as they fit into `--budget` seconds; the others are named.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import importlib
import json
import math
import multiprocessing.util
import os
import pickle
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from pkgutil import walk_packages
from typing import IO

import pytest

import profkit
from profkit.page.page import page_templates
from profkit.rules.rule_file import shipped_rules
from tests.changed import changed_paths, test_folders
from tests.forks import SHIPPED

ROOT = Path(__file__).parent.parent
LAST_TIME = ROOT / ".pytest_cache" / "seconds.json"
LONGEST = 1200
"""Seconds after which a file's process prints where it hangs, and ends."""
IMPORTED = (
    "hypothesis", "jinja2", "jsonschema", "matplotlib.figure", "ncu_report", "numpy", "pandas",
    "rich.console", "scipy.stats", "sqlite3", "torch", "typer._adapters", "typer.testing", "yaml",
)  # fmt: skip
"""Beside all of profkit."""
LARGE = {
    "analysis/test_source.py", "analysis/test_views.py", "commands/test_golden.py",
    "comparison/test_diff.py", "comparison/test_diff_pairs.py", "comparison/test_diff_runs.py",
    "comparison/test_finding_changes.py", "kernels/test_split.py", "page/test_page.py",
    "report/test_architectures.py", "report/test_truth.py", "roofline/test_roofline.py",
    "rules/test_checklist.py",
}  # fmt: skip
"""Files that read so many reports that they take up to 2 GB: one at a time, for 4 GB in all."""
EXAMINING = {
    "kernels/test_published_pairs.py", "kernels/test_recordings.py", "score/test_score.py",
}  # fmt: skip
"""Files that ask for all recorded pairs, which the first of them judges: another one would wait."""
IDLE = {
    "callables/test_recording.py", "capture/test_watchdog.py", "recording/test_application.py",
    "recording/test_early.py", "study/test_baseline.py", "study/test_many_gpus.py",
}  # fmt: skip
"""Files that wait for half to four fifths of their time: one of them runs beside the others."""
LONG: Mapping[str, float] = {
    "recording/test_application.py": 95,
    "kernels/test_recordings.py": 62,
    "page/test_page.py": 53,
    "study/test_baseline.py": 53,
    "recording/test_profile.py": 52,
    "trial/test_styles.py": 45,
    "study/test_baseline_report.py": 40,
    "trial/test_prepared.py": 36,
    "analysis/test_views.py": 36,
    "recording/test_early.py": 33,
    "study/test_many_gpus.py": 30,
    "trial/test_program.py": 26,
    "commands/test_docs.py": 26,
    "agents/test_server.py": 25,
    "commands/test_golden.py": 25,
    "fuzz/test_hostile.py": 23,
    "trial/test_kernel_trial.py": 23,
    "comparison/test_diff.py": 23,
    "trial/test_search.py": 23,
    "rules/test_checklist.py": 15,
    "execution/test_module_ranges.py": 14,
    "analysis/test_source.py": 14,
    "commands/test_left_behind.py": 13,
    "report/test_damage.py": 11,
    "timing/test_time.py": 10,
    "study/test_written.py": 10,
    "fuzz/test_fuzz.py": 9,
    "comparison/test_diff_runs.py": 9,
    "trial/test_launches.py": 9,
    "comparison/test_diff_pairs.py": 9,
    "kernels/test_attention_ladder.py": 9,
    "capture/test_watchdog.py": 9,
    "callables/test_profile.py": 8,
    "callables/test_pytest_plugin.py": 8,
    "rules/test_bounds.py": 7,
    "commands/test_imports.py": 7,
    "application/test_score.py": 7,
    "rules/test_timeline_rules.py": 7,
    "trial/test_written.py": 7,
    "kernels/test_pairs.py": 7,
    "experiment/test_next.py": 7,
    "commands/test_other_systems.py": 7,
    "comparison/test_finding_changes.py": 7,
    "analysis/test_without_counters.py": 6,
    "report/test_reference.py": 6,
    "rules/test_foreign_rules.py": 6,
    "kernels/test_split.py": 6,
    "timing/test_verdict.py": 6,
    "analysis/test_headroom.py": 5,
    "timeline/test_kineto.py": 5,
    "commands/test_output.py": 5,
    "analysis/test_api.py": 5,
    "roofline/test_roofline.py": 5,
    "trial/test_graphs.py": 5,
    "core/test_typed_file.py": 5,
    "kernels/test_hopper.py": 5,
}
"""Seconds of the files that take longest, on two quiet cores, where there was no last time."""
OBJECTS = 100_000
"""How many new ones make Python look for garbage, in all processes: with its own 700 that takes a
seventh of the time. profkit's program has more, too."""
_SHORT = 3.0  # seconds; what most other files take less than
_OPTIONS = (
    "--quiet", "-p", "no:cacheprovider", "-p", "no:anyio", "-p", "no:benchmark",
    "-W", "ignore::pytest.PytestAssertRewriteWarning",
)  # fmt: skip


@dataclass(eq=False)
class Tally:
    """What came of tests: how many of each outcome, the seconds of each test, why some were
    skipped, which failed. A plugin of pytest."""

    outcomes: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration  # type: ignore[assignment]
        if report.failed:
            self.fail(report.nodeid)
        elif report.skipped and not hasattr(report, "wasxfail"):
            self._skip(report)
        elif report.when == "call":
            self.outcomes["xfailed" if report.skipped else "passed"] += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.fail(report.nodeid)
        elif report.skipped:
            self._skip(report)

    def fail(self, name: str) -> None:
        self.outcomes["failed"] += 1
        self.failed.append(name)

    def _skip(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        self.outcomes["skipped"] += 1
        self.skipped[report.longrepr[2] if isinstance(report.longrepr, tuple) else "?"] += 1

    def add(self, other: Tally) -> None:
        self.outcomes += other.outcomes
        self.seconds += other.seconds
        self.skipped += other.skipped
        self.failed += other.failed


@dataclass(frozen=True)
class Run:
    """A file whose tests ran: wall and CPU seconds, MB of its largest process, what came of it."""

    file: str
    wall: float
    cpu: float
    megabytes: float
    tally: Tally


@dataclass(frozen=True)
class Job:
    """A process that runs a file's tests: what it prints, and its pickled tally."""

    file: str
    began: float = field(default_factory=time.monotonic)
    output: IO[bytes] = field(default_factory=tempfile.TemporaryFile)
    result: IO[bytes] = field(default_factory=tempfile.TemporaryFile)

    def start(self, arguments: Sequence[str]) -> int:
        """Fork; the process's number."""
        sys.stdout.flush()
        process = os.fork()
        if process == 0:
            code = 70
            try:
                code = self._run(arguments)
            except BaseException:
                traceback.print_exc()
            finally:
                # Of what it has left: a folder of sockets.
                multiprocessing.util._exit_function()  # type: ignore[attr-defined]
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        return process

    def _run(self, arguments: Sequence[str]) -> int:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for descriptor in (1, 2):
            os.dup2(self.output.fileno(), descriptor)
        # Not faulthandler.dump_traceback_later: its thread would keep the process from forking.
        faulthandler.register(signal.SIGALRM, file=os.dup(2), chain=True)
        signal.alarm(LONGEST)
        tally = Tally()
        code = pytest.main([*_OPTIONS, *arguments, self.file], plugins=[tally])
        pickle.dump(tally, self.result)
        self.result.flush()
        return 0 if code == pytest.ExitCode.NO_TESTS_COLLECTED else int(code)

    def end(self, status: int, used: resource.struct_rusage) -> Run:
        """What came of it; where it failed, what it printed is printed."""
        wall = time.monotonic() - self.began
        pickled, printed = _read(self.result), _read(self.output)
        tally = pickle.loads(pickled) if pickled else Tally()
        if status and not tally.failed:
            tally.fail(f"{self.file}: ended with {os.waitstatus_to_exitcode(status)}")
        if tally.failed:
            print(printed.decode("utf-8", "replace"))
        return Run(self.file, wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, tally)


def _read(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def runs(
    files: Sequence[str], arguments: Sequence[str], workers: int, budget: float = math.inf
) -> Iterator[Run]:
    """Run files, some at a time, of the large and of the idle ones one; those that would not end
    within `budget` seconds are left out."""
    waiting, jobs, began = list(files), dict[int, Job](), time.monotonic()
    while waiting or jobs:
        running = [job.file for job in jobs.values()]
        left = budget - (time.monotonic() - began)
        late = [file for file in waiting if seconds_of(file) > left]
        if late:
            waiting = [file for file in waiting if file not in late]
            print(f"left to `make test`: {', '.join(late)}", flush=True)
        file = next((file for file in waiting if _fits(file, running, workers)), None)
        if file is not None:
            waiting.remove(file)
            job = Job(file)
            jobs[job.start(arguments)] = job
            continue
        process, status, used = os.wait4(-1, 0)
        yield jobs.pop(process).end(status, used)


def _fits(file: str, running: Sequence[str], workers: int) -> bool:
    """Whether a file may run beside others."""
    for alone in (LARGE, EXAMINING):
        if _is_in(alone, file) and any(_is_in(alone, other) for other in running):
            return False
    idle = _is_in(IDLE, file)
    return sum(_is_in(IDLE, other) == idle for other in running) < (1 if idle else workers)


def _is_in(names: Container[str], file: str) -> bool:
    return file.removeprefix("tests/") in names


def files_of_tests(paths: Sequence[Path], *, nearest_first: bool = False) -> list[str]:
    """Those first that take longest; of each path in its turn where `nearest_first`."""
    files: dict[str, int] = {}
    for place, path in enumerate(paths):
        for file in path.rglob("test_*.py") if path.is_dir() else (path,):
            name = str(file.resolve().relative_to(ROOT))
            files.setdefault(name, place if nearest_first else 0)
    return sorted(files, key=lambda file: (files[file], -seconds_of(file), file))


def seconds_of(file: str) -> float:
    """How long a file took the last time; where there was none, as listed in LONG."""
    return _last_time().get(file) or LONG.get(file.removeprefix("tests/"), _SHORT)


@cache
def _last_time() -> dict[str, float]:
    """The seconds that files took."""
    try:
        return dict(json.loads(LAST_TIME.read_text()))
    except (OSError, ValueError):
        return {}


def _keep(done: Sequence[Run]) -> None:
    LAST_TIME.parent.mkdir(exist_ok=True)
    seconds = _last_time() | {run.file: run.wall for run in done}
    LAST_TIME.write_text(json.dumps(seconds))


def _counts(tally: Tally) -> str:
    return ", ".join(f"{count} {outcome}" for outcome, count in tally.outcomes.most_common())


def _print_summary(done: Sequence[Run], wall: float, slowest: int) -> None:
    total = Tally()
    for run in done:
        total.add(run.tally)
    for reason, count in total.skipped.most_common():
        print(f"skipped {count}: {reason.removeprefix('Skipped: ')}")
    print(f"the {slowest} slowest tests:")
    for name, seconds in total.seconds.most_common(slowest):
        print(f"{seconds:6.1f} s  {name}")
    for name in total.failed:
        print(f"FAILED {name}")
    cpu, largest = sum(run.cpu for run in done), max(run.megabytes for run in done)
    print(f"{_counts(total)} in {wall:.0f} s, {cpu:.0f} s of CPU, {largest:.0f} MB in a process")


def _import_all() -> None:
    """Import and read what most tests need, before the process is forked."""
    for name in IMPORTED:
        if name != "ncu_report" or not os.environ.get("PROFKIT_TESTS_WITHOUT_VENDOR"):
            importlib.import_module(name)
    for module in walk_packages(profkit.__path__, "profkit."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for read in SHIPPED:
        read()
    for rule in shipped_rules():
        rule.names  # noqa: B018  (parses its formulas)
    for name in ("page.html.j2", "parts.html.j2"):
        page_templates().get_template(name)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, default=[ROOT / "tests"])
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--slowest", type=int, default=5, help="how many tests to name (5)")
    parser.add_argument("--changed", action="store_true", help="what changed since HEAD")
    parser.add_argument("--budget", type=float, default=math.inf, help="seconds for all of it")
    arguments, of_pytest = parser.parse_known_args()
    files = files_of_tests(arguments.paths)
    if arguments.changed:
        folders = test_folders(changed_paths())
        files = files_of_tests(folders, nearest_first=True)
        if not files:
            print("0 passed, 0 failed\nnothing changed since HEAD: `make test` runs all tests")
            return 0
    gc.set_threshold(OBJECTS)
    _import_all()
    began, done = time.monotonic(), []
    with tempfile.TemporaryDirectory(prefix="profkit-tests-") as scratch:
        os.environ["PROFKIT_TESTS_SCRATCH"] = scratch  # recordings are unpacked there once
        importlib.import_module("tests.conftest")
        gc.freeze()  # what forks share stays shared
        for run in runs(files, of_pytest, arguments.workers, arguments.budget):
            used = f"{run.wall:6.1f} s {run.cpu:6.1f} s of CPU {run.megabytes:5.0f} MB"
            print(f"{used}  {run.file}: {_counts(run.tally)}", flush=True)
            done.append(run)
    _keep(done)
    _print_summary(done, time.monotonic() - began, arguments.slowest)
    return int(any(run.tally.failed for run in done))


if __name__ == "__main__":
    sys.exit(main())
