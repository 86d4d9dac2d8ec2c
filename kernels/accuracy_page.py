"""docs/reference/accuracy.md: the score of the recorded pairs, each linked to its source."""

from __future__ import annotations

import re

from kernels import pair
from kernels.unseen_sets import parts
from profkit.score.view import set_tables
from profkit.ui.document import Document
from profkit.ui.markdown import document_markdown

_SOURCES = "../../kernels/pairs"
_LEFT_OUT = re.compile(r"### (?:Defects not ranked first|False alarms)")
_PROGRAMS = re.compile(
    r"### Programs\n.*?\n(Cause one of .*?\n)\n### Steps of programs\n.*?(?=### Applications)",
    re.DOTALL,
)
"""Tables of programs, which `profkit rules score --pairs reports/h100/apps` shows; their summary
stays."""
_ROW = re.compile(r"^\| ([a-z](?:\w|\\_)*) \|", re.MULTILINE)
_SETS = "### Sets\n"
_OWN_SET = "\n| h200 "
_UNSEEN = """\
### Kernels not used for tuning

`h200`: the recorded pairs of this repository, used for tuning.
"""
_EARLIER = """\
By estimates alone the first was right on 25% of 20 HPC benchmarks, 72% of 18 machine-learning
kernels and 46% of 41 kernels of nine repositories.

"""
"""Measured once; the kernels are not in this repository."""
_AFTER = "### All pairs\n"


def accuracy_page(scored: str) -> str:
    """The page from what `profkit rules score --format markdown` prints, without its lists of
    defects not ranked first and of false alarms, and with the figures of other sets."""
    text = _PROGRAMS.sub(r"### Programs\n\n\1\n", scored)
    text = _LEFT_OUT.split(text)[0].rstrip()
    for table in set_tables(parts()):
        rows = document_markdown(Document("", (table,))).split(": |\n")[-1].split("\n\n")[0]
        head, title, own = text.partition(f"### {table.title}\n")
        before, first, after = own.partition(_OWN_SET)
        text = f"{head}{title}{before}\n{rows}{first}{after}"
    text = text.replace(_SETS, f"{_UNSEEN}\n{_SETS}").replace(_AFTER, _EARLIER + _AFTER)
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
