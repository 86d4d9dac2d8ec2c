"""The part of a written baseline that looks beyond it: what to beat, profiles, others' figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

from profkit.audit.audit import Outcome
from profkit.audit.contradiction import Contradiction
from profkit.comparison import text as diff_words
from profkit.rules import finding_text as findings
from profkit.rules.checklist import Item
from profkit.study.published import Against, Overclaims, Shortfall, overclaims
from profkit.study.report_model import Profiled, Step, Written
from profkit.study.summary import Row
from profkit.study.written import words
from profkit.timing.latency import Timed
from profkit.timing.latency_view import latency_words
from profkit.timing.statistics import CLAIMABLE_SPEEDUP
from profkit.ui.document import (
    Block,
    Bullets,
    Heading,
    Paragraph,
    Table,
    cells,
    unmarked,
    verbatim,
)
from profkit.ui.text import number, percent, plural, seconds_between, shorten

_FINDINGS, _LARGEST = 5, 3
_LONGEST = 60
_PUBLISHED_DIGITS = 3  # as the sources print their figures


def to_beat(written: Written) -> Iterator[Block]:
    """The top cells with what a change must reach, and what their profiles found."""
    yield Heading(2, "What must be beaten")
    if not written.goals:
        yield Paragraph("No cell has a time.")
        return
    first = written.goals[0]
    yield Paragraph(
        "A change may be claimed an improvement over a cell where its interval lies below the "
        f"cell's, Cliff's delta is at least {first.delta} (of all pairs of a sample before and one "
        f"after, at least {percent(first.pairs)} have the latter faster), and its median is at "
        f"least {CLAIMABLE_SPEEDUP:.2f} times as fast. These are necessary: a verdict needs blocks "
        f"that take turns (`profkit time --against`). The {plural(len(written.goals), 'shape')} "
        "with the highest rates:"
    )
    yield Table(
        "",
        ("Shape", "Backend", "Median now", "Interval now", "Median at most", "Interval below"),
        cells([
            [verbatim(one.row.shape), verbatim(one.row.backend),
             f"{_milliseconds(one.row.seconds or 0.0, words.digits(one.row))} ms",
             words.interval(one.row, _ends),
             *(["measure it anew"] * 2 if one.below is None
               else [f"{_at_most(one.median)} ms", f"{_at_most(one.below)} ms"])]
            for one in written.goals
        ]),
        words=2,
    )  # fmt: skip
    if any(one.below is None for one in written.goals):
        yield Paragraph(
            "Nothing can be claimed over a cell without an interval, or with one that claims "
            "nothing for gaps of the host: it is to be measured anew, until its samples are steady."
        )
    yield Heading(3, "Profiles")
    if not written.profiled:
        yield Paragraph(
            "No cell was profiled (`profkit baseline run ... --profile top` does it), so what "
            "limits them is not told here."
        )
    for one in written.profiled:
        yield from _profile(one)


def _profile(told: Profiled) -> Iterator[Block]:
    yield Heading(4, verbatim(told.id))
    if told.found is None:
        yield Paragraph(f"Not profiled: {unmarked(told.reason or 'no reason was kept')}.")
        return
    yield Paragraph(unmarked(told.headline) + _busiest(told))
    if told.found.findings:
        first = told.found.findings[:_FINDINGS]
        yield Bullets(tuple(_item(item) for item in first), boxes=True)
    else:
        yield Paragraph(f"{unmarked(findings.summary(told.found))}.")
    for kernel, line in findings.roofs(told.found):
        yield Paragraph(f"At a roof: {verbatim(shorten(kernel, _LONGEST))}: {unmarked(line)}")


def _busiest(told: Profiled) -> str:
    busy = ", ".join(f"{one.label} {percent(one.busy)}" for one in told.busiest)
    return f". Of its cycles were busy: {busy}." if busy else ""


def _item(item: Item) -> str:
    estimate = item.finding.estimate
    gain = f"{findings.gain(estimate)} " if estimate else ""
    seen = unmarked("; ".join(findings.evidence(item)))
    actions = " ".join(map(unmarked, item.actions))
    kernel = verbatim(shorten(findings.kernel_name(item.group), _LONGEST)) if item.group else ""
    where = f", {kernel}" if kernel else ""
    return f"**{unmarked(gain)}{unmarked(item.rule.title)}**{where} ({seen}). {actions}"


def published(written: Written) -> Iterator[Block]:
    """The cells beside published figures of the same shapes."""
    yield Heading(2, "Comparison with published numbers")
    if not written.against:
        yield Paragraph(
            "No published figure that comes with profkit is of a shape in this baseline."
        )
        return
    yield Paragraph(
        "Figures of the same shape, dtype and mask, as published. Rates are FLOP over time, "
        "4·B·H·S²·D forward and half of it causal on both sides; shares are of each GPU's own "
        "dense datasheet peak. Ratios are this baseline's over the published figure; that of "
        "times, where it is given, the published time over this one's: above 1 this baseline is "
        "faster in each. Where the backend there and the one here differ, a ratio compares two "
        "programs. Different GPUs, libraries, caches and timers lie between them: such a ratio is "
        "no verdict, and neither heads nor batch divide it."
    )
    for source in dict.fromkeys(one.figure.series for one in written.against):
        group = [one for one in written.against if one.figure.series == source]
        yield from _series(group)
    yield from _faults(written.against)
    yield from _claims(written.claims)


def _series(group: Sequence[Against]) -> Iterator[Block]:
    figure = group[0].figure
    timed = any(one.time_ratio is not None for one in group)
    columns = (
        "Shape", "Backend there", "Backend here", "Published", "Here", "Ratio", "of peak there",
        "of peak here", "Ratio of shares", *(("Time ratio",) if timed else ()),
    )  # fmt: skip
    yield Table(
        f"{unmarked(figure.series)}, {figure.gpu}: {unmarked(figure.source)}",
        columns,
        cells([_against(one, timed) for one in group]),
        words=3,
    )
    notes = [*_shortfalls(group), *_without_claim(group)]
    if notes:
        yield Bullets(tuple(notes))


def _shortfalls(group: Sequence[Against]) -> Iterator[str]:
    """What the data have on each cell that stays a tenth or more below its figure."""
    for one in group:
        if one.shortfall is not None:
            told = f"{verbatim(one.row.id)} reaches {one.rate_ratio:.3f} of the published rate"
            yield f"{told}: {_explained(one.row, one.shortfall)}"


def _explained(row: Row, short: Shortfall) -> str:
    known = "; ".join((*_causes(row, short), *_state(row, short)))
    if not short.has_evidence:
        beside = f" ({known})" if known else ""
        return f"unexplained, nothing in the data has a reason for it{beside}."
    if short.clock_suffices or short.by_other_means:
        return f"{known}."
    return f"{known}. The rest is unexplained."


def _causes(row: Row, short: Shortfall) -> Iterator[str]:
    """What may have cost time."""
    if short.other_backend:
        yield "it is another backend"
    if short.capped:
        yield f"{short.capped} of {row.blocks} blocks met a power cap"
    if short.slowed and short.at_highest is not None:
        yield (
            f"{_clock(row, short)}, and in proportion the highest clock would give "
            f"{short.at_highest:.3f} of the published rate"
        )
    if short.overtaken:
        yield words.gaps(row)
    if short.launch_bound:
        yield "the host needs longer to submit a call than the GPU for its work"


def _state(row: Row, short: Shortfall) -> Iterator[str]:
    """What else is known of the GPU then."""
    if row.power is not None:
        limit = f" of {short.power_limit:.0f} W" if short.power_limit else ""
        yield f"the power before blocks was {row.power:.0f} W{limit}"
    if short.clock is not None and not short.slowed:
        yield _clock(row, short)
    if not short.capped:
        yield "no block met a power cap"


def _clock(row: Row, short: Shortfall) -> str:
    read = ", read before the blocks, which is rough," if row.clock_is_read else ""
    return (
        f"the SM clock{read} was {words.quantity(row.sm_clock, 'Hz')}, "
        f"{words.share(short.clock)} of the highest ({words.quantity(short.highest_clock, 'Hz')})"
    )


def _without_claim(group: Sequence[Against]) -> Iterator[str]:
    rows = {one.row.id: one.row for one in group if one.claims_nothing}
    for name, row in rows.items():
        yield f"{verbatim(name)}: {words.gaps(row)}, so its interval claims nothing."


def _against(one: Against, timed: bool) -> list[str]:
    row = one.row
    line = [
        verbatim(row.shape), verbatim(one.figure.backend), verbatim(row.backend),
        number(one.figure.flop_rate, "FLOP/s", _PUBLISHED_DIGITS),
        words.bare(row.flop_rate, "FLOP/s", row),
        f"{one.rate_ratio:.2f}", words.share(one.figure.share), words.share(row.share_of_datasheet),
        words.decimal(one.share_ratio),
    ]  # fmt: skip
    return [*line, words.decimal(one.time_ratio)] if timed else line


def _faults(against: Sequence[Against]) -> Iterator[Block]:
    """What these samples say of the intervals that were published of them."""
    found = overclaims(against)
    if not found.judged:
        return
    yield Heading(3, "The published intervals of these samples")
    reasons = "; ".join(_overclaims(found))
    yield Paragraph(
        "These cells are the published samples themselves, so the medians agree. Of "
        f"{plural(found.judged, 'published interval')}, {found.faulty} claim more than the samples "
        f"support{f': {reasons}' if reasons else ''}. One may have several faults."
    )
    yield Table(
        "",
        ("Shape", "What is wrong", "Published", "Supported", "Autocorr.", "Effective N", "Drift",
         "Slow at first"),
        cells([
            _judged(one) for one in against if one.same_samples and one.figure.low is not None
        ]),
        words=2,
    )  # fmt: skip


def _overclaims(found: Overclaims) -> Iterator[str]:
    for count, what in (
        (found.autocorrelated, "of autocorrelated samples, taken for independent"),
        (found.drifting, "of a run that drifts"),
        (found.started_up, "of a run that begins with slow samples"),
        (found.one_tick, "one step of the timer wide"),
    ):
        if count:
            yield f"{count} {'is' if count == 1 else 'are'} {what}"


def _judged(one: Against) -> list[str]:
    row, figure = one.row, one.figure
    return [
        verbatim(row.shape), _wrong(one),
        seconds_between(figure.low or 0.0, figure.high or 0.0), words.interval(row),
        words.decimal(row.autocorrelation), words.decimal(row.effective_n, 1),
        words.NONE if row.drift is None else f"{row.drift:+.1%}", str(row.startup or 0),
    ]  # fmt: skip


def _wrong(one: Against) -> str:
    """The faults of a published interval, with what the samples have that it does not count."""
    if not one.faults:
        return "nothing seen"
    because = f" ({', '.join(one.row.dependence)})" if one.row.dependence else ""
    return "; ".join(fault.value for fault in one.faults) + because


def _claims(found: Sequence[Outcome]) -> Iterator[Block]:
    """What was published with the figures and does not hold."""
    if not found:
        return
    yield Heading(3, "Published claims that do not hold")
    yield Paragraph(
        "Sentences and figures that were published with those above, as they stand; "
        "`profkit audit` holds them against each other, the shapes and the datasheets."
    )
    yield Bullets(tuple(_claim(outcome) for outcome in found))


def _claim(outcome: Outcome) -> str:
    claim = outcome.claim
    sizes = zip("BHSD", claim.shape, strict=True)
    said = claim.text or " ".join(f"{letter}={size}" for letter, size in sizes)
    return f"**{unmarked(said)}**: {' '.join(map(_contradiction, outcome.contradictions))}"


def _contradiction(one: Contradiction) -> str:
    likely = f"; likely {one.cause}" if one.cause else ""
    return unmarked(f"{one.claimed}: {one.follows}{likely}; it should be {one.should_be}.")


def ablation(written: Written) -> Iterator[Block]:
    """The steps of a ladder as an ablation study; an empty row to fill in where there is none."""
    yield Heading(2, "Ablation")
    columns = (
        "Step", "Hypothesis", "What changed under ncu", "Limited by now", "Estimate", "Before",
        "After", "Speed-up", "Delta", "Verdict",
    )  # fmt: skip
    if not written.steps:
        yield Paragraph(
            "A row for each change that is tried, measured in turns with what it changes: "
            "`profkit diff BEFORE AFTER --ablation NAME` writes its evidence. Give a recording of "
            "such variants with `--ablation DIR`, and the table is filled from it."
        )
        yield Table("", columns, (tuple("..." for _ in columns),), words=4)
        return
    yield Paragraph(
        f"From the recording {verbatim(written.steps_title)}: each variant after the one before "
        "it, from blocks that took turns. The hypothesis is the first finding on the variant "
        "before, its estimate what profkit promised for fixing that finding alone; a step may "
        "change more than that. What changed is by profkit diff's attribution, which adds up to "
        f"the change of ncu's durations: the {_LARGEST} largest causes, the sum of the others, and "
        "kernels that are new or gone, with their time."
    )
    yield Table("", columns, cells([_step(one) for one in written.steps]), words=4)


def _step(step: Step) -> list[str]:
    pair, comparison = step.pair, step.pair.comparison
    estimate = step.aim.finding.estimate if step.aim else None
    return [
        f"{verbatim(pair.a.label)} → {verbatim(pair.b.label)}",
        unmarked(step.aim.rule.title) if step.aim else "none: nothing was found",
        unmarked(_changed(step)),
        unmarked(step.limit.rule.title) if step.limit else "no rule holds",
        unmarked(findings.gain(estimate)) if estimate else "none was promised",
        _latency(pair.a), _latency(pair.b),
        f"{comparison.speedup:.3g}x [{comparison.low:.3g}, {comparison.high:.3g}]",
        f"{comparison.classic.delta:+.2f}", comparison.verdict.name,
    ]  # fmt: skip


def _changed(step: Step) -> str:
    """The largest causes of the change of time, the sum of the others, kernels new and gone."""
    causes, others = step.causes(_LARGEST)
    if step.evidence is None or not causes:
        return words.NONE
    told = [(diff_words.label(cause), cause.seconds) for cause in causes]
    told += [("all other causes", others)]
    told += [(f"{group.name}, new", group.total) for group in step.evidence.added]
    told += [(f"{group.name}, gone", -group.total) for group in step.evidence.removed]
    return "; ".join(f"{name} {diff_words.signed(seconds)}" for name, seconds in told)


def _latency(timed: Timed) -> str:
    return latency_words(timed)


def _at_most(seconds: float) -> str:
    """Milliseconds in four digits, rounded down: what is printed must meet the rule too."""
    return _milliseconds(seconds, rounding=ROUND_FLOOR)


def _milliseconds(seconds: float, digits: int = 4, rounding: str = ROUND_HALF_EVEN) -> str:
    exact = Decimal(seconds * 1e3)
    return f"{exact.quantize(Decimal(1).scaleb(exact.adjusted() - digits + 1), rounding):f}"


def _ends(low: float, high: float) -> str:
    return f"[{_milliseconds(low, 5)}, {_milliseconds(high, 5)}] ms"
