"""`profkit.profile` and `profkit.compare`: callables measured where they are.

    run = profkit.profile(softmax, x, reference=torch.softmax)
    run = profkit.compare(before, after, x)

    @profkit.profile(reference=torch.softmax, ncu=True)
    def softmax(x): ...
    softmax(x).checklist()

A decorated function returns its Run when it is called, and not its result: nothing that is measured
hides in a program's own calls. The plain function is `softmax.__wrapped__`.
"""

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial, update_wrapper
from pathlib import Path
from typing import Any, Unpack, overload

from msgspec import UNSET

from profkit.callables.arrays import dtype_of, framework, leaves
from profkit.callables.examination import Examination, Invocation, agreement, examine
from profkit.callables.options import Keywords, Options, options_of
from profkit.callables.recording import record
from profkit.callables.run import Run
from profkit.callables.surroundings import Surroundings, surroundings
from profkit.callables.timekeeper import CallableTimekeeper
from profkit.callables.transfer import stop_at_measurement
from profkit.capture import driver
from profkit.capture.correctness import Declared, Status, Verdict
from profkit.capture.gpu import NoDriver, states
from profkit.core.errors import UsageError
from profkit.core.typed_file import convert, plain
from profkit.core.work import Work
from profkit.timing import measurement
from profkit.timing.budget import FEWEST_IN_A_BLOCK
from profkit.timing.latency_format import LatencyFile
from profkit.timing.stopwatch import Cache, Settings, Timer, Unseen
from profkit.timing.verdict import FEWEST_BLOCKS
from profkit.ui.text import number

_UNNAMED = "function"
_UNSURE = (
    "no array is on the GPU, which this process uses: timed by the host clock until the GPU is "
    "idle (device='cpu' leaves the GPU out)"
)
_IS_SIZE = (int, float, str, bool)


class MeasuredFunction:
    """A function that is measured when it is called; `__wrapped__` is the function itself."""

    __wrapped__: Callable[..., Any]
    __name__: str

    def __init__(self, function: Callable[..., Any], options: Options) -> None:
        update_wrapper(self, function)
        self._options = options

    def __call__(self, *args: Any, **kwargs: Any) -> Run:
        return measure_calls(invocations([self.__wrapped__], args, kwargs), self._options)

    def __get__(self, instance: object, owner: type | None = None) -> Callable[..., Run]:
        """Bound to its object, as a method is: the object is the first argument."""
        return self if instance is None else partial(self, instance)


@overload
def profile(
    function: Callable[..., Any], first: Any, /, *args: Any, **keywords: Unpack[Keywords]
) -> Run: ...
@overload
def profile(function: Callable[..., Any], /, **keywords: Unpack[Keywords]) -> MeasuredFunction: ...
@overload
def profile(**keywords: Unpack[Keywords]) -> Callable[[Callable[..., Any]], MeasuredFunction]: ...
def profile(
    function: Callable[..., Any] | None = None, /, *args: Any, **keywords: Unpack[Keywords]
) -> Run | MeasuredFunction | Callable[[Callable[..., Any]], MeasuredFunction]:
    """Measure a call: check it against `reference=`, time it as `profkit time` does, and with
    `ncu=True` record it with Nsight Compute.

    `profile(f, x)` returns the Run of f(x); `profile(f)` a function that does so when it is called,
    as does `@profile` and `@profile(reference=...)` above a definition. A function without
    arguments is `profile(f)()`. Keywords are those of `profkit.callables.options.Options`.

    A wrong result is not timed: the Run's verdict is "WRONG". Where the call writes to its
    arguments, copies of them are used. Raises what the function raises, UsageError for a wrong
    keyword, and as `profkit.timing.measurement.measure`.
    """
    options = options_of(keywords)
    if function is None:
        return partial(MeasuredFunction, options=options)
    if not callable(function):
        raise UsageError(
            f"profile takes a callable, not {type(function).__name__}", "profile(f, x)"
        )
    profiled = MeasuredFunction(_plain(function), options)
    return profiled(*args) if args else profiled


def compare(
    baseline: Callable[..., Any],
    candidate: Callable[..., Any],
    /,
    *args: Any,
    **keywords: Unpack[Keywords],
) -> Run:
    """Time two callables with the same arguments, interleaved, with a verdict on the second.

    "IMPROVED": it is faster than the first. Both are checked against `reference=`; without one the
    second is checked against the first's result. Raises as `profile`.
    """
    return measure_calls(invocations([baseline, candidate], args, {}), options_of(keywords))


def invocations(
    functions: Sequence[Callable[..., Any]], args: Sequence[Any], kwargs: Mapping[str, object]
) -> list[Invocation]:
    """The calls of functions with the same arguments, by names that tell them apart."""
    plain = [_plain(function) for function in functions]
    names = [call_name(function) for function in plain]
    if len(set(names)) < len(names):
        names = [f"{number}/{name}" for number, name in enumerate(names, start=1)]
    pairs = zip(names, plain, strict=True)
    return [Invocation(name, function, args, kwargs) for name, function in pairs]


def measure_calls(calls: Sequence[Invocation], options: Options) -> Run:
    """The Run of one callable, or of several with verdicts against the first."""
    stop_at_measurement()
    if len(calls) > 1 and options.blocks < FEWEST_BLOCKS:
        raise UsageError(
            f"blocks={options.blocks}: a comparison needs {FEWEST_BLOCKS}",
            f"blocks={measurement.BLOCKS}",
        )
    reference = _plain(options.reference)
    examinations = [examine(call, reference) for call in calls]
    checks = _checks(examinations, options)
    wrong = next((check for check in checks if check.status is Status.failed), None)
    first = calls[0]
    if wrong:
        return Run(" → ".join(call.name for call in calls), wrong, None)
    arrays = [*first.arrays, *(leaf for each in examinations for leaf in leaves(each.result))]
    environment = surroundings(arrays, options.device)
    _refuse_unwaited(examinations)
    notes = [_UNSURE] if environment.unsure else []
    notes += [
        f"{each.call.name} writes to its arguments: timed on copies, where each call goes on from "
        "what the previous one left; copy them in the function if its time depends on that"
        for each in examinations
        if each.writes
    ]
    notes += _uncompared(examinations, checks)
    used = [each.call.on_copies() if each.writes else each.call for each in examinations]
    declaration = _declaration(calls, examinations[0], options)
    del examinations, arrays
    report = _timed(used, options, environment, declaration, checks, notes)
    recording = record(used[-1], options) if options.ncu else None
    check = next((check for check in checks if check.name == calls[-1].name), None)
    return Run(report.title, check, report, recording, tuple(notes))


def _refuse_unwaited(examinations: Sequence[Examination]) -> None:
    """Raise UsageError for work of JAX that only what it returns could be waited for by."""
    for each in examinations:
        used = {framework(array) for array in each.call.arrays}
        if "jax" in used and not any(framework(x) == "jax" for x in leaves(each.result)):
            raise UsageError(
                f"{each.call.name} returns no array of JAX, so that nothing can be waited for",
                "return what it computes",
            )


def _checks(examinations: Sequence[Examination], options: Options) -> list[Verdict]:
    """The checks against the reference; of several callables without one, against the first."""
    if options.reference is not None:
        return [each.verdict for each in examinations if each.verdict]
    first, *later = examinations
    verdicts = (
        agreement(each.call.name, each.result, first.result)
        for each in later
        if each.result is not None or not each.writes  # what it writes is not compared
    )
    return [verdict for verdict in verdicts if verdict]


def _uncompared(examinations: Sequence[Examination], checks: Sequence[Verdict]) -> Iterator[str]:
    """Notes on callables of which some return arrays, but were not checked."""
    checked = {check.name for check in checks}
    if any(True for each in examinations for _ in leaves(each.result)):
        for each in examinations[1:]:
            if (name := each.call.name) not in checked:
                yield f"{name}: its result was not compared with the first's: one has no array"


def _timed(
    calls: Sequence[Invocation],
    options: Options,
    environment: Surroundings,
    declaration: Declared,
    checks: Sequence[Verdict],
    notes: list[str],
) -> LatencyFile:
    """Times, and verdicts on all against the first; by the host clock where events see nothing."""
    timer = environment.timer(options.timer)
    around = environment.around(options.stream, timer)
    keeper = CallableTimekeeper(
        calls, declaration, environment, around, checks, _folder(calls[-1].function)
    )
    labels = tuple(call.name for call in calls) if len(calls) > 1 else ()
    plan = measurement.TimingPlan(
        subjects=(measurement.Subject(Path(calls[0].name), tuple(call.name for call in calls)),),
        settings=_settings(options, timer),
        samples=options.samples,
        blocks=options.blocks if labels else min(options.samples, options.blocks),
        margin=options.thresholds.margin,
        seconds=math.inf if options.seconds is None else options.seconds,
        device=environment.device,
        gpu=_nvml_index(environment),
        check=bool(checks),
    )
    plan = measurement.paired(plan) if labels else plan
    try:
        timing = measurement.time_targets(plan, lambda _stage, _detail: None, [keeper])
    except Unseen as unseen:
        if options.timer is not None:
            raise
        notes.append(f"timed by the host clock, since CUDA events don't see all: {unseen.message}")
        plan = replace(plan, settings=_settings(options, Timer.synchronized))
        timing = measurement.time_targets(plan, lambda _stage, _detail: None, [keeper])
    report = measurement.latency_report(timing, plan, labels=labels, thresholds=options.thresholds)
    notes += _beyond_limit(report, options)
    return report


def _beyond_limit(report: LatencyFile, options: Options) -> Iterator[str]:
    """Notes on callables of which the fewest samples took longer than their limit."""
    for timed in report.series:
        latency = timed.latency
        samples, blocks = len(latency.samples), len(latency.blocks)
        seconds = sum(latency.samples) * (latency.ready.group or 1)
        if options.seconds is None or seconds <= options.seconds:
            continue
        if samples <= FEWEST_IN_A_BLOCK * blocks:
            yield (
                f"{latency.label}: {samples} samples in {blocks} blocks, the fewest, took "
                f"{number(seconds, 's')}, more than seconds={options.seconds:g}; everything took "
                f"{number(report.seconds or seconds, 's')}: fewer blocks= take less"
            )


def _settings(options: Options, timer: Timer) -> Settings:
    """The host clock times calls one after the other, with the L2 cache as they leave it."""
    cache = Cache.warm if timer is Timer.synchronized else Cache(options.cache)
    return Settings(timer, cache, options.warmup_ms / 1e3)


def _declaration(
    calls: Sequence[Invocation], examination: Examination, options: Options
) -> Declared:
    """What the first call's arguments say, and the names of all, as a target declares it."""
    first = calls[0]
    arrays = [*first.arrays, *leaves(examination.result)]
    work = options.work
    if work is not None and not isinstance(work, Work):
        work = work(*first.args, **first.kwargs)
    return Declared(
        name=" → ".join(call.name for call in calls),
        shapes=dict(_shapes(first)),
        dtype=dtype_of(arrays[0]) if arrays else UNSET,
        work=convert(plain(work), Work) if work else None,
    )


def _folder(function: Callable[..., Any]) -> Path | None:
    """The folder of the file that defines a function; None for one of a notebook or in C."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    file = Path(code.co_filename) if code else None
    return file.parent if file and file.is_file() else None


def _shapes(call: Invocation) -> Iterator[tuple[str, Any]]:
    """The sizes of arguments by their names: "4096x4096" of an array, a number as it is."""
    try:
        values = inspect.signature(call.function).bind(*call.args, **call.kwargs).arguments
    except (TypeError, ValueError):
        values = {**{str(place): value for place, value in enumerate(call.args)}, **call.kwargs}
    for name, value in values.items():
        if framework(value) and hasattr(value, "shape"):
            yield name, "x".join(map(str, value.shape)) or "1"
        elif isinstance(value, _IS_SIZE):
            yield name, value


def _nvml_index(environment: Surroundings) -> int | None:
    """The GPU by the driver's count; None where it is unknown, and on the CPU."""
    gpu = driver.device(environment.number) if environment.device == "cuda" else None
    with suppress(NoDriver):
        return next((each.index for each in states() if gpu and each.uuid == gpu.uuid), None)
    return None


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    return function.__wrapped__ if isinstance(function, MeasuredFunction) else function


def call_name(function: Callable[..., Any]) -> str:
    """A name for tables and files: that of the function, without what only Python can read."""
    name = getattr(function, "__name__", "") or type(function).__name__
    return name.strip("<>") or _UNNAMED
