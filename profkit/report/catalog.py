"""The catalog: quantities with name, unit, meaning, and their formulas over ncu metrics.

The data is `catalog.yaml` in this package; its head comment describes an entry.
"""

from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from typing import Any

from msgspec import Struct

from profkit.core.compute_capability import ComputeCapability, Range, parse_range
from profkit.core.yaml_files import shipped_yaml
from profkit.machine_code.opcodes import HALF_ACCUMULATE, HMMA, KINDS, SPARSE
from profkit.report.formula import Formula, parse

TENSOR_CODE: Mapping[str, str] = {
    f"code_tensor_{kind}": kind for kind in (*KINDS, HMMA, SPARSE, HALF_ACCUMULATE)
}
"""Tensor operations by machine code, as formulas name them, and their kinds."""


class Alternative(Struct, frozen=True):
    """One way to get a quantity: a formula, the compute capabilities it holds for and the shortest
    launch (s) that it does. A `proxy` measures something else that is near."""

    formula: Formula
    cc: Range
    lead: bool
    shortest: float = 0.0
    proxy: bool = False


class Quantity(Struct, frozen=True):
    """A catalog entry.

    `unit` is SI, "1" for a share. `computed` names what a quantity that no formula can give is
    computed from: a breakdown, or the quantity that decides where it is worth the cost. `within`
    are the bounds of possible values. `absent_on` are the architectures without the hardware; on
    those of `none_on` the quantity is 0. `of_one`: it is of a single launch, and has no meaning for
    several that were recorded as one.
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
    of_one: bool = False

    def exists_on(self, cc: ComputeCapability) -> bool:
        return not any(cc in span for span in self.absent_on)

    def is_none_on(self, cc: ComputeCapability) -> bool:
        """Whether the hardware is absent, so that the quantity is 0."""
        return any(cc in span for span in self.none_on)


class Recorded(Struct, frozen=True):
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


class Catalog(Struct, frozen=True, dict=True):
    """The catalog, in the order of the file.

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

    def group(self, name: str) -> Iterator[Quantity]:
        return (entry for entry in self.quantities.values() if entry.group == name)

    @cached_property
    def metric_names(self) -> tuple[str, ...]:
        """ncu's names in the formulas."""
        names = (
            name
            for entry in self.quantities.values()
            for alternative in entry.alternatives
            for name in alternative.formula.names
            if name not in self.quantities and name not in TENSOR_CODE
        )
        return tuple(dict.fromkeys(names))

    @cached_property
    def checked(self) -> frozenset[str]:
        """Quantities that are unknown of a launch unless its machine code is looked at.

        They rest, by however many formulas, on one that is computed only where it is worth it.
        """
        entries = self.quantities.values()
        names = {entry.name for entry in entries if entry.computed in self.quantities}
        size = 0
        while len(names) > size:
            size = len(names)
            for entry in entries:
                if any(names.intersection(item.formula.names) for item in entry.alternatives):
                    names.add(entry.name)
        return frozenset(names)


@cache
def catalog() -> Catalog:
    """The catalog that comes with profkit."""
    return build(shipped_yaml("profkit.report", "catalog.yaml"))


def build(data: Mapping[str, Any]) -> Catalog:
    """A catalog from parsed YAML; raises ValueError that names the faulty entry."""
    lines, series = data["lines"], data["series"]
    return Catalog(
        quantities={
            name: _quantity(name, entry, group)
            for group in data["groups"]
            for name, entry in group["quantities"].items()
        },
        titles={group["group"]: group["title"] for group in data["groups"]},
        breakdowns=_recorded(data["breakdowns"], ""),
        lines=_recorded(lines["quantities"], lines["section"]),
        series=_recorded(series["quantities"], series["section"]),
        device=data["device"],
        sections=data["sections"],
        kernel_start=lines["kernel_start"],
    )


def _quantity(name: str, entry: dict[str, Any], group: Mapping[str, Any]) -> Quantity:
    shared = ("section", "source", "absent_on", "of_one")
    row = {key: group[key] for key in shared if key in group} | entry
    formulas = [row.pop("formula")] if "formula" in row else row.pop("formulas", ())
    try:
        for key in ("absent_on", "none_on"):
            row[key] = tuple(map(parse_range, row.get(key, ())))
        row["within"] = tuple(row.get("within", ())) or None
        return Quantity(
            name, group["group"], alternatives=tuple(map(_alternative, formulas)), **row
        )
    except (KeyError, ValueError, TypeError) as error:
        raise ValueError(f"catalog entry {name}: {error}") from error


def _alternative(item: str | Mapping[str, Any]) -> Alternative:
    row: Mapping[str, Any] = {"formula": item} if isinstance(item, str) else item
    span = parse_range(row.get("cc", "7.0-"))
    formula, lead, shortest = parse(row["formula"]), row.get("lead", False), row.get("from", 0.0)
    return Alternative(formula, span, lead, shortest, row.get("proxy", False))


def _recorded(entries: Mapping[str, Any], section: str) -> Mapping[str, Recorded]:
    return {name: Recorded(name, **{"section": section, **row}) for name, row in entries.items()}
