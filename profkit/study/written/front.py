"""The first part of a written baseline: badges, summary, claims, what was measured and how."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from profkit.core.fingerprint import Device
from profkit.core.typed_file import known
from profkit.study.report_model import Standing, Written
from profkit.study.summary import Row, unmeasured
from profkit.study.written import words
from profkit.timing.cell import CellStatus
from profkit.ui.badge import badge_svg
from profkit.ui.document import (
    Badge,
    Badges,
    Block,
    Bullets,
    Heading,
    Paragraph,
    Table,
    cells,
    unmarked,
    verbatim,
)
from profkit.ui.text import number, percent, plural

_BLUE, _GREEN, _GREY, _AMBER = "#0b57a4", "#2e7d32", "#546e7a", "#b26a00"
_COMPLETE = {
    True: "All cells are measured or have a reason.",
    False: "It is not complete: cells are missing.",
}
_STATUS = words.STATUS | {CellStatus.unavailable: "not installed"}


def front(written: Written) -> Iterator[Block]:
    """Title to configuration."""
    yield Heading(1, f"Baseline: {title(written)}")
    yield badges(written)
    yield Heading(2, "Summary")
    yield Bullets(tuple(_summary(written)))
    yield Heading(2, "Claims")
    fastest = written.fastest()
    shared = _shared(written, fastest)
    yield Paragraph(
        "What was measured of the backend with the lowest median at each shape, and which others "
        "are tied with it. A claim holds for its shape, on this machine and with these versions; "
        f"nothing is extrapolated. All of them: {', '.join(shared)}. Quote that with a claim."
    )
    yield Bullets(tuple(claim(written, row, set(shared)) for row in fastest))
    yield from _configuration(written)


def title(written: Written) -> str:
    return f"{unmarked(written.summary.name)} on {words.device(written)}"


def badges(written: Written) -> Badges:
    """Latency of the shape with the highest rate, the most of the least bytes over time, GPU and
    environment; both of the cell that they name."""
    best = written.goals[0].row if written.goals else None
    found = []
    if best is not None:
        latency = f"{words.median(best)} {words.interval(best)} ({best.id})"
        found.append(_badge("latency", latency, _GREEN if best.claim == "holds" else _AMBER))
    widest = max(written.timed, key=lambda row: row.bandwidth or 0.0, default=None)
    if widest is not None and widest.bandwidth:
        told = f"{words.bare(widest.bandwidth, 'B/s', widest)} ({widest.id})"
        found.append(_badge("least bytes over time", told, _BLUE))
    found.append(_badge("GPU", words.device(written), _GREY))
    found.append(_badge("environment", words.versions(written), _GREY))
    return Badges(tuple(found))


def _badge(label: str, value: str, colour: str) -> Badge:
    name = f"badge-{label.lower().replace(' ', '-')}.svg"
    return Badge(name, label, value, colour, badge_svg(label, value, colour))


def _summary(written: Written) -> Iterator[str]:
    summary, timed = written.summary, written.timed
    shapes = len(dict.fromkeys(row.shape for row in written.rows))
    yield (
        f"{plural(len(timed), 'cell')} of {len(written.rows)} have a time: "
        f"{plural(shapes, 'shape')} by {plural(len(summary.backends), 'backend')}, on "
        f"{words.device(written)}. {_COMPLETE[summary.complete]}"
    )
    yield from _best(written)
    yield from _standing(written)
    yield _trust(written)
    if any(one.same_samples and one.faults for one in written.against):
        faulty = [one for one in written.against if one.same_samples]
        count = sum(bool(one.faults) for one in faulty)
        yield (
            f"**{count} of {len(faulty)} published intervals of these samples claim more than the "
            "samples support**: see Comparison with published numbers."
        )
    if written.claims:
        yield (
            f"**{plural(len(written.claims), 'published claim')} beside these figures "
            f"{'does' if len(written.claims) == 1 else 'do'} not hold**: see there."
        )


def _best(written: Written) -> Iterator[str]:
    fastest = [row for row in written.fastest() if row.flop_rate]
    if not fastest:
        return
    low, high = (pick(fastest, key=lambda row: row.flop_rate or 0.0) for pick in (min, max))
    told = (
        f"The fastest backend of each shape reaches from {words.flop_rate(low)} "
        f"({verbatim(low.shape)}) to {words.flop_rate(high)} ({verbatim(high.shape)})"
    )
    if high.share_of_datasheet is not None:
        told += f", {percent(high.share_of_datasheet)} of the datasheet's dense peak"
    yield told + "."


def _standing(written: Written) -> Iterator[str]:
    """How often each backend is the fastest, where there are several."""
    if len({row.backend for row in written.timed}) < 2:
        return
    standings = written.standings()
    shapes = sum(one.shapes for one in standings)
    alone = [one for one in standings if len(one.backends) == 1]
    tied = [one for one in standings if len(one.backends) > 1]
    parts = [", ".join(map(_standing_words, alone)) or "none at any"]
    if tied:
        parts.append(f"tied: {', '.join(map(_standing_words, tied))}")
    yield (
        f"Fastest, by a verdict against every other backend of its shape: {'; '.join(parts)} of "
        f"{plural(shapes, 'shape')}. Tied are those that no verdict tells apart from the lowest "
        "median."
    )


def _standing_words(one: Standing) -> str:
    by_choice = ", ".join(f"{count} as {verbatim(name)}" for name, count in one.chosen_by.items())
    names = " and ".join(map(verbatim, one.backends))
    return f"{names} at {one.shapes}" + (f" ({by_choice})" if by_choice else "")


def _trust(written: Written) -> str:
    found = written.evidence
    if not found.cells:
        return "Nothing was measured: see what was not measured below."
    without = found.cells - found.claimed
    told = f"{found.claimed} of {plural(found.cells, 'cell')} have a 95% interval over blocks"
    if not without:
        return f"{told}."
    kinds = (
        (found.within + found.widened, "one within their run, without a confidence level"),
        (found.gapped, "one that claims nothing"),
        (found.refused, "none"),
    )
    others = ", ".join(f"{count} {what}" for count, what in kinds if count)
    return f"{told}, {others}. The reasons are under Statistics."


def _shared(written: Written, rows: Sequence[Row]) -> tuple[str, ...]:
    """What is the same of all claims, said once: where, with what, and how it was measured."""
    common = set.intersection(*(set(_circumstances(written, row)) for row in rows)) if rows else ()
    every = _circumstances(written, rows[0]) if rows else ()
    return tuple(one for one in every if one in common)


def _circumstances(written: Written, row: Row) -> tuple[str, ...]:
    whence = "measured by others" if row.status.value == "imported" else "measured"
    return (
        f"{whence} on {words.device(written)}", words.versions(written),
        f"by {words.method(row)}", words.samples(row), words.seed(written),
    )  # fmt: skip


def claim(written: Written, row: Row, shared: Set[str] = frozenset()) -> str:
    """The sentence that may be quoted of a cell, with what is `shared` by all."""
    sizes = words.shape(row)
    what = f"attention of {sizes}" if row.length is not None else f"{verbatim(row.shape)} ({sizes})"
    own = [one for one in _circumstances(written, row) if one not in shared]
    tied = [verbatim(one.backend) for one in written.tied(row)]
    told = (
        f"{what[0].upper()}{what[1:]}, by {words.backend(row)}: median {words.median(row)}, "
        f"{', '.join([words.interval_words(row), *own])}"
    )
    return f"{told}; tied with {' and '.join(tied)}." if tied else f"{told}."


def _configuration(written: Written) -> Iterator[Block]:
    summary = written.summary
    yield Heading(2, "Configuration")
    about = summary.matrix.about
    if about:
        yield Paragraph(f"Matrix {verbatim(summary.matrix.name)}: {unmarked(about)}")
    yield Table("How it was measured", ("", ""), tuple(_options(written)), words=2)
    yield from _environments(written)
    yield Table(
        "Backends",
        ("Backend", "Version", "How a program asks for it"),
        cells([
            [verbatim(backend.name), unmarked(backend.version or words.NONE) if backend.available
             else f"not there: {unmarked(backend.reason)}",
             verbatim(backend.setting) if backend.setting else words.NONE]
            for backend in summary.backends
        ]),
        words=3,
    )  # fmt: skip
    if written.not_asked:
        names = words.listed(written.not_asked, len(written.not_asked))
        yield Paragraph(f"Backends that come with profkit and were not asked for: {names}.")
    missing = tuple(_missing(written.rows))
    if missing:
        yield Heading(3, "What was not measured")
        yield Bullets(missing)


def _options(written: Written) -> Iterator[tuple[str, str]]:
    summary, options = written.summary, written.summary.options
    first = next(iter(written.timed), None)
    yield (
        "target",
        verbatim(summary.target.file) if summary.target.file else "imported latencies",
    )
    if summary.target.sha256:
        yield "SHA-256 of the target", verbatim(summary.target.sha256)
    if first is not None:
        yield "timer", words.method(first)
        yield "samples a cell", _samples(written)
    if options.blocks:
        yield (
            "blocks",
            (
                f"{options.blocks}: the backends of a shape take turns, in an order that "
                "changes from block to block"
            ),
        )
    if options.warmup is not None:
        yield (
            "warm-up",
            f"at least {words.time(options.warmup)} a cell, and until the clock is "
            f"steady, unless that takes too long{_unready(written)}",
        )
    yield "seed", "not known" if options.seed is None else str(options.seed)
    if options.budget:
        yield "budget", f"{options.budget:.0f} s"
    sheet = summary.datasheet
    if sheet is None:
        yield "datasheet", unmarked(summary.datasheet_note)
        return
    precisions = dict.fromkeys(row.precision for row in written.timed if row.precision)
    for name in (*precisions, "dram"):
        unit = "B/s" if name == "dram" else "FLOP/s"
        doubt = " (from memory, not looked up)" if name in sheet.unverified else ""
        what = "DRAM" if name == "dram" else f"{name.replace('_', ' ')}, dense"
        yield (
            f"peak, {what}",
            f"{number(sheet.peaks[name], unit)} by {sheet.name}'s datasheet{doubt}",
        )


def _environments(written: Written) -> Iterator[Block]:
    environments = words.fingerprints(written)
    if not environments:
        yield Paragraph(
            "The environment is not known: nobody kept the driver, the versions or the clocks."
        )
    count = len(environments)
    for at, one in enumerate(environments, start=1):
        gpu = one.gpu or Device(name="none")
        rows = [("GPU", unmarked(str(known(gpu.name))))]
        units = {"sm_clock_max": "Hz", "memory_clock_max": "Hz", "power_limit": "W"}
        labels = {
            "driver": "driver", "compute_capability": "compute capability",
            "multiprocessors": "SMs", "sm_clock_max": "highest SM clock",
            "memory_clock_max": "highest memory clock", "power_limit": "power limit", "ecc": "ECC",
            "mig": "MIG", "persistence": "persistence mode",
        }  # fmt: skip
        rows += [
            (label, _value(value, units.get(key, "")))
            for key, label in labels.items()
            if (value := known(getattr(gpu, key))) is not None
        ]
        rows += [
            (name, unmarked(str(value))) for name, value in (one.versions or {}).items() if value
        ]
        rows += [
            (name, unmarked(str(value))) for name, value in (one.compiler or {}).items() if value
        ]
        flags = {**(one.flags or {}), **(one.variables or {})}
        rows += [(name.replace("_", " "), unmarked(str(value))) for name, value in flags.items()]
        title = "Environment" if count == 1 else f"Environment {at} of {count}"
        yield Table(title, ("", ""), tuple(rows), words=2)


def _value(value: float | bool | str, unit: str) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return (
        number(float(value), unit) if unit and not isinstance(value, str) else unmarked(str(value))
    )


def _missing(rows: Sequence[Row]) -> Iterator[str]:
    for (backend, status, reason), shapes in unmeasured(rows).items():
        why = f" ({unmarked(reason)})" if reason else ""
        yield f"{verbatim(backend)}, {words.listed(shapes)}: {_STATUS[status]}{why}"


def _samples(written: Written) -> str:
    """How many were asked for, and how many the cells have."""
    asked = written.summary.options.samples
    counts = [row.n or 0 for row in written.timed]
    blocks = [row.blocks or 0 for row in written.timed]
    told = f"{_range(counts)} in {_range(blocks)} {'block' if max(blocks) == 1 else 'blocks'}"
    return f"{asked} asked for, {told}" if asked else f"as many as the files have: {_range(counts)}"


def _range(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low} to {high}"


def _unready(written: Written) -> str:
    count = written.evidence.unready
    return f"; in {plural(count, 'cell')} it still moved then" if count else ""
