"""Claims in prose: numbers with units, and the words around them that say what they are.

The rules know units and roles ("peak", "of", "upper bound"), no sentence. Each takes the numbers
that it understands out of the text; those that are left at the end are told, not passed over.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from profkit.audit.claim import SHAPE, Side
from profkit.audit.claim_reading import (
    COUNTS,
    NEAR,
    Reading,
    figure_of,
    words_before,
)
from profkit.audit.claim_relations import changes, parts, products, streams
from profkit.audit.phrases import PHRASES, WORDS
from profkit.audit.printed_numbers import NUMBER, Figure
from profkit.core.errors import BadInput

# A long paragraph. Some rules look back over the text from each number in it, so that their time
# grows with the square of its length.
LONGEST = 4_000


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
    return bool(WORDS["version"].fullmatch(word)) and not re.fullmatch(NUMBER, word)


def context(text: str) -> dict[str, Any]:
    """What a title or a comment says of all that is below it: GPU, dtype, shape, path."""
    known = _read(text, (_shape, _dtype, _gpus)).found if len(text) <= LONGEST else {}
    return {name: value for name, value in known.items() if name != "n"}


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
        number = int(COUNTS.get(count.group(count.lastindex or 1).lower(), count.group(2)))
        if 2 <= number <= _SEVERAL:
            reading.put("devices", number)
            reading.take(count, 2)
    if "devices" not in reading.found and WORDS["together"].search(text):
        reading.found["devices"] = 0


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


_SHAPE = {
    "B": "batch", "H": "heads", "S": "length", "N": "n", "D": "dim", "Hkv": "kv_heads",
    "batch": "batch", "batch size": "batch", "heads": "heads", "seq": "length", "seqlen": "length",
    "sequence length": "length", "head dim": "dim", "head_dim": "dim",
}  # fmt: skip


def _shape(reading: Reading) -> None:
    """`B=32 H=8 S=16k`, `batch 32`: not `H*D = 2048`, nor lists of values."""
    for way in ("letter", "size"):
        for match in WORDS[way].finditer(reading.text):
            word = match.group(1)
            if value := _size(match.group(2).lower()):
                reading.put(_SHAPE.get(word) or _SHAPE[word.lower()], value)
            reading.take(match, 2)


def _kind(reading: Reading) -> None:
    """`causal` and `backward` change how much work a shape is; `non-causal` does not."""
    for name in ("causal", "backward"):
        if WORDS[name].search(reading.text):
            reading.found[name] = True


def _overlap(reading: Reading) -> None:
    """`all 10 configurations have non-overlapping CIs`."""
    if WORDS["non_overlapping"].search(reading.text):
        reading.found["apart"] = 0
        for match in WORDS["rows"].finditer(reading.text):
            if figure := figure_of(match.group(1), ""):
                reading.found["apart"] = int(figure.value)
                reading.take(match, 1)


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
            of, share = match.group("of"), match.re.groupindex["share"]
            of_rate = of.strip() in ("", "the", "its", "our") and WORDS["of_rate"].match(
                reading.text, match.end()
            )
            if WORDS["of_bytes"].search(of):
                reading.take_figure(match, "byte_share", share, "%")
            elif of_rate or WORDS["peak"].search(of):
                name = "flop_share" if WORDS["of_flop"].search(of) else "share"
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
    if len(alone) == 1 and not any(name.endswith("share") for name in reading.found):
        for kind in ("flop", "byte"):
            if {f"{kind}_rate", f"{kind}_peak"} <= reading.found.keys() - reading.several:
                reading.take_figure(alone[0], f"{kind}_share", alone[0].lastindex or 1, "%")
    kinds = {name.split("_")[0] for name in reading.found if name.endswith(("_rate", "_peak"))}
    if "share" in reading.found and len(kinds) == 1 and kinds <= {"flop", "byte"}:
        reading.put(f"{kinds.pop()}_share", reading.found.pop("share"))


def _quotient(reading: Reading) -> None:
    """`2 FLOP per 12 bytes`, `1 FLOP for every 8 bytes moved`: an intensity, no amounts."""
    for match in WORDS["quotient"].finditer(reading.left):
        flop, moved = figure_of(match.group(1), "FLOP"), figure_of(match.group(2), "B")
        if flop and moved and "intensity" not in reading.found:
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
            sides.append(Side(gpu.group(), figure, shape.found))
    if len({side.gpu for side in sides}) > 1:
        reading.found["sides"] = tuple(sides)
        for match in list(timed.finditer(reading.left)):
            if any(match.group(1) in side.time.text.split() for side in sides):
                reading.take(match, 1)
        reading.several -= set(SHAPE)
        for name in SHAPE:
            reading.found.pop(name, None)


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


DTYPES = {
    "fp16": "fp16", "float16": "fp16", "bf16": "bf16", "bfloat16": "bf16",
    "tf32": "tf32", "fp32": "fp32", "float32": "fp32", "fp64": "fp64", "float64": "fp64",
    "fp8": "fp8", "e4m3": "fp8", "e5m2": "fp8", "int8": "int8",
}  # fmt: skip
_DTYPE = re.compile(rf"(?<![a-z0-9])({'|'.join(DTYPES)})(?![a-z0-9])", re.I)


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
        reading.found["gpus"] = tuple(dict.fromkeys(match.group(1) for match in named))
    for match in named:
        reading.take(match)


def _threads_in_warps(reading: Reading) -> None:
    """`2,048 threads in 64 warps`: the same number twice."""
    if "resident_threads" in reading.found:
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
    if "sm_counts" in reading.found:
        reading.take_all(WORDS["sms"])


_RULES: tuple[Callable[[Reading], None], ...] = (
    _accumulation, _dtype, _memory, products, _devices, _sm_counts, _gpus, _interval,
    *PHRASES["ends"], _matrices, _shape, _kind, _overlap, _grid, *PHRASES["launch"],
    _threads_in_warps, *PHRASES["waves"], *PHRASES["per_token"], streams, *PHRASES["tokens"],
    *PHRASES["ratios"], _before_after, changes, *PHRASES["ridge"], _shares,
    *PHRASES["utilization"], _rates, _share_kind, parts, *PHRASES["clock"], *PHRASES["intensity"],
    _quotient, *PHRASES["amounts"], _sides, *PHRASES["time"], _bound,
)  # fmt: skip
