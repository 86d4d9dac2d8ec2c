"""Writes the residuals that ranges are calibrated with: `python -m kernels.residuals`

They are the estimated and the measured factor of each recorded pair whose defect was found
(profkit/rules/calibration.py). The estimated ones do not depend on the calibration.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kernels.proof import score

FILE = Path("profkit/rules/residuals.json")
_DIGITS = 4  # more than any timing has


def residuals(scored: Mapping[str, Any]) -> str:
    """The residuals in the output of `profkit rules score`, one a line."""
    rows = sorted(
        (
            pair["basis"],
            pair["family"],
            float(f"{pair['estimated']:.{_DIGITS}g}"),
            float(f"{pair['achieved']:.{_DIGITS}g}"),
        )
        for pair in scored["pairs"]
        if pair["basis"]
    )
    keys = ("basis", "family", "estimated", "measured")
    lines = (json.dumps(dict(zip(keys, row, strict=True))) for row in rows)
    return "[\n  " + ",\n  ".join(lines) + "\n]\n"


def main() -> int:
    FILE.write_text(residuals(score()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
