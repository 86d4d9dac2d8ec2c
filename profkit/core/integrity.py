"""Comparison of files with the manifest of their run."""

from collections.abc import Mapping
from pathlib import Path

from profkit.core.errors import BadInput
from profkit.core.regular_file import digest
from profkit.core.text_files import read_json

MANIFEST = "manifest.json"


def check_unchanged(path: Path) -> Mapping[str, object]:
    """Compare a file with `manifest.json` in its folder, if listed there; its entry there, or {}.

    `files` of a manifest maps file names to `{"sha256": hex, "launches": n}`; `launches` may be
    left out. Raises BadInput where the file has changed.
    """
    manifest = path.parent / MANIFEST
    if not manifest.is_file():
        return {}
    document = read_json(manifest, "restore it or remove it")
    try:
        entry: Mapping[str, object] = document["files"][path.name]
        expected = str(entry["sha256"])
    except KeyError:
        return {}
    except TypeError:
        raise BadInput(f"{manifest}: not a run manifest", "restore it or remove it") from None
    if digest(path) != expected.lower():
        raise BadInput(
            f"{path}: changed since {MANIFEST} was written (SHA-256 differs)",
            "restore the file or remove the manifest",
        )
    return entry
