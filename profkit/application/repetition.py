"""The period of a sequence that repeats with variations: where each repetition begins.

A repetition begins at an anchor, a symbol or a short run of symbols that recurs at regular
distances; repetitions count as equal when most of their symbols are. Of several anchors, the one
with the shortest period that explains the sequence is chosen.
"""

import numpy as np
import numpy.typing as npt
from msgspec import Struct

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

ALIKE = 0.75
"""Share of symbols that a repetition has in common with the typical one (Dice coefficient); chosen:
a step without evaluation or recompilation differs by a few launches only."""

_RUNS = (1, 2, 4)  # symbols of an anchor; chosen: longer runs rarely survive variations
_WINDOW = 400_000  # symbols that are searched at once; chosen: 1 s
_SHORTEST_WINDOW = 12  # symbols; chosen: 4 repetitions of 3
_CANDIDATES = 16  # anchors that are compared; chosen: periods of loops within loops are fewer
_FEWEST = 3  # repetitions
_EQUAL = 0.95  # `fit` with which two repetitions are enough; chosen
_REGULAR = 0.25  # by which distances of an anchor may differ from their median; chosen
_SPANNED = 0.3  # least share of the window in regular distances; chosen: evaluation takes a part
_ENOUGH = 0.9  # share of symbols in typical repetitions from which a window explains itself; chosen
_LOOSE = 0.5  # the same, where nothing better is known; chosen
_CURRENT = 0.25  # share of the last symbols that are in it; chosen: a program may end otherwise
_SLACK = 0.1  # share of symbols by which a shorter period may explain less; chosen
_ALMOST = 0.8  # share of repetitions; chosen
_MOSTLY = 0.8  # share of repetitions that are alike; chosen: evaluation after 5 steps or more
_BETTER = 0.02  # share of symbols that a better cut explains more; chosen
_NESTED = 0.005  # share of symbols that an outer loop adds at least; chosen
_OUTER = 4  # repetitions of an outer loop that show it, _FEWEST where they are the same
_SAME = 0.995  # `fit` of repetitions that are the same; chosen


class Repetition(Struct, frozen=True, eq=False):
    """Where repetitions begin (`marks`, ascending), and which are like the typical one.

    `typical` has the count of each symbol in it; repetition i is [marks[i], marks[i+1]), and
    `alike` has one element fewer than `marks`. `coverage` is the share of all symbols that are
    typical ones of a repetition, `fit` of those in repetitions that are alike.
    """

    marks: Integers
    alike: Mask
    typical: Integers
    coverage: float
    fit: float
    constant: Mask
    """By symbol, whether it is in almost every repetition."""

    @property
    def period(self) -> int:
        return int(self.typical.sum())

    def rank(self, ranks: npt.NDArray[np.int8]) -> int:
        """The highest rank of what is in almost every repetition; see `repetition`."""
        return int(ranks[self.constant].max(initial=0))


def repetition(symbols: npt.NDArray[np.int32], rank: npt.NDArray[np.int8]) -> Repetition | None:
    """The repetition at the end of a sequence, extended to its beginning; None without any.

    `rank` says by symbol how much speaks for the end of a whole step: 2 for an optimizer, 1 for
    exchange between host and GPU, 0 for other work.
    """
    size = min(len(symbols), _WINDOW)
    best: tuple[float, Repetition, Integers] | None = None
    while size >= _SHORTEST_WINDOW:
        window = symbols[len(symbols) - size :]
        choice = _chosen(window, rank)
        if choice is not None:
            pattern, anchor = choice
            late = window[-max(size // 8, min(size, 4 * pattern.period)) :]
            recent = measured(late, _places(late, anchor), len(rank), pattern.typical)
            current = recent is not None and recent.coverage >= _CURRENT
            if best is None or (pattern.coverage > best[0] and current):
                best = pattern.coverage if current else 0.0, pattern, anchor
            ranked = rank[pattern.constant].any()
            if current and pattern.coverage >= (_LOOSE if ranked else _ENOUGH):
                break
        size //= 2
    if best is None or best[1].coverage < _LOOSE:
        return None
    _, pattern, anchor = best
    return measured(symbols, _places(symbols, anchor), len(rank), pattern.typical)


def _chosen(
    window: npt.NDArray[np.int32], rank: npt.NDArray[np.int8]
) -> tuple[Repetition, Integers] | None:
    count = len(rank)
    options = []
    for anchor in _anchors(window):
        pattern = measured(window, _places(window, anchor), count)
        if pattern is None or pattern.coverage < _LOOSE or not pattern.period:
            continue
        if pattern.alike.sum() >= _FEWEST or pattern.fit >= _EQUAL:
            options.append((pattern, anchor))
    if not options:
        return None
    options.sort(key=lambda option: (option[0].period, -option[0].coverage))
    most = max(pattern.coverage for pattern, _ in options)
    ranks = [pattern.rank(rank) for pattern, _ in options]
    shown = [
        place
        for place, (pattern, _) in enumerate(options)
        if pattern.coverage >= most - _SLACK
        or (
            ranks[place] and pattern.alike.mean() >= _MOSTLY and pattern.fit >= _ENOUGH
        )  # between them, such as evaluation
    ]
    place = shown[0]
    for outer in shown[1:]:
        inside, outside = options[place][0], options[outer][0]
        more = outside.coverage - inside.coverage
        if outside.period < 1.5 * inside.period:  # no loop around the other: the same, cut better
            place = outer if more > _BETTER else place
        elif ranks[outer] > ranks[place] and more > -_SLACK / 4:
            place = outer
        elif ranks[outer] == ranks[place] == 0 and more >= _NESTED:
            enough = len(outside.marks) > (_FEWEST if outside.fit >= _SAME else _OUTER)
            place = outer if enough else place
    return options[place]


def _anchors(window: npt.NDArray[np.int32]) -> list[Integers]:
    """Runs of symbols that recur at regular distances, one for each distance."""
    by_period: dict[int, tuple[float, int, Integers]] = {}
    for length in _RUNS:
        if len(window) < 2 * length:
            break
        codes = _run_codes(window, length)
        order = np.argsort(codes, kind="stable")
        ordered = codes[order]
        steps = np.diff(order)
        same = ordered[1:] == ordered[:-1]
        codes_of, distances = ordered[1:][same], steps[same]
        if not len(distances):
            continue
        by_distance = np.lexsort((distances, codes_of))
        codes_of, distances = codes_of[by_distance], distances[by_distance]
        first = np.flatnonzero(np.append(True, codes_of[1:] != codes_of[:-1]))
        counts = np.diff(np.append(first, len(codes_of)))
        medians = distances[first + counts // 2]
        group = np.repeat(np.arange(len(first)), counts)
        regular = np.abs(distances - medians[group]) <= np.maximum(1, _REGULAR * medians[group])
        spanned = np.bincount(group, weights=np.where(regular, distances, 0)) / len(window)
        enough = (counts + 1 >= _FEWEST) & (spanned >= _SPANNED)
        for place in np.flatnonzero(enough):
            period = int(medians[place])
            bucket = round(20 * np.log(period))  # chosen: periods within 5% are the same
            position = int(order[np.searchsorted(ordered, codes_of[first[place]])])
            quality = float(spanned[place]) - 0.001 * length
            if bucket not in by_period or quality > by_period[bucket][0]:
                run = window[position : position + length].astype(np.int64)
                by_period[bucket] = quality, period, run
    ranked = sorted(by_period.values(), key=lambda entry: -entry[0])[:_CANDIDATES]
    return [run for _, _, run in ranked]


def _run_codes(window: npt.NDArray[np.int32], length: int) -> Integers:
    codes = window.astype(np.uint64)
    for offset in range(1, length):
        last = len(window) - length + 1
        part = window[offset : offset + last].astype(np.uint64)
        codes = codes[:last] * np.uint64(0x9E3779B97F4A7C15) + part  # Knuth's multiplicative hash
    return codes.view(np.int64)


def _places(symbols: npt.NDArray[np.int32], run: Integers) -> Integers:
    """Where a run of symbols occurs."""
    last = len(symbols) - len(run) + 1
    if last <= 0:
        return np.zeros(0, dtype=np.int64)
    hits = np.ones(last, dtype=np.bool_)
    for offset, symbol in enumerate(run):
        hits &= symbols[offset : offset + last] == symbol
    return np.flatnonzero(hits)


def measured(
    symbols: npt.NDArray[np.int32], marks: Integers, count: int, typical: Integers | None = None
) -> Repetition | None:
    """The repetition that begins at the given places of a sequence of `count` symbols; `typical`
    has the counts of these in a typical one, else they are medians."""
    if len(marks) < 2:
        return None
    inner = symbols[marks[0] : marks[-1]].astype(np.int64)
    parts = len(marks) - 1
    part = np.repeat(np.arange(parts), np.diff(marks))
    codes, counts = np.unique(part * count + inner, return_counts=True)
    parts_of, symbols_of = codes // count, codes % count
    if typical is None:
        typical = _medians(symbols_of, counts, parts, count)
    common = np.bincount(parts_of, weights=np.minimum(counts, typical[symbols_of]), minlength=parts)
    alike = 2 * common >= ALIKE * (np.diff(marks) + typical.sum())
    period = int(typical.sum())
    edges = min(int(marks[0]), period) + min(len(symbols) - int(marks[-1]), period)
    coverage = float(common[alike].sum()) / max(1, len(symbols) - edges)
    fit = float(common[alike].sum()) / max(1, int(np.diff(marks)[alike].sum()))
    present = np.bincount(symbols_of[alike[parts_of]], minlength=count)
    constant = (present >= _ALMOST * alike.sum()) & (present > 0)
    return Repetition(marks, alike, typical, min(1.0, coverage), fit, constant)


def _medians(symbols: Integers, counts: Integers, parts: int, count: int) -> Integers:
    """By symbol, the median of its counts over all parts, 0 in parts without it."""
    order = np.lexsort((counts, symbols))
    symbols, counts = symbols[order], counts[order]
    present = np.bincount(symbols, minlength=count)
    first = np.cumsum(present) - present
    place = (parts - 1) // 2 - (parts - present)
    medians = np.zeros(count, dtype=np.int64)
    shown = (place >= 0) & (present > 0)
    medians[shown] = counts[(first + place)[shown]]
    return medians
