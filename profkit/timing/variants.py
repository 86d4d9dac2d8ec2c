"""The variants of a run: which passed their check, and the latency of each."""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from profkit.capture.correctness import CheckFile, Shapes, Status
from profkit.core.errors import ProfkitError
from profkit.core.integrity import check_unchanged
from profkit.core.typed_file import plain, read_file
from profkit.timing.latency_file import IN_A_RUN, read_latencies
from profkit.timing.latency_format import Latency

_CHECK = "check.json"


class Variants(Struct, frozen=True):
    """Variants that give the same result for the same work, and their timed medians in seconds.

    `medians` is empty where the run was not timed, or its variants not all in the same way; `hosts`
    has the host launch overhead of a call, where measured. `checked` are all variants. `work`
    has the "flop" and "bytes" that the target declares, and is empty where it declares none;
    `shapes` are those that it names, `dtype` is "" where it names none.
    """

    passed: tuple[str, ...]
    medians: Mapping[str, float] = {}
    work: Mapping[str, float] = {}
    shapes: Shapes = {}
    dtype: str = ""
    hosts: Mapping[str, float] = {}
    checked: tuple[str, ...] = ()


def read_variants(folder: Path) -> Variants | None:
    """The variants of a run's folder; None without a check, or with a changed one.

    An unreadable check or timing leaves the run's report valid, without demonstrated speedups.
    """
    try:
        check_unchanged(folder / _CHECK)
        checked = read_file(folder / _CHECK, CheckFile)
    except ProfkitError:
        return None
    passed = tuple(row.name for row in checked.variants if row.status is Status.passed)
    declared = plain(checked.work) if checked.work else {}
    work = {key: float(declared[key]) for key in ("flop", "bytes") if declared.get(key)}
    latencies = _latencies(folder)
    medians = {latency.label: statistics.median(latency.samples) for latency in latencies}
    hosts = {latency.label: latency.ready.host for latency in latencies if latency.ready.host}
    names = tuple(row.name for row in checked.variants)
    return Variants(passed, medians, work, checked.shapes, checked.dtype or "", hosts, names)


def _latencies(folder: Path) -> Sequence[Latency]:
    """The timed variants of a run, where all were timed in the same way."""
    try:
        latencies = read_latencies(folder / IN_A_RUN).latencies
    except ProfkitError:
        return ()
    alike = len({(latency.timer, latency.cache) for latency in latencies}) == 1
    return latencies if alike else ()
