"""Turns a `.cu` file into C++ that g++ compiles against the emulator's headers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tests.emulator.errors import Fault, NotEmulated

Defines = Sequence[tuple[str, str | int]]

INCLUDE = Path(__file__).parent / "include"

_TOKENS = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b[^\n]*", re.MULTILINE)
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define\b.*(?:(?<=\\)\n.*)*", re.MULTILINE)
_ASM = re.compile(r"\b(?:asm|__asm__|__asm)\b")
_KERNEL_LINKAGE = re.compile(r'\bextern\s+"C"\s+(?=(?:static\s+)?__global__\b)')
_DYNAMIC = re.compile(
    r"\bextern\s+(?P<before>(?:(?:__align__|alignas)\s*\([^)]*\)\s*)*)__shared__\s+"
    r"(?P<after>(?:(?:__align__|alignas)\s*\([^)]*\)\s*)*)"
    r"(?P<type>[\w:]+(?:\s+[\w:]+)*?)\s+(?P<name>\w+)\s*\[\s*\]\s*;"
)
_ALIGNED = re.compile(r"(?<=\b__shared__)\s+alignas\b")  # g++ takes only the attribute there
_ALIGNMENT = re.compile(r"(?:__align__|alignas)\s*\(([^)]*)\)")
_STAND_IN = re.compile(
    r"^// PTX: (?P<ptx>.*)\n(?:template <.*>\n)?[\w ]+?[ *&](?P<name>\w+)\(", re.MULTILINE
)


def translate(text: str, path: str, kernel: str, defines: Defines = ()) -> str:
    """C++ in place of the CUDA text; raises NotEmulated for inline PTX without a stand-in."""
    plain = _masked(text)
    if not re.search(rf"__global__[^;{{]*\b{kernel}\s*\(", plain):
        raise Fault(f"{path} has no __global__ function {kernel}")
    alignments = ["16"]
    edits = [(m.start(), m.end(), "") for m in _INCLUDE.finditer(plain)]
    includes = [text[start:end].strip() for start, end, _ in edits]
    edits += [(m.start(), m.end(), "") for m in _KERNEL_LINKAGE.finditer(text)]
    edits += _without_asm(text, plain, path)
    for match in _DYNAMIC.finditer(plain):
        alignments += _ALIGNMENT.findall(match["before"] + match["after"])
        kind, name = match["type"], match["name"]
        new = f"static {kind}*& {name} = reinterpret_cast<{kind}*&>(emulator::dynamic_base);"
        edits.append((match.start(), match.end(), new))
    edits += [
        (m.start(), m.end(), " __align__")
        for m in _ALIGNED.finditer(plain)
        if not any(start <= m.start() < end for start, end, _ in edits)
    ]
    body = _edited(text, edits)
    aligned = ", ".join(f"size_t({alignment})" for alignment in alignments)
    return "\n".join(
        [
            "#include <device.h>",
            *(f"#define {name} {value}" for name, value in defines),
            "#include <element.h>",
            *includes,
            "#undef assert",
            "#define assert(x) ((x) ? (void)0 : emulator::fail(__LINE__, "
            '"assertion failed: %s", #x))',
            "namespace {",
            f'#line 1 "{path}"',
            body,
            "}",
            '#line 1 "entry"',
            '#define ENTRY extern "C" __attribute__((visibility("default")))',
            "ENTRY const char* emulator_signature() {",
            f"  return emulator::signature(&{kernel});",
            "}",
            "ENTRY int emulator_run(emulator::Launch* launch) {",
            f"  const auto body = [](void** passed) {{ emulator::call(&{kernel}, passed); }};",
            f"  return emulator::run(*launch, body, {{{aligned}}});",
            "}",
            "",
        ]
    )


def _masked(text: str) -> str:
    """The text with comments and the insides of literals blanked, character by character."""

    def blank(match: re.Match[str]) -> str:
        token = match[0]
        if token[0] == "/":
            return re.sub(r"[^\n]", " ", token)
        return token[0] + " " * (len(token) - 2) + token[-1]

    return _TOKENS.sub(blank, text)


def _edited(text: str, edits: list[tuple[int, int, str]]) -> str:
    """The text with its parts replaced; every line keeps its number."""
    for start, end, new in sorted(edits, reverse=True):
        lines = text.count("\n", start, end) - new.count("\n")
        text = text[:start] + new + "\n" * lines + text[end:]
    return text


def _without_asm(text: str, plain: str, path: str) -> list[tuple[int, int, str]]:
    """Edits that put the emulator's function in the place of each one with inline PTX."""
    known = _stand_ins()
    macros = "".join(_DEFINE.findall(text))  # they may hold parts of an instruction
    edits: dict[tuple[int, int], str] = {}
    declared: set[str] = set()
    for asm in _ASM.finditer(plain):
        if any(start <= asm.start() < end for start, end in edits):
            continue
        start, name, end = _function_around(plain, asm.start(), path)
        where = f"{path}:{plain.count(chr(10), 0, asm.start()) + 1}: {name}()"
        if name not in known:
            raise NotEmulated(f"{where} is inline PTX and the emulator has no stand-in for it")
        for part in known[name]:
            if not any(choice in text[start:end] + macros for choice in part.split("|")):
                raise NotEmulated(f"{where} must be {' '.join(known[name])}; it has no {part}")
        edits[start, end] = "" if name in declared else f"using emulator::{name};"
        declared.add(name)
    return [(start, end, new) for (start, end), new in edits.items()]


@cache
def _stand_ins() -> dict[str, list[str]]:
    """The emulator's functions, with what the PTX that each stands for must contain."""
    found = (_STAND_IN.finditer(file.read_text(encoding="utf-8")) for file in INCLUDE.glob("*.h"))
    return {match["name"]: match["ptx"].split() for matches in found for match in matches}


def _function_around(plain: str, at: int, path: str) -> tuple[int, str, int]:
    """The start, name and end of the function whose body `at` is in."""
    depth, opening = 0, -1
    for position, character in enumerate(plain[:at]):
        if character == "{":
            if depth == 0 and plain[:position].rstrip().endswith(")"):
                opening = position
            depth += opening >= 0
        elif character == "}" and opening >= 0:
            depth -= 1
            if depth == 0:
                opening = -1
    line = plain.count("\n", 0, at) + 1
    if opening < 0:
        raise NotEmulated(f"{path}:{line}: inline PTX outside of a plain function")
    head = plain[:opening].rstrip()
    parameters = _opening_of(head)
    name = re.search(r"(\w+)\s*$", head[:parameters])
    if name is None:
        raise NotEmulated(f"{path}:{line}: inline PTX in a function without a name")
    start = max(head.rfind(mark, 0, parameters) for mark in ";}") + 1
    directive = list(re.finditer(r"^[ \t]*#.*$", head[start:], re.MULTILINE))
    if directive:
        start += directive[-1].end()
    return start + len(head[start:]) - len(head[start:].lstrip()), name[1], _closing(plain, opening)


def _opening_of(head: str) -> int:
    """Where the parenthesis opens that the text's last character closes."""
    depth = 0
    for position in range(len(head) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(head[position], 0)
        if depth == 0:
            return position
    return 0


def _closing(plain: str, opening: int) -> int:
    depth = 0
    for position in range(opening, len(plain)):
        depth += {"{": 1, "}": -1}.get(plain[position], 0)
        if depth == 0:
            return position + 1
    return len(plain)
