"""What the report page shows, as plain values: words for its templates, numbers for its charts.

Nothing here is HTML. Text from reports has its control characters spelled out; escaping is the
templates' work.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profkit.core.version import __version__
from profkit.page import charts, kernels
from profkit.page.provenance import environment, provenance
from profkit.page.sources import source_data
from profkit.report import overview
from profkit.report.names import file_name, told_apart
from profkit.report.summary import Group, ReportSummary
from profkit.rules import finding_text as words
from profkit.rules.checklist import Checklist, Item
from profkit.ui.text import literal, number, percent, plural

if TYPE_CHECKING:
    from profkit.analysis.source_view import SourceView
    from profkit.report.phases import KernelTimeline
    from profkit.report.source_lines import Place
    from profkit.roofline.roofline import Roofline
    from profkit.timing.latency import LatencyReport

Json = dict[str, Any]

_SHORT_NAME, _BRIEF_NAME = 64, 36
_FIRST_FINDINGS, _FIRST_KERNELS = 5, 6
_OPEN_ITEMS = 3
_LEAST_MOST = 1.5


@dataclass(frozen=True)
class Content:
    """All that a page is made of.

    `groups` are the report's kernels in the order to show them, `detailed` those of them shown in
    detail. `timelines` and `sources` are by the index of a kernel's typical launch. `latency` and
    `manifest` are the run's, None outside one.
    """

    report: ReportSummary
    groups: tuple[Group, ...]
    detailed: tuple[Group, ...]
    found: Checklist
    roofline: Roofline | None = None
    timelines: Mapping[int, KernelTimeline] = field(default_factory=dict)
    sources: Mapping[int, SourceView] = field(default_factory=dict)
    latency: LatencyReport | None = None
    manifest: Mapping[str, Any] | None = None


def page_data(content: Content, *, with_host: bool) -> Json:
    """The page of a report; computer name, paths and arguments only `with_host`."""
    report, found = content.report, content.found
    name = file_name(report.path, with_host=with_host)
    short = short_names(content)
    detailed = [group.typical.index for group in content.detailed]
    sources = {at: source_data(view) for at, view in content.sources.items() if at in detailed}
    most = _most(found)
    items = [
        {"place": found.place(item), **_item(item, short, detailed, sources, most)}
        for item in found.findings
    ]
    return {
        "version": __version__,
        "title": _title(content, name),
        "file": literal(name),
        "key": _key(report),
        "headline": overview.headline(report),
        "gpu": literal(", ".join(gpu.name for gpu in report.gpus)),
        "notes": [literal(note) for note in report.notes],
        "summary": _summary(content, items),
        "checklist": _checklist(content, items, name, short),
        "kernels": kernels.table(content.groups, found, short, detailed),
        "details": [
            kernels.detail(group, found, short, at in content.timelines, at in sources)
            for group, at in zip(content.detailed, detailed, strict=True)
        ],
        "left": len(content.groups) - len(content.detailed),
        "gaps": [
            literal(gap)
            for gap in overview.all_gaps(
                [group.typical for group in content.detailed], report.session
            )
        ],
        "roofline": charts.roofline_words(content.roofline, short) if content.roofline else None,
        "timelines": {
            at: charts.timeline_words(content.timelines[at])
            for at in detailed
            if at in content.timelines
        },
        "latency": charts.latency_words_of(content.latency) if content.latency else None,
        "environment": environment(report, content.manifest, with_host=with_host),
        "provenance": provenance(report, content.manifest, name, with_host=with_host),
        "charts": {
            "roofline": charts.roofline_chart(content.roofline, short)
            if content.roofline
            else None,
            "timelines": {
                str(at): charts.timeline_chart(content.timelines[at])
                for at in detailed
                if at in content.timelines
            },
            "sources": {str(at): source for at, source in sources.items()},
            "latency": charts.latency_chart(content.latency) if content.latency else None,
        },
    }


def short_names(content: Content, width: int = _SHORT_NAME) -> Mapping[str, str]:
    """Kernel names in at most `width` characters, those that differ looking different."""
    return told_apart([literal(group.name) for group in content.groups], width)


def _title(content: Content, name: str) -> str:
    target = (content.manifest or {}).get("target")
    return literal(str(target)) if target else literal(Path(name).name.partition(".ncu-rep")[0])


def _key(report: ReportSummary) -> str:
    """What tells this report from others where a browser keeps the ticks of many."""
    told = f"{Path(report.path).name} {report.session.created} {report.total!r}"
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _summary(content: Content, items: Sequence[Json]) -> Json:
    brief = short_names(content, _BRIEF_NAME)
    first = [item for item in items if item["gain"]] or list(items)
    shown = [group for group in content.groups if group.count > group.failed][:_FIRST_KERNELS]
    rest = [group for group in content.groups if group not in shown and group.share > 0]
    by_kernel = {
        group.typical.index: next(
            (item.rule.title for item in content.found.findings_of(group)), ""
        )
        for group in shown
    }
    time = [
        {
            "name": brief[literal(group.name)],
            "full": literal(group.name),
            "anchor": kernels.anchor(group) if group in content.detailed else "",
            "seconds": number(group.total, "s"),
            "share": group.share,
            "percent": percent(group.share),
            "limit": by_kernel[group.typical.index],
        }
        for group in shown
    ]
    return {
        "lead": _lead(first[0] if first else None, content.found),
        "findings": [
            item | {"name": brief.get(item["full"], item["name"])}
            for item in first[:_FIRST_FINDINGS]
        ],
        "more": len(items) - len(first[:_FIRST_FINDINGS]),
        "time": time,
        "rest": {
            "count": plural(len(rest), "other kernel"),
            "share": sum(group.share for group in rest),
            "percent": percent(sum(group.share for group in rest)),
            "seconds": number(sum(group.total for group in rest), "s"),
        }
        if rest
        else None,
        "proven": words.proven(content.found.proofs),
    }


def _lead(first: Json | None, found: Checklist) -> Json:
    """The answer in a sentence: what limits, where, and what a fix would give.

    Where another variant proves more than any fix promises, that.
    """
    if found.headline:
        finding = f"; first finding: {first['title']}" if first else ""
        return {
            "what": words.proof_line(found.headline),
            "where": "",
            "gives": f"{words.proof_source(found.headline)}{finding}",
        }
    if first is None:
        what = "Can't tell" if found.inconclusive else "Nothing found"
        return {"what": what, "where": "", "gives": words.summary(found)}
    gives = f"a fix gives {first['gain']} here, {first['run']}" if first["gain"] else ""
    return {
        "what": first["title"],
        "where": first["name"],
        "full": first["full"],
        "gives": gives or first["gives"],
    }


def _checklist(
    content: Content, items: Sequence[Json], name: str, short: Mapping[str, str]
) -> Json:
    found = content.found
    return {
        "summary": words.summary(found),
        "items": items,
        "roofs": [
            (short[literal(roof.group.name)], told)
            for roof, (_, told) in zip(found.roofs, words.roofs(found), strict=True)
        ],
        "untold": list(words.untold(found, content.report.session, literal(name))),
    }


def _item(
    item: Item,
    short: Mapping[str, str],
    detailed: Sequence[int],
    sources: Mapping[int, Json],
    most: float,
) -> Json:
    rule, estimate, group = item.rule, item.finding.estimate, item.group
    at = group.typical.index if group else -1
    return {
        "rank": item.rank,
        "key": hashlib.sha256(f"{rule.name} {group and group.name} {at}".encode()).hexdigest()[:12],
        "rule": rule.name,
        "category": rule.category,
        "title": rule.title,
        "why": rule.explanation,
        "gain": words.gain(estimate) if estimate else "",
        "factor": words.factor(estimate.likely) if estimate else "",
        "range": _range(item, most),
        "run": words.whole_gain(item),
        "run_factor": words.run_gain(estimate) if estimate else "",
        "run_of": "picked" if item.picked else "report",
        "name": short[literal(group.name)] if group else words.TIMELINE,
        "full": literal(group.name) if group else "",
        "anchor": kernels.anchor(group) if group and at in detailed else "",
        "gives": words.prospects(item),
        "effort": rule.effort,
        "confidence": rule.confidence,
        "seen": list(words.evidence(item)),
        "where": [_place(place, at, sources.get(at)) for place in words.telling(item.places)],
        "do": list(item.actions),
        "check": list(rule.verify),
        "open": 0 < item.rank <= _OPEN_ITEMS,
    }


def _most(found: Checklist) -> float:
    """The factor at which the axis of all estimates ends."""
    estimates = (item.finding.estimate for item in found.items)
    return max((one.high for one in estimates if one), default=1.0)


def _range(item: Item, most: float) -> Json | None:
    """Where an estimate lies on a logarithmic axis from 1 to `most`, in per cent of its length."""
    estimate = item.finding.estimate
    if estimate is None:
        return None

    def place(factor: float) -> float:
        return round(100 * math.log(factor) / math.log(max(most, _LEAST_MOST)), 1)

    return {
        "low": place(estimate.low),
        "likely": place(estimate.likely),
        "high": place(estimate.high),
    }


def _place(place: Place, launch: int, source: Json | None) -> Json:
    """A place to blame, and where of the source view it is."""
    file = literal(Path(place.file).name) if place.line else ""
    return {
        "text": words.place_name(place),
        "share": percent(place.share),
        "source": f"{launch}:{file}:{place.line}" if source else "",
    }
