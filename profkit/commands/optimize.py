"""`profkit optimize`: which variant of a target to use."""

from typing import Annotated

import typer
from msgspec import Meta

from profkit.commands import groups, options
from profkit.commands.kinds import Script
from profkit.core.duration import parse_duration
from profkit.core.errors import EnvironmentProblem, UsageError
from profkit.ui.progress import stage_progress


def optimize(
    context: typer.Context,
    words: list[Script],
    *,
    baseline: str | None = None,
    target_speedup: float = 1.10,
    budget: str = "10m",
    warmup_ms: Annotated[float, Meta(ge=0)] = 500,
    method: groups.TimingMethod,
    seed: groups.Number = 42,
    output: groups.Output[groups.PlainFormat],
    where: groups.OnDevice,
) -> None:
    """Find the fastest variant of a target within a time limit.

    Interleaved blocks are timed until each variant is known to reach the target speedup or to miss
    it, or until the time limit. Exits with 0 also if no variant is faster, with 3 if inconclusive.

    Arguments:
      words (TARGET[:VARIANT,...] [-- ARGUMENT...]): A target script (.py) with the variants to try;
        its arguments after --.

    Options:
      baseline (NAME): The variant in use (default: the first).
      target_speedup (X): Minimum speedup that is worth a change.
      budget (TIME): Time limit: 90s, 20m, 1h.

    Examples:
      profkit optimize targets/sdpa_s512.py
      profkit optimize targets/sdpa_sweep.py --budget 2m -- --length 4096 --causal
      profkit optimize targets/sdpa_s512.py --baseline flash --target-speedup 1.05
    """
    from profkit.timing import measurement, optimum

    if not 1 < target_speedup < 1000:
        raise UsageError(
            f"--target-speedup {target_speedup:g} is not between 1 and 1000", "use 1.10"
        )
    if len(words) - options.words_after_dashes(context) != 1:
        raise UsageError("more than one target given", "give a target's arguments after --")
    plan = measurement.TimingPlan(
        subjects=(measurement.subject_of(words[0]),),
        arguments=tuple(words[1:]),
        settings=method.settings(warmup_ms),
        seed=seed,
        device=where.device,
        gpu=where.gpu,
    )
    seconds = parse_duration("--budget", budget) or 0.0
    with options.interruptible(), stage_progress() as show:
        result = optimum.optimize(plan, baseline, target_speedup, seconds, show)
    output.show(result.file, lambda: optimum.optimize_document(result))
    outcome = result.file.outcome
    if outcome is optimum.Outcome.invalid:
        message = "invalid measurement"
        raise EnvironmentProblem(message, "see `profkit doctor`, and try again")
    if outcome is optimum.Outcome.undecided:
        raise typer.Exit(options.INCONCLUSIVE)
