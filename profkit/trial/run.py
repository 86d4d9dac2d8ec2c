"""One run of the program with some switches: its units' times, its results, and how it ended."""

from __future__ import annotations

import json
import math
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from profkit.capture import process
from profkit.execution.injection import Hook, injected
from profkit.trial.switch import Switch

WALL = "the whole program"
Limit = Literal["input", "host", "device", ""]
Perturbation = Literal["rounding", "random", ""]
_CHILD = Path(__file__).with_name("child") / "__init__.py"
_MODULES = ("torch", "jax", "optax", "transformers.generation.utils")
_PREPARING = 5  # first units, which are no part of the measurement (as in `child.record`)
_GROUPS = 10  # samples of a run, chosen: means of consecutive units, so that rare waits count
_ERROR = re.compile(r"^\s*(?:[\w.]+\.)?\w*(?:Error|Exception|Interrupt|Exit|Unsupported)\b.*")
_NUMBER = re.compile(r"[-+]?(?:\d[\d,]*\.?\d*(?:e[-+]?\d+)?|\bnan\b|\binf\b)", re.IGNORECASE)
_TIMES = re.compile(
    r"\b(?:[mun]?s|sec\w*|times?|took|elapsed|fps|speed\w*)\b|/ ?s\b|it/s|per sec", re.I
)
_LONGEST_REASON = 160  # characters, chosen: two lines of a terminal


class Result(Struct, frozen=True):
    """A run. `times` are seconds of the units that count, `results` the numbers of each result by
    series. `failure` is the reason why the run says nothing, "" where it does."""

    switches: tuple[str, ...]
    seconds: float
    status: int = 0
    output: str = ""
    unit: str = WALL
    units: int = 1
    times: tuple[float, ...] = ()
    results: Mapping[str, Sequence[Sequence[float | None] | None]] = {}
    features: frozenset[str] = frozenset()
    applied: frozenset[str] = frozenset()
    facts: Mapping[str, float | str] = {}
    limit: Limit = ""
    stopped: bool = False
    perturbed: Perturbation = ""
    failure: str = ""

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
    a `window` of seconds (None: to its own end)."""

    unit: str | None = None
    units: int = 0
    window: float | None = None


class _Record(Struct, frozen=True):
    """What a process of the program wrote (`child.record`)."""

    stopped: bool
    rank: int
    leading: str
    startup: float
    intervals: dict[str, list[float]]
    backlog: dict[str, float]
    results: dict[str, list[list[float | None] | None]]
    features: list[str]
    applied: list[str]
    facts: dict[str, float | str]


def run_program(
    command: Sequence[str],
    switches: Sequence[Switch],
    extent: Extent,
    *,
    environment: Mapping[str, str],
    timeout: float,
    perturb: Perturbation = "",
    folder: Path | None = None,
) -> Result:
    """Run the program once; a failure of it is a result.

    Raises EnvironmentProblem where the program can't be started.
    """
    with tempfile.TemporaryDirectory(prefix="profkit-try-") as temporary:
        place = Path(temporary)
        plan = {
            "folder": temporary,
            "unit": extent.unit,
            "units": extent.units,
            "window": extent.window,
            "perturb": perturb,
            "switches": [switch.hook for switch in switches if switch.hook],
        }
        (place / "plan").write_text(json.dumps(plan), encoding="utf-8")
        hooks = [Hook(module, _CHILD) for module in _MODULES]
        variables = injected(environment, hooks, place / "log") | {
            "PROFKIT_TRIAL": str(place / "plan"),
            **{
                name: value.format(folder=temporary)
                for switch in switches
                for name, value in _extended(switch.environment, environment).items()
            },
        }
        names = tuple(switch.name for switch in switches)
        try:
            end = process.run(command, environment=variables, timeout=timeout, folder=folder)
        except process.TimedOut as late:
            reason = f"ended after {late.seconds:.0f} s: {_reason(late.output)}".rstrip(": ")
            return Result(names, late.seconds, 124, late.output, failure=reason)
        records = [_read(path) for path in sorted(place.glob("*.json"))]
        log = place / "log"
        problem = log.read_text("utf-8").strip().rpartition("\n")[2] if log.exists() else ""
    printed = _printed(end.output)
    result = Result(names, end.seconds, end.status, end.output, results=printed, perturbed=perturb)
    return _result(result, records, extent, problem)


def masked(line: str) -> str:
    """A printed line without its numbers."""
    return _NUMBER.sub("#", line.strip())


def _printed(output: str) -> dict[str, list[list[float | None]]]:
    """The numbers of printed lines, by the line without them; times are no results."""
    rows: dict[str, list[list[float | None]]] = {}
    for line in output.splitlines():
        numbers = [float(text.replace(",", "")) for text in _NUMBER.findall(line)]
        if numbers and not _TIMES.search(masked(line)):
            row = [number if math.isfinite(number) else None for number in numbers]
            rows.setdefault(masked(line), []).append(row)
    return rows


def _extended(variables: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Variables that are lists of options get theirs after those of the environment."""
    signs = {"XLA_FLAGS": " ", "PYTORCH_CUDA_ALLOC_CONF": ","}
    return {
        name: environment[name] + signs[name] + value if name in signs and name in environment
        else value
        for name, value in variables.items()
    }  # fmt: skip


def _read(path: Path) -> _Record:
    return msgspec.json.decode(path.read_bytes().replace(b"NaN", b"null"), type=_Record)


def _result(
    result: Result,
    records: Sequence[_Record],
    extent: Extent,
    problem: str,
) -> Result:
    """The result with what its processes recorded."""
    replace = msgspec.structs.replace
    if problem:
        return replace(result, failure=problem)
    if result.status:
        return replace(result, failure=_reason(result.output) or f"exit code {result.status}")
    record = max(records, key=lambda record: _rank(record, extent.unit), default=None)
    if record is None:
        return replace(result, times=(result.seconds,))
    result = replace(
        result,
        results=record.results if any(record.results.values()) else result.results,
        features=frozenset(record.features),
        applied=result.applied | frozenset(record.applied),
        facts=record.facts,
        stopped=record.stopped,
    )
    unit = record.leading if extent.unit is None else extent.unit
    if not unit or unit == WALL:
        return replace(result, times=(result.seconds,))
    intervals = record.intervals.get(unit, [])
    count = len(intervals) if not extent.units else min(len(intervals), extent.units - 1)
    times = intervals[min(_PREPARING - 1, count // 3) : count]
    if not times:
        return replace(result, failure=f"no {unit} is seen any more")
    limit = _limit(record, unit, sum(intervals), sum(times) / len(times))
    return replace(result, unit=unit, units=count + 1, times=tuple(times), limit=limit)


def _rank(record: _Record, unit: str | None) -> tuple[int, int]:
    return len(record.intervals.get(unit or record.leading, ())), -record.rank


def _limit(record: _Record, unit: str, total: float, mean: float) -> Limit:
    """What the units wait for: input, host or device."""
    if (
        float(record.facts.get("loader", 0.0)) > 0.15 * total
    ):  # chosen: a loss that loaders can win back
        return "input"
    # Chosen: a device that is never behind by a tenth of a step waits for the host.
    return "device" if record.backlog.get(unit, 0.0) > 0.1 * mean else "host"


def _reason(output: str) -> str:
    """The last error that a program printed, or its last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR.match(line)]
    return (errors or lines or [""])[-1][:_LONGEST_REASON]
