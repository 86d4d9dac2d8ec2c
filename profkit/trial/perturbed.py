"""Runs of a program with its launches perturbed, interleaved with unperturbed ones."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from msgspec.structs import replace

from profkit.application.trial_file import TrialFile
from profkit.core.errors import EnvironmentProblem
from profkit.trial import checks
from profkit.trial.launches import LaunchRecord, compiled_library, read_launches, recording
from profkit.trial.responses import PERTURBATIONS, UNCHANGED, responses
from profkit.trial.run import WALL, Result
from profkit.trial.search import THRESHOLDS, Evidence

_ROUNDS = THRESHOLDS.blocks

RunWith = Callable[[str, Mapping[str, str]], Result]
"""Runs a program with variables; the name is what is told of the run."""


def perturbed(
    trial: TrialFile,
    evidence: Evidence,
    run_with: RunWith,
    environment: Mapping[str, str],
    left: Callable[[], float],
) -> TrialFile:
    """The trial with the responses of kernels, of a program that no switch applies to, in the
    seconds that are `left`."""
    first = evidence.unchanged[0]
    if evidence.interrupted or first.unit != WALL or first.features:
        return trial
    with tempfile.TemporaryDirectory(prefix="profkit-launches-") as folder:
        try:
            runs = _Runs(Path(folder), run_with, environment, evidence)
        except EnvironmentProblem as error:
            return replace(trial, unperturbed=(f"no launch was perturbed: {error}",))
        return runs.perturb(trial, left)


class _Runs:
    def __init__(
        self,
        folder: Path,
        run_with: RunWith,
        environment: Mapping[str, str],
        evidence: Evidence,
    ) -> None:
        self._folder, self._run_with = folder, run_with
        self._environment, self._evidence = environment, evidence
        self._library = compiled_library(folder)
        self.records: dict[str, list[LaunchRecord]] = {}
        self.faults: dict[str, str] = {}

    def perturb(self, trial: TrialFile, left: Callable[[], float]) -> TrialFile:
        """The trial, with what its runs show."""
        started = time.monotonic()
        self._run(UNCHANGED)
        seconds = time.monotonic() - started
        problem = self.faults.get(UNCHANGED) or self._unseen()
        fitting = int((left() + seconds) / (_ROUNDS * seconds)) - 1
        names = list(PERTURBATIONS)[: max(fitting, 0)]
        if problem or not names:
            return replace(trial, unperturbed=(problem or "no time was left to perturb launches",))
        self.faults = {name: "no time was left" for name in PERTURBATIONS if name not in names}
        order, interrupted = [UNCHANGED, *names], False
        try:
            for name in [*names, *order[::-1], *order]:  # rounds of A B B A A B
                if name not in self.faults and left() > seconds:
                    self._run(name)
        except KeyboardInterrupt:
            interrupted = True
        return replace(
            trial,
            kernels=responses(self.records, self.faults),
            unperturbed=tuple(self._unperturbed()),
            interrupted=interrupted,
        )

    def _run(self, name: str) -> None:
        """Run the program; a run that fails or prints something else says nothing."""
        records = self.records.setdefault(name, [])
        place = self._folder / f"{name}-{len(records)}"
        place.mkdir()
        result = self._run_with(
            f"launches {name}", recording(self._library, name, place, self._environment)
        )
        fault = self._fault(result)
        if fault:
            self.faults[name] = fault
        records.append(read_launches(place))

    def _fault(self, result: Result) -> str:
        unchanged = self._evidence.unchanged
        if result.failure:
            return f"its run failed: {result.failure}"
        line = checks.missing_output(unchanged, result)
        if line:
            return f"its output lacks: {line}"
        judgment = checks.judged(unchanged, (), [result], {"nothing"})
        return "" if judgment is None or judgment.is_same else "it printed other numbers"

    def _unseen(self) -> str:
        """Why the launches of the first run say nothing; "" where they do."""
        (record,) = self.records[UNCHANGED]
        if any(each.times for each in record.kernels.values()):
            return ""
        return record.problem or "no launch of a kernel was seen, so none was perturbed"

    def _unperturbed(self) -> Iterator[str]:
        """What was not possible."""
        for name, records in self.records.items():
            problem = next((each.problem for each in records if each.problem), "")
            if problem:
                yield f"{name}: {problem}"
        graphs = self.records[UNCHANGED][0].graphs
        if graphs:
            yield f"{graphs} launches of CUDA graphs, whose kernels are not timed"
