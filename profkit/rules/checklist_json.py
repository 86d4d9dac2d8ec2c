"""Findings, checklist items and what surrounds them, as JSON's objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from profkit.core.json_text import nullable
from profkit.report.source_lines import Place
from profkit.rules.checklist import Checklist, Item
from profkit.rules.engine import Evidence
from profkit.rules.proof import Proof
from profkit.rules.units import unit_of

Json = dict[str, Any]


def found_json(found: Checklist) -> Json:
    """What a checklist adds to a report's object."""
    return {
        "conclusion": conclusion(found),
        "checklist": [item_json(item) for item in found.items],
        "informative": [item_json(item) for item in found.informative],
        "reachable": [
            _proof(proof) | {"headline": proof is found.headline} for proof in found.proofs
        ],
        "not_evaluated": [
            {
                "rule": one.rule,
                "kernels": one.kernels,
                "missing": list(one.missing),
                "reasons": dict(one.reasons),
                "sections": list(one.sections),
            }
            for one in found.unevaluated
        ],
    }


def conclusion(found: Checklist) -> str:
    """Whether there are findings; where not, whether enough rules ran to say that."""
    if found.findings:
        return "findings"
    return "can't tell" if found.inconclusive else "nothing found"


def item_json(item: Item) -> Json:
    """A checklist item: the finding, and what to do about it."""
    group, rule = item.group, item.rule
    return finding_json(item) | {
        "title": rule.title,
        "grid": list(group.grid) if group else [],
        "block": list(group.block) if group else [],
        "launches": [launch.index for launch in group.launches] if group else [],
        "saved_s": item.finding.saved,
        "effort": rule.effort,
        "actions": list(item.actions),
        "verify": list(rule.verify),
        "same_weight": list(item.peers),
        "page": item.page or None,
    }


def finding_json(item: Item) -> Json:
    """A finding on a kernel or a timeline; null stands for rank and factors of one without an
    estimate."""
    rule, estimate = item.rule, item.finding.estimate
    return {
        "rank": item.rank or None,
        "rule": rule.name,
        "category": rule.category,
        "kernel": item.group.name if item.group else None,
        "estimated_speedup": estimate.likely if estimate else None,
        "range": [estimate.low, estimate.high] if estimate else None,
        "run_speedup": estimate.run if estimate else None,
        "promises": estimate is not None,
        "estimate_lacks": list(item.finding.lacking),
        "confidence": rule.confidence,
        "bounded_by": (estimate.bounded_by or None) if estimate else None,
        "bound_s": estimate.bound_seconds if estimate and estimate.bounded_by else None,
        "evidence": [_evidence(told) for told in item.finding.evidence if told.holds],
        "where": [_place(place) for place in item.places],
    }


def _evidence(told: Evidence) -> Json:
    return {
        "quantity": told.what,
        "value": told.value,
        "unit": unit_of(told.what) or None,
        "comparison": told.sign or None,
        "threshold": nullable(told.threshold),
    }


def _place(place: Place) -> Json:
    return {
        "file": Path(place.file).name or None,
        "line": place.line or None,
        "instruction": place.sass or None,
        "offset": place.offset or None,
        "share": place.share,
    }


def _proof(proof: Proof) -> Json:
    return {
        "variant": proof.variant,
        "seconds": proof.seconds,
        "best": proof.best,
        "best_seconds": proof.best_seconds,
        "speedup": proof.speedup,
        "measured": "timed" if proof.timed else "profiled",
    }
