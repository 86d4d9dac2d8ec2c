"""`profkit profile`: from a target script, or any program, to a saved run."""

from __future__ import annotations

import math
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from profkit.commands.options import (
    interruptible,
    is_explicit,
    put,
    width_of,
    words_after_dashes,
)
from profkit.core.errors import UsageError
from profkit.ui.progress import stage_progress

if TYPE_CHECKING:
    from profkit.recording.recording import Outcome


def profile(
    context: typer.Context,
    program: list[str],
    variant: list[str] | None = None,
    sections: str = "full",
    flop: bool = False,
    sampling: bool = False,
    then: Literal["lean", "full"] = "lean",
    max_time: float = 300.0,
    timeline: bool = True,
    clock_control: Literal["none", "base", "boost"] = "none",
    cache_control: Literal["all", "none"] = "all",
    replay_mode: Literal["kernel", "application", "range"] = "kernel",
    graph_profiling: Literal["node", "graph"] = "node",
    target_processes: Literal["all", "application-only"] = "all",
    import_source: bool = True,
    kernel: str | None = None,
    launch_skip: int | None = None,
    launch_count: int | None = None,
    nvtx: str | None = None,
    out: Path = Path("reports"),
    gpu: int | None = None,
    timeout: float | None = None,
    samples: int | None = None,
    compress: bool = True,
    keep_nsys_rep: bool = False,
    keep_variable: list[str] | None = None,
    app: bool = False,
    explain: str = "90%",
    budget: str | None = None,
    collectives: bool = False,
    require_counters: bool = False,
) -> None:
    """Profile a target or program with ncu and nsys, and save the run.

    A target's variants are checked against its reference first. Environment variables that look
    secret are not passed to the program. With --app a timeline comes first: what the steps of a
    whole application are made of, then ncu on the kernels that explain them. Where counters are
    refused, the run is of what needs none, with a warning.

    Examples:
      profkit profile targets/sdpa_s512.py
      profkit profile targets/sdpa_s512.py --variant flash --variant cudnn
      profkit profile train_step.py --set auto
      profkit profile --kernel gemm --launch-count 5 -- ./app --size 4096
      profkit profile --app -- python train.py --steps 30
    """
    from profkit.capture.ncu import NcuOptions
    from profkit.recording import recording

    options = NcuOptions(
        sections=sections,
        flop=flop,
        sampling=sampling,
        graph_profiling=graph_profiling,
        clock_control=clock_control,
        cache_control=cache_control,
        replay_mode=replay_mode,
        target_processes=target_processes,
        import_source=import_source,
        kernel=kernel,
        launch_skip=launch_skip,
        launch_count=launch_count,
        nvtx=nvtx,
    )
    plan = recording.Plan(
        program=tuple(program),
        variants=tuple(variant or ()),
        options=options,
        out=out,
        gpu=gpu,
        timeout=timeout,
        timeline=timeline,
        samples=samples,
        keep_nsys_rep=keep_nsys_rep,
        compress=compress,
        max_time=max_time or math.inf,
        then=then,
        keep_variables=tuple(keep_variable or ()),
        plain=app or len(program) <= words_after_dashes(context),
        require_counters=require_counters,
    )
    if app:
        from profkit.commands.profile_app import profile_app

        if not is_explicit(context, "sections"):
            plan = replace(plan, options=replace(options, sections="lean"))
        profile_app(plan, explain, budget, collectives=collectives)
        return
    for name in ("explain", "budget", "collectives"):
        if is_explicit(context, name):
            raise UsageError(f"--{name} is for applications", "add --app")
    with interruptible(), stage_progress() as show:
        outcome = recording.profile(plan, show)
    if outcome.without_counters:
        from profkit.analysis.without_counters_view import without_counters_view

        put(without_counters_view(outcome.without_counters, 3), None)
    elif report := outcome.report:
        from profkit.analysis.terminal import report_view

        checklist = outcome.checklist
        put(report_view(report, report.groups[:3], width_of(None), checklist=checklist), None)
    typer.echo("\n".join(_summary(outcome)))


def _summary(outcome: Outcome) -> list[str]:
    """What the run holds besides the report, warnings, and the next commands."""
    from profkit.capture.correctness import Status
    from profkit.timing.latency_view import doubts, method, variant_line

    lines = [
        f"! {variant.name} is not supported here: {variant.reason}"
        for variant in (outcome.checked.variants if outcome.checked else ())
        if variant.status is Status.unsupported
    ]
    lines += [f"! {warning}" for warning in outcome.warnings]
    if outcome.latency:  # ncu's durations are of a kernel alone, its caches and clocks held
        timed = outcome.latency.timed
        lines += [f"\nLatency per call without a profiler ({method(timed[0])}):"]
        lines += [f"  {variant_line(row)}" for row in timed]
        lines += [f"! {doubt}" for doubt in doubts(timed)]
    if outcome.timeline and not outcome.without_counters:
        from profkit.analysis.timeline_view import headline

        file = shlex.quote(f"{outcome.folder}/timeline.sqlite")
        lines += [f"\nTimeline  {headline(outcome.timeline)}", f"          profkit analyze {file}"]
    stages = ", ".join(f"{stage.name} {stage.seconds:.1f} s" for stage in outcome.stages)
    folder = shlex.quote(str(outcome.folder))
    following = [f"checklist {folder}", f"analyze {folder} --top 0", f"metrics {folder}"]
    if outcome.without_counters:
        following = [f"analyze {folder} --without-counters --top 0", "doctor"]
    return [
        *lines,
        f"\nTime    {stages}",
        f"Run     {outcome.folder}",
        f"Next    profkit {following[0]}",
        *(f"        profkit {verb}" for verb in following[1:]),
    ]
