"""ncu's sections and sets by compute capability, and NVIDIA's chips as its PerfWorks library names
them. Metrics of sections are as ncu 2025.3.1 defines them.

`sections.json` is written by `kernels/ncu_sections.py`.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import msgspec

from profkit.core.text_files import shipped_text
from profkit.core.yaml_files import shipped_yaml

OVER_TIME = "pmsampling:"
"""The prefix of metrics sampled over time; `pmsampling:GROUP:NAME` is one of a group."""

CAPABILITIES: Mapping[str, str] = {
    chip: capability
    for capability, chips in shipped_yaml("profkit.capture", "chips.yaml").items()
    for chip in chips
}
"""Compute capability by chip."""


def chip_of(capability: str) -> str | None:
    """The chip that stands for a compute capability, `9.0`."""
    return next((chip for chip, value in CAPABILITIES.items() if value == capability), None)


def section_names() -> list[str]:
    """ncu's sections."""
    return list(_document()["sections"])


@cache
def set_sections() -> Mapping[str, tuple[str, ...]]:
    """The sections of ncu's sets."""
    sets: dict[str, tuple[str, ...]] = {}
    for name, section in _document()["sections"].items():
        for key in section["sets"]:
            sets[key] = (*sets.get(key, ()), name)
    return sets


def section_metrics(section: str, capability: str) -> list[str]:
    """The metrics of a section on a compute capability, `9.0`; of one between two listed, those of
    the lower."""
    listed = _document()["capabilities"]
    bit = max(index for index, name in enumerate(listed) if _key(name) <= _key(capability))
    metrics = _document()["sections"][section]["metrics"]
    return [name for name, bits in metrics.items() if bits >> bit & 1]


def underived(metrics: Iterable[str]) -> list[str]:
    """Metrics with those that ncu computes from others replaced by the others."""
    derived = _document()["derived"]
    names: list[str] = []
    for name in metrics:
        plain = name.removeprefix("breakdown:")
        parts = derived.get(plain) or derived.get(plain.partition(".")[0])
        names += underived(parts) if parts else [plain]
    return list(dict.fromkeys(names))


def kind(metric: str) -> str:
    """What gives a metric: `free` is the launch or the device, `samples` are warp samples,
    `by_instruction` is patched machine code, `over_time` are samples over time; else `hardware`."""
    if metric.startswith(OVER_TIME):
        return "over_time"
    return next((key for key, form in _kinds().items() if form.fullmatch(metric)), "hardware")


@cache
def _kinds() -> Mapping[str, re.Pattern[str]]:
    return {key: re.compile(text) for key, text in _document()["kinds"].items()}


def _key(capability: str) -> tuple[int, ...]:
    return tuple(map(int, capability.split(".")))


@cache
def _document() -> Any:
    return msgspec.json.decode(shipped_text("profkit.capture", "sections.json"))
