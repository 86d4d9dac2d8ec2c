"""docs/reference/accuracy.md: the score of the recorded pairs, each linked to its source."""

from __future__ import annotations

import re

from kernels import pair

_SOURCES = "../../kernels/pairs"
_LEFT_OUT = "### Headrooms that differ"
_ROW = re.compile(r"^\| ([a-z](?:\w|\\_)*) \|", re.MULTILINE)
_OWN = "### All pairs\n"
_UNSEEN = """\
### Kernels not used for tuning

Ranges are calibrated to hold 80% of the recorded pairs. On kernels that no rule had been tuned for
they held the measured speedup less often; a pair without an estimate is outside.

| Kernels | Pairs | First | Top 3 | Factor | In range | ncu first | ncu top 3 |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
| HPC benchmarks, H200 | 20 | 25% | 60% | 1.24x | 65% | 20% | 35% |
| machine learning, H200 | 18 | 72% | 83% | 2.45x | 61% | 39% | 50% |
| both kinds, before they were looked at, H200 | 23 | 87% | 91% | 1.55x | 65% | 35% | 52% |
| both kinds, nothing changed since, H200 | 16 | 60% | 73% | 1.35x | 56% | 20% | 47% |
| nine repositories, H200 | 41 | 46% | 66% | 1.58x | 46% | 37% | 51% |
| published reports of 20 GPUs, all metrics | 33 | 39% | 88% | 1.32x | 82% | 27% | 39% |
| published reports, basic or partial sets | 13 | 0% | 0% | 2.04x | 0% | 8% | 8% |

These figures are of the order by estimates alone, before fixes that change numerics stood apart.
With these apart 56% of 34 published with all metrics had their cause first, and 68% by the fixes of
similar kernels too, with those recorded on an H200 as the memory; 85% had it among the first three.
Where the first was called likely it was right on 9 of 12, where it was called open on 10 of 20, of
which 17 had the cause among the first two.

Of seven fixes without a gain in the nine repositories, the first finding predicted 1.1x or more for
five. Measured from 2026-11-22 to 24.

"""
"""Measured once; the kernels are not in this repository."""


def accuracy_page(scored: str) -> str:
    """The page from what `profkit rules score --format markdown` prints, without its lists of
    differing headrooms, misses and false alarms, and with other kernels' figures."""
    text = scored.partition(_LEFT_OUT)[0].rstrip().replace(_OWN, _UNSEEN + _OWN)
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
