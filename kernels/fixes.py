"""Writes the memory of recorded fixes: `python -m kernels.fixes [FOLDER...]`

The rows of the recorded pairs are written again, and those of folders of published ones, whose
pair.yaml has their source; rows of other sources stay. Only numbers are kept: reports of others are
read where they are.
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
from profkit.score.pair_archive import unpacked
from profkit.score.score import NAMED, pairs_in, read_pair

FILE = Path("profkit/rules/fixes.csv")
OWN = "profkit"
ABOUT = ("name", "family", "source", "gpu", "category", "gain")
_LIMITS = {
    f"occupancy_limit_{limit}": [
        f"occupancy_limit_{other}"
        for other in ("registers", "shared", "warps", "blocks")
        if other != limit
    ]
    for limit in ("registers", "shared", "blocks")
}
NAMES = (
    *(f"{name}_busy" for name in (
        "dram", "l2", "l1", "lsu_data", "issue", "tensor", "fma", "alu", "fp64", "xu", "lsu",
    )),
    *(f"stall_{name} / warp_latency" for name in (
        "barrier", "branch_resolving", "lg_throttle", "long_scoreboard", "math_pipe_throttle",
        "membar", "mio_throttle", "no_instruction", "not_selected", "short_scoreboard", "wait",
    )),
    *(f"{name}_instructions / instructions_executed" for name in (
        "local_memory", "global_memory", "shared_memory", "global_atomic", "shared_atomic",
        "integer", "control", "conversion", "special", "fp32", "fp64", "half", "tensor", "barrier",
        "shuffle",
    )),
    "threads_per_instruction / 32",
    "occupancy_theoretical",
    "occupancy_achieved",
    *(f"min(2, min({', '.join(others)}) / {limit})" for limit, others in _LIMITS.items()),
    "min(1, grid_size / sm_count)",
    "waves / ceil(waves)",
    "sm_imbalance",
    "global_excessive_share",
    # there is none where shared memory is not used
    "otherwise(shared_excessive_share, 0 * instructions_executed)",
    "min(2, dram_read_bytes / l2_read_bytes)",
    "dram_write_share",
)  # fmt: skip
_DIGITS = 3


def rows(folder: Path) -> Iterator[dict[str, str]]:
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
            about = (pair.name, pair.family, pair.source or OWN, before.gpus[0].name, pair.category)
            yield {
                **dict(zip(ABOUT, (*about, f"{gain:.{_DIGITS}g}"), strict=True)),
                **{
                    name: "" if math.isnan(share) else f"{share:.{_DIGITS}g}"
                    for name, share in zip(NAMES, described, strict=True)
                },
            }


def main(arguments: list[str]) -> int:
    folders = [Path("reports/h200/pairs"), *map(Path, arguments)]
    found = [row for folder in folders for row in rows(folder)]
    sources = {row["source"] for row in found}
    kept = []
    if FILE.exists():
        with FILE.open(encoding="utf-8", newline="") as file:
            kept = [row for row in csv.DictReader(file) if row["source"] not in sources]
    with FILE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, (*ABOUT, *NAMES), restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted([*kept, *found], key=lambda row: (row["source"], row["name"])))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
