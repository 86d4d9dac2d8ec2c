"""What whole runs say of gains: how they ended, and what they printed, against unchanged ones."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from profkit.trial import checks
from profkit.trial.outcome import fastest
from profkit.trial.run import TIMED_OUT, Result
from profkit.trial.search import Evidence
from profkit.trial.trial_file import Status, TrialFile, TrialRow

Names = tuple[str, ...]
_Fault = tuple[Status, str]


def confirmed(
    trial: TrialFile, evidence: Evidence, run_whole: Callable[[Names], Result]
) -> TrialFile:
    """The trial, in which a gain is proven only if whole runs with its switches end and print as
    unchanged ones; where each run was ended early, whole runs of the fastest ones are made now, and
    of the unchanged program where none has run to its end."""
    if not any(run.stopped for run in evidence.unchanged):
        faults = {row.switches: _fault_of_runs(evidence, row) for row in _proven(trial)}
        checked = "Exit code and output are as unchanged, but for numbers"
    else:
        chosen = [names for names in (trial.lower, trial.best) if names]  # fastest first
        chosen = [] if evidence.interrupted else chosen
        before = next((run for run in evidence.unchanged if run.is_whole), None)
        before = run_whole(()) if chosen and not before else before
        found = {names: _fault(before, run_whole(names)) for names in chosen if before}
        unmade: _Fault = ("unverified", "whole runs were not compared")
        faults = {row.switches: found.get(row.switches, unmade) for row in _proven(trial)}
        same = " and with ".join(" + ".join(names) for names in chosen if not found[names])
        checked = same and f"Exit code and output of the whole program with {same} are as unchanged"
    rows = tuple(_row(row, faults.get(row.switches)) for row in trial.rows)
    best, lower = fastest(rows)
    wrong = next((" + ".join(n) + ": " + f[1] for n, f in faults.items() if f and n), "")
    return replace(trial, rows=rows, best=best, lower=lower, checked=checked or wrong)


def _proven(trial: TrialFile) -> list[TrialRow]:
    return [row for row in trial.rows if row.status == "faster"]


def _row(row: TrialRow, fault: _Fault | None) -> TrialRow:
    return replace(row, status=fault[0], reason=fault[1]) if fault else row


def _fault_of_runs(evidence: Evidence, row: TrialRow) -> _Fault | None:
    for run in evidence.runs:
        if run.switches == row.switches and not run.failure:
            line = checks.missing_output(evidence.unchanged, run)
            if line:
                return "changes results", f"the output lacks: {line}"
    return None


def _fault(unchanged: Result, changed: Result) -> _Fault | None:
    if unchanged.failure or changed.failure:
        is_late = unchanged.failure or changed.status == TIMED_OUT
        reason = unchanged.failure or changed.failure
        return "unverified" if is_late else "failed", f"whole runs were not compared: {reason}"
    line = checks.missing_output([unchanged], changed)
    return ("changes results", f"the output of the whole program lacks: {line}") if line else None
