"""Tests by what changed since HEAD: those of the changed rooms, then of the rooms above them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

import grimp

ROOT = Path(__file__).parent.parent
_EVERYTHING = ("pyproject.toml", "tests/conftest.py", "tests/run.py", "tests/recorded.py")
"""Files that all tests rest on."""


def changed_paths(revision: str = "HEAD") -> list[str]:
    """Files that differ from a revision, and new ones that git does not ignore."""
    commands = (
        ["git", "diff", "--name-only", revision],
        ["git", "ls-files", "--others", "--exclude-standard"],
    )
    outputs = (
        subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for command in commands
    )
    return [path for output in outputs for path in output.splitlines()]


def rooms_by_distance(changed: Iterable[str]) -> list[str]:
    """The changed rooms, then those that import them directly, then all others above."""
    graph = grimp.build_graph("profkit")
    rooms = sorted(graph.find_children("profkit"))
    order = [room for room in rooms if room.removeprefix("profkit.") in set(changed)]
    for room in order:  # grows while it is walked
        order += [
            other
            for other in rooms
            if other not in order
            and graph.direct_import_exists(importer=other, imported=room, as_packages=True)
        ]
    return [room.removeprefix("profkit.") for room in order]


def test_folders(paths: Sequence[str]) -> list[Path]:
    """What to test for changed files, nearest first: changed test files, folders of rooms."""
    if any(path in _EVERYTHING for path in paths):
        return [ROOT / "tests"]
    files = [ROOT / path for path in paths if Path(path).match("tests/**/test_*.py")]
    parts = [Path(path).parts for path in paths]
    rooms = {part[1] for part in parts if part[0] in {"profkit", "tests"} and len(part) > 2}
    rooms |= {"rules" for part in parts if part[0] == "rules"}
    folders = [ROOT / "tests" / room for room in [*sorted(rooms), *rooms_by_distance(rooms)]]
    return [path for path in (*files, *folders) if path.exists()]
