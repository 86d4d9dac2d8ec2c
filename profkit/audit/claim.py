"""What is claimed in one place: figures by quantity, and what they are of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import msgspec
from msgspec import Struct

from profkit.audit.printed_numbers import Figure
from profkit.core.typed_file import Model, part
from profkit.core.yaml_files import shipped_yaml

SHAPE = ("batch", "heads", "length", "dim")


class Quantity(Model, frozen=True):
    """The unit of a quantity's figures, and the keys of rows that have it, with their units."""

    unit: str
    keys: dict[str, str] = msgspec.field(default_factory=dict)


QUANTITIES = msgspec.convert(shipped_yaml("profkit.audit", "quantities.yaml"), dict[str, Quantity])
UNITS = {name: quantity.unit for name, quantity in QUANTITIES.items()}


class Side(Struct, frozen=True):
    """One of the things that a sentence compares: a GPU with its time and the product of its
    sizes."""

    gpu: str
    time: Figure
    size: int


class Change(Struct, frozen=True):
    """A claimed change between two quantities, in the order of the sentence.

    `meaning` is "times", or of a percentage "worth" (faster, a gain), "less" or "more". `hedged`
    says that the number is called approximate.
    """

    meaning: str
    claimed: Figure
    first: Figure
    second: Figure
    kind: str
    hedged: bool


@dataclass(frozen=True)
class Claim:
    """What is claimed in one place; what it leaves open is None or empty.

    `where` is the place in the file, `study` that of what it belongs to: claims of a study may
    speak of its rows. `gpus` are names as written, the likeliest first. `peak_of` says what the
    peaks are of: the datasheet, the clock that was held, or a measurement. `cache` is `warm` where
    a call found its inputs in L2. `operation` is attention unless it says otherwise. In a sentence,
    `apart` says that so many intervals do not overlap (0: no number), `sides` are compared,
    `matrices` are the sizes M, N, K of a product, `devices` is how many GPUs the figures are of
    together (0: several), `accumulate` the precision of the sums. In a record, `name` is that of a
    cell, `sources` are those that a figure was made of, in the order of the quotient; the figure
    `measure` repeats the quantity `measure_of` of its cell; `outer_ends` are ends of other
    intervals of the time, low and high in turn. `unread` are numbers that
    nothing could be made of.
    """

    where: str = ""
    text: str = ""
    study: str = ""
    figures: Mapping[str, Figure] = field(default_factory=dict, hash=False)
    gpus: tuple[str, ...] = ()
    dtype: str = ""
    path: str = ""
    operation: str = ""
    batch: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    length: int | None = None
    dim: int | None = None
    causal: bool | None = None
    backward: bool | None = None
    cache: str = ""
    n: int | None = None
    peak_of: str = ""
    bound: str = ""
    memory: str = ""
    sides: tuple[Side, ...] = ()
    outer_ends: tuple[Figure, ...] = ()
    measure_of: str = ""
    name: str = ""
    sources: tuple[str, ...] = ()
    matrices: tuple[int, ...] = ()
    devices: int | None = None
    accumulate: str = ""
    changes: tuple[Change, ...] = ()
    grid_dimensions: int | None = None
    apart: int | None = None
    unread: tuple[str, ...] = ()

    def stating(self, **values: Any) -> Claim:
        """The claim with these fields and figures."""
        figures = {name: values.pop(name) for name in [*values] if name in UNITS}
        return replace(self, figures={**self.figures, **figures}, **values)

    def over(self, other: Claim) -> Claim:
        """The claim, with what another states of what it leaves open."""
        stated = {
            each.name: value
            for each in fields(self)
            if (value := getattr(self, each.name)) != getattr(NOTHING, each.name)
        }
        return replace(other, **stated | {"figures": {**other.figures, **self.figures}})

    def only(self, *names: str) -> Claim:
        """Some of its fields and figures alone."""
        figures = {name: self.figures[name] for name in names if name in self.figures}
        return Claim(**part(self, *set(names) - UNITS.keys()) | {"figures": figures})

    def without(self, *names: str) -> Claim:
        """The claim without these fields and figures."""
        figures = {name: value for name, value in self.figures.items() if name not in names}
        return replace(self, **part(NOTHING, *set(names) - UNITS.keys()) | {"figures": figures})

    @property
    def with_kind_of_share(self) -> Claim:
        """The claim, its share of "peak" that of the only kind of rate or peak that it has."""
        kinds = {name.split("_")[0] for name in self.figures if name.endswith(("_rate", "_peak"))}
        if "share" not in self.figures or kinds not in ({"flop"}, {"byte"}):
            return self
        kind = {"share": f"{kinds.pop()}_share"}
        return replace(self, figures={kind.get(k, k): each for k, each in self.figures.items()})

    def __getitem__(self, quantity: str) -> Figure | None:
        return self.figures.get(quantity)

    def value(self, name: str) -> Any:
        """The figure, or the field, of that name."""
        return self.figures.get(name) if name in UNITS else getattr(self, name)

    @property
    def shape(self) -> tuple[int | None, ...]:
        """Batch, heads, length and dim."""
        return self.batch, self.heads, self.length, self.dim

    @property
    def says_something(self) -> bool:
        """Whether anything is claimed that could be held against something."""
        statements = (self.bound, self.memory, self.sides, self.changes)
        dimensions = (self.grid_dimensions, self.apart)
        return bool(self.figures) or any(statements) or dimensions != (None, None)


NOTHING = Claim()
