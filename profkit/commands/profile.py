"""`profkit profile`: from a target script, or any program, to a kept run."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from profkit.commands.options import (
    KernelOption,
    interruptible,
    put_view,
    width_of,
    words_after_dashes,
)
from profkit.commands.timing_options import GpuOption
from profkit.ui.progress import Teller

if TYPE_CHECKING:
    from profkit.recording.recording import Outcome
    from profkit.timing.latency import LatencyReport


def profile(
    context: typer.Context,
    program: Annotated[
        list[str],
        typer.Argument(
            metavar="TARGET | -- PROGRAM ARGUMENT...",
            help="A target script (.py; arguments for it after --), or any program after --.",
        ),
    ],
    variant: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this variant of the target; may be repeated."),
    ] = None,
    sections: Annotated[
        str,
        typer.Option(
            "--set", metavar="SET", help="full, detailed, basic, or a file of sections and metrics."
        ),
    ] = "full",
    timeline: Annotated[
        bool, typer.Option("--nsys/--no-nsys", help="Record a timeline with nsys too.")
    ] = True,
    clock_control: Annotated[
        Literal["none", "base", "boost"], typer.Option(help="What ncu does to the SM clock.")
    ] = "none",
    cache_control: Annotated[
        Literal["all", "none"], typer.Option(help="Flush all caches before each pass, or none.")
    ] = "all",
    replay_mode: Annotated[
        Literal["kernel", "application", "range"],
        typer.Option(help="What ncu runs again for each pass."),
    ] = "kernel",
    target_processes: Annotated[
        Literal["all", "application-only"], typer.Option(help="Which processes ncu profiles.")
    ] = "all",
    import_source: Annotated[
        bool, typer.Option(help="Keep the kernels' source in the report.")
    ] = True,
    kernel: KernelOption = None,
    launch_skip: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Launches to pass over.")
    ] = None,
    launch_count: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Launches to profile at most.")
    ] = None,
    nvtx: Annotated[
        str | None, typer.Option(metavar="RANGE", help="Only launches inside this NVTX range.")
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where runs go, a folder a target.")
    ] = Path("reports"),
    gpu: GpuOption = None,
    timeout: Annotated[
        float | None,
        typer.Option(metavar="S", help="Seconds for each stage that runs the program."),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            min=0, metavar="N", help="Samples a variant; 240 unless it is slow, 0: don't time."
        ),
    ] = None,
    compress: Annotated[
        bool, typer.Option("--compress", help="Keep the report as .ncu-repz (zstd).")
    ] = False,
    keep_nsys_rep: Annotated[
        bool, typer.Option("--keep-nsys-rep", help="Keep the .nsys-rep, which holds private data.")
    ] = False,
    keep_variable: Annotated[
        list[str] | None,
        typer.Option(
            "--keep-env", metavar="NAME", help="Pass this environment variable on; repeatable."
        ),
    ] = None,
) -> None:
    """Profile a target's variants, or any program, with ncu and nsys, and keep the run.

    The target is checked against its reference first. profkit passes on only the environment
    variables a GPU program needs.

    Examples:

      profkit profile targets/sdpa_s512.py

      profkit profile targets/sdpa_s512.py --variant flash --variant cudnn

      profkit profile --kernel gemm --launch-count 5 -- ./app --size 4096
    """
    from profkit.capture.ncu import NcuOptions
    from profkit.recording.recording import Plan
    from profkit.recording.recording import profile as run_profile

    options = NcuOptions(
        sections=sections,
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
    plan = Plan(
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
        keep_variables=tuple(keep_variable or ()),
        plain=len(program) <= words_after_dashes(context),
    )
    with interruptible(), Teller() as teller:
        outcome = run_profile(plan, teller.tell)
    _show(outcome)


def _show(outcome: Outcome) -> None:
    from profkit.analysis.terminal import report_view
    from profkit.capture.correctness import Status

    report = outcome.report
    put_view(report_view(report, report.groups[:3], width_of(None), checklist=outcome.found), None)
    for variant in outcome.checked.variants if outcome.checked else ():
        if variant.status is Status.unsupported:
            typer.echo(f"! {variant.name} is not supported here: {variant.reason}")
    for warning in outcome.warnings:
        typer.echo(f"! {warning}")
    if outcome.latency:
        _show_latency(outcome.latency)
    if outcome.timeline:
        from profkit.analysis.timeline_view import headline

        typer.echo(f"\nTimeline  {headline(outcome.timeline)}")
        typer.echo(f"          profkit analyze {shlex.quote(f'{outcome.folder}/timeline.sqlite')}")
    stages = ", ".join(f"{stage.name} {stage.seconds:.1f} s" for stage in outcome.stages)
    folder = shlex.quote(str(outcome.folder))
    typer.echo(f"\nTime    {stages}")
    typer.echo(f"Run     {outcome.folder}")
    typer.echo(f"Next    profkit checklist {folder}")
    typer.echo(f"        profkit analyze {folder} --top 0")
    typer.echo(f"        profkit metrics {folder}")


def _show_latency(report: LatencyReport) -> None:
    """The truth about speed: ncu's durations are of a kernel alone, its caches and clocks held."""
    from profkit.timing.latency_view import doubts, method, variant_line

    first = report.timed[0]
    typer.echo(f"\nLatency of a call without a profiler ({method(first)}):")
    for timed in report.timed:
        typer.echo(f"  {variant_line(timed)}")
    for doubt in doubts(report.timed):
        typer.echo(f"! {doubt}")
