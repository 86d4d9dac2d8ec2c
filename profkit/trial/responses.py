"""How kernels respond to perturbations of their launches, and what that says of causes."""

from __future__ import annotations

import shutil
import statistics
import subprocess
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from profkit.core.typed_file import row_of
from profkit.core.yaml_files import shipped_yaml
from profkit.timing.verdict import compare
from profkit.trial.evidence import THRESHOLDS
from profkit.trial.launches import Key, LaunchRecord
from profkit.trial.trial_file import KernelResponses, Response

UNCHANGED = "unchanged"
_SAME = 0.05  # chosen: a tenth of what halving may do
_PROPORTIONAL = 0.8  # chosen: of the whole way to time that goes with what was taken away
_SHORTEST = 20e-6  # s, chosen: what events add, 2 to 3 us, is a tenth of it
_MOST, _LEAST_SHARE = 10, 0.01  # kernels, and share of the time of one, chosen


class Perturbation(Struct, frozen=True, forbid_unknown_fields=True):
    """What is done to launches, the runs to hold it against, and what its responses say."""

    what: str
    against: str
    evidence: Mapping[str, str]


PERTURBATIONS = msgspec.convert(
    shipped_yaml("profkit.trial", "perturbations.yaml"), dict[str, Perturbation]
)


def responses(
    runs: Mapping[str, Sequence[LaunchRecord]], faults: Mapping[str, str]
) -> tuple[KernelResponses, ...]:
    """The responses of the kernels that take most of the time; `faults` are reasons for which a
    perturbation says nothing."""
    first = runs[UNCHANGED][0].kernels
    times = {key: _times(runs[UNCHANGED][0], key) for key in first}
    means = {key: statistics.fmean(each) for key, each in times.items() if each}
    totals = {key: mean * first[key].launches for key, mean in means.items()}
    total = sum(totals.values())
    chosen = sorted(totals, key=lambda key: -totals[key])[:_MOST]
    names = _demangled([key[0] for key in chosen])
    return tuple(
        row_of(
            KernelResponses,
            first[key],
            kernel=name,
            seconds=means[key],
            share=totals[key] / total,
            responses=tuple(
                _response(runs, perturbation, key, means[key], faults.get(perturbation, ""))
                for perturbation in PERTURBATIONS
            ),
        )
        for key, name in zip(chosen, names, strict=True)
        if totals[key] >= _LEAST_SHARE * total
    )


def _response(
    runs: Mapping[str, Sequence[LaunchRecord]], name: str, key: Key, mean: float, fault: str
) -> Response:
    perturbation = PERTURBATIONS[name]
    pairs = zip(runs.get(perturbation.against, ()), runs.get(name, ()), strict=False)
    blocks = [(_times(a, key), _times(b, key)) for a, b in pairs]
    blocks = [(a, b) for a, b in blocks if a and b]
    reason = fault or _reason(runs[name], key, mean)
    if not reason and len(blocks) < THRESHOLDS.blocks:
        reason = "too few runs with it"
    if reason:
        return Response(perturbation=name, reason=reason)
    before, after = zip(*blocks, strict=True)
    verdict = compare(before, after, thresholds=THRESHOLDS)
    low, high = 1 / verdict.high, 1 / verdict.low
    slowdown = 1 / verdict.speedup
    taken = _taken(runs[name], key)
    kind = _kind(low, high, slowdown, taken)
    evidence = perturbation.evidence.get(kind, perturbation.evidence["slower"]) if kind else ""
    return Response(
        perturbation=name, taken=taken, slowdown=slowdown, low=low, high=high, evidence=evidence
    )


def _reason(records: Sequence[LaunchRecord], key: Key, mean: float) -> str:
    """Why a perturbation says nothing of a kernel."""
    seen = [record.kernels[key] for record in records if key in record.kernels]
    if not seen:
        return "not launched so in its runs"
    if seen[0].left:
        return seen[0].left
    if any(each.refused for each in seen):
        return "the driver refused it"
    return "" if mean >= _SHORTEST else "too short to time"


def _times(record: LaunchRecord, key: Key) -> Sequence[float]:
    """The times of a kernel in a run, but for its first launch where there are others."""
    times = record.kernels[key].times if key in record.kernels else ()
    return times[1:] or times


def _taken(records: Sequence[LaunchRecord], key: Key) -> float:
    """How many times as much of SMs or of blocks on an SM there was without the perturbation."""
    (whole, part), (most, fewer) = records[0].sms, records[0].kernels[key].resident
    return whole / part if part else most / fewer if fewer else 1.0


def _kind(low: float, high: float, slowdown: float, taken: float) -> str:
    """The kind of a response; "" where the interval leaves it open, or it is faster."""
    if low > 1 - _SAME and high < 1 + _SAME:
        return "same"
    if low <= 1 + _SAME:
        return ""
    return "proportional" if slowdown > 1 + _PROPORTIONAL * (taken - 1) > 1 else "slower"


def _demangled(names: Sequence[str]) -> Sequence[str]:
    """Names without parameters, where there is c++filt."""
    tool = shutil.which("c++filt")
    if tool is None or not names:
        return names
    words = [tool, "-p", "--", *names]
    return subprocess.run(words, capture_output=True, text=True).stdout.splitlines()
