"""The document of `profkit rules score`: accuracy on pairs and on applications."""

import math
from collections.abc import Iterator, Mapping, Sequence

from profkit.core.text_files import shipped_text
from profkit.rules.finding import PROMISED
from profkit.score.change import Change
from profkit.score.score import (
    NAMED,
    WORTH_AN_ALARM,
    Accuracy,
    Count,
    PairScore,
    Part,
    Score,
)
from profkit.score.stories import (
    EXPLAINED,
    NAMED_STORY,
    Applications,
    ChangeScore,
    ProgramScore,
    StoryScore,
)
from profkit.score.without_counters import BlindPart
from profkit.ui import document as doc
from profkit.ui.text import factor, factor_range, plural

_STORIES = ("Application", "Fixed", "Named first", "Gain", "Range", "Missed")
_PROGRAMS = ("Program", "Labels", "Named", "Missed", "GPU busy", "Explained")
_SUMMARY = (
    "", "Defects", "First", "Top 3", "Factor", "Error", "In range", "Range", "False alarms",
)  # fmt: skip
_SETS = (
    "Set", "Pairs", "First/top 3", "Related", "Factor", "1.00x", "In range", "Width", "ncu",
    "ncu related", "No gain", "Likely", "Gain",
)  # fmt: skip
_SURE = ("Set", "Likely", "Open", "Undecided", "By estimates", "Change", "Change, related")
_PAIRS = ("Pair", "Category", "Measured", "Predicted", "Rank", "ncu")
_BLIND = (
    "Headroom", "First", "Within 20%", "Floor within 20%", "Gain above it", "Headroom over gain",
)  # fmt: skip


def score_document(score: Score, *, complete: bool = False) -> doc.Document:
    """The summary, a row per pair, and misses. A `complete` one explains the figures."""
    misses, alarms = tuple(_misses(score.pairs)), tuple(_alarms(score.pairs))
    blocks: list[doc.Block] = []
    if complete:
        text = shipped_text("profkit.score", "accuracy.md")
        blocks += doc.authored(text.format(alarm=factor(WORTH_AN_ALARM), named=factor(NAMED)))
    blocks.append(doc.Paragraph(doc.strong(_headline(score))))
    blocks += [*_pair_tables(score), *_story_tables(score.applications)]
    for title, rows in (("Defects not ranked first", misses), ("False alarms", alarms)):
        blocks += [doc.Heading(title, 3), doc.bullets(rows)] if rows else []
    return doc.Document("Accuracy", tuple(blocks))


def _headline(score: Score) -> str:
    controls = sum(pair.category is None for pair in score.pairs)
    gpus = ", ".join(sorted({pair.gpu for pair in score.pairs}))
    counts = f"{plural(score.summary.defects, 'defect')}, {plural(controls, 'control')}"
    texts = [f"{counts}, recorded on {gpus}"] if score.pairs else []
    texts += [
        plural(len(each.stories) + len(each.programs), "application")
        for each in [score.applications]
        if each
    ]
    return "; ".join(texts)


def _story_tables(applications: Applications | None) -> Iterator[doc.Table]:
    """The stories of applications: what was named first, and the ceiling against the gain."""
    if applications is None:
        return
    if applications.programs:
        yield from _program_tables(applications)
    if not applications.stories:
        return
    summary = (
        f"Planted cause named first: {_rounded(applications.named)}. Gain not above its range: "
        f"{_rounded(applications.within)}. Gain of a complete fix or of a control not below its "
        f"range: {_rounded(applications.reached)}. A replay without a change "
        f"differs from the recorded step by up to {applications.replay_error:.1%}. ~: the gain "
        "of the kernels or copies that were made faster, replayed."
    )
    rows = tuple(map(_story_row, applications.stories))
    yield doc.Table("Applications", _STORIES, rows, summary, words=3)


def _program_tables(score: Applications) -> Iterator[doc.Table]:
    """Programs: the causes named, what their kernels' time is, and each change."""
    contradicted = f"{plural(score.contradicted, 'label')} that measurement contradicts"
    others = f", without {contradicted} {_rounded(score.others_named)}"
    summary = (
        f"Cause one of the first two: {_rounded(score.programs_named)}"
        f"{others if score.contradicted else ''}; that of the change which "
        f"gained most: {_rounded(score.best_named)}. At least "
        f"{EXPLAINED:.0%} of the GPU's time explained: {_rounded(score.explained)}. Gain in its "
        f"range: {_rounded(score.changes_within)} of "
        f"{plural(score.changes_found, 'change')} with a finding. Of "
        f'{plural(score.changes_bounded, "change")} with an "at most", exceeded: '
        f"{score.changes_exceeded}. Without a finding: {score.changes_unfound}, of which "
        f"{score.changes_missed} gained {factor(NAMED_STORY)} or more{_missed(score)}."
    )
    yield doc.Table(
        "Programs", _PROGRAMS, tuple(map(_program_row, score.programs)), summary, words=4
    )
    shares = tuple(
        (program.name if place == 0 else "", each.name, f"{each.share:.1%}", each.limit)
        for program in score.programs
        for place, each in enumerate(program.groups)
    )
    yield doc.Table(
        "Steps of programs", ("Program", "Group", "Of the step", "Limit"), shares, words=2
    )
    changes = tuple(
        (
            program.name,
            change.name,
            factor(change.measured),
            _estimate(change),
            "" if math.isnan(change.bound) else factor(change.bound),
            change.missed,
        )
        for program in score.programs
        for change in program.changes
    )
    columns = ("Program", "Change", "Gain", "Estimate", "At most", "Missed")
    yield doc.Table("Changes of programs", columns, changes, words=2)


def _estimate(change: ChangeScore) -> str:
    if change.is_found:
        return factor_range(change.likely, change.low, change.high)
    return "no finding" if change.rules else "no rule"


def _missed(score: Applications) -> str:
    """Changes without a finding that gained, most first."""
    missed = [
        (change.measured, f"{change.name} of {program.name} {factor(change.measured)}")
        for program in score.programs
        for change in program.changes
        if change.missed in {"not found", "no rule"}
    ]
    named = ", ".join(text for _, text in sorted(missed, reverse=True))
    return f" ({named})" if named else ""


def _program_row(program: ProgramScore) -> tuple[str, ...]:
    named = ", ".join(f"{category} {factor(likely)}" for category, likely in program.named[:3])
    labels = ", ".join(filter(None, (program.cause, program.second)))
    named_other = "label gained nothing" if program.contradicted else "other cause"
    mark = "" if program.is_named else named_other
    shares = f"{program.busy:.1%}", f"{program.explained:.1%}"
    return program.name, labels, named, mark, *shares


def _story_row(story: StoryScore) -> tuple[str, ...]:
    kind = "control" if story.control else "complete" if story.complete else "partial"
    marks = ["exceeded"] if story.is_exceeded else []
    marks += ["not reached"] if kind != "partial" and not story.is_reached else []
    marks += [] if story.is_named else ["other cause"]
    ceiling = f"~{factor(story.estimated)}" if story.replayed else factor(story.estimated)
    if story.low < story.estimated:
        ceiling = f"{factor(story.low)} to {ceiling}"
    fixed, first = f"{story.fix} ({kind})", story.first or "-"
    return story.name, fixed, first, factor(story.measured), ceiling, ", ".join(marks)


def _pair_tables(score: Score) -> Iterator[doc.Table]:
    if not score.pairs:
        return
    partial = {f"{name}, partial reports": part for name, part in score.partial.items()}
    yield from set_tables({**score.sets, **partial})
    part = score.summary
    judges = (
        _accuracy("profkit", part.defects, part, part),
        _accuracy("ncu's rules", part.defects, part.ncu),
        _accuracy("always 1.00x", part.defects, part.no_gain),
    )
    note = f"{plural(part.nothing_to_gain, 'report')} checked for false alarms."
    yield doc.Table("All pairs", _SUMMARY, judges, note, words=1)
    rows = tuple(
        _accuracy(name.replace("_", " "), part.defects, part, part)
        for name, part in score.kinds.items()
    )
    yield from [doc.Table("profkit by kind", _SUMMARY, rows, words=1)] if len(rows) > 1 else []
    if blind := score.without_counters:
        yield _blind_table(blind)
    several = len({pair.gpu for pair in score.pairs}) > 1
    note = (
        "Speedup of the fix: measured, predicted by profkit with its range and rank, predicted by "
        "ncu's rules."
    )
    if untimed := sum(pair.measured == "profiled" for pair in score.pairs):
        count = plural(untimed, "pair")
        note += f" ~: from the durations in the reports, {count} without latency.json."
    pairs = tuple(_row(pair, several=several) for pair in score.pairs)
    yield doc.Table("Pairs", _PAIRS, pairs, note, words=2)


def set_tables(sets: Mapping[str, Part]) -> Iterator[doc.Table]:
    """Each set, judged without what it published: accuracy, certainty, and what memory changes."""
    parts = [(name, part) for name, part in sets.items() if part.defects]
    note = (
        "Each set is judged without the fixes of its sources and families. Related: with the "
        "pair's other categories accepted. 1.00x: the factor of predicting no speedup. Width: "
        "median of a range's upper over its lower end. No gain: pairs without one whose first "
        f"finding promises {factor(PROMISED)} or more, by a range that begins there; likely: whose "
        "likely factor is as much. Gain: pairs with one whose first finding promises it. Partial "
        "reports lack stalls, or what resources are busy with."
    )
    yield doc.Table("Sets", _SETS, tuple(_set_row(*each) for each in parts), note, words=1)
    note = (
        "First findings called likely, open or undecided: how many are right, related categories "
        "accepted. By estimates: first in the order by estimates alone. Change: by recorded fixes, "
        "in points, with a 95% bootstrap interval over families."
    )
    yield doc.Table("Certainty", _SURE, tuple(_sure_row(*each) for each in parts), note, words=1)


def _set_row(name: str, part: Part) -> tuple[str, ...]:
    return (
        name,
        str(part.defects),
        _both(part.top1, part.top3),
        _both(part.related1, part.related3),
        *map(_factor, (part.factor, part.no_gain.factor)),
        _rounded(part.coverage),
        _factor(part.median_width),
        _both(part.ncu.top1, part.ncu.top3),
        _both(part.ncu.related1, part.ncu.related3),
        *map(_count, (part.promised, part.likely, part.promised_gains)),
    )


def _sure_row(name: str, part: Part) -> tuple[str, ...]:
    changes = map(_change, (part.change, part.related_change))
    return name, *map(_count, part.sure.values()), _rounded(part.by_estimates.top1), *changes


def _change(change: Change | None) -> str:
    if change is None:
        return ""
    mean, low, high = (f"{100 * share:+.0f}" for share in (change.mean, change.low, change.high))
    return f"{mean} [{low}, {high}]"


def _both(first: float, top3: float) -> str:
    return "n/a" if math.isnan(first) else f"{100 * first:.0f}/{_rounded(top3)}"


def _count(count: Count) -> str:
    return f"{count.right} of {count.among}" if count.among else ""


def _accuracy(
    name: str, defects: int, row: Accuracy, ranges: Part | None = None
) -> tuple[str, ...]:
    """A row; of `ranges` the coverage, and the typical half-width as a factor around the middle."""
    width = _factor(math.sqrt(ranges.median_width)) if ranges else ""
    return (
        name,
        str(defects),
        *map(_rounded, (row.top1, row.top3)),
        _factor(row.factor),
        _rounded(row.mean_error),
        _rounded(ranges.coverage) if ranges else "",
        width,
        _rounded(row.false_alarms),
    )


def _rounded(value: float) -> str:
    return "n/a" if math.isnan(value) else f"{value:.0%}"


def _factor(value: float) -> str:
    return "n/a" if math.isnan(value) else factor(value)


def _blind_table(part: BlindPart) -> doc.Table:
    """The analysis without counters beside the full one, before the fix and after it."""
    own, full = (f"{len(names)} of {part.fixes}" for names in (part.exceeds, part.full_exceeds))
    shares = (part.agree, part.within, part.near), (part.true, part.within_fixed, part.near_fixed)
    agreeing, true = (map(_rounded, each) for each in shares)
    rows = (
        ("by declared work", "", "", "", own, factor(part.typical)),
        ("full analysis", *agreeing, full, factor(part.full_typical)),
        ("fixed kernel", *true, "", ""),
    )
    exceeds = ", ".join(part.exceeds) or "none"
    note = (
        f"{plural(part.pairs, 'report')} before a fix. First: the first finding is of the category "
        "of the full analysis's, or of the pair's defect, by factors fitted without the pair's "
        "family. Headroom by declared work: within 20% of the factor of the row's; its floor, of "
        "the time. Of the fixed kernel: the full analysis's after the fix, times the speedup. Gain "
        f"above it: fixes that gained more than the headroom, by declared work {exceeds}. Headroom "
        "over gain: median of fixes that gained."
    )
    return doc.Table("Without counters", _BLIND, rows, note, words=1)


def _row(pair: PairScore, *, several: bool) -> tuple[str, ...]:
    name = f"{pair.name} ({pair.gpu})" if several else pair.name
    if pair.category is None:
        return (name, "none (control)", *[""] * (len(_PAIRS) - 2))
    span = f" [{pair.range[0]:.2f}, {pair.range[1]:.2f}]" if pair.range else ""
    return (
        name,
        pair.category + (", no gain" if pair.kind == "no_gain" else ""),
        f"{'' if pair.measured == 'timed' else '~'}{factor(pair.achieved)}",
        f"{factor(pair.estimated)}{span}",
        str(pair.rank or "-"),
        factor(pair.ncu.estimated),
    )


def _misses(pairs: Sequence[PairScore]) -> Iterator[doc.Styled]:
    for pair in pairs:
        if pair.has_gained and pair.rank != 1:
            named = ", ".join(f"{each.category} {factor(each.factor)}" for each in pair.named)
            yield doc.styled(doc.code(pair.name), f": {pair.category}; named: {named or 'nothing'}")


def _alarms(pairs: Sequence[PairScore]) -> Iterator[doc.Styled]:
    for pair in pairs:
        for alarm in pair.alarms:
            place = "where its fix gained nothing" if pair.category else "on a control"
            place = "after the fix" if alarm.report == "after" else place
            text = f"{alarm.category} predicts {factor(alarm.speedup)} {place}"
            yield doc.styled(doc.code(pair.name), f": {text}")
