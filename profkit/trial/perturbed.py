"""Runs of a program with its launches perturbed, interleaved with unperturbed ones."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec.structs import replace

from profkit.core.duration import duration
from profkit.core.errors import EnvironmentProblem
from profkit.trial import checks
from profkit.trial.evidence import THRESHOLDS, Evidence
from profkit.trial.launches import LaunchRecord, compiled_library, read_launches, recording
from profkit.trial.responses import PERTURBATIONS, UNCHANGED, responses
from profkit.trial.run import WALL, Result
from profkit.trial.trial_file import TrialFile

_ROUNDS = THRESHOLDS.blocks
_NO_TIME = "no time was left"

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
        self, folder: Path, run_with: RunWith, environment: Mapping[str, str], evidence: Evidence
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
        is_seen = any(each.times for each in self.records[UNCHANGED][0].kernels.values())
        fault = self.faults.get(UNCHANGED) or ("" if is_seen else "no launch of a kernel was seen")
        names = list(PERTURBATIONS)[: max(int((left() + seconds) / (_ROUNDS * seconds)) - 1, 0)]
        if fault or not names:
            rest, needed = duration(max(left(), 0)), duration(2 * _ROUNDS * seconds)
            fault = fault or f"one perturbation takes about {needed}, {rest} were left"
            return replace(trial, unperturbed=(f"no launch was perturbed: {fault}",))
        order, interrupted = [UNCHANGED, *names], False
        try:
            for name in [*names, *order[::-1], *order]:  # rounds of A B B A A B
                if name not in self.faults and left() > seconds:
                    self._run(name)
        except KeyboardInterrupt:
            interrupted = True
        self.faults |= {name: _NO_TIME for name in PERTURBATIONS if name not in self.records}
        left_out = [f"{name}: {fault}" for name, fault in self.faults.items()]
        if graphs := self.records[UNCHANGED][0].graphs:
            left_out.append(f"{graphs} launches of CUDA graphs, whose kernels are not timed")
        return replace(
            trial,
            kernels=responses(self.records, self.faults),
            unperturbed=tuple(left_out),
            interrupted=interrupted,
        )

    def _run(self, name: str) -> None:
        """Run the program; a run that fails or prints something else says nothing."""
        records = self.records.setdefault(name, [])
        place = self._folder / f"{name}-{len(records)}"
        place.mkdir()
        variables = recording(self._library, name, place, self._environment)
        result = self._run_with(f"launches {name}", variables)
        records.append(read_launches(place))
        if fault := self._fault(result) or records[-1].problem:
            self.faults[name] = fault

    def _fault(self, result: Result) -> str:
        if result.failure:
            return f"its run failed: {result.failure}"
        unchanged = self._evidence.unchanged
        if line := checks.missing_output(unchanged, result):
            return f"its output lacks: {line}"
        printed = [replace(run, results={}, printed=run.results) for run in (*unchanged, result)]
        judgment = checks.judged(printed[:-1], (), printed[-1:], {"nothing"})
        return "" if judgment is None or judgment.is_same else "it printed other numbers"
