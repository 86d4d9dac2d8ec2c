"""An application's timeline as a document."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from profkit.application.application import Application, Process, Row, table
from profkit.application.collectives import bandwidth_words
from profkit.application.drawing import timeline_widget
from profkit.application.groups import explained_share
from profkit.application.kernel_kinds import COMMUNICATION
from profkit.application.parts import (
    COPIES,
    GAPS,
    KERNELS,
    MEANINGS,
    Part,
    StepParts,
    others_share,
)
from profkit.application.steps import BasisKind, Steps
from profkit.application.what_if import USUAL_HOST
from profkit.rules import finding_text
from profkit.rules.checklist import WORTH_ACTING
from profkit.timeline.callers import Caller, caller_words
from profkit.timeline.lost_work import unrecorded
from profkit.timeline.work import other_devices
from profkit.ui import document as doc
from profkit.ui.text import extent, literal, number, percent, plural

_FEW = 5  # steps, below which the range is shown, not quartiles; chosen
_NAMED = 3  # fixes, causes and copies in the conclusion, chosen: the tables have the rest
_OF_KERNELS = "saved_by_kernels"  # by 10%, assumed without a profile: no figure for a headline
_MUCH_IDLE = 0.1  # share of the step, chosen: it needs a word where no fix is found
_SHOWN_FROM = 0.01  # share of the step of a cause in the conclusion, chosen
_PICKS = 8  # launches to profile that are listed, chosen: the others are in JSON
_MANY_COPIES = 10  # of a step, named whatever their time is; chosen
_WITHOUT = {
    "nsys": (  # 31 programs on H100 and H200, timed without a profiler: median 0.71
        "mostly shorter: nsys slows the host down; a {} took 0.4 to 1.1 of this, typically 0.7, in "
        "recorded programs"
    ),
    "torch.profiler": f"the host is taken to take {USUAL_HOST} of its time, as measured for nsys",
}
_SLOW, _MUCH_SLOWER = 1.5, 1.1  # of the median: a step, and the mean; chosen
_NOTE = (
    "Each instant belongs to one part: to kernels, else communication, copies, memset, idle. "
    "Times and counts are means over steps; parts below 0.1% are not listed; an idle gap of "
    "several causes counts in each. Hidden: overlapped by other work."
)


def application_document(
    application: Application, path: str, *, is_page: bool = False
) -> doc.Document:
    """The first process of an application, the others in a line each; a page also has steps to zoom
    into and what the parts mean."""
    first, *others = application.processes
    rows = table(first)
    unit, scale = ("ms", 1e3) if first.mean >= 1e-3 else ("µs", 1e6)  # so that 0.1% has a digit
    repeated = first.steps.basis.unit
    headline = _headline(first)
    parts = doc.Table(
        f"What a {repeated} is made of{_whose(application)}",
        ("Part", f"{unit}/{repeated}", "Share", "Hidden", "Count"),
        tuple(_cells(row, scale) for row in rows),
        _NOTE,
        words=1,
        names=("Part",),
        depths=tuple(row.depth for row in rows),
        shares=tuple(row.share if row.depth < 2 else 0.0 for row in rows),
    )
    blocks: list[doc.Block] = [
        doc.Heading(headline, 1),
        doc.Facts("", (*_conclusion(application), *_recording(application, path))),
    ]
    if is_page:
        blocks += [doc.Heading("Timeline"), timeline_widget(application)]
    blocks.append(parts)
    if is_page:
        meanings = (doc.Row(row.label, MEANINGS.get(row.label, "")) for row in rows)
        known = tuple(meaning for meaning in meanings if meaning.value)
        blocks += [doc.Fold("Meaning of parts", (doc.Facts("", known),))] if known else []
    if others:
        blocks += [doc.Heading("Other processes"), doc.Lines(tuple(map(_in_short, others)))]
    remarks = [doc.Note(note) for note in (application.tried.note, *notes(application)) if note]
    blocks += [*_groups(application), *application.tried.table, _picks(first)]
    blocks += [doc.Lines((), gap=True), *remarks] if remarks else []
    blocks.append(doc.Lines((doc.styled("Next: ", doc.code(_command(application))),), gap=True))
    return doc.Document(f"{Path(path).name}: {headline}", tuple(blocks))


def _headline(process: Process) -> str:
    wall = process.parts.wall / 1e9
    few = len(wall) < _FEW
    middle = process.steps.median
    low, high = np.percentile(wall, (0, 100) if few else (25, 75)).tolist()
    if process.steps.basis.kind is BasisKind.whole:
        return f"{number(middle, 's')} from first to last GPU work, without steps that repeat"
    spread = ""
    if high - low > 0.001 * middle:  # as shown
        words = "" if few else "quartiles "
        spread = f" (median; {words}{number(low, 's')} to {number(high, 's')})"
    unit = process.steps.basis.unit
    return f"{number(middle, 's')} per {unit}{spread}, {plural(len(wall), unit)}"


def _conclusion(application: Application) -> Iterator[doc.Row]:
    """What a fix relieves, what the GPU waits for, and what is copied."""
    events, parts = application.events, application.processes[0].parts
    worth = [
        item for item in application.findings if item.tried or item.range[1] >= 1 + WORTH_ACTING
    ]
    fixes = [item for item in worth if _OF_KERNELS not in item.rule.relieves]
    measured = [item for item in fixes[_NAMED:] if item.tried and item.tried.headline]
    for number_, item in enumerate([*fixes[:_NAMED], *measured]):
        gain = finding_text.item_gain(finding_text.single(item))
        shown = (doc.strong(gain), "  ") if gain else ()
        label = "tried" if item.tried and item.tried.is_in_vain else "then"
        yield doc.Row(label if number_ else "Fix first", doc.styled(*shown, item.title))
    if fixes and application.what_if:
        words = finding_text.EACH_ALONE if len(fixes) > 1 else finding_text.ALONE
        yield doc.Row("", doc.quiet(words.format(f", {_without_profiler(application)}")))
    if not fixes and not unrecorded(events, parts.steps.process):
        yield doc.Row("Conclusion", _without_fixes(application))
    for label, group in (("GPU idle", GAPS), ("Exposed copies", COPIES)):
        members = sorted(parts.group(group), key=lambda part: -parts.share(part))
        total = sum(map(parts.share, members))
        named = [text for part in members[:_NAMED] if (text := _named(parts, part))]
        if named:
            yield doc.Row(label, f"{percent(total)} of the step: {'; '.join(named)}")


def _without_fixes(application: Application) -> str:
    """What takes the step where nothing outside of kernels makes it faster."""
    parts, profiler = application.processes[0].parts, application.events.profiler
    busy, idle = (sum(map(parts.share, parts.group(group))) for group in (KERNELS, GAPS))
    if not busy:
        return "no kernel is recorded"
    if (what_if := application.what_if) is None:
        whose = "a single step: record more" if len(parts.wall) < 2 else "steps without their calls"
        return f"kernels take {percent(busy)}; what a fix gives is not known of {whose}"
    text = f"no fix found outside of kernels, which take {percent(busy)}: profile these"
    if idle < _MUCH_IDLE:
        return text
    replayed = f"{_without_profiler(application)} without the overhead of {profiler}"
    left = max(0.0, 1 - (1 - idle) * what_if.recorded / what_if.present)
    if left < _MUCH_IDLE:
        return f"{text}; a median step takes {replayed}, in which the GPU is busy"
    return f"no fix found; the GPU is idle for {percent(left)} of a median step, {replayed}"


def _without_profiler(application: Application) -> str:
    """The time of a step without a profiler, measured or about as replayed."""
    if (what_if := application.what_if) is None:
        return ""
    present = what_if.present
    return number(present, "s") if application.known else f"about {number(present, 's', 2)}"


def _named(parts: StepParts, part: Part) -> str:
    """A part in words, with what tells whether it is of every step; "" for a small one."""
    steps, present = len(parts.wall), int(((part.times + part.hidden) > 0).sum())
    copies = part.count / steps if part.group == COPIES else 0
    if parts.share(part) < _SHOWN_FROM and copies < _MANY_COPIES:
        return ""
    often = f"{copies:,.1f} per step".replace(".0 ", " ") if copies >= 1 else ""
    rare = f"in {present} of {steps} steps" if 2 * present < steps else ""
    return ", ".join(filter(None, (f"{part.name} {percent(parts.share(part))}", often, rare)))


def _whose(application: Application) -> str:
    count = len(application.processes)
    device = application.processes[0].steps.device
    return f" (GPU {device}, 1 of {count} processes)" if count > 1 else ""


def _recording(application: Application, path: str) -> Iterator[doc.Row]:
    events, steps = application.events, application.processes[0].steps
    if application.is_slowed_down:
        text = _WITHOUT[events.profiler].format(steps.basis.unit)
        yield doc.Row(f"Without {events.profiler}", text)
    yield doc.Row("Timeline", literal(path))
    names = dict.fromkeys(literal(gpu.name) for gpu in events.gpus)
    yield doc.Row("GPU", ", ".join(names) or "unknown")
    yield doc.Row("Steps", literal(str(steps.basis)))
    if left_out := _left_out(steps):
        yield doc.Row("Left out", left_out)


def _left_out(steps: Steps) -> str:
    texts = []
    if steps.before:
        words, why = plural(steps.before, steps.unit), f" ({steps.why})" if steps.why else ""
        texts.append(f"{words} in {number(steps.left_out / 1e9, 's')} before{why}")
    if odd := int((~steps.typical).sum()):
        share = 1 - float(steps.wall.sum() / np.diff(steps.bounds).sum())
        words = f"{plural(odd, 'step')} with other work (other shapes, evaluation, compilation)"
        texts.append(f"{words}, {percent(share)} of the time")
    return "; ".join(texts)


def _cells(row: Row, scale: float) -> tuple[str, ...]:
    style = (doc.Style.strong, doc.Style.plain, doc.Style.code)[row.depth]
    return (
        doc.in_style(row.label, style),
        _amount(row.time * scale) or "0",
        percent(row.share),
        _amount(row.hidden * scale),
        f"{row.count:,.1f}".removesuffix(".0"),
    )


def _amount(amount: float) -> str:
    return f"{amount:,.3f}" if amount >= 0.0005 else "<0.001" if amount else ""


def _in_short(process: Process) -> str:
    parts = process.parts
    shares = [
        f"{group} {percent(sum(map(parts.share, parts.group(group))))}"
        for group in dict.fromkeys(part.group for part in parts.parts)
    ]
    return f"GPU {process.steps.device}: {_headline(process)}; {', '.join(shares)}"


def _groups(application: Application) -> Iterator[doc.Table]:
    """The groups of kernels with what limits them."""
    groups = application.groups
    shown = [group for group in groups if group.share >= _SHOWN_FROM]
    if not shown:
        return
    rows = tuple(
        (group.name, percent(group.share), f"{group.launches:,.0f}", literal(group.text))
        for group in shown
    )
    unknown = [group.name for group in groups if not group.is_explained]
    note = f"{percent(explained_share(groups))} of the kernels' time has a finding or a known limit"
    note += f"; by kind alone: {', '.join(map(literal, unknown))}" if unknown else ""
    yield doc.Table("What limits kernels", ("Group", "Share", "Launches", "Limit"), rows, note)
    yield from launchers((group.name, group.callers) for group in shown)


def launchers(groups: Iterable[tuple[str, Sequence[Caller]]]) -> Iterator[doc.Table]:
    """What launches the kernels of groups, as far as it is known."""
    known = ((name, caller_words(callers)) for name, callers in groups)
    rows = tuple((literal(name), literal(words)) for name, words in known if words)
    if rows:
        yield doc.Table("What launches kernels", ("Group", "Module or range"), rows)


def _picks(process: Process) -> doc.Table:
    events, ranking = process.named, process.ranking
    rows = []
    for pick in sorted(ranking.picks, key=lambda pick: -pick.share)[:_PICKS]:
        shape = events.configurations[pick.configuration]
        sizes = f"{extent(shape.grid)} / {extent(shape.block)}"
        name = doc.code(events.kernel_names[pick.name].name)
        rows.append((name, percent(pick.share), sizes, f"{pick.launch_index:,}"))
    groups = plural(len({pick.group for pick in ranking.picks}), "group")
    note = (
        f"{groups} of kernels with {percent(ranking.explained)} of the kernels' time, "
        f"represented by {plural(len(ranking.picks), 'launch')}; launches of the same kernels and "
        f"configurations take {percent(ranking.own)}"
    )
    return doc.Table(
        "Kernels to profile",
        ("Kernel", "Share", "Grid / block", "Launch"),
        tuple(rows),
        note if rows else "none: no kernel of the step is known",
        words=1,
        names=("Kernel",),
    )


def _slow(process: Process) -> Iterator[str]:
    """The steps that make the mean of the table longer than the median of the head."""
    median, unit = process.steps.median, process.steps.basis.unit
    slow = process.parts.wall > _SLOW * 1e9 * median
    if slow.any() and process.mean > _MUCH_SLOWER * median:
        yield (
            f"{int(slow.sum())} of {plural(len(slow), unit)} took over {_SLOW} times the median: "
            "the table and shares have them, the fixes are of median ones"
        )


def notes(application: Application) -> Iterator[str]:
    """What limits the meaning of the table."""
    first = application.processes[0]
    if missing := unrecorded(application.events, first.steps.process):
        yield missing
    if first.ranking.unknown > 0.01:  # chosen: less is in no table
        yield (
            f"{percent(first.ranking.unknown)} of the kernels' time is in CUDA graphs traced as a "
            "whole: record with --cuda-graph-trace=node to see their kernels"
        )
    if count := application.events.untimed:
        yield f"events without valid times: {count:,} left out"
    if (others := others_share(application.events, first.parts)) > 0.01:  # chosen: as above
        yield (
            f"other processes keep GPU {first.steps.device} busy in {percent(others)} of the time: "
            "its idle parts are without work of this process"
        )
    yield from _collectives(application)
    places = other_devices(application.events, first.steps.process, first.steps.device)
    if places:
        yield (
            f"the process also has work on GPU {', '.join(map(str, places))}, which is in no part: "
            f"the time in which GPU {first.steps.device} waits for it is idle"
        )
    basis = first.steps.basis
    yield from _slow(first)
    if first.steps.outside > 0.05:  # chosen: a little may be logging
        yield (
            f'a step is from one range "{basis.range}" to the next: '
            f"{percent(first.steps.outside)} of its GPU work is submitted outside of that range"
        )
    if not basis.is_step:
        yield (
            f"a repetition of {plural(basis.launches, 'launch')} may be a part of a step, or "
            "several: no range or optimizer ends it; name a step's NVTX range with --nvtx"
        )
    if len(first.steps) == 1 and first.steps.basis.kind is BasisKind.whole:
        yield "no step was found: name its NVTX range with --nvtx, or record more of them"


def _collectives(application: Application) -> Iterator[str]:
    first, *others = application.processes
    if first.parts.group(COMMUNICATION) and not others:
        yield (
            "one rank is recorded: its collectives wait for other ranks, too, and how long only "
            "timelines of all ranks tell"
        )
    for operation, exchange in first.exchanges.items():
        yield f"{operation}: {bandwidth_words(exchange)}"


def _command(application: Application) -> str:
    """A trace of torch.profiler has its own annotations, which nsys doesn't record."""
    of_nsys = application.events.profiler == "nsys"
    name = application.processes[0].steps.basis.range if of_nsys else ""
    nvtx = f"--nvtx {shlex.quote(name)} " if name else ""
    return f"profkit profile --app {nvtx}-- PROGRAM"
