"""The tools: each is a verb with `--format brief`, its text at most 8,000 bytes a page.

A call that takes longer than a few seconds answers with the number of its job and its progress;
calling the tool again with that number waits on.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profkit.agents.access import Access, word
from profkit.agents.jobs import Jobs
from profkit.core.errors import ProfkitError, UsageError
from profkit.core.version import __version__
from profkit.ui.brief import pages

if TYPE_CHECKING:
    from mcp.server import MCPServer

WAIT = 20.0
"""Seconds that a call waits for its result, chosen: clients give up after 30 to 60."""
INSTRUCTIONS = (
    "Measure before you change: analyze a report, call next for the one experiment that tells "
    "most, change that kernel alone, profile again, call next with both runs."
)
_BRIEF = "--format=brief"
_NEW_RUN = re.compile(r"^Run {5}\S.*$", re.MULTILINE)  # as `profkit profile` ends


def server(access: Access, folder: Path, wait: float = WAIT) -> MCPServer[Any]:
    """A server of the tools; `folder` is where verbs run."""
    from mcp.server import MCPServer

    jobs = Jobs(folder)

    @asynccontextmanager
    async def lifespan(_: MCPServer[Any]) -> AsyncIterator[None]:
        try:
            yield
        finally:
            jobs.end()

    made: MCPServer[Any] = MCPServer(
        "profkit",
        instructions=INSTRUCTIONS,
        version=__version__,
        lifespan=lifespan,
        log_level="ERROR",
    )
    for tool in Tools(access, jobs, wait).all():
        made.tool(structured_output=False)(tool)
    return made


@dataclass(frozen=True)
class Tools:
    """The verbs as tools; the docstrings are what an agent reads of them."""

    access: Access
    jobs: Jobs
    wait: float

    def all(self) -> Sequence[Callable[..., str]]:
        """The tools in the order in which they are used."""
        return (
            self.doctor,
            self.profile,
            self.analyze,
            self.explain,
            self.source,
            self.next,
            self.diff,
            self.time,
        )

    def doctor(self) -> str:
        """What this machine can profile, and the remedy for each thing it can't."""
        return self._run(lambda: ["doctor", _BRIEF])

    def profile(
        self, target: str = "", arguments: list[str] | None = None, job: int = 0, page: int = 1
    ) -> str:
        """Record a target script with ncu; the first line names the run that other tools take.
        job: a number to wait on."""

        def words() -> list[str]:
            self.access.check_run()
            return ["profile", self.access.path(target), "--", *(arguments or [])]

        return self._run(words, job, page)

    def time(
        self, targets: list[str] | None = None, compare: str = "", job: int = 0, page: int = 1
    ) -> str:
        """Time targets' variants; compare="a,b" judges whether b is faster than a."""

        def words() -> list[str]:
            self.access.check_run()
            paths = [self.access.path(target) for target in targets or []]
            return ["time", *paths, *_options(compare=compare)]

        return self._run(words, job, page)

    def analyze(self, report: str, kernel: str = "", page: int = 1) -> str:
        """Kernels by time, what limits each, and what fixing it would give."""
        return self._run(
            lambda: ["analyze", self.access.path(report), *_options(kernel=kernel), _BRIEF],
            page=page,
        )

    def explain(self, report: str, kernel: str = "", top: int = 1, page: int = 1) -> str:
        """The first findings: evidence, source lines, actions, and how to verify the fix."""
        return self._run(
            lambda: [
                "checklist",
                self.access.path(report),
                f"--top={top}",
                *_options(kernel=kernel),
                _BRIEF,
            ],
            page=page,
        )

    def source(self, report: str, kernel: str = "", sass: bool = False, page: int = 1) -> str:
        """The hottest source lines, or SASS instructions, of a kernel."""
        instructions = ["--sass"] if sass else []
        return self._run(
            lambda: [
                "source",
                self.access.path(report),
                *instructions,
                *_options(kernel=kernel),
                _BRIEF,
            ],
            page=page,
        )

    def next(self, run: str, after: str = "") -> str:
        """The experiment that tells most now; with after: whether the last prediction held."""
        return self._run(
            lambda: [
                "next",
                self.access.path(run),
                *([self.access.path(after)] if after else []),
                _BRIEF,
            ]
        )

    def diff(self, before: str, after: str, page: int = 1) -> str:
        """Whether a change made kernels faster, why, and what limits them now."""
        return self._run(
            lambda: ["diff", self.access.path(before), self.access.path(after), _BRIEF],
            page=page,
        )

    def _run(self, words: Callable[[], Sequence[str]], job: int = 0, page: int = 1) -> str:
        """The result of a verb, or of a job on its way; what is refused says why."""
        try:
            return self._result(job or self.jobs.start(words()), page)
        except ProfkitError as error:
            return f"refused: {error}"

    def _result(self, number: int, page: int) -> str:
        job = self.jobs.job(number)
        if not job.wait(self.wait):
            return f"job {number} runs; call again with job={number}\n{job.progress}"
        parts = pages(_run_first(job.output)) or [f"exit code {job.status}, no output\n"]
        if not 1 <= page <= len(parts):
            raise UsageError(f"no page {page}", f"there are {len(parts)}")
        more = f"page {page} of {len(parts)}\n" if len(parts) > 1 else ""
        return parts[page - 1] + more


def _run_first(text: str) -> str:
    """A text that names a new run, with that line first."""
    line = _NEW_RUN.search(text)
    return f"{line[0]}\n{text}" if line else text


def _options(**values: str) -> list[str]:
    return [f"--{name}={word(value)}" for name, value in values.items() if value]
