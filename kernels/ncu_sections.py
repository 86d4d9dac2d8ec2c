"""Writes the metrics of ncu's sections: `python -m kernels.ncu_sections SECTIONS REPORT`

SECTIONS is the folder of an ncu installation with its .section files (protobuf text), REPORT a
report of `--set full`, which names the metrics of the memory tables that no section file does.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ncu_report

from profkit.capture.sections import CAPABILITIES

FILE = Path("profkit/capture/sections.json")

Message = list[tuple[str, Any]]
"""The fields of a protobuf message: text, or a message."""

_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|#[^\n]*|([\w.+-]+)|([{}])')
_SKIPPED = {"Group", "CtrDomains", "MetricDefinitions", "Sets", "Filter", "Options"}
_NAME = re.compile(r"\b[a-z]\w*(?:\.\w+)*\b(?!\()")
_TABLES = {
    "MemoryChart": "memory__chart",
    "MemorySharedTable": "memory__shared_table",
    "MemoryL1TEXCacheTable": "memory__first_level_cache_table",
    "MemoryL2CacheTable": "memory__l2_cache_table",
    "MemoryL2CacheEvictPolicyTable": "memory__l2_cache_evict_policy_table",
    "MemoryDeviceMemoryTable": "memory__dram_table",
}
_KINDS = {
    "free": r"(launch|device|profiler|numa|nvlink|c2clink)__.*|gr__workids_.*"
    r"|sms?p?__maximum_warps_.*",
    "samples": r".*pcsamp.*",
    "by_instruction": r"sass__.*|[^.]+__sass_[^.]*|smsp__branch_targets_[^.]*|(?!\w*__)\w+",
}
"""Patterns of metrics that no counter of the hardware gives: those of the launch and the device,
warp samples, and those that patched machine code counts by instruction."""
_FREE = re.compile(_KINDS["free"])
_OVER_TIME = "pmsampling:"


def parse(text: str) -> Message:
    """A protobuf message in its text format."""
    tokens = [match for match in _TOKEN.finditer(text) if match[0][0] != "#"]
    stack: list[Message] = [[]]
    key = ""
    for token in tokens:
        if token[3] == "{":
            inner: Message = []
            stack[-1].append((key, inner))
            stack.append(inner)
            key = ""
        elif token[3] == "}":
            stack.pop()
        elif not key:
            key = token[2]
            continue
        else:
            stack[-1].append((key, token[1] if token[1] is not None else token[2]))
        key = ""
    return stack[0]


def _all(message: Message, key: str) -> list[Any]:
    return [value for name, value in message if name == key]


def _holds(message: Message, cc: int) -> bool:
    """Whether the filters of a message let it pass on a compute capability, 90 for 9.0."""
    return all(
        any(_within(item, cc) for item in _all(rule, "Items") or [rule])
        for rule in _all(message, "Filter")
    )


def _within(rule: Message, cc: int) -> bool:
    if _all(rule, "MaxKmd"):  # an old driver
        return False
    low, high = (_number(rule, key) for key in ("MinArch", "MaxArch"))
    return (low is None or low <= cc) and (high is None or cc <= high)


def _number(rule: Message, key: str) -> int | None:
    values = _all(rule, key)
    return int(values[0].removeprefix("CC_")) if values else None


def metrics(message: Message, cc: int, groups: dict[str, list[str]]) -> Iterator[str]:
    """The metrics of a section on a compute capability."""
    for key, value in message:
        if key in _TABLES:
            yield from groups[_TABLES[key]]
        if key in _SKIPPED or not isinstance(value, list):
            continue
        if key == "SuffixTable":
            yield from _combined(value, cc, groups)
        elif names := _all(value, "Name"):
            options = [option for option in _all(value, "Options") if _holds(option, cc)]
            if _holds(value, cc):
                yield _grouped(names[0], _all(value, "Groups"))
            elif options:
                yield _grouped(_all(options[0], "Name")[0], _all(value, "Groups"))
        elif _holds(value, cc):
            yield from metrics(value, cc, groups)


def _grouped(name: str, groups: list[str]) -> str:
    """A metric's name; of those sampled over time with its group, `pmsampling:ws0:NAME`, as a group
    is scheduled alone. The metrics that ncu composed for one pass are one: `pmsampling:ws0`."""
    group = f"{_OVER_TIME}{groups[0] if groups else 'sampling'}"
    if "Triage" in name:
        return group
    return f"{group}:{name.removeprefix(_OVER_TIME)}" if name.startswith(_OVER_TIME) else name


def _combined(table: Message, cc: int, groups: dict[str, list[str]]) -> Iterator[str]:
    suffixes = [_all(row, "Name")[0] for part in _all(table, "Suffixes") for _, row in part]
    for part in _all(table, "BaseNames"):
        for base in metrics(part, cc, groups):
            yield from (f"{base}.{suffix.lstrip('.')}" for suffix in suffixes)


def table(folder: Path, report: Path) -> dict[str, Any]:
    """Sections with their sets and metrics, the latter with a bit for each capability."""
    capabilities = sorted(set(CAPABILITIES.values()), key=lambda text: int(text.replace(".", "")))
    action = ncu_report.load_report(str(report))[0][0]
    groups = {
        name.removeprefix("group:"): action.metric_by_name(name).as_string().split(",")
        for name in action.metric_names()
        if name.startswith("group:memory__")
    }
    sections, derived = {}, {}
    for path in sorted(folder.glob("*.section")):
        message = parse(path.read_text(encoding="utf-8"))
        bits: dict[str, int] = {}
        for bit, capability in enumerate(capabilities):
            for name in metrics(message, int(capability.replace(".", "")), groups):
                plain = name.removeprefix("breakdown:")
                if plain and not _FREE.fullmatch(plain):
                    bits[plain] = bits.get(plain, 0) | 1 << bit
        sections[_all(message, "Identifier")[0]] = {
            "sets": [_all(item, "Identifier")[0] for item in _all(message, "Sets")],
            "metrics": dict(sorted(bits.items())),
        }
        for part in _all(message, "MetricDefinitions"):
            for _, row in part:
                derived[_all(row, "Name")[0]] = _NAME.findall(_all(row, "Expression")[0])
    return {
        "capabilities": capabilities,
        "kinds": _KINDS,
        "sections": sections,
        "derived": derived,
    }


def main() -> int:
    folder, report = map(Path, sys.argv[1:])
    text = json.dumps(table(folder, report), separators=(",", ":"))
    FILE.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
