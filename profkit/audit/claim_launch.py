"""What sentences say of launches and SMs: registers, threads, shared memory, occupancy, waves."""

from __future__ import annotations

import re

from profkit.audit.claim_reading import (
    BINARY,
    GPU,
    SI,
    VALUE,
    Reading,
    figure_of,
    take_figure,
    words_before,
)

_PER_THREAD = r"(?:per[ -]thread|/ ?thread|a thread|each thread)"
_PER_BLOCK = r"(?:per[ -](?:thread )?(?:block|CTA)|/ ?(?:block|CTA)|a block|each block)"
_ONE_OR = r"(one|two|three|four|five|six|seven|eight|\d{1,3})"
_NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8}
_ON_SM = r"(?:on|per|an|each|every|in) (?:an? |the |each )?(?:[\w ()-]{0,24}? )?SM\b"
_HOLDS = r"\bSM (?:can )?(?:holds?|runs?|has|keeps?|supports?|hosts?|executes?|allows?|fits?)\b"
_UP_TO = r"(?: (?:up to|at most|only|a maximum of|as many as))?"


def launch_shape(reading: Reading) -> None:
    """`64 registers per thread`, `256 threads per block`, `a block of 1024 threads`."""
    threads = (
        rf"{VALUE}[ -]?threads?[ -]{_PER_BLOCK}",
        rf"\b(?:blocks?|CTAs?|block size) of {VALUE}(?:[ -]threads?)?",
        rf"{VALUE}[ -]threads? (?:thread )?(?:blocks?|CTAs?)\b",
    )
    _counts(reading, "registers", (rf"{VALUE} (?:registers|regs) ?{_PER_THREAD}",))
    _counts(reading, "threads", threads)
    memory = r"(?:of )?(?:dynamic |static )?(?:shared memory|SMEM|smem|shared)"
    for match in re.finditer(
        rf"{VALUE} ?(Ki?|k|)B (?:{memory} )?{_PER_BLOCK}|"
        rf"\b(?:each|every|a|per) (?:thread )?(?:block|CTA) (?:uses?|needs?|takes?|requires?|has) "
        rf"{VALUE} ?(Ki?|k|)B\b",
        reading.left,
        re.I,
    ):
        group = 1 if match.group(1) else 3
        # Shared memory is given in units of 1,024 B, however they are written.
        scale = BINARY["ki"] if match.group(group + 1) else SI[""]
        unit = f"{match.group(group + 1)}B"
        take_figure(reading, match, "shared", group, scale, unit)


def _counts(reading: Reading, name: str, patterns: tuple[str, ...]) -> None:
    for pattern in patterns:
        for match in re.finditer(pattern, reading.left, re.I):
            take_figure(reading, match, name, 1, 1.0, name)


def occupancy(reading: Reading) -> None:
    """`50% occupancy`, `theoretical occupancy of 67%`, `achieved occupancy was 71%`."""
    kind = r"(achieved|measured|average|actual)?"
    after = rf"{VALUE} ?% (?:of )?(?:the )?{kind} ?(?:theoretical |warp )?occupancy"
    before = (
        rf"{kind} ?\boccupancy (?:of|is|was|at|=|:|to|reaches|reached|drops to|falls to) "
        rf"(?:only |about |just )?{VALUE} ?%"
    )
    for pattern, number, word in ((after, 1, 2), (before, 2, 1)):
        for match in re.finditer(pattern, reading.left, re.I):
            name = "achieved_occupancy" if match.group(word) else "occupancy"
            take_figure(reading, match, name, number, 0.01, "%")


def residency(reading: Reading) -> None:
    """`3 blocks fit on an A100 SM`, `an SM holds up to 64 warps`, `2,048 threads per SM`."""
    for what, name in (("blocks?", "resident_blocks"), ("warps", "resident_warps"),
                       ("threads", "resident_threads")):  # fmt: skip
        number = _ONE_OR if what == "blocks?" else r"(?<![\w.])([\d,]{1,9})"
        resident = r"(?: can)?(?: fit| run| are resident| reside| share)?"
        for pattern in (
            rf"\b{number} (?:resident )?{what}{resident} {_ON_SM}",
            rf"{_HOLDS}{_UP_TO} {number} (?:resident )?{what}",
        ):
            for match in re.finditer(pattern, reading.text, re.I):
                word = match.group(1).lower()
                count = str(_NUMBERS.get(word, word))
                if figure := figure_of(count, 1.0, what.rstrip("s?") + "s"):
                    reading.put(name, figure)
                    reading.take(match, 1)
    also = re.search(rf"{VALUE} threads in {VALUE} warps", reading.left)
    if also and "resident_threads" in reading.found:
        reading.take(also)


def waves(reading: Reading) -> None:
    """`1,024 blocks ... are 7.8 waves on the 132 SMs`."""
    _counts(reading, "waves", (rf"{VALUE} (?:full )?waves\b",))
    for match in re.finditer(rf"\b{_ONE_OR} (?:full )?waves?\b", reading.left, re.I):
        if word := _NUMBERS.get(match.group(1).lower()):
            reading.put("waves", figure_of(str(word), 1.0, "waves"))
            reading.take(match, 1)
    if "waves" in reading.found:
        at = rf"\b(?:at|with) {_ONE_OR}(?: blocks?)? (?:per|an|a|on each|on every) SM\b"
        for match in re.finditer(at, reading.left, re.I):
            count = str(_NUMBERS.get(match.group(1).lower(), match.group(1)))
            reading.put("resident_blocks", figure_of(count, 1.0, "blocks"))
            reading.take(match, 1)
        _counts(reading, "grid_blocks", (rf"{VALUE} (?:thread )?(?:blocks|CTAs)\b",))
        _counts(reading, "sms", (rf"{VALUE} SMs\b",))


def sm_counts(reading: Reading) -> None:
    """`The A100 has 108 SMs`, `the 132 SMs of an H100 SXM`: of which GPU how many are told."""
    told = []
    gpus = list(GPU.finditer(reading.text))
    partly = re.compile(r"\b(?:us\w+|only|on|across|leav\w+|over|idle|first|of)\b", re.I)
    for at, gpu in enumerate(gpus):
        end = gpus[at + 1].start() if at + 1 < len(gpus) else len(reading.text)
        after = re.match(r"([^.;\d]{0,16}?)(\d{1,3}) SMs\b(?! of\b)", reading.text[gpu.end() : end])
        if after and not partly.search(after.group(1)):
            told.append((gpu.group(1), int(after.group(2))))
        before = re.search(r"\b(?:the|all|its) (\d{1,3}) SMs of (?:an?|the) (?:NVIDIA )?$",
                           words_before(reading.text, gpu.start()))  # fmt: skip
        if before:
            told.append((gpu.group(1), int(before.group(1))))
    if told:
        reading.found["sm_counts"] = tuple(told)
        for match in list(re.finditer(rf"{VALUE} SMs\b", reading.left)):
            reading.take(match, 1)
