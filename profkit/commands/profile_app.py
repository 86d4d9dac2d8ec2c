"""`profkit profile --app`: from a whole program to the kernels that matter."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import typer

from profkit.commands.groups import share
from profkit.commands.options import interruptible, put
from profkit.core.duration import parse_duration
from profkit.ui.progress import stage_progress

if TYPE_CHECKING:
    from profkit.commands.profile import Application
    from profkit.recording.application import ApplicationOutcome
    from profkit.recording.recording import Plan


def profile_app(plan: Plan, options: Application) -> None:
    """Record an application as planned, show the answer, and end with ncu's failure if it had
    one; where counters are refused only if they are required.


    """
    from profkit.capture.ncu import CountersRefused
    from profkit.recording.application import ApplicationPlan, profile_application

    application = ApplicationPlan(
        **{field.name: getattr(plan, field.name) for field in fields(plan)},
        step=plan.options.nvtx,
        budget=parse_duration("--budget", options.budget),
        explain=1.0 if options.explain in {"100%", "1"} else share(options.explain, "--explain"),
        collectives=options.collectives,
    )
    with interruptible(), stage_progress() as show:
        outcome = profile_application(application, show)
    from profkit.application.answer_view import answer_view

    put(answer_view(outcome.answer, str(outcome.folder)), None)
    typer.echo("\n".join(_summary(outcome)))
    refused = isinstance(outcome.failure, CountersRefused) and not plan.require_counters
    if outcome.failure is not None and not refused:
        raise typer.Exit(outcome.failure.exit_code)


def _summary(outcome: ApplicationOutcome) -> list[str]:
    stages = ", ".join(f"{stage.name} {stage.seconds:.1f} s" for stage in outcome.stages)
    return [
        *(f"! {warning}" for warning in outcome.warnings),
        f"\nTime    {stages}",
        f"Run     {outcome.folder}",
    ]
