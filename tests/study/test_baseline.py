"""`profkit baseline`: matrices measured on the CPU, interrupted, resumed, and others' latencies."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from profkit.commands.cli import app
from profkit.runs.run import verify
from profkit.study import measurement
from profkit.study import run as study_run
from profkit.timing.latency_file import read_latencies
from tests.analysis.test_views import schema
from tests.conftest import L4, ROOT, apart, needs_l4, plain_bytes

pytest.importorskip("torch", reason="targets need torch")

SWEEP = ROOT / "targets" / "sdpa_sweep.py"
STUDY = ROOT / "targets" / "matrices" / "l4_study.yaml"
TOY = """
import argparse, os, time
from itertools import pairwise
from pathlib import Path
from profkit import Target, Unsupported, Variant, Work, normal_inputs
from tests.clock import install

passes = install()

options = argparse.ArgumentParser(add_help=False)
options.add_argument("--n", type=int, default=1)
options.add_argument("--kind", default="plain")
asked = options.parse_known_args()[0]
n = asked.n

def waits(seconds):
    def run(inputs):
        passes(seconds * n)
        return inputs["a"] + 1
    return run

def unsupported(inputs):
    if n > 1:
        raise Unsupported("no kernel for n above 1")
    return inputs["a"] + 1

def no_memory(inputs):
    raise MemoryError("CUDA out of memory. Tried to allocate 9 GiB")

def dies(inputs):
    if n == 1:
        os._exit(3)
    return inputs["a"] + 1

def raises(inputs):
    raise RuntimeError("its own words")

calls = {
    "quick": waits(2e-4), "slow": waits(2e-3), "picky": unsupported,
    "greedy": no_memory, "wrong": lambda inputs: inputs["a"] + 2, "dies": dies, "raises": raises,
}
variants = [Variant(name, run, setting=f"use {name}") for name, run in calls.items()]

def version():
    if (Path(__file__).parent / "removed").exists():
        raise Unsupported("the library is not installed")
    return "library 1.2"

if not (Path(__file__).parent / "gone").exists():
    variants.append(Variant("library", waits(3e-4), version=version))
FLOP = 1e6
target = Target(
    name="toy", shapes={"n": n}, dtype="float32",
    work=Work(FLOP * n, 1e3 * n, f"n={n}"),
    inputs=lambda device, seed: normal_inputs(device, seed, "float32", a=(64,)),
    reference=lambda inputs: inputs["a"] + 1,
    variants=variants,
)
if __name__ == "__main__":
    target.main(options=options)
"""
MATRIX = """
schema: profkit.matrix/1
name: toy_matrix
groups:
  - vary: {n: [1, 2, 4]}
"""
TWO = ("--backends", "quick,slow")
QUICK = ("--device", "cpu", "--warmup-ms", "1", "--samples", "80")


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    (tmp_path / "matrix.yaml").write_text(MATRIX, encoding="utf-8")
    file = tmp_path / "toy.py"
    file.write_text(TOY, encoding="utf-8")
    return file


def with_shapes(toy: Path, *numbers: int) -> None:
    """A smaller matrix: each profile takes seconds."""
    matrix = MATRIX.replace("[1, 2, 4]", str(list(numbers)))
    toy.with_name("matrix.yaml").write_text(matrix, encoding="utf-8")


def environment(folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "XDG_STATE_HOME": str(folder / "state"),
        "PROFKIT_LOCK_DIR": str(folder),
        "OMP_NUM_THREADS": "1",
    }


def run(folder: Path, *arguments: str | Path, status: int = 0) -> Result:
    """The command in this process; what it times runs in one of its own all the same."""
    with contextlib.chdir(folder):
        words = ["baseline", *map(str, arguments)]
        done = CliRunner().invoke(app, words, env=environment(folder))
    assert "Traceback" not in done.stderr, done.stderr
    assert done.exit_code == status, done.output
    return done


def command(toy: Path, *arguments: str) -> list[str]:
    words = ["run", str(toy), "--matrix", str(toy.with_name("matrix.yaml")), *QUICK]
    words += ["--out", str(toy.with_name("out")), *arguments]
    return [sys.executable, "-m", "profkit", "baseline", *words]


def measured(toy: Path, *arguments: str | Path, status: int = 0) -> Result:
    words = ("run", toy, "--matrix", toy.with_name("matrix.yaml"), *QUICK)
    return run(toy.parent, *words, "--out", toy.with_name("out"), *arguments, status=status)


def failure(done: Result) -> str:
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("profkit:")]
    return line


def validated(path: Path, name: str) -> Any:
    document = json.loads(path.read_text("utf-8"))
    schema(name).validate(document)
    return document


def summary(toy: Path) -> Any:
    return validated(toy.with_name("out") / "summary.json", "baseline")


def by_id(document: Mapping[str, Any]) -> dict[str, Any]:
    return {cell["id"]: cell for cell in document["cells"]}


def test_without_torch_no_folder_is_left(toy: Path) -> None:
    hidden = toy.parent / "hidden"
    hidden.mkdir()
    (hidden / "torch.py").write_text("raise ImportError('hidden')", encoding="utf-8")
    variables = environment(toy.parent) | {"PYTHONPATH": f"{ROOT}:{hidden}"}
    words = command(toy, "--out", str(toy.with_name("below") / "out"))
    done = subprocess.run(words, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert "torch is not installed" in done.stderr
    assert not toy.with_name("below").exists()


def test_a_matrix_is_measured_and_what_fails_is_kept_with_its_reason(toy: Path) -> None:
    done = measured(toy)
    document = summary(toy)
    cells = by_id(document)
    assert len(cells) == 3 * 8
    assert document["complete"] is True
    assert {name: cells[f"n1.{name}"]["status"] for name in ("quick", "greedy", "wrong")} == {
        "quick": "measured",
        "greedy": "out_of_memory",
        "wrong": "wrong",
    }
    assert cells["n1.raises"]["status"] == cells["n1.dies"]["status"] == "failed"
    assert "its own words" in cells["n1.raises"]["reason"]
    assert "ended with status 3" in cells["n1.dies"]["reason"]
    assert cells["n1.picky"]["status"] == "measured"
    assert cells["n2.dies"]["status"] == "measured"
    assert cells["n2.picky"]["status"] == "unsupported"
    assert cells["n2.picky"]["reason"] == "no kernel for n above 1"
    assert cells["n1.library"]["version"] == "library 1.2"

    quick = cells["n4.quick"]
    kept = validated(toy.with_name("out") / quick["file"], "cell")
    samples = [value for block in kept["latency"]["blocks"] for value in block["samples"]]
    assert len(samples) == quick["n"] == 80
    assert quick["seconds"] == kept["statistics"]["median"]
    assert quick["flop_rate"] == pytest.approx(4e6 / quick["seconds"])
    assert quick["intensity"] == 1000
    assert quick["tokens_per_second"] is None
    assert kept["fingerprint"]["versions"]["torch"]
    assert kept["setting"] == "use quick"

    versus = {(one["shape"], one["b"]): one for one in document["comparisons"]}
    assert {one["a"] for one in document["comparisons"]} == {"quick"}
    assert versus["n4", "slow"]["verdict"] == "regressed"
    assert versus["n4", "slow"]["speedup"] < 0.5
    fastest = {one["where"]["shape"]: one["backend"] for one in document["best"]}
    assert fastest["n4"] in {"quick", "dies"}

    (table,) = apart(pd.read_parquet, [toy.with_name("out") / "cells.parquet"])  # it starts threads
    assert list(table["id"]) == [cell["id"] for cell in document["cells"]]
    assert "out of memory" in done.stdout
    assert "the library" not in done.stdout
    assert str(toy.parent) not in json.dumps(document["cells"])


def test_blocks_of_a_shape_are_interleaved_and_shapes_are_shuffled(toy: Path) -> None:
    done = measured(toy, "--backends", "quick,slow,library", "--seed", "3")
    cells = by_id(summary(toy))
    order = sorted(("n1", "n2", "n4"), key=lambda shape: started(toy, f"{shape}.quick"))
    stages = [line.split()[5] for line in done.stderr.splitlines() if " of 3 " in line]
    assert stages == order
    again = measured(toy, "--backends", "quick,slow,library", "--seed", "3", "--resume")
    assert " of " not in again.stderr
    names = ["quick", "slow", "library"]
    turns = sorted(
        (block["turn"], name)
        for name in names
        for block in validated(toy.with_name("out") / f"cells/n2.{name}.json", "cell")["latency"][
            "blocks"
        ]
    )
    taken = [name for _, name in turns]
    assert all(sorted(taken[at : at + 3]) == sorted(names) for at in range(0, len(taken), 3))
    assert all(one != following for one, following in pairwise(taken))
    assert cells["n2.quick"]["round"] == cells["n2.slow"]["round"] != cells["n1.quick"]["round"]


def started(toy: Path, cell: str) -> float:
    return (toy.with_name("out") / "cells" / f"{cell}.json").stat().st_mtime


HANGS = """
def passes(seconds, pass_on=passes):
    here = Path(__file__).parent
    while (here / "hangs").exists() and list(here.glob("out/cells/n*.json")):
        time.sleep(0.02)
    pass_on(seconds)

def waits(seconds):
"""


def test_killed_in_a_cell_resume_measures_only_what_is_missing(toy: Path) -> None:
    """The second shape hangs."""
    toy.write_text(TOY.replace("\ndef waits(seconds):\n", HANGS), encoding="utf-8")
    toy.with_name("hangs").touch()
    out = toy.with_name("out")
    process = subprocess.Popen(
        command(toy, *TWO),
        cwd=toy.parent,
        env=environment(toy.parent),
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and len(list(out.glob("cells/[!.]*.json"))) < 2:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    toy.with_name("hangs").unlink()
    kept = {file: file.read_bytes() for file in out.glob("cells/[!.]*.json")}
    assert len(kept) == 2
    assert not (out / "summary.json").exists()
    (out / "cells" / ".n2.quick.json.part").write_text("{")  # as a kill in the write leaves it

    refused = measured(toy, *TWO, status=2)
    assert "--resume" in failure(refused)
    measured(toy, *TWO, "--resume")
    assert len(list(out.glob("cells/*.json"))) == 6
    assert not list(out.glob("cells/.*"))
    assert all(file.read_bytes() == content for file, content in kept.items())
    assert summary(toy)["counts"] == {"measured": 6}


def test_a_full_disk_loses_nothing_and_says_so(toy: Path) -> None:
    """A limit on the size of files stands for the disk: a write fails half-way, as there."""
    limited = subprocess.run(
        command(toy, *TWO),
        cwd=toy.parent,
        env=environment(toy.parent) | {"PYTHONDONTWRITEBYTECODE": "1"},  # not whole either
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        preexec_fn=limit_files,
    )
    assert limited.returncode == 4
    assert "can't be written" in limited.stderr
    assert "measured cells are saved; " in limited.stderr
    assert "Traceback" not in limited.stderr
    out = toy.with_name("out")
    assert not list(out.rglob("*.part"))
    measured(toy, *TWO, "--resume")
    assert summary(toy)["counts"] == {"measured": 6}


@pytest.fixture
def ncu(toy: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The stand-in, which hands out a recorded report."""
    here = toy.with_name("ncu")
    shutil.copy2(ROOT / "tests" / "stand_in" / "ncu", here)
    report = toy.with_name("report.ncu-rep")
    report.write_bytes(plain_bytes("sdpa_s512_flash_set_basic"))
    told = {"mode": "good", "report": str(report)}
    toy.with_name("stand_in.json").write_text(json.dumps(told), encoding="utf-8")
    monkeypatch.setenv("PROFKIT_NCU", str(here))
    return here


def profiles(toy: Path) -> dict[str, Any]:
    return {one["id"]: one for one in summary(toy)["profiles"]}


@pytest.mark.usefixtures("ncu")
def test_the_best_cells_are_profiled_with_their_options_and_only_once(toy: Path) -> None:
    with_shapes(toy, 1, 2)
    measured(toy, *TWO, "--profile", "top")
    assert set(profiles(toy)) == {f"n{n}.quick" for n in (1, 2)}
    out = toy.with_name("out")
    for one in profiles(toy).values():
        verify(out / one["folder"])
        checked = json.loads((out / one["folder"] / "check.json").read_text("utf-8"))
        assert [variant["name"] for variant in checked["variants"]] == ["quick"]
        assert f"n{checked['shapes']['n']}.quick" == one["id"]
    options, program, _ = json.loads(toy.with_name("ncu_seen.json").read_text("utf-8"))
    assert options["--set"] == "full"
    assert program[program.index("--variant") + 1] == "quick"
    assert program[program.index("--n") + 1] in {"1", "2"}

    every = measured(toy, *TWO, "--profile", "all", "--resume")
    assert len(profiles(toy)) == 4
    assert every.stderr.count("profile ") == 2
    assert len({one["folder"] for one in profiles(toy).values()}) == 4


def test_cells_without_a_profile_say_why_and_are_tried_again(
    toy: Path, ncu: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_shapes(toy, 1)
    monkeypatch.setenv("PROFKIT_NCU", str(toy.with_name("none")))
    measured(toy, "--backends", "quick", "--profile", "top")
    assert all("ncu" in one["reason"] for one in profiles(toy).values())
    monkeypatch.setenv("PROFKIT_NCU", str(ncu))
    words = ("--backends", "quick", "--profile", "top", "--resume")
    measured(toy, *words, "--budget", "0.001s")
    assert {one["reason"] for one in profiles(toy).values()} == {"the budget was already spent"}
    measured(toy, *words)
    assert all(one["folder"] for one in profiles(toy).values())


needs_namespaces = pytest.mark.skipif(
    subprocess.run(
        ["sh", "-c", "unshare -rm mount -t tmpfs -o size=64k tmpfs /mnt"],
        capture_output=True,
        check=False,
    ).returncode
    != 0,
    reason="a small disk can't be mounted here (unshare -rm mount -t tmpfs)",
)


@needs_namespaces
def test_a_disk_that_fills_up_keeps_whole_cells_to_go_on_with(toy: Path) -> None:
    out, kept = toy.with_name("out"), toy.with_name("kept")
    out.mkdir()
    script = (
        f"mount -t tmpfs -o size=48k tmpfs {out} && {shlex.join(command(toy, *TWO))}; "
        f"status=$?; cp -r {out} {kept}; exit $status"
    )
    full = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script],
        cwd=toy.parent,
        env=environment(toy.parent),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert full.returncode == 4, full.stderr
    assert "can't be written (No space left on device)" in full.stderr
    assert "--resume" in full.stderr
    cells = {file: file.read_bytes() for file in kept.glob("cells/*")}
    assert 0 < len(cells) < 6
    for file in cells:
        validated(file, "cell")
    out.rmdir()  # what was mounted there went with the namespace
    kept.rename(out)
    measured(toy, *TWO, "--resume")
    assert summary(toy)["counts"] == {"measured": 6}
    assert all((out / "cells" / file.name).read_bytes() == was for file, was in cells.items())


def test_a_backend_that_hangs_is_ended_and_the_others_go_on(toy: Path) -> None:
    toy.write_text(TOY.replace("os._exit(3)", "time.sleep(600)"), encoding="utf-8")
    measured(toy, "--backends", "quick,dies,slow", "--timeout", "12s")
    cells = by_id(summary(toy))
    assert cells["n1.dies"]["status"] == "failed"
    assert cells["n1.dies"]["reason"] == "no answer for 12 s, ended"
    assert {cell["status"] for cell in cells.values() if cell["id"] != "n1.dies"} == {"measured"}


def limit_files() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))


def test_a_backend_that_was_removed_is_unavailable_and_its_cells_stay(toy: Path) -> None:
    measured(toy, "--backends", "quick,library")
    cells = toy.with_name("out") / "cells"
    for shape in ("n2", "n4"):
        (cells / f"{shape}.library.json").unlink()
    toy.with_name("removed").touch()
    again = measured(toy, "--backends", "quick,library", "--resume")
    rows = by_id(summary(toy))
    assert rows["n1.library"]["status"] == "measured"
    assert rows["n2.library"]["status"] == "unavailable"
    assert rows["n2.library"]["reason"] == "the library is not installed"
    assert "library, " in again.stdout
    assert "not available (the library is not installed)" in again.stdout

    toy.with_name("gone").touch()
    measured(toy, "--backends", "quick,library", "--resume")
    reason = by_id(summary(toy))["n4.library"]["reason"]
    assert reason == "no longer in the target"


def test_a_target_that_has_changed_is_another(toy: Path) -> None:
    measured(toy, "--backends", "quick")
    toy.write_text(TOY.replace("2e-4", "3e-4"), encoding="utf-8")
    refused = measured(toy, "--backends", "quick", "--resume", status=2)
    assert "or what it imports beside it, has changed since the baseline was started" in failure(
        refused
    )


def test_a_module_that_the_target_imports_is_part_of_it(toy: Path) -> None:
    helper = toy.with_name("helper.py")
    helper.write_text("PAUSE = 2e-4\n", encoding="utf-8")
    toy.write_text(f"import helper\n{TOY}", encoding="utf-8")
    measured(toy, "--backends", "quick")
    helper.write_text("PAUSE = 3e-4\n", encoding="utf-8")
    refused = measured(toy, "--backends", "quick", "--resume", status=2)
    assert "what it imports beside it" in failure(refused)


def test_a_cell_of_a_shape_outside_the_matrix_is_named(toy: Path) -> None:
    measured(toy, "--backends", "quick")
    (cell, *_) = toy.parent.glob("**/cells/n1.quick.json")
    text = cell.read_text("utf-8").replace('"n1', '"n99')
    cell.with_name("n99.quick.json").write_text(text, "utf-8")
    refused = measured(toy, "--backends", "quick", "--resume", status=5)
    assert "of the shape n99, which the matrix lacks" in failure(refused)


def test_work_without_flop_is_measured_too(toy: Path) -> None:
    toy.write_text(TOY.replace("FLOP = 1e6", "FLOP = 0"), encoding="utf-8")
    measured(toy, *TWO, "--budget", "10m")
    rows = by_id(summary(toy))
    assert {row["status"] for row in rows.values()} == {"measured"}
    assert rows["n4.quick"]["flop_rate"] in {None, 0}


def test_a_backend_that_fails_to_state_its_version_is_left_out_alone(toy: Path) -> None:
    toy.write_text(TOY.replace('return "library 1.2"', 'raise OSError("no symbol")'))
    measured(toy, "--backends", "quick,library")
    backends = {one["name"]: one for one in summary(toy)["backends"]}
    assert backends["library"]["reason"] == "its version can't be determined (OSError: no symbol)"
    assert by_id(summary(toy))["n1.quick"]["status"] == "measured"


def test_another_gpu_or_other_options_are_refused(toy: Path) -> None:
    measured(toy, "--backends", "quick")
    out = toy.with_name("out")
    (out / "cells" / "n2.quick.json").unlink()
    plan = json.loads((out / "baseline.json").read_text("utf-8"))
    other = {"device": "cuda", "name": "NVIDIA H200", "uuid": "GPU-1", "multiprocessors": 132}
    (out / "baseline.json").write_text(json.dumps(plan | {"measured_on": other}))
    refused = measured(toy, "--backends", "quick", "--resume", status=4)
    assert "was measured on NVIDIA H200 GPU-1, this is the CPU" in failure(refused)
    assert not (out / "cells" / "n2.quick.json").exists()
    for option in (("--samples", "81"), ("--seed", "1"), ("--backends", "slow")):
        wrong = measured(toy, "--backends", "quick", "--resume", *option, status=2)
        assert f"was started with another {option[0][2:]}" in failure(wrong)


def test_a_budget_is_kept_by_fewer_samples_and_said(toy: Path) -> None:
    toy.write_text(TOY.replace("2e-4", "1").replace("2e-3", "2"), encoding="utf-8")
    words = ("--backends", "quick,slow", "--samples", "600", "--budget", "10m")
    done = measured(toy, *words)
    document = summary(toy)
    for cell in document["cells"]:
        assert cell["n"] < cell["asked"] == 600
        assert cell["fewer"].startswith(f"{cell['n']} of 600, for the budget of 10 min")
    assert "fewer samples than requested" in done.stdout


def test_what_no_time_was_left_for_is_kept_as_such_and_measured_by_resume(
    toy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = toy.with_name("out") / "cells"
    clock = SimpleNamespace(monotonic=lambda: float(len(list(cells.glob("[!.]*.json")))))
    for module in (study_run, measurement):
        monkeypatch.setattr(module, "time", clock)
    done = measured(toy, "--backends", "quick", "--budget", "1s", "--samples", "24")
    document = summary(toy)
    left = [cell for cell in document["cells"] if cell["status"] == "no_time"]
    assert len(left) == 2
    assert {cell["reason"] for cell in left} == {"the budget of 1 s was spent on other cells"}
    assert document["complete"] is False
    assert "no time left" in done.stdout
    measured(toy, "--backends", "quick", "--samples", "24", "--resume")
    assert summary(toy)["complete"] is True


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("run", "none.py"), 5, "none.py: "),
        (("run", "toy.py", "--backends", "nope"), 2, "no backend 'nope'; use quick, slow"),
        (("run", "toy.py", "--seq", "a"), 2, "--seq 'a'"),
        (("run", "toy.py", "--budget", "soon"), 2, "--budget 'soon'"),
        (("run", "toy.py", "--matrix", "none.yaml"), 5, "can't be read"),
        (("run", "toy.py", "--matrix", "matrix.yaml", "--seq", "1"), 2, "--matrix and --seq"),
        (("import", "none.json", "-o", "x"), 5, "can't be read"),
        (("import", "toy.py", "-o", "x", "--gpu", "B9000"), 2, "no datasheet; leave --gpu out"),
        (("import", "toy.py", "-o", "x", "--gpu", "A100"), 2, "A100 40 GB, A100 80 GB PCIe"),
        (("import", "toy.py", "-o", "x", "--matrix", "matrix.yaml"), 2, "1 files for the 3 shapes"),
    ],
)
def test_failures_are_one_line(
    toy: Path, arguments: tuple[str, ...], status: int, words: str
) -> None:
    done = run(toy.parent, *arguments, *(QUICK if arguments[0] == "run" else ()), status=status)
    assert words in failure(done)


def test_attention_with_grouped_heads_and_backward_on_the_cpu(tmp_path: Path) -> None:
    sizes = ("--batch", "2", "--heads", "4", "--kv-heads", "2", "--seq", "16,32", "--dim", "64")
    out = tmp_path / "out"
    run(
        tmp_path, "run", SWEEP, *sizes, "--dtype", "bf16", "--causal", "yes", *QUICK,
        "--backends", "default,math,cudnn,xformers,custom", "--out", out,
    )  # fmt: skip
    document = validated(out / "summary.json", "baseline")
    cells = by_id(document)
    row = cells["b2-h4-kv2-s32-d64-bf16-causal.math"]
    assert row["flop"] == 4 * 2 * 4 * 32 * 32 * 64 / 2
    assert row["bytes"] == 2 * (2 * 4 + 2 * 2) * 2 * 32 * 64
    assert row["tokens_per_second"] == pytest.approx(64 / row["seconds"])
    assert cells["b2-h4-kv2-s32-d64-bf16-causal.default"]["chosen"] in {"flash", "math"}
    assert cells["b2-h4-kv2-s16-d64-bf16-causal.custom"]["status"] == "unsupported"
    backends = {one["name"]: one for one in document["backends"]}
    assert backends["xformers"]["available"] is False
    assert backends["xformers"]["reason"] == "xformers is not installed"
    assert backends["math"]["version"].startswith("torch ")
    steps = [step for step in document["scaling"] if step["backend"] == "math"]
    assert [(step["along"], step["factor"], step["flop_exponent"]) for step in steps] == [
        ("length", 2, 2)
    ]

    run(
        tmp_path, "run", SWEEP, *sizes, "--dtype", "fp32", "--backward", *QUICK,
        "--backends", "math,default", "--out", tmp_path / "back",
    )  # fmt: skip
    rows = by_id(validated(tmp_path / "back" / "summary.json", "baseline"))
    row = rows["b2-h4-kv2-s32-d64-fp32-backward.math"]
    assert row["status"] == "measured"
    assert row["flop"] == 2.5 * 4 * 2 * 4 * 32 * 32 * 64
    assert row["bytes"] == 4 * (4 * 4 + 4 * 2) * 2 * 32 * 64


@needs_l4
def test_a_published_study_is_imported_with_its_shapes_and_its_faults(tmp_path: Path) -> None:
    files = sorted(L4.glob("config_*.json"))
    run(
        tmp_path, "import", *files, "-o", "l4", "--matrix", STUDY, "--gpu", "L4"
    )  # fmt: skip
    document = validated(tmp_path / "l4" / "summary.json", "baseline")
    assert document["gpu_from"] == "said"
    cells = by_id(document)
    row = cells["b32-h8-s512-d64-fp16.default"]
    assert row["status"] == "imported"
    assert row["seconds"] == pytest.approx(321.0e-6, rel=1e-3)
    assert (row["flop"], row["bytes"], row["intensity"]) == (17_179_869_184, 67_108_864, 256)
    assert row["flop_rate"] == pytest.approx(53.516e12, rel=1e-4)  # published: 53,516 GFLOP/s
    assert row["bandwidth"] == pytest.approx(209.05e9, rel=1e-3)  # published: 209 GB/s
    assert row["datasheet_peak"] == 121e12
    assert row["share_of_datasheet"] == pytest.approx(0.442, abs=1e-3)
    assert row["held_peak"] is None
    assert row["ridge"] == pytest.approx(121e12 / 300e9)
    assert row["regime"] == "memory"
    assert row["refused"] == "drifting"
    short = cells["b32-h8-s256-d64-fp16.default"]
    assert short["share_of_dram"] > 1
    assert any("above the DRAM peak" in flag for flag in short["flags"])
    assert document["comparisons"] == []
    kept = validated(tmp_path / "l4" / row["file"], "cell")
    assert kept["source"]["file"] == "config_03.json"
    assert kept["source"]["said"]["statistics"]["median_ms"] == pytest.approx(0.321, rel=1e-3)
    assert kept["latency"]["blocks"][0]["samples"] == list(
        read_latencies(files[2]).latencies[0].samples
    )

    twisted = run(
        tmp_path, "import", *reversed(files), "-o", "x", "--matrix", STUDY, "--gpu", "L4", status=2
    )  # fmt: skip
    assert "name the files in the order of the matrix" in failure(twisted)


@needs_l4
def test_what_files_say_of_themselves_is_enough(tmp_path: Path) -> None:
    done = run(tmp_path, "import", *sorted(L4.glob("enhanced_*.json")), "-o", "l4")
    document = validated(tmp_path / "l4" / "summary.json", "baseline")
    assert document["gpu"]["name"] == "L4"
    assert by_id(document)["b32-h8-s1024-d64-fp16.default"]["dtype"] == "float16"
    lengths = [step["factor"] for step in document["scaling"] if step["along"] == "length"]
    assert lengths == [2, 2, 2]
    row = by_id(document)["b32-h8-s1024-d64-fp16.default"]
    assert row["peak_memory"] == 161 * 2**20
    (environment,) = document["fingerprints"].values()
    assert environment["gpu"]["name"] == "NVIDIA L4"
    assert environment["versions"] == {"torch": "2.2.1+cu121"}
    assert environment["said"] is True
    kept = validated(tmp_path / "l4" / row["file"], "cell")
    assert kept["source"]["taken"] == "2025-10-13 20:25:25"
    assert document["name"] == "imported"
    assert "imported imported" not in done.stdout

    run(tmp_path, "report", "l4", "-o", "l4.md")
    told = " ".join((tmp_path / "l4.md").read_text("utf-8").split())
    assert "on L4, torch 2.2.1+cu121 (stated by the files, unverified), N=100" in told
    assert "2025-10-13 20:25:25" in told
    assert "are stated by the files, unverified" in told
    assert "imported imported" not in told


def theirs(folder: Path, name: str, **told: Any) -> Path:
    """A file of latencies of about 0.32 ms, as others write them."""
    config = {"batch_size": 32, "num_heads": 8, "seq_len": 512, "head_dim": 64, "dtype": "float16"}
    document = {
        "config": config | told.pop("config", {}),
        "raw_latencies": [0.32 + at % 7 * 1e-3 for at in range(40)],
        "statistics": {"median_ms": 0.323},
        **told,
    }
    file = folder / f"{name}.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("told", "options", "status", "words"),
    [
        ({"config": {"num_kv_heads": 3}}, (), 5, "8 heads of Q can't share 3 of K and V evenly"),
        ({}, ("--unit", "s"), 2, "states the unit ms; leave --unit out"),
        ({"statistics": {"median_ms": 323.0}}, (), 5, "states a median of 0.323 s, that of its"),
        ({}, ("--backend", "a/b"), 2, "--backend 'a/b'"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused_and_leaves_nothing(
    tmp_path: Path, told: dict[str, Any], options: tuple[str, ...], status: int, words: str
) -> None:
    longer = told.get("config", {}) | {"seq_len": 1024}
    good, bad = theirs(tmp_path, "good"), theirs(tmp_path, "bad", **told | {"config": longer})
    done = run(
        tmp_path,
        "import",
        *([bad] if options else [good, bad]),
        "-o",
        "out",
        *options,
        status=status,
    )
    assert words in failure(done)
    assert not list(tmp_path.glob("out/**/*.json"))


def test_figures_of_a_file_are_used_and_held_against_its_samples(tmp_path: Path) -> None:
    gpu = {"name": "NVIDIA L4", "memory": "24 GB"}
    off = theirs(tmp_path, "off", gpu=gpu, statistics={"median_ms": 0.33})
    run(tmp_path, "import", off, "-o", "out")
    document = validated(tmp_path / "out" / "summary.json", "baseline")
    assert document["gpu"]["name"] == "L4"
    (row,) = document["cells"]
    assert row["seconds"] == pytest.approx(0.323e-3)
    assert "the file's median differs by +2.2% from its samples'" in row["flags"]


def test_files_of_one_shape_are_named(tmp_path: Path) -> None:
    files = [theirs(tmp_path, name) for name in ("first", "second")]
    done = run(tmp_path, "import", *files, "-o", "out", status=2)
    assert "the shape b32-h8-s512-d64-fp16 occurs 2 times" in failure(done)


def test_files_that_say_different_things_are_not_made_one(tmp_path: Path) -> None:
    files = [
        theirs(tmp_path, "new", environment={"torch": "2.5.0", "driver": "550.54"}),
        theirs(tmp_path, "old", config={"seq_len": 1024}, torch_version="2.2.1"),
        theirs(tmp_path, "mute", config={"seq_len": 2048}),
    ]
    done = run(tmp_path, "import", *files, "-o", "out", "--gpu", "L4")
    assert "measured in 3 environments" in done.stdout
    document = validated(tmp_path / "out" / "summary.json", "baseline")
    found = [(one["gpu"]["driver"], one["versions"]) for one in document["fingerprints"].values()]
    assert found == [("550.54", {"torch": "2.5.0"}), (None, {"torch": "2.2.1"}), (None, {})]
    run(tmp_path, "report", "out", "-o", "out.md")
    told = " ".join((tmp_path / "out.md").read_text("utf-8").split())
    assert "3 environments (see Configuration)" in told


def test_a_gpu_that_a_file_denies_is_refused(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        "import",
        theirs(tmp_path, "l4", gpu="NVIDIA L4"),
        "-o",
        "x",
        "--gpu",
        "H200",
        status=2,
    )
    assert "l4.json: states the GPU NVIDIA L4, not H200" in failure(done)


def test_an_import_without_its_plan_is_none_and_the_next_one_takes_its_place(
    tmp_path: Path,
) -> None:
    """As a killed run leaves it: cells without a description."""
    longer = theirs(tmp_path, "longer", config={"seq_len": 1024})
    shorter = theirs(tmp_path, "shorter", config={"dtype": "torch.half"})
    out = tmp_path / "out"
    run(tmp_path, "import", longer, "-o", "out")
    for file in out.glob("*.*"):
        file.unlink()
    (out / "cells" / "mine.json").write_text("{}", encoding="utf-8")
    run(tmp_path, "report", "out", status=5)
    again = run(tmp_path, "import", shorter, "-o", "out", status=5)
    assert "mine.json" in failure(again)
    (out / "cells" / "mine.json").unlink()
    run(tmp_path, "import", shorter, "-o", "out")
    (row,) = validated(out / "summary.json", "baseline")["cells"]
    assert (row["length"], row["dtype"]) == (512, "float16")


@pytest.mark.parametrize(
    "wrong",
    [
        {"batch_size": -2}, {"seq_len": "two"}, {"dtype": "banana"}, {"dtype": "float33"},
        {"dtype": 16}, {"causal": 1}, {"num_heads": True},
    ],
)  # fmt: skip
def test_a_size_that_can_not_be_is_not_left_out_in_silence(
    tmp_path: Path, wrong: dict[str, Any]
) -> None:
    done = run(tmp_path, "import", theirs(tmp_path, "bad", config=wrong), "-o", "out", status=5)
    assert repr(next(iter(wrong.values()))) in failure(done)


@pytest.mark.parametrize(
    "damage",
    [{"backends": ["a"]}, {"backends": [{}]}, {"gpu": "H200"}, {"measured_on": 3},
     {"seconds": "x"}, {"command": 3}, {"asked": {}}],
)  # fmt: skip
def test_a_damaged_plan_is_one_line(toy: Path, damage: dict[str, Any]) -> None:
    plan: dict[str, Any] = {
        "schema": "profkit.baseline-plan/1", "gpu": None, "measured_on": None, "budget": None,
        "command": [], "created": "", "seconds": 0.0, "backends": [],
        "target": {"name": "toy", "file": "toy.py", "sha256": "0"},
    }  # fmt: skip
    out = toy.with_name("out")
    out.mkdir()
    (out / "baseline.json").write_text(json.dumps(plan | damage), encoding="utf-8")
    done = measured(toy, "--resume", status=5)
    place = next(iter(damage))
    assert f"baseline.json: {place}" in failure(done)


def test_bare_samples_are_imported_and_nothing_is_made_up(tmp_path: Path) -> None:
    (tmp_path / "theirs.txt").write_text("\n".join(str(10 + at % 7) for at in range(100)))
    run(tmp_path, "import", "theirs.txt", "--unit", "us", "-o", "out")
    document = validated(tmp_path / "out" / "summary.json", "baseline")
    (row,) = document["cells"]
    assert row["seconds"] == pytest.approx(13e-6)
    unknown = ("flop", "bytes", "gpu", "dtype", "regime", "sm_clock", "batch", "held_peak")
    assert {name: row[name] for name in unknown} == dict.fromkeys(unknown)
    assert document["gpu_from"] == "none"
    again = run(tmp_path, "import", "theirs.txt", "--unit", "us", "-o", "out", status=2)
    assert "contains a baseline" in failure(again)


def test_a_plan_under_which_nothing_was_measured_is_in_nobodys_way(toy: Path) -> None:
    with_shapes(toy, 1)
    measured(toy, *TWO)
    assert "contains a baseline" in failure(measured(toy, *TWO, status=2))
    for cell in toy.with_name("out").glob("cells/*.json"):
        cell.unlink()
    measured(toy, *TWO)


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def report_of(toy: Path) -> str:
    """The written report, all blanks alike."""
    run(toy.parent, "report", toy.with_name("out"), "-o", toy.with_name("report.md"))
    return " ".join(toy.with_name("report.md").read_text("utf-8").split())


INPUTS_END = """FLOP = 1e6
def ended():
    if (Path(__file__).parent / "moved").exists():
        os._exit(3)
"""


def of_an_h200(toy: Path) -> Path:
    """The baseline as if an H200 had measured it, with a library of another version."""
    path = toy.with_name("out") / "baseline.json"
    plan = json.loads(path.read_text("utf-8"))
    plan["measured_on"] = {
        "device": "cuda", "name": "NVIDIA H200", "uuid": "GPU-1", "multiprocessors": 132
    }  # fmt: skip
    for backend in plan["backends"][1:]:
        backend["version"] = "library 1.1"
    path.write_text(json.dumps(plan), encoding="utf-8")
    return path.parent


def test_a_refused_resume_changes_nothing_and_a_complete_one_the_summary_alone(toy: Path) -> None:
    words = ("--backends", "quick,library")
    measured(toy, *words)
    out = of_an_h200(toy)
    toy.with_name("removed").touch()
    before = content(out)
    measured(toy, *words, "--resume")
    after = content(out)
    assert {name for name in after if after[name] != before.get(name)} <= {"summary.json"}
    library = {one["name"]: one for one in summary(toy)["backends"]}["library"]
    assert (library["version"], library["available"]) == ("library 1.1", True)

    (out / "cells" / "n2.quick.json").unlink()
    before = content(out)
    refused = measured(toy, *words, "--resume", status=4)
    assert "was measured on NVIDIA H200 GPU-1, this is the CPU" in failure(refused)
    assert content(out) == before


def test_a_target_that_fails_on_another_gpu_is_no_failure_of_the_first(toy: Path) -> None:
    """It ends the process as it builds its inputs, before they are told where they are."""
    toy.write_text(
        TOY.replace("inputs=lambda device, seed: ", "inputs=lambda device, seed: ended() or ")
        .replace("FLOP = 1e6", INPUTS_END),
        encoding="utf-8",
    )  # fmt: skip
    measured(toy, "--backends", "quick")
    out = of_an_h200(toy)
    (out / "cells" / "n2.quick.json").unlink()
    before = content(out)
    toy.with_name("moved").touch()
    measured(toy, "--backends", "quick", "--resume", status=4)
    assert content(out) == before


def test_what_a_removed_backend_was_stays_on_record_beside_that_it_is_gone(toy: Path) -> None:
    words = ("--backends", "quick,library")
    measured(toy, *words)
    (toy.with_name("out") / "cells" / "n2.library.json").unlink()
    toy.with_name("removed").touch()
    measured(toy, *words, "--resume")
    library = {one["name"]: one for one in summary(toy)["backends"]}["library"]
    assert (library["version"], library["available"]) == ("library 1.2", True)
    assert library["gone"] == "the library is not installed"
    assert by_id(summary(toy))["n2.library"]["status"] == "unavailable"
    told = report_of(toy)
    assert "`library` was unavailable" in told
    toy.with_name("removed").unlink()
    measured(toy, *words, "--resume")
    library = {one["name"]: one for one in summary(toy)["backends"]}["library"]
    assert "gone" not in library
    assert by_id(summary(toy))["n2.library"]["status"] == "measured"


def test_a_shape_that_was_interrupted_is_compared_with_its_reference_once_more(toy: Path) -> None:
    words = ("--backends", "quick,slow,library")
    measured(toy, *words)
    out = toy.with_name("out")
    (out / "cells" / "n2.slow.json").unlink()
    kept = content(out / "cells")
    measured(toy, *words, "--resume")
    assert content(out / "cells").items() >= kept.items()
    document = summary(toy)
    compared = sorted((one["a"], one["b"]) for one in document["comparisons"]
                      if one["shape"] == "n2")  # fmt: skip
    assert compared == [("quick", "library"), ("quick", "slow")]
    assert len(document["cells"]) == 9
    rounds = {name: by_id(document)[f"n2.{name}"]["round"] for name in ("quick", "slow")}
    assert rounds["quick"] != rounds["slow"]
    again = out / "again" / f"n2.quick.{rounds['slow']}.json"
    assert validated(again, "cell")["round"] == rounds["slow"]

    assert [run["processes"] for run in document["runs"]] == [1, 1]
    told = report_of(toy)
    assert "2 processes of one machine measured it, in 2 runs" in told
    assert "It was resumed 1 time (" in told

    (out / "cells" / "n4.quick.json").unlink()
    measured(toy, *words, "--resume")
    assert len(list(out.glob("again/n4.*.json"))) == 2
    document = summary(toy)
    pairs = [(one["shape"], one["a"], one["b"]) for one in document["comparisons"]]
    assert sorted(pairs) == sorted(
        (f"n{n}", "quick", name) for n in (1, 2, 4) for name in ("slow", "library")
    )
    assert not any("not compared" in note for note in document["notes"])

    again.unlink()
    measured(toy, *words, "--resume")
    document = summary(toy)
    assert ("quick", "slow") not in {
        (one["a"], one["b"]) for one in document["comparisons"] if one["shape"] == "n2"
    }
    assert any(note.startswith("n2.slow is not compared: ") for note in document["notes"])


def test_a_process_that_crashed_is_counted(toy: Path) -> None:
    measured(toy, "--backends", "quick,dies,slow")
    (only,) = summary(toy)["runs"]
    assert only["processes"] >= 1
    told = report_of(toy)
    alone = "One process on one machine measured everything" in told
    assert alone == (only["processes"] == 1)


def test_where_no_time_was_left_for_the_first_shape_no_other_is_blamed(toy: Path) -> None:
    done = measured(toy, "--backends", "quick", "--budget", "0.001s", status=4)
    assert "the budget of 0.001 s was spent before the first cell" in failure(done)
    assert "on the CPU" in done.stdout
    assert "unknown" not in done.stdout
