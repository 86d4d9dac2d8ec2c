"""The points of other tools' files: pytest-benchmark's JSON and nvbench's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from profkit.core.errors import BadInput
from profkit.core.regular_file import read_limited
from profkit.history.content import Content, Imported, commit_of, medians_of
from profkit.history.record import Conditions, Point, Series
from profkit.timing.latency_format import LONGEST

Positive = Annotated[float, Meta(gt=0, le=LONGEST)]

_LARGEST_SAMPLES = 256 << 20  # bytes, chosen: 64 million samples
_UNKNOWN = {"unversioned", "unknown", "(unknown)", "(detached)"}
_SAMPLES = "nv/json/bin:nv/cold/sample_times"
_TIMES = {
    "nv/cold/time/gpu/median": ("cold, GPU, median", "cold"),
    "nv/cold/time/gpu/mean": ("cold, GPU, mean", "cold"),
    "nv/cpu_only/time/cpu/mean": ("CPU, mean", ""),
}
"""nvbench's summaries of a time, the first that a state has: the timer, and the L2 cache."""


class _Stats(Struct):
    median: Positive
    data: tuple[Positive, ...] = ()


class _Benchmark(Struct):
    fullname: str
    name: str
    stats: _Stats
    params: dict[str, Any] | None = None
    param: str | None = None
    extra_info: dict[str, Any] = {}
    options: dict[str, Any] = {}


class _Commit(Struct, frozen=True):
    id: str | None = None
    branch: str | None = None
    dirty: bool | None = None


class _PytestFile(Struct):
    benchmarks: tuple[_Benchmark, ...]
    commit_info: _Commit = _Commit()
    datetime: str = ""
    version: str = ""


def pytest_benchmark(content: Content) -> Imported:
    """The benchmarks of a file of `pytest --benchmark-json`.

    A test is the target, its parameters are the shape; `variant`, `gpu`, `gpu_uuid`, `driver` and
    `cuda` come from its `extra_info`.
    """
    file = _decode(content, _PytestFile)
    time, notes = content.time(file.datetime)
    info = file.commit_info
    commit = commit_of(_known(info.id), content.stated, dirty=bool(info.dirty))
    points = []
    for row in file.benchmarks:
        extra = {key: value for key, value in row.extra_info.items() if isinstance(value, str)}
        test, _, parameters = row.fullname.partition("[")
        series = Series(
            target=content.stated.target or test,
            variant=extra.get("variant", ""),
            shape=parameters.removesuffix("]"),
            gpu_model=extra.get("gpu", ""),
            branch=content.stated.branch or _known(info.branch),
        )
        timer = row.options.get("timer")
        conditions = Conditions(
            gpu_uuid=extra.get("gpu_uuid", ""),
            driver=extra.get("driver", ""),
            cuda=extra.get("cuda", ""),
            clock_policy="",
            timer=" ".join(filter(None, ("pytest-benchmark", file.version, timer))),
            cache_policy="",
            profkit="",
        )
        medians = medians_of(row.stats.data) if row.stats.data else (row.stats.median,)
        points.append(
            Point(series, conditions, time, content.run, content.source, commit, "", medians)
        )
    return Imported(tuple(points), notes)


def _known(text: str | None) -> str:
    return "" if text is None or text in _UNKNOWN else text


class _Value(Struct):
    name: str
    value: str | int | float


class _SummaryOf(Struct):
    tag: str = ""
    data: tuple[_Value, ...] = ()

    def get(self, name: str) -> str:
        """A value of the summary; "" without."""
        return next((str(row.value) for row in self.data if row.name == name), "")


class _Axis(Struct):
    name: str
    value: str | int | float = ""
    input_string: str = ""


class _State(Struct):
    name: str = ""
    device: int | None = None
    axis_values: tuple[_Axis, ...] | None = None
    summaries: tuple[_SummaryOf, ...] | None = None
    is_skipped: bool = False


class _Bench(Struct):
    name: str
    states: tuple[_State, ...] | None = None


class _NvbenchVersion(Struct, frozen=True):
    string: str = ""


class _Versions(Struct, frozen=True):
    nvbench: _NvbenchVersion = _NvbenchVersion()


class _Meta(Struct, frozen=True):
    argv: tuple[str, ...] = ()
    version: _Versions = _Versions()


class _Gpu(Struct):
    id: int
    name: str = ""


class _NvbenchFile(Struct):
    benchmarks: tuple[_Bench, ...]
    devices: tuple[_Gpu, ...] | None = None
    meta: _Meta = _Meta()


def nvbench(content: Content) -> Imported:
    """The states of a file of nvbench's `--json` or `--jsonbin`.

    The program is the target, a benchmark the variant, the values of its axes are the shape. With
    `--jsonbin` samples make blocks; else a state has one, of nvbench's median or mean.
    """
    file = _decode(content, _NvbenchFile)
    time, notes = content.time()
    gpus = {gpu.id: gpu.name for gpu in file.devices or ()}
    program = Path(file.meta.argv[0]).name if file.meta.argv else ""
    points = []
    for bench in file.benchmarks:
        for state in bench.states or ():
            measured = None if state.is_skipped else _times(content.path, state)
            if measured is None:
                continue
            medians, timer, cache = measured
            version = file.meta.version.nvbench.string
            conditions = Conditions(
                gpu_uuid="",
                driver="",
                cuda="",
                clock_policy="",
                timer=f"{' '.join(filter(None, ('nvbench', version)))} ({timer})",
                cache_policy=cache,
                profkit="",
            )
            series = Series(
                target=content.stated.target or program,
                variant=bench.name,
                shape=" ".join(
                    f"{axis.name}={axis.value or axis.input_string}"
                    for axis in state.axis_values or ()
                ),
                gpu_model=gpus.get(state.device, "") if state.device is not None else "",
                branch=content.stated.branch,
            )
            commit = content.stated.commit
            points.append(
                Point(series, conditions, time, content.run, content.source, commit, "", medians)
            )
    return Imported(tuple(points), notes)


def _times(path: Path, state: _State) -> tuple[tuple[float, ...], str, str] | None:
    """The medians of a state's blocks, the timer and the cache; None where it has no time."""
    by_tag = {summary.tag: summary for summary in state.summaries or ()}
    if (samples := by_tag.get(_SAMPLES)) and (times := _samples(path, samples)):
        return medians_of(times), "cold, GPU, samples", "cold"
    for tag, (timer, cache) in _TIMES.items():
        if tag in by_tag:
            return (_seconds(path, by_tag[tag].get("value")),), timer, cache
    return None


def _seconds(path: Path, text: str) -> float:
    try:
        return msgspec.convert(text, Positive, strict=False)
    except msgspec.ValidationError:
        raise BadInput(f"{path}: {text!r} is not a time", "check the file") from None


def _samples(path: Path, summary: _SummaryOf) -> tuple[float, ...]:
    """The samples that nvbench wrote beside its JSON, little-endian 32-bit; () where they are
    gone."""
    import numpy as np

    name = summary.get("filename")
    for place in (path.parent / name, path.parent.parent / name):
        if name and place.is_file():
            data = read_limited(place, _LARGEST_SAMPLES)
            if len(data) != 4 * int(summary.get("size") or -1):
                raise BadInput(f"{place}: not as many samples as {path} states", "record it again")
            times = np.frombuffer(data, "<f4").astype(float)
            if not ((times > 0) & (times < LONGEST)).all():
                raise BadInput(f"{place}: has samples that are no times", "record it again")
            return tuple(times.tolist())
    return ()


def _decode(content: Content, model: Any) -> Any:
    try:
        return msgspec.json.decode(content.data, type=model)
    except msgspec.MsgspecError as error:
        raise BadInput(f"{content.path}: {error}", "check the file") from None
