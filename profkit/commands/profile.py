"""`profkit profile`: from a target script, or any program, to a saved run."""

from __future__ import annotations

import math
import os
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from msgspec import Meta

from profkit.commands.groups import Count, Number, Output, share
from profkit.commands.kinds import Program
from profkit.commands.options import interruptible, is_explicit, put, words_after_dashes
from profkit.core.duration import parse_duration
from profkit.core.errors import UsageError
from profkit.ui.progress import stage_progress

if TYPE_CHECKING:
    from profkit.recording.application_plan import ApplicationPlan
    from profkit.recording.recording import Plan


@dataclass(frozen=True)
class Collection:
    """What is recorded of which launches.

    ncu options:
      sections (--set SET): What to collect: scout (1 pass), lean (12), full (38), auto (scout, then
        more of the kernels that take 90% of the time), detailed, basic, or a file of sections and
        metrics.
      flop: With scout and auto: also count floating-point operations, for the roofline.
      sampling: Also sample pipes and warps over time (7 passes).
      then (SET): What auto collects of the kernels that take the time
      max_time (SECONDS): Refuse to start where ncu would take longer, by the timeline; 0: no limit.
      clock_control (MODE): SM clock during profiling
      cache_control (MODE): Caches to flush before each replay pass
      replay_mode (MODE): What is replayed for each pass
      graph_profiling (UNIT): Profile a CUDA graph's kernels one by one, or the graph as a whole
      target_processes (SCOPE): Processes to profile
      kernel (REGEX): Only kernels whose demangled name matches this regular expression.
      launch_skip (N): Skip the first N launches.
      launch_count (N): Profile at most N launches.
      nvtx (RANGE): Only launches inside this NVTX range.

    What to record:
      timeline (--nsys/--no-nsys): Also record a timeline with nsys.
      import_source: Save the kernels' source in the report.
    """

    sections: str = "full"
    flop: bool = False
    sampling: bool = False
    then: Literal["lean", "full"] = "lean"
    max_time: Annotated[float, Meta(ge=0)] = 300.0
    timeline: bool = True
    clock_control: Literal["none", "base", "boost"] = "none"
    cache_control: Literal["all", "none"] = "all"
    replay_mode: Literal["kernel", "application", "range"] = "kernel"
    graph_profiling: Literal["node", "graph"] = "node"
    target_processes: Literal["all", "application-only"] = "all"
    import_source: bool = True
    kernel: str | None = None
    launch_skip: Number | None = None
    launch_count: Count | None = None
    nvtx: str | None = None


@dataclass(frozen=True)
class Saving:
    """How the program runs, and what is saved of it.

    Options:
      out (-o, --output DIR): Folder of runs, with a subfolder per target.
      timeout (SECONDS): Time limit of each stage that runs the program.
      samples (N): Latency samples per variant (default: 240, fewer for slow variants); 0: no
        timing.
      compress: Compress the report (.ncu-repz, zstd).
      keep_nsys_rep: Keep the .nsys-rep, which contains all variables that the program got, those of
        --keep-env too, and host and user names.
      keep_variables (--keep-env NAME): Pass this environment variable to the program although it
        looks secret; repeatable.
    """

    out: Path = Path("reports")
    gpu: Number | None = None
    timeout: float | None = None
    samples: Number | None = None
    compress: bool = True
    keep_nsys_rep: bool = False
    keep_variables: tuple[str, ...] = ()


@dataclass(frozen=True)
class Application:
    """A whole application.

    Applications:
      app: Record the timeline of a whole application, then profile the kernels that explain its
        steps (lean; --nvtx names the range of a step).
      explain (SHARE): Pick kernels that explain this share of a step, at most 24.
      budget (TIME): Time limit in all: 90s, 5m. Kernels that don't fit are left out.
      collectives: Also profile the NCCL kernel that takes the most time; needs an ncu newer than
        2025.3, which keeps ranks in lockstep.
      modules (--modules/--no-modules): Name the torch modules that launch kernels, by NVTX ranges
        in their first calls.
      resume (RUN): Go on with an unfinished run of --app, as it was begun, but for --budget.
    """

    app: bool = False
    explain: str = "90%"
    budget: str | None = None
    collectives: bool = False
    modules: bool = True
    resume: Path | None = None


def profile(
    context: typer.Context,
    program: tuple[Program, ...] = (),
    variants: tuple[str, ...] = (),
    *,
    collection: Collection,
    saving: Saving,
    application: Application,
    require_counters: bool = False,
) -> None:
    """Profile a target or program with ncu and nsys, and save the run.

    A target's variants are checked against its reference first. Environment variables that look
    secret are not passed to the program. With --app a timeline comes first: what the steps of a
    whole application are made of, then ncu on the kernels that explain them. Where counters are
    refused, the run is of what needs none, with a warning.

    Arguments:
      program (TARGET | -- PROGRAM ARGUMENT...): A target script (.py; its arguments after --), or
        any program after --.

    Options:
      variants (--variant NAME): Only this variant of the target; repeatable.

    ncu options:
      require_counters: Fail where hardware counters are refused (exit code 4).

    Examples:
      profkit profile targets/sdpa_s512.py
      profkit profile targets/sdpa_s512.py --variant flash --variant cudnn
      profkit profile train_step.py --set auto
      profkit profile --kernel gemm --launch-count 5 -- ./app --size 4096
      profkit profile --app -- python train.py --steps 30
      profkit profile --resume reports/train/20260102T030405Z-a1b2c3
    """
    from profkit.capture.ncu import NcuOptions
    from profkit.recording import recording

    if application.resume:
        _resume(context, application.resume, application.budget)
        return
    given = asdict(collection) | {"max_time": collection.max_time or math.inf}
    if application.app and not is_explicit(context, "sections"):
        given["sections"] = "lean"
    names = given.keys() & NcuOptions.__dataclass_fields__.keys()
    plan = recording.Plan(
        program=tuple(program),
        variants=variants,
        options=NcuOptions(**{name: given.pop(name) for name in names}),
        plain=application.app or len(program) <= words_after_dashes(context),
        require_counters=require_counters,
        **given,
        **asdict(saving),
    )
    if application.app:
        _profile_application(plan, application)
        return
    for name in ("explain", "budget", "collectives", "modules"):
        if is_explicit(context, name):
            raise UsageError(f"--{name} is for applications", "add --app")
    with interruptible(), stage_progress() as show:
        outcome = recording.profile(plan, show)
    from profkit.recording.view import recorded_text

    put(recorded_text(outcome), None)


def _resume(context: typer.Context, run: Path, budget: str | None) -> None:
    """Go on with an unfinished run, in the folder from which its program was started."""
    from profkit.recording.application_plan import saved_plan
    from profkit.runs.run import verify

    for name in context.params:
        if name not in {"resume", "budget"} and is_explicit(context, name):
            message = "--resume goes on with the program and the options of the run"
            raise UsageError(message, "leave out all but --budget")
    run = run.absolute()
    verify(run)
    plan, folder = saved_plan(run)
    os.chdir(folder)
    _profiled(replace(plan, budget=parse_duration("--budget", budget)), run)


def _profile_application(plan: Plan, options: Application) -> None:
    """Record an application as planned."""
    from profkit.recording.application_plan import ApplicationPlan

    application = ApplicationPlan(
        **{field.name: getattr(plan, field.name) for field in fields(plan)},
        step=plan.options.nvtx,
        budget=parse_duration("--budget", options.budget),
        explain=1.0 if options.explain in {"100%", "1"} else share(options.explain, "--explain"),
        collectives=options.collectives,
        modules=options.modules,
    )
    _profiled(application)


def _profiled(plan: ApplicationPlan, resumed: Path | None = None) -> None:
    """Record an application, show the answer, and end with ncu's failure if it had one; where
    counters are refused only if they are required."""
    from profkit.application.answer_view import answer_document
    from profkit.capture.ncu import CountersRefused
    from profkit.recording.application import profile_application
    from profkit.recording.view import run_rows
    from profkit.ui.document import Document, Facts, Note
    from profkit.ui.text import literal

    with interruptible(), stage_progress() as tell:
        outcome = profile_application(plan, tell, resumed)
    folder = str(outcome.folder)
    output = Output("terminal")
    output.show(
        outcome.answer, lambda: answer_document(outcome.answer, outcome.run, folder, actions=1)
    )
    notes = (Note(literal(warning)) for warning in outcome.warnings)
    output.lay_out(Document("", (*notes, Facts("", tuple(run_rows(outcome)), gap=True))))
    refused = isinstance(outcome.failure, CountersRefused) and not plan.require_counters
    if outcome.failure is not None and not refused:
        raise typer.Exit(outcome.failure.exit_code)
