"""`profkit optimize`: which variant of a target to use."""

from __future__ import annotations

from typing import Annotated

import typer

from profkit.commands.formats import PlainFormat
from profkit.commands.options import FORMAT, OutputOption, interruptible, put
from profkit.commands.options import words_after_dashes as after_dashes
from profkit.commands.timing_options import (
    CacheOption,
    DeviceOption,
    GpuOption,
    SeedOption,
    TimerOption,
    WarmupOption,
)
from profkit.core.duration import parse_duration
from profkit.core.errors import EnvironmentProblem, UsageError
from profkit.ui.progress import Teller

_INCONCLUSIVE = 3


def optimize(
    context: typer.Context,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="TARGET[:VARIANT,...] [-- ARGUMENT...]",
            help="A target script (.py) with the variants to try; then arguments for it.",
        ),
    ],
    baseline: Annotated[
        str | None, typer.Option(metavar="NAME", help="The variant in use: the first.")
    ] = None,
    target_speedup: Annotated[
        float, typer.Option(metavar="X", help="What a change has to give to be worth it.")
    ] = 1.10,
    budget: Annotated[str, typer.Option(metavar="TIME", help="What it may take.")] = "10m",
    warmup_ms: WarmupOption = 500,
    timer: TimerOption = "events",
    cache: CacheOption = "cold",
    seed: SeedOption = 42,
    format: Annotated[PlainFormat, FORMAT] = "terminal",
    output: OutputOption = None,
    device: DeviceOption = None,
    gpu: GpuOption = None,
) -> None:
    """Find out which variant of a target to use, and what to write to have it.

    Variants take turns until each reaches the speed-up or falls short, or the budget is spent.
    That nothing is to be gained is a result (0); exit code 3 says that it could not be decided.

    Examples:

      profkit optimize targets/sdpa_s512.py

      profkit optimize targets/sdpa_sweep.py --budget 2m -- --length 4096 --causal

      profkit optimize targets/sdpa_s512.py --baseline flash --target-speedup 1.05
    """
    from profkit.timing import stopwatch as how
    from profkit.timing.measurement import TimingPlan, subject_of
    from profkit.timing.optimize_view import optimize_json, optimize_terminal
    from profkit.timing.optimum import Outcome
    from profkit.timing.optimum import optimize as search

    if not 1 < target_speedup < 1000:
        raise UsageError(f"--target-speedup {target_speedup:g} is no speed-up", "write 1.10")
    count = len(words) - after_dashes(context)
    if count != 1:
        raise UsageError("one target is optimized at a time", "give its arguments after --")
    plan = TimingPlan(
        subjects=(subject_of(words[0]),),
        arguments=tuple(words[1:]),
        settings=how.Settings(how.Timer(timer), how.Cache(cache), warmup_ms / 1e3),
        seed=seed,
        device=device,
        gpu=gpu,
    )
    seconds = parse_duration("--budget", budget) or 0.0
    with interruptible(), Teller() as teller:
        found = search(plan, baseline, target_speedup, seconds, teller.tell)
    as_json = format == "json"
    put(
        optimize_json(found) if as_json else optimize_terminal(found, to_file=output is not None),
        output,
    )
    if found.decision.outcome is Outcome.invalid:
        raise EnvironmentProblem(
            "not a measurement to believe", "see `profkit doctor`, and try again"
        )
    if found.decision.outcome is Outcome.undecided:
        raise typer.Exit(_INCONCLUSIVE)
