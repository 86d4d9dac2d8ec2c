"""Which launches a profile takes, and how long ncu is going to take for them.

Before ncu starts, a timeline of the same program tells the launches; `--set auto` picks the kernels
that take most of the time from a first recording of few counters.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from msgspec import Struct

from profkit.analysis.replay_plan import PER_PASS
from profkit.capture.ncu import SETS, NcuOptions, listed_names
from profkit.capture.passes import passes as schedule
from profkit.capture.sections import chip_of
from profkit.capture.sets import AUTO, passes_of
from profkit.core.errors import UsageError
from profkit.core.grouping import grouped
from profkit.report.summary import NAME_WIDTH, Group, ReportSummary
from profkit.ui.text import literal, percent, plural, shorten

if TYPE_CHECKING:
    from profkit.timeline.events import Events, Indices

COVERED = 0.9
"""The share of the GPU time whose kernels `--set auto` records in detail: as asked of it."""

_NS = 1e9  # nanoseconds per second
_START = 6.0  # seconds until a program with torch launches under ncu: as in the fit of PER_PASS
_MINUTE = 60  # seconds
_CHIP = "GH100"  # counts for a GPU that is not known
_TRIALS = 20  # launches that appear once, chosen: the shortest search of an autotuner tries as many
_FEWEST_TRIED = 4  # configurations, chosen: a search tries more than a kernel has uses
_REPEATED = 5  # launches of each, chosen: a search times each more often
_MOSTLY = 0.5  # of the launches, chosen: an application repeats most of its kernels
_ESCAPED = re.compile(r"[\\^$.|?*+()\[\]{}]")  # special characters of ECMAScript expressions


class Cost(Struct, frozen=True):
    """What ncu is going to do: launches, replay passes of each, seconds in all."""

    launches: int
    passes: int
    seconds: float

    def __str__(self) -> str:
        launches = plural(self.launches, "launch")
        return f"{launches} x {self.passes} passes, about {_time(self.seconds)}"


def passes(options: NcuOptions) -> int:
    """Replay passes of a launch; those of scout, the first recording, for `auto`."""
    first = "scout" if options.sections == AUTO else options.sections
    added = (("flop", options.flop), ("sampling", options.sampling))
    more = sum(passes_of(name) for name, wanted in added if wanted)
    if first in SETS:
        return passes_of(first) + more
    capability = ".".join(map(str, options.capability or (9, 0)))
    return schedule(chip_of(capability) or _CHIP, listed_names(first)).count + more


def cost(durations: Sequence[float], replays: int) -> Cost:
    """The cost of launches that take `durations` (s) without a profiler."""
    seconds = _START + replays * (sum(durations) + len(durations) * PER_PASS)
    return Cost(len(durations), replays, seconds)


def selected(events: Events, options: NcuOptions) -> Indices | None:
    """The kernels of a timeline that ncu will profile; None where that can't be told."""
    import numpy as np

    from profkit.timeline.nesting import around

    if options.replay_mode == "range" or options.graph_profiling == "graph":
        return None
    try:
        named = re.compile(options.kernel or "")
    except re.error:  # ncu reads another dialect of expressions, and will judge it
        return None
    kernels = events.kernels
    matching = np.array([bool(named.search(kernel.name)) for kernel in events.kernel_names], bool)
    inside = matching[kernels.name]
    if options.nvtx:
        nesting = around(events, kernels.call)
        name = options.nvtx.rstrip("/")
        inside &= np.array([name in path for path in nesting.paths])[nesting.path]
    first = options.launch_skip or 0
    return np.flatnonzero(inside).astype(np.int32)[first:][: options.launch_count]


def check_cost(events: Events, kernels: Indices, options: NcuOptions, most: float) -> None:
    """Raise UsageError where ncu would take more than `most` seconds on kernels of a timeline.

    Of `auto` the first recording counts: the second takes what fits.
    """
    durations = ((events.kernels.end - events.kernels.start)[kernels] / _NS).tolist()
    whole = cost(durations, passes(options))
    if not durations or whole.seconds <= most:
        return
    each = (whole.seconds - _START) / whole.launches
    fitting = max(1, math.floor((most - _START) / each))
    busiest: dict[str, float] = defaultdict(float)
    names = events.kernels.name[kernels].tolist()
    for index, duration in zip(names, durations, strict=True):
        busiest[events.kernel_names[index].label] += duration
    name, time = max(busiest.items(), key=lambda item: item[1])
    share = percent(time / sum(busiest.values()))
    named = f"--kernel {shorten(literal(name), NAME_WIDTH)} ({share} of the time)"
    smaller = {"lean": ["--set auto"], AUTO: [], "scout": []}
    choices = [named, f"--launch-count {fitting}"]
    choices += smaller.get(options.sections, ["--set lean", "--set auto"])
    message = f"ncu would take too long: {whole} (limit: {_time(most)})"
    raise UsageError(message, f"use {', '.join(choices)}, or raise --max-time")


def check_autotuner(events: Events, kernels: Indices, options: NcuOptions) -> None:
    """Raise UsageError where launches are those of an autotuner's search: most appear once, or a
    kernel runs in each of its configurations in turn.

    Not where the launches were picked by name or number.
    """
    if options.kernel or options.nvtx or options.launch_skip or options.launch_count:
        return
    configurations = [(item.grid, item.block) for item in events.configurations]
    launches = [
        (events.kernel_names[events.kernels.name[row]].name, configurations[index])
        for row, index in zip(kernels, events.kernels.configuration[kernels].tolist(), strict=True)
    ]
    single = sum(times == 1 for times in Counter(launches).values())
    if single >= _TRIALS and single >= _MOSTLY * len(launches):
        sign = f"{single} of {plural(len(launches), 'launch')} are of a kernel or grid that appears"
        sign += " once"
    elif name := _tried_in_turn(launches):
        sign = f"{shorten(name, NAME_WIDTH)} ran in one configuration after the other, many times "
        sign += "in each, then in one of them again"
    else:
        return
    raise UsageError(
        f"{sign}: an autotuner runs in the profiled region",
        "warm up outside it, or pick launches with --nvtx or --kernel",
    )


def _tried_in_turn(launches: Sequence[tuple[str, Hashable]]) -> str:
    """The kernel that a search timed in each of its configurations and then ran in the best; ""
    where there is none."""
    for name, configurations in grouped(launches).items():
        turns = [next(turn) for _, turn in groupby(configurations)]
        tried = set(turns)
        if (
            len(tried) >= _FEWEST_TRIED
            and len(turns) == len(tried) + 1
            and len(configurations) >= _REPEATED * len(tried)
        ):
            return name
    return ""


class Choice(Struct, frozen=True):
    """The kernels of a first recording to record in detail: a regular expression for ncu over
    demangled names, the number of launches, and a description."""

    kernel: str
    launches: int
    text: str


def choose(scout: ReportSummary, replays: int, most: float) -> Choice:
    """The kernels that take COVERED of the time, as many launches as fit into `most` seconds."""
    groups = [group for group in scout.groups if group.total > 0]
    chosen: list[Group] = []
    covered = 0.0
    for group in groups:
        if covered >= COVERED:
            break
        chosen.append(group)
        covered += group.share
    names = list(dict.fromkeys(group.name for group in chosen))
    launches = [launch for launch in scout.measured if launch.name in names]
    durations = [launch.duration for launch in launches]
    each = cost(durations, replays).seconds - _START
    fitting = len(durations) if each <= most else math.floor(len(durations) * most / each)
    count = max(1, fitting)
    share = sum(durations) / scout.total if scout.total else 0.0
    kernels = f"{len(chosen)} of {plural(len(groups), 'kernel')}"
    text = f"{kernels}, {percent(share)} of the GPU time"
    if count < len(durations):
        text += f"; the first {count} of their {plural(len(durations), 'launch')} (--max-time)"
    pattern = "|".join(_ESCAPED.sub(r"\\\g<0>", name) for name in names)
    return Choice(f"^({pattern})$", count, text)


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 2 * _MINUTE else f"{seconds / _MINUTE:.0f} min"
