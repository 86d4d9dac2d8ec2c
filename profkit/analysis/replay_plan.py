"""What a capture will cost in replay passes and time, before it is made."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, structs

from profkit.capture.ncu import listed_names
from profkit.capture.passes import Source, passes_of_each
from profkit.capture.sections import CAPABILITIES, chip_of, section_names, set_sections
from profkit.capture.sets import OWN_SETS, capture_set
from profkit.core.compute_capability import ComputeCapability, parse_capability
from profkit.core.errors import UsageError
from profkit.core.suggestion import did_you_mean
from profkit.core.typed_file import Amount, Count, File, Model, part
from profkit.hardware.gpus import datasheets_named
from profkit.report.catalog import TENSOR_CODE, catalog
from profkit.rules.rule_file import shipped_rules
from profkit.ui import document as doc
from profkit.ui.text import number, plural, shorten

RULES, CATALOG = "rules", "catalog"
PER_PASS, _PER_PASS_LOW, _PER_PASS_HIGH = 0.075, 0.035, 0.13
"""Seconds of ncu's own for a pass, fitted to 16 captures of 1 to 19 launches, 16 to 722 passes, on
an H200 (ncu 2025.3.1), without the 6 s in which the program started; the range has all of them."""
_SHARED = "Passes added: with the part less without it. They are not additive: parts share passes."
_NAMED = 3  # chosen: how many unknown names a line has room for
_LONGEST_METRIC = 70  # characters, chosen: metrics of several parts are as long
_COPIES = 2  # of the saved memory: each byte is read and written to restore it


class Subject(Struct, frozen=True):
    """The GPU that is planned for: its chip, capability and DRAM rate (B/s, 0 where unknown)."""

    gpu: str
    chip: str
    compute_capability: str
    dram: float


class Workload(Struct, frozen=True):
    """Launches of a duration (s) that write to so many bytes of memory."""

    duration_s: float
    memory_bytes: float
    launches: int


class PartRow(Model, frozen=True):
    """A section, or the metrics of a group of the catalog: passes alone, and those that the set
    takes with it less those without it."""

    name: str
    alone: Count
    marginal: Count


class ReplayPlanFile(File, frozen=True, kw_only=True, tag="profkit.plan/1"):
    """Passes of a launch and seconds of all launches, and names that the chip doesn't have. The
    `source` of the count is NVIDIA's PerfWorks library, or an estimate from a table."""

    gpu: str
    chip: str
    compute_capability: str
    collected: str
    launches: Count
    duration_s: Amount
    memory_bytes: Amount
    passes: Count
    seconds: Amount
    seconds_low: Amount
    seconds_high: Amount
    parts: tuple[PartRow, ...]
    unknown: tuple[str, ...]
    source: Source


def subject_of(name: str) -> Subject:
    """The GPU of a product's name, `H200`, or of a chip's, `GH100`; raises UsageError."""
    chip = next((known for known in CAPABILITIES if known == name.upper()), None)
    sheets = datasheets_named(name)
    if chip is None and sheets:
        capability = ".".join(map(str, sheets[0].cc))
        chip = chip_of(capability)
        if chip is None:
            raise UsageError(
                f"{name}: ncu's metrics of compute capability {capability} are not known",
                "plan for a GPU from compute capability 7.5",
            )
    if chip is None:
        remedy = did_you_mean(name.upper(), CAPABILITIES, otherwise="name a product or a chip")
        raise UsageError(f"{name!r} is not a known GPU", remedy)
    dram = sheets[0].peaks["dram"].value if sheets and "dram" in sheets[0].peaks else 0.0
    return Subject(sheets[0].name if sheets else chip, chip, CAPABILITIES[chip], dram)


def parts_of_set(name: str, subject: Subject) -> Mapping[str, Sequence[str]]:
    """The parts of a set, with their sections or metrics: scout, lean, `rules`, `catalog`, a set of
    ncu's, or a file of sections and metrics. Raises UsageError for any other name."""
    cc = parse_capability(subject.compute_capability)
    if name == RULES:
        return by_group(_metrics_of([key for rule in shipped_rules() for key in rule.names], cc))
    if name == CATALOG:
        return by_group(_metrics_of(catalog().quantities, cc))
    if name in OWN_SETS:
        own = capture_set(name, cc)
        return {**{section: [section] for section in own.sections}, **by_group(own.metrics)}
    if sections := set_sections().get(name):
        return {section: [section] for section in sections}
    if not Path(name).exists():
        known = [*OWN_SETS, *set_sections(), RULES, CATALOG]
        remedy = did_you_mean(name, known, otherwise=f"use one of {', '.join(known)}, or a file")
        raise UsageError(f"--set {name!r} is neither a set nor a file", remedy)
    items = listed_names(name)
    listed = {item: [item] for item in items if item in section_names()}
    return {**listed, **by_group(item for item in items if item not in listed)}


def by_group(metrics: Iterable[str]) -> Mapping[str, Sequence[str]]:
    """Metrics by the first group of the catalog that has a formula over them."""
    groups = {
        name: entry.group
        for entry in reversed(list(catalog().quantities.values()))
        for item in entry.alternatives
        for name in item.formula.names
    }
    parts: dict[str, list[str]] = {group: [] for group in catalog().titles}
    for name in dict.fromkeys(metrics):
        parts.setdefault(groups.get(name, "other"), []).append(name)
    return {group: names for group, names in parts.items() if names}


def _metrics_of(names: Iterable[str], cc: ComputeCapability) -> list[str]:
    """ncu's metrics behind quantities, by all formulas for a compute capability."""
    entries = catalog().quantities
    pending, seen = list(names), set[str]()
    metrics: list[str] = []
    while pending:
        name = pending.pop(0)
        if name in seen or name in TENSOR_CODE:
            continue
        seen.add(name)
        if entry := entries.get(name):
            usable = (item for item in entry.alternatives if cc in item.cc)
            pending += [part for item in usable for part in item.formula.names]
        elif "__" in name or "." in name:
            metrics.append(name)
    return metrics


def lists_of(parts: Mapping[str, Sequence[str]]) -> list[Sequence[str]]:
    """What a plan schedules: everything, each part alone, and everything without each part."""
    without = [
        [name for other, names in parts.items() if other != part for name in names]
        for part in parts
    ]
    return [[name for names in parts.values() for name in names], *parts.values(), *without]


def replay_plan(
    subject: Subject, collected: str, parts: Mapping[str, Sequence[str]], workload: Workload
) -> ReplayPlanFile:
    """The passes and the time of a capture, and what each part of it costs.

    Raises UsageError where the chip has nothing of it.
    """
    whole, *answers = passes_of_each(subject.chip, lists_of(parts))
    every = [name for names in parts.values() for name in names]
    unknown = set(whole.unknown)
    if unknown.issuperset(every):
        others = f" and {len(every) - _NAMED} more" if len(every) > _NAMED else ""
        named = ", ".join(shorten(name, _LONGEST_METRIC) for name in every[:_NAMED])
        message = f"{subject.chip} has none of: {named}{others}"
        raise UsageError(message, "ncu --query-metrics lists a chip's metrics")
    alone, rest = answers[: len(parts)], answers[len(parts) :]
    fixed = workload.duration_s
    if whole.count > 1 and subject.dram:
        fixed += _COPIES * workload.memory_bytes / subject.dram
    scale = workload.launches * whole.count
    return ReplayPlanFile(
        **part(subject, "gpu", "chip", "compute_capability"),
        **structs.asdict(workload),
        collected=collected,
        passes=whole.count,
        seconds=scale * (fixed + PER_PASS),
        seconds_low=scale * (fixed + _PER_PASS_LOW),
        seconds_high=scale * (fixed + _PER_PASS_HIGH),
        parts=tuple(
            PartRow(
                name,
                0 if unknown.issuperset(parts[name]) else own.count,
                whole.count - (other.count if len(parts) > 1 else 0),
            )
            for name, own, other in zip(parts, alone, rest, strict=True)
        ),
        unknown=whole.unknown,
        source=whole.source,
    )


def plan_document(plan: ReplayPlanFile) -> doc.Document:
    """Time, launches and what counted, then the costs of the parts."""
    title = (
        f"{plan.collected} on {plan.gpu} ({plan.chip}, CC {plan.compute_capability}):"
        f" {plural(plan.passes, 'replay pass')}"
    )
    low, likely, high = (
        number(value, "s", 2) for value in (plan.seconds_low, plan.seconds, plan.seconds_high)
    )
    memory = f", {number(plan.memory_bytes, 'B')} saved and restored" if plan.memory_bytes else ""
    source = "NVIDIA's PerfWorks library" if plan.source == "library" else "estimated from a table"
    rows = (
        doc.Row("Time in ncu", f"{likely} ({low} to {high}), without the program's start"),
        doc.Row("Launches", f"{plan.launches} of {number(plan.duration_s, 's')}{memory}"),
        doc.Row("Counted by", source),
    )
    unknown = f"{plural(len(plan.unknown), 'name')} unknown on {plan.chip}"
    notes = [doc.Note(f"{unknown}: {', '.join(plan.unknown)}")] if plan.unknown else []
    costs = tuple(
        (part.name, str(part.marginal), str(part.alone))
        for part in sorted(plan.parts, key=lambda part: -part.marginal)
    )
    table = doc.Table("Cost", ("Part", "Passes added", "Passes alone"), costs, _SHARED, words=1)
    return doc.Document(title, (doc.Heading(title, 1), doc.Facts("", rows), *notes, table))
