"""Makes a set of pairs of published reports: `python -m kernels.published_pairs FOLDER [LABELS]`

A folder of reports, FOLDER/pairs/NAME/before.ncu-rep or FOLDER/NAME/before.ncu-rep, becomes one
that `profkit rules score --sets` reads: pair.yaml and latency.json are written beside each report.
Labels are those of a file, a list of `pairs`, or of `pair.json` in each folder.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

_LEAST = 1.02
"""The measured factor below which a fix gained nothing: less is within the error of timings."""
_SAME = ("category", "family")
_WITHDRAWN = "withdrawn"


def labels(folder: Path, file: Path | None) -> Iterable[tuple[Path, Mapping[str, Any]]]:
    """The folder of each pair with a report, and what its label says."""
    if file:
        listed = json.loads(file.read_text(encoding="utf-8"))["pairs"]
        rows = [(folder / "pairs" / row["name"], row) for row in listed]
    else:
        files = sorted(folder.glob("*/pair.json"))
        rows = [(path.parent, json.loads(path.read_text(encoding="utf-8"))) for path in files]
    for place, row in rows:
        if row.get("kind") != _WITHDRAWN and list(place.glob("before.ncu-rep*")):
            yield place, row


def write(folder: Path, label: Mapping[str, Any]) -> None:
    """pair.yaml and latency.json of a pair."""
    gain = label.get("gain", label.get("speedup"))
    idle = gain is not None and (gain < _LEAST or label.get("kind") in {"no_gain", "bad_fix"})
    pair = {name: label[name] for name in _SAME} | {
        "kind": "no_gain" if idle else "defect",
        "also": label.get("also", label.get("related", [])),
        "source": label.get("source", label.get("repo")),
    }
    (folder / "pair.yaml").write_text(yaml.safe_dump(pair, sort_keys=False), encoding="utf-8")
    if gain:
        times = json.dumps({"before": gain, "after": 1})
        (folder / "latency.json").write_text(times, encoding="utf-8")


def main(arguments: list[str]) -> int:
    folder, *files = map(Path, arguments)
    for place, label in labels(folder, files[0] if files else None):
        write(place, label)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
