"""Edits of CUDA source that may make a kernel faster: text to text, nothing is written to disk."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

Edit = Callable[[str], str]

_FLOATING = re.compile(r"(?<![\w.])(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.])")
_UNROLL = re.compile(r"(#[ \t]*pragma[ \t]+unroll)\b[^\n]*")
_LOOP = re.compile(r"\b(?:for|while)\s*\(")
_BOUNDS = re.compile(r"__launch_bounds__\s*\(")
_SHARED = re.compile(r"(__shared__\s+[\w:<>\s]+?\s\w+\s*(?:\[[^\]]*\])+)\[([^\]]*)\](?=\s*[;,])")
_PITCH = re.compile(
    r"(constexpr\s+(?:int|unsigned|size_t)\s+\w*(?:pitch|stride|leading)\w*\s*=\s*)([^;]+)(;)",
    re.IGNORECASE,
)
_CONSTANT = re.compile(r"(?:constexpr\s+(?:int|unsigned|size_t)\s+(\w+)\s*=|#define\s+(\w+)[ \t])"
                       r"\s*(\d+)\s*(?=;|\n|//)")  # fmt: skip
_KERNEL = re.compile(r"__global__\b[^;{]*?\b(?!__launch_bounds__)\w+\s*\((?=[^()]*\*)")
_ROUNDED = {
    "__fmul_rn": "*",
    "__fadd_rn": "+",
    "__fsub_rn": "-",
    "__dmul_rn": "*",
    "__dadd_rn": "+",
}
_UNCACHED = re.compile(r"\b__ld(?:cg|cs|cv|lu)\s*\(")


def closing(text: str, start: int) -> int:
    """The place of the parenthesis or brace that closes the one at `start`; the end without one."""
    pairs = {"(": ")", "{": "}", "[": "]"}
    depth, opened, closes = 0, text[start], pairs[text[start]]
    for place in range(start, len(text)):
        depth += (text[place] == opened) - (text[place] == closes)
        if not depth:
            return place
    return len(text)


def _arguments(text: str) -> list[str]:
    """The arguments of a call, between its parentheses."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "([{<") - (letter in ")]}>")
        if letter == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    return [*parts, text[start:]]


def without_aliases(text: str) -> str:
    """Every pointer that a kernel gets is `__restrict__`."""
    for match in reversed([*_KERNEL.finditer(text)]):
        end = closing(text, match.end() - 1)
        marked = (
            re.sub(r"\*\s*(?=\w+\s*$)", "* __restrict__ ", each) if "restrict" not in each else each
            for each in _arguments(text[match.end() : end])
        )
        text = text[: match.end()] + ",".join(marked) + text[end:]
    return text


def unrolled(times: int) -> Edit:
    """Loops without loops inside are unrolled so many times, in place of what pragmas say."""

    def edit(text: str) -> str:
        text = _UNROLL.sub(rf"\1 {times}", text)
        for match in reversed([*_LOOP.finditer(text)]):
            before = text[: match.start()]
            if (
                match[0].startswith("for")
                and not _LOOP.search(_body(text, match.end() - 1))
                and not re.search(r"pragma[^\n]*\n\s*$", before)
                and before.rfind("\n") >= before.rfind("//")
            ):
                text = f"{before}\n#pragma unroll {times}\n{text[match.start() :]}"
        return text

    return edit


def _body(text: str, start: int) -> str:
    """The body of a loop whose head opens at `start`."""
    after = closing(text, start) + 1
    rest = text[after:].lstrip()
    begin = len(text) - len(rest)
    if rest.startswith("{"):
        return text[begin : closing(text, begin)]
    return text[begin : text.find(";", begin)]


def bounded(blocks: int) -> Edit:
    """Kernels with launch bounds ask for so many blocks on an SM, 0 for none."""

    def edit(text: str) -> str:
        for match in reversed([*_BOUNDS.finditer(text)]):
            end = closing(text, match.end() - 1)
            first = _arguments(text[match.end() : end])[0].strip()
            text = text[: match.end()] + first + (f", {blocks}" if blocks else "") + text[end:]
        return text

    return edit


def padded(text: str) -> str:
    """Rows of shared arrays, and what is called a pitch or a stride, are one element longer."""
    if _PITCH.search(text):
        return _PITCH.sub(r"\g<1>(\g<2>) + 1\g<3>", text)
    return _SHARED.sub(r"\g<1>[(\g<2>) + 1]", text)


def contracted(text: str) -> str:
    """Products and sums that round by themselves may become multiply-adds."""
    for name, sign in _ROUNDED.items():
        while (start := text.find(name + "(")) >= 0:
            opening = start + len(name)
            end = closing(text, opening)
            sides = [each.strip() for each in _arguments(text[opening + 1 : end])]
            if len(sides) != 2:  # a declaration, or not a call
                break
            text = f"{text[:start]}(({sides[0]}) {sign} ({sides[1]})){text[end + 1 :]}"
    return text


def in_float(text: str) -> str:
    """Literals are of single precision."""
    return _FLOATING.sub(r"\g<0>f", text)


def cached(text: str) -> str:
    """Loads that pass by L1 go through it."""
    return _UNCACHED.sub("__ldca(", text)


def constants(text: str) -> Iterator[tuple[str, int]]:
    """Integer constants that a source defines, with their values."""
    for match in _CONSTANT.finditer(text):
        yield match[1] or match[2], int(match[3])


def with_constant(name: str, value: int) -> Edit:
    """A constant has another value."""

    def other(match: re.Match[str]) -> str:
        own = (match[1] or match[2]) == name
        return match[0][: match.start(3) - match.start()] + str(value) if own else match[0]

    return lambda text: _CONSTANT.sub(other, text)
