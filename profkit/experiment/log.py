"""The log of experiments: `next.json` in a run, `profkit.experiment/1`.

A run's file has the experiments that were proposed for it and, where it was made to test one of an
earlier run, that prediction with its outcome and the way to that run: a chain of runs is a log.
"""

import os
from collections.abc import Collection
from pathlib import Path

from msgspec import field

from profkit.analysis.run_files import SUFFIXES
from profkit.core.atomic_file import write_atomic
from profkit.core.typed_file import Count, File, Model, Output, encode, read_file
from profkit.experiment.outcome import Outcome, Verdict
from profkit.experiment.prediction import Prediction, Stop, Untestable
from profkit.experiment.switches import SwitchExperiment
from profkit.rules.tried import Tried
from profkit.trial.of_report import trial_of

NEXT = "next.json"
Diagnosis = tuple[str, str]
"""A rule, and the demangled name of the kernel that it was about."""


class Test(Model, frozen=True, kw_only=True):
    """A prediction of the run `before`, a path from this run's folder, and its outcome here.

    `renamed` has the kernels whose name the change altered: names before, and after.
    """

    before: str
    prediction: Prediction
    outcome: Outcome
    renamed: dict[str, str] = field(default_factory=dict)


class Experiments(File, frozen=True, kw_only=True, tag="profkit.experiment/1"):
    """The experiments of a run: what it tested, what was proposed then, best first, with how many
    `more` there were, what could not be tested, and why there was nothing. `before` is the way to
    the run before, `switches` the experiment with those of `profkit try`."""

    before: str | None = None
    switches: SwitchExperiment | None = None
    test: Test | None = None
    proposed: tuple[Prediction, ...] = ()
    more: Count = 0
    untestable: tuple[Untestable, ...] = ()
    stop: Stop | None = None


class LogEntry(Model, frozen=True, kw_only=True):
    """A test with the folder of the run that it was made in, or what was `tried` on the `subject`
    of that run."""

    run: str
    test: Test | None = None
    subject: str = ""
    tried: tuple[Tried, ...] = ()


class Log(Output, frozen=True, kw_only=True, tag="profkit.log/1"):
    """The experiments that led to a run, the first one first; `missing` is the run before them
    where its folder was moved or removed."""

    experiments: tuple[LogEntry, ...]
    missing: str | None = None


def read_experiments(run: Path) -> Experiments:
    """The experiments of a run; none where it has no log. Raises BadInput for a damaged one."""
    path = run / NEXT
    if not path.is_file():
        return Experiments()
    return read_file(path, Experiments, "remove it, and run `profkit next` again")


def write_experiments(run: Path, experiments: Experiments) -> None:
    """Keep the experiments in a run; raises EnvironmentProblem."""
    write_atomic(run / NEXT, encode(experiments, dense=False))


def read_log(run: Path) -> Log:
    """The tests and trials that led to a run, each with the run that it was made in.

    A run that was compared with a later one again is listed once. Raises as `read_experiments`.
    """
    entries: list[LogEntry] = []
    seen = set[Path]()
    while run.resolve() not in seen:
        seen.add(run.resolve())
        if (trial := trial_of(run)).rows:
            made = LogEntry(run=str(run), subject=trial.command, tried=trial.rows)
            entries.insert(0, made)
        known = read_experiments(run)
        before = known.test.before if known.test else known.before
        if known.test:
            entries.insert(0, LogEntry(run=str(run), test=known.test))
        if before is None:
            break
        run = Path(os.path.normpath(run / before))
    is_lost = entries and run.suffix not in SUFFIXES and not run.exists()  # a report has no log
    return Log(experiments=tuple(entries), missing=str(run) if is_lost else None)


def refuted(run: Path) -> frozenset[Diagnosis]:
    """The diagnoses that the tests up to a run refuted, kernels by their names in it."""
    diagnoses: frozenset[Diagnosis] = frozenset()
    for entry in read_log(run).experiments:
        diagnoses = refuted_after(diagnoses, entry.test) if entry.test else diagnoses
    return diagnoses


def refuted_after(diagnoses: Collection[Diagnosis], test: Test) -> frozenset[Diagnosis]:
    """Those of a run before a test, and what the test refuted, kernels by their names after it."""
    refuted = set(diagnoses)
    if test.outcome.verdict is Verdict.refuted:
        refuted.add((test.prediction.rule, test.prediction.kernel))
    return frozenset((rule, test.renamed.get(kernel, kernel)) for rule, kernel in refuted)
