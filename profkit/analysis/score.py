"""How well findings hold: recorded pairs, a defect's report against what its fix really gave.

A pair is a folder with `pair.yaml` (category, or null for a control), `before.ncu-rep(z)`,
`after.ncu-rep(z)` and `latency.json`, the timed latencies of both. Errors are |estimate - achieved|
/ achieved, of factors; a category that is not named counts as the guess that nothing is gained.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
import yaml

from profkit.analysis.engine import Diagnosis, diagnose
from profkit.analysis.rules import Rule
from profkit.analysis.summary import ReportSummary
from profkit.errors import BadInput
from profkit.ingest.latency import read_latencies

WORTH_AN_ALARM = 1.15
BEFORE, AFTER = "before", "after"
_SUFFIXES = (".ncu-repz", ".ncu-rep")

Read = Callable[[Path], ReportSummary]


@dataclass(frozen=True)
class Guess:
    """What one judge said of a report: categories in order, each with its factor."""

    ranked: tuple[tuple[str, float], ...]

    def rank(self, category: str) -> int | None:
        """The place of a category, from 1; None where it is not named."""
        names = list(dict.fromkeys(name for name, _ in self.ranked))
        return names.index(category) + 1 if category in names else None

    def factor(self, category: str) -> float:
        """What it promised for a category: the first it said, 1 where it is not named."""
        return next((factor for name, factor in self.ranked if name == category), 1.0)

    def promised(self, least: float) -> tuple[tuple[str, float], ...]:
        """The findings that promise at least a factor."""
        return tuple(item for item in self.ranked if item[1] >= least)


@dataclass(frozen=True)
class PairScore:
    """A pair, judged. `achieved` is NaN for a control, `category` None.

    `alarms` are promises where nothing is to gain: on a control any, after a fix those of the
    category that was fixed, unless the pair declares it as its second limit too.
    """

    name: str
    category: str | None
    achieved: float
    ours: Guess
    ncu: Guess
    alarms: tuple[tuple[str, float], ...]

    def error(self, factor: float) -> float:
        return abs(factor - self.achieved) / self.achieved


@dataclass(frozen=True)
class Accuracy:
    """Shares of pairs, and errors; `judged` is their number."""

    judged: int
    top1: float
    top3: float
    mean_error: float
    max_error: float


@dataclass(frozen=True)
class Score:
    """All pairs, and what they sum up to; `false_alarms` is a share of controls and fixed pairs."""

    pairs: tuple[PairScore, ...]
    ours: Accuracy
    ncu: Accuracy
    no_gain: Accuracy
    false_alarms: float


def score(folders: Sequence[Path], rules: Sequence[Rule], read: Read) -> Score:
    """Judge the pairs in these folders; raises BadInput for one that is no pair."""
    pairs = tuple(_pair(folder, rules, read) for folder in folders)
    defects = [pair for pair in pairs if pair.category]
    alarmed = [bool(pair.alarms) for pair in pairs]
    return Score(
        pairs,
        _accuracy(defects, lambda pair: pair.ours),
        _accuracy(defects, lambda pair: pair.ncu),
        _accuracy(defects, lambda _: Guess(())),
        float(np.mean(alarmed)) if alarmed else math.nan,
    )


def pairs_in(folder: Path) -> tuple[Path, ...]:
    """The pairs below a folder, sorted; raises BadInput where there is none."""
    found = tuple(sorted(file.parent for file in folder.rglob("pair.yaml")))
    if not found:
        raise BadInput(f"{folder}: no pair.yaml below it", "name a folder of recorded pairs")
    return found


def _pair(folder: Path, rules: Sequence[Rule], read: Read) -> PairScore:
    try:
        told = yaml.safe_load((folder / "pair.yaml").read_text(encoding="utf-8"))
        category = told.get("category")
    except (OSError, yaml.YAMLError, AttributeError):
        raise BadInput(f"{folder / 'pair.yaml'}: can't be read", "restore it") from None
    before = read(_report(folder, BEFORE))
    ours = _ours(diagnose(before, rules))
    alarms = ours.promised(WORTH_AN_ALARM)
    if category and told.get("second_limit") == category:
        alarms = ()
    elif category:
        after = _ours(diagnose(read(_report(folder, AFTER)), rules))
        alarms = tuple(one for one in after.promised(WORTH_AN_ALARM) if one[0] == category)
    achieved = _achieved(folder / "latency.json") if category else math.nan
    return PairScore(folder.name, category, achieved, ours, _ncu(before), alarms)


def _report(folder: Path, side: str) -> Path:
    for suffix in _SUFFIXES:
        if (path := folder / f"{side}{suffix}").is_file():
            return path
    raise BadInput(f"{folder}: no {side}.ncu-rep(z)", "record the pair")


def _achieved(path: Path) -> float:
    """The factor between the medians of both sides."""
    medians = {
        one.label: float(np.median([sample for block in one.blocks for sample in block.samples]))
        for one in read_latencies(path).latencies
    }
    try:
        return medians[BEFORE] / medians[AFTER]
    except KeyError:
        raise BadInput(f"{path}: no latencies of {BEFORE} and {AFTER}", "record the pair") from None


def _ours(diagnosis: Diagnosis) -> Guess:
    return Guess(
        tuple(
            (found.rule.category, found.estimate.run if found.estimate else 1.0)
            for found in diagnosis.findings
        )
    )


def _ncu(report: ReportSummary) -> Guess:
    """ncu's own rules by its own estimates, weighted by each kernel's share of the time."""
    named = []
    for launch in report.measured:
        share = launch.duration / report.total
        for result in launch.rules:
            category = _category(result.rule, f"{result.title} {result.message}")
            if category and result.kind in {"optimization", "warning"}:
                left = 1 - share * min(max(result.speedup or 0.0, 0.0), 0.99)
                named.append((category, 1 / left))
    return Guess(tuple(sorted(named, key=lambda item: -item[1])))


def _category(rule: str, words: str) -> str | None:
    """The category that a rule of ncu's stands for; some tell by their words."""
    told = ncu_categories().get(rule)
    if isinstance(told, Mapping):
        return next((category for text, category in told.items() if text in words), None)
    return told


@cache
def ncu_categories() -> Mapping[str, str | Mapping[str, str]]:
    """ncu's rules by identifier, and the categories they stand for (`ncu_rules.yaml`)."""
    text = files("profkit.analysis").joinpath("ncu_rules.yaml").read_text(encoding="utf-8")
    loaded: Mapping[str, str | Mapping[str, str]] = yaml.safe_load(text)
    return loaded


def _accuracy(pairs: Iterable[PairScore], guess: Callable[[PairScore], Guess]) -> Accuracy:
    judged = [(pair, guess(pair)) for pair in pairs if pair.category]
    if not judged:
        return Accuracy(0, math.nan, math.nan, math.nan, math.nan)
    ranks = [told.rank(pair.category or "") or math.inf for pair, told in judged]
    errors = [pair.error(told.factor(pair.category or "")) for pair, told in judged]
    return Accuracy(
        judged=len(judged),
        top1=float(np.mean([rank <= 1 for rank in ranks])),
        top3=float(np.mean([rank <= 3 for rank in ranks])),
        mean_error=float(np.mean(errors)),
        max_error=float(np.max(errors)),
    )
