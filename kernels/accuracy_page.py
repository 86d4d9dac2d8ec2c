"""docs/reference/accuracy.md: the score of the recorded pairs, each linked to its source."""

from __future__ import annotations

import re

from kernels import pair

_SOURCES = "../../kernels/pairs"
_LEFT_OUT = "### Headrooms that differ"
_ROW = re.compile(r"^\| ([a-z](?:\w|\\_)*) \|", re.MULTILINE)


def accuracy_page(scored: str) -> str:
    """The page from what `profkit rules score --format markdown` prints, without its lists of
    differing headrooms, misses and false alarms."""
    text = scored.partition(_LEFT_OUT)[0].rstrip()
    head, title, pairs = text.partition("### Pairs\n")
    rows, applications, rest = pairs.partition("### Applications\n")
    return f"{head}{title}{_ROW.sub(_linked, rows)}{applications}{rest}\n"


def _linked(row: re.Match[str]) -> str:
    recorded = pair.read(row[1].replace("\\", ""))
    launches = recorded.launches[pair.BEFORE]
    line = f"#L{recorded.line}" if recorded.line else ""
    source = f"{launches[0].file}{line}" if launches else "sides.py"
    return f"| [{row[1]}]({_SOURCES}/{recorded.name}/{source}) |"
