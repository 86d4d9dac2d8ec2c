"""Programs as people write them: they notice no hook, and units are what a user would name."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs

from profkit.trial.checks import judged, missing_output
from profkit.trial.evidence import Evidence
from profkit.trial.outcome import outcome
from profkit.trial.run import WALL, Extent, Result, run_program
from profkit.trial.trial_file import Changes
from tests.conftest import ROOT
from tests.trial.imitated_torch import write_torch
from tests.trial.torch_forks import SWITCHES, TorchForks, torch_forks

VARIABLES = {**os.environ, "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TorchForks]:
    with torch_forks(tmp_path_factory.mktemp("forks"), VARIABLES) as made:
        yield made


def run(
    folder: Path, program: str, *names: str,
    extent: Extent | None = None, forks: TorchForks | None = None, path: str = "",
) -> Result:  # fmt: skip
    """A run, a fork or a fresh process."""
    (folder / "program.py").write_text(program)
    if forks:
        return forks.run(folder / "program.py", names, extent)
    command = (sys.executable, str(folder / "program.py"))
    return run_program(
        command, [SWITCHES[name] for name in names], extent or Extent(),
        environment={**VARIABLES, "PYTHONPATH": path} if path else VARIABLES, timeout=200,
    )  # fmt: skip


def without_hooks(folder: Path) -> str:
    """The output of the program that was run last."""
    plain = subprocess.run(
        (sys.executable, str(folder / "program.py")), env=VARIABLES, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True,
    )  # fmt: skip
    return plain.stdout


ODD = """
import copy, os, pickle, sys, torch
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
class Own(torch.nn.Linear):  # as LightningModule and GraphModule
    def __getstate__(self):
        return dict(self.__dict__)
class Graph:
    def __init__(self, tensor):
        self.nodes, self.hits = [self], tensor
class Hits(torch.nn.Linear):
    def forward(self, x):
        return Graph(super().forward(x) > 0)
class Sparse(torch.nn.Linear):
    def forward(self, x):
        return super().forward(x).to_sparse()
own, hits, sparse = Own(4, 4), Hits(4, 4), Sparse(4, 4)
data = TensorDataset(torch.ones(160, 4))
loader = DataLoader(data, 8, False, None, None, 0, lambda rows: torch.stack([x for x, in rows]))
def step(x):
    loss = (own(x) - 1).square().mean()
    for p, g in zip(own.parameters(), torch.autograd.grad(loss, list(own.parameters()))):
        p.data -= 0.1 * g
    return loss
for x in loader:
    loss = step(x)
    hits(x), sparse(x)
    pickle.dumps(own)
copied = copy.deepcopy(own)
torch.nn.init.zeros_(copied.weight), torch.nn.init.zeros_(copied.bias)
scripted = torch.jit.script(torch.nn.Sequential(torch.nn.Linear(4, 4)))
print(own(x).sum().item(), copied(x).sum().item(), scripted(x).shape, loss.item())
sys.stdout.flush()
os._exit(7 if "fails" in sys.argv else 0)
"""


@pytest.mark.parametrize("names", [(), ("loader-workers",)])
def test_modules_loaders_and_ends_of_any_kind(
    tmp_path: Path, forks: TorchForks, names: tuple[str, ...]
) -> None:
    result = run(tmp_path, ODD, *names, forks=forks)
    assert result.failure == ""
    assert result.applied == set(names)
    assert result.unit.startswith("forward of")
    assert result.units >= 20
    assert result.features >= {"backward", "loader", "module"}
    assert "inference" not in result.features
    assert "forward of Own" in result.results
    assert names or result.output == without_hooks(tmp_path)


COMPILED = """
import logging, torch
torch._logging.set_logs(all=logging.ERROR)  # warnings have times
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
x = torch.randn(4, 8)
net(x)
class Other(torch.nn.Linear):
    def forward(self, x):
        return super().forward(x).relu()
bound = torch.compile(Other(8, 8).__call__, backend="aot_eager", fullgraph=True)
bound(x), bound(x)
inferred = torch.compile(net, backend="aot_eager", fullgraph=True)
@torch.compile(backend="aot_eager", fullgraph=True)
def scaled(x):
    return 2 * net(x)
with torch.no_grad():
    for _ in range(25):
        inferred(x), scaled(x)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
@torch.compile(backend="aot_eager")
def step(x):
    optimizer.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss
for _ in range(20):
    loss = step(x)
counters = torch._dynamo.utils.counters
print(loss.item(), dict(counters["stats"]))
"""


def test_programs_that_compile_have_the_same_graphs(tmp_path: Path, forks: TorchForks) -> None:
    result = run(tmp_path, COMPILED, forks=forks)
    assert result.failure == ""
    assert result.output == without_hooks(tmp_path)
    assert {"forward of OptimizedModule", "calls of scaled", "calls of step"} <= set(result.results)
    assert "forward of OptimizedModule 2" not in result.results
    assert result.unit == "calls of step"
    assert result.units == 20


EPOCHS = """
import torch
from torch.utils.data import DataLoader, Dataset, Subset
class Rows(Dataset):
    def __init__(self):
        self.options, self.labels = {"scale": torch.ones(2)}, [0] * 320
    def __len__(self):
        return 8
    def __getitem__(self, index):
        return self.options["scale"].sum() + sum(self.labels)
rows = Rows()
loader = DataLoader(Subset(rows, range(6)), 2)
for epoch in range(4):
    if epoch == 2:
        CHANGE
    print(epoch, [total.tolist() for total in loader])
"""


READ = """
import argparse, itertools, torch
from torch.utils.data import DataLoader, Dataset
log, options = [], argparse.Namespace(used=1, steps=0)
def note(index):
    log.append(index)
class Rows(Dataset):
    def __init__(self):
        self.scale, self.seen, self.file = 1.0, 0, None
        self.options, self.rest = options, itertools.count()
    def __len__(self):
        return 64
    def __getitem__(self, index):
        self.file = self.file or object()
        READING
        return self.scale * torch.ones(2)
rows = Rows()
for step, batch in enumerate(DataLoader(rows, 2)):
    if step in (1, 20):
        CHANGE
"""


LATE = """
import os, torch
from torch.utils.data import DataLoader, Dataset
bad = []
class Rows(Dataset):
    def __len__(self):
        return 60
    def __getitem__(self, index):
        if index == WHEN:
            bad.append(index)
        return torch.ones(2)
net = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for epoch in range(2):
    for step, x in enumerate(DataLoader(Rows(), 2)):
        for other in DataLoader(torch.ones(8, 2), 2):
            net(other)
        net(x).sum().backward()
        optimizer.step()
        if step == LAST:
            break
bad.append("what the program itself adds")
END
"""


@pytest.mark.parametrize("extent", [Extent(), Extent("optimizer", 8, grace=99.0)])
@pytest.mark.parametrize(
    ("when", "last", "end", "is_changing"),
    [(50, 29, "", True), (50, 99, "", True), (50, 26, "os._exit(0)", True), (70, 99, "", False)],
)
def test_a_dataset_that_changes_late_is_read_by_no_workers(
    tmp_path: Path, forks: TorchForks, extent: Extent, when: int, last: int, end: str,
    is_changing: bool,
) -> None:  # fmt: skip
    program = LATE.replace("WHEN", str(when)).replace("LAST", str(last)).replace("END", end)
    result = run(tmp_path, program, extent=extent, forks=forks)
    assert result.failure == ""
    assert ("changing-dataset" in result.features) is is_changing


ITERATED = """
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info
class Rows(IterableDataset):
    def __iter__(self):
        return (torch.tensor([n, get_worker_info() is not None]) for n in range(3))
for source in (Rows(), *SOURCES):
    print([batch.tolist() for batch in DataLoader(source, 2)])
"""


@pytest.mark.parametrize(
    ("reading", "is_changing"),
    [("pass", False), ("self.count += 1", True), ("self.random.shuffle([1, 2])", True),
     ("next(self.rest)", True), ("own = self.count", False)],
)  # fmt: skip
def test_an_iterated_dataset_that_changes_is_read_by_no_worker(
    tmp_path: Path, forks: TorchForks, reading: str, is_changing: bool
) -> None:
    program = f"""
import random, torch
from torch.utils.data import DataLoader, IterableDataset
class Rows(IterableDataset):
    def __init__(self):
        self.count, self.random, self.rest = 0, random.Random(1), iter(range(100))
    def __iter__(self):
        for n in range(20):
            {reading}
            yield n
for epoch in range(2):
    for batch in DataLoader(Rows(), 2):
        pass
"""
    result = run(tmp_path, program, forks=forks)
    assert ("changing-dataset" in result.features) is is_changing


@pytest.mark.parametrize(("sources", "is_read"), [("[]", 1), ("[torch.ones(20, 2)]", 0)])
def test_a_dataset_without_indices_is_read_by_one_worker(
    tmp_path: Path, forks: TorchForks, sources: str, is_read: int
) -> None:
    """Several may each read it whole; none does where the line to keep names several."""
    first = run(tmp_path, ITERATED.replace("SOURCES", sources), forks=forks)
    assert ("iterated-dataset" in first.features) is bool(is_read)
    assert SWITCHES["loader-workers"].lacks(first.features) == ""
    program, features = tmp_path / "program.py", first.features
    result = forks.run(program, ["loader-workers"], features=features)
    assert f"[[[0, {is_read}], [1, {is_read}]], [[2, {is_read}]]]" in result.output
    assert result.facts["workers"] == "1" or not is_read


@pytest.mark.parametrize(
    ("reading", "change", "is_changing", "failure"),
    [("pass", "pass", False, ""), ("self.seen += 1", "pass", True, ""),
     ("note(index)", "pass", True, ""),
     ("next(self.rest)", "pass", True, "dataset changed while workers read it: rest"),
     ("self.options.used", "options.steps = step", False, ""),
     ("pass", "rows.scale = 1 + step // 9", True, "dataset changed while workers read it: scale"),
     ("pass", "rows.scale = step + 1", True, "dataset changed while workers read it: scale")],
)  # fmt: skip
def test_workers_read_no_dataset_that_changes_meanwhile(
    tmp_path: Path, forks: TorchForks, reading: str, change: str, is_changing: bool, failure: str
) -> None:
    program = READ.replace("READING", reading).replace("CHANGE", change)
    unchanged = run(tmp_path, program, forks=forks)
    assert unchanged.failure == ""
    assert ("changing-dataset" in unchanged.features) is is_changing
    refused = SWITCHES["loader-workers"].lacks(unchanged.features)
    assert refused == ("not beside a dataset that changes as it is read" if is_changing else "")
    with_workers = run(tmp_path, program, "loader-workers", forks=forks)
    assert failure in with_workers.failure
    assert bool(with_workers.failure) is bool(failure)


@pytest.mark.parametrize(
    ("change", "name"),
    [("pass", ""), ("rows.options['scale'].mul_(3)", "scale"), ("rows.labels[3] = 7", "labels")],
)
def test_workers_that_stay_read_no_dataset_that_changes_between_epochs(
    tmp_path: Path, forks: TorchForks, change: str, name: str
) -> None:
    program = EPOCHS.replace("CHANGE", change)
    unchanged = run(tmp_path, program, forks=forks)
    with_workers = run(tmp_path, program, "loader-workers", forks=forks)
    if name:
        assert f"changes its dataset between epochs: {name}" in with_workers.failure
    else:
        assert with_workers.output == unchanged.output


PREPARED = """
import torch
field = torch.nn.Linear(4, 4)
with torch.no_grad():
    for _ in range(40):
        observed = field(torch.ones(2, 4))
net = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(30):
    for _ in range(5):
        loss = (net(torch.ones(2, 4)) - observed).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_units_are_steps_though_data_are_computed_before(tmp_path: Path, forks: TorchForks) -> None:
    result = run(tmp_path, PREPARED, extent=Extent(window=1e-4, grace=99.0), forks=forks)
    assert (result.failure, result.unit, result.stopped) == ("", "optimizer", True)
    assert "inference" not in result.features
    assert len(result.results["losses"]) >= result.units


EVALUATED = """
import time, torch
torch._logging.set_logs(all=50)
class Net(torch.nn.Linear):
    def forward(self, x):
        return torch.nn.functional.dropout(super().forward(x), training=self.training)
net = Net(4, 4)
def slow(graph, inputs, **_):
    time.sleep(0.2)
    return graph.forward
if own:
    compiled = torch.compile(net, backend=slow)
else:
    import torch._inductor.compile_fx
    torch._inductor.compile_fx.compile_fx, compiled = slow, net
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for step in range(60):
    if step == 30:
        net.eval()
        with torch.no_grad():
            compiled(torch.ones(2, 4))
        net.train()
    optimizer.zero_grad()
    compiled(torch.ones(2, 4)).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize("switches", [[], ["compile"]])
def test_compiling_once_more_is_no_part_of_the_steps(
    tmp_path: Path, forks: TorchForks, switches: list[str]
) -> None:
    result = run(tmp_path, f"own = {not switches}\n{EVALUATED}", *switches, forks=forks)
    assert (result.failure, result.unit, result.units) == ("", "optimizer", 60)
    assert 50 <= len(result.times) <= 55
    assert max(result.times) < 0.2


HOOKED = """
import torch, torch._inductor.compile_fx
torch._inductor.compile_fx.compile_fx = lambda graph, inputs, **_: graph.forward
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.act = torch.nn.Linear(4, 4), torch.nn.ReLU()
    def forward(self, x):
        return self.act(self.inner(x))
net, other = Net(), torch.nn.ReLU()
for step in range(20):
    if step == LATE:
        net.act.register_forward_hook(lambda module, inputs, output: 2 * output)
    other.register_forward_hook(print)
    net(torch.ones(2, 4)).sum().backward()
"""


@pytest.mark.parametrize(
    ("late", "failure"),
    [(0, ""), (9, "RuntimeError: a hook that is registered after compilation is not called")],
)
def test_compiled_modules_get_no_hooks(
    tmp_path: Path, forks: TorchForks, late: int, failure: str
) -> None:
    result = run(tmp_path, HOOKED.replace("LATE", str(late)), "compile", forks=forks)
    assert result.failure == failure
    assert failure or "compile" in result.applied


ACTING = """
import multiprocessing, torch
def act(queue):
    net = torch.nn.Linear(4, 4)
    for _ in range(20):
        for _ in range(5):
            output = net(torch.ones(1, 4))
        queue.put(output.tolist())
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue = context.Queue(1)
    actor = context.Process(target=act, args=(queue,))
    actor.start()
    learner = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(learner.parameters())
    for _ in range(20):
        learner(torch.tensor(queue.get())).sum().backward()
        optimizer.step()
    actor.join()
    print("exit code", actor.exitcode)
"""


def test_units_are_steps_though_a_worker_calls_more_modules(
    tmp_path: Path, forks: TorchForks
) -> None:
    result = run(tmp_path, ACTING, extent=Extent(window=1e-4, grace=99.0), forks=forks)
    assert (result.failure, result.unit, result.units) == ("", "optimizer", 8)


PHASES = """
import torch
from torch.utils.checkpoint import checkpoint
inner = torch.nn.Linear(4, 4)
class Net(torch.nn.Linear):
    def forward(self, x):
        return checkpoint(inner, super().forward(x), use_reentrant=False)
net = Net(4, 4)
def steps(optimizer, count):
    for _ in range(count):
        net(torch.ones(1, 4)).sum().backward()
        optimizer.step()
steps(torch.optim.SGD(net.parameters()), 3)
later = torch.optim.Adam(net.parameters())
parts = [torch.optim.SGD([part]) for part in net.parameters()]
for _ in range(40):
    steps(later, 1)
    for part in parts:
        part.step()
"""


OWN_COMPILED = """
import torch, torch._inductor.compile_fx
def compiled(graph, inputs, config_patches=None, **_):
    print("graphs" if (config_patches or {}).get("triton.cudagraphs") else "no graphs")
    return graph.forward
torch._inductor.compile_fx.compile_fx = compiled
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)
    def forward(self, x):
        return self.inner(x).relu()
net = Net()
COMPILE
for _ in range(20):
    net(torch.ones(2, 4)).sum().backward()
"""


@pytest.mark.parametrize(
    "line", ["net = torch.compile(net, fullgraph=True)", "net.compile()", "net.compile(OPTIONS)"]
)
def test_a_program_that_compiles_its_modules_may_do_so_in_another_mode(
    tmp_path: Path, forks: TorchForks, line: str
) -> None:
    program = OWN_COMPILED.replace("COMPILE", line.replace("OPTIONS", "mode='default'"))
    unchanged = run(tmp_path, program, forks=forks)
    assert set(unchanged.output.splitlines()) == {"no graphs"}
    switch = SWITCHES["compile-reduce-overhead"]
    features = unchanged.features | {"cuda"}
    if "OPTIONS" in line:
        assert switch.lacks(features) == "not beside compilation options"
        return
    assert switch.lacks(features) == ""
    changed = forks.run(tmp_path / "program.py", [switch.name], features=features)
    assert set(changed.output.splitlines()) == {"graphs"}
    assert switch.name in changed.applied
    assert SWITCHES["compile"].lacks(features) == "not beside compiled"


ZEROED = """
import torch, torch._inductor.compile_fx
torch._inductor.compile_fx.compile_fx = lambda graph, inputs, **_: graph.forward
net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
for _ in range(20):
    net(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    optimizer.zero_grad(SET_TO_NONE)
print(net[0].weight.grad)
"""
DROPPED = "optimizer.zero_grad(set_to_none=True)"


@pytest.mark.parametrize("is_zeroed", [True, False])
def test_gradients_that_a_graph_would_overwrite_are_dropped_and_that_is_told(
    tmp_path: Path, forks: TorchForks, is_zeroed: bool
) -> None:
    """What a compiled backward pass leaves is its graph's, whose next replay overwrites it."""
    program = ZEROED.replace("SET_TO_NONE", str(not is_zeroed))
    unchanged = run(tmp_path, program, forks=forks)
    changed = run(tmp_path, program, "compile-reduce-overhead", forks=forks)
    assert changed.failure == ""
    assert changed.output.split() == ["None"]
    evidence = Evidence()
    evidence.runs += [unchanged, changed]
    evidence.combinations.append((SWITCHES["compile-reduce-overhead"],))
    kept = outcome(evidence, ("python",), 60.0).rows[0].keep
    assert (DROPPED in kept) is is_zeroed


TWO_OPTIMIZERS = """
import torch
net, head = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
averaged = torch.optim.SGD(head.parameters(), fused=True)
adam = torch.optim.Adam(net.parameters(), foreach=False, fused=False)
for _ in range(20):
    head(net(torch.ones(2, 4))).sum().backward()
    for optimizer in (averaged, adam):
        optimizer.step()
"""


def test_what_is_slow_of_any_optimizer_is_named(tmp_path: Path, forks: TorchForks) -> None:
    result = run(tmp_path, TWO_OPTIMIZERS, forks=forks)
    assert result.units == 20
    assert result.features >= {"unfused-optimizer", "single-tensor-optimizer"}
    assert result.facts["optimizer"] == "Adam"  # that of the lines to keep
    assert "optimizers" in result.features  # a step of one is not all of a batch's
    assert "optimizers" not in run(tmp_path, LBFGS, forks=forks).features


LBFGS = """
import torch
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.LBFGS(net.parameters(), max_iter=2)
def closure():
    optimizer.zero_grad()
    loss = net(torch.ones(2, 4)).square().mean()
    loss.backward()
    return loss
for _ in range(20):
    optimizer.step(closure)
"""


LAYERS = """
import torch, torch._inductor.compile_fx
torch._inductor.compile_fx.compile_fx = lambda graph, inputs, **_: graph.forward
class Eager(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)
    @torch.compiler.disable
    def forward(self, x):
        return self.inner(x)
net = NET
for _ in range(20):
    net(torch.ones(2, 4)).sum().backward()
"""


@pytest.mark.parametrize(
    ("net", "is_applied"),
    [
        ("Eager()", False),
        ("torch.jit.script(torch.nn.Linear(4, 4))", True),
        ("torch.nn.Linear(4, 4)", True),
        ("torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())", True),
    ],
)
def test_what_compiles_nothing_is_not_applied(
    tmp_path: Path, net: str, is_applied: bool, forks: TorchForks
) -> None:
    """torch.compile compiles torch's own modules; a call of theirs, though, it skips."""
    result = run(tmp_path, LAYERS.replace("NET", net), "compile", forks=forks)
    assert result.failure == ""
    assert ("compile" in result.applied) == is_applied


def test_steps_are_those_of_the_optimizer_that_goes_on(tmp_path: Path, forks: TorchForks) -> None:
    result = run(tmp_path, PHASES, forks=forks)
    assert (result.unit, result.facts["optimizer"]) == ("optimizer", "Adam")
    assert {name for name in result.results if "forward" in name} == {"forward of Net"}
    assert 25 <= result.units < 40


ENCODING = """
import torch
torch.manual_seed(0)
net = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).eval()
for _ in range(20):
    net(torch.randn(2, 9, 32))
"""


def test_kernels_of_inference_may_round_elsewhere(tmp_path: Path, forks: TorchForks) -> None:
    unchanged = run(tmp_path, ENCODING, forks=forks)
    changed = run(tmp_path, ENCODING, "inference-mode", forks=forks)
    judgment = judged([unchanged], [], [changed], {"nothing"})
    assert changed.applied == {"inference-mode"}
    assert judgment is not None
    assert judgment.difference > 0
    assert SWITCHES["inference-mode"].changes == "rounding"


SENSITIVITY = """
import torch
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh()).eval()
x = torch.ones(2, 8)
for _ in range(12):
    forward = torch.func.jvp(net, (x,), (x,))[1]
with torch.autograd.forward_ad.dual_level():
    dual = net(torch.autograd.forward_ad.make_dual(x, x))
    own = torch.autograd.forward_ad.unpack_dual(dual).tangent
print(forward.sum().item(), own.sum().item())
"""


def test_derivatives_that_are_computed_forward_stay(tmp_path: Path, forks: TorchForks) -> None:
    changed = run(tmp_path, SENSITIVITY, "inference-mode", forks=forks)
    assert changed.failure == ""
    assert changed.output == run(tmp_path, SENSITIVITY, forks=forks).output
    assert "0.0" not in changed.output.split()


@pytest.mark.parametrize(("others", "reason"), [(0, "vmap or grad"), (20, "")])
def test_modules_in_transformations_are_not_compiled(
    tmp_path: Path, forks: TorchForks, others: int, reason: str
) -> None:
    program = f"""
import torch
net = torch.nn.Linear(8, 8)
def loss(parameters, x):
    return torch.func.functional_call(net, parameters, (x,)).sum()
gradients = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))
for _ in range(12):
    gradients(dict(net.named_parameters()), torch.ones(4, 8))
for _ in range({others}):
    net(torch.ones(8))
"""
    features = run(tmp_path, program, forks=forks).features
    assert SWITCHES["compile"].lacks(features).endswith(reason)
    assert bool(SWITCHES["compile"].lacks(features)) is bool(reason)


VALIDATED_FIRST = """
import torch
class Net(torch.nn.Linear):
    def forward(self, x):
        return torch.nn.functional.dropout(super().forward(x), 0.1, self.training)
net = Net(4, 4).eval()
x = torch.ones(2, 4)
net(x)
optimizer = torch.optim.SGD(net.train().parameters())
for _ in range(20):
    with torch.autocast("cpu", torch.bfloat16):
        loss = net(x).sum()
    loss.backward()
    optimizer.step()
"""


def test_models_that_are_validated_first_are_known_as_they_train(
    tmp_path: Path, forks: TorchForks
) -> None:
    features = run(tmp_path, VALIDATED_FIRST, forks=forks).features
    assert features >= {"dropout", "autocast"}
    assert "compiled" not in features
    inference = VALIDATED_FIRST.split("optimizer")[0]
    inferred = run(tmp_path, inference, forks=forks).features
    assert "inference" in inferred
    assert not inferred & {"dropout", "autocast"}
    undropped = run(tmp_path, VALIDATED_FIRST.replace("0.1", "0.0"), forks=forks).features
    assert "autocast" in undropped
    assert "dropout" not in undropped


RESUMED = """
import os, pathlib, torch
state = pathlib.Path("state")
assert not state.exists(), "a state is there"
optimizer = torch.optim.Optimizer()
for _ in range(20):
    optimizer.step()
os.system("touch state")
"""


def test_a_program_that_fails_when_run_again_says_why(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(RESUMED)
    command = (sys.executable, "-m", "profkit", "try", "--budget", "60", "--", sys.executable)
    tried = subprocess.run(
        (*command, "program.py"), cwd=tmp_path,
        env={**VARIABLES, "PYTHONPATH": f"{ROOT}{os.pathsep}{write_torch(tmp_path)}"},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    assert tried.returncode == 6
    assert "AssertionError: a state is there; its first run did not" in tried.stdout


TURNS = """
import torch
policy, value = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
optimizers = [torch.optim.Adam(net.parameters()) for net in (policy, value)]
for _ in range(6):
    for net, optimizer in zip((policy, value), optimizers):
        for _ in range(15):
            net(torch.ones(1, 4)).sum().backward()
            optimizer.step()
"""


def test_optimizers_that_take_turns_have_units_across_them(
    tmp_path: Path, forks: TorchForks
) -> None:
    """Of the one that was first, once it has come again."""
    result = run(tmp_path, TURNS, forks=forks)
    assert (result.failure, result.unit) == ("", "optimizer")
    assert len(result.times) == 5 + 4 * 15 - 5  # the first ten decide, five prepare


FOLDS = """
import time, torch
for count in (25, 25, 60):
    net = torch.nn.Linear(4, 4)
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(count):
        net(torch.ones(1, 4)).sum().backward()
        optimizer.step()
        time.sleep(0.002)
"""


def test_runs_of_several_models_end_at_the_same_step(tmp_path: Path, forks: TorchForks) -> None:
    first = run(tmp_path, FOLDS, extent=Extent(window=0.08), forks=forks)
    again = run(tmp_path, FOLDS, extent=Extent(first.unit, first.units), forks=forks)
    assert (again.units, len(again.times)) == (first.units, len(first.times))
    assert again.results.keys() == first.results.keys()
    whole = run(tmp_path, FOLDS, "bf16", forks=forks)
    assert whole.units == 25 + 15 + 50  # the first ten of another optimizer decide
    assert whole.results.keys() >= {"forward of Linear", "forward of Linear 2"}


def test_a_file_is_read_from_its_start_by_each_run(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import sys; print(len(sys.stdin.read()))")
    (tmp_path / "data").write_text("data")
    program = (
        "import os, sys; from profkit.capture.process import run\n"
        "command = [sys.executable, 'program.py']\n"
        "for _ in range(2): print(run(command, environment=os.environ).output, end='')"
    )
    with (tmp_path / "data").open() as data:
        output = subprocess.check_output(
            [sys.executable, "-c", program], cwd=tmp_path, stdin=data, text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
    assert output == "4\n4\n"


WAITING = """
import subprocess, sys, time
if "train" in sys.argv:
    import torch
    optimizer = torch.optim.Optimizer()
    for _ in range(20):
        optimizer.step()
else:
    print("starts", flush=True)
    subprocess.run([sys.executable, __file__, "train"])
    END
"""


def test_times_that_are_printed_are_no_results(tmp_path: Path) -> None:
    program = "print('train_runtime: 3, epoch_time 2'); print('latency 5')"
    assert run(tmp_path, program).results == {}
    assert run(tmp_path, "print('loss_sum 0.5, timestep 7')").results.keys() == {
        'number 1 of "loss_sum #, timestep #"',
        'number 2 of "loss_sum #, timestep #"',
    }


@pytest.mark.parametrize("end", ["time.sleep(199)", "raise RuntimeError('a peer is gone')"])
def test_processes_that_miss_one_that_was_stopped_are_ended(tmp_path: Path, end: str) -> None:
    """As the ranks of a group do."""
    program, extent = WAITING.replace("END", end), Extent("optimizer", 12)
    started = time.monotonic()
    result = run(tmp_path, program, extent=extent, path=write_torch(tmp_path))
    assert (result.failure, result.unit, result.units) == ("", "optimizer", 12)
    assert result.output.startswith("starts\n")
    assert time.monotonic() - started < 190


JAX = """
import functools
__version__ = "1"
class Array:
    size = 1
    def __init__(self, value):
        self.value = value
        used.append(1)
    def reshape(self, _): return self
    def __getitem__(self, _): return self
    def __add__(self, other): return Array(self.value + other)
    def tolist(self): return [self.value]
class Key(Array):
    def __add__(self, other): raise TypeError("add does not accept keys")
class core:
    class Tracer: pass
class numpy:
    zeros = staticmethod(lambda shape: core.Tracer() if tracing else 0)
class tree_util:
    tree_leaves = staticmethod(lambda tree: list(tree) if isinstance(tree, tuple) else [tree])
tracing = []
class monitoring:
    listeners = []
    register_event_duration_secs_listener = listeners.append
def _jitted(function, **options):
    for listener in monitoring.listeners:
        listener("/jax/core/compile/backend_compile_duration", 0.5, fun_name="f")
        listener("/jax/core/compile/jaxpr_trace_duration", 0.25)
    def traced(*args):
        tracing.append(function)
        try: return function(*args)
        finally: tracing.pop()
    return traced
def jit(function, **options):
    given.append(options)
    return _jitted(function)
given = []
def pmap(function, axis_name=None, **options): return _jitted(function)
def grad(fun): return lambda x: Array(0.1 * x.value)
value_and_grad = grad
def eval_shape(function, *args):
    assert type(function) is type(grad)
def default_backend():
    assert used, "starts a device"
    return "cpu"
used = []
"""
KEYED = """
import functools, jax
@functools.partial(jax.pmap, axis_name="batch")
def step(loss, key):
    return jax.Array(0.9 * loss.value), key
jax.eval_shape(step, 1)
loss, key = jax.Array(1.0), jax.Key(5)
for _ in range(30):
    loss, key = step(loss, key)
print("end", loss.value)
"""
DESCENDING = """
import jax
def update(x):
    return jax.Array(x.value - jax.grad(abs)(x).value)
class Model:
    def update(self, x):
        return jax.Array(x.value - jax.grad(round)(x).value)
x, model = jax.Array(1.0), Model()
for _ in range(20):
    x = model.update(update(x))
print("end", x.value)
"""
NESTED = """
import jax
def main():
    def loss(x): return x
    def update(x, rate):
        return jax.Array(x.value - rate * jax.grad(loss)(x).value)
    def epoch(x):
        for _ in range(5):
            x = jax.Array(x.value - jax.grad(loss)(x).value)
        return x
    x = jax.Array(1.0)
    for _ in range(20): x = update(x, 0.5)
    for _ in range(4): x = epoch(x)
    print("end", x.value)
main()
"""
WARMED = """
import copy, inspect, jax
def main():
    beta = 1.0
    def loss(x): return jax.Array(x.value * beta)
    def update(x):
        return jax.Array(x.value - beta * jax.grad(fun=loss)(x).value)
    x = jax.Array(1.0)
    for step in range(20):
        if step == 10:
            beta = 0.5
        x = update(x)
    print("end", x.value, inspect.signature(update), copy.deepcopy(jax.jit(update)) is not None)
main()
"""
CHANGING = """
import argparse, jax, time
from datetime import datetime
class Named(dict):
    __getattr__ = dict.get
    __setattr__ = dict.__setitem__
log, options, rates, file = [], {"rate": 0.5}, iter([0.5] * 99), open("log", "w")
named = Named(rate=0.5) if "named.rate =" in CHANGED else argparse.Namespace(rate=0.5, steps=0)
class Options:
    rate = 0.5
def loss(x):
    return jax.Array(x.value * Options.rate * options["rate"])
def update(x, told):
    LINE
    return jax.Array(x.value - jax.grad(loss)(x).value)
update.calls = 0
x, told = jax.Array(1.0), {"steps": 0}
for step in range(20):
    if step == 10:
        CHANGE
    x = update(x, told)
"""
DONATING = """
import jax
def step(state):
    return jax.Array(0.9 * state.value)
step, x = jax.jit(step, **{options}), jax.Array(1.0)
for _ in range(30):
    x = step(x)
print("end", jax.given[0].get("donate_argnums"))
"""
LIBRARY = """
import jax
def correction(x): return jax.Array(x.value)
correction = jax.jit(correction)
"""
UPDATED = """
import sys, time
sys.path.insert(0, {site!r})
import jax, library
def step(x):
    return jax.Array(0.9 * x.value)
step, x = jax.jit(step), jax.Array(1.0)
for _ in range(30):
    x = step(x)
    time.sleep(0.01)
    x = library.correction(library.correction(x))
"""
RARE = """
import jax
@jax.jit
def train(x):
    return jax.Array(0.5 * x.value)
print("end", train(jax.Array(1.0)).value)
"""
UNUSED = """
import torch, jax
net = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters())
for _ in range(20):
    net(torch.ones(1, 4)).sum().backward()
    optimizer.step()
"""


RECOMPILING = """
import os, sys, jax
from types import SimpleNamespace
class config:
    jax_compilation_cache_dir = "DIRECTORY"
    def update(name, value): print(name, value, count)
cache = SimpleNamespace(reset_cache=lambda: print("reset", count))
sys.modules["jax.experimental"] = SimpleNamespace()
sys.modules["jax.experimental.compilation_cache"] = SimpleNamespace(compilation_cache=cache)
jax.config, os.environ["PROFKIT_KEPT"] = config, "/made/kept"
def step(x): return jax.Array(0.9 * x.value)
x = jax.Array(1.0)
for count in range(1, 10):
    x = jax.jit(step)(x)
"""


@pytest.mark.parametrize(
    ("directory", "output"),
    [("/made/jax", "jax_enable_compilation_cache False 5\nreset 5\n"), ("/home/jax", "")],
)
def test_what_jax_compiles_in_each_step_takes_its_time(
    tmp_path: Path, directory: str, output: str
) -> None:
    """The first steps have a cache from run to run; one that the program has is for all."""
    (tmp_path / "jax.py").write_text(JAX)
    result = run(tmp_path, RECOMPILING.replace("DIRECTORY", directory))
    assert (result.failure, result.output) == ("", output)


def test_jax_with_random_keys_and_torch_beside_it(tmp_path: Path, forks: TorchForks) -> None:
    (tmp_path / "jax.py").write_text(JAX)
    result = run(tmp_path, KEYED)
    assert (result.failure, result.unit, result.units) == ("", "calls of step", 30)
    assert result.features >= {"jax", "cpu"}
    assert result.results["calls of step 0"][1] == [0.9**2]
    assert "calls of step 1" not in result.results
    assert result.facts["compiling"] == 0.5
    unchanged, jitted = run(tmp_path, DESCENDING), run(tmp_path, DESCENDING, "jax-jit")
    assert (unchanged.unit, unchanged.units) == (jitted.unit, jitted.units) == ("gradients", 40)
    assert jitted.applied == {"jax-jit"}
    assert unchanged.results == jitted.results
    nested = [run(tmp_path, NESTED, *names) for names in ((), ("jax-jit",))]
    assert [(each.unit, each.units) for each in nested] == [("gradients", 40)] * 2
    assert [each.output for each in nested] == [without_hooks(tmp_path)] * 2
    assert nested[1].applied == {"jax-jit"}
    lines = ["update = jax.jit(update)", "gradient = jax.jit(jax.grad(loss))"]  # of `epoch`
    assert str(nested[1].facts["jitted"]).splitlines() == lines
    assert run(tmp_path, WARMED).output == without_hooks(tmp_path)
    assert "update reads beta, which has changed" in run(tmp_path, WARMED, "jax-jit").failure
    site = tmp_path / "site"
    (site / "library.dist-info").mkdir(parents=True)
    (site / "library.py").write_text(LIBRARY)
    updated = run(tmp_path, UPDATED.format(site=str(site)), extent=Extent(window=0.1))
    assert (updated.failure, updated.unit) == ("", "calls of step")
    short = run(tmp_path, UPDATED.format(site=str(site)).replace("range(30)", "range(3)"))
    assert {*short.results} == {"calls of step 0"}  # the library's may be inside of what is jitted
    rare = [run(tmp_path, RARE, extent=Extent(unit)) for unit in (None, WALL)]
    assert rare[0].results == rare[1].results == {"calls of train 0": [[0.5]]}
    unused = run(tmp_path, UNUSED, forks=forks)
    assert (unused.failure, unused.unit, unused.units) == ("", "optimizer", 20)
    assert unused.results["losses"]
    assert "jax" not in unused.features


IMPORTING = (
    "import os, sys; sys.dont_write_bytecode = False; sys.modules.pop('of_program', 0); "
    "sys.pycache_prefix = str(id(os)); import of_program"
)


@pytest.mark.parametrize(
    ("line", "change", "failure"),
    [("pass", "options['rate'] = 0.1", "update reads rate, which has changed"),
     ("pass", "Options.rate = 0.1", "update reads rate, which has changed"),
     ("log.append(1)", "pass", "update changes log when it is called"),
     ("told['steps'] += 1", "pass", "update changes steps when it is called"),
     ("next(rates)", "pass", "update reads rates, which has changed"),
     ("update.calls += 1", "pass", "update changes calls when it is called"),
     ("print(1)", "pass", "update changes what is printed when it is called"),
     ("import sys; sys.stderr.write('1')", "pass", "update changes what is printed when"),
     ("import logging; logging.getLogger('x').warning('1')", "pass", "changes what is logged"),
     ("file.write('x')", "pass", "update changes file when it is called"),
     ("open('log', 'a').close()", "pass", "update changes files when it is called"),
     ("import pathlib; pathlib.Path('a').write_text('x')", "pass", "update changes files when"),
     ("import os; os.makedirs('folder', exist_ok=True)", "pass", "update changes files and"),
     ("import subprocess; subprocess.run(['true'])", "pass", "update starts a process when"),
     ("time.perf_counter()", "pass", "update reads the clock when it is called"),
     ("datetime.now()", "pass", "update reads the clock when it is called"),
     ("import uuid; uuid.uuid4()", "pass", "update changes random numbers when it is called"),
     ("open('log').close()", "pass", "update reads files when it is called"),
     ("import os.path; os.path.exists('log')", "pass", "update looks at files when"),
     ("time.sleep(0)", "pass", "update sleeps when it is called"),
     ("import warnings; warnings.warn('careful')", "pass", ""),
     ("import os; os.environ.get('RATE')", "import os; os.environ['RATE'] = '1'",
      "update reads the environment, which has changed"),
     (IMPORTING, "pass", ""),
     ("named.rate", "named.rate = 0.1", "update reads rate, which has changed"),
     ("pass", "named.steps = step", ""), ("named.rate", "named.steps = step", ""),
     ("pass", "pass", "")],
)  # fmt: skip
def test_no_function_is_jitted_that_a_trace_would_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, change: str, failure: str
) -> None:
    (tmp_path / "jax.py").write_text(JAX)
    (tmp_path / "of_program.py").write_text("")
    program = CHANGING.replace("CHANGED", repr(change)).replace("LINE", line)
    program = program.replace("CHANGE", change)
    monkeypatch.chdir(tmp_path)
    assert run(tmp_path, program).failure == ""
    jitted = run(tmp_path, program, "jax-jit")
    assert failure in jitted.failure
    assert bool(jitted.failure) is bool(failure)
    assert failure or jitted.applied == {"jax-jit"}


LARGE = "tables = [[float(each) for each in range(40)] for _ in range(95)]\n"  # dear to look at


def test_what_changes_while_nobody_looks_is_seen_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "jax.py").write_text(JAX)
    monkeypatch.chdir(tmp_path)
    program = CHANGING.replace("CHANGED", "''").replace("LINE", "len(tables)")
    program = LARGE + program.replace("CHANGE", "options['rate'] = 0.1")
    assert "update reads rate, which has changed" in run(tmp_path, program, "jax-jit").failure


ABANDONED = """
import torch
torch.manual_seed(0)
model, head = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.1, weight_decay=0.1)
for step in range(30):
    output = model(torch.ones(1, 4))
    loss = output.sum() + (head(output).sum() if step < LAST else 0)
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("last", "is_used"), [("10", False), ("30", True), ("0", True)])
def test_zeros_of_what_is_used_no_more_are_not_dropped(
    tmp_path: Path, forks: TorchForks, last: str, *, is_used: bool
) -> None:
    """Its weights decay with them."""
    result = run(tmp_path, ABANDONED.replace("LAST", last), "set-to-none", forks=forks)
    assert ("a parameter has no gradient in a step" in result.failure) is not is_used


PROBED = """
import torch
class Own(torch.optim.Adam):
    pass
model, probe = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
optimizers = [torch.optim.PROBE(probe.parameters(), lr=0.1),
              torch.optim.Adam(model.parameters(), foreach=False)]
own = Own(model.parameters())
for step in range(30):
    output = model(torch.ones(1, 4))
    (output.sum() + probe(output.detach()).sum()).backward()
    for optimizer in [own, *optimizers]:
        optimizer.step()
        optimizer.zero_grad()
"""


@pytest.mark.parametrize("names", [["SGD", "Adam"], ["Adam"]])
def test_lines_to_keep_name_all_optimizers_that_are_switched(
    tmp_path: Path, forks: TorchForks, names: list[str]
) -> None:
    program = PROBED.replace("PROBE", names[0])
    unchanged = run(tmp_path, program, forks=forks)
    changed = run(tmp_path, program, "fused-optimizer", forks=forks)
    evidence = Evidence([unchanged, changed], [(SWITCHES["fused-optimizer"],)])
    kept = outcome(evidence, ("python",), 60.0).rows[0].keep
    lines = [line.partition("(")[0] for line in kept]
    assert lines == [f"optimizer = torch.optim.{name}" for name in names]


HELD = """
import torch
model, flat = torch.nn.Linear(4, 4, bias=False), torch.zeros(16)
other = torch.optim.SGD(torch.nn.Linear(4, 4).parameters(), lr=0.1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
HOLD
for step in range(30):
    optimizer.zero_grad(set_to_none=False)
    other.zero_grad(set_to_none=False)
    model(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    LOOK
"""


@pytest.mark.parametrize(
    ("hold", "look", "is_held"),
    [("model.weight.grad = flat.view(4, 4)", "pass", True),
     ("model.weight.grad = held = torch.zeros(4, 4)", "pass", True),
     ("pass", "held = model.weight.grad if step == 5 else None if step < 5 else held", True),
     ("pass", "seen = [each.grad for each in model.parameters()]", False),
     ("pass", "for each in model.parameters(): gradient = each.grad", False),
     ("pass", "pass", False)],
)  # fmt: skip
def test_gradients_that_a_program_keeps_are_not_dropped(
    tmp_path: Path, forks: TorchForks, hold: str, look: str, is_held: bool
) -> None:
    program = HELD.replace("HOLD", hold).replace("LOOK", look)
    result = run(tmp_path, program, "set-to-none", forks=forks)
    assert ("the program keeps gradients" in result.failure) is is_held
    assert is_held or result.applied == {"set-to-none"}


MODULE_LEVEL = """
import jax
def loss(x): return x
x = jax.Array(1.0)
for _ in range(20):
    x = jax.Array(x.value - jax.value_and_grad(loss)(x).value)
    x = jax.Array(x.value - jax.grad(lambda x: x)(x).value)
"""


def test_lines_to_keep_name_all_that_is_jitted(tmp_path: Path) -> None:
    (tmp_path / "jax.py").write_text(JAX)
    jitted = run(tmp_path, MODULE_LEVEL, "jax-jit")
    assert str(jitted.facts["jitted"]).splitlines() == [
        "gradient = jax.jit(jax.value_and_grad(loss))", "gradient_1 = jax.jit(jax.grad(...))",
    ]  # fmt: skip


OPTAX = """
from typing import Any, NamedTuple
class GradientTransformation(NamedTuple):
    init: Any
    update: Any
class GradientTransformationExtraArgs(GradientTransformation): pass
def apply_updates(params, updates): return updates
"""
STEPPED = """
import jax, optax
opt = optax.GradientTransformation(None, lambda gradient, state: (gradient, state))
def loss(x): return x
def train_step(x):
    updates, _ = opt.update(jax.grad(loss)(x), ())
    return optax.apply_updates(x, updates)
x = jax.Array(1.0)
for _ in range(20):
    STEP
"""


def test_lines_to_keep_are_of_the_programs_names_and_of_outermost_functions(
    tmp_path: Path,
) -> None:
    (tmp_path / "jax.py").write_text(JAX)
    (tmp_path / "optax.py").write_text(OPTAX)
    update = "optax.apply_updates(x, opt.update(jax.grad(loss)(x), ())[0])"
    lines = ["train_step = jax.jit(train_step)"]
    lines += ["gradient = jax.jit(jax.grad(loss))", "update = jax.jit(opt.update)"]
    lines += ["apply_updates = jax.jit(optax.apply_updates)"]
    for step, kept in (("train_step(x)", lines[:1]), (update, lines[1:])):
        jitted = run(tmp_path, STEPPED.replace("STEP", f"x = {step}"), "jax-jit")
        assert jitted.failure == ""
        assert sorted(str(jitted.facts["jitted"]).splitlines()) == sorted(kept)
    site = tmp_path / "site"
    (site / "library.dist-info").mkdir(parents=True)
    (site / "library.py").write_text("def step(tx, x): return tx.update(x, ())[0]")
    program = STEPPED.replace("STEP", "x = library.step(opt, jax.grad(loss)(x))")
    program = f"import sys; sys.path.append({str(site)!r}); import library\n{program}"
    jitted = run(tmp_path, program, "jax-jit")
    assert "opt = opt._replace(update=jax.jit(opt.update))" in str(jitted.facts["jitted"])


INLINE = """
import sys; sys.path.append(SITE); import jax, optax, library
class Holder: pass
held = Holder()
held.inner = Holder()
held.inner.tx = optax.GradientTransformation(None, lambda gradient, state: (gradient, state))
for _ in range(20):
    library.step(held.inner, jax.grad(lambda x: x)(jax.Array(1.0)))
"""


@pytest.mark.parametrize(
    ("method", "kept"),
    [("", "held.inner.tx = held.inner.tx._replace(update=jax.jit(held.inner.tx.update))"),
     ("Holder.replace = None",
      "held.inner = held.inner.replace("
      "tx=held.inner.tx._replace(update=jax.jit(held.inner.tx.update)))")],
)  # fmt: skip
def test_lines_to_keep_reach_what_a_library_calls(tmp_path: Path, method: str, kept: str) -> None:
    (tmp_path / "jax.py").write_text(JAX)
    (tmp_path / "optax.py").write_text(OPTAX)
    site = tmp_path / "site"
    (site / "library.dist-info").mkdir(parents=True)
    step = "def step(held, x): return optax.apply_updates(x, held.tx.update(x, ())[0])"
    (site / "library.py").write_text(f"import optax\n{step}")
    program = INLINE.replace("SITE", repr(str(site)))
    jitted = run(tmp_path, program.replace("held = ", f"{method}\nheld = "), "jax-jit")
    assert jitted.failure == ""
    lines = str(jitted.facts["jitted"]).splitlines()
    assert {kept, "optax.apply_updates = jax.jit(optax.apply_updates)"} <= {*lines}


@pytest.mark.parametrize(
    ("options", "donated"),
    [({}, "(0,)"), ({"donate_argnums": ()}, "(0,)"), ({"donate_argnums": 0}, "0"),
     ({"donate_argnames": "state"}, "None")],
)  # fmt: skip
def test_memory_that_a_program_donates_by_itself_is_left_to_it(
    tmp_path: Path, options: dict[str, object], donated: str
) -> None:
    (tmp_path / "jax.py").write_text(JAX)
    result = run(tmp_path, DONATING.format(options=options), "jax-donate")
    assert (result.failure, result.output) == ("", f"end {donated}\n")
    assert (result.applied == {"jax-donate"}) is (donated == "(0,)")


BAR = "\rEpoch:  50%|##   | 5/10 [00:05<00:05,  {}]\rEpoch: 100%|#####| 10/10 [00:09<00:00,  {}]\n"


def test_progress_and_rates_are_no_output_that_a_run_lacks() -> None:
    before = Result((), 1.0, output=BAR.format("1.02s/it", "1.01s/it") + "Took 9.1 s\nsaved\n")
    after = Result((), 1.0, output="\x1b[A" + BAR.format("1.5it/s", "1.6it/s") + "Took 800 ms\n")
    assert missing_output([before], before) == ""
    assert missing_output([before], after) == "saved"
    drawn = Result(
        (), 1.0, output="Eval: 62%|███▏ | 5/8 [00:05<00:03, 1.1s/it]\n{'eval_loss': 0.5}\n"
    )
    later = Result(
        (), 1.0, output="Eval: 75%|███▊ | 6/8 [00:03<00:01, 1.7it/s]\n{'eval_loss': 0.5}\n"
    )
    assert missing_output([drawn], later) == ""
    said = Result((), 1.0, output="/site/loader.py:434: There are few workers.\nsaved\n")
    assert missing_output([said], Result((), 1.0, output="saved\n")) == ""


NORMED = """
import torch
from torch.nn.utils.parametrizations import weight_norm
net = weight_norm(torch.nn.Linear(4, 4))
assert net.weight.any()  # as an initializer: it calls a module that is a part of it
with torch.no_grad():
    for _ in range(20):
        output = net(torch.ones(1, 4))
print(output.dtype)
"""


def test_a_module_that_was_called_alone_may_be_part_of_another(
    tmp_path: Path, forks: TorchForks
) -> None:
    unchanged, lower = (run(tmp_path, NORMED, *n, forks=forks) for n in ((), ("bf16",)))
    for result in (unchanged, lower):
        assert (result.failure, result.units) == ("", 20)
        assert result.unit == "forward of ParametrizedLinear"
        assert result.output == "torch.float32\n"
    assert lower.applied == {"bf16"}


COPIED = """
import copy, torch
class Net(torch.nn.Linear): pass
net = Net(4, 4)
net(torch.ones(1, 4))
other = Net.__new__(Net)
other.__dict__ = net.__dict__.copy()
other._parameters = {name: torch.zeros_like(p) for name, p in net._parameters.items()}
third = Net(4, 4)
third.__dict__.update(copy.deepcopy(vars(other)))
for _ in range(20):
    net(torch.ones(1, 4))
print(float(other(torch.ones(1, 4)).sum()), float(third(torch.ones(1, 4)).sum()))
"""
TWO = """
import itertools, time, torch
first, second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
for step in range(3000):
    second(first(torch.ones(1, 4)))
    time.sleep(0.001)
print("end")
"""


def test_copies_of_a_modules_attributes_are_other_modules(
    tmp_path: Path, forks: TorchForks
) -> None:
    result = run(tmp_path, COPIED, forks=forks)
    assert (result.failure, result.output) == ("", "0.0 0.0\n")


def test_a_window_ends_of_two_modules_that_take_turns(tmp_path: Path, forks: TorchForks) -> None:
    result = run(tmp_path, TWO, forks=forks, extent=Extent(window=0.05))
    assert (result.failure, result.stopped, result.output) == ("", True, "")
    assert result.unit == "forward of Linear 2"


BLOCKED = """
import time, torch
from types import SimpleNamespace as Names
passes, before, work, host = map(float, "{words}".split())
free = 0.0
class Event:
    def __init__(self, enable_timing): self.at = 0.0
    def record(self): self.at = max(time.perf_counter(), free)
    def elapsed_time(self, other): return (other.at - self.at) * 1e3
vars(torch.cuda).update(
    Event=Event, is_initialized=lambda: True, is_current_stream_capturing=lambda: False,
    synchronize=lambda: None, get_device_name=lambda: "", max_memory_allocated=lambda: 0,
)
allowed = Names(allow_tf32=False, matmul=Names(allow_tf32=False))
torch.backends = Names(cudnn=allowed, cuda=allowed)
optimizer = torch.optim.Optimizer()
for step in range(60):
    for micro_batch in range(int(passes)):
        time.sleep(before)
        free = max(time.perf_counter(), free) + work
        time.sleep(host)
        torch.Tensor().backward()
        time.sleep(max(0.0, free - time.perf_counter()))  # what loss.item() does
    optimizer.step()
"""


@pytest.mark.parametrize(("work", "host", "limit"), [(8e-3, 1e-3, "device"), (1e-3, 8e-3, "host")])
def test_a_host_that_waits_before_each_step_is_not_what_limits_it(
    tmp_path: Path, work: float, host: float, limit: str
) -> None:
    assert limit_of(tmp_path, f"2 0 {work} {host}") == limit


def test_a_kernel_at_the_end_of_a_steps_only_backward_does_not_limit_it(tmp_path: Path) -> None:
    assert limit_of(tmp_path, "1 4e-3 1e-3 0") == "host"


@pytest.mark.parametrize(("starting", "each", "limit"), [(0.3, 0.0, "host"), (0.0, 2e-3, "input")])
def test_loaders_that_start_their_workers_do_not_limit_what_follows(
    tmp_path: Path, starting: float, each: float, limit: str
) -> None:
    program = LOADING.format(starting=starting, each=each)
    result = run(tmp_path, program, extent=Extent(window=0.1), path=write_torch(tmp_path))
    assert (result.failure, result.unit, result.limit) == ("", "optimizer", limit)


LOADING = """
import time, torch
from torch.utils.data import dataloader
class Loader(dataloader._BaseDataLoaderIter):
    def _next_data(self):
        time.sleep(self.seconds)
        self.seconds = {each}
loader, optimizer = Loader(), torch.optim.Optimizer()
loader.seconds = {starting}
for _ in range(60):
    next(loader)
    time.sleep(4e-3)
    optimizer.step()
"""


def limit_of(folder: Path, words: str) -> str:
    """What limits the program of these words."""
    program = BLOCKED.format(words=words)
    result = run(folder, program, extent=Extent(window=0.2), path=write_torch(folder))
    assert (result.failure, result.unit) == ("", "optimizer"), result.output
    return result.limit


def test_what_follows_the_units_that_count_is_timed(tmp_path: Path) -> None:
    program = "import time, torch\noptimizer = torch.optim.Optimizer()\n"
    program += "for _ in range(60):\n    time.sleep(2e-3)\n    optimizer.step()\ntime.sleep(0.5)"
    extent = Extent(window=0.05, grace=60.0)
    result = run(tmp_path, program, extent=extent, path=write_torch(tmp_path))
    assert (result.failure, result.stopped, result.is_whole) == ("", True, True)
    assert 0.5 < result.rest < result.seconds


TRAINED = """
import torch
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-6)
for step in range(12):
    x = torch.randn(64, 16)
    optimizer.zero_grad()
    (net(x) - x.sum(1, keepdim=True)).square().mean().backward()
    GRADIENTS
    optimizer.step()
    AFTER
"""


NOISE = "with torch.no_grad(): [p.add_(torch.randn_like(p), alpha=1e-3) for p in net.parameters()]"
"""A thousand times what a step moves parameters by, as in Langevin dynamics."""


@pytest.mark.parametrize(
    ("gradients", "changes", "is_same"),
    [
        ("[p.grad.mul_(1 + 1e-6) for p in net.parameters()]", "rounding", True),
        ("[p.grad.zero_() for p in net[2].parameters()]", "rounding", False),
        ("[p.grad.zero_() for p in net.parameters()]", "precision", False),
        ("[p.grad.neg_() for p in net.parameters()]", "precision", False),
    ],
)
@pytest.mark.parametrize("after", ["pass", NOISE])
def test_wrong_updates_are_seen_where_losses_hardly_move(
    tmp_path: Path, forks: TorchForks, gradients: str, changes: Changes, is_same: bool, after: str
) -> None:
    trained = TRAINED.replace("AFTER", after)
    programs = [trained.replace("GRADIENTS", each) for each in ("pass", gradients)]
    unchanged, changed = (run(tmp_path, program, forks=forks) for program in programs)
    losses = [structs.replace(each, results={"losses": each.results["losses"]})
              for each in (unchanged, changed)]  # fmt: skip
    alone = judged([losses[0]], [], [losses[1]], {changes})
    assert alone is not None
    assert alone.is_same
    judgment = judged([unchanged], [], [changed], {changes})
    assert judgment is not None
    assert judgment.is_same is is_same


SCALED = """
import torch
torch.manual_seed(0)
net = torch.nn.Linear(16, 1)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**18)
for step in range(14):
    x = torch.randn(64, 16)
    with torch.autocast("cpu", torch.float16):
        loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""


def test_steps_that_a_scaler_skips_move_no_parameters(tmp_path: Path, forks: TorchForks) -> None:
    """A fused optimizer is called in those, too, and another one is not."""
    unchanged = run(tmp_path, SCALED, forks=forks)
    fused = run(tmp_path, SCALED, "fused-optimizer", forks=forks)
    assert any(name.startswith("updates") for name in fused.results)
    judgment = judged([unchanged], [], [fused], {"rounding"})
    assert judgment is not None
    assert judgment.is_same


def test_an_optimizer_with_other_attributes_runs_as_it_does_alone(
    tmp_path: Path, forks: TorchForks
) -> None:
    """What is not to be sampled is left out, and ends no program."""
    own = """
class Own(torch.optim.Optimizer):
    found_inf = torch.zeros(2)
    def __init__(self, parameters, **defaults):
        super().__init__(parameters, defaults)
    def step(self):
        for parameter in self.param_groups[0]["params"]:
            parameter.data -= 1e-3 * parameter.grad
optimizer = Own"""
    program = TRAINED.replace("GRADIENTS", "pass").replace("AFTER", "pass")
    program = program.replace("optimizer = torch.optim.AdamW", own)
    result = run(tmp_path, program, forks=forks)
    assert result.failure == ""
    assert result.units == 12
