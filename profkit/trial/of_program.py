"""What `profkit try` gave the program of a run or a timeline, if it was tried on that program."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

from profkit.core.typed_file import read_file, row_of
from profkit.rules.known_trial import NO_TRIAL, KnownTrial, fitting, folder_of
from profkit.rules.tried import Tried, TriedVerdict
from profkit.runs.run import program_name
from profkit.trial.trial_file import TRIAL, Changes, Status, TrialFile
from profkit.ui.text import literal

_VERDICTS: Mapping[Status, TriedVerdict] = {
    "faster": "proven",
    "unverified": "not verified",
    "no difference": "no gain",
    "slower": "slower",
    "undecided": "undecided",
    "changes results": "changes results",
    "failed": "failed",
}
_CHANGED: Mapping[Changes, str] = {
    "rounding": "other rounding",
    "random": "other random numbers",
    "precision": "lower precision",
}


def program_trial(place: Path, gpus: Iterable[str], file: Path | None = None) -> KnownTrial:
    """The trial in a file, or beside a timeline or in its run, of the program that ran there.

    Raises as `fitting`, and BadInput for a damaged one.
    """
    beside = folder_of(place) / TRIAL
    if file is None and not beside.is_file():
        return NO_TRIAL
    trial = read_file(file or beside, TrialFile, "try again: profkit try -o FILE -- PROGRAM")
    known = KnownTrial(tried_rows(trial), literal(shlex.join(trial.command)))
    return fitting(
        known, program_name(trial.command), trial.gpu or "the CPU", place, gpus, file=file
    )


def tried_rows(trial: TrialFile) -> tuple[Tried, ...]:
    """The rows of a trial that were measured."""
    return tuple(
        row_of(
            Tried,
            row,
            verdict=_VERDICTS[row.status],
            low=row.comparison.low if row.comparison else None,
            high=row.comparison.high if row.comparison else None,
            reason=_CHANGED.get(row.changes, "") if row.status == "faster" else row.reason,
        )
        for row in trial.rows
        if row.status in _VERDICTS
    )
