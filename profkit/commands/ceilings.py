"""`profkit ceilings`: measured bandwidth and compute ceilings of this GPU."""

from pathlib import Path

from profkit.commands.groups import Number, Output, TextFormat
from profkit.commands.options import interruptible, kept
from profkit.ui.progress import stage_progress


def ceilings(
    gpu: Number | None = None,
    file: Path | None = None,
    force: bool = False,
    format: TextFormat | None = None,
) -> None:
    """Measure this GPU's bandwidth and compute ceilings.

    DRAM, L2, FMA pipes and tensor cores by data type are measured with random data: in short
    bursts, and under a steady load, where the power cap may lower the clock. No clock is changed.
    It takes up to a minute. `profkit roofline --peaks measured` uses the rates of bursts.

    Options:
      format: Output format (default: terminal; json with --output)

    Examples:
      profkit ceilings
      profkit ceilings --gpu 1 -o ceilings.json
    """
    from profkit.calibration.ceiling_measurement import measure_ceilings
    from profkit.calibration.ceilings import ceilings_document, keep_ceilings

    with interruptible(), stage_progress() as tell:
        measured = measure_ceilings(gpu, tell)
    saved = kept(lambda: keep_ceilings(measured))
    output = Output(format or ("json" if file else "terminal"), file, force)
    output.show(measured, lambda: ceilings_document(measured, saved))
