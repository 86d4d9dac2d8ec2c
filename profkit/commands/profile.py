"""`profkit profile`: from a target script, or any program, to a kept run."""

from __future__ import annotations

import signal
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from profkit.commands.options import KernelOption

if TYPE_CHECKING:
    from profkit.profiling import Outcome, Stage

_INTERRUPTED = 130


class ClockControl(StrEnum):
    """What ncu does to the SM clock."""

    none = "none"
    base = "base"
    boost = "boost"


class CacheControl(StrEnum):
    """What ncu does to the caches before each pass."""

    all = "all"
    none = "none"


class ReplayMode(StrEnum):
    """What ncu runs again for each pass."""

    kernel = "kernel"
    application = "application"
    range = "range"


class TargetProcesses(StrEnum):
    """Which processes ncu profiles."""

    all = "all"
    application_only = "application-only"


def profile(
    program: Annotated[
        list[str],
        typer.Argument(
            metavar="TARGET | -- PROGRAM ARGUMENT...",
            help="A target script (.py; arguments for it after --), or any program after --.",
            show_default=False,
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
        ClockControl, typer.Option(help="What ncu does to the SM clock.")
    ] = ClockControl.none,
    cache_control: Annotated[
        CacheControl, typer.Option(help="Flush all caches before each pass, or none.")
    ] = CacheControl.all,
    replay_mode: Annotated[
        ReplayMode, typer.Option(help="What ncu runs again for each pass.")
    ] = ReplayMode.kernel,
    target_processes: Annotated[
        TargetProcesses, typer.Option(help="Which processes ncu profiles.")
    ] = TargetProcesses.all,
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
    gpu: Annotated[int | None, typer.Option(min=0, metavar="N", help="Which GPU.")] = None,
    timeout: Annotated[
        float | None,
        typer.Option(min=0, metavar="S", help="Seconds for each stage that runs the program."),
    ] = None,
    compress: Annotated[
        bool, typer.Option("--compress", help="Keep the report as .ncu-repz (zstd).")
    ] = False,
    keep_nsys_rep: Annotated[
        bool,
        typer.Option("--keep-nsys-rep", help="Keep the .nsys-rep, which holds private data."),
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
    from profkit.profiling import Plan
    from profkit.profiling import profile as run_profile

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
        keep_nsys_rep=keep_nsys_rep,
        compress=compress,
        keep_variables=tuple(keep_variable or ()),
    )
    signal.signal(signal.SIGTERM, _interrupt)
    teller = _Teller()
    try:
        outcome = run_profile(plan, teller.tell)
    except KeyboardInterrupt:
        teller.end()
        typer.echo("profkit: interrupted; nothing was kept", err=True)
        raise typer.Exit(_INTERRUPTED) from None
    finally:
        teller.end()
    _show(outcome)


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


class _Teller:
    """Progress on stderr: one line that changes on a terminal, a line a stage elsewhere."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._started = time.monotonic()
        self._stage = ""

    def tell(self, stage: str, what: str) -> None:
        elapsed = time.monotonic() - self._started
        if self._live:
            sys.stderr.write(f"\r\x1b[K{elapsed:6.1f} s  {stage}  {what}"[:100])
            sys.stderr.flush()
        elif stage != self._stage:
            sys.stderr.write(f"{elapsed:6.1f} s  {stage}\n")
        self._stage = stage

    def end(self) -> None:
        if self._live and self._stage:
            sys.stderr.write("\r\x1b[K")
        self._stage = ""


def _show(outcome: Outcome) -> None:
    from profkit.render.terminal import console, rendered, report_view

    view = report_view(outcome.report, outcome.report.groups[:3], console(to_file=False).width)
    sys.stdout.write(rendered(view, to_file=False))
    for variant in (outcome.checked or {}).get("variants", ()):
        if variant["status"] == "unsupported":
            typer.echo(f"! {variant['name']} is not supported here: {variant.get('reason')}")
    for warning in outcome.warnings:
        typer.echo(f"! {warning}")
    if outcome.timeline:
        from profkit.render.timeline import headline

        typer.echo(f"\nTimeline  {headline(outcome.timeline)}")
        typer.echo(f"          profkit analyze {outcome.folder / 'timeline.sqlite'}")
    typer.echo(f"\nTime    {_where_time_went(outcome.stages)}")
    typer.echo(f"Run     {outcome.folder}")
    typer.echo(f"Next    profkit analyze {outcome.folder} --top 0")
    typer.echo(f"        profkit metrics {outcome.folder}")


def _where_time_went(stages: tuple[Stage, ...]) -> str:
    return ", ".join(f"{stage.name} {stage.seconds:.1f} s" for stage in stages)
