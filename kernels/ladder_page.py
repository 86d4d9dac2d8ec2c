"""docs/reference/methods/ladder.md: what each recorded rung gained, and what its profile says."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from kernels.attention.ladder import RUNGS, Rung
from kernels.recorded import (
    LATENCY,
    Profile,
    Read,
    limit,
    paragraph,
    report_of,
    slowest,
    table,
    timed,
    times_as_fast,
    verdict,
)
from profkit.report.summary import LaunchSummary
from profkit.timing.latency import compare_with
from profkit.timing.latency_format import Pair, Series
from profkit.timing.latency_view import change, latency_words, method
from profkit.timing.results import Verdict
from profkit.ui.text import number, percent

DEFAULT = "sdpa"
BACKENDS: Mapping[str, str] = {
    DEFAULT: "SDPA, torch's choice",
    "flash": "SDPA, FlashAttention-2",
    "cudnn": "SDPA, cuDNN",
    "efficient": "SDPA, memory-efficient",
}
PICTURE = "ladder.svg"
_LABELS = (*(rung.name for rung in RUNGS), *BACKENDS)
FEW_BLOCKS = "few_blocks.json"
_SOURCES = "../../../kernels/attention"
_MOST, _LEAST_MOVED = 3, math.log(1.1)
_MOVABLE: Mapping[str, str] = {
    "issue_busy": "issue slots",
    "tensor_busy": "tensor cores",
    "shared_conflict_share": "shared-memory accesses lost to bank conflicts",
    "dram_busy": "DRAM",
    "l1_busy": "L1/shared memory",
    "occupancy_achieved": "occupancy",
    "registers_per_thread": "registers a thread",
}
_SMALL = 0.05  # a share below it counts as little as none

_KERNELS = """
Eight attention kernels, each with one idea more than the previous one: from a plain version, slow
on purpose, to a kernel made for Hopper. They are in `kernels/attention/`;
`targets/attention_ladder.py` runs them beside torch's SDPA.
"""
_NUMBERS = """
All variants were checked against a reference in float64 before they were timed. `±` is the
half-width of the 95% interval of the median, `≈` that of an interval without a stated confidence
level; verdicts have a margin of {margin} ([Statistics](statistics.md)). Rates count the work that
the problem needs. What limits a kernel is the first finding of profkit's rules on its profile,
with its estimated speedup: likely [low, high]. Where no rule holds, or the finding promises no
time, the busiest resource is named.
"""
_WRITTEN = """
This page is written by `python -m kernels.document` from `{folder}`;
[Recording](../recording.md) shows how to record.
"""


@dataclass(frozen=True)
class Ladder:
    """The recorded ladder at its main shape: latencies and profiles by variant."""

    timed: Mapping[str, Series]
    profiles: Mapping[str, Profile]
    steps: Mapping[str, Pair]
    against_default: Mapping[str, Pair]


def read_ladder(folder: Path, read: Read) -> Ladder:
    """The ladder in a folder of recordings; reports are read by `read`."""
    found = timed(folder / LATENCY)
    steps = (
        compare_with(found[one.name], [found[other.name]])[0] for one, other in pairwise(RUNGS)
    )
    others = [one for label, one in found.items() if label != DEFAULT]
    return Ladder(
        timed=found,
        profiles={label: read(report_of(folder, label)) for label in found},
        steps={step.b.label: step for step in steps},
        against_default={pair.b.label: pair for pair in compare_with(found[DEFAULT], others)},
    )


def ladder_page(folder: Path, read: Read) -> str:
    """The page from a folder of recordings; reports are read by `read`."""
    ladder = read_ladder(folder, read)
    first = ladder.timed[DEFAULT]
    margin = percent(next(iter(ladder.steps.values())).comparison.margin.value)
    numbers = _NUMBERS.format(margin=margin)
    lines = [
        "# The attention ladder",
        "",
        *paragraph(_KERNELS),
        "",
        *paragraph(f"{first.latency.gpu.name}; {method(first)}.", numbers),
        "",
        *paragraph(_WRITTEN.format(folder="/".join(folder.parts[-3:]))),
        "",
        f"## {shape_words(first)}",
        "",
        *_times(ladder),
        "",
        f"![The ladder's latencies beside SDPA's]({PICTURE})",
        "",
        *_rungs(ladder, timed(folder / FEW_BLOCKS)),
        *_few_blocks(ladder, timed(folder / FEW_BLOCKS)),
    ]
    return "\n".join(lines) + "\n"


def shape_words(one: Series) -> str:
    """The shape and dtype: `B=32 H=8 S=512 D=64, float16`."""
    shapes = one.latency.target.shapes or {}
    sizes = zip("BHSD", ("batch", "heads", "length", "dim"), strict=True)
    told = " ".join(f"{letter}={shapes[name]}" for letter, name in sizes)
    return f"{told}, {one.latency.target.dtype}"


def _times(ladder: Ladder) -> list[str]:
    columns = ("", "Idea", "Median", "Rate", "Over the previous rung", "Against SDPA", "Limited by")
    rungs = [
        (
            f"{rung.number}. [{rung.name}](#{_anchor(rung)})",
            rung.idea,
            *_measured(ladder, rung.name),
        )
        for rung in RUNGS
    ]
    backends = [(f"`{name}`", what, *_measured(ladder, name)) for name, what in BACKENDS.items()]
    return table(columns, [*rungs, *backends])


def _measured(ladder: Ladder, label: str) -> tuple[str, ...]:
    one = ladder.timed[label]
    pairs = (ladder.steps.get(label), ladder.against_default.get(label))
    return (
        latency_words(one),
        number(one.flop_rate.value, "FLOP/s") if one.flop_rate else "",
        *(verdict(pair) if pair else "" for pair in pairs),
        limit(ladder.profiles[label]),
    )


def _rungs(ladder: Ladder, few: Mapping[str, Series]) -> Iterator[str]:
    yield from ("## What changed from rung to rung", "")
    yield from paragraph(
        "Of the quantities of the profile those that moved most from the previous rung; of a rung "
        "with several kernels, those of its longest."
    )
    for before, rung in pairwise((None, *RUNGS)):
        assert rung is not None
        yield from ("", f"### {_heading(rung)}", "")
        yield from paragraph(
            f"Idea: {rung.idea} ([{rung.file}]({_SOURCES}/{rung.file})).",
            *_changed(ladder, few, before, rung),
        )
    yield ""


def _changed(
    ladder: Ladder, few: Mapping[str, Series], before: Rung | None, rung: Rung
) -> Iterator[str]:
    now = slowest(ladder.profiles[rung.name])
    if before is None:
        yield _facts(now)
        return
    yield _changes(slowest(ladder.profiles[before.name]), now)
    step = ladder.steps[rung.name].comparison
    if step.verdict is Verdict.REGRESSED:
        there = times_as_fast(few, rung.name, before.name)
        yield (
            f"At this shape it is {change(step)} than `{before.name}`; [where blocks are few]"
            f"(#few-blocks) it is {there:.2f} times as fast."
        )


def _heading(rung: Rung) -> str:
    return f"{rung.number}. {rung.name}"


def _anchor(rung: Rung) -> str:
    """Of the rung's heading, as GitHub makes it."""
    return f"{rung.number}-{rung.name}"


def _facts(now: LaunchSummary) -> str:
    told = [f"{words} {_value(name, now)}" for name, words in _MOVABLE.items()]
    return f"Under ncu {number(now.duration, 's')}; {', '.join(told)}; top stall {_stall(now)}."


def _changes(then: LaunchSummary, now: LaunchSummary) -> str:
    moved = sorted(_MOVABLE, key=lambda name: -_moved(name, then, now))
    told = [
        f"{_MOVABLE[name]} {_value(name, then)} → {_value(name, now)}"
        for name in moved[:_MOST]
        if _moved(name, then, now) >= _LEAST_MOVED
    ]
    took = f"Under ncu {number(then.duration, 's')} → {number(now.duration, 's')}"
    words = ", ".join(told) or "all else within a tenth"
    return f"{took}; {words}; top stall {_stall(then)} → {_stall(now)}."


def _stall(launch: LaunchSummary) -> str:
    top = next(stall for stall in launch.stalls if stall.is_wait)
    return f"`{top.reason}` ({percent(top.share)})"


def _moved(name: str, then: LaunchSummary, now: LaunchSummary) -> float:
    """How far a quantity went, as a ratio whose logarithm is taken; 0 where it is not known."""
    small = 0.0 if name == "registers_per_thread" else _SMALL
    far = abs(math.log((now.get(name) + small) / (then.get(name) + small)))
    return 0.0 if math.isnan(far) else far


def _value(name: str, launch: LaunchSummary) -> str:
    value = launch.get(name)
    return f"{value:.0f}" if name == "registers_per_thread" else percent(value)


def _ratio(times: Mapping[str, Series], label: str) -> str:
    """Times as fast as the default."""
    ratio = times_as_fast(times, label, DEFAULT)
    return f"{ratio:.{2 if ratio >= 0.1 else 3}f}x"


def _few_blocks(ladder: Ladder, few: Mapping[str, Series]) -> Iterator[str]:
    yield from ("## Few blocks", "")
    yield from paragraph(*_where_few(ladder, few))
    yield ""
    columns = ("", "Median", "Times as fast as SDPA's default")
    rows = [(f"`{label}`", latency_words(few[label]), _ratio(few, label)) for label in _LABELS]
    yield from table(columns, rows)


def _where_few(ladder: Ladder, few: Mapping[str, Series]) -> Iterator[str]:
    """Which rungs gain here although they lose at the main shape, and who is the fastest."""
    yield f"{shape_words(few[DEFAULT])}. {_fill(ladder, few[DEFAULT])}"
    for before, rung in pairwise(RUNGS):
        here, there = times_as_fast(few, rung.name, before.name), ladder.steps[rung.name].comparison
        if here > 1 and there.verdict is Verdict.REGRESSED:
            yield (
                f"`{rung.name}` ({rung.idea}) takes {_median(few, rung.name)} where "
                f"`{before.name}` takes {_median(few, before.name)}: {here:.2f} times as fast. "
                f"At the main shape it is {change(there)}."
            )
    fastest, best = _fastest(few), _fastest(ladder.timed)
    yield f"The fastest here is `{fastest}` with {_median(few, fastest)}."
    if fastest != best:
        yield f"`{best}`, the fastest at the main shape, takes {_median(few, best)}."


def _fill(ladder: Ladder, few: Series) -> str:
    """How much of the chip the first rung's blocks fill, by its grid at the main shape."""
    name = RUNGS[0].name
    main = _query_rows(ladder.timed[name])
    rows = main // math.prod(slowest(ladder.profiles[name]).grid)
    sms = few.latency.gpu.multiprocessors or 0
    blocks = math.ceil(_query_rows(few) / rows)
    return f"Tiles of {rows} query rows make {blocks} blocks for {sms} SMs."


def _query_rows(one: Series) -> int:
    shapes = one.latency.target.shapes or {}
    return int(shapes["batch"] * shapes["heads"] * shapes["length"])


def _median(times: Mapping[str, Series], label: str) -> str:
    return number(times[label].summary.median, "s")


def _fastest(times: Mapping[str, Series]) -> str:
    return min(times, key=lambda label: times[label].summary.median)
