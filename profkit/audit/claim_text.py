"""Claims in prose: numbers with units, and the words around them that say what they are.

The rules know units and roles ("peak", "of", "upper bound"), no sentence. Each takes the numbers
that it understands out of the text; those that are left at the end are told, not passed over.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from profkit.audit.claim import SHAPE, Side
from profkit.audit.claim_launch import LAUNCH, WAVES, sm_counts, threads_in_warps
from profkit.audit.claim_reading import (
    BYTE_RATE,
    COUNTS,
    FLOP_RATE,
    GPU,
    NEAR,
    TIME,
    VALUE,
    Phrases,
    Reading,
    figure_of,
    words_before,
)
from profkit.audit.claim_relations import TOKENS, changes, parts, products
from profkit.audit.printed_numbers import NUMBER, Figure
from profkit.core.errors import BadInput

# A long paragraph. Some rules look back over the text from each number in it, so that their time
# grows with the square of its length.
LONGEST = 4_000
VERSION = re.compile(r"(?<![\w.])(?:\d+(?:\.\d+){2,}|(?=[0-9a-f]{7})\d[0-9a-f]*[a-f][0-9a-f]+)\b")
_INTENSITY = r"FLOPs?(?:/| per )(?:B\b|bytes?)"


def understood(text: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What a sentence claims, by the names of a Claim's fields, and numbers not understood.

    Raises BadInput for a text longer than any sentence.
    """
    if len(text) > LONGEST:
        raise BadInput(
            f"holds a sentence of {len(text):,} characters",
            f"claims are sentences, of {LONGEST:,} characters at most",
        )
    reading = _read(text, _RULES)
    numbers = re.findall(r"(?<![\w.·])\d[\w.,%]*(?:\s[A-Za-zµ/]+)?", reading.left)
    left = (number.rstrip(".,") for number in numbers if not _is_version(number))
    return reading.found, (*sorted(reading.also), *left)


def _read(text: str, rules: tuple[Callable[[Reading], None], ...]) -> Reading:
    reading = Reading(re.sub(r"\s+", " ", text))
    for rule in rules:
        rule(reading)
    for name in reading.several:
        reading.found.pop(name, None)
    return reading


def _is_version(number: str) -> bool:
    """Whether it is a version (2.11.0) or a hash (3a82c0d84154), no quantity."""
    word = number.split()[0].rstrip(".,")
    return bool(VERSION.fullmatch(word)) and not re.fullmatch(NUMBER, word)


def context(text: str) -> dict[str, Any]:
    """What a title or a comment says of all that is below it: GPU, dtype, shape, path."""
    known = _read(text, (_shape, _dtype, _gpus)).found if len(text) <= LONGEST else {}
    return {name: value for name, value in known.items() if name != "n"}


def time_unit(text: str) -> str:
    """The unit of time that a comment names without a number, `median us`; "" for none."""
    units = re.findall(rf"(?<![\d.])(?<!\d )\b{TIME}", text[:LONGEST])
    return units[0] if len(set(units)) == 1 else ""


_SEVERAL = 1024  # GPUs that a sentence may speak of; larger numbers are sizes
_WORDS = "two|dual|both|three|four|quad|six|eight|ten|sixteen|thirty-two|sixty-four"
_COUNT = rf"\b(?:({_WORDS})|(?<![\w.])(\d{{1,4}})(?: ?[x×](?! ?\d))?)[ -]?"
_TOGETHER = re.compile(r"\b(?:aggregate|cluster|nodes|HGX|DGX|multi-GPU|GPUs)\b", re.I)


def _devices(reading: Reading) -> None:
    """`eight H100 SXM GPUs`, `4x L4`, `a dual-L40S server`; 0 for several of unknown number."""
    text, before = reading.text, re.compile(rf"{_COUNT}(?:NVIDIA |Tesla |GeForce )?$", re.I)
    starts = (gpu.start() for gpu in GPU.finditer(text))
    counts = [before.search(text, max(0, start - NEAR), start) for start in starts]
    counts += re.finditer(rf"{_COUNT}(?:GPUs?|cards)\b", text, re.I)
    for count in filter(None, counts):
        number = int(COUNTS.get(count.group(count.lastindex or 1).lower(), count.group(2)))
        if 2 <= number <= _SEVERAL:
            reading.put("devices", number)
            reading.take(count, 2)
    if "devices" not in reading.found and _TOGETHER.search(text):
        reading.found["devices"] = 0


def _accumulation(reading: Reading) -> None:
    """`with FP32 accumulation`, `accumulating in FP16`: no precision of the inputs."""
    pattern = (
        r"\b(?:FP|float)(16|32)[ -]accumul\w*|\baccumul\w* (?:in|with|to|at) (?:FP|float)(16|32)\b"
    )
    for match in re.finditer(pattern, reading.text, re.I):
        reading.put("accumulate", f"fp{match.group(1) or match.group(2)}")
        reading.take(match)


_NO_PRODUCT = re.compile(r"\b(?:images?|volumes?|grid|stencil|FFT|voxels?|conv\w*|pixels?)\b", re.I)
_LEAST_EDGE = 16  # of a matrix: smaller numbers are tiles, or dimensions of a grid
_SIZE, _BY = r"(\d{2,6}k?)", r" ?[x×] ?"
_PRODUCTS = (
    rf"(?<![\w.]){_SIZE}{_BY}{_SIZE}{_BY}{_SIZE}\b(?!{_BY}\d)",
    rf"\bM ?= ?N ?= ?K ?= ?{_SIZE}\b",
    rf"\bM ?= ?{_SIZE},? (?:and )?N ?= ?{_SIZE},? (?:and )?K ?= ?{_SIZE}\b",
)


def _matrices(reading: Reading) -> None:
    """`4096x4096x4096`, `M=N=K=8192`, `M=4096, N=4096, K=1024`: a product of two matrices."""
    for pattern in () if _NO_PRODUCT.search(reading.text) else _PRODUCTS:
        for match in re.finditer(pattern, reading.left):
            edges = tuple(map(_size, match.groups()))
            if min(edges) >= _LEAST_EDGE:
                reading.put("matrices", edges if len(edges) > 1 else edges * 3)
                reading.take(match)


def _size(digits: str) -> int:
    """`4096`, `4k`."""
    return int(digits.removesuffix("k")) * (1024 if digits.endswith("k") else 1)


def _interval(reading: Reading) -> None:
    """`95% CI: [0.323, 0.327]`, in its own unit or that of the time before it."""
    number, unit = rf"\s*({NUMBER})\s*", r"(ms|us|µs|μs|ns|s)?\s*"
    level = rf"(?:{VALUE}\s*%\s*)?(?:\bCI\b|\binterval\b)[^\[\d]*"
    pattern = rf"{level}\[{number}{unit},{number}{unit}\]\s*(?:{TIME})?"
    bare = (
        rf"{VALUE}\s*%\s*(?:confidence )?(?:CI|interval)\b:?\s*(?:of|is|from|=|between)?"
        rf"{number}{unit}(?:to|and|-|–){number}{unit}(?:{TIME})?"
    )
    bracketed = list(re.finditer(pattern, reading.text))
    for match in bracketed or re.finditer(bare, reading.text):
        before = re.findall(rf"{VALUE}\s*{TIME}", words_before(reading.text, match.start()))
        named = match.group(6) or match.group(5) or match.group(3) or (before and before[-1][1])
        if named:
            reading.take_figure(match, "low", 2, named)
            reading.take_figure(match, "high", 4, named)
            reading.take(match, 1)


def _end(name: str) -> Phrases:
    """`0.3195 ms (upper CI bound)`, `the lower bound of the interval is 12 us`."""
    end = rf"\b{name}\b[^()\d;]{{0,24}}?\b(?:bound|end|limit)\b"
    return Phrases(f"{name}_end", "", (
        rf"(?i){VALUE}\s*{TIME}\s*\(?[^()\d;,]{{0,16}}{end}",
        rf"(?i){end}[^()\d;,]{{0,24}}?{VALUE}\s*{TIME}",
    ))  # fmt: skip


_SHAPE = {
    "B": "batch", "H": "heads", "S": "length", "N": "n", "D": "dim", "Hkv": "kv_heads",
    "batch": "batch", "batch size": "batch", "heads": "heads", "seq": "length", "seqlen": "length",
    "sequence length": "length", "head dim": "dim", "head_dim": "dim",
}  # fmt: skip
_LETTER = re.compile(r"(?<![\w*·])(Hkv|[BHSND])\s*=\s*(\d{1,9}k?)(?![\w.])(?!\s*/\s*\d)")
_WORD = re.compile(
    r"\b(batch(?: size)?|heads|seq(?:len)?|sequence length|head[ _]dim)\s*[=:]?\s*(\d{1,9}k?)"
    r"(?![\w.])(?!\s*/\s*\d)",
    re.I,
)


def _shape(reading: Reading) -> None:
    """`B=32 H=8 S=16k`, `batch 32`: not `H*D = 2048`, nor lists of values."""
    for pattern in (_LETTER, _WORD):
        for match in pattern.finditer(reading.text):
            word = match.group(1)
            if value := _size(match.group(2).lower()):
                reading.put(_SHAPE.get(word) or _SHAPE[word.lower()], value)
            reading.take(match, 2)


def _kind(reading: Reading) -> None:
    """`causal` and `backward` change how much work a shape is; `non-causal` does not."""
    for name in ("causal", "backward"):
        if re.search(rf"(?<!non-)(?<!non)(?<!not )\b{name}\b", reading.text, re.I):
            reading.found[name] = True


def _overlap(reading: Reading) -> None:
    """`all 10 configurations have non-overlapping CIs`."""
    if re.search(r"(?i)non-?overlapping|(?:do not|don't|never) overlap", reading.text):
        reading.found["apart"] = 0
        rows = rf"{VALUE}\s+(?:configurations?|configs?|cells|rows|cases)\b"
        for match in re.finditer(rows, reading.text):
            if figure := figure_of(match.group(1), ""):
                reading.found["apart"] = int(figure.value)
                reading.take(match, 1)


def _grid(reading: Reading) -> None:
    """`a 4D grid`, `grid (a, b, c, d)`."""
    if not re.search(r"\bgrid\b", reading.text, re.I):
        return
    if listed := re.search(r"\bgrid\s*\(([^()]*)\)", reading.text, re.I):
        reading.put("grid_dimensions", listed.group(1).count(",") + 1)
    for match in re.finditer(r"(?<!\w)(\d)\s?-?(?:D\b|dimensional)", reading.text):
        reading.put("grid_dimensions", int(match.group(1)))
        reading.take(match)


def _before_after(reading: Reading) -> None:
    """`0.50 ms → 0.25 ms`: a baseline and what became of it."""
    pattern = rf"{VALUE}\s*{TIME}\s*(?:->|→|=>|to)\s*{VALUE}\s*{TIME}"
    for match in re.finditer(pattern, reading.left):
        reading.take_figure(match, "baseline", 1, match.group(2))
        reading.take_figure(match, "time", 3, match.group(4))


_PEAK = re.compile(r"\b(?:peak|theoretical|spec\w*|data ?sheet|roofs?|nominal|maximum)\b", re.I)
_OF_RATE = re.compile(rf"\s*{NUMBER}\s*(?:{FLOP_RATE}|{BYTE_RATE})")
_BYTES_WORDS = re.compile(r"\b(?:bandwidth|memory|DRAM|HBM)\b", re.I)
_FLOP_WORDS = re.compile(
    r"\b(?:compute|[TG]?FLOPs?(?:/s)?|[TG]?FLOPS|tensor|[BTF][FP]?\d+)\b", re.I
)
_SHARES = (
    rf"%\s*of\s+(?P<of>[^,;:()\d%]{{0,60}}?)\s*(?:is|=|:)?\s*(?P<share>{VALUE})\s*%",
    rf"(?P<share>{VALUE})\s*%\s*of\s+(?P<of>[^,;:()\d%]*)",
)


def _shares(reading: Reading) -> None:
    """`44% of peak`, `% of peak bandwidth 69.7%`: of which peak the words say."""
    for pattern in _SHARES:
        for match in re.finditer(pattern, reading.left):
            of, share = match.group("of"), match.re.groupindex["share"]
            of_rate = of.strip() in ("", "the", "its", "our") and _OF_RATE.match(
                reading.text, match.end()
            )
            if _BYTES_WORDS.search(of):
                reading.take_figure(match, "byte_share", share, "%")
            elif of_rate or _PEAK.search(of):
                name = "flop_share" if _FLOP_WORDS.search(of) else "share"
                reading.take_figure(match, name, share, "%")


_SPARSE = re.compile(r"\bspars", re.I)
_DENSE = re.compile(r"\b(?:dense|without|no|non-?)\b", re.I)


def _rates(reading: Reading) -> None:
    """Rates: `X of Y` is reached of peak; a peak has a word for it before it."""
    for pattern, kind in ((FLOP_RATE, "flop"), (BYTE_RATE, "byte")):
        rates = list(re.finditer(rf"{VALUE}\s*{pattern}", reading.left))
        for before, match, after in zip([None, *rates], rates, [*rates[1:], None], strict=False):
            peak = _is_peak(reading.text, before, match, after)
            if _SPARSE.search(reading.text) and (peak or not _DENSE.search(reading.text)):
                continue
            name = f"{kind}_{'peak' if peak else 'rate'}"
            level = _level_of(reading.text, match) if kind == "byte" else "dram"
            if level != "dram":
                name = f"{level}_rate"
            reading.take_figure(match, name, 1, match.group(2))


_JOINED = re.compile(r"\s*(?:out )?of\s*(?:the\s+)?(?:peak|theoretical|nominal)?\s*")
_REACHED = re.compile(r"\b(?:at|reach\w*|achiev\w*|sustain\w*|measured|gets?|hits?)\s*$", re.I)
# `The A40 has 696 GB/s`, `a T4 offers a memory bandwidth of`: a statement of what the product has.
_HAS = re.compile(
    rf"{GPU.pattern}(?: GPU| card)? (?:has|have|offers?|comes with|peaks at) "
    r"(?:(?:an?|and|up to|of|memory|DRAM|bandwidth|dense|tensor|throughput|FP\d+|rate|"
    r"\d[\d.,]* ?(?:SMs|CUDA cores|[GT]B(?:/s)?|TFLOP/s)(?: of \w+)?,?) )*$"
)
_PEAK_AFTER = re.compile(r" (?:theoretical |nominal |of )?peak\b")
_REACHED_AFTER = re.compile(r" (?:measured|achieved|reached|sustained)\b")


def _is_peak(
    text: str, before: re.Match[str] | None, match: re.Match[str], after: re.Match[str] | None
) -> bool:
    if after and _JOINED.fullmatch(text[match.end() : after.start()]):
        return False
    if before and _JOINED.fullmatch(text[before.end() : match.start()]):
        return True
    if _HAS.search(words_before(text, match.start())) or _PEAK_AFTER.match(text, match.end()):
        return True
    if _REACHED_AFTER.match(text, match.end()):
        return False
    marks = (text.rfind(mark, 0, match.start()) for mark in ",;")
    words = text[max(before.end() if before else 0, *marks) : match.start()]
    of_it = re.search(r"%\s*of\s*(?:(?:the|its|our)\s+)?$", words)
    return bool(of_it or _PEAK.search(words)) and not _REACHED.search(words)


_LEVEL = re.compile(
    r"\b(?:(?P<l2>L2)|(?P<shared>shared[ -]memory|SMEM|L1)|(?P<link>NVLink|NVSwitch|PCIe|PCI|NCCL|"
    r"all-?reduce|all-?gather|bus bandwidth|InfiniBand|Ethernet|network|host|pinned|H2D|D2H|SSD|"
    r"NVMe|registers?|constant cache|texture cache)|(?P<dram>DRAM|HBM\w*|GDDR\w*|VRAM|memory))\b",
    re.I,
)
_NEAR_AFTER = 80  # characters: "6 TB/s when all of it comes from L2"


def _level_of(text: str, rate: re.Match[str]) -> str:
    """The level of memory that a rate is of: named nearest before it, else after it.

    The PCIe of a product's name is no link.
    """
    around = (words_before(text, rate.start()), text[rate.end() : rate.end() + _NEAR_AFTER])
    before, after = (
        list(_LEVEL.finditer(GPU.sub(lambda gpu: re.sub("PCI[Ee]", "", gpu.group()), part)))
        for part in around
    )
    nearest = [*before[-1:], *after[:1]]
    return (nearest and nearest[0].lastgroup) or "dram"


def _share_kind(reading: Reading) -> None:
    """A share of `spec`, or alone in parentheses, is of what the sentence gives a peak of."""
    pattern = rf"\({VALUE} ?%\)|, (?:or )?{VALUE} ?% of (?:it|that)\b"
    alone = list(re.finditer(pattern, reading.left))
    if len(alone) == 1 and not any(name.endswith("share") for name in reading.found):
        for kind in ("flop", "byte"):
            if {f"{kind}_rate", f"{kind}_peak"} <= reading.found.keys() - reading.several:
                reading.take_figure(alone[0], f"{kind}_share", alone[0].lastindex or 1, "%")
    kinds = {name.split("_")[0] for name in reading.found if name.endswith(("_rate", "_peak"))}
    if "share" in reading.found and len(kinds) == 1 and kinds <= {"flop", "byte"}:
        reading.put(f"{kinds.pop()}_share", reading.found.pop("share"))


def _quotient(reading: Reading) -> None:
    """`2 FLOP per 12 bytes`, `1 FLOP for every 8 bytes moved`: an intensity, no amounts."""
    per = rf"(?i){VALUE} FLOPs? (?:per|for|for every|for each|every|each) {VALUE} (?:B\b|bytes?\b)"
    for match in re.finditer(per, reading.left):
        flop, moved = figure_of(match.group(1), "FLOP"), figure_of(match.group(2), "B")
        if flop and moved and "intensity" not in reading.found:
            text = f"{match.group(1)} FLOP / {match.group(2)} B"
            reading.put("intensity", Figure(flop.value / moved.value, 0.0, text))
            reading.take(match, 1, 2)


def _sides(reading: Reading) -> None:
    """`A100 0.15 ms at B=16 H=16, L4 0.32 ms at B=32 H=8`: GPUs, each with its time."""
    timed, sides = rf"{VALUE}\s*{TIME}", []
    for clause in re.finditer(r"[^,;:]+", reading.text):
        gpu = GPU.search(clause.group())
        time = re.search(timed, reading.left[clause.start() : clause.end()])
        figure = figure_of(time[1], time[2]) if time else None
        if gpu and figure:
            shape = Reading(clause.group())
            _shape(shape)
            sides.append(Side(gpu.group(), figure, shape.found))
    if len({side.gpu for side in sides}) > 1:
        reading.found["sides"] = tuple(sides)
        for match in list(re.finditer(timed, reading.left)):
            if any(match.group(1) in side.time.text.split() for side in sides):
                reading.take(match, 1)
        reading.several -= set(SHAPE)
        for name in SHAPE:
            reading.found.pop(name, None)


# What is denied, asked, wished or another case is not claimed of the kernel.
_UNSAID = re.compile(
    r"(?:n't|\b(?:not|never|no longer|neither|nor|rather than|instead of|to be|to become|to get|"
    r"becom\w+|turn\w*|would|could|if|unless|until|before|nearly|almost|called?|than|from|"
    r"where|when|once|beyond|what|whether|is it|are they))\b[^.;,]{0,24}$",
    re.I,
)


def _bound(reading: Reading) -> None:
    """`compute-bound`, `memory bound`; what is not said of the kernel as it is is left alone."""
    pattern = r"(?:\b\w+ly\s+)?\b(compute|memory|bandwidth|DRAM)[- ]bound\b(?! (?:if|when|once))"
    for match in re.finditer(pattern, reading.text, re.I):
        if not _UNSAID.search(words_before(reading.text, match.start())):
            compute = match.group(1).lower() == "compute"
            reading.put("bound", "compute" if compute else "memory")


def _memory(reading: Reading) -> None:
    for match in re.finditer(r"\b(?:HBM\d?e?|GDDR\dX?|LPDDR\dX?)(?!\w)", reading.text, re.I):
        reading.put("memory", match.group())
        reading.take(match)


DTYPES = {
    "fp16": "fp16", "float16": "fp16", "bf16": "bf16", "bfloat16": "bf16",
    "tf32": "tf32", "fp32": "fp32", "float32": "fp32", "fp64": "fp64", "float64": "fp64",
    "fp8": "fp8", "e4m3": "fp8", "e5m2": "fp8", "int8": "int8",
}  # fmt: skip
_DTYPE = re.compile(rf"(?<![a-z0-9])({'|'.join(DTYPES)})(?![a-z0-9])", re.I)
_SIDE_BY_SIDE = re.compile(r"\b(?:and|but|vs\.?|versus|or|while)\b|,", re.I)
_USED = re.compile(r"%|\b(?:we|our|of|reach\w*|achiev\w*|sustain\w*|measur\w*|gets?)\b", re.I)


def _dtype(reading: Reading) -> None:
    named = list(_DTYPE.finditer(reading.left))
    names = [DTYPES[match.group(1).lower()] for match in named]
    of_one_rate = len(set(names)) == 1 and _of_last_rate(reading.text, named[0])
    for match, name in zip(named, names, strict=True):
        if not of_one_rate:
            reading.put("dtype", name)
        reading.take(match)


def _of_last_rate(text: str, dtype: re.Match[str]) -> bool:
    """Whether a precision is that of the last of several rates only: `125 TFLOP/s on tensor cores
    and 15.7 TFLOP/s in FP32`. Without one, a rate may be of any."""
    rates = list(re.finditer(rf"{VALUE}\s*{FLOP_RATE}", text))
    if len(rates) < 2 or dtype.start() < rates[-1].end():
        return False
    between = text[rates[0].end() : rates[-1].start()]
    return bool(_SIDE_BY_SIDE.search(between)) and not _USED.search(between)


def _gpus(reading: Reading) -> None:
    """Words like `L4`, `H100 SXM`, `RTX 4090`; whether there is such a GPU is not known here."""
    named = [match for match in GPU.finditer(reading.text) if not _DTYPE.fullmatch(match.group(1))]
    if named:
        reading.found["gpus"] = tuple(dict.fromkeys(match.group(1) for match in named))
    for match in named:
        reading.take(match)


_MFU = r"(?:MFU|HFU|model FLOPs? utili[sz]ation)"
_RATIOS = (
    Phrases("peak_ratio", "x", (
        rf"(?i)(?:FLOPs?/s|FLOPS|compute|peak)\s+ratio\s*(?:of|is|=|:)?\s*{VALUE}",
    )),
    Phrases("advantage", "x", (rf"(?i){VALUE}\s*[x×]\s+(?:more|as|better)?\s*efficien",)),
    Phrases("speedup", "x", (
        rf"(?i){VALUE}\s*[x×]\s*(?:faster|speed-?up|as fast)",
        rf"(?i)speed-?up\s*(?:of|is|=|:)?\s*{VALUE}\s*[x×]?",
    )),
)  # fmt: skip
_RIDGE = Phrases("ridge", "FLOP/B", (
    rf"(?i)\b(?:ridge|machine balance)[^.;\d]{{0,24}}?{VALUE}\s*{_INTENSITY}",
))  # fmt: skip
_UTILIZATION = Phrases("flop_share", "%", (
    rf"{VALUE} ?% {_MFU}\b", rf"\b{_MFU}(?: of| is|:| =)? {VALUE} ?%",
), unless=r"^(?=.*\bMFU\b)(?=.*\bHFU\b)")  # fmt: skip
# Of the SM: no memory clock, nor the base one.
_CLOCK = Phrases("clock", "", (rf"{VALUE}\s*([MG]Hz)\b",), unless_after=(
    r"(?i)(?=.{1,24}$)\b(?:memory|mem|base|HBM\w*|GDDR\w*|DRAM)\b.*"
))  # fmt: skip
_AMOUNTS = (
    Phrases("intensity", "FLOP/B", (
        rf"(?i){VALUE}\s*{_INTENSITY}",
        r"(?i)(?:\bAI\b|\b(?:arithmetic|operational) intensity)\s*(?:of|is|=|:|at)?\s*" + VALUE,
    )),
    _quotient,
    Phrases("flop", "", (rf"{VALUE}\s*([kMGTP]?FLOPs?\b)(?!\s*/\s*[a-z])",)),
    Phrases("bytes", "", (rf"{VALUE}\s*((?:[kMGT]i?|)(?:B\b|bytes?\b))(?!\s*/\s*[a-z])",)),
)  # fmt: skip
# A time that is left is the median; a bound to stay below is none.
_TIME = Phrases("time", "", (rf"{VALUE}\s*{TIME}",), unless_after=(
    r"(?i)(?:[<>≤≥]=?|\b(?:under|below|above|over|most|least|than))\s*"
))  # fmt: skip
_RULES: tuple[Callable[[Reading], None], ...] = (
    _accumulation, _dtype, _memory, products, _devices, sm_counts, _gpus, _interval, _end("upper"),
    _end("lower"), _matrices, _shape, _kind, _overlap, _grid, *LAUNCH, threads_in_warps, *WAVES,
    *TOKENS, *_RATIOS, _before_after, changes, _RIDGE, _shares, _UTILIZATION, _rates, _share_kind,
    parts, _CLOCK, *_AMOUNTS, _sides, _TIME, _bound,
)  # fmt: skip
