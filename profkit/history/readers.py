"""The points of one run: of latencies, a cell of a baseline, a profile, or pytest-benchmark."""

import hashlib
import itertools
import shlex
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from reprlib import repr as brief
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from profkit.core.errors import BadInput, refusal
from profkit.core.fingerprint import Device, Fingerprint
from profkit.core.integrity import MANIFEST
from profkit.core.regular_file import digest, read_limited
from profkit.core.text_files import brief_words
from profkit.core.timestamp import parse_timestamp
from profkit.core.typed_file import known, read_file
from profkit.history.record import DIRTY, Conditions, Point, Series
from profkit.report.checks import NOT_TIMED
from profkit.runs.manifest import Manifest
from profkit.runs.run import arguments, program_name
from profkit.study.matrix import shape_name
from profkit.timeline import RUN_FILE
from profkit.timing.cell import Cell
from profkit.timing.latency_format import CPU, LONGEST, Latency, LatencyFile
from profkit.trial.trial_file import TrialFile
from profkit.ui.text import extent, plural

STEP = "step"
"""The variant that is an application's step."""

_BLOCKS = 8  # of samples that come without any; chosen: as many as `profkit time` measures
_LARGEST = 64 << 20  # bytes; as profkit.core.text_files reads
_SHORT_COMMIT = 9  # digits, as `profkit time --against` labels a commit
_DECIDED = {"faster", "slower", "no difference"}
_UNKNOWN = {"unversioned", "unknown", "(unknown)", "(detached)"}

Positive = Annotated[float, Meta(gt=0, le=LONGEST)]


class Stated(Struct, frozen=True):
    """What a user states of runs whose files don't have it."""

    target: str = ""
    branch: str = ""
    commit: str = ""
    time: datetime | None = None

    def commit_of(self, commit: str, *, dirty: bool) -> str:
        """A file's commit, else the one that the user states."""
        return f"{commit}{DIRTY}" if commit and dirty else commit or self.commit


class Imported(Struct, frozen=True):
    """A run: its points, and what had to be assumed."""

    points: tuple[Point, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Content:
    """A file of measurements: its bytes, read once, and what the user states."""

    path: Path
    data: bytes
    stated: Stated
    source: str
    manifest: Manifest | None = None

    @cached_property
    def run(self) -> str:
        """The id of the run."""
        return hashlib.sha256(self.data).hexdigest()


def content_of(path: Path, stated: Stated) -> Content:
    """The content of a file; raises BadInput where it can't be read."""
    with refusal(f"{path}: can't be read", BadInput, "check the path"):
        data = read_limited(path, _LARGEST)
    return Content(path, data, stated, str(path))


def _time(path: Path, stated: Stated, *texts: str) -> tuple[datetime, tuple[str, ...]]:
    """When a file was measured: the first time that it states, else what the user states, else its
    modification, with a note."""
    for text in filter(None, texts):
        try:
            return parse_timestamp(text), ()
        except ValueError:
            raise BadInput(f"{path}: {brief(text)} is not a time", "check the file") from None
    if stated.time is not None:
        return stated.time, ()
    try:
        modified = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except (ValueError, OverflowError):
        raise BadInput(f"{path}: states no time, nor has the file one", "give --time") from None
    return modified, (f"{path}: states no time; that of its last modification taken",)


def medians_of(samples: Sequence[float]) -> tuple[float, ...]:
    """The medians of at most eight blocks of samples in the order measured."""
    count = min(_BLOCKS, len(samples))
    edges = [len(samples) * number // count for number in range(count + 1)]
    return tuple(statistics.median(samples[start:end]) for start, end in itertools.pairwise(edges))


def _commit(fingerprint: Fingerprint, stated: Stated) -> str:
    commit = known(fingerprint.commit) or {}
    return stated.commit_of(str(commit.get("commit", "")), dirty=commit.get("dirty") is True)


def _conditions(
    gpu: Device, fingerprint: Fingerprint, *, control: str = "", **method: str
) -> Conditions:
    """The conditions; `control` is ncu's setting of the clocks, others are no readings either."""
    settings = [f"ncu: {control}"] if control else []
    if gpu.sm_clock_application:
        settings.append(f"application clock {gpu.sm_clock_application / 1e6:.0f} MHz")
    if gpu.power_limit:
        settings.append(f"power limit {gpu.power_limit:.0f} W")
    return Conditions(
        gpu_uuid=gpu.uuid or "",
        driver=gpu.driver or "",
        cuda=(known(fingerprint.versions) or {}).get("cuda") or "",
        clock_policy=", ".join(settings),
        **method,
    )


def import_latencies(content: Content) -> Imported:
    """The series of a file of latencies; raises BadInput for what is not one."""
    file = _decoded(content, LatencyFile)
    created = content.manifest.created if content.manifest else ""
    time, notes = _time(content.path, content.stated, file.created, created)
    points = tuple(
        _timed(content, time, latency, file.fingerprint, file.profkit, variant)
        for latency in file.series
        if (variant := _variant(latency)) is not None
    )
    return Imported(points, notes)


def _variant(latency: Latency) -> str | None:
    """A series' variant; None for the other commit of `time --against`."""
    variants = latency.target.variants or ()
    before, colon, name = latency.label.rpartition(":")
    if not colon or len(variants) != 1 or name != variants[0]:
        return latency.label
    if before == "this tree":
        return name
    is_commit = len(before) == _SHORT_COMMIT and all(
        digit in "0123456789abcdef" for digit in before
    )
    return None if is_commit else latency.label


def import_cell(content: Content) -> Imported:
    """A cell of a baseline; no point where it was not measured."""
    cell = _decoded(content, Cell)
    if cell.latency is None:
        return Imported(())
    taken_at = cell.source.taken if cell.source else None
    time, notes = _time(content.path, content.stated, taken_at or cell.created)
    point = _timed(
        content, time, cell.latency, cell.fingerprint, cell.profkit, cell.backend, cell.shape
    )
    return Imported((point,), notes)


def _timed(
    content: Content,
    time: datetime,
    latency: Latency,
    fingerprint: Fingerprint,
    version: str,
    variant: str,
    shape: str = "",
) -> Point:
    target, gpu = latency.target, latency.gpu or known(fingerprint.gpu) or Device()
    sizes = {**(target.shapes or {})} | ({"dtype": target.dtype} if target.dtype else {})
    manifest = content.manifest
    series = Series(
        target=content.stated.target or target.name or (manifest.target if manifest else ""),
        variant=variant,
        shape=shape or (shape_name(sizes) if sizes else ""),
        gpu_model=CPU if latency.timer == "wall" else gpu.name or "",
        branch=content.stated.branch,
    )
    method = {"timer": latency.timer, "cache_policy": latency.cache, "profkit": version}
    conditions = _conditions(gpu, fingerprint, **method)
    commit = _commit(fingerprint, content.stated)
    medians = tuple(statistics.median(block.samples) for block in latency.blocks)
    return Point(series, conditions, time, content.run, content.source, commit, medians)


def import_trial(content: Content) -> Imported:
    """The unit of a program that switches were tried on, unchanged and with each that was decided
    and keeps its results: blocks are ratios to the unchanged program's median. Other arguments are
    another series, told apart by a digest, as they may hold paths."""
    file: TrialFile = _decoded(content, TrialFile)
    if file.unchanged is None:
        return Imported(())
    time, notes = _time(content.path, content.stated)
    stated, plain = content.stated, file.unchanged.seconds
    medians = {"unchanged": (plain,)} | {
        " + ".join(row.switches): tuple(plain * ratio for ratio in row.comparison.ratios)
        for row in file.rows
        if row.comparison and row.status in _DECIDED
    }
    target = stated.target or program_name(file.command)
    words = shlex.join(arguments(file.command))
    short = hashlib.sha256(words.encode(errors="surrogateescape")).hexdigest()[:6] if words else ""
    work = f"{file.unchanged.unit} {short}".strip()
    points = tuple(
        Point(
            Series(target, variant, work, file.gpu or CPU, stated.branch),
            Conditions(timer="profkit try"),
            time, content.run, content.source, stated.commit_of("", dirty=False), blocks,
        )
        for variant, blocks in medians.items()
    )  # fmt: skip
    return Imported(points, notes)


def _decoded(content: Content, model: Any) -> Any:
    """The file as its model: msgspec's own decoder takes a twentieth of the time of `read_file`,
    which names the place of a fault."""
    try:
        return msgspec.json.decode(content.data, type=model)
    except (msgspec.MsgspecError, RecursionError):
        return read_file(content.path, model)


class _Stats(Struct):
    median: Positive
    data: tuple[Positive, ...] = ()


class _Options(Struct, frozen=True):
    timer: str | None = None


class _Benchmark(Struct):
    fullname: str
    stats: _Stats
    extra_info: dict[str, object] = {}
    options: _Options = _Options()


class _Commit(Struct, frozen=True):
    id: str | None = None
    branch: str | None = None
    dirty: bool | None = None


class _PytestFile(Struct):
    benchmarks: tuple[_Benchmark, ...]
    commit_info: _Commit = _Commit()
    datetime: str = ""
    version: str = ""


def import_benchmarks(content: Content) -> Imported:
    """The benchmarks of a file of `pytest --benchmark-json`.

    A test is the target, its parameters are the shape; `variant`, `gpu`, `gpu_uuid`, `driver` and
    `cuda` come from its `extra_info`. Raises BadInput for what is not such a file.
    """
    try:
        file = msgspec.json.decode(content.data, type=_PytestFile)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadInput(f"{content.path}: {brief_words(error)}", "check the file") from None
    time, notes = _time(content.path, content.stated, file.datetime)
    info, stated = file.commit_info, content.stated
    commit = stated.commit_of(_stated(info.id), dirty=bool(info.dirty))
    points = []
    for row in file.benchmarks:
        extra = {key: value for key, value in row.extra_info.items() if isinstance(value, str)}
        test, _, parameters = row.fullname.partition("[")
        series = Series(
            target=stated.target or test,
            variant=extra.get("variant", ""),
            shape=parameters.removesuffix("]"),
            gpu_model=extra.get("gpu", ""),
            branch=stated.branch or _stated(info.branch),
        )
        timer = ("pytest-benchmark", file.version, row.options.timer or "")
        conditions = Conditions(
            gpu_uuid=extra.get("gpu_uuid", ""),
            driver=extra.get("driver", ""),
            cuda=extra.get("cuda", ""),
            timer=" ".join(filter(None, timer)),
        )
        medians = medians_of(row.stats.data) if row.stats.data else (row.stats.median,)
        points.append(Point(series, conditions, time, content.run, content.source, commit, medians))
    return Imported(tuple(points), notes)


def _stated(text: str | None) -> str:
    return "" if text is None or text in _UNKNOWN else text


def import_profile(folder: Path, manifest: Manifest, stated: Stated) -> Imported:
    """The points of a profile without latencies: its kernels, or the steps of an application."""
    from profkit.application.picks_file import is_application

    application = is_application(folder)
    measured, left_out = (_steps(folder), ()) if application else _kernels(folder)
    timer, policy = "nsys" if application else "ncu", manifest.policy
    time, notes = _time(folder / MANIFEST, stated, manifest.created)
    gpu, driver = known(manifest.fingerprint.gpu) or Device(), manifest.gpu
    if driver:
        names = ("name", "uuid", "driver")
        missing = {name: getattr(driver, name) for name in names if not getattr(gpu, name)}
        gpu = msgspec.structs.replace(gpu, **missing)
    conditions = _conditions(
        gpu,
        manifest.fingerprint,
        control="" if application else known(policy.clock_control) or "",
        timer=" ".join(filter(None, (timer, manifest.versions.get(timer)))),
        cache_policy="" if application else known(policy.cache_control) or "",
        profkit=manifest.versions.get("profkit") or "",
    )
    target, run = stated.target or manifest.target, digest(folder / MANIFEST)
    commit = _commit(manifest.fingerprint, stated)
    points = tuple(
        Point(
            Series(target, variant, shape, gpu.name or "", stated.branch),
            conditions, time, run, str(folder), commit, medians_of(durations),
        )
        for (variant, shape), durations in measured.items()
        if durations
    )  # fmt: skip
    return Imported(points, (*notes, *left_out))


def _kernels(folder: Path) -> tuple[dict[tuple[str, str], list[float]], tuple[str, ...]]:
    """The durations of launches by kernel and launch configuration, in their order, and a note
    where ncu's time of a launch is not the launch's own."""
    from profkit.analysis.report import load

    summary = load(folder).summary
    untimed = sum(not launch.is_timed for launch in summary.launches)
    durations = {
        (group.name, f"grid {extent(group.grid)}, block {extent(group.block)}"): [
            launch.duration for launch in group.launches if launch.is_timed and not launch.failed
        ]
        for group in summary.groups
    }
    note = f"{plural(untimed, 'launch')} left out: {NOT_TIMED}"
    return durations, (note,) if untimed else ()


def _steps(folder: Path) -> dict[tuple[str, str], list[float]]:
    """The durations of an application's typical steps, of the process on the first GPU."""
    import numpy as np

    from profkit.application.picks_file import picks_of
    from profkit.application.steps import first_rank, steady_steps
    from profkit.timeline.reader import read

    name = file.nvtx if (file := picks_of(folder)) else None
    steps = steady_steps(read(folder / RUN_FILE), name)
    if not steps:
        return {}
    first = first_rank(steps)
    durations = np.diff(first.bounds)[first.typical] * 1e-9
    return {(STEP, name or ""): durations.tolist()}
