"""Steps of optimizers as graphs: the parameters are those of the program as it is."""

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch")

from profkit.trial.switches import graphs  # noqa: E402
from tests.trial.graph_stand_in import StandInGraph, captured  # noqa: E402

Optimizer = Callable[[Any], Any]


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
def made(monkeypatch: pytest.MonkeyPatch) -> list[StandInGraph]:
    """Graphs that were made while the switch is on."""
    made: list[StandInGraph] = []

    def graph() -> StandInGraph:
        made.append(StandInGraph())
        return made[-1]

    monkeypatch.setattr(graphs, "_DEVICE", "cpu")
    monkeypatch.setattr(torch.cuda, "CUDAGraph", graph)
    monkeypatch.setattr(torch.cuda, "graph", captured)
    adam = sys.modules["torch.optim.adam"]
    monkeypatch.setattr(adam, "_get_capturable_supported_devices", lambda **_: ["cpu"])
    for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
        kind([torch.ones(1, requires_grad=True)])  # a first instance puts hooks around `step`
        monkeypatch.setattr(kind, "step", kind.step)
    monkeypatch.delattr(torch.optim.AdamW, "step")
    return made


def switch_on() -> list[str]:
    applied: list[str] = []
    graphs.cuda_graph(
        SimpleNamespace(torch=torch, wrappers=[], applied=applied.append, is_tracing=lambda: False)
    )
    return applied


def trained(
    kind: Optimizer,
    each: Callable[[Step], object] = id,
    *,
    set_to_none: bool = True,
    scheduler: Callable[[Any], Any] | None = None,
) -> list[Any]:
    """The parameters after each of 12 steps."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)
    ).double()
    optimizer = kind(list(net.parameters()))
    rates = scheduler(optimizer) if scheduler else None
    steps = []
    for step in range(12):
        optimizer.zero_grad(set_to_none)
        net(torch.randn(16, 4).double()).square().mean().backward()
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
    made: list[StandInGraph], kind: Optimizer, set_to_none: bool
) -> None:
    without = trained(kind, set_to_none=set_to_none)
    applied = switch_on()
    assert_same(trained(kind, set_to_none=set_to_none), without)
    assert applied == ["cuda-graph"]
    assert [graph.replays for graph in made] == [9]


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_schedule_of_each_step_is_followed(kind: Optimizer) -> None:
    def halved(optimizer: Any) -> Any:
        return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))

    without = trained(kind, scheduler=halved)
    switch_on()
    assert_same(trained(kind, scheduler=halved), without)


def test_rates_stay_numbers_for_the_program(made: list[StandInGraph]) -> None:
    seen = []
    switch_on()
    trained(KINDS["AdamW"], lambda step: seen.append(step.optimizer.param_groups[0]["lr"]))
    assert seen == [0.01] * 12
    assert made[0].replays == 9


def _changed(step: Step) -> None:
    if step.number == 6:
        step.optimizer.param_groups[0]["weight_decay"] = 0.5
    if step.number == 9:
        step.optimizer.load_state_dict(step.optimizer.state_dict())


def _frozen(step: Step) -> None:
    if step.number % 5 == 4:
        step.net[0].weight.grad = None


def _clipped(step: Step) -> None:
    torch.nn.utils.clip_grad_norm_(step.net.parameters(), 0.1)


def _replaced(step: Step) -> None:
    if step.number == 7:
        step.net[0].weight.data = step.net[0].weight.data.clone() + 1


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize("each", [_changed, _frozen, _clipped, _replaced])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_what_changes_between_steps_is_seen(
    kind: Optimizer, each: Callable[[Step], object]
) -> None:
    without = trained(kind, each)
    switch_on()
    assert_same(trained(kind, each), without)


def test_what_cannot_be_captured_stays_as_it_is(made: list[StandInGraph]) -> None:
    def adam(parameters: Any) -> Any:
        return torch.optim.Adam(parameters, lr=torch.tensor(0.01))

    without = trained(adam)
    applied = switch_on()
    assert_same(trained(adam), without)
    assert not applied
    assert not made
