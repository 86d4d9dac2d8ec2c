"""What a comparison says of lines of source, as GitHub's workflow commands and as SARIF 2.1.0.

GitHub shows ten errors and ten warnings per step; a notice counts the others. In SARIF a result
without a known line is placed at the report it is about: code scanning takes none without a
location.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from msgspec import Struct

from profkit.comparison import text as words
from profkit.comparison.comparison import Diff
from profkit.comparison.finding_changes import WORTH, Status
from profkit.comparison.gates import Failure, Gate, GateKind, failure
from profkit.comparison.result import Comparisons, Judged
from profkit.core.errors import EnvironmentProblem
from profkit.core.version import __version__
from profkit.report.names import file_name
from profkit.rules.finding import Finding
from profkit.ui.text import literal

MOST_SHOWN = 10
"""Annotations of one level that GitHub shows per step (its documented limit)."""
MOST_RESULTS = 5000
"""Results per run that GitHub code scanning shows (its documented limit)."""
SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)

_WORSE = (Status.new, Status.worsened)
_GATES: Mapping[GateKind, str] = {
    GateKind.regression: "A kernel regressed",
    GateKind.inconclusive: "The comparison of a kernel is inconclusive",
    GateKind.incomparable: "A kernel can't be compared",
    GateKind.new_finding: "A kernel has a new finding",
    GateKind.removed: "A kernel was removed",
    GateKind.metric: "A metric condition is met",
}


class Spot(Struct, frozen=True):
    """A line of a file: its path from the repository's root, or the file's name alone."""

    file: str
    line: int


class IntroducedFinding(Struct, frozen=True):
    """A finding that a change introduced or worsened, with its line; `is_forbidden` by a gate."""

    finding: Finding
    category: str
    status: Status
    kernel: str
    message: str
    spot: Spot | None
    is_forbidden: bool


class Sources(Struct, frozen=True):
    """Files of a repository, named from its folder; `with_host` keeps the paths of others."""

    root: Path
    with_host: bool

    def introduced(self, judged: Judged) -> Iterator[IntroducedFinding]:
        """The findings that are new or worsened and have an estimated speedup."""
        forbidden = {fail.index for fail in judged.failures if fail.kind is GateKind.new_finding}
        for index, kernel in enumerate(judged.diff.kernels):
            for change in kernel.findings:
                finding, factor = change.after, change.speedup_after
                if change.status in _WORSE and change.is_reported and finding and factor >= WORTH:
                    shown = f"{finding.title}, {words.finding(change)}"
                    gain = f"estimated speedup {factor:.2f}x"
                    message = literal(f"{words.name(kernel)}: {shown}; {gain}")
                    is_forbidden = change.status is Status.new and index in forbidden
                    yield IntroducedFinding(
                        finding, change.category, change.status, kernel.after.name, message,
                        self._spot(finding), is_forbidden,
                    )  # fmt: skip

    def _spot(self, finding: Finding) -> Spot | None:
        """The line that a finding blames first; None where no line is known."""
        place = next((place for place in finding.places if place.file and place.line), None)
        return Spot(self.named(place.file), place.line) if place else None

    def failure_spot(self, failed: Failure, diff: Diff) -> Spot | None:
        """The line that the weightiest finding on a failure's kernel blames, a new one first."""
        if failed.index is None:
            return None
        changes = diff.kernels[failed.index].findings
        ordered = sorted(changes, key=lambda change: change.status not in _WORSE)
        spots = (self._spot(change.after) for change in ordered if change.after)
        return next(filter(None, spots), None)

    def named(self, path: str) -> str:
        """A path that a compiler saw, as one below the root: by the longest end that is there.

        Where nothing is there, the file's name, or the path with the host.
        """
        posix = PurePosixPath(path.replace("\\", "/"))
        parts = [part for part in posix.parts if part not in {"/", ".", ".."}]
        for start in range(len(parts)):
            end = Path(*parts[start:])
            with suppress(OSError):  # a name too long, for example
                if (self.root / end).is_file():
                    return end.as_posix()
        return file_name(posix.as_posix(), with_host=self.with_host)


def diff_github(comparisons: Comparisons) -> str:
    """An error for each failed gate, a warning for each introduced finding, a notice.

    Files are named from the current folder, the repository's.
    """
    commands: dict[str, list[str]] = {"error": [], "warning": [], "notice": []}
    sources = Sources(Path.cwd(), comparisons.with_host)
    for judged in comparisons.judged:
        prefix = literal(f"{judged.label}: ") if len(comparisons.judged) > 1 else ""
        for level, title, message, spot in _annotations(judged, sources):
            commands[level].append(_command(level, title, prefix + message, spot))
    shown = [command for level in commands.values() for command in level[:MOST_SHOWN]]
    left = [
        f"{len(many) - MOST_SHOWN} more {name}s"
        for name, many in commands.items()
        if many[MOST_SHOWN:]
    ]
    if left:
        shown.append(_command("notice", "profkit diff", f"{', '.join(left)} not shown", None))
    return "".join(shown)


def append_summary(markdown: str, path: str) -> None:
    """Append to the step's summary, the file of $GITHUB_STEP_SUMMARY.

    Raises EnvironmentProblem where it can't be written.
    """
    try:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(markdown)
    except OSError as error:
        raise EnvironmentProblem(
            f"{path}: can't be written ({error.strerror})", "unset GITHUB_STEP_SUMMARY"
        ) from None


def _annotations(judged: Judged, sources: Sources) -> Iterator[tuple[str, str, str, Spot | None]]:
    """Level, title, message and place."""
    diff, failed = judged.diff, judged.failures
    if diff.refused:
        yield "error", "profkit: incomparable", literal(diff.obstacle_words), None
        failed = [fail for fail in failed if not fail.undecided]
    for fail in failed:
        yield "error", f"profkit: {fail.gate}", str(fail), sources.failure_spot(fail, diff)
    if diff.refused:
        return
    for found in sources.introduced(judged):
        if not found.is_forbidden:
            yield "warning", f"profkit: {found.category}", found.message, found.spot
    alone = len(diff.kernels) == 1 and not diff.removed and not diff.added
    outcome = words.headline(diff.kernels[0]) if alone else words.summary(diff)
    yield "notice", "profkit diff", literal(outcome), None


def _command(level: str, title: str, message: str, spot: Spot | None) -> str:
    place = {"file": spot.file, "line": str(spot.line)} if spot else {}
    fields = {**place, "title": title}.items()
    properties = ",".join(f"{name}={_property(value)}" for name, value in fields)
    return f"::{level} {properties}::{_data(message)}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


_Json = dict[str, object]


def diff_sarif(comparisons: Comparisons) -> str:
    """One run; errors come first. Files are named from the current folder."""
    rules: dict[str, _Json] = {}
    sources = Sources(Path.cwd(), comparisons.with_host)
    results = [
        result
        for judged in comparisons.judged
        for result in _results(judged, len(comparisons.judged) > 1, sources, rules)
    ]
    results.sort(key=lambda result: result["level"] != "error")
    driver = {"name": "profkit", "version": __version__, "rules": list(rules.values())}
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": "profkit-diff/"},
        "columnKind": "utf16CodeUnits",
        "results": results[:MOST_RESULTS],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _results(
    judged: Judged, is_labeled: bool, sources: Sources, rules: dict[str, _Json]
) -> Iterator[_Json]:
    """Failed gates, then findings: an error where a gate forbids new ones on its kernel."""
    label = judged.label if is_labeled else ""
    diff, failed = judged.diff, list(judged.failures)
    report = Spot(sources.named(diff.sides[1].report.path), 1)
    if diff.refused and all(fail.kind is not GateKind.incomparable for fail in failed):
        # as the gate that nobody has to ask for
        failed.insert(0, failure(Gate(GateKind.incomparable), "", diff.obstacle_words))
    for fail in failed:
        if fail.kind is not GateKind.new_finding or fail.undecided:
            rule = _rule(rules, f"gate/{fail.kind}", _GATES[fail.kind], "")
            spot, kernel = sources.failure_spot(fail, diff) or report, fail.kernel or ""
            is_error = not fail.undecided
            yield rule | _result(is_error, str(fail), spot, (label, kernel, fail.gate))
    for found in sources.introduced(judged):
        source = found.finding.rule
        rule = _rule(rules, source.name, source.title, source.explanation)
        identity, spot = (label, found.kernel, source.name), found.spot or report
        result = _result(found.is_forbidden, found.message, spot, identity)
        yield rule | result | {"properties": {"status": found.status.value}}


def _rule(rules: dict[str, _Json], name: str, title: str, help: str) -> _Json:
    """A rule's name and its place among those of the run."""
    rule = {"shortDescription": {"text": title}, "help": {"text": help or title}}
    rules.setdefault(name, {"id": name, **rule, "properties": {"tags": ["performance"]}})
    return {"ruleId": name, "ruleIndex": list(rules).index(name)}


def _result(is_error: bool, message: str, spot: Spot, identity: tuple[str, str, str]) -> _Json:
    artifact = {"uri": quote(spot.file, errors="replace"), "uriBaseId": "%SRCROOT%"}
    if Path(spot.file).is_absolute():
        artifact = {"uri": f"file://{quote(spot.file, errors='replace')}"}
    place = {"artifactLocation": artifact, "region": {"startLine": spot.line}}
    location: _Json = {"physicalLocation": place}
    if kernel := identity[1]:
        location["logicalLocations"] = [{"name": literal(kernel), "kind": "function"}]
    digest = hashlib.sha256("\0".join(identity).encode("utf-8", "replace")).hexdigest()
    return {
        "level": "error" if is_error else "warning",
        "message": {"text": literal(message)},
        "locations": [location],
        "partialFingerprints": {"profkitDiff/v1": digest[:32]},
    }
