"""`profkit timeline`: what the steps of a program are made of."""

from pathlib import Path
from typing import Literal

from profkit.commands.groups import Output, share
from profkit.commands.kinds import ProgramTrial, Recording
from profkit.commands.options import written

TimelineFormat = Literal["terminal", "json", "markdown", "html"]


def timeline(
    path: Recording,
    nvtx: str | None = None,
    explain: str = "90%",
    perfetto: Path | None = None,
    tried: ProgramTrial | None = None,
    *,
    output: Output[TimelineFormat],
) -> None:
    """Show what the steps of a program are made of, from a timeline.

    Steps in steady state are found by an NVTX range or by the repeating pattern of launches; their
    wall time is divided into kernels, communication, copies and idle time by cause.

    Arguments:
      path (RUN|FILE): A timeline (.sqlite, .nsys-rep, and of torch.profiler .json, .json.gz) or a
        run.

    Options:
      nvtx (NAME): The NVTX range that is a step (default: one that repeats, or the pattern of
        launches).
      explain (SHARE): Share of the kernels' time that the kernels to profile explain, 8 at most.
      tried (FILE): What `profkit try -o FILE -- PROGRAM` gave (default: try.json beside it).
      perfetto (FILE): Write the timeline for ui.perfetto.dev too (.pftrace).

    Examples:
      profkit timeline run.sqlite
      profkit timeline trace.json.gz
      profkit timeline run.sqlite --nvtx step --format html -o step.html
      profkit timeline run.sqlite --perfetto run.pftrace
    """
    from profkit.analysis.run_files import one_timeline
    from profkit.application.application import application_result, read_application
    from profkit.application.picks_file import NODES, picks_of
    from profkit.application.view import application_document
    from profkit.commands.reading import read_timeline, whole
    from profkit.trial.of_program import program_trial

    whole(path)
    explained = 1.0 if explain in {"100%", "1"} else share(explain, "--explain", "90% or 0.9")
    file = one_timeline(path)
    named, recorded = file.with_name(NODES), picks_of(path)
    unprofiled = recorded.unprofiled if recorded and nvtx in {None, recorded.nvtx} else None
    events = read_timeline(file)
    application = read_application(
        events,
        nvtx or (recorded.nvtx if recorded else None),
        explained,
        read_timeline(named) if path.is_dir() and named.is_file() else None,
        unprofiled.seconds if unprofiled else None,
        program_trial(file, (gpu.name for gpu in events.gpus), tried),
    )
    name = str(file) if output.format == "terminal" else file.name
    output.show(
        application_result(application, file.name),
        lambda: application_document(application, name, is_page=output.format == "html"),
        dense=True,
    )
    if perfetto is not None:
        from profkit.timeline.perfetto import write

        with written(perfetto, force=output.force) as temporary:
            write(application.events, temporary, application.step_slices())
