"""`profkit.profile`, `compare` and `sweep` on the CPU, and on a made GPU that works later."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from collections import UserDict
from collections.abc import Callable, Mapping
from html import unescape
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import profkit
from tests.callables.made_gpu import make_driver, needs_compiler
from tests.clock import READING, install
from tests.conftest import ROOT, Cli

torch = pytest.importorskip("torch", reason="tensors need torch")

QUICK: dict[str, Any] = {"warmup_ms": 2, "samples": 40, "blocks": 4}
WAIT = 2e-4  # s of a call
Waits = Callable[[float], Callable[[Any], Any]]


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROFKIT_LOCK_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Waits:
    """Functions that take so many seconds, by a clock that they move."""
    passes = install(monkeypatch)

    def taking(seconds: float) -> Callable[[Any], Any]:
        def wait(x: Any) -> Any:
            passes(seconds)
            return x + 1

        return wait

    return taking


def plus_one(x: Any) -> Any:
    return x + 1


def test_a_call_is_timed_checked_and_saved(tmp_path: Path, profkit_cli: Cli, waits: Waits) -> None:
    x = torch.arange(8, dtype=torch.float32)
    work = profkit.Work(8, 64, "eight additions")
    run = profkit.profile(waits(WAIT), x, reference=plus_one, work=work, **QUICK)
    assert run.verdict == "PASSED"
    assert run.check
    assert run.check.error == 0
    assert WAIT <= min(run.latency.latency.samples) < 1.01 * WAIT
    assert run.median >= WAIT
    low, high = run.interval or (run.median, run.median)
    assert low <= run.median <= high
    assert run.median == np.median(run.latency.latency.samples)
    assert run.latency.latency.target.shapes == {"x": "8"}
    head = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    commit = subprocess.run(head, capture_output=True, text=True, check=False).stdout.strip()
    assert run.times
    assert (run.times.fingerprint.commit or {}).get("commit", "") == commit
    file = run.save(tmp_path / "run.json")
    document = json.loads(file.read_text("utf-8"))
    assert document["series"][0]["flop_rate"]["value"] == pytest.approx(8 / run.median)
    again = profkit_cli("time", "--from", file)
    assert "wait  " in again.stdout
    assert "eight additions, float32" in again.stdout


def test_a_decorated_function_returns_its_run_and_keeps_the_plain_one() -> None:
    @profkit.profile(**QUICK)
    def double(x: Any, *, by: int = 2) -> Any:
        """Multiplies."""
        return x * by

    assert (double.__name__, double.__doc__) == ("double", "Multiplies.")
    assert double.__wrapped__(3) == 6
    run = double(torch.ones(4), by=3)
    assert run.verdict == "UNCHECKED"
    assert run.latency.latency.target.shapes == {"x": "4", "by": 3}
    assert isinstance(profkit.profile(plus_one)(1), profkit.Run)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: x + 1.001, "relative error"),
        (lambda x: (x + 1)[:4], "shape (4,), the reference has (8,)"),
        (lambda x: x / 0, "not finite"),
        (lambda _: None, "returned NoneType, no array"),
        (lambda x: (x, x), "returned 2 arrays, the reference 1"),
    ],
)
def test_a_wrong_result_is_not_timed(function: Callable[..., Any], reason: str) -> None:
    x = torch.arange(8, dtype=torch.float32)
    run = profkit.profile(function, x, reference=plus_one, **QUICK)
    assert run.verdict == "WRONG"
    assert reason in repr(run)
    with pytest.raises(profkit.TargetFailed, match="not timed"):
        run.median  # noqa: B018
    with pytest.raises(profkit.TargetFailed):
        run.save("nowhere.json")


def test_the_reference_may_be_the_expected_result_and_integers_must_be_equal() -> None:
    x = torch.arange(8)
    assert profkit.profile(plus_one, x, reference=x + 1, **QUICK).verdict == "PASSED"
    assert profkit.profile(plus_one, x, reference=x + 2, **QUICK).verdict == "WRONG"


def test_arguments_stay_as_they_are() -> None:
    x = torch.zeros(4)
    run = profkit.profile(lambda x: x.add_(1), x, reference=torch.ones(4), **QUICK)
    assert run.verdict == "PASSED"
    assert not x.any()
    assert "writes to its arguments" in run.notes[0]


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128, torch.int64])
def test_a_reference_that_writes_gets_copies_too(dtype: Any) -> None:
    x = torch.ones(4, dtype=dtype)
    run = profkit.profile(lambda x: x * 2, x, reference=lambda x: x.mul_(2), **QUICK)
    assert run.verdict == "PASSED"
    assert torch.equal(x, torch.ones(4, dtype=dtype))


def append_one(values: list[Any], x: Any) -> Any:
    values.append(1)
    return x + 1


def append_array(values: list[Any], x: Any) -> Any:
    values.append(x)
    return x + 1


def count_up(values: list[Any], x: Any) -> Any:
    values[0] += 1
    return x + 1


@pytest.mark.parametrize("function", [append_one, append_array, count_up])
def test_a_list_that_a_call_changes_stays_as_it_is(function: Callable[..., Any]) -> None:
    values = [0]
    run = profkit.profile(function, values, torch.ones(3), **QUICK)
    assert values == [0]
    assert "writes to its arguments" in run.notes[0]


@pytest.mark.parametrize("grad", [None, torch.ones(2)])
def test_gradients_stay_as_they_are(grad: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    x.grad = grad

    def backward(x: Any) -> Any:
        (x * 2).sum().backward()
        return x.grad

    right = torch.full((2,), 2.0 if grad is None else 3.0)
    run = profkit.profile(backward, x, reference=right, **QUICK)
    assert run.verdict == "PASSED"
    assert x.grad is grad
    assert grad is None or torch.equal(grad, torch.ones(2))
    assert "each call goes on from what the previous one left" in run.notes[0]


def test_a_cache_in_a_mapping_stays_as_it_is() -> None:
    cache: dict[str, Any] = {}
    run = profkit.profile(lambda cache, x: cache.update(key=x), cache, torch.ones(3), **QUICK)
    assert not cache
    assert "writes to its arguments" in run.notes[0]


class Named(dict[str, Any]):
    """A mapping with its values as attributes, as models of some libraries return and take."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


@pytest.mark.parametrize("kind", [Named, UserDict, MappingProxyType])
def test_mappings_stay_of_their_type(kind: Callable[..., Mapping[str, Any]]) -> None:
    seen = set()

    def double(values: Mapping[str, Any]) -> Any:
        seen.add(type(values))
        return values["x"] * 2

    given = {"x": torch.ones(3)}
    run = profkit.profile(double, kind(given), reference=torch.full((3,), 2.0), **QUICK)
    assert run.verdict == "PASSED"
    assert seen == {kind}


def test_a_comparison_has_the_verdict_of_profkit_time(waits: Waits) -> None:
    x = torch.zeros(4)
    options = QUICK | {"blocks": 8}
    slower = profkit.compare(waits(WAIT), waits(6 * WAIT), x, **options)
    assert slower.verdict == "REGRESSED"
    comparison = slower.comparison.comparison
    fastest = [min(timed.latency.samples) for timed in slower.latencies.values()]
    assert fastest == pytest.approx([WAIT, 6 * WAIT], rel=0.01)
    assert comparison.low <= comparison.speedup <= comparison.high
    assert list(slower.latencies) == ["1/wait", "2/wait"]
    turns = [
        (block.turn, label)
        for label, timed in slower.latencies.items()
        for block in timed.latency.blocks
    ]
    assert [label[0] for _, label in sorted(turns)][:4] == ["1", "2", "2", "1"]
    faster = profkit.compare(waits(6 * WAIT), waits(WAIT), x, **options)
    assert faster.verdict == "IMPROVED"


def test_profile_and_compare_measure_alike_and_say_where_a_median_is_chance(waits: Waits) -> None:
    """A call of which every third waits as threads do on a busy machine: the median of single calls
    is that of the others, that of means of several calls is not."""
    turns = iter(range(1_000_000))

    def uneven(x: Any) -> Any:
        return waits(20e-3 if next(turns) % 3 == 0 else 50e-6)(x)

    x, words = torch.ones(4), "a few slow samples take most of the time"
    alone = profkit.profile(uneven, x, **QUICK)
    both = profkit.compare(waits(WAIT), uneven, x, **{**QUICK, "blocks": 6})
    for run in (alone, both):
        assert any(re.match(f".*uneven: the mean, .*{words}", line) for line in run.remarks)
        assert "host clock" in repr(run)


def test_calls_of_a_sample_are_named_for_each_that_has_others(waits: Waits) -> None:
    run = profkit.compare(waits(1e-7), waits(2e-3), torch.ones(4), **{**QUICK, "blocks": 6})
    shown = " ".join(repr(run).split())
    assert re.search(r"1/wait: host clock, \d+ samples \(each the mean of \d+ calls\) in", shown)
    assert re.search(r"2/wait: host clock, \d+ samples in", shown)


def test_a_limit_that_the_fewest_samples_exceed_is_reported(waits: Waits) -> None:
    options = QUICK | {"seconds": 10 * WAIT}
    long = profkit.profile(waits(WAIT), torch.zeros(1), **options)
    assert len(long.latency.latency.samples) == 12
    assert "12 samples in 4 blocks, the fewest, took" in long.notes[0]
    assert "more than seconds=0.002; everything took" in long.notes[0]
    assert not profkit.profile(waits(WAIT / 10), torch.zeros(1), **options).notes


def test_a_comparison_of_one_block_is_refused_before_it_is_measured() -> None:
    calls: list[Any] = []
    with pytest.raises(profkit.UsageError, match="a comparison needs 2"):
        profkit.compare(calls.append, plus_one, 1, blocks=1)
    assert not calls


def test_reading_the_clock_is_no_part_of_a_short_call(waits: Waits) -> None:
    assert profkit.profile(waits(READING), 1, **QUICK).median == pytest.approx(READING, rel=0.02)


def test_a_candidate_that_computes_something_else_is_wrong() -> None:
    x = torch.ones(64)
    run = profkit.compare(plus_one, lambda x: x + 1.01, x, **QUICK)
    assert run.verdict == "WRONG"
    assert "relative error" in repr(run)


def returns_nothing(_: Any) -> None:
    return None


def writes_and_returns_nothing(x: Any) -> None:
    x += 1


def test_a_candidate_that_does_nothing_is_wrong() -> None:
    x = torch.ones(1)
    run = profkit.compare(plus_one, returns_nothing, x, **QUICK)
    assert run.verdict == "WRONG"
    assert "returned NoneType, no array" in repr(run)
    written = profkit.compare(plus_one, writes_and_returns_nothing, x, **QUICK)
    assert any("was not compared" in note for note in written.notes)


def product(a: Any, x: Any) -> Any:
    return a @ x


def gradient_of_square(x: Any) -> Any:
    return torch.autograd.grad((x * x).sum(), x)[0]


def double_values(sparse: Any) -> Any:
    values = sparse._values() if sparse.is_sparse else sparse.values()
    return values.mul_(2)


COMPLEX = torch.tensor([1 + 2j, 3 - 4j], dtype=torch.complex64)


@pytest.mark.filterwarnings("ignore:Sparse")  # torch says of some layouts that they are new
@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr", "to_sparse_csc"])
def test_sparse_tensors_are_checked_and_timed(layout: str) -> None:
    sparse, x = getattr(torch.eye(3), layout)(), torch.ones(3, 1)
    run = profkit.profile(product, sparse, x, reference=product, **QUICK)
    assert run.verdict == "PASSED"
    assert not run.notes
    written = profkit.profile(double_values, sparse, **QUICK)
    assert "writes to its arguments" in written.notes[0]
    assert torch.equal(sparse.to_dense(), torch.eye(3))


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (lambda x: x.to_sparse(), (torch.eye(3),)),
        (plus_one, (COMPLEX.conj(),)),
        (plus_one, (COMPLEX.conj().imag,)),
        (lambda x: x.conj(), (COMPLEX,)),
        (torch.nn.Linear(3, 3), (torch.ones(2, 3),)),
        (gradient_of_square, (torch.ones(3, requires_grad=True),)),
    ],
)
def test_tensors_of_all_kinds_are_checked_and_timed(
    function: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    run = profkit.profile(function, *arguments, reference=function, **QUICK)
    assert run.verdict == "PASSED"
    assert not run.notes


async def awaited(x: Any) -> Any:
    return x + 1


def yielding(x: Any) -> Any:
    yield x + 1


@pytest.mark.parametrize(
    ("function", "argument", "words"),
    [
        (awaited, 1, "returns a coroutine"),
        (yielding, 1, "returns a generator"),
        (lambda x: map(str, x), [1], "returns a map"),
        (sum, iter([1, 2]), "gets an iterator (list_iterator)"),
    ],
)
def test_what_is_computed_later_is_not_timed(
    function: Callable[..., Any], argument: Any, words: str
) -> None:
    with pytest.raises(profkit.UsageError) as error:
        profkit.profile(function, argument, **QUICK)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_results_in_one_buffer_are_told_apart() -> None:
    x, out = torch.ones(4, dtype=torch.float64), torch.empty(4, dtype=torch.float64)

    def times(factor: float) -> Callable[[Any], Any]:
        return lambda x: torch.mul(x, factor, out=out)

    assert profkit.compare(times(2), times(3), x, **QUICK).verdict == "WRONG"
    assert profkit.profile(times(3), x, reference=times(2), **QUICK).verdict == "WRONG"


def test_a_run_shows_itself_alike_in_all_forms(waits: Waits) -> None:
    run = profkit.compare(waits(WAIT), waits(2 * WAIT), torch.zeros(4), **QUICK)
    text, html, markdown = repr(run), run._repr_html_(), run._repr_markdown_()
    assert text.splitlines()[0] == f"1/wait → 2/wait  {run.verdict}"
    for shown in (html, re.sub(r"\\", "", markdown)):
        assert run.verdict in shown
        for line in text.splitlines()[1:]:
            value = re.split(r"  +", line.strip(), maxsplit=1)[-1].removeprefix("! ")
            assert value in unescape(shown)


def test_what_was_not_recorded_says_how_to_record_it() -> None:
    run = profkit.profile(plus_one, torch.zeros(4), **QUICK)
    assert run.recording is None
    for ask in (lambda: run.kernels, run.checklist, run.roofline, lambda: run.report):
        with pytest.raises(profkit.EnvironmentProblem, match="ncu=True"):
            ask()
    with pytest.raises(profkit.UsageError, match="was not compared"):
        run.comparison  # noqa: B018


def test_numbers_of_numpy_are_numbers() -> None:
    keywords: dict[str, Any] = QUICK | {"samples": np.int64(8), "warmup_ms": np.float64(1.0)}
    run = profkit.profile(plus_one, torch.zeros(4), **keywords)
    assert run.latency.summary.n >= 8


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"sample": 3}, "did you mean samples?"),
        ({"samples": 0}, "samples: expected"),
        ({"margin": 5}, "margin: expected"),
        ({"preset": "lax"}, "preset: invalid enum value 'lax'"),
        ({"seconds": 0}, "seconds: expected"),
    ],
)
def test_a_wrong_keyword_is_one_line(keywords: dict[str, Any], words: str) -> None:
    with pytest.raises(profkit.UsageError) as error:
        profkit.profile(plus_one, torch.zeros(4), **keywords)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_an_exception_of_the_function_is_its_own() -> None:
    def fails(_: Any) -> Any:
        raise KeyError("its own")

    with pytest.raises(KeyError, match="its own"):
        profkit.profile(fails, 1)


def test_a_sweep_is_a_table_with_a_row_a_point(waits: Waits) -> None:
    grid: dict[str, list[Any]] = {"n": [8, 16], "seconds": [WAIT, 2 * WAIT]}

    def make_inputs(n: int, seconds: float) -> tuple[Any, float]:
        return torch.ones(n), seconds

    def wait(x: Any, seconds: float) -> Any:
        return waits(seconds)(x)

    table = profkit.sweep(
        wait, grid, make_inputs=make_inputs, reference=lambda x, _: x + 1, **QUICK
    )
    assert list(table["n"]) == [8, 8, 16, 16]
    assert set(table["verdict"]) == {"PASSED"}
    assert (table["median"] >= table["seconds"]).all()
    known = table.dropna(subset=["low"])
    assert ((known["low"] <= known["median"]) & (known["median"] <= known["high"])).all()
    assert (table["samples"] == 40).all()
    with pytest.raises(profkit.UsageError, match="column"):
        profkit.sweep(plus_one, {"median": [1]})


def test_numpy_and_plain_values_are_timed_too() -> None:
    values = np.random.default_rng(0).random(100)
    run = profkit.profile(np.sort, values, reference=np.sort, **QUICK)
    assert run.verdict == "PASSED"
    assert profkit.profile(sorted, list(values), **QUICK).verdict == "UNCHECKED"


WITH_JAX = """
import json, sys, timeit
sys.path.insert(0, sys.argv[1])
import jax, profkit
x = jax.numpy.ones((700, 700))
multiply = jax.jit(lambda a: a @ a)
QUICK = dict(warmup_ms=2, samples=8, blocks=4)
run = profkit.profile(multiply, x, reference=lambda a: a @ a, **QUICK)
loop = min(timeit.repeat(lambda: multiply(x).block_until_ready(), number=1, repeat=10))
try:
    profkit.profile(lambda _: None, x, **QUICK)
except profkit.UsageError as error:
    print(json.dumps([run.verdict, run.median, loop, str(error)]))
"""


@pytest.mark.usefixtures("new_processes")  # JAX starts threads
def test_jax_is_waited_for() -> None:
    """A product is submitted in microseconds and takes milliseconds."""
    if importlib.util.find_spec("jax") is None:
        pytest.skip("jax is not installed")
    verdict, median, loop, error = output_of(WITH_JAX, str(ROOT))
    assert verdict == "PASSED"
    assert median > 0.3 * loop
    assert "returns no array of JAX" in error


def output_of(program: str, *arguments: str) -> Any:
    """What a program in a process of its own prints as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


ON_A_GPU = """
import ctypes, json, sys
import numpy
driver = ctypes.CDLL(sys.argv[1])
driver.launch.argtypes, driver.perf_counter.restype = [ctypes.c_double], ctypes.c_double
sys.path.insert(0, sys.argv[2])
import profkit
from profkit.timing import stopwatches
stopwatches.time = driver
def submit(seconds):
    return lambda x: driver.launch(seconds)
run = profkit.profile(submit(3e-4), numpy.zeros(4), warmup_ms=20, samples=40, blocks=4)
pair = profkit.compare(submit(3e-4), submit(6e-4), numpy.zeros(4), warmup_ms=20, seconds=2)
print(json.dumps([
    min(run.latency.latency.samples), run.latency.latency.timer, run.latency.latency.gpu.name,
    run.notes, [min(timed.latency.samples) for timed in pair.latencies.values()],
    "torch" in sys.modules,
]))
"""


@needs_compiler
@pytest.mark.usefixtures("new_processes")
def test_work_of_a_gpu_is_waited_for_without_torch(tmp_path: Path) -> None:
    """The host submits a call in a microsecond; the made GPU takes 300."""
    driver = make_driver(tmp_path)
    fastest, timer, gpu, notes, pair, has_torch = output_of(ON_A_GPU, str(driver), str(ROOT))
    assert fastest == pytest.approx(3e-4, rel=0.02)
    assert pair == pytest.approx([3e-4, 6e-4], rel=0.02)
    assert (timer, gpu) == ("synchronized", "Made GPU")
    assert "host clock" in notes[0]
    assert not has_torch


def test_a_method_is_measured_with_its_object() -> None:
    class Layer:
        shift = 1.0

        @profkit.profile(reference=lambda layer, x: x + layer.shift, **QUICK)
        def forward(self, x: Any) -> Any:
            return x + self.shift

    assert Layer().forward(torch.zeros(4)).verdict == "PASSED"
