"""Claims in prose: numbers with units, and the words around them that say what they are.

The rules know units and roles ("peak", "of", "upper bound"), no sentence. Each takes the numbers
that it understands out of the text; those that are left at the end are reported, not passed over.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from msgspec import Struct

from profkit.audit.claim import NOTHING, SHAPE, Change, Claim, Product, Share, Side
from profkit.audit.phrases import (
    NEAR,
    PHRASES,
    VOCABULARY,
    WORDS,
    Reading,
    figure_of,
    groups_of,
    scale_of,
    words_before,
)  # fmt: skip
from profkit.audit.printed_numbers import NUMBER, Figure
from profkit.core.errors import BadInput

# A long paragraph. Some rules look back over the text from each number in it, so that their time
# grows with the square of its length.
LONGEST = 4_000


def understood(text: str) -> Claim:
    """What a sentence claims, with the numbers that were not understood.

    Raises BadInput for a text longer than any sentence.
    """
    if len(text) > LONGEST:
        raise BadInput(
            f"holds a sentence of {len(text):,} characters",
            f"claims are sentences, of {LONGEST:,} characters at most",
        )
    reading = _read(text, _RULES)
    numbers = re.findall(r"(?<![\w.·])\d[\w.,%]*(?:\s[A-Za-zµ/]+)?", reading.left)
    left = []
    for number in numbers:  # but versions (2.11.0) and hashes (3a82c0d84154)
        word = number.split()[0].rstrip(".,")
        if re.fullmatch(NUMBER, word) or not WORDS["version"].fullmatch(word):
            left.append(number.rstrip(".,"))
    return replace(reading.claim, unread=(*sorted(reading.also), *left))


def _read(text: str, rules: tuple[Callable[[Reading], None], ...]) -> Reading:
    reading = Reading(re.sub(r"\s+", " ", text))
    for rule in rules:
        rule(reading)
    reading.claim = reading.claim.without(*reading.several)
    return reading


def context(text: str) -> Claim:
    """What a title or a comment says of all that is below it: GPU, dtype, shape, path."""
    if len(text) > LONGEST:
        return NOTHING
    return _read(text, (_shape, _dtype, _gpus)).claim.without("n")


def time_unit(text: str) -> str:
    """The unit of time that a comment names without a number, `median us`; "" for none."""
    units = WORDS["unit_of_time"].findall(text[:LONGEST])
    return units[0] if len(set(units)) == 1 else ""


_SEVERAL = 1024  # GPUs that a sentence may speak of; larger numbers are sizes


def _devices(reading: Reading) -> None:
    """`eight H100 SXM GPUs`, `4x L4`, `a dual-L40S server`; 0 for several of unknown number."""
    text, before = reading.text, WORDS["gpu_count"]
    starts = (gpu.start() for gpu in WORDS["gpu"].finditer(text))
    counts = [before.search(text, max(0, start - NEAR), start) for start in starts]
    counts += WORDS["count"].finditer(text)
    for count in filter(None, counts):
        number = int(
            VOCABULARY.counts.get(count.group(count.lastindex or 1).lower(), count.group(2))
        )
        if 2 <= number <= _SEVERAL:
            reading.put("devices", number)
            reading.take(count, 2)
    if WORDS["together"].search(text) and reading.claim.devices is None:
        reading.put("devices", 0)


def _accumulation(reading: Reading) -> None:
    """`with FP32 accumulation`, `accumulating in FP16`: no precision of the inputs."""
    for match in WORDS["accumulation"].finditer(reading.text):
        reading.put("accumulate", f"fp{match.group(1) or match.group(2)}")
        reading.take(match)


_LEAST_EDGE = 16  # of a matrix: smaller numbers are tiles, or dimensions of a grid


def _matrices(reading: Reading) -> None:
    """`4096x4096x4096`, `M=N=K=8192`, `M=4096, N=4096, K=1024`: a product of two matrices."""
    ways = () if WORDS["no_matrices"].search(reading.text) else ("sizes", "cube", "mnk")
    for way in ways:
        for match in WORDS[way].finditer(reading.left):
            edges = tuple(map(_size, match.groups()))
            if min(edges) >= _LEAST_EDGE:
                reading.put("matrices", edges if len(edges) > 1 else edges * 3)
                reading.take(match)


def _size(digits: str) -> int:
    """`4096`, `4k`."""
    return int(digits.removesuffix("k")) * (1024 if digits.endswith("k") else 1)


def _interval(reading: Reading) -> None:
    """`95% CI: [0.323, 0.327]`, in its own unit or that of the time before it."""
    bracketed = list(WORDS["interval"].finditer(reading.text))
    for match in bracketed or WORDS["bare_interval"].finditer(reading.text):
        before = WORDS["timed"].findall(words_before(reading.text, match.start()))
        named = match.group(6) or match.group(5) or match.group(3) or (before and before[-1][1])
        if named:
            reading.take_figure(match, "low", 2, named)
            reading.take_figure(match, "high", 4, named)
            reading.take(match, 1)


def _shape(reading: Reading) -> None:
    """`B=32 H=8 S=16k`, `batch 32`: not `H*D = 2048`, nor lists of values."""
    for way in ("letter", "size"):
        for match in WORDS[way].finditer(reading.text):
            word = match.group(1)
            if value := _size(match.group(2).lower()):
                names = VOCABULARY.shape
                reading.put(names.get(word) or names[word.lower()], value)
            reading.take(match, 2)


def _kind(reading: Reading) -> None:
    """`causal` and `backward` change how much work a shape is; `non-causal` does not."""
    for name in ("causal", "backward"):
        if WORDS[name].search(reading.text):
            reading.put(name, True)


def _overlap(reading: Reading) -> None:
    """`all 10 configurations have non-overlapping CIs`."""
    if WORDS["non_overlapping"].search(reading.text):
        apart = 0
        for match in WORDS["rows"].finditer(reading.text):
            if figure := figure_of(match.group(1), ""):
                apart = int(figure.value)
                reading.take(match, 1)
        reading.put("apart", apart)


def _grid(reading: Reading) -> None:
    """`a 4D grid`, `grid (a, b, c, d)`."""
    if not WORDS["grid"].search(reading.text):
        return
    if listed := WORDS["listed_grid"].search(reading.text):
        reading.put("grid_dimensions", listed.group(1).count(",") + 1)
    for match in WORDS["dimensions"].finditer(reading.text):
        reading.put("grid_dimensions", int(match.group(1)))
        reading.take(match)


def _before_after(reading: Reading) -> None:
    """`0.50 ms → 0.25 ms`: a baseline and what became of it."""
    for match in WORDS["before_after"].finditer(reading.left):
        reading.take_figure(match, "baseline", 1, match.group(2))
        reading.take_figure(match, "time", 3, match.group(4))


def _shares(reading: Reading) -> None:
    """`44% of peak`, `% of peak bandwidth 69.7%`: of which peak the words say."""
    for way in ("share_after", "share_before"):
        for match in WORDS[way].finditer(reading.left):
            whole, share = match.group("of"), match.re.groupindex["share"]
            of_rate = whole.strip() in ("", "the", "its", "our") and WORDS["of_rate"].match(
                reading.text, match.end()
            )
            if WORDS["of_bytes"].search(whole):
                reading.take_figure(match, "byte_share", share, "%")
            elif of_rate or WORDS["peak"].search(whole):
                name = "flop_share" if WORDS["of_flop"].search(whole) else "share"
                reading.take_figure(match, name, share, "%")


def _rates(reading: Reading) -> None:
    """Rates: `X of Y` is reached of peak; a peak has a word for it before it."""
    sparse, dense = WORDS["sparse"].search(reading.text), WORDS["dense"].search(reading.text)
    for kind in ("flop", "byte"):
        rates = list(WORDS[f"{kind}_rate"].finditer(reading.left))
        for before, match, after in zip([None, *rates], rates, [*rates[1:], None], strict=False):
            peak = _is_peak(reading.text, before, match, after)
            if sparse and (peak or not dense):
                continue
            name = f"{kind}_{'peak' if peak else 'rate'}"
            level = _level_of(reading.text, match) if kind == "byte" else "dram"
            if level != "dram":
                name = f"{level}_rate"
            reading.take_figure(match, name, 1, match.group(2))


# `The A40 has 696 GB/s`, `a T4 offers a memory bandwidth of`: a statement of what the product has.


def _is_peak(
    text: str, before: re.Match[str] | None, match: re.Match[str], after: re.Match[str] | None
) -> bool:
    if after and WORDS["joined"].fullmatch(text[match.end() : after.start()]):
        return False
    if before and WORDS["joined"].fullmatch(text[before.end() : match.start()]):
        return True
    if WORDS["has"].search(words_before(text, match.start())) or WORDS["peak_after"].match(
        text, match.end()
    ):
        return True
    if WORDS["reached_after"].match(text, match.end()):
        return False
    marks = (text.rfind(mark, 0, match.start()) for mark in ",;")
    words = text[max(before.end() if before else 0, *marks) : match.start()]
    of_it = WORDS["share_of"].search(words)
    return bool(of_it or WORDS["peak"].search(words)) and not WORDS["reached"].search(words)


_NEAR_AFTER = 80  # characters: "6 TB/s when all of it comes from L2"


def _level_of(text: str, rate: re.Match[str]) -> str:
    """The level of memory that a rate is of: named nearest before it, else after it.

    The PCIe of a product's name is no link.
    """
    around = (words_before(text, rate.start()), text[rate.end() : rate.end() + _NEAR_AFTER])
    before, after = (
        list(
            WORDS["level"].finditer(
                WORDS["gpu"].sub(lambda gpu: re.sub("PCI[Ee]", "", gpu.group()), part)
            )
        )
        for part in around
    )
    nearest = [*before[-1:], *after[:1]]
    return (nearest and nearest[0].lastgroup) or "dram"


def _share_kind(reading: Reading) -> None:
    """A share of `spec`, or alone in parentheses, is of what the sentence gives a peak of."""
    alone = list(WORDS["bare_share"].finditer(reading.left))
    if len(alone) == 1 and not any(name.endswith("share") for name in reading.claim.figures):
        for kind in ("flop", "byte"):
            if {f"{kind}_rate", f"{kind}_peak"} <= reading.claim.figures.keys() - reading.several:
                reading.take_figure(alone[0], f"{kind}_share", alone[0].lastindex or 1, "%")
    figures = reading.claim.figures
    kinds = {name.split("_")[0] for name in figures if name.endswith(("_rate", "_peak"))}
    if "share" in figures and len(kinds) == 1 and kinds <= {"flop", "byte"}:
        reading.claim = reading.claim.without("share")
        reading.put(f"{kinds.pop()}_share", figures["share"])


def _quotient(reading: Reading) -> None:
    """`2 FLOP per 12 bytes`, `1 FLOP for every 8 bytes moved`: an intensity, no amounts."""
    for match in WORDS["quotient"].finditer(reading.left):
        flop, moved = figure_of(match.group(1), "FLOP"), figure_of(match.group(2), "B")
        if flop and moved and not reading.claim["intensity"]:
            text = f"{match.group(1)} FLOP / {match.group(2)} B"
            reading.put("intensity", Figure(flop.value / moved.value, 0.0, text))
            reading.take(match, 1, 2)


def _sides(reading: Reading) -> None:
    """`A100 0.15 ms at B=16 H=16, L4 0.32 ms at B=32 H=8`: GPUs, each with its time."""
    timed, sides = WORDS["timed"], []
    for clause in re.finditer(r"[^,;:]+", reading.text):
        gpu = WORDS["gpu"].search(clause.group())
        time = timed.search(reading.left[clause.start() : clause.end()])
        figure = figure_of(time[1], time[2]) if time else None
        if gpu and figure:
            shape = Reading(clause.group())
            _shape(shape)
            sizes = (*shape.claim.shape, shape.claim.kv_heads, shape.claim.n)
            sides.append(Side(gpu.group(), figure, math.prod(filter(None, sizes))))
    if len({side.gpu for side in sides}) > 1:
        reading.claim = reading.claim.without(*SHAPE).stating(sides=tuple(sides))
        for match in list(timed.finditer(reading.left)):
            if any(match.group(1) in side.time.text.split() for side in sides):
                reading.take(match, 1)
        reading.several -= set(SHAPE)


# What is denied, asked, wished or another case is not claimed of the kernel.


def _bound(reading: Reading) -> None:
    """`compute-bound`, `memory bound`; what is not said of the kernel as it is is left alone."""
    for match in WORDS["bound"].finditer(reading.text):
        if not WORDS["unsaid"].search(words_before(reading.text, match.start())):
            compute = match.group(1).lower() == "compute"
            reading.put("bound", "compute" if compute else "memory")


def _memory(reading: Reading) -> None:
    for match in WORDS["memory"].finditer(reading.text):
        reading.put("memory", match.group())
        reading.take(match)


_DTYPE = re.compile(rf"(?<![a-z0-9])({'|'.join(VOCABULARY.dtypes)})(?![a-z0-9])", re.I)


def _dtype(reading: Reading) -> None:
    named = list(_DTYPE.finditer(reading.left))
    names = [VOCABULARY.dtypes[match.group(1).lower()] for match in named]
    of_one_rate = len(set(names)) == 1 and _of_last_rate(reading.text, named[0])
    for match, name in zip(named, names, strict=True):
        if not of_one_rate:
            reading.put("dtype", name)
        reading.take(match)


def _of_last_rate(text: str, dtype: re.Match[str]) -> bool:
    """Whether a precision is that of the last of several rates only: `125 TFLOP/s on tensor cores
    and 15.7 TFLOP/s in FP32`. Without one, a rate may be of any."""
    rates = list(WORDS["flop_rate"].finditer(text))
    if len(rates) < 2 or dtype.start() < rates[-1].end():
        return False
    between = text[rates[0].end() : rates[-1].start()]
    return bool(WORDS["side_by_side"].search(between)) and not WORDS["used"].search(between)


def _gpus(reading: Reading) -> None:
    """Words like `L4`, `H100 SXM`, `RTX 4090`; whether there is such a GPU is not known here."""
    named = [
        match
        for match in WORDS["gpu"].finditer(reading.text)
        if not _DTYPE.fullmatch(match.group(1))
    ]
    if named:
        reading.put("gpus", tuple(dict.fromkeys(match.group(1) for match in named)))
    for match in named:
        reading.take(match)


def _threads_in_warps(reading: Reading) -> None:
    """`2,048 threads in 64 warps`: the same number twice."""
    if reading.claim["resident_threads"]:
        reading.take_all(WORDS["threads_in_warps"])


def _sm_counts(reading: Reading) -> None:
    """`The A100 has 108 SMs`, `the 132 SMs of an H100 SXM`: of which GPU how many are told."""
    text, gpus = reading.text, list(WORDS["gpu"].finditer(reading.text))
    for gpu, following in zip(gpus, [*gpus[1:], None], strict=False):
        end = following.start() if following else len(text)
        after = WORDS["sms_after"].match(text[gpu.end() : end])
        if after and not WORDS["partly"].search(after.group(1)):
            reading.add("sm_counts", (gpu.group(1), int(after.group(2))))
        if before := WORDS["sms_before"].search(words_before(text, gpu.start())):
            reading.add("sm_counts", (gpu.group(1), int(before.group(1))))
    if reading.claim.sm_counts:
        reading.take_all(WORDS["sms"])


_KINDS = {"FLOP/s": "flop_rate", "B/s": "byte_rate", "tokens/s": "token_rate", "s": "timed",
          "B": "prefixed_bytes"}  # fmt: skip
_LONGEST_GAP = 40  # characters between two factors: "64 FP32 lanes x"


class Quantity(Struct, frozen=True):
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
    if pair is None or len(claims) != 1 or {"speedup", "baseline"} <= reading.claim.figures.keys():
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
        literal = re.compile(re.escape(text[quantity.start : quantity.end]))
        if match_here := literal.match(reading.left, quantity.start):
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
        figure = figure_of(f"{VOCABULARY.counts[(match.group(1) or 'two').lower()]}.0", "x")
        if figure and not (WORDS["open"].search(before) or WORDS["not_times"].search(before)):
            yield "times", figure, True, *match.span()  # words for a number are approximate


def _meaning(words: str) -> str:
    return next((kind for kind in ("worth", "less") if WORDS[kind].search(words)), "more")


def parts(reading: Reading) -> None:
    """`9.9 ms of the 16.0 ms step, 62% of it`; `62% of the 16.0 ms step, 9.9 ms`."""
    _bare_whole(reading)
    text, pair = reading.text, quantities(reading.text)
    percents = list(WORDS["share"].finditer(text))
    if any(name.endswith("share") for name in reading.claim.figures):
        return
    if len(percents) != 1 or len(pair) != 2 or pair[0].kind != pair[1].kind:
        return
    claimed = figure_of(percents[0].group(1), "%")
    part, whole = _part_and_whole(text, pair, percents[0].end()) or (None, None)
    if claimed and part and whole:
        hedged = bool(WORDS["hedge"].search(words_before(text, percents[0].start())))
        reading.claim = reading.claim.stating(
            parts=(Share(claimed, part.figure, whole.figure, hedged),)
        )
        if part.kind == "s":
            reading.take_all(WORDS["timed"])
        reading.take(percents[0], 1)


def _bare_whole(reading: Reading) -> None:
    """`540 TFLOPS in BF16, 86.5% of 624`: a whole in the unit of the rate before it."""
    rates = [rate for rate in quantities(reading.text) if rate.kind in ("FLOP/s", "B/s")]
    if len(rates) != 1 or len(re.findall(r"\d ?%", reading.text)) != 1:
        return
    rate, match = rates[0].figure, WORDS["bare_whole"].match(reading.text, rates[0].end)
    if match:
        claimed = figure_of(match.group(1), "%")
        whole = figure_of(match.group(2), rate.text.split()[-1])
        if claimed and whole:
            reading.claim = reading.claim.stating(
                parts=(Share(claimed, rate, whole, hedged=False),)
            )
            reading.take(match, 1, 2)


def _part_and_whole(
    text: str, pair: list[Quantity], percent_end: int
) -> tuple[Quantity, Quantity] | None:
    first, second = pair
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
    all_together, single = (
        figure_of(rate.group(1), "tokens/s", scale_of(rate.group(2))) for rate in rates
    )
    if streams and single and all_together:
        text = f"{number} x {each[0].group(1)} tokens/s = {rates[0].group(1)} tokens/s"
        reading.add("products", Product((streams, single), all_together, text))
        for match in (*rates, *counts):
            reading.take(match, groups_of(match)[0])


def products(reading: Reading) -> None:
    """`80 SMs x 64 lanes x 2 x 1.53 GHz = 15.7 TFLOP/s`, `2 x 4096^3 = 137 GFLOP`.

    A factor without a number leaves the product unchecked: the rest of it is another product.
    """
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
            before = words_before(reading.text, number.start())
            factors = [] if WORDS["operator"].search(before) else [number]


def _product(reading: Reading, factors: list[re.Match[str]], result: re.Match[str]) -> None:
    """Keep the product that numbers with their units are written as."""
    numbers, figures = [*factors, result], []
    for number in numbers:
        prefix, base = number[2] or "", number[3] or ""
        figure = figure_of(number[1], base, scale_of(prefix + base))
        if figure and (power := _power(figure, number)):
            figures.append(power)
    if len(figures) == len(numbers):
        text = reading.text[factors[0].start() : result.end()]
        reading.add("products", Product(tuple(figures[:-1]), figures[-1], text))
        for number in numbers:
            reading.take(number, 1, 4, 5)


_SUPERSCRIPTS = {"²": 2, "³": 3}


def _power(figure: Figure, number: re.Match[str]) -> Figure | None:
    """A factor with its exponent: `2048^2`, `2048²`; None beyond what a figure holds."""
    exponent = int(number[4] or _SUPERSCRIPTS.get(number[5] or "", 1))
    if exponent == 1:
        return figure
    try:
        value, high = figure.value**exponent, figure.high**exponent
        return Figure(value, high - value, figure.text)
    except (ValueError, OverflowError):
        return None


_RULES: tuple[Callable[[Reading], None], ...] = (
    _accumulation, _dtype, _memory, products, _devices, _sm_counts, _gpus, _interval,
    *PHRASES["ends"], _matrices, _shape, _kind, _overlap, _grid, *PHRASES["launch"],
    _threads_in_warps, *PHRASES["waves"], *PHRASES["per_token"], streams, *PHRASES["tokens"],
    *PHRASES["ratios"], _before_after, changes, *PHRASES["ridge"], _shares,
    *PHRASES["utilization"], _rates, _share_kind, parts, *PHRASES["clock"], *PHRASES["intensity"],
    _quotient, *PHRASES["amounts"], _sides, *PHRASES["time"], _bound,
)  # fmt: skip
