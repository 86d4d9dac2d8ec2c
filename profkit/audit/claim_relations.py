"""What sentences say of two quantities: how many times, how many per cent; products; tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from profkit.audit.claim import Change, Product, Share
from profkit.audit.claim_reading import (
    COUNTS,
    Reading,
    figure_of,
    groups_of,
    scale_of,
    words_before,
)
from profkit.audit.phrases import WORDS
from profkit.audit.printed_numbers import Figure

_KINDS = {"FLOP/s": "flop_rate", "B/s": "byte_rate", "tokens/s": "token_rate", "s": "timed",
          "B": "prefixed_bytes"}  # fmt: skip
_LONGEST_GAP = 40  # characters between two factors: "64 FP32 lanes x"


@dataclass(frozen=True)
class Quantity:
    """A quantity in a sentence, of a kind that others are compared with: seconds, B/s, ..."""

    kind: str
    figure: Figure
    start: int
    end: int


def quantities(text: str) -> list[Quantity]:
    """Every quantity of a comparable kind, in the order of the text."""
    by_start: dict[int, Quantity] = {}
    for kind, words in _KINDS.items():
        for match in WORDS[words].finditer(text):
            if figure := figure_of(match.group(1), match.group(2)):
                quantity = Quantity(kind, figure, match.start(), match.end())
                by_start.setdefault(match.start(), quantity)
    return [by_start[start] for start in sorted(by_start)]


def changes(reading: Reading) -> None:
    """`12.0 µs vs 27.6 µs: 2.3x faster`, `from 48 µs to 36 µs, 25% less`, `fell by 25%`."""
    text, pair = reading.text, _compared(reading.text)
    claims = list(_claimed_changes(text))
    if pair is None or len(claims) != 1 or {"speedup", "baseline"} <= reading.found.keys():
        return
    meaning, figure, hedged, start, end = claims[0]
    first, second = pair
    if WORDS["another"].search(
        text[end : first.start] if end <= first.start else text[second.end : start]
    ):
        return
    change = Change(meaning, figure, first.figure, second.figure, first.kind, hedged)
    reading.add("changes", change)
    for match in (*WORDS["percent"].finditer(reading.left), *WORDS["times"].finditer(reading.left)):
        reading.take(match, groups_of(match)[0])
    for quantity in pair if first.kind == "s" else ():
        written = re.compile(re.escape(text[quantity.start : quantity.end]))
        if match_here := written.match(reading.left, quantity.start):
            reading.take(match_here)


def _compared(text: str) -> tuple[Quantity, Quantity] | None:
    """The two quantities that a sentence compares; None where it has others beside them."""
    by_kind: dict[str, list[Quantity]] = {}
    for quantity in quantities(text):
        by_kind.setdefault(quantity.kind, []).append(quantity)
    pairs = []
    for first, *others in by_kind.values():
        if len(others) > 1:
            return None
        for second in others:
            between = text[first.end : second.start]
            compared = WORDS["compares"].search(between) or WORDS["concludes"].match(
                text, second.end
            )
            if compared and not re.search(r"[.;] [A-Z]", between):
                pairs.append((first, second))
    return pairs[0] if len(pairs) == 1 else None


def _claimed_changes(text: str) -> Iterator[tuple[str, Figure, bool, int, int]]:
    """Meaning, number, whether it is called approximate, and where it stands."""
    for pattern, unit in (("percent", "%"), ("times", "x")):
        for match in WORDS[pattern].finditer(text):
            group = groups_of(match)[0]
            before = words_before(text, match.start(group))
            figure = figure_of(match.group(group), unit)
            if figure and not WORDS["open"].search(before):
                meaning = _meaning(match.group()) if unit == "%" else "times"
                yield meaning, figure, bool(WORDS["hedge"].search(before)), *match.span()
    if WORDS["wished"].search(text):
        return  # "memory twice as fast would ..." is of the memory
    for match in WORDS["times_in_words"].finditer(text):
        before = words_before(text, match.start())
        figure = figure_of(f"{COUNTS[(match.group(1) or 'two').lower()]}.0", "x")
        if figure and not (WORDS["open"].search(before) or WORDS["not_times"].search(before)):
            yield "times", figure, True, *match.span()  # words for a number are approximate


def _meaning(words: str) -> str:
    return next((kind for kind in ("worth", "less") if WORDS[kind].search(words)), "more")


def parts(reading: Reading) -> None:
    """`9.9 ms of the 16.0 ms step, 62% of it`; `62% of the 16.0 ms step, 9.9 ms`."""
    _bare_whole(reading)
    text, found = reading.text, quantities(reading.text)
    percents = list(WORDS["share"].finditer(text))
    if any(name.endswith("share") for name in reading.found):
        return
    if len(percents) != 1 or len(found) != 2 or found[0].kind != found[1].kind:
        return
    claimed = figure_of(percents[0].group(1), "%")
    part, whole = _part_and_whole(text, found, percents[0].end()) or (None, None)
    if claimed and part and whole:
        hedged = bool(WORDS["hedge"].search(words_before(text, percents[0].start())))
        reading.found["parts"] = (Share(claimed, part.figure, whole.figure, hedged),)
        if part.kind == "s":
            reading.take_all(WORDS["timed"])
        reading.take(percents[0], 1)


def _bare_whole(reading: Reading) -> None:
    """`540 TFLOPS in BF16, 86.5% of 624`: a whole in the unit of the rate before it."""
    rates = [one for one in quantities(reading.text) if one.kind in ("FLOP/s", "B/s")]
    if len(rates) != 1 or len(re.findall(r"\d ?%", reading.text)) != 1:
        return
    rate, match = rates[0].figure, WORDS["bare_whole"].match(reading.text, rates[0].end)
    if match:
        claimed = figure_of(match.group(1), "%")
        whole = figure_of(match.group(2), rate.text.split()[-1])
        if claimed and whole:
            reading.found["parts"] = (Share(claimed, rate, whole, hedged=False),)
            reading.take(match, 1, 2)


def _part_and_whole(
    text: str, found: list[Quantity], percent_end: int
) -> tuple[Quantity, Quantity] | None:
    first, second = found
    if WORDS["of_the"].fullmatch(text[first.end : second.start]):
        return first, second
    named = re.match(r" ?% of (?:the|our|it|that)\b|%\)", text[percent_end - 1 :])
    which = re.fullmatch(r",? of which [^.;,\d]{0,40}", text[first.end : second.start])
    if named and which and re.fullmatch(r" ?[(,][^.;]{0,16}", text[second.end : percent_end]):
        return second, first
    before = text[: first.start]
    if WORDS["of_the"].search(before) and WORDS["of_this"].search(before):
        return second, first
    return (first, second) if WORDS["of_the"].fullmatch(text[percent_end : second.start]) else None


def streams(reading: Reading) -> None:
    """`1,850 tokens/s over 32 streams, 57.8 tokens/s each`: as many times the rate of one."""
    rates = list(WORDS["token_rate"].finditer(reading.left))
    counts = list(WORDS["streams"].finditer(reading.left))
    each = [rate for rate in rates if WORDS["each"].match(reading.left, rate.end())]
    if len(rates) != 2 or len(counts) != 1 or each != rates[1:]:
        return
    before = words_before(reading.text, rates[0].start())
    if re.search(r"\b(?:GPU|card|device)s?\b", reading.text) or WORDS["open"].search(before):
        return
    number = counts[0].group(groups_of(counts[0])[0])
    streams = figure_of(number, "streams")
    all_together, one = (
        figure_of(rate.group(1), "tokens/s", scale_of(rate.group(2))) for rate in rates
    )
    if streams and one and all_together:
        text = f"{number} x {each[0].group(1)} tokens/s = {rates[0].group(1)} tokens/s"
        reading.add("products", Product((streams, one), all_together, text))
        for match in (*rates, *counts):
            reading.take(match, groups_of(match)[0])


def products(reading: Reading) -> None:
    """`80 SMs x 64 lanes x 2 x 1.53 GHz = 15.7 TFLOP/s`."""
    factors: list[re.Match[str]] = []
    for number in WORDS["factor"].finditer(reading.text):
        start = factors[-1].end() if factors else 0
        gap = reading.text[start : number.start()][: _LONGEST_GAP + 1]
        if len(factors) > 1 and WORDS["equals"].fullmatch(gap):
            _product(reading, factors, number)
            factors = []
        elif factors and WORDS["times_sign"].fullmatch(gap):
            factors.append(number)
        else:
            factors = [number]


def _product(reading: Reading, factors: list[re.Match[str]], result: re.Match[str]) -> None:
    """Keep the product that numbers with their units are written as."""
    numbers, figures = [*factors, result], []
    for number in numbers:
        prefix, base = number[2] or "", number[3] or ""
        if figure := figure_of(number[1], base, scale_of(prefix + base)):
            figures.append(figure)
    if len(figures) == len(numbers):
        text = reading.text[factors[0].start() : result.end()]
        reading.add("products", Product(tuple(figures[:-1]), figures[-1], text))
        for number in numbers:
            reading.take(number, 1)
