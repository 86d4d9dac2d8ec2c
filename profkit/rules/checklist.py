"""The checklist: what rules found, ranked over the report, with what to do about each."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

from profkit.report.names import function_name
from profkit.report.source_lines import Place
from profkit.report.summary import NAME_WIDTH, Group, LaunchSummary, ReportSummary
from profkit.rules.engine import (
    AT_THE_ROOF,
    Finding,
    Lack,
    Sampling,
    diagnose,
    diagnose_timeline,
)  # fmt: skip
from profkit.rules.rule_file import Rule, shipped_rules
from profkit.ui.text import plural

if TYPE_CHECKING:
    from profkit.timing.variants import Variants

SAME_WEIGHT = 0.1
_FASTER = 1.05
_SHOWN = 10  # findings in a `repr`: chosen, all of most reports, and never more than a screen

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

    @property
    def title(self) -> str:
        """What limits the kernel, in one line."""
        return self.rule.title

    @property
    def kernel(self) -> str:
        """The demangled name of the kernel; "" where it is about a timeline as a whole."""
        return self.group.name if self.group else ""

    @property
    def launch(self) -> int | None:
        """The index of the kernel's launch of median duration, as `Report.kernel` takes it."""
        return self.group.typical.index if self.group else None

    @property
    def speedup(self) -> float:
        """The likely factor by which a fix makes the kernel faster; NaN without an estimate."""
        return self.finding.estimate.likely if self.finding.estimate else math.nan

    @property
    def range(self) -> tuple[float, float]:
        """The lowest and the highest factor that the estimate allows; NaN without one."""
        estimate = self.finding.estimate
        return (estimate.low, estimate.high) if estimate else (math.nan, math.nan)

    def __repr__(self) -> str:
        number = f" {self.rank}" if self.rank else ""
        return f"<Item{number}: {self._speedup}, {self.title}, {self._kernel}>"

    @property
    def _speedup(self) -> str:
        return str(self.finding.estimate or "no estimated speedup")

    @property
    def _kernel(self) -> str:
        return function_name(self.group, NAME_WIDTH) if self.group else "timeline"


@dataclass(frozen=True)
class Proof:
    """What a variant could reach: another one, `best`, does the same work faster.

    Seconds of whole variants: medians of timed calls, or, where not `timed`, sums of what ncu
    measured of their launches.
    """

    variant: str
    seconds: float
    best: str
    best_seconds: float
    timed: bool

    @property
    def speedup(self) -> float:
        return self.seconds / self.best_seconds

    @property
    def saved(self) -> float:
        """The time (s) of the variant beyond that of the best."""
        return self.seconds - self.best_seconds


@dataclass(frozen=True)
class Checklist:
    """Everything found in a report. `rules` were tried on `kernels`; `skipped` have no duration.

    `items` have an estimate and are ranked by it; `informative` findings have none.
    """

    items: tuple[Item, ...]
    informative: tuple[Item, ...]
    proofs: tuple[Proof, ...]
    unevaluated: tuple[Lack, ...]
    rules: int
    kernels: int
    skipped: int

    def __repr__(self) -> str:
        extent = f"{plural(self.rules, 'rule')} on {plural(self.kernels, 'kernel')}"
        lacking = f", {plural(len(self.lacking), 'rule')} not evaluated" if self.lacking else ""
        head = f"<Checklist: {plural(len(self.findings), 'finding')}, {extent}{lacking}"
        shown = self.findings[:_SHOWN]
        width = max((len(item._speedup) for item in shown), default=0)
        lines = [
            f"  {item.rank or '-':>2}  {item._speedup:{width}}  {item.title}: {item._kernel}"
            for item in shown
        ]
        if more := len(self.findings) - len(shown):
            lines.append(f"  and {plural(more, 'more finding')}")
        return "\n".join([head, *lines]) + ">"

    @property
    def findings(self) -> tuple[Item, ...]:
        """Ranked and informative items."""
        return (*self.items, *self.informative)

    @property
    def evaluated(self) -> int:
        """How many rules were evaluated on every kernel, but for samples that were not read."""
        return self.rules - len(self.lacking)

    @property
    def lacking(self) -> tuple[Lack, ...]:
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
        launches = item.group.launches if item.group else ()
        ranges = {name for launch in launches for name in launch.launch.nvtx}
        own = [proof for proof in self.proofs if proof.variant in ranges]
        return own[0] if len(own) == 1 and own[0].saved > item.finding.saved else None

    @property
    def roofs(self) -> tuple[Group, ...]:
        """Kernels at a roof, most time first."""
        groups = [item.group for item in self.findings if item.rule.category == AT_THE_ROOF]
        return tuple(sorted(filter(None, groups), key=lambda group: -group.total))

    def place(self, item: Item) -> int:
        """The place of an item among all findings, from 1."""
        return self._places[id(item)]

    @cached_property
    def _places(self) -> Mapping[int, int]:
        return {id(item): place for place, item in enumerate(self.findings, start=1)}

    def findings_on(self, group: Group) -> tuple[Item, ...]:
        """The ranked and informative items on one kernel."""
        return tuple(self._by_kernel.get(group.typical.index, ()))

    @cached_property
    def _by_kernel(self) -> Mapping[int, Sequence[Item]]:
        """Items by the launch that is typical of their kernel."""
        kernels: dict[int, list[Item]] = defaultdict(list)
        for item in self.findings:
            if item.group:
                kernels[item.group.typical.index].append(item)
        return dict(kernels)


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

    `disabled` are names or categories of rules left out. `blame` finds the places of a launch by
    line quantities; it is asked for the first `blamed` items, all where that is None. `timeline`
    are the quantities of the timeline (timeline.region) that was recorded with it. `sampling` reads
    a launch's samples by instruction.
    """
    enabled = _enabled(rules, disabled)
    kernels = diagnose(report, enabled, sampling)
    whole = diagnose_timeline(timeline or {}, enabled)
    findings: list[Finding[Group | None]] = [*kernels.findings, *whole.findings]
    findings.sort(key=lambda finding: -finding.saved)
    picked = len(report.launches) < report.recorded
    items = _items(findings, blame, blamed, picked=picked)
    return Checklist(
        tuple(item for item in items if item.rank),
        tuple(item for item in items if not item.rank),
        proofs,
        (*kernels.unknown.values(), *whole.unknown.values()),
        rules=sum(bool(timeline) or rule.about == "kernel" for rule in enabled),
        kernels=kernels.kernels,
        skipped=len(report.groups) - kernels.kernels,
    )


def timeline_items(
    quantities: Mapping[str, float], rules: Sequence[Rule], disabled: Collection[str] = ()
) -> tuple[Item, ...]:
    """What rules find in a timeline alone, by its quantities, most time saved first."""
    return _items(diagnose_timeline(quantities, _enabled(rules, disabled)).findings)


def _enabled(rules: Sequence[Rule], disabled: Collection[str]) -> list[Rule]:
    return [rule for rule in rules if not {rule.name, rule.category} & set(disabled)]


def _items(
    findings: Sequence[Finding[Group | None]],
    blame: Blame = lambda *_: (),
    blamed: int | None = None,
    *,
    picked: bool = False,
) -> tuple[Item, ...]:
    items = []
    peers = _peers(findings)
    for rank, finding in enumerate(findings, start=1):
        rule, typical = finding.rule, finding.group.typical if finding.group else None
        cc = typical.gpu.cc if typical else (0, 0)
        actions = tuple(action.text for action in rule.actions if action.suits(cc))
        shown = blamed is None or rank <= blamed
        places = blame(typical, rule.blame) if typical and rule.blame and shown else ()
        # a rule that replaces a shipped one of its name has no page
        is_shipped = _explanations().get(rule.name) == rule.explanation
        page = f"docs/reference/rules.md#{rule.name}" if is_shipped else ""
        rank_shown = rank if finding.estimate else 0
        items.append(Item(rank_shown, finding, actions, places, peers.get(rank, ()), page, picked))
    return tuple(items)


def _peers(findings: Sequence[Finding[Group | None]]) -> Mapping[int, tuple[int, ...]]:
    """By the rank of a finding, those of others on its kernel that save about as much."""
    promising: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for rank, finding in enumerate(findings, start=1):
        if finding.estimate and finding.group:
            promising[finding.group.typical.index].append((rank, finding.saved))
    return {
        rank: tuple(
            other
            for other, saves in own
            if other != rank and min(saves, saved) >= (1 - SAME_WEIGHT) * max(saves, saved)
        )
        for own in promising.values()
        for rank, saved in own
    }


@cache
def _explanations() -> Mapping[str, str]:
    return {rule.name: rule.explanation for rule in shipped_rules()}


def proofs(report: ReportSummary, variants: Variants | None) -> tuple[Proof, ...]:
    """A proof for each variant that the fastest one clearly outruns, least to gain first."""
    if variants is None:
        return ()
    timed = all(name in variants.medians for name in variants.passed)
    times = variants.medians if timed else _profiled(report, variants)
    compared = sorted((name for name in variants.passed if name in times), key=times.__getitem__)
    made = (Proof(name, times[name], compared[0], times[compared[0]], timed) for name in compared)
    return tuple(proof for proof in made if proof.speedup >= _FASTER)


def _profiled(report: ReportSummary, variants: Variants) -> Mapping[str, float]:
    """Sums over the launches of each variant; nothing of a report of which only a part is kept."""
    if len(report.launches) < report.recorded:
        return {}
    launches = {
        name: [launch for launch in report.launches if name in launch.launch.nvtx]
        for name in variants.passed
    }
    return {
        name: sum(launch.duration for launch in own)
        for name, own in launches.items()
        if own and not any(launch.failed for launch in own)
    }
