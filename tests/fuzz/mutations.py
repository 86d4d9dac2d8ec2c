"""Ways to spoil a valid file: bytes and texts at random, and documents by their structure."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import yaml

DIGITS = "9" * 5000
TOKENS = (
    b"[" * 3000, b"{" * 3000, b"{a: " * 2000, b"- " * 2000, b'{"a":' * 3000, b"(" * 300,
    DIGITS.encode(), b"-" * 300, b"1e999", b"NaN", b"-Infinity", b"0x" + b"f" * 900, b"**9**9**9",
    b"&a [*a]", b"*a", b"<<: *a", b"\n<<: [*a, *a]\n", b"!!python/object:os.system x", b"!!int x",
    b"!!timestamp x", b"2026-13-45", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\\ud800",
    b"\x00", b"\x1b[31m", b"\r\n", b"\t", b'"', b"'", b"#", b",", b":", b"}", b"]", b"---\n", b"%",
    "\u202e\u2028µ𝟙٣".encode(), b"x" * 20_000, b"../" * 50, b"A" * 300 + b" ", b"1" + b"0" * 400,
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**63, -(2**63), 10**30, 10**99, 1e308, -1e308, 5e-324, 1e-30,
    "", " ", "x", "x" * 5000, "\x00", "\x1b[2J", "\u202e", "../../etc/passwd", "2026-13-45",
    "9" * 400, "nan", "1e400", "a\nb", "{}", "%", "[bold]x[/]", [], {}, [[]], [None], [1, "x"],
    {"": {}}, {"a": {"b": {"c": []}}}, ["x"] * 300, list(range(300)), float("nan"), float("inf"),
)  # fmt: skip


def spoiled_bytes(data: bytes, chance: random.Random, head: int = 0) -> bytes:
    """One to four random changes, half of them within the first `head` bytes where there is one."""
    spoiled = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        if not spoiled:
            break
        end = min(head, len(spoiled)) if head and chance.random() < 0.5 else len(spoiled)
        chance.choice(_ON_BYTES)(spoiled, chance.randrange(end), chance)
    return bytes(spoiled)


def _flip(data: bytearray, at: int, chance: random.Random) -> None:
    data[at] ^= 1 << chance.randrange(8)


def _put(data: bytearray, at: int, chance: random.Random) -> None:
    data[at] = chance.choice((0, 0xFF, 0x7F, 0x80, chance.randrange(256)))


def _cut(data: bytearray, at: int, _: random.Random) -> None:
    del data[at:]


def _drop(data: bytearray, at: int, chance: random.Random) -> None:
    del data[at : at + chance.choice((1, 4, 100))]


def _insert(data: bytearray, at: int, chance: random.Random) -> None:
    data[at:at] = chance.choice(TOKENS)


def _repeat(data: bytearray, at: int, chance: random.Random) -> None:
    data[at:at] = data[at : at + chance.choice((8, 200, 2000))] * chance.choice((1, 5))


_ON_BYTES: tuple[Callable[[bytearray, int, random.Random], None], ...] = (
    _flip, _put, _cut, _drop, _insert, _insert, _insert, _repeat,
)  # fmt: skip


def spoiled_document(document: Any, chance: random.Random) -> Any:
    """A copy with one to three of its values replaced, removed, moved or doubled."""
    document = json.loads(json.dumps(document))
    for _ in range(chance.randint(1, 3)):
        places = list(_places(document))
        if not places:
            return chance.choice(VALUES)
        inside, key = chance.choice(places)
        _change(inside, key, chance)
    return document


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each value below one, as what holds it and its key; of long lists the first ones."""
    if isinstance(value, dict):
        items: list[tuple[Any, Any]] = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value[:20]))
    else:
        return
    for key, inner in items:
        yield value, key
        yield from _places(inner)


def _change(inside: Any, key: Any, chance: random.Random) -> None:
    match chance.randrange(6):
        case 0:
            del inside[key]
        case 1 if isinstance(inside, dict):
            inside[chance.choice(("", "x" * 300, "a\x00", "nan", *inside))] = inside.pop(key)
        case 2 if isinstance(inside, list):
            inside += inside[:50] * chance.choice((1, 20))
        case 3:
            for _ in range(chance.choice((5, 45, 60))):
                inside[key] = [inside[key]]
        case _:
            inside[key] = deepcopy(chance.choice(VALUES))


def as_json(document: Any) -> bytes:
    """As Python writes it, NaN and lone surrogates too."""
    return json.dumps(document).encode()


def as_yaml(document: Any) -> bytes:
    return yaml.safe_dump(document, allow_unicode=True, default_flow_style=None).encode()


def expression(chance: random.Random, names: tuple[str, ...], depth: int = 4) -> str:
    """An expression as rules and gates have them, or nearly one."""
    if depth == 0 or chance.random() < 0.2:
        return chance.choice((*names, "0", "1.5", "2e6", "1e999", DIGITS[:400], "0x" + "f" * 300))
    inner = [expression(chance, names, depth - 1) for _ in range(3)]
    forms = (
        "{} + {}", "{} - {}", "{} * {}", "{} / {}", "-{}", "not {}", "({})", "{} > {}", "{} == {}",
        "{} and {}", "{} or {}", "min({}, {})", "where({}, {}, {})", "known({})", "sqrt({})",
        "clip({}, {}, {})", "more_warps({}, {}, {})", "otherwise({}, {})", "{} ** {}",
        "{} if {} else {}", "[{}]", "{}[{}]", "{}.x", "lambda: {}", "{} := {}", "f'{}'", "{} % {}",
        "{} << {}", "min(*{})", "{}({})", "max({})", "ceil({})", "{} is {}", "...", "{}, {}",
        "{} < {} < {}", "'{}'",
    )  # fmt: skip
    return chance.choice(forms).format(*inner)
