"""Options of the verbs that time a target or judge its times, spelled once."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

Unit = Literal["s", "ms", "us", "ns"]
Preset = Literal["strict", "default", "permissive"]

UnitOption = Annotated[
    Unit | None, typer.Option(metavar="UNIT", help="Of a bare list: s, ms, us or ns.")
]
TimerOption = Annotated[
    Literal["events", "graph", "cupti"], typer.Option(help="What takes the times.")
]
CacheOption = Annotated[
    Literal["cold", "warm"], typer.Option(help="What L2 holds when a call starts.")
]
DeviceOption = Annotated[
    Literal["cuda", "cpu"] | None,
    typer.Option(help="cuda unless there is none; cpu times by host clock."),
]
GpuOption = Annotated[int | None, typer.Option(min=0, metavar="N", help="Which GPU.")]
SeedOption = Annotated[int, typer.Option(min=0, metavar="N", help="Of the inputs.")]
WarmupOption = Annotated[
    float, typer.Option("--warmup-ms", min=0, metavar="MS", help="Warm up at least so long.")
]
PresetOption = Annotated[
    Preset, typer.Option(help="How much a verdict asks for; --explain shows it.")
]
MarginOption = Annotated[
    str | None,
    typer.Option(metavar="SHARE", help="A smaller difference counts as none: 1% or 0.01."),
]
