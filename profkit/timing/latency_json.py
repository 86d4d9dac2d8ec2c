"""Latencies and verdicts as JSON: `profkit time --from` and `profkit compare` read it."""

from __future__ import annotations

from msgspec import structs

from profkit.core.timestamp import timestamp
from profkit.core.typed_file import encode
from profkit.core.version import __version__
from profkit.timing.latency import LatencyReport, Timed
from profkit.timing.latency_format import LatencyFile, Series
from profkit.timing.latency_view import sentence, settling_options, warnings


def latency_json(report: LatencyReport) -> str:
    """The report with its samples."""
    return encode(
        LatencyFile(
            profkit=__version__,
            created=timestamp(),
            seed=report.seed,
            warmup=report.warmup,
            series=tuple(_series(timed, report) for timed in report.timed),
            comparisons=tuple(
                structs.replace(
                    pair.comparison,
                    settle=" ".join(settling_options(pair, report.thresholds)) or None,
                )
                for pair in report.pairs
            ),
            thresholds=report.thresholds,
            floor=report.floor,
            left_out=dict(report.left_out),
            warnings=tuple(warnings(report)),
            fingerprint=report.fingerprint,
            fingerprint_sha256=report.fingerprint_sha256 or None,
            seconds=report.seconds,
            spans=dict(report.spans),
        )
    )


def _series(timed: Timed, report: LatencyReport) -> Series:
    return Series(
        **structs.asdict(timed.latency),
        interval=timed.interval,
        without_level=timed.without_level or None,
        statistics=timed.summary,
        flop_rate=timed.flop_rate,
        bandwidth=timed.bandwidth,
        throttled_blocks=dict(timed.throttled),
        launch_bound=timed.launch_bound,
        sentence=sentence(timed, report),
    )
