"""The checklist: findings of rules with their actions, ranked over the report."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import count
from typing import TYPE_CHECKING

from profkit.core.grouping import grouped
from profkit.report.source_lines import Place
from profkit.report.summary import Group, LaunchSummary, ReportSummary
from profkit.rules.calibration import Calibration
from profkit.rules.causes import with_causes
from profkit.rules.engine import (
    AT_THE_ROOF,
    Sampling,
    diagnose,
    diagnose_application,
    diagnose_timeline,
)  # fmt: skip
from profkit.rules.finding import (
    DemonstratedSpeedup,
    Estimate,
    Finding,
    FindingGroup,
    UnevaluatedRule,
)
from profkit.rules.headroom import Headroom
from profkit.rules.libraries import caller_actions, library_of
from profkit.rules.memory import Memory
from profkit.rules.rule_file import DIVISION, Rule, shipped_rules
from profkit.rules.samples import NOT_SAMPLED, WORTH_SAMPLING
from profkit.rules.standing import remember
from profkit.rules.tried import Tried
from profkit.ui.text import plural

if TYPE_CHECKING:
    from profkit.timing.variants import Variants

# chosen: near the smallest change that a comparison of two runs usually detects; a smaller minimum
# adds items whose effect could not be verified
WORTH_ACTING = 0.02
SHOWN = 3  # chosen: after three tries that gained nothing, another recording says more
WORTH_TRYING = 1.05  # chosen: of less, timing shows a gain only with many repetitions
_FASTER = 1.05  # chosen: a variant faster by less is no alternative worth naming
_SHOWN = 10  # findings in a `repr`: chosen, all of most reports, and never more than a screen

Blame = Callable[[LaunchSummary, Sequence[str]], tuple[Place, ...]]


@dataclass(frozen=True)
class Wholes:
    """What speedups are of: the GPU time (s) of each variant of a report of several, and of the
    report, whose name is ""."""

    times: Mapping[str, float]

    def name(self, launch: LaunchSummary) -> str:
        """The variant that a launch belongs to; "" for none."""
        return next((name for name in launch.launch.nvtx if name in self.times), "")

    def most(
        self, shares: Iterable[tuple[LaunchSummary, float]], whole: str | None = None
    ) -> tuple[float, str]:
        """The largest share of a whole, or of a given one, that shares of launches are, and that
        whole."""
        seconds: dict[str, float] = defaultdict(float)
        for launch, share in shares:
            seconds[self.name(launch)] += share * launch.duration
        names = seconds if whole is None else {whole: None}
        wholes = ((seconds[name] / self.times[name], name) for name in names)
        # of variants with the same kernel, the first
        return max(wholes, key=lambda whole: round(whole[0], 2), default=(0.0, ""))

    def saved(
        self,
        findings: Iterable[Finding],
        speedup: Callable[[Finding, Estimate], float] = lambda _, estimate: estimate.likely,
        whole: str | None = None,
    ) -> tuple[float, str]:
        """The largest share of a whole, or of a given one, that fixing these findings of one rule
        saves by a `speedup` of each, and that whole; a launch that several of them cover counts
        once, with the largest share saved."""
        shares: dict[int, float] = {}
        launches: dict[int, LaunchSummary] = {}
        for finding in findings:
            estimate = finding.estimate
            if estimate is None or finding.group is None:
                return 1 - 1 / estimate.run if estimate else math.nan, ""
            for launch in estimate.launches:
                launches[launch.index] = launch
                share = 1 - 1 / speedup(finding, estimate)
                shares[launch.index] = max(share, shares.get(launch.index, 0.0))
        return self.most(((launches[index], share) for index, share in shares.items()), whole)

    def taken(self, findings: Iterable[Finding]) -> float:
        """The share of the time that kernels with these findings have."""
        groups = [item.group for item in findings]
        if None in groups:
            return 1.0
        launches = (launch for group in groups if group for launch in group.launches)
        return self.most((launch, 1.0) for launch in launches if not launch.failed)[0]


def _wholes(report: ReportSummary, variants: Collection[str]) -> Wholes:
    """The variants that a report has launches of, where they are several, and the report."""
    times: dict[str, float] = defaultdict(float)
    for launch in report.launches:
        name = next((name for name in launch.launch.nvtx if name in variants), None)
        if name and not launch.failed:
            times[name] += launch.duration
    return Wholes({**(times if len(times) > 1 else {}), "": report.total})


@dataclass(frozen=True)
class Checklist:
    """Everything found in a report. `rules` were tried on `kernels`; `skipped` have no duration.

    `items` have an estimate and are sorted by the speedup of their rule for its whole;
    `informative` findings have none. `headrooms` are of the kernels whose DRAM traffic is
    known, by their typical launches.
    """

    items: tuple[Finding, ...]
    informative: tuple[Finding, ...]
    proofs: tuple[DemonstratedSpeedup, ...]
    unevaluated: tuple[UnevaluatedRule, ...]
    rules: int
    kernels: int
    skipped: int
    wholes: Wholes
    headrooms: Mapping[int, Headroom] = field(default_factory=dict)

    def remembering(self, memory: Memory, calibration: Calibration) -> Checklist:
        """The checklist in the order that another memory of fixes gives, with other ranges."""
        items = _ranked(remember(self.items, memory, calibration), self.wholes)
        return replace(self, items=tuple(items))

    def with_tried(self, rows: Mapping[str, Sequence[Tried]], variant: str) -> Checklist:
        """The checklist with what experiments on a variant gave, by the category that they are a
        fix of: on the variant's kernel that takes the most time, or the report's."""
        times: dict[int, float] = defaultdict(float)
        for item in self.items:
            for launch in item.group.launches if item.group else ():
                if variant in launch.launch.nvtx or variant not in self.wholes.times:
                    times[id(item.group)] += launch.duration
        slowest = max(times, key=times.__getitem__, default=0)
        items = [
            item.with_tried(rows.get(item.rule.category, ())) if id(item.group) == slowest else item
            for item in self.items
        ]
        return replace(self, items=tuple(_ranked(items, self.wholes)))

    @cached_property
    def rule_items(self) -> tuple[FindingGroup, ...]:
        """The findings of each rule as one item: by number, then those without an estimate."""
        groups = [
            FindingGroup(
                findings[0].rank, findings, 1 / (1 - share), _is_minor(findings, share), variant,
                range=(1 / (1 - low), 1 / (1 - high)),
            )
            for findings in _by_rule(item for item in self.items if not item.facet_of)
            for share, variant in [self.wholes.saved(findings)]
            for low, _ in [self.wholes.saved(findings, lambda _, each: each.low, variant)]
            for high, _ in [self.wholes.saved(findings, lambda _, each: each.high, variant)]
        ]  # fmt: skip
        informative = [
            FindingGroup(0, findings, math.nan, self.wholes.taken(findings) < WORTH_ACTING)
            for findings in _by_rule(self.informative)
        ]
        first = [
            replace(group, comes_first=True)
            for group in (*informative, *groups)
            if group.rule.first and self.wholes.taken(group.findings) >= WORTH_SAMPLING
        ]
        ahead = {group.rule.name for group in first}
        return (*first, *(each for each in (*groups, *informative) if each.rule.name not in ahead))

    def headroom_of(self, group: Group | None) -> Headroom | None:
        """The headroom of a kernel; None where it is unknown."""
        return self.headrooms.get(group.typical.index) if group else None

    def facets_of(self, item: Finding) -> tuple[Finding, ...]:
        """The other findings on a finding's kernel that show the same cause."""
        others = self.findings_on(item.group)
        return tuple(each for each in others if each.facet_of == item.rule.name)

    def rival_of(self, item: Finding) -> Finding | None:
        """The cause that a kernel's first one stands before; None where it is the only one."""
        others = (
            each
            for each in self.findings_on(item.group)
            if each.rank and each is not item and not (each.facet_of or each.rule.is_apart)
        )
        return max(others, key=_standing, default=None)

    @cached_property
    def causes(self) -> tuple[FindingGroup, ...]:
        """The ranked items that are worth acting on and keep results; SHOWN of them are shown in
        full."""
        worth = [group for group in self.rule_items if group.is_cause and not group.minor]
        return (*worth[:SHOWN], *(row for row in worth[SHOWN:] if row.speedup >= WORTH_TRYING))

    @property
    def divided(self) -> tuple[Finding, ...]:
        """Kernels with fewer blocks than SMs; no counter says whether their work can be divided."""
        return tuple(
            item
            for item in self.findings
            if item.group and item.rule.category == DIVISION
            if item.group.typical.get("grid_size") < item.group.typical.get("sm_count")
            if item.headroom is None or item.headroom.factor >= WORTH_TRYING
            if item.group.share >= WORTH_ACTING
        )

    @property
    def major(self) -> tuple[FindingGroup, ...]:
        """The items worth acting on: what to fix first, causes, fixes that change numerics, and
        those without an estimate. Neither roofs are items, nor what is `divided`."""
        others = [group for group in self.listed if not group.minor and group not in self.causes]
        first = (group for group in others if group.comes_first)
        informative = (group for group in others if not (group.rank or group.comes_first))
        return (*first, *self.causes, *self.numerics, *informative)

    @property
    def numerics(self) -> tuple[FindingGroup, ...]:
        """The ranked items that are worth acting on and change numerics."""
        return tuple(
            group
            for group in self.listed
            if group.rank and group.rule.numerics and not (group.minor or group.comes_first)
        )

    @property
    def minor(self) -> tuple[FindingGroup, ...]:
        """The items that are not worth acting on now."""
        shown = self.major
        return tuple(group for group in self.listed if group not in shown)

    @property
    def listed(self) -> tuple[FindingGroup, ...]:
        """All items but those at a roof and what is `divided`, which have lists of their own."""
        return tuple(
            group
            for group in self.rule_items
            if not (group.rule.divides or group.rule.category == AT_THE_ROOF)
        )

    def __repr__(self) -> str:
        extent = f"{plural(self.rules, 'rule')} on {plural(self.kernels, 'kernel')}"
        lacking = f", {plural(len(self.lacking), 'rule')} lacking data" if self.lacking else ""
        count, every = len(self.rule_items), len(self.findings)
        kernels = f" ({every} counting each kernel and facet)" if every > count else ""
        head = f"<Checklist: {plural(count, 'finding')}{kernels}, {extent}{lacking}"
        head += "; by speedup of the whole" if self.items else ""
        shown = self.rule_items[:_SHOWN]
        gains = [item.gain if item.rank else "no estimate" for item in shown]
        width = max(map(len, gains), default=0)
        lines = [
            f"  {item.rank or '-':>2}  {gain:{width}}  {item.title}: "
            f"{item.best.subject}{item.other_kernels}{item.own_speedup}"
            for item, gain in zip(shown, gains, strict=True)
        ]
        if more := len(self.rule_items) - len(shown):
            lines.append(f"  and {plural(more, 'more item')}")
        return "\n".join([head, *lines]) + ">"

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What to fix first, then ranked and informative items."""
        first = [item for item in (*self.informative, *self.items) if item.rule.first]
        return (*first, *(item for item in (*self.items, *self.informative) if not item.rule.first))

    @property
    def evaluated(self) -> int:
        """How many rules were evaluated on every kernel, but for samples that were not read."""
        return self.rules - len(self.lacking)

    @property
    def lacking(self) -> tuple[UnevaluatedRule, ...]:
        """The rules that lack data, and not only the reading of samples."""
        return tuple(rule for rule in self.unevaluated if not rule.unsampled)

    @property
    def inconclusive(self) -> bool:
        """Whether nothing is certain: most rules lack data, also those that may have found
        something, or there is no kernel to try them on."""
        is_certain = any(not finding.is_uncertain for finding in self.findings)
        return not is_certain and (self.kernels == 0 or 2 * self.evaluated < self.rules)

    @property
    def headline(self) -> DemonstratedSpeedup | None:
        """The demonstrated speedup that saves the most, where no estimate saves as much."""
        most = max(self.proofs, key=lambda proof: proof.saved, default=None)
        estimated = max((item.saved for item in self.items), default=0.0)
        return most if most and most.saved > estimated else None

    def proof_of(self, item: Finding) -> DemonstratedSpeedup | None:
        """The demonstrated speedup of the variant that an item's kernel belongs to, where it saves
        more than the item; None for a kernel of several variants."""
        launches = item.group.launches if item.group else ()
        ranges = {name for launch in launches for name in launch.launch.nvtx}
        own = [proof for proof in self.proofs if proof.variant in ranges]
        return own[0] if len(own) == 1 and own[0].saved > item.saved else None

    @property
    def roofs(self) -> tuple[Group, ...]:
        """Kernels at a roof, most time first."""
        groups = [item.group for item in self.findings if item.rule.category == AT_THE_ROOF]
        return tuple(sorted(filter(None, groups), key=lambda group: -group.total))

    def findings_on(self, group: Group | None) -> tuple[Finding, ...]:
        """The ranked and informative items on one kernel."""
        return tuple(self._by_launch.get(group.typical.index, ())) if group else ()

    @cached_property
    def _by_launch(self) -> Mapping[int | None, Sequence[Finding]]:
        """Items by the launch that is typical of their kernel."""
        return grouped((item.launch, item) for item in self.findings)


def checklist(
    report: ReportSummary,
    rules: Sequence[Rule],
    *,
    disabled: Collection[str] = (),
    proofs: tuple[DemonstratedSpeedup, ...] = (),
    blame: Blame = lambda *_: (),
    timeline: Mapping[str, float] | None = None,
    sampling: Sampling = lambda _: NOT_SAMPLED,
    variants: Collection[str] = (),
) -> Checklist:
    """The checklist of a report.

    `disabled` are names or categories of rules left out. `blame` finds the places of a launch by
    line quantities. `timeline` are the quantities of the timeline (timeline.region) that was
    recorded with it. `sampling` reads a launch's samples by instruction. `variants` are the names
    of those of one work: where the report has several, a finding's gain is of the time of its own.
    """
    enabled = _enabled(rules, disabled)
    kernels = diagnose(report, enabled, sampling)
    whole = diagnose_timeline(timeline or {}, enabled)
    findings: list[Finding] = [*kernels.findings, *whole.findings]
    wholes = _wholes(report, variants)
    is_selection = len(report.launches) < report.recorded
    moving = {launch.index for launch in report.launches if "dram_busy" in launch.values}
    headrooms = {index: most for index, most in kernels.headrooms.items() if index in moving}
    items = _items(findings, wholes, blame, is_selection=is_selection, headrooms=headrooms)
    return Checklist(
        tuple(item for item in items if item.rank),
        tuple(item for item in items if not item.rank),
        proofs,
        (*kernels.unknown.values(), *whole.unknown.values()),
        rules=sum(
            rule.about == "kernel" or (rule.about == "timeline" and bool(timeline))
            for rule in enabled
        ),
        kernels=kernels.kernels,
        skipped=len(report.groups) - kernels.kernels,
        wholes=wholes,
        headrooms=headrooms,
    )


def timeline_items(
    quantities: Mapping[str, float], rules: Sequence[Rule], disabled: Collection[str] = ()
) -> tuple[Finding, ...]:
    """What rules find in a timeline alone, by its quantities, most time saved first."""
    return _items(diagnose_timeline(quantities, _enabled(rules, disabled)).findings, Wholes({}))


def application_items(
    quantities: Mapping[str, float], rules: Sequence[Rule], disabled: Collection[str] = ()
) -> tuple[Finding, ...]:
    """What rules find in an application's step, by its quantities, the likeliest gain first."""
    found = diagnose_application(quantities, _enabled(rules, disabled))
    items = _items(found, Wholes({}), values=quantities)
    by_gain = sorted(items, key=lambda item: item.speedup, reverse=True)
    return tuple(replace(item, rank=rank) for rank, item in enumerate(by_gain, 1))


def with_tried(findings: Sequence[Finding], rows: Sequence[Tried]) -> tuple[Finding, ...]:
    """Findings with what was tried of their switches: those that are proven come first, those that
    gave nothing last."""
    if not rows:
        return tuple(findings)
    known = [
        item.with_tried(row for row in rows if set(row.switches) <= set(item.switches))
        for item in findings
    ]
    known.sort(key=_after_trials)
    return tuple(replace(item, rank=rank) for rank, item in enumerate(known, 1))


def _after_trials(item: Finding) -> tuple[bool, bool, float]:
    """Where it stands; the sort keeps the order of estimates."""
    tried = item.tried
    if tried is None:
        return True, False, 0.0
    gain = (tried.speedup or 0.0) if tried.is_proven else 0.0
    return not tried.is_proven, tried.is_in_vain, -gain


def _enabled(rules: Sequence[Rule], disabled: Collection[str]) -> list[Rule]:
    return [rule for rule in rules if not {rule.name, rule.category} & set(disabled)]


def _items(
    findings: Iterable[Finding],
    wholes: Wholes,
    blame: Blame = lambda *_: (),
    *,
    is_selection: bool = False,
    headrooms: Mapping[int, Headroom] | None = None,
    values: Mapping[str, float] | None = None,
) -> tuple[Finding, ...]:
    """Findings as items; `values` are the quantities of a timeline, of which they all are."""
    placed = (
        replace(each, blamed=blame(each.group.typical, each.rule.blame))
        if each.group and each.rule.blame
        else each
        for each in findings
    )
    items = []
    for finding in _ranked(placed, wholes):
        rule, typical = finding.rule, finding.group.typical if finding.group else None
        # a rule that replaces a shipped one of its name has no page, and says itself what to do
        is_shipped = _explanations().get(rule.name) == rule.explanation
        library = library_of(typical.name) if typical and is_shipped else None
        where = (typical.gpu.cc, typical.values) if typical else ((0, 0), values or {})
        own = rule.actions_on(*where)
        items.append(
            replace(
                finding,
                actions=caller_actions(library, rule.category) if library else own,
                switches=rule.switches_in(where[1]),
                page=f"docs/reference/rules.md#{rule.name}" if is_shipped else "",
                is_selection=is_selection,
                library=library,
                headroom=(headrooms or {}).get(typical.index) if typical else None,
            )
        )
    return tuple(items)


def _ranked(findings: Iterable[Finding], wholes: Wholes) -> list[Finding]:
    """Findings by the standing of their rule in its whole, which gives them their rank, and by
    their own speedup; those without an estimate last. `run` is of the whole of each.

    The facets of a cause have the rank of its head. Rules whose findings are all void until others
    are fixed come after the others of their list.
    """
    by_standing = sorted(findings, key=lambda each: (-_standing(each), not each.is_first))
    findings = with_causes(_with_void(by_standing))
    causes = [finding for finding in findings if finding.estimate and not finding.facet_of]
    order = sorted(
        _by_rule(causes),
        key=lambda own: (
            not _is_proven(own),
            all(finding.void_until for finding in own),
            -wholes.saved(own, lambda each, known: (each.standing or known).likely)[0],
        ),
    )
    ranks = {own[0].rule.name: rank for rank, own in enumerate(_as_listed(order, wholes), 1)}
    ranked = []
    for finding in findings:
        share, variant = wholes.saved([finding])
        estimate = finding.estimate and replace(finding.estimate, run=1 / (1 - share))
        rank = ranks[finding.facet_of or finding.rule.name] if estimate else 0
        ranked.append(replace(finding, rank=rank, estimate=estimate, variant=variant))
    return sorted(ranked, key=_order)


def _as_listed(
    order: Sequence[tuple[Finding, ...]], wholes: Wholes
) -> Sequence[tuple[Finding, ...]]:
    """Findings by rule in the order of the lists that show them, so that numbers run on: what to
    fix first, causes, fixes that change numerics, what is folded, what divides the work."""
    place = count()

    def tier(own: tuple[Finding, ...]) -> int:
        rule, share = own[0].rule, wholes.saved(own)[0]
        if rule.divides:
            return 4
        if _is_minor(own, share):
            return 3
        if rule.first and wholes.taken(own) >= WORTH_SAMPLING:
            return 0
        if rule.numerics:
            return 2
        return 1 if next(place) < SHOWN or 1 / (1 - share) >= WORTH_TRYING else 3

    return sorted(order, key=tier)


def _is_minor(own: Sequence[Finding], share: float) -> bool:
    """Whether findings of a rule, which save a `share`, are not worth acting on now."""
    return share < WORTH_ACTING and not _is_proven(own)


def _is_proven(own: Sequence[Finding]) -> bool:
    return any(finding.tried and finding.tried.is_proven for finding in own)


def _order(finding: Finding) -> tuple[float, bool, bool, float]:
    run = finding.estimate.run if finding.estimate else 0.0
    return finding.rank or math.inf, bool(finding.facet_of), bool(finding.void_until), -run


def _standing(finding: Finding) -> float:
    """The seconds that an estimate saves whose place a finding has on its kernel."""
    return finding.standing.saved if finding.standing else finding.saved


def _with_void(findings: Sequence[Finding]) -> list[Finding]:
    """Findings with the rules on their kernel, of other categories, that come first."""
    first = grouped((each.launch, each.rule) for each in findings if each.rule.first)

    def void_until(own: Finding) -> tuple[str, ...]:
        others = (rule for rule in first.get(own.launch, ()) if rule.category != own.rule.category)
        return tuple(rule.name for rule in others) if own.estimate or not own.rule.first else ()

    return [replace(each, void_until=void_until(each)) for each in findings]


def _by_rule(findings: Iterable[Finding]) -> list[tuple[Finding, ...]]:
    """Findings of the same rule together, in the order of the first of each."""
    return list(map(tuple, grouped((each.rule.name, each) for each in findings).values()))


@cache
def _explanations() -> Mapping[str, str]:
    return {rule.name: rule.explanation for rule in shipped_rules()}


def proofs(report: ReportSummary, variants: Variants | None) -> tuple[DemonstratedSpeedup, ...]:
    """A demonstrated speedup for each variant of the report that the fastest one of the run is
    faster than, smallest first."""
    if variants is None:
        return ()
    timed = all(name in variants.medians for name in variants.passed)
    times = variants.medians if timed else _profiled(report, variants)
    compared = sorted((name for name in variants.passed if name in times), key=times.__getitem__)
    selected = {name for launch in report.launches for name in launch.launch.nvtx}
    if len(report.launches) == report.recorded:
        selected |= times.keys()
    hosts = defaultdict(float, variants.hosts if timed else {})
    made = (
        DemonstratedSpeedup(name, times[name], best, times[best], timed, hosts[name], hosts[best])
        for best in compared[:1]
        for name in compared
        if name in selected
    )
    return tuple(proof for proof in made if proof.speedup >= _FASTER)


def _profiled(report: ReportSummary, variants: Variants) -> Mapping[str, float]:
    """Sums over the launches of each variant; nothing of a report of which only a part is kept."""
    if len(report.launches) < report.recorded:
        return {}
    times: dict[str, float] = defaultdict(float)
    for launch in report.launches:
        for name in {*launch.launch.nvtx} & {*variants.passed}:
            times[name] += math.nan if launch.failed else launch.duration
    return {name: time for name, time in times.items() if not math.isnan(time)}
