"""How many replay passes ncu takes for metrics and sections, computed without a GPU.

Five kinds of metrics take passes of their own: those that hardware counts, which NVIDIA's PerfWorks
library schedules; those of patched machine code, by counter and by instruction; warp samples; and
samples over time. Metrics of the launch and of the device take none.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from profkit.capture.chips import CAPABILITIES
from profkit.capture.pass_table import estimated, named
from profkit.capture.perfworks import library_path
from profkit.capture.sections import (
    OVER_TIME,
    kind,
    section_metrics,
    section_names,
    underived,
)

Source = Literal["library", "table"]
"""What a count comes from: NVIDIA's PerfWorks library, or the table that comes with profkit."""

_TIMEOUT = 60.0  # s, chosen: the slowest chip takes 3 s for every set
_PATCHED = 33  # counters of one pass with patched code: 33 took one on an H200, 48 took two


@dataclass(frozen=True)
class Passes:
    """Replay passes, and the metrics and sections that the chip doesn't have.

    `problem` is why the library was not used, "" where it was.
    """

    count: int
    unknown: tuple[str, ...]
    source: Source
    problem: str = ""


@dataclass(frozen=True)
class _Parts:
    """Metrics by what counts them. Those sampled over time are scheduled by group; `composed` are
    groups that ncu's authors made for a pass each."""

    hardware: Sequence[str]
    by_instruction: bool
    samples: bool
    composed: int
    over_time: Sequence[Sequence[str]]


def passes(chip: str, metrics: Sequence[str]) -> Passes:
    """The passes that metrics and sections take together on a chip, `GH100`."""
    return passes_of_each(chip, [metrics])[0]


def passes_of_each(chip: str, lists: Sequence[Sequence[str]]) -> list[Passes]:
    """The passes of each of several lists of metrics and sections."""
    parts = [_parts(_expanded(chip, names)) for names in lists]
    questions = [(part.hardware, part.over_time) for part in parts]
    asked = _asked(chip, json.dumps(questions))
    problem = asked.get("problem", "")
    schedules, absent = asked["schedules"], set(asked["unknown"])
    return [
        Passes(
            (named(chip, names) if problem else None) or _count(part, schedule),
            tuple(name for name in names if _is_unknown(name, absent)),
            "table" if problem else "library",
            problem,
        )
        for names, part, schedule in zip(lists, parts, schedules, strict=True)
    ]


def _expanded(chip: str, names: Iterable[str]) -> list[str]:
    """Metrics, and those of sections."""
    listed = section_names()
    capability = CAPABILITIES.get(chip, "")
    metrics: list[str] = []
    for name in names:
        metrics += section_metrics(name, capability) if name in listed else [name]
    return underived(metrics)


def _parts(metrics: Iterable[str]) -> _Parts:
    by_kind: dict[str, set[str]] = defaultdict(set)
    for name in metrics:
        by_kind[kind(name)].add(name)
    composed: set[str] = set()
    over_time: dict[str, list[str]] = {}
    for name in sorted(by_kind["over_time"]):
        group, _, metric = name.removeprefix(OVER_TIME).rpartition(":")
        if "__" in metric:
            over_time.setdefault(group, []).append(metric)
        else:
            composed.add(metric)
    return _Parts(
        sorted(by_kind["hardware"]),
        bool(by_kind["by_instruction"]),
        bool(by_kind["samples"]),
        len(composed),
        list(over_time.values()),
    )


def _count(part: _Parts, schedule: Mapping[str, int]) -> int:
    """ncu's count, which is one more than the parts take where those are several: so measured on an
    H200 with each section and set alone."""
    count = (
        schedule["hardware"]
        + -(-schedule["patched"] // _PATCHED)
        + part.by_instruction
        + part.samples
        + part.composed
        + schedule["sampled"]
    )
    return count + 1 if count > 1 else 1


def _is_unknown(name: str, absent: Container[str]) -> bool:
    """Whether a name that was asked for is no section, and stands for no metric of the chip."""
    if "__" not in name:
        return name not in section_names()
    part = _parts(underived([name]))
    return any(
        metric in absent for metrics in (part.hardware, *part.over_time) for metric in metrics
    )


@cache
def _asked(chip: str, questions: str) -> Mapping[str, Any]:
    """The answer of the library, or of the table with the `problem` that there is none."""
    answer = _from_library(chip, questions)
    if "problem" not in answer:
        return answer
    return answer | estimated(chip, json.loads(questions))


def _from_library(chip: str, questions: str) -> dict[str, Any]:
    path = library_path()
    if path is None:
        return {"problem": "the ncu-report package has no PerfWorks library"}
    question = {"library": str(path), "chip": chip, "lists": json.loads(questions)}
    try:
        finished = subprocess.run(
            [sys.executable, "-m", "profkit.capture.perfworks"],
            input=json.dumps(question),
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            check=False,
        )
        answer: dict[str, Any] = json.loads(finished.stdout)
    except subprocess.TimeoutExpired:
        return {"problem": f"the PerfWorks library didn't answer within {_TIMEOUT:.0f} s"}
    except (OSError, ValueError):
        return {"problem": "the PerfWorks library failed"}
    return answer
