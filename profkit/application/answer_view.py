"""An application's answer as a document."""

import math
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping

from profkit.application.answer import WORTH, Answer, AnswerRow, PickedKernel, PlanItem
from profkit.application.parts import COPIES, GAPS, KERNELS
from profkit.application.run import ApplicationRun
from profkit.application.view import launchers
from profkit.application.what_if import USUAL_HOST
from profkit.rules.finding import gain_range
from profkit.rules.finding_text import EACH_ALONE
from profkit.ui import document as doc
from profkit.ui.names import own_names, told_apart
from profkit.ui.text import extent, factor, literal, number, percent, plural

_COLUMNS = ("Part of the step", "Time", "Finding", "Kernel", "Step")
_NOTE = (
    "Kernel: the estimated speedup of a group's kernels, by those that were profiled. Step: about "
    "what this gives by replay of the recorded step, which keeps all else; what runs behind other "
    "work gives nothing."
)
_KERNELS_SHOWN = 2  # of a group, chosen: the others are in JSON
_NAME = 22  # characters, chosen: findings then have as much of 100 columns
_KEPT = "what is not listed may give more"
_NOTHING = f"No fix is known that gives {WORTH - 1:.0%} or more of the step."
_WHERE = {GAPS: "GPU idle", COPIES: "copies"}


def answer_document(
    answer: Answer, run: ApplicationRun, folder: str = "", actions: int | None = None
) -> doc.Document:
    """The answer, with the first `actions` of each fix; `folder` is the run's, for what to run
    next."""
    short = _short_names(answer)
    rows = [(0, _cells(row)) for row in answer.rows]
    for place, row in reversed(list(enumerate(answer.rows))):
        nested = sorted(row.kernels, key=lambda kernel: -kernel.share)[:_KERNELS_SHOWN]
        rows[place + 1 : place + 1] = [(1, _kernel_cells(answer, each, short)) for each in nested]
    blocks: list[doc.Block] = [
        doc.Heading(title := _title(answer), 1),
        doc.Lines(tuple(_facts(answer, run))),
        doc.Table(
            f"What a {answer.steps.unit} is made of",
            _COLUMNS,
            tuple(cells for _, cells in rows),
            _NOTE,
            depths=tuple(depth for depth, _ in rows),
        ),
        doc.Lines(tuple(map(doc.quiet, _reasons(answer, short)))),
        *launchers((_part(row), row.callers) for row in answer.rows),
        doc.Heading("Plan", note=EACH_ALONE.format("") if len(answer.plan) > 1 else ""),
    ]
    fixes = tuple(_fix(item, actions) for item in answer.plan)
    blocks.append(doc.Items(fixes, numbered=True) if fixes else doc.Lines((_NOTHING,)))
    count = sum(not item.is_in_vain for item in answer.plan)
    if count > 1 and not math.isnan(answer.together):
        which = "These" if count == len(answer.plan) else "The first"
        gain = f"about {factor(answer.together)}, up to about {factor(answer.together_high)}"
        together = f"{which} {count} together {gain}; {_KEPT}"
        blocks.append(doc.Lines((doc.quiet(together),)))
    blocks += run.application.tried.table
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
        f"{steps.unit.capitalize()} {number(steps.seconds, 's')} (median of "
        f"{plural(steps.count, steps.unit)}; middle half "
        f"{number(steps.low, 's')} to {number(steps.high, 's')}), by {literal(steps.basis)}"
    )
    if answer.ranks > 1:
        yield f"{answer.ranks} ranks; times are of the rank on GPU {run.process.steps.device}"
    yield from run.ranks.notes
    if run.application.tried.note:
        yield run.application.tried.note
    if steps.left_out:
        yield f"Left out: {steps.left_out}"
    if run.unprofiled:
        timed = f"{number(run.unprofiled.seconds, 's')} ({run.unprofiled.source})"
        yield f"Without a profiler: {timed}; the host's times are scaled to that"
    else:
        yield f"Host times without a profiler: assumed {percent(USUAL_HOST)} of the recorded"
    if answer.modules:
        spent = f"{number(answer.modules.seconds, 's')} of host time"
        yield (
            f"Modules are named by {plural(answer.modules.ranges, 'NVTX range')} of their first "
            f"calls: {spent}, {percent(answer.modules.share)} of these steps"
        )


def _cells(row: AnswerRow) -> tuple[str, ...]:
    """The part, its time, finding, speedup and what this gives the step."""
    hidden = f"{percent(row.hidden)} more behind other work" if row.hidden > 0 else ""
    note = row.note.partition(": ")[0]  # the reason stands once below
    return (
        _part(row),
        f"{number(row.seconds, 's', 3)}, {percent(row.share)}",
        "; ".join(literal(text) for text in (row.finding, hidden, note) if text),
        gain_range(*row.speedup) if row.speedup else "",
        "" if math.isnan(row.gain) else factor(row.gain),
    )


def _kernel_cells(
    answer: Answer, kernel: PickedKernel, short: Mapping[PickedKernel, str]
) -> tuple[str, ...]:
    """A picked kernel of a group."""
    texts = kernel.finding, kernel.note.partition(": ")[0]
    return (
        short[kernel],
        f"{number(kernel.share * answer.steps.seconds, 's', 3)}, {percent(kernel.share)}",
        "; ".join(literal(text) for text in texts if text),
        gain_range(*kernel.speedup) if kernel.speedup else "",
        "",
    )


def _part(row: AnswerRow) -> str:
    where = "" if row.group == KERNELS else _WHERE.get(row.group, row.group)
    name = literal(row.name)
    return name if where in name else f"{where}: {name}"


def _short_names(answer: Answer) -> Mapping[PickedKernel, str]:
    """Names of picked kernels, short but unlike each other: of those with several grids with it."""
    kernels = [kernel for row in answer.rows for kernel in row.kernels]
    own = own_names({kernel.name for kernel in kernels})
    several = {name for name, count in Counter(each.name for each in kernels).items() if count > 1}
    grids = {each: f" {extent(each.grid)}" for each in kernels if each.name in several}
    room = _NAME - max(map(len, grids.values()), default=0)
    short = dict(told_apart({literal(own[name]) for name in own.keys() - several}, _NAME))
    short |= told_apart({literal(own[name]) for name in several}, room)
    return {each: short[literal(own[each.name])] + grids.get(each, "") for each in kernels}


def _reasons(answer: Answer, short: Mapping[PickedKernel, str]) -> Iterator[str]:
    """Why something is not known, each reason once, with the parts that it is about."""
    parts: dict[str, dict[str, None]] = {}
    for row in answer.rows:
        notes = [(row.note, literal(row.name))]
        notes += [(kernel.note, short[kernel]) for kernel in row.kernels]
        for note, name in notes:
            if note:
                parts.setdefault(note, {})[name] = None
    return (f"{literal(note)} ({', '.join(names)})" for note, names in parts.items())


def _fix(item: PlanItem, actions: int | None) -> doc.Item:
    gain = gain_range(item.likely, item.low, item.high)
    if item.tried and item.tried.headline:
        gain = item.tried.headline
    about = [": ", doc.code(literal(item.part))] if item.part else []
    lines = item.actions[:actions]
    if item.switches and not item.tried:  # the last action measures it
        lines = (*lines[: len(item.actions) - 1], item.actions[-1])
    return doc.Item(doc.styled(f"{gain}  {item.finding}", *about), lines=lines)


def _next_commands(answer: Answer, folder: str) -> tuple[str, ...]:
    """What to run next, for the first fix of the plan."""
    place = shlex.quote(folder)
    if answer.plan and answer.plan[0].part:
        return f"profkit checklist {place}", f"profkit timeline {place}"
    return f"profkit timeline {place}", f"profkit report {place}"
