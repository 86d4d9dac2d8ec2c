"""The recorded pairs and the ladder, read and judged once in a run of the tests: all every night,
by day a third of them with all controls."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import profkit
from kernels import pair
from kernels.recorded import Profile
from profkit.commands.groups import Advice
from profkit.commands.reading import judge_applications
from profkit.report.session import Session
from profkit.report.summary import ReportSummary
from profkit.rules.checklist import Checklist
from profkit.score.score import PairScore, definitions_of, judge, read_pair
from profkit.score.stories import Applications
from tests.conftest import H200, NIGHTLY, TRACKED, apart, pair_folder, scratch, written_once

PAIRS = TRACKED / "pairs"
LADDER = H200 / "ladder"
FOLDERS = [*map(pair_folder, pair.names()), LADDER]
JUDGED = tuple(
    name
    for place, name in enumerate(pair.names())
    if NIGHTLY or place % 3 == 0 or not pair.read(name).category
)
"""The pairs that tests ask for."""
_AT_ONCE = 10
"""Folders that a process reads: 300 MB."""
_NAMES = (*JUDGED, LADDER.name)
_TOGETHER = [_NAMES[first : first + _AT_ONCE] for first in range(0, len(_NAMES), _AT_ONCE)]


@dataclass(frozen=True)
class Recorded:
    """What tests ask of a recorded report; the report itself is too big to keep."""

    profile: Profile
    session: Session
    sources: Mapping[str, str]


@dataclass(frozen=True)
class Examined:
    """A folder's reports by the names of their files; its score where it is a pair."""

    reports: Mapping[str, Recorded]
    score: PairScore | None


def examined(name: str) -> Examined:
    """A folder of recordings by its name."""
    return _examined_together(next((some for some in _TOGETHER if name in some), (name,)))[name]


@cache
def _examined_together(names: tuple[str, ...]) -> Mapping[str, Examined]:
    def write(part: Path) -> None:
        part.mkdir()
        folders = [folder for folder in FOLDERS if folder.name in names]
        some = dict(zip([folder.name for folder in folders], apart(_examine, folders), strict=True))
        (part / "examined.pickle").write_bytes(pickle.dumps(some))

    folder = written_once(scratch() / f"examined_{names[0]}", write)
    some: dict[str, Examined] = pickle.loads((folder / "examined.pickle").read_bytes())
    return some


@cache
def examined_applications() -> Applications:
    """The recorded applications, judged."""

    def write(part: Path) -> None:
        part.mkdir()
        judged, failures = judge_applications([H200 / "apps"], Advice(blamed=0))
        assert not failures
        (part / "judged.pickle").write_bytes(pickle.dumps(judged))

    folder = written_once(scratch() / "judged_applications", write)
    applications: Applications = pickle.loads((folder / "judged.pickle").read_bytes())
    return applications


def _examine(folder: Path) -> Examined:
    reports: dict[str, Recorded] = {}

    def examine(path: Path) -> tuple[ReportSummary, Checklist]:
        report = profkit.load(path)
        checklist = report.checklist(blamed=0)
        sources = _sources_of(report)
        profile = Profile(report.summary, checklist.items)
        reports[path.name] = Recorded(profile, report.session, sources)
        return report.summary, checklist

    is_pair = folder != LADDER
    score = judge(read_pair(folder, definitions_of(PAIRS)), examine) if is_pair else None
    for path in sorted(folder.glob("*.ncu-rep*")):
        if path.name not in reports:
            examine(path)
    return Examined(reports, score)


def _sources_of(report: profkit.Report) -> Mapping[str, str]:
    """The source files that it has; of others' the paths alone."""
    files: dict[str, str] = {}
    for action in report._raw.actions:
        files |= dict(action.source_files())
    return {path: text if "/kernels/" in path else "" for path, text in files.items()}
