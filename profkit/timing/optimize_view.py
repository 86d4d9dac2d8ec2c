"""Which variant to use, for people and as `profkit.optimize/1` JSON."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from profkit.core.fingerprint import Fingerprint
from profkit.core.typed_file import File, Model, encode, part
from profkit.core.version import __version__
from profkit.timing.latency_format import Declared
from profkit.timing.latency_view import change, latency_words
from profkit.timing.optimizing import Optimum
from profkit.timing.optimum import LOOKS, Candidate, Outcome, Standing
from profkit.timing.results import Verdict
from profkit.timing.verdict import Reason
from profkit.ui.terminal import rendered, table_of
from profkit.ui.text import literal
from profkit.ui.view import Grid

_VISIBLE = 0.05
_STANDING = {
    Standing.reaches: "reaches the target",
    Standing.short: "falls short of it",
    Standing.open: "not decided",
    Standing.invalid: "the environment moved",
}


def optimize_terminal(found: Optimum, *, to_file: bool = False) -> str:
    """The verdict first, then every variant."""
    work = (found.target.work.what if found.target.work else "") or ""
    parts: list[RenderableType] = [
        Text(literal(f"{found.target.name}  {work}"), "bold"),
        Text(literal(verdict_words(found))),
    ]
    setting = setting_of(found)
    if setting:
        parts.append(Text(literal(f"  {setting}"), "cyan"))
    parts.append(table_of(_grid(found), numbers=True))
    if found.left_out:
        parts.append(Text())
    parts += [Text(literal(f"! {name}: {why}"), "yellow") for name, why in found.left_out.items()]
    spent = f"{_seconds(found.seconds)} of {_seconds(found.budget)}, {found.blocks} blocks"
    parts += [Text(), Text(f"Time    {spent}")]
    return rendered(Group(*parts), to_file=to_file)


def _seconds(value: float) -> str:
    return f"{value:.0f} s" if value >= 10 else f"{value:.2g} s"


def verdict_words(found: Optimum) -> str:
    """The verdict in a sentence."""
    in_use, best = found.in_use.label, found.decision.candidate
    target = f"{found.speedup:.2f}x"
    match found.decision.outcome:
        case Outcome.use if best:
            return f"Use {best.label}: {change(best.pair.comparison)} than {in_use}"
        case Outcome.keep:
            already = f" ({in_use} is already {found.chosen})" if found.chosen else ""
            words = f"Keep {in_use}{already}: nothing else is {target} as fast"
            if best and best.standing is Standing.short and best.pair.comparison.low > 1:
                return f"{words}; {best.label} is {change(best.pair.comparison)}"
            return f"{words}, nothing to gain"
        case Outcome.invalid:
            return "Not a measurement to believe: the environment moved"
        case _:
            best_words = f", {best.label} looks best" if best else ""
            if found.blocks >= LOOKS[-1]:
                return f"Not decided{best_words}: {found.blocks} blocks scatter too much to tell"
            return f"Not decided{best_words}: give a longer --budget"


def setting_of(found: Optimum) -> str:
    """What a program writes to have what is recommended; "" where nothing is."""
    best = found.decision.candidate
    if found.decision.outcome is Outcome.use and best:
        return found.settings.get(best.label, "")
    return ""


def _grid(found: Optimum) -> Grid:
    rows = [(literal(found.in_use.label), latency_words(found.in_use), "in use", "")]
    rows += [
        (
            literal(one.label),
            latency_words(one.pair.b),
            change(one.pair.comparison),
            _STANDING[one.standing],
        )
        for one in _ranked(found)
    ]
    return Grid(
        f"Variants, {found.speedup:.2f}x asked for",
        ("Variant", "Median", f"Against {literal(found.in_use.label)}", ""),
        tuple(rows),
        "Ratios are the mean over blocks that took turns, medians are over all samples"
        if any(_differ(found, one) for one in found.candidates)
        else "",
    )


def _differ(found: Optimum, one: Candidate) -> bool:
    """Whether the ratio of the medians is visibly another than that of the blocks."""
    medians = found.in_use.summary.median / one.pair.b.summary.median
    return abs(medians / one.pair.comparison.speedup - 1) > _VISIBLE


def _ranked(found: Optimum) -> list[Candidate]:
    return sorted(found.candidates, key=lambda one: -one.pair.comparison.speedup)


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
    """Which variant to `use`, and what that rests on; samples are not in it.

    `chosen` is the variant that the one in use comes down to, `setting` what a program writes to
    have the one to use; `median`, of the one in use, `budget` and `seconds` in seconds.
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


def optimize_json(found: Optimum) -> str:
    """The decision with what it rests on."""
    best = found.decision.candidate
    file = OptimizeFile(
        profkit=__version__,
        target=found.target,
        in_use=found.in_use.label,
        chosen=found.chosen,
        target_speedup=found.speedup,
        outcome=found.decision.outcome,
        verdict=verdict_words(found),
        use=best.label if best and found.decision.outcome is Outcome.use else None,
        setting=setting_of(found) or None,
        median=found.in_use.summary.median,
        candidates=tuple(map(_candidate, _ranked(found))),
        left_out=dict(found.left_out),
        blocks=found.blocks,
        budget=found.budget,
        seconds=found.seconds,
        fingerprint=found.fingerprint,
        fingerprint_sha256=found.fingerprint_sha256,
    )
    return encode(file, dense=False)


def _candidate(candidate: Candidate) -> TimedCandidate:
    return TimedCandidate(
        variant=candidate.label,
        standing=candidate.standing,
        median=candidate.pair.b.summary.median,
        **part(candidate.pair.comparison, *TimedCandidate.__struct_fields__[3:]),
    )
