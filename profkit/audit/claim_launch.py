"""What sentences say of launches and SMs: registers, threads, shared memory, occupancy, waves."""

from __future__ import annotations

import re

from profkit.audit.claim_reading import GPU, VALUE, Phrases, Reading, words_before

_PER_THREAD = r"(?:per[ -]thread|/ ?thread|a thread|each thread)"
_PER_BLOCK = r"(?:per[ -](?:thread )?(?:block|CTA)|/ ?(?:block|CTA)|a block|each block)"
_MEMORY = r"(?:of )?(?:dynamic |static )?(?:shared memory|SMEM|smem|shared)"
_ONE = r"one|two|three|four|five|six|seven|eight"
_ON_SM = r"(?:on|per|an|each|every|in) (?:an? |the |each )?(?:[\w ()-]{0,24}? )?SM\b"
_FIT = r"(?: can)?(?: fit| run| are resident| reside| share)?"
_HOLDS = r"\bSM (?:can )?(?:holds?|runs?|has|keeps?|supports?|hosts?|executes?|allows?|fits?)\b"
_UP_TO = r"(?: (?:up to|at most|only|a maximum of|as many as))?"
_ACHIEVED = r"(?:achieved|measured|average|actual)"


def _occupancy(kind: str) -> tuple[str, str]:
    return (
        rf"(?i){VALUE} ?% (?:of )?(?:the )?{kind} ?(?:theoretical |warp )?occupancy",
        rf"(?i){kind} ?\boccupancy (?:of|is|was|at|=|:|to|reaches|reached|drops to|falls to) "
        rf"(?:only |about |just )?{VALUE} ?%",
    )


def _resident(number: str, noun: str) -> tuple[str, str]:
    return (
        rf"(?i)\b{number} (?:resident )?{noun}{_FIT} {_ON_SM}",
        rf"(?i){_HOLDS}{_UP_TO} {number} (?:resident )?{noun}",
    )


_FEW = rf"({_ONE}|\d{{1,3}})"
_MANY = r"(?<![\w.])([\d,]{1,9})"
# `64 registers per thread`, `256 threads per block`, `48 KB per block`; `50% occupancy`; `3 blocks
# fit on an A100 SM`, `an SM holds up to 64 warps`; `1,024 blocks are 7.8 waves on the 132 SMs`.
# Shared memory is given in units of 1,024 B, however they are written.
LAUNCH = (
    Phrases("registers", "registers", (rf"(?i){VALUE} (?:registers|regs) ?{_PER_THREAD}",)),
    Phrases("threads", "threads", (
        rf"(?i){VALUE}[ -]?threads?[ -]{_PER_BLOCK}",
        rf"(?i)\b(?:blocks?|CTAs?|block size) of {VALUE}(?:[ -]threads?)?",
        rf"(?i){VALUE}[ -]threads? (?:thread )?(?:blocks?|CTAs?)\b",
    )),
    Phrases("shared", "", (
        rf"(?i){VALUE} ?((?:Ki?|k)B) (?:{_MEMORY} )?{_PER_BLOCK}|"
        r"\b(?:each|every|a|per) (?:thread )?(?:block|CTA) (?:uses?|needs?|takes?|requires?|has) "
        rf"{VALUE} ?((?:Ki?|k)B)\b",
    ), scale=1024),
    Phrases("achieved_occupancy", "%", _occupancy(_ACHIEVED)),
    Phrases("occupancy", "%", _occupancy("")),
    Phrases("resident_blocks", "blocks", _resident(_FEW, "blocks?"), whole=True),
    Phrases("resident_warps", "warps", _resident(_MANY, "warps"), whole=True),
    Phrases("resident_threads", "threads", _resident(_MANY, "threads"), whole=True),
)  # fmt: skip
WAVES = (
    Phrases("waves", "waves", (
        rf"(?i){VALUE} (?:full )?waves\b", rf"(?i)\b({_ONE}) (?:full )?waves?\b",
    )),
    Phrases("resident_blocks", "blocks", (
        rf"(?i)\b(?:at|with) {_FEW}(?: blocks?)? (?:per|an|a|on each|on every) SM\b",
    ), needs="waves"),
    Phrases("grid_blocks", "grid_blocks", (rf"(?i){VALUE} (?:thread )?(?:blocks|CTAs)\b",),
            needs="waves"),
    Phrases("sms", "sms", (rf"(?i){VALUE} SMs\b",), needs="waves"),
)  # fmt: skip


def threads_in_warps(reading: Reading) -> None:
    """`2,048 threads in 64 warps`: the same number twice."""
    if "resident_threads" in reading.found:
        reading.take_all(rf"{VALUE} threads in {VALUE} warps")


def sm_counts(reading: Reading) -> None:
    """`The A100 has 108 SMs`, `the 132 SMs of an H100 SXM`: of which GPU how many are told."""
    gpus = list(GPU.finditer(reading.text))
    partly = re.compile(r"\b(?:us\w+|only|on|across|leav\w+|over|idle|first|of)\b", re.I)
    for gpu, following in zip(gpus, [*gpus[1:], None], strict=False):
        end = following.start() if following else len(reading.text)
        after = re.match(r"([^.;\d]{0,16}?)(\d{1,3}) SMs\b(?! of\b)", reading.text[gpu.end() : end])
        if after and not partly.search(after.group(1)):
            reading.add("sm_counts", (gpu.group(1), int(after.group(2))))
        before = re.search(r"\b(?:the|all|its) (\d{1,3}) SMs of (?:an?|the) (?:NVIDIA )?$",
                           words_before(reading.text, gpu.start()))  # fmt: skip
        if before:
            reading.add("sm_counts", (gpu.group(1), int(before.group(1))))
    if "sm_counts" in reading.found:
        reading.take_all(rf"{VALUE} SMs\b", 1)
