"""Switches of kernels, tried on a target whose compiler is a stand-in."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from profkit.core.errors import UsageError
from profkit.timing.measurement import TimingPlan, subject_of
from profkit.timing.stopwatch import Settings, Timer
from profkit.trial import kernels
from profkit.trial.kernels import kernel_document, tried_rows, try_kernels
from profkit.ui.terminal import document_terminal

# The stand-in's machine code is the source: a call takes 2 kSpins, 4 kPauses and 6 kTerms eighths
# of a ms, and gives kFactor times its input, the closer the more terms; with kBroken above 1 it
# takes the process with it, with kStep above 2 it doesn't end, with a kRacing of 1 it is right in
# one process alone.
SCRIPT = """
import os, re, time
from profkit import Target, Variant, normal_inputs
from profkit.capture import cuda_source

cuda_source.compiler_version = lambda: "1"
cuda_source._headers = lambda: ""
cuda_source._compile = lambda text, *_: text.encode()

PROCESS = 0

def run(inputs):
    code = cuda_source.compile_kernel(__file__.replace("target.py", "kernel.cu"), "f", arch="sm_90")
    known = dict(re.findall(r"constexpr int (\\w+) = (\\d+);", code.cubin.decode()))
    if int(known["kBroken"]) > 1:
        os._exit(3)
    if int(known["kStep"]) > 2:
        time.sleep(600)
    if known["kRacing"] == "1":  # right in the first process alone
        with open(__file__ + ".raced", "a") as raced:
            if not raced.tell() or PROCESS == os.getpid():
                globals()["PROCESS"] = os.getpid()
                raced.write(" ")
            else:
                return inputs["x"] * 2
    terms = int(known["kTerms"])
    time.sleep((2 * int(known["kSpins"]) + 4 * int(known["kPauses"]) + 6 * terms) / 8000)
    return inputs["x"] * int(known["kFactor"]) * (1 - 1e-6 + 2e-6 / terms)

def plain(inputs):
    return inputs["x"] * 1

target = Target(
    name="stand_in", shapes={}, dtype="float32",
    inputs=lambda device, seed: normal_inputs(device, seed, "float32", x=(8,)),
    reference=lambda inputs: inputs["x"],
    variants=[Variant("kernel", run), Variant("plain", plain)],
)
"""
KERNEL = """constexpr int kSpins = 8;
constexpr int kPauses = 3;
constexpr int kTerms = 2;
constexpr int kFactor = 1;
constexpr int kBroken = 1;
constexpr int kStep = 1;
constexpr int kRacing = 2;
"""


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TimingPlan:
    pytest.importorskip("torch", reason="targets need torch")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "kernel.cu").write_text(KERNEL)
    (tmp_path / "target.py").write_text(SCRIPT)
    settings = Settings(timer=Timer.wall, warmup=0.01)
    return TimingPlan((subject_of(str(tmp_path / "target.py")),), settings=settings, device="cpu")


def test_the_fastest_constant_is_proven_and_wrong_and_broken_ones_are_refused(
    plan: TimingPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "_PATIENCE", 0.0)
    trial = try_kernels(plan, None, 20.0, lambda *_: None)
    names = {each.switches for each in trial.proven}
    assert names >= {("kSpins-4",), ("kSpins-2",), ("kSpins-1",)}
    assert trial.best is not None
    assert trial.best.switches == ("kSpins-1", "kPauses-1")
    assert trial.best.low > 1.6  # 40 to 18 eighths of a ms
    assert trial.best.keep == ("set kSpins to 1", "set kPauses to 1")
    assert ("kTerms-1",) in names
    assert trial.rounding is None or "kTerms-1" in trial.rounding.switches
    assert "kSpins-16" in trial.slower
    assert trial.failed.keys() >= {"kFactor-2", "kBroken-2", "kStep-4"}
    assert max(Counter(row.switches for row in tried_rows(trial)).values()) == 1
    text = document_terminal(kernel_document(trial), to_file=True)
    assert "set kSpins to 1" in text
    assert "Refused (wrong results): kFactor-2" in text
    assert "Refused (it hangs): kStep-4" in text


def test_a_variant_without_kernels_of_its_own_has_no_switches(plan: TimingPlan) -> None:
    with pytest.raises(UsageError, match="no CUDA source"):
        try_kernels(plan, "plain", 6.0, lambda *_: None)


def test_what_is_wrong_when_it_is_timed_again_is_not_proven(plan: TimingPlan) -> None:
    trial = try_kernels(plan, None, 6.0, lambda *_: None, ("kRacing-1",))
    assert trial.best is None
    assert trial.proven == ()
    assert "kRacing-1" in trial.failed


def test_a_switch_that_does_not_apply_is_answered_by_those_that_do(plan: TimingPlan) -> None:
    with pytest.raises(UsageError) as raised:
        try_kernels(plan, None, 6.0, lambda *_: None, ("kSeconds-4",))
    assert "kSpins-4" in raised.value.remedy
