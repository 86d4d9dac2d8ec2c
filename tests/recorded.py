"""Recorded reports, read and summarized once a process.

The vendor's reader frees nothing of a report that it has read, about 25 MB a launch; a test that
runs three verbs on one file would hold it three times. Files that a test writes are read anew.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterator
from pathlib import Path
from typing import Any

import pytest

from profkit.analysis import report
from profkit.report.quantities import Quantities
from profkit.report.reader import RawReport, Request
from profkit.report.summary import ReportSummary

_ROOT = Path(__file__).parent.parent
RECORDINGS = (_ROOT / "reports", _ROOT.parent / "shared" / "corpus")


@pytest.fixture(autouse=True, scope="session")
def recorded_reports_are_read_once() -> Iterator[None]:
    once = _Once()
    with pytest.MonkeyPatch.context() as patch:
        for function in (once.read, once.evaluate, once.summarize):
            patch.setattr(report, function.__name__, function)
        yield


class _Once:
    """What `profkit.analysis.report` calls, with the results for recorded files kept."""

    def __init__(self) -> None:
        self._read, self._evaluate = report.read, report.evaluate
        self._summarize = report.summarize
        self._raws: dict[Path, RawReport] = {}
        self._quantities: dict[Hashable, Quantities] = {}
        self._summaries: dict[int, ReportSummary] = {}

    def read(
        self, path: Path, request: Request, progress: Callable[[int, int], None] | None = None
    ) -> RawReport:
        file = path.resolve()
        if not any(folder in file.parents for folder in RECORDINGS):
            return self._read(path, request, progress)
        if file not in self._raws:
            self._raws[file] = self._read(path, request, progress)
        return dataclasses.replace(self._raws[file], path=path)

    def evaluate(self, raw: RawReport, *, check_half_from: float = 0.0) -> Quantities:
        if not any(raw.session is known.session for known in self._raws.values()):
            return self._evaluate(raw, check_half_from=check_half_from)
        key = (raw.path, tuple(map(id, raw.actions)), check_half_from)
        if key not in self._quantities:
            self._quantities[key] = self._evaluate(raw, check_half_from=check_half_from)
        return self._quantities[key]

    def summarize(self, raw: RawReport, quantities: Quantities, **options: Any) -> ReportSummary:
        if options or not any(quantities is kept for kept in self._quantities.values()):
            return self._summarize(raw, quantities, **options)
        if id(quantities) not in self._summaries:
            self._summaries[id(quantities)] = self._summarize(raw, quantities)
        return self._summaries[id(quantities)]
