"""Badges of latencies."""

from __future__ import annotations

from profkit.timing.latency_format import LatencyFile
from profkit.timing.latency_view import change, latency_words
from profkit.timing.results import Verdict
from profkit.ui.badge import badge_svg

_BADGE = {
    Verdict.IMPROVED: "#2e7d32",
    Verdict.REGRESSED: "#c62828",
    Verdict.SAME: "#546e7a",
    Verdict.INCONCLUSIVE: "#b26a00",
    Verdict.INVALID: "#6a1b9a",
}


def badge(report: LatencyFile) -> str:
    """A small SVG with the verdicts, or the latencies where nothing was compared."""
    if report.pairs:
        pairs = report.pairs
        worst = max((pair.comparison.verdict for pair in pairs), key=list(_BADGE).index)
        words = ", ".join(f"{pair.b.label} {change(pair.comparison)}" for pair in pairs)
        return badge_svg(worst.name, words, _BADGE[worst])
    words = "; ".join(f"{timed.label} {latency_words(timed)}" for timed in report.series)
    return badge_svg("latency", words, _BADGE[Verdict.SAME])
