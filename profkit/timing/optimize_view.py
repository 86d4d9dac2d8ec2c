"""Which variant to use, for people and as `profkit.optimize/1` JSON."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from profkit.core.version import __version__
from profkit.timing.latency_view import change, latency_words
from profkit.timing.optimizing import Optimum
from profkit.timing.optimum import LOOKS, Candidate, Outcome, Standing
from profkit.ui.terminal import rendered, table_of
from profkit.ui.text import literal
from profkit.ui.view import Grid

SCHEMA = "profkit.optimize/1"
_VISIBLE = 0.05
_STANDING = {
    Standing.reaches: "reaches the target",
    Standing.short: "falls short of it",
    Standing.open: "not decided",
    Standing.invalid: "the environment moved",
}


def optimize_terminal(found: Optimum, *, to_file: bool = False) -> str:
    """The verdict first, then every variant."""
    work = (found.target.get("work") or {}).get("what") or ""
    parts: list[RenderableType] = [
        Text(literal(f"{found.target['name']}  {work}"), "bold"),
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


def optimize_json(found: Optimum) -> str:
    """The decision with what it rests on; samples are not in it."""
    best = found.decision.candidate
    document = {
        "schema": SCHEMA,
        "profkit": __version__,
        "target": dict(found.target),
        "in_use": found.in_use.label,
        "chosen": found.chosen,
        "target_speedup": found.speedup,
        "outcome": found.decision.outcome.value,
        "verdict": verdict_words(found),
        "use": best.label if best and found.decision.outcome is Outcome.use else None,
        "setting": setting_of(found) or None,
        "median": found.in_use.summary.median,
        "candidates": [_candidate(one) for one in _ranked(found)],
        "left_out": dict(found.left_out),
        "blocks": found.blocks,
        "budget": found.budget,
        "seconds": found.seconds,
        "fingerprint": dict(found.fingerprint),
        "fingerprint_sha256": found.fingerprint_sha256,
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _candidate(one: Candidate) -> dict[str, Any]:
    comparison = one.pair.comparison
    return {
        "variant": one.label,
        "standing": one.standing.value,
        "median": one.pair.b.summary.median,
        "speedup": comparison.speedup,
        "low": comparison.low,
        "high": comparison.high,
        "level": comparison.level,
        "verdict": comparison.verdict.value,
        "reason": comparison.reason.value,
        "details": list(comparison.details),
        "p_adjusted": comparison.p_adjusted,
        "blocks": comparison.blocks,
    }
