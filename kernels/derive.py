"""Derives again what recorded latencies say: `python -m kernels.derive [FILE...]`

Samples stay as they are; statistics, rates, sentences and verdicts become what today's code says of
them, and each file's entry in the manifest beside it follows. Without arguments: every
`profkit.time/1` file below reports/.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from msgspec import structs

from profkit.core.errors import BadInput
from profkit.core.integrity import MANIFEST
from profkit.core.json_text import json_text
from profkit.core.regular_file import digest
from profkit.core.typed_file import encode
from profkit.timing.latency import latency_report
from profkit.timing.latency_file import read_latencies
from profkit.timing.latency_format import SCHEMA
from profkit.timing.latency_view import in_words

REPORTS = Path(__file__).parent.parent / "reports"
_MEASURED = ("profkit", "created", "left_out", "spans", "seconds")


def recorded_latencies() -> tuple[Path, ...]:
    """The files of latencies below reports/."""
    return tuple(path for path in sorted(REPORTS.rglob("*.json")) if _is_of_latencies(path))


def _is_of_latencies(path: Path) -> bool:
    with path.open(encoding="utf-8") as file:
        return f'"{SCHEMA}"' in file.read(100)


def derived(path: Path) -> dict[str, Any]:
    """The document that today's code makes of a file's samples; raises what reading it raises."""
    saved = read_latencies(path)
    file = saved.file
    if file is None:
        raise BadInput(f"{path}: not {SCHEMA}")
    pairs = file.comparisons
    names = [pairs[0].a, *(pair.b for pair in pairs)] if pairs else []
    report = latency_report(saved, names, thresholds=file.thresholds)
    report = in_words(structs.replace(report, left_out=file.left_out))
    again: dict[str, Any] = json.loads(encode(report))
    return again | {name: getattr(file, name) for name in _MEASURED}


def derive(path: Path) -> bool:
    """Write a file again where it differs from what is derived; whether it did."""
    document = derived(path)
    if document == json.loads(path.read_text(encoding="utf-8")):
        return False
    path.write_text(json_text(document, indent=0), encoding="utf-8")
    manifest_path = path.with_name(MANIFEST)
    if manifest_path.is_file():
        manifest = json.loads(manifest_path.read_text(encoding="utf-8"))
        manifest["files"][path.name] |= {"sha256": digest(path), "bytes": path.stat().st_size}
        manifest_path.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    return True


def main() -> int:
    """Derive the files that the command line names, all recorded ones by default."""
    for path in [Path(word) for word in sys.argv[1:]] or recorded_latencies():
        if derive(path):
            print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
