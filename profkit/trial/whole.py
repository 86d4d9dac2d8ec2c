"""What whole runs say of gains: how they ended, and what they printed, against unchanged ones."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from functools import partial

from msgspec.structs import replace

from profkit.trial import checks
from profkit.trial.checks import Ends
from profkit.trial.evidence import Evidence
from profkit.trial.outcome import fastest, preparations
from profkit.trial.run import TIMED_OUT, Perturbation, Result
from profkit.trial.trial_file import Status, TrialFile, TrialRow
from profkit.ui.text import number

Names = tuple[str, ...]
RunWhole = Callable[[Names, Perturbation], Result]
RunPlain = Callable[[], Result | None]
RunOwn = Callable[[], Result]
_Fault = tuple[Status, str]
_PARTED = "in whole runs, the last of"
_UNSEEN = "; there was no time to see how far they do by themselves"
_LONGER = 1.1  # chosen: what hooks and a single run's scatter may add to its time
_PLAIN = "; without profkit's hooks it prints the same, in "
_HOOKED = "profkit's hooks change the program: without them, "


def confirmed(
    trial: TrialFile, evidence: Evidence, run_whole: RunWhole, run_plain: RunPlain
) -> TrialFile:
    """The trial after whole runs, as far as these are not interrupted."""
    try:
        return _confirmed(trial, evidence, run_whole, run_plain)
    except KeyboardInterrupt:
        evidence.interrupted = True
        trial = replace(trial, interrupted=True)
        return _confirmed(trial, evidence, run_whole, run_plain)


def _confirmed(
    trial: TrialFile, evidence: Evidence, run_whole: RunWhole, run_plain: RunPlain
) -> TrialFile:
    """The trial, in which a gain is proven only if whole runs with its switches end and print as
    unchanged ones; where each run was ended early, whole runs of the fastest ones are made now, and
    of the unchanged program where none has run to its end, or its own spread is in question; none
    where there is no time for the program to end. A plain run, without profkit's hooks, has to
    print the same, where there is time for it."""
    runs = evidence.unchanged
    proven = [row.switches for row in trial.rows if row.status == "faster"]
    kinds = {row.switches: _ends(evidence, row) for row in trial.rows}
    perturb = {row.switches: checks.KINDS[row.changes] or "rounding" for row in trial.rows}
    fast = [names for names in (trial.lower, trial.best) if names]
    if not any(run.stopped for run in runs):
        faults = {n: _fault_of_runs(evidence, n, kinds[n], perturb[n]) for n in proven}
        wholes = {n: [run for run in evidence.runs if run.switches == n] for n in fast}
        checked = "Exit code and output are as unchanged, but for numbers" if proven else ""
    else:
        chosen = [] if evidence.interrupted or evidence.endless else fast
        before = next((run for run in runs if run.is_whole), None)
        before = run_whole((), "") if chosen and not before else before
        runs = [before, *runs] if before else []
        ends = {n: before if before.failure else run_whole(n, "") for n in chosen if before}
        wholes = {names: [end] for names, end in ends.items()}
        whole_faults = {n: _fault(runs, end, kinds[n]) for n, end in ends.items()}
        parted = [n for n, fault in whole_faults.items() if fault and fault[1].startswith(_PARTED)]
        owns = {kind: _of(evidence.perturbed, kind, is_whole=True) for kind in perturb.values()}
        for n in parted:
            run_own = partial(run_whole, (), perturb[n])
            whole_faults[n] = _fault_of_ends(runs, ends[n], kinds[n], owns[perturb[n]], run_own)
        longer = f"take more than {evidence.endless:.0f} s and " if evidence.endless else ""
        unmade: _Fault = ("unverified", f"whole runs {longer}were not compared")
        faults = {names: whole_faults.get(names, unmade) for names in proven}
        same = " and with ".join(_name(n) for n in chosen if not whole_faults[n])
        output = "Exit code and output of the whole program"
        checked = same and f"{output} with {same} are as unchanged, but for numbers"
    plain = None if all(faults.values()) or evidence.interrupted else run_plain()
    if plain and plain.status != TIMED_OUT:
        fault = _fault(runs, plain, "rounded")
        if not fault and not any(checks.missing_output(runs[:1], each) for each in _wholes(runs)):
            fault = _fault([plain], runs[0], "rounded")  # no line is another in each run
        hooked: _Fault | None = fault and ("unverified", f"{_HOOKED}{fault[1]}")
        faults = {names: known or hooked for names, known in faults.items()}
        is_jax = "jax" in runs[0].features  # what it compiles is kept for these runs alone
        prepared = {row.switches for row in trial.rows if row.prepares or is_jax}
        took = (
            _took(n, each, plain, is_prepared=n in prepared)
            for n, each in wholes.items()
            if not faults[n]
        )
        in_plain = number(plain.seconds, "s", 3) + ", caches filled" * is_jax
        checked += "" if fault else _PLAIN + in_plain + "".join(took)
    rows = tuple(_row(row, faults.get(row.switches)) for row in trial.rows)
    rows = tuple(_as_whole(trial, row, runs, wholes.get(row.switches, ())) for row in rows)
    best, lower = fastest(rows)
    wrong = next((f"{_name(n)}: {f[1]}" for n, f in faults.items() if f and n), "")
    return replace(trial, rows=rows, best=best, lower=lower, checked=checked or wrong)


def _took(names: Names, runs: Sequence[Result], plain: Result, *, is_prepared: bool) -> str:
    """How long whole runs take with switches: a unit's gain is without what these prepare."""
    seconds = statistics.median(run.process for run in runs)
    filled = ", caches filled," if is_prepared else ""
    is_short = is_prepared and seconds > _LONGER * plain.seconds
    short = ", as the program is short beside what that compiles" if is_short else ""
    return f"; with them and {_name(names)}{filled} in {number(seconds, 's', 3)}{short}"


def _as_whole(
    trial: TrialFile, row: TrialRow, before: Sequence[Result], after: Sequence[Result]
) -> TrialRow:
    """A row with what compiling takes as whole runs show it: their processes start and end too."""
    unit, gain = trial.unchanged, row.comparison
    if not (row.prepares and gain and unit and after and before[0].is_whole):
        return row
    saved = unit.units * (unit.seconds - unit.seconds / gain.speedup)
    whole = after[-1].process - before[0].process + saved
    more = max(whole - row.prepares[-1].seconds, 0.0)
    seconds = (each.seconds + more for each in row.prepares)
    return replace(row, prepares=tuple(preparations(seconds, unit.seconds, gain)))


def _name(names: Names) -> str:
    return " + ".join(names)


def _row(row: TrialRow, fault: _Fault | None) -> TrialRow:
    return replace(row, status=fault[0], reason=fault[1]) if fault else row


def _fault_of_runs(
    evidence: Evidence, names: Names, kind: Ends, perturb: Perturbation
) -> _Fault | None:
    runs = (run for run in evidence.runs if run.switches == names and not run.failure)
    perturbed = _of(evidence.perturbed, perturb)
    faults = (_fault(evidence.unchanged, run, kind, perturbed) for run in runs)
    return next(filter(None, faults), None)


def _fault_of_ends(
    runs: Sequence[Result], end: Result, kind: Ends, owns: list[Result], run_own: RunOwn
) -> _Fault | None:
    """What speaks against a whole run that seems to end elsewhere, after as many perturbed whole
    runs as it takes, and there is time for, to see how far ends are apart by themselves."""
    while (fault := _fault(runs, end, kind, owns)) and len(owns) < checks.MOST_PERTURBED:
        own = run_own()
        if own.failure:
            return fault[0], fault[1] + _UNSEEN
        owns.append(own)
    return fault


def _of(perturbed: Sequence[Result], kind: Perturbation, *, is_whole: bool = False) -> list[Result]:
    return [run for run in perturbed if run.perturbed == kind and run.is_whole >= is_whole]


def _wholes(runs: Sequence[Result]) -> list[Result]:
    return [run for run in runs if not run.stopped]


def _ends(evidence: Evidence, row: TrialRow) -> Ends:
    """How far apart whole runs may end: first results that are equal show that no other random
    numbers are drawn, nor is anything rounded elsewhere."""
    if row.difference == 0:
        return "equal"
    is_drawn = row.changes in {"random", "precision"}
    return "drawn" if is_drawn or "dropout" in evidence.unchanged[0].features else "rounded"


def _fault(
    before: Sequence[Result], changed: Result, kind: Ends, perturbed: Sequence[Result] = ()
) -> _Fault | None:
    """What speaks against a whole run with switches, of unchanged ones of which the first is whole
    and the others may be shorter."""
    unchanged = before[0]
    if unchanged.failure or changed.failure:
        is_late = unchanged.failure or changed.status == TIMED_OUT
        reason = unchanged.failure or changed.failure
        return "unverified" if is_late else "failed", f"whole runs were not compared: {reason}"
    if line := checks.missing_output(_wholes(before) or before[:1], changed):
        return "changes results", f"the output of the whole program lacks: {line}"
    if series := checks.lost(before[0], changed):
        return "changes results", f"in whole runs, {series} is not finite"
    if series := checks.parted(before, changed, kind, perturbed):
        return "unverified", f"{_PARTED} {series} differ"
    return None
