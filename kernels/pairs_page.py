"""docs/reference/pairs.md: what each recorded pair gained, and what its profiles say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernels import pair
from kernels.recorded import (
    LATENCY,
    Read,
    busiest,
    finding,
    limit,
    paragraph,
    report_of,
    table,
    timed,
    verdict,
)
from profkit.rules.pair_archive import unpacked
from profkit.rules.score import pairs_in
from profkit.timing.latency import Pair, Timed, compare_with
from profkit.timing.latency_view import latency_words, method
from profkit.timing.results import Verdict

_SOURCES = "../../kernels/pairs"

_KERNELS = """
Small kernels with one defect each, and the same kernels with its usual fix; controls have nothing
to fix. They are written from knowledge of the hardware, not fitted to any rule. Some have a
second limit right behind the first: there the fix gives less than the counter of the first
suggests.
"""
_NUMBERS = """
Both sides were checked against a reference in float64 before they were timed. `±` is the
half-width of the 95% interval of the median, `≈` that of an interval without a stated confidence
level ([Statistics](methods/statistics.md)). A profile is summarized by the first finding of
profkit's rules, with its estimated speedup: likely [low, high]. Where no rule holds, or the
finding promises no time, the busiest resource is named.
"""
_WRITTEN = """
This page is written by `python -m kernels.document` from `{folder}`;
[Recording](recording.md) shows how to record, and how to write a pair.
"""


@dataclass(frozen=True)
class Recorded:
    """A pair's recording: latencies by side, and of a defect the verdict on its fix."""

    pair: pair.Pair
    folder: Path
    timed: Mapping[str, Timed]
    gain: Pair | None


def pairs_page(folder: Path, read: Read) -> str:
    """The page from a folder of recordings; reports are read by `read`."""
    with unpacked(folder) as folders:
        return _page(folder, [_recorded(path) for path in pairs_in(folders)], read)


def _page(folder: Path, recorded: Sequence[Recorded], read: Read) -> str:
    defects = sorted(
        (one for one in recorded if one.gain), key=lambda one: (one.pair.category, one.pair.name)
    )
    controls = [one for one in recorded if not one.gain]
    first = recorded[0].timed[pair.BEFORE]
    lines = [
        "# Pairs: a defect and its fix",
        "",
        *paragraph(_KERNELS),
        "",
        *paragraph(f"{first.latency.gpu.name}; {method(first)}.", _NUMBERS),
        "",
        *paragraph(_WRITTEN.format(folder="/".join(folder.parts[-3:]))),
        "",
        *_sum(defects),
        "",
        *_defects(defects, read),
        "",
        "## Controls",
        "",
        "Nothing to fix: a tool that promises much here is wrong.",
        "",
        *_controls(controls, read),
    ]
    return "\n".join(lines) + "\n"


def _recorded(folder: Path) -> Recorded:
    found = timed(folder / LATENCY)
    told = pair.read(folder.name)
    gains = compare_with(found[pair.BEFORE], [found[pair.AFTER]]) if told.category else (None,)
    return Recorded(told, folder, found, gains[0])


def _sum(defects: Sequence[Recorded]) -> list[str]:
    """What all of them come to, in words."""
    speedups = sorted(one.gain.comparison.speedup for one in defects if one.gain)
    verdicts = Counter(one.gain.comparison.verdict for one in defects if one.gain)
    told = ", ".join(f"{verdicts[kind]} {kind.name}" for kind in Verdict if verdicts[kind])
    seconds = sum(one.pair.second_limit is not None for one in defects)
    half = speedups[len(speedups) // 2]
    return [
        f"## {len(defects)} defects of {len({one.pair.category for one in defects})} categories",
        "",
        *paragraph(
            f"{told}; speedups from {speedups[0]:.2f}x to {speedups[-1]:.1f}x, median "
            f"{half:.2f}x; {seconds} have a second limit right behind."
        ),
    ]


def _defects(defects: Iterable[Recorded], read: Read) -> list[str]:
    columns = (
        "Pair",
        "What is wrong → its fix",
        "Before",
        "After",
        "Speedup",
        "Second limit",
        "Profile of before",
        "Profile of after",
    )
    return table(columns, [_row(one, read) for one in defects])


def _row(one: Recorded, read: Read) -> tuple[str, ...]:
    told = one.pair
    at = f"{_SOURCES}/{told.name}"
    if told.launches[pair.BEFORE]:
        sources = (
            f"[before]({at}/{told.launches[pair.BEFORE][0].file}#L{told.line}), "
            f"[after]({at}/{told.launches[pair.AFTER][0].file})"
        )
    else:
        sources = f"[both sides]({at}/sides.py)"
    assert one.gain is not None
    return (
        f"**{told.name}**<br>`{told.category}`<br>{sources}",
        f"{told.what} → {told.fix}",
        *(latency_words(one.timed[side]) for side in pair.SIDES),
        verdict(one.gain),
        f"`{told.second_limit}`" if told.second_limit else "",
        *(limit(read(report_of(one.folder, side))) for side in pair.SIDES),
    )


def _controls(controls: Iterable[Recorded], read: Read) -> list[str]:
    rows = []
    for one in controls:
        report = read(report_of(one.folder, pair.BEFORE))
        latency = one.timed[pair.BEFORE]
        source = one.pair.folder / "before.cu"
        link = f"{_SOURCES}/{one.pair.name}/{'before.cu' if source.exists() else 'pair.yaml'}"
        rows.append(
            (
                f"[{one.pair.name}]({link})",
                one.pair.what,
                latency_words(latency),
                busiest(report),
                finding(report),
            )
        )
    return table(("Control", "What it is", "Median", "Busiest, of its peak", "Profile"), rows)
