"""`profkit next`: the experiment that tells most now, and what the last one showed."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from profkit.commands import groups
from profkit.commands.kinds import ReportFile

if TYPE_CHECKING:
    from profkit.experiment.log import Diagnosis, Experiments
    from profkit.experiment.switches import SwitchExperiment
    from profkit.rules.tried import Tried

# ncu's options by which reports are compared, as `profkit profile` sets them unless told otherwise
_DEFAULTS = {
    "--set": "full",
    "--clock-control": "none",
    "--cache-control": "all",
    "--replay-mode": "kernel",
}


def next(  # noqa: A001  (the verb's name)
    before: ReportFile,
    after: ReportFile | None = None,
    *,
    matching: groups.Matching,
    top: groups.Count = 3,
    output: groups.Output[groups.TextFormat],
) -> None:
    """Propose the next experiment, and judge the last one.

    What `profkit try` proved is to be written first; what it decided isn't proposed again.

    With one run: the change to try, which quantities move if the diagnosis is right and by how much
    the kernel gains, and what refutes it. With two: whether the prediction for the first held in
    the second, and what to try now. Runs keep both, as next.json; `profkit log` lists them.

    Arguments:
      before (RUN): A run or a report; with a second one, that before the change.
      after (AFTER): The same, after the change.

    Options:
      top (N): Experiments listed, the first in full

    Examples:
      profkit next runs/attention/20260301T101500Z-3f2a91
      profkit next before.ncu-rep after.ncu-rep --format brief
    """
    from profkit.experiment.log import write_experiments
    from profkit.experiment.view import experiments_document

    experiments = _experiments(before, after, matching, top)
    last = after or before
    if last.is_dir():
        write_experiments(last, experiments)
    output.show(experiments, lambda: experiments_document(experiments, _command(last), str(last)))


def _experiments(
    before: Path, after: Path | None, matching: groups.Matching, top: int
) -> Experiments:
    from profkit.commands.reading import whole
    from profkit.experiment.log import Experiments, read_experiments, read_log

    last = after or before
    known = read_experiments(before) if before.is_dir() else Experiments()
    way = os.path.relpath(before, after if after.is_dir() else after.parent) if after else None
    log = read_log(before).experiments if before.is_dir() else ()
    earlier = [row for entry in log if entry.run != str(last) for row in entry.tried]
    switches, measured = _switches(last, earlier, matching)
    made = Experiments(before=way if after else known.before, switches=switches, test=known.test)
    if any(whole(run) != run for run in (before, last)):  # a timeline alone
        return made
    return _with_kernels(made, before, after, matching, top, measured)


def _switches(
    run: Path, earlier: Sequence[Tried], matching: groups.Matching
) -> tuple[SwitchExperiment | None, set[Diagnosis]]:
    """The experiment with switches for a run, and the diagnoses that its trial decided."""
    from profkit.application.answer import answer
    from profkit.application.picks_file import is_application
    from profkit.application.run import read_run
    from profkit.commands.reading import read_report
    from profkit.experiment.switches import switch_experiment
    from profkit.rules.known_trial import NO_TRIAL, folder_of
    from profkit.trial.of_report import trial_of, with_trial
    from profkit.trial.trial_file import TRIAL

    if is_application(run):
        program = read_run(run)
        trial = trial_of(run, (gpu.name for gpu in program.events.gpus))
        return switch_experiment(trial, answer(program.with_trial(trial)).plan, earlier), set()
    if not (folder_of(run) / TRIAL).is_file():
        return switch_experiment(NO_TRIAL, (), earlier), set()
    report = read_report(run, matching.kernel)
    items, trial = with_trial(report.checklist(), report)
    decided = {
        (item.rule.name, item.kernel)
        for item in items.items
        if item.tried and item.tried.is_decided
    }
    return switch_experiment(trial, (), earlier), decided


def _with_kernels(
    made: Experiments,
    before: Path,
    after: Path | None,
    matching: groups.Matching,
    top: int,
    measured: set[Diagnosis],
) -> Experiments:
    """The experiments with those on the kernels of reports."""
    from profkit.commands.reading import read_report
    from profkit.experiment.log import Test, read_experiments, refuted, refuted_after
    from profkit.experiment.outcome import compared, renamed, tested
    from profkit.experiment.prediction import next_experiments

    method = matching.method()
    earlier = read_report(before, matching.kernel)
    tried = refuted(before) if before.is_dir() else frozenset()
    if after is None:
        found = next_experiments(earlier, top, tried, measured)
        return replace(made, **vars(found))
    later = read_report(after, matching.kernel)
    proposed = read_experiments(before).proposed if before.is_dir() else ()
    proposed = proposed or next_experiments(earlier, top, tried).proposed
    test = None
    if proposed:
        diff = compared(earlier, later, *method)
        prediction, outcome = tested(proposed, diff)
        test = Test(
            before=made.before or "", prediction=prediction, outcome=outcome, renamed=renamed(diff)
        )
        tried = refuted_after(tried, test)
    return replace(made, test=test, **vars(next_experiments(later, top, tried, measured)))


def _command(run: Path) -> str:
    """How the change is measured: as the run was recorded, then compared with it."""
    again = f"profkit next {shlex.quote(str(run))} NEW"
    return f"{_recording(run)}, then {again}"


def _recording(run: Path) -> str:
    """The command that records another run like it, with the options that comparing needs."""
    from profkit.analysis.run_files import CHECK
    from profkit.core.integrity import MANIFEST
    from profkit.runs.run import read_manifest

    if not (run / MANIFEST).is_file():
        return "ncu --set full -o NEW PROGRAM"
    words = read_manifest(run).command.split()
    options = [
        f"{word} {value}" for word, value in pairwise(words) if value != _DEFAULTS.get(word, value)
    ]
    program = "TARGET" if (run / CHECK).is_file() else "-- PROGRAM"
    return " ".join(["profkit profile", *options, program])
