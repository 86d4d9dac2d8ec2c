"""Comparisons as SARIF 2.1.0: failed gates and findings that a change introduced, at their lines.

A result without a known line of source is placed at the report it is about: code scanning takes
none without a location.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from profkit.comparison.blamed import Sources, Spot, introduced_findings
from profkit.comparison.finding_changes import Status
from profkit.comparison.gates import Gate, GateKind, failure
from profkit.comparison.result import Comparisons, Judged
from profkit.core.version import __version__
from profkit.ui.text import literal

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
MOST = 5000
"""Results per run that GitHub code scanning shows (its documented limit)."""

_GATES: Mapping[GateKind, str] = {
    GateKind.regression: "A kernel regressed",
    GateKind.inconclusive: "The comparison of a kernel is inconclusive",
    GateKind.incomparable: "A kernel can't be compared",
    GateKind.new_finding: "A kernel has a new finding",
    GateKind.removed: "A kernel was removed",
    GateKind.metric: "A metric condition is met",
}
_ERROR, _WARNING = "error", "warning"

Json = dict[str, Any]


def diff_sarif(comparisons: Comparisons) -> str:
    """One run; errors come first. Files are named from the current folder."""
    rules: dict[str, Json] = {}
    results = [
        result for judged in comparisons.judged for result in _results(judged, comparisons, rules)
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


def _results(judged: Judged, comparisons: Comparisons, rules: dict[str, Json]) -> Iterator[Json]:
    """Failed gates, then findings: an error where a gate forbids new ones on its kernel."""
    label = judged.label if len(comparisons.judged) > 1 else ""
    diff, failed = judged.diff, list(judged.failures)
    sources = Sources(Path.cwd(), comparisons.with_host)
    report = Spot(sources.named(diff.sides[1].report.path), 1)
    if diff.refused and all(fail.kind is not GateKind.incomparable for fail in failed):
        # as the gate that nobody has to ask for
        failed.insert(0, failure(Gate(GateKind.incomparable), "", diff.obstacle_words))
    forbidden = {fail.index for fail in failed if fail.kind is GateKind.new_finding}
    for fail in failed:
        kind, spot = fail.kind, sources.failure_spot(fail, diff) or report
        if kind is not GateKind.new_finding or fail.undecided:
            rule = _rule(rules, f"gate/{kind}", _GATES[kind], "")
            level, message = _WARNING if fail.undecided else _ERROR, str(fail)
            identity = label, fail.kernel or "", fail.gate
            yield _result(rule, level, message, spot, identity)
    for finding in introduced_findings(diff):
        error = finding.change.status is Status.new and finding.index in forbidden
        source, spot = finding.item.rule, sources.item_spot(finding.item) or report
        rule = _rule(rules, source.name, source.title, source.explanation)
        identity = label, finding.kernel.after.name, source.name
        result = _result(rule, _ERROR if error else _WARNING, finding.message, spot, identity)
        yield result | {"properties": {"status": finding.change.status.value}}


def _rule(rules: dict[str, Json], name: str, title: str, help: str) -> Json:
    """A rule's name and its place among those of the run."""
    properties = {"tags": ["performance"]}
    rule = {"shortDescription": {"text": title}, "help": {"text": help or title}}
    rules.setdefault(name, {"id": name, **rule, "properties": properties})
    return {"ruleId": name, "ruleIndex": list(rules).index(name)}


def _result(
    rule: Json, level: str, message: str, spot: Spot, identity: tuple[str, str, str]
) -> Json:
    region = {"startLine": spot.line}
    place = {"artifactLocation": _artifact(spot.file), "region": region}
    location: Json = {"physicalLocation": place}
    if kernel := identity[1]:
        location["logicalLocations"] = [{"name": literal(kernel), "kind": "function"}]
    digest = hashlib.sha256("\0".join(identity).encode("utf-8", "replace")).hexdigest()
    return {
        **rule,
        "level": level,
        "message": {"text": literal(message)},
        "locations": [location],
        "partialFingerprints": {"profkitDiff/v1": digest[:32]},
    }


def _artifact(file: str) -> Json:
    if Path(file).is_absolute():
        return {"uri": f"file://{quote(file, errors='replace')}"}
    return {"uri": quote(file, errors="replace"), "uriBaseId": "%SRCROOT%"}
