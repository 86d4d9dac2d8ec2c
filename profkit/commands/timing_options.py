"""Options of the verbs that time a target, spelled once."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Timer(StrEnum):
    """What takes the times."""

    events = "events"
    graph = "graph"
    cupti = "cupti"


class Cache(StrEnum):
    """What L2 holds when a call starts."""

    cold = "cold"
    warm = "warm"


class Device(StrEnum):
    """Where the target runs."""

    cuda = "cuda"
    cpu = "cpu"


class Unit(StrEnum):
    """The unit of a bare list of latencies."""

    s = "s"
    ms = "ms"
    us = "us"
    ns = "ns"


UnitOption = Annotated[
    Unit | None, typer.Option(metavar="UNIT", help="Of a bare list: s, ms, us or ns.")
]
TimerOption = Annotated[Timer, typer.Option(help="What takes the times.")]
CacheOption = Annotated[Cache, typer.Option(help="What L2 holds when a call starts.")]
DeviceOption = Annotated[
    Device | None, typer.Option(help="cuda unless there is none; cpu times by host clock.")
]
GpuOption = Annotated[int | None, typer.Option(min=0, metavar="N", help="Which GPU.")]
SeedOption = Annotated[int, typer.Option(min=0, metavar="N", help="Of the inputs.")]
