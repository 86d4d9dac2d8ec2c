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
    """The row of a pair with a link to the defect's line, or to the file that holds both sides."""
    recorded = pair.read(row[1].replace("\\", ""))
    names = ("before.cu", "sides.py", "pair.yaml")
    source = next(name for name in names if (recorded.folder / name).is_file())
    line = f"#L{recorded.line}" if recorded.line and source == names[0] else ""
    return f"| [{row[1]}]({_SOURCES}/{recorded.name}/{source}{line}) |"
