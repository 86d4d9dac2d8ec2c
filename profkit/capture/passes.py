"""How many replay passes ncu takes for a list of metrics, computed without a GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from profkit.capture.perfworks import library_path

Source = Literal["library", "table"]
"""What a count comes from: NVIDIA's PerfWorks library, or the table that comes with profkit."""

_TIMEOUT = 60.0  # s, chosen: the slowest chip takes 1.3 s for the whole catalog


@dataclass(frozen=True)
class Passes:
    """Replay passes, and the metrics that the chip doesn't have.

    `problem` is why the library was not used, "" where it was.
    """

    count: int
    unknown: tuple[str, ...]
    source: Source
    problem: str = ""


def passes(chip: str, metrics: Sequence[str]) -> Passes:
    """The passes that metrics take together on a chip, `GH100`."""
    return passes_of_each(chip, [metrics])[0]


def passes_of_each(chip: str, lists: Sequence[Sequence[str]]) -> list[Passes]:
    """The passes of each of several lists of metrics."""
    answer = _asked(chip, json.dumps([list(metrics) for metrics in lists]))
    if problem := answer.get("problem"):
        return [Passes(_estimate(metrics), (), "table", problem) for metrics in lists]
    unknown = set(answer["unknown"])
    return [
        Passes(count, tuple(name for name in metrics if name in unknown), "library")
        for count, metrics in zip(answer["counts"], lists, strict=True)
    ]


def _estimate(metrics: Sequence[str]) -> int:
    # the whole catalog's 213 counters took 27 passes on an H200 (ncu 2025.3.1)
    return -(-len(metrics) * 27 // 213)


@cache
def _asked(chip: str, lists: str) -> Mapping[str, Any]:
    """The answer of the library, or the `problem` that there is none."""
    path = library_path()
    if path is None:
        return {"problem": "the ncu-report package has no PerfWorks library"}
    question = {"library": str(path), "chip": chip, "lists": json.loads(lists)}
    try:
        finished = subprocess.run(
            [sys.executable, "-m", "profkit.capture.perfworks"],
            input=json.dumps(question),
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            check=False,
        )
        answer: Mapping[str, Any] = json.loads(finished.stdout)
    except subprocess.TimeoutExpired:
        return {"problem": f"the PerfWorks library didn't answer within {_TIMEOUT:.0f} s"}
    except (OSError, ValueError):
        return {"problem": "the PerfWorks library failed"}
    return answer
