"""Comparisons as GitHub's workflow commands: annotations on the lines of a pull request.

GitHub shows ten errors and ten warnings of a step; what is beyond them is told in a notice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from profkit.comparison import tables as parts
from profkit.comparison import text as words
from profkit.comparison.blamed import Sources, Spot, brought
from profkit.comparison.comparison import Diff
from profkit.comparison.document import Document
from profkit.comparison.finding_changes import Status
from profkit.comparison.gates import Failure, GateKind
from profkit.core.errors import EnvironmentProblem
from profkit.ui.text import literal

MOST = 10
"""Annotations of one level that GitHub shows for a step."""


@dataclass(frozen=True)
class _Annotation:
    level: str
    title: str
    message: str
    spot: Spot | None


def diff_github(document: Document) -> str:
    """An error for each failed gate, a warning for each finding that the change brought, a notice.

    Files are named from the current folder, the repository's.
    """
    made: dict[str, list[_Annotation]] = {"error": [], "warning": [], "notice": []}
    sources = Sources(Path.cwd(), document.with_host)
    for judged in document.comparisons:
        prefix = literal(f"{judged.label}: ") if len(document.comparisons) > 1 else ""
        for annotation in _annotations(prefix, judged.diff, judged.failures, sources):
            made[annotation.level].append(annotation)
    shown = [annotation for level in made.values() for annotation in level[:MOST]]
    left = [f"{len(level) - MOST} more {name}s" for name, level in made.items() if level[MOST:]]
    if left:
        shown.append(_Annotation("notice", "profkit diff", f"{', '.join(left)} not shown", None))
    return "".join(f"{_command(annotation)}\n" for annotation in shown)


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


def _annotations(
    prefix: str, diff: Diff, failed: Sequence[Failure], sources: Sources
) -> Iterator[_Annotation]:
    if diff.refused:
        why = literal(diff.obstacle_words)
        yield _Annotation("error", "profkit: incomparable", f"{prefix}{why}", None)
        failed = [failure for failure in failed if not failure.undecided]
    for failure in failed:
        spot = sources.failure_spot(failure, diff)
        yield _Annotation(
            "error", f"profkit: {failure.gate}", f"{prefix}{parts.failure(failure)}", spot
        )
    if diff.refused:
        return
    told_of = {failure.index for failure in failed if failure.gate.kind is GateKind.new_finding}
    for finding in brought(diff):
        if finding.change.status is Status.new and finding.index in told_of:
            continue
        spot = sources.item_spot(finding.item)
        title = f"profkit: {finding.change.category}"
        yield _Annotation("warning", title, f"{prefix}{finding.message}", spot)
    alone = len(diff.kernels) == 1 and not diff.removed and not diff.added
    outcome = words.headline(diff.kernels[0]) if alone else words.summary(diff)
    yield _Annotation("notice", "profkit diff", literal(f"{prefix}{outcome}"), None)


def _command(annotation: _Annotation) -> str:
    properties = {"title": annotation.title}
    if annotation.spot:
        properties = {"file": annotation.spot.file, "line": str(annotation.spot.line), **properties}
    fields = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{annotation.level} {fields}::{_data(annotation.message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
