"""The files of a program: its script, and what lies beside it that it imports.

They are read without being run, so that imports within functions count, and modules whose names are
computed, or that lie elsewhere, do not.
"""

import ast
import hashlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from profkit.core.regular_file import digest, read_limited

_LARGEST = 4 << 20  # bytes of a script, chosen: larger ones are data


def program_digest(script: Path) -> str:
    """The SHA-256 of a script, or that of all its files where it has several; raises BadInput for a
    script that can't be read."""
    files = program_files(script)
    if len(files) == 1:
        return digest(script)
    lines = (f"{digest(file)} {file.relative_to(script.resolve().parent)}\n" for file in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def program_files(script: Path) -> tuple[Path, ...]:
    """The script, then the modules in its folder that it imports, and those that they import."""
    root = script.resolve().parent
    files: dict[Path, None] = {}
    pending = [script.resolve()]
    while pending:
        file = pending.pop()
        if file not in files:
            files[file] = None
            pending += _imported(file, root)
    first, *others = files
    return first, *sorted(others)


def _imported(file: Path, root: Path) -> Iterator[Path]:
    """The files in `root` of the modules that a file imports, with their packages' `__init__`."""
    for node in ast.walk(_parsed(file)):
        names: list[str] = []
        folder = root
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                folder = file.parents[min(node.level, len(file.parents)) - 1]
            base = f"{node.module}." if node.module else ""
            names = [f"{base}{alias.name}" for alias in node.names]
        for name in names:
            place = folder
            for part in name.split("."):
                place /= part
                for each in (place.with_name(f"{part}.py"), place / "__init__.py"):
                    if each.is_file() and each.resolve().is_relative_to(root):
                        yield each.resolve()


def _parsed(file: Path) -> ast.Module:
    """A file's syntax tree; an empty one where it is no Python."""
    with suppress(SyntaxError, ValueError, RecursionError):
        return ast.parse(read_limited(file, _LARGEST))
    return ast.Module([], [])
