"""An application's answer as a document."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator

from profkit.application.answer import WORTH, Answer, AnswerRow, PlanItem
from profkit.application.parts import COPIES, GAPS, KERNELS
from profkit.application.run import ApplicationRun
from profkit.ui import document as doc
from profkit.ui.names import own_names, told_apart
from profkit.ui.text import extent, factor, factor_range, literal, number, percent, plural

_COLUMNS = ("Part of the step", "Time", "Finding", "Kernel", "Step")
_NOTE = (
    "Kernel: its estimated speedup. Step: about what this gives by replay of the recorded step, "
    "which keeps all else; what runs behind other work gives nothing."
)
_NAME = 30  # characters, chosen: the table then fits 100 columns
_KEPT = "the replay keeps the other kernels and the host's work between launches"
_NOTHING = f"No fix is known that gives {WORTH - 1:.0%} or more of the step."
_WHERE = {GAPS: "GPU idle", COPIES: "copies"}


def answer_document(
    answer: Answer, run: ApplicationRun, folder: str = "", actions: int | None = None
) -> doc.Document:
    """The answer, with the first `actions` of each fix; `folder` is the run's, for what to run
    next."""
    rows = tuple(_cells(answer, row) for row in answer.rows)
    blocks: list[doc.Block] = [
        doc.Heading(title := _title(answer), 1),
        doc.Lines(tuple(_facts(answer, run))),
        doc.Table("What a step is made of", _COLUMNS, rows, _NOTE),
        doc.Lines(tuple(map(doc.quiet, _reasons(answer)))),
        doc.Heading("Plan"),
    ]
    fixes = tuple(_fix(answer, item, actions) for item in answer.plan)
    blocks.append(doc.Items(fixes, numbered=True) if fixes else doc.Lines((_NOTHING,)))
    if len(answer.plan) > 1 and not math.isnan(answer.together):
        together = f"All together about {factor(answer.together)}; {_KEPT}"
        blocks.append(doc.Lines((doc.quiet(together),)))
    blocks += [doc.Next(_next_commands(answer, folder))] if folder else []
    return doc.Document(title, tuple(blocks))


def _title(answer: Answer) -> str:
    """The program and the GPUs that it ran on."""
    names = ", ".join(dict.fromkeys(filter(None, map(literal, answer.gpus)))) or "GPU"
    several = f"{len(answer.gpus)} x " if len(answer.gpus) > 1 else ""
    return f"{literal(answer.name)} on {several}{names}"


def _facts(answer: Answer, run: ApplicationRun) -> Iterator[str]:
    """The step's time, how it was found, and what was left out."""
    steps = answer.steps
    yield (
        f"Step {number(steps.seconds, 's')} (median of {plural(steps.count, 'step')}; middle half "
        f"{number(steps.low, 's')} to {number(steps.high, 's')}), by {literal(steps.basis)}"
    )
    if answer.ranks > 1:
        yield f"{answer.ranks} ranks; times are of the rank on GPU {run.parts.steps.device}"
    yield from run.ranks.notes
    if steps.left_out:
        yield f"Left out: {steps.left_out}"


def _cells(answer: Answer, row: AnswerRow) -> tuple[str, ...]:
    """The part, its time, finding, speedup and what this gives the step."""
    hidden = f"{percent(row.hidden)} more behind other work" if row.hidden > 0 else ""
    note = row.note.partition(": ")[0]  # the reason stands once below
    return (
        _part(answer, row),
        f"{number(row.seconds, 's', 3)}, {percent(row.share)}",
        "; ".join(literal(text) for text in (row.finding, hidden, note) if text),
        factor_range(*row.speedup) if row.speedup else "",
        "" if math.isnan(row.ceiling) else factor(row.ceiling),
    )


def _part(answer: Answer, row: AnswerRow) -> str:
    if row.group == KERNELS:
        name = _kernel_name(answer, row.name)
        if sum(other.name == row.name for other in answer.rows) > 1:
            name += f", grid {extent(row.grid)}"
        return f"{row.kind}: {name}" if row.kind and row.kind != name else name
    where = _WHERE.get(row.group, row.group)
    name = literal(row.name)
    return name if where in name else f"{where}: {name}"


def _kernel_name(answer: Answer, name: str) -> str:
    """A kernel's name, short but unlike those of the other picked ones."""
    own = own_names({row.name for row in answer.rows if row.grid})
    short = told_apart(set(map(literal, own.values())), _NAME)
    return short.get(literal(own.get(name, name)), literal(name))


def _reasons(answer: Answer) -> Iterator[str]:
    """Why something is not known, each reason once, with the parts that it is about."""
    parts: dict[str, dict[str, None]] = {}
    for row in answer.rows:
        if row.note:
            name = _kernel_name(answer, row.name) if row.group == KERNELS else literal(row.name)
            parts.setdefault(row.note, {})[name] = None
    return (f"{literal(note)} ({', '.join(names)})" for note, names in parts.items())


def _fix(answer: Answer, item: PlanItem, actions: int | None) -> doc.Item:
    gain = f"{factor(item.likely)}, about {factor(item.ceiling)} by replay"
    about = [": ", doc.code(_kernel_name(answer, item.part))] if item.part else []
    return doc.Item(doc.styled(f"{gain}  {item.finding}", *about), lines=item.actions[:actions])


def _next_commands(answer: Answer, folder: str) -> tuple[str, ...]:
    """What to run next, for the first fix of the plan."""
    place = shlex.quote(folder)
    if answer.plan and answer.plan[0].part:
        return f"profkit checklist {place}", f"profkit timeline {place}"
    return f"profkit timeline {place}", f"profkit report {place}"
