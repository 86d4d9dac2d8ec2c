"""Comparisons as GitHub's workflow commands: annotations on the lines of a pull request.

GitHub shows ten errors and ten warnings per step; a notice counts the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from profkit.comparison import text as words
from profkit.comparison.blamed import Sources, Spot, introduced_findings
from profkit.comparison.comparison import Diff
from profkit.comparison.finding_changes import Status
from profkit.comparison.gates import Failure, GateKind
from profkit.comparison.result import Comparisons
from profkit.core.errors import EnvironmentProblem
from profkit.ui.text import literal

MOST = 10
"""Annotations of one level that GitHub shows per step (its documented limit)."""


def diff_github(comparisons: Comparisons) -> str:
    """An error for each failed gate, a warning for each introduced finding, a notice.

    Files are named from the current folder, the repository's.
    """
    commands: dict[str, list[str]] = {"error": [], "warning": [], "notice": []}
    sources = Sources(Path.cwd(), comparisons.with_host)
    for judged in comparisons.judged:
        prefix = literal(f"{judged.label}: ") if len(comparisons.judged) > 1 else ""
        for level, title, message, spot in _annotations(judged.diff, judged.failures, sources):
            commands[level].append(_command(level, title, prefix + message, spot))
    shown = [command for level in commands.values() for command in level[:MOST]]
    left = [f"{len(many) - MOST} more {name}s" for name, many in commands.items() if many[MOST:]]
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


def _annotations(
    diff: Diff, failed: Sequence[Failure], sources: Sources
) -> Iterator[tuple[str, str, str, Spot | None]]:
    """Level, title, message and place."""
    if diff.refused:
        yield "error", "profkit: incomparable", literal(diff.obstacle_words), None
        failed = [failure for failure in failed if not failure.undecided]
    for failure in failed:
        spot = sources.failure_spot(failure, diff)
        yield "error", f"profkit: {failure.gate}", str(failure), spot
    if diff.refused:
        return
    forbidden = {fail.index for fail in failed if fail.kind is GateKind.new_finding}
    for finding in introduced_findings(diff):
        if finding.change.status is not Status.new or finding.index not in forbidden:
            title, spot = f"profkit: {finding.change.category}", sources.item_spot(finding.item)
            yield "warning", title, finding.message, spot
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
