"""What was measured of callables: times, checks, verdicts, and where ncu's recording lies."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from profkit.callables.recording import Recording
from profkit.capture.correctness import Status, Verdict
from profkit.core.errors import TargetFailed, UsageError
from profkit.timing.latency import LatencyReport, Pair, Timed
from profkit.timing.latency_view import warnings

_OPTION = re.compile(r"--([a-z]+(?:-[a-z]+)*)")
WRONG, PASSED, UNCHECKED = "WRONG", "PASSED", "UNCHECKED"


@dataclass(frozen=True, eq=False, repr=False)
class Measurement:
    """One measurement.

    `check` compares the result with the reference, None without one; of several callables it is
    that of the last, or the one that is wrong. `times` has everything that was measured, None for
    a wrong result; `recording` what ncu recorded. `notes` say what was done otherwise than asked.
    """

    name: str
    check: Verdict | None
    times: LatencyReport | None
    recording: Recording | None = None
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """ "IMPROVED", "REGRESSED", "SAME", "INCONCLUSIVE" or "INVALID" on the last of several
        callables against the first; of one "PASSED" or "UNCHECKED". "WRONG" for a wrong result."""
        if self.check and self.check.status is Status.failed:
            return WRONG
        if self.times and self.times.pairs:
            return self.times.pairs[-1].comparison.verdict.name
        return PASSED if self.check else UNCHECKED

    @property
    def latencies(self) -> Mapping[str, Timed]:
        """The samples and statistics of each callable by its name, in seconds.

        Raises TargetFailed for a wrong result, which is not timed.
        """
        if self.times is None:
            reason = self.check.reason if self.check else ""
            raise TargetFailed(f"{self.name}: not timed, a wrong result: {reason}", "fix it first")
        return {timed.label: timed for timed in self.times.timed}

    @property
    def latency(self) -> Timed:
        """Those of the only callable, or of the last of several."""
        return list(self.latencies.values())[-1]

    @property
    def median(self) -> float:
        """The median time of a call (s)."""
        return self.latency.summary.median

    @property
    def interval(self) -> tuple[float, float] | None:
        """The interval of the median (s): at 95% between blocks, else within the run without a
        level (`latency.without_level` says why); None where there is none."""
        interval = self.latency.interval
        return (interval.low, interval.high) if interval else None

    @property
    def comparison(self) -> Pair:
        """The comparison of the last callable with the first: speedup, interval, evidence.

        Raises UsageError for a Run of one callable.
        """
        if not self.times or not self.times.pairs:
            raise UsageError(f"{self.name} was not compared", "profkit.compare(f, g, x)")
        return self.times.pairs[-1]

    @property
    def recorded_by(self) -> str:
        """How ncu recorded the call: "attach", "child process", or "" where it did not."""
        return self.recording.mode if self.recording else ""

    @property
    def remarks(self) -> Sequence[str]:
        """The notes, and what limits the validity of the times."""
        lines = warnings(self.times) if self.times else ()
        return (*self.notes, *(_OPTION.sub(_keyword, line) for line in lines))


def _keyword(option: re.Match[str]) -> str:
    """`--warmup-ms`, as `profkit time` has it, as the keyword of that meaning."""
    return option[1].replace("-", "_")
