"""Writes the gains that ranges are calibrated with: `python -m kernels.gains [SCORE.json]`

They are what was estimated and measured of each recorded pair whose defect was found
(profkit/rules/calibration.py). The estimates do not depend on the calibration. SCORE.json is what
`profkit rules score --sets DIR... --format json` writes of published pairs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kernels.fixes import OWN
from kernels.proof import score

FILE = Path("profkit/rules/gains.json")
_DIGITS = 4  # more than any timing has


def gains(pairs: Iterable[Mapping[str, Any]], kept: Iterable[Mapping[str, Any]] = ()) -> str:
    """The gains of pairs in the output of `profkit rules score`, and kept ones, one a line."""
    known = (pair["gain"] for pair in pairs if pair["gain"])
    rows = [
        {name: float(f"{each:.{_DIGITS}g}") if isinstance(each, float) else each
         for name, each in sorted(gain.items())}
        for gain in known
    ]  # fmt: skip
    ordered = sorted(
        [*rows, *kept], key=lambda row: (row["source"] != OWN, *map(str, row.values()))
    )
    return "[\n  " + ",\n  ".join(map(json.dumps, ordered)) + "\n]\n"


def main(arguments: list[str]) -> int:
    read = [json.loads(Path(path).read_text(encoding="utf-8")) for path in arguments]
    published = [pair for scored in read for pair in scored["pairs"] if pair["source"]]
    known = json.loads(FILE.read_text(encoding="utf-8"))
    kept = [] if published else [row for row in known if row["source"] != OWN]
    FILE.write_text(gains([*score()["pairs"], *published], kept), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
