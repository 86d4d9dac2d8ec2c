"""Latencies and verdicts as JSON, `profkit.time/1`: the schema is `profkit/schemas/time.json`.

Times are in seconds, shares of 1. Raw samples are always in it: the file is what
`profkit time --from` and `profkit compare` read. It holds nothing of the host.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from profkit.core.json_text import json_text
from profkit.core.version import __version__
from profkit.timing.latency import LatencyReport, Pair, Rate, Timed
from profkit.timing.latency_file import SCHEMA, Latency
from profkit.timing.latency_view import sentence, settling_options, warnings
from profkit.timing.statistics import Interval, Summary

Json = dict[str, Any]


def latency_json(report: LatencyReport) -> str:
    """The report with its samples."""
    document = {
        "schema": SCHEMA,
        "profkit": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": report.seed,
        "warmup": report.warmup,
        "series": [_series(timed, report) for timed in report.timed],
        "comparisons": [_pair(pair, report) for pair in report.pairs],
        "thresholds": asdict(report.thresholds),
        "floor": report.floor,
        "left_out": dict(report.left_out),
        "warnings": list(warnings(report)),
        "fingerprint": dict(report.fingerprint),
        "fingerprint_sha256": report.fingerprint_sha256 or None,
        "seconds": report.seconds,
        "spans": dict(report.spans),
    }
    return json_text(document)


def _series(timed: Timed, report: LatencyReport) -> Json:
    latency = timed.latency
    return {
        "label": latency.label,
        "timer": latency.timer,
        "cache": latency.cache,
        "target": dict(latency.target),
        "gpu": dict(latency.gpu),
        "check": dict(latency.check),
        "ready": dict(latency.ready),
        "interval": _interval(timed.interval),
        "without_level": timed.without_level or None,
        "statistics": statistics_json(timed.summary),
        "flop_rate": _rate(timed.flop_rate),
        "bandwidth": _rate(timed.bandwidth),
        "throttled_blocks": dict(timed.throttled),
        "launch_bound": timed.launch_bound,
        "sentence": sentence(timed, report),
        "blocks": blocks_json(latency),
    }


def blocks_json(latency: Latency) -> list[Json]:
    """The blocks of a series with their samples."""
    return [
        {
            "turn": block.turn,
            "seconds": block.seconds,
            "gpu": None if block.gpu is None else asdict(block.gpu),
            "overtaken": block.overtaken,
            "sm_clock": block.sm_clock,
            "samples": list(block.samples),
        }
        for block in latency.blocks
    ]


def statistics_json(summary: Summary) -> Json:
    """The statistics of a series."""
    return {
        "n": summary.n,
        "median": summary.median,
        "mean": summary.mean,
        "std": summary.std,
        "cv": summary.cv,
        "percentiles": [asdict(entry) for entry in summary.percentiles],
        "interval": _interval(summary.interval),
        "refused": summary.refused.value if summary.refused else None,
        "order_interval": _interval(summary.order_interval),
        "tick": summary.tick,
        "autocorrelation": summary.autocorrelation,
        "raw_autocorrelation": summary.raw_autocorrelation,
        "effective_n": summary.effective_n,
        "drift": asdict(summary.drift) if summary.drift else None,
        "outliers": summary.outliers,
        "startup": summary.startup,
        "independence": {
            "state": summary.independence.state.value,
            "reasons": [reason.value for reason in summary.independence.reasons],
        },
    }


def _interval(interval: Interval | None) -> Json | None:
    return None if interval is None else asdict(interval) | {"claim": interval.claim.value}


def _rate(rate: Rate | None) -> Json | None:
    return None if rate is None else asdict(rate) | {"share": rate.share}


def _pair(pair: Pair, report: LatencyReport) -> Json:
    comparison = pair.comparison
    return {
        "a": pair.a.label,
        "b": pair.b.label,
        "verdict": comparison.verdict.value,
        "reason": comparison.reason.value,
        "details": list(comparison.details),
        "clocks": list(pair.clocks) if pair.clocks else None,
        "speedup": comparison.speedup,
        "low": comparison.low,
        "high": comparison.high,
        "level": comparison.level,
        "margin": {"value": comparison.margin.value, "source": comparison.margin.source.value},
        "resolution": comparison.resolution,
        "detectable": comparison.detectable,
        "blocks": comparison.blocks,
        "blocks_needed": comparison.blocks_needed,
        "p_value": comparison.p_value,
        "p_adjusted": comparison.p_adjusted,
        "dependence": comparison.dependence,
        "ratios": list(comparison.ratios),
        "classic": {
            "delta": comparison.classic.delta.value,
            "separation": comparison.classic.delta.separation.value,
            "p_value": comparison.classic.delta.p_value,
            "apart": comparison.classic.apart,
            "speedup": comparison.classic.speedup,
            "claimable": comparison.classic.claimable,
        },
        "settle": " ".join(settling_options(pair, report.thresholds)) or None,
    }
