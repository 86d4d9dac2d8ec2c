"""`profkit time`, `compare` and `calibrate`: targets on the CPU, by a clock that goes on by what
their calls say they take, and saved samples."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from profkit.recording.recording import Plan, timing_of
from profkit.timing.floor import Floor, keep_floor
from profkit.timing.latency import analyze_latency
from profkit.timing.latency_file import read_latencies
from profkit.timing.latency_format import LatencyFile
from profkit.timing.latency_view import in_words
from profkit.timing.measurement import Subject, TimingPlan, time_targets
from profkit.timing.results import DEFAULT
from profkit.timing.stopwatch import Settings
from tests.analysis.test_views import schema
from tests.conftest import L4, ROOT, Cli, needs_l4

pytest.importorskip("torch", reason="targets need torch")

TARGET = """
import sys
from profkit import Target, Unsupported, Variant, Work, normal_inputs
from tests.clock import install

passes = install()

def waits(seconds):
    def run(inputs):
        passes(seconds)
        print("a target may print")
        return inputs["a"] + 1
    return run

def unsupported(inputs):
    raise Unsupported("not on this machine")

def raises(inputs):
    raise RuntimeError("the variant's own words")

def dies(inputs):
    sys.stderr.write("its last words\\n"); sys.stderr.flush()
    import os; os._exit(3)

target = Target(
    name="toy", shapes={"n": 64}, dtype="float32",
    work=Work.elementwise(64, reads=1, writes=1, flop_per_element=1, element_bytes=4),
    inputs=lambda device, seed: normal_inputs(device, seed, "float32", a=(64,)),
    reference=lambda inputs: inputs["a"] + 1,
    variants=[
        Variant("quick", waits(SECONDS)), Variant("slow", waits(2 * SECONDS)),
        Variant("wrong", lambda inputs: inputs["a"] + 2), Variant("unsupported", unsupported),
        Variant("raises", raises), Variant("dies", dies),
    ],
)
if __name__ == "__main__":
    target.main()
"""
IN_TURNS = {"a": (0, 3, 4, 7, 8, 11, 12, 15), "b": (1, 2, 5, 6, 9, 10, 13, 14)}
QUICK = ("--warmup-ms", "1", "--device", "cpu")


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    file = tmp_path / "toy.py"
    file.write_text(TARGET.replace("SECONDS", "1e-4"), encoding="utf-8")
    return file


def run(
    folder: Path,
    *arguments: str | Path,
    environment: Mapping[str, str] | None = None,
    status: int = 0,
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "profkit", *map(str, arguments)],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "XDG_STATE_HOME": str(folder / "state"),
            "PROFKIT_LOCK_DIR": str(folder),
            **(environment or {}),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == status, (done.stdout, done.stderr)
    return done


def validated(text: str) -> Any:
    document = json.loads(text)
    verb = document["schema"].removeprefix("profkit.").partition("/")[0]
    schema(verb).validate(document)
    return document


def test_a_slow_variant_regresses_and_the_gate_fails(toy: Path) -> None:
    kept, badge = toy.with_name("kept.json"), toy.with_name("badge.svg")
    done = run(
        toy.parent, "time", toy, "--compare", "quick,slow", *QUICK, "--samples", "40",
        "--fail-on", "regression",
        "--out", kept, "--badge", badge, "--explain", status=1,
    )  # fmt: skip
    assert {"40", "240"} <= set(done.stderr.splitlines()[0].split())
    assert re.search(r"µs.* → .*µs.*x slower \[.*\] over timing blocks  REGRESSED", done.stdout)
    assert re.search(r"^margin +1\.0%", done.stdout, re.MULTILINE)
    document = validated(kept.read_text("utf-8"))
    assert [series["label"] for series in document["series"]] == ["quick", "slow"]
    (comparison,) = document["comparisons"]
    assert comparison["verdict"] == "regressed"
    assert comparison["speedup"] < 0.8
    assert comparison["low"] <= comparison["speedup"] <= comparison["high"]
    assert all(len(series["blocks"]) == 8 for series in document["series"])
    assert all(len(block["samples"]) == 30 for block in document["series"][0]["blocks"])
    turns = sorted(
        (block["turn"], series["label"])
        for series in document["series"]
        for block in series["blocks"]
    )
    assert [label for _, label in turns][:4] == ["quick", "slow", "slow", "quick"]
    assert "<svg" in badge.read_text("utf-8")
    assert "REGRESSED" in badge.read_text("utf-8")
    spans = document["spans"]
    assert sum(spans.values()) == pytest.approx(document["seconds"], rel=0.25)
    assert str(toy.parent) not in kept.read_text("utf-8")

    again = run(toy.parent, "time", "--from", kept, "--compare", "quick,slow")
    kept.rename(toy.with_name("latency.json"))
    in_a_folder = run(toy.parent, "time", "--from", toy.parent)
    assert "quick" in in_a_folder.stdout
    assert "REGRESSED" in again.stdout


def test_statistics_are_those_of_the_samples_kept(toy: Path) -> None:
    done = run(
        toy.parent, "time", f"{toy}:quick", *QUICK, "--samples", "50", "--format", "json"
    )  # fmt: skip
    (series,) = validated(done.stdout)["series"]
    samples = np.array([value for block in series["blocks"] for value in block["samples"]])
    assert samples.size >= 50
    assert series["statistics"]["n"] == samples.size
    assert series["statistics"]["median"] == pytest.approx(float(np.median(samples)))
    assert series["statistics"]["std"] == pytest.approx(float(samples.std(ddof=1)))
    assert samples.min() >= 1e-4
    assert series["bandwidth"]["value"] == pytest.approx(2 * 64 * 4 / np.median(samples))
    assert "50 samples" in series["sentence"] or "samples" in series["sentence"]
    assert "seed 42" in series["sentence"]


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("toy.py:nope",), 2, "no variant 'nope'; use quick, slow"),
        (("toy.py:wrong",), 6, "wrong results from wrong"),
        (("toy.py:raises",), 6, "the variant's own words"),
        (("toy.py:dies",), 6, "its last words"),
        (("toy.py:unsupported",), 4, "not on this machine"),
        (("none.py",), 5, "none.py: "),
        (("toy.txt",), 5, "not a target script"),
        ((), 2, "nothing to time"),
        (("toy.py", "--compare", "quick"), 2, "--compare 'quick'"),
        (("toy.py", "--compare", "quick,quick,slow"), 2, "--compare 'quick,quick,slow'"),
        (("toy.py", "--compare", "quick,slow", "--blocks", "1"), 2, "raise --blocks"),
        (("toy.py:quick", "--badge", "x.png"), 2, "x.png: "),
        (("toy.py", "--compare", "quick,unsupported"), 4, "unsupported can't run here"),
        (("toy.py:quick", "--margin", "150%"), 2, "--margin '150%'"),
        (("toy.py:quick", "--fail-on", "everything"), 2, "--fail-on 'everything'"),
        (("toy.py:quick", "--fail-on", " ,"), 2, "; use regression, inconclusive"),
        (("toy.py", "--against", "HEAD"), 2, "compares one variant"),
        (("toy.py:quick", "--against", "HEAD"), 2, "is in no git repository"),
        (("--compare", "toy.py:quick"), 2, "--compare with a target"),
        (("toy.py", "other.py"), 2, "several targets need --compare"),
    ],
)
def test_failures_are_one_line(
    toy: Path, arguments: tuple[str, ...], status: int, words: str
) -> None:
    done = run(toy.parent, "time", *arguments, *QUICK, status=status)
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("profkit:")]
    assert words in line
    assert "Traceback" not in done.stderr


def test_without_a_gpu_the_way_out_is_named(toy: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    done = run(toy.parent, "time", toy, status=4)
    remedy = "see `profkit doctor`; profkit time has --device cpu"
    assert f"torch sees no CUDA device; {remedy}" in done.stderr


def test_without_torch_the_remedy_is_named(toy: Path) -> None:
    hidden = toy.parent / "hidden"
    hidden.mkdir()
    (hidden / "torch.py").write_text("raise ImportError('hidden')", encoding="utf-8")
    done = run(toy.parent, "time", toy, environment={"PYTHONPATH": f"{ROOT}:{hidden}"}, status=4)
    assert "torch is not installed; pip install torch, or '.[gpu]'" in done.stderr
    done = run(
        toy.parent, "time", f"{toy}:nope", environment={"PYTHONPATH": f"{ROOT}:{hidden}"}, status=2
    )
    assert "no variant 'nope'" in done.stderr


def test_a_run_s_latencies_are_read_unless_they_were_changed(
    tmp_path: Path, profkit_cli: Cli
) -> None:
    recorded = ROOT / "reports" / "h200" / "sdpa_s512"
    assert "cudnn" in profkit_cli("time", "--from", recorded).stdout
    copied = shutil.copytree(recorded, tmp_path / "run")
    (file,) = copied.glob("*/latency.json")
    file.write_text(file.read_text("utf-8") + " ", encoding="utf-8")
    refused = profkit_cli("time", "--from", copied, status=5)
    assert "SHA-256 differs" in refused.stderr


def test_two_targets_are_compared_in_interleaved_processes(toy: Path) -> None:
    other = toy.with_name("other.py")
    other.write_text(TARGET.replace("SECONDS", "3e-4"), encoding="utf-8")
    sides = ("--compare", "toy.py:quick", "other.py:quick")
    done = run(toy.parent, "time", *sides, *QUICK, "--format", "json")
    document = validated(done.stdout)
    assert [series["label"] for series in document["series"]] == ["toy:quick", "other:quick"]
    assert document["comparisons"][0]["verdict"] == "regressed"


def test_a_target_may_read_stdin_and_take_arguments(tmp_path: Path) -> None:
    file = tmp_path / "reads.py"
    text = TARGET.replace("SECONDS", "1e-4")
    reads = "import sys\nassert sys.stdin.read() == ''\nassert sys.argv[1:] == ['--rows', 'x.py']"
    file.write_text(f"{reads}\n{text}", encoding="utf-8")
    run(tmp_path, "time", "reads.py:quick", *QUICK, "--", "--rows", "x.py")


def test_what_settles_a_doubt_keeps_the_question(toy: Path) -> None:
    """Five blocks are too few for a verdict whatever they say."""
    toy.write_text(f"import sys\nwords = sys.argv[1:]\n{toy.read_text('utf-8')}", encoding="utf-8")
    done = run(
        toy.parent, "time", "toy.py", "--compare", "quick,slow", *QUICK, "--margin", "5%",
        "--blocks", "5", "--samples", "200", "--out", "kept.json", "--", "--samples", "7", status=3,
    )  # fmt: skip
    said = " ".join(done.stdout.split())
    assert "too few blocks" in said
    found = re.search(r"(profkit time .*? -- --samples 7)", said)
    assert found, said
    command = found[1]
    assert "--margin 5%" in command
    assert "--out" not in command
    asked = re.search(r"--blocks (\d+)", command)
    assert asked, command
    blocks = int(asked[1])
    assert blocks >= 6
    assert f"--samples {40 * blocks} -- " in command


def git(folder: Path, *words: str) -> list[str]:
    """A command of git's, and the lines that it prints."""
    command = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", *words]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def test_this_tree_against_a_commit_of_it(toy: Path) -> None:
    folder = toy.parent
    git(folder, "init", "-q")
    git(folder, "add", "toy.py")
    git(folder, "commit", "-qm", "one")
    toy.write_text(TARGET.replace("SECONDS", "0.5e-4"), encoding="utf-8")
    done = run(
        folder, "time", "toy.py:quick", "--against", "HEAD", *QUICK, "--fail-on", "regression"
    )  # fmt: skip
    assert re.search(r"[0-9a-f]{9}:quick → this tree:quick", done.stdout)
    assert "IMPROVED" in done.stdout
    assert len(git(folder, "worktree", "list")) == 1
    process = subprocess.Popen(["true"])
    process.wait()
    abandoned = Path(tempfile.gettempdir()) / f"profkit-worktree-{process.pid}-x" / "repo"
    git(folder, "worktree", "add", "--detach", str(abandoned))
    wrong = run(folder, "time", "toy.py:quick", "--against", "v99", *QUICK, status=2)
    run(folder, "time", "toy.py:quick", "--against", "HEAD", *QUICK)
    assert not abandoned.exists()
    assert len(git(folder, "worktree", "list")) == 1
    assert "'v99' names no commit" in wrong.stderr


def test_the_commit_s_side_runs_the_commit_s_packages_and_files(tmp_path: Path) -> None:
    (tmp_path / "repo" / "sub").mkdir(parents=True)
    repo = tmp_path / "repo"
    (repo / "waiting.py").write_text("SECONDS = 3e-4\n", encoding="utf-8")
    (repo / "sub" / "data.txt").write_text("there", encoding="utf-8")
    text = TARGET.replace("SECONDS", "waiting.SECONDS")
    (repo / "sub" / "t.py").write_text(
        f"import waiting\nassert open('data.txt').read() == 'there'\n{text}", encoding="utf-8"
    )
    git(repo, "init", "-q")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "one")
    (repo / "waiting.py").write_text("SECONDS = 2e-4\n", encoding="utf-8")
    path = f"{ROOT}:{repo}"
    done = run(
        repo / "sub", "time", "t.py:quick", "--against", "HEAD", *QUICK, "--format", "json",
        environment={"PYTHONPATH": path},
    )  # fmt: skip
    (comparison,) = json.loads(done.stdout)["comparisons"]
    assert comparison["verdict"] == "improved"
    assert comparison["speedup"] > 1.2


def test_a_commit_s_side_that_runs_the_working_tree_s_code_is_refused(tmp_path: Path) -> None:
    (tmp_path / "waiting.py").write_text("SECONDS = 1e-4\n", encoding="utf-8")
    text = TARGET.replace("SECONDS", "waiting.SECONDS")
    (tmp_path / "t.py").write_text(
        f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nimport waiting\n{text}",
        encoding="utf-8",
    )
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    done = run(tmp_path, "time", "t.py:quick", "--against", "HEAD", *QUICK, status=4)
    assert "the commit's side imported waiting from the working tree" in done.stderr


def test_an_empty_file_holds_no_samples_whatever_the_unit(tmp_path: Path, profkit_cli: Cli) -> None:
    file = tmp_path / "empty.json"
    file.write_text("\n", encoding="utf-8")
    refused = profkit_cli("time", "--from", file, status=5)
    assert refused.stderr.startswith(f"profkit: {file}: ")


def test_a_bare_list_needs_its_unit(tmp_path: Path) -> None:
    file = tmp_path / "list.json"
    file.write_text(json.dumps([60.4, 61.4, 60.2, 60.9, 61.0, 60.7] * 20), encoding="utf-8")
    unknown = run(tmp_path, "time", "--from", file, status=2)
    assert "; add --unit" in unknown.stderr
    done = run(tmp_path, "time", "--from", file, "--unit", "us", "--format", "json")
    assert validated(done.stdout)["series"][0]["statistics"]["median"] == pytest.approx(60.8e-6)
    lines = tmp_path / "lines.txt"
    lines.write_text("1.5\n1.6\n1.7\n", encoding="utf-8")
    assert "1.600 ms" in run(tmp_path, "time", "--from", lines, "--unit", "ms").stdout


@pytest.mark.parametrize(
    "text", ["", "[]", "[1, -2]", "[1, null]", '{"a": 1}', "[1, NaN]", '["x"]', "hello"]
)
def test_files_that_hold_no_latencies(tmp_path: Path, text: str) -> None:
    file = tmp_path / "bad.json"
    file.write_text(text, encoding="utf-8")
    done = run(tmp_path, "time", "--from", file, "--unit", "ms", status=5)
    assert done.stderr.startswith("profkit: ")
    assert len(done.stderr.splitlines()) == 1


def saved(folder: Path, name: str, factor: float, **more: Any) -> Path:
    """A saved timing, as `time --out` writes it, of a steady series."""
    rng = np.random.default_rng(int(1000 * factor))
    samples = 5e-5 * factor * (1 + 0.004 * rng.standard_normal(200))
    row: dict[str, Any] = {
        "label": "custom", "timer": "events", "cache": "cold",
        "target": {"name": "t", "shapes": {"n": 1}, "dtype": "float16", "work": None},
        "gpu": {"name": "NVIDIA H200", "uuid": "GPU-1", "compute_capability": "9.0",
                "multiprocessors": 132, "memory_bytes": 150_109_880_320},
        "blocks": [{"turn": 0, "seconds": None, "gpu": None, "samples": samples.tolist()}],
    } | more  # fmt: skip
    file = folder / name
    file.write_text(json.dumps({"schema": "profkit.time/1", "series": [row]}), encoding="utf-8")
    return file


def test_two_saved_runs_allow_no_verdict_without_a_floor(tmp_path: Path) -> None:
    a, b = saved(tmp_path, "a.json", 1.0), saved(tmp_path, "b.json", 0.9)
    done = run(tmp_path, "compare", a, b, status=3)
    assert "1.111x faster" in done.stdout
    assert "INCONCLUSIVE" in done.stdout
    assert "profkit calibrate" in done.stdout
    known = run(tmp_path, "compare", a, b, "--floor", "1%", "--format", "json")
    (pair,) = validated(known.stdout)["pairs"]
    assert pair["verdict"] == "improved"
    assert pair["margin"]["value"] == pytest.approx(0.01)
    too_close = run(tmp_path, "compare", a, b, "--floor", "15%")
    assert "SAME" in too_close.stdout


def test_runs_measured_differently_are_incomparable(tmp_path: Path) -> None:
    a = saved(tmp_path, "a.json", 1.0)
    b = saved(tmp_path, "b.json", 0.9, cache="warm")
    done = run(tmp_path, "compare", a, b, "--floor", "1%", status=3)
    assert "cache: cold vs warm" in done.stdout
    assert "INCOMPARABLE" in done.stdout


def throttled(
    folder: Path,
    reason: str,
    clocks: tuple[float, float] = (1.98e9, 1.98e9),
    first: float | None = None,
    *,
    counted: tuple[float | None, float | None] = (None, None),
    turns: Mapping[str, Sequence[int]] = IN_TURNS,
) -> Path:
    """Two series on a GPU that was throttled throughout, for no reason where it is "".

    `clocks` is what the driver told, `first` its first word of both; `counted` what the SMs did.
    """
    rng = np.random.default_rng(3)
    series = []
    for label, clock, sm_clock in zip(("a", "b"), clocks, counted, strict=True):
        gpu = {"power": 300.0, "temperature": 90.0, "throttled_by": [reason] if reason else []}
        blocks = [
            {
                "turn": turn, "seconds": None,
                "gpu": gpu | {"sm_clock": clock if at or first is None else first},
                "sm_clock": sm_clock,
                "samples": (5e-5 * (1 + 0.002 * rng.standard_normal(30))).tolist(),
            }
            for at, turn in enumerate(turns[label])
        ]  # fmt: skip
        series.append({"label": label, "timer": "events", "cache": "cold", "blocks": blocks})
    file = folder / "throttled.json"
    file.write_text(json.dumps({"schema": "profkit.time/1", "series": series}), encoding="utf-8")
    return file


def steady(label: str, turns: Sequence[int], median: float, **more: Any) -> dict[str, Any]:
    """A steady series of `profkit.time/1`, 30 samples a block."""
    rng = np.random.default_rng(len(label) + sum(turns))
    blocks = [
        {"turn": turn, "samples": (median * (1 + 2e-3 * rng.standard_normal(30))).tolist()}
        for turn in turns
    ]
    return {"label": label, "timer": "events", "cache": "cold", "blocks": blocks} | more


def written(
    folder: Path, rows: Sequence[dict[str, Any]], name: str = "s.json", **more: Any
) -> Path:
    file = folder / name
    told = {"schema": "profkit.time/1", "series": rows} | more
    file.write_text(json.dumps(told), encoding="utf-8")
    return file


@pytest.fixture(autouse=True)
def _no_floors_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.mark.parametrize(
    ("first", "second", "in_turns"),
    [
        (range(8), range(8, 16), False),
        (range(0, 16, 2), range(1, 16, 2), True),
        ((0, 3, 4, 7, 8, 11, 12, 13), (1, 2, 5, 6, 9, 10, 14, 15), False),
        ((0, 3, *range(4, 16, 2)), (1, 2, *range(5, 16, 2)), True),
    ],
    ids=["one after the other", "always in one order", "two at the end", "one pair the other way"],
)
def test_blocks_that_were_not_interleaved_get_no_verdict(
    tmp_path: Path, profkit_cli: Cli, first: Sequence[int], second: Sequence[int], in_turns: bool
) -> None:
    file = written(tmp_path, [steady("a", first, 1e-4), steady("b", second, 1.03e-4)])
    done = profkit_cli("time", "--from", file, "--compare", "a,b", status=3)
    assert "INCONCLUSIVE" in done.stdout
    assert "detectable" not in done.stdout
    assert ("8 interleaved blocks" in done.stdout) is in_turns
    told = validated(
        profkit_cli("time", "--from", file, "--compare", "a,b", "--format", "json", status=3).stdout
    )
    assert told["comparisons"][0]["reason"] == "measured one after the other"
    assert told["comparisons"][0]["blocks_needed"] is None


def test_interleaving_counts_among_all_series_and_blocks_in_any_order(
    tmp_path: Path, profkit_cli: Cli
) -> None:
    turns = {"a": (0, 5, 6, 11, 12, 17, 18, 23), "b": (1, 4, 7, 10, 13, 16, 19, 22)}
    turns["c"] = (2, 3, 8, 9, 14, 15, 20, 21)
    medians = {"a": 1e-4, "b": 1.03e-4, "c": 0.9e-4}
    rows = [steady(label, turns[label], medians[label]) for label in turns]
    rows[1]["blocks"].reverse()
    file = written(tmp_path, rows)
    done = profkit_cli("time", "--from", file, "--compare", "a,b,c", "--format", "json")
    told = validated(done.stdout)
    assert [one["verdict"] for one in told["comparisons"]] == ["regressed", "improved"]
    assert [block["turn"] for block in told["series"][1]["blocks"]] == list(turns["b"])
    for row in told["series"]:
        assert "8 interleaved blocks" in row["sentence"]
    alone = profkit_cli("time", "--from", written(tmp_path, [steady("a", range(4), 1e-4)]))
    assert "120 samples in 4 blocks" in alone.stdout
    assert "interleaved" not in alone.stdout


def on_a_grid(label: str, turns: Sequence[int], median: float, tick: float) -> dict[str, Any]:
    """A steady series (CV 0.1%) as a timer with that tick (s) reads it."""
    row = steady(label, turns, median)
    for block in row["blocks"]:
        spread = 0.5 * (np.array(block["samples"]) / median - 1)
        block["samples"] = (np.rint(median * (1 + spread) / tick) * tick).tolist()
    return row


@pytest.mark.parametrize(
    ("timer", "settle"), [("events", "--timer cupti"), ("graph", "--timer cupti"), ("cupti", None)]
)
def test_a_timer_too_coarse_for_the_change_is_said_with_the_remedy(
    tmp_path: Path, profkit_cli: Cli, timer: str, settle: str | None
) -> None:
    """2% of 60 µs, read in ticks of 1.024 µs: one tick or two, whatever is true."""
    rows = [
        on_a_grid(name, IN_TURNS[name], time, 1.024e-6) | {"timer": timer}
        for name, time in (("a", 60.42e-6), ("b", 61.63e-6))
    ]
    file = written(tmp_path, rows)
    done = profkit_cli("time", "--from", file, "--compare", "a,b", status=3)
    assert ("--timer cupti" in done.stdout) is (settle is not None)
    document = validated(
        profkit_cli("time", "--from", file, "--compare", "a,b", "--format", "json", status=3).stdout
    )
    (comparison,) = document["comparisons"]
    assert comparison["verdict"] == "inconclusive"
    assert comparison["reason"] == "timer resolution too coarse"
    assert comparison["resolution"] > 0.017
    assert comparison["settle"] == settle
    assert comparison["low"] < 1 < comparison["high"]


@pytest.mark.parametrize("kept", [0.05, 0.02])
def test_the_floor_counts_for_a_file_too(tmp_path: Path, profkit_cli: Cli, kept: float) -> None:
    gpu = json.loads(saved(tmp_path, "gpu.json", 1.0).read_text("utf-8"))["series"][0]["gpu"]
    rows = [
        steady(name, IN_TURNS[name], time, gpu=gpu) for name, time in (("a", 1e-4), ("b", 1.03e-4))
    ]
    keep_floor(Floor("GPU-1", "events", "cold", "NVIDIA H200", 0.001, kept, 0.5, 100, 8, ""))
    for told in (0.01, 0.05):
        file = written(tmp_path, rows, floor=told)
        done = profkit_cli("time", "--from", file, "--compare", "a,b", "--format", "json")
        result = validated(done.stdout)
        assert result["floor"] == max(kept, told)
        (comparison,) = result["comparisons"]
        assert comparison["margin"] == {"value": max(kept, told), "source": "A/A floor"}
        assert comparison["verdict"] == ("same" if max(kept, told) == 0.05 else "regressed")


@pytest.mark.parametrize("names", ["a", "a,", "a,a", "a,b,a", "a,z", ","])
def test_a_file_is_asked_for_two_series(tmp_path: Path, profkit_cli: Cli, names: str) -> None:
    file = written(tmp_path, [steady(name, IN_TURNS[name], 1e-4) for name in "ab"])
    done = profkit_cli("time", "--from", file, "--compare", names, status=2)
    assert done.stderr.endswith((" has a, b\n", "; use a, b\n"))
    assert len(done.stderr.splitlines()) == 1


def test_the_fewest_samples_of_both_sides_are_reported(tmp_path: Path, profkit_cli: Cli) -> None:
    rows = [steady(name, IN_TURNS[name], 1e-4) for name in "ab"]
    for block in rows[0]["blocks"]:
        del block["samples"][12:]
    done = profkit_cli("time", "--from", written(tmp_path, rows), "--compare", "a,b", status=3)
    assert "too few samples in a block; margin 1.0%, 8 blocks of 12;" in done.stdout


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([steady("a", (0, 1), 1e-4), steady("a", (2, 3), 1e-4)], "the label 'a' "),
        ([steady("a", (0, 1), 1e-4), steady("b", (1, 2), 1e-4)], "turn 1 "),
        ([steady("a", (0, 0), 1e-4)], "turn 0 "),
        ([steady("a", (), 1e-4)], "series[0].blocks: "),
        ([steady("a", (0,), 1e-310)], "series[0].blocks[0].samples[0]: "),
        ([steady("a", (0,), 1e307)], "series[0].blocks[0].samples[0]: "),
        ([steady("a", (0,), 1e-4, timer="foo")], "series[0].timer: "),
        ([steady("a", (0,), 1e-4, gpu={"name": "X"})], "gpu has no 'compute_capability'"),
        ([steady("a", (0,), 1e-4, target=[])], "series[0].target: "),
        ([steady("a", (0,), 1e-4, ready={"host": "5"})], "series[0].ready.host: "),
        ([steady("a", (0,), 1e-4, ready={"host": float("nan")})], "contains NaN"),
        ([steady("a", (0,), 1e-4, ready={"group": 0})], "series[0].ready.group: "),
        ([steady("a", (0,), 1e-4, target={"work": {"flop": 1}})], "series[0].target.work: "),
        (
            [steady("a", (0,), 1e-4, blocks=[{"turn": 0, "samples": []}])],
            "series[0].blocks[0].samples: ",
        ),
    ],
)  # fmt: skip
def test_a_file_with_what_can_not_be_is_refused(
    tmp_path: Path, profkit_cli: Cli, rows: list[dict[str, Any]], words: str
) -> None:
    done = profkit_cli("time", "--from", written(tmp_path, rows), status=5)
    assert words in done.stderr
    assert done.stderr.startswith("profkit: ")
    assert len(done.stderr.splitlines()) == 1


def test_lists_nested_too_deep_are_refused(tmp_path: Path, profkit_cli: Cli) -> None:
    for text in ("[" * 100_000, "[" * 60 + "]" * 60):
        (tmp_path / "deep.json").write_text(text, encoding="utf-8")
        done = profkit_cli("time", "--from", tmp_path / "deep.json", "--unit", "us", status=5)
        assert "nested too deep" in done.stderr


def test_two_gpus_and_a_few_samples_allow_no_verdict(tmp_path: Path, profkit_cli: Cli) -> None:
    a = saved(tmp_path, "a.json", 1.0, ready={"group": 1})
    gpu = json.loads(a.read_text("utf-8"))["series"][0]["gpu"]
    for more, words in (
        ({"gpu": gpu | {"uuid": "GPU-2"}}, "GPU: GPU-1 vs GPU-2"),
        ({"ready": {"group": 8}}, "calls per sample: 1 vs 8"),
    ):
        b = saved(tmp_path, "b.json", 0.9, **more)
        done = profkit_cli("compare", a, b, "--floor", "1%", status=3)
        assert f"measured differently: {words}" in done.stdout
        assert "INCOMPARABLE" in done.stdout
    few = [{"turn": 0, "samples": [4e-5 + 1e-8 * at for at in range(6)]}]
    b = saved(tmp_path, "b.json", 0.9, blocks=few)
    done = profkit_cli("compare", a, b, "--floor", "1%", status=3)
    assert "6 samples on a side: too few for a verdict" in done.stdout
    told = profkit_cli("compare", a, b, "--floor", "1%", "--format", "json", status=3)
    assert validated(told.stdout)["pairs"][0]["verdict"] == "inconclusive"


def test_other_versions_are_noted_and_no_obstacle(tmp_path: Path, profkit_cli: Cli) -> None:
    files = []
    for name, torch, driver, factor in (("a", "2.10", "570", 1.0), ("b", "2.11", "580", 0.9)):
        file = saved(tmp_path, f"{name}.json", factor)
        told = json.loads(file.read_text("utf-8"))
        told["series"][0]["gpu"]["driver"] = driver
        told["fingerprint"] = {"versions": {"torch": torch, "cuda": "13.0", "cudnn": None}}
        file.write_text(json.dumps(told), encoding="utf-8")
        files.append(file)
    done = profkit_cli("compare", *files, "--floor", "1%")
    assert "measured with other versions: driver: 570 vs 580" in done.stdout
    assert "measured with other versions: torch: 2.10 vs 2.11" in done.stdout
    told = profkit_cli("compare", *files, "--floor", "1%", "--format", "json").stdout
    assert validated(told)["pairs"][0]["notes"] == [
        "driver: 570 vs 580",
        "torch: 2.10 vs 2.11",
    ]


def test_variants_of_one_file_only_are_named(tmp_path: Path, profkit_cli: Cli) -> None:
    a = written(tmp_path, [steady(name, IN_TURNS[name], 1e-4) for name in "ab"], "a.json")
    c = written(tmp_path, [steady("a", range(8), 1e-4), steady("c", range(8, 16), 1e-4)], "c.json")
    done = profkit_cli("compare", a, c, "--floor", "1%")
    assert "only in a.json: b\n" in done.stdout
    assert "only in c.json: c\n" in done.stdout
    page = profkit_cli("compare", a, c, "--format", "markdown", status=3).stdout
    assert "only in a.json: b  \n" in page
    told = validated(profkit_cli("compare", a, c, "--format", "json", status=3).stdout)
    assert told["only"] == [["b"], ["c"]]
    assert len(told["pairs"]) == 1
    named = profkit_cli("compare", a, c, "--variant", "a", "--format", "json", status=3)
    assert validated(named.stdout)["only"] == [[], []]
    for name in "bcz":
        wrong = profkit_cli("compare", a, c, "--variant", "a", "--variant", name, status=2)
        where = "neither file" if name == "z" else "one file only"
        assert f"--variant '{name}' is in {where}" in wrong.stderr
        assert "a.json has a, b" in wrong.stderr
        assert "c.json has a, c" in wrong.stderr


def test_a_gpu_throttled_throughout_is_no_measurement(tmp_path: Path) -> None:
    file = throttled(tmp_path, "hardware thermal slowdown")
    for arguments in ((), ("--compare", "a,b")):
        done = run(tmp_path, "time", "--from", file, *arguments, status=4)
        assert "hardware thermal slowdown" in done.stderr
        assert "8 of 8 blocks: hardware thermal slowdown" in " ".join(done.stdout.split())
    assert "INVALID" in done.stdout
    assert "profkit: invalid measurement: " in done.stderr


ONE_AFTER_THE_OTHER = {"a": range(8), "b": range(8, 16)}


def test_a_moved_clock_is_invalid(tmp_path: Path) -> None:
    moved = throttled(tmp_path, "", (1.98e9, 1.9e9), turns=ONE_AFTER_THE_OTHER)
    invalid = run(
        tmp_path, "time", "--from", moved, "--compare", "a,b", "--fail-on", "regression", status=4
    )
    assert "the SM clock was 1980 MHz for a and 1900 MHz for b" in invalid.stderr
    noisy = throttled(tmp_path, "", (1.98e9, 1.9e9), first=1.94e9, turns=ONE_AFTER_THE_OTHER)
    run(tmp_path, "time", "--from", noisy, "--compare", "a,b", "--fail-on", "regression")


@pytest.mark.parametrize("reason", ["software power cap", ""])
def test_a_clock_that_the_sides_own_power_leaves_is_said(tmp_path: Path, reason: str) -> None:
    """All else fell on both alike, since they took turns."""
    same = throttled(tmp_path, reason)
    done = run(tmp_path, "time", "--from", same, "--compare", "a,b")
    words = " ".join(done.stdout.split())
    assert ("8 of 8 blocks: software power cap" in words) == bool(reason)
    assert "in SM cycles" not in words
    apart = throttled(tmp_path, reason, (1.8e9, 1.44e9))
    done = run(tmp_path, "time", "--from", apart, "--compare", "a,b", "--fail-on", "regression")
    words = " ".join(done.stdout.split())
    assert "a 1800 MHz, b 1440 MHz; in SM cycles 1.25x" in words
    told = run(tmp_path, "time", "--from", apart, "--compare", "a,b", "--format", "json")
    assert validated(told.stdout)["comparisons"][0]["clocks"] == [1.8e9, 1.44e9]


def test_the_clock_is_what_the_sms_counted_not_the_nvml_reading(tmp_path: Path) -> None:
    file = throttled(tmp_path, "", (1.98e9, 1.98e9), counted=(1.5e9, 1.502e9))
    done = run(tmp_path, "time", "--from", file, "--compare", "a,b", "--format", "json")
    told = validated(done.stdout)
    assert {block["sm_clock"] for block in told["series"][0]["blocks"]} == {1.5e9}
    assert told["comparisons"][0]["clocks"] is None
    shown = run(tmp_path, "time", "--from", file)
    assert "1500 MHz" in shown.stdout
    told_alike = (1.98e9, 1.98e9)
    apart = throttled(tmp_path, "", told_alike, counted=(1.5e9, 1.6e9), turns=ONE_AFTER_THE_OTHER)
    run(tmp_path, "time", "--from", apart, "--compare", "a,b", status=4)
    mixed = throttled(tmp_path, "", told_alike, counted=(1.5e9, None), turns=ONE_AFTER_THE_OTHER)
    done = run(tmp_path, "time", "--from", mixed, "--compare", "a,b", status=3)
    assert "INVALID" not in done.stdout


def test_an_inconclusive_names_the_command_that_settles_it(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    series = []
    for label, median in (("a", 1.0), ("b", 1.02)):
        medians = median * (1 + 0.02 * rng.standard_normal(8))
        blocks = [
            {"turn": turn, "samples": (1e-4 * m * (1 + 1e-3 * rng.standard_normal(30))).tolist()}
            for turn, m in zip(IN_TURNS[label], medians, strict=True)
        ]
        series.append({"label": label, "timer": "events", "cache": "cold", "blocks": blocks})
    file = tmp_path / "open.json"
    file.write_text(json.dumps({"schema": "profkit.time/1", "series": series}), encoding="utf-8")
    done = run(tmp_path, "time", "--from", file, "--compare", "a,b", "--format", "json", status=3)
    (comparison,) = validated(done.stdout)["comparisons"]
    assert comparison["verdict"] == "inconclusive"
    run(tmp_path, "time", "--from", file, "--compare", "a,b", "--fail-on", "regression")
    run(
        tmp_path, "time", "--from", file, "--compare", "a,b",
        "--fail-on", "regression,inconclusive", status=1,
    )  # fmt: skip


def test_calibration_is_kept_and_used(toy: Path) -> None:
    done = run(
        toy.parent, "calibrate", f"{toy}:quick", "--device", "cpu", "--comparisons", "10",
        "--processes", "1", "--format", "json",
    )  # fmt: skip
    document = validated(done.stdout)
    assert document["kept"]
    floor = json.loads(next((toy.parent / "state").rglob("*.json")).read_text("utf-8"))
    assert floor["within_process"] == document["floor"]["within_process"] >= 0
    assert floor["processes"] == 1
    bounds = [document["between_processes"]["bound"]]
    bounds += [plan["bound"] for plan in document["sharper"]]
    assert bounds == sorted(bounds, reverse=True)
    assert floor["between_processes"] >= bounds[0]
    assert len(document["within_process"]["all"]) == 10


@needs_l4
@pytest.mark.parametrize(
    ("name", "median", "words"),
    [
        ("config_01", "60.42 µs", ("slow samples at the start", "is one timer tick wide")),
        ("config_03", "321.0 µs", ("differ by 7.9%",)),
        ("config_04", "1.381 ms", ("differ by 10.7%",)),
        ("config_08", None, ("differ by 1",)),
        ("config_10", "691.7 µs", ("differ by 17.0%",)),
    ],
)
def test_what_is_wrong_with_published_latencies(
    profkit_cli: Cli, name: str, median: str | None, words: tuple[str, ...]
) -> None:
    done = profkit_cli("time", "--from", L4 / f"{name}.json")
    said = " ".join(done.stdout.split())
    assert "not independent" in said
    assert "equals that of its samples" in said
    assert "too narrow" in said
    for word in (*words, *([median] if median else [])):
        assert word in said


@needs_l4
def test_published_medians_are_reproduced(profkit_cli: Cli) -> None:
    for file in sorted(L4.glob("*.json")):
        published = json.loads(file.read_text("utf-8"))["statistics"]["median_ms"]
        (series,) = json.loads(profkit_cli("time", "--from", file, "--format", "json").stdout)[
            "series"
        ]
        assert series["statistics"]["median"] == pytest.approx(published * 1e-3, rel=1e-9)


def test_other_processes_on_the_gpu_are_said(tmp_path: Path) -> None:
    (latency,) = read_latencies(saved(tmp_path, "a.json", 1.0)).latencies
    alone = LatencyFile(series=(analyze_latency(latency),))
    assert not any("process" in line for line in in_words(alone).warnings)
    assert "2 other processes on the GPU" in in_words(alone, other_processes=2).warnings[0]


def test_one_variant_alone_is_interleaved_with_calls_that_are_no_samples(toy: Path) -> None:
    done = run(toy.parent, "time", f"{toy}:quick", *QUICK, "--format", "json")
    (series,) = validated(done.stdout)["series"]
    assert [block["turn"] for block in series["blocks"]] == list(range(0, 16, 2))
    assert {len(block["samples"]) for block in series["blocks"]} == {13}
    for name in ("interval", "order_interval"):
        assert series["statistics"][name]["level"] is None
    assert series["interval"]["level"] == 0.95
    assert series["without_level"] is None


def test_the_headline_of_saved_blocks_is_the_interval_over_them(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    offsets = 1 + 0.001 * rng.standard_normal((8, 1))
    times = 1e-4 * offsets * (1 + 2e-3 * rng.standard_normal((8, 30)))
    blocks = [{"turn": turn, "samples": row.tolist()}
              for turn, row in zip(IN_TURNS["a"], times, strict=True)]  # fmt: skip
    file = tmp_path / "kept.json"
    file.write_text(json.dumps({
        "schema": "profkit.time/1", "series": [{"label": "a", "timer": "events", "cache": "cold",
                                                "blocks": blocks}],
    }))  # fmt: skip
    done = run(tmp_path, "time", "--from", file, "--format", "json")
    (series,) = validated(done.stdout)["series"]
    medians = np.log(np.median(times, axis=1))
    half = 2.3646 * medians.std(ddof=1) / 8**0.5  # Student's t, 7 degrees of freedom, 97.5%
    low, high = np.exp(medians.mean() - half), np.exp(medians.mean() + half)
    assert series["interval"]["level"] == 0.95
    assert (series["interval"]["low"], series["interval"]["high"]) == pytest.approx(
        (low, high), rel=1e-5
    )
    assert series["statistics"]["interval"]["level"] is None
    shown = run(tmp_path, "time", "--from", file).stdout
    headline = next(line for line in shown.splitlines() if line.startswith("a  "))
    share = max(high - np.median(times), np.median(times) - low) / np.median(times)
    assert f"±{share:.1%}" in headline
    assert "95% interval" in shown
    assert all(len(line) <= 100 for line in shown.splitlines())


def test_more_samples_than_asked_for_are_said(toy: Path) -> None:
    asked = ("--compare", "quick,slow", *QUICK, "--samples", "40")
    done = run(toy.parent, "time", toy, *asked)
    assert "--samples 40 rounded up to 240" in done.stderr
    assert "samples a variant, not" not in run(toy.parent, "time", toy, *asked[:-2]).stderr


def test_slow_calls_get_fewer_samples_where_the_time_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROFKIT_LOCK_DIR", str(tmp_path))
    file = tmp_path / "toy.py"
    file.write_text(TARGET.replace("SECONDS", "2e-3"), encoding="utf-8")
    plan = TimingPlan(
        (Subject(file, ("quick",)),), settings=Settings(warmup=1e-3), samples=240, blocks=8,
        seconds=0.1, device="cpu",
    )  # fmt: skip
    (latency,) = time_targets(plan, lambda *_: None).latencies
    assert len(latency.blocks) == 8
    assert 3 <= min(len(block.samples) for block in latency.blocks) < 30


def test_a_profile_times_as_a_verdict_asks_for_within_bounds() -> None:
    plan = timing_of(Plan(("targets/sdpa.py",)), ("flash", "cudnn"))
    assert plan.blocks >= DEFAULT.blocks + 2
    assert plan.samples_in_a_block >= DEFAULT.samples
    assert plan.seconds < math.inf
    asked = timing_of(Plan(("targets/sdpa.py",), samples=1000), ("flash",))
    assert (asked.samples, asked.seconds) == (1000, math.inf)
