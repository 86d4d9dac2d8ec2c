"""Asks NVIDIA's PerfWorks host library how counters are scheduled into replay passes.

The library comes with the ncu-report package; its C API is that of CUPTI's `nvperf_host.h`. Run as
a program it answers one question on stdin: a fault of the library ends that process alone.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

NAME = "libnvperf_host.so"

_PROFILER = 1  # NVPA_ACTIVITY_KIND_PROFILER of nvperf_common.h
_POINTER, _SIZE, _BYTE = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint8


class LibraryUnusable(Exception):
    """The library is missing, or doesn't answer as its header says."""


class _EvalRequest(ctypes.Structure):
    _fields_ = [  # noqa: RUF012
        ("metricIndex", _SIZE),
        ("metricType", _BYTE),
        ("rollupOp", _BYTE),
        ("submetric", ctypes.c_uint16),
    ]


class _RawRequest(ctypes.Structure):
    _fields_ = [  # noqa: RUF012
        ("structSize", _SIZE),
        ("pPriv", _POINTER),
        ("pMetricName", ctypes.c_char_p),
        ("isolated", _BYTE),
        ("keepInstances", _BYTE),
    ]


_EVAL_SIZE = _EvalRequest.submetric.offset + _EvalRequest.submetric.size
_RAW_SIZE = _RawRequest.keepInstances.offset + _RawRequest.keepInstances.size


def library_path() -> Path | None:
    """The library beside the ncu-report package's modules, where it is installed."""
    spec = find_spec("ncu_report")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / NAME
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
        fields = [("names", ctypes.POINTER(ctypes.c_char_p)), ("count", _SIZE)]
        answer = self.call("NVPW_GetSupportedChipNames", fields)
        return [answer.names[index].decode() for index in range(answer.count)]

    def call(self, name: str, fields: Sequence[tuple[str, Any]], **values: Any) -> Any:
        """Call a function with its parameter structure, and return that filled."""
        layout = [("structSize", _SIZE), ("pPriv", _POINTER), *fields]
        parameters = type(name, (ctypes.Structure,), {"_fields_": layout})()
        last = getattr(type(parameters), layout[-1][0])
        parameters.structSize = last.offset + last.size
        for key, value in values.items():
            setattr(parameters, key, value)
        try:
            function = getattr(self._functions, name)
        except AttributeError:
            raise LibraryUnusable(f"{NAME} has no {name}") from None
        status = function(ctypes.byref(parameters))
        if status:
            raise LibraryUnusable(f"{name} failed with status {status}")
        return parameters


class Chip:
    """A chip's metrics and their counters."""

    def __init__(self, library: Library, name: str) -> None:
        self._library = library
        self._name = name.encode()
        chip = ("chip", ctypes.c_char_p)
        size = library.call(
            "NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize",
            [chip, ("availability", _POINTER), ("size", _SIZE)],
            chip=self._name,
        ).size
        self._scratch = (_BYTE * size)()
        self._evaluator = library.call(
            "NVPW_CUDA_MetricsEvaluator_Initialize",
            [("scratch", _POINTER), ("size", _SIZE), chip, ("availability", _POINTER),
             ("image", _POINTER), ("image_size", _SIZE), ("evaluator", _POINTER)],
            scratch=ctypes.addressof(self._scratch), size=size, chip=self._name,
        ).evaluator  # fmt: skip

    def knows(self, metric: str) -> bool:
        """Whether the chip has a metric of that name."""
        return self._request(metric) is not None

    def _request(self, metric: str) -> _EvalRequest | None:
        request = _EvalRequest()
        fields = [("evaluator", _POINTER), ("metric", ctypes.c_char_p), ("request", _POINTER),
                  ("size", _SIZE)]  # fmt: skip
        try:
            self._library.call(
                "NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest",
                fields,
                evaluator=self._evaluator,
                metric=metric.encode(),
                request=ctypes.addressof(request),
                size=_EVAL_SIZE,
            )
        except LibraryUnusable:
            return None
        return request

    def counters(self, metrics: Iterable[str]) -> list[str]:
        """The hardware counters that known metrics are computed from."""
        requests = [request for name in metrics if (request := self._request(name)) is not None]
        if not requests:
            return []
        array = (_EvalRequest * len(requests))(*requests)
        fields = [("evaluator", _POINTER), ("requests", _POINTER), ("count", _SIZE),
                  ("size", _SIZE), ("stride", _SIZE), ("names", _POINTER), ("name_count", _SIZE),
                  ("optional", _POINTER), ("optional_count", _SIZE)]  # fmt: skip
        question = {"evaluator": self._evaluator, "requests": ctypes.addressof(array),
                    "count": len(requests), "size": _EVAL_SIZE,
                    "stride": ctypes.sizeof(_EvalRequest)}  # fmt: skip
        name = "NVPW_MetricsEvaluator_GetMetricRawDependencies"
        answer = self._library.call(name, fields, **question)
        names = (ctypes.c_char_p * answer.name_count)()
        optional = (ctypes.c_char_p * max(1, answer.optional_count))()
        self._library.call(
            name, fields, **question, names=ctypes.addressof(names), name_count=len(names),
            optional=ctypes.addressof(optional), optional_count=answer.optional_count,
        )  # fmt: skip
        return [item.decode() for item in names if item is not None]

    def passes(self, counters: Sequence[str]) -> int:
        """The passes that counters take together."""
        if not counters:
            return 0
        library, config = self._library, ("config", _POINTER)
        handle = library.call(
            "NVPW_CUDA_RawMetricsConfig_Create_V2",
            [("kind", ctypes.c_int), ("chip", ctypes.c_char_p), ("availability", _POINTER), config],
            kind=_PROFILER, chip=self._name,
        ).config  # fmt: skip
        group = [config, ("most", _SIZE)]
        library.call("NVPW_RawMetricsConfig_BeginPassGroup", group, config=handle)
        names = [name.encode() for name in counters]
        rows = [_RawRequest(_RAW_SIZE, None, name, 1, 1) for name in names]
        array = (_RawRequest * len(rows))(*rows)
        library.call(
            "NVPW_RawMetricsConfig_AddMetrics",
            [config, ("requests", _POINTER), ("count", _SIZE)],
            config=handle, requests=ctypes.addressof(array), count=len(rows),
        )  # fmt: skip
        library.call("NVPW_RawMetricsConfig_EndPassGroup", [config], config=handle)
        answer = library.call(
            "NVPW_RawMetricsConfig_GetNumPasses",
            [config, ("pipelined", _SIZE), ("isolated", _SIZE)],
            config=handle,
        )
        library.call("NVPW_RawMetricsConfig_Destroy", [config], config=handle)
        return int(answer.pipelined + answer.isolated)


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """The passes of each list of metrics on a chip, and the names that the chip doesn't know."""
    library = Library(Path(question["library"]))
    if question["chip"] not in library.chips():
        raise LibraryUnusable(f"the library doesn't know {question['chip']}")
    chip = Chip(library, question["chip"])
    lists = question["lists"]
    names = dict.fromkeys(name for metrics in lists for name in metrics)
    return {
        "counts": [chip.passes(chip.counters(metrics)) for metrics in lists],
        "unknown": [name for name in names if not chip.knows(name)],
    }


if __name__ == "__main__":
    try:
        print(json.dumps(answer(json.load(sys.stdin))))
    except LibraryUnusable as problem:
        print(json.dumps({"problem": str(problem)}))
