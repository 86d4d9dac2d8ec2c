"""`profkit ceilings`: the rates that this GPU really reaches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profkit.commands.formats import TextFormat
from profkit.commands.options import OutputOption, interruptible, put, warn
from profkit.commands.timing_options import GpuOption
from profkit.core.errors import EnvironmentProblem
from profkit.ui.progress import Teller

if TYPE_CHECKING:
    from profkit.roofline.ceiling_file import CeilingFile


def ceilings(
    gpu: GpuOption = None,
    only: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="Only these roofs: dram, l2, fp32, tensor_fp16, ...; tensor for all of its kind.",
        ),
    ] = None,
    output: OutputOption = None,
    format: Annotated[
        TextFormat | None, typer.Option("--format", help="How to write it; a FILE gets JSON.")
    ] = None,
) -> None:
    """Measure this GPU's roofs: DRAM, L2, FMA pipes, and the tensor cores by type.

    What can really be had, with random data: the rate of a short burst, and beside it what a steady
    load keeps at the clock that the power cap leaves. No clock is changed. It takes up to a minute.
    `profkit roofline --peaks measured` finds the roofs of bursts again.

    Examples:

      profkit ceilings

      profkit ceilings --only dram,tensor_fp16 --format json

      profkit ceilings --gpu 1 -o ceilings.json
    """
    from profkit.roofline.ceiling_file import keep_ceilings
    from profkit.roofline.ceiling_measurement import measure_ceilings, roofs_named

    names = roofs_named(only)
    chosen = format or ("terminal" if output is None else "json")
    with interruptible(), Teller() as teller:
        measured = measure_ceilings(names, gpu, teller.tell)
    kept: Path | None = None
    try:
        kept = keep_ceilings(measured)
    except EnvironmentProblem as error:
        warn(error)
    put(_text(measured, chosen, kept, to_file=output is not None), output)


def _text(measured: CeilingFile, format: TextFormat, kept: Path | None, *, to_file: bool) -> str:
    if format == "json":
        from profkit.roofline.ceiling_file import ceilings_json

        return ceilings_json(measured)
    from profkit.roofline.ceilings_view import ceilings_markdown, ceilings_terminal

    if format == "markdown":
        return ceilings_markdown(measured)
    return ceilings_terminal(measured, kept, to_file=to_file)
