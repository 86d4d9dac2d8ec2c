"""Claims in prose: numbers with units, and the words around them that say what they are.

The rules know units and roles ("peak", "of", "upper bound"), no sentence. Each takes the numbers
that it understands out of the text; those that are left at the end are told, not passed over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from profkit.audit.claim_launch import launch_shape, occupancy, residency, sm_counts, waves
from profkit.audit.claim_reading import (
    BYTE_RATE,
    FLOP_RATE,
    GPU,
    SECONDS,
    TIME,
    VALUE,
    Reading,
    figure_of,
    prefix_of,
    take_figure,
    words_before,
)  # fmt: skip
from profkit.audit.claim_relations import changes, parts, products, tokens
from profkit.audit.printed_numbers import NUMBER, Figure
from profkit.core.errors import BadInput

# A long paragraph. Some rules look back over the text from each number in it, so that their time
# grows with the square of its length.
LONGEST = 4_000
_SPACE = re.compile(r"\s+")
VERSION = re.compile(r"(?<![\w.])(?:\d+(?:\.\d+){2,}|(?=[0-9a-f]{7})\d[0-9a-f]*[a-f][0-9a-f]+)\b")
_SPARSE = re.compile(r"\bspars", re.I)
_DENSE = re.compile(r"\b(?:dense|without|no|non-?)\b", re.I)
_INTENSITY = r"FLOPs?(?:/| per )(?:B\b|bytes?)"
_OF_RATE = re.compile(rf"\s*{NUMBER}\s*(?:{FLOP_RATE}|{BYTE_RATE})")
_PEAK = re.compile(r"\b(?:peak|theoretical|spec\w*|data ?sheet|roofs?|nominal|maximum)\b", re.I)
_REACHED = re.compile(r"\b(?:at|reach\w*|achiev\w*|sustain\w*|measured|gets?|hits?)\s*$", re.I)
# `The A40 has 696 GB/s`, `a T4 offers a memory bandwidth of`: a statement of what the product has.
_HAS = re.compile(
    rf"{GPU.pattern}(?: GPU| card)? (?:has|have|offers?|comes with|peaks at) "
    r"(?:(?:an?|and|up to|of|memory|DRAM|bandwidth|dense|tensor|throughput|FP\d+|rate|"
    r"\d[\d.,]* ?(?:SMs|CUDA cores|[GT]B(?:/s)?|TFLOP/s)(?: of \w+)?,?) )*$"
)
_PEAK_AFTER = re.compile(r" (?:theoretical |nominal |of )?peak\b")
_REACHED_AFTER = re.compile(r" (?:measured|achieved|reached|sustained)\b")
_BYTES_WORDS = re.compile(r"\b(?:bandwidth|memory|DRAM|HBM)\b", re.I)
_FLOP_WORDS = re.compile(
    r"\b(?:compute|[TG]?FLOPs?(?:/s)?|[TG]?FLOPS|tensor|[BTF][FP]?\d+)\b", re.I
)
DTYPES = {
    "fp16": "fp16", "float16": "fp16", "bf16": "bf16", "bfloat16": "bf16",
    "tf32": "tf32", "fp32": "fp32", "float32": "fp32", "fp64": "fp64", "float64": "fp64",
    "fp8": "fp8", "e4m3": "fp8", "e5m2": "fp8", "int8": "int8",
}  # fmt: skip
_DTYPE = re.compile(rf"(?<![a-z0-9])({'|'.join(DTYPES)})(?![a-z0-9])", re.I)
_SHAPE = {
    "B": "batch", "H": "heads", "S": "length", "N": "n", "D": "dim", "Hkv": "kv_heads",
    "batch": "batch", "batch size": "batch", "heads": "heads", "seq": "length", "seqlen": "length",
    "sequence length": "length", "head dim": "dim", "head_dim": "dim",
}  # fmt: skip
_LETTER = re.compile(r"(?<![\w*·])(Hkv|[BHSND])\s*=\s*(\d{1,9})(k?)(?![\w.])(?!\s*/\s*\d)")
_WORD = re.compile(
    r"\b(batch(?: size)?|heads|seq(?:len)?|sequence length|head[ _]dim)\s*[=:]?\s*(\d{1,9})(k?)"
    r"(?![\w.])(?!\s*/\s*\d)",
    re.I,
)


@dataclass(frozen=True)
class Side:
    """One of the things that a sentence compares: a GPU with its time and shape."""

    gpu: str
    time: Figure
    shape: dict[str, int] = field(hash=False)


def understood(text: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What a sentence claims, by the names of a Claim's fields, and numbers not understood.

    Raises BadInput for a text longer than any sentence.
    """
    if len(text) > LONGEST:
        raise BadInput(
            f"holds a sentence of {len(text):,} characters",
            f"claims are sentences, of {LONGEST:,} characters at most",
        )
    reading = Reading(_SPACE.sub(" ", text))
    for rule in _RULES:
        rule(reading)
    for name in reading.several:
        reading.found.pop(name, None)
    numbers = re.findall(r"(?<![\w.·])\d[\w.,%]*(?:\s[A-Za-zµ/]+)?", reading.left)
    left = (number.rstrip(".,") for number in numbers if not _is_version(number))
    return reading.found, (*sorted(reading.also), *left)


def _is_version(number: str) -> bool:
    """Whether it is a version (2.11.0) or a hash (3a82c0d84154), no quantity."""
    word = number.split()[0].rstrip(".,")
    return bool(VERSION.fullmatch(word)) and not re.fullmatch(NUMBER, word)


def context(text: str) -> dict[str, Any]:
    """What a title or a comment says of all that is below it: GPU, dtype, shape, path."""
    if len(text) > LONGEST:
        return {}
    reading = Reading(_SPACE.sub(" ", text))
    for rule in (_shape, _dtype, _gpus):
        rule(reading)
    wanted = {"batch", "heads", "length", "dim", "kv_heads", "dtype", "gpus"}
    return {
        name: value
        for name, value in reading.found.items()
        if name in wanted and name not in reading.several
    }


def time_unit(text: str) -> str:
    """The unit of time that a comment names without a number, `median us`; "" for none."""
    found = re.findall(rf"(?<![\d.])(?<!\d )\b{TIME}", text[:LONGEST])
    return found[0] if len(set(found)) == 1 else ""


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
    earlier = _without_links(words_before(text, rate.start()))
    before = [match.lastgroup for match in _LEVEL.finditer(earlier)]
    after = _LEVEL.search(_without_links(text[rate.end() : rate.end() + _NEAR_AFTER]))
    named = before[-1] if before else after.lastgroup if after else None
    return named or "dram"


def _without_links(text: str) -> str:
    return GPU.sub(lambda name: re.sub("PCI[Ee]", "", name.group()), text)


_COUNTS = {
    "two": 2, "dual": 2, "both": 2, "three": 3, "four": 4, "quad": 4, "six": 6, "eight": 8,
    "ten": 10, "sixteen": 16, "thirty-two": 32, "sixty-four": 64,
}  # fmt: skip
_COUNT = rf"(?:({'|'.join(_COUNTS)})|(?<![\w.])(\d{{1,4}})(?: ?[x×](?! ?\d))?)"
_TOGETHER = re.compile(r"\b(?:aggregate|cluster|nodes|HGX|DGX|multi-GPU|GPUs)\b", re.I)
_SEVERAL = 1024  # GPUs that a sentence may speak of; larger numbers are sizes


def _devices(reading: Reading) -> None:
    """`eight H100 SXM GPUs`, `4x L4`, `a dual-L40S server`; 0 for several of unknown number."""
    for gpu in GPU.finditer(reading.text):
        count = re.search(rf"\b{_COUNT}[ -]?(?:NVIDIA |Tesla |GeForce )?$",
                          words_before(reading.text, gpu.start()), re.I)  # fmt: skip
        if count:
            _several(reading, count)
    for count in re.finditer(rf"\b{_COUNT}[ -]?(?:GPUs?|cards)\b", reading.text, re.I):
        _several(reading, count)
    if "devices" not in reading.found and _TOGETHER.search(reading.text):
        reading.found["devices"] = 0


def _several(reading: Reading, count: re.Match[str]) -> None:
    word = count.group(1)
    number = _COUNTS[word.lower()] if word else int(count.group(2))
    if 2 <= number <= _SEVERAL:
        reading.put("devices", number)
        if count.group(2):
            reading.take(count, 2)


def _clock(reading: Reading) -> None:
    """`at 1980 MHz`, `boosts to 1.785 GHz`: the SM's, not a memory clock, nor the base one."""
    for match in re.finditer(rf"{VALUE}\s*([MG])Hz\b", reading.left):
        before = reading.text[max(0, match.start() - 24) : match.start()]
        if re.search(r"\b(?:memory|mem|base|HBM\w*|GDDR\w*|DRAM)\b", before, re.I):
            continue
        scale = 1e6 if match.group(2) == "M" else 1e9
        take_figure(reading, match, "clock", 1, scale, f"{match.group(2)}Hz")


def _accumulation(reading: Reading) -> None:
    """`with FP32 accumulation`, `accumulating in FP16`: no precision of the inputs."""
    pattern = (
        r"\b(?:FP|float)(16|32)[ -]accumul\w*|\baccumul\w* (?:in|with|to|at) (?:FP|float)(16|32)\b"
    )
    for match in re.finditer(pattern, reading.text, re.I):
        reading.put("accumulate", f"fp{match.group(1) or match.group(2)}")
        reading.take(match)


def _ridge(reading: Reading) -> None:
    """`the ridge point at 203 FLOP/B`, `a machine balance of 13 FLOP/B`."""
    pattern = rf"\b(?:ridge|machine balance)[^.;\d]{{0,24}}?{VALUE}\s*{_INTENSITY}"
    for match in re.finditer(pattern, reading.left, re.I):
        take_figure(reading, match, "ridge", 1, 1.0, "FLOP/B")


_NO_PRODUCT = re.compile(r"\b(?:images?|volumes?|grid|stencil|FFT|voxels?|conv\w*|pixels?)\b", re.I)
_LEAST_EDGE = 16  # of a matrix: smaller numbers are tiles, or dimensions of a grid


def _matrices(reading: Reading) -> None:
    """`4096x4096x4096`, `M=N=K=8192`, `M=4096, N=4096, K=1024`: a product of two matrices."""
    if _NO_PRODUCT.search(reading.text):
        return
    size = r"(\d{2,6})(k?)"
    by = r" ?[x×] ?"
    for match in re.finditer(rf"(?<![\w.]){size}{by}{size}{by}{size}\b(?!{by}\d)", reading.left):
        _matrix(reading, match, ((1, 2), (3, 4), (5, 6)))
    for match in re.finditer(rf"\bM ?= ?N ?= ?K ?= ?{size}\b", reading.left):
        _matrix(reading, match, ((1, 2),) * 3)
    each = rf"\bM ?= ?{size},? (?:and )?N ?= ?{size},? (?:and )?K ?= ?{size}\b"
    for match in re.finditer(each, reading.left):
        _matrix(reading, match, ((1, 2), (3, 4), (5, 6)))


def _matrix(reading: Reading, match: re.Match[str], groups: tuple[tuple[int, int], ...]) -> None:
    edges = tuple(
        int(match.group(number)) * (1024 if match.group(kilo) else 1) for number, kilo in groups
    )
    if min(edges) >= _LEAST_EDGE:
        reading.put("matrices", edges)
        reading.take(match)


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
        if not named:
            continue
        for name, at in (("low", 2), ("high", 4)):
            take_figure(reading, match, name, at, SECONDS[named], named)
        reading.take(match, 1)


def _labelled_end(reading: Reading) -> None:
    """`0.3195 ms (upper CI bound)`, `the lower bound of the interval is 12 us`."""
    ends = r"\b(upper|lower)\b[^()\d;]{0,24}?\b(?:bound|end|limit)\b"
    after = rf"{VALUE}\s*{TIME}\s*\(?[^()\d;,]{{0,16}}{ends}"
    before = rf"{ends}[^()\d;,]{{0,24}}?{VALUE}\s*{TIME}"
    for pattern, number, unit, end in ((after, 1, 2, 3), (before, 2, 3, 1)):
        for match in re.finditer(pattern, reading.left, re.I):
            name = f"{match.group(end).lower()}_end"
            unit_name = match.group(unit)
            take_figure(reading, match, name, number, SECONDS[unit_name], unit_name)


def _shape(reading: Reading) -> None:
    """`B=32 H=8 S=16k`, `batch 32`: not `H*D = 2048`, nor lists of values."""
    for pattern in (_LETTER, _WORD):
        for match in pattern.finditer(reading.text):
            word = match.group(1)
            name = _SHAPE.get(word) or _SHAPE[word.lower()]
            value = int(match.group(2)) * (1024 if match.group(3) else 1)
            if value:
                reading.put(name, value)
            reading.take(match, 2, 3)


def _kind(reading: Reading) -> None:
    """`causal` and `backward` change how much work a shape is; `non-causal` does not."""
    for name in ("causal", "backward"):
        if re.search(rf"(?<!non-)(?<!non)(?<!not )\b{name}\b", reading.text, re.I):
            reading.found[name] = True


def _overlap(reading: Reading) -> None:
    """`all 10 configurations have non-overlapping CIs`."""
    if not re.search(r"non-?overlapping|(?:do not|don't|never) overlap", reading.text, re.I):
        return
    reading.found["apart"] = 0
    for match in re.finditer(
        rf"{VALUE}\s+(?:configurations?|configs?|cells|rows|cases)\b", reading.text
    ):
        if figure := figure_of(match.group(1), 1.0, ""):
            reading.found["apart"] = int(figure.value)
            reading.take(match, 1)


def _grid(reading: Reading) -> None:
    """`a 4D grid`, `grid (a, b, c, d)`."""
    if not re.search(r"\bgrid\b", reading.text, re.I):
        return
    listed = re.search(r"\bgrid\s*\(([^()]*)\)", reading.text, re.I)
    if listed:
        reading.put("grid_dimensions", listed.group(1).count(",") + 1)
    for match in re.finditer(r"(?<!\w)(\d)\s?-?(?:D\b|dimensional)", reading.text):
        reading.put("grid_dimensions", int(match.group(1)))
        reading.take(match)


def _ratios(reading: Reading) -> None:
    """`TFLOP/s ratio of 10.4`, `4.88x more efficient`, `1.5x faster`, `speed-up of 1.5`."""
    for pattern, name in (
        (rf"(?:FLOPs?/s|FLOPS|compute|peak)\s+ratio\s*(?:of|is|=|:)?\s*{VALUE}", "peak_ratio"),
        (rf"{VALUE}\s*[x×]\s+(?:more|as|better)?\s*efficien", "advantage"),
        (rf"{VALUE}\s*[x×]\s*(?:faster|speed-?up|as fast)", "speedup"),
        (rf"speed-?up\s*(?:of|is|=|:)?\s*{VALUE}\s*[x×]?", "speedup"),
    ):
        for match in re.finditer(pattern, reading.left, re.I):
            take_figure(reading, match, name, 1, 1.0, "x")


def _before_after(reading: Reading) -> None:
    """`0.50 ms → 0.25 ms`: a baseline and what became of it."""
    pattern = rf"{VALUE}\s*{TIME}\s*(?:->|→|=>|to)\s*{VALUE}\s*{TIME}"
    for match in re.finditer(pattern, reading.left):
        take_figure(reading, match, "baseline", 1, SECONDS[match.group(2)], match.group(2))
        take_figure(reading, match, "time", 3, SECONDS[match.group(4)], match.group(4))


def _shares(reading: Reading) -> None:
    """`44% of peak`, `% of peak bandwidth 69.7%`: of which peak the words say."""
    words = r"([^,;:()\d%]{0,60}?)"
    for pattern, number, of in (
        (rf"%\s*of\s+{words}\s*(?:is|=|:)?\s*{VALUE}\s*%", 2, 1),
        (rf"{VALUE}\s*%\s*of\s+([^,;:()\d%]*)", 1, 2),
    ):
        for match in re.finditer(pattern, reading.left):
            said = match.group(of)
            of_rate = said.strip() in ("", "the", "its", "our") and _OF_RATE.match(
                reading.text, match.end()
            )
            if not (of_rate or _PEAK.search(said) or _BYTES_WORDS.search(said)):
                continue
            name = "share"
            if _BYTES_WORDS.search(said):
                name = "byte_share"
            elif _FLOP_WORDS.search(said):
                name = "flop_share"
            take_figure(reading, match, name, number, 0.01, "%")


def _utilization(reading: Reading) -> None:
    """`48% MFU`, `an MFU of 48%`: the share of the compute peak; two of them may differ."""
    if re.search(r"\bMFU\b", reading.text) and re.search(r"\bHFU\b", reading.text):
        return
    for pattern in (
        rf"{VALUE} ?% (?:MFU|HFU|model FLOPs? utili[sz]ation)\b",
        rf"\b(?:MFU|HFU|model FLOPs? utili[sz]ation)(?: of| is|:| =)? {VALUE} ?%",
    ):
        for match in re.finditer(pattern, reading.left):
            take_figure(reading, match, "flop_share", 1, 0.01, "%")


def _rates(reading: Reading) -> None:
    """Rates: `X of Y` is reached of peak; a peak has a word for it before it."""
    for pattern, kind in ((FLOP_RATE, "flop"), (BYTE_RATE, "byte")):
        found = list(re.finditer(rf"{VALUE}\s*{pattern}", reading.left))
        for at, match in enumerate(found):
            after = found[at + 1] if at + 1 < len(found) else None
            before = found[at - 1] if at else None
            peak = _is_peak(reading.text, before, match, after)
            if _SPARSE.search(reading.text) and (peak or not _DENSE.search(reading.text)):
                continue
            unit = reading.text[match.end(1) : match.end()].strip()
            name = f"{kind}_{'peak' if peak else 'rate'}"
            level = _level_of(reading.text, match) if kind == "byte" else "dram"
            if level != "dram":
                name = f"{level}_rate"
            take_figure(reading, match, name, 1, prefix_of(match, 2), unit)


def _is_peak(
    text: str, before: re.Match[str] | None, match: re.Match[str], after: re.Match[str] | None
) -> bool:
    joined = r"\s*(?:out )?of\s*(?:the\s+)?(?:peak|theoretical|nominal)?\s*"
    if after and re.fullmatch(joined, text[match.end() : after.start()]):
        return False
    if before and re.fullmatch(joined, text[before.end() : match.start()]):
        return True
    start = max(
        before.end() if before else 0, *(text.rfind(mark, 0, match.start()) for mark in ",;")
    )
    said = text[max(start, 0) : match.start()]
    of_it = re.search(r"%\s*of\s*(?:(?:the|its|our)\s+)?$", said)
    if _HAS.search(words_before(text, match.start())) or _PEAK_AFTER.match(text, match.end()):
        return True
    if _REACHED_AFTER.match(text, match.end()):
        return False
    return bool(of_it or _PEAK.search(said)) and not _REACHED.search(said)


def _share_kind(reading: Reading) -> None:
    """A share of `spec`, or alone in parentheses, is of what the sentence gives a peak of."""
    alone = list(
        re.finditer(rf"\({VALUE} ?%\)|, (?:or )?{VALUE} ?% of (?:it|that)\b", reading.left)
    )
    if len(alone) == 1 and not any(name.endswith("share") for name in reading.found):
        for kind in ("flop", "byte"):
            if {f"{kind}_rate", f"{kind}_peak"} <= reading.found.keys() - reading.several:
                group = 1 if alone[0].group(1) else 2
                take_figure(reading, alone[0], f"{kind}_share", group, 0.01, "%")
    if "share" not in reading.found:
        return
    kinds = {name.split("_")[0] for name in reading.found if name.endswith(("_rate", "_peak"))}
    if len(kinds) == 1:
        reading.put(f"{kinds.pop()}_share", reading.found.pop("share"))


def _amounts(reading: Reading) -> None:
    """FLOP, bytes, and FLOP per byte."""
    named = rf"(?:\bAI\b|\b(?:arithmetic|operational) intensity)\s*(?:of|is|=|:|at)?\s*{VALUE}"
    for pattern in (rf"{VALUE}\s*{_INTENSITY}", named):
        for match in re.finditer(pattern, reading.left, re.I):
            take_figure(reading, match, "intensity", 1, 1.0, "FLOP/B")
    _quotient(reading)
    for pattern, name in (
        (rf"{VALUE}\s*([kMGTP]?)FLOPs?\b(?!\s*/\s*[a-z])", "flop"),
        (rf"{VALUE}\s*([kMGT]i?|)(?:B\b|bytes?\b)(?!\s*/\s*[a-z])", "bytes"),
    ):
        for match in re.finditer(pattern, reading.left):
            unit = reading.text[match.end(1) : match.end()].strip()
            take_figure(reading, match, name, 1, prefix_of(match, 2), unit)


def _quotient(reading: Reading) -> None:
    """`2 FLOP per 12 bytes`, `1 FLOP for every 8 bytes moved`: an intensity, no amounts."""
    per = rf"{VALUE} FLOPs? (?:per|for|for every|for each|every|each) {VALUE} (?:B\b|bytes?\b)"
    for match in re.finditer(per, reading.left, re.I):
        flop = figure_of(match.group(1), 1.0, "FLOP")
        moved = figure_of(match.group(2), 1.0, "B")
        if flop and moved and "intensity" not in reading.found:
            value = flop.value / moved.value
            reading.put(
                "intensity", Figure(value, 0.0, f"{match.group(1)} FLOP / {match.group(2)} B")
            )
            reading.take(match, 1, 2)


def _sides(reading: Reading) -> None:
    """`A100 0.15 ms at B=16 H=16, L4 0.32 ms at B=32 H=8`: GPUs, each with its time."""
    sides = []
    for start, clause in _clauses(reading.text):
        gpu = GPU.search(clause)
        time = re.search(rf"{VALUE}\s*{TIME}", reading.left[start : start + len(clause)])
        figure = figure_of(time.group(1), SECONDS[time.group(2)], time.group(2)) if time else None
        if gpu and figure:
            shape = Reading(clause)
            _shape(shape)
            sides.append(Side(gpu.group(), figure, shape.found))
    if len({side.gpu for side in sides}) > 1:
        reading.found["sides"] = tuple(sides)
        for match in list(re.finditer(rf"{VALUE}\s*{TIME}", reading.left)):
            if any(match.group(1) in side.time.text.split() for side in sides):
                reading.take(match, 1)
        reading.several -= {"batch", "heads", "length", "dim"}
        for name in ("batch", "heads", "length", "dim"):
            reading.found.pop(name, None)


def _clauses(text: str) -> Iterable[tuple[int, str]]:
    for match in re.finditer(r"[^,;:]+", text):
        yield match.start(), match.group()


def _time(reading: Reading) -> None:
    """A time that is left is the median; a bound to stay below is none."""
    for match in re.finditer(rf"{VALUE}\s*{TIME}", reading.left):
        before = words_before(reading.text, match.start()).rstrip()
        if re.search(r"(?:[<>≤≥]=?|\b(?:under|below|above|over|most|least|than))$", before):
            continue
        take_figure(reading, match, "time", 1, SECONDS[match.group(2)], match.group(2))


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
            kind = match.group(1).lower()
            reading.put("bound", "compute" if kind == "compute" else "memory")


def _memory(reading: Reading) -> None:
    for match in re.finditer(r"\b(?:HBM\d?e?|GDDR\dX?|LPDDR\dX?)(?!\w)", reading.text, re.I):
        reading.put("memory", match.group())
        reading.take(match)


_RATE = re.compile(rf"{VALUE}\s*{FLOP_RATE}")
_SIDE_BY_SIDE = re.compile(r"\b(?:and|but|vs\.?|versus|or|while)\b|,", re.I)
_USED = re.compile(r"%|\b(?:we|our|of|reach\w*|achiev\w*|sustain\w*|measur\w*|gets?)\b", re.I)


def _dtype(reading: Reading) -> None:
    found = list(_DTYPE.finditer(reading.left))
    alone = len({DTYPES[match.group(1).lower()] for match in found}) == 1
    for match in found:
        if not (alone and _of_last_rate(reading.text, found[0])):
            reading.put("dtype", DTYPES[match.group(1).lower()])
        reading.take(match)


def _of_last_rate(text: str, dtype: re.Match[str]) -> bool:
    """Whether a precision is that of the last of several rates only: `125 TFLOP/s on tensor cores
    and 15.7 TFLOP/s in FP32`. Without one, a rate may be of any."""
    rates = list(_RATE.finditer(text))
    if len(rates) < 2 or dtype.start() < rates[-1].end():
        return False
    between = text[rates[0].end() : rates[-1].start()]
    return bool(_SIDE_BY_SIDE.search(between)) and not _USED.search(between)


def _gpus(reading: Reading) -> None:
    """Words like `L4`, `H100 SXM`, `RTX 4090`; whether there is such a GPU is not known here."""
    found = [match for match in GPU.finditer(reading.text) if not _DTYPE.fullmatch(match.group(1))]
    if found:
        reading.found["gpus"] = tuple(dict.fromkeys(match.group(1) for match in found))
    for match in found:
        reading.take(match)


_RULES: tuple[Callable[[Reading], None], ...] = (
    _accumulation, _dtype, _memory, products, _devices, sm_counts, _gpus, _interval, _labelled_end,
    _matrices, _shape, _kind, _overlap, _grid, launch_shape, occupancy, residency, waves, tokens,
    _ratios, _before_after, changes, _ridge, _shares, _utilization, _rates, _share_kind, parts,
    _clock, _amounts, _sides, _time, _bound,
)  # fmt: skip
