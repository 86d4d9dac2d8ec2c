"""A target script: what Python imports for it, as if it were the program, and its own options."""

import argparse
import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from profkit.core.errors import UsageError


@dataclass(eq=False)
class ImportScope:
    """The imports of the scripts in a folder, in force from `enter` until another scope is entered.

    While it is in force the folder leads `sys.path`, and the modules that were imported from it are
    in `sys.modules`; modules of the same names from another script's folder are not.
    """

    folder: Path
    _modules: dict[str, ModuleType] = field(default_factory=dict)
    _present: frozenset[str] = frozenset()

    def enter(self) -> None:
        """Put the scope in force, in place of the one that was."""
        global _current
        if _current is self:
            return
        if _current is not None:
            _current._leave()
        self._present = frozenset(name.partition(".")[0] for name in sys.modules)
        sys.path.insert(0, str(self.folder))
        sys.modules.update(self._modules)
        importlib.invalidate_caches()
        _current = self

    def _leave(self) -> None:
        if str(self.folder) in sys.path:
            sys.path.remove(str(self.folder))
        own = {
            name
            for name, module in list(sys.modules.items())
            if "." not in name and name not in self._present and self._holds(module)
        }
        names = [name for name in sys.modules if name.partition(".")[0] in own]
        self._modules = {name: sys.modules.pop(name) for name in names}

    def _holds(self, module: ModuleType) -> bool:
        """Whether a top-level module lies directly in the folder: a file, or a package there."""
        file = getattr(module, "__file__", None)
        places = getattr(module, "__path__", ()) if file is None else [file]
        for place in map(Path, places):
            path = place.parent if file is not None and place.stem == "__init__" else place
            if path.resolve().parent == self.folder:
                return True
        return False


_current: ImportScope | None = None
_scopes: dict[Path, ImportScope] = {}


def scope_of(folder: Path) -> ImportScope:
    """The scope of the scripts in a folder: loading one again does not import its modules again."""
    return _scopes.setdefault(folder, ImportScope(folder))


def asked(options: argparse.ArgumentParser) -> argparse.Namespace:
    """The values of a script's own options on the command line.

    `options` is made with `add_help=False` and given to `Target.main` too. Where the script is run,
    words that are none of its options are left to `Target.main`; where profkit imports it there is
    nobody else to know them. Raises UsageError then for what is wrong, and makes `options.error`
    raise it.
    """
    if _is_run():
        return options.parse_known_args(without_dashes(sys.argv[1:]))[0]
    options.error = _refuse  # type: ignore[method-assign]
    known, left = options.parse_known_args()
    if left:
        names = " ".join(options.format_usage().removeprefix("usage:").split()[1:])
        raise UsageError(f"{_script()}: no option {left[0]}", f"use {names}" if names else "")
    return known


def without_dashes(words: Sequence[str]) -> list[str]:
    """A command line without its first `--`, which separates a script's options in profkit's."""
    first = words.index("--") if "--" in words else len(words)
    return [*words[:first], *words[first + 1 :]]


def _is_run() -> bool:
    """Whether the script that the command line is of is the program itself."""
    program = getattr(sys.modules["__main__"], "__file__", None)
    return program is not None and Path(program).resolve() == Path(sys.argv[0]).resolve()


def _script() -> str:
    return Path(sys.argv[0]).name


def _refuse(message: str) -> NoReturn:
    raise UsageError(f"{_script()}: {message}", "see its --help")
