"""Recorded pairs: a kernel with a known defect before and after its fix, and what the fix gave.

    PAIR/  pair.yaml                    category: of the defect; null, absent or control: true, none
           before.ncu-rep(z)            as it was
           after.ncu-rep(z)             fixed; a control may do without
           latency.json                 of both, or none: then the reports' durations are compared

latency.json is what `profkit time` wrote, with the labels before and after, or `{"before": ...,
"after": ...}` in one unit, each a number, a list of samples or a mapping with a `median`.
"""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct, convert

from profkit.core.errors import BadInput
from profkit.core.fields import number
from profkit.core.text_files import read_json
from profkit.core.typed_file import fault
from profkit.core.yaml_files import read_yaml
from profkit.timing.latency_file import IN_A_RUN, UNITS, read_latencies
from profkit.timing.latency_format import SCHEMA

T = TypeVar("T")
PAIR = "pair.yaml"
BEFORE, AFTER = "before", "after"
_REPORTS = (".ncu-repz", ".ncu-rep")
_SAMPLES = ("samples", "raw_latencies", "latencies")
_HELD_OUT, _MISSES = "held_out.yaml", "misses.yaml"
_OF_A_CHECKOUT = Path("kernels", "pairs")
_FORMS = "before and after as numbers, lists of samples or mappings with a median"


@dataclass(frozen=True)
class RecordedPair:
    """A pair. `category` is None for a control; `second_limit` is what holds the fixed kernel.

    `achieved` is the factor by which the fix made it faster, NaN where that was not timed.
    """

    name: str
    category: str | None
    second_limit: str
    before: Path
    after: Path | None
    achieved: float


class PairFile(Struct, frozen=True):
    """pair.yaml, as far as it is read."""

    category: str | None = None
    control: bool = False
    second_limit: str | None = None


class Misses(Struct, frozen=True):
    """misses.yaml: why pairs are missed, by their name."""

    note: str | None = None
    why: dict[str, str] | None = None


@dataclass(frozen=True)
class PairNotes:
    """What is known of a collection of pairs: names of those set aside while the rules were made
    (None where nothing tells), why some are missed, and what else a reader should know."""

    held_out: frozenset[str] | None = None
    why: Mapping[str, str] = field(default_factory=dict)
    note: str = ""


def pairs_in(folder: Path) -> tuple[Path, ...]:
    """The folders of pairs below a folder, sorted; raises BadInput where there is none."""
    pairs = tuple(sorted(file.parent for file in folder.rglob(PAIR)))
    if not pairs:
        raise BadInput(f"{folder}: no {PAIR} below it", "name a folder of recorded pairs")
    return pairs


def read_pair(folder: Path) -> RecordedPair:
    """A pair; raises BadInput where a part of it is missing or is not what it should be."""
    pair = _read(folder / PAIR, PairFile)
    before, after = (
        next((path for suffix in _REPORTS if (path := folder / f"{side}{suffix}").is_file()), None)
        for side in (BEFORE, AFTER)
    )
    is_control = pair.control or pair.category is None
    achieved = math.nan if is_control else _achieved(folder / IN_A_RUN)
    if not is_control and after is None and math.isnan(achieved):
        raise BadInput(f"{folder}: no {AFTER}.ncu-rep(z) and no {IN_A_RUN}", "record one of them")
    if before is None:
        raise BadInput(f"{folder}: no {BEFORE}.ncu-rep(z)", "record it")
    if is_control:
        return RecordedPair(folder.name, None, "", before, None, achieved)
    limit = pair.second_limit or ""
    return RecordedPair(folder.name, pair.category, limit, before, after, achieved)


def read_notes(pairs: Path) -> PairNotes:
    """Notes in a folder of pairs, or for recorded ones in kernels/pairs of their checkout."""
    checkouts = (parent / _OF_A_CHECKOUT for parent in Path(os.path.realpath(pairs)).parents)
    for folder in (pairs, *checkouts):
        held_out, misses = folder / _HELD_OUT, folder / _MISSES
        if held_out.is_file() or misses.is_file():
            missed = _read(misses, Misses) if misses.is_file() else Misses()
            return PairNotes(
                frozenset(_read(held_out, list[str])) if held_out.is_file() else None,
                {name: " ".join(text.split()) for name, text in (missed.why or {}).items()},
                " ".join((missed.note or "").split()),
            )
    return PairNotes()


def joined(notes: Sequence[PairNotes]) -> PairNotes:
    """The notes of several folders as one; which pairs were set aside is each folder's own."""
    why = {name: text for each in notes for name, text in each.why.items()}
    return PairNotes(None, why, " ".join(each.note for each in notes if each.note))


def _read(path: Path, model: type[T]) -> T:
    """The content of a YAML file; raises BadInput naming the place that is not as it must be."""
    content = read_yaml(path)
    if wrong := fault(content, model):
        where = ".".join(map(str, wrong[0]))
        raise BadInput(f"{path}: {f'{where}: ' if where else ''}{wrong[1]}", "check the file")
    return convert(content, model)


def _achieved(path: Path) -> float:
    """The factor between the medians of both sides; NaN where there is no such file."""
    if not path.exists():
        return math.nan
    document = read_json(path)
    sides = document if isinstance(document, dict) else {}
    if sides.get("schema") == SCHEMA:
        latencies = read_latencies(path).latencies
        medians = {latency.label: statistics.median(latency.samples) for latency in latencies}
    else:
        try:
            medians = {
                side: _median(sides[side], side) for side in (BEFORE, AFTER) if side in sides
            }
        except BadInput as error:
            raise BadInput(f"{path}: {error.message}", f"give {_FORMS}") from None
    if BEFORE not in medians or AFTER not in medians:
        raise BadInput(f"{path}: no latencies of {BEFORE} and {AFTER}", f"give {_FORMS}")
    return medians[BEFORE] / medians[AFTER]


def _median(times: Any, side: str) -> float:
    """The median of a side in whatever unit; raises BadInput for what is no positive time."""
    scale = 1.0
    if isinstance(times, dict):
        names = {"median": 1.0} | {f"median_{unit}": factor for unit, factor in UNITS.items()}
        key = next((name for name in (*names, *_SAMPLES) if name in times), None)
        if key is None:
            raise BadInput(f"{side} has no median")
        times, scale = times[key], names.get(key, 1.0)
    samples = times if isinstance(times, list) else [times]
    if not samples:
        raise BadInput(f"{side} has no samples")
    median = statistics.median(number(sample, f"{side}: a sample") for sample in samples)
    if not median > 0:
        raise BadInput(f"{side} takes {median:g}, which is no time")
    return median * scale
