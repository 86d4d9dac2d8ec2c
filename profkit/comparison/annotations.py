"""What a comparison says of lines of source, as GitHub's workflow commands."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

from msgspec import Struct

from profkit.comparison import text as words
from profkit.comparison.comparison import Diff
from profkit.comparison.finding_changes import WORTH, Status
from profkit.comparison.gates import Failure, GateKind
from profkit.comparison.result import Comparisons, Judged
from profkit.core.errors import EnvironmentProblem, refusal
from profkit.report.names import file_name
from profkit.rules.finding import Finding
from profkit.ui.text import literal

_WORSE = (Status.new, Status.worsened)


class Spot(Struct, frozen=True):
    """A line of a file: its path from the repository's root, or the file's name alone."""

    file: str
    line: int


class Sources(Struct, frozen=True):
    """Files of a repository, named from its folder; `with_host` keeps the paths of others."""

    root: Path
    with_host: bool

    def introduced(self, judged: Judged) -> Iterator[tuple[str, str, Spot | None]]:
        """Category, message and line of findings that are new or worsened and have an estimated
        speedup; without those that fail a gate."""
        forbidden = {fail.index for fail in judged.failures if fail.kind is GateKind.new_finding}
        for index, kernel in enumerate(judged.diff.kernels):
            for change in kernel.findings:
                finding, factor = change.after, change.speedup_after
                if change.status not in _WORSE or not change.is_reported:
                    continue
                is_forbidden = change.has_come and index in forbidden
                if finding and factor >= WORTH and not is_forbidden:
                    shown = f"{finding.title}, {words.finding(change)}"
                    gain = f"estimated speedup {factor:.2f}x"
                    message = literal(f"{words.name(kernel)}: {shown}; {gain}")
                    yield change.category, message, self._spot(finding)

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
    commands: list[str] = []
    sources = Sources(Path.cwd(), comparisons.with_host)
    for judged in comparisons.judged:
        prefix = literal(f"{judged.label}: ") if len(comparisons.judged) > 1 else ""
        commands += [
            _command(level, title, prefix + message, spot)
            for level, title, message, spot in _annotations(judged, sources)
        ]
    return "".join(commands)


def append_summary(markdown: str, path: str) -> None:
    """Append to the step's summary, the file of $GITHUB_STEP_SUMMARY.

    Raises EnvironmentProblem where it can't be written.
    """
    remedy = "unset GITHUB_STEP_SUMMARY"
    unwritable = refusal(f"{path}: can't be written", EnvironmentProblem, remedy)
    with unwritable, Path(path).open("a", encoding="utf-8") as file:
        file.write(markdown)


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
    for category, message, spot in sources.introduced(judged):
        yield "warning", f"profkit: {category}", message, spot
    alone = len(diff.kernels) == 1 and not diff.removed and not diff.added
    outcome = words.headline(diff.kernels[0]) if alone else words.summary(diff)
    yield "notice", "profkit diff", literal(outcome), None


def _command(level: str, title: str, message: str, spot: Spot | None) -> str:
    place = {"file": spot.file, "line": str(spot.line)} if spot else {}
    fields = {**place, "title": title}.items()
    properties = ",".join(
        f"{name}={_data(value).replace(':', '%3A').replace(',', '%2C')}" for name, value in fields
    )
    return f"::{level} {properties}::{_data(message)}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
