"""`profkit ceilings`: measured bandwidth and compute ceilings of this GPU."""

from __future__ import annotations

from pathlib import Path

from profkit.commands.choices import Number, TextFormat
from profkit.commands.options import interruptible, put, warn
from profkit.core.errors import EnvironmentProblem
from profkit.ui.progress import stage_progress


def ceilings(
    gpu: Number | None = None,
    only: str | None = None,
    output: Path | None = None,
    format: TextFormat | None = None,
) -> None:
    """Measure this GPU's bandwidth and compute ceilings.

    DRAM, L2, FMA pipes and tensor cores by data type are measured with random data: in short
    bursts, and under a steady load, where the power cap may lower the clock. No clock is changed.
    It takes up to a minute. `profkit roofline --peaks measured` uses the rates of bursts.

    Options:
      only (NAME,...): Only these ceilings: dram, l2, fp32, tensor_fp16, ...; tensor: all tensor
        ones.
      format: Output format (default: terminal; json with --output)

    Examples:
      profkit ceilings
      profkit ceilings --only dram,tensor_fp16 --format json
      profkit ceilings --gpu 1 -o ceilings.json
    """
    from profkit.roofline.ceiling_file import ceilings_json, keep_ceilings
    from profkit.roofline.ceiling_measurement import measure_ceilings, roofs_named
    from profkit.roofline.ceilings_view import ceilings_markdown, ceilings_terminal

    names = roofs_named(only)
    with interruptible(), stage_progress() as show:
        measured = measure_ceilings(names, gpu, show)
    saved: Path | None = None
    try:
        saved = keep_ceilings(measured)
    except EnvironmentProblem as error:
        warn(error)
    if format == "json" or (format is None and output):
        put(ceilings_json(measured), output)
    elif format == "markdown":
        put(ceilings_markdown(measured), output)
    else:
        put(ceilings_terminal(measured, saved, to_file=output is not None), output)
