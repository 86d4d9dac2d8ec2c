"""The whole of `profile` against stand-ins for ncu and nsys that replay recorded output."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from zstandard import ZstdCompressor

import profkit
from profkit.core.errors import BadInput
from profkit.core.fingerprint import Device
from profkit.core.typed_file import encode
from profkit.recording.recording import Plan
from profkit.runs.manifest import DriverGpu, Manifest
from profkit.runs.run import verify
from tests.analysis.test_views import schema
from tests.capture.test_program_environment import ADDRESSES, PLANTED
from tests.conftest import H200, ROOT, moments, plain_bytes

SECRET = "hunter2-3f9c-planted"
TARGET = """
import argparse, json, os, sys, time
parser = argparse.ArgumentParser()
parser.add_argument("--check", action="store_true")
parser.add_argument("--report")
parser.add_argument("--variant", action="append")
arguments, _ = parser.parse_known_args()
BEHAVIOR = "{behavior}"
if BEHAVIOR == "wanders":
    os.chdir("/")
if BEHAVIOR == "slow":
    time.sleep(600)
if BEHAVIOR == "broken":
    sys.exit("the target's own words")
if arguments.check:
    status = "failed" if BEHAVIOR == "wrong" else "passed"
    variants = [
        {{"name": "flash", "status": status, "error": 0.5, "bound": 0.002, "reason": ""}},
        {{"name": "cudnn", "status": "unsupported", "error": None, "bound": 0.002, "reason": "no"}},
    ]
    with open(arguments.report, "w") as file:
        gpu = {{"uuid": "GPU-other"}} if BEHAVIOR == "elsewhere" else None
        fingerprint = {{"versions": {{"torch": "2"}}, "gpu": gpu}}
        told = {{"name": "toy", "variants": variants, "fingerprint": fingerprint}}
        json.dump({{"schema": "profkit.check/1", **told}}, file)
        if BEHAVIOR in {{"empty", "garbled"}}:
            file.seek(0)
            file.truncate()
            file.write("[1]" if BEHAVIOR == "garbled" else "")
    sys.exit(6 if status == "failed" else 0)
if BEHAVIOR == "crashes":
    sys.exit("a launch went wrong")
"""


@dataclass(frozen=True)
class Bench:
    """A folder with stand-ins, a target, and where runs go."""

    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict)

    def with_gpus(self, **variables: str) -> Bench:
        """The same with a driver of two GPUs, and these variables."""
        path = os.pathsep.join((str(ROOT / "tests" / "stand_in" / "nvml"), str(ROOT)))
        return replace(self, variables={"PYTHONPATH": path, **variables})

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    def target(self, behavior: str = "good") -> Path:
        file = self.folder / "toy.py"
        file.write_text(TARGET.format(behavior=behavior), encoding="utf-8")
        return file

    def command(self, *arguments: str | Path) -> list[str]:
        return [
            *(sys.executable, "-m", "profkit", "profile"),
            *(() if "--out" in arguments else ("--out", str(self.runs))),
            *map(str, arguments),
        ]

    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PROFKIT_NCU": str(self.folder / "ncu"),
            "PROFKIT_NSYS": str(self.folder / "nsys"),
            "TMPDIR": str(self.folder / "tmp"),
            "XDG_CACHE_HOME": str(self.folder / "tmp"),
            "PROFKIT_LOCK_DIR": str(self.folder / "tmp"),
            "PYTHONPATH": str(ROOT),
            "HF_TOKEN": SECRET,
            "INNOCENT_NAME": SECRET,
            "CUDA_SECRET_THING": SECRET,
            **self.variables,
        }

    def profile(
        self, *arguments: str | Path, folder: Path | None = None, status: int | None = 0
    ) -> subprocess.CompletedProcess[str]:
        return self.run(*self.command(*arguments)[3:], folder=folder, status=status)

    def run(
        self, *words: str | Path, folder: Path | None = None, status: int | None = 0
    ) -> subprocess.CompletedProcess[str]:
        """Any verb, which has to end with that status."""
        done = subprocess.run(
            [sys.executable, "-m", "profkit", *map(str, words)],
            cwd=folder,
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert status in {None, done.returncode}, (done.returncode, done.stderr)
        return done

    def start(
        self, *arguments: str | Path, before: Callable[[], object] | None = None
    ) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.command(*arguments),
            env=self.environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=before,
        )

    def app(self, script: str, name: str = "app") -> Path:
        """A program: a shell script."""
        file = self.folder / name
        file.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        file.chmod(0o755)
        return file

    def manifest(self) -> Manifest:
        (run,) = self.kept()
        return verify(run)

    def seen(self, name: str) -> Any:
        return json.loads((self.folder / f"{name}_seen.json").read_text(encoding="utf-8"))

    def calls(self) -> list[dict[str, str]]:
        """The options of each run of ncu."""
        lines = (self.folder / "ncu_calls.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    def kept(self) -> list[Path]:
        """Everything below the runs that could be taken for a run."""
        return sorted(self.runs.glob("*/[!.]*")) if self.runs.is_dir() else []

    def processes(self) -> list[str]:
        """Command lines of living processes that belong to this bench."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                line = (
                    (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                )
            except OSError:
                continue
            if entry.name.isdigit() and str(self.folder) in line:
                found.append(line)
        return found

    def gone(self, seconds: float = 300) -> bool:
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


def wait_for(file: Path) -> None:
    end = time.monotonic() + 600
    while not file.exists() and time.monotonic() < end:
        time.sleep(0.02)
    assert file.exists()


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
    (run,) = bench.kept()
    assert done.stdout.splitlines()[0].endswith(f"{run.name[-6:]}/toy.ncu-repz")
    assert ".partial" not in done.stdout.splitlines()[0]
    assert "Timeline  " in done.stdout
    manifest = verify(run)
    schema("run").validate(json.loads(encode(manifest)))
    assert manifest.launches == 1
    assert manifest.policy.clock_control == "none"
    assert set(manifest.files) == {
        "toy.ncu-repz", "timeline.sqlite", "analysis.json", "kernels.parquet", "check.json",
        "checklist.md", "report.html",
    }  # fmt: skip
    assert "lacking data" in (run / "checklist.md").read_text(encoding="utf-8")
    assert [stage.name for stage in manifest.stages] == [
        "prepare", "check", "nsys", "timeline", "ncu", "read", "compress",
    ]  # fmt: skip
    assert "flash_fwd_kernel" in done.stdout
    assert str(run) in done.stdout
    assert f"profkit checklist {run}\n" in done.stdout
    assert f"profkit analyze {run} --top 0" in done.stdout
    assert "cudnn is not supported here" in done.stdout
    for stage in ("check", "ncu", "nsys", "write"):
        assert f"s  {stage}" in done.stderr


def test_one_screen(bench: Bench) -> None:
    """13 launches of 12 kernels, of which the findings alone took 200 lines."""
    (bench.folder / "report.ncu-rep").write_bytes(plain_bytes("known"))
    bench = replace(bench, variables={**bench.variables, "COLUMNS": "100"})
    done = bench.profile(bench.target(), "--samples", "5")
    (run,) = bench.kept()
    lines = done.stdout.splitlines()
    assert len(lines) <= 40
    assert max(len(line) for line in lines if "/" not in line) <= 100
    assert "13 launches" in done.stdout
    assert re.search(r"^1\. \d.*x \[\d.*\d\]  \w", done.stdout, re.M)
    assert "action" in done.stdout
    assert re.search(rf"^Run\s+{run}$", done.stdout, re.M)
    for verb in (f"checklist {run}", f"next {run}", f"analyze {run} --top 0"):
        assert f"profkit {verb}" in done.stdout


def on_a_terminal(bench: Bench, *arguments: str | Path) -> str:
    """What a profile writes to a stderr that is a terminal."""
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        bench.command(*arguments),
        env=bench.environment(),
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    said = b""
    with contextlib.suppress(OSError):  # the other end is closed
        while read := os.read(ours, 1 << 12):
            said += read
    os.close(ours)
    assert process.wait(timeout=600) == 0, said
    return said.decode()


def test_progress_counts_kernels_of_those_that_the_timeline_saw(bench: Bench) -> None:
    target = bench.target()
    said = on_a_terminal(bench, target)
    assert re.search(r"s  ncu  kernel 1 of [1-9]\d* flash_fwd_kernel, 38 passes done", said)
    limited = on_a_terminal(bench, target, "--launch-count", "1")
    assert "kernel 1 of 1 flash_fwd_kernel" in limited
    unknown = on_a_terminal(bench, target, "--no-nsys")
    assert "kernel 1 flash_fwd_kernel" in unknown


def test_a_target_that_can_not_be_timed_costs_a_warning_not_the_run(bench: Bench) -> None:
    done = bench.profile(bench.target(), "--no-nsys", "--samples", "5")
    (run,) = bench.kept()
    assert "! no latencies: " in done.stdout
    assert "no latencies: the timing failed" in verify(run).warnings
    assert not (run / "latency.json").exists()


def test_ncu_always_gets_clock_and_cache_control(bench: Bench) -> None:
    bench.profile(bench.target(), "--variant", "flash", "--cache-control", "none")
    options, program, _ = bench.seen("ncu")
    assert options["--clock-control"] == "none"
    assert options["--cache-control"] == "none"
    assert options["--profile-from-start"] == "off"
    assert options["--set"] == "full"
    assert program[-2:] == ["--variant", "flash"]


def test_range_replay_omits_what_ncu_refuses_with_it(bench: Bench) -> None:
    bench.profile(bench.target(), "--replay-mode", "range")
    options, _, _ = bench.seen("ncu")
    assert options["--replay-mode"] == "range"
    assert not {"--import-source", "--profile-from-start"} & set(options)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("targets/norm.py --size 4", "norm"),
        ("python -u src/train.py --config other.py", "train"),
        ("/usr/bin/python3.12 train.py", "train"),
        ("torchrun --nproc-per-node 2 train.py", "train"),
        ("python -m package", "python"),
        ("./server bench.py", "server"),
    ],
)
def test_a_run_has_the_name_of_the_script(words: str, name: str) -> None:
    assert Plan(tuple(words.split())).name == name


def test_a_program_of_any_kind_is_profiled_from_its_start(bench: Bench) -> None:
    app = bench.folder / "app"
    app.write_text("#!/bin/sh\necho hello $1\n", encoding="utf-8")
    app.chmod(0o755)
    sections = bench.folder / "sections.txt"
    sections.write_text("SpeedOfLight\n# a comment\ndram__bytes.sum\n", encoding="utf-8")
    bench.profile(
        *("--kernel", "gemm", "--launch-skip", "2", "--launch-count", "5", "--nvtx", "step"),
        *("--set", sections, "--no-compress", "--", app, "--flag"),
    )
    options, program, _ = bench.seen("ncu")
    assert program == [str(app), "--flag"]
    assert "--profile-from-start" not in options
    assert options["--kernel-name"] == "regex:gemm"
    assert options["--nvtx-include"] == "step/"
    assert options["--section"] == "SpeedOfLight"
    assert options["--metrics"] == "dram__bytes.sum"
    (run,) = bench.kept()
    assert set(verify(run).files) == {
        "app.ncu-rep", "timeline.sqlite", "analysis.json", "kernels.parquet",
        "checklist.md", "report.html",
    }  # fmt: skip
    assert len(profkit.load(run / "app.ncu-rep")) == 1


def test_a_secret_of_the_environment_reaches_no_file_of_the_run(bench: Bench) -> None:
    planted = {name: f"{SECRET}-{name}" for name in PLANTED}
    planted |= {name: value.replace("hunter2", SECRET) for name, value in ADDRESSES.items()}
    bench = replace(bench, variables=planted | {"KERNEL": "v2"})
    done = bench.profile(bench.target(), "--keep-env", "CUDA_SECRET_THING")
    assert SECRET not in done.stdout + done.stderr
    for tool in ("ncu", "nsys_profile", "nsys_export"):
        environment = bench.seen(tool)[-1]
        assert not (planted.keys() | {"HF_TOKEN"}) & environment.keys()
        assert environment["KERNEL"] == "v2"
        assert environment["CUDA_SECRET_THING"] == environment["INNOCENT_NAME"] == SECRET
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
        ("library", 4, ("access to the GPU's counters",)),
        ("full", 4, ("disk is full", "--out")),
        ("metric", 2, ("section or metric", "--query-metrics")),
        ("range", 4, ("cuKernelSetAttribute", "--replay-mode application")),
        ("nothing", 6, ("profiled no kernel", "--kernel")),
    ],
)
def test_failures_of_ncu_are_reported_with_a_remedy(
    bench: Bench, mode: str, status: int, words: tuple[str, ...]
) -> None:
    plan(bench.folder, mode)
    done = bench.profile(bench.target(), "--no-nsys", status=status)
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("profkit:")]
    for word in words:
        assert word in line
    assert bench.kept() == []


@pytest.mark.parametrize(
    ("behavior", "words"),
    [
        ("wrong", ("wrong results from flash",)),
        ("broken", ("ended with status 1", "the target's own words")),
        ("crashes", ("status 1", "a launch went wrong")),
    ],
)
def test_a_target_that_fails_ends_the_profile(
    bench: Bench, behavior: str, words: tuple[str, ...]
) -> None:
    done = bench.profile(bench.target(behavior), "--no-nsys", status=6)
    for word in words:
        assert word in done.stderr
    assert bench.kept() == []


def test_a_time_limit_ends_the_whole_of_it(bench: Bench) -> None:
    done = bench.profile(bench.target("slow"), "--timeout", "1", status=6)
    assert "--timeout" in done.stderr
    assert bench.gone()
    assert bench.kept() == []


def test_a_failing_nsys_costs_a_warning_not_the_run(bench: Bench) -> None:
    plan(bench.folder, nsys="fails")
    done = bench.profile(bench.target())
    assert "no timeline" in done.stdout
    assert "told to fail" in done.stdout
    (run,) = bench.kept()
    assert "timeline.sqlite" not in verify(run).files


def test_an_end_at_any_moment_leaves_no_process_and_no_run(bench: Bench) -> None:
    plan(bench.folder, nap=0.2)
    target = bench.target()
    started = time.monotonic()
    bench.profile(target)
    whole = time.monotonic() - started
    (earlier,) = bench.kept()
    starts = {signal.SIGKILL: 3, signal.SIGINT: 6, signal.SIGTERM: 9}
    ends = [(number, point) for number, start in starts.items() for point in moments(10, start)]
    for number, point in ends:
        before = bench.kept()
        process = bench.start(target)
        time.sleep(whole * point / 11)
        process.send_signal(number)
        status = process.wait(timeout=600)
        assert bench.gone(), bench.processes()
        new = [run for run in bench.kept() if run not in before]
        assert len(new) <= 1
        for folder in new:
            verify(folder)
        if number is not signal.SIGKILL and not new:
            assert status in {130, -number}
            assert not list(bench.runs.glob("*/.partial-*"))
    verify(earlier)
    bench.profile(target)
    assert not list(bench.runs.glob("*/.partial-*"))


def test_one_profile_a_gpu_at_a_time(bench: Bench) -> None:
    plan(bench.folder, nap=600)
    target = bench.target()
    first = bench.start(target, "--no-nsys")
    try:
        wait_for(bench.folder / "ncu_seen.json")
        plan(bench.folder)
        second = bench.profile(target, status=4)
        assert f"by process {first.pid}" in second.stderr
        bench.profile(target, "--gpu", "1", "--no-nsys")
    finally:
        first.kill()
        first.wait()
    assert bench.gone()


def test_verbs_take_a_run_and_refuse_a_changed_one(bench: Bench) -> None:
    bench.profile(bench.target(), "--no-nsys", "--no-compress")
    (run,) = bench.kept()
    for verb in ("analyze", "metrics"):
        shown = bench.run(verb, run)
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
        (("--set", "everything", "--", "/bin/true"), "neither a set nor a file"),
        (("--", str(bench.folder / "report.ncu-rep")), "not an executable program; give a target"),
        (("--", str(bench.target())), "not an executable program; use `-- python"),
        (("--timeout", "0", "--", "/bin/true"), "--timeout"),
        (("--timeout", "inf", "--", "/bin/true"), "--timeout"),
        (("--timeout", "1e12", "--", "/bin/true"), "--timeout"),
        (("--variant", "x", "--", "/bin/true"), "--variant is for targets"),
    ):
        done = bench.profile(*arguments, status=2)
        assert words in done.stderr
        assert "prepare" not in done.stderr
        assert "Traceback" not in done.stderr
    assert bench.kept() == []


def test_what_is_not_there_can_not_be_profiled(bench: Bench) -> None:
    for arguments, words in (
        ((bench.folder / "none.py",), "none.py: "),
        (("--", str(bench.folder / "no_such_program")), "no such program"),
    ):
        done = bench.profile(*arguments, status=5)
        assert done.stdout == ""
        assert words in done.stderr
    assert bench.kept() == []


def test_without_ncu_the_doctor_is_named(bench: Bench) -> None:
    (bench.folder / "ncu").unlink()
    done = bench.profile(bench.target(), status=4)
    assert "ncu was not found" in done.stderr
    assert "profkit doctor" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT])
def test_a_lost_terminal_ends_it_as_an_interrupt_does(bench: Bench, number: signal.Signals) -> None:
    plan(bench.folder, nap=300)
    process = bench.start(bench.target(), "--no-nsys")
    wait_for(bench.folder / "ncu_seen.json")
    process.send_signal(number)
    assert process.wait(timeout=600) == 130
    assert bench.gone()
    assert not list(bench.runs.rglob(".partial-*"))


def test_nohup_is_heeded(bench: Bench) -> None:
    plan(bench.folder, nap=1)
    process = bench.start(
        bench.target(), "--no-nsys", before=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
    )
    wait_for(bench.folder / "ncu_seen.json")
    process.send_signal(signal.SIGHUP)
    assert process.wait(timeout=600) == 0
    assert len(bench.kept()) == 1


def test_a_kill_leaves_nothing_private_for_long(bench: Bench) -> None:
    plan(bench.folder, export_nap=300)
    process = bench.start(bench.target())
    wait_for(bench.folder / "nsys_export_seen.json")
    process.kill()
    process.wait()
    assert bench.gone()
    assert not list((bench.folder / "tmp").rglob("*.nsys-rep"))
    plan(bench.folder)
    bench.profile(bench.target())
    assert not list(bench.folder.rglob("*.nsys-rep"))
    assert not list(bench.runs.rglob(".*"))


def test_what_a_program_prints_is_not_taken_for_an_error_of_ncus(bench: Bench) -> None:
    said = "No section. No space left on device: LibraryNotLoaded. No kernels were profiled"
    bench.profile("--no-nsys", "--", bench.app(f"printf '{said}'"))
    failed = bench.profile("--no-nsys", "--", bench.app(f"echo '{said}'; exit 9"), status=6)
    assert f"the profiled program ended with status 9: {said}" in failed.stderr
    secret = bench.profile("--no-nsys", "--", bench.app("echo 'unset: HF_TOKEN'; exit 1"), status=6)
    assert "pass it the variable: --keep-env HF_TOKEN" in secret.stderr


def test_the_manifest_holds_no_path_and_no_word_of_a_tool(bench: Bench) -> None:
    sections = bench.folder / "mine.txt"
    sections.write_text("SpeedOfLight\n")
    app = bench.app(f"echo {SECRET} {bench.folder}; [ $NSYS ] && exit 1; exit 0")
    plan(bench.folder, nsys="fails")
    done = bench.with_gpus().profile("--set", sections, "--keep-env", "NOT_SET_HERE", "--", app)
    assert "told to fail" in done.stdout
    assert "! --keep-env NOT_SET_HERE: it is not set" in done.stdout
    assert "424242" in done.stdout
    manifest = bench.manifest()
    assert manifest.policy.set == "mine.txt"
    assert len(manifest.policy.set_sha256 or "") == 64
    assert list(manifest.warnings) == [
        "GPU 0 processes: they share clocks, caches and memory with the profiled program",
        "a variable of --keep-env is not set",
        "no timeline: nsys profile ended with status 1",
    ]
    text = encode(manifest)
    for private in (str(bench.folder), "424242", SECRET, "NOT_SET_HERE"):
        assert private not in text


def test_a_timeline_that_can_not_be_read_is_not_kept(bench: Bench) -> None:
    plan(bench.folder, nsys="garbles")
    done = bench.profile(bench.target())
    assert "! no timeline:" in done.stdout
    manifest = bench.manifest()
    assert "no timeline: it can't be read" in manifest.warnings
    assert "timeline.sqlite" not in manifest.files
    assert manifest.versions["nsys"] is None


@pytest.mark.parametrize(
    ("arguments", "visible", "uuid"),
    [((), "1", "GPU-bbbb-1"), (("--gpu", "0"), "1", "GPU-aaaa-0")],
)
def test_the_gpu_on_record_is_the_one_that_the_program_sees(
    bench: Bench, arguments: tuple[str, ...], visible: str, uuid: str
) -> None:
    bench = bench.with_gpus(CUDA_VISIBLE_DEVICES=visible)
    done = bench.profile(*arguments, "--no-nsys", bench.target("elsewhere"))
    assert "the target ran on another GPU" in done.stdout
    assert (bench.manifest().gpu or DriverGpu()).uuid == uuid
    assert bench.seen("ncu")[-1]["CUDA_VISIBLE_DEVICES"] == uuid
    assert (bench.folder / "tmp" / f"profkit-gpu-{uuid}.lock").exists()


def test_any_program_has_a_fingerprint(bench: Bench) -> None:
    app = bench.app("true")
    bench.with_gpus().profile("--no-nsys", "--", app)
    manifest = bench.manifest()
    assert (manifest.fingerprint.gpu or Device()).uuid == "GPU-aaaa-0"
    assert manifest.fingerprint.versions == {"ncu": "2025.3.1"}
    assert len(manifest.fingerprint_sha256 or "") == 64


def test_a_target_may_change_its_folder(bench: Bench) -> None:
    done = bench.profile("--out", "my runs", bench.target("wanders"), folder=bench.folder)
    (run,) = (bench.folder / "my runs").glob("toy/[!.]*")
    assert f"profkit analyze 'my runs/toy/{run.name}' --top 0" in done.stdout
    assert f"profkit checklist 'my runs/toy/{run.name}'" in done.stdout
    assert set(verify(run).files) > {"toy.ncu-repz", "timeline.sqlite", "check.json"}


def test_a_script_after_the_dashes_is_a_program(bench: Bench) -> None:
    app = bench.app("echo hello", "plain.py")
    bench.profile("--no-nsys", "--", app, "--flag")
    options, program, _ = bench.seen("ncu")
    assert program == [str(app), "--flag"]
    assert "--profile-from-start" not in options
    assert "check.json" not in bench.manifest().files


@pytest.mark.parametrize(
    "script", ["print('hello')", "import argparse as a; a.ArgumentParser().parse_args()"]
)
def test_the_error_for_a_script_without_a_target_says_how_to_profile_it(
    bench: Bench, script: str
) -> None:
    plain = bench.folder / "plain script.py"
    plain.write_text(script)
    done = bench.profile(plain, status=6)
    assert f"is not a profkit target; profile it with `-- python '{plain}'`" in done.stderr


@pytest.mark.parametrize("behavior", ["empty", "garbled"])
def test_a_check_that_reports_nonsense_has_failed(bench: Bench, behavior: str) -> None:
    done = bench.profile(bench.target(behavior), status=6)
    assert "the report of its check can't be read (" in done.stderr
    assert "; run it alone: python" in done.stderr
    assert bench.kept() == []


def test_scout_asks_for_few_metrics_and_lean_for_samples_by_instruction(bench: Bench) -> None:
    for arguments in (("scout",), ("scout", "--flop"), ("lean", "--sampling")):
        bench.profile("--no-nsys", "--set", *arguments, bench.target())
    scout, flop, lean = bench.calls()
    metrics = [set(call["--metrics"].split(",")) for call in (scout, flop, lean)]
    assert "gpu__time_duration.sum" in metrics[0]
    assert metrics[0] < metrics[1]
    assert metrics[0] < metrics[2]
    assert scout["--section"] == "Occupancy"  # the last of them
    assert lean["--section"] == "PmSampling_WarpStates"
    assert not {"--set"} & {*scout, *flop, *lean}


def test_what_a_gpu_lacks_is_not_asked_of_it(bench: Bench) -> None:
    wgmma = "sm__ops_path_tensor_op_hgmma_src_fp16_sparsity_off.sum"
    for capability in ("9.0", "12.0"):
        gpus = bench.with_gpus(STAND_IN_CAPABILITY=capability)
        gpus.profile("--no-nsys", "--set", "lean", bench.target())
    hopper, blackwell = (call["--metrics"].split(",") for call in bench.calls())
    assert wgmma in hopper
    assert wgmma not in blackwell
    assert "dram__bytes_read.sum" in hopper
    assert "dram__bytes_op_read.sum" in blackwell


def test_auto_records_all_launches_and_those_that_take_the_time_in_detail(bench: Bench) -> None:
    done = bench.profile("--set", "auto", bench.target())
    first, second = bench.calls()
    assert "--kernel-name" not in first
    assert second["--kernel-name"].startswith("regex:^(void pytorch_flash::flash_fwd_kernel<")
    assert "\\(pytorch_flash::Flash_fwd_params\\)" in second["--kernel-name"]
    assert second["--launch-count"] == "1"
    assert len(second["--metrics"]) > 2 * len(first["--metrics"])
    assert (
        "1 of 1 kernel, 100.0% of the GPU time; all launches are in scout.ncu-repz" in done.stdout
    )
    (run,) = bench.kept()
    manifest = verify(run)
    assert {"toy.ncu-repz", "scout.ncu-repz"} < set(manifest.files)
    assert manifest.policy.set == "auto"
    assert [stage.name for stage in manifest.stages][4:9] == [
        "scout", "choose", "compress", "ncu", "read",
    ]  # fmt: skip
    assert profkit.load(run).path.name == "toy.ncu-repz"


def test_auto_with_the_full_set(bench: Bench) -> None:
    bench.profile("--set", "auto", "--then", "full", bench.target())
    assert [call.get("--set") for call in bench.calls()] == [None, "full"]
    done = bench.profile("--set", "auto", "--launch-skip", "3", bench.target(), status=2)
    assert "--launch-skip is not for --set auto" in done.stderr


def test_a_profile_that_would_take_too_long_does_not_start(bench: Bench) -> None:
    done = bench.profile("--max-time", "10", bench.target(), status=2)
    assert re.search(
        r"too long: \d+ launch(es)? x 38 passes, about \d+ s \(limit: 10 s\)", done.stderr
    )
    for words in ("--kernel ", "% of the time)", "--launch-count ", "--set auto", "--max-time"):
        assert words in done.stderr
    assert not (bench.folder / "ncu_calls.jsonl").exists()
    assert bench.kept() == []
    bench.profile("--max-time", "10", "--set", "scout", bench.target())
    bench.profile("--max-time", "0", bench.target())


def test_an_ncu_that_compresses_by_itself_does(bench: Bench) -> None:
    plan(bench.folder, newer=True)
    packed = ZstdCompressor().compress((bench.folder / "report.ncu-rep").read_bytes())
    (bench.folder / "report.ncu-repz").write_bytes(packed)
    bench.profile(bench.target())
    (call,) = bench.calls()
    assert call["--export"].endswith("toy.ncu-repz")
    (run,) = bench.kept()
    assert (run / "toy.ncu-repz").read_bytes() == packed
    assert "compress" not in [stage.name for stage in verify(run).stages]


def test_a_graph_as_a_whole_or_by_node(bench: Bench) -> None:
    target = bench.target()
    for unit in ("node", "graph"):
        bench.profile("--set", "lean", "--graph-profiling", unit, target)
    node, graph = bench.calls()
    assert "--graph-profiling" not in node  # ncu's default
    assert graph["--graph-profiling"] == "graph"
    assert node["--section"] == "SourceCounters"
    assert graph["--section"] == "WorkloadDistribution"
    assert "--cuda-graph-trace=node" in bench.seen("nsys_profile")[0]


def test_where_counters_are_refused_the_run_is_of_what_needs_none(bench: Bench) -> None:
    plan(bench.folder, "permission")
    done = bench.profile(bench.target(), "--keep-env", "HF_TOKEN")
    printed = " ".join(done.stdout.split())
    assert "! no permission to read GPU performance counters: analyzed without them" in printed
    assert "without counters: NVIDIA H200" in printed
    (run,) = bench.kept()
    assert {"timeline.sqlite", "without_counters.json"} <= verify(run).files.keys()
    assert not list(run.glob("*.ncu-rep*"))
    again = bench.run("analyze", run, "--without-counters", "--format", "json")
    saved = json.loads((run / "without_counters.json").read_text())
    assert json.loads(again.stdout) | {"path": ""} == saved | {"path": ""}
    assert {entry["count"] for entry in saved["kernels"]}


def test_required_counters_that_are_refused_fail(bench: Bench) -> None:
    plan(bench.folder, "permission")
    done = bench.profile(bench.target(), "--require-counters", status=4)
    assert "no permission to read GPU performance counters" in done.stderr
    assert bench.kept() == []
