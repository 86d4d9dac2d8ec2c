"""The recorded pairs and the ladder, read and judged once in a run of the tests."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import profkit
from kernels import pair
from kernels.recorded import Profile
from profkit.report.session import Session
from profkit.report.summary import ReportSummary
from profkit.rules.checklist import Checklist
from profkit.score.score import PairScore, definitions_of, judge, read_pair
from tests.conftest import H200, TRACKED, apart, pair_folder, scratch, written_once

PAIRS = TRACKED / "pairs"
LADDER = H200 / "ladder"
FOLDERS = [*map(pair_folder, pair.names()), LADDER]
_AT_ONCE = 10
"""Folders that a process reads: 300 MB."""


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
    place = [folder.name for folder in FOLDERS].index(name)
    first = place // _AT_ONCE * _AT_ONCE
    return _examined_from(first)[place - first]


@cache
def _examined_from(first: int) -> list[Examined]:
    def write(part: Path) -> None:
        part.mkdir()
        some = apart(_examine, FOLDERS[first : first + _AT_ONCE])
        (part / "examined.pickle").write_bytes(pickle.dumps(some))

    folder = written_once(scratch() / f"examined_{first}", write)
    some: list[Examined] = pickle.loads((folder / "examined.pickle").read_bytes())
    return some


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
