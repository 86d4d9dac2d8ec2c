"""Claims about work and time: FLOP, bytes, intensity, what bounds, rates, tokens, speedups."""

import math
from collections.abc import Iterator

from msgspec.structs import replace

from profkit.audit.check import Check, Span, amount, quotients
from profkit.audit.claim import SHAPE, UNITS
from profkit.audit.phrases import VOCABULARY
from profkit.audit.subject import PEAK_SLACK, SLACK, Subject, key_label

# What sentences round away besides their digits: 2.3 for 2.25 tokens.
_PROSE_SLACK, _TOKEN_SLACK = 0.01, 0.03
# Cycles are the median over calls, the clock that over blocks: their product is not the same.
_MEDIANS = 0.05
_WRONG = VOCABULARY.wrong


def flop_of_shape(subject: Subject) -> Iterator[Check]:
    """Of attention, and of a product of matrices, which prose rounds: 137 GFLOP for 137.4."""
    for spans, slack in ((_shape_flop(subject), SLACK), (_product_flop(subject), _PROSE_SLACK)):
        yield from subject.check("flop_of_shape", "flop", spans, cause=_WRONG["flop"], slack=slack)


def bytes_of_shape(subject: Subject) -> Iterator[Check]:
    """Every input read once, the output written once."""
    spans = [
        replace(span, calculation=span.calculation + _same_by_rate(subject, span))
        for span in _shape_bytes(subject)
    ]
    yield from subject.check("bytes_of_shape", "bytes", spans, cause=_WRONG["bytes"])


def flop_spans(subject: Subject) -> list[Span]:
    """FLOP by the shape, else as claimed."""
    return _shape_flop(subject) or _product_flop(subject) or subject.spans("flop")


def byte_spans(subject: Subject) -> list[Span]:
    """Bytes by the shape, else as claimed."""
    return _shape_bytes(subject) or subject.spans("bytes")


def _shape_flop(subject: Subject) -> list[Span]:
    """4 B H S² D, half of it where causal."""
    claim = subject.claim
    more = " / 2 (causal)" * bool(claim.causal) + " x 2.5 (backward)" * bool(claim.backward)
    words = (f"4 x B x H x S² x D{more} = 4 x {claim.batch} x {claim.heads} x {claim.length}² x "
             f"{claim.dim} = {{}}")  # fmt: skip
    return [Span.exactly(work.flop, "FLOP", words, SHAPE) for work in subject.works[:1]]


def _product_flop(subject: Subject) -> list[Span]:
    """2 M N K."""
    edges = subject.claim.matrices
    words = f"2 x {' x '.join(map(str, edges))} = {{}}"
    return [Span.exactly(2.0 * math.prod(edges), "FLOP", words, ("matrices",))] if edges else []


def _shape_bytes(subject: Subject) -> list[Span]:
    """Q, K, V read once, O written once."""
    claim = subject.claim
    words = "inputs and outputs of the shape, each moved once: {}"
    spans = []
    for work in subject.works:
        if not (claim.kv_heads or claim.backward):
            size = work.bytes / (4 * math.prod(edge or 0 for edge in claim.shape))
            edges = f"{claim.batch} x {claim.heads} x {claim.length} x {claim.dim} x {size:.0f}"
            words = f"inputs and output, 4 x B x H x S x D x {size:.0f} B = 4 x {edges} = {{}}"
        spans.append(Span.exactly(work.bytes, "B", words, SHAPE))
    return spans


def _same_by_rate(subject: Subject, moved: Span) -> str:
    """That bandwidth times time, claimed in the same place, gives as many bytes."""
    for rate in subject.spans("byte_rate"):
        for time in subject.spans("time"):
            product = rate.times(time, "B")
            if product.low <= moved.value <= product.high:
                where = f" of {subject.lender}" if subject.lender else ""
                return f"; equal to {rate} x {time}{where}"
    return ""


def rates(subject: Subject) -> Iterator[Check]:
    """Amount over time."""
    for field, amounts in (("flop_rate", flop_spans(subject)), ("byte_rate", byte_spans(subject))):
        spans = quotients(amounts, subject.spans("time"), UNITS[field])
        yield from subject.check("amount_over_time", field, spans, cause=_WRONG["rate"])


def rate_ends(subject: Subject) -> Iterator[Check]:
    """The interval of a rate is work over the ends of the interval of the time."""
    for field, end in (("flop_rate_low", "high"), ("flop_rate_high", "low")):
        spans = [
            replace(rate, used=(*rate.used, "low", "high"))
            for rate in quotients(flop_spans(subject), subject.spans(end), "FLOP/s")
        ]
        yield from subject.check("amount_over_time", field, spans)


def intensity(subject: Subject) -> Iterator[Check]:
    """FLOP over bytes: of the shape where there is one, and as claimed."""
    claimed, flop, moved = (subject.claim[name] for name in ("intensity", "flop", "bytes"))
    own = quotients(subject.spans("flop"), subject.spans("bytes"), "FLOP/B")
    cause = ""
    if flop and moved and claimed and own[0].allows(claimed, SLACK):
        cause = (f"computed from the claimed {flop.text} and {moved.text}, which are not those "
                 "of the shape")  # fmt: skip
    spans = quotients(flop_spans(subject), byte_spans(subject), "FLOP/B")
    yield from subject.check("intensity", "intensity", spans, cause=cause)


def speedup(subject: Subject) -> Iterator[Check]:
    """Time before over time after."""
    spans = quotients(subject.spans("baseline"), subject.spans("time"), "x")
    yield from subject.check("speed_up", "speedup", spans)


def cycles(subject: Subject) -> Iterator[Check]:
    """Cycles are time times the clock that was held."""
    spans = [
        time.times(clock, "cycles", "time x clock = {}")
        for time in subject.spans("time")
        for clock in subject.spans("held_clock")
    ]
    yield from subject.check("cycles", "cycles", spans, slack=_MEDIANS)


def ridge(subject: Subject) -> Iterator[Check]:
    """A claimed ridge is where the roofs meet."""
    spans = [
        replace(span, calculation=f"compute peak / memory bandwidth = {span.calculation}")
        for span in _ridges(subject)
    ]
    yield from subject.check("ridge", "ridge", spans, slack=PEAK_SLACK)


def bound(subject: Subject) -> Iterator[Check]:
    """Compute-bound lies right of the ridge, memory-bound left of it."""
    claim = subject.claim
    # by the shape (largest first, where the element size is open), else as claimed
    values = sorted((work.intensity for work in subject.works), reverse=True)
    by_shape = [Span.exactly(value, "FLOP/B", used=SHAPE) for value in values]
    points = (by_shape or subject.spans("intensity")) if claim.bound else []
    ridges = points and (subject.spans("ridge") or _ridges(subject))
    if "bound" in subject.borrowed or not ridges:
        return
    low, high = (end(span.value for span in ridges) for end in (min, max))
    left = points[0].high * (1 + PEAK_SLACK) < low
    right = points[-1].low * (1 - PEAK_SLACK) > high
    side, ridge = ("left", low) if left else ("right", high)
    known = (span.calculation for span in _ridges(subject) if span.value == ridge)
    yield subject.statement(
        "bound", "bound", f"{claim.bound}-bound",
        f"{points[0]} is {side} of the ridge point, {next(known, amount(ridge, 'FLOP/B'))}",
        f"{'memory' if left else 'compute'}-bound by the roofline",
        _lower_ridge(subject, points[0].value) if left else
        "unless the kernel moves more than the minimum (compulsory) traffic",
        wrong=left if claim.bound == "compute" else right, doubt=right,
        used=(*points[0].used, *ridges[0].used),
    )  # fmt: skip


def _ridges(subject: Subject) -> list[Span]:
    """FLOP/B where roofs meet: those of the datasheets, and of the claim at a held clock."""
    claim, spans = subject.claim, []
    only_held = claim.peak_of in ("held", "measured")
    keys = () if only_held else subject.rate_peaks()
    for sheet in subject.sheets:
        dram = Span.exactly(sheet.peaks["dram"].value, "B/s")
        for key in (key for key in keys if key in sheet.peaks):
            compute = Span.exactly(sheet.peaks[key].value, "FLOP/s")
            words = f"{compute} / {dram} = {{}} ({key_label(key)})"
            spans.append(compute.over(dram, "FLOP/B", words))
    held = claim["held_peak"] or (claim["flop_peak"] if only_held else None)
    if held and (bandwidth := claim["byte_peak"]):
        spans.append(Span.exactly(held.value / bandwidth.value, "FLOP/B"))
    return spans


def _lower_ridge(subject: Subject, intensity: float) -> str:
    """Which lower peak would put the ridge left of an intensity."""
    for sheet in subject.sheets:
        for key in ("fp32", *sheet.peaks):
            lower = sheet.peaks[key].value / sheet.peaks["dram"].value
            if key != "dram" and key not in subject.rate_peaks() and lower < intensity:
                ridge = amount(lower, "FLOP/B")
                return f"with {key_label(key)}'s peak the ridge point would be {ridge}"
    return ""


def tokens(subject: Subject) -> Iterator[Check]:
    """Tokens/s times what a token takes is a rate; tokens over time are tokens/s."""
    for kind, field, unit in (("flop", "flop_per_token", "FLOP"), ("byte", "bytes_per_token", "B")):
        for cost in subject.spans(field):
            yield from _token_rates(subject, kind, cost, unit)
    spans = [
        tokens.times(Span.exactly(size), "").over(
            time, "tokens/s", f"{subject.text('tokens')} / {time} = {{}}"
        )
        for tokens in subject.spans("tokens")
        for time in subject.spans("time")
        for size in (1, subject.claim.batch or 1)  # of one sequence, or of each of a batch
    ]
    yield from subject.check("tokens", "token_rate", spans, slack=_TOKEN_SLACK)


def _token_rates(subject: Subject, kind: str, cost: Span, unit: str) -> Iterator[Check]:
    """By what a token takes: the rate that tokens/s need, and the tokens/s that peaks allow."""
    words = f"{subject.text('token_rate')} x {cost} = {{}}"
    spans = [rate.times(cost, f"{unit}/s", words) for rate in subject.spans("token_rate")]
    yield from subject.check("tokens", f"{kind}_rate", spans, slack=_TOKEN_SLACK)
    limit = max(subject.peaks(kind), default=0.0) if kind == "byte" else subject.rate_limit()
    # A token without batching reads its bytes itself; its FLOP are its own in any case.
    if limit and (kind == "flop" or (subject.claim.batch or 1) == 1):
        words = f"at most {amount(limit, f'{unit}/s')} / {cost} = {{}}"
        most = Span.up_to(limit / cost.value, "tokens/s", words, cost.used)
        high = limit / cost.low
        rounded = f" ({amount(high, 'tokens/s')} if {subject.text(*cost.used)} is rounded up)"
        most = replace(most, high=high, calculation=most.calculation + rounded)
        yield from subject.check(
            "above_peak", "token_rate", [most], slack=_TOKEN_SLACK, should_be="at most {}"
        )
    peaks = subject.peaks(kind) if kind == "byte" else (limit,) * bool(limit)
    claimed = [*subject.spans(f"{kind}_peak"), *subject.spans(f"{kind}_rate")]
    words = f"a rate over {subject.text(*cost.used)} per token is {{}}"
    spans = [rate.over(cost, "tokens/s", words) for rate in claimed or map(Span.exactly, peaks)]
    yield from subject.check("tokens", "token_limit", spans, slack=_TOKEN_SLACK)


def row_tokens(subject: Subject) -> Iterator[Check]:
    """Of a row with a shape: batch times length is what a call takes of tokens."""
    claim = subject.claim
    if not claim.text and claim.batch and claim.length:
        tokens = Span.exactly(claim.batch * claim.length, used=("batch", "length"))
        words = f"{claim.batch} x {claim.length} tokens per call: {{}}"
        spans = [tokens.over(time, "tokens/s", words) for time in subject.spans("time")]
        yield from subject.check("tokens", "token_rate", spans)
