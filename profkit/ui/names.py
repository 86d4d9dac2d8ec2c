"""Names in few characters, those that differ looking different."""

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from profkit.core.grouping import grouped
from profkit.ui.text import cut, shorten

_RETURNS_NOTHING = "void "
_NAMESPACES = re.compile(r"(?:\b[A-Za-z_]\w*::|<unnamed>::|\(anonymous namespace\)::)+")
_WORD = re.compile(r"[\w:]*\Z")


def told_apart(names: Iterable[str], width: int) -> Mapping[str, str]:
    """Kernel names in at most `width` characters, those that differ looking different.

    What is too long loses its namespaces first and then its middle; where that makes names of
    several kernels equal, they are shortened to their beginning and the place where they differ.
    """
    bare = {}
    for name in names:
        text = name.removeprefix(_RETURNS_NOTHING)
        bare[name] = text if len(text) <= width else _NAMESPACES.sub("", text)
    for group in _by_text(bare):
        if len(group) > 1:
            bare |= {name: name for name in group}
    shown = {name: shorten(text, width) for name, text in bare.items()}
    for group in _by_text(shown):
        if len(group) > 1:
            shown |= _distinct({name: bare[name] for name in group}, width)
    return shown


def own_names(names: Iterable[str]) -> Mapping[str, str]:
    """Demangled names without return type, namespaces, templates and parameters, where what is left
    is unique: `flash_fwd_kernel`. Others are returned unchanged."""
    own = {name: own_name(name) for name in names}
    texts = list(own.values())
    return {name: text if texts.count(text) == 1 else name for name, text in own.items()}


@lru_cache(maxsize=10_000)
def own_name(name: str) -> str:
    """The function's own name: what is left outside brackets, its last word before the last pair of
    round ones."""
    text, depth = "", 0
    for character in name.replace("(anonymous namespace)::", "").replace("->", ""):
        depth -= character in ">)"
        text += character if depth == 0 and character not in "<>)" else ""
        depth += character in "<("
    words = text.partition("(")[0].replace("::", " ").split()
    return words[-1] if words and depth == 0 else name


def _distinct(bare: Mapping[str, str], width: int) -> Mapping[str, str]:
    """Names with equal beginnings and ends: the beginning and the text from where they differ."""
    ends = zip(min(bare.values()), max(bare.values()), strict=False)
    same = "".join(first for first, _ in itertools.takewhile(lambda pair: pair[0] == pair[1], ends))
    word = _WORD.search(same)
    head = max(1, width // 3)
    start = max(head, word.start() if word else len(same))
    if len(same) - start > width // 3:
        start = len(same)
    shown = {
        name: f"{text[:head]}…{cut(text[start:], width - head - 1)}" for name, text in bare.items()
    }
    for group in _by_text(shown):
        if 1 < len(group) < len(bare):
            shown |= _distinct({name: bare[name] for name in group}, width)
    return shown


def _by_text(shown: Mapping[str, str]) -> Sequence[Sequence[str]]:
    return list(grouped((text, name) for name, text in shown.items()).values())
