"""Real programs: torch on the CPU, and plain Python, from the command line."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from profkit.core.errors import EnvironmentProblem
from profkit.trial.checks import judged, spread
from profkit.trial.evidence import Evidence
from profkit.trial.outcome import outcome
from profkit.trial.run import WALL, Extent, Result, run_program
from tests.trial.torch_forks import SWITCHES, TorchForks, torch_forks


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TorchForks]:
    variables = {**os.environ, "OMP_NUM_THREADS": "1"}
    with torch_forks(tmp_path_factory.mktemp("forks"), variables) as made:
        yield made


TRAINING = """
import torch
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten(), torch.nn.Linear(144, 2))
optimizer = torch.optim.Adam(net.parameters())
data = TensorDataset(torch.randn(80, 3, 8, 8), torch.randint(0, 2, (80,)))
for x, y in DataLoader(data, batch_size=4):
    loss = torch.nn.functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item(), type(net).__name__)
"""


def written(folder: Path, program: str) -> Path:
    (folder / "train.py").write_text(program)
    return folder / "train.py"


def run(command: tuple[str, ...]) -> Result:
    """A run in a fresh process."""
    return run_program(command, (), Extent(), environment=dict(os.environ), timeout=600)


EVALUATED_FIRST = """
import torch
net = torch.nn.Linear(4, 4).eval()
with torch.no_grad():
    net(torch.ones(1, 4))
optimizer = torch.optim.SGD(net.train().parameters(), 0.1)
for _ in range(20):
    net(torch.ones(1, 4)).sum().backward()
    optimizer.step()
print(net.weight.dtype)
"""


def test_parameters_that_are_trained_keep_their_precision(
    tmp_path: Path, forks: TorchForks
) -> None:
    features = frozenset({"backward", "optimizer"})
    result = forks.run(written(tmp_path, EVALUATED_FIRST), ["bf16"], features=features)
    assert result.applied == {"bf16"}
    assert result.output == "torch.float32\n"


PERTURBED = """
import torch
for dtype in (torch.float64, torch.float32, torch.bfloat16):
    net = torch.nn.Linear(4, 4, dtype=dtype)
    torch.nn.init.ones_(net.weight)
    net(torch.ones(1, 4, dtype=dtype))
    print((net.weight - 1).abs().amin().item() / torch.finfo(dtype).eps)
"""


def test_a_perturbation_is_one_rounding_error_of_each_type(
    tmp_path: Path, forks: TorchForks
) -> None:
    result = forks.run(written(tmp_path, PERTURBED), perturb="rounding")
    assert result.output == "1.0\n1.0\n1.0\n"


ROUNDED = """
import torch
for dtype in (torch.float32, torch.bfloat16):
    net = torch.nn.Linear(4, 4, dtype=dtype)
    torch.nn.init.constant_(net.weight, 1 + 2**-7 + 2**-9)
    net(torch.ones(1, 4, dtype=dtype))
    print(set(net.weight.double().flatten().tolist()))
"""


def test_lower_precision_is_imitated_by_parameters_of_bfloat16(
    tmp_path: Path, forks: TorchForks
) -> None:
    result = forks.run(written(tmp_path, ROUNDED), perturb="precision")
    assert result.output == "{1.0078125}\n{1.0078125}\n"


PARTS_WITHOUT_SDPA = """
import torch, types
class Part(torch.nn.Linear):
    def __init__(self, others):
        super().__init__(4, 4)
        self.config, self.others = types.SimpleNamespace(_attn_implementation="eager"), others
    def set_attn_implementation(self, name):
        if name not in self.others:
            raise ValueError(name)
        self.config._attn_implementation = name
net = torch.nn.Sequential(Part([]), Part(["sdpa"]))
net(torch.ones(1, 4))
print([part.config._attn_implementation for part in net])
"""


def test_a_part_without_another_attention_keeps_its_own(tmp_path: Path, forks: TorchForks) -> None:
    features = frozenset({"attention"})
    result = forks.run(written(tmp_path, PARTS_WITHOUT_SDPA), ["sdpa-flash"], features=features)
    assert result.output == "['eager', 'sdpa']\n"


def test_a_program_that_fails_without_an_error_has_its_exit_code(tmp_path: Path) -> None:
    program = written(tmp_path, "print('saved'); raise SystemExit(3)\n")
    assert run((sys.executable, str(program))).failure == "exit code 3: saved"


def test_switches_of_a_training_program(tmp_path: Path, forks: TorchForks) -> None:
    program = written(tmp_path, TRAINING)
    training = (sys.executable, str(program))
    unchanged = forks.run(program)
    assert unchanged.failure == ""
    assert unchanged.unit == "optimizer"
    assert unchanged.units == 20
    assert unchanged.features >= {"convolution", "float32", "loader", "unfused-optimizer"}
    assert not unchanged.features & {"cuda", "generate", "inference", "attention"}
    names = ("bf16", "channels-last", "fused-optimizer", "gc-frozen", "inference-mode")
    changed = forks.run(program, names[:-1], Extent("optimizer", 12))
    assert changed.stopped
    assert changed.units == 12
    assert changed.applied == set(names[:-1])
    workers = forks.run(program, ["loader-workers"], Extent("optimizer", 12))
    keep = outcome(
        Evidence([unchanged, workers], [(SWITCHES["loader-workers"],)]), training, 60.0
    ).rows[0].keep  # fmt: skip
    assert f"num_workers={workers.facts['workers']}, persistent_workers=True)" in keep[0]
    fused = tuple(SWITCHES[name] for name in names[:-1])
    kept = outcome(Evidence([unchanged, changed], [fused]), training, 60.0).rows[0].keep
    assert "optimizer = torch.optim.Adam(model.parameters(), ..., fused=True)" in kept
    judgment = judged([unchanged], [], [changed], {"rounding", "precision"})
    assert judgment is not None
    assert judgment.is_same
    assert judgment.difference > 1e-5  # of bfloat16
    failed = forks.run(program, ["inference-mode"])
    assert "does not require grad" in failed.failure


def test_workers_that_are_started_anew_are_kept_as_they_were(
    tmp_path: Path, forks: TorchForks
) -> None:
    program = TRAINING.replace("batch_size=4", "batch_size=4, worker_init_fn=lambda number: None")
    train, switches = written(tmp_path, program), (SWITCHES["loader-workers"],)
    workers = forks.run(train, ["loader-workers"], Extent("optimizer", 12))
    trial = outcome(Evidence([forks.run(train), workers], [switches]), (str(train),), 60.0)
    assert trial.rows[0].keep[0].endswith("persistent_workers=False)")


VALIDATED = """
import multiprocessing.process as processes, time, torch
torch.set_num_threads(1)
start = processes.BaseProcess.start
def slow(process):
    time.sleep(0.5)
    start(process)
processes.BaseProcess.start = slow
def loader():
    return torch.utils.data.DataLoader(torch.randn(4, 8), batch_size=4)
model, early, x = torch.nn.Linear(8, 8), loader(), torch.randn(4, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
    if step in (8, 10):
        list(early)
    if step == 15:
        list(loader())
"""


def test_the_start_of_workers_that_stay_is_no_part_of_a_step(
    tmp_path: Path, forks: TorchForks
) -> None:
    times = forks.run(written(tmp_path, VALIDATED), ["loader-workers"], Extent()).times
    assert len(times) >= 12
    assert [time > 0.4 for time in times].count(True) == 1  # of workers that are new in each epoch
    assert min(times) > 0


AUXILIARY = """
import torch
torch.manual_seed(0)
torch.set_num_threads(1)
body, other = torch.nn.Linear(8, 8), torch.nn.Linear(20, 20)
optimizer = torch.optim.AdamW([*body.parameters(), *other.parameters()], lr=1e-2, weight_decay=0.1)
x = torch.randn(16, 8)
for step in range(30):
    optimizer.zero_grad(set_to_none=False)
    loss = (body(x) ** 2).mean()
    if step == 0:
        loss = loss + 0.1 * (other(torch.ones(1, 20)) ** 2).mean()
    loss.backward()
    optimizer.step()
    print(step, "norm %.4f" % other.weight.norm().item())
"""


def test_weights_and_printed_numbers_are_results_beside_losses(
    tmp_path: Path, forks: TorchForks
) -> None:
    program = written(tmp_path, AUXILIARY)
    unchanged = [run((sys.executable, str(program))), forks.run(program)]
    changed = forks.run(written(tmp_path, AUXILIARY.replace("False", "True")))
    assert changed.failure == ""
    assert spread(unchanged) == 0
    assert unchanged[0].features == unchanged[1].features
    losses = {"losses": changed.results["losses"]}
    for series, kept in (("number 2", {"results": losses}), ("parameters", {"printed": {}})):
        judgment = judged([replace(each, **kept) for each in unchanged], [], [changed], {"nothing"})
        assert judgment is not None
        assert not judgment.is_same
        assert judgment.series.startswith(series)


def cli(folder: Path, *words: str, program: str, stdin: int | None = None) -> subprocess.Popen[str]:
    (folder / "program.py").write_text(program)
    command = [sys.executable, "-m", "profkit", "try", *words, "--", sys.executable, "program.py"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.Popen(
        command, cwd=folder, env=environment, text=True, stdin=stdin,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


PLAIN = "import time; time.sleep(0.05); print('value', 3)"


def test_a_program_without_steps_is_timed_as_a_whole(tmp_path: Path) -> None:
    process = cli(
        tmp_path, "--switch", "no-change", "--budget", "60s", "--format", "json", program=PLAIN
    )
    stdout, stderr = process.communicate(timeout=300)
    trial = json.loads(stdout)
    is_decided = trial["rows"][0]["status"] != "undecided"
    assert process.returncode == (0 if is_decided else 3)
    assert "runs many times" in stderr
    assert trial["schema"] == "profkit.try/1"
    assert trial["unchanged"]["unit"] == WALL
    assert trial["unchanged"]["difference"] == 0
    assert not trial["checked"]  # of no gain


def test_a_copy_keeps_the_folder_as_it_was(tmp_path: Path) -> None:
    program = "open('made', 'w').close()"
    words = ("--in-copy", "--switch", "no-change", "--budget", "60s")
    process = cli(tmp_path, *words, program=program)
    process.communicate(timeout=300)
    assert process.returncode in {0, 3}
    assert [path.name for path in tmp_path.iterdir()] == ["program.py"]


RESUMING = """
import os, time
old = os.path.exists("saved")
WRITE
time.sleep(0.05)
print("value", 1 if old else 10)
"""


@pytest.mark.parametrize("copied", [True, False])
@pytest.mark.parametrize("write", ["open('saved', 'w').close()", "os.system('touch saved')"])
def test_a_run_does_not_read_what_another_wrote(
    tmp_path: Path, write: str, *, copied: bool
) -> None:
    """Unless no hook hears who has written it, which is told."""
    words = ["--switch", "no-change", "--budget", "60s", "--format", "json"]
    program = RESUMING.replace("WRITE", write)
    process = cli(tmp_path, *words, *["--in-copy"] * copied, program=program)
    stdout, _ = process.communicate(timeout=300)
    trial = json.loads(stdout)
    assert trial["unchanged"]["runs"] > 1
    is_heard = write.startswith("open")
    if copied or is_heard:
        assert trial["unchanged"]["difference"] == 0
    else:
        assert "--in-copy" in trial["unchanged"]["faulty"]
        assert trial["rows"][0]["status"] in {"undecided", "unverified"}
    assert (tmp_path / "saved").exists() is not (copied or is_heard)


def test_a_failing_program_is_reported(tmp_path: Path) -> None:
    process = cli(tmp_path, program="raise ValueError('no data')")
    stdout, stderr = process.communicate(timeout=300)
    assert process.returncode == 6
    assert not stdout
    assert stderr.count("the unchanged program failed: ValueError: no data\n") == 1
    assert stderr.count("no data") == 1


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("lost", "lost: no such program; check the path"),
        ("./run.py", "./run.py: not an executable program; use `-- python ./run.py`"),
        ("./run", "./run: not an executable program; chmod +x ./run"),
        ("./room", "./room: a directory, not a program; check the path"),
    ],
)
def test_what_is_no_program_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, problem: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "room").mkdir()
    for file in ("run", "run.py"):
        (tmp_path / file).touch()
    with pytest.raises(EnvironmentProblem, match=re.escape(problem)):
        run((name,))


def test_an_interruption_keeps_results_and_leaves_no_process(tmp_path: Path) -> None:
    program = (
        "import os, time\n"
        "is_first = not os.path.exists('.cache/pids')\n"
        "os.makedirs('.cache', exist_ok=True)\n"
        "with open('.cache/pids', 'a') as file: file.write(f'{os.getpid()} ')\n"
        "time.sleep(0.1 if is_first else 600)"
    )
    words = ("--switch", "no-change", "--format", "json")
    process = cli(tmp_path, *words, program=program)
    pids = tmp_path / ".cache" / "pids"
    deadline = time.monotonic() + 300
    while not pids.exists() or len(pids.read_text().split()) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    stdout, _ = process.communicate(timeout=300)
    trial = json.loads(stdout)
    assert process.returncode == 130
    assert trial["interrupted"]
    assert trial["runs"] == 1
    gone = time.monotonic() + 300
    for pid in pids.read_text().split():
        while Path(f"/proc/{pid}").exists():  # init reaps what has ended when it comes to it
            assert time.monotonic() < gone, Path(f"/proc/{pid}/stat").read_text()
            time.sleep(0.02)


SUMMING = "import sys, time; time.sleep(0.05); print('sum', sum(map(int, sys.stdin)))"


def test_each_run_reads_what_is_piped(tmp_path: Path) -> None:
    words = ("--switch", "no-change", "--budget", "60s", "--format", "json")
    process = cli(tmp_path, *words, program=SUMMING, stdin=subprocess.PIPE)
    stdout, stderr = process.communicate("1\n2\n", timeout=300)
    trial = json.loads(stdout)
    assert trial["unchanged"]["runs"] > 1
    assert trial["unchanged"]["difference"] == 0
    assert "no input" not in stderr
    with cli(tmp_path, program="input()", stdin=subprocess.PIPE) as process:
        assert process.wait(300) == 6  # without an end of the pipe
        assert process.stderr is not None
        assert "nothing was piped to it within 1 s: runs read no input" in process.stderr.read()


def test_a_hang_ends_by_the_budget(tmp_path: Path) -> None:
    program = "import time; print('loss 1.5', flush=True); time.sleep(600)"
    process = cli(tmp_path, "--budget", "2s", program=program)
    _, stderr = process.communicate(timeout=300)
    assert process.returncode == 6
    assert re.search(r"ended after \d+ s, its limit; raise --budget$", stderr, re.MULTILINE)


LOADING = """
import torch
from torch.utils.data import DataLoader, Dataset
class Scale(torch.nn.Module):
    def forward(self, x):
        return 2 * x
class Images(Dataset):
    scale = Scale()
    def __len__(self):
        return 120
    def __getitem__(self, place):
        return self.scale(torch.ones(4) * place)
net = torch.nn.Linear(4, 4)
for batch in DataLoader(Images(), batch_size=4):
    net(batch)
"""


def test_what_a_loader_calls_is_no_module_of_the_program(tmp_path: Path, forks: TorchForks) -> None:
    result = forks.run(written(tmp_path, LOADING))
    assert result.unit == "forward of Linear"
    assert list(result.results) == ["forward of Linear"]


GENERATING = """
import time, torch
from transformers.generation.utils import GenerationMixin
class Model(torch.nn.Module, GenerationMixin):
    config = None
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)
    def forward(self, x):
        time.sleep(0.002)
        return self.layer(x)
model = Model()
for _ in range(9):
    model.generate(torch.zeros(2, 3, dtype=torch.long))
"""
MIXIN = """
import torch
class GenerationMixin:
    def generate(self, inputs):
        for _ in range(40):
            self(torch.ones(1, 4))
        return torch.cat([inputs, torch.arange(80).reshape(2, 40)], dim=1)
"""


def test_calls_of_generate_are_units_though_forwards_end_before(
    tmp_path: Path, forks: TorchForks
) -> None:
    package = tmp_path / "transformers" / "generation"
    package.mkdir(parents=True)
    (package / "utils.py").write_text(MIXIN)
    program = written(tmp_path, GENERATING)
    result = forks.run(program, (), Extent(window=0.05, grace=300))
    assert result.unit == "generate"
    assert (result.units, result.stopped, result.is_whole) == (5, True, True)
    assert result.results["tokens"][1] == [float(token) for token in range(40, 80)]
    compiled = forks.run(program, (), Extent("generate", 5).compiled)
    assert (compiled.units, len(compiled.times)) == (9, 4)  # those after four that compile


NAMED_AT_RANDOM = """
import os, random
import numpy
name = f"runs/{numpy.random.randint(10**9)}"
if os.path.exists(name):
    raise FileExistsError(name)
os.system(f"mkdir -p {name}")  # which no hook hears
print("score", numpy.random.rand())
"""


MADE_AT_RANDOM = """
import os
import numpy
os.makedirs(f"runs/{numpy.random.randint(10**9)}")
print("score", numpy.random.rand())
"""


BUSY_ONCE = """
import os
import numpy
os.makedirs(".cache", exist_ok=True)
with open(".cache/starts", "a+") as starts:
    starts.write("one more\\n")
    starts.seek(0)
    if len(list(starts)) == 2:
        raise RuntimeError("out of memory, by another job")
print("score", numpy.random.rand())
"""


@pytest.mark.parametrize(
    "program",
    [NAMED_AT_RANDOM, MADE_AT_RANDOM, BUSY_ONCE],
    ids=["needed", "put back", "of the moment"],
)
def test_runs_are_seeded_unless_the_program_fails_by_it(tmp_path: Path, program: str) -> None:
    words = ("--switch", "no-change", "--budget", "60s", "--format", "json")
    stdout, stderr = cli(tmp_path, *words, program=program).communicate(timeout=300)
    trial = json.loads(stdout)
    assert (trial["failure"], trial["rows"][0]["status"] == "failed") == ("", False)
    is_unseeded = "runs are not seeded: with equal random numbers, FileExistsError" in stderr
    assert is_unseeded is ("mkdir -p" in program)
    assert is_unseeded or trial["unchanged"]["difference"] == 0


IN_PROCESSES = """
import subprocess, sys
if len(sys.argv) == 1:
    subprocess.run([sys.executable, __file__, "inner"])
import numpy
print(numpy.random.rand(), flush=True)
"""


def test_processes_of_a_program_draw_their_own_random_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = (sys.executable, str(written(tmp_path, IN_PROCESSES)))
    drawn = [run(command).output.split() for _ in range(2)]
    assert drawn[0][1] == drawn[1][1]
    assert len({*drawn[0], *drawn[1]}) == 3
    monkeypatch.setenv("RANK", "1")  # of a launcher, whose processes are the program's
    ranks = [run(command).output.split() for _ in range(2)]
    assert ranks[0][1] == ranks[1][1] != drawn[0][1]
    assert len({*ranks[0], *ranks[1]}) == 3
