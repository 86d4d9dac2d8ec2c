"""Findings and checklists as JSON: `profkit.checklist/1`, and what other formats share of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta

from profkit.core.typed_file import Count, Model, Number, Output, Real, Share, part
from profkit.core.version import __version__
from profkit.report.names import file_name
from profkit.report.source_lines import Place
from profkit.report.summary import ReportSummary
from profkit.rules.checklist import Checklist
from profkit.rules.finding import Evidence, Finding, UnevaluatedRule
from profkit.rules.headroom import Factor, Headroom
from profkit.rules.memory import Similar
from profkit.rules.tried import Tried

F = TypeVar("F", bound="FindingRow")
Rank = Annotated[int, Meta(ge=1)] | None
Conclusion = Literal["findings", "nothing found", "can't tell"]
_MAY_LACK = ("rank", "kernel", "library", "variant", "assumes", "page", "facet_of")


class PlaceRow(Model, frozen=True, kw_only=True):
    """A source line, or an instruction where no line is known; `share` is its share of the launch's
    samples or counts that the rule attributes to lines."""

    file: str | None
    line: Rank
    instruction: str | None
    offset: str | None
    share: Share


class FindingRow(Model, frozen=True, kw_only=True):
    """A finding on a kernel, or on a timeline as a whole: then `kernel` is null.

    `rank` is the number of its item in the report's checklist, shared by the findings of one rule
    on several kernels, and of one cause on a kernel: `facet_of` is the rule of the first of those,
    null for that one. It is null without an estimate. `library` is the name of the library that has
    the kernel, which its callers can't edit; null for all other kernels. `estimated_speedup` is the
    likely factor by which the kernel gets faster, `range` the lowest and highest to expect,
    `run_speedup` the likely factor for all launches of the report, or the selected ones, or of its
    `variant` where the report has several of one work: null where the rule estimates none, or
    quantities are missing. `promises` states whether there is an estimate and, of a kernel, whether
    its range begins at 1.1 or more: only then is the likely factor shown. `estimate_lacks` are the
    missing quantities. Of a kernel, `range` comes from the fixes of recorded pairs and holds less
    often on others; `confidence` is high up to a factor of 1.3 between its ends, medium up to 2,
    low where it begins below the smallest gain that is reported. `assumes` is what the estimate
    takes for granted of the fix, null for nothing. `bound` is the factor that what the fix adds
    allows, null where its rule has none. `void_until` are rules to fix first:
    until then it says nothing. `bounded_by` is the next bottleneck after the fix, whose remaining
    work takes `bound_s`. `similar` are recorded fixes of the category on kernels like this one,
    `tried` is what `profkit try` measured. `where` has the largest share first.
    """

    rank: Rank
    rule: str
    category: str
    kernel: str | None
    library: str | None
    estimated_speedup: Factor | None
    range: tuple[Factor, Factor] | None
    run_speedup: Factor | None
    variant: str | None
    promises: bool
    estimate_lacks: tuple[str, ...]
    bound: Factor | None
    void_until: tuple[str, ...]
    confidence: Literal["high", "medium", "low"]
    assumes: str | None
    bounded_by: str | None
    bound_s: Real
    evidence: tuple[Evidence, ...]
    where: tuple[PlaceRow, ...]
    similar: Similar | None = None
    facet_of: str | None = None
    tried: Tried | None = None


class FindingInFull(FindingRow, frozen=True, kw_only=True):
    """A finding with its actions, and the headroom of its kernel, null where unknown.

    `saved_s` is the GPU time of the report that the likely factor saves. `actions` are for this
    architecture, or for the caller of a library's kernel, most useful first; `verify` states which
    quantity should change, and how. `page` explains the rule, null for a user's own.
    """

    title: str
    headroom: Headroom | None
    grid: tuple[int, ...]
    block: tuple[int, ...]
    launches: tuple[int, ...]
    saved_s: Number
    effort: Literal["small", "medium", "large"]
    actions: tuple[str, ...]
    verify: tuple[str, ...]
    page: str | None


class DemonstratedRow(Model, frozen=True, kw_only=True):
    """A variant of the run that does the same work slower than the fastest one, `best`.

    `headline`: `best` saves more time than any estimate, and is shown first. Seconds are GPU time:
    medians of timed calls, or sums of ncu's durations of the launches.
    """

    variant: str
    seconds: Number
    best: str
    best_seconds: Number
    speedup: Factor
    measured: Literal["timed", "profiled"]
    headline: bool


class ReportRow(Model, frozen=True, kw_only=True):
    """A report; `total_s` is the GPU time of all measured launches."""

    file: str
    launches: Count
    total_s: Real


class ChecklistFile(Output, frozen=True, kw_only=True, tag="profkit.checklist/1"):
    """Bottlenecks of a report's kernels and actions against them. Numbers are in SI units, shares
    are fractions of 1.

    `rules` were evaluated on `kernels`; a kernel is the launches of one name, shape and GPU.
    `skipped` kernels have no duration: their counters failed. `checklist` has one entry per rule
    and kernel, by rank: the rule's speedup for the report, a variant or the timeline; `informative`
    findings have no estimate, what to fix before all else is at their head. `timeline` is the file
    beside the report that findings without a kernel are about. "can't tell": nothing
    certain was found, and most rules lack data. `tried` has all that `profkit try` measured.
    """

    profkit: str
    report: ReportRow
    rules: int
    kernels: int
    skipped: int
    timeline: str | None
    conclusion: Conclusion
    checklist: tuple[FindingInFull, ...]
    informative: tuple[FindingInFull, ...]
    reachable: tuple[DemonstratedRow, ...]
    not_evaluated: tuple[UnevaluatedRule, ...]
    tried: tuple[Tried, ...] = ()


def checklist_file(
    report: ReportSummary,
    checklist: Checklist,
    top: int,
    timeline: str | None = None,
    tried: Sequence[Tried] = (),
) -> ChecklistFile:
    """The `top` items (0: all) of a report's checklist, which is of its `timeline` file too."""
    file, parts = file_name(report.path, with_host=False), checklist_parts(checklist)
    return ChecklistFile(
        profkit=__version__,
        report=ReportRow(file=file, launches=len(report.launches), total_s=report.total),
        timeline=timeline,
        tried=tuple(tried),
        **part(checklist, "rules", "kernels", "skipped"),
        **parts | {"checklist": [row for row in parts["checklist"] if not top or row.rank <= top]},
    )


def checklist_parts(checklist: Checklist) -> dict[str, Any]:
    """The fields of a checklist in a file, from its `conclusion` on."""
    found: Conclusion = "findings" if checklist.findings else "nothing found"
    reachable = []
    for proof in checklist.proofs:
        row = DemonstratedRow(
            measured="timed" if proof.timed else "profiled",
            headline=proof is checklist.headline,
            **part(proof, "variant", "seconds", "best", "best_seconds", "speedup"),
        )
        reachable.append(row)
    return {
        "conclusion": "can't tell" if checklist.inconclusive else found,
        "checklist": tuple(finding_row(item, FindingInFull) for item in checklist.items),
        "informative": tuple(
            finding_row(item, FindingInFull) for item in checklist.findings if not item.rank
        ),
        "reachable": tuple(reachable),
        "not_evaluated": checklist.unevaluated,
    }


def finding_row(finding: Finding, model: type[F]) -> F:
    """A finding in a file that has as much of it as the model says."""
    rule, estimate, group = finding.rule, finding.estimate, finding.group
    bounded_by = estimate.bounded_by if estimate else None
    values = part(rule, "category", "effort", "verify")
    values |= part(finding, "confidence", "evidence", "headroom", "actions")
    values |= part(finding, "title", "void_until", "similar", "tried")
    values |= {name: getattr(finding, name) or None for name in _MAY_LACK}
    values |= {
        "rule": rule.name,
        "grid": group.grid if group else (),
        "block": group.block if group else (),
        "launches": group.indexes if group else (),
        "estimated_speedup": estimate.likely if estimate else None,
        "range": finding.range if estimate else None,
        "run_speedup": estimate.run if estimate else None,
        "promises": estimate is not None and estimate.is_promise,
        "estimate_lacks": finding.lacking,
        "bound": None if math.isnan(finding.bound) else finding.bound,
        "bounded_by": bounded_by or None,
        "bound_s": estimate.bound_seconds if estimate and bounded_by else None,
        "where": tuple(map(_place, finding.places)),
        "saved_s": finding.saved,
    }
    return model(**{name: values[name] for name in model.__struct_fields__})


def _place(place: Place) -> PlaceRow:
    return PlaceRow(
        file=Path(place.file).name or None,
        line=place.line or None,
        instruction=place.sass or None,
        offset=place.offset or None,
        share=place.share,
    )
