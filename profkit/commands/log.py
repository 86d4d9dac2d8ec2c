"""`profkit log`: the experiments that led to a run."""

from pathlib import Path

from profkit.commands.groups import Output, TextFormat
from profkit.core.errors import BadInput


def log(run: Path, *, output: Output[TextFormat]) -> None:
    """List the experiments that led to a run, with what was predicted and measured.

    Verdicts are `profkit next`'s, from the counters and times of two runs.

    Arguments:
      run (RUN): The folder of a run.

    Examples:
      profkit log runs/attention/20260301T101500Z-3f2a91
      profkit log runs/attention/20260301T101500Z-3f2a91 --format markdown
    """
    from profkit.core.integrity import MANIFEST
    from profkit.experiment.log import NEXT, read_log
    from profkit.experiment.view import log_document

    if not any((run / name).is_file() for name in (MANIFEST, NEXT)):
        raise BadInput(f"{run}: not a run's folder", "profkit next keeps a log in runs alone")
    result = read_log(run)
    output.show(result, lambda: log_document(result))
