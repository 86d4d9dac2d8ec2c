"""Gates of a comparison: what `--fail-on` asks for, and what of a comparison fails it."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

import numpy as np
from msgspec import Struct, field

from profkit.comparison import text as words
from profkit.comparison.comparison import Diff
from profkit.comparison.finding_changes import Status
from profkit.comparison.repeats import Change, noise
from profkit.comparison.timed_change import TimedChange
from profkit.core.errors import UsageError
from profkit.core.expression import FUNCTIONS, Expression, NotAllowed, parse
from profkit.core.suggestion import did_you_mean
from profkit.core.typed_file import Count, Model
from profkit.report.catalog import catalog
from profkit.report.summary import Group
from profkit.ui.text import literal, measured_factor, number, plural

BEFORE = "before_"
"""The prefix of a quantity of the earlier report."""
FAILED, UNDECIDED = 1, 3
"""Exit codes: a gate failed; nothing can be concluded."""


class GateKind(StrEnum):
    """What a gate checks."""

    regression = "regression"
    inconclusive = "inconclusive"
    incomparable = "incomparable"
    new_finding = "new-finding"
    removed = "removed"
    metric = "metric"


_UNDECIDED = {GateKind.inconclusive, GateKind.incomparable}
_ALLOWED = (
    "allowed are quantities, numbers, + - * /, one comparison at a time, and, or, not, and "
    f"{', '.join(FUNCTIONS)}; see docs/guides/writing-rules.md"
)
_WRITTEN = "regression[:5%], inconclusive, incomparable, new-finding, removed, metric:EXPRESSION"


class Gate(Struct, frozen=True):
    """A gate: `margin` is the share that a regression may be slower by, `expression` what must not
    hold of a kernel's quantities."""

    kind: GateKind
    margin: float = 0.0
    expression: Expression | None = None

    def __str__(self) -> str:
        if self.expression:
            return f"{self.kind}:{self.expression.text}"
        return f"{self.kind}:{self.margin * 100:g}%" if self.margin else str(self.kind)


class Failure(Model, frozen=True):
    """A gate that failed, as --fail-on has it: on a kernel (`at` its place in `kernels`) or timed
    variant, or on the reports as wholes. `undecided`: nothing can be concluded, exit code 3."""

    gate: str
    kind: GateKind
    kernel: str | None
    index: Count | None = field(name="at")
    undecided: bool
    why: str

    def __str__(self) -> str:
        """A sentence: `regression:5%: transpose: 330.2 µs → 412.1 µs ...`."""
        return literal(": ".join(filter(None, (self.gate, self.kernel, self.why))))


def failure(
    gate: Gate, kernel: str, why: str, index: int | None = None, *, unchecked: bool = False
) -> Failure:
    """That a gate failed; `unchecked`: there was nothing to evaluate it on."""
    undecided = unchecked or gate.kind in _UNDECIDED
    return Failure(str(gate), gate.kind, kernel or None, index, undecided, why)


def parse_gates(texts: Iterable[str]) -> tuple[Gate, ...]:
    """The gates of `--fail-on` values, each a list with commas, in order and each once.

    Raises UsageError for what is not a valid gate, and for a value without one: an unset variable
    would leave no gate to fail.
    """
    gates: dict[Gate, None] = {}
    for text in texts:
        parts = [part.strip() for part in _parts(text) if part.strip()]
        if not parts:
            remedy = f"leave it out, or use {_WRITTEN}"
            raise _refused(f"{text[:80]!r} names no gate", remedy)
        gates |= dict.fromkeys(map(_gate, parts))
    return tuple(gates)


def failures(diff: Diff, gates: Iterable[Gate]) -> tuple[Failure, ...]:
    """What fails the gates, in their order, kernels in that of the comparison.

    Of reports that can't be compared each gate fails as unchecked, unless what only one side has
    fails it, or it is `incomparable`.
    """
    return tuple(each for gate in gates for each in _failures(diff, gate))


def _failures(diff: Diff, gate: Gate) -> Sequence[Failure]:
    failed = tuple(_ASK[gate.kind](diff, gate))
    if failed or not diff.refused:
        return failed
    why = f"not evaluated, nothing was compared: {diff.obstacle_words}"
    return (failure(gate, "", why, unchecked=True),)


def exit_code(diffs: Iterable[Diff], failed: Iterable[Failure]) -> int:
    """1 where a gate failed; 3 where reports or kernels can't be compared, nothing was, or what a
    gate forbids is inconclusive; else 0."""
    every = list(failed)
    if any(not each.undecided for each in every):
        return FAILED
    return UNDECIDED if every or any(map(_is_open, diffs)) else 0


def _is_open(diff: Diff) -> bool:
    """Whether something can't be compared; of what is forced, whether all."""
    if diff.refused or len(diff.incomparable) == len(diff.kernels) > 0:
        return True
    return bool(diff.incomparable) and not diff.forced


def _refused(problem: str, remedy: str) -> UsageError:
    return UsageError(f"--fail-on {problem}", remedy)


def _parts(text: str) -> Iterator[str]:
    """A list at its commas, those between parentheses apart."""
    depth = start = 0
    for position, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth <= 0:
            yield text[start:position]
            start = position + 1
    yield text[start:]


def _gate(text: str) -> Gate:
    name, colon, value = text.partition(":")
    try:
        kind = GateKind(name.strip())
    except ValueError:
        meant = did_you_mean(name, [kind.value for kind in GateKind])
        remedy = f"{meant} use {_WRITTEN}".lstrip()
        raise _refused(f"{text[:80]!r} is not a valid gate", remedy) from None
    if kind is GateKind.metric:
        return Gate(kind, expression=_condition(value.strip()))
    if kind is GateKind.regression and colon:
        return Gate(kind, _margin(value.strip()))
    if colon:
        raise _refused(f"{text[:80]!r}: {kind} takes no value", f"write {kind}")
    return Gate(kind)


def _margin(text: str) -> float:
    """A share written as a percentage."""
    try:
        share = float(text.removesuffix("%")) / 100 if text.endswith("%") else math.nan
    except ValueError:
        share = math.nan
    if not text:
        raise _refused("regression: without a percentage", "write regression:5%, or regression")
    if not 0 <= share < math.inf:
        raise _refused(f"regression: {text[:80]!r} is not a percentage", "write regression:5%")
    return share


def _condition(text: str) -> Expression:
    example = "metric:registers_per_thread > 128"
    if not text:
        raise _refused("metric: without an expression", f"write what must not hold: {example}")
    try:
        expression = parse(text)
    except NotAllowed as error:
        raise _refused(
            f"metric: {error.part!r} is not allowed in an expression", _ALLOWED
        ) from None
    except ValueError as error:
        raise _refused(f"metric: {error}", f"write a comparison: {example}") from None
    known = catalog().quantities
    for name in expression.names:
        bare = name.removeprefix(BEFORE)
        if bare not in known:
            prefix = name.removesuffix(bare)
            remedy = did_you_mean(
                bare, known, "`profkit metrics` lists them", spelled=prefix.__add__
            )
            raise _refused(f"metric: {name!r} is not a valid quantity", remedy)
    if not expression.is_condition:
        remedy = f"compare it with a value: {example}"
        raise _refused(f"metric: {text[:80]!r} is not a condition", remedy)
    return expression


class _Verdict(Struct, frozen=True):
    """The verdict on a kernel, or a variant: what it took before and after, what it rests on."""

    name: str
    change: Change
    speedup: float
    times: str
    why: str
    index: int | None = None


def _verdicts(diff: Diff) -> Iterator[_Verdict]:
    for index, kernel in enumerate(diff.kernels):
        if kernel.timed and kernel.by_timing:
            yield _timed_verdict(kernel.timed, kernel.after.name, index)
        elif profiled := kernel.profiled:
            why = f"speedup between {' and '.join(map(measured_factor, profiled.range))}"
            spent = words.times(kernel)
            yield _Verdict(kernel.after.name, profiled.change, profiled.speedup, spent, why, index)
    shown = {id(kernel.timed) for kernel in diff.kernels if kernel.by_timing}
    for timed in diff.timed:
        if id(timed) not in shown:
            yield _timed_verdict(timed, timed.after.label)


def _timed_verdict(timed: TimedChange, name: str, index: int | None = None) -> _Verdict:
    medians = words.seconds(side.summary.median for side in (timed.before, timed.after))
    spent = f"{medians} timed, {timed.design_words}"
    return _Verdict(name, timed.change, timed.speedup, spent, timed.why, index)


def _regressions(diff: Diff, gate: Gate) -> Iterator[Failure]:
    slower = [
        verdict
        for verdict in _verdicts(diff)
        if verdict.change is Change.regressed and 1 / verdict.speedup - 1 > gate.margin
    ]
    allowed = f", more than {gate.margin * 100:g}%" if gate.margin else ""
    for verdict in slower or _total(diff, gate):
        why = f"{verdict.times}: {number(1 / verdict.speedup - 1, '1')} slower{allowed}"
        yield failure(gate, verdict.name, why, verdict.index)


def _total(diff: Diff, gate: Gate) -> Iterator[_Verdict]:
    """All launches together, where ncu's durations are the verdict on every kernel and complete."""
    total = diff.total
    before, after = total.before + total.removed, total.after + total.added
    by_ncu = all(
        kernel.change is not Change.incomparable and not kernel.in_cycles and not kernel.by_timing
        for kernel in diff.kernels
    )
    whole = not any(group.failed for side in diff.sides for group in side.report.groups)
    if not (by_ncu and whole and total.before > 0 and total.after > 0):
        return
    launches = (len(side.report.measured) for side in diff.sides)
    means = (time / count for time, count in zip((before, after), launches, strict=True))
    if after / before - 1 > max(gate.margin, noise(*means)):
        spent = f"total of all launches {words.seconds((before, after))} (ncu)"
        for seconds, word in ((total.removed, "removed"), (total.added, "added")):
            if seconds:
                spent += f", including {number(seconds, 's')} in {word} kernels"
        yield _Verdict("", Change.regressed, before / after, spent, "")


def _inconclusive(diff: Diff, gate: Gate) -> Iterator[Failure]:
    for verdict in _verdicts(diff):
        if verdict.change is Change.inconclusive:
            yield failure(gate, verdict.name, f"{verdict.times}: {verdict.why}", verdict.index)


def _incomparable(diff: Diff, gate: Gate) -> Iterator[Failure]:
    if diff.refused:
        yield failure(gate, "", diff.obstacle_words)
    for index, kernel in enumerate(diff.kernels):
        if kernel.change is Change.incomparable:
            yield failure(gate, kernel.after.name, kernel.obstacle_words, index)


def _new_findings(diff: Diff, gate: Gate) -> Iterator[Failure]:
    for index, kernel in enumerate(diff.kernels):
        for change in kernel.findings:
            if change.has_come and change.is_reported:
                state = "is new" if change.status is Status.new else "worsened to a finding"
                why = f"{change.category} {state}, estimated speedup {change.speedup_after:.2f}x"
                shown = f"; {words.seen(change.seen)}" if change.seen else ""
                yield failure(gate, kernel.after.name, why + shown, index)


def _removed(diff: Diff, gate: Gate) -> Iterator[Failure]:
    for group in diff.removed:
        spent = "" if math.isnan(group.total) else f", ncu duration {number(group.total, 's')}"
        launches = plural(group.count, "launch")
        yield failure(gate, group.name, f"{launches} before, none after{spent}")


def _metrics(diff: Diff, gate: Gate) -> Iterator[Failure]:
    """Kernels for which the expression is true or can't be evaluated; added ones have no before."""
    assert gate.expression is not None
    names = gate.expression.names
    asked: list[tuple[int | None, Group, Group]] = [
        (index, kernel.before, kernel.after) for index, kernel in enumerate(diff.kernels)
    ]
    if not any(name.startswith(BEFORE) for name in names):
        asked += [(None, group, group) for group in diff.added]
    for index, before, after in asked:
        launches = {name: (before if name.startswith(BEFORE) else after).typical for name in names}
        bare = {name: name.removeprefix(BEFORE) for name in names}
        values = {name: launch.get(bare[name]) for name, launch in launches.items()}
        columns = {name: np.array([value]) for name, value in values.items()}
        (truth,) = np.ravel(gate.expression(columns))
        amounts = ", ".join(
            f"{name} {words.quantity(value, catalog().quantities[bare[name]].unit, bare[name])}"
            for name, value in values.items()
        )
        missing = [
            f"{name} is missing" + (f" ({why})" if why else "")
            for name, launch in launches.items()
            if math.isnan(values[name])
            for why in (launch.why_missing(bare[name]),)
        ]
        if math.isnan(truth):
            why = "; ".join(missing) or f"undefined for {amounts}"
            yield failure(gate, after.name, f"not evaluated: {why}", index)
        elif truth:
            yield failure(gate, after.name, f"condition met: {amounts}", index)


_ASK: Mapping[GateKind, Callable[[Diff, Gate], Iterator[Failure]]] = {
    GateKind.regression: _regressions,
    GateKind.inconclusive: _inconclusive,
    GateKind.incomparable: _incomparable,
    GateKind.new_finding: _new_findings,
    GateKind.removed: _removed,
    GateKind.metric: _metrics,
}
