"""The checklist: what rules found, ranked over the report, with what to do about each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

from profkit.report.catalog import catalog
from profkit.report.floors import floors
from profkit.report.quantities import NOT_COLLECTED, NOT_IN_VERSION
from profkit.report.source_lines import Place
from profkit.report.summary import Group, LaunchSummary, ReportSummary
from profkit.rules.engine import NOT_SAMPLED, Finding, Lack, Sampling, diagnose
from profkit.rules.region_rules import diagnose_region, unknown_region
from profkit.rules.rule_file import Rule, shipped_rules
from profkit.rules.samples import SAMPLED, SAMPLED_FROM

if TYPE_CHECKING:
    from profkit.rules.proof import Proof

SAME_WEIGHT = 0.1
_AT_THE_ROOF = "at_the_roof"
_ANY = "any"
_ANY_GPU = (0, 0)

Found = Finding[Group | None]
Blame = Callable[[LaunchSummary, Sequence[str]], tuple[Place, ...]]


@dataclass(frozen=True)
class Item:
    """A finding in its place; `rank` is 0 where it has no estimate and so no place.

    `actions` are those for the kernel's architecture, `places` what the rule blames where that was
    recorded and asked for. `peers` are the ranks of other findings on the same kernel that save
    about as much time: limits of the same weight. `page` tells about the rule, "" where it is not
    one of profkit's own. `picked` says that its gain of a whole is of the launches that were picked
    from a report, not of all that it holds.
    """

    rank: int
    finding: Finding[Group | None]
    actions: tuple[str, ...]
    places: tuple[Place, ...]
    peers: tuple[int, ...]
    page: str
    picked: bool = False

    @property
    def rule(self) -> Rule:
        return self.finding.rule

    @property
    def group(self) -> Group | None:
        """The kernel that it is about; None where it is about a timeline as a whole."""
        return self.finding.group


@dataclass(frozen=True)
class Roof:
    """A kernel at a roof: `busy` is the share of its cycles that it uses the resource.

    `less` is the rank of the first finding that promises to need less of it, 0 for none.
    """

    group: Group
    label: str
    busy: float
    less: int


@dataclass(frozen=True)
class Unevaluated:
    """A rule that could not be evaluated on some `kernels`: `reasons` has why, for each quantity
    that it lacks there; `sections` are what to collect."""

    rule: str
    kernels: int
    reasons: Mapping[str, str]
    sections: tuple[str, ...]

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(self.reasons)

    @property
    def unsampled(self) -> bool:
        """Whether all that it lacks is samples that were recorded and not read."""
        return set(self.reasons.values()) == {NOT_SAMPLED}


@dataclass(frozen=True)
class Checklist:
    """Everything found in a report. `rules` were tried on `kernels`; `skipped` have no duration.

    `items` have an estimate and are ranked by it; `informative` findings have none.
    """

    items: tuple[Item, ...]
    informative: tuple[Item, ...]
    roofs: tuple[Roof, ...]
    proofs: tuple[Proof, ...]
    unevaluated: tuple[Unevaluated, ...]
    rules: int
    kernels: int
    skipped: int

    @property
    def findings(self) -> tuple[Item, ...]:
        """Ranked and informative items."""
        return (*self.items, *self.informative)

    def place(self, item: Item) -> int:
        """The place of an item among all findings, from 1."""
        return self._places[id(item)]

    @cached_property
    def _places(self) -> Mapping[int, int]:
        return {id(item): place for place, item in enumerate(self.findings, start=1)}

    @property
    def evaluated(self) -> int:
        """How many rules were evaluated on every kernel, but for samples that were not read."""
        return self.rules - len(self.lacking)

    @property
    def lacking(self) -> tuple[Unevaluated, ...]:
        """The rules that lack data, and not only the reading of samples."""
        return tuple(rule for rule in self.unevaluated if not rule.unsampled)

    @property
    def inconclusive(self) -> bool:
        """Whether that nothing was found says nothing: most rules lack data, or there is no kernel
        to try them on."""
        return not self.findings and (self.kernels == 0 or 2 * self.evaluated < self.rules)

    @property
    def headline(self) -> Proof | None:
        """The proof that saves the most, where no finding promises to save as much."""
        most = max(self.proofs, key=lambda proof: proof.saved, default=None)
        promised = max((item.finding.saved for item in self.items), default=0.0)
        return most if most and most.saved > promised else None

    def proof_of(self, item: Item) -> Proof | None:
        """What is proven of the variant that an item's kernel belongs to, where it is more than
        the item promises; None for a kernel of several variants."""
        if item.group is None:
            return None
        ranges = {name for launch in item.group.launches for name in launch.launch.nvtx}
        own = [proof for proof in self.proofs if proof.variant in ranges]
        return own[0] if len(own) == 1 and own[0].saved > item.finding.saved else None

    @property
    def sections(self) -> tuple[str, ...]:
        """What to collect so that all rules can be told."""
        return tuple(dict.fromkeys(name for rule in self.unevaluated for name in rule.sections))

    def of(self, group: Group) -> tuple[Item, ...]:
        """The ranked items on one kernel."""
        return tuple(item for item in self.findings_of(group) if item.rank)

    def findings_of(self, group: Group) -> tuple[Item, ...]:
        """The ranked and informative items on one kernel."""
        return self._by_kernel.get(group.typical.index, ())

    @cached_property
    def _by_kernel(self) -> Mapping[int, tuple[Item, ...]]:
        """Items by the launch that is typical of their kernel."""
        found: dict[int, tuple[Item, ...]] = {}
        for item in self.findings:
            if item.group:
                at = item.group.typical.index
                found[at] = (*found.get(at, ()), item)
        return found


def checklist(
    report: ReportSummary,
    rules: Sequence[Rule],
    *,
    disabled: Collection[str] = (),
    proofs: tuple[Proof, ...] = (),
    blame: Blame = lambda *_: (),
    blamed: int | None = None,
    timeline: Mapping[str, float] | None = None,
    sampling: Sampling = lambda _: None,
) -> Checklist:
    """The checklist of a report.

    `disabled` are names or categories of rules left out. `blame` tells the places of a launch by
    line quantities; it is asked for the first `blamed` items, all where that is None. `timeline`
    are the quantities of the timeline (analysis.region) that was recorded with it. `sampling` tells
    what a launch's samples by instruction say.
    """
    tried = [rule for rule in rules if not {rule.name, rule.category} & set(disabled)]
    diagnosis = diagnose(report, tried, sampling=sampling)
    of_region = diagnose_region(timeline or {}, tried)
    together: list[Found] = [*diagnosis.findings, *of_region]
    found = sorted(together, key=lambda finding: -finding.saved)
    picked = len(report.launches) < report.recorded
    items = _items(found, blame, blamed, picked=picked)
    counted = [rule for rule in tried if timeline or not rule.about_timeline]
    return Checklist(
        tuple(item for item in items if item.rank),
        tuple(item for item in items if not item.rank),
        _roofs(items),
        proofs,
        _unevaluated({**diagnosis.unknown, **unknown_region(timeline or {}, tried)}),
        rules=len(counted),
        kernels=diagnosis.kernels,
        skipped=len(report.groups) - diagnosis.kernels,
    )


def region_items(
    timeline: Mapping[str, float], rules: Sequence[Rule], disabled: Collection[str] = ()
) -> tuple[Item, ...]:
    """What rules find in a timeline alone, by its quantities, most time saved first."""
    tried = [rule for rule in rules if not {rule.name, rule.category} & set(disabled)]
    return _items(diagnose_region(timeline, tried), lambda *_: (), None)


def _items(
    found: Sequence[Found], blame: Blame, blamed: int | None, *, picked: bool = False
) -> tuple[Item, ...]:
    same = _same_weight(found)
    return tuple(
        Item(
            rank if finding.estimate else 0,
            finding,
            _actions(finding),
            _places(finding, blame) if blamed is None or rank <= blamed else (),
            same.get(rank, ()),
            _page(finding.rule),
            picked,
        )
        for rank, finding in enumerate(found, start=1)
    )


def _actions(finding: Found) -> tuple[str, ...]:
    cc = finding.group.typical.gpu.cc if finding.group else _ANY_GPU
    return tuple(action.text for action in finding.rule.actions if action.suits(cc))


def _places(finding: Found, blame: Blame) -> tuple[Place, ...]:
    if finding.group is None or not finding.rule.blame:
        return ()
    return blame(finding.group.typical, finding.rule.blame)


def _same_weight(found: Sequence[Found]) -> Mapping[int, tuple[int, ...]]:
    """By the rank of a finding, those of others on its kernel that save about as much."""
    promising: dict[int, list[tuple[int, float]]] = {}
    for rank, finding in enumerate(found, start=1):
        if finding.estimate and finding.group:
            own = promising.setdefault(finding.group.typical.index, [])
            own.append((rank, finding.saved))
    return {
        rank: tuple(
            other
            for other, saves in own
            if other != rank and min(saves, saved) >= (1 - SAME_WEIGHT) * max(saves, saved)
        )
        for own in promising.values()
        for rank, saved in own
    }


def _page(rule: Rule) -> str:
    """Where a shipped rule is told about; a rule of its name that replaces it is not."""
    return f"docs/rules.md#{rule.name}" if _told().get(rule.name) == rule.explanation else ""


@cache
def _told() -> Mapping[str, str]:
    return {rule.name: rule.explanation for rule in shipped_rules()}


def _roofs(items: Sequence[Item]) -> tuple[Roof, ...]:
    helping: dict[int, int] = {}
    for item in items:
        if item.finding.estimate and item.group:
            helping.setdefault(item.group.typical.index, item.rank)
    found = []
    for item in items:
        if item.group and item.rule.category == _AT_THE_ROOF:
            typical = item.group.typical
            highest = floors(typical.values)[0]
            less = helping.get(typical.index, 0)
            found.append(Roof(item.group, highest.label, highest.busy, less))
    return tuple(sorted(found, key=lambda roof: -roof.group.total))


def _unevaluated(unknown: Mapping[str, Lack]) -> tuple[Unevaluated, ...]:
    return tuple(
        Unevaluated(rule, lack.kernels, lack.reasons, _sections(lack.reasons))
        for rule, lack in unknown.items()
    )


def _sections(reasons: Mapping[str, str]) -> tuple[str, ...]:
    """The sections to collect so that what was not collected is there."""
    quantities = catalog().quantities
    wanted = (
        quantities[SAMPLED_FROM if name in SAMPLED else name].section
        for name, reason in reasons.items()
        if reason.startswith(NOT_COLLECTED) and reason != NOT_IN_VERSION
    )
    return tuple(dict.fromkeys(section for section in wanted if section != _ANY))
