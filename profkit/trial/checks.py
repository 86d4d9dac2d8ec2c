"""Whether a switch changes results: against the unchanged program's own spread between runs."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Literal

from msgspec import Struct

from profkit.trial.run import PRINTED, Perturbation, Result, shown, timeless
from profkit.trial.trial_file import Changes

_EARLY = 5  # results of a series that are compared one by one, before errors have grown
# Chosen: the difference of unchanged runs' results from which on these are no longer compared, of
# which the first are close: what rounds elsewhere in each run may part soon.
_AGREED = 0.1
_OF_SIZE = 10.0  # chosen: their relative difference, beyond that of any two of the same size
_LATE = 12  # results from which on the mean of the last third is compared too
_OWN = 3.0  # chosen: times the difference of two unchanged runs
# The same of one number, as a mean: differences by chance are normal deviates, and one exceeds the
# root mean square of 1, 2 or 3 others so many times in 3%, by Student's distribution.
_OWN_OF_ONE = (20.0, 5.5, 3.8)
MOST_PERTURBED = len(_OWN_OF_ONE)
_PERTURBED = 10.0  # chosen: kernels round in other places, parameters are perturbed in one
# Chosen: relative differences of the first results, and of later ones, that no switch of a kind is
# blamed for. FP32 sums in another order move a loss by 1e-7 to 1e-5.
_ROUNDING: Mapping[Changes, tuple[float, float]] = {
    "nothing": (1e-6, 1e-3),
    "random": (1e-6, 1e-3),
    "rounding": (1e-4, 1e-2),
    "precision": (5e-2, 5e-2),
}
_ROUNDING_OF_HALF = 2e-2  # chosen: five rounding errors of bfloat16 (4e-3), in programs that use it
_HALF = {"bfloat16", "float16", "autocast"}
_ROUNDING_OF_TF32 = 2.5e-3  # the same of TensorFloat-32 (5e-4), but of weights, which are FP32
_TF32 = "tf32"

KINDS: Mapping[Changes, Perturbation] = {
    "nothing": "", "rounding": "rounding", "random": "random", "precision": "precision"
}  # fmt: skip
_MOST = 0.9  # chosen: below 1, by which zeros differ, and text that differs from its first token on
_REPEATABLE = 1e-4  # chosen: printed times never agree so far; others are numbers of results
_TOKENS = "tokens"  # series of generated sequences (`child.torch_program`)
# Warnings begin with a place in a source, and libraries advise what switches set.
_ADVICE = re.compile(r"\S+\.py:\d+:|.*(set_float32_matmul_precision|num_workers|pin_memory)\b")
_PARAMETERS = "parameters"  # series of `child.torch_program`: one number, at the end
_UPDATES = "updates"  # series of `child.torch_program`: by how much steps have moved parameters
# Chosen: relative distances of updates in FP32. Measured: 0.2 where rounding differs (0.4 where a
# rounding error does as much), 0.4 where one layer of four is not updated, 1 where none is, 2 where
# gradients have another sign.
_UPDATED, _UPDATED_AT_MOST = 0.3, 0.75

# Chosen: how far the ends of two whole runs may be apart, of what was printed on the way.
Ends = Literal["equal", "rounded", "drawn"]
_ENDS: Mapping[Ends, float] = {"equal": 1e-3, "rounded": 0.1, "drawn": 0.25}
# The same of those that differ by a rounding error at their start; of one, chosen: less than that.
_OWN_PARTED = (2.0, *_OWN_OF_ONE[1:])

Value = Sequence[float | None] | None
Row = Sequence[Value]
Runs = Sequence[Result]
Measure = Callable[[Row, Row], float]


class Judgment(Struct, frozen=True):
    """The largest relative difference of results, against what is allowed for it, and the series
    that it is of; `is_late` if it is that of the last third's means, not of the first results.
    Infinite where one side has no numbers."""

    difference: float
    allowed: float
    is_late: bool
    series: str = ""

    @property
    def is_same(self) -> bool:
        return self.difference <= self.allowed


def judged(
    unchanged: Runs, perturbed: Runs, runs: Runs, changes: Collection[Changes]
) -> Judgment | None:
    """The results of runs, of which the worst series counts; None where there are none.

    `perturbed` are unchanged runs whose parameters were moved by one rounding error, or rounded to
    bfloat16, or which drew other random numbers for their input: what becomes of that is what
    becomes of kernels that round elsewhere, of lower precision and of other random numbers.
    """
    if not runs:
        return None
    judgments = list(_judgments(unchanged, perturbed, runs, changes))
    updates = _of_updates(unchanged, perturbed, runs, changes)
    judgments += [each for each in updates if not (judgments and each.is_same)]
    return max(judgments, key=lambda each: each.difference / each.allowed, default=None)


def spread(unchanged: Runs) -> float:
    """The largest difference of unchanged runs from the first of them."""
    judgments = _judgments(unchanged, (), unchanged, {"nothing"})
    return max((each.difference for each in judgments), default=0.0)


def faulty(runs: Runs) -> str:
    """Why results of unchanged runs can't be compared: a series is NaN or infinite, or what would
    be allowed is all of it; "" where they can."""
    for run in runs:
        for name, row in run.results.items():
            if any(None in value for value in row if value is not None):
                return f"{name} are NaN or infinite"
    judgments = _judgments(runs, (), runs, {"nothing"})
    own = max((each.difference for each in judgments if not each.is_late), default=0.0)
    if _OWN * own < 1:
        return ""
    words = f"results of unchanged runs differ by {own:.0%}" if own < math.inf else "results vanish"
    return f"{words}: the program reads what it wrote before (try --in-copy), or is not seeded"


def _judgments(
    unchanged: Runs, perturbed: Runs, runs: Runs, changes: Collection[Changes]
) -> Iterator[Judgment]:
    features = unchanged[0].features
    is_random = "random" in changes or "dropout" in features
    results = unchanged[0].results.items()
    series = [(name, row, False) for name, row in results if not name.startswith(_UPDATES)]
    series += [
        (name, row, True)
        for name, row in unchanged[0].printed.items()
        if _TOKENS not in unchanged[0].results or not _is_whole(row)  # it may be tokens
    ]
    for name, row, is_printed in series:
        distance = _apart_as_printed if name.startswith(PRINTED) else _distance
        known = [run.results.get(name, ()) for run in unchanged[1:]]
        early = partial(_early, distance, count=_agreed(distance, row, known))
        measures: list[Measure] = [_of_tokens] if name == _TOKENS else [early, _late]
        for is_late, measure in enumerate(measures):

            def apart(others: Runs, both: bool = False) -> list[float]:
                rows = _rows(others, name, is_printed=is_printed)  # noqa: B023
                return [max(measure(row, b), measure(b, row) if both else 0.0) for b in rows]  # noqa: B023

            own = max(apart(unchanged[1:]), default=0.0)
            measured = apart(runs)
            if not measured or (is_printed and own > _REPEATABLE):
                continue
            limits = [_OWN * own]
            is_end = name.startswith(_PARAMETERS) and "random" in changes
            for each in changes:
                is_coarse = is_late or is_end or (is_printed and each != "nothing")
                limits.append(_ROUNDING["rounding" if is_end else each][is_coarse])
                kind = KINDS[each]
                is_drawn = kind != "rounding" or "dropout" in features or is_late
                if kind:
                    others = [run for run in perturbed if run.perturbed == kind]
                    moved = apart(others, both=kind == "random")  # either may be the smaller one
                    is_one = is_late or is_end or is_printed
                    most = (_OWN if is_drawn else _PERTURBED) * max(moved, default=0.0)
                    limits.append(_of_numbers(moved, _OWN_OF_ONE) if is_one else most)
                    if kind == "random" and any(moved):
                        limits.append(_OWN * _scatter(row))
                if each in {"rounding", "precision"} and features & _HALF:
                    limits.append(_ROUNDING_OF_HALF)
                if each == "rounding" and _TF32 in features and not name.startswith(_PARAMETERS):
                    limits.append(_ROUNDING_OF_TF32)
            # A rounding error may move late results, of next to nothing, by more than themselves.
            is_free = is_random or (is_late and max(measured) < math.inf)
            allowed = max(limits) if is_free else min(max(limits), _MOST)
            yield Judgment(max(measured), allowed, bool(is_late), name)


def _rows(runs: Runs, name: str, *, is_printed: bool) -> list[Row]:
    """A series in runs, () where it is lacking; without those that may lack it: what is printed
    besides other results, or after a run was ended."""
    known = [(run, (run.printed if is_printed else run.results).get(name, ())) for run in runs]
    may_end = name.startswith(PRINTED)
    return [row for run, row in known if row or not (is_printed or (may_end and run.stopped))]


def _of_updates(
    unchanged: Runs, perturbed: Runs, runs: Runs, changes: Collection[Changes]
) -> Iterator[Judgment]:
    """What the first updates of parameters show: losses hardly change within a few steps where
    gradients are wrong. Where these round to less than FP32, or are those of other random numbers,
    the updates' size and sign count alone. Updates that a rounding error moves far say nothing."""
    first = unchanged[0]
    coarse = {"precision", "random"} & {*changes} or {"dropout", _TF32, *_HALF} & first.features
    measure, allowed = (_opposed, _MOST) if coarse else (_distance, _UPDATED_AT_MOST)
    kinds = {"rounding", *map(KINDS.get, changes)}
    # The first of each kind: one of several that moves them far would hide wrong gradients.
    moved_runs = {run.perturbed: run for run in reversed(perturbed) if run.perturbed in kinds}

    def largest(name: str, others: Runs) -> float:
        rows = [other.results.get(name, ()) for other in others]
        pairs = [pair for row in rows for pair in zip(first.results[name], row, strict=False)]
        return max((measure(a, b) for a, b in pairs if a and any(a)), default=0.0)

    for name in first.results:
        if name.startswith(_UPDATES):
            own, moved = largest(name, unchanged[1:]), largest(name, [*moved_runs.values()])
            if not coarse:
                allowed = min(max(_UPDATED, _OWN * own, _PERTURBED * moved), _UPDATED_AT_MOST)
            if max(own, moved) <= 1 / _OWN:
                yield Judgment(largest(name, runs), allowed, False, name)


def _opposed(a: Value, b: Value) -> float:
    """From 0 to 1: how much smaller the smaller of two vectors is, or how far they point in
    opposite directions; 1 for what is no number on one side."""
    if not a or not b or len(a) != len(b) or (None in a) != (None in b):
        return 1.0
    pairs = [(x, y) for x, y in zip(a, b, strict=True) if x is not None and y is not None]
    sizes = [math.sqrt(sum(pair[side] ** 2 for pair in pairs)) for side in (0, 1)]
    if not min(sizes):
        return float(max(sizes) > 0)
    cosine = sum(x * y for x, y in pairs) / (sizes[0] * sizes[1])
    return max(1 - min(sizes) / max(sizes), (1 - cosine) / 2)


def _is_whole(row: Row) -> bool:
    """Whether printed numbers have no decimals."""
    return all(value is not None and value[1:2] == [0.0] for value in row)


def _of_numbers(moved: Sequence[float], times: Sequence[float]) -> float:
    """So many times the root mean square of what perturbations do to a number; 0 of none."""
    return times[len(moved) - 1] * math.hypot(*moved) / math.sqrt(len(moved)) if moved else 0.0


def _scatter(row: Row) -> float:
    """The relative standard deviation of a series: what other random numbers make of one result."""
    known = [value for value in map(_first, row) if not math.isnan(value)]
    middle = sum(map(abs, known)) / len(known) if known else 0.0
    return statistics.stdev(known) / middle if len(known) > 1 and middle else 0.0


def _agreed(apart: Callable[[Value, Value], float], row: Row, others: Sequence[Row]) -> int:
    """How many of the first results are close in all unchanged runs; all, unless two are."""
    pairs = [list(zip(row, other, strict=False)) for other in others]
    parted = [n for several in pairs for n, pair in enumerate(several) if apart(*pair) > _AGREED]
    count = min(parted, default=_EARLY)
    return count if count > 1 else _EARLY


def _early(apart: Callable[[Value, Value], float], a: Row, b: Row, *, count: int = _EARLY) -> float:
    """The largest difference of the first results, of which those from `count` on have only to be
    numbers of the same size."""
    if a and not b:
        return math.inf
    distances = [apart(*pair) for pair in list(zip(a, b, strict=False))[:_EARLY]]
    rest = (each for each in distances[count:] if each > _OF_SIZE)
    return max((*distances[:count], *rest), default=0.0)


def _apart_as_printed(x: Value, y: Value) -> float:
    """As `_distance`, of printed numbers: one in the last place is no difference, and one of less
    than a hundred in the last place is compared with that, as it is known to a per cent at most."""
    numbers = [number for number in (*(x or ()), *(y or ())) if number is not None]
    if len(numbers) < 4:
        return _distance(x and x[:1], y and y[:1])
    before, after, last = numbers[0], numbers[2], max(numbers[1], numbers[3])
    # Half a place more, as decimals are no binary fractions.
    if abs(before - after) <= 1.5 * last:
        return 0.0
    scale = max(abs(before), 100 * last)
    return abs(before - after) / scale if scale else math.inf


def parted(before: Runs, changed: Result, kind: Ends, perturbed: Runs = ()) -> str:
    """A printed series whose last quarter has another mean in a changed whole run than in the first
    run `before`, "" without; others of these print the same as far as they go. It may be a quarter
    of the series' size where random numbers or a lower precision are "drawn" in, next to nothing
    where first results are "equal", and as far as those of `perturbed` unchanged runs lie, a few
    times."""
    first, *others = [{**run.results, **run.printed} for run in before]
    after, has_tokens = {**changed.results, **changed.printed}, _TOKENS in first
    own = [{**run.results, **run.printed} for run in perturbed]
    for name, row in first.items():
        earlier = (_early(_apart_as_printed, row, o[name]) for o in others if name in o)
        pairs = _printed_pairs(row, after.get(name, ()))
        is_printed = name.startswith(PRINTED) and pairs and not (has_tokens and _is_whole(row))
        if not is_printed or max(earlier, default=0.0) > _REPEATABLE:
            continue
        size = max(statistics.mean(abs(x) for x, _ in pairs), abs(pairs[-1][0]))
        places = max((value[1] or 0.0 for value in row if value and len(value) > 1), default=0.0)
        allowed = _ENDS[kind] * size + 1.5 * places
        moved = [_apart_at_end(_printed_pairs(row, series.get(name, ()))) for series in own]
        allowed = max(allowed, _of_numbers(moved, _OWN_PARTED))
        if _apart_at_end(pairs) > allowed:
            return name
    return ""


def lost(before: Result, changed: Result) -> str:
    """A series printed, or of parameters at the end, with a number that is NaN or infinite in a
    changed run alone, "" without."""
    after = {**changed.results, **changed.printed}
    for name, row in {**before.results, **before.printed}.items():
        pairs = zip(map(_first, row), map(_first, after.get(name, ())), strict=False)
        if name.startswith((PRINTED, _PARAMETERS)) and any(
            math.isnan(y) > math.isnan(x) for x, y in pairs
        ):
            return name
    return ""


def _printed_pairs(before: Row, after: Row) -> list[tuple[float, float]]:
    pairs = list(zip(map(_first, before), map(_first, after), strict=False))
    return [pair for pair in pairs if not any(map(math.isnan, pair))]


def _apart_at_end(pairs: Sequence[tuple[float, float]]) -> float:
    """How far the means of the last quarter are apart; 0 of none."""
    last = pairs[len(pairs) * 3 // 4 :]
    return abs(statistics.mean(x - y for x, y in last)) if last else 0.0


def _of_tokens(a: Row, b: Row) -> float:
    """The mean share of sequences after the first token that differs: a rounding error changes
    the choice between two tokens that are nearly equal, and with it all that follow."""
    if a and not b:
        return math.inf
    shares = []
    for x, y in zip(a, b, strict=False):
        if x and y:
            places = (n for n, (p, q) in enumerate(zip(x, y, strict=False)) if p != q)
            shares.append(1 - next(places, len(x)) / len(x))
    return statistics.mean(shares) if shares else math.inf


def _distance(a: Value, b: Value) -> float:
    """The relative Euclidean distance of two samples; what is no number on both sides is equal."""
    if a is None or b is None or len(a) != len(b):
        return 0.0 if a is None and b is None else math.inf
    size = apart = 0.0
    for x, y in zip(a, b, strict=True):
        if x is not None and y is not None:
            size, apart = size + x * x, apart + (x - y) ** 2
        elif x is not None or y is not None:
            return math.inf
    return math.sqrt(apart / size) if size else (math.inf if apart else 0.0)


def _late(a: Row, b: Row) -> float:
    if a == b:
        return 0.0
    count = min(len(a), len(b))
    before, after = ([_first(value) for value in row[count * 2 // 3 : count]] for row in (a, b))
    if count < _LATE or any(map(math.isnan, before)):
        return 0.0
    if any(map(math.isnan, after)):
        return math.inf
    size = sum(map(abs, before)) / len(before)
    return abs(sum(before) - sum(after)) / len(before) / size if size else 0.0


def _first(value: Value) -> float:
    first = value[0] if value else None
    return math.nan if first is None else first


def missing_output(unchanged: Runs, run: Result) -> str:
    """A line that all unchanged whole runs printed, but for numbers and units of time, and this one
    did not."""
    printed = set(map(timeless, shown(run.output)))
    common = [set(map(timeless, shown(whole.output))) for whole in unchanged]
    for line in shown(unchanged[0].output):
        mask = timeless(line)
        is_warning = line[:1].isspace() or "warn" in line.lower() or _ADVICE.match(line)
        if mask not in printed and not is_warning and all(mask in lines for lines in common):
            return line.strip()
    return ""
