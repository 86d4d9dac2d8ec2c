"""An application's timeline for a terminal and as Markdown."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from profkit.application.application import Application, Process, Row, table, wall_row
from profkit.application.steps import Steps
from profkit.report.names import told_apart
from profkit.ui.markdown import code, escape
from profkit.ui.terminal import facts, note
from profkit.ui.text import bar, count, extent, literal, number, percent, plural, shorten
from profkit.ui.view import Panel
from profkit.ui.view import Row as Fact

_BAR = 10  # characters, chosen: a tenth each
_NUMBERS = 46  # characters of the columns beside the label
_NARROWEST = 24  # characters of a label
_COLUMNS = ("", "ms/step", "Share", "", "Hidden", "Count")
_NOTE = (
    "Each instant belongs to one part: to kernels, else communication, copies, memset, idle. "
    "ms/step is the median over steps; shares are of their sum. Hidden: overlapped by other work."
)


def application_view(application: Application, path: str, width: int) -> RenderableType:
    """The table of an application, of its first process; the others in a line each."""
    first, *others = application.processes
    parts: list[RenderableType] = [
        Text(headline(first), "bold"),
        facts(Panel("", tuple(recording_facts(application, path)))),
        Text(),
        Text(f"What a step is made of{_whose(application)}", "bold"),
        _table(first, width),
        Text(_NOTE, "dim"),
    ]
    if others:
        parts += [Text(), Text("Other processes", "bold")]
        parts += [Text(_in_short(process)) for process in others]
    parts += [Text(), Text("Kernels to profile", "bold"), Text(explained(first), "dim")]
    parts += [Text(line) for line in _picks(first, width)]
    if notes := tuple(_notes(application)):
        parts += [Text(), *map(note, notes)]
    parts += [Text(), Text(f"Next: {_command(first)}")]
    return Group(*parts)


def application_markdown(application: Application, path: str) -> str:
    """The same as Markdown."""
    first, *others = application.processes
    lines = [f"# {code(path)}", "", escape(headline(first)), ""]
    lines += [
        f"- {fact.label}: {escape(fact.value)}" for fact in recording_facts(application, path)
    ]
    lines += ["", f"## What a step is made of{escape(_whose(application))}", ""]
    lines += ["| Part | ms/step | Share | Hidden | Count |", "|---|---:|---:|---:|---:|"]
    for row in [*table(first), wall_row(first)]:
        label = code(row.label, in_table=True) if row.depth == 2 else escape(_label(row))
        cells = row_cells(row)
        lines.append(f"| {'&emsp;' * row.depth}{label} | {' | '.join(cells)} |")
    lines += ["", escape(_NOTE)]
    if others:
        lines += ["", "## Other processes", ""]
        lines += [f"- {escape(_in_short(process))}" for process in others]
    lines += ["", "## Kernels to profile", "", escape(explained(first)), ""]
    for pick in first.ranking.picks:
        name = first.named.kernel_names[pick.name].name
        lines.append(f"- {percent(pick.share)}, launch {pick.launch_index:,}: {code(name)}")
    lines += [f"\n> {escape(text)}" for text in _notes(application)]
    lines += ["", f"Next: {code(_command(first))}"]
    return "\n".join(lines) + "\n"


def headline(process: Process) -> str:
    wall = wall_row(process)
    spread = ""
    if len(process.parts.wall) > 1 and wall.high - wall.low > 0.001 * wall.median:  # as shown
        spread = f" (quartiles {number(wall.low, 's')} to {number(wall.high, 's')})"
    steps = plural(len(process.parts.wall), "step")
    return f"{number(wall.median, 's')} per step{spread}, {steps}"


def _whose(application: Application) -> str:
    if len(application.processes) == 1:
        return ""
    device, count = application.processes[0].steps.device, len(application.processes)
    return f" (GPU {device}, 1 of {count} processes)"


def recording_facts(application: Application, path: str) -> Iterator[Fact]:
    events, steps = application.events, application.processes[0].steps
    yield Fact("Timeline", literal(path))
    names = dict.fromkeys(literal(gpu.name) for gpu in events.gpus)
    yield Fact("GPU", ", ".join(names) or "unknown")
    yield Fact("Steps", literal(steps.how))
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
        f"{row.median * 1e3:,.3f}",
        percent(row.share),
        f"{row.hidden * 1e3:,.3f}" if row.hidden * 1e3 >= 0.0005 else "",  # as shown
        count(round(row.count, 1)),
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
    grid.add_row(Text("Step", "bold"), f"{wall.median * 1e3:,.3f}", percent(1.0), "", "", "")
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


def _notes(application: Application) -> Iterator[str]:
    first = application.processes[0]
    if first.ranking.unknown > 0.01:  # chosen: less is in no table
        yield (
            f"{percent(first.ranking.unknown)} of the kernels' time is in CUDA graphs traced as a "
            "whole: record with --cuda-graph-trace=node to see their kernels"
        )
    if len(first.steps) == 1 and first.steps.how.startswith("no repetition"):
        yield "no step was found: name its NVTX range with --nvtx, or record more of them"


def _command(process: Process) -> str:
    how = process.steps.how
    nvtx = shlex.quote(how.split('"')[1]) if how.startswith("NVTX") else ""
    return f"profkit profile --app {f'--nvtx {nvtx} ' if nvtx else ''}-- PROGRAM"
