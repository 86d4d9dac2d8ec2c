"""Whether a switch changes results: against the unchanged program's own spread between runs."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct

from profkit.trial.run import Result
from profkit.trial.switch import Changes

_EARLY = 5  # results of a series that are compared one by one, before errors have grown
_LATE = 12  # results from which on the mean of the last third is compared too
_DIGITS = re.compile(r"\d[\d.,:e+-]*")
_OWN = 3.0  # chosen: times the difference of two unchanged runs
_PERTURBED = 10.0  # chosen: kernels round in other places, parameters are perturbed in one
# Chosen: relative differences that no switch of a kind is blamed for. FP32 sums in another order
# move a loss by 1e-7 to 1e-5.
_ROUNDING: Mapping[Changes, tuple[float, float]] = {
    "nothing": (1e-6, 1e-3),
    "random": (1e-6, 1e-3),
    "rounding": (1e-4, 1e-2),
    "precision": (5e-2, 5e-2),
}
_HALF = {"bfloat16", "float16", "autocast"}


class Difference(Struct, frozen=True):
    """Relative differences of results: the largest of the first ones, and that of the means of the
    last third of a series. Infinite where one side has no numbers."""

    early: float = 0.0
    late: float = 0.0

    def within(self, allowed: Difference) -> bool:
        """Whether neither is above what is allowed."""
        return self.early <= allowed.early and self.late <= allowed.late

    @property
    def largest(self) -> float:
        return max(self.early, self.late)


# Chosen: five rounding errors of bfloat16 (4e-3), in programs that use it or float16.
_ROUNDING_OF_HALF = Difference(2e-2, 2e-2)


def difference(a: Result, b: Result) -> Difference | None:
    """How far the results of b are from those of a; None where a has none."""
    pairs = [(row, b.results.get(name, ())) for name, row in a.results.items() if row]
    if not pairs:
        return None
    return Difference(
        max(_early(before, after) for before, after in pairs),
        max(_late(before, after) for before, after in pairs),
    )


Row = Sequence[Sequence[float] | None]


def _early(a: Row, b: Row) -> float:
    if not b:
        return math.inf
    return max(_distance(*pair) for pair in list(zip(a, b, strict=False))[:_EARLY])


def _distance(a: Sequence[float | None] | None, b: Sequence[float | None] | None) -> float:
    """The relative Euclidean distance of two samples."""
    if a is None or b is None or len(a) != len(b):
        return 0.0 if a is None and b is None else math.inf
    pairs = [(x, y) for x, y in zip(a, b, strict=True) if x is not None or y is not None]
    if any(x is None or y is None for x, y in pairs):
        return math.inf
    size = math.sqrt(sum(float(x or 0) ** 2 for x, _ in pairs))
    apart = math.sqrt(sum((float(x or 0) - float(y or 0)) ** 2 for x, y in pairs))
    return apart / size if size else (math.inf if apart else 0.0)


def _late(a: Row, b: Row) -> float:
    count = min(len(a), len(b))
    if count < _LATE:
        return 0.0
    before, after = ([_first(value) for value in row[count * 2 // 3 : count]] for row in (a, b))
    if any(map(math.isnan, before)):
        return 0.0
    if any(map(math.isnan, after)):
        return math.inf
    middles = [sum(row) / len(row) for row in (before, after)]
    size = sum(map(abs, before)) / len(before)
    return abs(middles[0] - middles[1]) / size if size else 0.0


def _first(value: Sequence[float | None] | None) -> float:
    first = value[0] if value else None
    return math.nan if first is None else first


def spread(unchanged: Sequence[Result]) -> Difference:
    """The largest difference of unchanged runs from the first of them."""
    return _largest(difference(unchanged[0], run) for run in unchanged[1:])


def _largest(differences: Iterable[Difference | None]) -> Difference:
    known = [each for each in differences if each is not None]
    return Difference(
        max((each.early for each in known), default=0.0),
        max((each.late for each in known), default=0.0),
    )


def allowed(
    unchanged: Sequence[Result], perturbed: Sequence[Result], changes: Collection[Changes]
) -> Difference:
    """The largest difference that counts as the same results, for what switches declare to change.

    `perturbed` are unchanged runs whose parameters were moved by one rounding error, or which drew
    other random numbers for their input: what becomes of that is what becomes of kernels that round
    elsewhere, and of other random numbers.
    """
    features = unchanged[0].features
    own = spread(unchanged)
    limits = [Difference(_OWN * own.early, _OWN * own.late)]
    limits += [Difference(*_ROUNDING[each]) for each in changes]
    for kind in {
        "random" if each == "random" else "rounding" for each in changes if each != "nothing"
    }:
        runs = [run for run in perturbed if run.perturbed == kind]
        moved = _largest(difference(unchanged[0], run) for run in runs)
        is_random = kind == "random" or "dropout" in features
        limits.append(
            Difference((_OWN if is_random else _PERTURBED) * moved.early, _OWN * moved.late)
        )
    if _HALF & features and set(changes) - {"nothing", "random"}:
        limits.append(_ROUNDING_OF_HALF)
    return _largest(limits)


def missing_output(unchanged: Sequence[Result], run: Result) -> str:
    """A line that all unchanged whole runs printed, but for its numbers, and this one did not."""
    printed = {_masked(line) for line in run.output.splitlines()}
    common = [set(map(_masked, whole.output.splitlines())) for whole in unchanged]
    for line in unchanged[0].output.splitlines() if unchanged else ():
        masked = _masked(line)
        if masked not in printed and all(masked in lines for lines in common):
            return line.strip()
    return ""


def _masked(line: str) -> str:
    return _DIGITS.sub("#", line.strip())
