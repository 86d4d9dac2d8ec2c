"""Comparisons as SARIF 2.1.0: failed gates and findings that a change brought, at their lines.

A result without a known line of source is placed at the report it is about: code scanning takes
none without a location.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from profkit.comparison import tables as parts
from profkit.comparison.blamed import Brought, Sources, Spot, brought
from profkit.comparison.comparison import Diff
from profkit.comparison.document import Document
from profkit.comparison.finding_changes import Status
from profkit.comparison.gates import Failure, Gate, GateKind
from profkit.core.version import __version__
from profkit.ui.text import literal

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
MOST = 5000
"""Results that code scanning takes of one file."""

_GATES: Mapping[GateKind, str] = {
    GateKind.regression: "A kernel got slower",
    GateKind.inconclusive: "Whether a kernel got slower can't be concluded",
    GateKind.incomparable: "A kernel can't be compared",
    GateKind.new_finding: "A kernel has a limit that it had not",
    GateKind.removed: "A kernel is gone",
    GateKind.metric: "A quantity is beyond what is allowed",
}
_ERROR, _WARNING = "error", "warning"

Json = dict[str, Any]


def diff_sarif(document: Document) -> str:
    """One run; errors come first. Files are named from the current folder."""
    rules: dict[str, Json] = {}
    results: list[Json] = []
    sources = Sources(Path.cwd(), document.with_host)
    for judged in document.comparisons:
        name = judged.label if len(document.comparisons) > 1 else ""
        diff, failed = judged.diff, judged.failures
        report = Spot(sources.named(diff.sides[1].report.path), 1)
        if diff.refused and not any(
            failure.gate.kind is GateKind.incomparable for failure in failed
        ):
            results.append(_failed(name, _refusal(diff), report, rules))
        results += [
            _failed(name, failure, sources.failure_spot(failure, diff) or report, rules)
            for failure in failed
            if failure.gate.kind is not GateKind.new_finding or failure.unchecked
        ]
        forbidden = {
            failure.index for failure in failed if failure.gate.kind is GateKind.new_finding
        }
        results += [
            _finding(name, finding, sources.item_spot(finding.item) or report, rules, forbidden)
            for finding in brought(diff)
        ]
    results.sort(key=lambda result: result["level"] != _ERROR)
    driver = {"name": "profkit", "version": __version__, "rules": list(rules.values())}
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": "profkit-diff/"},
        "columnKind": "utf16CodeUnits",
        "results": results[:MOST],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _refusal(diff: Diff) -> Failure:
    """Reports that can't be compared, as the gate that nobody has to ask for."""
    return Failure(Gate(GateKind.incomparable), "", diff.obstacle_words)


def _failed(label: str, failure: Failure, spot: Spot, rules: dict[str, Json]) -> Json:
    kind = failure.gate.kind
    rule = _rule(rules, f"gate/{kind}", _GATES[kind], "")
    level = _WARNING if failure.undecided else _ERROR
    return _result(
        rule, level, parts.failure(failure), spot, (label, failure.kernel, str(failure.gate))
    )


def _finding(
    label: str, finding: Brought, spot: Spot, rules: dict[str, Json], forbidden: Collection[int]
) -> Json:
    """A finding; an error where a gate forbids new ones on its kernel."""
    error = finding.change.status is Status.new and finding.index in forbidden
    source = finding.item.rule
    rule = _rule(rules, source.name, source.title, source.explanation)
    name = finding.kernel.after.name
    made = _result(
        rule, _ERROR if error else _WARNING, finding.message, spot, (label, name, source.name)
    )
    return made | {"properties": {"status": finding.change.status.value}}


def _rule(rules: dict[str, Json], name: str, title: str, help: str) -> tuple[str, int]:
    """A rule's name and its place among those of the run."""
    if name not in rules:
        rules[name] = {
            "id": name,
            "shortDescription": {"text": title},
            "help": {"text": help or title},
            "properties": {"tags": ["performance"]},
        }
    return name, list(rules).index(name)


def _result(
    rule: tuple[str, int], level: str, message: str, spot: Spot, identity: tuple[str, str, str]
) -> Json:
    kernel = identity[1]
    location: Json = {
        "physicalLocation": {
            "artifactLocation": _artifact(spot.file),
            "region": {"startLine": spot.line},
        }
    }
    if kernel:
        location["logicalLocations"] = [{"name": literal(kernel), "kind": "function"}]
    digest = "\0".join(identity).encode("utf-8", "replace")
    return {
        "ruleId": rule[0],
        "ruleIndex": rule[1],
        "level": level,
        "message": {"text": literal(message)},
        "locations": [location],
        "partialFingerprints": {"profkitDiff/v1": hashlib.sha256(digest).hexdigest()[:32]},
    }


def _artifact(file: str) -> Json:
    if Path(file).is_absolute():
        return {"uri": f"file://{quote(file, errors='replace')}"}
    return {"uri": quote(file, errors="replace"), "uriBaseId": "%SRCROOT%"}
