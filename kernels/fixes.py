"""Writes the memory of recorded fixes: `python -m kernels.fixes [SOURCE=FOLDER...]`

The rows of the recorded pairs are written again, and those of each SOURCE from a folder of pairs,
or of the sources that its pairs name; rows of other sources stay. Only numbers are kept: reports of
others are read where they are.
"""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import profkit
from profkit.core.errors import ProfkitError
from profkit.rules.memory import FEWEST, features
from profkit.rules.pair_archive import unpacked
from profkit.rules.score import NAMED, pairs_in, read_pair

FILE = Path("profkit/rules/fixes.csv")
OWN = "profkit"
ABOUT = ("name", "family", "source", "gpu", "category", "gain")
RESOURCES = (
    "dram", "l2", "l1", "lsu_data", "issue", "tensor", "fma", "alu", "fp64", "xu", "lsu",
)  # fmt: skip
STALLS = (
    "barrier", "branch_resolving", "lg_throttle", "long_scoreboard", "math_pipe_throttle", "membar",
    "mio_throttle", "no_instruction", "not_selected", "short_scoreboard", "wait",
)  # fmt: skip
NAMES = (*(f"{name}_busy" for name in RESOURCES), *(f"stall_{name}" for name in STALLS))
_DIGITS = 3


def rows(source: str, folder: Path) -> Iterator[dict[str, str]]:
    """The pairs below a folder whose fix gained something."""
    with unpacked(folder) as places:
        for place in pairs_in(places):
            pair = read_pair(place)
            if pair.category is None or pair.kind == "no_gain":
                continue
            try:
                before = profkit.load(pair.before).summary
                gain = pair.achieved
                if math.isnan(gain) and pair.after:
                    gain = before.total / profkit.load(pair.after).summary.total
            except (ProfkitError, ZeroDivisionError) as error:
                print(f"{place.name}: left out: {error}", file=sys.stderr)
                continue
            if not gain >= NAMED:
                continue
            values = max(before.groups, key=lambda group: group.total).typical.values
            described = features(values, NAMES)
            if np.count_nonzero(np.isfinite(described)) < FEWEST:
                continue
            publisher = pair.source or source
            about = (pair.name, pair.family, publisher, before.gpus[0].name, pair.category)
            yield {
                **dict(zip(ABOUT, (*about, f"{gain:.{_DIGITS}g}"), strict=True)),
                **{
                    name: "" if math.isnan(share) else f"{share:.{_DIGITS}g}"
                    for name, share in zip(NAMES, described, strict=True)
                },
            }


def main(arguments: list[str]) -> int:
    folders = {OWN: Path("reports/h200/pairs")}
    folders |= {name: Path(folder) for name, _, folder in (one.partition("=") for one in arguments)}
    found = [row for source, folder in folders.items() for row in rows(source, folder)]
    written = {*folders, *(row["source"] for row in found)}
    kept = []
    if FILE.exists():
        with FILE.open(encoding="utf-8", newline="") as file:
            kept = [row for row in csv.DictReader(file) if row["source"] not in written]
    with FILE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, (*ABOUT, *NAMES), restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted([*kept, *found], key=lambda row: (row["source"], row["name"])))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
