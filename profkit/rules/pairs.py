"""Recorded pairs: a kernel with a known defect before and after its fix, and what the fix gave.

    PAIR/  pair.yaml                    category: of the defect; null, absent or control: true, none
           before.ncu-rep(z)            as it was
           after.ncu-rep(z)             mended; a control may do without
           latency.json                 of both, or none: then the reports' durations are compared

latency.json is what `profkit time` wrote, with the labels before and after, or `{"before": ...,
"after": ...}` in one unit, each a number, a list of samples or a mapping with a `median`.
"""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct, convert

from profkit.core.errors import BadInput
from profkit.core.text_files import read_json
from profkit.core.typed_file import fault, number
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
    """A pair. `category` is None for a control; `second_limit` is what holds the mended kernel.

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
    found = tuple(sorted(file.parent for file in folder.rglob(PAIR)))
    if not found:
        raise BadInput(f"{folder}: no {PAIR} below it", "name a folder of recorded pairs")
    return found


def read_pair(folder: Path) -> RecordedPair:
    """A pair; raises BadInput where a part of it is missing or is not what it should be."""
    told = _read(folder / PAIR, PairFile)
    if told.control or told.category is None:
        return RecordedPair(folder.name, None, "", _needed(folder), None, math.nan)
    after = _report(folder, AFTER)
    achieved = _achieved(folder / IN_A_RUN)
    if after is None and math.isnan(achieved):
        raise BadInput(f"{folder}: no {AFTER}.ncu-rep(z) and no {IN_A_RUN}", "record one of them")
    limit = told.second_limit or ""
    return RecordedPair(folder.name, told.category, limit, _needed(folder), after, achieved)


def read_notes(pairs: Path) -> PairNotes:
    """Notes in a folder of pairs, or for recorded ones in kernels/pairs of their checkout."""
    above = (parent / _OF_A_CHECKOUT for parent in Path(os.path.realpath(pairs)).parents)
    folder = _with_notes((pairs, *above))
    if folder is None:
        return PairNotes()
    held_out, misses = folder / _HELD_OUT, Misses()
    if (folder / _MISSES).is_file():
        misses = _read(folder / _MISSES, Misses)
    return PairNotes(
        frozenset(_read(held_out, list[str])) if held_out.is_file() else None,
        {name: " ".join(text.split()) for name, text in (misses.why or {}).items()},
        " ".join((misses.note or "").split()),
    )


def joined(notes: Sequence[PairNotes]) -> PairNotes:
    """The notes of several folders as one; which pairs were set aside is each folder's own."""
    why = {name: text for one in notes for name, text in one.why.items()}
    return PairNotes(None, why, " ".join(one.note for one in notes if one.note))


def _with_notes(folders: Iterable[Path]) -> Path | None:
    noted = (one for one in folders if any((one / name).is_file() for name in (_HELD_OUT, _MISSES)))
    return next(noted, None)


def _read(path: Path, model: type[T]) -> T:
    """The content of a YAML file; raises BadInput naming the place that is not as it must be."""
    told = read_yaml(path)
    if wrong := fault(told, model):
        where = ".".join(map(str, wrong[0]))
        raise BadInput(f"{path}: {f'{where}: ' if where else ''}{wrong[1]}", "check the file")
    return convert(told, model)


def _needed(folder: Path) -> Path:
    found = _report(folder, BEFORE)
    if found is None:
        raise BadInput(f"{folder}: no {BEFORE}.ncu-rep(z)", "record it")
    return found


def _report(folder: Path, side: str) -> Path | None:
    paths = (folder / f"{side}{suffix}" for suffix in _REPORTS)
    return next((path for path in paths if path.is_file()), None)


def _achieved(path: Path) -> float:
    """The factor between the medians of both sides; NaN where there is no such file."""
    if not path.exists():
        return math.nan
    document = read_json(path)
    medians = _timed(path) if _is_timed(document) else _told(path, document)
    if BEFORE not in medians or AFTER not in medians:
        raise BadInput(f"{path}: no latencies of {BEFORE} and {AFTER}", f"give {_FORMS}")
    return medians[BEFORE] / medians[AFTER]


def _is_timed(document: Any) -> bool:
    return isinstance(document, dict) and document.get("schema") == SCHEMA


def _timed(path: Path) -> Mapping[str, float]:
    return {one.label: statistics.median(one.samples) for one in read_latencies(path).latencies}


def _told(path: Path, document: Any) -> Mapping[str, float]:
    sides = document if isinstance(document, dict) else {}
    medians = {}
    for side in (BEFORE, AFTER):
        if side in sides:
            try:
                medians[side] = _median(sides[side], side)
            except BadInput as error:
                raise BadInput(f"{path}: {error.message}", f"give {_FORMS}") from None
    return medians


def _median(told: Any, side: str) -> float:
    """The median of a side in whatever unit; raises BadInput for what is no positive time."""
    scale = 1.0
    if isinstance(told, dict):
        names = {"median": 1.0} | {f"median_{unit}": factor for unit, factor in UNITS.items()}
        key = next((name for name in (*names, *_SAMPLES) if name in told), None)
        if key is None:
            raise BadInput(f"{side} has no median")
        told, scale = told[key], names.get(key, 1.0)
    samples = told if isinstance(told, list) else [told]
    if not samples:
        raise BadInput(f"{side} has no samples")
    median = statistics.median(number(sample, f"{side}: a sample") for sample in samples)
    if not median > 0:
        raise BadInput(f"{side} takes {median:g}, which is no time")
    return median * scale
