"""From what was recorded to what is meant: catalogue quantities for each launch, or why not."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np

from profkit.core.columns import Column, Mask
from profkit.report.catalog import (
    TENSOR_CODE,
    Alternative,
    Catalog,
    ComputeCapability,
    Quantity,
    catalog,
)
from profkit.report.gpus import capability
from profkit.report.reader import RawReport, Request
from profkit.report.resources import INSTRUCTION_CLASSES
from profkit.report.sass import (
    class_instructions,
    executed_opcodes,
    half_instructions,
    half_precision_moves,
    tensor_instructions,
    tensor_operations,
)
from profkit.report.source_lines import executed_where

NOT_HERE = "not on this architecture"
UNKNOWN_HERE = "not known for this architecture"
NO_VALUE = "the counter gave no value"
UNDEFINED = "undefined for this launch"
TOO_SHORT = "the launch is too short for it"
NOT_COLLECTED = "not collected"
NOT_IN_VERSION = "not collected by this version of ncu"
NOT_CHECKED = "not told apart from constant loads"

# Functions with a fast intrinsic beside the accurate version.
_MATH_CALL = re.compile(r"(?<![\w.])(?:sin|cos|tan|sincos|exp|exp10|log|log2|log10|pow)f?\s*\(")

# ncu's codes for what an instruction does to memory, read off the opcodes of recorded kernels.
_ACCESS_TYPES = {"load": "2", "store": "4", "async": "6", "atomic": "8"}


@dataclass(frozen=True)
class Quantities:
    """Every catalogue quantity of the launches of a report.

    `values` has float64 of shape (launches,) in the catalogue's units, NaN where missing; `missing`
    the reason for each NaN, None elsewhere; `formulas` the formula that gave the value, or None.
    """

    values: Mapping[str, Column]
    missing: Mapping[str, tuple[str | None, ...]]
    formulas: Mapping[str, tuple[str | None, ...]]


def request() -> Request:
    """What must be read of a report to evaluate the whole catalogue."""
    entries = catalog()
    return Request(
        metrics=entries.metric_names,
        breakdowns={name: (entry.metric, entry.by) for name, entry in entries.breakdowns.items()},
        device=entries.device,
    )


def evaluate(raw: RawReport, *, check_half_from: float = 0.0) -> Quantities:
    """All quantities of the catalogue for all launches of a report.

    ncu's half-precision counters also count instructions that compute nothing. Telling them apart
    takes the vendor's disassembler, a third of a second once a process: it is asked only where the
    counters claim at least `check_half_from` of the half-precision roof (0: wherever they are not
    zero). Elsewhere the half-precision work stays unknown.
    """
    entries = catalog()
    executed = entries.lines["instructions_executed"].metric
    threads = entries.lines["thread_instructions"].metric

    def moves(at: int, claimed: float) -> float:
        if claimed == 0 or not claimed >= check_half_from:
            return 0.0 if claimed == 0 else np.nan
        return half_precision_moves(raw.actions[at], threads)

    def opcodes(at: int) -> Mapping[str, float]:
        return raw.launches[at].breakdowns["instructions_by_opcode"]

    def of_class(kind: str, at: int, _: float) -> float:
        return class_instructions(kind, opcodes(at))

    def by_access(kind: str, key: str, at: int, _: float) -> float:
        parts = raw.launches[at].breakdowns[f"shared_{kind}_by_access"]
        return parts.get(key, 0.0) if parts else np.nan

    def math_calls(at: int, _: float) -> float:
        return executed_where(raw.actions[at], executed, _MATH_CALL) if opcodes(at) else np.nan

    def tensor_code(at: int) -> Mapping[str, float] | None:
        ran = executed_opcodes(raw.actions[at], executed)
        return None if ran is None else tensor_operations(ran)

    computed: dict[str, Callable[[int, float], float]] = {
        "flop_fp16_moves": moves,
        "half_instructions": lambda at, _: half_instructions(opcodes(at)),
        "tensor_instructions": lambda at, _: tensor_instructions(opcodes(at)),
        "math_call_instructions": math_calls,
    }
    for one in INSTRUCTION_CLASSES:
        computed[f"{one}_instructions"] = partial(of_class, one)
    for kind, (access, key) in product(("executed", "ideal"), _ACCESS_TYPES.items()):
        computed[f"shared_{kind}_{access}"] = partial(by_access, kind, key)
    capabilities = [capability(launch.device) for launch in raw.launches]
    return _Evaluation(
        entries, capabilities, raw.columns, raw.recorded, computed, tensor_code
    ).run()


class _Evaluation:
    """One pass over the catalogue; quantities that formulas name are evaluated on demand."""

    def __init__(
        self,
        entries: Catalog,
        capabilities: Sequence[ComputeCapability],
        columns: Mapping[str, Column],
        recorded: Mapping[str, Mask],
        computed: Mapping[str, Callable[[int, float], float]],
        tensor_code: Callable[[int], Mapping[str, float] | None],
    ) -> None:
        self._entries = entries
        self._capabilities = capabilities
        self._computed = computed
        self._tensor_code = tensor_code
        self._columns = dict(columns)
        self._available = dict(recorded)
        self._missing: dict[str, tuple[str | None, ...]] = {}
        self._formulas: dict[str, tuple[str | None, ...]] = {}

    def run(self) -> Quantities:
        for name in self._entries.quantities:
            self._require(name)
        return Quantities(
            values={name: self._columns[name] for name in self._entries.quantities},
            missing=self._without_collected_sections(),
            formulas=self._formulas,
        )

    def _without_collected_sections(self) -> Mapping[str, tuple[str | None, ...]]:
        """The reasons, none of which asks for a section that the launch evidently has."""
        pointless = [
            {
                _not_collected(section)
                for section, mark in self._entries.sections.items()
                if self._missing[mark][at] is None
            }
            for at in range(len(self._capabilities))
        ]
        return {
            name: tuple(
                NOT_IN_VERSION if reason in pointless[at] else reason
                for at, reason in enumerate(reasons)
            )
            for name, reasons in self._missing.items()
        }

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
        launches = range(len(self._capabilities))
        self._require("tensor_instructions")
        self._require("tensor_busy")
        counted, busy = self._columns["tensor_instructions"], self._columns["tensor_busy"]
        ran = (counted > 0) | (np.isnan(counted) & (busy > 0))
        by_launch = [self._tensor_code(at) if ran[at] else None for at in launches]
        for name, kind in TENSOR_CODE.items():
            column = [np.nan if code is None else code[kind] for code in by_launch]
            self._columns[name] = np.array(column, dtype=np.float64)
            self._available[name] = ~np.isnan(self._columns[name])

    def _evaluate(self, quantity: Quantity) -> None:
        launches = len(self._capabilities)
        value = np.full(launches, np.nan)
        source: list[str | None] = [None] * launches
        tried = np.zeros(launches, dtype=bool)
        here = np.array([quantity.exists_on(cc) for cc in self._capabilities], dtype=bool)
        if quantity.computed:
            value = np.where(here, self._compute(quantity), np.nan)
            source = [quantity.computed] * launches
        for at in np.flatnonzero([quantity.is_none_on(cc) for cc in self._capabilities]):
            value[at], source[at] = 0.0, "0"
        for alternative in quantity.alternatives:
            usable = self._usable(alternative, here & np.isnan(value))
            if not usable.any():
                continue
            result = alternative.formula(self._columns)
            for at in np.flatnonzero(usable & ~np.isnan(result)):
                value[at] = result[at]
                source[at] = alternative.formula.text
            tried |= usable & (~np.isnan(result) if alternative.formula.infers else True)
        self._columns[quantity.name] = value
        self._available[quantity.name] = ~np.isnan(value) | tried
        self._formulas[quantity.name] = tuple(source)
        self._missing[quantity.name] = tuple(
            self._reason(quantity, at, bool(tried[at])) if np.isnan(value[at]) else None
            for at in range(launches)
        )

    def _compute(self, quantity: Quantity) -> Column:
        launches = range(len(self._capabilities))
        given = (
            self._columns[quantity.computed]
            if self._require(quantity.computed)
            else np.full(len(launches), np.nan)
        )
        compute = self._computed[quantity.name]
        return np.array([compute(at, given[at]) for at in launches], dtype=np.float64)

    def _usable(self, alternative: Alternative, wanted: Mask) -> Mask:
        """The launches of those wanted that the alternative is for and that recorded its inputs."""
        usable = wanted & [cc in alternative.cc for cc in self._capabilities]
        if alternative.shortest and usable.any():
            self._require("duration")
            usable &= self._columns["duration"] >= alternative.shortest
        for name in alternative.formula.names:
            if not usable.any() or not self._require(name):
                return np.zeros_like(usable)
            usable &= self._available[name]
        return usable

    def _reason(self, quantity: Quantity, at: int, tried: bool) -> str:
        cc = self._capabilities[at]
        nothing_missing = (None,) * len(self._capabilities)
        tried_nowhere = np.zeros(len(self._capabilities), dtype=bool)
        if not quantity.exists_on(cc):
            return NOT_HERE
        matching = [item for item in quantity.alternatives if cc in item.cc]
        if not matching and not quantity.computed:
            return UNKNOWN_HERE
        if quantity.computed and self._available.get(quantity.computed, tried_nowhere)[at]:
            return NOT_CHECKED
        for name in matching[0].formula.names if matching else ():
            reason = self._missing.get(name, nothing_missing)[at]
            if reason is not None:
                return reason
        if self._is_too_short(matching, at):
            return TOO_SHORT
        if tried:
            inputs = {name for item in matching for name in item.formula.names}
            silent = any(
                name in self._columns
                and self._available[name][at]
                and np.isnan(self._columns[name][at])
                and name not in self._entries.quantities
                for name in inputs
            )
            return NO_VALUE if silent else UNDEFINED
        return _not_collected(quantity.section)

    def _is_too_short(self, matching: Sequence[Alternative], at: int) -> bool:
        """Whether a longer launch would have had a value by what this one recorded."""
        return any(
            item.shortest > self._columns["duration"][at]
            and all(
                name in self._columns and self._available[name][at] for name in item.formula.names
            )
            for item in matching
            if item.shortest
        )


def _not_collected(section: str) -> str:
    return (
        NOT_COLLECTED
        if section == "any"
        else f"{NOT_COLLECTED}; record with ncu --section {section}"
    )
