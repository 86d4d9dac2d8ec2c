"""What `profkit profile` prints in the end: one screen of what was recorded and what to do next."""

import shlex
from collections.abc import Iterator, Sequence

from profkit.analysis.without_counters_view import without_counters_document
from profkit.capture.correctness import Status
from profkit.recording.recording import Outcome, Recorded
from profkit.report import overview
from profkit.report.summary import ReportSummary
from profkit.rules import finding_text as words
from profkit.rules.checklist import SHOWN, Checklist
from profkit.rules.finding import FindingGroup
from profkit.timing.latency_view import doubts, method, variant_line
from profkit.ui import document as doc
from profkit.ui.terminal import document_terminal
from profkit.ui.text import literal, number, percent, plural

SCREEN = 40
"""Lines that fit a screen of 100 columns beside a prompt. Chosen."""
_COLUMNS = 99  # of a line, chosen as for a terminal of 100
_NAME = 16  # characters of a kernel's name at least, chosen: both ends can be told
_KERNELS = 3  # chosen: their names and times fit two lines
_RANKING = "most promising first; speedups of kernels [low, high], not additive; +N: other kernels"


_MOST = 6  # chosen: of findings and latencies; 4 warnings, which runs and pages keep


def recorded_text(outcome: Outcome) -> str:
    """The screen of a run: as many rows of each list as let it fit in SCREEN lines."""
    for most in range(_MOST, 0, -1):
        text = document_terminal(recorded_document(outcome, most), to_file=False)
        if text.count("\n") <= SCREEN:
            break
    return text


def recorded_document(outcome: Outcome, most: int) -> doc.Document:
    """What was recorded, the ranking, latencies, the run, next commands."""
    blocks: list[doc.Block] = []
    if outcome.report and outcome.checklist:
        report = outcome.report
        devices = ", ".join(dict.fromkeys(gpu.name for gpu in report.gpus))
        blocks.append(doc.Heading(literal(report.path), 1))
        blocks.append(doc.Paragraph(f"{overview.headline(report)}, {literal(devices)}"))
        blocks.append(doc.Facts("", (doc.Row("Kernels", _kernels(report)),)))
        blocks.append(doc.Heading("Ranking", note=_RANKING))
        blocks += _ranking(report, outcome.checklist, most)
    elif analysis := outcome.without_counters:
        blocks += without_counters_document(analysis, most).blocks
    blocks += _latencies(outcome, most)
    notes, shown = [literal(warning) for warning in _warnings(outcome)], max(1, most - 2)
    blocks += map(doc.Note, notes[:shown])
    if more := len(notes[shown:]):
        blocks.append(doc.Note(f"{plural(more, 'more warning')}: manifest.json, latency.json"))
    return doc.Document(outcome.folder.name, (*blocks, _ending(outcome), _next(outcome)))


def _kernels(report: ReportSummary) -> str:
    """The kernels that take the most time, and how many are left."""
    parts = [
        f"{literal(group.short_name(_NAME * 2))} {number(group.total, 's')}"
        f" ({percent(group.share)})"
        for group in report.groups[:_KERNELS]
    ]
    more = len(report.groups) - len(parts)
    return ", ".join([*parts, *([f"{more} more"] if more else [])])


def _ranking(report: ReportSummary, checklist: Checklist, most: int) -> Iterator[doc.Block]:
    """The findings, a line each with its first kernel; of the first also what to do, and where."""
    after = checklist.causes[SHOWN:]
    groups = [group for group in checklist.major if group not in after][:most]
    if proof := checklist.headline:
        yield doc.Lines((f"{words.DEMONSTRATED} {words.proof_line(proof)}",))
    if not groups:
        yield doc.Lines((words.summary(checklist),))
    for group in groups:
        yield doc.Lines((_finding(group),))
        if group is groups[0]:
            yield doc.Facts("", tuple(_first(group, checklist)), indent=4)
    more = len(checklist.major) - len(groups) - len(after)
    lacking = words.unevaluated_lines(checklist, report.session, with_samples=False)
    lines = [
        words.trying(after),
        f"{plural(more, 'more finding')}: profkit checklist" if more else "",
        *(f"not evaluated: {line}" for line in lacking),
    ]
    yield doc.Lines(tuple(map(doc.quiet, filter(None, lines))))


def _finding(group: FindingGroup) -> str:
    rank = f"{group.rank}. " if group.rank else "-  "
    title = f"{rank}{group.best.speedup_text}  {group.title}"
    more = len(group.findings) - 1
    others = f" +{more}" if more else ""
    room = max(_COLUMNS - len(title) - len(others) - 2, _NAME)
    kernel = group.best.group
    name = literal(kernel.short_name(room)) if kernel else words.TIMELINE
    return doc.styled(doc.strong(title), f"  {name}{others}")


def _first(group: FindingGroup, checklist: Checklist) -> Iterator[doc.Row]:
    actions = words.actions_of(group)
    rows = {
        "headroom": words.headroom(group.best.headroom),
        "also seen as": words.facets(checklist.facets_of(group.best)),
        "action": "".join(actions[0][0][:1]) if actions else "",
        "location": words.location(group.best),
    }
    yield from (doc.Row(label, text) for label, text in rows.items() if text)


def _latencies(outcome: Outcome, most: int) -> Iterator[doc.Block]:
    """Latencies with their intervals: ncu's durations are of a kernel alone, under its control of
    caches and clocks."""
    timed = outcome.latency.series if outcome.latency else ()
    if timed:
        yield doc.Heading("Latency per call without a profiler", note=method(timed[0]))
        yield doc.Lines(tuple(map(variant_line, timed[:most])), indent=2)
        if more := len(timed[most:]):
            yield doc.Lines((doc.quiet(f"{plural(more, 'more variant')}: latency.json"),), indent=2)


def _warnings(outcome: Outcome) -> Iterator[str]:
    """Warnings, those of the last stages first: they tell what the run lacks."""
    yield from reversed(outcome.warnings)
    for variant in outcome.checked.variants if outcome.checked else ():
        if variant.status is Status.unsupported:
            yield f"{variant.name} is not supported here: {variant.reason}"
    yield from doubts(outcome.latency.series) if outcome.latency else ()


def _ending(outcome: Outcome) -> doc.Facts:
    rows = [*run_rows(outcome)]
    if outcome.report:
        rows.append(doc.Row("Page", literal(f"{outcome.folder}/report.html")))
    if outcome.timeline and not outcome.without_counters:
        rows.insert(0, doc.Row("Timeline", outcome.timeline.headline))
    return doc.Facts("", tuple(rows), gap=True)


def run_rows(outcome: Recorded) -> Sequence[doc.Row]:
    """How long the stages took, and where the run is."""
    stages = ", ".join(f"{stage.name} {stage.seconds:.1f} s" for stage in outcome.stages)
    return doc.Row("Time", stages), doc.Row("Run", literal(str(outcome.folder)))


def _next(outcome: Outcome) -> doc.Next:
    folder = shlex.quote(str(outcome.folder))
    if outcome.without_counters:
        commands = {f"analyze {folder} --without-counters --top 0": "all kernels", "doctor": ""}
    else:
        commands = {
            f"checklist {folder}": "all actions",
            f"next {folder}": "what to try first",
            f"analyze {folder} --top 0": "all kernels",
        }
    if outcome.timeline and not outcome.without_counters:
        commands[f"timeline {shlex.quote(f'{outcome.folder}/timeline.sqlite')}"] = "timeline"
    return doc.Next(tuple(f"profkit {verb}" for verb in commands), tuple(commands.values()))
