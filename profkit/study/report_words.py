"""Words of a baseline's views for its cells and comparisons."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from pathlib import PurePath
from statistics import median as middle
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, structs

from profkit.study.summary_format import GAPS, Best, Row
from profkit.timing.cell import CellStatus
from profkit.timing.latency_format import POWER_CAP
from profkit.ui.badge import badge_svg
from profkit.ui.document import Badge, Badges, unmarked, verbatim
from profkit.ui.text import compact, number, percent, seconds_between, supported_digits

if TYPE_CHECKING:
    from profkit.audit.audit import Outcome
    from profkit.audit.check import Contradiction
    from profkit.core.fingerprint import Device, Fingerprint
    from profkit.study.published import Shortfall
    from profkit.study.report import Report, Standing

__all__ = ["middle"]

NONE = "-"
_FAR = 20  # chosen: ends of an interval that differ by more get units of their own
_BLUE, _GREEN, _GRAY, _AMBER = "#0b57a4", "#2e7d32", "#546e7a", "#b26a00"
_VERSIONS = ("driver", "CUDA", "cudnn", "torch", "triton", "python")
_LETTERS = {"batch": "B", "heads": "H", "kv_heads": "Hkv", "length": "S", "dim": "D"}
_COMMON = (
    "batch", "heads", "kv heads", "length", "dim", "tokens", "dtype", "causal", "backward"
)  # fmt: skip
_MOST_BARE = 3  # chosen: digits of a value without its interval
STATUS = {
    CellStatus.unsupported: "unsupported",
    CellStatus.unavailable: "not available",
    CellStatus.out_of_memory: "out of memory",
    CellStatus.wrong: "wrong result",
    CellStatus.failed: "failed",
    CellStatus.no_time: "no time left",
}
TIMERS = {
    "events": "CUDA events behind a spin kernel",
    "graph": "CUDA events around a CUDA graph",
    "cupti": "CUPTI activity records",
    "wall": "host clock around a synchronized call",
}


def title(report: Report) -> str:
    return f"{unmarked(report.summary.name)} on {device_name(report)}"


def badges(report: Report) -> Badges:
    """Latency at the shape with the highest FLOP rate, the highest compulsory bandwidth, GPU and
    environment; the first two with their cell."""
    values = [("GPU", device_name(report), _GRAY), ("environment", version_words(report), _GRAY)]
    widest = max(report.timed, key=lambda row: row.bandwidth or 0.0, default=None)
    if widest is not None and widest.bandwidth:
        rate = f"{quantity(widest.bandwidth, 'B/s', widest)} ({widest.id})"
        values.insert(0, ("compulsory bandwidth", rate, _BLUE))
    if report.goals:
        best = report.goals[0].row
        latency = f"{median(best)} {interval(best)} ({best.id})"
        values.insert(0, ("latency", latency, _GREEN if best.claim == "holds" else _AMBER))
    return Badges(
        tuple(
            Badge(f"badge-{label.lower().replace(' ', '-')}.svg", label, value, color,
                  badge_svg(label, value, color))
            for label, value, color in values
        )
    )  # fmt: skip


def shape(row: Row) -> str:
    """The sizes of a cell: `B=32 H=8 S=512 D=64, float16, forward`; its options for another."""
    sizes = {name: getattr(row, name) for name in _LETTERS}
    if row.kv_heads == row.heads:
        sizes["kv_heads"] = None
    words = " ".join(f"{_LETTERS[name]}={value}" for name, value in sizes.items() if value)
    if row.length is None:
        words = ", ".join(f"{name} {value}" for name, value in row.arguments.items()) or row.shape
        return unmarked(", ".join(filter(None, (words, row.dtype))))
    kind = "backward" if row.backward else "forward"
    return ", ".join(filter(None, (words, row.dtype, kind, "causal" if row.causal else "")))


def or_none(value: float | None, form: str = "{:.2f}") -> str:
    return NONE if value is None else form.format(value)


def quantity(value: float | None, unit: str, row: Row | None = None) -> str:
    """A value; one that is derived from a cell's median, without its interval, in fewer digits."""
    return NONE if value is None else number(value, unit, bare_digits(row) if row else 4)


def median(row: Row) -> str:
    """The median of a cell, with as many digits as its interval supports."""
    return NONE if row.seconds is None else number(row.seconds, "s", digits(row))


def digits(row: Row) -> int:
    """How many digits of its median a cell's interval supports."""
    return supported_digits(row.seconds or 0.0, row.low, row.high)


def bare_digits(row: Row) -> int:
    """The digits of a value derived from a cell's median, without its interval."""
    return min(_MOST_BARE, digits(row))


def tokens(row: Row) -> str:
    rate = row.tokens_per_second
    return NONE if rate is None else compact(rate, bare_digits(row))


def flop_rate(row: Row) -> str:
    """The FLOP rate of a cell with its interval: `570.2 TFLOP/s [568.1, 572.4] TFLOP/s`."""
    if row.flop_rate is None:
        return NONE
    rate = number(row.flop_rate, "FLOP/s", digits(row))
    if row.flop_rate_low is None or row.flop_rate_high is None:
        return f"{rate} (no interval)"
    low, high = (number(end, "FLOP/s") for end in (row.flop_rate_low, row.flop_rate_high))
    value, _, unit = high.rpartition(" ")
    return f"{rate} {_without_level(row)}[{low.removesuffix(f' {unit}')}, {value}] {unit}"


def _without_level(row: Row) -> str:
    return "≈ " if row.level is None else ""


def interval(row: Row, ends: Callable[[float, float], str] | None = None) -> str:
    """The interval in the cell of a table; `≈` before one without a confidence level."""
    if row.low is None or row.high is None:
        return f"none: {row.refused or 'unknown'}"
    return f"{_without_level(row)}{(ends or between)(row.low, row.high)}"


def within_run(row: Row) -> str:
    """The within-run interval in the cell of a table."""
    known_ends = row.run_low is not None and row.run_high is not None
    return between(row.run_low or 0.0, row.run_high or 0.0) if known_ends else NONE


def between(low: float, high: float) -> str:
    """Both ends in one unit; each in its own where they are far apart."""
    if high > _FAR * low:
        return f"[{quantity(low, 's')}, {quantity(high, 's')}]"
    return seconds_between(low, high)


def interval_words(row: Row) -> str:
    """The interval with its confidence, for a sentence."""
    if row.low is None or row.high is None:
        return f"no interval, not supported by the samples ({row.refused or 'unknown'})"
    ends = between(row.low, row.high)
    if row.claim == GAPS:
        return f"interval {ends}, invalid ({gaps(row)})"
    if row.level is None:
        inflated = f", widened ({', '.join(row.dependence)})" if row.claim == "widened" else ""
        return f"within-run interval {ends}, no confidence level stated{inflated}"
    level = percent(row.level).replace(".0%", "%")
    return f"{level} confidence interval {ends} over the medians of {row.blocks} blocks"


def gaps(row: Row) -> str:
    """How many samples may include host launch gaps."""
    return f"{row.late_submitted} of {row.n} samples may include host launch gaps"


def percentile(report: Report, row: Row, q: float) -> str:
    """A percentile of a cell's samples, or how many it needs."""
    summary = report.statistics.get(row.id)
    for entry in summary.percentiles if summary else ():
        if entry.q == q:
            missing = f"n/a, needs {entry.needs}"
            return missing if entry.value is None else quantity(entry.value, "s", row)
    return NONE


def largest_share(rows: Iterable[Row], name: str) -> float:
    """The largest share of a median that a time of its cell is."""
    return max((getattr(row, name) or 0.0) / (row.seconds or 1.0) for row in rows)


def uncounted_blocks(row: Row) -> int:
    """Blocks whose clock could not be measured on the device."""
    return 0 if row.clocked is None else (row.blocks or 0) - row.clocked


def spread(values: Iterable[int]) -> str:
    low, *_, high = sorted(values) * 2
    return str(low) if low == high else f"{low} to {high}"


def backend(row: Row) -> str:
    """A backend with its version, and the one that it dispatched to."""
    chosen = f"dispatched to {verbatim(row.chosen)}" if row.chosen else ""
    facts = ", ".join(filter(None, (unmarked(row.version or ""), chosen)))
    return f"{verbatim(row.backend)} ({facts})" if facts else verbatim(row.backend)


def circumstances(report: Report, row: Row) -> tuple[str, ...]:
    """Where, with what and how a cell was measured."""
    imported = row.status is CellStatus.imported
    doubt = row.late_submitted and row.claim != GAPS
    seed = report.summary.options.seed
    return (
        f"{'imported, ' * imported}measured on {device_name(report)}", version_words(report),
        f"by {method(row)}",
        f"N={row.n}" + (f", {row.late_submitted} may include host launch gaps" if doubt else ""),
        "seed unknown" if seed is None else f"seed {seed}",
    )  # fmt: skip


def shared(report: Report) -> tuple[str, ...]:
    """What is the same of all claims: where, with what, and how it was measured."""
    every = [circumstances(report, row) for row in report.fastest()]
    common = set.intersection(*map(set, every)) if every else ()
    return tuple(words for words in (every or [()])[0] if words in common)


def standing_words(standing: Standing) -> str:
    chosen = (f"{count} as {verbatim(name)}" for name, count in standing.chosen_by.items())
    choice = ", ".join(chosen)
    names = " and ".join(map(verbatim, standing.backends))
    return f"{names} at {standing.shapes}" + (f" ({choice})" if choice else "")


def device_name(report: Report) -> str:
    """What it was measured on."""
    summary = report.summary
    if summary.gpu and summary.gpu.name:
        return unmarked(summary.gpu.name)
    return "the CPU" if summary.options.device == "cpu" else "an unknown device"


def fingerprints(report: Report) -> Sequence[Fingerprint]:
    """The environments, those that differ by the dtype alone once."""
    environments: list[Fingerprint] = []
    for fingerprint in report.summary.fingerprints.values():
        environment = structs.replace(fingerprint, dtype=UNSET)
        if environment not in environments:
            environments.append(environment)
    return environments


def version_words(report: Report) -> str:
    """Driver, CUDA and libraries in a sentence; that they are not known where they are not."""
    environments = fingerprints(report)
    if len(environments) > 1 and any(environment.said for environment in environments):
        return f"{len(environments)} environments (see Configuration)"
    for first in environments[:1]:
        facts = {**({"driver": first.gpu.driver} if first.gpu else {}), **(first.versions or {})}
        facts["CUDA"] = facts.pop("cuda", None)
        versions = [f"{name} {unmarked(str(facts[name]))}" for name in _VERSIONS if facts.get(name)]
        if versions:
            return ", ".join(versions) + (
                " (stated by the files, unverified)" if first.said else ""
            )
    return "driver and versions unknown"


def fact(value: Any, unit: str) -> str:
    """A fact of a GPU, in its unit where it has one."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return number(float(value), unit) if unit else unmarked(str(value))


def method(row: Row) -> str:
    """How a cell was timed."""
    timer = TIMERS.get(row.timer, row.timer) or "unknown timer"
    if row.timer == "wall":
        return timer
    return timer + (f", {row.cache} L2" if row.cache else ", state of L2 unknown")


def common_words(best: Best, row: Row) -> str:
    """What the cells that a best is of share; `row` is one of them."""
    values = {**best.where, "kv heads": row.kv_heads if row.kv_heads != row.heads else None}
    return ", ".join(
        name if (value := values[name]) is True
        else f"{name} {f'{value:g}' if isinstance(value, float) else value}"
        for name in _COMMON if values.get(name)
    )  # fmt: skip


def shortfall_words(row: Row, short: Shortfall, chip: Device) -> Iterator[str]:
    """Possible causes of a cell's lower rate, and the state of the GPU."""
    read = " (NVML reading before the blocks, approximate)" if row.clock_is_read else ""
    clock = (
        f"the SM clock{read} was {quantity(row.sm_clock, 'Hz')}, "
        f"{quantity(short.clock, '1')} of the maximum ({quantity(short.highest_clock, 'Hz')})"
    )
    capped = row.throttled.get(POWER_CAP, 0)
    if short.other_backend:
        yield "the backends differ"
    if capped:
        yield f"{capped} of {row.blocks} blocks met a power cap"
    if short.slowed and short.at_highest is not None:
        yield (
            f"{clock}; scaled to the maximum clock the rate would be "
            f"{short.at_highest:.3f} of the published one"
        )
    if row.late_submitted:
        yield gaps(row)
    if row.launch_bound:
        yield "launch-bound: host launch overhead above GPU time"
    if row.power is not None:
        limit = f" of {chip.power_limit:.0f} W" if chip.power_limit else ""
        yield f"power draw before blocks {row.power:.0f} W{limit}"
    if short.clock is not None and not short.slowed:
        yield clock
    if not capped:
        yield "no block met a power cap"


def claim_words(outcome: Outcome) -> str:
    claim = outcome.claim
    sizes = zip("BHSD", claim.shape, strict=True)
    return claim.text or " ".join(f"{letter}={size}" for letter, size in sizes)


def contradiction_words(contradiction: Contradiction) -> str:
    likely = f"; likely {contradiction.cause}" if contradiction.cause else ""
    return unmarked(
        f"{contradiction.claimed}: {contradiction.follows}{likely}; it should be "
        f"{contradiction.should_be}."
    )


def milliseconds(seconds: float, digits: int = 4, rounding: str = ROUND_HALF_EVEN) -> str:
    exact = Decimal(seconds * 1e3)
    return f"{exact.quantize(Decimal(1).scaleb(exact.adjusted() - digits + 1), rounding):f}"


def floor_milliseconds(seconds: float) -> str:
    """Milliseconds in four digits, rounded down: the printed value must meet the rule too."""
    return milliseconds(seconds, rounding=ROUND_FLOOR)


def millisecond_ends(low: float, high: float) -> str:
    return f"[{milliseconds(low, 5)}, {milliseconds(high, 5)}] ms"


def report_command(report: Report) -> str:
    """The command that writes this report, the recording of the ladder by its last name."""
    words = ["profkit", "baseline", "report", "DIR"]
    words += ["--price", f"{report.price:g}"] if report.price is not None else []
    words += ["--ablation", report.ladder] if report.ladder else []
    return command([*words, "-o", "DIR/report.md"])


def command(words: Iterable[str]) -> str:
    """A command as typed, absolute paths shortened to their last names."""
    return shlex.join(PurePath(word).name if word.startswith("/") else word for word in words)


def listed(names: Sequence[str], most: int = 6) -> str:
    """Names as code; how many more beyond the first few."""
    words = ", ".join(map(verbatim, names[:most]))
    return f"{words} and {len(names) - most} more" if len(names) > most else words
