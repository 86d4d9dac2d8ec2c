"""An application's timeline for a terminal and as Markdown."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from profkit.application.application import Application, Process, Row, table, wall_row
from profkit.application.collectives import bandwidth_words
from profkit.application.parts import others_share
from profkit.application.steps import BasisKind, Steps
from profkit.application.work import other_devices
from profkit.report.names import told_apart
from profkit.timeline.lost_work import REMEDY, lost_work
from profkit.ui.markdown import code, escape
from profkit.ui.terminal import facts, note
from profkit.ui.text import bar, extent, literal, number, percent, plural, shorten
from profkit.ui.view import Panel
from profkit.ui.view import Row as Fact

_BAR = 10  # characters, chosen: a tenth each
_NUMBERS = 46  # characters of the columns beside the label
_NARROWEST = 24  # characters of a label
_FEWEST_LAUNCHES = 2  # of a step that may be a part of one; chosen: a loop of one or two kernels
_FEW = 5  # steps, below which the range is shown, not quartiles; chosen
_COLUMNS = ("", "ms/step", "Share", "", "Hidden", "Count")
NOTE = (
    "Each instant belongs to one part: to kernels, else communication, copies, memset, idle. "
    "ms/step and Count are means over steps. Hidden: overlapped by other work."
)


def application_view(application: Application, path: str, width: int) -> RenderableType:
    """The table of an application, of its first process; the others in a line each."""
    first, *others = application.processes
    parts: list[RenderableType] = [
        Text(headline(first), "bold"),
        facts(Panel("", tuple(recording_facts(application, path)))),
        Text(),
        Text(f"What a step is made of{whose(application)}", "bold"),
        _table(first, width),
        Text(NOTE, "dim"),
    ]
    if others:
        parts += [Text(), Text("Other processes", "bold")]
        parts += [Text(_in_short(process)) for process in others]
    parts += [Text(), Text("Kernels to profile", "bold"), Text(explained(first), "dim")]
    parts += [Text(line) for line in _picks(first, width)]
    if lines := tuple(notes(application)):
        parts += [Text(), *map(note, lines)]
    parts += [Text(), Text(f"Next: {_command(first)}")]
    return Group(*parts)


def application_markdown(application: Application, path: str) -> str:
    """The same as Markdown."""
    first, *others = application.processes
    lines = [f"# {code(path)}", "", escape(headline(first)), ""]
    lines += [
        f"- {fact.label}: {escape(fact.value)}" for fact in recording_facts(application, path)
    ]
    lines += ["", f"## What a step is made of{escape(whose(application))}", ""]
    lines += ["| Part | ms/step | Share | Hidden | Count |", "|---|---:|---:|---:|---:|"]
    for row in [*table(first), wall_row(first)]:
        label = code(row.label, in_table=True) if row.depth == 2 else escape(_label(row))
        cells = row_cells(row)
        lines.append(f"| {'&emsp;' * row.depth}{label} | {' | '.join(cells)} |")
    lines += ["", escape(NOTE)]
    if others:
        lines += ["", "## Other processes", ""]
        lines += [f"- {escape(_in_short(process))}" for process in others]
    lines += ["", "## Kernels to profile", "", escape(explained(first)), ""]
    for pick in first.ranking.picks:
        name = first.named.kernel_names[pick.name].name
        lines.append(f"- {percent(pick.share)}, launch {pick.launch_index:,}: {code(name)}")
    lines += [f"\n> {escape(text)}" for text in notes(application)]
    lines += ["", f"Next: {code(_command(first))}"]
    return "\n".join(lines) + "\n"


def headline(process: Process) -> str:
    wall = process.parts.wall / 1e9
    few = len(wall) < _FEW
    middle = process.steps.median
    low, high = np.percentile(wall, (0, 100) if few else (25, 75)).tolist()
    spread = ""
    if high - low > 0.001 * middle:  # as shown
        words = "" if few else "quartiles "
        spread = f" (median; {words}{number(low, 's')} to {number(high, 's')})"
    return f"{number(middle, 's')} per step{spread}, {plural(len(wall), 'step')}"


def whose(application: Application) -> str:
    if len(application.processes) == 1:
        return ""
    device, count = application.processes[0].steps.device, len(application.processes)
    return f" (GPU {device}, 1 of {count} processes)"


def recording_facts(application: Application, path: str) -> Iterator[Fact]:
    events, steps = application.events, application.processes[0].steps
    yield Fact("Timeline", literal(path))
    names = dict.fromkeys(literal(gpu.name) for gpu in events.gpus)
    yield Fact("GPU", ", ".join(names) or "unknown")
    yield Fact("Steps", literal(str(steps.basis)))
    if left_out := _left_out(steps):
        yield Fact("Left out", left_out)


def _left_out(steps: Steps) -> str:
    texts = []
    if steps.before:
        words = plural(steps.before, steps.unit)
        why = f" ({steps.why})" if steps.why else ""
        texts.append(f"{words} in {number(steps.left_out / 1e9, 's')} before{why}")
    if odd := int((~steps.typical).sum()):
        texts.append(f"{plural(odd, 'step')} with other work (evaluation, logging, compilation)")
    return "; ".join(texts)


def _label(row: Row) -> str:
    return literal(row.label)


def row_cells(row: Row) -> tuple[str, str, str, str]:
    """Milliseconds, share, hidden milliseconds and count of a row."""
    return (
        f"{row.time * 1e3:,.3f}",
        percent(row.share),
        f"{row.hidden * 1e3:,.3f}" if row.hidden * 1e3 >= 0.0005 else "",  # as shown
        f"{row.count:,.1f}".removesuffix(".0"),
    )


def _table(process: Process, width: int) -> Table:
    rows = table(process)
    room = max(_NARROWEST, width - _NUMBERS)
    names = told_apart([literal(row.label) for row in rows if row.depth == 2], room - 4)
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in _COLUMNS:
        words = not name
        grid.add_column(name, justify="left" if words else "right", no_wrap=True)
    for row in rows:
        label = names[literal(row.label)] if row.depth == 2 else _label(row)
        style = ("bold", "", "dim")[row.depth]
        milliseconds, share, hidden, amount = row_cells(row)
        drawn = Text(bar(row.share, _BAR), "cyan") if row.depth < 2 else Text()
        text = Text(f"{'  ' * row.depth}{shorten(label, room - 2 * row.depth)}", style)
        grid.add_row(text, milliseconds, share, drawn, hidden, amount)
    wall = wall_row(process)
    grid.add_row(Text("Step", "bold"), *row_cells(wall)[:2], "", "", "")
    return grid


def short_lines(application: Application) -> Iterator[str]:
    """The other processes, in a line each."""
    return map(_in_short, application.processes[1:])


def _in_short(process: Process) -> str:
    parts = process.parts
    shares = [
        f"{group} {percent(sum(map(parts.share, parts.group(group))))}"
        for group in dict.fromkeys(part.group for part in parts.parts)
    ]
    return f"GPU {process.steps.device}: {headline(process)}; {', '.join(shares)}"


def explained(process: Process) -> str:
    ranking = process.ranking
    families = dict.fromkeys(pick.family for pick in ranking.picks)
    if not families:
        return "none: no kernel of the step is known"
    return (
        f"{plural(len(families), 'family')} of kernels with {percent(ranking.explained)} of the "
        f"kernels' time, represented by {plural(len(ranking.picks), 'launch')} (equal ones: "
        f"{percent(ranking.own)})"
    )


def _picks(process: Process, width: int) -> Iterator[str]:
    events = process.named
    picks = process.ranking.picks
    names = told_apart([literal(events.kernel_names[pick.name].name) for pick in picks], width - 46)
    for pick in picks:
        shape = events.configurations[pick.configuration]
        name = names[literal(events.kernel_names[pick.name].name)]
        sizes = f"{extent(shape.grid)} / {extent(shape.block)}"
        share = f"{percent(pick.share):>6}"
        yield f"{share}  {name:{width - 46}}  {sizes:20}  launch {pick.launch_index:,}"


def notes(application: Application) -> Iterator[str]:
    first = application.processes[0]
    if lost := lost_work(application.events, first.steps.process):
        yield f"{lost}, and the GPU is not known to be idle without it: {REMEDY}"
    if first.ranking.unknown > 0.01:  # chosen: less is in no table
        yield (
            f"{percent(first.ranking.unknown)} of the kernels' time is in CUDA graphs traced as a "
            "whole: record with --cuda-graph-trace=node to see their kernels"
        )
    if (others := others_share(application.events, first.parts)) > 0.01:  # chosen: as above
        yield (
            f"other processes keep GPU {first.steps.device} busy in {percent(others)} of the time: "
            "its idle parts are without work of this process"
        )
    for operation, exchange in first.exchanges.items():
        yield f"{operation}: {bandwidth_words(exchange)}"
    places = other_devices(application.events, first.steps.process, first.steps.device)
    if places:
        yield (
            f"the process also has work on GPU {', '.join(map(str, places))}, which is in no part: "
            f"the time in which GPU {first.steps.device} waits for it is idle"
        )
    basis = first.steps.basis
    if first.steps.outside > 0.05:  # chosen: a little may be logging
        yield (
            f'a step is from one range "{basis.range}" to the next: '
            f"{percent(first.steps.outside)} of its GPU work is submitted outside of that range"
        )
    if basis.kind is BasisKind.pattern and basis.launches <= _FEWEST_LAUNCHES:
        yield (
            f"a step is {plural(basis.launches, 'launch')}, as nothing else separates launches: "
            "name a step's NVTX range with --nvtx"
        )
    if len(first.steps) == 1 and first.steps.basis.kind is BasisKind.whole:
        yield "no step was found: name its NVTX range with --nvtx, or record more of them"


def _command(process: Process) -> str:
    name = process.steps.basis.range
    nvtx = f"--nvtx {shlex.quote(name)} " if name else ""
    return f"profkit profile --app {nvtx}-- PROGRAM"
