"""`profkit optimize`: which variant to use, on CPU targets whose speeds are known."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner, Result

from profkit.commands.cli import app
from tests.conftest import ROOT

pytest.importorskip("torch", reason="targets need torch")

SCHEMA = ROOT / "profkit" / "schemas" / "optimize.json"
TOY = """
from profkit import Target, Unsupported, Variant, Work, normal_inputs
from tests.clock import install

passes = install()

def waits(seconds):
    def run(inputs):
        passes(seconds)
        return inputs["a"] + 1
    return run

def unsupported(inputs):
    raise Unsupported("not on this machine")

target = Target(
    name="toy", shapes={"n": 64}, dtype="float32",
    inputs=lambda device, seed: normal_inputs(device, seed, "float32", a=(64,)),
    reference=lambda inputs: inputs["a"] + 1,
    variants=[
        Variant("now", waits(6e-4), chooses=lambda inputs: "twin"),
        Variant("twin", waits(6e-4)),
        Variant("fast", waits(3e-4), setting="with fast_mode(): ..."),
        Variant("slow", waits(9e-4)),
        Variant("wrong", lambda inputs: inputs["a"] + 2), Variant("absent", unsupported),
    ],
)
if __name__ == "__main__":
    target.main()
"""
QUICK = ("--device", "cpu", "--warmup-ms", "1")


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    file = tmp_path / "toy.py"
    file.write_text(TOY, encoding="utf-8")
    return file


def run(toy: Path, *arguments: str, status: int = 0) -> Result:
    environment = {
        **os.environ,
        "XDG_STATE_HOME": str(toy.parent / "state"),
        "PROFKIT_LOCK_DIR": str(toy.parent),
        "OMP_NUM_THREADS": "1",
    }
    with contextlib.chdir(toy.parent):
        done = CliRunner().invoke(app, ["optimize", *arguments, *QUICK], env=environment)
    assert done.exit_code == status, done.output
    return done


def found(done: Result) -> Any:
    document = json.loads(done.stdout)
    jsonschema.validate(document, json.loads(SCHEMA.read_text("utf-8")))
    return document


def test_the_fastest_variant_is_found_with_its_setting(toy: Path) -> None:
    done = run(toy, "toy.py", "--format", "json", "--budget", "240s")
    document = found(done)
    assert (document["outcome"], document["use"]) == ("use", "fast")
    assert document["setting"] == "with fast_mode(): ..."
    assert document["in_use"] == "now"
    fast, *others = document["candidates"]
    assert fast["standing"] == "reaches"
    assert 1.5 < fast["low"] <= fast["speedup"] <= fast["high"]
    assert {one["variant"]: one["standing"] for one in others}["slow"] == "short"
    assert set(document["left_out"]) == {"wrong", "absent"}
    assert "relative error" in document["left_out"]["wrong"]


def test_that_nothing_is_to_be_gained_is_a_result(toy: Path) -> None:
    arguments = ("--target-speedup", "1.5", "--format", "json")
    done = run(toy, "toy.py:now,twin,slow", *arguments)
    document = json.loads(done.stdout)
    assert (document["outcome"], document["chosen"], document["use"]) == ("keep", "twin", None)
    assert {row["standing"] for row in document["candidates"]} == {"short"}


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("toy.py", "--target-speedup", "0.9"), 2, "--target-speedup 0.9"),
        (("toy.py", "--budget", "long"), 2, "--budget 'long'"),
        (("none.py",), 5, "none.py: "),
        (("toy.py", "other.py"), 2, "one target"),
    ],
)
def test_wrong_usage_is_one_line(
    toy: Path, arguments: tuple[str, ...], status: int, words: str
) -> None:
    done = run(toy, *arguments, status=status)
    (line,) = done.stderr.splitlines()
    assert words in line


HELD = """
from contextlib import contextmanager

held = []

@contextmanager
def around():
    held.append(True)
    passes(5e-2)
    yield
    held.pop()

def inside(inputs):
    assert held
    return inputs["a"] + 1

target = Target(
    name="toy", shapes={"n": 64}, dtype="float32",
    inputs=lambda device, seed: normal_inputs(device, seed, "float32", a=(64,)),
    reference=lambda inputs: inputs["a"] + 1,
    variants=[Variant("now", waits(6e-4)), Variant("held", inside, around=around)],
)
"""


def test_what_is_set_around_calls_is_not_timed(toy: Path) -> None:
    toy.write_text(TOY.split("target = Target")[0] + HELD, encoding="utf-8")
    done = run(toy, "toy.py", "--format", "json")
    (held,) = found(done)["candidates"]
    assert held["median"] < 5e-3


@pytest.mark.parametrize(
    ("variants", "status", "words"),
    [
        ("now,absent", 4, "nothing to compare now with (absent: not on this machine); name"),
        ("now,absent,wrong", 4, "absent: not on this machine; wrong: relative error"),
        ("now,wrong", 6, "nothing to compare now with (wrong: relative error"),
    ],
)
def test_without_an_alternative_it_says_why_each_was_left_out(
    toy: Path, variants: str, status: int, words: str
) -> None:
    done = run(toy, f"toy.py:{variants}", status=status)
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("profkit: ")]
    assert words in line


def test_a_budget_of_less_than_a_second_is_reported_as_such(toy: Path) -> None:
    done = run(toy, "toy.py:now,twin", "--budget", "0.4s")
    assert " of 0.4 s, " in done.stdout


@pytest.mark.parametrize(
    ("baseline", "status", "words"),
    [
        ("nope", 2, "no variant 'nope'"),
        ("wrong", 6, "wrong: relative error"),
        ("absent", 4, "absent can't run here: not on this machine"),
    ],
)
def test_a_variant_in_use_that_can_not_be(
    toy: Path, baseline: str, status: int, words: str
) -> None:
    done = run(toy, "toy.py:now,wrong,absent", "--baseline", baseline, status=status)
    assert words in done.stderr
