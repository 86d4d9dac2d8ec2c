"""Source lines and SASS of a kernel, with samples and counts of each.

Counts of a line are the sums over its instructions, those of a file over its lines, and the total
is the kernel's. An instruction belongs to the line in the compiler's line table: inlined code and
templates are listed in the file that defines them, not at the call.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Annotated

from msgspec import Meta
from msgspec.structs import asdict

from profkit.core.compute_capability import ComputeCapability, why_no_text
from profkit.core.typed_file import Count, Model, Number, Real
from profkit.machine_code import blame
from profkit.machine_code.blame import AWAITED, COUNTED, EXECUTED, SAMPLES, Samples
from profkit.machine_code.flow import Flow
from profkit.machine_code.operation import parse
from profkit.report.action import WITHOUT_READER, has_reader
from profkit.report.catalog import catalog
from profkit.rules.checklist import Checklist

Rank = Annotated[int, Meta(ge=1)]
SAMPLED = "samples"
SHARED_EXCESS = "shared_wavefronts_excessive"
GLOBAL_EXCESS = "global_sectors_excessive"
FIELDS = frozenset(
    name
    for name in catalog().lines
    if name in {SAMPLED, EXECUTED, SHARED_EXCESS, GLOBAL_EXCESS} or name.startswith(SAMPLES)
)
"""The catalog's line quantities of the view."""
_QUANTITIES = {
    "samples": SAMPLED, "executed": EXECUTED,
    "shared_excess": SHARED_EXCESS, "global_excess": GLOBAL_EXCESS,
}  # fmt: skip


class Counts(Model, frozen=True, kw_only=True):
    """Counts of an instruction, a line or a kernel, unknown where not recorded.

    `samples` are warp samples, `stalls` those by reason (without the ones that are 0; empty where
    not recorded), `executed` warp instructions, `shared_excess` shared-memory wavefronts and
    `global_excess` L2 sectors beyond those of ideal addresses. `live` are the live registers
    of a thread, from the SASS; of several instructions the largest number.
    """

    samples: Real
    stalls: dict[str, Number]
    executed: Real
    shared_excess: Real
    global_excess: Real
    live: Real


class SourceLine(Counts, frozen=True):
    """A line of source with the number of its instructions. `text` is null where it was not
    recorded; `findings` are the ranks of the checklist's findings with this location."""

    line: int
    text: str | None
    findings: tuple[Rank, ...]
    instructions: Count


class Instruction(Counts, frozen=True):
    """A SASS instruction; `file` and `line` are null where no source is known.

    `findings` are the ranks of those that it counts for: of a finding on bank conflicts, the
    instructions of its line with excess wavefronts.
    """

    address: Count
    sass: str | None
    file: str | None
    line: Rank | None
    findings: tuple[Rank, ...]


class SourceFile(Model, frozen=True):
    """A file with instructions of the kernel: its path, in a document its name. `lines` are all of
    it where its text was recorded, else and in a document those with instructions; ascending."""

    file: str
    lines: tuple[SourceLine, ...]


class SourceView(Model, frozen=True, kw_only=True):
    """A launch by line and instruction.

    `files` have the one with the most samples first; none where no lines are known. `instructions`
    are by address. `has_source` is whether the text of a line with instructions was recorded.
    """

    has_source: bool
    total: Counts
    files: tuple[SourceFile, ...]
    instructions: tuple[Instruction, ...]
    notes: tuple[str, ...]


Blamed = Mapping[tuple[str, int], tuple[int, ...]]
"""Ranks by location: (file, line), or ("", address) of an instruction without a line."""


def blamed(checklist: Checklist | None, launch: int) -> Blamed:
    """The locations of the checklist's items on a launch's kernel."""
    ranks: dict[tuple[str, int], tuple[int, ...]] = {}
    for item in checklist.items if checklist else ():
        group = item.group
        if item.facet_of or group is None or launch not in {row.index for row in group.launches}:
            continue
        for place in item.places:
            key = (place.file, place.line) if place.line else ("", place.address)
            ranks[key] = (*ranks.get(key, ()), item.rank)
    return ranks


def line_quantities(checklist: Checklist | None) -> frozenset[str]:
    """The catalog's line quantities that tell the instructions of the checklist's items."""
    blames = (name for item in (checklist.items if checklist else ()) for name in item.rule.blame)
    return FIELDS.union(name for name in blames if name in catalog().lines)


def responsible(
    checklist: Checklist | None, rows: Sequence[blame.Instruction]
) -> Mapping[int, frozenset[int]]:
    """The addresses with any of what an item blames, by the item's rank: the instructions of a
    line that its finding is about."""
    samples = Samples(rows)
    return {
        item.rank: frozenset(
            address for name in item.rule.blame for address in _with(name, samples)
        )
        for item in (checklist.items if checklist else ())
        if item.places and not item.facet_of
    }


def _with(name: str, samples: Samples) -> Iterator[int]:
    """The addresses of the instructions with a line quantity, or what others wait for."""
    rows = samples.rows
    waits = samples.waits(AWAITED[name]) if name in AWAITED and samples.has_code else ()
    if waits:
        yield from (rows[wait.producer].address for wait in waits)
        return
    quantity = SAMPLES + AWAITED[name] if name in AWAITED else EXECUTED if name in COUNTED else name
    code = COUNTED.get(name)
    for row in rows:
        if row.values.get(quantity, 0.0) > 0 and (code is None or code.search(row.sass)):
            yield row.address


def source_view(
    rows: Sequence[blame.Instruction],
    present: Collection[str],
    texts: Mapping[str, Sequence[str]],
    findings: Blamed,
    addresses: Mapping[int, Collection[int]],
    capability: ComputeCapability,
) -> SourceView:
    """The view of a launch's instructions on a chip of a compute capability.

    `rows` have values by the catalog names of FIELDS; `present` are those that were recorded, the
    others are unknown. `texts` are source files' lines. Of a line with a finding, only the
    instructions at the finding's `addresses` have it too.
    """
    live = live_registers([row.address for row in rows], [row.sass for row in rows])
    code = tuple(
        Instruction(
            row.address,
            " ".join(row.sass.split()) or None,
            row.file or None,
            row.line or None,
            tuple(
                rank
                for rank in findings.get(
                    (row.file, row.line) if row.line else ("", row.address), ()
                )
                if not row.line or row.address in addresses[rank]
            ),
            **asdict(_counts(row.values, present, registers)),
        )
        for row, registers in zip(rows, live, strict=True)
    )
    files = _files(code, texts, findings)
    has_source = any(line.text and line.instructions for file in files for line in file.lines)
    return SourceView(
        has_source=has_source,
        total=added(code),
        files=files,
        instructions=code,
        notes=_notes(code, capability, has_source=has_source),
    )


def _counts(values: Mapping[str, float], present: Collection[str], live: float) -> Counts:
    return Counts(
        **{
            field: values.get(name, 0.0) if name in present else math.nan
            for field, name in _QUANTITIES.items()
        },
        stalls={
            name.removeprefix(SAMPLES): value
            for name, value in values.items()
            if name.startswith(SAMPLES) and value
        },
        live=live,
    )


def added(rows: Sequence[Counts]) -> Counts:
    """The sums of counts; of `live` the largest. All 0 and live NaN for none."""
    stalls: dict[str, float] = defaultdict(float)
    for row in rows:
        for reason, value in row.stalls.items():
            stalls[reason] += value
    return Counts(
        **{name: math.fsum(getattr(row, name) for row in rows) for name in _QUANTITIES},
        stalls=dict(sorted(stalls.items(), key=lambda item: -item[1])),
        live=max((row.live for row in rows if not math.isnan(row.live)), default=math.nan),
    )


def _files(
    instructions: Sequence[Instruction], texts: Mapping[str, Sequence[str]], findings: Blamed
) -> tuple[SourceFile, ...]:
    by_file: dict[str, dict[int, list[Instruction]]] = defaultdict(lambda: defaultdict(list))
    for row in instructions:
        if row.line:
            by_file[row.file or ""][row.line].append(row)
    files = [
        SourceFile(name, tuple(_lines(name, by_line, texts.get(name, ()), findings)))
        for name, by_line in by_file.items()
    ]
    return tuple(sorted(files, key=_weight))


def _lines(
    name: str, by_line: Mapping[int, Sequence[Instruction]], text: Sequence[str], findings: Blamed
) -> Iterable[SourceLine]:
    for line in sorted({*by_line, *range(1, len(text) + 1)}):
        own = by_line.get(line, ())
        known = text[line - 1] if line <= len(text) else ""
        ranks = findings.get((name, line), ())
        yield SourceLine(line, known or None, ranks, len(own), **asdict(added(own)))


def _weight(file: SourceFile) -> tuple[float, float, str]:
    lines = [line for line in file.lines if line.instructions]
    samples = sum(line.samples for line in lines)
    return -(0.0 if math.isnan(samples) else samples), -len(lines), file.file


def _notes(
    instructions: Sequence[Instruction], capability: ComputeCapability, *, has_source: bool
) -> tuple[str, ...]:
    if not has_reader():
        return (WITHOUT_READER,)
    notes = []
    if not any(row.line for row in instructions):
        notes.append("no source line information: compile with -lineinfo")
    elif not has_source:
        notes.append("source text not recorded: record with `ncu --import-source yes`")
    if unread := sum(not row.sass for row in instructions):
        notes.append(
            f"{unread:,} of {len(instructions):,} instructions have no SASS in the report "
            f"({why_no_text(capability) or 'unread'}): live registers are unknown"
        )
    return tuple(notes)


def live_registers(addresses: Sequence[int], sass: Sequence[str]) -> list[float]:
    """The live 32-bit registers of a thread at each instruction.

    A register is live if this or a later instruction reads its value, or if this one writes it.
    NaN for all where an instruction's text is missing.
    """
    if not all(sass):
        return [math.nan] * len(sass)
    flow = Flow(addresses, [parse(text) for text in sass])
    return [float(count) for count in flow.live()]
