"""Latencies and verdicts as JSON: `profkit time --from` and `profkit compare` read it."""

from __future__ import annotations

from msgspec import UNSET, structs

from profkit.core.timestamp import timestamp
from profkit.core.typed_file import encode, part
from profkit.core.version import __version__
from profkit.timing.latency import LatencyReport, Timed
from profkit.timing.latency_format import LatencyFile, Series
from profkit.timing.latency_view import sentence, settling_options, warnings


def latency_json(report: LatencyReport) -> str:
    """The report with its samples."""
    options = [" ".join(settling_options(pair, report.thresholds)) for pair in report.pairs]
    file = LatencyFile(
        profkit=__version__,
        created=timestamp(),
        series=tuple(_series(timed, report) for timed in report.timed),
        comparisons=tuple(
            structs.replace(pair.comparison, settle=settle or None)
            for pair, settle in zip(report.pairs, options, strict=True)
        ),
        left_out=dict(report.left_out),
        warnings=warnings(report),
        fingerprint_sha256=report.fingerprint_sha256 or None,
        spans=dict(report.spans),
        **part(report, "seed", "warmup", "thresholds", "floor", "fingerprint", "seconds"),
    )
    return encode(file)


def _series(timed: Timed, report: LatencyReport) -> Series:
    return Series(
        **structs.asdict(timed.latency),
        **part(timed, "interval", "flop_rate", "bandwidth", "launch_bound"),
        without_level=timed.without_level or None,
        statistics=timed.summary,
        throttled_blocks=dict(timed.throttled),
        energy_per_call=timed.energy if timed.latency.energy else UNSET,
        without_energy=timed.without_energy or UNSET,
        sentence=sentence(timed, report),
    )
