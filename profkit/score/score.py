"""Accuracy of findings on recorded pairs: predicted against measured speedup of a fix.

Three predictors are scored on each pair: profkit, ncu's rules (by the categories in
`ncu_rules.yaml`) and the prediction that no fix gives any speedup. An error is |estimate -
achieved| / achieved, of factors; a category that a predictor does not find counts as a prediction
of 1. A finding names a category where it predicts NAMED or more.

    PAIR/  pair.yaml                    category: of the defect; null, absent or control: true, none
                                        also: other categories accepted as the first cause
                                        kind: defect, several_limits, or no_gain; family: workload
                                        source: the repository that published it
           before.ncu-rep(z)            with the defect
           after.ncu-rep(z)             fixed; optional for a control
           latency.json                 of both; without it the reports' durations are compared

A set of pairs is judged by the fixes of others alone: without those of the families
and sources that published pairs of the set have. Pairs without a source leave out their family.

latency.json is what `profkit time` wrote, with the labels before and after, or `{"before": ...,
"after": ...}` in one unit, each a number, a list of samples or a mapping with a `median`.
"""

import math
import os
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from msgspec import Meta, Struct, convert, structs

from profkit.core.errors import BadInput, inside
from profkit.core.suggestion import did_you_mean
from profkit.core.text_files import read_json
from profkit.core.typed_file import Model, Output, Real, fault, number
from profkit.core.version import __version__
from profkit.core.yaml_files import read_yaml, shipped_yaml
from profkit.report.floors import WORTH
from profkit.report.summary import ReportSummary
from profkit.rules.calibration import Gain, shipped_calibration
from profkit.rules.checklist import Checklist
from profkit.rules.declared_headroom import DeclaredWork
from profkit.rules.finding import PROMISED, Estimate, Finding
from profkit.rules.memory import Certainty, shipped_memory
from profkit.rules.rule_file import shipped_rules
from profkit.rules.samples import CATEGORIES
from profkit.score.change import Change, change
from profkit.score.stories import Applications, mean
from profkit.score.without_counters import (
    BlindPart,
    BlindScore,
    TensorForm,
    WorkForm,
    blind_part,
    blind_score,
    declared_work,
)
from profkit.timing.latency_file import IN_A_RUN, UNITS, read_latencies
from profkit.timing.latency_format import SCHEMA

T = TypeVar("T")
PAIR = "pair.yaml"
BEFORE, AFTER = "before", "after"
_REPORTS = (".ncu-repz", ".ncu-rep")
_OF_A_CHECKOUT = Path("kernels", "pairs")
_FORMS = "before and after as numbers, lists of samples or mappings with a median"
NAMED = 1.05
"""The smallest factor by which a finding names a category, chosen: a fix that gains less is seldom
worth the work. Ranks are of the pairs whose fix gained as much."""
WORTH_AN_ALARM = 1.15  # factor, chosen: a smaller prediction seldom causes work on a kernel
NO_FINDING = (1.0, WORTH)
"""The range that a kernel without a finding is predicted: what saves less is not reported."""
ALL_SETS = "all sets"
_ESSENTIAL = ("dram_busy", "issue_busy", "stall_long_scoreboard")
"""Quantities without which a report is partial: what fixes are compared by needs those of
resources and of stalls, which ncu collects section by section."""
_LABELS = ("name", "set", "family", "source", "kind", "category", "also")
_ADVISES = {"optimization", "warning"}
_MOST_OF_A_KERNEL = 0.99  # of its time, chosen: caps ncu's estimates, so that factors stay finite

Examine = Callable[[Path], tuple[ReportSummary, Checklist]]
"""Reads a report and diagnoses it."""


Guess = Sequence[tuple[str, float, bool]]
"""The findings of a predictor in a report: categories in order, each with its factor and whether it
is a facet of another."""


Kind = Literal["defect", "several_limits", "no_gain"]
"""One defect dominates; several limits compete; or the category's usual fix gives nothing."""


@dataclass(frozen=True)
class RecordedPair:
    """A pair. `category` is None for a control; `second_limit` is the limiter after the fix.

    Pairs of one workload have one `family`, those that someone published a `source`; `also` are
    other categories that are right.

    `achieved` is the factor by which the fix made it faster, NaN where that was not timed.
    `work` is what it declares, its parts NaN where it declares none; `seconds` is the timed median
    before the fix, NaN where it was not timed.
    """

    name: str
    category: str | None
    second_limit: str
    before: Path
    after: Path | None
    achieved: float
    family: str
    kind: Kind
    work: DeclaredWork = field(default_factory=DeclaredWork)
    seconds: float = math.nan
    also: tuple[str, ...] = ()
    source: str = ""
    set: str = ""

    @property
    def is_defect(self) -> bool:
        return self.category is not None and self.kind != "no_gain"

    @property
    def accepted(self) -> frozenset[str]:
        """The categories that are right; none of a control."""
        return frozenset((self.category, *self.also) if self.category else ())


Withheld = tuple[frozenset[str], frozenset[str]]
"""The families and the sources whose fixes a pair is not judged by."""


def withheld(pair: RecordedPair, pairs: Iterable[RecordedPair] = ()) -> Withheld:
    """What a pair of these is not judged by: its family, and what its set published."""
    published = [other for other in pairs if other.set == pair.set and other.source]
    families = {pair.family, *(other.family for other in published)}
    return frozenset(families), frozenset(other.source for other in published)


class PairFile(Struct, frozen=True):
    """The fields of pair.yaml that are read."""

    category: str | None = None
    control: bool = False
    second_limit: str | None = None
    family: str | None = None
    kind: Kind = "defect"
    also: tuple[str, ...] = ()
    source: str = ""
    inputs: dict[str, TensorForm] = {}
    output: TensorForm | None = None
    work: WorkForm | None = None

    @property
    def tensors(self) -> tuple[TensorForm, ...]:
        """The inputs and the output."""
        return (*self.inputs.values(), *([self.output] if self.output else []))


class Alarm(Model, frozen=True, kw_only=True):
    """A false alarm: a predicted speedup without a gain; `report` is the side of the finding."""

    category: str
    speedup: Annotated[float, Meta(ge=1)]
    report: Literal["before", "after"]


class Judged(Model, frozen=True, kw_only=True):
    """The result of one predictor on a pair: rank of the true category, from 1 (null: not named),
    and of the first one that is right, `related`; predicted factor and |estimated - achieved| /
    achieved (null for a control)."""

    rank: int | None = None
    related: int | None = None
    estimated: Real = math.nan
    error: Real = math.nan
    alarms: tuple[Alarm, ...] = ()


class Named(Model, frozen=True):
    """A category that profkit named in the report before the fix, with the predicted factor."""

    category: str
    factor: Annotated[float, Meta(ge=1)]


class Sure(Model, frozen=True):
    """How sure profkit called the first finding, and whether its category is right."""

    certainty: Certainty
    right: bool


class PairScore(Judged, frozen=True, kw_only=True):
    """A scored pair: `achieved` is the measured speedup of the fix, from timed latencies
    or from the durations in the reports. `category`, `measured` and `achieved` are null for a
    control. `range` has the lowest and highest factor of profkit's estimate for the report, made
    without what is withheld, `gain` what that rests on, `named` the first three categories that it
    names. `by_estimates` is profkit without recorded fixes. `first` is the likely factor of the
    first finding, 1 without any, `promised` what is promised of it: that, or where its range begins
    too low, the low end. `watched`: it has a report checked for false alarms,
    a control's in any category, one with nothing to gain in its category, or one after a fix in the
    fixed category, unless that is the pair's second limit."""

    name: str
    set: str
    gpu: str
    family: str
    source: str
    kind: Kind
    category: str | None
    also: tuple[str, ...]
    partial: bool
    achieved: Real
    measured: Literal["timed", "profiled"] | None
    range: tuple[float, float] | None
    gain: Gain | None
    named: tuple[Named, ...]
    by_estimates: Judged
    first: Annotated[float, Meta(ge=1)]
    promised: Annotated[float, Meta(ge=1)]
    sure: Sure | None
    ncu: Judged
    watched: bool
    without_counters: BlindScore

    @property
    def is_defect(self) -> bool:
        return self.category is not None and self.kind != "no_gain"

    @property
    def has_gained(self) -> bool:
        """Whether it is a defect whose fix gained as much as is worth the work."""
        return self.is_defect and self.achieved >= NAMED


class Accuracy(Model, frozen=True, kw_only=True):
    __doc__ = f"""The accuracy of one predictor; shares are fractions of 1, null without pairs.
    `top1` and `top3` are shares of the defects whose fix gained {NAMED} or more, `related1` and
    `related3` those with related categories accepted. `factor` is exp of the mean absolute
    logarithm of predicted over measured factor. `false_alarms` is a share of the reports with
    `nothing_to_gain`."""

    top1: Real
    top3: Real
    related1: Real
    related3: Real
    factor: Real
    mean_error: Real
    false_alarms: Real


class Count(Model, frozen=True):
    """How many of how many."""

    right: int
    among: int


class Part(Accuracy, frozen=True, kw_only=True):
    __doc__ = f"""Accuracy over pairs of profkit, of ncu's rules and of predicting no speedup.

    `defects` are scored by rank and error, the reports with `nothing_to_gain` (no defect of the
    finding's category) by false alarms. `coverage` is the share of the defects whose measured
    speedup lies in the predicted range ({NO_FINDING[0]} to {NO_FINDING[1]} without a finding of its
    category), `median_width` the median of its upper over its lower end. `promised` counts the
    pairs without a gain whose first finding promises {PROMISED} or more, `likely` those whose first
    finding predicts as much, `promised_gains` the promises among pairs whose fix gained, `sure` the
    first findings of each certainty that are right. `change` and `related_change` are those of
    `top1` and `related1` by recorded fixes, against the order `by_estimates` alone.
    """

    defects: int
    nothing_to_gain: int
    coverage: Real
    median_width: Real
    promised: Count
    likely: Count
    promised_gains: Count
    sure: dict[Certainty, Count]
    change: Change | None
    related_change: Change | None
    by_estimates: Accuracy
    ncu: Accuracy
    no_gain: Accuracy


class Score(Output, frozen=True, kw_only=True, tag="profkit.score/3"):
    """Accuracy of findings, over all pairs, by set and by kind, and of what is said of
    `applications`. Shares are fractions of 1. `sets` are of pairs with whole reports, `partial` of
    those whose reports lack what fixes are compared by; several have a part for all."""

    profkit: str
    summary: Part
    sets: dict[str, Part]
    partial: dict[str, Part]
    kinds: dict[str, Part]
    pairs: tuple[PairScore, ...]
    without_counters: BlindPart | None = None
    applications: Applications | None = None


def score(pairs: Sequence[PairScore], applications: Applications | None = None) -> Score:
    """Summarize scored pairs."""
    whole, partial = ([pair for pair in pairs if pair.partial is lacks] for lacks in (False, True))
    return Score(
        profkit=__version__,
        summary=_part(pairs),
        sets=_sets(whole),
        partial=_sets(partial),
        kinds=_parts(pairs, lambda pair: pair.kind if pair.category else "control"),
        pairs=tuple(pairs),
        without_counters=blind_part(
            [(pair.name, pair.without_counters, pair.category, pair.achieved) for pair in pairs]
        ),
        applications=applications,
    )


def _sets(pairs: Sequence[PairScore]) -> dict[str, Part]:
    parts = _parts(pairs, lambda pair: pair.set)
    return {**parts, ALL_SETS: _part(pairs)} if len(parts) > 1 else parts


def _parts(pairs: Sequence[PairScore], key: Callable[[PairScore], str]) -> dict[str, Part]:
    names = sorted({key(pair) for pair in pairs})
    return {name: _part([pair for pair in pairs if key(pair) == name]) for name in names}


def judge(pair: RecordedPair, examine: Examine, apart: Withheld | None = None) -> PairScore:
    """Score a pair, by all but what is withheld, its family by default; raises BadInput where its
    category is unknown or a report can't be read."""
    category, achieved, folder = pair.category, pair.achieved, pair.before.parent
    for name in (category, *pair.also):
        if name is not None and name not in CATEGORIES:
            other = f"use {', '.join(CATEGORIES)}; null for a control"
            remedy = did_you_mean(name, CATEGORIES, other, alike=0.5)
            raise BadInput(f"{folder / PAIR}: unknown category {name!r}", remedy)
    apart = apart or withheld(pair)
    memory = shipped_memory().without(*apart)
    calibration = shipped_calibration().without(*apart)
    examined = [
        (summary, checklist.remembering(memory, calibration))
        for report in (pair.before, pair.after)
        if report
        for summary, checklist in [examine(report)]
    ]
    reports = [report for report, _ in examined]
    if len(reports) > 1 and math.isnan(achieved):
        if not all(report.total > 0 for report in reports):
            message = f"{folder}: no latency.json, and its reports have no durations"
            raise BadInput(message, "add latency.json")
        achieved = reports[0].total / reports[1].total
    watched = not pair.is_defect or bool(pair.after and pair.second_limit != category)
    before = examined[0][1]
    guesses = [_own(checklist) for _, checklist in examined]
    nothing = memory.without({fix.family for fix in memory.fixes})
    forgetful = before.remembering(nothing, calibration)
    own, alone, ncu = (
        _judged(each, pair, achieved, watched=watched)
        for each in (
            guesses, [_own(forgetful), *guesses[1:]], [*map(_ncu, reports)],
        )
    )  # fmt: skip
    right = next((item for item in before.items if item.rule.category in pair.accepted), None)
    first = before.items[0].estimate if before.items else None
    measured: Literal["timed", "profiled"] = "profiled" if math.isnan(pair.achieved) else "timed"
    return PairScore(
        **structs.asdict(own),
        **{name: getattr(pair, name) for name in _LABELS},
        gpu=reports[0].gpus[0].name,
        partial=_is_partial(reports[0]),
        achieved=achieved,
        measured=measured if category else None,
        range=_range(right.estimate) if right and right.estimate else None,
        gain=_gain(right, pair, achieved) if right else None,
        named=tuple(Named(name, factor) for name, factor in _named(guesses[0]).items())[:3],
        by_estimates=alone,
        first=first.run if first else 1.0,
        promised=(first.run if first.is_promise else _range(first)[0]) if first else 1.0,
        sure=_sure(before, pair.accepted),
        ncu=ncu,
        without_counters=blind_score(
            pair.before, pair.family, pair.work, pair.seconds, examined, achieved
        ),
        watched=watched,
    )


def _is_partial(report: ReportSummary) -> bool:
    """Whether the kernel that takes the most time lacks what fixes are compared by."""
    slowest = max(report.groups, key=lambda group: group.total)
    return any(math.isnan(slowest.typical.get(name)) for name in _ESSENTIAL)


def _sure(checklist: Checklist, accepted: Collection[str]) -> Sure | None:
    """The first finding that has a certainty, and whether it is right; None for a control."""
    for item in checklist.items if accepted else ():
        if item.similar and item.similar.certainty:
            return Sure(item.similar.certainty, item.rule.category in accepted)
    return None


def _named(guess: Guess) -> dict[str, float]:
    """The categories that a predictor names, in order, with the factor of the first finding."""
    named: dict[str, float] = {}
    for name, factor, *_ in guess:
        if factor >= NAMED:
            named.setdefault(name, factor)
    return named


def _judged(
    guesses: Sequence[Guess], pair: RecordedPair, achieved: float, *, watched: bool
) -> Judged:
    """The findings of a predictor before the fix, and its alarms."""
    side: Literal["before", "after"] = "after" if pair.is_defect else "before"
    alarms = tuple(
        Alarm(category=name, speedup=factor, report=side)
        for name, factor, *_ in (guesses[-1 if side == "after" else 0] if watched else ())
        if factor >= WORTH_AN_ALARM and pair.category in {None, name}
    )
    if pair.category is None:
        return Judged(alarms=alarms)
    right = (factor for name, factor, *_ in guesses[0] if name in pair.accepted)
    estimated = next(right, 1.0)
    return Judged(
        rank=_rank(guesses[0], {pair.category}),
        related=_rank(guesses[0], pair.accepted),
        estimated=estimated,
        error=abs(estimated - achieved) / achieved,
        alarms=alarms,
    )


def _rank(guess: Guess, accepted: Collection[str]) -> int | None:
    """The first place of these categories, each among those that change numerics, or those that
    don't, after the causes before it; None where none is named."""
    named = _named(guess)
    facets = {name for name in named if next(row[2] for row in guess if row[0] == name)}
    ranks = []
    for apart in (_apart(), named.keys() - _apart()):
        own = [name for name in named if name in apart]
        for place, name in enumerate(own):
            if name in accepted:
                ranks.append(1 + sum(other not in facets for other in own[:place]))
    return min(ranks, default=None)


@cache
def _apart() -> frozenset[str]:
    """The categories of fixes that stand beside the ranking."""
    return frozenset(rule.category for rule in shipped_rules() if rule.is_apart)


def _own(checklist: Checklist) -> Guess:
    return [
        (
            item.rule.category,
            item.estimate.run if item.estimate else 1.0,
            bool(item.estimate and item.facet_of),
        )
        for item in (*checklist.items, *checklist.informative)
    ]


def _range(estimate: Estimate) -> tuple[float, float]:
    """The range of a kernel's estimate, as one of the whole report."""
    return estimate.of_run(estimate.low), estimate.of_run(estimate.high)


def _gain(item: Finding, pair: RecordedPair, achieved: float) -> Gain | None:
    """What a pair's fix gained, beside what was known of it before, both of the whole report."""
    known, estimate = item.prospect, item.estimate
    if known is None or estimate is None:
        return None
    return Gain(
        likely=estimate.of_run(known.likely),
        without_stalls=estimate.of_run(known.without_stalls),
        most=estimate.of_run(known.most),
        vote=known.vote,
        family=pair.family,
        measured=achieved,
        source=pair.source or "profkit",
    )


def _ncu(report: ReportSummary) -> Guess:
    """ncu's rules with ncu's estimates, weighted by each kernel's share of the time."""
    ranked = []
    for launch in report.measured:
        share = launch.duration / report.total
        for result in launch.rules:
            category = ncu_categories().get(result.rule)
            if isinstance(category, Mapping):
                words = f"{result.title} {result.message}"
                category = next((name for text, name in category.items() if text in words), None)
            if category and result.kind in _ADVISES:
                left = 1 - share * min(max(result.speedup or 0.0, 0.0), _MOST_OF_A_KERNEL)
                ranked.append((category, 1 / left, False))
    return sorted(ranked, key=lambda row: -row[1])


@cache
def ncu_categories() -> Mapping[str, str | Mapping[str, str]]:
    """ncu's rules by identifier, and their categories (`ncu_rules.yaml`)."""
    loaded: Mapping[str, str | Mapping[str, str]] = shipped_yaml("profkit.rules", "ncu_rules.yaml")
    return loaded


def _part(pairs: Sequence[PairScore]) -> Part:
    defects = [pair for pair in pairs if pair.is_defect]
    watched = [pair for pair in pairs if pair.watched]
    gained = [pair for pair in defects if pair.has_gained]
    idle = [pair for pair in pairs if pair.kind == "no_gain"]
    sure = [pair.sure for pair in gained if pair.sure]
    own, alone, ncu, no_gain = (
        _accuracy(defects, [judged(pair) for pair in defects], [judged(pair) for pair in watched])
        for judged in (lambda pair: pair, attrgetter("by_estimates"), attrgetter("ncu"), _no_gain)
    )
    families = [f"{pair.set}/{pair.family}" for pair in gained]
    exact, related = (
        change([(rank(pair) == 1) - (rank(pair.by_estimates) == 1) for pair in gained], families)
        for rank in (attrgetter("rank"), attrgetter("related"))
    )
    spans = [pair.range for pair in defects if pair.range]
    return Part(
        **structs.asdict(own),
        defects=len(defects),
        nothing_to_gain=len(watched),
        coverage=mean(
            [
                low <= each.achieved <= high
                for each in defects
                for low, high in [each.range or NO_FINDING]
            ]
        ),
        median_width=statistics.median(high / low for low, high in spans) if spans else math.nan,
        promised=_promises([pair.promised for pair in idle]),
        likely=_promises([pair.first for pair in idle]),
        promised_gains=_promises([pair.promised for pair in gained]),
        sure={
            name: Count(sum(each.right for each in own), len(own))
            for name in get_args(Certainty)
            for own in [[each for each in sure if each.certainty == name]]
        },
        change=exact,
        related_change=related,
        by_estimates=alone,
        ncu=ncu,
        no_gain=no_gain,
    )


def _promises(factors: Sequence[float]) -> Count:
    return Count(sum(factor >= PROMISED for factor in factors), len(factors))


def _no_gain(pair: PairScore) -> Judged:
    """The prediction that no fix gives any speedup."""
    return Judged(estimated=1.0, error=abs(1 - pair.achieved) / pair.achieved)


def _accuracy(
    defects: Sequence[PairScore], judged: Sequence[Judged], watched: Sequence[Judged]
) -> Accuracy:
    rows = list(zip(judged, defects, strict=True))
    gained = [row for row, pair in rows if pair.has_gained]
    return Accuracy(
        top1=mean([row.rank == 1 for row in gained]),
        top3=mean([(row.rank or 4) <= 3 for row in gained]),
        related1=mean([row.related == 1 for row in gained]),
        related3=mean([(row.related or 4) <= 3 for row in gained]),
        factor=math.exp(mean([abs(math.log(row.estimated / pair.achieved)) for row, pair in rows])),
        mean_error=mean([row.error for row in judged]),
        false_alarms=mean([bool(row.alarms) for row in watched]),
    )


def pairs_in(folders: Sequence[Path], *, optional: bool = False) -> tuple[Path, ...]:
    """The folders of pairs below folders, sorted by name.

    Raises BadInput where there is none, unless they are `optional`.
    """
    pairs = {file.parent for folder in folders for file in folder.rglob(PAIR)}
    if not pairs and not optional:
        raise BadInput(
            f"{folders[0]}: no {PAIR} in this directory", "pass a directory of recorded pairs"
        )
    return tuple(sorted(pairs, key=lambda pair: (pair.name, pair)))


def read_pair(folder: Path, definitions: Path | None = None, of: str = "") -> RecordedPair:
    """A pair of a set. Without declared work of its own it has that of its definition, in a folder
    of such.

    Raises BadInput where a part of it is missing or is not what it should be.
    """
    pair = _read(folder / PAIR, PairFile)
    before, after = (
        next((path for suffix in _REPORTS if (path := folder / f"{side}{suffix}").is_file()), None)
        for side in (BEFORE, AFTER)
    )
    is_control = pair.control or pair.category is None
    factor, seconds = _timed(folder / IN_A_RUN)
    if not is_control and after is None and math.isnan(factor):
        raise BadInput(f"{folder}: neither {AFTER}.ncu-rep(z) nor {IN_A_RUN}", "record one of them")
    if before is None:
        raise BadInput(f"{folder}: no {BEFORE}.ncu-rep(z)", "record it")
    return RecordedPair(
        folder.name,
        None if is_control else pair.category,
        "" if is_control else pair.second_limit or "",
        before,
        None if is_control else after,
        math.nan if is_control else factor,
        pair.family or folder.name,
        pair.kind,
        _work(pair, folder / PAIR, definitions and definitions / folder.name / PAIR),
        seconds,
        pair.also,
        pair.source,
        of,
    )


def _work(pair: PairFile, file: Path, definition: Path | None) -> DeclaredWork:
    """What a pair declares, or else its definition; raises BadInput for a formula that is none."""
    form = pair.work
    if form is None and definition and definition.is_file():
        form, file = _read(definition, PairFile).work, definition
    try:
        return declared_work(form or WorkForm(), pair.tensors)
    except ValueError as error:
        raise BadInput(f"{file}: work: {error}", "write numbers with + - * / and sqrt") from None


def definitions_of(pairs: Path) -> Path | None:
    """The definitions of recorded pairs: kernels/pairs of their checkout; None outside of one."""
    checkouts = (parent / _OF_A_CHECKOUT for parent in Path(os.path.realpath(pairs)).parents)
    return next((folder for folder in checkouts if folder.is_dir()), None)


def _read(path: Path, model: type[T]) -> T:
    """The content of a YAML file; raises BadInput with the place of the fault."""
    content = read_yaml(path)
    if wrong := fault(content, model):
        where = ".".join(map(str, wrong[0]))
        raise BadInput(f"{path}: {f'{where}: ' if where else ''}{wrong[1]}", "check the file")
    return convert(content, model)


def _timed(path: Path) -> tuple[float, float]:
    """The factor between the medians of both sides, and that before in seconds, NaN where the file
    does not tell its unit; both NaN where there is no such file."""
    if not path.exists():
        return math.nan, math.nan
    document = read_json(path)
    sides = document if isinstance(document, dict) else {}
    if is_own := sides.get("schema") == SCHEMA:
        rows = read_latencies(path).latencies
        medians = {latency.label: statistics.median(latency.samples) for latency in rows}
    else:
        with inside(path, f"write {_FORMS}"):
            medians = {
                side: _median(sides[side], side) for side in (BEFORE, AFTER) if side in sides
            }
    if is_own and medians.keys() == {BEFORE}:  # a control
        return math.nan, medians[BEFORE]
    if BEFORE not in medians or AFTER not in medians:
        raise BadInput(f"{path}: no latencies of {BEFORE} and {AFTER}", f"write {_FORMS}")
    return medians[BEFORE] / medians[AFTER], medians[BEFORE] if is_own else math.nan


def _median(times: Any, side: str) -> float:
    """The median of a side in whatever unit; raises BadInput where it is not a positive time."""
    scale = 1.0
    if isinstance(times, dict):
        names = {"median": 1.0} | {f"median_{unit}": factor for unit, factor in UNITS.items()}
        key = next((name for name in names if name in times), None)
        if key is None:
            raise BadInput(f"{side} has no median")
        times, scale = times[key], names[key]
    samples = times if isinstance(times, list) else [times]
    if not samples:
        raise BadInput(f"{side} has no samples")
    median = statistics.median(number(sample, f"{side}: a sample") for sample in samples)
    if not median > 0:
        raise BadInput(f"{side}: the median {median:g} is not a positive time")
    return median * scale
