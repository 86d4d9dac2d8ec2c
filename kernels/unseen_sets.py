"""The figures of sets that are not in this repository: `python -m kernels.unseen_sets SCORE.json`

SCORE.json is what `profkit rules score --sets DIR... --format json` writes of them. Their parts are
kept (kernels/unseen_sets.json): reports of others are read where they are.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import convert

from profkit.score.score import Part

FILE = Path(__file__).with_suffix(".json")
PARTIAL = "partial reports"
_OPTIONAL = ("change", "related_change")


def parts() -> Mapping[str, Part]:
    """The part of each set, those of partial reports last, by its name."""
    known: Mapping[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return {name: convert(_real(part), Part) for name, part in known.items()}


def _real(part: Any) -> Any:
    """A part with NaN where a number is unknown."""
    if not isinstance(part, dict):
        return math.nan if part is None else part
    return {name: each if name in _OPTIONAL else _real(each) for name, each in part.items()}


def main(arguments: list[str]) -> int:
    (path,) = map(Path, arguments)
    score = json.loads(path.read_text(encoding="utf-8"))
    partial = {f"{name}, {PARTIAL}": part for name, part in score["partial"].items()}
    text = json.dumps({**score["sets"], **partial}, indent=1)
    FILE.write_text(f"{text}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
