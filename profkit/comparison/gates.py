"""Gates of a comparison: what `--fail-on` asks for, and what of a comparison fails it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from profkit.comparison.comparison import Diff, KernelDiff
from profkit.comparison.finding_changes import WORTH, Seen, Status
from profkit.comparison.repeats import Change, noise
from profkit.comparison.timed_change import TimedChange
from profkit.core.columns import Column
from profkit.core.errors import UsageError
from profkit.core.expression import FUNCTIONS, Expression, NotAllowed, parse
from profkit.core.suggestion import did_you_mean
from profkit.report.catalog import catalog
from profkit.report.summary import Group, LaunchSummary

BEFORE = "before_"
"""What stands before the name of a quantity of the earlier report."""
FAILED, UNDECIDED = 1, 3
"""Exit codes: a gate failed; nothing can be concluded."""


class GateKind(StrEnum):
    """What a gate asks about."""

    regression = "regression"
    inconclusive = "inconclusive"
    incomparable = "incomparable"
    new_finding = "new-finding"
    removed = "removed"
    metric = "metric"


_UNDECIDED = {GateKind.inconclusive, GateKind.incomparable}
_ALLOWED = (
    "there are quantities, numbers, + - * /, one comparison at a time, and, or, not, and "
    f"{', '.join(FUNCTIONS)} as docs/writing-rules.md has them"
)
_WRITTEN = "regression[:5%], inconclusive, incomparable, new-finding, removed, metric:EXPRESSION"


@dataclass(frozen=True)
class Gate:
    """A gate: `margin` is the share that a regression may be slower by, `expression` what must not
    hold of a kernel's quantities."""

    kind: GateKind
    margin: float = 0.0
    expression: Expression | None = None

    def __str__(self) -> str:
        if self.expression:
            return f"{self.kind}:{self.expression.text}"
        return f"{self.kind}:{self.margin * 100:g}%" if self.margin else str(self.kind)


@dataclass(frozen=True)
class Amount:
    """A number of a sentence, in a unit or of what is counted."""

    value: float
    unit: str


Why = tuple[str | Amount | Seen, ...]
"""A sentence: text, and between it the numbers, which are put in words where they are shown."""


@dataclass(frozen=True)
class Failure:
    """A gate that failed: on a kernel or timed variant by its name, "" for the reports as wholes.

    `why` is a sentence with numbers; `at` is the place of the kernel in the comparison's kernels,
    -1 where it is none of them. `unchecked`: there was nothing to ask the gate of.
    """

    gate: Gate
    kernel: str
    why: Why
    at: int = -1
    unchecked: bool = False

    @property
    def undecided(self) -> bool:
        """Whether it says that nothing can be concluded, rather than that something got worse."""
        return self.unchecked or self.gate.kind in _UNDECIDED


def parse_gates(texts: Iterable[str]) -> tuple[Gate, ...]:
    """The gates of `--fail-on` values, each a list with commas, in order and each once.

    Raises UsageError for what is no gate, and for a value without one: of a variable that is not
    set there would be none to fail.
    """
    return tuple(dict.fromkeys(gate for text in texts for gate in _listed(text)))


def failures(diff: Diff, gates: Iterable[Gate]) -> tuple[Failure, ...]:
    """What fails the gates, in their order, kernels in that of the comparison.

    Of reports that can't be compared each gate fails as unchecked, unless what one side alone has
    fails it, or it is `incomparable`.
    """
    return tuple(failure for gate in gates for failure in _failures(diff, gate))


def _failures(diff: Diff, gate: Gate) -> Sequence[Failure]:
    found = tuple(_ASK[gate.kind](diff, gate))
    if found or not diff.refused:
        return found
    why = "not checked, nothing was compared: ", "; ".join(map(str, diff.obstacles))
    return (Failure(gate, "", why, unchecked=True),)


def exit_code(diffs: Iterable[Diff], failed: Iterable[Failure]) -> int:
    """1 where a gate failed; 3 where reports or kernels can't be compared, nothing was, or what a
    gate forbids is inconclusive; else 0."""
    found = list(failed)
    if any(not failure.undecided for failure in found):
        return FAILED
    return UNDECIDED if found or any(map(_is_open, diffs)) else 0


def _is_open(diff: Diff) -> bool:
    """Whether something can't be compared; of what is forced, whether all."""
    if diff.refused or len(diff.incomparable) == len(diff.kernels) > 0:
        return True
    return bool(diff.incomparable) and not diff.forced


def _listed(text: str) -> list[Gate]:
    found = [_gate(part.strip()) for part in _parts(text) if part.strip()]
    if not found:
        raise UsageError(
            f"--fail-on {text[:80]!r} names no gate",
            f"leave it out, or write some of {_WRITTEN}",
        )
    return found


def _parts(text: str) -> Iterator[str]:
    """A list at its commas, those between parentheses apart."""
    depth = start = 0
    for at, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth <= 0:
            yield text[start:at]
            start = at + 1
    yield text[start:]


def _gate(text: str) -> Gate:
    name, colon, value = text.partition(":")
    try:
        kind = GateKind(name.strip())
    except ValueError:
        meant = did_you_mean(name, [kind.value for kind in GateKind])
        raise UsageError(
            f"--fail-on {text[:80]!r} is no gate", f"{meant} there are {_WRITTEN}".lstrip()
        ) from None
    if kind is GateKind.metric:
        return Gate(kind, expression=_condition(value.strip()))
    if kind is GateKind.regression and colon:
        return Gate(kind, _margin(value.strip()))
    if colon:
        raise UsageError(f"--fail-on {text[:80]!r}: {kind} takes no value", f"write {kind}")
    return Gate(kind)


def _margin(text: str) -> float:
    """A share written as a percentage."""
    try:
        share = float(text.removesuffix("%")) / 100 if text.endswith("%") else math.nan
    except ValueError:
        share = math.nan
    if not text:
        raise UsageError(
            "--fail-on regression: without a percentage", "write regression:5%, or regression"
        )
    if not 0 <= share < math.inf:
        raise UsageError(
            f"--fail-on regression: {text[:80]!r} is no percentage", "write regression:5%"
        )
    return share


def _condition(text: str) -> Expression:
    if not text:
        raise UsageError(
            "--fail-on metric: without an expression",
            "write what must not hold: metric:registers_per_thread > 128",
        )
    try:
        expression = parse(text)
    except NotAllowed as error:
        raise UsageError(
            f"--fail-on metric: {error.part!r} is not allowed in an expression", _ALLOWED
        ) from None
    except ValueError as error:
        raise UsageError(
            f"--fail-on metric: {error}", "write a comparison: metric:registers_per_thread > 128"
        ) from None
    for name in expression.names:
        _check_name(name)
    if not expression.is_condition:
        raise UsageError(
            f"--fail-on metric: {text[:80]!r} is no condition",
            "compare it with something: metric:registers_per_thread > 128",
        )
    return expression


def _check_name(name: str) -> None:
    known = catalog().quantities
    bare = name.removeprefix(BEFORE)
    if bare not in known:
        prefix = name[: len(name) - len(bare)]
        raise UsageError(
            f"--fail-on metric: {name!r} is no quantity",
            did_you_mean(
                bare, known, "`profkit metrics` lists them", spelled=lambda near: prefix + near
            ),
        )


def _regressions(diff: Diff, gate: Gate) -> Iterator[Failure]:
    slower = [
        Failure(gate, kernel.after.name, _slower(_moved(kernel), kernel.speedup, gate), at)
        for at, kernel in enumerate(diff.kernels)
        if _is_slower(kernel.change, kernel.speedup, gate)
    ]
    slower += [
        Failure(gate, timed.after.label, _slower(_timed(timed), timed.speedup, gate))
        for timed in _variants(diff)
        if timed.valid and _is_slower(timed.change, timed.speedup, gate)
    ]
    yield from slower or _total(diff, gate)


def _is_slower(change: Change, speedup: float, gate: Gate) -> bool:
    return change is Change.regressed and _excess(speedup) > gate.margin


def _excess(speedup: float) -> float:
    """The share by which it is slower."""
    return 1 / speedup - 1


def _slower(moved: Why, speedup: float, gate: Gate) -> Why:
    allowed = f", more than {gate.margin * 100:g}%" if gate.margin else ""
    return *moved, ": ", Amount(_excess(speedup), "1"), f" slower{allowed}"


def _total(diff: Diff, gate: Gate) -> Iterator[Failure]:
    """All launches together, where ncu's durations are the verdict on every kernel and complete."""
    total = diff.total
    before, after = total.before + total.removed, total.after + total.added
    told = all(
        kernel.change is not Change.incomparable and not kernel.in_cycles and not kernel.by_timing
        for kernel in diff.kernels
    )
    whole = not any(group.failed for side in diff.sides for group in side.report.groups)
    if not (told and whole and total.tells):
        return
    launches = (len(side.report.measured) for side in diff.sides)
    means = (time / count for time, count in zip((before, after), launches, strict=True))
    if after / before - 1 > max(gate.margin, noise(*means)):
        moved: Why = "all launches together ", *_from_to(before, after), " by ncu"
        for seconds, word in ((total.removed, "removed"), (total.added, "added")):
            if seconds:
                moved = *moved, ", ", Amount(seconds, "s"), f" of it in {word} kernels"
        yield Failure(gate, "", _slower(moved, before / after, gate))


def _inconclusive(diff: Diff, gate: Gate) -> Iterator[Failure]:
    for at, kernel in enumerate(diff.kernels):
        if kernel.change is Change.inconclusive:
            yield Failure(gate, kernel.after.name, _open(kernel), at)
    for timed in _variants(diff):
        if timed.change is Change.inconclusive:
            yield Failure(gate, timed.after.label, (*_timed(timed), f": {timed.why}"))


def _open(kernel: KernelDiff) -> Why:
    if kernel.timed and kernel.by_timing:
        return *_timed(kernel.timed), f": {kernel.timed.why}"
    assert kernel.profiled is not None
    low, high = kernel.profiled.range
    return *_moved(kernel), f": the ratio is between {low:.3g}x and {high:.3g}x"


def _incomparable(diff: Diff, gate: Gate) -> Iterator[Failure]:
    if diff.refused:
        yield Failure(gate, "", ("; ".join(map(str, diff.obstacles)),))
    for at, kernel in enumerate(diff.kernels):
        if kernel.change is Change.incomparable:
            why = "; ".join(map(str, kernel.obstacles)) or "no duration on a side"
            yield Failure(gate, kernel.after.name, (why,), at)


def _new_findings(diff: Diff, gate: Gate) -> Iterator[Failure]:
    for at, kernel in enumerate(diff.kernels):
        for one in kernel.findings:
            if one.status is Status.new and one.promises >= WORTH:
                why = f"{one.category} is new, its fix would give {one.promises:.2f}x"
                seen: Why = ("; ", one.seen) if one.seen else ()
                yield Failure(gate, kernel.after.name, (why, *seen), at)


def _removed(diff: Diff, gate: Gate) -> Iterator[Failure]:
    for group in diff.removed:
        launches = Amount(group.count, "launch")
        known = not math.isnan(group.total)
        spent: Why = (", it took ", Amount(group.total, "s")) if known else ()
        yield Failure(gate, group.name, (launches, " before, none now", *spent))


def _metrics(diff: Diff, gate: Gate) -> Iterator[Failure]:
    """Kernels of which the expression holds, or can't be told; added ones have no before."""
    assert gate.expression is not None
    earlier = any(name.startswith(BEFORE) for name in gate.expression.names)
    asked: list[tuple[int, Group | None, Group]] = [
        (at, kernel.before, kernel.after) for at, kernel in enumerate(diff.kernels)
    ]
    if not earlier:
        asked += [(-1, None, group) for group in diff.added]
    rows = [(one.typical if one else None, other.typical) for _, one, other in asked]
    columns = {name: _column(name, rows) for name in gate.expression.names}
    truths = np.broadcast_to(gate.expression(columns), len(rows))
    for (at, _, group), row, truth in zip(asked, rows, truths, strict=True):
        if math.isnan(truth):
            yield Failure(gate, group.name, _untold(gate.expression, row), at)
        elif truth:
            yield Failure(gate, group.name, ("it holds: ", *_values(gate.expression, row)), at)


_Row = tuple[LaunchSummary | None, LaunchSummary]


def _column(name: str, rows: Sequence[_Row]) -> Column:
    return np.array([_value(name, row) for row in rows], dtype=np.float64)


def _value(name: str, row: _Row) -> float:
    launch = row[0] if name.startswith(BEFORE) else row[1]
    return launch.get(name.removeprefix(BEFORE)) if launch else math.nan


def _values(expression: Expression, row: _Row) -> Why:
    told: list[str | Amount] = []
    for name in expression.names:
        unit = catalog().quantities[name.removeprefix(BEFORE)].unit
        told += [f"{', ' if told else ''}{name} ", Amount(_value(name, row), unit)]
    return tuple(told)


def _untold(expression: Expression, row: _Row) -> Why:
    missing = [name for name in expression.names if math.isnan(_value(name, row))]
    if not missing:
        return "can't be told: no number comes of ", *_values(expression, row)
    return (f"can't be told: {'; '.join(_lacking(name, row) for name in missing)}",)


def _lacking(name: str, row: _Row) -> str:
    launch = row[0] if name.startswith(BEFORE) else row[1]
    why = launch.why_missing(name.removeprefix(BEFORE)) if launch else ""
    return f"{name} is missing ({why})" if why else f"{name} is missing"


def _variants(diff: Diff) -> Iterator[TimedChange]:
    """The timed variants that are not already the verdict on a kernel."""
    said = {id(kernel.timed) for kernel in diff.kernels if kernel.by_timing}
    return (timed for timed in diff.timed if id(timed) not in said)


def _moved(kernel: KernelDiff) -> Why:
    """A kernel's time before and after, and what took it."""
    if kernel.timed and kernel.by_timing:
        return _timed(kernel.timed)
    groups = kernel.before, kernel.after
    unit = "cycle" if kernel.in_cycles else "s"
    before, after = (
        group.median * (group.typical.get("sm_clock") if kernel.in_cycles else 1.0)
        for group in groups
    )
    return *_from_to(before, after, unit), " by ncu"


def _timed(timed: TimedChange) -> Why:
    before, after = (side.summary.median for side in (timed.before, timed.after))
    return *_from_to(before, after), f" timed, {timed.how}"


def _from_to(before: float, after: float, unit: str = "s") -> Why:
    return Amount(before, unit), " → ", Amount(after, unit)


_ASK: Mapping[GateKind, Callable[[Diff, Gate], Iterator[Failure]]] = {
    GateKind.regression: _regressions,
    GateKind.inconclusive: _inconclusive,
    GateKind.incomparable: _incomparable,
    GateKind.new_finding: _new_findings,
    GateKind.removed: _removed,
    GateKind.metric: _metrics,
}
