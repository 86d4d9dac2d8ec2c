"""Steps in steady state: planted periods are found again, warm-up is left out."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profkit.application.application import read_application
from profkit.application.repetition import repetition
from profkit.application.steps import BasisKind, StepBasis, Steps, steady_steps
from profkit.application.view import application_document
from profkit.core.errors import UsageError
from profkit.ui.markdown import document_markdown
from tests.application.synthetic import DEVICE, MS, PINNED, US, Host, Recording, training


def only(steps: tuple[Steps, ...]) -> Steps:
    assert len(steps) == 1
    return steps[0]


def loop(step: Callable[[Host, int], None], steps: int, host: Host | None = None) -> Recording:
    host = Host(Recording()) if host is None else host
    for number in range(steps):
        step(host, number)
    return host.recording


def test_a_training_loop_has_its_steps() -> None:
    steps = only(steady_steps(training(steps=12)))
    assert len(steps) == 11  # the last has no next one
    assert str(steps.basis) == "repeating pattern of 32 launches"
    assert steps.before == 120  # of the autotuner
    assert np.diff(steps.bounds).tolist() == [1_100_000] * 11
    assert steps.typical.all()


def test_an_nvtx_range_is_the_step() -> None:
    events = training(steps=9, nvtx="step")
    found, named = only(steady_steps(events)), only(steady_steps(events, "step"))
    assert str(found.basis) == str(named.basis) == 'NVTX range "step"'
    assert len(found) == len(named) == 8
    assert found.bounds.tolist() == named.bounds.tolist()


def test_ranges_that_are_counted_are_instances_of_one() -> None:
    host = Host(Recording())
    for number in range(8):
        with host.range(f"ProfilerStep#{number}"):
            host.launch("a()", 50 * US)
            host.launch("b()", 20 * US)
    steps = only(steady_steps(host.recording.events()))
    assert str(steps.basis) == 'NVTX range "ProfilerStep##"' or len(steps) == 7


def test_a_range_of_exactly_the_name_is_the_step_rather_than_numbered_others() -> None:
    """Layers are numbered, and each is run several times: layer1 is not layer2."""

    def step(host: Host, _: int) -> None:
        for layer in (1, 2, 3):
            with host.range(f"layer{layer}"):
                host.launch(f"gemm{layer}()", layer * 100 * US)

    events = loop(step, 6).events()
    assert len(only(steady_steps(events, "layer1"))) == 5
    assert len(only(steady_steps(events, "layer#"))) > 5


def test_work_outside_of_the_range_is_no_secret() -> None:
    def step(host: Host, _: int) -> None:
        with host.range("forward"):
            host.launch("fwd()", 200 * US)
        host.launch("bwd()", 800 * US)

    events = loop(step, 8).events()
    steps = only(steady_steps(events, "forward"))
    assert steps.wall.tolist() == [MS] * 7
    assert steps.outside == pytest.approx(0.8)
    text = document_markdown(application_document(read_application(events, "forward"), "x.sqlite"))
    assert "80.0% of its GPU work is submitted outside of that range" in text


def test_a_range_within_one_of_its_name_is_no_step() -> None:
    def step(host: Host, _: int) -> None:
        with host.range("step"):
            host.launch("a()", 100 * US)
            with host.range("step"):
                host.launch("b()", 300 * US)
            host.launch("c()", 100 * US)

    steps = only(steady_steps(loop(step, 8).events(), "step"))
    assert steps.wall.tolist() == [500 * US] * 7
    assert steps.outside == 0


def test_a_step_is_not_twice_as_long_by_a_range_without_work() -> None:
    def step(host: Host, number: int) -> None:
        with host.range("step"):
            host.launch("a()", 100 * US) if number not in {4, 8} else host.compute(100 * US)
            host.synchronize()

    steps = only(steady_steps(loop(step, 12).events(), "step"))
    assert int((~steps.typical).sum()) == 2
    assert steps.wall.max() < 120 * US


def test_an_unknown_range_is_refused() -> None:
    with pytest.raises(UsageError, match="no GPU work in an NVTX range named epoch"):
        steady_steps(training(nvtx="step"), "epoch")


def test_a_loop_of_one_kernel_has_a_launch_a_step() -> None:
    recording = loop(lambda host, _: host.launch("k()", 20 * US) and None, 50)
    steps = only(steady_steps(recording.events()))
    assert str(steps.basis) == "repeating pattern of 1 launch"
    assert len(steps) == 49


def test_a_synchronization_ends_a_step() -> None:
    def step(host: Host, _: int) -> None:
        for _ in range(10):
            host.launch("k()", 20 * US)
        host.synchronize()

    steps = only(steady_steps(loop(step, 30).events()))
    assert str(steps.basis) == "repeating pattern of 10 launches"


def test_layers_are_no_steps() -> None:
    """A decode step: 24 equal layers, then a head and the copy of the token."""

    def step(host: Host, _: int) -> None:
        for _ in range(24):
            for name in ("norm()", "qkv()", "attention()", "mlp()"):
                host.launch(name, 5 * US)
        host.launch("head()", 9 * US)
        host.copy(2 * US, 8, source=DEVICE, target=PINNED)
        host.synchronize()

    steps = only(steady_steps(loop(step, 20).events()))
    assert str(steps.basis) == "repeating pattern of 98 launches"
    assert len(steps) == 19


def test_logging_and_evaluation_are_no_part_of_the_step() -> None:
    def step(host: Host, number: int) -> None:
        host.copy(10 * US, 1 << 20)
        for name in "abcdefgh":
            host.launch(f"{name}()", 20 * US)
        if number % 10 == 9:
            for _ in range(30):
                host.launch("evaluate()", 15 * US)

    steps = only(steady_steps(loop(step, 40).events()))
    assert str(steps.basis) == "repeating pattern of 9 launches"
    assert len(steps) == 39
    assert int((~steps.typical).sum()) == 3  # the last evaluation is after the last step


def test_micro_batches_are_no_steps() -> None:
    def step(host: Host, _: int) -> None:
        for _ in range(4):
            host.copy(10 * US, 1 << 20)
            for name in "abcdef":
                host.launch(f"{name}()", 20 * US)
        host.launch("multi_tensor_apply_kernel<FusedAdamMathFunctor>()", 30 * US)

    steps = only(steady_steps(loop(step, 20).events()))
    assert str(steps.basis) == "repeating pattern of 29 launches"


@pytest.mark.parametrize("nvtx", [None, "part"])
def test_copies_that_run_ahead_of_all_kernels_are_no_bounds(nvtx: str | None) -> None:
    """The next batches are copied on a stream of their own, while kernels of earlier work run."""

    def step(host: Host, _: int) -> None:
        with host.range("part"):
            host.copy(10 * US, 1 << 20, source=PINNED, stream=9)
            for name in "abcdef":
                host.launch(f"{name}()", 1 * MS)

    host = Host(Recording())
    host.launch("earlier()", 100 * MS)
    steps = only(steady_steps(loop(step, 12, host).events(), nvtx))
    assert len(steps) == 11
    assert steps.wall.tolist() == [6 * MS] * 11


def test_slow_first_steps_are_warm_up() -> None:
    def step(host: Host, number: int) -> None:
        if number < 3:
            host.call("cuModuleLoadData", 5 * MS)
        for name in "abcd":
            host.launch(f"{name}()", 20 * US)
        host.synchronize()

    steps = only(steady_steps(loop(step, 20).events()))
    assert steps.before >= 8
    assert np.diff(steps.bounds).max() < 1 * MS


def test_graphs_traced_as_a_whole_are_work() -> None:
    def step(host: Host, _: int) -> None:
        host.copy(5 * US, 4096)
        host.launch_graph(1, 300 * US)
        host.launch("sample()", 10 * US)
        host.synchronize()

    steps = only(steady_steps(loop(step, 20).events()))
    assert str(steps.basis) == "repeating pattern of 3 launches"
    assert len(steps) == 19


def test_kernels_of_a_graph_may_run_in_any_order() -> None:
    recording = Recording()
    stream, thread = recording.stream(), recording.thread()
    random_ = random.Random(3)
    for step in range(15):
        now = step * MS
        call = recording.call("cudaGraphLaunch", now, now + 10 * US, thread)
        names = [f"{letter}()" for letter in "abcdefgh"]
        random_.shuffle(names)
        for place, name in enumerate(names):
            start = now + (20 + 20 * place) * US
            recording.kernel(name, start, start + 15 * US, call, stream, graph_node=place + 1)
    steps = only(steady_steps(recording.events()))
    assert len(steps) == 14
    assert np.diff(steps.bounds).tolist() == [MS] * 14


def test_a_program_without_repetition_is_one_step() -> None:
    host = Host(Recording(), now=MS)
    for number in range(40):
        host.launch(f"kernel_{number}()", 10 * US, grid=(number + 1, 1, 1))
    steps = only(steady_steps(host.recording.events()))
    assert len(steps) == 1
    assert "no repetition" in str(steps.basis)


def test_each_process_has_its_steps() -> None:
    recording = Recording()
    for rank in range(2):
        host = Host(recording, process=rank + 1, device=rank, now=rank * MS)
        for _ in range(10):
            host.launch("a()", 50 * US)
            host.launch("b()", (20 + 10 * rank) * US)
            host.synchronize()
    first, second = steady_steps(recording.events())
    assert (first.process, first.device, second.process, second.device) == (1, 0, 2, 1)
    assert len(first) == len(second) == 9


@given(
    seed=st.integers(0, 10**6),
    period=st.integers(6, 40),
    steps=st.integers(12, 40),
    symbols=st.integers(8, 40),
    warm_up=st.integers(0, 100),
    noise=st.floats(0, 0.03),
)
def test_a_planted_period_is_found(
    seed: int, period: int, steps: int, symbols: int, warm_up: int, noise: float
) -> None:
    """A random pattern, in which launches are missing or added at random."""
    source = random.Random(seed)
    pattern = [source.randrange(symbols) for _ in range(period)]
    pattern[0] = symbols  # a copy of the next batch: nothing else in the step is like it
    sequence = [source.randrange(symbols + 20) for _ in range(warm_up)]
    for _ in range(steps):
        for symbol in pattern:
            if symbol != symbols and source.random() < noise:
                sequence += [] if source.random() < 0.5 else [symbol, source.randrange(symbols)]
            else:
                sequence.append(symbol)
    rank = np.zeros(symbols + 21, dtype=np.int8)
    rank[symbols] = 1
    found = repetition(np.array(sequence, dtype=np.int32), rank)
    assert found is not None
    assert abs(found.period - period) <= max(1, 0.1 * period)
    lengths = np.diff(found.marks)[found.alike]
    assert len(lengths) >= 0.7 * (steps - 1)
    assert np.median(lengths) == pytest.approx(period, abs=max(1, 0.1 * period))


def test_a_range_is_a_field_of_the_basis_whatever_its_name() -> None:
    host = Host(Recording())
    for _ in range(8):
        with host.range('step "no repetition"'):
            host.launch("a()", 50 * US)
            host.launch("b()", 20 * US)
    application = read_application(host.recording.events())
    (process,) = application.processes
    assert process.steps.basis == StepBasis(BasisKind.range, range='step "no repetition"')
    text = document_markdown(application_document(application, "x.sqlite"))
    assert """profkit profile --app --nvtx 'step "no repetition"' -- PROGRAM""" in text
    assert "no step was found" not in text


def loop_of_one_kernel(host: Host, _: int) -> None:
    for _ in range(50):
        host.launch("k()", 20 * US)


def test_pauses_of_the_host_separate_steps_of_equal_launches() -> None:
    def step(host: Host, number: int) -> None:
        loop_of_one_kernel(host, number)
        host.synchronize()
        host.compute(2 * MS)

    steps = only(steady_steps(loop(step, 8).events()))
    assert str(steps.basis) == "repeating pattern of 50 launches"
    assert np.median(np.diff(steps.bounds)) == pytest.approx(50 * 20 * US + 2 * MS, rel=0.02)


def test_allocation_between_equal_launches_separates_steps() -> None:
    def step(host: Host, _: int) -> None:
        host.call("cudaMalloc", 800 * US)
        for _ in range(4):
            host.launch("k()", 100 * US)
            host.synchronize()

    steps = only(steady_steps(loop(step, 9).events()))
    assert str(steps.basis) == "repeating pattern of 4 launches"


def test_short_pauses_for_logging_separate_no_steps() -> None:
    def step(host: Host, number: int) -> None:
        host.launch("k()", 1 * MS)
        host.synchronize()
        if number % 10 == 9:
            host.compute(300 * US)

    steps = only(steady_steps(loop(step, 60).events()))
    assert str(steps.basis) == "repeating pattern of 1 launch"


def test_irregular_pauses_separate_no_steps() -> None:
    source = random.Random(1)

    def step(host: Host, _: int) -> None:
        for _ in range(source.randrange(3, 90)):
            host.launch("k()", 20 * US)
        host.synchronize()
        host.compute(2 * MS)

    steps = only(steady_steps(loop(step, 12).events()))
    assert steps.basis.launches == 1


def test_pauses_within_a_whole_step_are_no_steps() -> None:
    """Every fourth batch is decoded longer: a step is a batch still."""

    def step(host: Host, number: int) -> None:
        host.compute(3 * MS if number % 4 == 3 else 0)
        host.copy(10 * US, 1 << 20)
        for name in "abcdefgh":
            host.launch(f"{name}()", 20 * US)

    steps = only(steady_steps(loop(step, 40).events()))
    assert str(steps.basis) == "repeating pattern of 9 launches"


def test_a_loop_that_nothing_separates_asks_for_a_range() -> None:
    application = read_application(loop(loop_of_one_kernel, 8).events())
    assert application.processes[0].steps.basis.launches == 1
    text = document_markdown(application_document(application, "x.sqlite"))
    assert "a repetition of 1 launch may be a part of a step, or several" in text
    assert "20.00 µs per repetition" in text


def of_sizes(host: Host, number: int) -> None:
    """A batch of one of four sizes, by which kernels are launched with other grids."""
    size = 10 + 7 * (number % 4)
    host.copy(10 * US, size << 20)
    for layer in range(6):
        for name in ("norm()", "qkv()", "attention()", "mlp()"):
            host.launch(name, size * US, grid=(size * (layer % 2 + 1), 1, 1))
    host.copy(2 * US, 8 * size, source=DEVICE)
    host.synchronize()


def test_sizes_of_data_that_recur_do_not_make_a_step_of_several() -> None:
    steps = only(steady_steps(loop(of_sizes, 32).events()))
    assert str(steps.basis) == "repeating pattern of 26 launches"
    assert len(steps) >= 30


def test_sizes_of_data_that_never_recur_do_not_hide_steps() -> None:
    def step(host: Host, number: int) -> None:
        host.copy(10 * US, 1 << 20)
        for _ in range(3):
            host.launch("k()", 20 * US, grid=(40, 1, 1))
        for name in "abcdefgh":
            host.launch(f"{name}()", 20 * US, grid=(number + 1, 1, 1))
        host.copy(2 * US, 8, source=DEVICE)

    steps = only(steady_steps(loop(step, 24).events()))
    assert str(steps.basis) == "repeating pattern of 13 launches"
    assert len(steps) >= 20


def test_a_cycle_over_grids_is_a_repetition_of_its_own() -> None:
    """Levels of a multigrid solver: the same kernels, of other sizes."""

    def step(host: Host, _: int) -> None:
        for level in range(5):
            for name in ("smooth()", "residual()", "restrict()"):
                host.launch(name, 20 * US, grid=(256 >> level, 1, 1))

    steps = only(steady_steps(loop(step, 24).events()))
    assert str(steps.basis) == "repeating pattern of 15 launches"


def test_only_a_range_or_an_optimizer_says_that_a_repetition_is_a_step() -> None:
    assert only(steady_steps(training(nvtx="step"))).basis.unit == "step"

    def substeps(host: Host, number: int) -> None:
        for _ in range(20):
            for name in ("force()", "drift()", "kick()"):
                host.launch(name, 5 * US)
        if number < 3:
            host.copy(2 * US, 8, source=DEVICE)

    steps = only(steady_steps(loop(substeps, 12).events()))
    assert (steps.basis.launches, steps.basis.unit) == (3, "repetition")

    def updating(host: Host, number: int) -> None:
        substeps(host, number)
        host.launch("multi_tensor_apply_kernel<FusedAdamMathFunctor>()", 30 * US)

    assert only(steady_steps(loop(updating, 12).events())).basis.unit == "step"


def test_three_equal_steps_are_longer_than_their_layers() -> None:
    def step(host: Host, _: int) -> None:
        for _ in range(12):
            for name in ("norm()", "qkv()", "attention()", "mlp()"):
                host.launch(name, 5 * US)
        for name in ("norm()", "head()", "sample()"):
            host.launch(name, 9 * US)

    steps = only(steady_steps(loop(step, 4).events()))
    assert str(steps.basis) == "repeating pattern of 51 launches"


@pytest.mark.parametrize("tokens", [5, 8, 30])
def test_few_replays_of_graphs_after_a_long_start_are_steps(tokens: int) -> None:
    """As of a decode loop: its prompt, and what makes the graph, are launched kernel by kernel."""
    host = Host(Recording(), now=MS)
    for number in range(900):
        host.launch(f"layer_{number * number % 37}(float*)", 5 * US)
    host.synchronize()
    for _ in range(tokens):
        host.compute(30 * US)
        host.copy(2 * US, 8, source="pinned")
        host.launch_graph(1, 300 * US)
        host.launch("argmax(float*)", 5 * US)
        host.copy(2 * US, 8, source="device", target="pinned")
        host.synchronize()
    (steps,) = steady_steps(host.recording.events())
    assert tokens - 2 <= len(steps) <= tokens
    assert steps.median == pytest.approx(346e-6, rel=0.05)


ADAM = "multi_tensor_apply_kernel<AdamFunctor>(T)"


def in_ranges(*kernels: tuple[int, int], turns: int) -> Steps:
    """Steps of so many ranges each, of which the last has an optimizer; the host waits at the end
    of each."""
    host = Host(Recording())
    for number in range(4 * turns):
        with host.range("step"):
            for count, time in kernels:
                for _ in range(count):
                    host.launch("gemm(float*)", time * US)
            if number % turns == turns - 1:
                for _ in range(30):
                    host.launch(ADAM, 20 * US)
            host.synchronize()
    return only(steady_steps(host.recording.events(), "step"))


@pytest.mark.parametrize("turns", [2, 4])
def test_ranges_that_accumulate_gradients_are_one_step(turns: int) -> None:
    steps = in_ranges((8, 50), turns=turns)
    assert len(steps) == 3
    assert steps.typical.all()
    assert str(steps.basis) == f'NVTX range "step", {turns} to a step'
    assert steps.median == pytest.approx((turns * 8 * 50 + 30 * 20) * 1e-6, rel=0.2)


def test_ranges_with_an_evaluation_are_steps_by_themselves() -> None:
    host = Host(Recording())
    for number in range(12):
        with host.range("step"):
            host.launch("gemm(float*)", 100 * US)
            host.launch(ADAM, 20 * US)
            for _ in range(12 * (number % 4 == 3)):
                host.launch("evaluate(float*)", 50 * US)
    steps = only(steady_steps(host.recording.events(), "step"))
    assert steps.basis.ranges == 1
    assert int((~steps.typical).sum()) == 2  # of three, the last has no next one


def test_a_single_range_has_what_its_host_does() -> None:
    """Of a range that a program waits in, not from its first kernel to its last."""
    host = Host(Recording())
    with host.range("step"):
        host.compute(80_000 * US)
        for _ in range(10):
            host.launch("gemm(float*)", 50 * US)
        host.synchronize()
    steps = only(steady_steps(host.recording.events(), "step"))
    assert steps.median == pytest.approx(80.55e-3, rel=0.01)


def test_a_first_step_of_less_work_is_complete() -> None:
    host = Host(Recording())
    for number in range(8):
        with host.range("step"):
            for _ in range(14 if number else 9):
                host.launch("gemm(float*)", 50 * US)
            host.synchronize()
    assert only(steady_steps(host.recording.events(), "step")).why == ""
