"""Runs that are forks of a program whose libraries are imported: as if each were started anew."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from profkit.trial.prepared import Plan, Prepared
from profkit.trial.run import Extent, Result, hooked_environment, run_program
from profkit.trial.switch import all_switches
from profkit.trial.trial import Subject, try_program
from profkit.trial.trial_file import TrialFile
from tests.trial.imitated_torch import write_torch

PROGRAM = """
import atexit, gc, json, os, random, sys
print("at first", flush=True)
print("buffered")
random.seed(5)
import threading
threading.Thread(target=str).start()
import torch
import numpy
gc.freeze()  # or a fork's end looks at all of torch
atexit.register(print, "at the end")
layer = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(layer.parameters())
for _ in range(20):
    layer(torch.ones(1, 2)).sum().backward()
    optimizer.step()
known = [__name__, __file__, sys.argv, sys.path, os.getcwd(), os.environ["PROFKIT_TEST"]]
print(json.dumps([*known, sys.stdin.read(), random.random()]))
print("drawn by nobody's seed", numpy.random.rand(), torch.rand(1), file=sys.stderr)
sys.exit(3)
"""


@pytest.fixture
def imitated_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """For programs of which only the import of torch counts; its folder."""
    monkeypatch.setenv("PYTHONPATH", path := write_torch(tmp_path))
    return path


@contextmanager
def prepared(folder: Path, command: tuple[str, ...], first: Result) -> Iterator[Prepared]:
    environment = hooked_environment({**os.environ, "PROFKIT_TEST": "set"}, folder)
    modules, importing = [*first.modules, "numpy"], str(first.facts.get("importing", ""))
    made = Prepared(folder, command, environment, modules, first.changed, importing)
    try:
        while made.fault is None:
            time.sleep(0.01)
        yield made
    finally:
        made.discard()


def run_and_fork(folder: Path, command: tuple[str, ...]) -> list[Result]:
    """A run from its start, and two forks."""
    run = partial(run_program, command, (), Extent(), environment=os.environ, timeout=600)
    first = run()
    with prepared(folder, command, first) as made:
        assert made.fault == ""
        return [first, *(run(prepared=made) for _ in range(2))]


def test_a_fork_is_as_a_process_from_its_start(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "prepared").mkdir()
    command = (sys.executable, str(tmp_path / "train.py"), "--epochs", "1")
    environment = {**os.environ, "PROFKIT_TEST": "set"}

    def run(made: Prepared | None) -> Result:
        return run_program(
            command, (), Extent(), environment=environment, timeout=600, prepared=made
        )

    first = run(None)
    with prepared(tmp_path / "prepared", command, first) as made:
        assert made.fault == ""
        forks = [run(made), run(made)]
    for fork in forks:  # random numbers that nobody seeded, too
        assert fork.output == first.output
        assert fork.output.endswith("at the end\n")
        assert fork.status == first.status == 3


@pytest.mark.usefixtures("imitated_torch")
def test_a_hanging_fork_ends_and_the_next_runs(tmp_path: Path) -> None:
    hanging = "import torch, time, os\nif os.path.exists('wait'): time.sleep(600)\nprint('done')"
    (tmp_path / "train.py").write_text(hanging.replace("'wait'", repr(str(tmp_path / "wait"))))
    (tmp_path / "prepared").mkdir()
    command = (sys.executable, str(tmp_path / "train.py"))
    with prepared(tmp_path / "prepared", command, Result((), 1.0)) as made:
        (tmp_path / "wait").touch()
        late = made.run(Plan(str(tmp_path), None, 0, None, "", (), timeout=0.5))
        assert late.status == 124
        (tmp_path / "wait").unlink()
        run = made.run(Plan(str(tmp_path), None, 0, None, "", (), timeout=300))
        assert run.output == "done\n"


NATIVE = """
import ctypes
libc, thread = ctypes.CDLL(None), ctypes.c_ulong()
libc.pthread_create(ctypes.byref(thread), None, libc.pause, None)
libc.pthread_setname_np(thread, b"{}")
"""
FAULTS: list[tuple[str, tuple[str, ...], str]] = [
    (NATIVE.format("worker"), (), "its imports start threads"),
    (NATIVE.format("jemalloc_bg_thd"), ("PL_GLOBAL_SEED",), ""),
    ("import threading; threading.Timer(99, print).start()", (), "its imports start threads"),
    ("file = open(__file__)", (), "it opens train.py before its imports"),
    ("", ("CUBLAS_WORKSPACE_CONFIG",), "it sets CUBLAS_WORKSPACE_CONFIG between imports"),
]


@pytest.mark.usefixtures("imitated_torch")
@pytest.mark.parametrize(("lines", "changed", "fault"), FAULTS)
def test_what_a_fork_would_not_inherit_is_a_fault(
    tmp_path: Path, lines: str, changed: tuple[str, ...], fault: str
) -> None:
    (tmp_path / "train.py").write_text(f"{lines}\nimport torch")
    (tmp_path / "prepared").mkdir()
    command = (sys.executable, str(tmp_path / "train.py"))
    with prepared(tmp_path / "prepared", command, Result((), 1.0, changed=changed)) as made:
        assert made.fault == fault


DRAWING = """
import random, sys
random.random()
import torch
import drawing
print(random.random(), file=sys.stderr)
random.seed(1)
torch.manual_seed(1)
print(random.random(), torch.rand(), random.Random(drawing.name) is None)
"""


def test_an_import_that_only_draws_is_brought_forward(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, imitated_torch: str
) -> None:
    (tmp_path / "drawing.py").write_text("import random; name = random.randint(0, 1 << 24)")
    (tmp_path / "train.py").write_text(DRAWING)
    (tmp_path / "prepared").mkdir()
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{imitated_torch}")
    command = (sys.executable, str(tmp_path / "train.py"))
    first, *forks = run_and_fork(tmp_path / "prepared", command)
    drawn, seeded = zip(*(run.output.splitlines() for run in (first, *forks)), strict=True)
    assert (len(set(drawn)), len(set(seeded))) == (3, 1)


def test_numbers_that_nobody_seeds_are_those_of_each_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, imitated_torch: str
) -> None:
    lines = "import numpy, torch\nprint(numpy.random.rand(), torch.rand())"
    (tmp_path / "train.py").write_text(lines)
    (tmp_path / "prepared").mkdir()
    monkeypatch.setenv("PYTHONPATH", imitated_torch)
    command = (sys.executable, str(tmp_path / "train.py"))
    runs = run_and_fork(tmp_path / "prepared", command)
    environment = {**os.environ}
    plain = run_program(
        command, (), Extent(), environment=environment, timeout=60.0, is_hooked=False
    )
    assert len({run.output for run in (*runs, plain)}) == 1


def test_an_import_that_seeds_is_not_brought_forward(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "seeding.py").write_text("import torch; torch.manual_seed(5)")
    (tmp_path / "train.py").write_text("import torch\ntorch.manual_seed(0)\nimport seeding")
    (tmp_path / "prepared").mkdir()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    command = (sys.executable, str(tmp_path / "train.py"))
    first = Result((), 1.0, modules=("seeding",))
    with prepared(tmp_path / "prepared", command, first) as made:
        assert made.fault == "its imports seed or draw random numbers"


@pytest.mark.usefixtures("imitated_torch")
def test_a_program_that_another_starts_is_not_forked(tmp_path: Path) -> None:
    (tmp_path / "prepared").mkdir()
    command = ("sh", "-c", f"{sys.executable} -c 'import torch'; echo second program")
    with prepared(tmp_path / "prepared", command, Result((), 1.0)) as made:
        assert made.fault == "another program starts it"


PAUSING = """
import os
os.makedirs(".cache", exist_ok=True)
with open(".cache/starts", "a") as starts:
    starts.write("one more\\n")
import time
import torch
now = 0
time.perf_counter_ns = lambda: now
parameter = torch.nn.Parameter(torch.zeros(1))
optimizer = torch.optim.SGD([parameter])
for step in range(300):
    optimizer.zero_grad(set_to_none=False)
    now += (2_000_000 if parameter.grad is None else 10_000_000) + step % 7
    parameter.sum().backward()
    optimizer.step()
"""


def tried(program: str, tell: Callable[[str], None] = lambda _: None) -> TrialFile:
    """The switch set-to-none tried on a program in the current folder."""
    Path("train.py").write_text(program)
    subject = Subject((sys.executable, "train.py"), dict(os.environ))
    chosen = [switch for switch in all_switches() if switch.name == "set-to-none"]
    return try_program(subject, chosen, 600.0, lambda words, _: tell(words))


def test_what_is_proven_is_confirmed_by_processes_from_their_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    trial = tried(PAUSING)
    assert trial.best == ("set-to-none",)
    assert trial.runs > 4
    started = (tmp_path / ".cache" / "starts").read_text().count("\n")
    # What is forked, the first run too, which is whole, one with the switch, and one without hooks.
    assert started == 3


def test_a_program_that_hooks_change_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    trial = tried(f"{PAUSING}import os\nprint('PROFKIT_TRIAL' in os.environ)")
    assert trial.best == ()
    assert trial.rows[0].status == "unverified"
    assert "without them, the output of the whole program lacks: True" in trial.rows[0].reason


ONCE = """
import os, tempfile
folder = tempfile.TemporaryDirectory()
import torch
optimizer = torch.optim.Optimizer()
for _ in range(50):
    optimizer.step()
open(os.path.join(folder.name, "weights"), "w").close()
"""


@pytest.mark.usefixtures("imitated_torch")
def test_a_fork_that_fails_for_what_one_before_it_did_runs_anew(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(ONCE)
    subject = Subject((sys.executable, str(tmp_path / "train.py")), os.environ)
    told: dict[str, str] = {}
    chosen = [switch for switch in all_switches() if switch.name == "gc-frozen"]
    trial = try_program(subject, chosen, 15.0, told.__setitem__)
    assert any("imports its libraries" in line and "FileNotFoundError" in line for line in told)
    assert trial.unchanged is not None
    assert trial.unchanged.runs >= 2


def test_a_package_that_uses_the_gpu_at_its_import_is_left_to_forks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, imitated_torch: str
) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "greedy.py").write_text(
        "import torch\ntorch.cuda._is_in_bad_fork = lambda: True"
    )
    (tmp_path / "prepared").mkdir()
    (tmp_path / "train.py").write_text("import torch\nimport greedy")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'site'}{os.pathsep}{imitated_torch}")
    command = (sys.executable, str(tmp_path / "train.py"))
    with prepared(tmp_path / "prepared", command, Result((), 1.0, modules=("greedy",))) as made:
        assert (made.fault, made.culprit) == ("imports of greedy use the GPU", "greedy")


def test_a_package_that_imports_torch_is_imported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, imitated_torch: str
) -> None:
    """Its modules can't be imported where torch is: it has not defined what they read."""
    for folder in ("prepared", "outer-1.0.dist-info", "outer"):
        (tmp_path / folder).mkdir()
    (tmp_path / "outer" / "__init__.py").write_text("import torch\nflag = 1\nimport outer.inner")
    (tmp_path / "outer" / "inner.py").write_text(
        f"import outer\nassert outer.flag\nopen({str(tmp_path / 'log')!r}, 'a').write('.')"
    )
    (tmp_path / "train.py").write_text("import outer\nprint(outer.inner, outer.__spec__.loader)")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{imitated_torch}")
    command = (sys.executable, str(tmp_path / "train.py"))
    first, *runs = run_and_fork(tmp_path / "prepared", command)
    assert [run.output.partition(" at 0x")[0] for run in (first, *runs)] == [
        first.output.partition(" at 0x")[0]
    ] * 3
    assert (tmp_path / "log").read_text() == ".."


LIBRARY = """
import os
os.makedirs(".cache", exist_ok=True)
def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    globals()[name] = os.environ.get("MODE", "")
    with open(".cache/log", "a") as log:
        log.write(f"{name}\\n")
    return globals()[name]
"""
USING = """
import torch
SETTING
from library import part
print(part)
optimizer = torch.optim.Optimizer()
for _ in range(60):
    optimizer.step()
"""


@pytest.mark.parametrize(
    "setting",
    [
        "",
        "import os; os.environ['MODE'] = 'fast'",
        "import os; os.environ['TRITON_PTXAS_PATH'] = ''",  # is read as kernels are compiled
    ],
)
def test_the_first_run_is_a_fork_too(
    setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, imitated_torch: str
) -> None:
    """Of one that has run the import statements, unless the program changes what they read."""
    for folder in ("site/library-1.0.dist-info", "site/library"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "site/library/__init__.py").write_text(LIBRARY)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'site'}{os.pathsep}{imitated_torch}")
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(USING.replace("SETTING", setting))
    subject = Subject((sys.executable, "train.py"), dict(os.environ))
    chosen = [switch for switch in all_switches() if switch.name == "gc-frozen"]
    told: list[str] = []
    trial = try_program(subject, chosen, 15.0, lambda words, _: told.append(words))
    assert trial.unchanged is not None
    assert trial.unchanged.runs >= 2
    imported = Path(".cache/log").read_text().count("part\n")
    is_fresh = "MODE" in setting
    why = {words for words in told if words.startswith("each run")}
    expected = "each run imports its libraries: it sets MODE between imports"
    assert why == ({expected} if is_fresh else set())
    assert setting or imported == 1
    assert imported > trial.unchanged.runs or not is_fresh


RESUMING = (
    PAUSING.replace("range(300)", "range(first, first + 100)")
    .replace("now = 0", "now, first = 0, FIRST")
    .replace("parameter.sum()", "(parameter.sum() + 100 / (1 + step))")
    + """
    if step % 10 == 9:
        print("loss", 100 / (1 + step))
        open("last", "w").write(str(step + 1))
"""
)


@pytest.mark.parametrize(
    "first",
    ["int(open('last').read()) if os.path.exists('last') else 0", "os.mkdir('last.d') or 0"],
)
def test_a_program_that_goes_on_from_what_it_wrote_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    monkeypatch.chdir(tmp_path)
    program = RESUMING.replace("FIRST", first)
    told: list[str] = []
    trial = tried(program, told.append)
    assert trial.best == ("set-to-none",)
    assert told.count("files are put back before each run: the program finds what it wrote") == 1
    assert not (tmp_path / "last").exists()
    if "mkdir" not in first:
        (tmp_path / "last").write_text("7")
        assert tried(program).best == ("set-to-none",)
        assert (tmp_path / "last").read_text() == "7"


FAILING = "import torch, os\nos.mkdir('run1')\nraise ValueError('bad data')\n"


@pytest.mark.usefixtures("imitated_torch")
@pytest.mark.parametrize(
    ("program", "reason"),
    [(FAILING, "ValueError: bad data"), (f"x = {'1 + ' * 30_000}1", "RecursionError")],
    ids=["folder", "nested"],
)
def test_a_program_that_fails_says_why_at_first(
    program: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not what its second run met with."""
    monkeypatch.chdir(tmp_path)
    assert reason in tried(program).failure


def test_the_time_of_a_whole_program_is_with_its_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, imitated_torch: str
) -> None:
    (tmp_path / "site/slow-1.0.dist-info").mkdir(parents=True)
    (tmp_path / "site/slow.py").write_text("import time\ntime.sleep(0.5)")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'site'}{os.pathsep}{imitated_torch}")
    monkeypatch.chdir(tmp_path)
    trial = tried("import torch\nimport slow\n")
    assert trial.unchanged is not None
    assert trial.unchanged.seconds > 0.5


def test_what_follows_another_statement_is_imported_by_forks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, imitated_torch: str
) -> None:
    """Which finds another module here, as the program has it."""
    for folder in ("site/vend-1.0.dist-info", "third_party"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / ".cache").mkdir()
    (tmp_path / "site/vend.py").write_text("open('.cache/log', 'w').close()")
    (tmp_path / "third_party/vend.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'site'}{os.pathsep}{imitated_torch}")
    monkeypatch.chdir(tmp_path)
    trial = tried(
        USING.replace(
            "SETTING", "import sys; sys.path.insert(0, 'third_party')\nimport vend"
        ).replace("from library import part\nprint(part)\n", "")
    )
    assert trial.failure == ""
    assert not (tmp_path / ".cache/log").exists()
