"""One run of the program with some switches: its units' times, its results, and how it ended."""

from __future__ import annotations

import math
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from textwrap import shorten
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from profkit.capture import process
from profkit.capture.copies import copy_folder
from profkit.capture.watchdog import Stalled, Watchdog
from profkit.core.typed_file import part
from profkit.execution.injection import Hook, injected
from profkit.trial.prepared import Plan, Prepared
from profkit.trial.switch import Switch
from profkit.trial.trial_file import Limit

WALL = "the whole program"
PRINTED = "number"  # with which names of printed series begin
Perturbation = Literal["rounding", "random", "precision", ""]
KEPT = "PROFKIT_KEPT"
"""The variable with the folder that keeps what runs change (`child.writes`)."""
_CHILD = Path(__file__).with_name("child") / "__init__.py"
_WRITES = _CHILD.with_name("writes.py")
_SEEDS = _CHILD.with_name("seeds.py")
_SEEDED = ("sys", "numpy.random", "torch")
_WRITING = (
    "sys", "torch.serialization", "torch.jit._script", "torch.autograd.profiler",
    "safetensors.torch", "safetensors.numpy",
)  # fmt: skip
_MODULES = (
    "torch", "jax", "optax", "transformers.generation.utils", "random", "numpy.random",
)  # fmt: skip
_LISTS = {"XLA_FLAGS": " ", "PYTORCH_CUDA_ALLOC_CONF": ","}  # variables, and what separates
TIMED_OUT = 124  # as of timeout(1)
STOPPED = "stopped"  # a file that `child.record` makes
AFTER = 2.0  # s, chosen: what else a program has to do when one of its processes was stopped
_PREPARING, _FEW = 5, 3  # first units, no part of a measurement, and its least (as in the child)
_COMPILING = 4  # calls of generate that compile, seen: for other caches and lengths
_MOSTLY = 0.9  # chosen: of the units, if the rest compiles it is no part of what lasts
_GROUPS = 10  # samples of a run, chosen: means of consecutive units, so that rare waits count
_ERROR = re.compile(r"^\s*(?:[\w.]+\.)?\w*(?:Error|Exception|Interrupt|Exit|Unsupported)\b.*")
_NUMBER = re.compile(r"[-+]?(?:\d[\d,]*\.?\d*(?:e[-+]?\d+)?|\bnan\b|\binf\b)", re.IGNORECASE)
_MEASURED = (
    r"(?:run)?times?|took|elapsed|duration|latency|throughput|fps|speed\w*|mem\w*|pid"
    r"|wall(?:[- ]?clock)?"
)
_UNITS = r"[mun]s|sec\w*|[kmg]i?b|bytes"
_TIMES = re.compile(
    rf"(?<![^\W_])(?:s/it|s|mins?|{_UNITS}|{_MEASURED})(?![^\W_])|/ ?s\b|it/s|per sec|warn"
    "|#(?::#)+",
    re.I,
)
_PLACE = "\0"  # of a number
_UNIT = rf"(?:s/it|s|mins?|{_UNITS}|fps|\w*\s?(?:/ ?s(?:ec)?|per sec\w*))(?![^\W_])"
_TIMED = re.compile(  # a time or an amount of memory, with its number
    rf"(?<![^\W_])(?:{_MEASURED})[\s:=('\"~]*\0(?::\0)*(?:\s*{_UNIT})?"
    rf"|\0(?::\0)+|\0\s*[(\[]?{_UNIT}",
    re.I,
)
_STILL_TIMED = re.compile(  # elsewhere in its line, or in columns of means, which times follow
    rf"(?<![^\W_])(?:{_UNITS}|{_MEASURED})(?![^\W_])|/ ?s\b|per sec|warn|\0\s*\(\s*\0", re.I
)
_BAR = re.compile(r"\d%\||\[[\d:]+<|it \[\d|[\u2501\u2578-\u257b]")  # of tqdm or rich
_CONTROLS = re.compile(r"\x1b\[[\d;?]*[A-Za-z]")  # of a terminal's cursor and colors
_NOT_FINITE = re.compile(rb"-?\b(?:NaN|Infinity)\b(?=[,\]])")  # as elements of lists
_LONGEST_REASON = 160  # characters, chosen: two lines of a terminal


class _Recorded(Struct, frozen=True, kw_only=True):
    """What a process of the program wrote of itself (`child.record`), and its run is said to be."""

    stopped: bool = False
    features: frozenset[str] = frozenset()
    applied: frozenset[str] = frozenset()
    facts: Mapping[str, float | str] = {}
    modules: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


class Result(_Recorded, frozen=True):
    """A run. `times` are seconds of the units that count, `results` the numbers of each result by
    series, `printed` those of printed lines where there are other results too; `waiting` is the
    share of the time in which the host waits for input, 1 where it is not known. `failure` is the
    reason why the run says nothing, "" where it does; one that `is_cut` ended with the budget. What
    `is_whole` ran to the program's end, `stopped` or not counts no more units than others, and
    goes on for `rest` seconds after them; a process of its own takes `start` seconds more.
    """

    switches: tuple[str, ...]
    seconds: float
    status: int = 0
    output: str = ""
    unit: str = WALL
    units: int = 1
    times: tuple[float, ...] = ()
    results: Mapping[str, Sequence[Sequence[float | None] | None]] = {}
    printed: Mapping[str, Sequence[Sequence[float | None] | None]] = {}
    limit: Limit = ""
    waiting: float = 1.0
    is_whole: bool = False
    rest: float = 0.0
    start: float = 0.0
    perturbed: Perturbation = ""
    is_cut: bool = False
    failure: str = ""

    @property
    def process(self) -> float:
        """Seconds of a process of its own."""
        return self.seconds + self.start

    @property
    def block(self) -> tuple[float, ...]:
        """Means of consecutive units, at most ten."""
        size = max(1, len(self.times) // _GROUPS)
        starts = range(0, len(self.times) - size + 1, size)
        return tuple(sum(self.times[start : start + size]) / size for start in starts)

    @property
    def mean(self) -> float:
        """Seconds of a unit."""
        return sum(self.times) / len(self.times)


class Extent(Struct, frozen=True):
    """How far a run goes: to the end of the `units` of a kind (0: to its own end), or until it has
    a `window` of seconds (None: to its own end), and `grace` seconds more in both cases."""

    unit: str | None = None
    units: int = 0
    window: float | None = None
    grace: float = 0.0

    @property
    def compiled(self) -> Extent:
        """How far a run goes that compiles: calls of generate do it more than once."""
        if self.unit != "generate" or not self.units:
            return self
        return replace(self, units=self.units + _COMPILING)


class _Record(_Recorded, frozen=True):
    """All that a process wrote."""

    rank: int
    written: float  # when the units that count had ended, in s since the epoch
    failure: str
    leading: str
    passed: dict[str, int]
    intervals: dict[str, list[float]]
    compiling: dict[str, list[int]]
    waiting: dict[str, float]
    backlog: dict[str, float]
    results: dict[str, list[list[float | None] | None]]


def run_program(
    command: Sequence[str],
    switches: Sequence[Switch],
    extent: Extent,
    *,
    environment: Mapping[str, str],
    timeout: float,
    perturb: Perturbation = "",
    folder: Path | None = None,
    prepared: Prepared | None = None,
    features: frozenset[str] = frozenset(),
    is_hooked: bool = True,
    begin: Callable[[], subprocess.Popen[bytes]] | None = None,
    plan_folder: Path | None = None,
) -> Result:
    """Run a program once, as a fork of `prepared` where it is given; a failure of it is a result.
    `features` are those of its first run, if there was one. `begin` lets a program go on that was
    started early, in the `hooked_environment` of `plan_folder`, where it has found this plan.

    It runs in its own copy of `folder`, where one is given, as checkpoints of one run would change
    the next; words of its command that are paths in the folder lead to the copy's.

    Raises EnvironmentProblem where the program can't be started.
    """
    names = tuple(switch.name for switch in switches)
    temporary = partial(tempfile.TemporaryDirectory, ignore_cleanup_errors=True)
    with nullcontext(plan_folder) if plan_folder else temporary(prefix="profkit-try-") as made:
        place = Path(made)
        hooks = tuple(switch.hook for switch in switches if switch.hook)
        counts = (extent.unit, extent.units, extent.window)
        plan = Plan(str(place), *counts, perturb, hooks, timeout, extent.grace, features)
        if prepared is not None:
            end, log = prepared.run(plan), prepared.place / "log"
        else:
            plan.write(place / "plan")
            own = variables_of(switches, environment).items()
            variables = {**environment, **{name: text.format(folder=made) for name, text in own}}
            hooked = hooked_environment(variables, place, is_hooked=is_hooked)
            rest, log = _Rest(math.inf, math.inf, marker=place / STOPPED), place / "log"
            start = partial(_started, command, hooked, folder, place / "copy")
            end = _run(begin or start, rest, timeout)
        records = _records(place)
        is_whole = not (place / STOPPED).exists()
        written = min((record.written for record in records), default=math.inf)
        problem = log.read_text("utf-8").strip().rpartition("\n")[2] if log.exists() else ""
        log.unlink(missing_ok=True)
    if end.status == TIMED_OUT:
        late, errors = f"ended after {end.seconds:.0f} s, its limit", _errors(end.output)[-1:]
        return Result(
            names, end.seconds, end.status, end.output, failure=": ".join([late, *errors])
        )
    result = Result(
        *(names, end.seconds, end.status, end.output),
        results=_printed(end.output),
        applied=frozenset(switch.name for switch in switches if not switch.hook),
        perturbed=perturb,
        is_whole=is_whole,
        rest=max(time.time() - written, 0.0),
        start=prepared.seconds if prepared else 0.0,
    )
    return _result(result, records, extent, problem)


def hooked_environment(
    environment: Mapping[str, str], place: Path, *, is_hooked: bool = True
) -> dict[str, str]:
    """The variables of a program that follows the plan in the folder `place`, or else of one that
    only has the files kept that it writes, and its random numbers seeded."""
    hooks = [Hook(module, _SEEDS) for module in _SEEDED]
    hooks += [Hook(module, _CHILD) for module in _MODULES if is_hooked]
    hooks += [Hook(module, _WRITES) for module in _WRITING if KEPT in environment]
    own = {"PROFKIT_OWN": str(place), "PROFKIT_TRIAL": str(place / "plan")}
    if not is_hooked:
        del own["PROFKIT_TRIAL"]
    return {**injected(environment, hooks, place / "log"), **own}


@dataclass(eq=False)
class _Rest(Watchdog):
    """Finds processes that go on after another was stopped as planned: they may wait for it."""

    marker: Path = Path()

    def barks(self, root: int) -> bool:  # noqa: ARG002
        return self.marker.exists() and time.time() - self.marker.stat().st_mtime > AFTER

    def interrupt(self, supervisor: subprocess.Popen[bytes]) -> None:
        """Leave it to its end."""


def _started(
    command: Sequence[str], environment: Mapping[str, str], folder: Path | None, copies: Path
) -> subprocess.Popen[bytes]:
    if folder is None:
        return process.start(command, environment)
    copy = copies / folder.name
    copy_folder(folder, copy)
    words = [word.replace(f"{folder}/", f"{copy}/") for word in command]
    return process.start(words, environment, copy)


def _run(
    begin: Callable[[], subprocess.Popen[bytes]], rest: _Rest, timeout: float
) -> process.Finished:
    started, texts = time.monotonic(), [""]
    try:
        return process.follow(begin(), timeout=timeout, on_text=texts.append, watchdog=rest)
    except Stalled:
        return process.Finished(0, time.monotonic() - started, "".join(texts))
    except process.TimedOut as late:
        return process.Finished(TIMED_OUT, late.seconds, late.output)


def variables_of(switches: Sequence[Switch], environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of switches; options that are lists follow those of the environment."""
    own = {name: value for switch in switches for name, value in switch.environment.items()}
    lists = own.keys() & _LISTS.keys() & environment.keys()
    return own | {name: f"{environment[name]}{_LISTS[name]}{own[name]}" for name in lists}


def masked(line: str) -> str:
    """A printed line without its numbers."""
    return _NUMBER.sub("#", line.strip())


def timeless(line: str) -> str:
    """A printed line without its numbers and units of time, which may be others in another run."""
    return " ".join(_TIMES.sub(" ", masked(line)).split())


def shown(output: str) -> list[str]:
    """The lines of an output as a terminal shows them in the end; how far a bar of progress was
    when it was last drawn is a matter of time."""
    ends = (s.rstrip("\r").rpartition("\r")[2] for s in _CONTROLS.sub("", output).split("\n"))
    return [line for line in ends if not _BAR.search(line)]


def _printed(output: str) -> dict[str, list[list[float | None]]]:
    """The numbers of printed lines, by the line without them and their place in it, and what one in
    the last place of each is worth; times and amounts of memory are no results."""
    rows: dict[str, list[list[float | None]]] = {}
    for line in shown(output):
        mask = masked(line)
        timed = _timed_places(line)
        for place, text in enumerate(_NUMBER.findall(line), 1):
            if timed is None or place in timed:
                continue
            number = float(text.replace(",", ""))
            row = rows.setdefault(f'{PRINTED} {place} of "{mask}"', [])
            row.append([number if math.isfinite(number) else None, _last_digit(text)])
    return rows


def _timed_places(line: str) -> set[int] | None:
    """Which numbers of a line, from 1 on, are times or amounts of memory; None if any may be."""
    places = _NUMBER.sub(_PLACE, line)
    found = list(_TIMED.finditer(places))
    if _STILL_TIMED.search(_TIMED.sub(_PLACE, places)):
        return None
    firsts = ((places.count(_PLACE, 0, each.start()), each[0].count(_PLACE)) for each in found)
    return {before + n for before, count in firsts for n in range(1, count + 1)}


def _last_digit(text: str) -> float:
    """What one is worth in the last place of a printed decimal, 0 of one without decimals."""
    digits, _, exponent = text.lower().partition("e")
    decimals = len(digits.partition(".")[2])
    return 10.0 ** (int(exponent or 0) - decimals) if decimals else 0.0


def _records(place: Path) -> list[_Record]:
    texts = [_NOT_FINITE.sub(b"null", path.read_bytes()) for path in sorted(place.glob("*.json"))]
    return [msgspec.json.decode(text, type=_Record) for text in texts]


def _result(result: Result, records: Sequence[_Record], extent: Extent, problem: str) -> Result:
    """The result with what its processes recorded."""
    if problem:
        return replace(result, failure=problem)
    if result.status and result.is_whole:  # where one was stopped, others may miss it
        reason = _reason(result.output)
        code = "" if _ERROR.match(reason) else f"exit code {result.status}: "
        return replace(result, failure=f"{code}{reason}".removesuffix(": "))
    record = max(records, key=lambda record: _rank(record, extent.unit), default=None)
    if record is None:
        return replace(result, times=(result.seconds,))
    if failure := next((each.failure for each in records if each.failure), ""):
        return replace(result, failure=failure)
    has_results = any(record.results.values())
    result = replace(
        result,
        results=record.results if has_results else result.results,
        printed=result.results if has_results else {},
        applied=result.applied | record.applied,
        **part(record, "features", "facts", "modules", "changed", "stopped"),
    )
    unit = record.leading if extent.unit is None else extent.unit
    if not unit or unit == WALL:
        return replace(result, times=(result.seconds,))
    intervals = record.intervals.get(unit, [])
    times = _steady(intervals, record.compiling.get(unit, []))
    if not times:
        return replace(result, failure=f"no {unit} is seen any more")
    limit = _limit(record, unit, sum(times) / len(times))
    count = record.passed.get(unit, 0) + len(intervals) + 1
    waiting = record.waiting.get(unit, 1.0)
    return replace(result, unit=unit, units=count, times=tuple(times), limit=limit, waiting=waiting)


def _steady(intervals: Sequence[float], compiling: Collection[int]) -> list[float]:
    """Times of the units after the first ones, without those that compile where these are rare or
    come to an end: a model is compiled again for its evaluation, say."""
    places = range(min(_PREPARING - 1, max(len(intervals) - _FEW, 0)), len(intervals))
    steady = [place for place in places if place not in compiling]
    is_rare = len(steady) >= _MOSTLY * len(places)
    has_ended = not set(places[-(len(places) // 3 + 1) :]) & set(compiling)
    if len(steady) < _FEW or not (is_rare or has_ended):
        return list(intervals[places.start :])
    return [intervals[place] for place in steady]


def _rank(record: _Record, unit: str | None) -> tuple[bool, int, int]:
    kind = unit or record.leading
    return kind == "optimizer", len(record.intervals.get(kind, ())), -record.rank


def _limit(record: _Record, unit: str, mean: float) -> Limit:
    """What the units wait for: input, host or device."""
    # Chosen: a loss that loaders can win back.
    if record.waiting.get(unit, 0.0) > 0.15:
        return "input"
    # Chosen: a device that is behind by less than a tenth of a step waits for the host.
    return "device" if record.backlog.get(unit, 0.0) > 0.1 * mean else "host"


def _reason(output: str) -> str:
    """The last error that a program printed, or its last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return shorten((_errors(output) or lines or [""])[-1], _LONGEST_REASON, placeholder=" ...")


def _errors(output: str) -> list[str]:
    return [line for line in map(str.strip, output.splitlines()) if _ERROR.match(line)]
