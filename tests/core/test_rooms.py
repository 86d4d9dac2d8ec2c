"""No module reaches into another room by the name of a module in a string."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.conftest import ROOT

PACKAGE = ROOT / "profkit"
ROOMS = {folder.name for folder in PACKAGE.iterdir() if (folder / "__init__.py").is_file()}
MODULE = re.compile(r"profkit\.(\w+)(?:\.\w+)+")
ENTRY_POINTS = {
    PACKAGE / "capture" / "backends.py",  # loads the backends that packages register
    PACKAGE / "commands" / "cli.py",  # loads the verb that was asked for
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
