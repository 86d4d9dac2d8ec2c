"""Findings of a smaller set and of all metrics: `python -m kernels.compare_sets [--with DIR]`

Each pair is judged twice: with all that was recorded, and as recorded with a smaller set below DIR
(`python -m kernels.record --set lean --profile-only --out DIR`). Without DIR the second is
simulated: what `--set lean` would have recorded of the first; a counter of the set that the
recordings lack is taken from an equal one that they have (`_EQUAL`). Printed are the cost of each
set, the share of pairs whose first finding is the same, the differences of its estimate, new false
alarms, and the quantities by another formula with their differences.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from profkit.analysis import report as analysis
from profkit.capture.sets import capture_set
from profkit.core.integrity import MANIFEST
from profkit.report.reader import RawReport
from profkit.report.summary import LaunchSummary, ReportSummary
from profkit.rules.checklist import Checklist
from profkit.score.pair_archive import unpacked
from profkit.score.score import NAMED, Alarm, judge, pairs_in, read_pair

_HOPPER = (9, 0)
_PAIRS = Path("reports/h200/pairs")
# What the sections of the set hold, besides its own metrics, of the names that the catalog reads.
_OF_SECTIONS = (
    "launch__", "device__", "profiler__", "memory_", "derived__memory_", "smsp__pcsamp_",
    "sass__inst_executed_per_opcode", "sm__maximum_warps", "sm__warps_active.",
    "smsp__warps_active.", "smsp__warps_eligible.", "smsp__issue_active.",
    "sm__cycles_active.", "lts__cycles_active.", "dram__cycles_active.", "smsp__sass_branch_",
    "smsp__sass_average_branch_", "smsp__inst_executed_op_branch",
    "smsp__sass_thread_inst_executed", "derived__smsp__sass_thread_inst_executed_op_d",
    "derived__smsp__sass_thread_inst_executed_op_f",
    "derived__sm__sass_thread_inst_executed_op_d", "derived__sm__sass_thread_inst_executed_op_f",
    "dram__bytes.sum.peak_sustained", "smsp__inst_issued.sum",
)  # fmt: skip
_WHOLE = {"inst_executed"}
_SHARED_COPIES = "pipe_lsu_mem_shared_op_ldgsts.sum"
_EQUAL = {
    f"smsp__sass_l1tex_data_bank_conflicts_{_SHARED_COPIES}": (
        f"l1tex__data_bank_conflicts_{_SHARED_COPIES}"
    )
}
_UNKNOWN = {"seconds": math.nan, "launches": 1}  # of recordings before it was kept
_CLOSE = 0.02  # relative difference, chosen: below it another formula changes no finding
_POINTS = 0.03  # of the report's time: the largest difference of an estimate that is asked for


@dataclass(frozen=True)
class First:
    """The first finding of a report: rule, category, estimated share of the time saved."""

    rule: str
    category: str
    saved: float


@dataclass(frozen=True)
class Judgment:
    """A pair with all metrics and with the set's: first findings, alarms, values by quantity."""

    name: str
    firsts: tuple[tuple[First, First], ...]
    findings: tuple[tuple[str, float, float], ...]
    new_alarms: tuple[Alarm, ...]
    named: tuple[bool, bool]
    values: Mapping[str, Sequence[tuple[float, float, str]]]
    passes: tuple[tuple[float, float], ...]


def reduced(raw: RawReport, names: frozenset[str]) -> RawReport:
    """A report with some metrics alone, and those of the sections of the set."""
    columns, recorded = dict(raw.columns), dict(raw.recorded)
    for name, source in _EQUAL.items():
        if source in columns:
            columns[name], recorded[name] = columns[source], recorded[source]
    kept = {
        name for name in columns if name in names or name in _WHOLE or name.startswith(_OF_SECTIONS)
    }
    return replace(
        raw,
        columns={name: columns[name] for name in kept},
        recorded={name: recorded[name] for name in kept},
    )


def examine(
    file: Path, names: frozenset[str] | None, seen: list[tuple[ReportSummary, Checklist]]
) -> tuple[ReportSummary, Checklist]:
    """A report and its checklist, of some metrics where `names` are given; kept in `seen`."""
    report = analysis.load(file)
    if names is not None:
        report._raw = reduced(report._raw, names)
    seen.append((report.summary, report.checklist(blamed=0)))
    return seen[-1]


def first_of(checklist: Checklist) -> First:
    for item in checklist.findings[:1]:
        estimate = item.estimate
        saved = 1 - 1 / estimate.run if estimate else 0.0
        return First(item.rule.name, item.rule.category, saved)
    return First("", "", 0.0)


def compare(folders: tuple[Path, Path], names: frozenset[str]) -> Judgment:
    """Judge a pair both ways: with all metrics, and as the second folder has it; where that is the
    first, with those of `names`."""
    pair, other = (read_pair(folder) for folder in folders)
    other = replace(other, achieved=pair.achieved)  # timed once
    simulated = names if folders[0] == folders[1] else None
    seen: tuple[list[tuple[ReportSummary, Checklist]], ...] = ([], [])
    whole = judge(pair, partial(examine, names=None, seen=seen[0]))
    small = judge(other, partial(examine, names=simulated, seen=seen[1]))
    values: dict[str, list[tuple[float, float, str]]] = defaultdict(list)
    findings: list[tuple[str, float, float]] = []
    for (full, checked), (lean, rechecked) in zip(*seen, strict=True):
        for launch, smaller in zip(full.launches, lean.launches, strict=True):
            _collect(values, launch, smaller)
        findings += _estimates(checked, rechecked)
    alarms = {alarm.category for alarm in whole.alarms}
    return Judgment(
        pair.name,
        tuple(
            (first_of(checked), first_of(rechecked))
            for (_, checked), (_, rechecked) in zip(*seen, strict=True)
        ),
        tuple(findings),
        tuple(alarm for alarm in small.alarms if alarm.category not in alarms),
        (whole.rank == 1, small.rank == 1),
        values,
        tuple(
            (launch.get("replay_passes"), smaller.get("replay_passes"))
            for (full, _), (lean, _) in zip(*seen, strict=True)
            for launch, smaller in zip(full.launches, lean.launches, strict=True)
        ),
    )


def _estimates(whole: Checklist, small: Checklist) -> Iterator[tuple[str, float, float]]:
    """The factors of categories that either names, 1 where one does not."""
    factors: list[dict[str, float]] = [{}, {}]
    for place, checklist in zip(factors, (whole, small), strict=True):
        for item in checklist.findings:
            if item.estimate:
                place.setdefault(item.rule.category, item.estimate.run)
    for category in dict.fromkeys([*factors[0], *factors[1]]):
        pair = factors[0].get(category, 1.0), factors[1].get(category, 1.0)
        if max(pair) >= NAMED:
            yield category, *pair


def _collect(
    values: dict[str, list[tuple[float, float, str]]], full: LaunchSummary, lean: LaunchSummary
) -> None:
    for name, value in full.values.items():
        formula = lean.formulas.get(name, "")
        if formula != full.formulas.get(name, ""):
            values[name].append((value, lean.get(name), formula))


def main() -> int:
    """Simulate on the pairs of a folder; 1 where a first finding or an alarm differs too often."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--pairs", type=Path, default=_PAIRS, metavar="DIR")
    parser.add_argument("--with", type=Path, dest="other", metavar="DIR")
    parser.add_argument("--verbose", action="store_true", help="every difference")
    options = parser.parse_args()
    names = frozenset(capture_set("lean", _HOPPER).metrics)
    with ExitStack() as stack, ProcessPoolExecutor(2) as pool:
        pairs = pairs_in(stack.enter_context(unpacked(options.pairs)))
        others = {path.name: path for path in pairs}
        if options.other:
            others = {path.name: path for path in pairs_in([options.other])}
        both = [(path, others[path.name]) for path in pairs if path.name in others]
        judged = list(pool.map(partial(compare, names=names), both))
        if options.other:
            _print_cost(both, judged)
    return _print(judged, verbose=options.verbose)


def _print_cost(folders: Sequence[tuple[Path, Path]], judged: Sequence[Judgment]) -> None:
    """A table of both sets: passes and ncu's seconds for each launch, bytes of the reports."""
    print("| set | passes | ncu, s a launch | reports, MB |", "|---|---|---|---|", sep="\n")
    for side in (0, 1):
        passes = [pair[side] for row in judged for pair in row.passes]
        manifests = [
            json.loads((pair[side] / MANIFEST).read_text(encoding="utf-8")) for pair in folders
        ]
        runs = [manifest["ncu_run"] for manifest in manifests if "ncu_run" in manifest]
        seconds = statistics.median(run["seconds"] / run["launches"] for run in runs or [_UNKNOWN])
        size = sum(
            file.stat().st_size for pair in folders for file in pair[side].glob("*.ncu-rep*")
        )
        spread = f"{min(passes):.0f} to {max(passes):.0f}"
        name = manifests[0]["options"]["sections"]
        print(f"| {name} | {spread} | {seconds:.2f} | {size / 1e6:.1f} |")


def _print(judged: Sequence[Judgment], *, verbose: bool) -> int:
    firsts = [(row.name, side, pair) for row in judged for side, pair in enumerate(row.firsts)]
    before = [pair for _, side, pair in firsts if side == 0]
    alike = [full.rule == lean.rule for full, lean in before]
    named = [sum(row.named[side] for row in judged) for side in (0, 1)]
    points = [abs(lean.saved - full.saved) for full, lean in before if full.rule == lean.rule]
    print(f"{len(judged)} pairs, {len(firsts)} reports")
    print(f"first finding the same: {statistics.fmean(alike):.1%} of the pairs,", end=" ")
    print(f"{statistics.fmean(f.rule == s.rule for _, _, (f, s) in firsts):.1%} of the reports,")
    print(f"  the category: {statistics.fmean(f.category == s.category for f, s in before):.1%}")
    print(f"true category first: {named[0]} with all metrics, {named[1]} with the set")
    print(
        f"estimate of the first finding: median difference {statistics.median(points):.2%},",
        end=" ",
    )
    print(f"largest {max(points):.1%}, within {_POINTS:.0%}:", end=" ")
    print(f"{statistics.fmean(point <= _POINTS for point in points):.1%} of the pairs")
    every = [(1 / f - 1 / s, row.name, c, f, s) for row in judged for c, f, s in row.findings]
    near = statistics.fmean(abs(point) <= _POINTS for point, *_ in every)
    print(f"all named findings: {len(every)}, within {_POINTS:.0%}: {near:.1%}")
    alarms = [(row.name, alarm) for row in judged for alarm in row.new_alarms]
    print(
        f"new false alarms: {len(alarms)}",
        *(f"  {name}: {alarm}" for name, alarm in alarms),
        sep="\n",
    )
    for name, side, (full, lean) in firsts:
        if full.rule != lean.rule or (verbose and abs(full.saved - lean.saved) > _POINTS):
            print(f"  {name} {'before' if side == 0 else 'after'}: {full} -> {lean}")
    if verbose:
        for point, name, category, factor, other in sorted(every, key=lambda row: -abs(row[0])):
            print(f"  {name} {category}: {factor:.3f} -> {other:.3f} ({point:+.1%})")
    _print_values(judged)
    return int(statistics.fmean(alike) < 0.97 or bool(alarms))  # as asked of the set


def _print_values(judged: Sequence[Judgment]) -> None:
    rows: dict[str, list[tuple[float, float, str]]] = defaultdict(list)
    for row in judged:
        for name, values in row.values.items():
            rows[name] += values
    lost = []
    print("quantity                            launches  median   p90  by")
    for name, values in rows.items():
        both = [(full, lean) for full, lean, _ in values if not np.isnan(lean)]
        if not both:
            lost.append(name)
            continue
        apart = [abs(lean - full) / abs(full) if full else abs(lean) for full, lean in both]
        ninth = float(np.quantile(apart, 0.9))
        formula = next(text for _, lean, text in values if not np.isnan(lean))
        if ninth > _CLOSE or len(both) < len(values):
            print(
                f"{name:<35} {len(both):>4}/{len(values):<4} {statistics.median(apart):>6.1%}",
                end="",
            )
            print(f" {ninth:>6.1%}  {formula[:70]}")
    print("not collected:", ", ".join(sorted(lost)))


if __name__ == "__main__":
    sys.exit(main())
