"""Claims in prose: numbers with units, and the words around them that say what they are.

The rules know units and roles ("peak", "of", "upper bound"), no sentence. Each takes the numbers
that it understands out of the text; those that are left at the end are reported, not passed over.
"""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from msgspec import Struct

from profkit.audit.claim import NOTHING, SHAPE, Change, Claim, Side
from profkit.audit.phrases import (
    NEAR,
    PHRASES,
    VOCABULARY,
    WORDS,
    Reading,
    figure_of,
    groups_of,
    words_before,
)  # fmt: skip
from profkit.audit.printed_numbers import NUMBER, Figure
from profkit.core.errors import BadInput
from profkit.core.grouping import grouped

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
    reading.claim = reading.claim.with_kind_of_share


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


_KINDS = {"FLOP/s": "flop_rate", "B/s": "byte_rate", "tokens/s": "token_rate", "s": "timed",
          "B": "prefixed_bytes"}  # fmt: skip


class Quantity(Struct, frozen=True):
    """A quantity in a sentence, of a kind that others are compared with: seconds, B/s, ..."""

    kind: str
    figure: Figure
    match: re.Match[str]


def quantities(text: str) -> list[Quantity]:
    """Every quantity of a comparable kind, in the order of the text."""
    by_start: dict[int, Quantity] = {}
    for kind, words in _KINDS.items():
        for match in WORDS[words].finditer(text):
            if figure := figure_of(match.group(1), match.group(2)):
                by_start.setdefault(match.start(), Quantity(kind, figure, match))
    return [by_start[start] for start in sorted(by_start)]


def changes(reading: Reading) -> None:
    """`12.0 µs vs 27.6 µs: 2.3x faster`, `from 48 µs to 36 µs, 25% less`, `fell by 25%`."""
    text, pair = reading.text, _compared(reading.text)
    claims = list(_claimed_changes(text))
    if pair is None or len(claims) != 1 or {"speedup", "baseline"} <= reading.claim.figures.keys():
        return
    meaning, figure, hedged, start, end = claims[0]
    first, second = pair
    before, after = first.match.start(), second.match.end()
    if WORDS["another"].search(text[end:before] if end <= before else text[after:start]):
        return
    change = Change(meaning, figure, first.figure, second.figure, first.kind, hedged)
    reading.put("changes", (change,))
    for match in (*WORDS["percent"].finditer(reading.left), *WORDS["times"].finditer(reading.left)):
        reading.take(match, groups_of(match)[0])
    for quantity in pair if first.kind == "s" else ():
        reading.take(quantity.match)


def _compared(text: str) -> tuple[Quantity, Quantity] | None:
    """The two quantities that a sentence compares; None where it has others beside them."""
    by_kind = grouped((quantity.kind, quantity) for quantity in quantities(text))
    pairs = []
    for first, *others in by_kind.values():
        if len(others) > 1:
            return None
        for second in others:
            between = text[first.match.end() : second.match.start()]
            after = WORDS["concludes"].match(text, second.match.end())
            compared = WORDS["compares"].search(between) or after
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


_RULES: tuple[Callable[[Reading], None], ...] = (
    _accumulation, _dtype, _memory, _devices, _gpus, _interval, *PHRASES["ends"], _matrices, _shape,
    _kind, _overlap, _grid, *PHRASES["launch"], *PHRASES["per_token"], *PHRASES["tokens"],
    *PHRASES["ratios"], _before_after, changes, *PHRASES["ridge"], _shares,
    *PHRASES["utilization"], _rates, _share_kind, *PHRASES["clock"], *PHRASES["intensity"],
    _quotient, *PHRASES["amounts"], _sides, *PHRASES["time"], _bound,
)  # fmt: skip
