"""Words that several parts of a written baseline use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePath

from msgspec import UNSET, structs

from profkit.core.fingerprint import Fingerprint
from profkit.study.report_model import Written
from profkit.study.summary import GAPS, Row
from profkit.timing.cell import CellStatus
from profkit.ui.document import unmarked, verbatim
from profkit.ui.text import number, percent, seconds_between, supported_digits

NONE = "-"
_FAR = 20
_VERSIONS = ("driver", "CUDA", "cudnn", "torch", "triton", "python")
_LETTERS = {
    "batch": "B", "heads": "H", "kv_heads": "Hkv", "length": "S", "dim": "D",
}  # fmt: skip
_MOST_BARE = 3  # digits where no interval stands beside a value
STATUS = {
    CellStatus.unsupported: "no kernel for it",
    CellStatus.unavailable: "not available",
    CellStatus.out_of_memory: "out of memory",
    CellStatus.wrong: "wrong result",
    CellStatus.failed: "failed",
    CellStatus.no_time: "no time left",
}
TIMERS = {
    "events": "CUDA events behind a waiting kernel",
    "graph": "CUDA events around a CUDA graph",
    "cupti": "CUPTI's kernel times",
    "wall": "the host's clock around a synchronised call",
}


def shape(row: Row) -> str:
    """The sizes of a cell: `B=32 H=8 S=512 D=64, float16, forward`; its options for another."""
    sizes = {name: getattr(row, name) for name in _LETTERS}
    if row.kv_heads == row.heads:
        sizes["kv_heads"] = None
    told = " ".join(f"{_LETTERS[name]}={value}" for name, value in sizes.items() if value)
    if row.length is None:
        told = ", ".join(f"{name} {value}" for name, value in row.arguments.items()) or row.shape
        return unmarked(", ".join(filter(None, (told, row.dtype))))
    kind = "backward" if row.backward else "forward"
    return ", ".join(filter(None, (told, row.dtype, kind, "causal" if row.causal else "")))


def time(seconds: float | None) -> str:
    return NONE if seconds is None else number(seconds, "s")


def median(row: Row) -> str:
    """The median of a cell, with as many digits as its interval supports."""
    return NONE if row.seconds is None else number(row.seconds, "s", digits(row))


def digits(row: Row) -> int:
    """How many digits of its median a cell's interval supports."""
    return supported_digits(row.seconds or 0.0, row.low, row.high)


def bare(value: float | None, unit: str, row: Row) -> str:
    """A value that follows from a cell's median, without its interval beside it."""
    return NONE if value is None else number(value, unit, bare_digits(row))


def bare_digits(row: Row) -> int:
    """The digits of a value that follows from a cell's median, without its interval beside it."""
    return min(_MOST_BARE, digits(row))


def flop_rate(row: Row) -> str:
    """The FLOP rate of a cell with its interval: `570.2 TFLOP/s [568.1, 572.4] TFLOP/s`."""
    if row.flop_rate is None:
        return NONE
    shown = number(row.flop_rate, "FLOP/s", digits(row))
    if row.flop_rate_low is None or row.flop_rate_high is None:
        return f"{shown} (no interval)"
    low, high = (number(end, "FLOP/s") for end in (row.flop_rate_low, row.flop_rate_high))
    value, _, unit = high.rpartition(" ")
    return f"{shown} {_without_level(row)}[{low.removesuffix(f' {unit}')}, {value}] {unit}"


def _without_level(row: Row) -> str:
    return "≈ " if row.level is None else ""


def quantity(value: float | None, unit: str) -> str:
    return NONE if value is None else number(value, unit)


def share(value: float | None) -> str:
    return NONE if value is None else percent(value)


def decimal(value: float | None, digits: int = 2) -> str:
    return NONE if value is None else f"{value:.{digits}f}"


def interval(row: Row, ends: Callable[[float, float], str] | None = None) -> str:
    """The interval in the cell of a table; `≈` before one that claims no level."""
    if row.low is None or row.high is None:
        return f"none: {row.refused or 'not known'}"
    return f"{_without_level(row)}{(ends or between)(row.low, row.high)}"


def within_run(row: Row) -> str:
    """The interval within the run in the cell of a table."""
    if row.run_low is None or row.run_high is None:
        return NONE
    return between(row.run_low, row.run_high)


def between(low: float, high: float) -> str:
    """Both ends in one unit; each in its own where they are far apart."""
    if high > _FAR * low:
        return f"[{time(low)}, {time(high)}]"
    return seconds_between(low, high)


def interval_words(row: Row) -> str:
    """The interval with what it claims, for a sentence."""
    if row.low is None or row.high is None:
        return f"no interval, which the samples do not support ({row.refused or 'not known'})"
    ends = between(row.low, row.high)
    if row.claim == GAPS:
        return f"interval {ends}, which claims nothing ({gaps(row)})"
    if row.level is None:
        why = f", widened ({', '.join(row.dependence)})" if row.claim == "widened" else ""
        return f"interval {ends} within this run, without a confidence level{why}"
    level = percent(row.level).replace(".0%", "%")
    return f"{level} interval {ends} over {row.blocks} blocks"


def gaps(row: Row) -> str:
    """How many samples may hold gaps of the host."""
    return f"{row.overtaken} of {row.n} samples may hold gaps of the host"


def samples(row: Row) -> str:
    """The number of samples, for a sentence."""
    doubt = row.overtaken and row.claim != GAPS
    return (
        f"N={row.n}, of which {row.overtaken} may hold gaps of the host" if doubt else f"N={row.n}"
    )


def backend(row: Row) -> str:
    """A backend with its version, and what it chose."""
    chosen = f"which chose {verbatim(row.chosen)}" if row.chosen else ""
    told = ", ".join(filter(None, (unmarked(row.version or ""), chosen)))
    return f"{verbatim(row.backend)} ({told})" if told else verbatim(row.backend)


def device(written: Written) -> str:
    """What it was measured on."""
    summary = written.summary
    if summary.gpu and summary.gpu.name:
        return unmarked(summary.gpu.name)
    return "the CPU" if summary.options.device == "cpu" else "an unknown device"


def fingerprints(written: Written) -> Sequence[Fingerprint]:
    """The environments, those that differ by the dtype alone once."""
    found: list[Fingerprint] = []
    for fingerprint in written.summary.fingerprints.values():
        alike = structs.replace(fingerprint, dtype=UNSET)
        if alike not in found:
            found.append(alike)
    return found


def versions(written: Written) -> str:
    """Driver, CUDA and libraries in a sentence; that they are not known where they are not."""
    known = fingerprints(written)
    if not known:
        return "driver and versions not known"
    if len(known) > 1 and any(one.said for one in known):
        return f"{len(known)} environments, told apart under Configuration"
    first = known[0]
    told = {**({"driver": first.gpu.driver} if first.gpu else {}), **(first.versions or {})}
    told["CUDA"] = told.pop("cuda", None)
    names = [name for name in _VERSIONS if told.get(name)]
    if not names:
        return "driver and versions not known"
    whose = " as the files say" if first.said else ""
    return ", ".join(f"{name} {unmarked(str(told[name]))}" for name in names) + whose


def method(row: Row) -> str:
    """How a cell was timed."""
    timer = TIMERS.get(row.timer, row.timer) or "a timer that is not known"
    if row.timer == "wall":
        return timer
    cache = f", {row.cache} L2" if row.cache else ", the state of L2 not known"
    return timer + cache


def seed(written: Written) -> str:
    value = written.summary.options.seed
    return "seed not known" if value is None else f"seed {value}"


def command(words: Iterable[str]) -> str:
    """A command as it was typed, absolute paths as the names at their ends."""
    return " ".join(_quoted(PurePath(one).name if one.startswith("/") else one) for one in words)


def _quoted(word: str) -> str:
    plain = all(one.isalnum() or one in "-_./=,:+@%" for one in word)
    return word if plain and word else "'" + word.replace("'", "'\\''") + "'"


def known(
    columns: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Columns and rows without the columns in which nothing is known."""
    kept = [at for at in range(len(columns)) if any(row[at] != NONE for row in rows)]
    return (
        tuple(columns[at] for at in kept),
        tuple(tuple(row[at] for at in kept) for row in rows),
    )


def listed(names: Sequence[str], most: int = 6) -> str:
    """Names as code; how many more beyond the first few."""
    shown = ", ".join(map(verbatim, names[:most]))
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
