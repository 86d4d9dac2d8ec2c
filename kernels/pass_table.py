"""Writes the table of what NVIDIA's PerfWorks library schedules: `python -m kernels.pass_table`

By family of chips it has the passes of sections, sets and their parts, the counters of their
metrics and of the catalog's, and the share of a pass that a counter of each part of the chip takes:
fitted to what the library schedules for the sections, the sets and random lists of metrics.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import nnls

from kernels.perfworks import Chip, Library, LibraryUnusable, library_path, ordered, schedule
from profkit.analysis import replay_plan
from profkit.capture.passes import SASS, count_of, key_of, subject_of
from profkit.capture.sections import (
    CAPABILITIES,
    section_metrics,
    section_names,
    set_sections,
    underived,
)
from profkit.capture.sets import OWN_SETS
from profkit.report.catalog import catalog

FILE = Path("profkit/capture/pass_table.json")

_SASS = (2,)
_SM = {3, 4, 32, 33}
"""Domains of nvperf_host.h: patched machine code, and those that an SM's counters share."""
_SIZES = (1, 2, 5, 10, 20, 40, 80, 150)
_REPEATS = 12  # random lists of each size, chosen: a minute for all chips
_ELSEWHERE = 0.7  # of a list's passes, chosen: above it, parts outside the SM decide
_MARGIN = 1.1  # chosen: an estimate below ncu's count is worse than one above


def names() -> list[str]:
    """The metrics of the table."""
    listed = [
        *catalog().metric_names,
        *(
            name
            for section in section_names()
            for capability in set(CAPABILITIES.values())
            for name in section_metrics(section, capability)
        ),
    ]
    return sorted(name for name in set(underived(listed)) if ":" not in name)


def family(chip: Chip, name: str, metrics: Sequence[str]) -> dict[str, Any]:
    """What a chip counts: the passes of sections and sets, parts with the shares of a pass that a
    counter takes, the part of each counter, and for each metric its counters, `-` where the chip
    has no such metric."""
    rows = [chip.counters(metric) for metric in metrics]
    counters = sorted({counter for row in rows for counter in row or ()})
    number = {counter: index for index, counter in enumerate(counters)}
    domains = [chip.domains(counter) for counter in counters]
    keys = sorted(set(domains))
    texts = ("-" if row is None else ",".join(str(number[item]) for item in row) for row in rows)
    subject = replay_plan.subject_of(name)
    listed = [
        *([section] for section in section_names()),
        *(
            names
            for each in (*set_sections(), *OWN_SETS, replay_plan.RULES, replay_plan.CATALOG)
            for names in replay_plan.lists_of(replay_plan.parts_of_set(each, subject))
        ),
    ]
    known = [metric for metric, row in zip(metrics, rows, strict=True) if row]
    shares = _shares(chip, keys, known)
    parts = zip(map(_unit, keys), shares, strict=True)
    return {
        "named": {key_of(names): _planned(chip, name, names) for names in listed},
        "parts": [[unit, *(round(share, 3) for share in pair)] for unit, pair in parts],
        "counters": [keys.index(key) for key in domains],
        "metrics": ";".join(texts),
    }


def _planned(chip: Chip, name: str, names: Sequence[str]) -> int:
    """The passes of metrics and sections, as the library schedules them."""
    (hardware, groups), own = subject_of(name, names)
    return count_of(schedule(chip, hardware, groups), own)


def _unit(domains: tuple[int, ...]) -> str:
    if domains == _SASS:
        return SASS
    return "sm" if _SM.intersection(domains) else f"domain {domains[0] if domains else 0}"


def _shares(
    chip: Chip, keys: Sequence[tuple[int, ...]], metrics: Sequence[str]
) -> list[tuple[float, float]]:
    """The share of a pass that a counter takes, by the parts that can count it: beside counters of
    other parts of its unit, and at least."""
    rng = random.Random(0)
    rows, passes = [], []
    for size in _SIZES * _REPEATS:
        names = rng.sample(metrics, min(size, len(metrics)))
        counters = tuple(item for item in ordered(chip, names) if chip.domains(item) != _SASS)
        with suppress(LibraryUnusable):
            passes.append(chip.passes(counters))
            rows.append([sum(chip.domains(item) == key for item in counters) for key in keys])
    counts, found = np.array(rows, dtype=float), np.array(passes, dtype=float)
    least = (found[:, None] / np.maximum(counts, 1)).min(axis=0)
    beside = least.copy()
    columns = [index for index, key in enumerate(keys) if _unit(key) == "sm"]
    others = [index for index in range(len(keys)) if index not in columns]
    elsewhere = (counts[:, others] * least[others]).max(axis=1, initial=0)
    by_sm = elsewhere < _ELSEWHERE * found
    fitted, _ = nnls(counts[by_sm][:, columns], found[by_sm])
    beside[columns] = fitted * _MARGIN
    return list(zip(beside.tolist(), least.tolist(), strict=True))


def table() -> dict[str, Any]:
    """The families of chips with their counters."""
    path = library_path()
    if path is None:
        raise SystemExit("the ncu-report package has no PerfWorks library")
    library, metrics = Library(path), names()
    families: dict[str, list[str]] = {}
    for name in CAPABILITIES:
        text = json.dumps(family(Chip(library, name), name, metrics), separators=(",", ":"))
        families.setdefault(text, []).append(name)
    rows = [{"chips": chips, **json.loads(text)} for text, chips in families.items()]
    return {"metrics": metrics, "families": rows}


def main() -> int:
    written = table()
    lines = (json.dumps(row, separators=(",", ":")) for row in written["families"])
    head = f'{{"metrics": {json.dumps(" ".join(written["metrics"]))},'
    text = head + '\n"families": [\n' + ",\n".join(lines) + "\n]}\n"
    FILE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
