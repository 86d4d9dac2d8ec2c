"""Suggestions for misspelled names."""

import difflib
from collections.abc import Callable, Iterable

_ALIKE = 0.6
"""The default similarity threshold of difflib.get_close_matches (2 M / T, Ratcliff-Obershelp)."""


def did_you_mean(
    name: str,
    known: Iterable[str],
    otherwise: str = "",
    *,
    most: int = 1,
    alike: float = _ALIKE,
    spelled: Callable[[str], str] = str,
) -> str:
    """`did you mean dram_bytes?`, the closest of the known names; `otherwise` where none is close.

    At most `most` names of at least this similarity, each formatted by `spelled`.
    """
    close = difflib.get_close_matches(name, list(known), most, alike)
    return f"did you mean {' or '.join(map(spelled, close))}?" if close else otherwise
