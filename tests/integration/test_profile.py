"""The whole of `profile` against stand-ins for ncu and nsys that replay recorded output."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import profkit
from profkit.errors import BadInput
from profkit.store.run import verify
from tests.conftest import H200, ROOT, plain_bytes

SECRET = "hunter2-3f9c-planted"
TARGET = """
import argparse, json, sys, time
parser = argparse.ArgumentParser()
parser.add_argument("--check", action="store_true")
parser.add_argument("--report")
parser.add_argument("--variant", action="append")
arguments, _ = parser.parse_known_args()
BEHAVIOUR = "{behaviour}"
if BEHAVIOUR == "slow":
    time.sleep(60)
if BEHAVIOUR == "broken":
    sys.exit("the target's own words")
if arguments.check:
    status = "failed" if BEHAVIOUR == "wrong" else "passed"
    variants = [
        {{"name": "flash", "status": status, "error": 0.5, "bound": 0.002, "reason": ""}},
        {{"name": "cudnn", "status": "unsupported", "error": None, "bound": 0.002, "reason": "no"}},
    ]
    with open(arguments.report, "w") as file:
        json.dump({{"name": "toy", "variants": variants, "fingerprint": {{"torch": "2"}}}}, file)
    sys.exit(6 if status == "failed" else 0)
if BEHAVIOUR == "crashes":
    sys.exit("a launch went wrong")
"""


@dataclass(frozen=True)
class Bench:
    """A folder with stand-ins, a target, and where runs go."""

    folder: Path

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    def target(self, behaviour: str = "good") -> Path:
        file = self.folder / "toy.py"
        file.write_text(TARGET.format(behaviour=behaviour), encoding="utf-8")
        return file

    def command(self, *arguments: str | Path) -> list[str]:
        return [
            *(sys.executable, "-m", "profkit", "profile", "--out", str(self.runs)),
            *map(str, arguments),
        ]

    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PROFKIT_NCU": str(self.folder / "ncu"),
            "PROFKIT_NSYS": str(self.folder / "nsys"),
            "TMPDIR": str(self.folder / "tmp"),
            "PYTHONPATH": str(ROOT),
            "HF_TOKEN": SECRET,
            "INNOCENT_NAME": SECRET,
            "CUDA_SECRET_THING": SECRET,
        }

    def profile(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments),
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def start(self, *arguments: str | Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.command(*arguments),
            env=self.environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def seen(self, name: str) -> Any:
        return json.loads((self.folder / f"{name}_seen.json").read_text(encoding="utf-8"))

    def kept(self) -> list[Path]:
        """Everything below the runs that could be taken for a run."""
        return sorted(self.runs.glob("*/[!.]*")) if self.runs.is_dir() else []

    def processes(self) -> list[str]:
        """Command lines of living processes that belong to this bench."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if entry.name.isdigit() and str(self.folder) in line:
                found.append(line)
        return found

    def gone(self, seconds: float = 10) -> bool:
        end = time.monotonic() + seconds
        while self.processes() and time.monotonic() < end:
            time.sleep(0.02)
        return not self.processes()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    for name in ("ncu", "nsys"):
        shutil.copy2(ROOT / "tests" / "stand_in" / name, tmp_path / name)
    (tmp_path / "tmp").mkdir()
    (tmp_path / "report.ncu-rep").write_bytes(plain_bytes("sdpa_s512_flash_set_basic"))
    plan(tmp_path)
    return Bench(tmp_path)


def plan(folder: Path, mode: str = "good", **more: Any) -> None:
    told = {
        "mode": mode,
        "report": str(folder / "report.ncu-rep"),
        "timeline": str(H200 / "sdpa_s512_flash.sqlite"),
        **more,
    }
    (folder / "stand_in.json").write_text(json.dumps(told), encoding="utf-8")


def test_a_target_becomes_a_kept_and_verifiable_run(bench: Bench) -> None:
    done = bench.profile(bench.target(), "--variant", "flash")
    assert done.returncode == 0, done.stderr
    (run,) = bench.kept()
    assert done.stdout.splitlines()[0].endswith(f"{run.name[-6:]}/toy.ncu-rep")
    assert ".partial" not in done.stdout.splitlines()[0]
    assert "the GPU worked" in done.stdout
    manifest = verify(run)
    assert manifest["schema"] == "profkit.run/1"
    assert manifest["launches"] == 1
    assert manifest["policy"]["clock_control"] == "none"
    assert set(manifest["files"]) == {
        "toy.ncu-rep", "timeline.sqlite", "analysis.json", "kernels.parquet", "check.json",
    }  # fmt: skip
    assert [stage["name"] for stage in manifest["stages"]] == [
        "prepare", "check", "ncu", "nsys", "read",
    ]  # fmt: skip
    assert "flash_fwd_kernel" in done.stdout
    assert str(run) in done.stdout
    assert f"profkit analyze {run} --top 0" in done.stdout
    assert "cudnn is not supported here" in done.stdout
    for stage in ("check", "ncu", "nsys", "write"):
        assert f"s  {stage}" in done.stderr


def test_ncu_is_always_told_clock_and_cache_control(bench: Bench) -> None:
    bench.profile(bench.target(), "--variant", "flash", "--cache-control", "none")
    options, program, _ = bench.seen("ncu")
    assert options["--clock-control"] == "none"
    assert options["--cache-control"] == "none"
    assert options["--profile-from-start"] == "off"
    assert options["--set"] == "full"
    assert program[-2:] == ["--variant", "flash"]


def test_range_replay_is_not_told_what_ncu_refuses_with_it(bench: Bench) -> None:
    bench.profile(bench.target(), "--replay-mode", "range")
    options, _, _ = bench.seen("ncu")
    assert options["--replay-mode"] == "range"
    assert not {"--import-source", "--profile-from-start"} & set(options)


def test_a_program_of_any_kind_is_profiled_from_its_start(bench: Bench) -> None:
    app = bench.folder / "app"
    app.write_text("#!/bin/sh\necho hello $1\n", encoding="utf-8")
    app.chmod(0o755)
    sections = bench.folder / "sections.txt"
    sections.write_text("SpeedOfLight\n# a comment\ndram__bytes.sum\n", encoding="utf-8")
    done = bench.profile(
        *("--kernel", "gemm", "--launch-skip", "2", "--launch-count", "5", "--nvtx", "step"),
        *("--set", sections, "--compress", "--", app, "--flag"),
    )
    assert done.returncode == 0, done.stderr
    options, program, _ = bench.seen("ncu")
    assert program == [str(app), "--flag"]
    assert "--profile-from-start" not in options
    assert options["--kernel-name"] == "regex:gemm"
    assert options["--nvtx-include"] == "step/"
    assert options["--section"] == "SpeedOfLight"
    assert options["--metrics"] == "dram__bytes.sum"
    (run,) = bench.kept()
    assert set(verify(run)["files"]) == {
        "app.ncu-repz", "timeline.sqlite", "analysis.json", "kernels.parquet",
    }  # fmt: skip
    assert len(profkit.load(run / "app.ncu-repz")) == 1


def test_a_secret_of_the_environment_reaches_no_file_of_the_run(bench: Bench) -> None:
    done = bench.profile(bench.target(), "--keep-env", "INNOCENT_NAME")
    assert done.returncode == 0, done.stderr
    for tool in ("ncu", "nsys_profile", "nsys_export"):
        environment = bench.seen(tool)[-1]
        assert "HF_TOKEN" not in environment
        assert "CUDA_SECRET_THING" not in environment
        assert environment["INNOCENT_NAME"] == SECRET
    (run,) = bench.kept()
    for file in run.rglob("*"):
        assert SECRET.encode() not in file.read_bytes(), file.name
    assert not list(run.rglob("*.nsys-rep"))
    assert not list((bench.folder / "tmp").glob("profkit-*/*"))


@pytest.mark.parametrize(
    ("mode", "status", "words"),
    [
        ("permission", 4, ("no permission", "run as root", "RestrictProfiling", "SYS_ADMIN")),
        ("busy", 4, ("another profiler", "dcgmi profile --pause")),
        ("driver", 4, ("driver is too old",)),
        ("library", 4, ("can't reach the GPU's counters",)),
        ("full", 4, ("disk is full", "--out")),
        ("metric", 2, ("section or metric", "--query-metrics")),
        ("range", 4, ("can't replay the marked range", "--replay-mode kernel")),
        ("nothing", 6, ("profiled no kernel", "--kernel")),
    ],
)
def test_what_goes_wrong_in_ncu_is_told_with_its_remedy(
    bench: Bench, mode: str, status: int, words: tuple[str, ...]
) -> None:
    plan(bench.folder, mode)
    done = bench.profile(bench.target(), "--no-nsys")
    assert done.returncode == status, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("profkit:")]
    for word in words:
        assert word in line
    assert bench.kept() == []


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        ("wrong", ("wrong results from flash",)),
        ("broken", ("ended with status 1", "the target's own words")),
        ("crashes", ("status 1", "a launch went wrong")),
    ],
)
def test_a_target_that_fails_ends_the_profile(
    bench: Bench, behaviour: str, words: tuple[str, ...]
) -> None:
    done = bench.profile(bench.target(behaviour), "--no-nsys")
    assert done.returncode == 6
    for word in words:
        assert word in done.stderr
    assert bench.kept() == []


def test_a_time_limit_ends_the_whole_of_it(bench: Bench) -> None:
    done = bench.profile(bench.target("slow"), "--timeout", "1")
    assert done.returncode == 6
    assert "--timeout" in done.stderr
    assert bench.gone()
    assert bench.kept() == []


def test_a_failing_nsys_costs_a_warning_not_the_run(bench: Bench) -> None:
    plan(bench.folder, nsys="fails")
    done = bench.profile(bench.target())
    assert done.returncode == 0
    assert "no timeline" in done.stdout
    assert "told to fail" in done.stdout
    (run,) = bench.kept()
    assert "timeline.sqlite" not in verify(run)["files"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_an_end_at_any_moment_leaves_no_process_and_no_run(
    bench: Bench, number: signal.Signals
) -> None:
    plan(bench.folder, nap=0.2)
    target = bench.target()
    started = time.monotonic()
    assert bench.profile(target).returncode == 0
    whole = time.monotonic() - started
    (first,) = bench.kept()
    for point in range(1, 11):
        before = bench.kept()
        process = bench.start(target)
        time.sleep(whole * point / 11)
        process.send_signal(number)
        status = process.wait(timeout=20)
        assert bench.gone(), bench.processes()
        new = [run for run in bench.kept() if run not in before]
        assert len(new) <= 1
        for run in new:
            verify(run)
        if number is not signal.SIGKILL and not new:
            assert status in {130, -number}
            assert not list(bench.runs.glob("*/.partial-*"))
    verify(first)
    assert bench.profile(target).returncode == 0
    assert not list(bench.runs.glob("*/.partial-*"))


def test_one_profile_a_gpu_at_a_time(bench: Bench) -> None:
    plan(bench.folder, nap=3)
    target = bench.target()
    first = bench.start(target)
    try:
        end = time.monotonic() + 20
        while not (bench.folder / "ncu_seen.json").exists() and time.monotonic() < end:
            time.sleep(0.02)
        second = bench.profile(target)
        assert second.returncode == 4
        assert f"by process {first.pid}" in second.stderr
        other = bench.profile(target, "--gpu", "1", "--no-nsys")
        assert other.returncode == 0, other.stderr
    finally:
        first.kill()
        first.wait()
    assert bench.gone()


def test_verbs_take_a_run_and_refuse_a_changed_one(bench: Bench) -> None:
    bench.profile(bench.target(), "--no-nsys")
    (run,) = bench.kept()
    for verb in ("analyze", "metrics"):
        shown = subprocess.run(
            [sys.executable, "-m", "profkit", verb, str(run)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert shown.returncode == 0, shown.stderr
        assert "flash_fwd_kernel" in shown.stdout or "duration" in shown.stdout
    with (run / "toy.ncu-rep").open("r+b") as file:
        file.seek(-2, 2)
        last = file.read(1)
        file.seek(-2, 2)
        file.write(bytes([last[0] ^ 1]))
    with pytest.raises(BadInput, match="changed since the run"):
        verify(run)
    with pytest.raises(BadInput, match="SHA-256"):
        profkit.load(run / "toy.ncu-rep")


def test_wrong_usage(bench: Bench) -> None:
    for arguments, words in (
        ((bench.folder / "none.py",), "no such target"),
        (("--set", "everything", "--", "/bin/true"), "neither a set nor a file"),
        (("--", str(bench.folder / "no_such_program")), "no such program"),
    ):
        done = bench.profile(*arguments)
        assert done.returncode in {2, 4}
        assert words in done.stderr
    assert bench.kept() == []


def test_without_ncu_the_doctor_is_named(bench: Bench) -> None:
    (bench.folder / "ncu").unlink()
    done = bench.profile(bench.target())
    assert done.returncode == 4
    assert "ncu was not found" in done.stderr
    assert "profkit doctor" in done.stderr
