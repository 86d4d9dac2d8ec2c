"""What launches the kernels of a step: modules by injected ranges, ranges of the user first."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from profkit.application.answer import answer
from profkit.application.answer_view import answer_document
from profkit.application.application import read_application
from profkit.application.picks_file import PicksFile
from profkit.application.run import application
from profkit.core.typed_file import encode
from profkit.timeline.callers import Caller, caller_words
from profkit.timeline.events import Events
from profkit.timeline.reader import read
from profkit.ui.terminal import document_terminal
from tests.analysis.test_views import schema
from tests.application.export import write_export
from tests.application.synthetic import US, Host, Recording

GEMM, GELU = (
    "ampere_bf16_s16816gemm_bf16_128x64_nn(args)",
    "void vectorized_elementwise_kernel<4, GeluFunctor<float>>(int)",
)
LAYER = "Net.layers.*"
STEPS, NAMED = 16, 4


class Program:
    """Steps of a program whose first calls have ranges."""

    def __init__(self) -> None:
        self.host = Host(Recording(), now=1000 * US)
        self.step = 0
        self.is_named = True

    @contextmanager
    def module(self, name: str, kind: str = "forward") -> Iterator[None]:
        call = "later" if self.step else "first"
        is_named = self.is_named and self.step < NAMED
        with (
            self.host.range(f"profkit-modules:{call}:{kind}:{name}") if is_named else nullcontext()
        ):
            yield
            self.host.compute(US)

    def gemm(self, time: int, wide: int = 132) -> None:
        self.host.launch(GEMM, time, grid=(wide, 1, 1))


def recorded(folder: Path, step: Callable[[Program], None], named: bool = True) -> Events:
    program = Program()
    program.is_named = named
    for program.step in range(STEPS):
        step(program)
        if named and program.step < NAMED:
            text = f"profkit-modules:cost:{20 * (program.step + 1)}:{60_000 * (program.step + 1)}"
            with program.host.range(text):
                program.host.compute(1)
        program.host.synchronize()
    return read(write_export(program.host.recording.events(), folder / "timeline.sqlite"))


def named(events: Events) -> Mapping[str, tuple[Caller, ...]]:
    return {group.name: group.callers for group in read_application(events).groups}


def block(program: Program) -> None:
    """Per layer 100 us of attention and 300 us of MLP, as much again in the backward of the MLP."""
    with program.module("Net"):
        for _ in range(4):
            with program.module(f"{LAYER} (Block)"):
                with program.module(f"{LAYER}.attention (Attention)"):
                    for name in ("query", "key"):
                        with program.module(f"{LAYER}.attention.{name} (Linear)"):
                            program.gemm(50 * US, 64)
                with program.module(f"{LAYER}.mlp (MLP)"):
                    for name in ("up", "down"):
                        with program.module(f"{LAYER}.mlp.{name} (Linear)"):
                            program.gemm(150 * US)
    with program.module(f"{LAYER}.mlp.up (Linear)", "backward"):
        program.gemm(1200 * US, 512)


def test_a_group_names_the_modules_that_take_most_of_it(tmp_path: Path) -> None:
    """Leaves where two of them are most of it, else the modules around them."""
    callers = named(recorded(tmp_path, block))["GEMM, BF16"]
    assert [each.name for each in callers] == ["layers.*.mlp.up", "layers.*.mlp.down"]
    up, down = callers
    assert up.module_class == down.module_class == "Linear"
    assert (up.share, up.forward, up.backward) == pytest.approx(
        (18 / 28, 6 / 28, 12 / 28), abs=1e-3
    )
    assert (down.share, down.forward, down.backward) == pytest.approx((6 / 28, 6 / 28, 0), abs=1e-3)
    assert caller_words(callers) == (
        "layers.*.mlp.up 64%, layers.*.mlp.down 21% (forward 50%, backward 50%)"
    )

    def wide(program: Program) -> None:
        with program.module("Net"):
            for part in ("attention", "mlp", "attention", "mlp"):
                for name in "abcd":
                    with program.module(f"{LAYER}.{part}.{name} (Linear)"):
                        program.gemm(100 * US)

    (both, other) = named(recorded(tmp_path, wide))["GEMM, BF16"]
    assert {both.name, other.name} == {"layers.*.attention", "layers.*.mlp"}
    assert both.share == other.share == pytest.approx(0.5)


def test_steps_are_found_as_without_ranges(tmp_path: Path) -> None:
    with_ranges = recorded(tmp_path, block)
    assert not len(with_ranges.ranges)
    assert len(with_ranges.modules)
    (process,) = read_application(with_ranges).processes
    (plain,) = read_application(recorded(tmp_path, block, named=False)).processes
    assert process.steps.basis == plain.steps.basis
    assert len(process.steps) >= STEPS - NAMED


def test_ranges_of_the_user_come_first(tmp_path: Path) -> None:
    def step(program: Program) -> None:
        with program.host.range("encode"), program.module("Net"):
            program.gemm(100 * US)
        with program.module("Net"):
            program.host.launch(GELU, 100 * US)

    groups = named(recorded(tmp_path, step))
    assert groups["GEMM, BF16"] == (Caller(name="encode", share=1.0),)
    assert groups["elementwise"][0].name == "Net"


def test_launches_outside_of_modules_have_their_share(tmp_path: Path) -> None:
    """Of the calls with ranges, not of all steps."""

    def step(program: Program) -> None:
        with program.module("Net"):
            program.gemm(100 * US)
        program.gemm(100 * US)
        with program.module("AdamW.step", "optimizer"):
            program.host.launch(GELU, 100 * US)

    groups = named(recorded(tmp_path, step))
    (net,) = groups["GEMM, BF16"]
    assert net.share == pytest.approx(0.5)
    assert caller_words((net,)) == "Net 50%"
    assert caller_words(groups["elementwise"]) == "AdamW.step"


def test_launches_of_an_autotuner_count_for_nothing(tmp_path: Path) -> None:
    def step(program: Program) -> None:
        for name in ("one", "two"):
            with program.module(f"Net.{name} (Conv2d)"):
                for _ in range(30 if not program.step and name == "one" else 1):
                    program.gemm(100 * US)

    one, two = named(recorded(tmp_path, step))["GEMM, BF16"]
    assert one.share == two.share == pytest.approx(0.5)


def test_a_configuration_that_no_call_with_ranges_had_is_of_its_kernels_modules(
    tmp_path: Path,
) -> None:
    def step(program: Program) -> None:
        with program.module("Net"):
            program.gemm(100 * US, 132 if program.step < NAMED + 2 else 264)

    (net,) = named(recorded(tmp_path, step))["GEMM, BF16"]
    assert net.name == "Net"
    assert net.share == pytest.approx(1)


def test_the_answer_names_modules_and_what_their_ranges_cost(tmp_path: Path) -> None:
    events = recorded(tmp_path, block)
    run = application("train", events, events, PicksFile(explain=0.9), None)
    result = answer(run)
    assert result.modules
    assert result.modules.ranges == 80
    assert result.modules.seconds == pytest.approx(240e-6)
    assert result.modules.share < 0.01
    schema("answer").validate(json.loads(encode(result, dense=False)))
    text = document_terminal(answer_document(result, run), to_file=True)
    assert "by 80 NVTX ranges of their first calls: 240.0 µs of host time" in text
    assert "layers.*.mlp.up 64%" in " ".join(text.split())
    plain = recorded(tmp_path, block, named=False)
    assert answer(application("x", plain, plain, PicksFile(explain=0.9), None)).modules is None


def test_kernels_of_a_cuda_graph_are_of_the_modules_that_were_captured(tmp_path: Path) -> None:
    program = Program()
    host = program.host
    for name, count in (("attention", 1), ("mlp", 3)):
        with program.module(f"{LAYER}.{name} (Linear)"):
            for _ in range(count):
                host.call("cudaLaunchKernel", US)
    for _ in range(STEPS):
        call, now = host.call("cudaGraphLaunch", US), host.now + 5 * US
        for node in range(4):
            start = now + node * 100 * US
            host.recording.kernel(GEMM, start, start + 100 * US, call, host.stream(), (64, 1, 1))
        host.free[7] = start + 100 * US
        host.synchronize()
    events = read(write_export(host.recording.events(), tmp_path / "timeline.sqlite"))
    captured = np.tile(np.arange(4, dtype=np.int32), STEPS)
    mlp, attention = named(replace(events, captures=captured))["GEMM, BF16"]
    assert (mlp.name, attention.name) == ("layers.*.mlp", "layers.*.attention")
    assert mlp.share == pytest.approx(0.75)
