"""Reports are read and summarized once a process, whatever verbs and tests ask for them, and what
their samples say and who is to blame is looked up once.

The vendor's reader frees nothing of a report that it has read, about 25 MB a launch: a test that
runs three verbs on one file would hold it three times, and so would a copy in another folder.
What it says of an instruction takes a quarter of the time of an analysis, and is kept for the
processes of other files of tests.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import pickle
from collections.abc import Callable, Hashable, Iterator
from functools import cache, wraps
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from profkit.analysis import report
from profkit.analysis.report import Report
from profkit.report import counter_free
from profkit.report.action import Action, Program, has_reader
from profkit.report.framing import check
from profkit.report.quantities import Quantities, evaluate
from profkit.report.reader import RawReport, Request, read
from profkit.report.summary import LaunchSummary, ReportSummary, summarize
from profkit.rules.samples import SAMPLED_FROM
from tests import forks


@pytest.fixture(autouse=True, scope="session")
def reports_are_read_once() -> Iterator[None]:
    once = _Once()
    with pytest.MonkeyPatch.context() as patch:
        for function in (once.read, once.evaluate, once.summarize):
            patch.setattr(report, function.__name__, function)
        patch.setattr(counter_free, "read", once.read)
        for name in ("_read_samples", "_blame"):
            patch.setattr(Report, name, _once_a_launch(getattr(Report, name)))
        machine_code = _MachineCode()
        patch.setattr(Program, "answer", machine_code.answering(Program.answer))
        forks.patches.append(patch)
        yield
        machine_code.save()


class _Once:
    """What reports are read with, its results kept by the file's content."""

    def __init__(self) -> None:
        self._read, self._evaluate, self._summarize = read, evaluate, summarize
        self._raws: dict[Hashable, RawReport] = {}
        self._actions: dict[bytes, tuple[Action, ...]] = {}
        self._quantities: dict[Hashable, Quantities] = {}
        self._summaries: dict[int, ReportSummary] = {}

    def read(
        self, path: Path, request: Request, progress: Callable[[int, int], None] | None = None
    ) -> RawReport:
        if not path.is_file():
            return self._read(path, request, progress)
        content = hashlib.sha256(path.read_bytes()).digest()
        key = content, repr(request)
        if key not in self._raws:
            raw = self._read(path, request, progress)
            actions = self._actions.setdefault(content, raw.actions)  # they keep machine code
            self._raws[key] = dataclasses.replace(raw, actions=actions)
            return self._raws[key]
        framing = check(path)  # against the manifest beside it, too
        return dataclasses.replace(self._raws[key], path=path, framing=framing)

    def evaluate(self, raw: RawReport, *, check_half_from: float = 0.0) -> Quantities:
        key = (tuple(map(id, raw.actions)), check_half_from)  # kept, so no id comes again
        if key not in self._quantities:
            self._quantities[key] = self._evaluate(raw, check_half_from=check_half_from)
        return self._quantities[key]

    def summarize(self, raw: RawReport, quantities: Quantities) -> ReportSummary:
        if id(quantities) not in self._summaries:
            self._summaries[id(quantities)] = self._summarize(raw, quantities)
        return structs.replace(self._summaries[id(quantities)], path=str(raw.path))


class _MachineCode:
    """Instructions as text, of reports by their content."""

    def __init__(self) -> None:
        self._known: dict[Path, dict[Hashable, str | None]] = {}
        self._new: set[Path] = set()

    def answering(self, ask: Callable[..., Any]) -> Callable[..., Any]:
        """`Program.answer`, which asks for what isn't known yet."""

        def answer(program: Program, question: str, place: int, address: int) -> Any:
            key = question, place, address
            report = program._file.path
            is_asked = question == "sass_by_pc" and key not in program._answers
            if not (is_asked and has_reader() and report.is_file()):
                return ask(program, question, place, address)
            code, file = tuple(program._launches)[place], self._file_of(report)
            known, name = self._known[file], (program._kind, program._sources, code, address)
            if name in known:
                program._answers[key] = known[name]
            else:
                known[name] = ask(program, question, place, address)
                self._new.add(file)
            return known[name]

        return answer

    def _file_of(self, report: Path) -> Path:
        """Where what is known of a report is kept, read for the first time."""
        status = report.stat()
        file = _place_of(report, status.st_mtime_ns, status.st_size)
        if file not in self._known:
            self._known[file] = pickle.loads(file.read_bytes()) if file.exists() else {}
        return file

    def save(self) -> None:
        """Keep it for other processes."""
        for file in self._new:
            file.parent.mkdir(exist_ok=True)
            part = file.with_suffix(f".{os.getpid()}")
            part.write_bytes(pickle.dumps(self._known[file]))
            part.rename(file)


@cache
def _place_of(report: Path, *_: int) -> Path:
    from tests.conftest import scratch

    return scratch() / "machine_code" / hashlib.sha256(report.read_bytes()).hexdigest()


def _once_a_launch(look_up: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a report that looks up what depends on the launches, their share and their
    machine code alone."""
    known: dict[Hashable, Any] = {}

    @wraps(look_up)
    def once(own: Report, launch: LaunchSummary, *asked: Any, **more: Any) -> Any:
        shares = [
            group.share for group in own.summary.groups if group.typical.index == launch.index
        ]
        actions = tuple(map(id, own._raw.actions))  # kept, so no id comes again
        counted = launch.get(SAMPLED_FROM) > 0
        wanted = *map(tuple, asked), *more.items()
        key = (actions, launch.index, *shares, counted, has_reader(), wanted)
        if key not in known:
            known[key] = look_up(own, launch, *asked, **more)
        return known[key]

    return once
