"""Findings: what a rule found on a kernel or a timeline, its evidence and its estimated speedup."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from profkit.core.expression import HOLDS, Sign
from profkit.core.typed_file import Count, Model, Number
from profkit.report.catalog import catalog
from profkit.report.floors import WORTH
from profkit.report.source_lines import Place
from profkit.rules.calibration import UNCOMPARED, Prospect
from profkit.rules.headroom import Headroom
from profkit.rules.rule_file import CONTEXT, Confidence, Rule, measure_action
from profkit.rules.samples import (
    APPLICATION,
    CODE,
    LAUNCHED,
    LONG_CODE,
    SAMPLED,
    SAMPLED_FROM,
    SHORT_KERNEL,
)
from profkit.rules.tried import Tried, best_first
from profkit.timeline import region
from profkit.ui.text import factor_range, factor_span, plural

if TYPE_CHECKING:
    from profkit.report.summary import Group, LaunchSummary
    from profkit.rules.memory import Similar

PROMISED = 1.1
"""The lowest factor that promises a gain, chosen: someone will try it. Of a fix whose range begins
below, the range alone is shown."""
SECTOR = 32  # the bytes of a sector on every architecture
_PLACES = 3  # chosen: they fit two lines at 100 columns
_WIDTHS: dict[Confidence, float] = {"high": 1.3, "medium": 2.0}
"""The widest range, as high over low, of an estimate of that confidence; chosen."""
_UNIT_OF_ARGUMENTS = {"min", "max", "abs", "ceil", "clip", "otherwise", "where"}
_NAMED = {**CONTEXT, **region.QUANTITIES, **APPLICATION, **CODE, **LAUNCHED}
_UNITS = {name: unit for name, (unit, _) in _NAMED.items()}


class Evidence(Model, frozen=True):
    """A quantity of the catalog, or an expression over several; `unit` is 1 for a share, null for a
    plain or mixed number."""

    quantity: str
    value: Number
    unit: str | None
    comparison: Sign | None
    threshold: Number | None

    @property
    def holds(self) -> bool:
        """Whether the comparison holds; what was not compared does."""
        return self.comparison is None or (
            self.threshold is not None and HOLDS[self.comparison](self.value, self.threshold)
        )


def evidence(
    quantity: str, value: float, comparison: Sign | None = None, threshold: float = math.nan
) -> Evidence:
    """A value that a rule evaluated, with the threshold that it was compared with, NaN for none."""
    unit = unit_of(quantity) or None
    return Evidence(
        quantity, value, unit, comparison, threshold if threshold == threshold else None
    )


@cache
def unit_of(text: str) -> str:
    """The unit of an expression's value, "1" for a share; "" for a plain or mixed number."""
    return _unit(ast.parse(text, mode="eval").body) or ""


def _unit(node: ast.expr) -> str | None:
    """None where the unit is unknown, "" for a constant, which goes with any."""
    match node:
        case ast.Name(id=name):
            entry = catalog().quantities.get(name)
            return entry.unit if entry else _UNITS.get(name)
        case ast.Constant():
            return ""
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _unit(operand)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            return _common_unit((left, right))
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div() as operation, right=right):
            return _unit_of_product(left, right, divided=isinstance(operation, ast.Div))
        case ast.Call(func=ast.Name(id=name), args=args) if name in _UNIT_OF_ARGUMENTS:
            return _common_unit(args[1:] if name == "where" else args)
    return None


def _common_unit(nodes: Iterable[ast.expr]) -> str | None:
    units = set(map(_unit, nodes)) - {""}
    return None if len(units) > 1 else units.pop() if units else ""


def _unit_of_product(left: ast.expr, right: ast.expr, *, divided: bool) -> str | None:
    first, second = _unit(left), _unit(right)
    if divided:
        same = "1" if first == second and first is not None else None
        return first if second in {"", "1"} else same
    is_size = any(isinstance(each, ast.Constant) and each.value == SECTOR for each in (left, right))
    if is_size and "sector" in {first, second}:
        return "B"
    if first in {"", "1"}:
        return second or first
    return first if second in {"", "1"} else None


@dataclass(frozen=True)
class Estimate:
    """The estimated speedup of a fix: factors of the kernel's time, each at least 1.

    `bound_seconds` is the time below which the floor of `bounded_by` holds the kernel after the
    fix, "" where all floors are far below what the fix leaves; `limit` is the factor to there;
    `run` is the likely factor for the whole report, `saved` what is likely saved of it (s).
    `launches` are those that get faster by these factors, none for a timeline. `without_stalls` is
    the factor if a warp's time were all that counts, and the fix only took its stalls away
    (Amdahl's law on warp samples). `most` is what the kernel's headroom allows, or the chain's
    bytes; changes that do less work go beyond.
    """

    likely: float
    low: float
    high: float
    bounded_by: str
    bound_seconds: float
    run: float
    saved: float
    launches: tuple[LaunchSummary, ...] = ()
    without_stalls: float = 1.0
    most: float = math.inf
    limit: float = math.inf

    @property
    def is_promise(self) -> bool:
        """Whether a gain is promised, and not only possible."""
        return self.low >= PROMISED

    def of_run(self, speedup: float) -> float:
        """The factor for the whole report where that of the kernel is `speedup`."""
        share = (1 - 1 / self.run) / (1 - 1 / self.likely) if self.likely > 1 else 0.0
        return 1 / (1 - share * (1 - 1 / speedup))

    @property
    def whole_seconds(self) -> float:
        """Of a timeline or an application, the time that the factors are of."""
        return self.bound_seconds * self.high

    @property
    def confidence(self) -> Confidence:
        """The width of the range in words; low where it has gains too small to report."""
        width = self.high / self.low if self.low >= WORTH else math.inf
        return next((word for word, most in _WIDTHS.items() if width <= most), "low")

    def __str__(self) -> str:
        return gain_range(self.likely, self.low, self.high)


def gain_range(likely: float, low: float, high: float) -> str:
    """`2.1x [1.5, 2.9]`, or the range alone, `1.0 to 1.9x`, where it begins below PROMISED."""
    return factor_range(likely, low, high) if low >= PROMISED else factor_span(low, high)


@dataclass(frozen=True)
class Finding:
    """A rule that fired on a kernel, or, without a `group`, on a timeline as a whole.

    It has no `estimate` where its rule has no formulas, and where quantities are `lacking` that
    they need; `bound` is the factor that what its fix adds allows, NaN where the rule has none.

    The rest is its place in a checklist. `rank` is shared by the findings of one rule; 0 without an
    estimate. `actions` are those for the kernel's architecture, or, for a kernel of a `library`,
    what its caller can change, `switches` those of `profkit try` that its framework has; `blamed`
    are the lines or instructions that the rule blames, most first, where recorded. `facet_of` is
    the rule whose finding on its kernel shows the same cause and stands first of them, "" for that
    one (rules.causes). `page` documents the rule, "" for a user's own. `is_selection` states that
    its gain for the whole is of launches that were selected from a report. `variant` is the one
    whose time that gain is of, in a report of several; "" for the report's. `headroom` is the
    kernel's, None where unknown. `void_until` are the rules whose findings on its kernel come
    first: until they are fixed, it says nothing.
    `possible` says that its conditions were not recorded, and recorded fixes speak for it.
    `similar` are recorded fixes of kernels like it, `standing` is the estimate whose place it takes
    among those on its kernel (rules.memory); None for its own. `tried` is what its switches gave.
    """

    rule: Rule
    group: Group | None
    evidence: tuple[Evidence, ...]
    estimate: Estimate | None
    lacking: tuple[str, ...] = ()
    bound: float = math.nan
    possible: bool = False
    rank: int = 0
    actions: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()
    blamed: tuple[Place, ...] = ()
    page: str = ""
    is_selection: bool = False
    library: str | None = None
    variant: str = ""
    headroom: Headroom | None = None
    void_until: tuple[str, ...] = ()
    similar: Similar | None = None
    standing: Estimate | None = None
    facet_of: str = ""
    tried: Tried | None = None

    @property
    def finding(self) -> Finding:
        """The finding itself, by the name that scripts ask a checklist's items for it."""
        return self

    @property
    def is_first(self) -> bool:
        """Whether it stands first of those on its kernel that were compared with recorded fixes."""
        return self.similar is not None and self.similar.certainty is not None

    @property
    def is_negligible(self) -> bool:
        """Whether its estimate is too small to report; of a timeline, the highest, because the
        likely saving is a lower bound there."""
        estimate = self.estimate
        if estimate is None:
            return False
        return (estimate.likely if self.group else estimate.high) < WORTH

    @property
    def saved(self) -> float:
        """Seconds that are likely saved of the report, or of the timeline."""
        return self.estimate.saved if self.estimate else 0.0

    @property
    def is_ceiling(self) -> bool:
        """Whether only what all idle time gives is known, of a timeline as a whole."""
        return self.rule.about == "timeline" and self.rule.confidence == "low"

    @property
    def places(self) -> tuple[Place, ...]:
        """The first of the places that its rule blames, as far as they were looked up."""
        return tuple(each for each in self.blamed[:_PLACES] if each.line or each.offset)

    @property
    def title(self) -> str:
        """What limits the kernel, or may do so by what was recorded, in one line."""
        return f"Possibly: {self.rule.title}" if self.is_uncertain else self.rule.title

    @property
    def is_uncertain(self) -> bool:
        """Whether its fix may gain nothing for all that was recorded; what comes first is there."""
        return bool(self.lacking) and not self.rule.first

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
        return self.estimate.likely if self.estimate else math.nan

    @property
    def range(self) -> tuple[float, float]:
        """The lowest and the highest factor that the estimate allows; NaN without one."""
        estimate = self.estimate
        return (estimate.low, estimate.high) if estimate else (math.nan, math.nan)

    @property
    def prospect(self) -> Prospect | None:
        """What ranges are calibrated by; None without an estimate of a kernel."""
        known = self.estimate
        if known is None or self.group is None:
            return None
        vote = self.similar.vote if self.similar else UNCOMPARED
        return Prospect(known.likely, known.without_stalls, known.most, vote)

    @property
    def confidence(self) -> Confidence:
        """The width of the estimate's range in words; the rule's own without an estimate."""
        return (self.estimate or self.rule).confidence

    @property
    def assumes(self) -> str:
        """What the estimate takes for granted of the fix; "" for nothing, or without one."""
        return self.rule.assumes if self.estimate else ""

    @property
    def speedup_text(self) -> str:
        """`2.1x [1.5, 2.9]`, `1.0 to 1.9x` where no gain is promised, or that there is no
        estimate."""
        if self.estimate and self.is_ceiling:
            return factor_span(1.0, self.estimate.high)
        return str(self.estimate or "no estimated speedup")

    @property
    def subject(self) -> str:
        """The kernel's function, or that it is a timeline."""
        from profkit.report.summary import NAME_WIDTH  # listing rules needs no numpy

        return self.group.short_name(NAME_WIDTH) if self.group else "timeline"

    def with_tried(self, rows: Iterable[Tried]) -> Finding:
        """The finding with what the experiments on it gave: what these leave to do comes first.
        While a switch is untried, others that gave nothing say nothing against the estimate."""
        known = best_first(rows)
        if not known:
            return self
        tried, names = known[0], {name for row in known for name in row.switches}
        left = [name for name in self.switches if name not in names and not tried.is_proven]
        measured = set(map(measure_action, self.switches))
        others = (action for action in self.actions if action not in measured)
        actions = (tried.step, *others, *map(measure_action, left[:1]))
        is_open = tried.is_in_vain and left
        return replace(self, tried=None if is_open else tried, actions=actions)

    def __repr__(self) -> str:
        number = f" {self.rank}" if self.rank else ""
        return f"<Finding{number}: {self.speedup_text}, {self.title}, {self.subject}>"


@dataclass(frozen=True)
class FindingGroup:
    """The findings of one rule on the kernels that it concerns, best first.

    `rank` is that of its findings, 0 where they have no estimate. `speedup` is the likely factor
    from fixing all of them, NaN without an estimate, and `range` the lowest and the highest: for
    the whole report, or for the `variant` that gains the most in a report of several. `minor` says
    that it saves less than WORTH_ACTING of that time, `comes_first` that all else about kernels
    with much of that time is void until it is fixed.
    """

    rank: int
    findings: tuple[Finding, ...]
    speedup: float
    minor: bool
    variant: str = ""
    comes_first: bool = False
    range: tuple[float, float] = (math.nan, math.nan)

    @property
    def best(self) -> Finding:
        return self.findings[0]

    @property
    def rule(self) -> Rule:
        return self.best.rule

    @property
    def is_cause(self) -> bool:
        """Whether it is ranked with others that keep results and the division of work."""
        return self.rank > 0 and not (self.comes_first or self.rule.is_apart)

    @property
    def title(self) -> str:
        """What limits the kernels, in one line."""
        return self.best.title

    @property
    def gain(self) -> str:
        """The speedup for the whole, `2.1x`; where no gain is promised its range, `1.0 to 1.9x`."""
        estimate = self.best.estimate
        if estimate is None or estimate.is_promise:
            return factor_span(self.speedup, self.speedup)
        return factor_span(*self.range)

    @property
    def own_speedup(self) -> str:
        """`, 2.1x [1.5, 2.9]` of its first kernel; "" without an estimate."""
        return f", {self.best.speedup_text}" if self.best.estimate else ""

    @property
    def other_kernels(self) -> str:
        """` and 2 more kernels`; "" for one kernel."""
        more = len(self.findings) - 1
        return f" and {plural(more, 'more kernel')}" if more else ""

    def __repr__(self) -> str:
        number = f" {self.rank}" if self.rank else ""
        whole = self.variant or ("the report" if self.best.group else "the timeline")
        speedup = "" if math.isnan(self.speedup) else f"{self.gain} for {whole}, "
        kernels = f"{self.best.subject}{self.other_kernels}"
        return f"<FindingGroup{number}: {speedup}{self.title}, {kernels}>"


class UnevaluatedRule(Model, frozen=True):
    """A rule that was not evaluated on some `kernels` (0: a rule about timelines), because of
    quantities that are `missing`; `reasons` states why, `sections` what ncu should collect."""

    rule: str
    kernels: Count
    missing: tuple[str, ...]
    reasons: dict[str, str]
    sections: tuple[str, ...]

    @property
    def unsampled(self) -> bool:
        """Whether it lacks only samples that were recorded and not read."""
        return {*self.reasons.values()} <= {SHORT_KERNEL, LONG_CODE}


def unevaluated(rule: str, kernels: int, reasons: dict[str, str]) -> UnevaluatedRule:
    """A rule that lacks quantities, by name with the reason for each."""
    from profkit.report.checks import NOT_COLLECTED, NOT_IN_VERSION

    quantities = catalog().quantities
    sections = (
        quantities[SAMPLED_FROM if name in SAMPLED else name].section
        for name, reason in reasons.items()
        if reason.startswith(NOT_COLLECTED) and reason != NOT_IN_VERSION
    )
    needed = tuple(dict.fromkeys(section for section in sections if section != "any"))
    return UnevaluatedRule(rule, kernels, tuple(reasons), reasons, needed)


@dataclass(frozen=True)
class DemonstratedSpeedup:
    """Another variant, `best`, does the same work as a `variant` faster.

    Seconds are GPU time of whole variants: medians of timed calls, or, where not `timed`, sums of
    ncu's durations of their launches. `host` and `best_host` are the host launch overheads of a
    call, 0 where unknown.
    """

    variant: str
    seconds: float
    best: str
    best_seconds: float
    timed: bool
    host: float = 0.0
    best_host: float = 0.0

    @property
    def speedup(self) -> float:
        return self.seconds / self.best_seconds

    @property
    def saved(self) -> float:
        """The time (s) of the variant beyond that of the best."""
        return self.seconds - self.best_seconds

    @property
    def back_to_back(self) -> float:
        """The factor for calls that follow each other, each limited by its GPU time or by the host
        launch overhead, whichever is longer."""
        return max(self.seconds, self.host) / max(self.best_seconds, self.best_host)

    @property
    def launch_bound(self) -> tuple[tuple[str, float], ...]:
        """The variants of the two whose host launch overhead exceeds their GPU time, with it."""
        best = self.best, self.best_seconds, self.best_host
        sides = best, (self.variant, self.seconds, self.host)
        return tuple((name, host) for name, seconds, host in sides if host > seconds)
