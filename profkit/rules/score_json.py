"""How well findings hold as JSON, `profkit.score/1`: the schema is `profkit/schemas/score.json`."""

from __future__ import annotations

import json
from typing import Any

from profkit.core.json_text import nullable
from profkit.core.version import __version__
from profkit.rules.pairs import PairNotes
from profkit.rules.score import Accuracy, Judged, PairScore, Part, Score

SCHEMA = "profkit.score/1"

Json = dict[str, Any]


def score_json(found: Score, notes: PairNotes) -> str:
    """The figures, those of both halves where they are known, and a row a pair."""
    document = {
        "schema": SCHEMA,
        "profkit": __version__,
        "summary": _part(found.whole),
        "design": _part(found.design) if found.design else None,
        "held_out": _part(found.held_out) if found.held_out else None,
        "pairs": [_pair(pair, notes) for pair in found.pairs],
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _part(part: Part) -> Json:
    return {
        "defects": part.defects,
        "nothing_to_gain": part.watched,
        "estimated": part.estimated,
        "within_range": part.within,
        "above_range": part.above,
        "first_without_estimate": part.named,
        **_accuracy(part.ours),
        "ncu": _accuracy(part.ncu),
        "no_gain": _accuracy(part.no_gain),
    }


def _accuracy(accuracy: Accuracy) -> Json:
    return {
        "top1": nullable(accuracy.top1),
        "top3": nullable(accuracy.top3),
        "mean_error": nullable(accuracy.mean_error),
        "max_error": nullable(accuracy.max_error),
        "false_alarms": nullable(accuracy.false_alarms),
    }


def _pair(pair: PairScore, notes: PairNotes) -> Json:
    return {
        "name": pair.name,
        "gpu": pair.gpu,
        "category": pair.category,
        "achieved": nullable(pair.achieved),
        "measured": ("timed" if pair.timed else "profiled") if pair.category else None,
        **_judged(pair.ours),
        "range": list(pair.ours.range) if pair.ours.range else None,
        "ncu": _judged(pair.ncu),
        "no_gain": {"error": nullable(pair.no_gain.error)},
        "held_out": pair.held_out,
        "missed": pair.missed,
        "why": notes.why.get(pair.name) if pair.missed else None,
    }


def _judged(judged: Judged) -> Json:
    return {
        "rank": judged.rank,
        "estimated": nullable(judged.estimated),
        "error": nullable(judged.error),
        "alarms": [
            {"category": alarm.category, "promised": alarm.factor, "report": alarm.side}
            for alarm in judged.alarms
        ],
    }
