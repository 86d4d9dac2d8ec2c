"""An application's answer for a terminal, as Markdown and as `profkit.answer/1` JSON."""

from __future__ import annotations

import math
import shlex

from msgspec import UNSET
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from profkit.application.answer import WORTH, Answer, AnswerRow
from profkit.application.parts import COPIES, GAPS, KERNELS
from profkit.core.typed_file import Count, Maybe, Model, Output, Real, encode
from profkit.core.version import __version__
from profkit.report.names import own_names, told_apart
from profkit.rules.finding import Estimate
from profkit.ui.markdown import code, escape
from profkit.ui.markdown import table_of as markdown_table
from profkit.ui.terminal import table_of
from profkit.ui.text import extent, factor, factor_range, literal, number, percent, plural
from profkit.ui.view import Grid

_COLUMNS = ("Part of the step", "Time", "Finding", "Kernel", "Step")
_NOTE = (
    "Kernel: its estimated speedup from fixing the finding. Step: the most that this gives the "
    "program, by replay of the recorded step; what runs behind other work gives nothing."
)
_NAME = 30  # characters, chosen: the table then fits 100 columns
NOTHING = f"No fix is known that gives {WORTH - 1:.0%} or more of the step."
"""Of a plan without items."""
_WHERE = {GAPS: "GPU idle", COPIES: "copies"}


class StepFacts(Model, frozen=True, kw_only=True):
    """The steps: how they were found, seconds of the median one, its middle half, warm-up left
    out."""

    basis: str
    count: Count
    seconds: float
    low: float
    high: float
    left_out: str


class RowFacts(Model, frozen=True, kw_only=True):
    """A part of the step; `speedup` is of its kernel, `ceiling` of the step."""

    group: str
    name: str
    kind: str
    seconds: float
    share: float
    hidden: float
    finding: str
    speedup: Maybe[tuple[float, float, float]] = UNSET
    ceiling: Real
    note: str
    grid: tuple[int, ...]


class PlanFacts(Model, frozen=True, kw_only=True):
    """A fix of the plan, with its likely and its highest speedup of the step."""

    part: str
    finding: str
    likely: float
    ceiling: float
    actions: tuple[str, ...]


class AnswerFile(Output, frozen=True, kw_only=True, tag="profkit.answer/1"):
    """An application's step: its parts, which sum to its time, and a plan in order; `together` is
    what all of the plan gives at most."""

    profkit: str
    name: str
    gpus: tuple[str, ...]
    ranks: Count
    steps: StepFacts
    rows: tuple[RowFacts, ...]
    plan: tuple[PlanFacts, ...]
    together: Real


def answer_json(answer: Answer) -> str:
    """The answer as JSON."""
    steps = answer.application.parts.steps
    file = AnswerFile(
        profkit=__version__,
        name=answer.application.name,
        gpus=tuple(gpu.name for gpu in answer.application.events.gpus),
        ranks=len(answer.ranks.steps),
        steps=StepFacts(
            basis=str(steps.basis),
            count=len(answer.application.parts.wall),
            seconds=answer.step,
            low=answer.spread[0],
            high=answer.spread[1],
            left_out=_left_out(answer),
        ),
        rows=tuple(
            RowFacts(
                group=row.group,
                name=row.name,
                kind=row.kind,
                seconds=row.seconds,
                share=row.share,
                hidden=row.hidden,
                finding=row.finding,
                speedup=_ends(row.kernel_estimate) if row.kernel_estimate else None,
                ceiling=row.ceiling,
                note=row.note,
                grid=row.grid,
            )
            for row in answer.rows
        ),
        plan=tuple(
            PlanFacts(
                part=item.part,
                finding=item.finding,
                likely=item.likely,
                ceiling=item.ceiling,
                actions=item.actions,
            )
            for item in answer.plan
        ),
        together=answer.together,
    )
    return encode(file, dense=False)


def answer_view(answer: Answer, folder: str = "") -> RenderableType:
    """The answer for a terminal; `folder` is the run's, for the next command."""
    lines: list[RenderableType] = [
        Text(title(answer), "bold"),
        *(Text(line) for line in facts(answer)),
        table_of(grid(answer)),
        *(Text(line, "dim") for line in reasons(answer)),
        Text(),
        Text("Plan", "bold"),
    ]
    plan = Table.grid(padding=(0, 1))
    for place, item in enumerate(answer.plan, 1):
        about = f": {kernel_name(answer, item.part)}" if item.part else ""
        fix = Text(f"{gain(item.likely, item.ceiling)}  {item.finding}{about}")
        plan.add_row(f"{place}.", fix)
        if item.actions:
            plan.add_row("", Text(item.actions[0], "dim"))
    lines += [plan] if answer.plan else []
    if not answer.plan:
        lines.append(Text(NOTHING))
    elif len(answer.plan) > 1 and not math.isnan(answer.together):
        lines.append(Text(f"All together at most {factor(answer.together)}", "dim"))
    if folder:
        lines += [Text(), *(Text(f"Next  {command}") for command in next_commands(answer, folder))]
    return Group(*lines)


def answer_markdown(answer: Answer) -> str:
    """The answer as Markdown."""
    lines = [f"# {escape(title(answer))}", ""]
    lines += [f"{escape(line)}  " for line in facts(answer)]
    lines += ["", *markdown_table(grid(answer)), ""]
    lines += [f"{escape(line)}  " for line in reasons(answer)]
    lines += ["", "## Plan", ""]
    for place, item in enumerate(answer.plan, 1):
        about = f": {code(kernel_name(answer, item.part))}" if item.part else ""
        factors = gain(item.likely, item.ceiling)
        lines.append(f"{place}. **{factors}** {escape(item.finding)}{about}")
        lines += [f"   - {escape(action)}" for action in item.actions]
    if not answer.plan:
        lines.append(NOTHING)
    return "\n".join(lines) + "\n"


def next_commands(answer: Answer, folder: str) -> list[str]:
    """What to run next, for the first fix of the plan."""
    place = shlex.quote(folder)
    first = answer.plan[0] if answer.plan else None
    if first and first.part:
        return [f"profkit checklist {place}", f"profkit timeline {place}"]
    return [f"profkit timeline {place}", f"profkit report {place}"]


def title(answer: Answer) -> str:
    """The program and the GPUs that it ran on."""
    gpus = [literal(gpu.name) for gpu in answer.application.events.gpus]
    names = ", ".join(dict.fromkeys(name for name in gpus if name)) or "GPU"
    several = f"{len(gpus)} x " if len(gpus) > 1 else ""
    return f"{literal(answer.application.name)} on {several}{names}"


def facts(answer: Answer) -> list[str]:
    """The step's time, how it was found, and what was left out."""
    steps, count = answer.application.parts.steps, len(answer.application.parts.wall)
    low, high = (number(each, "s") for each in answer.spread)
    lines = [
        f"Step {number(answer.step, 's')} (median of {plural(count, 'step')}; middle half {low} to "
        f"{high}), by {literal(str(steps.basis))}"
    ]
    ranks = len(answer.ranks.steps)
    if ranks > 1:
        lines.append(f"{ranks} ranks; times are of the rank on GPU {steps.device}")
    lines += answer.ranks.notes
    if left_out := _left_out(answer):
        lines.append(f"Left out: {left_out}")
    return lines


def _left_out(answer: Answer) -> str:
    steps = answer.application.parts.steps
    if not steps.before:
        return ""
    why = f" ({literal(steps.why)})" if steps.why else ""
    unit = {"launches": "launch", "steps": "step"}.get(steps.unit, steps.unit)
    return f"the first {plural(steps.before, unit)}{why}"


def grid(answer: Answer) -> Grid:
    """The table of the step's parts, most time first."""
    rows = tuple(
        (
            _part(answer, row),
            f"{number(row.seconds, 's', 3)}, {percent(row.share)}",
            _finding(row),
            _estimate(row.kernel_estimate),
            "" if math.isnan(row.ceiling) else factor(row.ceiling),
        )
        for row in answer.rows
    )
    return Grid("What a step is made of", _COLUMNS, rows, _NOTE)


def _part(answer: Answer, row: AnswerRow) -> str:
    if row.group == KERNELS:
        name = kernel_name(answer, row.name)
        kernels = [pick.kernel for pick in answer.application.picks]
        if kernels.count(row.name) > 1:
            name += f", grid {extent(row.grid)}"
        return f"{row.kind}: {name}" if row.kind and row.kind != name else name
    where = _WHERE.get(row.group, row.group)
    name = literal(row.name)
    return name if where in name else f"{where}: {name}"


def kernel_name(answer: Answer, name: str) -> str:
    """A kernel's name, short but unlike those of the other picked ones."""
    kernels = {pick.kernel for pick in answer.application.picks}
    own = own_names(kernels)
    short = told_apart({literal(own[each]) for each in kernels}, _NAME)
    return short.get(literal(own.get(name, name)), literal(name))


def _finding(row: AnswerRow) -> str:
    hidden = f"{percent(row.hidden)} more behind other work" if row.hidden > 0 else ""
    note = row.note.partition(": ")[0]  # the reason stands once below
    return "; ".join(literal(text) for text in (row.finding, hidden, note) if text)


def reasons(answer: Answer) -> list[str]:
    """Why something is not known, each reason once, with the parts that it is about."""
    parts: dict[str, list[str]] = {}
    for row in answer.rows:
        if row.note:
            name = kernel_name(answer, row.name) if row.group == KERNELS else row.name
            parts.setdefault(row.note, []).append(literal(name))
    return [f"{literal(note)} ({', '.join(dict.fromkeys(names))})" for note, names in parts.items()]


def _estimate(estimate: Estimate | None) -> str:
    return factor_range(*_ends(estimate)) if estimate else ""


def _ends(estimate: Estimate) -> tuple[float, float, float]:
    return estimate.likely, estimate.low, estimate.high


def gain(likely: float, ceiling: float) -> str:
    """The step's speedup by a fix in words."""
    return f"{factor(likely)}, at most {factor(ceiling)}"
