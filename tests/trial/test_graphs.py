"""Steps of optimizers as graphs: the parameters are those of the program as it is."""

import copy
import gc
import random
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.utils._pytree import tree_map  # noqa: E402

from profkit.trial.child.record import Record  # noqa: E402
from profkit.trial.switch import all_switches  # noqa: E402
from profkit.trial.switches import graphs  # noqa: E402
from tests.trial.graph_stand_in import (  # noqa: E402
    StandInGraph,
    captured,
    set_sync_debug_mode,
)

Optimizer = Callable[[Any], Any]
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Step(NamedTuple):
    number: int
    net: Any
    optimizer: Any


KINDS: dict[str, Optimizer] = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.01, foreach=True),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1, foreach=True),
    "groups": lambda p: torch.optim.AdamW(
        [{"params": p[:2], "lr": 0.02}, {"params": p[2:], "weight_decay": 0.0}], foreach=True
    ),
}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Graphs that were made while the switch is on: those of a GPU, where there is one."""
    made: list[Any] = []
    kind: Any = StandInGraph

    def graph() -> Any:
        made.append(kind())
        return made[-1]

    if DEVICE == "cuda":
        kind = _counted(torch.cuda.CUDAGraph)
    else:
        monkeypatch.setattr(graphs, "_DEVICE", "cpu")
        monkeypatch.setattr(torch.cuda, "graph", captured)
        monkeypatch.setattr(torch.cuda, "current_device", lambda: None)
        monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
        monkeypatch.setattr(sys.modules["torch.cuda.graphs"], "graph_pool_handle", lambda: None)
        monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: 0)
        monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", set_sync_debug_mode)
        monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
        monkeypatch.setattr(torch.cuda, "get_rng_state", torch.get_rng_state)
        monkeypatch.setattr(torch.cuda, "set_rng_state", torch.set_rng_state)
        stream = SimpleNamespace(wait_stream=id)
        monkeypatch.setattr(torch.cuda, "Stream", lambda: stream)
        monkeypatch.setattr(torch.cuda, "current_stream", lambda: stream)
        monkeypatch.setattr(torch.cuda, "stream", nullcontext)
        adam = sys.modules["torch.optim.adam"]
        monkeypatch.setattr(adam, "_get_capturable_supported_devices", lambda **_: ["cpu"])
    monkeypatch.setattr(torch.cuda, "CUDAGraph", graph)
    for kind_of_optimizer in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
        kind_of_optimizer([torch.ones(1, requires_grad=True)])  # which puts hooks around `step`
        monkeypatch.setattr(kind_of_optimizer, "step", kind_of_optimizer.step)
    monkeypatch.delattr(torch.optim.AdamW, "step")
    return made


def _counted(graph: Any) -> Any:
    class Counted(graph):  # type: ignore[misc]
        replays = 0

        def replay(self) -> None:
            self.replays += 1
            super().replay()

    return Counted


def switched_on(*features: str) -> SimpleNamespace:
    """The program, as the switch has changed it."""
    program = SimpleNamespace(
        torch=torch, wrappers=[], on_step=[], has_applied=[], is_inside=lambda: False,
        is_inference=lambda _: False, copied=lambda output: tree_map(torch.clone, output),
        record=SimpleNamespace(
            Watch=Record.Watch, state=Record.state, difference=Record.difference,
            is_own=Record.is_own, random_numbers=Record.random_numbers, finishing=[],
            facts={}, plan={"features": features},
        ),
    )  # fmt: skip
    program.applied = program.has_applied.append
    graphs.cuda_graph(program)
    return program


def trained(
    kind: Optimizer,
    each: Callable[[Step], object] = id,
    *,
    set_to_none: bool = True,
    scheduler: Callable[[Any], Any] | None = None,
) -> list[Any]:
    """The parameters after each of 12 steps."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).to(
        DEVICE, torch.float64
    )
    optimizer = kind(list(net.parameters()))
    rates = scheduler(optimizer) if scheduler else None
    steps = []
    for step in range(12):
        optimizer.zero_grad(set_to_none)
        net(torch.randn(16, 4).to(DEVICE, torch.float64)).square().mean().backward()
        each(Step(step, net, optimizer))
        optimizer.step()
        if rates:
            rates.step()
        steps.append(torch.cat([p.detach().reshape(-1).clone() for p in net.parameters()]))
    return steps


def assert_same(ours: list[Any], theirs: list[Any]) -> None:
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("set_to_none", [True, False])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_parameters_are_as_without_graphs(
    made: list[Any], kind: Optimizer, set_to_none: bool
) -> None:
    without = trained(kind, set_to_none=set_to_none)
    program = switched_on()
    assert_same(trained(kind, set_to_none=set_to_none), without)
    assert program.has_applied == ["cuda-graph"]
    kinds = {"update": "", "switched": type(kind([torch.ones(1, requires_grad=True)])).__name__}
    assert program.record.facts == kinds  # its module is called as it is
    assert [graph.replays for graph in made] == [9]


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_schedule_of_each_step_is_followed(kind: Optimizer) -> None:
    def halved(optimizer: Any) -> Any:
        return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))

    without = trained(kind, scheduler=halved)
    switched_on()
    assert_same(trained(kind, scheduler=halved), without)


@pytest.mark.usefixtures("made")
def test_a_whole_rate_may_become_a_fraction() -> None:
    def scheduler(optimizer: Any) -> Any:
        return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.01 * (step < 8) or 0)

    def kind(parameters: Any) -> Any:
        return torch.optim.Adam(parameters, lr=1, foreach=True)

    def whole(step: Step) -> None:
        if step.number < 5:
            step.optimizer.param_groups[0]["lr"] = 0

    without = trained(kind, whole, scheduler=scheduler)
    switched_on()
    assert_same(trained(kind, whole, scheduler=scheduler), without)


def test_rates_stay_numbers_for_the_program(made: list[Any]) -> None:
    seen = []
    switched_on()
    trained(KINDS["AdamW"], lambda step: seen.append(step.optimizer.param_groups[0]["lr"]))
    assert seen == [0.01] * 12
    assert made[0].replays == 9


def _changed(step: Step) -> None:
    if step.number == 6:
        step.optimizer.param_groups[0]["weight_decay"] = 0.5
    if step.number == 9:
        step.optimizer.load_state_dict(step.optimizer.state_dict())


def _restored(step: Step) -> None:
    if step.number == 7:
        for _ in range(2):
            step.optimizer.load_state_dict(copy.deepcopy(step.optimizer.state_dict()))


def _reassigned(step: Step) -> None:
    for parameter in step.net.parameters():
        parameter.grad.data = parameter.grad.data * 0.5


def _frozen(step: Step) -> None:
    if step.number % 5 == 4:
        step.net[0].weight.grad = None


def _clipped(step: Step) -> None:
    torch.nn.utils.clip_grad_norm_(step.net.parameters(), 0.1)


def _replaced(step: Step) -> None:
    if step.number == 7:
        step.net[0].weight.data = step.net[0].weight.data.clone() + 1


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize("set_to_none", [True, False])
@pytest.mark.parametrize("each", [_changed, _restored, _reassigned, _frozen, _clipped, _replaced])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_what_changes_between_steps_is_seen(
    kind: Optimizer, each: Callable[[Step], object], set_to_none: bool
) -> None:
    without = trained(kind, each, set_to_none=set_to_none)
    switched_on()
    assert_same(trained(kind, each, set_to_none=set_to_none), without)


def test_what_cannot_be_captured_stays_as_it_is(made: list[Any]) -> None:
    def adam(parameters: Any) -> Any:
        return torch.optim.Adam(parameters, lr=torch.tensor(0.01))

    without = trained(adam)
    applied = switched_on().has_applied
    assert_same(trained(adam), without)
    assert not applied
    assert not made


def test_what_changes_in_each_step_is_left_as_it_is(made: list[Any]) -> None:
    def decayed(step: Step) -> None:
        step.optimizer.param_groups[0]["weight_decay"] = 0.01 * step.number
        assert not step.optimizer.param_groups[0]["capturable"]

    switched_on()
    trained(KINDS["AdamW"], decayed)
    assert not made


@pytest.mark.parametrize("place", ["current_device", "is_initialized"])
def test_graphs_are_of_one_device_and_one_process(
    made: list[Any], monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    owner = torch.cuda if place == "current_device" else torch.distributed
    monkeypatch.setattr(owner, place, lambda: 7)
    program, net = switched_on(), torch.nn.Linear(4, 1).to(DEVICE)
    assert program.wrappers[0](net, net._call_impl) == net._call_impl
    if place == "current_device":
        trained(KINDS["AdamW"])
    assert not made


@pytest.mark.usefixtures("made")
def test_a_backward_pass_of_what_is_overwritten_fails() -> None:
    program, net = switched_on(), torch.nn.Linear(4, 1).to(DEVICE)
    call = program.wrappers[0](net, net._call_impl)
    loss = call(torch.ones(2, 4, device=DEVICE)).mean()
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="overwritten"):
        loss.backward()
    older = call(torch.ones(2, 4, device=DEVICE)).mean()
    for function in program.on_step:
        function()
    call(torch.ones(2, 4, device=DEVICE)).mean().backward()
    with pytest.raises(RuntimeError, match="overwritten"):
        older.backward()


@pytest.mark.usefixtures("made")
def test_autocast_casts_in_each_replay() -> None:
    net = torch.nn.Linear(4, 1).to(DEVICE).eval()
    call = switched_on().wrappers[0](net, net._call_impl)
    data = torch.ones(2, 4, device=DEVICE)
    for _ in range(3):
        with torch.no_grad(), torch.autocast(DEVICE, torch.bfloat16):
            output, without = call(data), net(data)
        assert torch.equal(output, without)
        with torch.no_grad():
            net.weight += 1


def test_states_that_autocast_returns_are_inputs_of_the_same_graph(
    made: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Cell(torch.nn.Linear):  # type: ignore[misc, name-defined]
        def forward(self, data: Any, state: Any) -> Any:
            output = super().forward(data + state)
            return output, output

    asked = torch.is_autocast_enabled
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda kind=DEVICE: asked(kind))
    cell, data = Cell(4, 4).to(DEVICE).eval(), torch.randn(2, 4, device=DEVICE)
    call = switched_on().wrappers[0](cell, cell._call_impl)
    state = without = torch.zeros(2, 4, device=DEVICE)
    for _ in range(4):
        with torch.no_grad(), torch.autocast(DEVICE, torch.bfloat16):
            state, without = call(data, state)[1], cell(data, without)[1]
        assert state.dtype == torch.bfloat16
        assert torch.equal(state, without)
    assert len(made) == 1
    assert made[0].replays == 4


@pytest.mark.filterwarnings("ignore")  # torch's own
def test_steps_in_compiled_code_are_left_to_the_compiler(made: list[Any]) -> None:
    callback = torch._C._dynamo.eval_frame.get_eval_frame_callback
    switched_on().is_inside = lambda: torch.compiler.is_compiling() or callback() is not None
    compiled = torch.compile(trained, backend="eager")
    assert_same(compiled(KINDS["AdamW"]), trained(KINDS["AdamW"]))
    assert len(made) == 1


def _plain(net: Any, optimizer: Any, data: Any) -> None:
    optimizer.zero_grad()
    net(data[0]).square().mean().backward()
    optimizer.step()


def _zeroed_late(net: Any, optimizer: Any, data: Any) -> None:
    loss = net(data[0]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def _zeroed_in_place(net: Any, optimizer: Any, data: Any) -> None:
    optimizer.zero_grad(set_to_none=False)
    net(data[0]).square().mean().backward()
    optimizer.step()


def _accumulated(net: Any, optimizer: Any, data: Any) -> None:
    for batch in data:
        net(batch).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


def _closed(net: Any, optimizer: Any, data: Any) -> None:
    def closure() -> Any:
        optimizer.zero_grad()
        loss = net(data[0]).square().mean()
        loss.backward()
        return loss

    assert optimizer.step(closure) > 0


def _twice(net: Any, optimizer: Any, data: Any) -> None:
    optimizer.zero_grad()
    (net(data[0]).square() * net(data[1])).mean().backward()
    optimizer.step()


def _logged(net: Any, optimizer: Any, data: Any) -> None:
    net(data[1])  # without a backward pass
    _plain(net, optimizer, data)


def _normed(net: Any, optimizer: Any, data: Any) -> None:
    optimizer.zero_grad()
    net(data[0]).square().mean().backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 0.1)
    optimizer.step()


def _adversarial(net: Any, optimizer: Any, data: Any) -> None:
    optimizer.zero_grad()
    for batch in data:
        net(batch).square().mean().backward()
    optimizer.step()
    made = data[1].clone().requires_grad_()  # whose gradient a generator would have
    net(made).square().mean().backward()
    assert made.grad is not None


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize(
    "step",
    [
        _plain, _zeroed_late, _zeroed_in_place, _accumulated, _closed, _twice, _logged, _normed,
        _adversarial,
    ],
)  # fmt: skip
def test_modules_train_as_without_graphs(step: Callable[[Any, Any, Any], None]) -> None:
    def results(*, is_graphed: bool) -> list[Any]:
        torch.manual_seed(0)
        module = torch.nn.Sequential(
            torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1)
        ).to(DEVICE, torch.float64)
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        if is_graphed:
            graphed = program.wrappers[0](module, module._call_impl)
            module._compiled_call_impl = graphed
        steps = []
        for _ in range(8):
            step(module, optimizer, torch.randn(2, 16, 4).to(DEVICE, torch.float64))
            for function in program.on_step if is_graphed else ():
                function()
            steps.append(torch.cat([p.detach().reshape(-1).clone() for p in module.parameters()]))
        return [*steps, *module.buffers()]

    without = results(is_graphed=False)
    program = switched_on()
    assert_same(results(is_graphed=True), without)
    assert "cuda-graph" in program.has_applied


@pytest.mark.parametrize("set_to_none", [True, False], ids=["with the model", "steps alone"])
def test_what_is_told_to_be_kept_trains_as_without_graphs(
    made: list[Any], monkeypatch: pytest.MonkeyPatch, set_to_none: bool
) -> None:
    if DEVICE == "cpu":
        mode = partial(captured, capture_error_mode="thread_local")
        monkeypatch.setattr(torch.cuda, "graph", mode)
    keep = next(switch for switch in all_switches() if switch.name == "cuda-graph").keep
    keep = keep.replace("...)", "lr=0.01)").replace("...", "lr=0.01, foreach=True")
    lines = [line for line in keep.splitlines() if set_to_none or "{module}" not in line]
    keep = "\n".join(lines).replace("{module}", "").replace("{update}", "")
    before, with_graph, capture = keep.replace("{optimizer}", "AdamW").partition("with torch")

    def results(*, is_kept: bool) -> list[Any]:
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
        own = {"torch": torch, "model": model.to(DEVICE)}
        own |= {"sample_input": torch.ones(16, 4, device=DEVICE)}
        plain = next(line for line in before.splitlines() if line.startswith("optimizer"))
        exec(before if is_kept else plain, own)
        steps = []
        for step in range(8):
            own["optimizer"].zero_grad(set_to_none)
            own["model"](torch.randn(16, 4).to(DEVICE)).square().mean().backward()
            if step < 3 or not is_kept:
                own["optimizer"].step()
            else:
                exec(with_graph + capture if step == 3 else "", own)
                own["graph"].replay()
            steps.append(torch.cat([p.detach().flatten().clone() for p in model.parameters()]))
        return steps

    assert_same(results(is_kept=True), results(is_kept=False))
    assert made[-1].replays == 5


@pytest.mark.usefixtures("made")
def test_a_module_that_reads_from_the_device_is_called_as_it_is() -> None:
    class Reading(torch.nn.Linear):  # type: ignore[misc, name-defined]
        def forward(self, data: Any) -> Any:
            return super().forward(data) * float(data.sum())

    program, net = switched_on(), Reading(4, 1).to(DEVICE)
    call = program.wrappers[0](net, net._call_impl)
    for number in range(3):
        data = torch.full((2, 4), float(number), device=DEVICE)
        assert torch.equal(call(data), net(data))
    assert not program.has_applied


@pytest.mark.usefixtures("made")
def test_a_module_that_reads_nothing_in_a_capture_gets_a_graph() -> None:
    class Masked(torch.nn.Linear):  # type: ignore[misc, name-defined]
        def forward(self, data: Any) -> Any:
            if not torch.cuda.is_current_stream_capturing() and bool((data > 0).all()):
                return super().forward(data)  # as there is nothing to mask
            return super().forward(data * (data > 0))

    program, net = switched_on(), Masked(4, 1).to(DEVICE)
    call = program.wrappers[0](net, net._call_impl)
    for number in (1.0, -1.0, 2.0):
        data = torch.tensor([[number, 1.0, 2.0, 3.0]], device=DEVICE)
        torch.testing.assert_close(call(data), net(data))
        program.on_step[-1]()
    assert program.has_applied == ["cuda-graph"]
    assert program.record.facts == {"module": ""}
    assert not torch.cuda.is_current_stream_capturing()


class Options:
    def __init__(self) -> None:
        self.scale = 1.0


class Scaled(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Reads and writes what no graph knows of."""

    def __init__(self, draw: Callable[[], float] = lambda: 1.0) -> None:
        super().__init__()
        self.inner, self.draw = torch.nn.Linear(4, 1), draw
        self.options, self.rate, self.calls = Options(), 1.0, 0
        self.kept: Any = None

    def forward(self, data: Any) -> Any:
        return self.inner(data) * self.options.scale * self.rate * self.draw()


class Counting(Scaled):
    def forward(self, data: Any) -> Any:
        self.calls += 1
        return super().forward(data)


class Waiting(Counting):
    def forward(self, data: Any) -> Any:
        return super().forward(data) * float(data.sum())


class Keeping(Scaled):
    def forward(self, data: Any) -> Any:
        self.kept = super().forward(data)
        return self.kept.clone()


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (Counting, "calls"), (Waiting, "calls"), (Keeping, "kept"),
        (partial(Scaled, random.random), "random numbers"),
        (partial(Scaled, np.random.rand), "random numbers"),
    ],
)  # fmt: skip
def test_a_module_that_changes_what_it_has_is_not_for_a_graph(kind: Any, name: str) -> None:
    program, net = switched_on(), kind().to(DEVICE)
    call = program.wrappers[0](net, net._call_impl)
    with pytest.raises(RuntimeError, match=f"changes {name} when called"):
        call(torch.ones(2, 4, device=DEVICE))


@pytest.mark.usefixtures("made")
def test_hooks_that_keep_activations_are_not_for_a_graph() -> None:
    program, net, kept = switched_on(), torch.nn.Linear(4, 1).to(DEVICE), dict[str, Any]()
    net.register_forward_hook(lambda *call: kept.update(last=call[-1]))
    call = program.wrappers[0](net, net._call_impl)
    with pytest.raises(RuntimeError, match=r"Linear changes .* when called"):
        call(torch.ones(2, 4, device=DEVICE))


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize("name", ["rate", "scale"])
@pytest.mark.parametrize("calls", [1, 500])
def test_what_a_graph_holds_as_a_constant_may_not_change(name: str, calls: int) -> None:
    """Where there was no time for a look, at the end."""
    program, net = switched_on(), Scaled().to(DEVICE)
    net.eval()
    call = program.wrappers[0](net, net._call_impl)

    def failure(count: int) -> str:
        try:
            for _ in range(count):
                call(torch.ones(2, 4, device=DEVICE))
            program.record.finishing[-1]()
        except RuntimeError as changed:
            return f"RuntimeError: {changed}"
        return ""

    with torch.no_grad():
        assert failure(calls) == ""
        assert "cuda-graph" in program.has_applied
        setattr(net if name == "rate" else net.options, name, 0.5)
        assert f"RuntimeError: Scaled reads {name}, which has changed: a graph keeps it" in failure(
            1
        )


@dataclass
class Output:
    logits: Any


class Returning(Scaled):
    def forward(self, data: Any) -> Any:
        return Output(super().forward(data))


class Writing(Scaled):
    def forward(self, data: Any) -> Any:
        return super().forward(data.mul_(2))


class Dynamic(Scaled):
    def forward(self, data: Any) -> Any:
        return self.inner(data) + self.inner.bias


class Heads(torch.nn.Module):  # type: ignore[misc, name-defined]
    """One head is made in the first call."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(4, 1)
        self.second: Any = None

    def forward(self, data: Any) -> Any:
        if self.second is None:
            self.second = torch.nn.Linear(4, 1, device=data.device)
        return self.first(data), self.second(data)


@pytest.mark.usefixtures("made")
def test_gradients_of_a_part_that_comes_in_the_first_call_add_up() -> None:
    _, call = graphed(Heads())
    grown: list[Any] = []
    for _ in range(3):
        first, second = call(torch.ones(2, 4, device=DEVICE))
        (first + second).sum().backward()
        grown.append(call.module.second.weight.grad.clone())
    assert [float(grad.sum()) for grad in grown] == [8.0, 16.0, 24.0]


@pytest.mark.usefixtures("made")
def test_what_a_loss_leaves_out_has_no_gradients() -> None:
    program, call = graphed(Heads())
    for used in (0, 1, 0):
        call(torch.ones(2, 4, device=DEVICE))[used].sum().backward()
        program.on_step[-1]()
        heads = call.module.first, call.module.second
        has_gradients = [any(p.grad is not None for p in head.parameters()) for head in heads]
        assert has_gradients == [used == 0, used == 1]
        assert heads[used].weight.grad.sum() == 8.0
        call.module.zero_grad()
    assert "cuda-graph" in program.has_applied


class Averaged(torch.nn.Linear):  # type: ignore[misc, name-defined]
    def forward(self, data: Any) -> Any:
        self.weight.data = self.weight.data * 0.9
        return super().forward(data)


@pytest.mark.usefixtures("made")
def test_a_module_that_writes_parameters_is_refused() -> None:
    _, call = graphed(Averaged(4, 3))
    with pytest.raises(RuntimeError, match="Averaged changes a parameter when called"):
        call(torch.ones(2, 4, device=DEVICE))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.usefixtures("made")
def test_a_scripted_module_is_captured() -> None:
    program, call = graphed(torch.jit.script(torch.nn.Sequential(torch.nn.Linear(4, 3))).eval())
    with torch.no_grad():
        for _ in range(3):
            output = call(torch.ones(2, 4, device=DEVICE))
        expected = call.module(torch.ones(2, 4, device=DEVICE))
    torch.testing.assert_close(output, expected)
    assert "cuda-graph" in program.has_applied


@pytest.mark.usefixtures("made")
def test_inference_mode_and_second_derivatives() -> None:
    """A graph has no derivatives of its gradients; tensors in inference mode count no writes."""
    assert switched_on("second-derivatives").wrappers == []
    program, call = graphed(torch.nn.Linear(4, 3).eval())
    with torch.inference_mode():
        data = torch.randn(2, 4, device=DEVICE)
        outputs = [call(data + step) for step in range(3)]
        expected = [
            torch.nn.functional.linear(data + step, *call.module.parameters()) for step in range(3)
        ]
    assert "cuda-graph" in program.has_applied
    for output, value in zip(outputs, expected, strict=True):
        torch.testing.assert_close(output, value)


def graphed(net: Any) -> tuple[Any, Any]:
    program, net = switched_on(), net.to(DEVICE)
    return program, program.wrappers[0](net, net._call_impl)


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda net: setattr(net[1], "p", 0.1), "p"),
        (lambda net: net[2].eval(), "training"),
        (lambda net: net[0].weight.requires_grad_(False), "its parts, or the place"),
        (lambda net: setattr(net[2], "running_mean", torch.ones(3)), "running_mean"),
        (
            lambda net: setattr(net[0].weight, "data", torch.ones(3, 4)),
            "its parts, or the place",
        ),
        (lambda net: net.__setitem__(0, torch.nn.Linear(4, 3)), "its parts, or the place"),
    ],
    ids=["dropout", "frozen", "requires_grad", "buffer", "moved", "replaced"],
)
def test_what_installed_modules_have_may_not_change(
    change: Callable[[Any], object], name: str
) -> None:
    linear = torch.nn.Linear(4, 3)
    net = torch.nn.Sequential(linear, torch.nn.Dropout(0.0), torch.nn.BatchNorm1d(3))
    program, call = graphed(net)
    for _ in range(3):
        call(torch.ones(2, 4, device=DEVICE)).sum().backward()
        program.on_step[-1]()
    assert "cuda-graph" in program.has_applied
    change(net)
    with pytest.raises(RuntimeError, match=f"Sequential reads {name}.* has changed"):
        call(torch.ones(2, 4, device=DEVICE))


@pytest.mark.usefixtures("made")
def test_no_garbage_is_collected_in_a_capture_as_graphs_may_be_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen, make = [], torch.cuda.make_graphed_callables

    def noted(*args: Any, **kwargs: Any) -> Any:
        seen.append(gc.isenabled())
        return make(*args, **kwargs)

    monkeypatch.setattr(torch.cuda, "make_graphed_callables", noted)
    program, call = graphed(Scaled())
    call(torch.ones(2, 4, device=DEVICE)).sum().backward()
    assert "cuda-graph" in program.has_applied
    assert seen == [False]
    assert gc.isenabled()


class Cache:
    """Of keys and values, as decoders return it in training."""


class Caching(Scaled):
    def forward(self, data: Any) -> Any:
        return {"loss": super().forward(data).sum(), "past": Cache()}


@pytest.mark.usefixtures("made")
def test_a_cache_that_is_returned_beside_a_loss_is_no_hindrance() -> None:
    program, call = graphed(Caching())
    for _ in range(3):
        call(torch.ones(2, 4, device=DEVICE))["loss"].backward()
        program.on_step[-1]()
    assert "cuda-graph" in program.has_applied


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize("kind", [Returning, Writing])
def test_what_a_graph_would_not_copy_is_left_as_it_is(kind: Any) -> None:
    program, call = graphed(kind())
    with torch.no_grad():
        outputs = [call(torch.full((2, 4), float(each), device=DEVICE)) for each in range(3)]
    rows = [output.logits if kind is Returning else output for output in outputs]
    assert len({row.sum().item() for row in rows}) == 3
    assert not program.has_applied


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize("place", ["module", "parameter"])
def test_hooks_of_gradients_are_called_as_they_are(place: str) -> None:
    net, seen = torch.nn.Linear(4, 1), list[Any]()
    if place == "module":
        net.register_full_backward_hook(lambda *each: seen.append(each))
    else:
        net.weight.register_hook(seen.append)
    program, call = graphed(net)
    for _ in range(3):
        call(torch.ones(2, 4, device=DEVICE, requires_grad=True)).sum().backward()
        program.on_step[-1]()
    assert (len(seen), program.has_applied) == (3, [])


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize(
    ("net", "switches"),
    [
        (Dynamic(), ["cuda-graph"]),
        (torch.nn.LazyLinear(1), ["cuda-graph"]),
        (torch.nn.utils.spectral_norm(torch.nn.Linear(4, 1)), []),  # keeps what has a gradient
    ],
)
def test_parameters_that_are_updated_are_no_change(net: Any, switches: list[str]) -> None:
    program, call = graphed(net)
    for _ in range(5):
        call(torch.ones(2, 4, device=DEVICE)).sum().backward()
        program.on_step[-1]()
        with torch.no_grad():
            for parameter in net.parameters():
                parameter.sub_(0.1 * parameter.grad)
                parameter.grad = None
    program.record.finishing[-1]()
    assert program.has_applied == switches


def _cleared(state: Any) -> None:
    state.clear()


def _renewed(state: Any) -> None:
    held = next(iter(state.values()))
    held["exp_avg"] = held["exp_avg"].clone()


@pytest.mark.parametrize("replace", [_cleared, _renewed])
def test_state_of_an_optimizer_that_is_replaced_is_not_for_a_graph(
    replace: Callable[[Any], None], made: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def replaced(step: Step) -> None:
        if step.number == 8:
            replace(step.optimizer.state)

    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)  # looks take none
    switched_on()
    with pytest.raises(RuntimeError, match="the program replaces its optimizer's state"):
        trained(KINDS["Adam"], replaced)
    assert made


@pytest.mark.usefixtures("made")
def test_weights_that_are_swapped_for_a_single_call_are_seen() -> None:
    """As those of an average are, however short an evaluation is."""
    net = torch.nn.Sequential(torch.nn.Linear(4, 3))
    program, call = graphed(net)
    data = torch.ones(2, 4, device=DEVICE)
    net.eval()
    with torch.no_grad():
        for _ in range(20):
            call(data)
        assert "cuda-graph" in program.has_applied
        net[0].weight.data = net[0].weight.data.clone()
        with pytest.raises(RuntimeError, match="the place or requires_grad of a parameter"):
            call(data)


@pytest.mark.usefixtures("made")
def test_what_has_been_trained_in_another_module_is_called_as_it_is() -> None:
    program, net = switched_on(), torch.nn.Linear(4, 1).to(DEVICE)
    for _ in range(3):  # as solvers wrap what they are given
        outer = torch.nn.Sequential(net)
        call = program.wrappers[0](outer, outer._call_impl)
        loss = call(torch.ones(2, 4, device=DEVICE)).mean()
        loss.backward()
    assert program.has_applied == ["cuda-graph"]
