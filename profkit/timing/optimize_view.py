"""Which variant to use: its file, `profkit.optimize/1`, and its document."""

from __future__ import annotations

from profkit.core.fingerprint import Fingerprint
from profkit.core.typed_file import File, Model, part
from profkit.core.version import __version__
from profkit.timing.latency_format import Declared
from profkit.timing.latency_view import change, latency_words
from profkit.timing.optimum import LOOKS, Candidate, Optimum, Outcome, Standing
from profkit.timing.results import Verdict
from profkit.timing.verdict import Reason
from profkit.ui import document as doc

_VISIBLE = 0.05  # chosen: a ratio of medians that differs by 5% from that of blocks needs a note
_STANDING = {
    Standing.reaches: "reaches the target speedup",
    Standing.short: "below the target speedup",
    Standing.open: "undecided",
    Standing.invalid: "invalid measurement",
}


def optimize_document(optimum: Optimum) -> doc.Document:
    """The verdict first, then every variant."""
    work = (optimum.target.work.what if optimum.target.work else "") or ""
    lines = [verdict_words(optimum), *([f"  {setting}"] if (setting := _setting(optimum)) else [])]
    times = f"{_seconds(optimum.seconds)} of {_seconds(optimum.budget)}, {optimum.blocks} blocks"
    blocks: list[doc.Block] = [
        doc.Heading(f"{optimum.target.name}  {work}", 1),
        doc.Lines(tuple(lines)),
        _table(optimum),
        *([doc.Lines((), gap=True)] if optimum.left_out else []),
        *(doc.Note(f"{name}: {why}") for name, why in optimum.left_out.items()),
        doc.Lines((f"Time    {times}",), gap=True),
    ]
    return doc.Document(f"Variants of {optimum.target.name}", tuple(blocks))


def _seconds(value: float) -> str:
    return f"{value:.0f} s" if value >= 10 else f"{value:.2g} s"


def verdict_words(optimum: Optimum) -> str:
    """The verdict in a sentence."""
    in_use, best = optimum.in_use.label, optimum.decision.candidate
    match optimum.decision.outcome:
        case Outcome.use if best:
            return f"Use {best.label}: {change(best.comparison)} than {in_use}"
        case Outcome.keep:
            already = f" ({in_use} dispatches to {optimum.chosen})" if optimum.chosen else ""
            words = f"Keep {in_use}{already}: no other variant is {optimum.speedup:.2f}x as fast"
            if best and best.standing is Standing.short and best.comparison.low > 1:
                return f"{words}; {best.label} is {change(best.comparison)}"
            return words
        case Outcome.invalid:
            return "Invalid measurement: throttling, or different SM clocks"
    best_words = f", {best.label} looks best" if best else ""
    if optimum.blocks >= LOOKS[-1]:
        return f"Undecided{best_words}: too much scatter between {optimum.blocks} blocks"
    return f"Undecided{best_words}: give a longer --budget"


def _use(optimum: Optimum) -> str | None:
    """The variant to use, None where none is recommended."""
    best = optimum.decision.candidate
    return best.label if best and optimum.decision.outcome is Outcome.use else None


def _setting(optimum: Optimum) -> str | None:
    """The code that selects the recommended variant."""
    return optimum.settings.get(_use(optimum) or "")


def _table(optimum: Optimum) -> doc.Table:
    in_use, ranking = optimum.in_use, _ranking(optimum)
    rows = [(in_use.label, latency_words(in_use), "in use", "")]
    for candidate in ranking:
        words = latency_words(candidate.pair.b), change(candidate.comparison)
        rows.append((candidate.label, *words, _STANDING[candidate.standing]))
    differ = any(
        abs(in_use.summary.median / each.pair.b.summary.median / each.comparison.speedup - 1)
        > _VISIBLE
        for each in ranking
    )
    return doc.Table(
        f"Variants (target speedup {optimum.speedup:.2f}x)",
        ("Variant", "Median", f"vs {in_use.label}", ""),
        tuple(rows),
        "Ratios: geometric mean over interleaved blocks; medians: over all samples"
        if differ
        else "",
        words=1,
    )


def _ranking(optimum: Optimum) -> list[Candidate]:
    return sorted(optimum.candidates, key=lambda candidate: -candidate.comparison.speedup)


class TimedCandidate(Model, frozen=True, kw_only=True):
    """A variant against the one in use; `median` in seconds, `p_adjusted` is Holm's over all."""

    variant: str
    standing: Standing
    median: float
    speedup: float
    low: float
    high: float
    level: float
    verdict: Verdict
    reason: Reason
    details: tuple[str, ...]
    p_adjusted: float | None
    blocks: int


class OptimizeFile(File, frozen=True, kw_only=True, tag="profkit.optimize/1"):
    """Which variant to `use`, and the evidence; it contains no samples.

    `chosen` is the variant that the one in use dispatches to, `setting` the code that selects the
    one to use; `median` (of the one in use), `budget` and `seconds` are in seconds.
    """

    profkit: str
    target: Declared
    in_use: str
    chosen: str | None
    target_speedup: float
    outcome: Outcome
    verdict: str
    use: str | None
    setting: str | None
    median: float
    candidates: tuple[TimedCandidate, ...]
    left_out: dict[str, str]
    blocks: int
    budget: float
    seconds: float
    fingerprint: Fingerprint
    fingerprint_sha256: str


def optimize_result(optimum: Optimum) -> OptimizeFile:
    """The decision with its evidence."""
    candidates = tuple(
        TimedCandidate(
            variant=candidate.label,
            standing=candidate.standing,
            median=candidate.pair.b.summary.median,
            **part(candidate.comparison, *TimedCandidate.__struct_fields__[3:]),
        )
        for candidate in _ranking(optimum)
    )
    return OptimizeFile(
        profkit=__version__,
        in_use=optimum.in_use.label,
        target_speedup=optimum.speedup,
        outcome=optimum.decision.outcome,
        verdict=verdict_words(optimum),
        use=_use(optimum),
        setting=_setting(optimum),
        median=optimum.in_use.summary.median,
        candidates=candidates,
        left_out=dict(optimum.left_out),
        **part(optimum, "target", "chosen", "blocks", "budget", "seconds"),
        **part(optimum, "fingerprint", "fingerprint_sha256"),
    )
