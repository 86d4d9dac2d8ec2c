"""The records of a history: what is followed over time, under which conditions, and one point."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal


@dataclass(frozen=True)
class Series:
    """What is followed over time; "" where a field is not known."""

    target: str
    variant: str
    shape: str
    gpu_model: str
    branch: str


@dataclass(frozen=True)
class Conditions:
    """How a point was measured: a change here is a change of method, hardware or driver.

    No field is a reading (a clock, a temperature, a time); "" where it is not known.
    """

    gpu_uuid: str
    driver: str
    cuda: str
    clock_policy: str
    timer: str
    cache_policy: str
    profkit: str


@dataclass(frozen=True)
class Point:
    """One run of a series: the medians of its blocks in the order measured.

    `time` is UTC; `run` is the content id of the run, so that adding it twice makes no second
    point; `source` is the path or URL that was added. `commit` ends with `-dirty`, as git describe
    has it, where the tree had changes beside it; `parent` is then the commit itself.
    """

    series: Series
    conditions: Conditions
    time: datetime
    run: str
    source: str
    commit: str
    parent: str
    block_medians: tuple[float, ...]
    unit: Literal["s"] = "s"
