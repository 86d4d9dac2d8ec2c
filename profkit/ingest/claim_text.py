"""Claims in prose: numbers with units, and the words around them that say what they are.

The rules know units and roles ("peak", "of", "upper bound"), no sentence. Each takes the numbers
that it understands out of the text; those that are left at the end are told, not passed over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from profkit.errors import BadInput
from profkit.ingest.printed import NUMBER, Figure, as_printed

SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}
_SI = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15}
_BINARY = {"ki": 2.0**10, "mi": 2.0**20, "gi": 2.0**30, "ti": 2.0**40}

_N = rf"(?<![\w.])({NUMBER})"
VERSION = re.compile(r"(?<![\w.])(?:\d+(?:\.\d+){2,}|(?=[0-9a-f]{7})\d[0-9a-f]*[a-f][0-9a-f]+)\b")
_SPARSE = re.compile(r"\bspars", re.I)
_TIME = r"(ms|us|µs|μs|ns|s)\b"
_FLOP_RATE = r"([kMGTP]?)(?:FLOPs?/s|FLOPS\b|FLOPs?\s+per\s+second|OPS\b)"
_BYTE_RATE = r"([kMGTP]i?|)(?:B/s|Bps\b|bytes?/s)"
_INTENSITY = r"FLOPs?/(?:B\b|bytes?)"
_OF_RATE = re.compile(rf"\s*{NUMBER}\s*(?:{_FLOP_RATE}|{_BYTE_RATE})")
_PEAK = re.compile(r"\b(?:peak|theoretical|spec\w*|data ?sheet|roofs?|nominal|maximum)\b", re.I)
_REACHED = re.compile(r"\b(?:at|reach\w*|achiev\w*|sustain\w*|measured|gets?|hits?)\s*$", re.I)
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
_GPU = re.compile(
    r"\b(?:(?:GeForce |RTX (?:PRO )?)(\d{4})|([A-Z]{1,2}\d{1,4}[A-Z]?))"
    r"((?:[ -](?:Ada|Blackwell|SXM\d?|PCIe|NVL|\d+ ?GB))*)(?![\w=])"
)
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


@dataclass
class _Reading:
    """A text, what was understood of it, and what is left of it."""

    text: str
    left: str = ""
    found: dict[str, Any] = field(default_factory=dict)
    several: set[str] = field(default_factory=set)
    also: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.left = self.text

    def take(self, match: re.Match[str], *groups: int) -> None:
        """Blank out what was understood, so that no later rule takes it again."""
        for at in groups or (0,):
            start, end = match.span(at)
            if start >= 0:
                self.left = self.left[:start] + "·" * (end - start) + self.left[end:]

    def put(self, name: str, value: Any) -> None:
        """Keep a value; two different ones of a name leave none."""
        if name in self.found and self.found[name] != value:
            self.several.add(name)
            shown = (self.found[name], value)
            self.also |= {one.text for one in shown if isinstance(one, Figure)}
        self.found.setdefault(name, value)


def understood(text: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What a sentence claims, by the names of a Claim's fields, and numbers not understood."""
    reading = _Reading(text)
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
    reading = _Reading(text)
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
    found = re.findall(rf"(?<![\d.])(?<!\d )\b{_TIME}", text)
    return found[0] if len(set(found)) == 1 else ""


def _figure(number: str, scale: float, unit: str) -> Figure | None:
    """The quantity; None for a number that can be none."""
    try:
        printed = as_printed(number)
        return printed.figure(scale, unit) if printed else None
    except (ValueError, BadInput):
        return None


def _take_figure(
    reading: _Reading, match: re.Match[str], name: str, number: int, scale: float, unit: str
) -> None:
    figure = _figure(match.group(number), scale, unit)
    if figure is not None:
        reading.put(name, figure)
        reading.take(match, number)


def _prefix(match: re.Match[str], group: int) -> float:
    prefix = match.group(group).lower()
    return _BINARY.get(prefix) or _SI[prefix]


def _interval(reading: _Reading) -> None:
    """`95% CI: [0.323, 0.327]`, in its own unit or that of the time before it."""
    number, unit = rf"\s*({NUMBER})\s*", r"(ms|us|µs|μs|ns|s)?\s*"
    level = rf"(?:({NUMBER})\s*%\s*)?(?:\bCI\b|\binterval\b)[^\[\d]*"
    pattern = rf"{level}\[{number}{unit},{number}{unit}\]\s*(?:{_TIME})?"
    for match in re.finditer(pattern, reading.text):
        before = re.findall(rf"{_N}\s*{_TIME}", reading.text[: match.start()])
        named = match.group(6) or match.group(5) or match.group(3) or (before and before[-1][1])
        if not named:
            continue
        for name, at in (("low", 2), ("high", 4)):
            _take_figure(reading, match, name, at, SECONDS[named], named)
        reading.take(match, 1)


def _labelled_end(reading: _Reading) -> None:
    """`0.3195 ms (upper CI bound)`, `the lower bound of the interval is 12 us`."""
    ends = r"\b(upper|lower)\b[^()\d;]{0,24}?\b(?:bound|end|limit)\b"
    after = rf"{_N}\s*{_TIME}\s*\(?[^()\d;,]{{0,16}}{ends}"
    before = rf"{ends}[^()\d;,]{{0,24}}?{_N}\s*{_TIME}"
    for pattern, number, unit, end in ((after, 1, 2, 3), (before, 2, 3, 1)):
        for match in re.finditer(pattern, reading.left, re.I):
            name = f"{match.group(end).lower()}_end"
            unit_name = match.group(unit)
            _take_figure(reading, match, name, number, SECONDS[unit_name], unit_name)


def _shape(reading: _Reading) -> None:
    """`B=32 H=8 S=16k`, `batch 32`: not `H*D = 2048`, nor lists of values."""
    for pattern in (_LETTER, _WORD):
        for match in pattern.finditer(reading.text):
            word = match.group(1)
            name = _SHAPE.get(word) or _SHAPE[word.lower()]
            value = int(match.group(2)) * (1024 if match.group(3) else 1)
            if value:
                reading.put(name, value)
            reading.take(match, 2, 3)


def _kind(reading: _Reading) -> None:
    """`causal` and `backward` change how much work a shape is; `non-causal` does not."""
    for name in ("causal", "backward"):
        if re.search(rf"(?<!non-)(?<!non)(?<!not )\b{name}\b", reading.text, re.I):
            reading.found[name] = True


def _overlap(reading: _Reading) -> None:
    """`all 10 configurations have non-overlapping CIs`."""
    if not re.search(r"non-?overlapping|(?:do not|don't|never) overlap", reading.text, re.I):
        return
    reading.found["apart"] = 0
    for match in re.finditer(
        rf"{_N}\s+(?:configurations?|configs?|cells|rows|cases)\b", reading.text
    ):
        if figure := _figure(match.group(1), 1.0, ""):
            reading.found["apart"] = int(figure.value)
            reading.take(match, 1)


def _grid(reading: _Reading) -> None:
    """`a 4D grid`, `grid (a, b, c, d)`."""
    if not re.search(r"\bgrid\b", reading.text, re.I):
        return
    listed = re.search(r"\bgrid\s*\(([^()]*)\)", reading.text, re.I)
    if listed:
        reading.put("grid_dimensions", listed.group(1).count(",") + 1)
    for match in re.finditer(r"(?<!\w)(\d)\s?-?(?:D\b|dimensional)", reading.text):
        reading.put("grid_dimensions", int(match.group(1)))
        reading.take(match)


def _ratios(reading: _Reading) -> None:
    """`TFLOP/s ratio of 10.4`, `4.88x more efficient`, `1.5x faster`, `speed-up of 1.5`."""
    for pattern, name in (
        (rf"(?:FLOPs?/s|FLOPS|compute|peak)\s+ratio\s*(?:of|is|=|:)?\s*{_N}", "peak_ratio"),
        (rf"{_N}\s*[x×]\s+(?:more|as|better)?\s*efficien", "advantage"),
        (rf"{_N}\s*[x×]\s*(?:faster|speed-?up|as fast)", "speedup"),
        (rf"speed-?up\s*(?:of|is|=|:)?\s*{_N}\s*[x×]?", "speedup"),
    ):
        for match in re.finditer(pattern, reading.left, re.I):
            _take_figure(reading, match, name, 1, 1.0, "x")


def _before_after(reading: _Reading) -> None:
    """`0.50 ms → 0.25 ms`: a baseline and what became of it."""
    pattern = rf"{_N}\s*{_TIME}\s*(?:->|→|=>|to)\s*{_N}\s*{_TIME}"
    for match in re.finditer(pattern, reading.left):
        _take_figure(reading, match, "baseline", 1, SECONDS[match.group(2)], match.group(2))
        _take_figure(reading, match, "time", 3, SECONDS[match.group(4)], match.group(4))


def _shares(reading: _Reading) -> None:
    """`44% of peak`, `% of peak bandwidth 69.7%`: of which peak the words say."""
    words = r"([^,;:()\d%]{0,60}?)"
    for pattern, number, of in (
        (rf"%\s*of\s+{words}\s*(?:is|=|:)?\s*{_N}\s*%", 2, 1),
        (rf"{_N}\s*%\s*of\s+([^,;:()\d%]*)", 1, 2),
    ):
        for match in re.finditer(pattern, reading.left):
            said = match.group(of)
            of_rate = said.strip() in ("", "the") and _OF_RATE.match(reading.text, match.end())
            if not (of_rate or _PEAK.search(said) or _BYTES_WORDS.search(said)):
                continue
            name = "share"
            if _BYTES_WORDS.search(said):
                name = "byte_share"
            elif _FLOP_WORDS.search(said):
                name = "flop_share"
            _take_figure(reading, match, name, number, 0.01, "%")


def _rates(reading: _Reading) -> None:
    """Rates: `X of Y` is reached of peak; a peak has a word for it before it."""
    for pattern, kind in ((_FLOP_RATE, "flop"), (_BYTE_RATE, "byte")):
        found = list(re.finditer(rf"{_N}\s*{pattern}", reading.left))
        for at, match in enumerate(found):
            after = found[at + 1] if at + 1 < len(found) else None
            before = found[at - 1] if at else None
            peak = _is_peak(reading.text, before, match, after)
            if peak and _SPARSE.search(reading.text):
                continue
            unit = reading.text[match.end(1) : match.end()].strip()
            name = f"{kind}_{'peak' if peak else 'rate'}"
            _take_figure(reading, match, name, 1, _prefix(match, 2), unit)


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
    of_it = re.search(r"%\s*of\s*(?:the\s+)?$", said)
    return bool(of_it or _PEAK.search(said)) and not _REACHED.search(said)


def _share_kind(reading: _Reading) -> None:
    """A share of `spec` is of what the sentence gives a rate or a peak of."""
    if "share" not in reading.found:
        return
    kinds = {name.split("_")[0] for name in reading.found if name.endswith(("_rate", "_peak"))}
    if len(kinds) == 1:
        reading.put(f"{kinds.pop()}_share", reading.found.pop("share"))


def _amounts(reading: _Reading) -> None:
    """FLOP, bytes, and FLOP per byte."""
    named = rf"(?:\bAI\b|\b(?:arithmetic|operational) intensity)\s*(?:of|is|=|:|at)?\s*{_N}"
    for pattern in (rf"{_N}\s*{_INTENSITY}", named):
        for match in re.finditer(pattern, reading.left, re.I):
            _take_figure(reading, match, "intensity", 1, 1.0, "FLOP/B")
    for pattern, name in (
        (rf"{_N}\s*([kMGTP]?)FLOPs?\b(?!\s*/\s*[a-z])", "flop"),
        (rf"{_N}\s*([kMGT]i?|)(?:B\b|bytes?\b)(?!\s*/\s*[a-z])", "bytes"),
    ):
        for match in re.finditer(pattern, reading.left):
            unit = reading.text[match.end(1) : match.end()].strip()
            _take_figure(reading, match, name, 1, _prefix(match, 2), unit)


def _sides(reading: _Reading) -> None:
    """`A100 0.15 ms at B=16 H=16, L4 0.32 ms at B=32 H=8`: GPUs, each with its time."""
    sides = []
    for start, clause in _clauses(reading.text):
        gpu = _GPU.search(clause)
        time = re.search(rf"{_N}\s*{_TIME}", reading.left[start : start + len(clause)])
        figure = _figure(time.group(1), SECONDS[time.group(2)], time.group(2)) if time else None
        if gpu and figure:
            shape = _Reading(clause)
            _shape(shape)
            sides.append(Side(gpu.group(), figure, shape.found))
    if len({side.gpu for side in sides}) > 1:
        reading.found["sides"] = tuple(sides)
        for match in list(re.finditer(rf"{_N}\s*{_TIME}", reading.left)):
            if any(match.group(1) in side.time.text.split() for side in sides):
                reading.take(match, 1)
        reading.several -= {"batch", "heads", "length", "dim"}
        for name in ("batch", "heads", "length", "dim"):
            reading.found.pop(name, None)


def _clauses(text: str) -> Iterable[tuple[int, str]]:
    for match in re.finditer(r"[^,;:]+", text):
        yield match.start(), match.group()


def _time(reading: _Reading) -> None:
    """A time that is left is the median; a bound to stay below is none."""
    for match in re.finditer(rf"{_N}\s*{_TIME}", reading.left):
        before = reading.text[: match.start()].rstrip()
        if re.search(r"(?:[<>≤≥]=?|\b(?:under|below|above|over|most|least|than))$", before):
            continue
        _take_figure(reading, match, "time", 1, SECONDS[match.group(2)], match.group(2))


def _bound(reading: _Reading) -> None:
    """`compute-bound`, `memory bound`; what is said not to be is left alone."""
    pattern = r"(\bnot\s+|n't\s+)?(?:\b\w+ly\s+)?\b(compute|memory|bandwidth|DRAM)[- ]bound"
    for match in re.finditer(pattern, reading.text, re.I):
        if not match.group(1):
            kind = match.group(2).lower()
            reading.put("bound", "compute" if kind == "compute" else "memory")


def _memory(reading: _Reading) -> None:
    for match in re.finditer(r"\b(?:HBM\d?e?|GDDR\dX?|LPDDR\dX?)(?!\w)", reading.text, re.I):
        reading.put("memory", match.group())
        reading.take(match)


def _dtype(reading: _Reading) -> None:
    for match in _DTYPE.finditer(reading.text):
        reading.put("dtype", DTYPES[match.group(1).lower()])
        reading.take(match)


def _gpus(reading: _Reading) -> None:
    """Words like `L4`, `H100 SXM`, `RTX 4090`; whether there is such a GPU is not known here."""
    found = [match for match in _GPU.finditer(reading.text) if not _DTYPE.fullmatch(match.group())]
    if found:
        reading.found["gpus"] = tuple(dict.fromkeys(match.group() for match in found))
    for match in found:
        reading.take(match)


_RULES: tuple[Callable[[_Reading], None], ...] = (
    _dtype, _memory, _gpus, _interval, _labelled_end, _shape, _kind, _overlap, _grid, _ratios,
    _before_after, _shares, _rates, _share_kind, _amounts, _sides, _time, _bound,
)  # fmt: skip
