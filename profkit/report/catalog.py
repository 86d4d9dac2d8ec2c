"""The catalogue: what profkit calls a quantity, its unit and meaning, and where ncu has it.

The data is `catalog.yaml` beside this module; its head comment says how an entry is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

from profkit.core.yaml_files import shipped_yaml
from profkit.report.formula import Formula, parse
from profkit.report.gpus import ComputeCapability, parse_capability
from profkit.report.sass_tensor import HALF_ACCUMULATE, HMMA, KINDS, SPARSE

TENSOR_CODE: Mapping[str, str] = {
    f"code_tensor_{kind}": kind for kind in (*KINDS, HMMA, SPARSE, HALF_ACCUMULATE)
}
"""Tensor operations by machine code, as formulas name them, and their kinds."""

OLDEST: ComputeCapability = (7, 0)
NEWEST: ComputeCapability = (99, 9)


@dataclass(frozen=True)
class Range:
    """Compute capabilities from `low` to `high`, both included."""

    low: ComputeCapability
    high: ComputeCapability

    def __contains__(self, cc: object) -> bool:
        return isinstance(cc, tuple) and self.low <= cc <= self.high


@dataclass(frozen=True)
class Alternative:
    """One way to get a quantity: a formula, the compute capabilities it holds for and the shortest
    launch (s) that it does."""

    formula: Formula
    cc: Range
    lead: bool
    shortest: float = 0.0


@dataclass(frozen=True)
class Quantity:
    """A catalogue entry.

    `unit` is SI, "1" for a share. `computed` names what a quantity that no formula can give is
    computed from: a breakdown, or the quantity that says where it is worth the cost. `within` are
    the bounds that a true value can't leave. `absent_on` are the architectures whose hardware has
    nothing of the kind; on those of `none_on` that makes the quantity 0.
    """

    name: str
    group: str
    unit: str
    meaning: str
    section: str
    source: str
    alternatives: tuple[Alternative, ...]
    absent_on: tuple[Range, ...] = ()
    within: tuple[float, float] | None = None
    computed: str = ""
    none_on: tuple[Range, ...] = ()

    def exists_on(self, cc: ComputeCapability) -> bool:
        return not any(cc in span for span in self.absent_on)

    def is_none_on(self, cc: ComputeCapability) -> bool:
        """Whether a chip has nothing of the kind, so that a launch did none of it."""
        return any(cc in span for span in self.none_on)


@dataclass(frozen=True)
class Recorded:
    """A quantity that a launch records in many values: by opcode, by instruction, over time.

    `by` names a second metric whose values at the same instructions are the keys to sum over; ""
    where the metric brings its own keys.
    """

    name: str
    unit: str
    meaning: str
    metric: str
    section: str
    by: str = ""


@dataclass(frozen=True)
class Catalog:
    """All of the catalogue, in the order of the file.

    `sections` maps an ncu section to the quantity that shows that it was collected. `kernel_start`
    is the metric with the address of a launch's kernel.
    """

    quantities: Mapping[str, Quantity]
    titles: Mapping[str, str]
    breakdowns: Mapping[str, Recorded]
    lines: Mapping[str, Recorded]
    series: Mapping[str, Recorded]
    device: Mapping[str, str]
    sections: Mapping[str, str]
    kernel_start: str
    metric_names: tuple[str, ...] = field(default=())

    def group(self, name: str) -> Iterator[Quantity]:
        return (entry for entry in self.quantities.values() if entry.group == name)

    @cached_property
    def checked(self) -> frozenset[str]:
        """Quantities that are unknown of a launch unless its machine code is looked at.

        They rest, by however many formulas, on one that is computed only where it is worth it.
        """
        found = {
            entry.name for entry in self.quantities.values() if entry.computed in self.quantities
        }
        before = 0
        while len(found) > before:
            before = len(found)
            found |= {
                entry.name
                for entry in self.quantities.values()
                if any(found.intersection(item.formula.names) for item in entry.alternatives)
            }
        return frozenset(found)


@cache
def catalog() -> Catalog:
    """The catalogue that ships with profkit."""
    return build(shipped_yaml("profkit.report", "catalog.yaml"))


def build(data: Mapping[str, Any]) -> Catalog:
    """A catalogue from parsed YAML; raises ValueError that names the entry at fault."""
    quantities: dict[str, Quantity] = {}
    for group in data["groups"]:
        for name, entry in group["quantities"].items():
            quantities[name] = _quantity(name, entry, group)
    metrics = _metric_names(quantities)
    return Catalog(
        quantities=quantities,
        titles={group["group"]: group["title"] for group in data["groups"]},
        breakdowns=_recorded(data["breakdowns"], ""),
        lines=_recorded(data["lines"]["quantities"], data["lines"]["section"]),
        series=_recorded(data["series"]["quantities"], data["series"]["section"]),
        device=data["device"],
        sections=data["sections"],
        kernel_start=data["lines"]["kernel_start"],
        metric_names=metrics,
    )


def _metric_names(quantities: Mapping[str, Quantity]) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for quantity in quantities.values():
        for alternative in quantity.alternatives:
            names.update(dict.fromkeys(alternative.formula.names))
    return tuple(name for name in names if name not in quantities and name not in TENSOR_CODE)


def _quantity(name: str, entry: Mapping[str, Any], group: Mapping[str, Any]) -> Quantity:
    listed = entry.get("formulas", [entry["formula"]] if "formula" in entry else [])
    within = entry.get("within")
    try:
        return Quantity(
            name=name,
            group=group["group"],
            unit=str(entry["unit"]),
            meaning=entry["meaning"],
            section=entry.get("section", group["section"]),
            source=entry.get("source", group["source"]),
            alternatives=tuple(_alternative(item) for item in listed),
            absent_on=tuple(
                parse_range(span) for span in entry.get("absent_on", group.get("absent_on", []))
            ),
            within=(float(within[0]), float(within[1])) if within else None,
            computed=entry.get("computed", ""),
            none_on=tuple(parse_range(span) for span in entry.get("none_on", [])),
        )
    except (KeyError, ValueError) as error:
        raise ValueError(f"catalogue entry {name}: {error}") from error


def _alternative(item: str | Mapping[str, Any]) -> Alternative:
    if isinstance(item, str):
        item = {"formula": item}
    return Alternative(
        formula=parse(item["formula"]),
        cc=parse_range(item.get("cc", "7.0-")),
        lead=bool(item.get("lead", False)),
        shortest=float(item.get("from", 0.0)),
    )


def parse_range(text: str) -> Range:
    """Read `9.0`, `8.0-8.9` or `10.0-` (and newer)."""
    low, dash, high = text.partition("-")
    first = parse_capability(low)
    if not dash:
        return Range(first, first)
    return Range(first, parse_capability(high) if high else NEWEST)


def _recorded(entries: Mapping[str, Any], section: str) -> Mapping[str, Recorded]:
    return {
        name: Recorded(
            name=name,
            unit=str(entry["unit"]),
            meaning=entry["meaning"],
            metric=entry["metric"],
            section=entry.get("section", section),
            by=entry.get("by", ""),
        )
        for name, entry in entries.items()
    }
