"""`profkit log`: the experiments that led to a run."""

from __future__ import annotations

from pathlib import Path

from profkit.commands.choices import TextFormat
from profkit.commands.options import put
from profkit.core.errors import BadInput


def log(run: Path, format: TextFormat = "terminal", output: Path | None = None) -> None:
    """List the experiments that led to a run, with what was predicted and measured.

    Verdicts are `profkit next`'s, from the counters and times of two runs.

    Arguments:
      run (RUN): The folder of a run.

    Examples:
      profkit log runs/attention/20260301T101500Z-3f2a91
      profkit log runs/attention/20260301T101500Z-3f2a91 --format markdown
    """
    from profkit.core.typed_file import encode
    from profkit.experiment.log import Log, LogEntry, missing_before, tests
    from profkit.experiment.view import log_markdown, log_view

    if not run.is_dir():
        raise BadInput(f"{run}: not a run's folder", "profkit next keeps a log in runs alone")
    made = list(tests(run))
    missing = missing_before(made)
    if format == "json":
        rows = tuple(LogEntry(run=str(folder), test=test) for folder, test in reversed(made))
        gone = str(missing) if missing else None
        put(encode(Log(experiments=rows, missing=gone), dense=False), output)
    elif format == "markdown":
        put(log_markdown(made, missing), output)
    else:
        put(log_view(made, missing), output)
