"""Catalog quantities of each launch from its recorded metrics, or why they are missing."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from profkit.core.columns import Column, Mask
from profkit.core.compute_capability import ComputeCapability
from profkit.hardware.gpus import capability
from profkit.machine_code.opcodes import (
    CLASSES,
    half_flop_of_move,
    instructions,
    tensor_operations,
)
from profkit.report import checks
from profkit.report.catalog import TENSOR_CODE, Alternative, Quantity, catalog
from profkit.report.reader import KERNEL, RawReport, Request
from profkit.report.source_lines import executed_code, executed_where

_DURATION = "duration"
_TIMED = re.compile(r"elapsed|per_second|time_duration")  # in ncu's names
_CLOCK = re.compile(r"cycles_elapsed\.avg\.per_second$")

# Functions with a fast intrinsic besides the accurate version.
_MATH_CALL = re.compile(r"(?<![\w.])(?:sin|cos|tan|sincos|exp|exp10|log|log2|log10|pow)f?\s*\(")

# ncu's codes for what an instruction does to memory, read off the opcodes of recorded kernels.
_ACCESS_TYPES = {"load": "2", "store": "4", "async": "6", "atomic": "8"}


class Words(Struct, frozen=True):
    """A text or None for each launch: few different ones, by their places in `texts`."""

    texts: Sequence[str | None]
    places: npt.NDArray[np.int16]

    def __getitem__(self, launch: int) -> str | None:
        return self.texts[int(self.places[launch])]


class Quantities(Struct, frozen=True):
    """Every catalog quantity of the launches of a report.

    `values` has float64 of shape (launches,) in the catalog's units, NaN where missing; `missing`
    the reason for each NaN, None elsewhere; `formulas` the formula that gave the value, or None.
    """

    values: Mapping[str, Column]
    missing: Mapping[str, Words]
    formulas: Mapping[str, Words]


def request() -> Request:
    """What must be read of a report to evaluate the whole catalog."""
    entries = catalog()
    return Request(
        metrics=entries.metric_names,
        breakdowns={name: (entry.metric, entry.by) for name, entry in entries.breakdowns.items()},
        device=entries.device,
    )


def evaluate(raw: RawReport, *, check_half_from: float = 0.0) -> Quantities:
    """All quantities of the catalog for all launches of a report.

    ncu's half-precision counters also count instructions that compute nothing. Separating them
    takes the vendor's disassembler, a third of a second once a process: it is asked only where the
    counters claim at least `check_half_from` of the half-precision roof (0: wherever they are not
    zero). Elsewhere the half-precision work stays unknown.
    """
    return _Evaluation(raw, check_half_from).run()


class _Evaluation:
    """One pass over the catalog; quantities that formulas name are evaluated on demand."""

    def __init__(self, raw: RawReport, check_half_from: float) -> None:
        self._raw = raw
        self._check_half_from = check_half_from
        self._entries = catalog()
        self._capabilities = [capability(launch.device) for launch in raw.launches]
        self._chips = tuple(dict.fromkeys(self._capabilities))
        self._chip = np.array([self._chips.index(cc) for cc in self._capabilities], dtype=np.int16)
        self._divided = np.array([any(each.breakdowns.values()) for each in raw.launches])
        self._single = np.array([launch.workload == KERNEL for launch in raw.launches], dtype=bool)
        self._timed = self._single & (raw.session.options.get("graph-profiling") != "graph")
        self._unknown = np.full(len(raw.launches), np.nan)
        self._nowhere = np.zeros(len(raw.launches), dtype=bool)
        self._columns = dict(raw.columns)
        self._available = dict(raw.recorded)
        self._missing: dict[str, Words] = {}
        self._formulas: dict[str, Words] = {}
        self._executed = self._entries.lines["instructions_executed"].metric

    def run(self) -> Quantities:
        for name in self._entries.quantities:
            self._require(name)
        return Quantities(
            values={name: self._columns[name] for name in self._entries.quantities},
            missing=self._reasons(),
            formulas=self._formulas,
        )

    def _on(self, holds: Callable[[ComputeCapability], bool]) -> Mask:
        """The launches on chips of which something holds."""
        return np.array([holds(cc) for cc in self._chips], dtype=bool)[self._chip]

    def _reasons(self) -> Mapping[str, Words]:
        """The reasons, none of which asks for a section that the launch evidently has, or that the
        full set of an older ncu did not.

        Of metrics that were asked for by name, a quantity tells nothing of its section.
        """
        options = self._raw.session.options
        if options.get("set") == "full" and is_older(self._raw.session.ncu_version):

            def told(text: str | None) -> str | None:
                return (
                    checks.NOT_IN_VERSION
                    if text and text.startswith(checks.NOT_COLLECTED)
                    else text
                )

            rows = self._missing.items()
            return {name: Words(list(map(told, row.texts)), row.places) for name, row in rows}
        named = options.get("section", "").split(",")
        present: dict[str | None, Mask] = {}
        for section, mark in self._entries.sections.items():
            if section not in named and options.get("metrics"):
                continue
            reason, has = _not_collected(section), self._missing[mark].places == 0
            present[reason] = present.get(reason, self._nowhere) | has
        reasons: dict[str, Words] = {}
        for name, words in self._missing.items():
            places = words.places.copy()
            for place, text in enumerate(words.texts):
                if text in present:
                    places[(places == place) & present[text]] = len(words.texts)
            reasons[name] = Words((*words.texts, checks.NOT_IN_VERSION), places)
        return reasons

    def _require(self, name: str) -> bool:
        """Whether a column of that name exists, after evaluating the quantity it may be."""
        quantity = self._entries.quantities.get(name)
        if quantity is not None and name not in self._missing:
            self._evaluate(quantity)
        if name in TENSOR_CODE and name not in self._columns:
            self._read_tensor_code()
        return name in self._columns

    def _read_tensor_code(self) -> None:
        """The columns of tensor operations by machine code: looked up where such code ran."""
        self._require("tensor_instructions")
        self._require("tensor_busy")
        counted, busy = self._columns["tensor_instructions"], self._columns["tensor_busy"]
        ran = (counted > 0) | (np.isnan(counted) & (busy > 0))
        operations = [
            tensor_operations(code)
            if was_run and action and (code := executed_code(action, self._executed)) is not None
            else None
            for was_run, action in zip(ran, self._raw.actions or (None,) * len(ran), strict=True)
        ]
        for name, kind in TENSOR_CODE.items():
            column = [np.nan if work is None else work[kind] for work in operations]
            self._columns[name] = np.array(column, dtype=np.float64)
            self._available[name] = ~np.isnan(self._columns[name])

    def _evaluate(self, quantity: Quantity) -> None:
        value = self._unknown.copy()
        formulas: list[str | None] = [None]
        source = np.zeros(len(value), dtype=np.int16)
        tried = self._nowhere.copy()

        def put(launches: Mask, values: Column | float, formula: str) -> None:
            np.copyto(value, values, where=launches)
            source[launches] = len(formulas)
            formulas.append(formula)

        present = self._on(quantity.exists_on)
        if quantity.of_one:
            present &= self._single
        if quantity.computed:
            everywhere = ~self._nowhere
            put(everywhere, np.where(present, self._compute(quantity), np.nan), quantity.computed)
        put(self._on(quantity.is_none_on), 0.0, "0")
        for alternative in quantity.alternatives:
            wanted = present & np.isnan(value)
            if _is_of_time(quantity, alternative):
                wanted &= self._timed
            usable = self._usable(alternative, wanted)
            if not usable.any():
                continue
            result = alternative.formula(self._columns)
            put(usable & ~np.isnan(result), result, alternative.formula.text)
            tried |= usable & (~np.isnan(result) if alternative.formula.infers else True)
        self._columns[quantity.name] = value
        self._available[quantity.name] = ~np.isnan(value) | tried
        self._formulas[quantity.name] = Words(formulas, source)
        self._missing[quantity.name] = self._why_missing(quantity, tried)

    def _why_missing(self, quantity: Quantity, tried: Mask) -> Words:
        """The reasons of a quantity, each asked once for launches that differ in nothing that a
        reason rests on."""
        rows = np.flatnonzero(np.isnan(self._columns[quantity.name]))
        texts: list[str | None] = [None]
        places = np.zeros(len(tried), dtype=np.int16)
        kinds = np.zeros(len(rows), dtype=np.int64)
        for column in (tried, *self._grounds(quantity)):
            part = column[rows]
            if len(part) and (part != part[0]).any():
                kinds = np.unique(kinds * (int(part.max()) + 1) + part, return_inverse=True)[1]
        _, firsts, numbers = np.unique(kinds, return_index=True, return_inverse=True)
        first = rows[firsts].tolist()
        texts += [self._reason(quantity, launch, bool(tried[launch])) for launch in first]
        places[rows] = numbers + 1
        return Words(texts, places)

    def _grounds(self, quantity: Quantity) -> Iterator[npt.NDArray[Any]]:
        """What the reason rests on why a quantity is missing, as columns of whole numbers."""
        yield from (self._chip, self._single, self._timed)
        names = {name for item in quantity.alternatives for name in item.formula.names}
        for name in (names | {quantity.computed}) & self._columns.keys():
            yield self._available.get(name, self._nowhere)
            yield np.isnan(self._columns[name])
            if name in self._missing:
                yield self._missing[name].places
        for item in quantity.alternatives:
            if item.shortest:
                yield item.shortest > self._columns["duration"]

    def _compute(self, quantity: Quantity) -> Column:
        known = self._require(quantity.computed)
        base = self._columns[quantity.computed] if known else self._unknown
        is_claimed = quantity.name == "flop_fp16_moves"
        values = self._unknown.copy()
        for index in np.flatnonzero(~np.isnan(base) if is_claimed else self._divided).tolist():
            values[index] = self._value(quantity.name, index, base[index])
        return values

    def _value(self, name: str, index: int, claim: float) -> float:
        """What no formula can give of a launch; `claim` is what the quantity that it is computed
        from says."""
        breakdowns = self._raw.launches[index].breakdowns
        kind = name.removesuffix("_instructions")
        if name == "flop_fp16_moves":
            if claim == 0 or not claim >= self._check_half_from:
                return 0.0 if claim == 0 else np.nan
            threads = self._entries.lines["thread_instructions"].metric
            code = executed_code(self._raw.actions[index], threads)
            moves = (times * half_flop_of_move(text) for text, times in code or ())
            return np.nan if code is None else sum(moves)
        if name == "debug_information":
            has_program = bool(self._raw.actions) and not np.isnan(claim)
            return self._raw.actions[index].debug_information if has_program else np.nan
        if kind == name:
            table, access = name.rsplit("_", 1)
            parts = breakdowns[f"{table}_by_access"]
            return parts.get(_ACCESS_TYPES[access], 0.0) if parts else np.nan
        opcodes = breakdowns["instructions_by_opcode"]
        if kind == "math_call" and opcodes:
            return executed_where(self._raw.actions[index], self._executed, _MATH_CALL)
        return instructions(kind, opcodes) if kind in CLASSES else np.nan

    def _usable(self, alternative: Alternative, wanted: Mask) -> Mask:
        """The launches of those wanted that the alternative is for and that recorded its inputs."""
        usable = wanted & self._on(alternative.cc.__contains__)
        if alternative.shortest and usable.any():
            self._require("duration")
            usable &= self._columns["duration"] >= alternative.shortest
        for name in alternative.formula.names:
            if not usable.any() or not self._require(name):
                return self._nowhere
            usable &= self._available[name]
        return usable

    def _is_available(self, name: str, index: int) -> bool:
        return bool(self._available.get(name, self._nowhere)[index])

    def _reason(self, quantity: Quantity, index: int, tried: bool) -> str:
        cc = self._capabilities[index]
        if not quantity.exists_on(cc):
            return checks.NOT_HERE
        if quantity.of_one and not self._single[index]:
            return checks.OF_ONE
        matching = [item for item in quantity.alternatives if cc in item.cc]
        if not matching and not quantity.computed:
            return checks.UNKNOWN_HERE
        if quantity.computed and self._is_available(quantity.computed, index):
            return checks.NOT_CHECKED
        if not self._timed[index] and any(_is_of_time(quantity, item) for item in matching):
            return checks.NOT_TIMED
        for name in matching[0].formula.names if matching else ():
            if name in self._missing and (reason := self._missing[name][index]) is not None:
                return reason
        # A longer launch would have had a value by what this one recorded.
        if any(
            item.shortest > self._columns["duration"][index]
            and all(self._is_available(name, index) for name in item.formula.names)
            for item in matching
            if item.shortest
        ):
            return checks.TOO_SHORT
        if not tried:
            return _not_collected(quantity.section)
        counters = {name for item in matching for name in item.formula.names}
        silent = any(
            self._is_available(name, index) and np.isnan(self._columns[name][index])
            for name in counters - self._entries.quantities.keys()
        )
        return checks.NO_VALUE if silent else checks.UNDEFINED


def _is_of_time(quantity: Quantity, alternative: Alternative) -> bool:
    """Whether a formula rests on the time of the launch; a clock, cycles per second, does not."""
    return quantity.name != _DURATION and any(
        name == _DURATION or (_TIMED.search(name) and not _CLOCK.search(name))
        for name in alternative.formula.names
    )


@cache
def is_older(version: str | None) -> bool:
    """Whether a version of ncu, `2023.2.2.0`, has other sections than the catalog names: it is
    older than 2025.3."""
    parts = (version or "").split(".")
    return all(map(str.isdecimal, parts)) and tuple(map(int, parts)) < (2025, 3)


def _not_collected(section: str) -> str:
    remedy = "" if section == "any" else f"; record with ncu --section {section}"
    return f"{checks.NOT_COLLECTED}{remedy}"
