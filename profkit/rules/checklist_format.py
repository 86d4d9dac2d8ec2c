"""Findings and checklists as JSON: `profkit.checklist/1`, and what other formats share of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from profkit.core.projection import Measured, Projection, project
from profkit.core.typed_file import Count, File, Number, encode, part
from profkit.core.version import __version__
from profkit.report.names import file_name
from profkit.report.source_lines import Place
from profkit.report.summary import ReportSummary
from profkit.rules.checklist import Checklist, Item
from profkit.rules.engine import Evidence
from profkit.rules.finding_text import unit_of
from profkit.rules.headroom import Headroom

Factor = Annotated[float, Meta(extra_json_schema={"minimum": 1})]
Share = Annotated[float, Meta(extra_json_schema={"minimum": 0, "maximum": 1})]
Rank = Annotated[int, Meta(ge=1)] | None
Sign = Literal[">", ">=", "<", "<=", "==", "!="]
Conclusion = Literal["findings", "nothing found", "can't tell"]


class EvidenceRow(Projection, frozen=True, kw_only=True):
    """A quantity of the catalog, or an expression over several; `unit` is 1 for a share, null for a
    plain or mixed number."""

    quantity: str
    value: Number
    unit: str | None
    comparison: Sign | None
    threshold: Measured


class PlaceRow(Projection, frozen=True, kw_only=True):
    """A source line, or an instruction where no line is known; `share` is its share of the launch's
    samples or counts that the rule attributes to lines."""

    file: str | None
    line: Rank
    instruction: str | None
    offset: str | None
    share: Share


class FindingRow(Projection, frozen=True, kw_only=True):
    """A finding on a kernel, or on a timeline as a whole: then `kernel` is null.

    `rank` is the number of its item in the report's checklist, shared by the findings of one rule
    on several kernels; null without an estimate. `library` is the name of the library that has the
    kernel, which its callers can't edit; null for all other kernels. `estimated_speedup` is the
    likely factor by which the kernel gets faster, `range` the lowest and highest to expect,
    `run_speedup` the likely factor for all launches of the report, or the selected ones, or of its
    `variant` where the report has several of one work: null where the rule estimates none, or
    quantities are missing; `promises` states whether there is an estimate, `estimate_lacks` the
    missing quantities. Of a kernel, `range` held 80% of the fixes of recorded pairs and ends at its
    headroom; `confidence` is high up to a factor of 1.3 between its ends, medium up to 2, low where
    it begins below the smallest gain that is reported. `assumes` is what the estimate takes for
    granted of the fix, null for nothing. `bounded_by` is the next bottleneck after the fix, whose
    remaining work takes `bound_s`. `where` has the largest share first.
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
    confidence: Literal["high", "medium", "low"]
    assumes: str | None
    bounded_by: str | None
    bound_s: Measured
    evidence: tuple[EvidenceRow, ...]
    where: tuple[PlaceRow, ...]


class HeadroomRow(Projection, frozen=True, kw_only=True):
    """The most that a kernel can gain: at `floor`, its typical launch takes `seconds`.

    No change of its code goes beyond `factor`, where the recorded FLOP and the DRAM bytes that no
    finding removes are needed. Without `flop_recorded` the least time of the FLOP is not known.
    """

    factor: Factor
    seconds: Number
    floor: str
    flop_recorded: bool


class ItemRow(FindingRow, frozen=True, kw_only=True):
    """A finding with its actions, and the headroom of its kernel, null where unknown.

    `saved_s` is the GPU time of the report that the likely factor saves. `actions` are for this
    architecture, or for the caller of a library's kernel, most useful first; `verify` states which
    quantity should change, and how; `same_weight` has the ranks of other findings on this kernel
    that save about as much. `page` explains the rule, null for a user's own.
    """

    title: str
    headroom: HeadroomRow | None
    grid: tuple[int, ...]
    block: tuple[int, ...]
    launches: tuple[int, ...]
    saved_s: Number
    effort: Literal["small", "medium", "large"]
    actions: tuple[str, ...]
    verify: tuple[str, ...]
    same_weight: tuple[int, ...]
    page: str | None


class ProofRow(Projection, frozen=True, kw_only=True):
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


class UnevaluatedRow(Projection, frozen=True, kw_only=True):
    """A rule that was not evaluated on some `kernels` (0: a rule about timelines), because of
    quantities that are `missing`; `reasons` states why, `sections` what ncu should collect."""

    rule: str
    kernels: Count
    missing: tuple[str, ...]
    reasons: dict[str, str]
    sections: tuple[str, ...]


class ReportRow(Projection, frozen=True, kw_only=True):
    """A report; `total_s` is the GPU time of all measured launches."""

    file: str
    launches: Count
    total_s: Measured


class ChecklistFile(File, frozen=True, kw_only=True, tag="profkit.checklist/1"):
    """Bottlenecks of a report's kernels and actions against them. Numbers are in SI units, shares
    are fractions of 1.

    `rules` were evaluated on `kernels`; a kernel is the launches of one name, shape and GPU.
    `skipped` kernels have no duration: their counters failed. `checklist` has one entry per rule
    and kernel, by rank: the rule's speedup for the report, a variant or the timeline; `informative`
    findings have no estimate. `timeline` is the file beside the report that findings without a
    kernel are about. "can't tell": nothing was found, and most rules lack data.
    """

    profkit: str
    report: ReportRow
    rules: int
    kernels: int
    skipped: int
    timeline: str | None
    conclusion: Conclusion
    checklist: tuple[ItemRow, ...]
    informative: tuple[ItemRow, ...]
    reachable: tuple[ProofRow, ...]
    not_evaluated: tuple[UnevaluatedRow, ...]


def checklist_json(
    report: ReportSummary, checklist: Checklist, top: int, timeline: str | None = None
) -> str:
    """The `top` items (0: all) of a report's checklist, which is of its `timeline` file too."""
    file, parts = file_name(report.path, with_host=False), checklist_parts(checklist)
    document = ChecklistFile(
        profkit=__version__,
        report=ReportRow(file=file, launches=len(report.launches), total_s=report.total),
        timeline=timeline,
        **part(checklist, "rules", "kernels", "skipped"),
        **parts | {"checklist": [row for row in parts["checklist"] if not top or row.rank <= top]},
    )
    return encode(document, dense=False)


def checklist_parts(checklist: Checklist) -> dict[str, Any]:
    """The fields of a checklist in a file, from its `conclusion` on."""
    nothing = "can't tell" if checklist.inconclusive else "nothing found"
    reachable = []
    for proof in checklist.proofs:
        measured, headline = "timed" if proof.timed else "profiled", proof is checklist.headline
        reachable.append(project(proof, ProofRow, measured=measured, headline=headline))
    return {
        "conclusion": "findings" if checklist.findings else nothing,
        "checklist": tuple(map(item_row, checklist.items)),
        "informative": tuple(map(item_row, checklist.informative)),
        "reachable": tuple(reachable),
        "not_evaluated": tuple(project(rule, UnevaluatedRow) for rule in checklist.unevaluated),
    }


def item_row(item: Item) -> ItemRow:
    """A finding with its actions."""
    group = item.group
    return project(
        item,
        ItemRow,
        **finding_fields(item),
        **part(item.rule, "title", "effort", "verify"),
        headroom=headroom_row(item.headroom),
        grid=group.grid if group else (),
        block=group.block if group else (),
        launches=group.indexes if group else (),
        saved_s=item.finding.saved,
        same_weight=item.peers,
    )


def headroom_row(headroom: Headroom | None) -> HeadroomRow | None:
    """The headroom of a kernel, None where it is unknown."""
    return project(headroom, HeadroomRow) if headroom else None


def finding_row(item: Item) -> FindingRow:
    """A finding on a kernel or a timeline."""
    return project(item, FindingRow, **finding_fields(item))


def finding_fields(item: Item) -> Mapping[str, Any]:
    """The fields of `FindingRow`."""
    finding, rule, estimate = item.finding, item.rule, item.finding.estimate
    bounded_by = estimate.bounded_by if estimate else None
    return {
        "rank": item.rank or None,
        "rule": rule.name,
        "category": rule.category,
        "kernel": item.group.name if item.group else None,
        "library": item.library,
        "estimated_speedup": estimate.likely if estimate else None,
        "range": (estimate.low, estimate.high) if estimate else None,
        "run_speedup": estimate.run if estimate else None,
        "variant": item.variant or None,
        "promises": estimate is not None,
        "estimate_lacks": finding.lacking,
        "confidence": item.confidence,
        "assumes": item.assumes or None,
        "bounded_by": bounded_by,
        "bound_s": estimate.bound_seconds if estimate and bounded_by else None,
        "evidence": [_evidence(value) for value in finding.evidence if value.holds],
        "where": [_place(place) for place in item.places],
    }


def _evidence(value: Evidence) -> EvidenceRow:
    return project(value, EvidenceRow, unit=unit_of(value.quantity), comparison=value.sign or None)


def _place(place: Place) -> PlaceRow:
    file, line = Path(place.file).name, place.line or None
    return project(place, PlaceRow, file=file, line=line, instruction=place.sass)
