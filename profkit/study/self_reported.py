"""What others' files of latencies say of where and when they were taken, beside the samples.

Their words are found at the top of a file or a level below, in any of the spellings that are usual.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from profkit.capture.environment import digest

_VERSIONS = {
    "python": ("python_version",),
    "torch": ("pytorch_version", "torch_version", "pytorch", "torch"),
    "cuda": ("cuda_version", "cuda"),
    "cudnn": ("cudnn_version", "cudnn"),
    "triton": ("triton_version", "triton"),
}
_DRIVER = ("driver_version", "driver")
_TAKEN = ("timestamp", "datetime", "date")
_GPU = ("gpu", "gpu_name", "device_name")
_PEAKS = {
    "peak_allocated_mb": 2**20,
    "peak_memory_mb": 2**20,
    "peak_mb": 2**20,
    "peak_allocated": 1,
    "peak_bytes": 1,
}
_LONGEST = 100
_MOST_MEMORY = 2**50


@dataclass(frozen=True)
class Said:
    """The words of a file; what it does not say is "" or None. `peak_memory` is in bytes, of a
    figure in MB those of 2^20, as torch's users write it."""

    gpu: str
    driver: str
    versions: Mapping[str, str]
    taken: str
    peak_memory: int | None

    @property
    def environment(self) -> bool:
        """Whether it says anything of the machine or its software."""
        return bool(self.gpu or self.driver or self.versions)

    def fingerprint(self, gpu: str, dtype: str | None) -> tuple[dict[str, Any], str]:
        """A fingerprint, marked as said, and its SHA-256; `gpu` where the file names none."""
        told = {
            "gpu": {"name": self.gpu or gpu or "not known", "driver": self.driver or None},
            "versions": dict(self.versions),
            "compiler": None,
            "dtype": dtype,
            "flags": None,
            "variables": {},
            "commit": None,
            "said": True,
        }
        return told, digest(told)


def said_in(document: Mapping[str, Any]) -> Said:
    """What a file's document says."""
    versions = {name: _text(document, spellings) for name, spellings in _VERSIONS.items()}
    return Said(
        gpu=_gpu(document),
        driver=_text(document, _DRIVER),
        versions={name: value for name, value in versions.items() if value},
        taken=_text(document, _TAKEN),
        peak_memory=next(_peaks(document), None),
    )


def _gpu(document: Mapping[str, Any]) -> str:
    """A GPU's name, given as such or among others of its facts."""
    gpu = document.get("gpu")
    if isinstance(gpu, Mapping):
        return _text({"name": gpu.get("name")}, ("name",))
    return _text(document, _GPU)


def _text(document: Mapping[str, Any], spellings: tuple[str, ...]) -> str:
    for level in _levels(document):
        for name in spellings:
            value = level.get(name)
            if isinstance(value, str) and 0 < len(value.strip()) <= _LONGEST:
                return " ".join(value.split())
    return ""


def _peaks(document: Mapping[str, Any]) -> Iterator[int]:
    for level in _levels(document):
        for name, unit in _PEAKS.items():
            value = level.get(name)
            if isinstance(value, int | float) and 1 < value * unit < _MOST_MEMORY:
                yield round(value * unit)


def _levels(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield document
    yield from (value for value in document.values() if isinstance(value, Mapping))
