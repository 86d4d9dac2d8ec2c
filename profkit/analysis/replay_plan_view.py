"""A replay plan: terminal, Markdown and `profkit.plan/1` JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from rich.console import Group, RenderableType
from rich.text import Text

from profkit.analysis.replay_plan import ReplayPlan
from profkit.core.projection import Projection, project
from profkit.core.typed_file import Amount, Count, File, encode
from profkit.ui.markdown import escape
from profkit.ui.markdown import table_of as markdown_table
from profkit.ui.terminal import facts, note, table_of
from profkit.ui.text import literal, number, plural
from profkit.ui.view import Grid, Panel, Row

_SHARED = "Passes added: with the part less without it. They are not additive: parts share passes."


class PartRow(Projection, frozen=True, kw_only=True):
    """A section, or the metrics of a group of the catalog: passes alone, and those that the set
    takes with it less those without it."""

    name: str
    alone: Count
    marginal: Count


class ReplayPlanFile(File, frozen=True, kw_only=True, tag="profkit.plan/1"):
    """Passes of a launch and seconds of all launches, and names that the chip doesn't have. The
    `source` of the count is NVIDIA's PerfWorks library, or else a table, and `problem` says why."""

    gpu: str
    chip: str
    compute_capability: str
    collected: str
    launches: Count
    duration_s: Amount
    memory_bytes: Amount
    passes: Count
    seconds: Amount
    seconds_low: Amount
    seconds_high: Amount
    parts: tuple[PartRow, ...]
    unknown: tuple[str, ...]
    source: Literal["library", "table"]
    problem: str | None


def plan_json(plan: ReplayPlan) -> str:
    """The plan as a file."""
    return encode(
        ReplayPlanFile(
            gpu=plan.subject.name,
            chip=plan.subject.chip,
            compute_capability=plan.subject.capability,
            collected=plan.collected,
            launches=plan.workload.launches,
            duration_s=plan.workload.duration,
            memory_bytes=plan.workload.memory,
            passes=plan.passes,
            seconds=plan.seconds,
            seconds_low=plan.seconds_low,
            seconds_high=plan.seconds_high,
            parts=tuple(project(part, PartRow) for part in plan.parts),
            unknown=plan.unknown,
            source=plan.source,
            problem=plan.problem or None,
        )
    )


def plan_view(plan: ReplayPlan) -> RenderableType:
    """The plan for a terminal."""
    parts: list[RenderableType] = [
        Text(_title(plan), "bold"),
        facts(Panel("", tuple(Row(*pair) for pair in _facts(plan)))),
        table_of(_costs(plan), numbers=True),
        Text(_SHARED, "dim"),
    ]
    if notes := tuple(_notes(plan)):
        parts += [Text(), *map(note, notes)]
    return Group(*parts)


def plan_markdown(plan: ReplayPlan) -> str:
    """The plan as Markdown."""
    lines = [f"# {escape(_title(plan))}", ""]
    lines += [f"- {label}: {escape(value)}" for label, value in _facts(plan)]
    lines += ["", *markdown_table(_costs(plan)), "", escape(_SHARED), ""]
    lines += [f"> {escape(text)}\n" for text in _notes(plan)]
    return "\n".join(lines).rstrip() + "\n"


def _title(plan: ReplayPlan) -> str:
    subject = plan.subject
    return literal(
        f"{plan.collected} on {subject.name} ({subject.chip}, CC {subject.capability}):"
        f" {plural(plan.passes, 'replay pass')}"
    )


def _facts(plan: ReplayPlan) -> Iterator[tuple[str, str]]:
    work = plan.workload
    low, likely, high = (
        number(value, "s", 2) for value in (plan.seconds_low, plan.seconds, plan.seconds_high)
    )
    yield "Time in ncu", f"{likely} ({low} to {high}), without the program's start"
    memory = f", {number(work.memory, 'B')} saved and restored" if work.memory else ""
    yield "Launches", f"{work.launches} of {number(work.duration, 's')}{memory}"
    source = "NVIDIA's PerfWorks library" if plan.source == "library" else "estimated from a table"
    yield "Counted by", source


def _costs(plan: ReplayPlan) -> Grid:
    rows = sorted(plan.parts, key=lambda part: -part.marginal)
    return Grid(
        "Cost",
        ("Part", "Passes added", "Passes alone"),
        tuple((part.name, str(part.marginal), str(part.alone)) for part in rows),
    )


def _notes(plan: ReplayPlan) -> Iterator[str]:
    if plan.unknown:
        names = ", ".join(literal(name) for name in plan.unknown)
        yield f"{plural(len(plan.unknown), 'name')} unknown on {plan.subject.chip}: {names}"
    if plan.problem:
        yield f"The library was not used: {literal(plan.problem)}"
