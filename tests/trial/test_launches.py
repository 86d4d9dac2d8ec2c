"""Launches perturbed in a program that is no Python, with a driver that stands in for NVIDIA's."""

import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from profkit.trial.evidence import Evidence
from profkit.trial.launches import LaunchRecord, compiled_library, read_launches, recording
from profkit.trial.outcome import outcome
from profkit.trial.perturbed import perturbed
from profkit.trial.responses import PERTURBATIONS
from profkit.trial.run import Result
from profkit.trial.trial_file import TrialFile
from profkit.trial.view import trial_document
from profkit.ui.document import Table
from tests.conftest import ROOT

pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="no gcc")
SOURCES = ROOT / "tests/stand_in/cuda"
Launched = Callable[..., tuple[str, LaunchRecord]]

NEXT = """
#define _GNU_SOURCE
#include <dlfcn.h>
int puts(const char *text)
{
    int (*next)(const char *) = (int (*)(const char *))dlsym(RTLD_NEXT, "puts");
    return next("next:") + next(text);
}
"""


def compiled(source: Path, output: Path, *options: str) -> Path:
    words = ["gcc", "-O1", "-o", str(output), str(source), *options, "-ldl", "-lpthread"]
    subprocess.run(words, check=True)
    return output


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cuda")
    shared = ("-shared", "-fPIC", "-Wl,-soname,libcuda.so.1")
    for place, options in (("new", ()), ("old", ("-DOLD",))):
        (folder / place).mkdir()
        compiled(SOURCES / "libcuda.c", folder / place / "libcuda.so.1", *shared, *options)
    compiled(SOURCES / "program.c", folder / "program")
    compiled_library(folder)
    return folder


@pytest.fixture
def launched(built: Path, tmp_path: Path) -> Launched:
    def run(perturbation: str, how: str = "", driver: str = "new") -> tuple[str, LaunchRecord]:
        variables = recording(built / "launches.so", perturbation, tmp_path, {})
        variables["LD_LIBRARY_PATH"] = str(built / driver)
        done = subprocess.run(
            [built / "program", how], env=variables, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout, read_launches(tmp_path)

    return run


def tried(*command: str, **variables: str) -> Mapping[str, Any]:
    words = [sys.executable, "-m", "profkit", "try", "--format", "json", "--budget", "60s", "--"]
    environment = {**os.environ, **variables}
    done = subprocess.run([*words, *command], env=environment, capture_output=True, timeout=120)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_each_kernel_responds_to_its_own_limit(built: Path) -> None:
    trial = tried(str(built / "program"), LD_LIBRARY_PATH=str(built / "new"))
    expected = {
        ("chase", "half-warps"): 2.0,
        ("reuse", "cold-l2"): 1.5,
        ("compute", "half-sms"): 132 / 72,
    }
    names = set()
    for kernel in trial["kernels"]:
        names.add(kernel["kernel"])
        assert kernel["launches"] == 20
        for response in kernel["responses"]:
            slowdown = expected.get((kernel["kernel"], response["perturbation"]), 1.0)
            assert response["slowdown"] == pytest.approx(slowdown, rel=0.01)
            assert response["low"] <= response["slowdown"] <= response["high"]
            assert response["evidence"].startswith("against" if slowdown == 1.0 else ("for", "aga"))
    assert names == {"chase", "copy", "reuse", "compute"}
    assert trial["unperturbed"] == []
    document = trial_document(msgspec.convert(trial, TrialFile))
    lines = [
        " ".join(row) for block in document.blocks if isinstance(block, Table) for row in block.rows
    ]
    words = (
        "fewer blocks on an SM (50.0% left) 2.00x [2.00, 2.00] for latency: time goes with warps;"
    )
    assert sum(line.startswith(words) for line in lines) == 1


@pytest.mark.parametrize(
    ("how", "launches", "graphs"),
    [
        ("per-thread", 20, 0),
        ("streams", 20, 0),
        ("threads", 80, 0),
        ("capture", 10, 40),
        ("cooperative", 20, 0),
        ("few", 20, 0),
        ("fork", 20, 0),
        ("reset", 20, 0),
    ],
)
def test_no_launch_is_lost_doubled_or_refused(
    launched: Launched, how: str, launches: int, graphs: int
) -> None:
    plain, _ = launched("", how)
    assert plain.startswith("done")
    for perturbation in ("unchanged", *PERTURBATIONS):
        output, record = launched(perturbation, how)
        assert output == plain
        assert record.problem == ""
        assert record.graphs >= graphs
        for kernel in record.kernels.values():
            assert kernel.refused == 0
            # Several runs wrote into one folder; while a thread opens the context, others pass by.
            assert kernel.launches % launches == 0 or how == "threads"


def test_half_the_blocks_that_are_there_stay(launched: Launched) -> None:
    _, record = launched("half-warps")
    for kernel in record.kernels.values():
        assert kernel.resident == (16, 8)  # of 128 of 2048 threads
        assert 9 * (kernel.added + 1024) > 228 << 10 >= 8 * (kernel.added + 1024)


@pytest.mark.parametrize(
    ("perturbation", "how", "reason"),
    [
        ("half-warps", "few", "one block on an SM"),
        ("half-sms", "few", "fewer blocks than SMs"),
        ("half-sms", "cooperative", "cooperative or in clusters"),
    ],
)
def test_what_a_launch_does_not_allow_is_left(
    launched: Launched, perturbation: str, how: str, reason: str
) -> None:
    _, record = launched(perturbation, how)
    assert {kernel.left for kernel in record.kernels.values()} == {reason}
    assert not any(kernel.times for kernel in record.kernels.values())


class Program:
    """A program whose kernel takes 100 us, and what `perturbed` is told of its runs."""

    def __init__(self, seconds: float = 1.0, kernel: float = 1e-4, printed: float = 0.0) -> None:
        self.left, self.seconds, self.kernel, self.printed = 100.0, seconds, kernel, printed
        self.names: list[str] = []

    def run(self, words: str, variables: Mapping[str, str]) -> Result:
        name = words.split()[-1]
        self.names.append(name)
        self.left -= self.seconds
        time = self.kernel * (1 + 1e-3 * len(self.names) % 0.007)
        kernel = {
            "name": "k", "grid": [132, 1, 1], "block": [64, 1, 1], "shared": 0, "added": 0,
            "resident": [4, 2 if name == "half-warps" else 4], "left": "", "launches": 3,
            "refused": int(name == "cold-l2"), "times": [1.0, time, time * 1.001],
        }  # fmt: skip
        sms = [132, 72 if name == "half-sms" else 0]
        file = {"graphs": 0, "sms": sms, "problem": "", "kernels": [kernel]}
        (Path(variables["PROFKIT_LAUNCHES"]) / "1.launches").write_text(json.dumps(file))
        return self.result(self.printed if name == "small-l1" else 0.0)

    def result(self, off: float = 0.0) -> Result:
        rows = {"sum": [[3.0 + off]], "rate": [[100.0 + self.left]]}
        return Result((), self.seconds, output="sum", results=rows, times=(self.seconds,))

    def tried(self, budget: float) -> TrialFile:
        self.left = budget
        runs = [self.result()]
        self.left -= 7  # another rate
        evidence = Evidence([*runs, self.result()])
        self.left = budget
        trial = outcome(evidence, ("./app",), budget)
        return perturbed(trial, evidence, self.run, {}, lambda: self.left)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock is a second after the one before."""
    ticks = itertools.count(step=1.0)
    monkeypatch.setattr("profkit.trial.perturbed.time.monotonic", lambda: next(ticks))


@pytest.mark.parametrize(
    ("budget", "names"),
    [(3.0, set()), (6.5, {"half-sms"}), (60.0, set(PERTURBATIONS))],
)
@pytest.mark.usefixtures("clock")
def test_what_there_is_time_for_is_perturbed(budget: float, names: set[str]) -> None:
    program = Program()
    trial = program.tried(budget)
    assert {*program.names} == {"unchanged", *names}
    assert all(program.names.count(name) == 3 for name in names)
    late = [line for line in trial.unperturbed if "were left" in line or "was left" in line]
    assert len(late) == (1 if not names else len(PERTURBATIONS) - len(names))


@pytest.mark.usefixtures("clock")
def test_what_says_nothing_gives_a_reason() -> None:
    trial = Program().tried(60.0)
    (kernel,) = trial.kernels
    by_name = {response.perturbation: response for response in kernel.responses}
    assert by_name["cold-l2"].reason == "the driver refused it"
    assert by_name["small-l1"].slowdown == pytest.approx(1.0, rel=0.02)
    assert by_name["half-sms"].taken == pytest.approx(132 / 72)
    short = Program(kernel=1e-5).tried(60.0).kernels[0].responses
    assert {r.reason for r in short} == {"too short to time", "the driver refused it"}


@pytest.mark.usefixtures("clock")
def test_a_perturbation_that_changes_a_printed_result_says_nothing() -> None:
    trial = Program(printed=0.1).tried(60.0)  # the rate is never the same
    assert trial.unperturbed == ("small-l1: it printed other numbers",)
    reasons = {r.perturbation: r.reason for r in trial.kernels[0].responses}
    assert reasons["small-l1"] == "it printed other numbers"
    assert reasons["half-sms"] == ""


def test_an_old_driver_lacks_one_perturbation(built: Path) -> None:
    trial = tried(str(built / "program"), LD_LIBRARY_PATH=str(built / "old"))
    reason = "the driver has no green contexts (CUDA 12.5)"
    assert trial["unperturbed"] == [f"half-sms: {reason}"]
    responses = {r["perturbation"]: r for kernel in trial["kernels"] for r in kernel["responses"]}
    assert responses["half-sms"]["reason"] == reason
    assert responses["half-warps"]["slowdown"]


def test_programs_without_launches_say_so(built: Path, tmp_path: Path) -> None:
    (tmp_path / "cc").symlink_to("/bin/false")
    for path, words in (
        (os.environ["PATH"], "no launch of a kernel"),
        (str(tmp_path), "cc failed"),
    ):
        trial = tried(str(built / "program"), PATH=path)  # finds no driver
        assert words in trial["unperturbed"][0]
        assert trial["kernels"] == []


def test_a_library_finds_what_comes_after_it(built: Path, tmp_path: Path) -> None:
    (tmp_path / "next.c").write_text(NEXT)
    library = compiled(tmp_path / "next.c", tmp_path / "next.so", "-shared", "-fPIC")
    variables = recording(
        built / "launches.so", "unchanged", tmp_path, {"LD_PRELOAD": str(library)}
    )
    words = [str(built / "program")]
    assert subprocess.check_output(words, env=variables, text=True) == "next:\nno CUDA\n"
