"""From all runs of a trial to its result: verdicts, corrected for the number of switches."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from profkit.core.duration import duration
from profkit.core.json_text import finite
from profkit.timing.results import Comparison, Verdict
from profkit.timing.verdict import holm
from profkit.trial import checks
from profkit.trial.evidence import Combination, Evidence, declared
from profkit.trial.run import WALL, Result
from profkit.trial.switch import all_switches
from profkit.trial.trial_file import Preparation, Status, TrialFile, TrialRow, Unchanged
from profkit.ui.text import plural

_SAME = {"nothing", "rounding"}
_WORDS: dict[Verdict, Status] = {
    Verdict.IMPROVED: "faster",
    Verdict.REGRESSED: "slower",
    Verdict.SAME: "no difference",
}
_JITTED = "update = jax.jit(update)"
_LEFT = "\0"  # in lines of what a switch has left as it is
_RARE = 1.04  # chosen: a typical gain below which a switch may seem to gain by chance
_NEAR = 10.0  # chosen: times what is allowed, by which a perturbed run may fall short by chance
_WORTH = 1.02  # chosen: what another switch has to add, for the lines that keep it


def outcome(evidence: Evidence, command: Sequence[str], budget: float) -> TrialFile:
    """The result of a trial."""
    rows = tuple(_rows(evidence)) if evidence.unchanged else ()
    best, lower = fastest(rows)
    facts = evidence.runs[0].facts if evidence.runs else {}
    libraries = (f"{name} {facts[name]}" for name in ("torch", "jax") if name in facts)
    return TrialFile(
        command=tuple(command),
        gpu=str(facts["gpu"]) if "gpu" in facts else None,
        framework=next(libraries, None),
        unchanged=_unchanged(evidence) if evidence.unchanged else None,
        rows=rows,
        best=best,
        lower=lower,
        runs=len(evidence.runs),
        seconds=sum(run.seconds for run in evidence.runs),
        budget=budget,
        checked="",
        failure=_failure(evidence),
        interrupted=evidence.interrupted,
    )


def _failure(evidence: Evidence) -> str:
    """Why the unchanged program can't be measured, "" where it can."""
    failure = "" if evidence.combinations else evidence.failure(())
    again = "; its first run did not: try --in-copy, if what that wrote is why"
    late = "; raise --budget" if evidence.is_late(()) else ""
    return failure and failure + (again if evidence.unchanged else late)


def fastest(rows: Sequence[TrialRow]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Of rows, the fastest first, the switches of the fastest that is proven with the same results,
    and of a faster one with others; () without."""
    proven = [row for row in rows if row.status == "faster"]
    same = _fewest([row for row in proven if row.changes in _SAME])
    top = _fewest(proven)
    return same, top if top != same else ()


def _fewest(rows: Sequence[TrialRow]) -> tuple[str, ...]:
    """The switches of the fastest row, or of one with fewer that is as fast."""
    rare = {switch.name for switch in all_switches() if switch.typical < _RARE}
    fast = [row for row in rows if (row.speedup or 0) >= _least(row, rows[0], rare)]
    return min(fast, key=lambda row: len(row.switches)).switches if fast else ()


def _least(row: TrialRow, top: TrialRow, rare: set[str]) -> float:
    """From which speedup on a row is as fast as the top one, whose further switches have to add
    more than the scatter where these rarely gain."""
    fewer, names = {*row.switches}, {*top.switches}
    is_rare = fewer < names <= fewer | rare
    return top.comparison.low if is_rare and top.comparison else (top.speedup or 0) / _WORTH


def _unchanged(evidence: Evidence) -> Unchanged:
    runs = evidence.unchanged
    faulty = checks.faulty(runs)
    own = checks.spread(runs) if runs[0].results and len(runs) > 1 and not faulty else None
    return Unchanged(
        unit="step of one of its optimizers" if "optimizers" in runs[0].features else runs[0].unit,
        units=runs[0].units,
        seconds=statistics.median(run.mean for run in runs),
        runs=len(runs),
        limit=runs[0].limit,
        spread=evidence.spread if len(runs) > 1 else None,
        difference=None if own is None else finite(own),
        whole=not any(run.stopped for run in runs),
        faulty=faulty,
    )


def _rows(evidence: Evidence) -> Iterator[TrialRow]:
    """Rows of what was run, fastest first, then of what was not."""
    skipped = evidence.skipped
    tried = [each for each in evidence.combinations if not skipped.keys() & set(each)]
    known = {each: verdict for each in tried if (verdict := evidence.comparison(each))}
    # One whose runs were too few counts too: it might have had the first verdict.
    corrected = dict(zip(known, _holm([*known.values()], len(tried) - len(known)), strict=True))
    rows = [_row(evidence, each, corrected.get(each)) for each in tried]
    yield from sorted(rows, key=lambda row: -(row.speedup or 0.0))
    for switch, reason in skipped.items():
        yield _unmeasured((switch,), "not applicable", reason)
    for switch, seconds in evidence.left.items():
        needed = f"a proof takes about {duration(seconds)}"
        reason = "interrupted" if evidence.interrupted else needed
        yield _unmeasured((switch,), "not tried", reason)


def _holm(known: Sequence[Comparison], others: int) -> list[Comparison]:
    """Holm's correction, for further comparisons with p-values of 1 too."""
    undecided = [replace(each, p_value=1.0, verdict=Verdict.INCONCLUSIVE) for each in known[:1]]
    return holm([*known, *undecided * others])[: len(known)]


def _row(evidence: Evidence, combination: Combination, verdict: Comparison | None) -> TrialRow:
    judgment = evidence.judgment(combination)
    runs = evidence.of(combination)
    row = _unmeasured(combination, *_status(evidence, combination, verdict), runs)
    return replace(
        row,
        runs=len(runs),
        speedup=verdict.speedup if verdict else evidence.speedup(combination) or None,
        comparison=verdict and replace(verdict, a="unchanged", b=" + ".join(row.switches)),
        difference=finite(judgment.difference) if judgment else None,
        allowed=finite(judgment.allowed) if judgment else None,
        prepares=tuple(_prepares(evidence, combination, verdict)) if verdict else (),
    )


def _prepares(
    evidence: Evidence, combination: Combination, verdict: Comparison
) -> Iterator[Preparation]:
    """What compiling takes, by the longest first run of a combination that compiles the same, and
    the median of later ones; nothing of single runs."""
    compiling = [switch for switch in combination if switch.start]
    later = [run for run in evidence.of(combination) if not run.failure][1:]
    before = evidence.unchanged
    if not compiling or not later or before[0].unit == WALL or verdict.low <= 1:
        return
    unit, other = (statistics.median(run.mean for run in runs) for runs in (later, before))
    has_process = any(switch.environment for switch in combination)
    rest = statistics.median(
        run.seconds - run.units * run.mean + run.start * has_process for run in before[1:]
    )
    cold = max(
        seconds
        for each, seconds in evidence.cold.items()
        if compiling == [switch for switch in each if switch.start]
    )
    again = statistics.median(run.seconds for run in later)
    more = (max(each - later[0].units * unit - rest, 0.0) for each in (cold, again))
    yield from preparations(more, other, verdict)


def preparations(seconds: Iterable[float], unit: float, gain: Comparison) -> Iterator[Preparation]:
    """What takes so many seconds, beside a gain of what takes `unit` seconds."""
    # At least a ns, as of clocks: what is hardly above 1 may round to nothing.
    most, least = (max(unit - unit / speedup, 1e-9) for speedup in (gain.high, gain.low))
    return (Preparation(s, (math.ceil(s / most), math.ceil(s / least))) for s in seconds)


def _status(
    evidence: Evidence, combination: Combination, verdict: Comparison | None
) -> tuple[Status, str]:
    failure, own = evidence.failure(combination), evidence.failure(())
    faulty = checks.faulty(evidence.unchanged)
    if failure and (own or faulty):
        return "undecided", f"unchanged runs fail too: {own}" if own else faulty
    if failure:
        return "undecided" if evidence.is_late(combination) else "failed", failure
    judgment = evidence.judgment(combination)
    if faulty:
        is_faster = verdict is not None and verdict.verdict is Verdict.IMPROVED
        return "unverified" if is_faster else "undecided", faulty
    if judgment and not judgment.is_same:
        if not evidence.is_repeated:
            return "undecided", "no second unchanged run to compare results with"
        times = checks.MOST_PERTURBED if judgment.difference < _NEAR * judgment.allowed else 1
        if not evidence.is_perturbed(combination, times):
            few = "any perturbation" if times == 1 else "enough perturbations"
            return "undecided", f"{_difference_words(judgment)} before {few}"
        return "changes results", _difference_words(judgment)
    if verdict is None:
        return "undecided", plural(len(evidence.of(combination)), "run")
    status = _WORDS.get(verdict.verdict, "undecided")
    interval = f"[{verdict.low:.2f}, {verdict.high:.2f}] of {plural(verdict.blocks, 'pair')}"
    return status, "" if status != "undecided" else interval


def _difference_words(judgment: checks.Judgment) -> str:
    place = "later" if judgment.is_late else "first"
    if math.isinf(judgment.difference):
        return f"{judgment.series}: {place} results are missing, or not finite"
    words = f"differ by {judgment.difference:.2g}, allowed {judgment.allowed:.2g}"
    return f"{judgment.series}: {place} results {words}"


def _keep(combination: Combination, runs: Sequence[Result]) -> tuple[str, ...]:
    """What to write, for the workers, the optimizer, the function and the graphs that runs had."""
    known = {name: str(value) for run in runs for name, value in run.facts.items()}
    defaults = {"workers": "N", "persistent": "True", "jitted": _JITTED, "rival": ""}
    defaults |= dict.fromkeys(("module", "update", "dropped"), _LEFT if runs else "")
    facts = {**defaults, "optimizer": "" if runs else "AdamW", **known}
    text = "\n".join(switch.keep.strip() for switch in combination)
    for name in defaults:
        text = text.replace(f"{{{name}}}", facts[name])
    optimizers = facts.get("switched", facts["optimizer"]).split()
    lines: list[str] = []
    for line in (each for each in text.splitlines() if _LEFT not in each):
        names = optimizers if "{optimizer}" in line else optimizers[:1]
        names = [n for n in names if n != "SGD" or "capturable" not in line]
        lines += [line.replace("{optimizer}", n) for n in names] if "optimizer" in line else [line]
    return _merged(dict.fromkeys(lines))


def _merged(lines: Iterable[str]) -> tuple[str, ...]:
    """Lines with the arguments of several to the same call, which end in "...", in the first."""
    merged: list[str] = []
    for line in lines:
        call, dots, arguments = line.partition("..., ")
        same = [place for place, other in enumerate(merged) if other.startswith(call + dots)]
        if dots and same:
            merged[same[0]] = merged[same[0]].removesuffix(")") + f", {arguments}"
        else:
            merged.append(line)
    return tuple(merged)


def _unmeasured(
    combination: Combination, status: Status, reason: str, runs: Sequence[Result] = ()
) -> TrialRow:
    """A row without figures; what to keep is as its `runs` had it."""
    return TrialRow(
        switches=tuple(switch.name for switch in combination),
        what="; ".join(switch.what for switch in combination),
        changes=declared(combination),
        status=status,
        reason=reason,
        keep=_keep(combination, runs),
    )
