"""Writes the residuals that ranges are calibrated with: `python -m kernels.residuals [SCORE.json]`

They are the estimated and the measured factor of each recorded pair whose defect was found
(profkit/rules/calibration.py). The estimated ones do not depend on the calibration. SCORE.json is
what `profkit rules score --sets DIR... --format json` writes of published pairs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kernels.fixes import OWN
from kernels.proof import score

FILE = Path("profkit/rules/residuals.json")
_DIGITS = 4  # more than any timing has


def residuals(pairs: Iterable[Mapping[str, Any]], kept: Iterable[Mapping[str, Any]] = ()) -> str:
    """The residuals of pairs in the output of `profkit rules score`, and kept ones, one a line."""
    rows = [
        {
            "basis": pair["basis"],
            "family": pair["family"],
            "estimated": float(f"{pair['estimated']:.{_DIGITS}g}"),
            "measured": float(f"{pair['achieved']:.{_DIGITS}g}"),
            "source": pair["source"] or OWN,
        }
        for pair in pairs
        if pair["basis"]
    ]
    ordered = sorted(
        [*rows, *kept], key=lambda row: (row["source"] != OWN, *map(str, row.values()))
    )
    return "[\n  " + ",\n  ".join(map(json.dumps, ordered)) + "\n]\n"


def main(arguments: list[str]) -> int:
    read = [json.loads(Path(path).read_text(encoding="utf-8")) for path in arguments]
    published = [pair for scored in read for pair in scored["pairs"] if pair["source"]]
    known = json.loads(FILE.read_text(encoding="utf-8"))
    kept = [] if published else [row for row in known if row.get("source", OWN) != OWN]
    FILE.write_text(residuals([*score()["pairs"], *published], kept), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
