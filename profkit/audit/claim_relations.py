"""What sentences say of two quantities: how many times, how many per cent; products; tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from profkit.audit.claim_reading import (
    BINARY,
    BYTE_RATE,
    FLOP_RATE,
    SECONDS,
    SI,
    TIME,
    VALUE,
    Reading,
    figure_of,
    take_figure,
    words_before,
)

if TYPE_CHECKING:
    from profkit.audit.printed_numbers import Figure

_TOKEN_RATE = r"(k?)\s?(?:tok(?:en)?s?/s(?:ec(?:ond)?)?\b|tokens? (?:per|a) second|tok/s)"
_BYTES = r"([kMGT]i?)(?:B\b|bytes?\b)(?!\s*/)"
_KINDS = (("FLOP/s", FLOP_RATE), ("B/s", BYTE_RATE), ("tokens/s", _TOKEN_RATE), ("s", TIME),
          ("B", _BYTES))  # fmt: skip
_WORTH = r"(?:faster|quicker|slower|speed-?up|improvement|gain)"
_LESS = (
    r"(?:less|lower|shorter|fewer|smaller|reduction|decrease|drop|savings?|saved|reduced|down|cut)"
)
_MORE = r"(?:more|higher|greater|longer|larger|increase|growth|up)"
_MOVED = r"(?:fell|falls|dropped|shrank|rose|grew|increased|improved|decreased)"
_PERCENT = re.compile(
    rf"{VALUE} ?%(?: \w+)?? ?(?:{_WORTH}|{_LESS}|{_MORE})\b|"
    rf"\b(?:{_LESS}|{_MOVED}|{_MORE})(?: by)? {VALUE} ?%",
    re.I,
)
_TIMES = re.compile(
    rf"{VALUE}\s?[x×] ?(?:as (?:much|many|fast|high)\b|{_WORTH}|{_LESS}|{_MORE})|"
    rf"\bfactor of {VALUE}|[(,;] ?(?:i\.e\. |or |so )?{VALUE}\s?[x×](?= ?[.,;)]|$)|"
    rf"\bis {VALUE}\s?[x×] (?:an?|the|that of)\b",
    re.I,
)
_TIMES_WORDS = re.compile(
    r"\b(?:twice|(two|three|four|five|ten) times) "
    r"(?:as (?:fast|quick)(?:ly)?\b(?! (?:memory|HBM|DRAM|clock|link))|the speed\b)",
    re.I,
)
_WORD_VALUES = {"two": 2, "three": 3, "four": 4, "five": 5, "ten": 10}
_HEDGE = re.compile(r"(?:about|around|roughly|nearly|almost|approximately|some|~|≈)\s*$", re.I)
_OPEN = re.compile(
    r"(?:up to|over|more than|at least|at most|under|below|less than|beyond)\s*$", re.I
)
_COMPARES = re.compile(
    r"\b(?:to|vs\.?|versus|against|instead of|compared (?:to|with)|over|than|rather than|while|"
    r"whereas|down from|up from)\b|->|→|=>",
    re.I,
)
# What stands between a change and two quantities that it is not of: "costs fell 30% while ...".
_ANOTHER = re.compile(r"\b(?:while|but|whereas|and|although)\b|[.;] ")
# `3.6 ms before, 2.0 ms after`, `1.5 ms and 1.2 ms, so B is 25% faster`, `..., 1.31x as much`.
_CONCLUDES = re.compile(
    r" after\b|, (?:or )?[\d.]+ ?[x×] as (?:much|many|fast)\b|"
    r",? (?:so|thus|hence|making|i\.e\.,?) [^.;,]{0,40}?[\d.]+ ?[%x×]"
)
_NUMBER_UNIT = re.compile(rf"{VALUE}(?: ?([kMGTP]i?)?(Hz|B|FLOP|OPS)(?:/s|S|s/s|s)?\b)?")
_TIMES_SIGN = re.compile(r"(?: [A-Za-z][\w-]*){0,3}? ?[x×*·] ?")
_EQUALS = re.compile(r"(?: [A-Za-z][\w-]*){0,3}? ?(?:=|≈|is) ?")
_LONGEST_GAP = 40  # characters between two factors: "64 FP32 lanes x"


@dataclass(frozen=True)
class Quantity:
    """A quantity in a sentence, of a kind that others are compared with: seconds, B/s, ..."""

    kind: str
    figure: Figure
    start: int
    end: int


@dataclass(frozen=True)
class Change:
    """A claimed change between two quantities, in the order of the sentence.

    `meaning` is "times", or of a percentage "worth" (faster, a gain), "less" or "more". `hedged`
    says that the number is called approximate.
    """

    meaning: str
    claimed: Figure
    first: Figure
    second: Figure
    kind: str
    hedged: bool


@dataclass(frozen=True)
class Share:
    """A percentage that a quantity is claimed to be of another of its kind."""

    claimed: Figure
    part: Figure
    whole: Figure
    hedged: bool


@dataclass(frozen=True)
class Product:
    """Factors in SI units and what their product is claimed to be."""

    factors: tuple[Figure, ...]
    claimed: Figure
    text: str


def quantities(text: str) -> list[Quantity]:
    """Every quantity of a comparable kind, in the order of the text."""
    found: dict[int, Quantity] = {}
    for kind, pattern in _KINDS:
        for match in re.finditer(rf"{VALUE}\s*(?:{pattern})", text):
            unit = text[match.end(1) : match.end()].strip()
            prefix = match.group(2)
            scale = SECONDS[prefix] if kind == "s" else _scale(prefix)
            figure = figure_of(match.group(1), scale, unit)
            if figure and match.start() not in found:
                found[match.start()] = Quantity(kind, figure, match.start(), match.end())
    return [found[start] for start in sorted(found)]


def _scale(prefix: str) -> float:
    return BINARY.get(prefix.lower()) or SI[prefix.lower()]


def changes(reading: Reading) -> None:
    """`12.0 µs vs 27.6 µs: 2.3x faster`, `from 48 µs to 36 µs, 25% less`, `fell by 25%`."""
    pair = _compared(reading.text)
    claims = list(_claimed_changes(reading.text))
    if pair is None or len(claims) != 1 or {"speedup", "baseline"} <= reading.found.keys():
        return
    meaning, figure, hedged, start, end = claims[0]
    first, second = pair
    apart = (
        reading.text[end : first.start] if end <= first.start else reading.text[second.end : start]
    )
    if _ANOTHER.search(apart):
        return
    reading.found["changes"] = (
        Change(meaning, figure, first.figure, second.figure, first.kind, hedged),
    )
    for match in list(_PERCENT.finditer(reading.left)) + list(_TIMES.finditer(reading.left)):
        group = next(at for at in range(1, match.re.groups + 1) if match.group(at))
        reading.take(match, group)
    if first.kind != "s":
        return
    for quantity in pair:
        shown = re.compile(re.escape(reading.text[quantity.start : quantity.end]))
        if match_here := shown.match(reading.left, quantity.start):
            reading.take(match_here)


def _compared(text: str) -> tuple[Quantity, Quantity] | None:
    """The two quantities that a sentence compares; None where it has others beside them."""
    found = quantities(text)
    pairs = []
    for kind, _ in _KINDS:
        own = [quantity for quantity in found if quantity.kind == kind]
        if len(own) < 2:
            continue
        if len(own) > 2:
            return None
        between = text[own[0].end : own[1].start]
        compared = _COMPARES.search(between) or _CONCLUDES.match(text, own[1].end)
        if compared and not re.search(r"[.;] [A-Z]", between):
            pairs.append((own[0], own[1]))
    return pairs[0] if len(pairs) == 1 else None


def _claimed_changes(text: str) -> Iterator[tuple[str, Figure, bool, int, int]]:
    """Meaning, number, whether it is called approximate, and where it stands."""
    for pattern in (_PERCENT, _TIMES):
        for match in pattern.finditer(text):
            group = next(at for at in range(1, pattern.groups + 1) if match.group(at))
            before = words_before(text, match.start(group))
            if _OPEN.search(before):
                continue
            percent = pattern is _PERCENT
            scale, unit = (0.01, "%") if percent else (1.0, "x")
            figure = figure_of(match.group(group), scale, unit)
            if figure:
                meaning = _meaning(match.group()) if percent else "times"
                yield meaning, figure, bool(_HEDGE.search(before)), match.start(), match.end()
    yield from _word_changes(text)


def _word_changes(text: str) -> Iterator[tuple[str, Figure, bool, int, int]]:
    """`twice as fast`: words for a number are approximate."""
    if re.search(r"\b(?:would|could|should|might)\b", text, re.I):
        return  # "memory twice as fast would ..." is of the memory
    for match in _TIMES_WORDS.finditer(text):
        before = words_before(text, match.start())
        if _OPEN.search(before) or re.search(r"\b(?:not|half|less|more|over)\W+$", before, re.I):
            continue
        value = _WORD_VALUES.get((match.group(1) or "").lower(), 2)
        figure = figure_of(f"{value}.0", 1.0, "x")
        if figure:
            yield "times", figure, True, match.start(), match.end()


def _meaning(words: str) -> str:
    if re.search(rf"\b{_WORTH}\b|improved", words, re.I):
        return "worth"
    less = rf"\b{_LESS}\b|fell|falls|dropped|shrank|decreased"
    return "less" if re.search(less, words, re.I) else "more"


def parts(reading: Reading) -> None:
    """`9.9 ms of the 16.0 ms step, 62% of it`; `62% of the 16.0 ms step, 9.9 ms`."""
    _bare_whole(reading)
    found = quantities(reading.text)
    percents = list(re.finditer(rf"{VALUE} ?%", reading.text))
    if any(name.endswith("share") for name in reading.found):
        return
    if len(percents) != 1 or len(found) != 2 or found[0].kind != found[1].kind:
        return
    claimed = figure_of(percents[0].group(1), 0.01, "%")
    part_whole = _part_and_whole(reading.text, found, percents[0].end())
    if claimed is None or part_whole is None:
        return
    part, whole = part_whole
    hedged = bool(_HEDGE.search(words_before(reading.text, percents[0].start())))
    reading.found["parts"] = (Share(claimed, part.figure, whole.figure, hedged),)
    if part.kind == "s":
        for match in list(re.finditer(rf"{VALUE}\s*{TIME}", reading.left)):
            reading.take(match, 1)
    reading.take(percents[0], 1)


def _bare_whole(reading: Reading) -> None:
    """`540 TFLOPS in BF16, 86.5% of 624`: a whole in the unit of the rate before it."""
    pattern = re.compile(
        rf"(?: \w+){{0,5}}(?:,|:| =| \()? ?(?:i\.e\.,? |or |about )?{VALUE} ?% of (?:the )?{VALUE}"
        r"(?=[,;)]|\.?$|\. )"
    )
    rates = [one for one in quantities(reading.text) if one.kind in ("FLOP/s", "B/s")]
    if len(rates) != 1 or len(re.findall(r"\d ?%", reading.text)) != 1:
        return
    match = pattern.match(reading.text, rates[0].end)
    if match is None:
        return
    rate = rates[0].figure
    printed = figure_of(rate.text.split()[0], 1.0, "")
    claimed = figure_of(match.group(1), 0.01, "%")
    whole = printed and figure_of(match.group(2), rate.value / printed.value, rate.text.split()[-1])
    if claimed and whole:
        reading.found["parts"] = (Share(claimed, rate, whole, hedged=False),)
        reading.take(match, 1, 2)


def _part_and_whole(
    text: str, found: list[Quantity], percent_end: int
) -> tuple[Quantity, Quantity] | None:
    of_the = re.compile(
        r"\s*(?:out )?of (?:the|our|its|an?|all|a total of)?\s*(?:full |total )?$", re.I
    )
    for part, whole in pairwise(found):
        if of_the.fullmatch(text[part.end : whole.start]):
            return part, whole
    first, second = found
    named = re.match(r" ?% of (?:the|our|it|that)\b|%\)", text[percent_end - 1 :])
    which = re.fullmatch(r",? of which [^.;,\d]{0,40}", text[first.end : second.start])
    if named and which and re.fullmatch(r" ?[(,][^.;]{0,16}", text[second.end : percent_end]):
        return second, first
    before = text[: first.start]
    if of_the.search(before) and re.search(r"(?:^|[.;] )Of the\s*$|% of the\s*$", before, re.I):
        return second, first
    if of_the.fullmatch(text[percent_end : second.start]):
        return first, second
    return None


def tokens(reading: Reading) -> None:
    """`9,000 tokens/s`, `20 GFLOP per token`, `14 GB of weights per token`, `4,096 tokens`."""
    per = r"(?:\s+(?!per\b)\w+){0,3}?\s*(?:per|/|for each|each)\s*(?:output |generated )?token\b"
    for pattern, name in (
        (rf"{VALUE}\s*([kMGTP]?)FLOPs?{per}", "flop_per_token"),
        (rf"{VALUE}\s*([kMGT]i?)B\b{per}", "bytes_per_token"),
    ):
        for match in re.finditer(pattern, reading.left, re.I):
            unit = f"{match.group(2)}{'FLOP' if name[0] == 'f' else 'B'}"
            take_figure(reading, match, name, 1, _scale(match.group(2)), unit)
    reads = (
        r"\b(?:each|every|a|one) (?:output |generated |new )?token (?:must |has to )?"
        r"(?:reads?|streams?|loads?|moves?) (?:all |the |of |about |its )*"
        rf"{VALUE}\s*([kMGT]i?)B\b"
    )
    for match in re.finditer(reads, reading.left, re.I):
        take_figure(reading, match, "bytes_per_token", 1, _scale(match.group(2)),
                    f"{match.group(2)}B")  # fmt: skip
    _streams(reading)
    for match in re.finditer(rf"{VALUE}\s*{_TOKEN_RATE}", reading.left):
        limited = re.search(
            r"(?:can(?:not|'t| not)|at most|no more than|limit\w*|bound\w*|ceiling|maximum)"
            r"[^.;\d]{0,24}$",
            words_before(reading.left, match.start()), re.I,
        )  # fmt: skip
        name = "token_limit" if limited else "token_rate"
        take_figure(reading, match, name, 1, _scale(match.group(2)), "tokens/s")
    if _PHASES.search(reading.text):
        return
    joined = "[ -]?" if re.search(r"\bprefill", reading.text, re.I) else r"\s*"
    for match in re.finditer(rf"{VALUE}{joined}tokens?\b(?!/|\s+(?:per|a) s)", reading.left):
        take_figure(reading, match, "tokens", 1, 1.0, "tokens")


# Words of two phases of a generation: its tokens, time and rate need not be of the same.
_PHASES = re.compile(
    r"\b(?:TTFT|first token|time to first|then|after\w*|(?:per|each|every|a) (?:\w+ )?token)\b|"
    r"\b(?:prefill|prompt|context)\w*\b.*\b(?:decod|generat)|"
    r"\b(?:decod|generat)\w*\b.*\b(?:prefill|prompt|context)",
    re.I,
)
_EACH = (
    r"(?:each\b|(?:per|a|for each|for every) "
    r"(?:stream|sequence|user|request|client|GPU|card|device)\b)"
)


def _streams(reading: Reading) -> None:
    """`1,850 tokens/s over 32 streams, 57.8 tokens/s each`: as many times the rate of one."""
    rates = list(re.finditer(rf"{VALUE}\s*{_TOKEN_RATE}", reading.left))
    counts = list(re.finditer(
        rf"{VALUE} (?:concurrent |parallel )?(?:streams|sequences|users|requests|clients)\b|"
        rf"\bbatch(?: size)?(?: of| =|=)? {VALUE}(?![\w.])", reading.left, re.I,
    ))  # fmt: skip
    each = [rate for rate in rates if re.match(rf"\s*{_EACH}", reading.left[rate.end() :], re.I)]
    if len(rates) != 2 or len(counts) != 1 or each != rates[1:]:
        return
    if re.search(r"\b(?:GPU|card|device)s?\b", reading.text) or _OPEN.search(
        words_before(reading.text, rates[0].start())
    ):
        return
    number = counts[0].group(1) or counts[0].group(2)
    figures = [
        figure_of(number, 1.0, "streams"),
        *(figure_of(rate.group(1), _scale(rate.group(2)), "tokens/s") for rate in reversed(rates)),
    ]
    known = [figure for figure in figures if figure]
    if len(known) < len(figures):
        return
    text = f"{number} x {each[0].group(1)} tokens/s = {rates[0].group(1)} tokens/s"
    reading.found["products"] = (
        *reading.found.get("products", ()), Product(tuple(known[:-1]), known[-1], text),
    )  # fmt: skip
    for rate in rates:
        reading.take(rate, 1)
    reading.take(counts[0], 1, 2)


def products(reading: Reading) -> None:
    """`80 SMs x 64 lanes x 2 x 1.53 GHz = 15.7 TFLOP/s`."""
    found = []
    factors: list[re.Match[str]] = []
    for number in _NUMBER_UNIT.finditer(reading.text):
        gap = (
            reading.text[factors[-1].end() : number.start()][: _LONGEST_GAP + 1] if factors else ""
        )
        if len(factors) > 1 and _EQUALS.fullmatch(gap):
            found += _product(reading, factors, number)
            factors = []
        elif factors and _TIMES_SIGN.fullmatch(gap):
            factors.append(number)
        else:
            factors = [number]
    if found:
        reading.found["products"] = tuple(found)


def _product(
    reading: Reading, factors: list[re.Match[str]], result: re.Match[str]
) -> list[Product]:
    """The product that numbers with their units are written as; [] where one is no quantity."""
    numbers = [*factors, result]
    figures = [
        figure_of(number.group(1), _scale(number.group(2) or ""), number.group(3) or "")
        for number in numbers
    ]
    known = [figure for figure in figures if figure]
    if len(known) < len(figures):
        return []
    for number in numbers:
        reading.take(number, 1)
    return [Product(tuple(known[:-1]), known[-1], reading.text[factors[0].start() : result.end()])]
