"""The server driven by the official client over stdio."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import ClientSession, StdioServerParameters, stdio_client

from profkit.agents.access import Access
from profkit.agents.jobs import Jobs
from profkit.agents.server import Tools
from tests.conftest import ROOT, TRACKED, pair_report
from tests.recording.test_profile import TARGET, plan

TOOLS = {"doctor", "profile", "analyze", "explain", "diff", "time", "source", "next"}
LARGEST = 8_000  # bytes of an answer


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("agent")
    for side in ("before", "after"):
        (folder / side).mkdir()
        shutil.copy2(
            pair_report("accurate_transcendentals", side), folder / side / f"{side}.ncu-rep"
        )
    shutil.copy2(ROOT / "reports" / "h200" / "known.ncu-repz", folder)
    (folder / "target.py").write_text("raise SystemExit('no target')\n", encoding="utf-8")
    return folder


def session(
    folder: Path,
    talk: Callable[[ClientSession], Awaitable[Any]],
    *options: str,
    environment: Mapping[str, str] | None = None,
) -> Any:
    """What a client gets from a server on this folder."""
    words = ["-m", "profkit", "mcp", "--root", str(folder), *options]

    async def connected() -> Any:
        parameters = StdioServerParameters(
            command=sys.executable, args=words, cwd=str(ROOT), env=dict(environment or {}) or None
        )
        async with stdio_client(parameters) as streams, ClientSession(*streams) as client:
            await client.initialize()
            return await talk(client)

    return anyio.run(connected)


def calls(folder: Path, *requests: tuple[str, dict[str, Any]]) -> list[str]:
    """The texts that calls of tools answer."""

    async def talk(client: ClientSession) -> list[str]:
        return [await called(client, name, **arguments) for name, arguments in requests]

    answers: list[str] = session(folder, talk)
    return answers


async def called(client: ClientSession, tool: str, **arguments: Any) -> str:
    """The text that a tool answers."""
    result: Any = await client.call_tool(tool, arguments)
    text = "".join(part.text for part in result.content)
    assert len(text.encode()) <= LARGEST
    return text


def test_the_tools_are_few_and_their_schemas_short(folder: Path) -> None:
    async def talk(client: ClientSession) -> Any:
        return (await client.list_tools()).tools

    tools = session(folder, talk)
    assert {tool.name for tool in tools} == TOOLS
    schemas = [
        json.dumps({"n": tool.name, "d": tool.description, "s": tool.input_schema})
        for tool in tools
    ]
    assert sum(map(len, schemas)) <= 8_000  # 2,000 tokens


def test_an_agent_finds_the_limit_and_sees_its_prediction_hold(folder: Path) -> None:
    analyzed, explained, proposed, compared, judged = calls(
        folder,
        ("analyze", {"report": "before/before.ncu-rep"}),
        ("explain", {"report": "before/before.ncu-rep"}),
        ("next", {"run": "before"}),
        ("diff", {"before": "before", "after": "after"}),
        ("next", {"run": "before", "after": "after"}),
    )
    assert "Accurate math functions" in analyzed
    assert "instructions_executed falls" in explained
    assert "Next experiment: Accurate math functions" in proposed
    assert "faster" in compared
    assert judged.startswith("HELD: Accurate math functions")


def test_a_profile_names_the_run_that_the_other_tools_take(tmp_path: Path) -> None:
    (tmp_path / "toy.py").write_text(TARGET.format(behavior="good"), encoding="utf-8")
    for name in ("ncu", "nsys"):
        shutil.copy2(ROOT / "tests" / "stand_in" / name, tmp_path / name)

    async def profiled(client: ClientSession, side: str) -> str:
        """The folder of a run with a side's report, as the answer names it."""
        plan(tmp_path, report=str(pair_report("accurate_transcendentals", side)))
        text = await called(client, "profile", target="toy.py", arguments=["--n", "8"])
        while job := re.match(r"job (\d+) runs", text):
            text = await called(client, "profile", job=int(job[1]))
        name, run = text.splitlines()[0].split()
        assert name == "Run"
        return run

    async def talk(client: ClientSession) -> tuple[str, ...]:
        before = await profiled(client, "before")
        return (
            before,
            await called(client, "analyze", report=before),
            await called(client, "next", run=before),
            after := await profiled(client, "after"),
            await called(client, "diff", before=before, after=after),
            await called(client, "next", run=before, after=after),
            await called(client, "profile", target="/etc/passwd"),
            await called(client, "analyze", report=before, kernel="--output=stolen.txt"),
            await called(client, "time", targets=["toy.py", "../other.py"]),
        )

    variables = {
        **os.environ, "PROFKIT_NCU": str(tmp_path / "ncu"), "PROFKIT_NSYS": str(tmp_path / "nsys"),
        "PROFKIT_LOCK_DIR": str(tmp_path), "PYTHONPATH": str(ROOT),
    }  # fmt: skip
    before, analyzed, proposed, after, compared, judged, *hostile = session(
        tmp_path, talk, "--allow-run", environment=variables
    )
    assert before != after
    assert all((tmp_path / run / "manifest.json").is_file() for run in (before, after))
    assert "Accurate math functions" in analyzed
    assert "Next experiment: Accurate math functions" in proposed
    assert "faster" in compared
    assert judged.startswith("HELD: Accurate math functions")
    assert all(answer.startswith("refused: ") for answer in hostile)
    assert not list(tmp_path.rglob("stolen.txt"))


def test_long_text_comes_in_pages_that_are_the_whole_text(folder: Path) -> None:
    async def talk(client: ClientSession) -> list[str]:
        first = await called(client, "explain", report="known.ncu-repz", top=12)
        head = re.search(r"page 1 of (\d+), others with job=1$", first.rstrip())
        assert head
        rest = [
            await called(client, "explain", job=1, page=page) for page in range(2, int(head[1]) + 1)
        ]
        return [first, *rest, await called(client, "explain", job=1, page=99)]

    *parts, beyond = session(folder, talk)
    assert len(parts) > 1
    assert "no page 99" in beyond
    report = folder / "known.ncu-repz"
    whole = subprocess.run(
        [sys.executable, "-m", "profkit", "checklist", str(report), "--top=12"],
        env={**os.environ, "COLUMNS": "100"}, cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "".join(part.rpartition("page ")[0] for part in parts) == whole


@pytest.mark.parametrize(
    ("tool", "arguments", "reason"),
    [
        ("analyze", {"report": "../../../etc/passwd"}, "outside the roots"),
        ("analyze", {"report": "/etc/passwd"}, "outside the roots"),
        ("analyze", {"report": "link/passwd"}, "outside the roots"),
        ("analyze", {"report": "known.ncu-repz", "kernel": "--output=/tmp/x"}, "is not a value"),
        ("diff", {"before": "before", "after": "/"}, "outside the roots"),
        ("profile", {"target": "target.py"}, "may not be run"),
        ("time", {"targets": ["target.py"]}, "may not be run"),
        ("profile", {"job": 77}, "no job 77"),
    ],
)  # fmt: skip
def test_what_an_agent_may_not_do_is_refused(
    folder: Path, tool: str, arguments: dict[str, Any], reason: str
) -> None:
    link = folder / "link"
    if not link.exists():
        link.symlink_to("/etc")
    tools = Tools(Access((folder.resolve(),)), Jobs(folder), 0.0)
    answer = anyio.run(partial(getattr(tools, tool), **arguments))
    assert answer.startswith("refused: ")
    assert reason in answer


def test_a_long_verb_is_a_job_that_is_waited_for(folder: Path) -> None:
    jobs = Jobs(folder)
    access = Access((folder.resolve(),), run=True)
    started = anyio.run(Tools(access, jobs, 0.0).profile, "target.py")
    assert started.startswith("job 1 runs; call again with job=1")
    ended = anyio.run(partial(Tools(access, jobs, 60.0).profile, job=1))
    assert "profkit: " in ended  # why it failed
    assert jobs.job(1).status != 0
    jobs.end()
    assert "no job 1" in anyio.run(partial(Tools(access, jobs, 0.0).profile, job=1))


def test_any_verb_that_takes_long_is_waited_for_by_its_number(folder: Path) -> None:
    jobs, access = Jobs(folder), Access((folder.resolve(),))
    report = "before/before.ncu-rep"
    assert "job=1" in anyio.run(partial(Tools(access, jobs, 0.0).analyze, report))
    assert "Accurate math functions" in anyio.run(partial(Tools(access, jobs, 60.0).analyze, job=1))
    assert "no job 2" in anyio.run(partial(Tools(access, jobs, 0.0).analyze, job=2))
    jobs.end()


def test_a_run_without_counters_is_analyzed(folder: Path) -> None:
    (folder / "blind").mkdir(exist_ok=True)
    (timeline,) = TRACKED.glob("sdpa_s512/*/timeline.sqlite")
    shutil.copy2(timeline, folder / "blind")
    refused, analyzed = calls(
        folder,
        ("analyze", {"report": "blind"}),
        ("analyze", {"report": "blind", "without_counters": True}),
    )
    assert "--without-counters" in refused
    assert "fmha_cutlassF" in analyzed


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """A target that writes its process's number, and never ends."""
    (tmp_path / "endless.py").write_text(
        "import os, time\nfrom pathlib import Path\n"
        "Path(__file__).with_suffix('.part').write_text(str(os.getpid()))\n"
        "Path(__file__).with_suffix('.part').rename(Path(__file__).with_suffix('.pid'))\n"
        "time.sleep(600)\n",
        encoding="utf-8",
    )
    return tmp_path / "endless.pid"


async def started(number: Path) -> int:
    """The process of the endless target."""
    while not number.exists():
        await anyio.sleep(0.02)
    return int(number.read_text())


def test_a_cancelled_call_ends_its_program(endless: Path) -> None:
    async def talk(client: ClientSession) -> bool:
        async with anyio.create_task_group() as group:
            group.start_soon(partial(client.call_tool, "time", {"targets": ["endless.py"]}))
            process = await started(endless)
            group.cancel_scope.cancel()
        return await ended(process)

    assert session(endless.parent, talk, "--allow-run")


def test_a_job_is_stopped_by_its_number(endless: Path) -> None:
    jobs = Jobs(endless.parent)
    tools = Tools(Access((endless.parent.resolve(),), run=True), jobs, 0.0)

    async def talk() -> bool:
        assert "job=1" in await tools.time(["endless.py"])
        process = await started(endless)
        assert "interrupted" in await tools.time(job=1, stop=True)
        return await ended(process)

    assert anyio.run(talk)
    assert "without a job" in anyio.run(partial(tools.profile, "endless.py", stop=True))
    jobs.end()


async def ended(process: int) -> bool:
    """Whether a process ends within seconds."""
    with anyio.move_on_after(10):
        while Path(f"/proc/{process}").exists():
            await anyio.sleep(0.02)
        return True
    return False
