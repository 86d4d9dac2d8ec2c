"""Imports between rooms: drawn in ARCHITECTURE.md as they are, and none by a name in a string."""

from __future__ import annotations

import ast
import graphlib
import re
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest

from tests.conftest import ROOT

PACKAGE = ROOT / "profkit"
ROOMS = {folder.name for folder in PACKAGE.iterdir() if (folder / "__init__.py").is_file()}
MODULE = re.compile(r"profkit\.(\w+)(?:\.\w+)+")
ENTRY_POINTS = {
    PACKAGE / "capture" / "backends.py",  # loads the backends that packages register
    PACKAGE / "commands" / "cli.py",  # loads the verb that was asked for
    PACKAGE / "trial" / "child" / "forks.py",  # imports what the user's program does
    PACKAGE / "execution" / "injection" / "startup" / "sitecustomize.py",  # the same
}


def trees() -> Iterator[tuple[Path, ast.Module]]:
    for file in PACKAGE.rglob("*.py"):
        yield file, ast.parse(file.read_text(encoding="utf-8"))


def test_only_the_entry_points_import_by_name() -> None:
    importing = {
        file
        for file, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in {"import_module", "importlib.import_module", "__import__"}
    }
    assert importing <= ENTRY_POINTS


def test_a_string_names_modules_of_its_own_room_alone() -> None:
    strings = [
        (file.relative_to(PACKAGE).parts[0], named[1])
        for file, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if (named := MODULE.fullmatch(node.value)) and named[1] in ROOMS
    ]
    assert strings
    assert all(own == other for own, other in strings)


def room_imports() -> dict[str, set[str]]:
    """Which room imports which directly, imports within functions included."""
    graph = grimp.build_graph("profkit")
    imports: dict[str, set[str]] = {}
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            room, other = (name.split(".")[1:2] for name in (module, imported))
            if room and other and room != other and room != ["__main__"]:
                imports.setdefault(room[0], set()).update(other)
    return imports


def drawing(imports: dict[str, set[str]]) -> str:
    """The Mermaid graph of the rooms; an arrow that a longer path implies is left out."""

    def below(room: str) -> set[str]:
        return {room}.union(*(below(other) for other in imports.get(room, ())))

    arrows = [
        f"  {room} --> {other}"
        for room, others in sorted(imports.items())
        for other in sorted(others)
        if not any(other in below(between) for between in others - {other})
    ]
    return "\n".join(("```mermaid", "graph TD", *arrows, "```"))


def test_the_drawing_shows_the_imports_between_rooms(pytestconfig: pytest.Config) -> None:
    imports = room_imports()
    tuple(graphlib.TopologicalSorter(imports).static_order())  # raises CycleError at a cycle
    page = ROOT / "ARCHITECTURE.md"
    text = page.read_text(encoding="utf-8")
    drawn = re.sub(r"```mermaid.*?```", drawing(imports), text, flags=re.S)
    if pytestconfig.getoption("--regenerate"):
        page.write_text(drawn, encoding="utf-8")
        text = drawn
    assert "```mermaid" in text
    assert drawn == text
