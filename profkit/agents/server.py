"""The tools: each is a verb, its text as on a terminal in pages of at most 8,000 bytes.

A call that takes longer than a few seconds answers with the number of its job and its progress;
calling the tool again with that number waits on, for a `page` of what a job wrote too. A call that
is cancelled ends its job.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profkit.agents.access import Access, word
from profkit.agents.jobs import Job, Jobs
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
_POLL = 0.05  # s between looks at a job, chosen: no call feels it
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

    def all(self) -> Sequence[Callable[..., Awaitable[str]]]:
        """The tools in the order in which they are used."""
        first = (self.doctor, self.profile, self.analyze, self.explain)
        return (*first, self.source, self.next, self.diff, self.time)

    async def doctor(self, job: int = 0) -> str:
        """What this machine can profile, and the remedy for each thing it can't."""
        return await self._run(lambda: ["doctor"], job)

    async def profile(
        self,
        target: str = "",
        arguments: list[str] | None = None,
        job: int = 0,
        stop: bool = False,
        page: int = 1,
    ) -> str:
        """Record a target script with ncu; the first line names the run that other tools take.
        job: a number to wait on, of any tool; stop ends it."""

        def words() -> list[str]:
            self.access.check_run()
            return ["profile", self.access.path(target), "--", *(arguments or [])]

        return await self._run(words, job, page, stop=stop)

    async def time(
        self,
        targets: list[str] | None = None,
        compare: str = "",
        job: int = 0,
        stop: bool = False,
        page: int = 1,
    ) -> str:
        """Time targets' variants; compare="a,b" judges whether b is faster than a."""

        def words() -> list[str]:
            self.access.check_run()
            paths = [self.access.path(target) for target in targets or []]
            return ["time", *paths, *_options(compare=compare)]

        return await self._run(words, job, page, stop=stop)

    async def analyze(
        self,
        report: str = "",
        kernel: str = "",
        without_counters: bool = False,
        job: int = 0,
        page: int = 1,
    ) -> str:
        """Kernels by time, what limits each, and what fixing it would give. without_counters: of a
        run where ncu's were refused."""
        words = ["analyze", *(["--without-counters"] if without_counters else [])]
        return await self._read(words, [report], job, page, kernel)

    async def explain(
        self, report: str = "", kernel: str = "", top: int = 1, job: int = 0, page: int = 1
    ) -> str:
        """The first findings: evidence, source lines, actions, and how to verify the fix."""
        return await self._read(["checklist", f"--top={top}"], [report], job, page, kernel)

    async def source(
        self, report: str = "", kernel: str = "", sass: bool = False, job: int = 0, page: int = 1
    ) -> str:
        """The hottest source lines, or SASS instructions, of a kernel."""
        words = ["source", *(["--sass"] if sass else [])]
        return await self._read(words, [report], job, page, kernel)

    async def next(self, run: str = "", after: str = "", job: int = 0, page: int = 1) -> str:
        """The experiment that tells most now; with after: whether the last prediction held."""
        return await self._read(["next"], [run, after] if after else [run], job, page)

    async def diff(self, before: str = "", after: str = "", job: int = 0, page: int = 1) -> str:
        """Whether a change made kernels faster, why, and what limits them now."""
        return await self._read(["diff"], [before, after], job, page)

    async def _read(
        self, verb: Sequence[str], files: Sequence[str], job: int, page: int, kernel: str = ""
    ) -> str:
        """The result of a verb that reads files."""
        return await self._run(
            lambda: [*verb, *map(self.access.path, files), *_options(kernel=kernel)], job, page
        )

    async def _run(
        self, words: Callable[[], Sequence[str]], job: int = 0, page: int = 1, *, stop: bool = False
    ) -> str:
        """The result of a verb, or of a job on its way; what is refused says why."""
        try:
            if stop and not job:
                raise UsageError("stop without a job", "pass the number that the tool answered")
            number = job or self.jobs.start(words())
            running = self.jobs.job(number)
            if stop:
                await _stopped(running)
            await self._wait(running)
            return _answer(number, running, page)
        except ProfkitError as error:
            return f"refused: {error}"

    async def _wait(self, job: Job) -> None:
        """Wait for its end, but not longer than a call may take; a cancelled call ends it."""
        import anyio

        try:
            with anyio.move_on_after(self.wait):
                while job.status is None:
                    await anyio.sleep(_POLL)
        except anyio.get_cancelled_exc_class():
            await _stopped(job)
            raise


async def _stopped(job: Job) -> None:
    """End a job, in a cancelled call too."""
    import anyio

    with anyio.CancelScope(shield=True):
        await anyio.to_thread.run_sync(job.stop)


def _answer(number: int, job: Job, page: int) -> str:
    """A page of what a job wrote, or how far it is."""
    if job.status is None:
        return f"job {number} runs; call again with job={number}\n{job.progress}"
    parts = pages(_run_first(job.output)) or [f"exit code {job.status}, no output\n"]
    if not 1 <= page <= len(parts):
        raise UsageError(f"no page {page}", f"there are {len(parts)}")
    more = f"page {page} of {len(parts)}, others with job={number}\n" if len(parts) > 1 else ""
    return parts[page - 1] + more


def _run_first(text: str) -> str:
    """A text that names a new run, with that line first."""
    line = _NEW_RUN.search(text)
    return f"{line[0]}\n{text}" if line else text


def _options(**values: str) -> list[str]:
    return [f"--{name}={word(value)}" for name, value in values.items() if value]
