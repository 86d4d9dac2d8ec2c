"""Asks NVIDIA's PerfWorks host library how counters are scheduled into replay passes.

The library comes with the ncu-report package; its C API is that of CUPTI's `nvperf_host.h`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from profkit.capture.passes import Schedule

FILE = "libnvperf_host.so"

_PROFILER = 1  # NVPA_ACTIVITY_KIND_PROFILER of nvperf_common.h
_SASS = 2  # NVPW_RAW_COUNTER_DOMAIN_GPU_SASS of nvperf_host.h
_POINTER, _SIZE, _BYTE, _NAME = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint8, ctypes.c_char_p
_ROLLUPS = (".sum", ".ratio", ".pct")
_Field = tuple[str, Any]
_CONFIG: _Field = ("config", _POINTER)
_DOMAINS = [_CONFIG, ("count", _SIZE), ("domains", _POINTER)]


class LibraryUnusable(Exception):
    """The library is missing, or doesn't answer as its header says."""


class _EvalRequest(ctypes.Structure):
    _fields_ = [
        ("metricIndex", _SIZE),
        ("metricType", _BYTE),
        ("rollupOp", _BYTE),
        ("submetric", ctypes.c_uint16),
    ]


class _CounterRequest(ctypes.Structure):
    _fields_ = [
        ("pPriv", _POINTER),
        ("pRawCounterName", _NAME),
        ("domain", ctypes.c_uint32),
        ("keepInstances", _BYTE),
    ]


def library_path() -> Path | None:
    """The library beside the ncu-report package's modules, where it is installed."""
    spec = find_spec("ncu_report")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / FILE
    return path if path.is_file() else None


class Library:
    """The loaded library. Raises LibraryUnusable for whatever it refuses."""

    def __init__(self, path: Path) -> None:
        try:
            self._functions = ctypes.CDLL(str(path))
        except OSError as error:
            raise LibraryUnusable(str(error)) from None
        self.call("NVPW_InitializeHost", [])

    def chips(self) -> list[str]:
        """The chips it knows, `GH100`."""
        fields = [("names", ctypes.POINTER(_NAME)), ("count", _SIZE)]
        answer = self.call("NVPW_GetSupportedChipNames", fields)
        return [answer.names[index].decode() for index in range(answer.count)]

    def call(self, function: str, fields: Sequence[_Field], /, **values: Any) -> Any:
        """Call a function with its parameter structure, and return that filled."""
        layout = [("structSize", _SIZE), ("pPriv", _POINTER), *fields]
        parameters = type(function, (ctypes.Structure,), {"_fields_": layout})()
        last = getattr(type(parameters), layout[-1][0])
        parameters.structSize = last.offset + last.size
        for key, value in values.items():
            setattr(parameters, key, value)
        try:
            entry = getattr(self._functions, function)
        except AttributeError:
            raise LibraryUnusable(f"{FILE} has no {function}") from None
        status = entry(ctypes.byref(parameters))
        if status:
            raise LibraryUnusable(f"{function} failed with status {status}")
        return parameters


class Chip:
    """A chip's metrics, their counters, and the passes that those take."""

    def __init__(self, library: Library, name: str) -> None:
        if name not in library.chips():
            raise LibraryUnusable(f"the PerfWorks library doesn't know {name}")
        self._call = library.call
        self._name = name.encode()
        size = library.call(
            "NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize",
            [("chip", _NAME), ("availability", _POINTER), ("size", _SIZE)],
            chip=self._name,
        ).size
        self._scratch = (_BYTE * size)()
        self._evaluator = library.call(
            "NVPW_CUDA_MetricsEvaluator_Initialize",
            [("scratch", _POINTER), ("size", _SIZE), ("chip", _NAME), ("availability", _POINTER),
             ("image", _POINTER), ("image_size", _SIZE), ("evaluator", _POINTER)],
            scratch=ctypes.addressof(self._scratch), size=size, chip=self._name,
        ).evaluator  # fmt: skip
        self._properties = self._group()[0]
        self.counters = cache(self._counters)
        self.domains = cache(self._domains)
        self.passes = cache(self._passes)

    def _counters(self, metric: str) -> tuple[str, ...] | None:
        """The counters that a metric is computed from; None: the chip has no such metric.

        Without a rollup (`dram__bytes_read`) a name stands for any of them.
        """
        names = [metric] if "." in metric else [f"{metric}{rollup}" for rollup in _ROLLUPS]
        answers = (self._dependencies(name) for name in names)
        return next((counters for counters in answers if counters is not None), None)

    def _dependencies(self, metric: str) -> tuple[str, ...] | None:
        request = _EvalRequest()
        size = _EvalRequest.submetric.offset + _EvalRequest.submetric.size
        try:
            self._call(
                "NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest",
                [("evaluator", _POINTER), ("metric", _NAME), ("request", _POINTER),
                 ("size", _SIZE)],
                evaluator=self._evaluator, metric=metric.encode(),
                request=ctypes.addressof(request), size=size,
            )  # fmt: skip
        except LibraryUnusable:
            return None
        fields = [("evaluator", _POINTER), ("requests", _POINTER), ("count", _SIZE),
                  ("size", _SIZE), ("stride", _SIZE), ("names", _POINTER), ("name_count", _SIZE),
                  ("optional", _POINTER), ("optional_count", _SIZE)]  # fmt: skip
        question = {"evaluator": self._evaluator, "requests": ctypes.addressof(request),
                    "count": 1, "size": size, "stride": ctypes.sizeof(request)}  # fmt: skip
        dependencies = "NVPW_MetricsEvaluator_GetMetricRawDependencies"
        room = self._call(dependencies, fields, **question)
        if not room.name_count:
            return ()
        names, optional = (_NAME * room.name_count)(), (_NAME * max(1, room.optional_count))()
        self._call(
            dependencies, fields, **question, names=ctypes.addressof(names),
            name_count=len(names), optional=ctypes.addressof(optional),
            optional_count=room.optional_count,
        )  # fmt: skip
        return tuple(name.decode() for name in names)

    def _domains(self, counter: str) -> tuple[int, ...]:
        """The parts of the chip that can count a counter, as the library numbers them."""
        fields = [_CONFIG, ("name", _NAME), ("count", _SIZE), ("domains", _POINTER),
                  ("group_count", _SIZE), ("groups", _POINTER)]  # fmt: skip
        question = {"config": self._properties, "name": counter.encode()}
        properties = "NVPW_RawCounterConfig_GetRawCounterProperties"
        count = self._call(properties, fields, **question).count
        domains = (ctypes.c_int * max(1, count))()
        self._call(properties, fields, **question, count=count, domains=ctypes.addressof(domains))
        return tuple(domains[:count])

    def _group(self) -> tuple[int, Any]:
        """A new schedule with all parts of the chip open, and these."""
        config = self._call(
            "NVPW_CUDA_RawCounterConfig_Create",
            [("chip", _NAME), ("availability", _POINTER), ("kind", ctypes.c_uint32), _CONFIG],
            chip=self._name, kind=_PROFILER,
        ).config  # fmt: skip
        available = "NVPW_RawCounterConfig_GetAllAvailableRawCounterDomains"
        count = self._call(available, _DOMAINS, config=config).count
        domains = (ctypes.c_int * count)()
        every = {"count": count, "domains": ctypes.addressof(domains)}
        self._call(available, _DOMAINS, config=config, **every)
        self._call("NVPW_RawCounterConfig_BeginPassGroup", _DOMAINS, config=config, **every)
        return config, domains

    def _passes(self, counters: tuple[str, ...]) -> int:
        """The passes that counters take together. Their order matters to the scheduler, which
        takes a second for 400."""
        if not counters:
            return 0
        config, domains = self._group()
        every = {"count": len(domains), "domains": ctypes.addressof(domains)}
        names = [name.encode() for name in counters]
        rows = (_CounterRequest * len(names))(
            *(_CounterRequest(None, name, 0, 1) for name in names)
        )
        last = _CounterRequest.keepInstances
        try:
            self._call(
                "NVPW_RawCounterConfig_AddRawCounters",
                [_CONFIG, ("size", _SIZE), ("count", _SIZE), ("rows", _POINTER)],
                config=config, size=last.offset + last.size, count=len(rows),
                rows=ctypes.addressof(rows),
            )  # fmt: skip
            self._call("NVPW_RawCounterConfig_EndPassGroup", _DOMAINS, config=config, **every)
            fields = [_CONFIG, ("count", _SIZE)]
            return int(
                self._call("NVPW_RawCounterConfig_GetNumPasses", fields, config=config).count
            )
        finally:
            self._call("NVPW_RawCounterConfig_Destroy", [_CONFIG], config=config)


def ordered(chip: Chip, metrics: Iterable[str]) -> tuple[str, ...]:
    """The counters of metrics in the order in which ncu schedules them: by the metrics' names.

    Measured: in this order the scheduler's counts are ncu's own, in any other up to 8 more.
    """
    known = (chip.counters(name) or () for name in sorted(set(metrics)))
    return tuple(dict.fromkeys(counter for counters in known for counter in counters))


def schedule(chip: Chip, hardware: Sequence[str], groups: Sequence[Sequence[str]]) -> Schedule:
    """The schedule of the metrics that hardware counts and of groups sampled over time."""
    counters = ordered(chip, hardware)
    patched = {name for name in counters if chip.domains(name) == (_SASS,)}
    counted = tuple(name for name in counters if name not in patched)
    sampled = sum(_sampled(chip, group) for group in groups)
    return Schedule(chip.passes(counted), len(patched), sampled)


def _sampled(chip: Chip, group: Sequence[str]) -> int:
    """Passes of a group of metrics sampled over time: one where the library can't schedule it, as
    it can't without the hints with which ncu's authors made the groups of GB20x."""
    try:
        return max(1, chip.passes(ordered(chip, group)))
    except LibraryUnusable:
        return 1
