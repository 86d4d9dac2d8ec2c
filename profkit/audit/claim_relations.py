"""What sentences say of two quantities: how many times, how many per cent; products; tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from profkit.audit.claim import Change, Product, Share
from profkit.audit.claim_reading import (
    BYTE_RATE,
    COUNTS,
    FLOP_RATE,
    TIME,
    VALUE,
    Phrases,
    Reading,
    figure_of,
    groups_of,
    scale_of,
    words_before,
)
from profkit.audit.printed_numbers import Figure

_TOKEN_RATE = r"(k?\s?(?:tok(?:en)?s?/s(?:ec(?:ond)?)?\b|tokens? (?:per|a) second|tok/s))"
_BYTES = r"([kMGT]i?(?:B\b|bytes?\b))(?!\s*/)"
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
_HEDGE = re.compile(r"(?:about|around|roughly|nearly|almost|approximately|some|~|≈)\s*$", re.I)
_OPEN = re.compile(
    r"(?:up to|over|more than|at least|at most|under|below|less than|beyond)\s*$", re.I
)
_COMPARES = re.compile(
    r"\b(?:to|vs\.?|versus|against|instead of|compared (?:to|with)|over|than|rather than|while|"
    r"whereas|down from|up from)\b|->|→|=>",
    re.I,
)
_WISHED = re.compile(r"\b(?:would|could|should|might)\b", re.I)
_NOT_TIMES = re.compile(r"\b(?:not|half|less|more|over)\W+$", re.I)
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
_OF_THE = re.compile(
    r"\s*(?:out )?of (?:the|our|its|an?|all|a total of)?\s*(?:full |total )?$", re.I
)
_BARE_WHOLE = re.compile(
    rf"(?: \w+){{0,5}}(?:,|:| =| \()? ?(?:i\.e\.,? |or |about )?{VALUE} ?% of (?:the )?{VALUE}"
    r"(?=[,;)]|\.?$|\. )"
)
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
    for kind, pattern in _KINDS:
        for match in re.finditer(rf"{VALUE}\s*{pattern}", text):
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
    if _ANOTHER.search(text[end : first.start] if end <= first.start else text[second.end : start]):
        return
    change = Change(meaning, figure, first.figure, second.figure, first.kind, hedged)
    reading.add("changes", change)
    for match in (*_PERCENT.finditer(reading.left), *_TIMES.finditer(reading.left)):
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
            compared = _COMPARES.search(between) or _CONCLUDES.match(text, second.end)
            if compared and not re.search(r"[.;] [A-Z]", between):
                pairs.append((first, second))
    return pairs[0] if len(pairs) == 1 else None


def _claimed_changes(text: str) -> Iterator[tuple[str, Figure, bool, int, int]]:
    """Meaning, number, whether it is called approximate, and where it stands."""
    for pattern, unit in ((_PERCENT, "%"), (_TIMES, "x")):
        for match in pattern.finditer(text):
            group = groups_of(match)[0]
            before = words_before(text, match.start(group))
            figure = figure_of(match.group(group), unit)
            if figure and not _OPEN.search(before):
                meaning = _meaning(match.group()) if unit == "%" else "times"
                yield meaning, figure, bool(_HEDGE.search(before)), *match.span()
    if _WISHED.search(text):
        return  # "memory twice as fast would ..." is of the memory
    for match in _TIMES_WORDS.finditer(text):
        before = words_before(text, match.start())
        figure = figure_of(f"{COUNTS[(match.group(1) or 'two').lower()]}.0", "x")
        if figure and not (_OPEN.search(before) or _NOT_TIMES.search(before)):
            yield "times", figure, True, *match.span()  # words for a number are approximate


def _meaning(words: str) -> str:
    if re.search(rf"\b{_WORTH}\b|improved", words, re.I):
        return "worth"
    less = rf"\b{_LESS}\b|fell|falls|dropped|shrank|decreased"
    return "less" if re.search(less, words, re.I) else "more"


def parts(reading: Reading) -> None:
    """`9.9 ms of the 16.0 ms step, 62% of it`; `62% of the 16.0 ms step, 9.9 ms`."""
    _bare_whole(reading)
    text, found = reading.text, quantities(reading.text)
    percents = list(re.finditer(rf"{VALUE} ?%", text))
    if any(name.endswith("share") for name in reading.found):
        return
    if len(percents) != 1 or len(found) != 2 or found[0].kind != found[1].kind:
        return
    claimed = figure_of(percents[0].group(1), "%")
    part, whole = _part_and_whole(text, found, percents[0].end()) or (None, None)
    if claimed and part and whole:
        hedged = bool(_HEDGE.search(words_before(text, percents[0].start())))
        reading.found["parts"] = (Share(claimed, part.figure, whole.figure, hedged),)
        if part.kind == "s":
            reading.take_all(rf"{VALUE}\s*{TIME}", 1)
        reading.take(percents[0], 1)


def _bare_whole(reading: Reading) -> None:
    """`540 TFLOPS in BF16, 86.5% of 624`: a whole in the unit of the rate before it."""
    rates = [one for one in quantities(reading.text) if one.kind in ("FLOP/s", "B/s")]
    if len(rates) != 1 or len(re.findall(r"\d ?%", reading.text)) != 1:
        return
    rate, match = rates[0].figure, _BARE_WHOLE.match(reading.text, rates[0].end)
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
    if _OF_THE.fullmatch(text[first.end : second.start]):
        return first, second
    named = re.match(r" ?% of (?:the|our|it|that)\b|%\)", text[percent_end - 1 :])
    which = re.fullmatch(r",? of which [^.;,\d]{0,40}", text[first.end : second.start])
    if named and which and re.fullmatch(r" ?[(,][^.;]{0,16}", text[second.end : percent_end]):
        return second, first
    before = text[: first.start]
    if _OF_THE.search(before) and re.search(r"(?:^|[.;] )Of the\s*$|% of the\s*$", before, re.I):
        return second, first
    return (first, second) if _OF_THE.fullmatch(text[percent_end : second.start]) else None


# Words of two phases of a generation: its tokens, time and rate need not be of the same.
_PHASES = (
    r"(?i)\b(?:TTFT|first token|time to first|then|after\w*|(?:per|each|every|a) (?:\w+ )?token)\b"
    r"|"
    r"\b(?:prefill|prompt|context)\w*\b.*\b(?:decod|generat)|"
    r"\b(?:decod|generat)\w*\b.*\b(?:prefill|prompt|context)"
)
_PER_TOKEN = r"(?:\s+(?!per\b)\w+){0,3}?\s*(?:per|/|for each|each)\s*(?:output |generated )?token\b"
_LIMITED = (
    r"(?i)(?:can(?:not|'t| not)|at most|no more than|limit\w*|bound\w*|ceiling|maximum)"
    r"[^.;\d]{0,24}"
)
_EACH = (
    r"(?:each\b|(?:per|a|for each|for every) "
    r"(?:stream|sequence|user|request|client|GPU|card|device)\b)"
)
_STREAMS = (
    rf"(?i){VALUE} (?:concurrent |parallel )?(?:streams|sequences|users|requests|clients)\b|"
    rf"\bbatch(?: size)?(?: of| =|=)? {VALUE}(?![\w.])"
)


def _streams(reading: Reading) -> None:
    """`1,850 tokens/s over 32 streams, 57.8 tokens/s each`: as many times the rate of one."""
    rates = list(re.finditer(rf"{VALUE}\s*{_TOKEN_RATE}", reading.left))
    counts = list(re.finditer(_STREAMS, reading.left))
    each = [rate for rate in rates if re.match(rf"(?i)\s*{_EACH}", reading.left[rate.end() :])]
    if len(rates) != 2 or len(counts) != 1 or each != rates[1:]:
        return
    before = words_before(reading.text, rates[0].start())
    if re.search(r"\b(?:GPU|card|device)s?\b", reading.text) or _OPEN.search(before):
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


# `20 GFLOP per token`, `14 GB of weights per token`, `9,000 tokens/s`, `4,096 tokens`; a hyphen is
# that of a prompt: `a 2048-token prompt is prefilled in`.
TOKENS = (
    Phrases("flop_per_token", "", (rf"(?i){VALUE}\s*([kMGTP]?FLOP)s?{_PER_TOKEN}",)),
    Phrases("bytes_per_token", "", (
        rf"(?i){VALUE}\s*([kMGT]i?B)\b{_PER_TOKEN}",
        r"(?i)\b(?:each|every|a|one) (?:output |generated |new )?token (?:must |has to )?"
        r"(?:reads?|streams?|loads?|moves?) (?:all |the |of |about |its )*"
        rf"{VALUE}\s*([kMGT]i?B)\b",
    )),
    _streams,
    Phrases("token_limit", "tokens/s", (rf"{VALUE}\s*{_TOKEN_RATE}",), after=_LIMITED),
    Phrases("token_rate", "tokens/s", (rf"{VALUE}\s*{_TOKEN_RATE}",)),
    Phrases("tokens", "tokens", (rf"{VALUE}\s*tokens?\b(?!/|\s+(?:per|a) s)",), unless=_PHASES),
    Phrases("tokens", "tokens", (rf"{VALUE}-tokens?\b(?!/|\s+(?:per|a) s)",),
            unless=rf"{_PHASES}|^(?!.*\bprefill)"),
)  # fmt: skip


def products(reading: Reading) -> None:
    """`80 SMs x 64 lanes x 2 x 1.53 GHz = 15.7 TFLOP/s`."""
    factors: list[re.Match[str]] = []
    for number in _NUMBER_UNIT.finditer(reading.text):
        start = factors[-1].end() if factors else 0
        gap = reading.text[start : number.start()][: _LONGEST_GAP + 1]
        if len(factors) > 1 and _EQUALS.fullmatch(gap):
            _product(reading, factors, number)
            factors = []
        elif factors and _TIMES_SIGN.fullmatch(gap):
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
