"""The server driven by the official client over stdio."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import ClientSession, StdioServerParameters, stdio_client

from profkit.agents.access import Access
from profkit.agents.jobs import Jobs
from profkit.agents.server import Tools
from tests.conftest import ROOT, pair_report

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


def session(folder: Path, talk: Callable[[ClientSession], Awaitable[Any]]) -> Any:
    """What a client gets from a server on this folder."""
    words = ["-m", "profkit", "mcp", "--root", str(folder)]

    async def connected() -> Any:
        parameters = StdioServerParameters(command=sys.executable, args=words, cwd=str(ROOT))
        async with stdio_client(parameters) as streams, ClientSession(*streams) as client:
            await client.initialize()
            return await talk(client)

    return anyio.run(connected)


def calls(folder: Path, *requests: tuple[str, dict[str, Any]]) -> list[str]:
    """The texts that calls of tools answer."""

    async def talk(client: ClientSession) -> list[str]:
        texts = []
        for name, arguments in requests:
            result: Any = await client.call_tool(name, arguments)
            texts.append("".join(part.text for part in result.content))
        return texts

    answers: list[str] = session(folder, talk)
    assert all(len(text.encode()) <= LARGEST for text in answers)
    return answers


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


def test_long_text_comes_in_pages(folder: Path) -> None:
    first, last, beyond = calls(
        folder,
        ("explain", {"report": "known.ncu-repz", "top": 12}),
        ("explain", {"report": "known.ncu-repz", "top": 12, "page": 2}),
        ("explain", {"report": "known.ncu-repz", "top": 12, "page": 9}),
    )
    assert first != last
    assert "no page 9" in beyond


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
    answer = getattr(tools, tool)(**arguments)
    assert answer.startswith("refused: ")
    assert reason in answer


def test_a_long_verb_is_a_job_that_is_waited_for(folder: Path) -> None:
    jobs = Jobs(folder)
    access = Access((folder.resolve(),), run=True)
    started = Tools(access, jobs, 0.0).profile("target.py")
    assert started.startswith("job 1 runs; call again with job=1")
    ended = Tools(access, jobs, 60.0).profile(job=1)
    assert "profkit: " in ended  # why it failed
    assert jobs.job(1).status != 0
    jobs.end()
    assert "no job 1" in Tools(access, jobs, 0.0).profile(job=1)
